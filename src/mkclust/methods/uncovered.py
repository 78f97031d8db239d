"""Samples of which nothing is known: they have no entry in any view that is used, and label -1."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mkclust.data.samples import Samples
from mkclust.exceptions import UncoveredSamplesWarning, warn
from mkclust.linalg import select
from mkclust.linalg.sparse_rows import spread_rows
from mkclust.methods.out_of_sample import active_kernels
from mkclust.stack import Stack
from mkclust.stack.observed import maps_of, observed_samples
from mkclust.text import count, join_words

# The label of samples of which nothing is known.
UNCOVERED = -1
# Learned attributes with an entry per sample, and their value for such samples.
PER_SAMPLE = {
    "labels_": UNCOVERED,
    "baseline_labels_": UNCOVERED,
    "embedding_": 0,
    "sample_weights_": 0,
}


def without_entries(empty: np.ndarray, is_used: Any = slice(None)) -> np.ndarray:
    """Return the sorted indices of samples without an entry in any used view, given (n, m)."""
    used = empty[:, is_used]
    return np.flatnonzero(used.all(axis=1)) if used.shape[1] else np.arange(0)


def observed_of(stack: Stack) -> np.ndarray | None:
    """Return which kernels have which samples, (n, m) of bool; None if all have all."""
    features = stack.features
    return observed_samples(stack.kernels) if features is None else features.observed


def used_kernels(
    stack: Stack, coefficients: np.ndarray | None, active: Sequence[int] | None = None
) -> np.ndarray:
    """Return which kernels are used in a mix, (m,) of bool; all if a method mixes none."""
    if coefficients is None:
        return np.ones(stack.n_kernels, bool)
    # What was learned of a sample counts for it in all kernels that are not set aside.
    if any(each is not None and each.fill is not None for each in maps_of(stack.kernels)):
        return active_kernels(stack, active)
    return np.asarray(coefficients) != 0


def spread_over_all(
    learned: dict[str, Any], samples: Samples, fitted: np.ndarray | None, lost: np.ndarray
) -> np.ndarray:
    """Spread what was learned over all samples, in place; return those without used entries.

    Lost are the positions, among the fitted samples, of those that only unused views have.
    """
    n = samples.n_samples
    rows = np.arange(n) if fitted is None else fitted
    kept = np.delete(np.arange(len(rows)), lost)
    for name, value in PER_SAMPLE.items():
        if name in learned:
            learned[name] = spread_samples(select(learned[name], kept), rows[kept], n, value)
    uncovered = np.delete(np.arange(n), rows[kept])
    learned["uncovered_samples_"] = uncovered if samples.ids is None else samples.ids[uncovered]
    if fitted is not None:
        if samples.missing is not None:
            learned["observed_"] = ~samples.missing
        if samples.ids is not None:
            learned["sample_ids_"] = samples.ids
        if samples.kind == "kernels":
            learned["n_features_in_"] = n
        learned["_covered"] = fitted
    return uncovered


def spread_samples(values: Any, covered: np.ndarray, n: int, value: int) -> Any:
    """Return values for all of n samples, one value for those that are not covered."""
    columns = values[:, None] if values.ndim == 1 else values
    spread = spread_rows(columns, covered, n, value)
    return spread[:, 0] if values.ndim == 1 else spread


def check_covered(n_covered: int, n_samples: int, n_clusters: int) -> None:
    """Refuse more clusters than there are samples of which something is known."""
    if n_covered < max(n_clusters, 2):
        raise ValueError(
            f"n_clusters={n_clusters}, but only {n_covered} of {count(n_samples, 'sample')} have "
            "an entry in a view that is used, and nothing is known of the others: ask for fewer "
            "clusters, add a view that has them, or take a method that uses every view, such as "
            "AverageKKM"
        )


def warn_of_uncovered(
    uncovered: np.ndarray, n_samples: int, ids: np.ndarray | None, aside: Sequence[str] = ()
) -> None:
    """Warn of samples that have no entry in any view that is used, and name views set aside."""
    have, them = ("has", "it") if len(uncovered) == 1 else ("have", "them")
    named = join_words(uncovered if ids is None else ids[uncovered])
    only = f", only in {join_words(aside)}, which a method such as AverageKKM uses" if aside else ""
    warn(
        f"{len(uncovered)} of {count(n_samples, 'sample')} {have} no entry in any view that is "
        f"used{only}: {named}. Nothing is known of {them}, and the label is {UNCOVERED}",
        UncoveredSamplesWarning,
    )
