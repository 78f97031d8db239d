"""Kernels known by their rows, as a form of input."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from mkclust.types import Array


@runtime_checkable
class RowSource(Protocol):
    """Kernels over the same samples, known by their rows.

    Rows are asked for from one thread at a time, which need not be the one that made the source. A
    source whose rows are arrays of another library than NumPy has the ``dtype`` of that library,
    and is asked from the thread that asks the stack. A source that knows more than its rows, such
    as its diagonal, is a subclass of `mkclust.stack.Source`.
    """

    @property
    def n_kernels(self) -> int:
        """Number of kernels, m."""

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""

    @property
    def dtype(self) -> Any:
        """Number type of the entries, float32 or float64; the shorter where kernels differ."""

    def rows(self, start: int, stop: int) -> Sequence[Array]:
        """Return the rows from start to stop of every kernel, m blocks (stop - start, n)."""
