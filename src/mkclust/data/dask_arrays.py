"""Views in files, and in memory, become dask arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mkclust.data.check import check_view
from mkclust.data.join import align_tables
from mkclust.data.tables import are_numbers, as_table
from mkclust.text import join_words


class MappedTable:
    """A table in a ``.npy`` file, mapped into memory wherever it is read."""

    def __init__(self, mapped: np.memmap):
        self.shape = mapped.shape
        self.dtype = mapped.dtype
        self.ndim = 2
        self._layout: dict[str, Any] = {
            "dtype": mapped.dtype,
            "mode": "r",
            "offset": mapped.offset,
            "shape": mapped.shape,
            "order": "FC"[mapped.flags.c_contiguous],
        }
        self._path = str(mapped.filename)

    def __getitem__(self, key: Any) -> np.ndarray:
        return np.array(np.memmap(self._path, **self._layout)[key])


def as_dask(views: Mapping[str, Any]) -> dict[str, Any]:
    """Return views as dask arrays; chunks of those in files are read by the workers.

    Parameters
    ----------
    views : mapping of str to memory map, HDF5 dataset, ParquetTable, array or frame
        Views of the same samples. ``mkclust.datasets.load(path, on_disk=True)`` leaves
        them in their files, which the workers need under the same paths. What is in
        memory, as tables of small files are, is sent to the workers. Data frames are
        matched by their ids, and all views are in the order of the first of them.
    """
    try:
        import dask.array as da
    except ImportError as error:
        raise ImportError(
            'dask is not installed: pip install "mkclust[dask]"'
        ) from error

    tables = _in_one_order(views)

    # What a worker reads at a time from files, over all views, and samples at least.
    chunk_bytes = 32 << 20
    fewest_rows = 1024
    row_bytes = 8 * sum(table.shape[1] for table in tables.values())
    rows = max(chunk_bytes // row_bytes, fewest_rows)
    # Without a name that another run shares: a file may have changed since.
    return {
        n: da.from_array(t, (rows, t.shape[1]), name=False) for n, t in tables.items()
    }


def _in_one_order(views: Mapping[str, Any]) -> dict[str, Any]:
    """Return views with rows and a number type, data frames in one order."""
    titles = [f"View {name!r}" for name in views]
    tables = list(map(as_table, views.values(), titles))
    are_square = [False] * len(tables)
    aligned, _ = align_tables(tables, titles, are_square, "exact", is_new=False)
    found = {}
    for name, title, table in zip(views, titles, aligned, strict=True):
        values = table.values
        if table.is_frame:
            others = values.columns[~np.array(are_numbers(values), bool)]
            if len(others):
                raise ValueError(
                    f"{title} has the columns {join_words(map(repr, others))}, and "
                    "dask arrays hold numbers: turn them into numbers, or drop them"
                )
            values = check_view(values, title)
        if isinstance(values, np.memmap):
            values = MappedTable(values)
        found[name] = values
    return found
