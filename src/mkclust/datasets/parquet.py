"""Parquet files: the numeric columns are one view, which stays on disk."""

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mkclust.datasets.base import LABELS, Content, DatasetError
from mkclust.datasets.hdf5 import LARGE_BYTES
from mkclust.datasets.layout import ID_NAMES, RawTable, spelling
from mkclust.datasets.on_disk import TableOnDisk
from mkclust.datasets.spreadsheets import as_raw_table

# Of a row group at most so much is decoded at a time.
PIECE_BYTES = 64 << 20
# What pyarrow buffers of each column; without it, whole columns of a row group.
BUFFER_BYTES = 64 << 10


class ParquetView(TableOnDisk):
    """Numeric columns of a parquet file, decoded one row group, or part of one, at a time.

    The part decoded last is kept, so that a pass in small blocks decodes every part once. Entries
    that are missing are NaN. Several threads may read; they take turns.

    Parameters
    ----------
    path : str or path-like
        The file, opened when rows are first asked for.
    columns : sequence of str
        Names of the columns, in the order of the file.
    row_groups : sequence of int
        Number of rows of each row group.
    dtype : numpy.dtype
        Type of the rows that are given, float32 or float64.
    ids_aside : sequence of str, default=()
        Columns that may hold ids, which are not read.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[str],
        row_groups: Sequence[int],
        dtype: Any,
        ids_aside: Sequence[str] = (),
    ):
        super().__init__(path, (sum(row_groups), len(columns)), dtype)
        self.ids_aside = tuple(ids_aside)
        self.columns = tuple(columns)
        self.row_groups = tuple(row_groups)
        self._starts = np.cumsum([0, *row_groups])
        self._height = max(PIECE_BYTES // self._row_bytes, 1)
        self._lock = threading.Lock()
        self._file: Any = None
        # The part decoded last and its first row; then what follows it within its row group.
        self._part, self._first = np.empty((0, len(columns)), self.dtype), 0
        self._batches: Iterator[Any] = iter(())
        self._group, self._next = -1, 0

    def __reduce__(self) -> tuple:
        return type(self), (
            self.path,
            self.columns,
            self.row_groups,
            self.dtype,
            self.ids_aside,
        )

    def _read(self, start: int, stop: int) -> np.ndarray:
        table, position = np.empty((stop - start, self.shape[1]), self.dtype), start
        with self._lock:
            while position < stop:
                self._decode(position)
                rows = self._part[position - self._first : stop - self._first]
                table[position - start : position - start + len(rows)] = rows
                position += len(rows)
        return table

    def _apart(self, rising: np.ndarray) -> np.ndarray:
        groups = np.searchsorted(self._starts, rising, side="right")
        return super()._apart(rising) | (np.diff(groups) > 0)

    def _decode(self, row: int) -> None:
        """Make the part that holds a row the one that is kept."""
        if self._first <= row < self._first + len(self._part):
            return
        if self._file is None:
            self._file = self._open()
        group = int(np.searchsorted(self._starts, row, side="right")) - 1
        if group != self._group or row < self._next:
            self._group, self._next = group, int(self._starts[group])
            self._batches = self._file.iter_batches(
                self._height, row_groups=[group], columns=list(self.columns)
            )
        try:
            while self._next <= row:
                batch = next(self._batches)
                self._next += batch.num_rows
            self._part, self._first = self._as_array(batch), self._next - batch.num_rows
        except (StopIteration, ValueError, OSError, KeyError) as error:
            # A file of other content may have taken its place: nothing of it is to be trusted.
            self._group = -1
            raise OSError(
                f"{self.path}: row {row} cannot be read ({str(error) or 'there is none'}); check "
                "that the file is complete and was not changed while in use"
            ) from error

    def _open(self) -> Any:
        """Open the file, if it is still the one whose rows were counted."""
        file = open_parquet(self.path)
        if row_groups(file.metadata) != self.row_groups:
            file.close()
            raise OSError(
                f"{self.path}: the file has changed since its rows were counted; load it again"
            )
        return file

    def _as_array(self, batch: Any) -> np.ndarray:
        """Return a batch of columns as rows of floats, missing entries as NaN."""
        import pyarrow

        kind = pyarrow.from_numpy_dtype(self.dtype)
        table = np.empty((batch.num_rows, len(self.columns)), self.dtype)
        for index, name in enumerate(self.columns):
            column = batch.column(name).cast(kind, safe=False)
            table[:, index] = column.to_numpy(zero_copy_only=False)
        return table


def open_parquet(path: str | os.PathLike[str]) -> Any:
    """Open a parquet file."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        advice = 'reading it needs pyarrow: pip install "mkclust[parquet]"'
        raise DatasetError(f"{path}: is a parquet file; {advice}") from error
    return pyarrow.parquet.ParquetFile(os.fspath(path), buffer_size=BUFFER_BYTES)


def row_groups(metadata: Any) -> tuple[int, ...]:
    """Return how many rows each row group of a file has."""
    return tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))


def needs_frame(path: Path, selection: frozenset[str], on_disk: bool | None) -> bool:
    """Return whether a parquet file holds ids or text, so that it becomes a data frame.

    What is larger than `LARGE_BYTES`, or to stay on disk, is not loaded: its numbers are the view.

    Parameters
    ----------
    path : Path
        The file.
    selection : frozenset of str
        The columns that are asked for; empty: all.
    on_disk : bool or None
        Whether it is to stay on disk.
    """
    with open_parquet(path) as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
    if (
        len(set(schema.names)) < len(schema.names)
        or on_disk
        or n_rows * len(schema.names) * 8 > LARGE_BYTES
    ):
        return False
    index = [i for i in (schema.pandas_metadata or {}).get("index_columns", []) if str(i) == i]
    chosen = [name for name in schema.names if not selection or name in selection]
    others = [name for name in chosen if name not in (*LABELS, *index)]
    text = any(not _is_number(schema.field(name).type) for name in others)
    first = schema.names[0] if schema.names else ""
    return bool(index) or (text and not selection) or spelling(first) in ID_NAMES


def read_parquet_table(path: Path) -> RawTable:
    """Read all of a parquet file into memory.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    RawTable
    """
    with open_parquet(path) as file:
        names = file.schema_arrow.names
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DatasetError(f"{path}: two columns are called {twice}; rename one")
        return as_raw_table(path, file.read(use_pandas_metadata=True))


def read_parquet(path: Path, selection: frozenset[str]) -> Content:
    """Find the columns that are features, selected ones or all, and read those that are labels.

    Columns that are no numbers, and those that a data frame had as its index, are left aside.
    """
    with open_parquet(path) as file:
        schema, metadata = file.schema_arrow, file.metadata
        labels = {name: _labels(file, name) for name in LABELS if name in schema.names}
    if len(set(schema.names)) < len(schema.names):
        twice = next(name for name in schema.names if schema.names.count(name) > 1)
        raise DatasetError(f"{path}: two columns are called {twice}; rename one")
    kinds = {field.name: field.type for field in schema}
    held = ", ".join(f"{name} {kind}" for name, kind in list(kinds.items())[:8])
    held += f", {len(kinds) - 8} more" if len(kinds) > 8 else ""
    if missing := sorted(selection - kinds.keys()):
        raise DatasetError(f"{path}: no {', '.join(missing)} in it; select among {held}")
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    if (first := next(iter(schema.names), "")) not in index and spelling(first) in ID_NAMES:
        index = [*index, first]
    features, aside, ids_aside = [], [], []
    for name in kinds:
        if name in LABELS or (selection and name not in selection):
            continue
        if _is_number(kinds[name]) and (name in selection or name not in index):
            features.append(name)
        elif name in selection:
            advice = "select columns of numbers, or none to take them all"
            raise DatasetError(f"{path}: the column {name} holds {kinds[name]}; {advice}")
        else:
            aside.append(f"{name} {'index' if name in index else kinds[name]}")
            if name in index or _may_be_ids(name, kinds[name], first):
                ids_aside.append(name)
    if not features:
        advice = "it should hold one row a sample, and features in columns of numbers"
        raise DatasetError(f"{path}: no feature in it, only {held or 'nothing'}; {advice}")
    heights = row_groups(metadata)
    single = all(str(kinds[name]) in ("float", "halffloat") for name in features)
    precision = np.float32 if single else np.float64
    view = ParquetView(path, features, heights, precision, ids_aside)
    return Content({path.stem: view}, labels, [], False, tuple(aside))


def _may_be_ids(name: str, kind: Any, first: str) -> bool:
    """Return whether a column that is no number is called like ids, or is text and the first."""
    return spelling(name) in ID_NAMES or (name == first and str(kind) in ("string", "large_string"))


def _is_number(kind: Any) -> bool:
    """Return whether a column of a type holds numbers."""
    from pyarrow import types

    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(test(kind) for test in tests)


def _labels(file: Any, name: str) -> np.ndarray:
    """Return a column of labels in memory, words as text."""
    labels = file.read(columns=[name]).column(0).to_numpy()
    if labels.dtype != object:
        return labels
    return np.array(["" if label is None else str(label) for label in labels], dtype=str)
