"""Tables that stay in their files, of which some rows are read at a time."""

import itertools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

# Rows between two wanted ones are read through where they take no more bytes than this: a file
# gives a stretch of it faster than two places.
GAP_BYTES = 64 << 10
# What is read at once, where only some of its rows are wanted.
READ_BYTES = 64 << 20


class TableOnDisk:
    """A table in a file, samples x features, which gives rows as NumPy arrays.

    ``table[a:b]`` and ``table[numbers]`` read these rows, ``numpy.asarray(table)`` reads them all.
    A pickled table is its path: where it is unpickled, the file must be there.

    Attributes
    ----------
    path : str
        Absolute path of the file.
    shape : tuple of int
        Number of samples and of features.
    dtype : numpy.dtype
        Type of the rows that are given, float32 or float64, whatever the file holds.
    """

    ndim = 2

    def __init__(self, path: str | os.PathLike[str], shape: tuple[int, int], dtype: Any):
        self.path = os.path.abspath(path)
        self.shape = int(shape[0]), int(shape[1])
        self.dtype = np.dtype(dtype)

    @property
    def T(self) -> np.ndarray:
        """The whole table, loaded and turned around."""
        return np.asarray(self).T

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r}, shape={self.shape}, dtype={self.dtype})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError(f"{self.path}: a table on disk cannot become an array without a copy")
        return self[:].astype(self.dtype if dtype is None else dtype, copy=False)

    def __getitem__(self, key: Any) -> np.ndarray:
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        if isinstance(rows, slice) and rows.step in (None, 1):
            start, stop, _ = rows.indices(self.shape[0])
            return self._read(start, max(start, stop))[:, columns]
        numbers = _row_numbers(rows, self.shape[0])
        if numbers.ndim == 0:
            return self._pick(numbers[None])[0, columns]
        return self._pick(numbers)[:, columns]

    def _read(self, start: int, stop: int) -> np.ndarray:
        """Return the rows from start to stop."""
        raise NotImplementedError(f"{type(self).__name__} must define _read")

    @property
    def _gap(self) -> int:
        """How many rows nobody wants are read through rather than skipped."""
        return GAP_BYTES // self._row_bytes

    @property
    def _row_bytes(self) -> int:
        """What a row takes in memory."""
        return max(self.shape[1] * self.dtype.itemsize, 1)

    def _pick(self, numbers: np.ndarray) -> np.ndarray:
        """Return rows by their numbers, in any order, reading the file from its beginning on."""
        selection = np.empty((len(numbers), self.shape[1]), self.dtype)
        order = np.argsort(numbers, kind="stable")
        rising = numbers[order]
        for a, b in self._runs(rising):
            part = self._read(int(rising[a]), int(rising[b - 1]) + 1)
            selection[order[a:b]] = part[rising[a:b] - rising[a]]
        return selection

    def _runs(self, rising: np.ndarray) -> Iterator[tuple[int, int]]:
        """Yield from where to where in a list of row numbers these are better read together."""
        if not len(rising):
            return
        edges = [0, *(np.flatnonzero(self._apart(rising)) + 1).tolist(), len(rising)]
        yield from itertools.pairwise(edges)

    def _apart(self, rising: np.ndarray) -> np.ndarray:
        """Return whether each row is better read apart from the one before it."""
        blocks = rising // max(READ_BYTES // self._row_bytes, 1)
        return (np.diff(rising) > self._gap + 1) | (np.diff(blocks) > 0)


class HDF5View(TableOnDisk):
    """A table in an HDF5 file, opened when rows are first asked for and open from then on.

    Parameters
    ----------
    path : str or path-like
        The file.
    name : str
        Name of the data set in it.
    shape : tuple of int
        Number of samples and of features.
    dtype : numpy.dtype
        Type of the rows that are given.
    turned : bool, default=False
        Whether the file holds features x samples.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str,
        shape: tuple[int, int],
        dtype: Any,
        turned: bool = False,
    ):
        super().__init__(path, shape, dtype)
        self.name = name
        self.turned = turned
        self._dataset: Any = None

    def __reduce__(self) -> tuple:
        return type(self), (self.path, self.name, self.shape, self.dtype, self.turned)

    @property
    def chunks(self) -> tuple[int, int] | None:
        """Rows and columns that the file stores together; None where it stores all in a row."""
        chunks = self._open().chunks
        return chunks[::-1] if chunks and self.turned else chunks

    def _open(self) -> Any:
        """Return the data set, which keeps its file open."""
        if self._dataset is None:
            import h5py

            self._dataset = h5py.File(self.path, "r")[self.name]
        return self._dataset

    def _read(self, start: int, stop: int) -> np.ndarray:
        dataset, rows = self._open(), slice(start, stop)
        part = dataset[:, rows].T if self.turned else dataset[rows]
        return np.ascontiguousarray(part, dtype=self.dtype)

    @property
    def _gap(self) -> int:
        dataset = self._open()
        # Of a tile, one row costs as much as all.
        tile = dataset.chunks[int(self.turned)] if dataset.chunks else 0
        return max(tile, GAP_BYTES // (self.dtype.itemsize if self.turned else self._row_bytes))


def is_hdf5(array: Any) -> bool:
    """Whether something is a data set of an HDF5 file, found out without importing h5py."""
    return type(array).__module__.split(".")[0] == "h5py"


def _row_numbers(rows: Any, n_rows: int) -> np.ndarray:
    """Return what NumPy takes for rows as their numbers, from zero on."""
    if isinstance(rows, slice):
        return np.arange(*rows.indices(n_rows))
    rows = np.asarray(rows)
    if rows.dtype == bool and rows.shape == (n_rows,):
        return np.flatnonzero(rows)
    if rows.size == 0 and rows.ndim == 1:
        return np.empty(0, np.int64)
    if rows.dtype.kind not in "iu" or rows.ndim > 1:
        raise IndexError(
            f"rows as an array of type {rows.dtype} and shape {rows.shape}: pass a slice, whole "
            f"numbers, or one truth value for each of the {n_rows} rows"
        )
    if rows.min() < -n_rows or rows.max() >= n_rows:
        raise IndexError(f"rows {rows.min()} to {rows.max()} of a table of {n_rows} rows")
    return np.where(rows < 0, rows + n_rows, rows)
