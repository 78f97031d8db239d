"""Sparse matrices and arrays: the operations on rows in which they differ.

Sparse rows are CSR arrays of float32 or float64, without duplicates or stored zeros.
Results are sparse if zeros stay zeros, and otherwise dense, of the size of some rows by
some rows. Matrices known by two sparse factors have far fewer entries than the product.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from scipy.sparse import issparse

from mkclust.linalg.arrays import (
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


@dataclass(frozen=True, eq=False)
class FactoredMatrix:
    """The product of two sparse matrices, never written out: ``left @ right``."""

    left: Any = field(repr=False)  # CSR array, (n, q)
    # CSR array, (q, n); the transpose of `left` if symmetric.
    right: Any = field(repr=False)
    ndim: ClassVar[int] = 2
    __array_ufunc__ = None  # so that an array leaves its product with this to this

    @classmethod
    def symmetric(cls, factor: Any) -> "FactoredMatrix":
        """Return ``F F^T``."""
        factor = scipy.sparse.csr_array(factor)
        return cls(factor, factor.T.tocsr())

    shape = property(lambda self: (self.left.shape[0], self.right.shape[1]))
    dtype = property(lambda self: self.left.dtype)
    T = property(lambda self: FactoredMatrix(self.right.T.tocsr(), self.left.T.tocsr()))

    def __matmul__(self, X: Array) -> Float:
        return self.left @ (self.right @ X)

    def __getitem__(self, index: Any) -> "FactoredMatrix":
        """Return some rows, or some rows and columns: slices or indices."""
        rows, *columns = index if isinstance(index, tuple) else (index,)
        right = self.right
        if columns:
            right = self._factor_of_columns[columns[0]].T.tocsr()
        return FactoredMatrix(self.left[rows], right)

    @cached_property
    def _factor_of_columns(self) -> Any:
        """The transpose of the right factor, of which some rows are found quickly."""
        return self.right.T.tocsr()

    def astype(self, dtype: Any, copy: bool = True) -> "FactoredMatrix":
        """Return the same in another number type."""
        return FactoredMatrix(
            self.left.astype(dtype, copy=copy),
            self.right.astype(dtype, copy=copy),
        )

    @property
    def is_thin(self) -> bool:
        """Whether a sparse product takes fewer steps than a dense one."""
        steps = self.left.nnz * self.right.nnz / max(1, self.right.shape[0])
        # A step of a sparse product takes as long as 50 of a dense one.
        return 50 * steps <= self.left.shape[0] * np.prod(self.right.shape)

    def toarray(self) -> Float:
        """Write the entries out, (n, n)."""
        if self.is_thin:
            return (self.left @ self.right).toarray()
        return self.left.toarray() @ self.right.toarray()

    def add_to(self, matrix: Float, factor: float) -> None:
        """Add a multiple of the entries to a matrix, in place."""
        if not self.is_thin:
            matrix += factor * self.toarray()
            return
        product = (self.left @ self.right).tocoo()
        added = factor * product.data
        matrix[product.row, product.col] += added

    def diagonal(self) -> Float:
        """Return the diagonal of a square matrix, (n,)."""
        squares = self.left.multiply(self.right.T.tocsr())
        return np.asarray(squares.sum(axis=1)).reshape(-1)

    def sum(self, axis: int = 1, dtype: Any = np.float64) -> Float:
        """Return the row sums; others are not asked for."""
        sums = np.asarray(self.right.sum(axis=axis, dtype=dtype))
        return self.left @ sums.reshape(-1)


def is_sparse(matrix: Any) -> bool:
    """Return whether a matrix is SciPy's and sparse, or known by factors that are."""
    return isinstance(matrix, FactoredMatrix) or scipy.sparse.issparse(matrix)
