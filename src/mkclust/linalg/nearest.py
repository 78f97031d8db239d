"""The smallest or largest entries of many rows, and where they are."""

from typing import Any

import numpy as np
import scipy.sparse

from mkclust.linalg.arrays import copy_array, is_foreign, namespace, to_device, to_host
from mkclust.types import Array

# A row is cut into pieces of so many entries, of which the extreme one is looked at
# first.
PIECE = 32


def largest(rows: Array, count: int) -> Array:
    """Return the largest entries of every row, falling, (n, count)."""
    xp = namespace(rows)
    if isinstance(rows, np.ndarray):
        found = np.partition(rows, rows.shape[1] - count, axis=1)[:, -count:]
        return np.sort(found, axis=1)[:, ::-1]
    if hasattr(xp, "topk"):  # torch: faster than to sort
        return xp.topk(rows, count, dim=1).values
    return xp.flip(xp.sort(rows, axis=1)[:, -count:], axis=1)


def kth_smallest(rows: Array, k: int) -> Array:
    """Return the k-th smallest entry of every row, as a column of its own.

    A slice of the sorted rows would keep all of them in memory as long as it lives.
    """
    xp = namespace(rows)

    if not is_foreign(rows):
        ordered = np.partition(rows, k - 1, axis=1)
    elif hasattr(xp, "topk"):  # torch: faster than to sort
        ordered = xp.topk(rows, k, dim=1, largest=False).values
    else:
        ordered = xp.sort(rows, axis=1)

    return copy_array(ordered[:, k - 1 : k])


def lower_bounds(rows: Array, count: int) -> Array:
    """Return for every row a number that at least so many of its entries reach, (n, 1).

    Nearly as large as possible: the largest entries of pieces stand for all of a row.
    """
    pieces = _pieces(rows, count)
    if pieces is not None:
        rows = namespace(rows).max(pieces, axis=1)
    return largest(rows, count)[:, -1:]


def upper_bounds(rows: Array, count: int) -> Array:
    """Return for every row a number that at least so many of its entries do not exceed.

    Nearly as small as possible: the least entries of pieces stand for all of a row.
    """
    pieces = _pieces(rows, count)
    if pieces is not None:
        rows = namespace(rows).min(pieces, axis=1)
    return kth_smallest(rows, count)


def _pieces(rows: Array, count: int) -> Array | None:
    """Return most of every row in pieces, (n, PIECE, n_pieces), if there are enough.

    A piece is of every so many columns, so that entries are compared in their order.
    """
    n, width = rows.shape
    n_pieces = width // PIECE
    # Pieces are only worth it if they are four times the entries looked for.
    if n_pieces < 4 * count:
        return None
    whole = rows[:, : n_pieces * PIECE]
    return namespace(rows).reshape(whole, (n, PIECE, n_pieces))


def places_of(is_true: Array) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of the entries that are true, row by row, on the host."""
    if isinstance(is_true, np.ndarray):
        return np.divmod(np.flatnonzero(is_true), is_true.shape[1])
    rows, columns = namespace(is_true).nonzero(is_true)
    return to_host(rows, np.int64), to_host(columns, np.int64)


def true_at(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> Any:
    """Return a sparse array that is true in places given row by row."""
    ends = np.searchsorted(rows, np.arange(shape[0] + 1))
    marks = np.ones(len(rows), bool)
    return scipy.sparse.csr_array((marks, columns, ends), shape)


def entries_at(matrix: Array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return single entries, on the host."""
    if isinstance(matrix, np.ndarray):
        return matrix[rows, columns]
    xp = namespace(matrix)
    flat = xp.reshape(matrix, (-1,))
    places = to_device(rows * matrix.shape[1] + columns, matrix)
    return to_host(xp.take(flat, places, axis=0), None)
