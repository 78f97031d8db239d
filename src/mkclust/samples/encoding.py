"""From columns of any kind to numbers: what is learned of a table is applied to new rows again."""

import warnings
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mkclust.index import has_ids, index_of, is_whole, key_of
from mkclust.samples.forms import depth
from mkclust.samples.frames import (
    AS_TEXT,
    AnnotatedMatrix,
    Column,
    are_numbers,
    column_labels,
    column_names,
    has_columns,
    is_frame,
    read_column,
    read_columns,
    sparse_matrix,
    take_columns,
    text_names,
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
    "number as text": (
        "turn numbers stored as text into numbers by pd.to_numeric(frame[column]), or codes into "
        "categories by astype('category')"
    ),
    "date": "turn dates into numbers, such as days since the first",
    "other": "turn values of other types into numbers or into text",
}


@dataclass(frozen=True, eq=False)
class Encoding:
    """What is learned of the columns of one table, and applied to new rows of it.

    Parameters
    ----------
    n_columns : int
        How many columns the table has.
    names : tuple of hashable or None, default=None
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
    names: tuple[Hashable, ...] | None = None
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
        names = column_labels(table)
        if self.levels and not has_columns(table):
            raise TypeError(
                f"{title} is a {type(table).__name__}, and was a data frame with categories in the "
                "fit: pass a data frame with the same columns."
            )
        if names is None or self.names is None or tuple(names) == self.names:
            return table
        if has_columns(table):
            _refuse_doubles(names, title)
        given, wanted = names, list(self.names)
        if not set(names) >= set(wanted):  # a text file makes text of numbers and of dates
            keys = [list(map(key_of, each)) for each in (names, wanted)]
            if all(len(set(each)) == len(each) for each in keys):
                names, wanted = keys
        places = {name: place for place, name in enumerate(names)}
        lacking = [name for name in wanted if name not in places]
        if lacking and _are_counted(self.names, given) and not all(map(is_whole, names + wanted)):
            return table  # as many as there are, in their order, as those of arrays
        if lacking:
            raise ValueError(
                f"{title} lacks the column{'s' * (len(lacking) > 1)} "
                f"{join_words(map(repr, lacking))} of the fit; pass the same columns, in any order."
            )
        fitted = set(wanted)
        self._warn_of_further([name for name in names if name not in fitted], title)
        return take_columns(table, [places[name] for name in wanted])

    def _warn_of_further(self, names: Sequence[Hashable], title: str) -> None:
        """Warn of columns that the fit did not have."""
        if names:
            warnings.warn(
                f"{title} has the column{'s' * (len(names) > 1)} {join_words(map(repr, names))}, "
                "which the fit did not have: left out.",
                UserWarning,
                stacklevel=2,
            )

    def check_numbers(self, table: Any, title: str) -> None:
        """Refuse new rows without numbers in a column that has held numbers in the fit."""
        if not has_columns(table):
            return
        is_number = are_numbers(table)
        for place in range(self.n_columns) if self.numbers is None else self.numbers:
            if place >= len(is_number) or is_number[place]:  # another width is refused elsewhere
                continue
            column = read_column(table, place)
            if column.kind not in ("number", "boolean"):
                raise ValueError(
                    f"{title} has the column {column.name!r} ({column.content or 'categories'}), "
                    "which held numbers in the fit: pass numbers."
                )

    def encode_numbers(self, table: Any, title: str) -> Any:
        """Return the numeric columns of a table, filled where that was asked for."""
        if self.numbers is not None:
            table = take_columns(table, self.numbers)
        table = sparse_matrix(table) if is_frame(table) else table
        if isinstance(table, AnnotatedMatrix):
            table = table.matrix
        return table if self.fills is None else filled(table, self.fills, title)

    def encode_categories(
        self, table: Any, title: str, *, is_new: bool
    ) -> tuple[Float, dict[str, int]]:
        """Return marks for the categories of every row, and how many are missing by column."""
        blocks, missing = [], {}
        columns = read_columns(table, list(self.levels))
        for (place, levels), column in zip(self.levels.items(), columns, strict=True):
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
        names = text_names(self.names)
        if names is None or self.numbers is None:
            return names
        return [names[place] for place in self.numbers]

    def columns_of_categories(self) -> list[str]:
        """Return the names of the marks: a column and one of its values."""
        levels = [level for levels in self.levels.values() for level in levels]
        pairs = zip(self.sources_of_categories(), levels, strict=True)
        return [f"{name}={level}" for name, level in pairs]

    def sources_of_categories(self) -> list[Hashable]:
        """Return the names of the columns that the marks are of."""
        names = self.names or tuple(f"column {place}" for place in range(self.n_columns))
        return [names[place] for place, levels in self.levels.items() for _ in levels]

    def columns_of_one_value(self) -> list[Hashable]:
        """Return the names of the columns of categories that have one value only."""
        used = {*range(self.n_columns)} if self.numbers is None else {*self.numbers, *self.levels}
        names = self.names or tuple(f"column {place}" for place in range(self.n_columns))
        return [names[place] for place in range(self.n_columns) if place not in used]


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
    tables : dict of str to str, default={}
        The name of the table that each view is made of.
    """

    parts: dict[str, Any]
    columns: dict[str, list[str]]
    encodings: dict[str, Encoding]
    notes: list[str]
    missing: dict[str, dict[str, int]]
    tables: dict[str, str] = field(default_factory=dict)

    def by_view(self, missing: np.ndarray | None) -> np.ndarray | None:
        """Return which samples are missing from views, given that of the tables in order."""
        if missing is None:
            return None
        places = {name: place for place, name in enumerate(dict.fromkeys(self.tables.values()))}
        return missing[:, [places[name] for name in self.tables.values()]]

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
            views.tables[name] = name
            views.add(name, matrix, column_names(table))
            continue
        table = encoding.in_order(table, title)
        if alike := encoding.columns_of_one_value():
            views.notes.append(
                f"{name}: left out {join_words(map(repr, alike))}, with fewer than two values"
            )
        if encoding.numbers is None or encoding.numbers:
            if learned is not None:
                encoding.check_numbers(table, title)
            numbers = encoding.encode_numbers(table, title)
            views.tables[name] = name
            views.add(name, numbers, encoding.columns_of_numbers())
        if encoding.levels:
            view = CATEGORIES.format(name) if encoding.numbers else name
            if view in named and view != name:
                raise ValueError(
                    f"{title} has categories, which make the view {view!r}, and there is a view of "
                    "this name: rename one of them."
                )
            marks, missing = encoding.encode_categories(table, title, is_new=learned is not None)
            views.tables[view] = name
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
            for column in unusable:
                kind = "number as text" if column.content == AS_TEXT else column.kind
                remedies[kind] = _REMEDIES[kind]
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
    if not names or has_ids(index_of(table)):
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
    encoding = Encoding(_width(table))
    names = column_labels(table)
    if names is not None and has_columns(table):  # genes of AnnData often have one name
        _refuse_doubles(names, title)
    if names is not None and len(set(names)) == len(names):
        plain = tuple(name if _is_plain(name) else key_of(name) for name in names)
        encoding = replace(encoding, names=plain)
    if not has_columns(table):
        return encoding, []
    # Numbers are told by the types of columns alone: there may be many.
    others = [place for place, is_one in enumerate(are_numbers(table)) if not is_one]
    columns = dict(zip(others, read_columns(table, others), strict=True))
    unusable = [column for column in columns.values() if column.kind in _REMEDIES]
    kinds = {place: column.kind for place, column in columns.items()}
    numbers = tuple(p for p in range(encoding.n_columns) if kinds.get(p, "number") == "number")
    levels = {
        place: tuple(column.levels)
        for place, column in columns.items()
        if column.kind in ("boolean", "category")
    }
    # One value says nothing of how alike samples are.
    several = {place: values for place, values in levels.items() if len(values) > 1}
    if encoding.n_columns == len(numbers):
        return encoding, unusable
    if not (numbers or several or unusable):
        raise ValueError(
            f"{title} has only columns of one value, {list_first(map(str, names or []))}."
        )
    return replace(encoding, numbers=numbers, levels=several), unusable


def _with_fills(encoding: Encoding, table: Any, title: str) -> Encoding:
    """Return the same with what missing cells are replaced by."""
    fill_levels = {}
    columns = read_columns(table, list(encoding.levels))
    for (place, levels), column in zip(encoding.levels.items(), columns, strict=True):
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
            f"{title}, column {column.name!r}: {count(len(unknown), 'new sample')} with "
            f"values that the fit has not seen ({values}); they count as different from "
            "all others.",
            UserWarning,
            stacklevel=2,
        )


def _is_plain(name: Hashable) -> bool:
    """Return whether a name is text or a number, or made of these: what can be stored anywhere."""
    return (
        all(map(_is_plain, name))
        if isinstance(name, tuple)
        else isinstance(name, str | float | int)
    )


def _refuse_doubles(names: Sequence[Hashable], title: str) -> None:
    """Refuse columns of one name, which could be meant twice or be two."""
    if len(set(names)) == len(names):
        return
    doubles = [name for name, number in Counter(names).items() if number > 1]
    raise ValueError(
        f"{title} has several columns of the name {join_words(map(repr, doubles))}: rename them, "
        "or keep the first by frame.loc[:, ~frame.columns.duplicated()]."
    )


def _are_counted(fitted: Sequence[Hashable], new: Sequence[Hashable]) -> bool:
    """Return whether some columns have no names but the numbers 0, 1, ... that frames give them."""
    return any(list(names) == list(range(len(names))) for names in (fitted, new))


def _listed(columns: Sequence[Column]) -> str:
    """Name columns that cannot be used, with what they hold."""
    some = [f"{column.name!r} ({column.content})" for column in columns]
    return f"the column{'s' * (len(some) > 1)} {join_words(some, 10)}"


def _width(table: Any) -> int:
    """Return the number of columns of a table."""
    return table.shape[1] if hasattr(table, "shape") else len(table[0])
