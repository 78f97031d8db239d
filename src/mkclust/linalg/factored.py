"""Matrices known by two sparse factors, with far fewer entries than the product."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from mkclust.types import Array, Float


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
            *(part.astype(dtype, copy=copy) for part in (self.left, self.right))
        )

    @property
    def is_thin(self) -> bool:
        """Whether a sparse product takes fewer steps than a dense one."""
        n_inner = max(1, self.right.shape[0])
        steps = self.left.nnz * self.right.nnz / n_inner
        # If a sparse product takes more than this share of the steps of a dense one,
        # factors are multiplied as dense matrices.
        sparse_steps = 1 / 50
        return steps <= sparse_steps * self.left.shape[0] * np.prod(self.right.shape)

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
        return np.asarray(self.left.multiply(self.right.T.tocsr()).sum(axis=1)).reshape(
            -1
        )

    def sum(self, axis: int = 1, dtype: Any = np.float64) -> Float:
        """Return the row sums; others are not asked for."""
        return self.left @ np.asarray(self.right.sum(axis=axis, dtype=dtype)).reshape(
            -1
        )


def is_sparse(matrix: Any) -> bool:
    """Return whether a matrix is SciPy's and sparse, or known by factors that are."""
    return isinstance(matrix, FactoredMatrix) or scipy.sparse.issparse(matrix)
