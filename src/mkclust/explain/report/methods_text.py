"""The methods paragraph of a report: what was done to the data, to be copied."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mkclust.explain.fitted import features_of, kernel_source
from mkclust.explain.report.collect import ReportData
from mkclust.fit import MultipleKernelClusterer
from mkclust.fit.same_input import is_approximated
from mkclust.kernels.view_kernels import ViewKernels
from mkclust.text import count, join_words, printable

# How samples that views lack were compared, by the parameter `missing_views`.
MISSING_SIMILARITIES = {
    "zero": "counted as zero, which is the average one",
    "rescale": "counted as zero, and they were scaled up by the number of kernels that "
    "have them",
    "learn": "were learned with the clusters",
}
# The preparation that changes nothing, and how names of Gaussian kernels begin.
UNPREPARED = "rows as they are"
GAUSSIAN = "gaussian x"


def methods_paragraph(
    data: ReportData,
    *,
    notes: Sequence[str],
    settings: Sequence[str],
    seed: str,
    versions: Mapping[str, str],
) -> str:
    """Return what was done, in sentences: data, kernels, method, certificate, versions.

    Parameters
    ----------
    data : ReportData
        What the report says.
    notes : sequence of str
        What happened to the tables before they became views.
    settings : sequence of str
        The parameters that only this method has.
    seed : str
        The random state, as text.
    versions : mapping of str to str
        Versions of the packages.
    """
    of_graph = hasattr(data.model, "neighbors_")
    sentences = [
        *_about_tables(data, notes, of_graph),
        *_about_cells(data),
        *_about_kernels(data.model),
        *_about_scaling(data),
        *_about_missing(data, of_graph),
        *_about_method(data, settings, of_graph),
        *_about_solution(data),
        *_about_clusters(data, seed, of_graph),
        *_about_number(data),
        *_about_variables(data),
        _about_versions(data, versions),
    ]
    return " ".join(sentences)


def _were(number: int) -> str:
    """Return the verb of a number of things."""
    if number == 1:
        return "was"
    return "were"


def _about_tables(
    data: ReportData, notes: Sequence[str], of_graph: bool
) -> Iterator[str]:
    """Yield what was clustered, and how tables became views."""
    model = data.model
    how = "multiple kernel clustering"
    if of_graph:
        how = "their neighborhoods"
        if len(model.kernel_names_) > 1:
            how += " in several views"
    samples = count(int(data.known.sum()), "sample")
    yield f"We clustered {samples} into {count(model.n_clusters_, 'cluster')} by {how}."

    kept = {"inner": "that all tables have", "outer": "that any table has"}
    is_told = any(note.startswith("join") for note in notes)
    if model.table_options.join in kept and not is_told:
        yield f"The samples {kept[model.table_options.join]} were kept."
    for note in notes:
        yield f"{note[:1].upper()}{note[1:]}."

    adjustment = model._source.given.adjustment
    if adjustment is not None:
        took = [f"{name} {share:.1%}" for name, share in adjustment.shares.items()]
        yield (
            f"What is linear in {join_words(adjustment.names)} was removed from the "
            f"columns of numbers by least squares (share of their variance: "
            f"{join_words(took, 20)}; {adjustment.by_chance:.1%} by chance)."
        )


def _about_kernels(model: MultipleKernelClusterer) -> Iterator[str]:
    """Yield what the kernels were made from, and how."""
    names = join_words(model.kernel_names_)
    m = len(model.kernel_names_)
    source = kernel_source(model)
    if source == "given":
        yield f"{count(m, 'kernel')} {_were(m)} given ({names})."
    elif source == "features":
        yield (
            f"The similarities within {count(m, 'view')} ({names}) were approximated "
            f"by {_features(model.approximation)}."
        )
        learned = features_of(model).features
        maps = zip(model.kernel_names_, learned.maps, strict=True)
        for name, each in maps:
            if hasattr(each, "preparation"):
                yield f"{name}: {each.preparation}."
    else:
        yield from _about_views(model)


def _about_views(model: MultipleKernelClusterer) -> Iterator[str]:
    """Yield the views with their features, and how each of them compares samples."""
    widths = model._source.widths
    features = {name: count(width, "feature") for name, width in widths.items()}
    if list(widths) == ["table"]:
        yield f"There were {features['table']}."
    else:
        sizes = [f"{name} ({each})" for name, each in features.items()]
        yield f"The views were {join_words(sizes, 20)}."
    views = model.bank_.learned_views_
    prepared = _group({each.name: str(each.preparation) for each in views})
    if list(prepared) == [UNPREPARED]:
        yield "Values were used as they are."
    elif len(prepared) == 1:
        yield f"The values were prepared in one way: {next(iter(prepared))}."
    else:
        ways = [f"{how} ({names})" for how, names in prepared.items()]
        yield f"The values were prepared by view: {'; '.join(ways)}."
    compared = _group({each.name: _comparison(each) for each in views})
    for how, names in compared.items():
        where = f" in {names}"
        if len(compared) == 1:
            where = ""
        yield f"Samples were compared{where} by {how}."


def _group(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the names, in words, that have each of several texts."""
    names: dict[str, list[str]] = {}
    for name, text in texts.items():
        names.setdefault(text, []).append(name)
    return {text: join_words(each, 20) for text, each in names.items()}


def _comparison(view: ViewKernels) -> str:
    """Return what compares the samples of a view."""
    how = _kernels([formula.name for formula in view.formulas])
    found = view.neighborhoods[0]
    if found is None:
        return how
    near = f"shared neighborhoods of the {found.size} nearest samples"
    if view.share == 1:
        return f"{near}, by {how}"
    return f"the mix of {how} and {near}"


def _kernels(names: Sequence[str]) -> str:
    """Return the names of kernels in words, Gaussian ones by their bandwidths."""
    widths = [name.removeprefix(GAUSSIAN) for name in names if GAUSSIAN in name]
    others = [f"the {name} kernel" for name in names if GAUSSIAN not in name]
    if not widths:
        return join_words(others, 20)
    times = f"{join_words(widths, 20)} times the median distance"
    if widths == ["1"]:
        times = "the median distance"
    kernels = "a Gaussian kernel"
    if len(widths) > 1:
        kernels = f"{len(widths)} Gaussian kernels"
    return join_words([f"{kernels} (bandwidth: {times} of samples)", *others], 20)


def _features(approximation: Any) -> str:
    """Return what approximates kernels, in words."""
    kind = type(approximation).__name__
    what = f"features per view by {kind}"
    if kind == "Nystroem":
        what = "landmarks per view by Nyström's method"
    number = getattr(approximation, "n_components", None)
    if number is None:
        return what
    return f"{number} {what}"


def _about_cells(data: ReportData) -> Iterator[str]:
    """Yield how empty cells were filled."""
    if data.n_filled:
        yield (
            f"{count(data.n_filled, 'empty cell')} {_were(data.n_filled)} filled with "
            f"the {data.model.table_options.impute} of the column, for categories with "
            "the most frequent one."
        )


def _about_scaling(data: ReportData) -> Iterator[str]:
    """Yield how kernels were standardized."""
    model = data.model
    steps = []
    if kernel_source(model) == "given" and model.psd != "error":
        steps.append(f"made positive semidefinite if it was not (psd = {model.psd})")
    if model.center:
        steps.append("centered in feature space")
    if model.normalize:
        steps.append("scaled to a unit diagonal")
    if steps:
        what = "The similarities of each view were"
        if data.noun == "kernel":
            what = "Each kernel was"
        yield f"{what} {join_words(steps)}."


def _about_missing(data: ReportData, of_graph: bool) -> Iterator[str]:
    """Yield which samples views lack, and which were left out."""
    model = data.model
    observed = getattr(model, "observed_", None)
    if observed is not None:
        n_missing = int((~observed.all(axis=1)).sum())
        names = getattr(model, "view_names_in_", model.kernel_names_)
        lacks = zip(names, (~observed).sum(axis=0).tolist(), strict=True)
        lacking = [(name, lost) for name, lost in lacks if lost]
        views = "some views"
        if len(lacking) == 1:
            views = printable(lacking[0][0])
        else:
            each = [f"{lost:,} from {name}" for name, lost in lacking]
            views += f" ({join_words(each, 20)})"
        how = "two samples were compared by the views that have both"
        if not of_graph:
            rule = model.table_options.missing_views or "rescale"
            how = f"their missing similarities {MISSING_SIMILARITIES[rule]}"
        yield (
            f"{count(n_missing, 'sample')} {_were(n_missing)} missing from {views}; "
            f"{how}."
        )
    n_unknown = len(data.unknown)
    if n_unknown:
        yield (
            f"{count(n_unknown, 'sample')} without any entry {_were(n_unknown)} left "
            "out."
        )
    set_aside = getattr(model, "set_aside_", ())
    if len(set_aside):
        yield (
            "Views that agree with no other view were not used: "
            f"{join_words(set_aside)}."
        )


def _about_method(
    data: ReportData, settings: Sequence[str], of_graph: bool
) -> Iterator[str]:
    """Yield how kernels were combined, with references and parameters."""
    model = data.model
    m = len(model.kernel_names_)
    kernels = f"the {data.noun}"
    if m > 1:
        kernels = f"the {m} {data.noun}s"

    name = type(model).__name__
    text = f"We combined {kernels} by {name}"
    if of_graph:
        text = f"The method was {name}"
    if model.REFERENCES:
        numbers = range(1, len(model.REFERENCES) + 1)
        text += f" [{', '.join(map(str, numbers))}]"
    if model.SUMMARY:
        sign = ":" if of_graph else ","
        text += f"{sign} {model.SUMMARY}"
    if settings:
        text += f" ({', '.join(settings)})"
    yield f"{text}."

    if of_graph:
        reach = join_words(model.neighbors_)
        text = f"The neighborhoods of a sample reach to its {reach} nearest samples"
        yield f"{text}{_about_anchors(data)}."


def _about_anchors(data: ReportData) -> str:
    """Return which samples are neighbors and make up the graph, if not all do."""
    model = data.model
    if not hasattr(model, "anchors_"):
        return ""
    n = len(data.labels)
    n_learned = max(model.learn_from, len(model.anchors_))
    drawn_by = "their contents"
    if hasattr(model, "sample_ids_"):
        drawn_by = "their ids"
    text = (
        f", those of {count(len(model.anchors_), 'anchor')} that were drawn by "
        f"{drawn_by}; {min(n_learned, n):,} samples made up the graph"
    )
    if n_learned < n:
        text += ", and the others were assigned by the neighborhoods that they are in"
    return text


def _about_solution(data: ReportData) -> Iterator[str]:
    """Yield the certificate, or whether the method converged."""
    model = data.model
    steps = count(model.n_iter_, "iteration")
    if data.gap is not None:
        problem = "relaxed"
        if is_approximated(model):
            problem = "approximated, relaxed"
        yield (
            f"The {problem} problem was solved to a certified relative gap of "
            f"{data.gap} ({model.certificate_}) in {steps}."
        )
    elif not data.solves_one_problem:
        end = "was stopped, not converged, after"
        if model.converged_:
            end = "converged after"
        yield f"The method {end} {steps}."


def _about_clusters(data: ReportData, seed: str, of_graph: bool) -> Iterator[str]:
    """Yield how clusters were found, and their stability measured."""
    model = data.model
    rows = "rows of the relaxed partition"
    if of_graph:
        rows = "rows of the leading eigenvectors of the graph"
    drawn = f"random seed {seed}"
    if model.random_state is None:
        drawn = "no fixed seed"
    yield (
        f"Clusters were found by k-means with {count(model.n_init, 'start')} on the "
        f"{rows}, scaled to unit length ({drawn})."
    )
    if data.stability is not None:
        refits = count(len(np.asarray(data.stability.agreements)), "refit")
        yield (
            f"Stability was assessed by {refits} on {data.stability.size:,} samples "
            "drawn at random; their mean adjusted Rand index with the whole fit is "
            f"{data.stability.mean:.2f}."
        )


def _about_number(data: ReportData) -> Iterator[str]:
    """Yield how the number of clusters was compared with others."""
    found = data.suggestion
    if found is None:
        return
    first, last = int(found.k_values[0]), int(found.k_values[-1])
    text = (
        f"Of {first} to {last} clusters, {found.n_clusters} have the highest sum of "
        "eigengap, tightness and agreement of two graphs, each scaled from 0 to 1"
    )
    if found.tests is not None:
        p_value = found.tests.p_text(found.tests.p_value)
        text += (
            "; clusters were tested against one cloud of the same covariance and "
            f"against shuffled views (p {p_value})"
        )
    yield f"{text}."


def _about_variables(data: ReportData) -> Iterator[str]:
    """Yield how variables that were not clustered on were tested."""
    found = data.annotation
    if found is None:
        return
    made = set(found.table.loc[found.table["reason"] == "", "test"])
    tests = {"chi-square": "categories by chi-square tests"}
    tests["Kruskal-Wallis"] = "numbers by Kruskal-Wallis tests"
    words = [text for test, text in tests.items() if test in made]
    if words:
        yield (
            f"Variables that were not clustered on were tested against the clusters, "
            f"{join_words(words)}, with p-values from {found.n_permutations:,} "
            "permutations, adjusted by the method of Benjamini and Hochberg."
        )
    for name, comparison in found.comparisons.items():
        text = (
            f"Survival ({name}) was compared by the log-rank test, for pairs of "
            "clusters with Holm's correction"
        )
        if len(comparison.hazards):
            text += (
                ", and hazard ratios were estimated by a Cox regression with Efron's "
                "handling of ties"
            )
        if comparison.adjusted_for:
            text += f", adjusted for {join_words(comparison.adjusted_for, 20)}"
        yield f"{text}."


def _about_versions(data: ReportData, versions: Mapping[str, str]) -> str:
    """Return the versions of the packages, this one with its reference."""
    others = {"Python": "python", "NumPy": "numpy", "SciPy": "scipy"}
    named = ", ".join(f"{name} {versions[key]}" for name, key in others.items())
    return (
        f"Computations were done with mkclust {versions['mkclust']} "
        f"[{len(data.model.REFERENCES) + 1}], {named} and scikit-learn "
        f"{versions['scikit-learn']}."
    )
