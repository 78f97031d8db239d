"""Large parquet files: columns of numbers are one view that stays on disk."""

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mkclust.datasets.arrays import LARGE_BYTES
from mkclust.datasets.dataset import (
    LABELS,
    Dataset,
    DatasetError,
    find_labels,
    labeled,
)
from mkclust.datasets.layout import is_name_of_ids, unique_names
from mkclust.text import join_words


class ParquetTable:
    """Columns of numbers in a parquet file, of which slices or rows are read.

    The part of a row group that was decoded last is kept, so that a pass in small
    blocks decodes each part once. A missing entry is NaN. `unread_ids` are further
    columns that may hold ids. A pickled table is its path: the file must be there where
    it is unpickled.
    """

    ndim = 2

    def __init__(
        self, path: Any, columns: Sequence[str], dtype: Any, unread_ids: Sequence[str]
    ):
        self.path = os.path.abspath(path)
        self.columns = tuple(columns)
        self.dtype = np.dtype(dtype)
        self.unread_ids = tuple(unread_ids)
        self._lock = threading.Lock()
        self._file = _open(path)
        groups = map(self._file.metadata.row_group, range(self._file.num_row_groups))
        self._starts = np.cumsum([0, *(group.num_rows for group in groups)])
        self.shape = (int(self._starts[-1]), len(self.columns))
        self._batches: Iterator[Any] = iter(())
        self._group = -1
        self._first = 0
        self._part = np.empty((0, len(columns)))

    def __reduce__(self) -> tuple:
        return type(self), (self.path, self.columns, self.dtype, self.unread_ids)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"ParquetTable({self.path!r}, shape={self.shape}, dtype={self.dtype})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self[:].astype(dtype or self.dtype, copy=False)

    def __getitem__(self, key: Any) -> np.ndarray:
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        indices = np.arange(len(self))[rows if np.size(rows) else slice(0)]
        if indices.ndim > 1:
            raise IndexError(
                f"rows of shape {indices.shape}: pass a slice, or one list of rows"
            )
        wanted = np.atleast_1d(indices)
        table = np.empty((len(wanted), self.shape[1]), self.dtype)
        order = np.argsort(wanted, kind="stable")
        position = 0
        with self._lock:
            while position < len(order):
                self._decode(int(wanted[order[position]]))
                end = self._first + len(self._part)
                here = order[position : np.searchsorted(wanted, end, sorter=order)]
                table[here] = self._part[wanted[here] - self._first]
                position += len(here)
        if not indices.ndim:
            table = table[0]
        return table[..., columns]

    def _decode(self, row: int) -> None:
        """Keep the part of the file that holds a row, missing entries as NaN."""
        import pyarrow

        kind = pyarrow.from_numpy_dtype(self.dtype)
        group = int(np.searchsorted(self._starts, row, side="right")) - 1
        if group != self._group or row < self._first:
            self._group = group
            self._first = int(self._starts[group])
            self._part = self._part[:0]
            # Decoded rows that are kept in memory take about this number of bytes.
            part_bytes = 64 << 20
            height = max(part_bytes // (8 * max(self.shape[1], 1)), 1)
            options = {"row_groups": [group], "columns": list(self.columns)}
            self._batches = self._file.iter_batches(height, **options)
        try:
            while row >= self._first + len(self._part):
                batch = next(self._batches)
                self._first += len(self._part)
                parts = (
                    batch.column(name).cast(kind, safe=False) for name in self.columns
                )
                self._part = np.column_stack(
                    [p.to_numpy(zero_copy_only=False) for p in parts]
                )
        except (StopIteration, ValueError, OSError, KeyError) as error:
            self._group = -1
            self._part = self._part[:0]
            raise OSError(
                f"{self.path}: row {row} cannot be read ({error}); check that the file "
                "is complete and was not changed while in use"
            ) from error


def _open(path: Any) -> Any:
    """Return a file of pyarrow, or say what is wrong with it."""
    import pyarrow.parquet

    # With a buffer, pyarrow does not read whole columns of a row group at a time.
    return pyarrow.parquet.ParquetFile(path, buffer_size=1 << 16)


def read_parquet(
    path: Path,
    selection: frozenset[str],
    on_disk: bool | None,
    asked: str | None = None,
) -> Dataset | None:
    """Return a large file of numbers as a view on disk, and its labels; else None."""
    from pyarrow import types

    with _open(path) as file:
        schema = file.schema_arrow
        n_rows = file.metadata.num_rows
        names = unique_names(path, schema.names)
        if not (on_disk or 8 * n_rows * len(names) > LARGE_BYTES):
            return None
        named = [name for name in names if name in LABELS or name == asked]
        frame = file.read(columns=named).to_pandas(ignore_metadata=True)
    labels = find_labels(frame, asked, selection, path)
    kinds = {each.name: each.type for each in schema}
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    numbers = {
        name for name, kind in kinds.items() if any(test(kind) for test in tests)
    }
    stored = (schema.pandas_metadata or {}).get("index_columns", [])
    ids = [n for n in names if n in stored or is_name_of_ids(n)]
    chosen = (selection or numbers - {*ids}) - {*labels}
    features = [name for name in names if name in chosen]
    if not features or not chosen <= numbers:
        held = join_words([f"{name} {kind}" for name, kind in kinds.items()], 9)
        wrong = ", ".join(sorted(chosen - numbers)) or "any feature"
        raise DatasetError(
            f"{path}: no column of numbers for {wrong}; select among {held}"
        )
    are_single = all(str(kinds[name]) in ("float", "halffloat") for name in features)
    dtype = np.float32 if are_single else np.float64
    skipped = [n for n in names if not selection and n not in (*features, *labels)]
    may_be_ids = [n for n in skipped if n in ids or n == names[0]]
    table = ParquetTable(path, features, dtype, may_be_ids)
    text = f"Read from {path.name}."
    if skipped:
        text += f" Skipped: {join_words(skipped, 8)}."

    name = path.stem
    data = Dataset(name, {name: table}, None, None, (name,), text)
    return labeled(data, frame, labels)
