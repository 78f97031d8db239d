"""Rows of sparse matrices and of arrays: the operations in which they differ.

Sparse rows are CSR arrays of float32 or float64, without duplicates or stored zeros.
Results are sparse if zeros stay zeros, and otherwise dense, of the size of some rows by
some rows.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse import issparse

from mkclust.linalg import (
    astype,
    device,
    namespace,
    precision_of,
    select,
    to_device,
    to_host,
)
from mkclust.types import Array, Float


def as_csr(matrix: Any) -> Any:
    """Return a sparse matrix, or an array, as sparse rows, copied if needed."""
    rows = scipy.sparse.csr_array(matrix)
    rows.check_format(full_check=True)  # compiled code relies on its indices
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    if not rows.has_canonical_format or not np.all(rows.data):
        rows = rows.copy()  # the matrix may be the caller's
        rows.sum_duplicates()
        rows.eliminate_zeros()
    return rows


def dense_rows(rows: Array) -> Array:
    """Return rows as an array; meant for some rows, never for all of a view."""
    if issparse(rows):
        return rows.toarray()
    return rows


def as_rows_like(rows: Array, known: Array) -> Array:
    """Return new rows in the form of known ones: sparse, or on their device."""
    if issparse(known):
        return as_csr(rows)
    return to_device(dense_rows(rows), known)


def stored_entries(rows: Array) -> Array:
    """Return the entries held: all of an array, nonzero ones of sparse rows."""
    if issparse(rows):
        return rows.data
    return rows


def row_width(view: Any) -> int:
    """Return how many numbers a row takes; an index in sparse rows counts half."""
    if not issparse(view):
        return int(view.shape[1])
    per_row = view.nnz / max(1, view.shape[0])
    return max(1, math.ceil(1.5 * per_row))


def row_products(A: Array, B: Array) -> Array:
    """Return the inner products of all rows of A with all rows of B, an array."""
    if issparse(A) and issparse(B):
        return (A @ B.T).toarray()
    if issparse(B):
        return np.ascontiguousarray((B @ A.T).T)
    return A @ B.T


def finite_rows(rows: Array) -> Array:
    """Return which rows have finite entries only."""
    if issparse(rows):
        is_finite = np.isfinite(rows.data)
        return _counts(rows, ~is_finite) == 0
    xp = namespace(rows)
    return xp.all(xp.isfinite(rows), axis=1)


def zero_rows(rows: Array) -> np.ndarray:
    """Return which rows have no entry but zeros, on the host."""
    if issparse(rows):
        return _counts(rows, rows.data != 0) == 0
    return to_host(~namespace(rows).any(rows != 0, axis=1), None)


def _counts(rows: Any, flags: np.ndarray) -> np.ndarray:
    """Return how many of the entries that each sparse row holds are flagged."""
    counts = np.append(0, np.cumsum(flags))
    ends = rows.indptr[1:]
    starts = rows.indptr[:-1]
    return counts[ends] - counts[starts]


def spread_rows(rows: Array, index: np.ndarray, n_rows: int, value: float) -> Array:
    """Return n_rows rows: these at the given index, all others filled with a value."""
    xp = namespace(rows)
    sources = np.full(n_rows, rows.shape[0])
    sources[index] = np.arange(rows.shape[0])
    # Not every library writes to rows by index: all are taken from these and one more.
    other = xp.full(
        (1, *rows.shape[1:]),
        value,
        dtype=rows.dtype,
        device=device(rows),
    )
    return select(xp.concat([rows, other]), sources)


def are_equal_rows(A: Array, B: Array) -> bool:
    """Return whether two views hold the same numbers, in the same form."""
    if A is B:
        return True
    if A.shape != B.shape or issparse(A) != issparse(B):
        return False
    if issparse(A):
        return (A != B).nnz == 0
    return bool(namespace(A).all(A == B))


def entrywise(function: Callable[[Array], Array], rows: Array) -> Array:
    """Apply a function to every entry; zero must stay zero."""
    if not issparse(rows):
        return function(rows)
    return scipy.sparse.csr_array(
        (function(rows.data), rows.indices, rows.indptr), rows.shape
    )


def scale_columns(rows: Array, factors: Float) -> Array:
    """Multiply every column with a number, in the number type of the rows."""
    factors = to_device(factors, rows, precision_of(rows))
    if issparse(rows):
        return rows @ scipy.sparse.diags_array(factors)
    return rows * factors


def divide_rows(rows: Array, values: Array) -> Array:
    """Divide every row by a number, in the precision of the rows."""
    values = astype(values, precision_of(rows))
    if issparse(rows):
        return scipy.sparse.diags_array(1 / values) @ rows
    return rows / values[:, None]


def subtract_origin(origin: Array, rows: Array) -> Array:
    """Subtract an origin from rows, in float64; sparse rows are not moved."""
    if issparse(rows):
        return rows.astype(np.float64)
    return astype(rows, "float64") - origin


def spread_links(links: Any, samples: np.ndarray, n: int) -> Any:
    """Return links among some of n samples, given their numbers, as links among all."""
    given = links.tocoo()
    places = (samples[given.row], samples[given.col])
    return scipy.sparse.csr_array((given.data, places), (n, n))
