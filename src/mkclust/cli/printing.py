"""What a command prints of a fit: tables and sentences."""

from typing import Any

import numpy as np

from mkclust.text import count, join_words, printable, text_table

MAX_ROWS = 60  # kernels in a printed table; all of them are in the record of the run
MAX_SIZES = 30  # clusters whose sizes are printed


def score_table(scores: dict[str, dict[str, float]]) -> str:
    """Return scores in percent."""
    keys = ("acc", "nmi", "purity", "ari")
    rows = [["scores (%)", "ACC", "NMI", "purity", "ARI"]]
    rows += [
        [name, *(f"{100 * values[key]:.1f}" for key in keys)] for name, values in scores.items()
    ]
    return text_table(rows)


def kernel_table(model: Any) -> str:
    """Return weights beside alignments, and the sentence on how to read them."""
    # Alignments are not known to more digits.
    columns = {"weight": (model.weights_, ".4f"), "alignment": (model.alignments_, ".2f")}
    if has_errors := hasattr(model, "approximation_error_"):
        columns["missed"] = (model.approximation_error_, ".4f")
    texts = [[format(value, form) for value in values] for values, form in columns.values()]
    names = map(printable, model.kernel_names_)
    rows = [["kernel", *columns], *map(list, zip(names, *texts, strict=True))]
    lines = [text_table(rows[: MAX_ROWS + 1])]
    if (n_hidden := len(rows) - 1 - MAX_ROWS) > 0:
        lines.append(f"... and {n_hidden} more, in the record of the run")
    if has_errors:
        lines.append("Missed is the share of each kernel that the landmarks do not capture.")
    return "\n".join([*lines, model.WEIGHT_MEANING])


def fit_summary(model: Any) -> str:
    """Return what a fit has learned: the verdict, the kernels, the clusters, the certificate."""
    lines = [verdict(model), "", kernel_table(model), "", cluster_sizes(model.labels_)]
    if hasattr(model, "anchor_"):
        chosen = ", the smallest that keeps what the views agree on" * (model.anchor == "auto")
        lines.append(f"Anchor: {model.anchor_:g}{chosen}; 0 is SimpleMKKM on views that agree.")
    lines.append(certificate(model))
    if hasattr(model, "missingness_"):
        found = model.missingness_
        lines += ["", found.summary() if len(found.sizes) <= MAX_SIZES else found.verdict()]
    return "\n".join(lines)


def verdict(model: Any) -> str:
    """Return which views agree, what became of the others, and whether the clusters are theirs."""
    agreement, name = getattr(model, "agreement_", None), type(model).__name__
    if agreement is None:
        return "One view alone: there is nothing to compare it with."
    lines = [printable(agreement.verdict())]
    if agreement.set_aside and not hasattr(model, "set_aside_"):
        names = printable(join_words(agreement.set_aside))
        lines.append(f"{name} sets nothing aside and uses {names}, too; agreement-kkm does not.")
    if hasattr(model, "baseline_agreement_") and agreement.any_share:
        lines.append(
            f"Adjusted Rand index between the clusters of {name} and those that the views "
            f"agree on (agreement-kkm): {model.baseline_agreement_:.3f}."
        )
    return "\n".join(lines)


def cluster_sizes(labels: Any) -> str:
    """Return how many samples each cluster has, or their range if there are many."""
    labels = np.asarray(labels)
    sizes, n_none = np.bincount(labels[labels >= 0]), int(np.sum(labels < 0))
    none = f"; {count(n_none, 'sample')} without an entry in any view: -1" if n_none else ""
    if len(sizes) <= MAX_SIZES:
        return f"Cluster sizes: {' '.join(map(str, sizes))}{none}"
    middle = int(np.median(sizes))
    return f"Cluster sizes: {sizes.min()} to {sizes.max()}, median {middle}{none}"


def certificate(model: Any) -> str:
    """Return in a sentence how near the fit is to the global optimum, and what that leaves open."""
    gap = getattr(model, "duality_gap_", None)
    if gap is None:
        state = "converged" if model.converged_ else "stopped before it converged"
        return f"{type(model).__name__} {state} after {count(model.n_iter_, 'iteration')}."
    scope = ""
    if hasattr(model, "approximation_error_"):
        scope = " The certificate holds for the approximated kernels, not for the exact ones."
    meaning = (
        ". The relaxed problem is solved to global optimality. This does not say that clusters "
        "exist, that k is right or that the kernels are good."
    )
    if not model.converged_:
        meaning = (
            ", and the solver stopped early: as far as the eigenvectors found go, the objective is "
            "at most this far above the global optimum of the relaxed problem."
        )
    return f"Certificate: relative gap {gap:.1e}, {model.certificate_}{meaning}{scope}"
