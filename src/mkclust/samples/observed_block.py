"""Kernels of the samples that were observed, out of files and sources that hold all samples."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from mkclust.linalg import is_foreign, is_sparse, select
from mkclust.samples.checks import is_dask, is_in_memory, memory_map
from mkclust.samples.frames import AnnotatedMatrix, is_frame, take_rows
from mkclust.samples.row_source import RowSource
from mkclust.types import Array


@dataclass(frozen=True)
class ObservedBlock:
    """The rows and columns of some samples of a kernel in a file, read as they are asked for.

    Parameters
    ----------
    matrix : memory map or dataset of shape (n, n), or (m, n, n)
        The kernel over all samples, or several.
    samples : ndarray of int of shape (n_v,)
        Rising numbers of the samples.
    kernel : int or None, default=None
        Which kernel of several; None where there is one.
    """

    matrix: Any = field(repr=False)
    samples: np.ndarray = field(repr=False)
    kernel: int | None = None
    ndim: ClassVar[int] = 2

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return len(self.samples), len(self.samples)

    @property
    def dtype(self) -> Any:
        """Number type of the entries."""
        return self.matrix.dtype

    @property
    def nbytes(self) -> int:
        """What all entries take in memory."""
        return len(self.samples) ** 2 * np.dtype(self.dtype).itemsize

    def __len__(self) -> int:
        return len(self.samples)

    @cached_property
    def _is_whole(self) -> bool:
        """Whether these are all samples, in their order."""
        return np.array_equal(self.samples, np.arange(self.matrix.shape[-1]))

    def __getitem__(self, rows: Any) -> Array:
        """Return some rows in memory: those of a slice, or those of numbers."""
        block = _read_rows(self.matrix, self.samples[rows], self.kernel)
        return block if self._is_whole else block.take(self.samples, axis=1)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return all entries in memory."""
        return np.asarray(self[:], dtype=dtype)

    def among(self, places: np.ndarray) -> "ObservedBlock":
        """Return the block of some of these samples, by their places among them."""
        return ObservedBlock(self.matrix, self.samples[places], self.kernel)


@dataclass(frozen=True)
class ObservedTable:
    """Some rows of a table in a file, read as they are asked for.

    Parameters
    ----------
    table : memory map, dataset or table on disk of shape (n, d)
        The table of all samples.
    samples : ndarray of int of shape (n_v,)
        Rising numbers of the rows.
    """

    table: Any = field(repr=False)
    samples: np.ndarray = field(repr=False)
    ndim: ClassVar[int] = 2

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return len(self.samples), int(self.table.shape[1])

    @property
    def dtype(self) -> Any:
        """Number type of the entries."""
        return self.table.dtype

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, rows: Any) -> Array:
        """Return some rows in memory: those of a slice, or those of numbers."""
        return _read_rows(self.table, self.samples[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return all rows in memory."""
        return np.asarray(self[:], dtype=dtype)

    def among(self, places: np.ndarray) -> "ObservedTable":
        """Return some of these rows, by their places among them."""
        return ObservedTable(self.table, self.samples[places])


@dataclass(frozen=True)
class ObservedRows:
    """The kernels of some samples out of a source that tells the rows of all.

    Parameters
    ----------
    source : RowSource
        The kernels over all samples.
    samples : ndarray of int of shape (n_v,)
        Rising numbers of the samples.
    kernels : tuple of int
        Which kernels of the source.
    """

    source: RowSource = field(repr=False)
    samples: np.ndarray = field(repr=False)
    kernels: tuple[int, ...]

    @property
    def n_kernels(self) -> int:
        """Number of kernels."""
        return len(self.kernels)

    @property
    def n_samples(self) -> int:
        """Number of samples, n_v."""
        return len(self.samples)

    @property
    def dtype(self) -> Any:
        """Number type of the entries."""
        return self.source.dtype

    @property
    def like(self) -> Any:
        """An array that says where the rows live, None for NumPy."""
        return getattr(self.source, "like", None)

    def rows(self, start: int, stop: int) -> Sequence[Array]:
        """Return the rows from start to stop of every kernel, (stop - start, n_v) each."""
        where = self.samples[start:stop]
        if not len(where):
            blocks = self.source.rows(0, 0)
            return [select(blocks[p], self.samples, axis=1) for p in self.kernels]
        first = int(where.min())
        blocks = self.source.rows(first, int(where.max()) + 1)
        return [
            select(select(blocks[p], where - first), self.samples, axis=1) for p in self.kernels
        ]

    def only(self, indices: Sequence[int]) -> "ObservedRows":
        """Return some of the kernels."""
        return ObservedRows(self.source, self.samples, tuple(self.kernels[p] for p in indices))

    def among(self, samples: np.ndarray) -> "ObservedRows":
        """Return the kernels of some of these samples, by their places among them."""
        return ObservedRows(self.source, self.samples[samples], self.kernels)


def _read_rows(matrix: Any, rows: np.ndarray, kernel: int | None = None) -> np.ndarray:
    """Read some rows of a matrix in a file, or of one of several, into memory."""
    # One call for all rows from the first to the last: files are slow with lists of rows.
    first, last = (int(rows.min()), int(rows.max())) if len(rows) else (0, -1)
    between = slice(first, last + 1)
    block = np.asarray(matrix[between] if kernel is None else matrix[kernel, between])
    if len(rows) < len(block) or np.any(np.diff(rows) != 1):
        return block.take(rows - first, axis=0)
    # A slice of a map has not been read.
    return block if memory_map(matrix) is None else np.array(block)


def take_source(source: RowSource, samples: np.ndarray, kernel: int | None = None) -> Any:
    """Return a source of one kernel, or of all, of some samples.

    Parameters
    ----------
    source : RowSource
        The kernels over all samples.
    samples : ndarray of int
        Rising numbers of the samples.
    kernel : int or None, default=None
        Which kernel; None for all.
    """
    if kernel is not None and hasattr(source, "only"):
        source, kernel = source.only([kernel]), None
    if kernel is None and len(samples) == source.n_samples:
        return source
    if kernel is None and hasattr(source, "among"):
        return source.among(samples)
    kernels = tuple(range(source.n_kernels)) if kernel is None else (kernel,)
    return ObservedRows(source, samples, kernels)


def take_table(table: Any, places: np.ndarray) -> Any:
    """Return some rows of a table of any form; what is in a file stays there.

    Parameters
    ----------
    table : table of any form, of shape (n, d)
        The table.
    places : ndarray of int
        Which rows, in the order that they are to have; rising for files.
    """
    if isinstance(table, ObservedTable):
        return table.among(places)
    if isinstance(table, list | tuple) and not len(places):
        return np.empty((0, len(table[0])))
    if is_foreign(table):
        return select(table, places)
    if is_sparse(table):
        return table.tocsr()[places]
    if is_in_memory(table) and memory_map(table) is None:
        return take_rows(table, places)
    if isinstance(table, AnnotatedMatrix) or is_dask(table):
        return take_rows(table, places)
    return ObservedTable(table, places)


def take_block(kernel: Any, places: np.ndarray) -> Any:
    """Return the rows and columns of some samples of a kernel of any form.

    Parameters
    ----------
    kernel : matrix of shape (n, n), data frame, ObservedBlock, RowSource or file
        The kernel.
    places : ndarray of int
        Which samples, in the order that the block is to have; rising for files and sources.
    """
    if isinstance(kernel, ObservedBlock):
        return kernel.among(places)
    if isinstance(kernel, RowSource):
        return take_source(kernel, places)
    if is_frame(kernel):
        return kernel.iloc[places, places]
    if isinstance(kernel, list | tuple):
        kernel = np.asarray(kernel)
    if memory_map(kernel) is not None:
        return ObservedBlock(kernel, places)
    if isinstance(kernel, np.ndarray):
        return kernel[np.ix_(places, places)]
    if is_sparse(kernel):  # SciPy's, of any format, or known by sparse factors
        rows = kernel.tocsr() if hasattr(kernel, "tocsr") else kernel
        return rows[places, :][:, places]
    if is_foreign(kernel):
        return select(select(kernel, places), places, axis=1)
    return ObservedBlock(kernel, places)


def single_kernels(whole: Any) -> list[Any]:
    """Return the kernels of a stack one by one; what is in a file, or a source, stays there.

    Parameters
    ----------
    whole : array or dataset of shape (m, n, n), or RowSource
        The kernels.
    """
    if isinstance(whole, RowSource):
        everybody = np.arange(whole.n_samples)
        return [take_source(whole, everybody, p) for p in range(whole.n_kernels)]
    if isinstance(whole, np.ndarray) or is_foreign(whole):
        return [whole[p, ...] for p in range(whole.shape[0])]
    return [ObservedBlock(whole, np.arange(whole.shape[-1]), p) for p in range(whole.shape[0])]


def take_stack(whole: Any, samples: np.ndarray) -> Any:
    """Return the kernels of some samples out of a stack of all, as a stack.

    Parameters
    ----------
    whole : array or dataset of shape (m, n, n), or RowSource
        The kernels.
    samples : ndarray of int
        Rising numbers of the samples.
    """
    if isinstance(whole, RowSource):
        return take_source(whole, samples)
    if is_foreign(whole):
        return select(select(whole, samples, axis=1), samples, axis=2)
    return np.stack([np.asarray(take_block(K, samples)) for K in single_kernels(whole)])
