"""The sections of a fit's page on features of the clusters, and on other variables."""

from mkclust.explain.annotation import Annotation
from mkclust.explain.description import Description, FeatureEffect
from mkclust.explain.page import charts
from mkclust.explain.page.findings import Findings
from mkclust.web import Column, Section, number, paragraph, table, text
from mkclust.web.table import Cell

# Features of each cluster in the picture and in the table; clusters up to which there is a picture.
DRAWN, TABULATED, MOST_DRAWN = 3, 5, 60
ROUNDING = 1e-12


def features(findings: Findings, description: Description) -> Section:
    """Say which features set each cluster apart."""
    sentences = [
        "These are the features in which each cluster differs most from the rest, by "
        "effect size. For numbers, this is the difference of the means in pooled standard "
        "deviations (Cohen's d); for shares, their difference. There are no p-values: the "
        "clusters were made to differ in these features, so any test would find a "
        "difference."
    ]
    if findings.n_described < findings.n_samples:
        sentences.append(
            f"To save time, effect sizes are computed on {findings.n_described:,} of the "
            f"{findings.n_samples:,} samples, some of every cluster."
        )
    clusters = range(len(description.sizes))
    rows = [row for c in clusters for row in description.strongest(c, TABULATED)]
    parts = [paragraph(*sentences)]
    if not rows:
        parts.append(paragraph("No feature stands out in any cluster."))
        return Section("features", "What sets the clusters apart", parts)
    if len(description.sizes) <= MOST_DRAWN:
        parts.append(charts.features(description, DRAWN))
    columns = [
        Column("Cluster"),
        Column("View"),
        Column("Feature"),
        Column("Effect", "difference of means in standard deviations, or of shares"),
        Column("Inside", "mean or share within the cluster"),
        Column("Outside", "mean or share in the rest"),
        Column("Missing", "number of samples with a missing cell"),
    ]
    parts.append(table(columns, [_cells(row) for row in rows], "Features of the clusters"))
    parts += [paragraph(note, kind="quiet") for note in description.notes]
    return Section("features", "What sets the clusters apart", parts)


def annotation(annotated: Annotation) -> Section:
    """Say in which other variables the clusters differ."""
    sentence = (
        "Variables that were not used for clustering are tested against the clusters. "
        f"The p-values come from {annotated.n_permutations:,} permutations of "
        "the clusters, and are adjusted for the number of variables by Benjamini and "
        "Hochberg. Missing values are left out for each variable separately."
    )
    columns = ["Variable", "Test", "Samples", "Missing", "Statistic", "p", "Adjusted", "Remark"]
    rows = [
        [
            text(test.variable),
            text(test.test),
            number(test.n_samples, ",.0f"),
            number(test.n_missing, ",.0f"),
            number(test.statistic, ".4g"),
            number(test.p_value, ".2g"),
            number(test.p_adjusted, ".2g"),
            text(f"not tested: {test.reason}" if test.reason else ""),
        ]
        for test in annotated.tests
    ]
    parts = [paragraph(sentence), table(columns, rows, "Variables against the clusters")]
    parts += [paragraph(note, kind="quiet") for note in annotated.notes]
    return Section("annotation", "Against other variables", parts)


def _cells(row: FeatureEffect) -> list[Cell]:
    """Return a feature of a cluster as a row of the table."""
    form = ".2f" if row.kind == "share" else ".4g"
    # Beside means of another size, what is left of a mean of zero is rounding.
    least = ROUNDING * max(abs(row.mean_in), abs(row.mean_out))
    inside, outside = (0.0 if abs(mean) < least else mean for mean in (row.mean_in, row.mean_out))
    return [
        number(row.cluster, ".0f"),
        text(row.view),
        text(row.feature),
        number(row.effect, "+.2f"),
        number(inside, form),
        number(outside, form),
        number(row.n_missing, ",.0f"),
    ]
