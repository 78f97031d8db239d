"""Tables whose columns are the samples, as those of genes by patients."""

from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd

from mkclust.data.tables import Table, Tables
from mkclust.index import has_ids, shared_length


class Turned(NamedTuple):
    """A table whose columns are the samples of other tables."""

    name: str
    other: str  # a table whose samples they are
    # Whether nothing else can be meant: whole ids agree.
    is_certain: bool = True


class _Sides(NamedTuple):
    """The ids of the rows of a table, if any, its header, and its shape."""

    rows: frozenset[str]
    header: frozenset[str]
    shape: tuple[int, int]


def turned_tables(tables: Tables) -> list[Turned]:
    """Return the tables whose headers hold samples, judging by the ids of all."""
    sides = {name: _sides_of(table) for name, table in tables.items()}
    if not any(each.rows for each in sides.values()):
        return _turned_by_shape(sides)

    found = {}
    for name in sides:
        others = {other: each for other, each in sides.items() if other != name}
        turned = _as_turned(name, sides[name], others)
        if turned is not None:
            found[name] = turned

    for name, each in list(found.items()):
        back = found.get(each.other)
        is_pair = back is not None and back.other == name
        by_headers = _share(sides[name].header, sides[each.other].header)
        if is_pair and name in found and not by_headers:
            # Each looks like the transpose of the other: the one with fewer rows is.
            longer = max(name, each.other, key=lambda one: sides[one].shape[0])
            shorter = found[found.pop(longer).other]
            found[shorter.name] = shorter._replace(is_certain=False)
    return list(found.values())


def turn(table: Table) -> Table:
    """Return a table with its columns as samples, and its first text as names."""
    frame = table.values
    if not isinstance(frame, pd.DataFrame):
        return Table(frame.T)

    texts = frame.select_dtypes(exclude="number").columns
    if not has_ids(frame.index) and len(texts):
        frame = frame.set_index(texts[0])
    turned = frame.drop(columns=texts, errors="ignore").T.infer_objects()
    return Table(turned, turned.index)


def _sides_of(table: Table) -> _Sides:
    """Return what the rows and the columns of a table are called."""
    rows = frozenset[str]()
    if has_ids(table.index) and table.index.nlevels == 1:
        rows = frozenset(map(str, table.index))
    header = frozenset(map(str, table.columns or ()))
    n_rows, n_columns = table.values.shape
    return _Sides(rows, header, (int(n_rows), int(n_columns)))


def _as_turned(name: str, own: _Sides, others: Mapping[str, _Sides]) -> Turned | None:
    """Return how a table is turned compared with the others, None if it is not."""
    n_rows, n_columns = own.shape
    if n_rows == n_columns:
        return None
    if any(own.rows & other.rows for other in others.values()):
        return None

    for other, sides in others.items():
        if _share(own.header, sides.rows):
            return Turned(name, other)
    for other, sides in others.items():
        cut = shared_length(own.header, sides.rows)
        if cut and not shared_length(own.rows, sides.rows):
            return Turned(name, other, is_certain=False)
    for other, sides in others.items():
        # Patients are columns in both tables.
        if own.rows and sides.rows and _share(own.header, sides.header):
            return Turned(name, other)
    return None


def _share(ids: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether most ids of the smaller set are in both."""
    n_common = len(ids & others)
    # Fewer ids in common may be names of variables.
    fewest_common = 3
    return n_common >= fewest_common and 2 * n_common > min(len(ids), len(others))


def _turned_by_shape(sides: Mapping[str, _Sides]) -> list[Turned]:
    """Return a table without ids with as many columns as the others have rows."""
    for name, own in sides.items():
        n_rows, n_columns = own.shape
        others = {
            each.shape[0]: other for other, each in sides.items() if other != name
        }
        if n_rows != n_columns and set(others) == {n_columns}:
            return [Turned(name, others[n_columns], is_certain=False)]
    return []
