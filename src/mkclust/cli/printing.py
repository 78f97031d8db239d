"""What a command prints of a fit: tables and sentences."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mkclust.text import count, join_words, printable, text_table

MAX_SIZES = 30  # clusters whose sizes are printed


def score_table(scores: dict[str, dict[str, float]]) -> str:
    """Return scores in percent."""
    keys = ("acc", "nmi", "purity", "ari")
    rows = [["scores (%)", "ACC", "NMI", "purity", "ARI"]]
    for name, values in scores.items():
        rows.append([name, *(f"{100 * values[key]:.1f}" for key in keys)])
    return text_table(rows)


def views_used(model: Any) -> list[str]:
    """Return which tables the clusters come from and which not, with the p-values that decide."""
    agreement, name = getattr(model, "agreement_", None), type(model).__name__
    if agreement is None:
        return ["One table alone: there is nothing to compare it with."]
    aside, chosen = getattr(model, "set_aside_", None), agreement.chosen
    if not aside or not agreement.any_share:
        lines = [printable(agreement.verdict(sets_aside=aside is not None))]
    else:
        p_values = agreement.p_values[:, chosen].min(axis=1)
        names = [each for each in agreement.names if each not in aside]
        highest = _p_value(p_values[chosen].max())
        lines = [f"Used: {_tables(names)}, which agree with each other ({highest} or less)."]
        for each, p_value in zip(agreement.names, p_values, strict=True):
            if each in aside:
                limit = f"the limit is {agreement.limits[:, chosen].max():.1g}"
                reason = f"no clear agreement with these ({_p_value(p_value)}; {limit})"
                lines.append(f"Not used: {printable(each)}: {reason}.")
    if agreement.set_aside and aside is None:
        others = _tables(agreement.set_aside)
        lines.append(f"{name} also uses {others}; --method agreement-kkm does not.")
    if hasattr(model, "baseline_agreement_") and agreement.any_share:
        lines.append(
            f"Adjusted Rand index between the clusters of {name} and those that the views "
            f"agree on (kernel k-means on their mix): {model.baseline_agreement_:.3f}."
        )
    return lines


def _p_value(value: float) -> str:
    # Smaller ones rest on the far tail of a distribution.
    return f"p-value {value:.1g}" if value >= 1e-16 else "p-value 1e-16"


def _tables(names: Sequence[str]) -> str:
    """Return the tables of views; the categories of a table are a view of their own."""
    return printable(join_words(dict.fromkeys(n.removesuffix(" (categories)") for n in names)))


def separation(silhouette: float, stability: Any) -> list[str]:
    """Return how clear the clusters are, and how stable, as far as that is known."""
    lines = []
    if silhouette == silhouette:
        how = "well" if silhouette >= 0.5 else "weakly" if silhouette >= 0.25 else "not well"
        lines.append(f"How clear: {how} separated (mean silhouette {silhouette:.2f}; 1 is best).")
    if stability is not None:
        lines.append(
            f"How stable: refits on {stability.size} of the samples agree to {stability.mean:.2f} "
            f"(adjusted Rand index; 1 is best). {stability.verdict()}"
        )
    return lines


def details(model: Any) -> list[str]:
    """Return how a fit came about: the weights of the kernels, and the solver."""
    lines = ["", "Weight: how much a view counts (0 = not used).", model.summary()]
    if hasattr(model, "approximation_error_"):
        missed = ", ".join(f"{share:.4f}" for share in model.approximation_error_)
        lines.append(f"Share of each kernel that the landmarks do not capture: {missed}.")
    if hasattr(model, "anchor_"):
        chosen = ", the smallest that keeps what the views agree on" * (model.anchor == "auto")
        lines.append(f"Anchor: {model.anchor_:g}{chosen}; 0 is SimpleMKKM on views that agree.")
    return [*lines, certificate(model)]


def cluster_sizes(labels: Any, k: int = 0) -> str:
    """Return the number of each cluster with its size, or the range of sizes if there are many."""
    labels = np.asarray(labels)
    sizes, n_none = np.bincount(labels[labels >= 0], minlength=k), int(np.sum(labels < 0))
    none = f"; {count(n_none, 'sample')} without an entry in any view: -1" if n_none else ""
    if len(sizes) <= MAX_SIZES:
        words = ", ".join(f"{size} in {number}" for number, size in enumerate(sizes))
        return f"Samples in each cluster: {words}{none}"
    middle = int(np.median(sizes))
    return f"Samples in each cluster: {sizes.min()} to {sizes.max()}, median {middle}{none}"


def certificate(model: Any) -> str:
    """Return in a sentence how near the fit is to the global optimum, and what that leaves open."""
    gap = getattr(model, "duality_gap_", None)
    if gap is None:
        state = "converged" if model.converged_ else "stopped before it converged"
        return f"{type(model).__name__} {state} after {count(model.n_iter_, 'iteration')}."
    meaning = (
        ". The relaxed problem is solved to global optimality. This does not say that clusters "
        "exist, that k is right or that the kernels are good."
    )
    if not model.converged_:
        meaning = (
            ", and the solver stopped early: as far as the eigenvectors found go, the objective is "
            "at most this far above the global optimum of the relaxed problem."
        )
    if hasattr(model, "approximation_error_"):
        meaning += " The certificate holds for the approximated kernels, not for the exact ones."
    return f"Certificate: relative gap {gap:.1e}, {model.certificate_}{meaning}"
