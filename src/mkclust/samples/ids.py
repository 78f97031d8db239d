"""Which row is which sample: data frames are paired by their ids, and never by row against them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mkclust.samples.frames import AnnotatedMatrix, is_frame, take_rows
from mkclust.samples.id_spelling import spelling_difference

# What a message calls the ids of a model, and how to have rows paired by their order instead.
FITTED = "the samples that the model was fitted on"
BY_ROW = "reset_index(drop=True) on every frame pairs by row"


def aligned(
    X: Any,
    expected: Any = None,
    *,
    kernels: bool = False,
    of_pairs: bool = True,
    join: str = "exact",
) -> tuple[Any, np.ndarray | None]:
    """Bring the data frames among views, or kernels, to one order of samples.

    Frames with the same ids are brought to the order of the first one that has ids. The index
    0, 1, ... that a frame has by default is no id, but beside ids that are the same numbers. Arrays
    have no ids, and are paired by row where that contradicts none.

    Parameters
    ----------
    X : mapping, list, tuple, or anything else
        Views or kernels, or one table.
    expected : array-like of shape (n_samples,), default=None
        Ids whose order the frames are to have; None takes that of the first frame with ids.
    kernels : bool, default=False
        Whether X holds kernels, whose columns are the samples, too.
    of_pairs : bool, default=True
        Whether a frame whose columns are the ids of its rows, as one of distances, keeps its
        columns in the order of its rows; new samples have the columns of a fit instead.
    join : {"exact", "inner"}, default="exact"
        Whether all frames must have the same ids, or the samples that all of them have are kept,
        in the order of the first frame with ids.

    Returns
    -------
    X : dict, list, or what was given
        The same, with data frames in the common order; what is in order already is not copied.
    ids : ndarray of shape (n_samples,) or None
        The ids in that order; None where no frame has any, or the only one has some twice.

    Raises
    ------
    ValueError
        Where frames hold other ids, or one of several holds an id twice, or an array stands beside
        frames of different orders.
    """
    if _has_ids(X):
        parts, whos = [X], ["X"]
    elif isinstance(X, Mapping | list | tuple) and not issparse(X):
        parts = list(X.values()) if isinstance(X, Mapping) else list(X)
        whos = _titles(X, kernels)
    else:
        return X, None
    if not any(map(_has_ids, parts)):
        return X, None
    square = [kernels or (of_pairs and is_kernel(part)) for part in parts]
    parts, indices = _columns_like_rows(parts, whos, square)
    orders, ids = _orders(indices, whos, expected, join)
    for place, order in enumerate(orders):
        if order is not None:
            part = parts[place]
            parts[place] = part.iloc[order, order] if square[place] else take_rows(part, order)
    # NumPy counts nanoseconds where a person means a day.
    as_objects = ids is not None and getattr(ids.dtype, "kind", "O") in "mM"
    values = None if ids is None else ids.to_numpy(dtype=object if as_objects else None)
    if _has_ids(X):
        return parts[0], values
    return dict(zip(X, parts, strict=True)) if isinstance(X, Mapping) else parts, values


def aligned_to_training(X: Any, expected: Any) -> Any:
    """Bring data frames among kernels of new samples against the training samples to one order.

    Parameters
    ----------
    X : mapping, list, tuple, or anything else
        Kernels of shape (n_new, n_samples).
    expected : array-like of shape (n_samples,) or None
        Ids of the training samples, None where they have none.

    Returns
    -------
    dict, list, or what was given
        The same, frames having the rows of the first one with ids, and the columns of the fit.
    """
    if not isinstance(X, Mapping | list | tuple):
        return X
    parts, whos = (list(X.values()) if isinstance(X, Mapping) else list(X)), _titles(X, True)
    if not any(map(is_frame, parts)):
        return X
    rows, _ = _orders([p.index if is_frame(p) else None for p in parts], whos, None)
    labels = [_like(p.columns, expected) if is_frame(p) else None for p in parts]
    columns, _ = _orders(labels, [f"the columns of {who}" for who in whos], expected)
    if expected is None and (
        reordered := [w for w, c in zip(whos, columns, strict=True) if c is not None]
    ):
        raise ValueError(
            f"the columns of {reordered[0]} are in another order than those of other kernels, and "
            "the model was fitted on samples without ids: pass the columns of all kernels in the "
            "order of the training samples"
        )
    everything = slice(None)
    for place, (row, column) in enumerate(zip(rows, columns, strict=True)):
        if row is not None or column is not None:
            parts[place] = parts[place].iloc[
                everything if row is None else row, everything if column is None else column
            ]
    return dict(zip(X, parts, strict=True)) if isinstance(X, Mapping) else parts


def order_of(ids: np.ndarray, expected: Any) -> np.ndarray | None:
    """Return where expected ids are among others, None where all are in place.

    Parameters
    ----------
    ids : ndarray of shape (n_samples,)
        Ids of samples that are in one order in all views.
    expected : array-like of shape (n_samples,)
        The same ids in the order that is asked for.
    """
    import pandas as pd

    return _order(pd.Index(ids), pd.Index(expected), "X", FITTED)


def _has_ids(thing: Any) -> bool:
    """Return whether something is a table whose rows have ids."""
    return is_frame(thing) or isinstance(thing, AnnotatedMatrix)


def is_kernel(frame: Any) -> bool:
    """Return whether the columns of a data frame are the ids of its rows."""
    if not is_frame(frame):
        return False
    rows, columns = frame.index, frame.columns
    if len(rows) != len(columns) or _is_default(rows) or not (rows.is_unique and columns.is_unique):
        return False
    return bool(np.all(_like(columns, rows).get_indexer(rows) >= 0))


def _titles(X: Any, kernels: bool) -> list[str]:
    """Return how messages call the views or kernels of X."""
    if not kernels:
        names = list(X) if isinstance(X, Mapping) else [f"view {i}" for i in range(len(X))]
        return [f"view {str(name)!r}" for name in names]
    if not isinstance(X, Mapping):
        return [f"kernel {i}" for i in range(len(X))]
    return [f"kernel {i} ({str(name)!r})" for i, name in enumerate(X)]


def _columns_like_rows(
    parts: Sequence[Any], whos: Sequence[str], square: Sequence[bool]
) -> tuple[list, list]:
    """Return square frames with their columns in the order of their rows, and the ids of all."""
    ordered, indices = [], []
    for part, who, is_square in zip(parts, whos, square, strict=True):
        index = part.index if _has_ids(part) and not is_square else None
        # What should be square and is not is refused elsewhere.
        if is_square and is_frame(part) and part.shape[0] == part.shape[1]:
            columns, titles = _like(part.columns, part.index), ("the rows of", "the columns of")
            (_, order), _ = _orders(
                [part.index, columns], [f"{title} {who}" for title in titles], None
            )
            part = part if order is None else part.iloc[:, order]
            index = columns if _is_default(part.index) and order is None else part.index
        ordered.append(part)
        indices.append(index)
    return ordered, indices


def _orders(
    indices: Sequence[Any], whos: Sequence[str], expected: Any, join: str = "exact"
) -> tuple[list[np.ndarray | None], Any]:
    """Return where the rows in the common order are, None where they stay, and the ids.

    Parameters
    ----------
    indices : sequence of pandas.Index or None
        The ids of each part, None where it has none.
    whos : sequence of str
        How messages call them.
    expected : array-like or None
        Ids that say the order; None leaves that to the first part that has ids.
    join : {"exact", "inner"}, default="exact"
        Whether all have the same ids, or those are kept that all have.

    Returns
    -------
    orders : list of (ndarray of int or None)
        For each part.
    ids : pandas.Index or None
        None where no part has any.
    """
    orders: list[np.ndarray | None] = [None] * len(indices)
    has_ids = [index is not None and not _is_default(index) for index in indices]
    if expected is not None:
        first, title = _as_index(expected, indices), FITTED
    elif any(has_ids):
        first, title = indices[has_ids.index(True)], whos[has_ids.index(True)]
    else:
        return orders, None
    if first is None:  # ids are known, but no part is a frame
        return orders, None
    for place, index in enumerate(indices):
        if index is not None and not has_ids[place]:
            has_ids[place] = _counts_as_ids(index, first, whos[place], title)
    if not any(has_ids):
        return orders, None
    if expected is None:
        first, title = indices[has_ids.index(True)], whos[has_ids.index(True)]
        if sum(has_ids) == 1 and not first.is_unique:  # there is nothing to pair
            return orders, None
    for index, who, has_some in zip(indices, whos, has_ids, strict=True):
        if has_some:
            _refuse_repeated(index, who)
    if join == "inner" and expected is None:
        first = _common(indices, has_ids, whos)
    for place, index in enumerate(indices):
        if has_ids[place] and not index.equals(first):
            orders[place] = _order(index, first, whos[place], title, join)
    _refuse_without_ids(orders, has_ids, whos, title, len(first))
    return orders, first


def _common(indices: Sequence[Any], has_ids: Sequence[bool], whos: Sequence[str]) -> Any:
    """Return the ids that all parts with ids have, in the order of the first of them."""
    places = [place for place, has_some in enumerate(has_ids) if has_some]
    common = first = indices[places[0]]
    for place in places[1:]:
        if indices[place].equals(first):
            continue
        _order(indices[place], first, whos[place], whos[places[0]], "inner")  # refuses others
        common = common[indices[place].get_indexer(common) >= 0]
    if not len(common):
        raise ValueError(
            f"there is no id that all of {', '.join(whos[place] for place in places)} have: leave "
            f"one of them out, or give the same samples the same ids ({BY_ROW})"
        )
    return common


def _refuse_without_ids(
    orders: Sequence[np.ndarray | None],
    has_ids: Sequence[bool],
    whos: Sequence[str],
    title: str,
    n_samples: int,
) -> None:
    """Refuse parts without ids beside others whose rows have changed their places."""
    reordered = [place for place, order in enumerate(orders) if order is not None]
    without = [who for who, has_some in zip(whos, has_ids, strict=True) if not has_some]
    if not (reordered and without):
        return
    who = whos[reordered[0]]
    if who == title:
        start = f"{n_samples} of the samples of {title} are in all frames"
    else:
        start = f"{_has(who)} the ids of {title} in another order"
    raise ValueError(
        f"{start}, and {without[0]} has no ids: it cannot be known which order its "
        "rows have. Bring all frames to the order "
        f"that it has, such as by frame.loc[ids], or make {without[0]} a data frame with ids"
    )


def _order(index: Any, first: Any, who: str, title: str, join: str = "exact") -> np.ndarray | None:
    """Return where the ids of the first are in an index, None where both have one order."""
    for ids, owner in ((index, who), (first, title)):
        _refuse_repeated(ids, owner)
    where = index.get_indexer(first)
    common = int(np.sum(where >= 0))
    if common == len(index) == len(first):
        return None if np.array_equal(where, np.arange(len(where))) else where
    if common and join == "inner":
        if title != FITTED or common == len(first):
            return where[where >= 0]
        raise ValueError(
            f"{_has(who)} {common} of the {len(first)} ids of {title}: pass the same samples"
        )
    alike = spelling_difference(first, index)
    if common:
        raise ValueError(
            f"{_start(title)} and {who} have {common} ids in common, and {len(first) - common} are "
            f"only in {title}, {len(index) - common} only in {who}: pass join='inner' to keep the "
            f"samples that all have, or select them yourself by frame.loc[common] ({BY_ROW})"
            f"{f'. {alike}' * bool(alike)}"
        )
    differ = str(index.dtype) != str(first.dtype)
    types = f" (they are of the types {first.dtype} and {index.dtype})" * differ
    as_text = ", such as by frame.index = frame.index.astype(str)" * differ
    examples = " and ".join(repr(ids[:1].tolist()[0]) for ids in (first, index) if len(ids))
    raise ValueError(
        f"{_start(title)} and {who} have no ids in common, {len(first)} and {len(index)} of their "
        f"own{types}, such as {examples}: "
        f"{alike or f'give the same samples the same ids{as_text}'} ({BY_ROW})"
    )


def _refuse_repeated(ids: Any, owner: str) -> None:
    """Refuse ids of which some are there twice, and name one of these."""
    if ids.is_unique:
        return
    repeated = ids[ids.duplicated()]
    raise ValueError(
        f"{_has(owner)} {len(repeated)} ids more than once, such as {repeated[0]!r}, so that they "
        "do not tell which row is which sample: keep one row an id, as "
        f"frame[~frame.index.duplicated()] does ({BY_ROW})"
    )


def _counts_as_ids(index: Any, first: Any, who: str, title: str) -> bool:
    """Return whether the default index 0, 1, ... holds the ids of another, or refuse a part."""
    common = 0 if first.nlevels > 1 else int(np.sum(index.isin(first)))
    if common == 0 or common == len(index) == len(first):
        return common > 0
    raise ValueError(
        f"{_has(who)} the default index 0 to {len(index) - 1}, and {common} of these are ids of "
        f"{title}, {len(first) - common} of whose ids are others: if both are in one order, give "
        f"both the same ids ({BY_ROW})"
    )


def _is_default(index: Any) -> bool:
    """Return whether an index is the one that a frame has where none is given."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def _as_index(expected: Any, indices: Sequence[Any]) -> Any:
    """Return ids as an index, None where there is none to compare them with."""
    if hasattr(expected, "get_indexer") or all(index is None for index in indices):
        return expected if hasattr(expected, "get_indexer") else None
    import pandas as pd

    return pd.Index(expected)


def _like(columns: Any, rows: Any) -> Any:
    """Return columns as ids of the type of rows: of a text file, columns are text in any case."""
    if columns is None or rows is None or len(columns) != len(rows):
        return columns
    rows = _as_index(rows, [columns])
    if rows.nlevels > 1 or columns.nlevels > 1 or columns.isin(rows).any():
        return columns
    as_text = rows.astype(str)
    where = as_text.get_indexer(columns) if as_text.is_unique else np.array([-1])
    return rows[where] if np.all(where >= 0) else columns


def _start(who: str) -> str:
    """Return the name of something as a sentence begins with it."""
    return who[0].upper() + who[1:] if who.startswith(("view", "the")) else who


def _has(who: str) -> str:
    """Return the beginning of a sentence about what something has."""
    return f"{_start(who)} {'have' if who.startswith('the ') else 'has'}"
