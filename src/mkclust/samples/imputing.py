"""Missing cells, filled with what is typical of their column where that was asked for."""

import warnings
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mkclust.linalg import is_foreign
from mkclust.samples.checks import as_floats, check_view, dropping, is_dask
from mkclust.samples.frames import has_columns
from mkclust.text import count, list_first
from mkclust.types import Float


def unmasked(table: Any) -> Any:
    """Return masked arrays with NaN for what is masked, and all else as it is."""
    if isinstance(table, list | tuple):
        return [unmasked(row) if isinstance(row, np.ma.MaskedArray) else row for row in table]
    if not isinstance(table, np.ma.MaskedArray):
        return table
    precision = table.dtype if table.dtype.kind == "f" else np.float64
    return np.ma.filled(table.astype(precision), np.nan)


def medians(table: Any, names: list[str] | None, title: str) -> Float | None:
    """Return the median of every column, None where entries are not in the memory of the host."""
    if not _is_in_memory(table):
        return None
    if issparse(table):
        middles = np.zeros(table.shape[1])
        columns = table.tocsc()
        for place in np.unique(columns.nonzero()[1][np.isnan(columns.data)]):
            middles[place] = np.nanmedian(columns[:, [place]].toarray())
    else:
        array = as_floats(check_view(table, title), title)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
            middles = np.nanmedian(array, axis=0)
    if len(empty := np.flatnonzero(np.isnan(middles))):
        what = dropping([names[p] for p in empty]) if names else None
        words = what or list_first([f"column {place}" for place in empty], 5)
        raise ValueError(
            f"{title} has {count(len(empty), 'column')} without any value (NaN), of which there "
            f"is no median: drop {'them by ' * bool(names)}{words}."
        )
    return middles


def filled(table: Any, fills: Float, title: str) -> Any:
    """Return a table with numbers in the place of missing ones."""
    if not _is_in_memory(table):
        return table
    if issparse(table):
        if not np.isnan(table.data).any():
            return table
        entries = table.tocoo(copy=True)
        missing = np.isnan(entries.data)
        entries.data[missing] = fills[entries.coords[1][missing]]
        return entries.tocsr()
    array = as_floats(check_view(table, title), title)
    missing = np.isnan(array)
    if not missing.any() or array.shape[1] != len(fills):  # another width is refused elsewhere
        return array
    return np.where(missing, fills.astype(array.dtype), array)


def _is_in_memory(table: Any) -> bool:
    """Return whether all entries of a table are in the memory of the host."""
    on_host = issparse(table) or has_columns(table) or isinstance(table, list | tuple | np.ndarray)
    elsewhere = isinstance(table, np.memmap) or is_foreign(table) or is_dask(table)
    return on_host and not elsewhere
