"""New samples of precomputed kernels: which kernels have which of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mkclust.linalg import is_sparse, namespace, select, to_host
from mkclust.samples.row_source import RowSource
from mkclust.samples.samples import Samples, single_kernels
from mkclust.stack import as_numbers
from mkclust.text import list_first
from mkclust.types import Array


def without_missing_rows(
    samples: Samples, names: Sequence[str], fitted: np.ndarray | None, observed: Any
) -> Samples:
    """Return similarities of new samples, of each kernel to the samples and of those that it has.

    Parameters
    ----------
    samples : Samples
        Kernels of shape (n_new, n_samples), or with a column for each training sample that a
        kernel has. A row of NaN is a new sample that a kernel lacks.
    names : sequence of str
        Names of the kernels that a model was fitted on.
    fitted : ndarray of bool of shape (n_samples, n_kernels) or None
        Which of them have which training samples; None where all have all.
    observed : array of bool of shape (n_new, n_kernels) or None
        Which of them have which new samples; None where rows of NaN tell.

    Returns
    -------
    Samples
        As they were where nothing is missing.
    """
    if isinstance(samples.whole, RowSource) or len(names) != _count(samples):
        return samples  # refused elsewhere
    if samples.names_given and set(samples.names) == set(names):
        samples = samples.only(list(names))
    parts = list(samples.parts) if samples.whole is None else single_kernels(samples.whole)
    parts = [as_numbers(part, name) for part, name in zip(parts, names, strict=True)]
    if any(getattr(part, "ndim", 0) != 2 for part in parts):
        return samples  # refused elsewhere
    if fitted is not None:
        parts = [_of_columns(part, column) for part, column in zip(parts, fitted.T, strict=True)]
    n_new = int(parts[0].shape[0])
    if any(part.shape[0] != n_new for part in parts):
        return samples  # refused elsewhere
    missing = np.stack([_missing_rows(part) for part in parts], axis=1)
    if observed is not None:
        given = np.asarray(observed)
        if given.shape != missing.shape or given.dtype != bool:
            raise ValueError(
                f"observed is an array of shape {given.shape} and type {given.dtype}: pass one of "
                f"bool of shape {missing.shape}, new samples by kernels"
            )
        missing |= ~given
    if not missing.any():
        return replace(samples, parts=tuple(parts), whole=None, names=tuple(names))
    if (nowhere := np.flatnonzero(missing.all(axis=1))).size:
        raise ValueError(
            f"{len(nowhere)} of {n_new} new samples are in no kernel ({list_first(nowhere)}): "
            "leave them out"
        )
    rows = [np.flatnonzero(~column) for column in missing.T]
    seen = tuple(select(part, each) for part, each in zip(parts, rows, strict=True))
    return replace(samples, parts=seen, whole=None, names=tuple(names), missing=missing)


def _count(samples: Samples) -> int:
    """Return how many kernels there are."""
    return len(samples.parts) if samples.whole is None else int(samples.whole.shape[0])


def _of_columns(part: Array, has: np.ndarray) -> Array:
    """Return the columns of the training samples that a kernel has."""
    return select(part, np.flatnonzero(has), axis=1) if part.shape[1] == len(has) else part


def _missing_rows(part: Array) -> np.ndarray:
    """Return which rows hold nothing but NaN, (n_new,) of bool."""
    if is_sparse(part) or not part.shape[1]:
        return np.zeros(part.shape[0], bool)
    xp = namespace(part)
    candidates = to_host(xp.isnan(part[:, 0]), None)
    if candidates.any():
        some = np.flatnonzero(candidates)
        candidates[some] = to_host(xp.all(xp.isnan(select(part, some)), axis=1), None)
    return candidates
