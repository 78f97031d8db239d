"""Symmetric matrices known by their products, and what is made of one another by wrapping."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from mkclust.linalg.algebra import sum_of_squares
from mkclust.linalg.arrays import astype, namespace, precision_of
from mkclust.types import Array


class Operator(Protocol):
    """A symmetric matrix known by its products."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""

    @property
    def like(self) -> Array:
        """An array that says where the vectors live that this can be multiplied with."""

    @property
    def is_rounded(self) -> bool:
        """Whether it is in single precision although what it was made of is not."""

    def rounding_error(self) -> float:
        """Return how far its eigenvalues are from those without that rounding, at most."""

    def __matmul__(self, X: Array) -> Array:
        """Multiply with a thin matrix, (n, b) to (n, b), in the precision of that."""

    def dense(self) -> Array:
        """Write the entries out, (n, n)."""


class ExactOperator:
    """What an operator answers that is in the precision of what it was made of."""

    @property
    def is_rounded(self) -> bool:
        """Whether it is in single precision although what it was made of is not: no."""
        return False

    def rounding_error(self) -> float:
        """Return how far its eigenvalues are from those without that rounding: not at all."""
        return 0.0


@dataclass(frozen=True)
class MatrixOperator(ExactOperator):
    """A symmetric matrix held as an array."""

    entries: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.entries.shape[0], self.entries.shape[1]

    @property
    def like(self) -> Array:
        """An array that says where the vectors live that this can be multiplied with."""
        return self.entries

    def __matmul__(self, X: Array) -> Array:
        """Multiply with a thin matrix, (n, b) to (n, b)."""
        return (X.T @ self.entries).T  # the order BLAS does faster

    def dense(self) -> Array:
        """Return the entries, (n, n)."""
        return self.entries


class WrappedOperator:
    """Base of what changes another operator: as large as it, and in the same place."""

    def __init__(self, operator: Operator):
        self.operator = operator

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.operator.shape

    @property
    def like(self) -> Array:
        """An array that says where the vectors live that this can be multiplied with."""
        return self.operator.like

    @property
    def is_rounded(self) -> bool:
        """Whether it is in single precision although what it was made of is not."""
        return self.operator.is_rounded

    def rounding_error(self) -> float:
        """Return how far its eigenvalues are from those without that rounding, at most."""
        return self.operator.rounding_error()

    def __matmul__(self, X: Array) -> Array:
        """Multiply with a thin matrix, (n, b) to (n, b)."""
        return self.operator @ X

    def dense(self) -> Array:
        """Write the entries out, (n, n)."""
        return self.operator.dense()


class ScaledOperator(WrappedOperator):
    """A matrix times a number."""

    def __init__(self, operator: Operator, factor: float):
        super().__init__(operator)
        self.factor = factor

    def rounding_error(self) -> float:
        """Return how far its eigenvalues are from those without that rounding, at most."""
        return abs(self.factor) * self.operator.rounding_error()

    def __matmul__(self, X: Array) -> Array:
        """Multiply with a thin matrix, (n, b) to (n, b)."""
        return self.factor * (self.operator @ X)

    def dense(self) -> Array:
        """Write the entries out, (n, n)."""
        return self.factor * self.operator.dense()


class CenteredOperator(WrappedOperator):
    """A matrix whose rows and columns are centered on the fly, however it was scaled before."""

    def __matmul__(self, X: Array) -> Array:
        """Multiply with a thin matrix, (n, b) to (n, b)."""
        mean = namespace(X).mean
        Y = self.operator @ (X - mean(X, axis=0))
        return Y - mean(Y, axis=0)

    def dense(self) -> Array:
        """Write the entries out, (n, n)."""
        K = self.operator.dense()
        mean = namespace(K).mean
        K = K - mean(K, axis=0)
        return K - mean(K, axis=1)[:, None]


class LazyOperator(WrappedOperator):
    """A matrix that is made when it is first asked for anything."""

    def __init__(self, make: Callable[[], Operator]):
        self._make = make

    @cached_property
    def operator(self) -> Operator:  # type: ignore[override]
        """The matrix."""
        return self._make()


@dataclass(frozen=True)
class Anchor:
    """A partition that a mixed kernel is drawn towards: ``strength H_0 H_0^T`` is added to it.

    Attributes
    ----------
    vectors : array of shape (n_samples, k)
        The orthonormal H_0.
    strength : float
        How much of it is added.
    """

    vectors: Array
    strength: float

    def overlap(self, vectors: Array) -> Array:
        """Return ``H_0^T V``, (k, b)."""
        return self.vectors.T @ vectors

    def products(self, vectors: Array) -> Array:
        """Return what the anchor adds to the kernel's products with V, (n, b)."""
        return self.vectors @ (self.strength * self.overlap(vectors))

    def added_to(self, M: Array) -> Array:
        """Return a matrix with the anchor added, (n, n)."""
        return M + self.strength * (self.vectors @ self.vectors.T)

    def offset(self, vectors: Array) -> float:
        """Return what the anchor adds to the alignment with orthonormal vectors."""
        return self.strength * sum_of_squares(self.overlap(vectors))


class AnchoredOperator(WrappedOperator):
    """A matrix with an anchor added."""

    def __init__(self, operator: Operator, anchor: Anchor):
        super().__init__(operator)
        self.anchor = anchor

    def __matmul__(self, X: Array) -> Array:
        """Multiply with a thin matrix, (n, b) to (n, b)."""
        precision = precision_of(X)
        added = self.anchor.products(astype(X, precision_of(self.anchor.vectors)))
        return self.operator @ X + astype(added, precision)

    def dense(self) -> Array:
        """Write the entries out, (n, n)."""
        return self.anchor.added_to(self.operator.dense())
