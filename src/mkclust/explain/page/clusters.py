"""The sections of a fit's page that are about its clusters."""

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from mkclust.explain.page import charts
from mkclust.explain.page.findings import FRACTION, Findings
from mkclust.metrics import scores
from mkclust.web import Column, Section, number, paragraph, subheading, table, text
from mkclust.web.words import count_noun, format_number

# Samples in the table of the least stable ones; clusters or classes in a table and in a map.
LEAST_STABLE, MOST_TABULATED, MOST_DRAWN = 25, 30, 200


def clusters(findings: Findings) -> Section:
    """Say how large, how tight and how stable the clusters are."""
    sizes, values = findings.sizes, findings.silhouettes
    labels = findings.labels[findings.drawn]
    stability = findings.resampling.stability
    columns = [Column("Cluster"), Column("Samples"), Column("Share", "percent of all samples")]
    has_silhouettes = not np.isnan(values).all()
    if has_silhouettes:
        columns += [
            Column("Silhouette", "mean over its samples"),
            Column("Negative", "share of its samples that are nearer to another cluster"),
        ]
    if stability is not None:
        columns.append(Column("Stability", "how surely its samples fall into it again"))
    rows = []
    for cluster, size in enumerate(sizes.tolist()):
        share = size / findings.n_samples
        row = [number(cluster, ".0f"), number(size, ",.0f", size / sizes.max())]
        row.append(number(100 * share, ".1f"))
        if has_silhouettes:
            here = values[labels == cluster]
            mean, below = (here.mean(), (here < 0).mean()) if len(here) else (np.nan, np.nan)
            row += [number(mean, ".2f"), number(below, ".2f")]
        if stability is not None:
            row.append(number(float(stability.clusters[cluster]), ".2f"))
        rows.append(row)
    parts = [table(columns, rows, "The clusters"), *_silhouettes(findings, has_silhouettes)]
    return Section("clusters", "Clusters: sizes and silhouettes", parts)


def _silhouettes(findings: Findings, has_silhouettes: bool) -> list[str]:
    """Say how well the samples fit into their clusters."""
    heading = subheading("Silhouettes")
    if not has_silhouettes:
        return [heading, paragraph("A single cluster, or one sample a cluster, has none.")]
    some = ""
    if len(findings.drawn) < findings.n_samples:
        some = (
            f" They are computed among {len(findings.drawn):,} of the {findings.n_samples:,} "
            "samples, some of every cluster."
        )
    sentences = (
        "A silhouette compares the mean distance of a sample to its own cluster with that to the "
        "nearest other one: 1 is far from all others, 0 is between two. Distances are those of the "
        "row-normalized embedding, which k-means has just made as small as it could within "
        "clusters: silhouettes flatter, and are no proof of clusters. Overall mean: "
        f"{format_number(float(np.nanmean(findings.silhouettes)))}.{some}"
    )
    return [heading, paragraph(sentences), charts.silhouettes(findings)]


def stability(findings: Findings) -> Section:
    """Say which clusters and samples are found again."""
    title, resampling = "Stability under resampling", findings.resampling
    if resampling.stability is None:
        return Section("stability", title, [paragraph(resampling.reason)])
    agreements = np.asarray(resampling.stability.agreements, dtype=float)
    agreements = agreements[np.isfinite(agreements)]
    size, n_drawn = resampling.stability.size, int(np.isfinite(resampling.stability.samples).sum())
    notes = ""
    if size < round(FRACTION * findings.n_samples):
        notes += " To save time, the parts are smaller than four fifths of all."
    if n_drawn < findings.n_samples:
        notes += f" {count_noun(findings.n_samples - n_drawn, 'sample')} came into none of them."
    sentences = (
        f"The same method was fitted {len(resampling.stability.agreements)} times on {size:,} of "
        f"the {findings.n_samples:,} samples, drawn at random. The clusters agree with those of "
        f"the whole fit to {format_number(resampling.stability.mean)} on average (adjusted Rand "
        f"index, {format_number(agreements.min())} to {format_number(agreements.max())}). A "
        "sample's stability is the share of the refits it was in that put it into its own cluster "
        f"again; a cluster's is the mean over its samples.{notes} Clusters that stay are no proof "
        "of clusters that exist, but clusters that do not stay are nothing to rely on."
    )
    drawn = charts.stability(resampling.stability.clusters, findings.sizes)
    return Section(
        "stability",
        title,
        [paragraph(sentences), drawn, *_least_stable(findings, resampling.stability.samples)],
    )


def _least_stable(findings: Findings, values: np.ndarray) -> list[str]:
    """Return the table of the samples that change clusters most."""
    drawn = np.flatnonzero(np.isfinite(values))
    if not len(drawn):
        return []
    worst = drawn[np.argsort(values[drawn], kind="stable")][:LEAST_STABLE]
    worst = worst[values[worst] < 1]
    if not len(worst):
        return [paragraph("Every sample fell into its own cluster in each refit it was in.")]
    at = {int(sample): place for place, sample in enumerate(findings.drawn)}
    rows = []
    for sample in worst.tolist():
        silhouette = findings.silhouettes[at[sample]] if sample in at else np.nan
        row = [text(findings.ids[sample]), number(int(findings.labels[sample]), ".0f")]
        row += [number(values[sample], ".2f"), number(silhouette, ".2f")]
        rows.append(row)
    whole = int((values[drawn] == 1).sum())
    sentences = (
        f"{whole:,} of {count_noun(len(drawn), 'sample')} fell into their own cluster every time. "
        f"These {len(worst)} did so least often."
    )
    columns = ["Sample", "Cluster", "Stability", "Silhouette"]
    return [paragraph(sentences), table(columns, rows, "The least stable samples")]


def classes(findings: Findings) -> Section:
    """Compare the clusters with given classes."""
    assert findings.y is not None
    rows = [_score_row("this model", findings.y, findings.labels)]
    baseline = getattr(findings.model, "baseline_labels_", None)
    if baseline is not None:
        rows.append(_score_row(findings.compromise_name, findings.y, np.asarray(baseline)))
    columns = [
        Column("Clusters of"),
        Column("ACC", "share of samples in the cluster matched with their class"),
        Column("NMI", "mutual information, divided by the larger entropy"),
        Column("Purity", "share of samples in the commonest class of their cluster"),
        Column("ARI", "adjusted Rand index"),
    ]
    counts, order, names = matched_counts(findings.labels, findings.y, findings.n_clusters)
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
    values = scores(y, labels)
    return [
        text(name),
        *(number(100 * values[key], ".1f") for key in ("acc", "nmi", "purity", "ari")),
    ]


def matched_counts(
    labels: np.ndarray, y: np.ndarray, n_clusters: int
) -> tuple[np.ndarray, list[int], list[str]]:
    """Count samples by cluster and class, each cluster beside the class it is matched with.

    Returns the counts, (n_clusters, n_classes), matched pairs on the diagonal; the clusters in the
    order of the rows; and the classes in the order of the columns.
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
