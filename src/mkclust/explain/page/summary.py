"""The top of a fit's page: cautions, and the fit at a glance."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mkclust.explain.fitted import certified_gap, is_approximated
from mkclust.explain.page.findings import Findings
from mkclust.methods.simple_mkkm import OTHER_CLUSTERS
from mkclust.metrics import scores
from mkclust.web import definitions
from mkclust.web.words import count_noun, format_number, format_percent, join_words

# Less than this is little: of silhouettes as their authors read them, and of stability.
NO_STRUCTURE, UNSTABLE = 0.25, 0.6
# The share of a kernel that landmarks may miss before it is worth a caution.
MUCH_MISSED = 0.2


def title_of(findings: Findings) -> str:
    """Return the title of the page."""
    kernels = count_noun(len(findings.model.kernel_names_), "kernel")
    return (
        f"{type(findings.model).__name__}: {count_noun(findings.n_samples, 'sample')}, {kernels}, "
        f"{count_noun(findings.n_clusters, 'cluster')}"
    )


def cautions_of(findings: Findings, warned: Sequence[str] | None) -> list[str]:
    """Return what the reader should know before all else.

    What the fit warned of is told from the fitted model where it was not recorded.
    """
    sentences = _warned(findings.model) if warned is None else [_sentence(text) for text in warned]
    diagnosis = findings.kernels.diagnosis
    if diagnosis is not None and diagnosis.noise:
        many = len(diagnosis.noise) > 1
        sentences.append(
            f"{join_words([repr(name) for name in diagnosis.noise])} "
            f"{'look' if many else 'looks'} like noise: nothing is shared with the other kernels "
            "beyond chance. See the kernels below before you trust the clusters."
        )
    silhouettes = findings.silhouettes[np.isfinite(findings.silhouettes)]
    if len(silhouettes) and silhouettes.mean() < NO_STRUCTURE:
        sentences.append(
            f"The mean silhouette is {silhouettes.mean():.2f}: the clusters are not well apart, "
            "and another number of clusters may fit better."
        )
    stability = findings.resampling.stability
    if stability is not None and stability.mean < UNSTABLE:
        sentences.append(
            f"The clusters are not stable: refits on {stability.size:,} of the samples agree with "
            f"them to {stability.mean:.2f} only (adjusted Rand index)."
        )
    missed = findings.model.approximation_error_ if is_approximated(findings.model) else ()
    if np.nanmax(np.append(missed, 0)) > MUCH_MISSED:
        worst = int(np.nanargmax(missed))
        sentences.append(
            f"The features miss {format_percent(missed[worst])} of kernel "
            f"{findings.model.kernel_names_[worst]!r}: pass more landmarks."
        )
    return sentences


def _warned(model: Any) -> list[str]:
    """Return what a fit has warned of, told from what it learned."""
    sentences = []
    if not model.converged_:
        sentences.append(
            f"{type(model).__name__} did not converge within "
            f"{count_noun(int(model.n_iter_), 'step')}: weights and clusters are those at which it "
            "stopped."
        )
    rand_index = getattr(model, "baseline_agreement_", 1.0)
    if rand_index < OTHER_CLUSTERS:
        sentences.append(
            "The learned weights find other clusters than the views agree on: the adjusted Rand "
            f"index with those of their compromise is {rand_index:.2f}. AgreementKKM finds the "
            "latter."
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
    facts = {"sizes of the clusters": f"{sizes.min():,} to {sizes.max():,}"}
    if findings.n_clusters == 1:
        facts = {"samples in the cluster": f"{sizes[0]:,}"}
    if len(silhouettes):
        facts["mean silhouette, -1 to 1"] = format_number(silhouettes.mean())
    if findings.resampling.stability is not None:
        facts["stability under resampling, at most 1"] = format_number(
            findings.resampling.stability.mean
        )
    facts["agreement with the average kernel, at most 1"] = format_number(
        findings.kernels.average_with_consensus
    )
    gap = certified_gap(model)
    if gap is not None:
        word = model.certificate_.split(" ")[0]
        facts[f"certified relative gap ({word})"] = f"{gap:.0e}"
    else:
        facts["converged (no certificate)"] = "yes" if model.converged_ else "no"
    if findings.y is not None:
        facts["accuracy against given classes"] = format_percent(
            scores(findings.y, findings.labels)["acc"]
        )
    return definitions(facts, kind="facts")
