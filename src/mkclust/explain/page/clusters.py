"""The sections of a fit's page that are about its clusters."""

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from mkclust.explain.page import charts
from mkclust.explain.page.findings import Findings
from mkclust.explain.page.steadiness import FRACTION
from mkclust.metrics import scores
from mkclust.web import Column, Section, number, paragraph, subheading, table, text
from mkclust.web.words import counted, spoken

# Samples in the table of the least stable ones; clusters or classes in a table and in a map.
LEAST_STABLE, MOST_TABULATED, MOST_DRAWN = 25, 30, 200


def clusters(found: Findings) -> Section:
    """Say how large, how tight and how stable the clusters are."""
    sizes, values = found.sizes, found.silhouettes
    own = found.labels[found.drawn]
    stability = found.steadiness.stability
    columns = [Column("Cluster"), Column("Samples"), Column("Share", "percent of all samples")]
    known = not np.isnan(values).all()
    if known:
        columns += [
            Column("Silhouette", "mean over its samples"),
            Column("Negative", "share of its samples that are nearer to another cluster"),
        ]
    if stability is not None:
        columns.append(Column("Stability", "how surely its samples fall into it again"))
    rows = []
    for cluster, size in enumerate(sizes.tolist()):
        share = size / found.n_samples
        row = [number(cluster, ".0f"), number(size, ",.0f", size / sizes.max())]
        row.append(number(100 * share, ".1f"))
        if known:
            here = values[own == cluster]
            mean, below = (here.mean(), (here < 0).mean()) if len(here) else (np.nan, np.nan)
            row += [number(mean, ".2f"), number(below, ".2f")]
        if stability is not None:
            row.append(number(float(stability.clusters[cluster]), ".2f"))
        rows.append(row)
    parts = [table(columns, rows, "The clusters"), *_silhouettes(found, known)]
    return Section("clusters", "Clusters: sizes and silhouettes", parts)


def _silhouettes(found: Findings, known: bool) -> list[str]:
    """Say how well the samples fit into their clusters."""
    heading = subheading("Silhouettes")
    if not known:
        return [heading, paragraph("A single cluster, or one sample a cluster, has none.")]
    some = ""
    if len(found.drawn) < found.n_samples:
        some = (
            f" They are computed among {len(found.drawn):,} of the {found.n_samples:,} samples, "
            "some of every cluster."
        )
    said = (
        "A silhouette compares the mean distance of a sample to its own cluster with that to the "
        "nearest other one: 1 is far from all others, 0 is between two. Distances are those of the "
        "row-normalized embedding, which k-means has just made as small as it could within "
        "clusters: silhouettes flatter, and are no proof of clusters. Overall mean: "
        f"{spoken(float(np.nanmean(found.silhouettes)))}.{some}"
    )
    return [heading, paragraph(said), charts.silhouettes(found)]


def stability(found: Findings) -> Section:
    """Say which clusters and samples are found again."""
    title, of = "Stability under resampling", found.steadiness
    if of.stability is None:
        return Section("stability", title, [paragraph(of.reason)])
    agreements = np.asarray(of.stability.agreements, dtype=float)
    agreements = agreements[np.isfinite(agreements)]
    size, known = of.stability.size, int(np.isfinite(of.stability.samples).sum())
    thin = ""
    if size < round(FRACTION * found.n_samples):
        thin += " To save time, the parts are smaller than four fifths of all."
    if known < found.n_samples:
        thin += f" {counted(found.n_samples - known, 'sample')} came into none of them."
    said = (
        f"The same method was fitted {len(of.stability.agreements)} times on {size:,} of the "
        f"{found.n_samples:,} samples, drawn at random. The clusters agree with those of the "
        f"whole fit to {spoken(of.stability.mean)} on average (adjusted Rand index, "
        f"{spoken(agreements.min())} to {spoken(agreements.max())}). A sample's stability is the "
        "share of the refits it was in that put it into its own cluster again; a cluster's is the "
        f"mean over its samples.{thin} Clusters that stay are no proof of clusters that exist, but "
        "clusters that do not stay are nothing to rely on."
    )
    drawn = charts.stability(of.stability.clusters, found.sizes)
    return Section(
        "stability", title, [paragraph(said), drawn, *_least_stable(found, of.stability.samples)]
    )


def _least_stable(found: Findings, values: np.ndarray) -> list[str]:
    """Return the table of the samples that change clusters most."""
    known = np.flatnonzero(np.isfinite(values))
    if not len(known):
        return []
    worst = known[np.argsort(values[known], kind="stable")][:LEAST_STABLE]
    worst = worst[values[worst] < 1]
    if not len(worst):
        return [paragraph("Every sample fell into its own cluster in each refit it was in.")]
    at = {int(sample): place for place, sample in enumerate(found.drawn)}
    rows = []
    for sample in worst.tolist():
        silhouette = found.silhouettes[at[sample]] if sample in at else np.nan
        row = [text(found.ids[sample]), number(int(found.labels[sample]), ".0f")]
        row += [number(values[sample], ".2f"), number(silhouette, ".2f")]
        rows.append(row)
    whole = int((values[known] == 1).sum())
    said = (
        f"{whole:,} of {counted(len(known), 'sample')} fell into their own cluster every time. "
        f"These {len(worst)} did so least often."
    )
    columns = ["Sample", "Cluster", "Stability", "Silhouette"]
    return [paragraph(said), table(columns, rows, "The least stable samples")]


def classes(found: Findings) -> Section:
    """Compare the clusters with given classes."""
    assert found.y is not None
    rows = [_score_row("this model", found.y, found.labels)]
    baseline = getattr(found.model, "baseline_labels_", None)
    if baseline is not None:
        rows.append(_score_row("average kernel", found.y, np.asarray(baseline)))
    columns = [
        Column("Clusters of"),
        Column("ACC", "share of samples in the cluster matched with their class"),
        Column("NMI", "mutual information, divided by the larger entropy"),
        Column("Purity", "share of samples in the commonest class of their cluster"),
        Column("ARI", "adjusted Rand index"),
    ]
    counts, order, names = matched_counts(found.labels, found.y, found.n_clusters)
    parts = [
        paragraph("The given classes were not used to fit. Scores are in percent."),
        table(columns, rows, "Scores against the given classes"),
    ]
    if max(counts.shape) <= MOST_DRAWN:
        parts.append(charts.classes(counts, order, names))
    if max(counts.shape) <= MOST_TABULATED:
        heads = ["Cluster", *names]
        body = [
            [number(cluster, ".0f"), *(number(int(count), ",.0f") for count in row)]
            for cluster, row in zip(order, counts, strict=True)
        ]
        parts.append(
            table(heads, body, "Samples by cluster (rows) and given class (columns), matched")
        )
    else:
        parts.append(
            paragraph(
                f"A table of {counts.shape[0]} clusters by {counts.shape[1]} classes is left out.",
                kind="quiet",
            )
        )
    return Section("classes", "Against the given classes", parts)


def _score_row(name: str, y: np.ndarray, labels: np.ndarray) -> list[Any]:
    """Return the scores of one clustering."""
    of = scores(y, labels)
    return [text(name), *(number(100 * of[key], ".1f") for key in ("acc", "nmi", "purity", "ari"))]


def matched_counts(
    labels: np.ndarray, y: np.ndarray, n_clusters: int
) -> tuple[np.ndarray, list[int], list[str]]:
    """Count samples by cluster and class, each cluster beside the class it is matched with.

    Parameters
    ----------
    labels : ndarray of int of shape (n,)
        Clusters.
    y : ndarray of shape (n,)
        Classes.
    n_clusters : int
        Number of clusters, k.

    Returns
    -------
    counts : ndarray of int of shape (n_clusters, n_classes)
        Matched pairs on the diagonal.
    clusters : list of int
        The clusters, in the order of the rows.
    classes : list of str
        The classes, in the order of the columns.
    """
    # By first appearance: classes of mixed types have no order.
    numbers: dict[Any, int] = {}
    codes = np.array([numbers.setdefault(value, len(numbers)) for value in y.tolist()])
    counts = np.zeros((n_clusters, len(numbers)), dtype=int)
    np.add.at(counts, (labels, codes), 1)
    rows, columns = linear_sum_assignment(counts, maximize=True)
    rest = [column for column in range(len(numbers)) if column not in set(columns.tolist())]
    further = [row for row in range(n_clusters) if row not in set(rows.tolist())]
    clusters, places = [*rows.tolist(), *further], [*columns.tolist(), *rest]
    names = list(map(str, numbers))
    return counts[np.ix_(clusters, places)], clusters, [names[place] for place in places]
