"""One kernel held as a matrix, centered and scaled on the fly, and several summed up to one."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mkclust.linalg import (
    astype,
    is_foreign,
    is_on_accelerator,
    is_sparse,
    namespace,
    precision_of,
    ranges,
    rounding_of,
    select,
    set_diagonal,
    side_by_side,
    to_device,
)
from mkclust.linalg.algebra import symmetric_product
from mkclust.linalg.operators import ExactOperator
from mkclust.linalg.parallel import (
    sparse_product,
    thin_product,
)
from mkclust.stack.base import Standardization
from mkclust.stack.checks import write_symmetric_part
from mkclust.stack.row_matrix import RowMatrix
from mkclust.types import Array

# Up to so many columns, an accelerator multiplies a matrix faster from the right.
NARROW = 32
# A kernel is rounded to float32 where its self-similarities are of this size, and where centering
# leaves this share of them: what it takes away, it takes from the digits.
SINGLE_SIZES, LEAST_CENTERED = (1e-20, 1e20), 0.03
# Rows of a combination that are centered at a time when it is written out.
DENSE_ROWS = 512
# By so many roundings an entry of a rounded combination is wrong at most, root mean square: of the
# entries of each kernel, of their scales, and of the sum.
ROUNDINGS = 2


def _product(matrix: Array, X: Array) -> Array:
    """Multiply a symmetric matrix with a thin one, in the matrix's own precision.

    The product is in the precision of the thin one.
    """
    if is_sparse(matrix):
        return np.asarray(matrix @ X.astype(matrix.dtype, copy=False), dtype=X.dtype)
    if not hasattr(matrix, "__array__") and not is_foreign(matrix):
        return matrix @ X  # known by its rows, which see to all that
    columns, precision = astype(X, precision_of(matrix)), precision_of(X)
    if X.shape[1] == 1 and isinstance(matrix, np.ndarray) and matrix.flags.forc:
        return astype(symmetric_product(matrix, columns[:, 0]), precision)[:, None]
    if X.shape[1] <= NARROW and is_on_accelerator(matrix):
        return astype(matrix @ columns, precision)
    # By symmetry K X = (X^T K)^T, and that is the order BLAS does markedly faster.
    if isinstance(matrix, np.ndarray):
        return astype(thin_product(columns.T, matrix), precision).T
    return astype(columns.T @ matrix, precision).T


class HeldMatrix:
    """What an operator answers that holds a matrix of any library, kind and place."""

    matrix: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.matrix.shape

    @property
    def like(self) -> Array:
        """An array that says where the vectors live."""
        return getattr(self.matrix, "like", self.matrix)


@dataclass(frozen=True)
class StandardizedKernel(HeldMatrix, ExactOperator):
    """One kernel, centered and scaled on the fly; the matrix itself is neither copied nor changed.

    Attributes
    ----------
    matrix : array of any library, memmap or sparse matrix of shape (n, n)
        The kernel as given.
    standardization : Standardization
        How it is centered and scaled.
    shift : float
        Multiple of the identity that is added between centering and scaling.
    dropped : array of shape (n, r) or None
        Orthonormal directions that the centered kernel lost when its negative part was dropped.
    """

    matrix: Any
    standardization: Standardization
    shift: float = 0.0
    dropped: Array | None = None

    @property
    def diagonal_shift(self) -> Array:
        """What the shift adds to the diagonal in the end, (n,)."""
        return self.shift * self.standardization.scale_or_ones**2

    def __matmul__(self, X: Array) -> Array:
        """Multiply with a thin matrix, (n, b) to (n, b)."""
        scale, centered = self.standardization.scale, self.standardization.row_means is not None
        Y = _product(self.matrix, self.standardization.transform_columns(X))
        if centered:
            Y = Y - namespace(Y).mean(Y, axis=0)
        if scale is not None:
            Y = Y * scale[:, None]
        return Y + self.diagonal_shift[:, None] * X if self.shift else Y

    def times_members(self, members: Any) -> Array:
        """Multiply with a sparse matrix of the host, given as its transpose, (b, n) to (n, b)."""
        matrix, standardization = self.matrix, self.standardization
        is_plain = isinstance(matrix, np.ndarray) and matrix.dtype == np.float64
        if not is_plain or not matrix.flags.c_contiguous or self.shift:
            return self @ to_device(members.toarray().T, self.like)
        scale = standardization.scale_or_ones
        weights = members.multiply(scale).tocsr()
        Y = sparse_product(weights, matrix).T
        if standardization.row_means is not None:
            sums = np.asarray(weights.sum(axis=1)).reshape(-1)
            Y -= np.outer(standardization.row_means - standardization.mean, sums)
            Y -= weights @ standardization.row_means
        return Y * scale[:, None]

    def raw_projection(self, P: Array) -> Array:
        """Return what the kernel as it came is multiplied with where this one is with P, (n, b).

        Of centered similarities, be they of new samples, the dropped directions do not count.
        """
        if self.dropped is None:
            return P
        scale = self.standardization.scale_or_ones[:, None]
        return P - self.dropped @ (self.dropped.T @ (P * scale)) / scale

    def dense(self) -> Array:
        """Write the entries out, (n, n)."""
        entries = self.block(slice(None), slice(None))
        # What is known by its rows is not known to be exactly symmetric.
        is_known = not isinstance(self.matrix, RowMatrix)
        return entries if is_known else write_symmetric_part(entries, entries)

    def block(self, rows: Array | slice, columns: Array | slice) -> Array:
        """Return the entries of some rows and columns."""
        if self.is_array and isinstance(rows, np.ndarray) and isinstance(columns, np.ndarray):
            part = self.entries(rows, columns)  # no more of the rows than those columns
        else:
            part = select(select(self.matrix, rows), columns, axis=1)
            part = part.toarray() if is_sparse(part) else part
        part = self.standardization.entries(part, rows, columns)
        if self.shift:
            everyone = to_device(np.arange(self.shape[0]), part)
            same = select(everyone, rows)[:, None] == select(everyone, columns)
            part += astype(same, "float64") * select(self.diagonal_shift, columns)
        return part

    @property
    def is_array(self) -> bool:
        """Whether the kernel as given is an array of the host."""
        return isinstance(self.matrix, np.ndarray)

    def entries(self, rows: Any, columns: Any) -> np.ndarray:
        """Return entries of an array of the host as given: slices of it, or of some samples."""
        if isinstance(rows, slice):
            return self.matrix[rows, columns]
        return self.matrix[np.ix_(rows, columns)]

    @property
    def bears_single_precision(self) -> bool:
        """Whether it is a dense matrix in float64, and some digits are left of it in float32."""
        is_dense = self.is_array or is_on_accelerator(self.matrix)
        if not is_dense or precision_of(self.matrix) != "float64":
            return False
        xp, standardization = namespace(self.matrix), self.standardization
        diagonals = standardization.diagonal, standardization.centered_diagonal()
        raw, centered = (float(xp.mean(xp.abs(each))) for each in diagonals)
        return SINGLE_SIZES[0] < LEAST_CENTERED * raw < centered < SINGLE_SIZES[1]

    def diagonal(self) -> Array:
        """Return the diagonal, (n,)."""
        scale, lengths = self.standardization.scale, self.standardization.centered_diagonal()
        lengths = lengths + self.shift
        return lengths if scale is None else lengths * scale**2


@dataclass(frozen=True)
class Combination(HeldMatrix):
    """``sum_p c_p K_p`` as one matrix, with its centering as a thin correction beside it.

    It equals ``matrix - left right^T - right left^T + diag(shift)``, of which all is in single
    precision where it is rounded.
    """

    matrix: Any
    left: Array
    right: Array
    shift: Array | None

    @property
    def is_rounded(self) -> bool:
        """Whether it is in single precision although the kernels are not."""
        return precision_of(self.left) == "float32"

    def __matmul__(self, X: Array) -> Array:
        """Multiply with a thin matrix, (n, b) to (n, b)."""
        precision = precision_of(X)
        X = astype(X, precision_of(self.left))
        Y = _product(self.matrix, X)
        if self.left.shape[1]:
            # One product each way.
            Y = Y - self._both @ (self._both_turned.T @ X)
        return astype(Y if self.shift is None else Y + self.shift[:, None] * X, precision)

    @cached_property
    def _both(self) -> Array:
        """Both sides of the correction, (n, 2 m)."""
        return side_by_side(self.left, self.right)

    @cached_property
    def _both_turned(self) -> Array:
        """The same, right before left."""
        return side_by_side(self.right, self.left)

    def rounding_error(self) -> float:
        """Return how far eigenvalues are from those of the kernels' own precision, at most."""
        if not self.is_rounded:
            return 0.0
        xp = namespace(self.matrix)
        # Every entry is rounded a few times, none by more than half a unit of its last digit.
        return (
            ROUNDINGS
            * rounding_of(self.matrix)
            * float(xp.linalg.vector_norm(xp.reshape(self.matrix, (-1,))))
        )

    def dense(self) -> Array:
        """Write the entries out, (n, n)."""
        matrix = self.matrix
        matrix = matrix.toarray() if is_sparse(matrix) else matrix
        xp = namespace(matrix)
        M = xp.astype(matrix, xp.float64)
        for rows in ranges(self.shape[0] if self.left.shape[1] else 0, DENSE_ROWS):
            M[rows, :] -= self.left[rows, :] @ self.right.T + self.right[rows, :] @ self.left.T
        if self.shift is not None:
            set_diagonal(M, namespace(M).linalg.diagonal(M) + self.shift)
        return M
