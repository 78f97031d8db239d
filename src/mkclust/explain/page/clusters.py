"""The sections of a fit's page that are about its clusters."""

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from mkclust.explain.page import charts, sample_charts
from mkclust.explain.page.findings import FRACTION, Findings
from mkclust.methods.uncovered import UNCOVERED
from mkclust.metrics import scores
from mkclust.text import join_words
from mkclust.web import Column, Section, download, number, paragraph, subheading, table, text
from mkclust.web.words import count_noun, format_number, format_range, format_times

# Samples in the table of the least stable ones; clusters or classes in a table and in a map.
LEAST_STABLE, MOST_TABULATED, MOST_DRAWN = 25, 30, 200
# Samples up to which a page holds their clusters, to be saved: a few megabytes.
MOST_SAVED = 200_000


def clusters(findings: Findings) -> Section:
    """Say how large, how tight and how stable the clusters are, and what sets each apart."""
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
        columns.append(Column("Stability", "how often its samples fall into it again"))
    names = () if findings.description is None else findings.description.names
    if names:
        columns.append(Column("Set apart by", "the features in which it differs most"))
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
        if names:
            row.append(text(names[cluster]))
        rows.append(row)
    parts = [
        table(columns, rows, "The clusters"),
        *_uncovered(findings),
        *_labels(findings),
        *_silhouettes(findings, has_silhouettes),
    ]
    return Section("clusters", "Clusters", parts)


def _uncovered(findings: Findings) -> list[str]:
    """Name the samples of which nothing is known, if there are any."""
    n = len(findings.uncovered)
    if not n:
        return []
    verb = "has" if n == 1 else "have"
    return [
        paragraph(
            f"{count_noun(n, 'further sample')} {verb} no entry in any view that is used, and "
            f"the label {UNCOVERED}: {join_words(findings.uncovered, MOST_TABULATED)}."
        )
    ]


def _labels(findings: Findings) -> list[str]:
    """Return a link that saves the cluster of every sample."""
    n = findings.n_samples + len(findings.uncovered)
    if n > MOST_SAVED:
        sentence = f"The clusters of {n:,} samples are too many for a page: labels_ has them."
        return [paragraph(sentence, kind="quiet")]
    title = f"Save the clusters of {count_noun(n, 'sample')} (CSV)"
    ids = [*findings.ids, *findings.uncovered]
    labels = np.append(findings.labels, np.full(len(findings.uncovered), UNCOVERED))
    return [download(labels_table(ids, labels), "clusters.csv", title)]


def labels_table(ids: Sequence[str], labels: np.ndarray) -> str:
    """Return the cluster of every sample as CSV, ids as they are, so that tables can be joined."""
    file = io.StringIO(newline="")
    # Some versions of Python leave a carriage return without quotes, which cuts the row in two.
    if any("\r" in name for name in ids):
        writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    else:
        writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["id", "cluster"])
    writer.writerows(zip(ids, labels.tolist(), strict=True))
    return file.getvalue()


def _silhouettes(findings: Findings, has_silhouettes: bool) -> list[str]:
    """Say how well the samples fit into their clusters."""
    heading = subheading("How clear they are")
    if not has_silhouettes:
        return [
            heading,
            paragraph(
                "A single cluster has no silhouettes, and neither have clusters of one sample each."
            ),
        ]
    some = ""
    if len(findings.drawn) < findings.n_samples:
        some = (
            f" They are computed among {len(findings.drawn):,} of the {findings.n_samples:,} "
            "samples, some of every cluster."
        )
    sentences = (
        "A silhouette compares the mean distance of a sample to its own cluster with its "
        "mean distance to the nearest other cluster: 1 is far from all others, 0 is "
        "between two. Distances are taken in the row-normalized embedding. k-means has "
        "made them as small as possible within clusters, so silhouettes look better than "
        "they are, and do not prove that clusters exist. Overall mean: "
        f"{format_number(float(np.nanmean(findings.silhouettes)))}.{some}"
    )
    return [heading, paragraph(sentences), sample_charts.silhouettes(findings)]


def stability(findings: Findings) -> Section:
    """Say which clusters and samples are found again."""
    title, resampling = "How stable the clusters are", findings.resampling
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
    n_refits = len(resampling.stability.agreements)
    spread = f", {format_range(agreements.min(), agreements.max())}" if len(agreements) > 1 else ""
    sentences = (
        f"The same method was fitted {format_times(n_refits)} on {size:,} of the "
        f"{findings.n_samples:,} samples, drawn at random. The clusters agree with those "
        "of the whole fit to "
        f"{format_number(resampling.stability.mean)}{' on average' if n_refits > 1 else ''} "
        f"(adjusted Rand index{spread}). The stability of a sample is the share of these "
        "new fits that put it into its own cluster again; the stability of a cluster is "
        f"the mean over its samples.{notes} Stable clusters need not be real, but unstable "
        "clusters cannot be relied on."
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
        f"Of {count_noun(len(drawn), 'sample')}, {f'{whole:,}' if whole else 'none'} fell into "
        f"{'its' if whole <= 1 else 'their'} own cluster every time. "
        + (f"These {len(worst)} did" if len(worst) > 1 else "This one did")
        + " so least often."
    )
    columns = ["Sample", "Cluster", "Stability", "Silhouette"]
    return [paragraph(sentences), table(columns, rows, "The least stable samples")]


def classes(findings: Findings) -> Section:
    """Compare the clusters with given classes."""
    assert findings.y is not None
    rows = [_score_row("this model", findings.y, findings.labels)]
    baseline = getattr(findings.model, "baseline_labels_", None)
    if baseline is not None:
        baseline = np.asarray(baseline)[np.asarray(findings.model.labels_) != UNCOVERED]
        rows.append(_score_row(findings.compromise_name, findings.y, baseline))
    columns = [
        Column("Clusters of"),
        Column("ACC", "share of samples in the cluster matched with their class"),
        Column("NMI", "mutual information, divided by the larger entropy"),
        Column("Purity", "share of samples in the most frequent class of their cluster"),
        Column("ARI", "adjusted Rand index"),
    ]
    counts, order, names = matched_counts(findings.labels, findings.y, findings.n_clusters)
    parts = [
        paragraph("The given classes were not used to fit. Scores are in percent."),
        table(columns, rows, "Scores against the given classes"),
    ]
    matched = (
        f"Each cluster is matched with one class where that is possible. The matched pairs hold "
        f"{int(np.trace(counts)):,} of the {findings.n_samples:,} samples; bars are shares of a "
        "class."
    )
    if max(counts.shape) <= MOST_TABULATED:
        shares = counts / np.maximum(counts.sum(axis=0), 1)
        body = [
            [
                number(cluster, ".0f"),
                *(number(int(c), ",.0f", float(share)) for c, share in zip(row, of, strict=True)),
            ]
            for cluster, row, of in zip(order, counts, shares, strict=True)
        ]
        caption = "Samples by cluster (rows) and given class (columns), matched"
        parts += [paragraph(matched), table(["Cluster", *names], body, caption)]
    elif max(counts.shape) <= MOST_DRAWN:
        parts.append(charts.classes(counts, order, names))
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
