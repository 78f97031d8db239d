"""Tables of the same samples are brought to one order by their ids."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import connected_components

from mkclust.data.check import is_symmetric
from mkclust.data.missing import take
from mkclust.data.tables import Table
from mkclust.exceptions import IdSpellingWarning, warn
from mkclust.index import (
    BY_ROW,
    FITTED,
    are_matched_by_id,
    find,
    has_ids,
    id_advice,
    match_rows,
    refuse_disjoint,
    refuse_missing,
    refuse_repeated,
    spelled_otherwise,
    whole_numbers,
    written_like,
)
from mkclust.text import join_words


class Alignment(NamedTuple):
    """Where the samples are in each of several tables."""

    # Of the samples that a table has, in order; None: as they are.
    rows: list[np.ndarray | None]
    # Of the samples; None for arrays, and if the only table has an id twice.
    index: Any = None
    # Which samples (rows) lack which table; None if none does.
    missing: np.ndarray | None = None
    # Labels of tables that are paired with others by position.
    without_ids: Sequence[str] = ()

    @property
    def ids(self) -> np.ndarray | None:
        """The ids of the samples, None if there are none."""
        if not has_ids(self.index):
            return None
        # NumPy counts nanoseconds, and a person means a day.
        is_time = getattr(self.index.dtype, "kind", "O") in "mM"
        return self.index.to_numpy(dtype=object if is_time else None)

    @property
    def names(self) -> tuple[str | None, ...] | None:
        """The names of the levels of the index, None without one."""
        if self.index is None:
            return None
        return tuple(
            None if level is None else str(level) for level in self.index.names
        )


def align(
    indexes: Sequence[Any],
    labels: Sequence[str],
    *,
    join: str = "exact",
    is_new: bool = False,
) -> Alignment:
    """Find the samples of several tables, by the rule of `mkclust.index`.

    The index of an array is None. An inner join has the order of the first table with
    ids, an outer one has its ids, then the others of the next, and so on. New samples
    may be in any table.
    """
    given = {place: each for place, each in enumerate(indexes) if each is not None}
    for place, index in given.items():
        refuse_missing(index, labels[place])
    defaults = [index for index in given.values() if not has_ids(index)]
    as_they_are = Alignment([None] * len(indexes))
    if len({len(index) for index in defaults}) == 1:
        as_they_are = as_they_are._replace(index=defaults[0])
    if len(defaults) == len(given):
        return as_they_are
    named = _matched_by_id(given, labels, join)
    first = next(iter(named.values()))
    if len(named) == 1 and not first.is_unique:
        return as_they_are  # there is nothing to pair

    pairs = [
        (written_like(index, first), labels[place]) for place, index in named.items()
    ]
    for pair in pairs:
        refuse_repeated(*pair)
    ids = _ids_of(first, pairs, join, is_new)

    rows: list[np.ndarray | None] = [None] * len(indexes)
    missing = np.zeros((len(ids), len(indexes)), dtype=bool)
    for place, (index, _) in zip(named, pairs, strict=True):
        where = find(index, ids)
        missing[:, place] = where < 0
        order = where[where >= 0]
        if not np.array_equal(order, np.arange(len(index))):
            rows[place] = order

    without = [label for place, label in enumerate(labels) if place not in named]
    if without and (missing.any() or any(order is not None for order in rows)):
        raise ValueError(
            f"{without[0]} has no ids, and other tables have different ids, or ids in "
            f"different orders: give {without[0]} an index of ids"
        )
    return Alignment(rows, ids, missing if missing.any() else None, without)


def _ids_of(
    first: Any, pairs: Sequence[tuple[Any, str]], join: str, is_new: bool
) -> Any:
    """Return the ids of the samples that a join keeps."""
    if join == "inner":
        return _common(pairs)
    if join == "outer":
        return _union(pairs, is_new)

    title = pairs[0][1]
    for index, label in pairs:
        common = int((find(index, first) >= 0).sum())
        if not common:
            refuse_disjoint(first, index, title, label)
        if not len(index) == len(first) == common:
            message = (
                f"{title} and {label} have {common} ids in common, and "
                f"{len(first) - common} are only in {title}, {len(index) - common} "
                f"only in {label}: pass join='inner' to keep the samples that all have "
                f"or join='outer' to keep all samples ({BY_ROW})"
            )
            advice = id_advice(first, index)
            raise ValueError(f"{message}. {advice}" if advice else message)
    return first


def _matched_by_id(
    indexes: Mapping[int, Any], labels: Sequence[str], join: str
) -> dict[int, Any]:
    """Return the indexes that are matched by id with the first one that holds ids."""
    first = next(place for place, index in indexes.items() if has_ids(index))
    named = {}
    for place, index in indexes.items():
        is_own = place == first or (join == "outer" and not len(index))
        pair = (index, indexes[first], labels[place], labels[first])
        if is_own or are_matched_by_id(*pair):
            named[place] = index
    return named


def align_tables(
    tables: Sequence[Table],
    labels: Sequence[str],
    square: Sequence[bool],
    join: str,
    is_new: bool,
) -> tuple[list[Table], Alignment]:
    """Bring tables, and the columns of square ones, to one order of samples."""
    aligned = [
        _columns_like_rows(table, label) if is_square else table
        for table, label, is_square in zip(tables, labels, square, strict=True)
    ]
    _refuse_positions(aligned, labels)
    indexes = [table.index for table in aligned]
    found = align(indexes, labels, join=join, is_new=is_new)
    for place, rows in enumerate(found.rows):
        if rows is not None:
            table = aligned[place]
            values = take(table.values, rows, square[place])
            aligned[place] = replace(table, values=values, index=table.index[rows])
    return aligned, found


def _refuse_positions(tables: Sequence[Table], labels: Sequence[str]) -> None:
    """Refuse a default index next to ids that are not numbers of rows."""
    named = [place for place, table in enumerate(tables) if has_ids(table.index)]
    if not named:
        return

    ids = tables[named[0]].index
    whose = labels[named[0]]
    # Which may be those of the default index.
    are_numbers = whole_numbers(ids) is not None
    for place, table in enumerate(tables):
        if table.index is None or not len(table.index) or place in named:
            continue
        if not are_numbers or _has_all_ids(table, ids):
            raise ValueError(
                f"{whose} has ids such as {ids[:1].tolist()[0]!r}, and {labels[place]} "
                "has the default index, so that its rows may be in another order: pass "
                "frame.set_index(column) if a column holds its ids, or "
                f"frame.set_axis(other.index) if its rows are in the order of {whose}"
            )


def _has_all_ids(table: Table, ids: Any) -> bool:
    """Return whether a column of unique values holds all ids of another frame."""
    if not table.is_frame or ids.nlevels > 1 or len(table.index) < len(ids):
        return False

    return any(
        column.is_unique
        and pd.Index(ids).isin(written_like(pd.Index(column), ids)).all()
        for _, column in table.values.items()
    )


def training_columns(
    kernels: Sequence[Any], labels: Sequence[str], training: Any, join: str
) -> list[Any]:
    """Bring the columns of new samples' kernels to the order of training samples."""
    frames = {
        place: kernel
        for place, kernel in enumerate(kernels)
        if isinstance(kernel, pd.DataFrame)
    }
    found = list(kernels)
    if training is None:
        headers = [K.columns for K in frames.values()]
        if all(headers[0].equals(each) for each in headers):
            return found
        raise ValueError(
            f"the columns of {join_words(labels)} are not in one order, and the model "
            "was fitted on samples without ids: pass their order"
        )
    for p, K in frames.items():
        if has_ids(K.columns) or len(K.columns) == len(training):
            who = f"the header of {labels[p]}"
            order = match_rows(K.columns, training, who, every=join != "outer")
            order = order[order >= 0]
            others = len(K.columns) - len(order)
            if others:
                raise ValueError(
                    f"{who} has {others} ids that are not among {FITTED}: drop them"
                )
            found[p] = K.take(order, axis=1)
    return found


def columns_are_ids(frame: Any) -> bool:
    """Return whether the columns of a frame are the ids of its rows, as in a kernel."""
    if not isinstance(frame, pd.DataFrame) or frame.shape[0] != frame.shape[1]:
        return False
    rows = frame.index
    columns = written_like(frame.columns, rows)
    are_unique = has_ids(rows) and rows.is_unique and columns.is_unique
    return are_unique and bool(np.all(find(columns, rows) >= 0))


def looks_like_kernel(X: Any) -> bool:
    """Return whether X is symmetric, or has the ids of its rows as columns."""
    return is_symmetric(X) or (columns_are_ids(X) and len(X) > 1)


def _columns_like_rows(table: Table, label: str) -> Table:
    """Return a square table whose columns are in the order of its rows."""
    labels = [f"the {axis} of {label}" for axis in ("rows", "columns")]
    frame = table.values
    order = align([frame.index, frame.columns], labels).rows[1]
    if order is not None:
        frame = frame.iloc[:, order]
    if order is not None or has_ids(frame.index):
        return Table(frame, frame.index)
    return Table(frame, frame.columns)


def _common(pairs: Sequence[tuple[Any, str]]) -> Any:
    """Return the ids that all tables have, in the order of the first."""
    (common, who), *others = pairs
    for index, label in others:
        kept = common[find(index, common) >= 0]
        if not len(kept):
            refuse_disjoint(common, index, who, label)
        common = kept
        who = f"{who}, {label}"
    _warn_of_spelling(
        pairs, "The inner join of {} and {} leaves out ids of most likely one sample"
    )
    return common


def _union(pairs: Sequence[tuple[Any, str]], is_new: bool) -> Any:
    """Return all ids, in order of appearance; every table must share some."""
    pairs = [pair for pair in pairs if len(pair[0])] or pairs
    (first, title), *others = pairs
    union = first
    for index, _ in others:
        union = union.append(index[find(union, index) < 0])
    common = [
        [(find(index, other) >= 0).any() for other, _ in pairs] for index, _ in pairs
    ]
    _, group = connected_components(np.array(common))
    # Ids in common must lead from each table to every other.
    if not is_new and group.any():
        index, label = pairs[int(group.argmax())]
        refuse_disjoint(first, index, title, label)
    _warn_of_spelling(
        pairs, "The outer join of {} and {} takes two ids for two samples"
    )
    return union


def _warn_of_spelling(pairs: Sequence[tuple[Any, str]], message: str) -> None:
    """Warn of ids that two tables spell differently."""
    for place, (index, label) in enumerate(pairs):
        for other, owner in pairs[:place]:
            only_here = index[find(other, index) < 0]
            only_there = other[find(index, other) < 0]
            alike = spelled_otherwise(only_there, only_here)
            if alike:
                told = message.format(owner, label)
                warn(f"{told}: {alike}: write them alike.", IdSpellingWarning)
