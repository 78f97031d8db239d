"""Sums of scaled matrices, ``sum_p c_p D_p K_p D_p``, each matrix read once: on host or device."""

from collections.abc import Sequence
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
from mkclust.linalg.parallel import FEWEST_BESIDE_OTHERS, for_each, for_each_range
from mkclust.linalg.threads import are_ours
from mkclust.types import Array, Float

# Entries combined at a time on a host: few enough to stay in a core's own cache. Where there are
# several threads, more.
BLOCK_ENTRIES, LARGE_BLOCK_ENTRIES = 2**16, 2**19
# Rows that mirror each other as one strip, and those of them that are added up at a time.
STRIP_ROWS, HALF_ROWS = 128, 32
# Entries written at a time on a device where what is in between is written, too.
SUM_ENTRIES = 2**24


def weighted_sum(
    coefficients: Float,
    matrices: Sequence[Any],
    scales: Sequence[Array | None],
    *,
    out: Array | None = None,
    precision: str | None = None,
    symmetric: bool = False,
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
    out : array of shape (n, n), default=None
        Memory to write to, in whose number type everything is computed then.
    precision : str, default=None
        The number type of dense sums, such as "float32"; None is the widest of the matrices'.
    symmetric : bool, default=False
        Whether all matrices are, and half of their entries tell the others.
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
            out = empty((n, n), matrices[0], precision or widest)
        _sum_on_device(coefficients, matrices, scales, out, symmetric, block_entries or SUM_ENTRIES)
        return out
    if out is None:
        dtype = np.result_type(*(matrix.dtype for matrix in matrices))
        out = np.empty((n, n), dtype if precision is None else precision)
    if symmetric and out.dtype == np.float32 and all(map(_is_double, matrices)):
        _sum_of_halves(coefficients, matrices, scales, out)
    else:
        _sum_on_host(coefficients, matrices, scales, out, block_entries)
    return out


def _sum_on_host(
    coefficients: Float,
    matrices: Sequence[Any],
    scales: Sequence[Float | None],
    out: np.ndarray,
    block_entries: int | None,
) -> None:
    """Add matrices up on the host, block by block on all its threads."""
    n, dtype = len(out), out.dtype
    factors = [dtype.type(c) for c in coefficients]
    columns = [None if scale is None else scale.astype(dtype) for scale in scales]
    # Few threads that are given much seldom wait for each other.
    is_large = len(matrices) * n * n >= FEWEST_BESIDE_OTHERS
    height = max(1, (block_entries or (LARGE_BLOCK_ENTRIES if is_large else BLOCK_ENTRIES)) // n)

    def fill(block: slice) -> None:
        """Write one block of rows of the sum."""
        total, scratch = out[block], np.empty((block.stop - block.start, n), dtype)
        factor = np.empty_like(scratch)  # takes no memory unless it is written to
        for p, matrix in enumerate(matrices):
            # The first term is written where the sum is to be.
            term, part, column = scratch if p else total, matrix[block], columns[p]
            if column is None:
                np.multiply(_dense(part, dtype, term), factors[p], out=term)
            else:
                np.multiply.outer(factors[p] * column[block], column, out=factor)
                np.multiply(_dense(part, dtype, term), factor, out=term)
            if p:
                total += term

    # Every block is computed alike on whichever thread, so the result does not depend on these.
    for_each_range(n, len(matrices) * n, fill, height=height)


def _is_double(matrix: Any) -> bool:
    """Return whether a matrix is an array in double precision."""
    return isinstance(matrix, np.ndarray) and matrix.dtype == np.float64


def _sum_of_halves(
    coefficients: Float,
    matrices: Sequence[np.ndarray],
    scales: Sequence[Float | None],
    out: np.ndarray,
) -> None:
    """Add symmetric matrices up on the host in single precision: one half tells the other."""
    n, dtype = len(out), out.dtype
    factors = [dtype.type(c) for c in coefficients]
    columns = [None if scale is None else scale.astype(dtype) for scale in scales]

    def fill(strip: slice) -> None:
        """Write some rows from the diagonal on, and the columns that mirror them."""
        room = np.empty((2, HALF_ROWS, n - strip.start), dtype)
        for rows in _parts_of(strip):
            term, factor = room[:, : rows.stop - rows.start]
            total = out[rows, strip.start :]
            for p, matrix in enumerate(matrices):
                _write_right_half(matrix, columns[p], rows, strip.start, factors[p], term, factor)
                if p:
                    total += term
                else:
                    total[...] = term
        out[strip.stop :, strip] = out[strip, strip.stop :].T

    for_each_range(n, len(matrices) * n, fill, height=STRIP_ROWS)


def _parts_of(strip: slice) -> list[slice]:
    """Return the rows of a strip that are computed at a time."""
    firsts = range(strip.start, strip.stop, HALF_ROWS)
    return [slice(first, min(first + HALF_ROWS, strip.stop)) for first in firsts]


def _write_right_half(
    matrix: np.ndarray,
    column: np.ndarray | None,
    rows: slice,
    first: int,
    coefficient: Any,
    out: np.ndarray,
    factor: np.ndarray,
) -> None:
    """Write some rows of a scaled matrix, from one column on, times a number."""
    out[...] = matrix[rows, first:]
    if column is None:
        out *= coefficient
    else:
        np.multiply.outer(coefficient * column[rows], column[first:], out=factor)
        out *= factor


class RoundedHalves:
    """Symmetric matrices of the host, scaled, in single precision: what half of them tells.

    They are for matrices of which many sums are taken, each of which reads less than half of what
    it would read of them in double precision.

    Parameters
    ----------
    matrices : sequence of m ndarrays of shape (n, n)
        In double precision.
    scales : sequence of m ndarrays of shape (n,) or None
        What the rows and columns of each are multiplied with; None leaves them.
    """

    def __init__(self, matrices: Sequence[np.ndarray], scales: Sequence[Float | None]):
        self.n, m = len(matrices[0]), len(matrices)
        columns = [None if scale is None else scale.astype(np.float32) for scale in scales]
        self._strips = list(ranges(self.n, STRIP_ROWS))
        # The rows of each strip from the diagonal on, (m, rows, columns).
        self._entries: list[np.ndarray] = [np.empty(0)] * len(self._strips)
        one = np.float32(1)

        def write(index: int) -> None:
            """Write one strip of each matrix."""
            strip = self._strips[index]
            shape = strip.stop - strip.start, self.n - strip.start
            entries, factor = np.empty((m, *shape), np.float32), np.empty(shape, np.float32)
            for rows in _parts_of(strip):
                here = slice(rows.start - strip.start, rows.stop - strip.start)
                for p, matrix in enumerate(matrices):
                    half = entries[p, here], factor[here]
                    _write_right_half(matrix, columns[p], rows, strip.start, one, *half)
            self._entries[index] = entries

        for_each(range(len(self._strips)), write, together=are_ours())

    def sum(self, coefficients: Float, out: np.ndarray | None = None) -> np.ndarray:
        """Return the sum of the matrices by their coefficients, (n, n)."""
        factors = coefficients.astype(np.float32)
        total = np.empty((self.n, self.n), np.float32) if out is None else out

        def fill(index: int) -> None:
            """Write some rows from the diagonal on, and the columns that mirror them."""
            strip, entries = self._strips[index], self._entries[index]
            rows = (factors @ entries.reshape(len(factors), -1)).reshape(entries.shape[1:])
            total[strip, strip.start :] = rows
            total[strip.stop :, strip] = rows[:, strip.stop - strip.start :].T

        for_each(range(len(self._strips)), fill, together=are_ours())
        return total


def _dense(part: Any, dtype: np.dtype, room: np.ndarray) -> np.ndarray:
    """Return a block of rows as an array of a type, converted in some room if it is not one."""
    if is_sparse(part):
        return part.toarray()
    if part.dtype == dtype:
        return part
    room[...] = part  # a conversion inside a multiplication takes four times as long
    return room


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
    symmetric: bool,
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
        fused.write_sum(matrices, rows, columns, out, symmetric=symmetric)
        return
    for some in ranges(n, max(1, block_entries // n)):
        block = zeros((some.stop - some.start, n), out, precision)
        for p, matrix in enumerate(matrices):
            part = astype(matrix[some, :], precision)
            block += (part * columns[p, :]) * rows[p, some][:, None]
        out[some, :] = block
