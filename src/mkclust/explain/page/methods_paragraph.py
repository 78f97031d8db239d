"""What was done, in a paragraph to paste into a paper, with its references."""

from typing import Any

import numpy as np

from mkclust.explain.fitted import (
    certified_gap,
    format_gap,
    is_approximated,
    is_one_eigenproblem,
    kernel_source,
)
from mkclust.methods import InductiveClusterer
from mkclust.methods.parameter_checks import COMMON
from mkclust.text import join_words
from mkclust.version import __version__
from mkclust.web.words import count_noun

QUOTES = "'\""


def methods_paragraph(
    model: Any, n_samples: int, versions: dict[str, str], resamples: str = ""
) -> list[str]:
    """Return what was done in words, then one entry a reference.

    Resamples is a sentence on how stability was found out.
    """
    name = type(model).__name__
    k, m = model.n_clusters, len(model.kernel_names_)
    kernels = f"the {m} kernels" if m > 1 else "the kernel"
    papers = list(model.REFERENCES)
    software = f"The mkclust developers. mkclust, version {__version__}. Software."
    cited = versions | {"mkclust": f"{__version__} [{len(papers) + 1}]"}
    marks = f" [{', '.join(map(str, range(1, len(papers) + 1)))}]" if papers else ""
    does = f", {model.SUMMARY}" if model.SUMMARY else ""
    sentences = [
        f"We clustered {count_noun(n_samples, 'sample')} into {count_noun(k, 'cluster')} by "
        f"multiple kernel clustering. {_kernels(model)} {_standardized(model)}{_missing(model)}",
        f"We combined {kernels} by {name}{marks}{does}{_settings(model)}.",
        _solved(model),
        f"Clusters were found by k-means with {count_noun(model.n_init, 'start')} on the "
        f"rows of the relaxed partition, scaled to unit length ({_seed(model)}).",
        resamples,
        "Computations were done with "
        + join_words([f"{used} {version}" for used, version in cited.items()], 8)
        + ".",
    ]
    entries = [f"[{number}] {entry}" for number, entry in enumerate([*papers, software], start=1)]
    return [" ".join(text for text in sentences if text), *entries]


def _kernels(model: Any) -> str:
    """Say where the kernels came from."""
    names = model.kernel_names_
    m = len(names)
    source = kernel_source(model)
    if source == "features":
        what = f"{count_noun(m, 'view')} ({join_words(names)})"
        return (
            f"The similarities within {what} were those of {_approximation(model.approximation)}."
        )
    if source == "given":
        return (
            f"{count_noun(m, 'kernel')} {'was' if m == 1 else 'were'} given ({join_words(names)})."
        )
    bank, views = model.bank_, list(model.bank_.views_)
    parts = []
    if len(bank.widths):
        widths = join_words([f"{width:g}" for width in bank.widths], 10)
        times = "" if tuple(bank.widths) == (1.0,) else f"{widths} times "
        parts.append(f"Gaussian, {times}the median distance between two samples as width")
    if len(bank.polynomials):
        degrees = join_words([f"({a:g} + x'y)^{b:g}" for a, b in bank.polynomials], 10)
        parts.append(f"polynomial, {degrees} with x'y in units of the mean squared norm")
    if bank.linear is not None:
        parts.append(bank.linear)
    named = f"{count_noun(len(views), 'view')} ({join_words(views)})"
    origin = "the table" if views == ["table"] else named
    made = f"From {origin} we computed {count_noun(m, 'kernel')}"
    if bank.rules is None:
        return f"{made}: {'; '.join(parts)}."
    by_kind = "; ".join(bank.explain().splitlines())
    several = len(views) * len(parts) > 1 and m > len(views)
    kernels = f" Kernels of views without one of their own: {'; '.join(parts)}." if several else ""
    return f"{made}, by the kind of each view. {by_kind}.{kernels}"


def _missing(model: Any) -> str:
    """Say which samples were missing from views, and what became of them."""
    observed = getattr(model, "observed_", None)
    if observed is None:
        return ""
    names = getattr(model, "view_names_in_", model.kernel_names_)
    counts = np.sum(~observed, axis=0).tolist()
    lacking = [f"{count:,} from {name}" for name, count in zip(names, counts, strict=True) if count]
    treated = {
        "zero": "their missing similarities counted as zero, which is the average one",
        "rescale": "their missing similarities counted as zero, and they were scaled up by the "
        "number of kernels that have them",
        "learn": "their missing similarities were learned with the clusters",
    }
    how = treated[model.table_options.missing_views or "rescale"]
    n_missing = int(np.sum(~observed.all(axis=1)))
    return (
        f" {count_noun(n_missing, 'sample')} {'was' if n_missing == 1 else 'were'} missing from "
        f"some views ({join_words(lacking)}); {how}."
    )


def _approximation(map_: Any) -> str:
    """Say which features stood for the kernels."""
    count = getattr(map_, "n_components", None)
    number = f"{count} " if isinstance(count, int) else ""
    if type(map_).__name__ == "Nystroem":
        return f"Nyström features, {number}landmarks a view, in place of full kernels"
    return f"{number}features a view by {type(map_).__name__}, in place of full kernels"


def _standardized(model: Any) -> str:
    """Say how the kernels were standardized."""
    done = []
    if hasattr(model, "n_neighbors_"):
        done.append(f"replaced by the shared neighborhoods of {model.n_neighbors_} neighbors")
    if model.center:
        done.append("centered in its feature space")
    if model.normalize:
        done.append("scaled to a unit diagonal")
    return f"Each kernel was {join_words(done)}." if done else ""


def _settings(model: Any) -> str:
    """Return the method's own parameters, in brackets."""
    given = model.get_params(deep=False)
    shared = {*InductiveClusterer().get_params(deep=False), *COMMON}
    anchor = getattr(model, "anchor_", None)
    if anchor is not None:  # what was used tells more than what was asked for
        shared.add("anchor")
    settings = [
        f"{name} = {parameter_text(value).strip(QUOTES)}"
        for name, value in given.items()
        if name not in shared
    ]
    if anchor:
        settings.append(f"anchor = {anchor:g}")
    return f" ({', '.join(settings)})" if settings else ""


def _solved(model: Any) -> str:
    """Say how far the solver got."""
    steps = count_noun(int(model.n_iter_), "iteration")
    gap = certified_gap(model)
    if gap is not None:
        kind = "approximated, relaxed" if is_approximated(model) else "relaxed"
        return (
            f"The {kind} problem was solved to a certified relative gap of {format_gap(gap)} "
            f"({model.certificate_}) in {steps}."
        )
    if is_one_eigenproblem(model):
        return ""
    end = "converged after" if model.converged_ else "was stopped, not converged, after"
    return f"The method {end} {steps}."


def _seed(model: Any) -> str:
    """Say which seed k-means had."""
    seed = model.random_state
    return "no fixed seed" if seed is None else f"random seed {seed_text(seed)}"


def parameter_text(value: Any) -> str:
    """Return a parameter as it was given; what has no readable form by its type or name."""
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return seed_text(value)
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    return getattr(value, "__qualname__", None) or repr(value)


def seed_text(seed: Any) -> str:
    """Return a seed; a generator, whose state nobody can read, by its name."""
    return str(seed) if isinstance(seed, int) else f"from a {type(seed).__name__}"
