"""From columns of any kind to numbers: what is learned of a table is applied to new rows again."""

import warnings
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mkclust.samples.checks import as_floats, check_view, is_in_memory
from mkclust.samples.forms import depth
from mkclust.samples.frames import (
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
from mkclust.text import join_words, list_first
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
        places = {name: place for place, name in enumerate(names)}
        lacking = [name for name in self.names if name not in places]
        if lacking and _are_counted(self.names, names):
            return table  # as many as there are, in their order, as those of arrays
        if lacking:
            raise ValueError(
                f"{title} lacks the column{'s' * (len(lacking) > 1)} "
                f"{join_words(map(repr, lacking))} of the fit; pass the same columns, in any order."
            )
        fitted = set(self.names)
        self._warn_of_further([name for name in names if name not in fitted], title)
        return take_columns(table, [places[name] for name in self.names])

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
                    f"{title} has {_listed([column])}, which held numbers in the fit: pass numbers."
                )

    def encode_numbers(self, table: Any, title: str) -> Any:
        """Return the numeric columns of a table, filled where that was asked for."""
        if self.numbers is not None:
            table = take_columns(table, self.numbers)
        table = sparse_matrix(table) if is_frame(table) else table
        if isinstance(table, AnnotatedMatrix):
            table = table.matrix
        return table if self.fills is None else _filled(table, self.fills, title)

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
        names = self.names or tuple(f"column {place}" for place in range(self.n_columns))
        return [f"{names[p]}={level}" for p, levels in self.levels.items() for level in levels]

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
    notes : tuple of str
        What each view is made of.
    missing : dict of str to dict of str to int
        How many categories are missing, by view and column.
    """

    parts: dict[str, Any]
    columns: dict[str, list[str]]
    encodings: dict[str, Encoding]
    notes: tuple[str, ...]
    missing: dict[str, dict[str, int]]


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
    parts: dict[str, Any] = {}
    columns: dict[str, list[str]] = {}
    notes: list[str] = []
    missing: dict[str, dict[str, int]] = {}
    for name, table in named.items():
        encoding, title = encodings.get(name), titles[name]
        if encoding is None:
            parts[name] = table.matrix if isinstance(table, AnnotatedMatrix) else table
            notes += _note(name, table)
            if (names := column_names(table)) is not None:
                columns[name] = names
            continue
        table = encoding.in_order(table, title)
        if alike := encoding.columns_of_one_value():
            notes.append(
                f"{name}: left out {join_words(map(repr, alike))}, with fewer than two values"
            )
        if encoding.numbers is None or encoding.numbers:
            if learned is not None:
                encoding.check_numbers(table, title)
            parts[name] = encoding.encode_numbers(table, title)
            notes += _note(name, parts[name])
            if (names := encoding.columns_of_numbers()) is not None:
                columns[name] = names
        if encoding.levels:
            view = CATEGORIES.format(name) if encoding.numbers else name
            if view in named and view != name:
                raise ValueError(
                    f"{title} has categories, which make the view {view!r}, and there is a view of "
                    "this name: rename one of them."
                )
            parts[view], lacking = encoding.encode_categories(
                table, title, is_new=learned is not None
            )
            columns[view] = encoding.columns_of_categories()
            n_levels = sum(map(len, encoding.levels.values()))
            notes.append(
                f"{view}: {len(parts[view]):,} samples, {_count(len(encoding.levels), 'column')} "
                f"of categories with {n_levels} values"
            )
            if lacking:
                missing[view] = lacking
    return EncodedViews(parts, columns, encodings, tuple(notes), missing)


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


def _learn_columns(table: Any, title: str) -> tuple[Encoding, list[Column]]:
    """Learn which columns of a table are numbers and categories, and return those that are none."""
    encoding = Encoding(_width(table))
    names = column_labels(table)
    if has_columns(table):  # genes of AnnData often have one name
        _refuse_doubles(names, title)
    if names is not None and len(set(names)) == len(names) and all(map(_is_plain, names)):
        encoding = replace(encoding, names=tuple(names))
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
        encoding = replace(encoding, fills=_medians(numbers, encoding, title))
    return replace(encoding, fill_levels=fill_levels)


def _medians(table: Any, encoding: Encoding, title: str) -> Float | None:
    """Return the median of every column, None where entries are not in the memory of the host."""
    if not is_in_memory(table):
        return None
    if issparse(table):
        medians = np.zeros(table.shape[1])
        columns = table.tocsc()
        for place in np.unique(columns.nonzero()[1][np.isnan(columns.data)]):
            medians[place] = np.nanmedian(columns[:, [place]].toarray())
    else:
        medians = _dense_medians(as_floats(check_view(table, title), title))
    if len(empty := np.flatnonzero(np.isnan(medians))):
        names = encoding.columns_of_numbers()
        raise ValueError(
            f"{title} has {_count(len(empty), 'column')} without any value (NaN), of which there "
            f"is no median: drop {_names(empty[:5], names)}{' and others' * (len(empty) > 5)}."
        )
    return medians


def _dense_medians(array: Float) -> Float:
    """Return the median of what is there in every column, NaN where nothing is."""
    medians = np.median(array, axis=0)  # many times as fast as beside missing entries
    incomplete = np.flatnonzero(np.isnan(medians))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
        medians[incomplete] = np.nanmedian(array[:, incomplete], axis=0)
    return medians


def _filled(table: Any, fills: Float, title: str) -> Any:
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
    array = as_floats(check_view(table, title), title)
    missing = np.isnan(array)
    if not missing.any() or array.shape[1] != len(fills):  # another width is refused elsewhere
        return array
    return np.where(missing, fills.astype(array.dtype), array)


def _warn_of_unknown(column: Column, codes: np.ndarray, title: str) -> None:
    """Warn of categories that the fit has not seen."""
    unknown = column.values[(codes < 0) & ~column.missing]
    if len(unknown):
        values = list_first(map(repr, sorted(set(unknown.tolist()), key=str)), 5)
        warnings.warn(
            f"{title}, column {column.name!r}: {_count(len(unknown), 'new sample')} with values "
            f"that the fit has not seen ({values}); they count as equal to no other.",
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
    doubles = [name for name, count in Counter(names).items() if count > 1]
    raise ValueError(
        f"{title} has several columns of the name {join_words(map(repr, doubles))}: rename them, "
        "or keep the first by frame.loc[:, ~frame.columns.duplicated()]."
    )


def _are_counted(fitted: Sequence[Hashable], new: Sequence[Hashable]) -> bool:
    """Return whether some columns have no names but the numbers 0, 1, ... that frames give them."""
    return any(list(names) == list(range(len(names))) for names in (fitted, new))


def _listed(columns: Sequence[Column]) -> str:
    """Name columns that cannot be used, with what they hold."""
    words = {
        "text": "text",
        "date": "dates",
        "category": "categories",
        "other": "values that are no real numbers",
    }
    some = [f"{column.name!r} ({words[column.kind]})" for column in columns]
    return f"the column{'s' * (len(some) > 1)} {join_words(some, 10)}"


def _note(name: str, table: Any) -> list[str]:
    """Say how large a view is, where that is known."""
    if depth(table) != 2:
        return []
    rows = table.shape[0] if hasattr(table, "shape") else len(table)
    if not isinstance(rows, int):  # of lazy tables, it may not be
        return []
    return [f"{name}: {rows:,} samples, {_count(_width(table), 'column')}"]


def _width(table: Any) -> int:
    """Return the number of columns of a table."""
    return table.shape[1] if hasattr(table, "shape") else len(table[0])


def _count(number: int, what: str) -> str:
    """Return a number of things in words."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def _names(places: np.ndarray, names: list[str] | None) -> str:
    """Name some columns."""
    return ", ".join(repr(names[place]) if names else f"column {place}" for place in places)
