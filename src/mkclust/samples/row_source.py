"""Kernels known by their rows, as a form of input."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from mkclust.types import Array


@runtime_checkable
class RowSource(Protocol):
    """Kernels over the same samples, known by their rows.

    A source may know more than it must: ``diagonal()``, the self-similarities, (m, n);
    ``only(indices)``, a source of some of its kernels; ``step``, the number of rows that come
    together whether or not all are asked for; ``block_rows``, how many rows to ask for at a time;
    ``among(samples)``, a source of the same kernels of some samples; and
    ``write(start, stop, out)``, which writes rows in place, (m, stop - start, n), and spares the
    memory of new ones; and ``product(index, X)``, a kernel times a thin matrix, (n, b) in float64,
    where it takes no rows, else None. Rows are asked for from one thread at a time, which need not
    be the one that made the source.

    A source whose rows are arrays of another library than NumPy has ``like``, an array beside
    them, and the ``dtype`` of that library. It is asked from the thread that asks the stack.
    ``parts(start, stop)`` then gives the m blocks, where ``rows`` would put them into one array.
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
