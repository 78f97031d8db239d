"""What a command prints of a fit: tables and sentences."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mkclust.agreements import Agreement, p_text
from mkclust.explain.clarity import Clarity
from mkclust.explain.stability import Stability
from mkclust.fit import MultipleKernelClusterer
from mkclust.text import count, join_words, printable, text_table


def score_table(scores: dict[str, dict[str, float]]) -> str:
    """Return scores in percent."""
    keys = ("acc", "nmi", "purity", "ari")
    rows = [["scores (%)", "ACC", "NMI", "purity", "ARI"]]
    for name, values in scores.items():
        cells = (f"{100 * values[key]:.1f}" for key in keys)
        rows.append([name, *cells])
    return text_table(rows)


def views_used(model: MultipleKernelClusterer) -> list[str]:
    """Return which tables the clusters come from, and the p-values that decide."""
    agreement: Agreement | None = getattr(model, "agreement_", None)
    name = type(model).__name__
    if agreement is None:
        return ["One table alone: there is nothing to compare it with."]
    aside = getattr(model, "set_aside_", None)
    if aside and agreement.any_share:
        lines = _used_and_not(agreement, aside)
    else:
        lines = [agreement.verdict(sets_aside=aside is not None)]
    if agreement.set_aside and aside is None:
        others = join_words(agreement.set_aside)
        lines.append(f"{name} also uses {others}; --method agreement-kkm does not.")
    if hasattr(model, "baseline_agreement_") and agreement.any_share:
        lines.append(
            f"Adjusted Rand index between the clusters of {name} and those that the "
            "views agree on (kernel k-means on their mix): "
            f"{model.baseline_agreement_:.3f}."
        )
    return lines


def _used_and_not(agreement: Agreement, aside: Any) -> list[str]:
    """Return which views agree and are used, and why each of the others is not."""
    used = []
    highest = 0.0
    not_used = []
    for p, name in enumerate(agreement.names):
        found = agreement.evidence(p)
        if name not in aside:
            used.append(name)
            highest = max(highest, found.p_value)
            continue
        p_value = p_text(found.p_value, "= ")
        not_used.append(
            f"Not used: {printable(name)}: no clear agreement (p {p_value} with "
            f"{printable(found.partner)}; the limit is {found.limit:.1g})."
        )
    at_most = p_text(highest, "<= ")
    first = f"Used: {join_words(used)}, which agree with each other (p {at_most})."
    return [first, *not_used]


def how_clear(clarity: Clarity, stability: Stability | None) -> list[str]:
    """Return how clear the clusters are, and how stable, as far as that is known."""
    lines = []
    if clarity.separation is not None:
        lines.append(
            f"How clear: {clarity.separation} (mean silhouette "
            f"{clarity.silhouette:.2f}; 1 is best)."
        )
    if stability is not None:
        lines.append(
            f"How stable: refits on {stability.size} of the samples agree to "
            f"{stability.mean:.2f} (adjusted Rand index; 1 is best). "
            f"{clarity.about_stability()}"
        )
    return lines


def details(model: MultipleKernelClusterer) -> list[str]:
    """Return how a fit came about: the weights of the kernels, and the solver."""
    lines = ["", "Weight: how much a view counts (0 = not used).", model.summary()]
    if hasattr(model, "approximation_error_"):
        shares = (f"{share:.4f}" for share in model.approximation_error_)
        missed = ", ".join(shares)
        lines.append(
            f"Share of each kernel that the landmarks do not capture: {missed}."
        )
    if hasattr(model, "anchor_"):
        chosen = ""
        if model.anchor == "auto":
            chosen = ", the smallest that keeps what the views agree on"
        lines.append(
            f"Anchor: {model.anchor_:g}{chosen}; 0 is SimpleMKKM on views that agree."
        )
    return [*lines, certificate(model)]


def cluster_sizes(labels: Any, k: int = 0, names: Sequence[str] | None = None) -> str:
    """Return the size of each cluster, or their range if there are many."""
    labels = np.asarray(labels)
    sizes = np.bincount(labels[labels >= 0], minlength=k)
    n_none = int(np.sum(labels < 0))
    none = ""
    if n_none:
        none = f"; {count(n_none, 'sample')} of which nothing is known: -1"

    # Clusters whose sizes are printed.
    max_sizes = 30
    if len(sizes) <= max_sizes:
        titles = names or [str(number) for number in range(len(sizes))]
        pairs = zip(sizes.tolist(), titles, strict=True)
        parts = (f"{size} in {title}" for size, title in pairs)
        words = ", ".join(parts)
        return f"Samples in each cluster: {words}{none}"
    middle = int(np.median(sizes))
    return (
        f"Samples in each cluster: {sizes.min()} to {sizes.max()}, median "
        f"{middle}{none}"
    )


def certificate(model: MultipleKernelClusterer) -> str:
    """Return in a sentence how near the fit is to the global optimum."""
    gap = getattr(model, "duality_gap_", None)
    if gap is None:
        state = "stopped before it converged"
        if model.converged_:
            state = "converged"

        return (
            f"{type(model).__name__} {state} after {count(model.n_iter_, 'iteration')}."
        )
    meaning = (
        ". The relaxed problem is solved to global optimality. This does not say that "
        "clusters exist, that k is right or that the kernels are good."
    )
    if not model.converged_:
        meaning = (
            ", and the solver stopped early: as far as the eigenvectors found go, the "
            "objective is at most this far above the global optimum of the relaxed "
            "problem."
        )
    if hasattr(model, "approximation_error_"):
        meaning += (
            " The certificate holds for the approximated kernels, not for the exact "
            "ones."
        )
    return f"Certificate: relative gap {gap:.1e}, {model.certificate_}{meaning}"
