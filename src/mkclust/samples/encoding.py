"""From columns of any kind to numbers: what is learned of a table is applied to new rows again."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mkclust.samples.forms import depth
from mkclust.samples.frames import (
    AnnotatedMatrix,
    Column,
    column_names,
    has_columns,
    is_numeric,
    read_column,
    take_columns,
)
from mkclust.samples.imputing import filled, medians
from mkclust.text import count, join_words, list_first
from mkclust.types import Float

# What the view of the categorical columns of a table is called, after the table.
CATEGORIES = "{} (categories)"
# What to do about columns that are neither numbers nor categories.
_REMEDIES = {
    "text": (
        "turn text into numbers, such as by scikit-learn's TfidfVectorizer, as a view of its own, "
        "or into categories by astype('category')"
    ),
    "date": "turn dates into numbers, such as days since the first",
    "other": "turn values of several types into numbers or into text",
}


@dataclass(frozen=True, eq=False)
class Encoding:
    """What is learned of the columns of one table, and applied to new rows of it.

    Parameters
    ----------
    n_columns : int
        How many columns the table has.
    names : tuple of str or None, default=None
        Their names; None where they have none that tell them apart.
    numbers : tuple of int or None, default=None
        The numbers of the columns that are numbers; None where all are.
    levels : dict of int to tuple, default={}
        The values of every categorical column, by its number.
    fills : ndarray of shape (n_numbers,) or None, default=None
        What missing numbers are replaced by; None where they are not.
    fill_levels : dict of int to object, default={}
        What missing categories are replaced by.
    """

    n_columns: int
    names: tuple[str, ...] | None = None
    numbers: tuple[int, ...] | None = None
    levels: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    fills: Float | None = None
    fill_levels: dict[int, Any] = field(default_factory=dict)

    def in_order(self, table: Any, title: str) -> Any:
        """Return the columns of new rows in the order of the fit, or name those that are not there.

        Parameters
        ----------
        table : table of any form
            New rows.
        title : str
            How messages call it.
        """
        names = column_names(table)
        if self.levels and not has_columns(table):
            raise TypeError(
                f"{title} is a {type(table).__name__}, and was a data frame with categories in the "
                "fit: pass a data frame with the same columns."
            )
        if names is None or self.names is None or tuple(names) == self.names:
            return table
        given, fitted = set(names), set(self.names)
        lacking = [name for name in self.names if name not in given]
        further = [name for name in names if name not in fitted]
        if lacking or further:
            some = [
                f"{what} the column{'s' * (len(them) > 1)} {join_words(map(repr, them))}"
                for what, them in (("lacks", lacking), ("adds", further))
                if them
            ]
            raise ValueError(
                f"{title} {' and '.join(some)}, compared with the fit; pass the same columns, in "
                "any order."
            )
        places = {name: place for place, name in enumerate(names)}
        return take_columns(table, [places[name] for name in self.names])

    def encode_numbers(self, table: Any, title: str) -> Any:
        """Return the numeric columns of a table, filled where that was asked for."""
        if self.numbers is not None:
            table = take_columns(table, self.numbers)
        if isinstance(table, AnnotatedMatrix):
            table = table.matrix
        return table if self.fills is None else filled(table, self.fills, title)

    def encode_categories(
        self, table: Any, title: str, *, is_new: bool
    ) -> tuple[Float, dict[str, int]]:
        """Return marks for the categories of every row, and how many are missing by column."""
        blocks, missing = [], {}
        for place, levels in self.levels.items():
            column = read_column(table, place)
            values, lacking = column.values, column.missing
            if place in self.fill_levels:
                values = np.where(
                    lacking, np.array([self.fill_levels[place]], dtype=object), values
                )
            elif lacking.any():
                missing[str(column.name)] = int(lacking.sum())
            places = {level: number for number, level in enumerate(levels)}
            codes = np.array([places.get(value, -1) for value in values.tolist()])
            if is_new:
                _warn_of_unknown(column, codes, title)
            blocks.append((codes[:, None] == np.arange(len(levels))).astype(np.float64))
        return np.hstack(blocks), missing

    def columns_of_numbers(self) -> list[str] | None:
        """Return the names of the numeric columns, None where they have none."""
        if self.names is None or self.numbers is None:
            return None if self.names is None else list(self.names)
        return [self.names[place] for place in self.numbers]

    def columns_of_categories(self) -> list[str]:
        """Return the names of the marks: a column and one of its values."""
        names = self.names or tuple(f"column {place}" for place in range(self.n_columns))
        return [f"{names[p]}={level}" for p, levels in self.levels.items() for level in levels]


@dataclass(frozen=True, eq=False)
class EncodedViews:
    """Tables as views of numbers.

    Parameters
    ----------
    parts : dict of str to table
        The views.
    columns : dict of str to list of str
        The names of their columns, where they have any.
    encodings : dict of str to Encoding
        What was learned of each table, by the names of the tables.
    notes : list of str
        What each view is made of.
    missing : dict of str to dict of str to int
        How many categories are missing, by view and column.
    """

    parts: dict[str, Any]
    columns: dict[str, list[str]]
    encodings: dict[str, Encoding]
    notes: list[str]
    missing: dict[str, dict[str, int]]

    def add(self, name: str, table: Any, columns: list[str] | None) -> None:
        """Add a view of numbers, and say how large it is, where that is known."""
        self.parts[name] = table
        if columns is not None:
            self.columns[name] = columns
        if depth(table) != 2:
            return
        rows = table.shape[0] if hasattr(table, "shape") else len(table)
        if isinstance(rows, int):  # of lazy tables, it may not be known
            self.notes.append(f"{name}: {rows:,} samples, {count(_width(table), 'column')}")

    def add_categories(
        self, name: str, marks: Float, missing: dict[str, int], encoding: Encoding
    ) -> None:
        """Add a view of marks for categories, and say of what they are."""
        self.parts[name], self.columns[name] = marks, encoding.columns_of_categories()
        of_columns = f"{count(len(encoding.levels), 'column')} of categories"
        n_levels = sum(map(len, encoding.levels.values()))
        self.notes.append(f"{name}: {len(marks):,} samples, {of_columns} with {n_levels} values")
        if missing:
            self.missing[name] = missing


def encode_views(
    named: Mapping[str, Any],
    titles: Mapping[str, str],
    *,
    impute: str | None = None,
    learned: Mapping[str, Encoding] | None = None,
) -> EncodedViews:
    """Turn tables into views of numbers, by what is learned from them or was learned before.

    Parameters
    ----------
    named : mapping of str to table
        Tables of any form by name, rows in one order.
    titles : mapping of str to str
        How messages call them.
    impute : {None, "median"}, default=None
        Whether missing cells are filled.
    learned : mapping of str to Encoding or None, default=None
        What was learned of tables of these names; None learns.
    """
    if learned is None:
        encodings = _learn(named, titles, impute)
    else:
        encodings = {name: learned[name] for name in named if name in learned}
    views = EncodedViews({}, {}, encodings, [], {})
    for name, table in named.items():
        encoding, title = encodings.get(name), titles[name]
        if encoding is None:
            matrix = table.matrix if isinstance(table, AnnotatedMatrix) else table
            views.add(name, matrix, column_names(table))
            continue
        table = encoding.in_order(table, title)
        if encoding.numbers is None or encoding.numbers:
            numbers = encoding.encode_numbers(table, title)
            views.add(name, numbers, encoding.columns_of_numbers())
        if encoding.levels:
            view = CATEGORIES.format(name) if encoding.numbers else name
            if view in named and view != name:
                raise ValueError(
                    f"{title} has categories, which make the view {view!r}, and there is a view of "
                    "this name: rename one of them."
                )
            marks, missing = encoding.encode_categories(table, title, is_new=learned is not None)
            views.add_categories(view, marks, missing, encoding)
    return views


def _learn(
    named: Mapping[str, Any], titles: Mapping[str, str], impute: str | None
) -> dict[str, Encoding]:
    """Learn of all tables, or name all columns that are neither numbers nor categories."""
    learned: dict[str, Encoding] = {}
    refusals: list[str] = []
    remedies: dict[str, str] = {}
    for name, table in named.items():
        if depth(table) != 2:
            continue
        encoding, unusable = _learn_columns(table, titles[name])
        if unusable:
            refusals.append(f"{titles[name]} has {_listed(unusable)}")
            remedies |= _ids_remedy(table, unusable)
            remedies |= {column.kind: _REMEDIES[column.kind] for column in unusable}
        elif impute is not None:
            learned[name] = _with_fills(encoding, table, titles[name])
        elif encoding.names is not None or encoding.levels:
            learned[name] = encoding
    if refusals:
        raise ValueError(
            f"{'; '.join(refusals)}, which are neither numbers nor categories: "
            f"{'; '.join(remedies.values())}; or drop these columns by frame.drop(columns=[...])."
        )
    return learned


def _ids_remedy(table: Any, unusable: Sequence[Column]) -> dict[str, str]:
    """Return what to do about text that differs in every row of a table without ids."""
    names = [
        column.name
        for column in unusable
        if column.kind == "text" and len(set(column.values.tolist())) == len(column.values) > 1
    ]
    if not names or (hasattr(table, "index") and type(table.index).__name__ != "RangeIndex"):
        return {}
    start = f"if {names[0]!r} holds the ids of the samples,"
    if hasattr(table, "set_index"):
        return {"ids": f"{start} frame.set_index({names[0]!r})"}
    return {
        "ids": f"{start} pass a data frame of pandas with them as its index, or bring the rows of "
        f"all views to one order and drop {names[0]!r}"
    }


def _learn_columns(table: Any, title: str) -> tuple[Encoding, list[Column]]:
    """Learn which columns of a table are numbers and categories, and return those that are none."""
    names = column_names(table)
    encoding = Encoding(_width(table))
    if names is not None and len(set(names)) == len(names):
        encoding = replace(encoding, names=tuple(names))
    if not has_columns(table) or is_numeric(table):
        return encoding, []
    columns = [read_column(table, place) for place in range(encoding.n_columns)]
    unusable = [column for column in columns if column.kind in _REMEDIES]
    kinds = [column.kind for column in columns]
    numbers = tuple(place for place, kind in enumerate(kinds) if kind == "number")
    levels = {
        place: tuple(column.levels)
        for place, column in enumerate(columns)
        if column.kind in ("boolean", "category")
    }
    # One value says nothing of how alike samples are.
    several = {place: values for place, values in levels.items() if len(values) > 1}
    if len(columns) == len(numbers):
        return encoding, unusable
    if not (numbers or several or unusable):
        raise ValueError(f"{title} has only columns of one value, {list_first(names or [])}.")
    return replace(encoding, numbers=numbers, levels=several), unusable


def _with_fills(encoding: Encoding, table: Any, title: str) -> Encoding:
    """Return the same with what missing cells are replaced by."""
    fill_levels = {}
    for place, levels in encoding.levels.items():
        column = read_column(table, place)
        values = column.values[~column.missing].tolist()
        fill_levels[place] = max(levels, key=values.count)
    numbers = encoding.encode_numbers(table, title)
    if numbers.shape[1] if hasattr(numbers, "shape") else True:
        encoding = replace(encoding, fills=medians(numbers, encoding.columns_of_numbers(), title))
    return replace(encoding, fill_levels=fill_levels)


def _warn_of_unknown(column: Column, codes: np.ndarray, title: str) -> None:
    """Warn of categories that the fit has not seen."""
    unknown = column.values[(codes < 0) & ~column.missing]
    if len(unknown):
        values = list_first(map(repr, sorted(set(unknown.tolist()), key=str)), 5)
        warnings.warn(
            f"{title}, column {column.name!r}: {count(len(unknown), 'new sample')} with values "
            f"that the fit has not seen ({values}); they count as equal to no other.",
            UserWarning,
            stacklevel=2,
        )


def _listed(columns: Sequence[Column]) -> str:
    """Name columns that cannot be used, with what they hold."""
    some = [f"{column.name!r} ({column.content})" for column in columns]
    return f"the column{'s' * (len(some) > 1)} {join_words(some, 10)}"


def _width(table: Any) -> int:
    """Return the number of columns of a table."""
    return table.shape[1] if hasattr(table, "shape") else len(table[0])
