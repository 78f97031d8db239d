"""The similarities by which the samples of a fit are clustered."""

from typing import Any

import numpy as np

from mkclust.linalg import arrays_to_host, select, to_host
from mkclust.linalg.memory import require_memory
from mkclust.methods.training import in_order_of_fit, open_again, read_again
from mkclust.methods.uncovered import only_covered
from mkclust.stack import Stack
from mkclust.stack.discretize import normalize_rows
from mkclust.types import Float

# What the similarities of most methods are, and those of methods without coefficients.
SUM = "the sum of the kernels by their coefficients"
COSINES = "cosines between rows of the embedding; no kernels are mixed"


def mixed_kernel(model: Any, X: Any, samples: Any = None) -> Float:
    """Return the similarities among some samples, zero for those that are not covered, (s, s)."""
    indices = check_samples(samples, len(model.labels_))
    if model._covered is None:
        return _entries(model, X, indices)
    wanted = np.arange(len(model.labels_)) if indices is None else indices
    numbers = np.full(len(model.labels_), -1)
    numbers[model._covered] = np.arange(len(model._covered))
    places = np.flatnonzero(numbers[wanted] >= 0)
    entries = np.zeros((len(wanted), len(wanted)))
    entries[np.ix_(places, places)] = _entries(
        only_covered(model), in_order_of_fit(model, X), numbers[wanted[places]]
    )
    return entries


def _entries(model: Any, X: Any, indices: np.ndarray | None) -> Float:
    """Return the similarities among some samples on the host, exactly symmetric."""
    if not isinstance(X, Stack):
        is_exact = model.approximation is None
        X = open_again(model, X, on_the_fly=True) if is_exact else read_again(model, X)
    if not model._mixes_kernels:
        rows = model.embedding_ if indices is None else select(model.embedding_, indices)
        rows = normalize_rows(to_host(rows))
        entries = rows @ rows.T
    elif isinstance(X, Stack):
        entries = to_host(model._mixed_among(X, indices))
    else:
        entries = to_host(model._source.mixed_entries(model, X, indices))
    return (entries + entries.T) / 2


def check_samples(samples: Any, n_samples: int) -> np.ndarray | None:
    """Return the numbers of some samples, None for all, or say why there are no such samples."""
    indices = None
    if samples is not None:
        indices = np.asarray(arrays_to_host(samples))
        is_list = indices.ndim == 1 and (indices.dtype.kind in "iu" or not indices.size)
        if not is_list or np.any((indices < 0) | (indices >= n_samples)):
            raise ValueError(
                f"samples has the shape {indices.shape} and the type {indices.dtype}: pass a list "
                f"of numbers from 0 to {n_samples - 1}, or np.flatnonzero(mask) for a mask"
            )
        indices = indices.astype(np.intp)
    count = n_samples if indices is None else len(indices)
    require_memory(
        3 * 8 * count**2,
        f"writing out the similarities of {count} samples",
        "pass samples, the numbers of some of them",
    )
    return indices
