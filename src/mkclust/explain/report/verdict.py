"""The top of a report: the verdict, cautions, and key figures."""

from collections.abc import Sequence

import numpy as np

from mkclust.explain.fitted import certified_gap, is_approximated, is_one_eigenproblem
from mkclust.explain.number_of_clusters import NumberOfClusters
from mkclust.explain.report.collect import ReportData
from mkclust.methods.simple_mkkm import OTHER_CLUSTERS
from mkclust.metrics import scores
from mkclust.text import count, join_words

# Mean silhouettes below the first are no structure, from the second on clear: Kaufman, Rousseeuw.
NO_STRUCTURE, CLEAR = 0.25, 0.5
# From this share of a kernel that features miss on, there is a caution.
MUCH_MISSED = 0.2


def title(data: ReportData) -> str:
    """Return the title of the report."""
    kernels = count(len(data.model.kernel_names_), "kernel")
    sizes = f"{count(data.n_samples, 'sample')}, {kernels}, {count(data.n_clusters, 'cluster')}"
    return f"{type(data.model).__name__}: {sizes}"


def verdict(data: ReportData, n_cautions: int) -> list[str]:
    """Return which views agree, how stable and clear the clusters are, and whether to beware."""
    model, agreement = data.model, data.agreement
    sentences = [
        "One kernel alone: there is nothing to compare it with."
        if agreement is None
        else agreement.verdict(sets_aside=hasattr(model, "set_aside_"))
    ]
    missingness = getattr(model, "missingness_", None)
    if missingness is not None and not missingness.follows:
        sentences.append(missingness.verdict())  # if clusters follow it, it is a caution
    if data.n_clusters == 1:
        sentences.append("There is one cluster, as asked for.")
    elif np.isfinite(data.mean_silhouette):
        mean = data.mean_silhouette
        word = "not well" if mean < NO_STRUCTURE else "well" if mean >= CLEAR else "weakly"
        k = data.n_clusters
        sentences.append(f"The {k} clusters are {word} separated (mean silhouette {mean:.2f}).")
    if data.stability is not None:
        sentences.append(
            f"Refits on {data.stability.size:,} of the samples agree with them to "
            f"{data.stability.mean:.2f} (adjusted Rand index: 1 is the same clusters). "
            f"{data.stability.verdict()}"
        )
    elif data.n_clusters > 1:
        sentences.append(data.stability_note)
    if data.suggestion is not None:
        sentences.append(compare_numbers(data.suggestion, data.n_clusters))
    if n_cautions == 0:
        sentences.append("The fit gives no cause for a caution.")
    return sentences


def compare_numbers(suggestion: NumberOfClusters, n_clusters: int) -> str:
    """Return in a sentence how the number of clusters compares with others."""
    tried = f"{suggestion.k_values[0]} to {suggestion.k_values[-1]}"
    best, *others = suggestion.candidates
    also = f", then {join_words(others)}" if others else ""
    this_fit = "" if n_clusters == best else f"; this fit has {n_clusters}"
    evidence = {"none": "There is no", "weak": "There is weak", "strong": "There is strong"}
    return (
        f"Of {tried} clusters, {best} fit best{also}{this_fit}. {evidence[suggestion.evidence]} "
        f"evidence of clusters (p = {suggestion.p_value:.2g})."
    )


def cautions(data: ReportData, warned: Sequence[str] | None) -> list[str]:
    """Return what a reader should know before everything else.

    Without a record of the warnings of the fit, they are derived from the model.
    """
    model, agreement = data.model, data.agreement
    name = type(model).__name__
    found = [text.strip() for text in warned or ()]
    if warned is None:
        if not model.converged_:
            found.append(
                f"{name} did not converge within {count(int(model.n_iter_), 'step')}: weights and "
                "clusters are from the step at which it stopped"
            )
        if n_unknown := int((~data.known).sum()):
            found.append(
                f"{count(n_unknown, 'sample')} without any entry in the views that are used: no "
                "cluster"
            )
    if agreement is not None:
        # The report begins with this verdict.
        first = {agreement.verdict(), agreement.verdict(sets_aside=False)}
        found = [text for text in found if text not in first]
        found += _about_agreement(data)
    told = " ".join(found)
    is_other = data.agreed_ari is not None and data.agreed_ari < OTHER_CLUSTERS
    if is_other and "adjusted Rand index" not in told:
        found.append(
            f"{name} finds other clusters than those that the views agree on: the adjusted Rand "
            f"index between the two is {data.agreed_ari:.2f}. AgreementKKM finds the clusters that "
            "the views agree on"
        )
    missingness = getattr(model, "missingness_", None)
    if missingness is not None and missingness.follows and missingness.verdict() not in told:
        found.append(missingness.warning())
    missed = np.nan_to_num(model.approximation_error_) if is_approximated(model) else np.zeros(1)
    if missed.max() > MUCH_MISSED:
        worst = model.kernel_names_[int(missed.argmax())]
        found.append(f"The features miss {missed.max():.0%} of kernel {worst!r}: use more of them")
    return [text[:1].upper() + text[1:] + "." * (text[-1:] not in ".!?") for text in found if text]


def _about_agreement(data: ReportData) -> list[str]:
    """Return that views do not agree, fall into groups, or share nothing and are mixed in."""
    model, agreement = data.model, data.agreement
    assert agreement is not None
    if agreement.is_testable and not agreement.any_share:
        return [
            "No two views agree: nothing can tell which view is right, and the clusters may match "
            "none of them. See the views below before you use the clusters"
        ]
    sentences, names = [], agreement.names
    sets_aside = hasattr(model, "set_aside_")
    if len(agreement.groups) > 1:
        groups = [join_words([names[p] for p in group]) for group in agreement.groups]
        whose = f"are those of {groups[0]}" if sets_aside else "belong to at most one of them"
        sentences.append(
            f"There are {len(groups)} groups of views that share nothing with each other "
            f"({'; '.join(groups)}), and so as many answers: these clusters {whose}"
        )
    if agreement.set_aside and not sets_aside:
        aside = np.array([name in agreement.set_aside for name in names])
        share = model.weights_[aside].sum() / model.weights_.sum()
        sentences.append(
            f"{type(model).__name__} sets no view aside: {share:.0%} of the weight is on views "
            f"that share nothing with those that agree ({join_words(agreement.set_aside)}). "
            "AgreementKKM sets them aside"
        )
    return sentences


def key_figures(data: ReportData) -> dict[str, str]:
    """Return the few numbers that sum up a fit, by their names."""
    model, agreement, sizes = data.model, data.agreement, data.sizes
    figures = {}
    if agreement is not None and agreement.is_testable:
        agreeing = len(agreement.chosen) if agreement.any_share else 0
        figures["views that agree"] = f"{agreeing} of {len(agreement.names)}"
    low, high = f"{sizes.min():,}", f"{sizes.max():,}"
    figures["samples per cluster"] = low if low == high else f"{low} to {high}"
    if np.isfinite(data.mean_silhouette):
        figures["mean silhouette, -1 to 1"] = f"{data.mean_silhouette:.2f}"
    if data.stability is not None:
        figures["stability under resampling (ARI)"] = f"{data.stability.mean:.2f}"
    if data.agreed_ari is not None:
        figures["ARI with what the views agree on"] = f"{data.agreed_ari:.2f}"
    gap = certified_gap(model)
    if gap is not None:
        figures[f"certified relative gap ({model.certificate_.split()[0]})"] = gap
    elif not is_one_eigenproblem(model):
        figures["converged (no certificate)"] = "yes" if model.converged_ else "no"
    if data.y is not None:
        accuracy = scores(data.y[data.known], data.labels[data.known])["acc"]
        figures["accuracy against given classes"] = f"{accuracy:.1%}"
    return figures
