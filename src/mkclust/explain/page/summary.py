"""The top of a fit's page: the verdict, cautions, and the fit at a glance."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mkclust.explain.choosing import NumberOfClusters
from mkclust.explain.fitted import (
    certified_gap,
    format_gap,
    is_approximated,
    is_one_eigenproblem,
)
from mkclust.explain.page.findings import Findings
from mkclust.explain.page.number import reading
from mkclust.methods import AgreementKKM
from mkclust.methods.agreement import Agreement
from mkclust.methods.simple_mkkm import OTHER_CLUSTERS
from mkclust.metrics import scores
from mkclust.text import join_words
from mkclust.web import definitions
from mkclust.web.words import count_noun, format_number, format_percent, format_range

# Less than this is little: of silhouettes as their authors read them, and of stability.
NO_STRUCTURE, UNSTABLE = 0.25, 0.6
# From here on it is much.
CLEAR, STABLE = 0.5, 0.8
# The share of a kernel that landmarks may miss before it is worth a caution.
MUCH_MISSED = 0.2


def title_of(findings: Findings) -> str:
    """Return the title of the page."""
    kernels = count_noun(len(findings.model.kernel_names_), "kernel")
    return (
        f"{type(findings.model).__name__}: {count_noun(findings.n_samples, 'sample')}, {kernels}, "
        f"{count_noun(findings.n_clusters, 'cluster')}"
    )


def verdict_of(findings: Findings, n_cautions: int) -> list[str]:
    """Return which views agree, how stable and clear the clusters are, and whether anything warns.

    One sentence each, but for views that are set aside; and as plain as they can be.
    """
    agreement, missingness, model = findings.agreement, findings.missingness, findings.model
    suggestion = findings.alternatives.suggestion
    sentences = [
        "One kernel alone: there is nothing to compare it with."
        if agreement is None
        else agreement.verdict(sets_aside=hasattr(model, "set_aside_")),
        # What is worth a warning stands among the cautions.
        "" if missingness is None or missingness.follows else missingness.verdict(),
        _clusters_sentence(findings),
        "" if suggestion is None else reading(suggestion, findings.n_clusters),
        _warning_sentence(n_cautions, suggestion),
    ]
    return [sentence for sentence in sentences if sentence]


def _clusters_sentence(findings: Findings) -> str:
    """Say how stable the clusters are, and how far apart."""
    k, stability = findings.n_clusters, findings.resampling.stability
    if k == 1:
        return "There is one cluster, as you asked."
    words = []
    if stability is not None:
        word = "not stable" if stability.mean < UNSTABLE else "fairly stable"
        word = "stable" if stability.mean >= STABLE else word
        words.append(
            f"{word} (refits on {stability.size:,} of the samples agree with them to "
            f"{format_number(stability.mean)}, where 1 is the same)"
        )
    silhouettes = findings.silhouettes[np.isfinite(findings.silhouettes)]
    if len(silhouettes):
        mean = silhouettes.mean()
        word = "not well apart" if mean < NO_STRUCTURE else "weakly apart"
        word = "well apart" if mean >= CLEAR else word
        words.append(f"{word} (mean silhouette {format_number(mean)})")
    known = f"The {k} clusters are {join_words(words)}." if words else ""
    reason = "" if stability is not None else findings.resampling.reason
    return " ".join(sentence for sentence in (known, reason) if sentence)


def _warning_sentence(n_cautions: int, suggestion: NumberOfClusters | None) -> str:
    """Say whether there is anything to warn of, beside what was said of the number of clusters."""
    if n_cautions == 0:
        is_doubted = suggestion is not None and suggestion.kind != "clusters"
        return f"The fit{' itself' * is_doubted} gives no cause for a warning."
    if n_cautions == 1:
        return "One thing to know before you use them is listed below."
    return f"{n_cautions} things to know before you use them are listed below."


def cautions_of(findings: Findings, warned: Sequence[str] | None) -> list[str]:
    """Return what the reader should know before all else.

    What the fit warned of is told from the fitted model where it was not recorded.
    """
    model, agreement = findings.model, findings.agreement
    if warned is None:
        sentences = _about_convergence(model) + _about_other_clusters(findings)
        sentences += _about_uncovered(findings)
    else:
        sentences = [_sentence(text) for text in warned]
        if not hasattr(model, "baseline_agreement_"):  # without one it has not warned
            sentences += _about_other_clusters(findings)
    if agreement is not None:
        # The page leads with the verdict.
        told = {agreement.verdict(), agreement.verdict(sets_aside=False)}
        sentences = [sentence for sentence in sentences if sentence not in told]
        sentences += _about_agreement(model, agreement)
    missingness = findings.missingness
    if missingness is not None and missingness.follows:
        verdict = missingness.verdict()
        if not any(sentence.startswith(verdict) for sentence in sentences):
            sentences.append(_sentence(missingness.warning()))
    missed = findings.model.approximation_error_ if is_approximated(findings.model) else ()
    if np.nanmax(np.append(missed, 0)) > MUCH_MISSED:
        worst = int(np.nanargmax(missed))
        sentences.append(
            f"The features miss {format_percent(missed[worst])} of kernel "
            f"{findings.model.kernel_names_[worst]!r}: pass more landmarks."
        )
    return sentences


def _about_convergence(model: Any) -> list[str]:
    """Say that the solver stopped early, where it did."""
    if model.converged_:
        return []
    return [
        f"{type(model).__name__} did not converge within "
        f"{count_noun(int(model.n_iter_), 'step')}: weights and clusters are from the step "
        "at which it stopped."
    ]


def _about_uncovered(findings: Findings) -> list[str]:
    """Say that nothing is known of some samples, if that is so."""
    n = len(findings.uncovered)
    if not n:
        return []
    verb = "has" if n == 1 else "have"
    return [f"{count_noun(n, 'sample')} {verb} no entry in any view that is used: no cluster."]


def _about_other_clusters(findings: Findings) -> list[str]:
    """Say that the views agree on other clusters, where they do."""
    agreement, model = findings.agreement, findings.model
    examined = findings.kernels.compromise_with_consensus
    rand_index = getattr(model, "baseline_agreement_", examined)
    if agreement is None or not agreement.any_share or rand_index >= OTHER_CLUSTERS:
        return []
    return [
        f"{type(model).__name__} finds other clusters than those that the views agree on: "
        f"the adjusted Rand index between the two is {rand_index:.2f}. AgreementKKM finds "
        "the clusters that the views agree on."
    ]


def _about_agreement(model: Any, agreement: Agreement) -> list[str]:
    """Say that views do not agree, or fall into groups, or share nothing and are mixed in."""
    if agreement.is_testable and not agreement.any_share:
        return [
            "No two views agree: nothing can tell which view is right, and the clusters "
            "may match none of them. See the views below before you use the clusters."
        ]
    sentences = []
    if len(agreement.groups) > 1:
        groups = "; ".join(
            join_words([agreement.names[p] for p in group]) for group in agreement.groups
        )
        whose = (
            f"are those of {join_words([agreement.names[p] for p in agreement.groups[0]])}"
            if hasattr(model, "set_aside_")
            else "belong to at most one of them"
        )
        sentences.append(
            f"There are {len(agreement.groups)} groups of views that share nothing with each other "
            f"({groups}), and so as many answers: these clusters {whose}."
        )
    if agreement.set_aside and not hasattr(model, "set_aside_"):
        names, many = agreement.set_aside, len(agreement.set_aside) > 1
        listed = join_words([repr(name) for name in names])
        aside = np.array([name in names for name in agreement.names])
        share = model.weights_[aside].sum() / model.weights_.sum()
        has, shares, them = ("have", "share", "them") if many else ("has", "shares", "it")
        sentences.append(
            f"{type(model).__name__} itself sets no view aside: {listed} {has} "
            f"{format_percent(share)} of the weight, and {shares} nothing with the views that "
            f"agree. AgreementKKM sets {them} aside."
        )
    return sentences


def _sentence(text: str) -> str:
    """Return a warning with a capital and a full stop."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def glance(findings: Findings) -> str:
    """Return the few numbers that sum the fit up."""
    model, sizes = findings.model, findings.sizes
    silhouettes = findings.silhouettes[np.isfinite(findings.silhouettes)]
    facts, agreement = {}, findings.agreement
    if agreement is not None and agreement.is_testable:
        agreeing = len(agreement.chosen) if agreement.any_share else 0
        facts["views that agree"] = f"{agreeing} of {len(agreement.names)}"
    if findings.n_clusters == 1:
        facts["samples in the cluster"] = f"{sizes[0]:,}"
    else:
        facts["samples a cluster"] = format_range(sizes.min(), sizes.max(), ",d")
    if len(silhouettes):
        facts["mean silhouette, -1 to 1"] = format_number(silhouettes.mean())
    if findings.resampling.stability is not None:
        facts["stability under resampling, at most 1"] = format_number(
            findings.resampling.stability.mean
        )
    if agreement is not None and not isinstance(model, AgreementKKM):
        facts[f"likeness to {findings.compromise_name}, at most 1"] = format_number(
            findings.kernels.compromise_with_consensus
        )
    gap = certified_gap(model)
    if gap is not None:
        word = model.certificate_.split(" ")[0]
        facts[f"certified relative gap ({word})"] = format_gap(gap)
    elif not is_one_eigenproblem(model):
        facts["converged (no certificate)"] = "yes" if model.converged_ else "no"
    if findings.y is not None:
        facts["accuracy against given classes"] = format_percent(
            scores(findings.y, findings.labels)["acc"]
        )
    return definitions(facts, kind="facts")
