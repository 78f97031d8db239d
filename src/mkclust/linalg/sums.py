"""Sums of scaled matrices, ``sum_p c_p D_p K_p D_p``, each matrix read once: on host or device."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse

from mkclust.linalg.arrays import (
    astype,
    empty,
    is_foreign,
    namespace,
    precision_of,
    ranges,
    to_device,
    zeros,
)
from mkclust.linalg.factored import FactoredMatrix, factored_sum, is_sparse
from mkclust.linalg.in_triton import written_in_triton
from mkclust.linalg.threads import n_threads
from mkclust.types import Array, Float

# Entries combined at a time on a host: few enough to stay in a core's own cache, many enough that
# threads seldom wait for each other.
BLOCK_ENTRIES = 2**17
# Entries written at a time on a device where what is in between is written, too.
SUM_ENTRIES = 2**24


def weighted_sum(
    coefficients: Float,
    matrices: Sequence[Any],
    scales: Sequence[Array | None],
    *,
    whole: Any = None,
    out: Array | None = None,
    block_entries: int | None = None,
) -> Array:
    """Return the sum of matrices by their coefficients, rows and columns scaled.

    Parameters
    ----------
    coefficients : ndarray of shape (m,)
        One a matrix.
    matrices : sequence of m matrices of shape (n, n)
        Dense, sparse or factored; of one library, on one device.
    scales : sequence of m arrays of shape (n,) or None
        What the rows and columns of each are multiplied with; None leaves them.
    whole : ndarray of shape (m, n, n), default=None
        The one contiguous array that the matrices are slices of, where there is one.
    out : array of shape (n, n), default=None
        Memory to write to.
    block_entries : int, default=None
        How many entries to write at a time; None writes as many as are fastest where they live.

    Returns
    -------
    array of shape (n, n)
        Sparse, or factored, where all matrices are.
    """
    if all(scipy.sparse.issparse(matrix) for matrix in matrices):
        parts = zip(coefficients, matrices, scales, strict=True)
        return sum(_scaled(matrix, c, scale) for c, matrix, scale in parts).tocsr()
    if all(isinstance(matrix, FactoredMatrix) for matrix in matrices):
        return factored_sum(coefficients, matrices, scales)
    n = matrices[0].shape[0]
    if is_foreign(matrices[0]):
        if out is None:
            widest = max(map(precision_of, matrices))
            out = empty((n, n), matrices[0], widest)
        _sum_on_device(coefficients, matrices, scales, out, block_entries or SUM_ENTRIES)
        return out
    if out is None:
        out = np.empty((n, n), np.result_type(*(matrix.dtype for matrix in matrices)))
    if whole is not None and all(scale is None for scale in scales):
        flat = whole.reshape(len(matrices), -1)
        np.dot(coefficients.astype(flat.dtype), flat, out=out.reshape(-1))
        return out
    _sum_on_host(coefficients, matrices, scales, whole, out, block_entries or BLOCK_ENTRIES)
    return out


def _sum_on_host(
    coefficients: Float,
    matrices: Sequence[Any],
    scales: Sequence[Float | None],
    whole: Any,
    out: np.ndarray,
    block_entries: int,
) -> None:
    """Add matrices up on the host, block by block on all its threads."""
    n = len(out)
    columns = np.array([np.ones(n) if scale is None else scale for scale in scales], out.dtype)
    rows = (coefficients[:, None] * columns).astype(out.dtype)
    height = max(1, block_entries // n)

    def fill(start: int) -> None:
        """Write one block of rows of the sum."""
        block = slice(start, start + height)
        if whole is not None:
            np.einsum("pi,pj,pij->ij", rows[:, block], columns, whole[:, block], out=out[block])
            return
        out[block] = 0
        scratch = np.empty_like(out[block])
        for row, column, matrix in zip(rows, columns, matrices, strict=True):
            part = matrix[block]
            np.multiply.outer(row[block], column, out=scratch)
            scratch *= part.toarray() if is_sparse(part) else part
            out[block] += scratch

    starts = range(0, n, height)
    if len(starts) == 1:  # to start a thread takes longer than a small sum
        fill(0)
        return
    # NumPy lets go of the interpreter lock inside these loops, and every block is computed
    # alike on whichever thread, so the result does not depend on their number.
    with ThreadPoolExecutor(n_threads()) as pool:
        list(pool.map(fill, starts))


def _scaled(matrix: Array, c: float, scale: Float | None) -> Array:
    """Return a sparse matrix times a number, and times the scale of its rows and columns."""
    one = matrix.dtype.type
    if scale is None:
        return matrix * one(c)
    diagonal = scipy.sparse.diags_array(scale.astype(matrix.dtype))
    return diagonal @ matrix @ (diagonal * one(c))


def _sum_on_device(
    coefficients: Float,
    matrices: Sequence[Array],
    scales: Sequence[Array | None],
    out: Array,
    block_entries: int,
) -> None:
    """Write ``sum_p c_p D_p K_p D_p`` to ``out``, arrays of one library that is not NumPy."""
    xp, n, precision = namespace(out), out.shape[0], precision_of(out)
    ones = zeros((n,), out, precision) + 1.0
    columns = xp.stack([ones if s is None else astype(s, precision) for s in scales])
    rows = columns * to_device(coefficients, out, precision)[:, None]
    # Formulas of the array API write and read again what is between their steps, which is seven
    # times as much as the matrices.
    fused = written_in_triton("fused", out)
    if fused is not None and fused.fits(matrices, out):
        fused.write_sum(matrices, rows, columns, out)
        return
    for some in ranges(n, max(1, block_entries // n)):
        block = zeros((some.stop - some.start, n), out, precision)
        for p, matrix in enumerate(matrices):
            part = astype(matrix[some, :], precision)
            block += (part * columns[p, :]) * rows[p, some][:, None]
        out[some, :] = block
