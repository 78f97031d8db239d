"""The accepted forms of input, told apart by their shapes, and what has none of them."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mkclust.linalg import is_foreign, namespace
from mkclust.samples.frames import is_frame
from mkclust.samples.ids import is_kernel

TABLE = "table"


def check_form(table: Any, title: str) -> None:
    """Refuse what cannot be a table whatever it holds, and entries that are masked."""
    if table is None:
        raise TypeError(f"{title} is None: pass a table of samples by features, or leave it out.")
    several = isinstance(table, list | tuple)
    if _is_series(table) or (several and any(map(_is_series, table))):
        form = "a list of pandas Series" if several else "a pandas Series"
        raise TypeError(
            f"{title} is {form}, which could be columns or rows: pass a data frame, such as "
            "series.to_frame() for one column, or pandas.DataFrame(list_of_series) for rows."
        )
    has_items = any(hasattr(table, name) for name in ("shape", "__array__", "__getitem__"))
    if isinstance(table, Iterable) and not has_items:
        raise TypeError(
            f"{title} is a {type(table).__name__}, which has no rows to go back to: pass "
            "list(...) of it, or an array."
        )
    if several and (missing := [i for i, row in enumerate(table) if row is None]):
        raise TypeError(f"{title} is a list whose item {missing[0]} is None: leave it out.")
    lengths = {_length(row) for row in table} if several else set()
    if len(lengths) > 1:
        raise ValueError(
            f"{title} is a list of rows that are not of one length: they have from {min(lengths)} "
            f"to {max(lengths)} entries; fill in what is missing, or drop rows from every view."
        )
    check_masks(table, title)


def check_masks(table: Any, title: str) -> None:
    """Refuse an array, or a list of rows, with masked entries: what is below them is no number."""
    rows = table if isinstance(table, list | tuple) else [table]
    count = sum(np.ma.count_masked(row) for row in rows if isinstance(row, np.ma.MaskedArray))
    if count:
        raise ValueError(
            f"{title} has {count} masked entries, which are missing; fill them, such as with "
            "filled(), or drop their rows and samples everywhere."
        )


def _length(row: Any) -> int:
    """Return how many entries a row of a list has, zero where it is a number."""
    return len(row) if isinstance(row, list | tuple | np.ndarray) and depth(row) else 0


def _is_series(thing: Any) -> bool:
    """Return whether something is one column, or row, of a data frame."""
    return type(thing).__name__ == "Series" and hasattr(thing, "to_frame")


def named_parts(X: Any) -> dict[str, Any]:
    """Return what may be several views by their names, and all else as one table."""
    # One of SciPy's sparse formats is a dict of its entries, but no mapping of views.
    if isinstance(X, Mapping) and not issparse(X):
        named = {str(name): view for name, view in X.items()}
        if len(named) < len(X):
            raise ValueError(
                f"Two views have the same name as text, among {list(X)}; rename one of them."
            )
        return named
    if isinstance(X, list | tuple) and (len(X) == 0 or any(depth(item) > 1 for item in X)):
        return {f"view {i}": view for i, view in enumerate(X)}
    return {TABLE: X}


def depth(item: Any) -> int:
    """Count the dimensions of an array, a data frame or nested lists."""
    if hasattr(item, "shape"):
        return len(item.shape)
    if isinstance(item, list | tuple):
        return 1 + (depth(item[0]) if item else 0)
    return 0


def looks_like_kernel(X: Any) -> bool:
    """Return whether X is a square array that equals its transpose, or has its ids as columns."""
    if getattr(X, "ndim", 0) != 2:
        return False
    rows, columns = X.shape
    if not rows == columns > 1:
        return False
    if is_frame(X) and is_kernel(X):
        return True
    if issparse(X):
        return (X != X.T).nnz == 0
    X = X if hasattr(X, "T") else np.asarray(X)  # a table in a file
    return bool(namespace(X).all(X == X.T) if is_foreign(X) else np.array_equal(X, X.T))
