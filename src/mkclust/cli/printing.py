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
    evidence = {n: agreement.evidence(p) for p, n in enumerate(agreement.names)}
    used = {name: each for name, each in evidence.items() if name not in aside}
    highest = max((each.p_value for each in used.values()), default=0.0)
    at_most = p_text(highest, "<= ")
    return [
        f"Used: {join_words(used)}, which agree with each other (p {at_most}).",
        *(
            f"Not used: {printable(name)}: no clear agreement (p "
            f"{p_text(each.p_value, '= ')} with {printable(each.partner)}; the limit "
            f"is {each.limit:.1g})."
            for name, each in evidence.items()
            if name in aside
        ),
    ]


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


def details(model: MultipleKernelClusterer, seconds: float, decision: str) -> list[str]:
    """Return how a fit came about: decisions, kernels, weights, solver and gaps."""
    sizes = [
        count(len(model.labels_), "sample"),
        count(len(model.weights_), "kernel"),
        count(model.n_clusters_, "cluster"),
    ]
    lines = [f"{type(model).__name__}: {', '.join(sizes)}, {seconds:.2f} s"]
    if decision:
        lines.append(decision)
    if hasattr(model, "bank_"):
        lines += model.bank_.explain().splitlines()
    lines += ["", "Weight: how much a view counts (0 = not used).", model.summary()]
    if hasattr(model, "approximation_error_"):
        missed = ", ".join(f"{share:.4f}" for share in model.approximation_error_)
        lines.append(
            f"Share of each kernel that the landmarks do not capture: {missed}."
        )
    if hasattr(model, "anchor_"):
        is_auto = model.anchor == "auto"
        why = ", the smallest that keeps what the views agree on" if is_auto else ""
        lines.append(
            f"Anchor: {model.anchor_:g}{why}; 0 is SimpleMKKM on views that agree."
        )
    lines.append(_certificate(model))
    if hasattr(model, "missingness_"):
        lines.append(model.missingness_.summary())
    return lines


def cluster_sizes(labels: Any, k: int = 0, names: Sequence[str] | None = None) -> str:
    """Return the size of each cluster, or their range if there are many."""
    labels = np.asarray(labels)
    sizes = np.bincount(labels[labels >= 0], minlength=k)
    if len(sizes) <= 30:
        pairs = zip(sizes, names or range(len(sizes)), strict=True)
        words = ", ".join(f"{size} in {title}" for size, title in pairs)
    else:
        words = f"{sizes.min()} to {sizes.max()}, median {int(np.median(sizes))}"
    n_none = int(np.sum(labels < 0))
    if n_none:
        words += f"; {count(n_none, 'sample')} of which nothing is known: -1"
    return f"Samples in each cluster: {words}"


def _certificate(model: MultipleKernelClusterer) -> str:
    """Return in a sentence how near the fit is to the global optimum."""
    gap = getattr(model, "duality_gap_", None)
    if gap is None:
        state = "converged" if model.converged_ else "stopped before it converged"
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
