"""Kernels known by their rows, and rows in files: what is read as it is asked for."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from mkclust.types import Array


@runtime_checkable
class RowSource(Protocol):
    """Kernels over the same samples, known by their rows.

    Rows are asked for from one thread at a time, which need not be the one that made
    the source; those of another library than NumPy from the thread that asks the stack.
    """

    @property
    def n_kernels(self) -> int:
        """Number of kernels, m."""

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""

    @property
    def dtype(self) -> Any:
        """Number type of the entries: float32 only if all kernels have it."""

    def rows(self, start: int, stop: int) -> Sequence[Array]:
        """Return rows start to stop of every kernel: m blocks (stop - start, n)."""


class RowSubset:
    """Some rows of a table in a file, or some samples of a kernel, read on demand."""

    ndim = 2

    def __init__(
        self, array: Any, rows: np.ndarray, is_kernel: bool = False, kernel: Any = None
    ):
        self.array = array
        self.rows = rows
        self.is_kernel = is_kernel
        self.kernel = kernel
        self.shape = (len(rows), len(rows) if is_kernel else int(array.shape[-1]))
        self.dtype = np.dtype(array.dtype)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: Any) -> np.ndarray:
        # One call for all rows from the first to the last: files are slow with lists of
        # rows.
        rows = self.rows[key]
        first, last = (int(rows.min()), int(rows.max())) if len(rows) else (0, -1)
        between: Any = slice(first, last + 1)
        if self.kernel is not None:
            between = (self.kernel, between)
        block = np.array(self.array[between])[rows - first]
        if self.is_kernel:
            return block.take(self.rows, axis=1)
        return block

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[:], dtype=dtype)

    def take(self, places: np.ndarray) -> "RowSubset":
        """Return some of these rows, by their places among them."""
        return RowSubset(self.array, self.rows[places], self.is_kernel, self.kernel)
