"""Data frames of the same samples are brought to one order by their ids."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from scipy.sparse import issparse

from mkclust.exceptions import IdSpellingWarning
from mkclust.index import (
    BY_ROW,
    FITTED,
    count_as_ids,
    find,
    has_ids,
    refuse_missing,
    refuse_repeated,
    sentence_start,
    spelling_difference,
    written_like,
)
from mkclust.samples.frames import AnnotatedMatrix, is_frame, take_rows


@dataclass(frozen=True, eq=False)
class Joined:
    """Views or kernels whose data frames are in one order of samples.

    Parameters
    ----------
    X : dict, list, or what was given
        The same, with data frames in the common order; of an outer join they have the rows of
        their own samples only. What is in order already is not copied.
    index : pandas.Index or None
        The index of the samples; None for arrays, and if the only frame has an id twice.
    has_ids : bool
        Whether the index holds ids.
    missing : ndarray of bool of shape (n_samples, n_parts) or None
        Which samples are missing from which part after an outer join; None if none is.
    """

    X: Any
    index: Any = None
    has_ids: bool = False
    missing: np.ndarray | None = None

    @property
    def ids(self) -> np.ndarray | None:
        """The ids in that order, None if there are none."""
        if not self.has_ids:
            return None
        # NumPy counts nanoseconds, and a person means a day.
        is_time = getattr(self.index.dtype, "kind", "O") in "mM"
        return self.index.to_numpy(dtype=object if is_time else None)

    @property
    def index_names(self) -> tuple[str | None, ...] | None:
        """The names of the levels of the index, None without one."""
        if self.index is None:
            return None
        return tuple(None if name is None else str(name) for name in self.index.names)


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

    Frames with the same ids are brought to the order of the first one that has ids, by the rule of
    `mkclust.index`. Arrays are paired by row if that contradicts no ids.

    Parameters
    ----------
    X : mapping, list, tuple, or anything else
        Views or kernels, or one table.
    expected : pandas.Index, default=None
        The index whose order the frames are to have; None takes that of the first frame with ids.
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
        If frames hold other ids, or one of several holds an id twice, or an array stands beside
        frames of different orders.
    """
    several = isinstance(X, Mapping | list | tuple) and not issparse(X)
    if not several and not _has_index(X):
        return Joined(X)
    parts = list(X.values() if isinstance(X, Mapping) else X) if several else [X]
    whos = _titles(X, kernels) if several else ["X"]
    if not any(map(_has_index, parts)):
        return Joined(X)
    square = [kernels or (of_pairs and is_kernel(part)) for part in parts]
    parts, indices = _columns_like_rows(parts, whos, square)
    orders, index, missing = _orders(indices, whos, expected, join, is_new)
    for place, order in enumerate(orders):
        if order is not None:
            part = parts[place]
            parts[place] = part.iloc[order, order] if square[place] else take_rows(part, order)
    ordered = _like_input(X, parts) if several else parts[0]
    if index is not None:
        return Joined(ordered, index, True, missing)
    return Joined(ordered, _default_index(indices))


def _like_input(X: Any, parts: list[Any]) -> Any:
    """Return parts in a dict of the same names, or in a list."""
    return dict(zip(X, parts, strict=True)) if isinstance(X, Mapping) else parts


def _default_index(indices: Sequence[Any]) -> Any:
    """Return the default index that parts have in common, None if there is none."""
    known = [index for index in indices if index is not None and not has_ids(index)]
    return known[0] if len({len(index) for index in known}) == 1 else None


def aligned_to_training(X: Any, expected: Any, join: str = "exact") -> Joined:
    """Bring data frames among kernels of new samples against the training samples to one order.

    Parameters
    ----------
    X : mapping, list, tuple, or anything else
        Kernels of shape (n_new, n_samples).
    expected : pandas.Index or None
        The index of the training samples, None if they have none.
    join : {"exact", "inner", "outer"}, default="exact"
        Whether frames must have the same rows. After an outer join the columns of a frame may be
        some of the training samples, whose order they get.

    Returns
    -------
    Joined
        Frames have the rows of the first one with ids, and the columns of the fit. There is no
        index.
    """
    if not isinstance(X, Mapping | list | tuple):
        return Joined(X)
    parts, whos = (list(X.values()) if isinstance(X, Mapping) else list(X)), _titles(X, True)
    if not any(map(is_frame, parts)):
        return Joined(X)
    indices = [p.index if is_frame(p) else None for p in parts]
    rows, _, missing = _orders(indices, whos, None, join, is_new=True)
    labels = [p.columns if is_frame(p) else None for p in parts]
    titles = [f"the columns of {who}" for who in whos]
    only_some = join == "outer" and expected is not None
    columns, found, _ = _orders(labels, titles, expected, "some" if only_some else "exact")
    reordered = [who for who, column in zip(whos, columns, strict=True) if column is not None]
    if reordered and found is not expected:
        raise ValueError(
            f"the columns of {reordered[0]} are in another order than those of other kernels, and "
            "the model was fitted on samples without ids: pass the columns of all kernels in the "
            "order of the training samples"
        )
    for axis, orders in enumerate((rows, columns)):
        for place, order in enumerate(orders):
            parts[place] = parts[place] if order is None else parts[place].take(order, axis=axis)
    return Joined(_like_input(X, parts), missing=missing)


def order_of(index: Any, expected: Any) -> np.ndarray | None:
    """Return where expected samples are among others, None if all are in place.

    Parameters
    ----------
    index : pandas.Index or None
        The index of samples that are in one order in all views.
    expected : pandas.Index
        The same samples in the order that is asked for.
    """
    return _orders([index], ["X"], expected)[0][0]


def _has_index(thing: Any) -> bool:
    """Return whether something is a table with an index."""
    return is_frame(thing) or isinstance(thing, AnnotatedMatrix)


def is_kernel(frame: Any) -> bool:
    """Return whether the columns of a data frame are the ids of its rows."""
    if not is_frame(frame):
        return False
    rows, columns = frame.index, frame.columns
    if len(rows) != len(columns) or not (has_ids(rows) and rows.is_unique and columns.is_unique):
        return False
    return bool(np.all(find(written_like(columns, rows), rows) >= 0))


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
        index = part.index if _has_index(part) and not is_square else None
        # What should be square and is not is refused elsewhere.
        if is_square and is_frame(part) and part.shape[0] == part.shape[1]:
            titles = [f"the {axis} of {who}" for axis in ("rows", "columns")]
            (_, order), *_ = _orders([part.index, part.columns], titles, None)
            part = part if order is None else part.iloc[:, order]
            index = part.index if has_ids(part.index) or order is not None else part.columns
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
    """Return where the rows in the common order are, the ids, and which sample is missing where.

    `indices` has None for parts without an index. With `join="some"`, each part has some of the
    expected ids. Parts of an outer join of new samples need have no id in common. The orders are
    None for parts that stay as they are, and the ids None if no part has any.
    """
    orders: list[np.ndarray | None] = [None] * len(indices)
    for index, who in zip(indices, whos, strict=True):
        if index is not None:
            refuse_missing(index, who)
    named = [place for place, index in enumerate(indices) if has_ids(index)]
    by_number = (
        expected is None
        or has_ids(expected)
        or all(count_as_ids(expected, indices[place], FITTED, whos[place]) for place in named)
    )
    if not by_number:
        expected, join = None, "exact" if join == "some" else join
    if expected is None and not named:
        return orders, None, None
    first, title = expected, FITTED
    if expected is None:
        first, title = indices[named[0]], whos[named[0]]
    for place, index in enumerate(indices):
        if index is not None and place not in named:
            is_empty = join == "outer" and not len(index)
            if is_empty or not has_ids(first) or count_as_ids(index, first, whos[place], title):
                named = sorted([*named, place])
    if not named:
        return orders, None, None
    if expected is None:
        first, title = indices[named[0]], whos[named[0]]
        if len(named) == 1 and not first.is_unique:  # there is nothing to pair
            return orders, None, None
    pairs = [(written_like(indices[place], first), whos[place]) for place in named]
    for index, who in [*pairs, (first, title)]:
        refuse_repeated(index, who)
    ids = first
    if expected is None and join != "exact":
        ids = _common(pairs) if join == "inner" else _union(pairs, is_new)
    missing = np.zeros((len(ids), len(indices)), dtype=bool)
    for place, (index, who) in zip(named, pairs, strict=True):
        where = find(index, ids)
        missing[:, place], order = where < 0, where[where >= 0]
        lacks_some = missing[:, place].any() and join not in ("outer", "some")
        if lacks_some or (len(order) < len(index) and join != "inner"):
            _refuse_others(index, first, who, title)
        if not np.array_equal(order, np.arange(len(index))):
            orders[place] = order
    unknown = ids[missing[:, named].all(axis=1)]
    if join == "outer" and len(unknown):
        raise ValueError(
            f"{len(unknown)} of the {len(ids)} ids of {title} are in no view, such as "
            f"{unknown[0]!r}: pass the same samples"
        )
    without = [who for place, who in enumerate(whos) if place not in named]
    if without and (missing[:, named].any() or any(order is not None for order in orders)):
        raise ValueError(
            f"{without[0]} has no ids, and other frames have different ids, or ids in different "
            f"orders: it cannot be known which of the {len(ids)} samples its rows are. Bring all "
            f"frames to the order that it has, such as by frame.loc[ids], or make {without[0]} a "
            "data frame with ids"
        )
    return orders, ids, missing if missing.any() else None


def _common(pairs: Sequence[tuple[Any, str]]) -> Any:
    """Return the ids that all indices have, in the order of the first."""
    (common, title), *others = pairs
    for index, who in others:
        if not (find(index, pairs[0][0]) >= 0).any():
            _refuse_others(index, pairs[0][0], who, title)
        common = common[find(index, common) >= 0]
    if not len(common):
        raise ValueError(
            f"there is no id that all of {', '.join(who for _, who in pairs)} have: leave one of "
            f"them out, or give the same samples the same ids ({BY_ROW})"
        )
    return common


def _union(pairs: Sequence[tuple[Any, str]], is_new: bool) -> Any:
    """Return all ids: those of the first index, then the others of the next, and so on."""
    (everybody, title), *others = pairs = [pair for pair in pairs if len(pair[0])] or pairs
    for index, _ in others:
        everybody = everybody.append(index[find(everybody, index) < 0])
    known = pairs[0][0]
    while others and not is_new:  # each must have an id in common with another
        near = [(find(known, index) >= 0).any() for index, _ in others]
        if not any(near):
            _refuse_others(others[0][0], known, others[0][1], title)
        for (index, _), is_near in zip(others, near, strict=True):
            known = known.append(index[find(known, index) < 0]) if is_near else known
        others = [pair for pair, is_near in zip(others, near, strict=True) if not is_near]
    for place, (index, who) in enumerate(pairs):
        for other, owner in pairs[:place]:
            only_here, only_there = index[find(other, index) < 0], other[find(index, other) < 0]
            if alike := spelling_difference(only_there, only_here):
                warnings.warn(
                    f"The outer join of {owner} and {who} takes two ids for two samples that may "
                    f"be one: {alike}.",
                    IdSpellingWarning,
                    stacklevel=2,
                )
    return everybody


def _refuse_others(index: Any, first: Any, who: str, title: str) -> NoReturn:
    """Refuse an index whose ids are not those of the first."""
    common, alike = int((find(index, first) >= 0).sum()), spelling_difference(first, index)
    if common:
        raise ValueError(
            f"{sentence_start(title)} and {who} have {common} ids in common, and "
            f"{len(first) - common} are only in {title}, {len(index) - common} only in {who}: pass "
            "join='inner' to keep the samples that all have or join='outer' to keep all samples, "
            f"or select them yourself by frame.loc[common] ({BY_ROW})"
            f"{f'. {alike}' * bool(alike)}"
        )
    differ = str(index.dtype) != str(first.dtype)
    types = f" (they are of the types {first.dtype} and {index.dtype})" * differ
    as_text = ", such as by frame.index = frame.index.astype(str)" * differ
    examples = " and ".join(repr(ids[:1].tolist()[0]) for ids in (first, index) if len(ids))
    raise ValueError(
        f"{sentence_start(title)} and {who} have no ids in common, {len(first)} and {len(index)} "
        f"of their own{types}, such as {examples}: "
        f"{alike or f'give the same samples the same ids{as_text}'} ({BY_ROW})"
    )
