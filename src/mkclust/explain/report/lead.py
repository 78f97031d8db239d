"""The first lines of a report: how many groups there are, and what is known of them."""

from collections.abc import Iterator

from mkclust.explain.annotation import SMALL_P
from mkclust.explain.report.collect import ReportData
from mkclust.text import count, join_words

# The sizes of more clusters are given by the smallest and the largest.
MOST_SIZES = 8


def headline(data: ReportData) -> str:
    """Return the number of groups with their sizes, and whether survival differs.

    Such as "4 groups of 49, 56, 44 and 31 samples; survival differs (p = 6e-06)".
    """
    return "; ".join([_groups(data), *_survival(data)])


def _groups(data: ReportData) -> str:
    """Return how many groups there are, and their sizes or names."""
    sizes = data.clusters["size"].tolist()
    k = len(sizes)
    if k == 1:
        return f"1 group of {count(sizes[0], 'sample')}"
    if k > MOST_SIZES:
        return f"{k} groups of {min(sizes):,} to {max(sizes):,} samples"
    if data.names is None:
        return f"{k} groups of {join_words(map('{:,}'.format, sizes), k)} samples"
    named = [f"{name} ({size:,})" for name, size in zip(data.names, sizes, strict=True)]
    return f"{k} groups of samples: {join_words(named, k)}"


def _survival(data: ReportData) -> Iterator[str]:
    """Yield whether the groups differ in survival."""
    if data.annotation is None:
        return
    tests = {each.variable: each for each in data.annotation.tests}
    for name in data.annotation.survival:
        which = "survival"
        if len(data.annotation.survival) > 1:
            which = f"survival ({name.partition(',')[0]})"
        differs = "differs"
        if not tests[name].p_value < SMALL_P:
            differs = "does not differ clearly"
        p_value = data.annotation.p_text(tests[name].p_value, "= ")
        yield f"{which} {differs} (p {p_value})"


def lead(data: ReportData) -> list[str]:
    """Return the verdict in sentences: how clear, how stable, how many, which views."""
    found = []
    clarity = data.clarity
    if clarity.separation is not None:
        found.append(
            f"The clusters are {clarity.separation} (mean silhouette "
            f"{clarity.silhouette:.2f}; 1 is best)."
        )
    if data.stability is not None:
        level, _, said = clarity.about_stability().partition(": ")
        refits = count(len(data.stability.agreements), "refit")
        found.append(
            f"Stability is {level.lower()}, {data.stability.mean:.2f} (mean adjusted "
            f"Rand index of {refits}; 1 is best): {said}"
        )
    if data.suggestion is not None:
        answer = data.suggestion.verdict().partition(". ")[0]
        k = int(data.model.n_clusters_)
        own = "" if k == data.suggestion.n_clusters else f"; this fit has {k}"
        found.append(f"{answer}{own}.")
    found.append(data.verdict)
    missing = getattr(data.model, "missingness_", None)
    if missing is not None and not missing.follows:
        found.append(missing.verdict())
    return found
