"""Kernels held as matrices: NumPy arrays, memory maps and SciPy sparse matrices."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse

from mkclust.memory import require_memory
from mkclust.stack.base import Operator, Standard
from mkclust.types import Array, Float

# Entries combined at a time: few enough to stay in a core's own cache, many enough that threads
# seldom wait for each other.
BLOCK_ENTRIES = 2**17


def _product(matrix: Array, X: Array) -> Array:
    """Multiply a symmetric matrix with a thin one, in the matrix's own precision."""
    if scipy.sparse.issparse(matrix):
        return np.asarray(matrix @ X.astype(matrix.dtype, copy=False), dtype=np.float64)
    # By symmetry K X = (X^T K)^T, and that is the order BLAS does markedly faster.
    thin = np.asarray(X.T, dtype=matrix.dtype)
    return np.asarray(thin @ matrix, dtype=np.float64).T


@dataclass(frozen=True)
class StandardizedKernel:
    """One kernel, centered and scaled on the fly; the matrix itself is neither copied nor changed.

    Attributes
    ----------
    matrix : ndarray, memmap or sparse matrix of shape (n, n)
        The kernel as given.
    standard : Standard
        How it is centered and scaled.
    shift : float
        Multiple of the identity that is added between centering and scaling.
    """

    matrix: Any
    standard: Standard
    shift: float = 0.0

    @property
    def diagonal_shift(self) -> Float:
        """What the shift adds to the diagonal in the end, (n,)."""
        scale = self.standard.scale
        return self.shift * (np.ones(self.shape[0]) if scale is None else scale**2)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.matrix.shape

    def __matmul__(self, X: Array) -> Array:
        """Multiply with a thin matrix, (n, b) to (n, b)."""
        scale, centered = self.standard.scale, self.standard.row_means is not None
        Y = X if scale is None else X * scale[:, None]
        if centered:
            Y = Y - Y.mean(axis=0)
        Y = _product(self.matrix, Y)
        if centered:
            Y = Y - Y.mean(axis=0)
        if scale is not None:
            Y = Y * scale[:, None]
        return Y + self.diagonal_shift[:, None] * X if self.shift else Y

    def dense(self) -> Float:
        """Write the entries out, (n, n)."""
        return self.block(slice(None), slice(None))

    def block(self, rows: Array | slice, columns: Array | slice) -> Float:
        """Return the entries of some rows and columns."""
        part = self.matrix[rows][:, columns]
        part = part.toarray() if scipy.sparse.issparse(part) else part
        part = np.array(part, dtype=np.float64)
        standard = self.standard
        if standard.row_means is not None:
            part -= standard.row_means[rows][:, None]
            part -= standard.row_means[columns] - standard.mean
        if standard.scale is not None:
            part *= standard.scale[rows][:, None]
            part *= standard.scale[columns]
        if self.shift:
            everyone = np.arange(self.shape[0])
            same = np.equal.outer(everyone[rows], everyone[columns])
            part += same * self.diagonal_shift[columns]
        return part

    def diagonal(self) -> Float:
        """Return the diagonal, (n,)."""
        lengths = self.standard.centered_diagonal() + self.shift
        return lengths if self.standard.scale is None else lengths * self.standard.scale**2


@dataclass(frozen=True)
class Combination:
    """``sum_p c_p K_p`` as one matrix, with its centering as a thin correction beside it.

    It equals ``matrix - left right^T - right left^T + diag(shift)``.
    """

    matrix: Any
    left: Float
    right: Float
    shift: Float | None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.matrix.shape

    def __matmul__(self, X: Array) -> Array:
        """Multiply with a thin matrix, (n, b) to (n, b)."""
        Y = _product(self.matrix, X)
        if self.left.shape[1]:
            Y = Y - self.left @ (self.right.T @ X) - self.right @ (self.left.T @ X)
        return Y if self.shift is None else Y + self.shift[:, None] * X

    def dense(self) -> Float:
        """Write the entries out, (n, n)."""
        matrix = self.matrix
        M = np.array(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix, np.float64)
        outer = self.left @ self.right.T
        M -= outer + outer.T
        if self.shift is not None:
            M[np.diag_indices_from(M)] += self.shift
        return M


@dataclass(frozen=True)
class DenseStack:
    """Several kernels held as matrices.

    Attributes
    ----------
    kernels : sequence of StandardizedKernel
        The kernels.
    names : tuple of str
        Their names.
    standards : sequence of Standard
        How the kernels as given, and those of new samples, are centered and scaled.
    given : sequence of matrices of shape (n, n)
        The kernels as they came, before any repair.
    whole : ndarray of shape (m, n, n) or None
        The one contiguous array that the matrices are slices of, where there is one: combined
        by a single BLAS call.
    """

    kernels: Sequence[StandardizedKernel]
    names: tuple[str, ...]
    standards: Sequence[Standard] = field(repr=False)
    given: Sequence[Any] = field(repr=False)
    whole: Any = field(default=None, repr=False)

    @property
    def repaired(self) -> bool:
        """Whether an indefinite kernel was clipped or shifted."""
        pairs = zip(self.kernels, self.given, strict=True)
        return any(kernel.shift or kernel.matrix is not given for kernel, given in pairs)

    @property
    def precision(self) -> float:
        """Relative rounding of the entries."""
        return max(float(np.finfo(matrix.dtype).eps) for matrix in self.given)

    @property
    def n_kernels(self) -> int:
        """Number of kernels, m."""
        return len(self.kernels)

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return self.kernels[0].shape[0]

    @property
    def compressed(self) -> bool:
        """Whether ``n_samples`` counts coordinates that stand for many more samples."""
        return False

    def lift(self, *vectors: Array) -> tuple[Array, ...]:
        """Return vectors over all samples, from vectors as long as ``n_samples``: themselves."""
        return vectors

    def lift_some(self, vectors: Array) -> Array:
        """Return the same for samples that stand for all: here all do."""
        return vectors

    def kernel(self, index: int) -> StandardizedKernel:
        """Return one kernel, as something that supports ``@``."""
        return self.kernels[index]

    def apply(self, V: Array) -> Array:
        """Multiply every kernel with V, (n, b) to (m, n, b), in one pass over the data."""
        products = np.empty((self.n_kernels, V.shape[1], self.n_samples))
        for row, kernel in zip(products, self.kernels, strict=True):
            row[...] = (kernel @ V).T
        return products.transpose(0, 2, 1)

    def combine(self, coefficients: Float, out: Operator | None = None) -> Operator:
        """Return ``sum_p c_p K_p``, in the memory of an earlier combination where given."""
        if self.n_kernels == 1 and coefficients[0] == 1:
            return self.kernels[0]  # nothing to add up, so nothing to copy
        left, right, shift = [], [], None
        for c, kernel in zip(coefficients, self.kernels, strict=True):
            standard = kernel.standard
            if standard.row_means is not None:
                scale = np.ones(self.n_samples) if standard.scale is None else standard.scale
                right.append(scale)
                left.append(c * scale * (standard.row_means - standard.mean / 2))
            if kernel.shift:
                shift = c * kernel.diagonal_shift + (0 if shift is None else shift)
        thin = np.empty((0, self.n_samples))
        return Combination(
            self._sum(coefficients, out.matrix if isinstance(out, Combination) else None),
            np.array(left).T if left else thin.T,
            np.array(right).T if right else thin.T,
            shift,
        )

    def _sum(self, coefficients: Float, out: Array | None) -> Array:
        """Return the sum of the scaled, uncentered matrices."""
        matrices = [kernel.matrix for kernel in self.kernels]
        scales = [kernel.standard.scale for kernel in self.kernels]
        if all(scipy.sparse.issparse(matrix) for matrix in matrices):
            return sum(
                _scaled(matrix, c, scale)
                for c, matrix, scale in zip(coefficients, matrices, scales, strict=True)
            ).tocsr()
        n = self.n_samples
        if out is None:
            out = np.empty((n, n), np.result_type(*(matrix.dtype for matrix in matrices)))
        if self.whole is not None and all(scale is None for scale in scales):
            flat = self.whole.reshape(len(matrices), -1)
            np.dot(coefficients.astype(flat.dtype), flat, out=out.reshape(-1))
            return out

        columns = np.array([np.ones(n) if scale is None else scale for scale in scales], out.dtype)
        rows = (coefficients[:, None] * columns).astype(out.dtype)
        height = max(1, BLOCK_ENTRIES // n)

        def fill(start: int) -> None:
            block = slice(start, start + height)
            if self.whole is not None:
                parts = rows[:, block], columns, self.whole[:, block]
                np.einsum("pi,pj,pij->ij", *parts, out=out[block])
                return
            out[block] = 0
            scratch = np.empty_like(out[block])
            for row, column, matrix in zip(rows, columns, matrices, strict=True):
                part = matrix[block]
                np.multiply.outer(row[block], column, out=scratch)
                scratch *= part.toarray() if scipy.sparse.issparse(part) else part
                out[block] += scratch

        # NumPy lets go of the interpreter lock inside these loops, and every block is computed
        # alike on whichever thread, so the result does not depend on their number.
        starts = range(0, n, height)
        with ThreadPoolExecutor(_n_threads() if len(starts) > 1 else 1) as pool:
            list(pool.map(fill, starts))
        return out

    def traces(self) -> Float:
        """Return the m traces."""
        return np.array([kernel.diagonal().sum() for kernel in self.kernels])

    def gram(self) -> Float:
        """Return ``Tr(K_p K_q)``, (m, m)."""
        total = np.zeros((self.n_kernels, self.n_kernels))
        for start in range(0, self.n_samples, 64):
            rows = slice(start, start + 64)
            parts = [kernel.block(rows, slice(None)).reshape(-1) for kernel in self.kernels]
            blocks = np.stack(parts)
            total += blocks @ blocks.T
        return total

    def entries(self, samples: Array | None = None) -> Float:
        """Write the kernels out, (m, n, n), or their part that belongs to some samples."""
        count = self.n_samples if samples is None else len(samples)
        size = self.n_kernels * count**2 * 8
        require_memory(
            size,
            f"writing out {self.n_kernels} kernels of {count} samples",
            "use fewer samples, or a method that needs products only, such as SimpleMKKM",
        )
        part: Array | slice = slice(None) if samples is None else samples
        out = np.empty((self.n_kernels, count, count))
        for matrix, kernel in zip(out, self.kernels, strict=True):
            matrix[...] = kernel.block(part, part)
        return out


def _scaled(matrix: Array, c: float, scale: Float | None) -> Array:
    """Return a sparse matrix times a number, and times the scale of its rows and columns."""
    one = matrix.dtype.type
    if scale is None:
        return matrix * one(c)
    diagonal = scipy.sparse.diags_array(scale.astype(matrix.dtype))
    return diagonal @ matrix @ (diagonal * one(c))


@cache
def _thread_pools() -> Any:
    """Return the handles of the linear algebra's threads; finding them takes milliseconds."""
    from threadpoolctl import ThreadpoolController  # comes with scikit-learn

    return ThreadpoolController().select(user_api="blas")


def _n_threads() -> int:
    """Return how many threads the user lets the linear algebra have."""
    limits = [pool["num_threads"] for pool in _thread_pools().info()]
    return min(limits, default=1)
