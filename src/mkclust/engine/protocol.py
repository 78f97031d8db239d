"""What the solvers ask of a kernel and of several kernels over the same samples.

The classes of `mkclust.stack` answer these questions; so does any other class with the
same members.
"""

from collections.abc import Sequence
from typing import Protocol

from mkclust.types import Array, Float


class Operator(Protocol):
    """A symmetric matrix over n samples, known by its products with thin matrices."""

    @property
    def n_samples(self) -> int:
        """The number of rows, n."""

    @property
    def like(self) -> Array:
        """An array of length n; vectors over the samples live on its device."""

    def __matmul__(self, V: Array) -> Array:
        """Return the product with a thin matrix, (n, b) to (n, b)."""


class KernelLike(Operator, Protocol):
    """A kernel, or a mix of kernels."""

    @property
    def precision(self) -> float:
        """The relative rounding of the entries."""

    @property
    def matrix(self) -> Array | None:
        """The entries, if they are written out."""

    def diagonal(self) -> Array:
        """Return the diagonal, (n,), in float64."""

    def dense(self) -> Array:
        """Return all entries as a new array, (n, n), in float64."""


class StackLike(Protocol):
    """Several kernels over the same samples."""

    @property
    def kernels(self) -> Sequence[KernelLike]:
        """The kernels, m of them."""

    @property
    def n_kernels(self) -> int:
        """The number of kernels, m."""

    @property
    def n_samples(self) -> int:
        """The number of samples, n."""

    @property
    def in_memory(self) -> bool:
        """Whether a mix is one matrix, with which products are cheap."""

    @property
    def is_safe_in_single(self) -> bool:
        """Whether a mix is one matrix whose entries single precision can hold."""

    def apply(self, V: Array) -> Array:
        """Return the products of all kernels with one V, (n, b) to (m, n, b)."""

    def mix(self, coefficients: Float, precision: str = "float64") -> KernelLike:
        """Return the sum of the kernels times their coefficients."""

    def held(self, make: bool | None = None) -> "StackLike | None":
        """Return the kernels written out as one array, if that pays."""
