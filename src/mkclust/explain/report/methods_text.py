"""The methods paragraph of a report: what was done to the data, to be copied."""

from collections.abc import Iterator, Mapping, Sequence

from mkclust.explain.fitted import features_of, kernel_source
from mkclust.explain.report.collect import ReportData
from mkclust.fit import MultipleKernelClusterer
from mkclust.fit.same_input import is_approximated
from mkclust.kernels.view_kernels import ViewKernels
from mkclust.text import count, join_words

# How samples that views lack were compared, by the parameter `missing_views`.
MISSING_SIMILARITIES = {
    "zero": "counted as zero, which is the average one",
    "rescale": "counted as zero, and they were scaled up by the number of kernels that "
    "have them",
    "learn": "were learned with the clusters",
}
# How names of Gaussian kernels begin.
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
    numpy, scipy, sklearn = (
        versions[name] for name in ("numpy", "scipy", "scikit-learn")
    )
    sentences = [
        *_about_tables(data, notes, of_graph),
        *_about_kernels(data.model),
        *_about_scaling(data),
        *_about_missing(data, of_graph),
        *_about_method(data, settings, of_graph),
        *_about_clusters(data, seed, of_graph),
        *_about_number(data),
        *_about_variables(data),
        f"Computations were done with mkclust {versions['mkclust']} "
        f"[{len(data.model.REFERENCES) + 1}], Python {versions['python']}, NumPy "
        f"{numpy}, SciPy {scipy} and scikit-learn {sklearn}.",
    ]
    return " ".join(sentences)


def _were(number: int, what: str) -> str:
    """Return a number of things with its verb."""
    verb = "was" if number == 1 else "were"
    return f"{count(number, what)} {verb}"


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
    if data.n_filled:
        yield (
            f"{_were(data.n_filled, 'empty cell')} filled with the "
            f"{model.table_options.impute} of the column, for categories with the most "
            "frequent one."
        )


def _about_kernels(model: MultipleKernelClusterer) -> Iterator[str]:
    """Yield what the kernels were made from, and how."""
    m = len(model.kernel_names_)
    names = join_words(model.kernel_names_)
    source = kernel_source(model)
    if source == "given":
        yield f"{_were(m, 'kernel')} given ({names})."
    elif source == "features":
        approximation = model.approximation
        number = getattr(approximation, "n_components", "")
        what = f"features per view by {type(approximation).__name__}"
        if type(approximation).__name__ == "Nystroem":
            what = "landmarks per view by Nyström's method"
        yield (
            f"The similarities within {count(m, 'view')} ({names}) were approximated "
            f"by {number} {what}."
        )
        maps = features_of(model).features.maps
        for name, each in zip(model.kernel_names_, maps, strict=True):
            if hasattr(each, "preparation"):
                yield f"{name}: {each.preparation}."
    else:
        yield from _about_views(model)


def _about_views(model: MultipleKernelClusterer) -> Iterator[str]:
    """Yield the views with their features, and how each of them compares samples."""
    widths = model._source.widths
    sizes = [f"{name} ({count(each, 'feature')})" for name, each in widths.items()]
    if list(widths) == ["table"]:
        yield f"There were {count(widths['table'], 'feature')}."
    else:
        yield f"The views were {join_words(sizes, 20)}."
    views = model.bank_.learned_views_
    prepared = _group({each.name: str(each.preparation) for each in views})
    ways = [f"{how} ({names})" for how, names in prepared.items()]
    yield f"Values were prepared by view: {'; '.join(ways)}."
    compared = _group({each.name: _comparison(each) for each in views})
    for how, names in compared.items():
        yield f"Samples were compared in {names} by {how}."


def _group(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the names, in words, that have each of several texts."""
    names: dict[str, list[str]] = {}
    for name, text in texts.items():
        names.setdefault(text, []).append(name)
    return {text: join_words(each, 20) for text, each in names.items()}


def _comparison(view: ViewKernels) -> str:
    """Return what compares the samples of a view: Gaussian kernels by bandwidths."""
    names = [formula.name for formula in view.formulas]
    widths = [name.removeprefix(GAUSSIAN) for name in names if GAUSSIAN in name]
    kernels = [f"the {name} kernel" for name in names if GAUSSIAN not in name]
    if widths:
        kinds = count(len(widths), "Gaussian kernel")
        times = f"{join_words(widths, 20)} times the median distance"
        if widths == ["1"]:
            times = "the median distance"
        kernels.insert(0, f"{kinds} (bandwidth: {times} of samples)")

    how = join_words(kernels, 20)
    found = view.neighborhoods[0]
    if found is None:
        return how
    near = f"shared neighborhoods of the {found.size} nearest samples"
    return f"{near}, by {how}" if view.share == 1 else f"the mix of {how} and {near}"


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
        yield f"Each kernel was {join_words(steps)}."


def _about_missing(data: ReportData, of_graph: bool) -> Iterator[str]:
    """Yield which samples views lack, and which were left out."""
    model = data.model
    observed = getattr(model, "observed_", None)
    if observed is not None:
        names = getattr(model, "view_names_in_", model.kernel_names_)
        lacking = dict(zip(names, (~observed).sum(axis=0).tolist(), strict=True))
        lost = [f"{name} ({n:,})" for name, n in lacking.items() if n]
        how = "two samples were compared by the views that have both"
        if not of_graph:
            rule = model.table_options.missing_views or "rescale"
            how = f"their missing similarities {MISSING_SIMILARITIES[rule]}"
        n_missing = int((~observed.all(axis=1)).sum())
        were = _were(n_missing, "sample")
        yield f"{were} missing from {join_words(lost, 20)}; {how}."
    if data.unknown:
        unknown = _were(len(data.unknown), "sample")
        yield f"{unknown} left out, of which no view has an entry."
    set_aside = getattr(model, "set_aside_", ())
    if len(set_aside):
        yield (
            "Views that agree with no other view were not used: "
            f"{join_words(set_aside)}."
        )


def _about_method(
    data: ReportData, settings: Sequence[str], of_graph: bool
) -> Iterator[str]:
    """Yield how kernels were combined, with references, parameters and certificate."""
    model = data.model
    name = type(model).__name__
    what = count(len(model.kernel_names_), data.noun)
    text = f"The method was {name}" if of_graph else f"We combined {what} by {name}"
    if model.REFERENCES:
        numbers = range(1, len(model.REFERENCES) + 1)
        text += f" [{', '.join(map(str, numbers))}]"
    if model.SUMMARY:
        text += f", {model.SUMMARY}"
    if settings:
        text += f" ({', '.join(settings)})"
    yield f"{text}."

    if of_graph:
        reach = join_words(model.neighbors_)
        text = f"The neighborhoods of a sample reach to its {reach} nearest samples"
        if hasattr(model, "anchors_"):
            text += _about_anchors(data)
        yield f"{text}."

    steps = count(model.n_iter_, "iteration")
    if data.gap is not None:
        problem = "approximated, relaxed" if is_approximated(model) else "relaxed"
        yield (
            f"The {problem} problem was solved to a certified relative gap of "
            f"{data.gap} ({model.certificate_}) in {steps}."
        )
    elif not data.solves_one_problem:
        end = "converged" if model.converged_ else "was stopped, not converged,"
        yield f"The method {end} after {steps}."


def _about_anchors(data: ReportData) -> str:
    """Return which samples are neighbors and make up the graph, if not all do."""
    model = data.model
    n = len(data.labels)
    n_anchors = len(model.anchors_)
    n_learned = min(max(model.learn_from, n_anchors), n)
    drawn_by = "ids" if hasattr(model, "sample_ids_") else "contents"
    others = ""
    if n_learned < n:
        others = ", and the others were assigned by the neighborhoods that they are in"
    return (
        f", those of {count(n_anchors, 'anchor')} that were drawn by their {drawn_by}; "
        f"{n_learned:,} samples made up the graph{others}"
    )


def _about_clusters(data: ReportData, seed: str, of_graph: bool) -> Iterator[str]:
    """Yield how clusters were found, and their stability measured."""
    rows = "the relaxed partition"
    if of_graph:
        rows = "the leading eigenvectors of the graph"
    drawn = f"random seed {seed}"
    if data.model.random_state is None:
        drawn = "no fixed seed"
    yield (
        f"Clusters were found by k-means with {count(data.model.n_init, 'start')} on "
        f"the rows of {rows}, scaled to unit length ({drawn})."
    )
    if data.stability is not None:
        refits = count(len(data.stability.agreements), "refit")
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
    made = found.table.loc[found.table["reason"] == "", "test"]
    tests = {
        "chi-square": "categories by chi-square tests",
        "Kruskal-Wallis": "numbers by Kruskal-Wallis tests",
    }
    words = [text for test, text in tests.items() if test in set(made)]
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
