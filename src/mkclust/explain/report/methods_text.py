"""What was done, as a paragraph for a paper, with its references."""

from typing import Any

import numpy as np

from mkclust.explain.fitted import (
    certified_gap,
    format_gap,
    is_approximated,
    is_one_eigenproblem,
    kernel_source,
)
from mkclust.explain.report.collect import ReportData
from mkclust.methods import InductiveClusterer
from mkclust.methods.parameter_checks import COMMON
from mkclust.text import count, join_words
from mkclust.version import __version__

MISSING = {
    "zero": "their missing similarities counted as zero, which is the average one",
    "rescale": "their missing similarities counted as zero, and they were scaled up by the number "
    "of kernels that have them",
    "learn": "their missing similarities were learned with the clusters",
}


def methods_text(data: ReportData, versions: dict[str, str]) -> list[str]:
    """Return a paragraph that names every step that changed the data, then the references."""
    model, stability = data.model, data.stability
    papers = [
        *model.REFERENCES,
        f"The mkclust developers. mkclust, version {__version__}. Software.",
    ]
    marks = f" [{', '.join(map(str, range(1, len(papers))))}]" if model.REFERENCES else ""
    does = f", {model.SUMMARY}" if model.SUMMARY else ""
    m = len(model.kernel_names_)
    used = [f"{name} {version}" for name, version in versions.items()]
    sentences = [
        f"We clustered {count(data.n_samples, 'sample')} into {count(data.n_clusters, 'cluster')} "
        "by multiple kernel clustering.",
        *_preparation(data),
        f"We combined {f'the {m} kernels' if m > 1 else 'the kernel'} by {type(model).__name__}"
        f"{marks}{does}{_settings(model)}.",
        *_solution(model),
        f"Clusters were found by k-means with {count(model.n_init, 'start')} on the rows of the "
        f"relaxed partition, scaled to unit length ({_seed(model.random_state)}).",
    ]
    if stability is not None:
        sentences.append(
            f"Stability was assessed by {count(len(stability.agreements), 'refit')} on "
            f"{stability.size:,} samples drawn at random, compared with the whole fit by the "
            "adjusted Rand index."
        )
    used[0] += f" [{len(papers)}]"
    sentences.append(f"Computations were done with {join_words(used, 8)}.")
    entries = [f"[{number}] {paper}" for number, paper in enumerate(papers, start=1)]
    return [" ".join(sentences), *entries]


def _preparation(data: ReportData) -> list[str]:
    """Return what was done to the samples and to the kernels before the fit."""
    model, options = data.model, data.model.table_options
    sentences = [_kernels(model)]
    if options.join != "exact":
        kept = "that all tables have" if options.join == "inner" else "of all tables"
        sentences.insert(0, f"The samples {kept} were kept.")
    if options.impute is not None:
        sentences.append(
            f"Missing cells were replaced by the {options.impute} of their column, and those of "
            "categories by the most frequent one."
        )
    done = []
    if hasattr(model, "n_neighbors_"):
        done.append(f"replaced by the shared neighborhoods of {model.n_neighbors_} neighbors")
    if kernel_source(model) == "given" and model.psd != "error":
        done.append("made positive semidefinite if it was not " + f"(psd = {model.psd})")
    done += ["centered in its feature space"] * model.center
    done += ["scaled to a unit diagonal"] * model.normalize
    if done:
        sentences.append(f"Each kernel was {join_words(done)}.")
    observed = getattr(model, "observed_", None)
    if observed is not None:
        names = getattr(model, "view_names_in_", model.kernel_names_)
        counts = (~observed).sum(axis=0).tolist()
        lacking = [f"{n:,} from {name}" for name, n in zip(names, counts, strict=True) if n]
        n_missing = int((~observed.all(axis=1)).sum())
        sentences.append(
            f"{count(n_missing, 'sample')} {'was' if n_missing == 1 else 'were'} missing from some "
            f"views ({join_words(lacking)}); {MISSING[options.missing_views or 'rescale']}."
        )
    if n_unknown := int((~data.known).sum()):
        sentences.append(f"{count(n_unknown, 'sample')} without any entry had no cluster.")
    if aside := getattr(model, "set_aside_", ()):
        sentences.append(
            f"Views that share nothing with others were set aside: {join_words(aside)}."
        )
    return sentences


def _kernels(model: Any) -> str:
    """Return where the kernels came from."""
    names, source = model.kernel_names_, kernel_source(model)
    m = len(names)
    if source == "given":
        verb = "was" if m == 1 else "were"
        return f"{count(m, 'kernel')} {verb} given ({join_words(names)})."
    if source == "features":
        number = getattr(model.approximation, "n_components", None)
        several = f"{number} " if isinstance(number, int) else ""
        what = f"features per view by {type(model.approximation).__name__}"
        if type(model.approximation).__name__ == "Nystroem":
            what = "landmarks per view by Nyström's method"
        views = f"{count(m, 'view')} ({join_words(names)})"
        return f"The similarities within {views} were approximated by {several}{what}."
    made_of = list(model.bank_.views_)
    origin = f"{count(len(made_of), 'view')} ({join_words(made_of)})"
    origin = "the table" if made_of == ["table"] else origin
    explained = "; ".join(model.bank_.explain().splitlines())
    several = f": {join_words(names, 20)}" if m > len(made_of) else ""
    return f"From {origin} we computed {count(m, 'kernel')}{several}. {explained}."


def _settings(model: Any) -> str:
    """Return the method's own parameters, in parentheses."""
    shared = {*InductiveClusterer().get_params(deep=False), *COMMON}
    own = {k: v for k, v in model.get_params(deep=False).items() if k not in shared}
    if getattr(model, "anchor_", None) is not None:
        own["anchor"] = model.anchor_  # the value that was used, rather than "auto"
    words = [f"{name} = {parameter_text(value).strip(QUOTES)}" for name, value in own.items()]
    return f" ({', '.join(words)})" if words else ""


def _solution(model: Any) -> list[str]:
    """Return how far the solver came."""
    steps, gap = count(int(model.n_iter_), "iteration"), certified_gap(model)
    if gap is not None:
        kind = "approximated, relaxed" if is_approximated(model) else "relaxed"
        return [
            f"The {kind} problem was solved to a certified relative gap of {format_gap(gap)} "
            f"({model.certificate_}) in {steps}."
        ]
    if is_one_eigenproblem(model):
        return []
    end = "converged after" if model.converged_ else "was stopped, not converged, after"
    return [f"The method {end} {steps}."]


def parameter_text(value: Any) -> str:
    """Return a parameter as it was given; if it has no readable form, its type or name."""
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return f"a {type(value).__name__}"
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    return getattr(value, "__qualname__", None) or repr(value)


def _seed(seed: Any) -> str:
    """Return which seed k-means had."""
    return "no fixed seed" if seed is None else f"random seed {parameter_text(seed)}"


QUOTES = "'\""
