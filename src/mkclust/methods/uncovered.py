"""Samples of which nothing is known: they have no entry in any view that is used, and label -1."""

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from mkclust.exceptions import UncoveredSamplesWarning, warn
from mkclust.linalg import select
from mkclust.linalg.sparse_rows import spread_rows
from mkclust.methods.out_of_sample import active_kernels
from mkclust.samples.samples import Samples
from mkclust.stack import Stack
from mkclust.stack.observed import maps_of, observed_samples
from mkclust.text import count, join_words
from mkclust.types import Array

NOBODY = np.arange(0)
# The label of samples of which nothing is known.
UNCOVERED = -1
# What a fit learns of every sample, and what it learns of those.
PER_SAMPLE = {
    "labels_": UNCOVERED,
    "baseline_labels_": UNCOVERED,
    "embedding_": 0,
    "sample_weights_": 0,
}


def without_entries(empty: np.ndarray | None, is_used: Any = slice(None)) -> np.ndarray:
    """Return the numbers of the samples that no used view, or kernel, has, rising.

    Parameters
    ----------
    empty : ndarray of bool of shape (n_samples, n_views) or None
        Which views have nothing of which samples; None if all have something of all.
    is_used : ndarray of bool of shape (n_views,), default=slice(None)
        Which of the views are used.
    """
    return NOBODY if empty is None else np.flatnonzero(empty[:, is_used].all(axis=1))


def observed_of(stack: Stack) -> np.ndarray | None:
    """Return which kernels have which samples, (n, m) of bool; None if all have all."""
    features = stack.features
    return observed_samples(stack.kernels) if features is None else features.observed


def empty_in_kernels(stack: Stack, empty: np.ndarray | None = None) -> np.ndarray | None:
    """Return which kernels lack which samples, or have nothing of them, (n, m); None if none."""
    observed = observed_of(stack)
    if observed is None:
        return empty
    return ~observed if empty is None else empty | ~observed


def used_kernels(
    stack: Stack, coefficients: np.ndarray | None, active: Sequence[int] | None = None
) -> np.ndarray:
    """Return which kernels are used in a mix, (m,) of bool; all if a method mixes none.

    What was learned of a sample counts for it in all kernels but those that are set aside.

    Parameters
    ----------
    stack : Stack
        The kernels, as they are filled.
    coefficients : ndarray of shape (m,) or None
        Of the mix, if there is one.
    active : sequence of int, default=None
        The kernels that are not set aside; None for all.
    """
    if coefficients is None:
        return np.ones(stack.n_kernels, bool)
    if any(each is not None and each.fill is not None for each in maps_of(stack.kernels)):
        return active_kernels(stack, active)
    return np.asarray(coefficients) != 0


def kernels_that_have(numbers: np.ndarray, stack: Stack, empty: np.ndarray | None) -> list[str]:
    """Return the names of the kernels that have something of some samples."""
    has = np.zeros(stack.n_kernels, bool) if empty is None else (~empty[numbers]).any(axis=0)
    return [stack.names[p] for p in np.flatnonzero(has).tolist()]


def leaves_samples(stack: Stack, lost: np.ndarray) -> bool:
    """Return whether all kernels, each of which takes two samples, have them without some."""
    observed = observed_of(stack)
    return observed is None or bool((np.delete(observed, lost, 0).sum(axis=0) >= 2).all())


def uncovered_among_new(model: Any, samples: Samples) -> np.ndarray:
    """Return the numbers of the new samples that have no entry in any view that is used, rising.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted model.
    samples : Samples
        New samples, as they were read.
    """
    source, names = model._source, samples.names
    empty = source.empty(samples, model)
    coefficients = getattr(model, "coefficients_", None)
    if empty is None or coefficients is None:
        return without_entries(empty)
    is_learned = hasattr(model, "fill_history_")
    is_used = source.extension.active if is_learned else np.asarray(coefficients) != 0
    known = getattr(model, "view_names_in_", model.kernel_names_)
    views = range(len(is_used)) if source.kernel_views is None else source.kernel_views
    used = {known[view] for view in np.asarray(views)[is_used]}
    return without_entries(
        empty, np.array([name in used for name in (names if set(names) == set(known) else known)])
    )


def spread_over_all(
    learned: dict[str, Any], samples: Samples, fitted: np.ndarray | None, lost: np.ndarray
) -> np.ndarray:
    """Bring what was learned of the samples that are covered to all samples, in place.

    Parameters
    ----------
    learned : dict of str to object
        The attributes of a fit.
    samples : Samples
        All samples.
    fitted : ndarray of int or None
        The numbers of those that were fitted, rising; None if all were.
    lost : ndarray of int
        The numbers, among these, of those that only views have that are not used.

    Returns
    -------
    ndarray of int
        The numbers of the samples that are not covered, rising.
    """
    n = samples.n_samples
    everyone = np.arange(n)
    rows = everyone if fitted is None else fitted
    kept = np.delete(np.arange(len(rows)), lost)
    for name, value in PER_SAMPLE.items():
        if name in learned:
            learned[name] = spread_samples(_taken(learned[name], kept), rows[kept], n, value)
    uncovered = np.delete(everyone, rows[kept])
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


def only_covered(model: Any) -> Any:
    """Return a fitted model without the samples of which nothing is known; itself if none is."""
    covered = model._covered
    if covered is None:
        return model
    other = copy(model)
    del other._covered, other.uncovered_samples_
    for name in (*PER_SAMPLE, "sample_ids_", "observed_"):
        if hasattr(model, name):
            setattr(other, name, _taken(getattr(model, name), covered))
    if "observed_" in vars(other) and other.observed_.all():
        del other.observed_
    if not hasattr(model, "bank_") and not hasattr(model, "approximation_error_"):
        other.n_features_in_ = len(covered)
    return other


def _taken(values: Array, covered: np.ndarray) -> Array:
    """Return the values of the samples that are covered."""
    return select(values, covered)


def labels_in_common(one: Any, other: Any) -> tuple[Array, Array]:
    """Return the labels of two fits of the same samples, of those that both cover."""
    if one._covered is None and other._covered is None:
        return one.labels_, other.labels_
    both = np.flatnonzero((np.asarray(one.labels_) >= 0) & (np.asarray(other.labels_) >= 0))
    return _taken(one.labels_, both), _taken(other.labels_, both)


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
    uncovered: np.ndarray,
    n_samples: int,
    ids: np.ndarray | None,
    aside: Sequence[str] = (),
) -> None:
    """Warn of samples that have no entry in any view that is used.

    Parameters
    ----------
    uncovered : ndarray of int
        The numbers of these samples.
    n_samples : int
        How many samples there are.
    ids : ndarray of shape (n_samples,) or None
        Ids of the samples.
    aside : sequence of str, default=()
        Views without a weight that have some of them.
    """
    have, them = ("has", "it") if len(uncovered) == 1 else ("have", "them")
    named = join_words(uncovered if ids is None else ids[uncovered])
    only = f", only in {join_words(aside)}, which a method such as AverageKKM uses" if aside else ""
    warn(
        f"{len(uncovered)} of {count(n_samples, 'sample')} {have} no entry in any view that is "
        f"used{only}: {named}. Nothing is known of {them}, and the label is {UNCOVERED}",
        UncoveredSamplesWarning,
    )
