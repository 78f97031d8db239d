"""The section of a fit's page on what the views share, before any clusters."""

from mkclust.explain.diagnosis import likelihood_text
from mkclust.explain.page import charts
from mkclust.explain.page.findings import Findings
from mkclust.methods.agreement import BEYOND_CHANCE, Agreement
from mkclust.text import join_words
from mkclust.web import Column, Section, bullets, number, paragraph, subheading, table, text
from mkclust.web.table import Cell


def views(findings: Findings, agreement: Agreement) -> Section:
    """Say which views agree, with whom, and what it means where none do."""
    parts = [
        paragraph(
            "Without labels, one thing tells a useful view from a useless one: whether it "
            "shares anything with another view. Every pair of views is compared by a "
            "debiased alignment of their kernels: 1 for copies, about 0 for views that "
            "share nothing. Chance is the probability of such an alignment if the samples "
            "of one view are shuffled, corrected for the number of pairs; below "
            f"{BEYOND_CHANCE:.5f} two views agree."
            + (
                " If samples are missing from views, two views are compared on the "
                "samples that both have."
                if agreement.is_incomplete
                else ""
            )
        ),
        *_groups(agreement),
        *_without_agreement(agreement),
        charts.agreement(agreement),
        *([_partners(agreement)] if agreement.n_independent_views > 1 else []),
    ]
    return Section("agreement", "Views: what they agree on", parts)


def _groups(agreement: Agreement) -> list[str]:
    """Name the groups of views where there are several, and the copies."""
    parts = []
    if len(agreement.groups) > 1:
        items = [
            f"Group {number}{' (used)' if number == 1 else ''}: "
            f"{join_words([agreement.names[p] for p in group], most=len(group))}."
            for number, group in enumerate(agreement.groups, start=1)
        ]
        parts += [
            subheading(f"{len(agreement.groups)} groups of views"),
            paragraph(
                "Views of the same group share something, views of different groups share "
                "nothing. So there are several answers, one for each group, and none is "
                "wrong. Methods that set views aside use the largest group; fit the views "
                "of another group alone to see its clusters."
            ),
            bullets(items),
        ]
    return parts + [
        paragraph(f"Close copies, counted as one view: {join_words(copies, most=len(copies))}.")
        for copies in agreement.copies
    ]


def _without_agreement(agreement: Agreement) -> list[str]:
    """Say what it means that no two views agree, where that is so and could be told."""
    if agreement.any_share or not agreement.is_testable:
        return []
    return [
        subheading("What it means that no two views agree"),
        paragraph(
            "Each view may be noise, or have structure that no other has, and nothing in "
            "the data tells which. All views get the same weight, and the clusters may "
            "match none of them. Are the samples in the same order in every view? Do the "
            "kernels fit the views (scales, sparse counts)? If you know that one view is "
            "right, cluster it alone."
        ),
    ]


def _partners(agreement: Agreement) -> str:
    """Return the table of the views, each with the one that it shares most with."""
    columns = [
        Column("View"),
        Column("Closest to", "among views that are not copies and not made from the same view"),
        Column("Alignment", "how similar the two are, debiased"),
        Column("Deviations", "the alignment in standard deviations of chance"),
        Column("Chance", "probability of such an alignment by chance"),
        Column("Weight", "share of the weight among the views that agree, 0 if set aside"),
    ]
    if agreement.is_incomplete:
        columns.append(Column("Samples in common", "samples on which the two were compared"))
    rows, weights = [], agreement.weights()
    for p, name in enumerate(agreement.names):
        q = agreement.closest(p)
        chance = float(agreement.chances[p, q])
        rows.append(
            [
                text(name),
                text(agreement.names[q]),
                number(round(float(agreement.alignments[p, q]), 3) + 0.0, ".3f"),
                number(round(float(agreement.scores[p, q]), 1) + 0.0, ".1f"),
                Cell(likelihood_text(chance), chance),
                number(float(weights[p]), ".2f"),
            ]
        )
        if agreement.is_incomplete:
            rows[-1].append(number(int(agreement.pair_samples[p, q]), "d"))
    return table(columns, rows, "The views")
