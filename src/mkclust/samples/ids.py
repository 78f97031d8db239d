"""Which row is which sample: data frames are paired by their ids, and never by row against them."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mkclust.samples.frames import AnnotatedMatrix, is_frame, take_rows
from mkclust.samples.id_spelling import spelling_difference

# What a message calls the ids of a model, and how to have rows paired by their order instead.
FITTED = "the samples that the model was fitted on"
BY_ROW = "reset_index(drop=True) on every frame pairs by row"


class IdSpellingWarning(UserWarning):
    """An outer join takes two ids for two samples that are most likely one."""


@dataclass(frozen=True, eq=False)
class Joined:
    """Views or kernels whose data frames are in one order of samples.

    Parameters
    ----------
    X : dict, list, or what was given
        The same, with data frames in the common order; of an outer join they have the rows of
        their own samples only. What is in order already is not copied.
    ids : ndarray of shape (n_samples,) or None
        The ids in that order; None where no frame has any, or the only one has some twice.
    missing : ndarray of bool of shape (n_samples, n_parts) or None
        Which samples are missing from which part after an outer join; None where none is.
    """

    X: Any
    ids: np.ndarray | None = None
    missing: np.ndarray | None = None


def joined(
    X: Any,
    expected: Any = None,
    *,
    kernels: bool = False,
    of_pairs: bool = True,
    join: str = "exact",
    is_new: bool = False,
) -> Joined:
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
    join : {"exact", "inner", "outer"}, default="exact"
        Whether all frames must have the same ids, or the samples that all of them have are kept,
        in the order of the first frame with ids, or all samples are: those of the first frame,
        then the others of the next, and so on.
    is_new : bool, default=False
        Whether the samples are new ones of a model, of which every frame may have others.

    Returns
    -------
    Joined

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
        return Joined(X)
    if join == "outer" and len(parts) > 1:
        _refuse_lengths_without_ids(parts, whos)
    if not any(map(_has_ids, parts)):
        return Joined(X)
    square = [kernels or (of_pairs and is_kernel(part)) for part in parts]
    parts, indices = _columns_like_rows(parts, whos, square)
    orders, ids, missing = _orders(indices, whos, expected, join, is_new)
    for place, order in enumerate(orders):
        if order is not None:
            part = parts[place]
            parts[place] = part.iloc[order, order] if square[place] else take_rows(part, order)
    # NumPy counts nanoseconds where a person means a day.
    as_objects = ids is not None and getattr(ids.dtype, "kind", "O") in "mM"
    values = None if ids is None else ids.to_numpy(dtype=object if as_objects else None)
    if _has_ids(X):
        return Joined(parts[0], values, missing)
    ordered = dict(zip(X, parts, strict=True)) if isinstance(X, Mapping) else parts
    return Joined(ordered, values, missing)


def aligned(
    X: Any, expected: Any = None, *, kernels: bool = False
) -> tuple[Any, np.ndarray | None]:
    """Return views, or kernels, of the same samples in one order, and the ids in that order.

    Parameters
    ----------
    X : mapping, list, tuple, or anything else
        Views or kernels, or one table.
    expected : array-like of shape (n_samples,), default=None
        Ids whose order the frames are to have; None takes that of the first frame with ids.
    kernels : bool, default=False
        Whether X holds kernels, whose columns are the samples, too.
    """
    found = joined(X, expected, kernels=kernels)
    return found.X, found.ids


def aligned_to_training(X: Any, expected: Any, join: str = "exact") -> Joined:
    """Bring data frames among kernels of new samples against the training samples to one order.

    Parameters
    ----------
    X : mapping, list, tuple, or anything else
        Kernels of shape (n_new, n_samples).
    expected : array-like of shape (n_samples,) or None
        Ids of the training samples, None where they have none.
    join : {"exact", "inner", "outer"}, default="exact"
        Whether frames must have the same rows. After an outer join the columns of a frame may be
        some of the training samples, whose order they get.

    Returns
    -------
    Joined
        Frames have the rows of the first one with ids, and the columns of the fit. There are no
        ids.
    """
    if not isinstance(X, Mapping | list | tuple):
        return Joined(X)
    parts, whos = (list(X.values()) if isinstance(X, Mapping) else list(X)), _titles(X, True)
    if not any(map(is_frame, parts)):
        return Joined(X)
    indices = [p.index if is_frame(p) else None for p in parts]
    rows, _, missing = _orders(indices, whos, None, join, is_new=True)
    labels = [_like(p.columns, expected) if is_frame(p) else None for p in parts]
    titles = [f"the columns of {who}" for who in whos]
    only_some = join == "outer" and expected is not None
    columns, _, _ = _orders(labels, titles, expected, "some" if only_some else "exact")
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
    ordered = dict(zip(X, parts, strict=True)) if isinstance(X, Mapping) else parts
    return Joined(ordered, missing=missing)


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
            (_, order), *_ = _orders(
                [part.index, columns], [f"{title} {who}" for title in titles], None
            )
            part = part if order is None else part.iloc[:, order]
            index = columns if _is_default(part.index) and order is None else part.index
        ordered.append(part)
        indices.append(index)
    return ordered, indices


def _orders(
    indices: Sequence[Any],
    whos: Sequence[str],
    expected: Any,
    join: str = "exact",
    is_new: bool = False,
) -> tuple[list[np.ndarray | None], Any, np.ndarray | None]:
    """Return where the rows in the common order are, None where they stay, and the ids.

    Parameters
    ----------
    indices : sequence of pandas.Index or None
        The ids of each part, None where it has none.
    whos : sequence of str
        How messages call them.
    expected : array-like or None
        Ids that say the order; None leaves that to the first part that has ids.
    join : {"exact", "inner", "outer", "some"}, default="exact"
        Whether all have the same ids, or those are kept that all have, or all are; or whether each
        has some of those that are expected.
    is_new : bool, default=False
        Whether parts of an outer join need have no id in common.

    Returns
    -------
    orders : list of (ndarray of int or None)
        For each part.
    ids : pandas.Index or None
        None where no part has any.
    missing : ndarray of bool of shape (n_samples, n_parts) or None
        Which samples an outer join misses in which part; None where it misses none.
    """
    orders: list[np.ndarray | None] = [None] * len(indices)
    has_ids = [index is not None and not _is_default(index) for index in indices]
    if expected is not None:
        first, title = _as_index(expected, indices), FITTED
    elif any(has_ids):
        first, title = indices[has_ids.index(True)], whos[has_ids.index(True)]
    else:
        return orders, None, None
    if first is None:  # ids are known, but no part is a frame
        return orders, None, None
    for place, index in enumerate(indices):
        if index is not None and not has_ids[place]:
            has_ids[place] = _counts_as_ids(index, first, whos[place], title, join)
    if not any(has_ids):
        return orders, None, None
    if expected is None:
        first, title = indices[has_ids.index(True)], whos[has_ids.index(True)]
        if sum(has_ids) == 1 and not first.is_unique:  # there is nothing to pair
            return orders, None, None
    for index, who, has_some in zip(indices, whos, has_ids, strict=True):
        if has_some:
            _refuse_repeated(index, who)
    if join == "inner" and expected is None:
        first = _common(indices, has_ids, whos)
    if join in ("outer", "some"):
        first = _union(indices, has_ids, whos, None if expected is None else first, join, is_new)
        return _outer_orders(indices, has_ids, whos, first)
    for place, index in enumerate(indices):
        if has_ids[place] and not index.equals(first):
            orders[place] = _order(index, first, whos[place], title, join)
    _refuse_without_ids(orders, has_ids, whos, title, len(first))
    return orders, first, None


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


def _union(
    indices: Sequence[Any],
    has_ids: Sequence[bool],
    whos: Sequence[str],
    expected: Any,
    join: str,
    is_new: bool,
) -> Any:
    """Return all ids that parts have: those of the first, then the others of the next, and so on.

    Where ids are expected, these are all that parts may have.
    """
    pairs = [(i, w) for i, w, has in zip(indices, whos, has_ids, strict=True) if has and len(i)]
    everybody = pairs[0][0] if pairs else indices[has_ids.index(True)]
    for index, _ in pairs[1:]:
        if not index.equals(everybody):
            everybody = everybody.append(index[everybody.get_indexer(index) < 0])
    if expected is not None:
        for index, who in pairs:
            _refuse_others(index, expected, who)
        unknown = expected[everybody.get_indexer(expected) < 0]
        if len(unknown) and join == "outer":
            raise ValueError(
                f"{len(unknown)} of the {len(expected)} ids of {FITTED} are in no view, such as "
                f"{unknown[0]!r}: pass the same samples"
            )
        return expected
    if not is_new:
        _refuse_unconnected(pairs)
    for place, (index, who) in enumerate(pairs):
        for other, title in pairs[:place]:
            only_here, only_there = index[~index.isin(other)], other[~other.isin(index)]
            if alike := spelling_difference(only_there, only_here):
                warnings.warn(
                    f"The outer join of {title} and {who} takes two ids for two samples that may "
                    f"be one: {alike}.",
                    IdSpellingWarning,
                    stacklevel=2,
                )
    return everybody


def _refuse_others(index: Any, expected: Any, who: str) -> None:
    """Refuse ids that are not among those of a fit."""
    others = index[expected.get_indexer(index) < 0]
    if len(others):
        alike = spelling_difference(expected, others)
        raise ValueError(
            f"{_has(who)} {len(others)} ids that are not among {FITTED}, such as {others[0]!r}: "
            f"pass the same samples{f'. {alike}' * bool(alike)}"
        )


def _refuse_unconnected(pairs: Sequence[tuple[Any, str]]) -> None:
    """Refuse an outer join of parts that have no id in common, by way of no other part."""
    if not pairs:
        return
    (everybody, title), *others = pairs
    while others:
        near = [pair for pair in others if pair[0].isin(everybody).any()]
        if not near:
            _order(others[0][0], everybody, others[0][1], title)  # raises
        for pair in near:
            everybody = everybody.append(pair[0][~pair[0].isin(everybody)])
        others = [pair for pair in others if not any(pair is each for each in near)]


def _outer_orders(
    indices: Sequence[Any], has_ids: Sequence[bool], whos: Sequence[str], everybody: Any
) -> tuple[list[np.ndarray | None], Any, np.ndarray | None]:
    """Return where the rows of each part are in the order of all ids, and who lacks which."""
    orders: list[np.ndarray | None] = [None] * len(indices)
    missing = np.zeros((len(everybody), len(indices)), dtype=bool)
    for place, index in enumerate(indices):
        if has_ids[place] and not index.equals(everybody):
            where = index.get_indexer(everybody)
            missing[:, place], order = where < 0, where[where >= 0]
            orders[place] = None if np.array_equal(order, np.arange(len(index))) else order
    is_joined = missing.any() or any(order is not None for order in orders)
    without = [who for who, has_some in zip(whos, has_ids, strict=True) if not has_some]
    if is_joined and without:
        raise ValueError(
            f"an outer join needs the ids of all rows, and {without[0]} has none: it cannot be "
            f"known which of the {len(everybody)} samples its rows are. Make {without[0]} a data "
            "frame with ids, or give every part a row for each sample, empty (NaN) where it is "
            "missing"
        )
    return orders, everybody, missing if missing.any() else None


def _refuse_lengths_without_ids(parts: Sequence[Any], whos: Sequence[str]) -> None:
    """Refuse an outer join of tables of several lengths none of which has ids."""
    if any(_has_ids(part) and not _is_default(part.index) for part in parts):
        return
    lengths = {who: _length(part) for who, part in zip(whos, parts, strict=True)}
    known = {who: n for who, n in lengths.items() if n is not None}
    if len(set(known.values())) < 2:
        return
    (first, n), *others = known.items()
    other = next(who for who, number in others if number != n)
    raise ValueError(
        f"join='outer' joins tables by the ids of their rows, and none has any: {first} has {n} "
        f"rows, {other} {known[other]}, and it cannot be known which samples these are. Pass data "
        "frames of pandas with the ids as index, such as by frame.set_index(column), or tables of "
        "a row for each sample, empty (NaN) where it is missing"
    )


def _length(part: Any) -> int | None:
    """Return the number of rows of a part, None where it cannot be told."""
    shape = getattr(part, "shape", None)
    length = shape[0] if shape else len(part) if isinstance(part, list | tuple) else None
    return length if isinstance(length, int) else None


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
            "samples that all have or join='outer' to keep all samples, or select them yourself "
            f"by frame.loc[common] ({BY_ROW}){f'. {alike}' * bool(alike)}"
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


def _counts_as_ids(index: Any, first: Any, who: str, title: str, join: str) -> bool:
    """Return whether the default index 0, 1, ... holds the ids of another, or refuse a part."""
    if join == "outer" and not len(index):
        return True  # a frame of no sample
    common = 0 if first.nlevels > 1 else int(np.sum(index.isin(first)))
    if join == "outer" and common == len(first):
        return True  # the other frame has lost rows, and kept their numbers
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
