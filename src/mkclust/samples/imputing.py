"""Missing cells, filled with what is typical of their column where that was asked for."""

import warnings
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mkclust.samples.checks import as_floats, check_view, dropping, is_in_memory
from mkclust.text import count, list_first
from mkclust.types import Float


def unmasked(table: Any) -> Any:
    """Return masked arrays with NaN for what is masked, and all else as it is."""
    if isinstance(table, list | tuple) and any(isinstance(x, np.ma.MaskedArray) for x in table):
        return [unmasked(row) for row in table]
    if not isinstance(table, np.ma.MaskedArray):
        return table
    if not np.ma.is_masked(table):
        return np.asarray(table)
    precision = table.dtype if table.dtype.kind == "f" else np.float64
    return np.ma.filled(table.astype(precision), np.nan)


def medians(table: Any, names: list[str] | None, title: str) -> Float | None:
    """Return the median of every column, None where entries are not in the memory of the host."""
    if not is_in_memory(table):
        return None
    if issparse(table):
        middles = np.zeros(table.shape[1])
        columns = table.tocsc()
        for place in np.unique(columns.nonzero()[1][np.isnan(columns.data)]):
            middles[place] = np.nanmedian(columns[:, [place]].toarray())
    else:
        middles = _dense_medians(as_floats(check_view(table, title), title))
    if len(empty := np.flatnonzero(np.isnan(middles))):
        what = dropping([names[p] for p in empty]) if names else None
        words = what or list_first([f"column {place}" for place in empty], 5)
        raise ValueError(
            f"{title} has {count(len(empty), 'column')} without any value (NaN), so there "
            f"is no median: drop {'them by ' * bool(names)}{words}."
        )
    return middles


def _dense_medians(array: Float) -> Float:
    """Return the median of what is there in every column, NaN where nothing is."""
    middles = np.median(array, axis=0)  # many times as fast as beside missing entries
    incomplete = np.flatnonzero(np.isnan(middles))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
        middles[incomplete] = np.nanmedian(array[:, incomplete], axis=0)
    return middles


def filled(table: Any, fills: Float, title: str) -> Any:
    """Return a table with numbers in the place of missing ones."""
    if not is_in_memory(table):
        return table
    if issparse(table):
        if not np.isnan(table.data).any():
            return table
        entries = table.tocoo(copy=True)
        missing = np.isnan(entries.data)
        entries.data[missing] = fills[entries.coords[1][missing]]
        return entries.tocsr()
    array = as_floats(check_view(table, title, may_lack_rows=True), title)
    missing = np.isnan(array)
    if not missing.any() or array.shape[1] != len(fills):  # another width is refused elsewhere
        return array
    return np.where(missing, fills.astype(array.dtype), array)
