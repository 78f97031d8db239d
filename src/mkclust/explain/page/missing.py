"""The section of a fit's page on samples that are missing from views."""

from mkclust.methods.missingness import Missingness
from mkclust.web import Column, Section, number, paragraph, table, text

# Clusters up to which patterns are counted cluster by cluster.
MOST_TABULATED = 30


def missing(missingness: Missingness) -> Section:
    """Say which views samples are missing from, and whether the clusters follow that."""
    parts = [
        paragraph(missingness.verdict()),
        paragraph(
            "Some samples are missing from some views. Clusters should reflect what the "
            "samples are, not which views were measured. Therefore the clusters are "
            "compared with the patterns of missing views, and with each view alone, by "
            "their mutual information. It is adjusted: 0 is the value by chance, and 1 "
            "means that one determines the other. Chance is the probability that "
            f"{missingness.n_permutations:,} permutations of the patterns give such a "
            "value, corrected for the number of comparisons."
        ),
        _views(missingness),
        _patterns(missingness),
    ]
    return Section("missing", "Samples missing from views", parts)


def _views(missingness: Missingness) -> str:
    """Return the table of the views, with the samples that they lack."""
    n = int(missingness.sizes.sum())
    columns = [
        Column("View"),
        Column("Observed", "samples that the view has"),
        Column("Missing", "samples that it lacks"),
        Column("Share", "percent of all samples that are missing from the view"),
        Column("Agreement", "adjusted mutual information of the missing samples and the clusters"),
        Column("Chance", "probability of such a value by chance"),
    ]
    rows = []
    for v, name in enumerate(missingness.view_names):
        count = int(missingness.view_counts[v].sum())
        cells = [text(name), number(n - count, ",.0f"), number(count, ",.0f")]
        cells.append(number(100 * count / n, ".1f", count / n))
        # Of a view that has all samples there is nothing to compare.
        values = missingness.view_agreements[v], missingness.view_p_values[v]
        agreement, chance = map(float, values) if count else (float("nan"), float("nan"))
        rows.append([*cells, number(agreement, ".2f"), number(chance, ".2g")])
    return table(columns, rows, "Views with missing samples")


def _patterns(missingness: Missingness) -> str:
    """Return the table of samples by pattern and cluster."""
    k = len(missingness.sizes)
    if k > MOST_TABULATED:
        return paragraph(f"A table of patterns by {k} clusters is left out.", kind="quiet")
    columns = [
        Column("Missing from", "the views that these samples are missing from"),
        *(Column(str(cluster)) for cluster in range(k)),
        Column("Samples"),
    ]
    rows = [
        [text(title), *(number(int(count), ",.0f") for count in (*counts, counts.sum()))]
        for title, counts in missingness.rows()
    ]
    return table(columns, rows, "Samples by missing views (rows) and cluster (columns)")
