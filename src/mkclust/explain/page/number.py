"""The section of a fit's page on other numbers of clusters."""

from mkclust.explain.choosing import NumberOfClusters
from mkclust.explain.page import charts
from mkclust.explain.page.alternatives import LEVEL, N_DRAWS, N_RESAMPLES
from mkclust.explain.page.findings import Findings
from mkclust.text import join_words
from mkclust.web import Column, Section, number, paragraph, table, text


def number_of_clusters(findings: Findings) -> Section:
    """Show the number of clusters beside others, and say what speaks for each."""
    title, suggestion = (
        "The number of clusters, compared with other numbers",
        findings.alternatives.suggestion,
    )
    if suggestion is None:
        return Section("number", title, [paragraph(findings.alternatives.reason, kind="quiet")])
    k = findings.n_clusters
    parts = [
        paragraph(reading(suggestion, k)),
        charts.numbers(suggestion, k),
        _table(suggestion, k),
        paragraph(*_how(findings, suggestion), kind="quiet"),
    ]
    return Section("number", title, parts)


def reading(suggestion: NumberOfClusters, n_clusters: int) -> str:
    """Say in a sentence how the number of clusters does beside the others."""
    tried = f"{suggestion.k_values[0]} to {suggestion.k_values[-1]}"
    where = "" if suggestion.n_used == suggestion.n_samples else f" on {suggestion.n_used} samples"
    if suggestion.kind == "no evidence":
        return (
            f"No number of clusters from {tried} stands out{where} from samples without clusters."
        )
    if suggestion.kind == "continuum":
        return (
            f"Samples are hardly sparser between clusters than within{where}: they may be "
            "parts of a continuum."
        )
    best, others = suggestion.n_clusters, suggestion.candidates[1:]
    this_fit = "" if best == n_clusters else f"; this fit has {n_clusters}"
    if suggestion.is_unclear:
        also = f", and {join_words(others)} may do as well" if others else ""
        named = n_clusters in others
        return (
            f"How many clusters there are is unclear{where}: of {tried}, {best} fit best{also}"
            f"{'' if named else this_fit}."
        )
    too = ", which is also a candidate" if n_clusters in others else ""
    return f"Of {tried} clusters, {best} fit best{where}{this_fit}{too}."


def _table(suggestion: NumberOfClusters, n_clusters: int) -> str:
    """Return what speaks for each number."""
    columns = [
        Column("Clusters"),
        Column("Remark"),
        Column("Excess", "of the silhouette over samples without clusters; the largest fits best"),
        Column("Named by", "percent of resamples in which its excess is the largest"),
        Column("Silhouette", "of clusters in the leading eigenvectors"),
        Column("Eigengap", "drop of the spectrum where so many clusters would end"),
        Column("Stability", "agreement of resamples, which favors few clusters"),
    ]
    rows = []
    for place, each in enumerate(suggestion.k_values.tolist()):
        remarks = ["this fit"] if each == n_clusters else []
        if each == suggestion.n_clusters:
            remarks.append("fits best")
        elif each in suggestion.candidates:
            remarks.append("in question")
        rows.append(
            [
                number(each, ".0f"),
                text(", ".join(remarks)),
                number(float(suggestion.excess[place]), ".2f"),
                number(100 * float(suggestion.support[place]), ".0f"),
                number(float(suggestion.silhouettes[place]), ".2f"),
                number(float(suggestion.eigengaps[place]), ".2f"),
                number(float(suggestion.stabilities[place]), ".2f"),
            ]
        )
    return table(columns, rows, "Numbers of clusters")


def _how(findings: Findings, suggestion: NumberOfClusters) -> list[str]:
    """Say how the numbers were compared."""
    if findings.alternatives.is_given:
        return ["As mkclust.suggest_n_clusters found before the fit."]
    of = f"{suggestion.n_used:,} of the " if suggestion.n_used < findings.n_samples else "the "
    agreement = findings.agreement
    which = "the average of the kernels"
    if agreement is not None and agreement.any_share:
        which = "the compromise of the views that agree"
    return [
        f"Looked for in {which}, of {of}{findings.n_samples:,} samples, because weights "
        f"that a method learns for one number favor that number: {N_DRAWS} draws without "
        f"clusters, level {LEVEL:g}, {N_RESAMPLES} resamples.",
        "mkclust.suggest_n_clusters(X) uses more draws, resamples and samples, and reports more.",
    ]
