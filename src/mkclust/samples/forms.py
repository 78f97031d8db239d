"""Bring every accepted form of input to views: 2-D arrays, samples by features, by name."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array

from mkclust.linalg import as_floats, check_one_place, is_foreign, namespace
from mkclust.samples.ids import aligned
from mkclust.types import Array

TABLE = "table"


def as_views(X: Any) -> dict[str, Array]:
    """Return every accepted form of input as named 2-D arrays of floats.

    Parameters
    ----------
    X : mapping, list, tuple, array-like or data frame
        - a mapping of names to views, each of shape (n_samples, n_features);
        - a list or tuple of views, which are named ``"view 0"``, ``"view 1"``
          and so on. A list holds views only if its items are 2-D;
        - one table of shape (n_samples, n_features), also as a list of rows,
          which is named ``"table"``.

        Data frames with the same ids (the index of pandas) are brought to the order of the first
        one with ids; other ids are refused.

        Arrays of torch, CuPy and other libraries of the array API standard
        stay with their library and on their device, which all views share.

    Returns
    -------
    dict of str to array of shape (n_samples, n_features)
        The views in their order, not copied where they are float32 or float64
        arrays already. Other types of numbers become float64, but the half
        precision of other libraries than NumPy float32.

    Raises
    ------
    ValueError, TypeError
        Where a view is not a finite, dense table of real numbers, or the views
        differ in their number of rows, their library or their device. The
        message names the view.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.samples.forms import as_views
    >>> views = as_views([np.ones((4, 2), dtype=int), np.ones((4, 3), dtype="float32")])
    >>> {name: (view.shape, str(view.dtype)) for name, view in views.items()}
    {'view 0': ((4, 2), 'float64'), 'view 1': ((4, 3), 'float32')}
    >>> list(as_views([[1, 2], [3, 4], [5, 6]]))
    ['table']
    """
    named = named_views(X)
    if list(named) == [TABLE] and named[TABLE] is X:
        return {TABLE: _check_table(X)}
    if not named:
        raise ValueError(f"There are no views in an empty {type(X).__name__}; pass at least one.")
    views = {name: _check_view(name, view) for name, view in named.items()}
    (first, reference), *others = views.items()
    for name, view in others:
        if view.shape[0] != reference.shape[0]:
            raise ValueError(
                f"View {first!r} has {reference.shape[0]} rows but view {name!r} has "
                f"{view.shape[0]}; every view must describe the same samples, in the same order."
            )
    who = [f"View {first!r}", *(f"view {name!r}" for name, _ in others)]
    check_one_place(list(views.values()), who)
    return views


def column_names(X: Any) -> dict[str, list[str]]:
    """Return the columns of those views that are data frames with names for them."""
    frames = {name: view for name, view in named_views(X).items() if hasattr(view, "columns")}
    columns = {name: list(frame.columns) for name, frame in frames.items()}
    return {name: c for name, c in columns.items() if all(isinstance(x, str) for x in c)}


def check_columns(X: Any, known: Mapping[str, list[str]], who: str) -> None:
    """Refuse data frames whose columns are not those that somebody was fitted on, in order."""
    for name, columns in column_names(X).items():
        expected = known.get(name, columns)
        if columns != expected and len(columns) == len(expected):
            raise ValueError(
                f"View {name!r} has the columns {columns[:5]}, but {expected[:5]} when the {who} "
                "was fitted; pass the same columns in the same order."
            )


def named_views(X: Any) -> dict[str, Any]:
    """Return what may be several views by their names, and all else as one table.

    Every way into the library comes by here: what is no table is refused, and data frames are
    brought to one order of samples.
    """
    named = _named(aligned(X)[0])
    for name, view in named.items():
        check_form(view, "X" if view is X else f"View {name!r}")
    return named


def check_form(table: Any, title: str) -> None:
    """Refuse what cannot be a table whatever it holds, and entries that are masked."""
    if table is None:
        raise TypeError(f"{title} is None: pass a table of samples by features, or leave it out.")
    several = isinstance(table, list | tuple)
    if _is_series(table) or (several and any(map(_is_series, table))):
        held = "a list of pandas Series" if several else "a pandas Series"
        raise TypeError(
            f"{title} is {held}, which could be columns or rows: pass a data frame, such as "
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
            f"{title} has {count} masked entries; impute them, such as with filled(), or drop "
            "their rows and samples everywhere."
        )


def _length(row: Any) -> int:
    """Return how many entries a row of a list has, zero where it is a number."""
    return len(row) if isinstance(row, list | tuple | np.ndarray) and depth(row) else 0


def _is_series(thing: Any) -> bool:
    """Return whether something is one column, or row, of a data frame."""
    return type(thing).__name__ == "Series" and hasattr(thing, "to_frame")


def _named(X: Any) -> dict[str, Any]:
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


def _check_table(X: Any) -> Array:
    """Return one table as floats, leaving scikit-learn to word what is wrong with it."""
    if is_foreign(X):
        return _check_foreign("X", X)
    if issparse(X):
        raise TypeError("X is a sparse matrix; kernels of views need a dense one: X.toarray().")
    if depth(X) > 2:
        raise ValueError(
            f"X has {depth(X)} dimensions, but a table of samples by features has 2; "
            "pass several views as a list or a dict of 2-D arrays."
        )
    return _as_floats(check_array(X, input_name="X"), "X")


def _check_view(name: str, view: Any) -> Array:
    """Return one of several views as floats, or say by its name what is wrong with it."""
    title = f"View {name!r}"
    if is_foreign(view):
        return _check_foreign(title, view)
    if issparse(view):
        raise TypeError(
            f"{title} is a sparse matrix; kernels of views need a dense one: "
            "pass its .toarray() instead."
        )
    _check_depth(title, view)
    try:
        view = check_array(
            view, ensure_all_finite=False, ensure_min_samples=0, ensure_min_features=0
        )
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{title} is not a table of real numbers. {error}") from error
    view = _as_floats(view, title)
    _check_entries(title, view)
    return view


def _check_foreign(title: str, view: Array) -> Array:
    """Return a view of another library than NumPy as floats, where it lives."""
    if "sparse" in str(getattr(view, "layout", "")):  # torch's have the type of the dense ones
        raise TypeError(
            f"{title} is a sparse tensor; kernels of views need a dense one: "
            "pass its .to_dense() instead."
        )
    _check_depth(title, view)
    view = as_floats(view, title)
    _check_entries(title, view)
    return view


def _check_depth(title: str, view: Any) -> None:
    """Refuse what is no table of samples by features."""
    if depth(view) != 2:
        raise ValueError(
            f"{title} has {depth(view)} dimensions, but a view has 2, samples by features; "
            "turn a single feature into a column with reshape(-1, 1)."
        )


def _check_entries(title: str, view: Array) -> None:
    """Refuse a view without entries, or with some that are not finite."""
    xp = namespace(view)
    if 0 in view.shape:
        raise ValueError(f"{title} is empty, of shape {tuple(view.shape)}; leave it out.")
    if not xp.all(xp.isfinite(view)):
        n_nan, n_inf = (int(xp.sum(xp.astype(f(view), xp.int64))) for f in (xp.isnan, xp.isinf))
        raise ValueError(
            f"{title} has entries that are not finite: {n_nan} NaN and {n_inf} infinity; impute "
            "them or drop their rows from every view."
        )


def _as_floats(view: np.ndarray, title: str) -> np.ndarray:
    """Keep float32 and float64 as they are, and turn other numbers to float64."""
    if view.dtype.kind not in "biuf":
        raise ValueError(
            f"{title} has entries of type {view.dtype}, which are not numbers; "
            "convert or drop those columns."
        )
    return view if view.dtype in (np.float32, np.float64) else view.astype(np.float64)
