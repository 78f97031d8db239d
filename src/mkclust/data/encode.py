"""What is learned of the columns of tables, and how tables become views of numbers."""

import warnings
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.impute import SimpleImputer

from mkclust.data.check import as_numbers, check_view, dropping, in_memory, n_dims, n_rows
from mkclust.data.tables import AS_TEXT, Column, Table, are_numbers, read_column
from mkclust.index import has_ids, is_whole, key_of
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
    AS_TEXT: (
        "turn numbers stored as text into numbers by pd.to_numeric(frame[column]), or codes into "
        "categories by astype('category')"
    ),
    "date": "turn dates into numbers, such as days since the first",
    "other": "turn values of other types into numbers or into text",
}


@dataclass(frozen=True, eq=False)
class TableEncoder:
    """What is learned of the columns of one table, and applied to new rows of it.

    Parameters
    ----------
    n_columns : int
        How many columns the table has.
    names : tuple of hashable or None, default=None
        Their names; None if they have none that tell them apart.
    numbers : tuple of int or None, default=None
        The places of the columns that are numbers; None if all are.
    levels : dict of int to tuple, default={}
        The values of every categorical column, by its place.
    medians : ndarray of shape (n_numbers,) or None, default=None
        What missing numbers are replaced by; None if they are not.
    fill_levels : dict of int to object, default={}
        What missing categories are replaced by.
    """

    n_columns: int
    names: tuple[Hashable, ...] | None = None
    numbers: tuple[int, ...] | None = None
    levels: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    medians: Float | None = None
    fill_levels: dict[int, Any] = field(default_factory=dict)

    def in_order(self, table: Table, title: str) -> Table:
        """Return the columns of new rows in the order of the fit, or name missing ones."""
        if self.levels and not table.is_frame:
            raise TypeError(
                f"{title} was a data frame with categories in the fit: pass a data frame with the "
                "same columns."
            )
        names = table.columns
        if names is None or self.names is None or tuple(names) == self.names:
            return table
        if table.is_frame:
            _refuse_doubles(names, title)
        wanted = list(self.names)
        if not set(names) >= set(wanted):  # a text file makes text of numbers and of dates
            keys = [list(map(key_of, each)) for each in (names, wanted)]
            if all(len(set(each)) == len(each) for each in keys):
                names, wanted = keys
        places, fitted = {name: place for place, name in enumerate(names)}, set(wanted)
        if lacking := [name for name in wanted if name not in places]:
            both: list[Any] = [table.columns, self.names]
            counted = [list(each) == list(range(len(each))) for each in both]
            if any(counted) and not all(map(is_whole, names + wanted)):
                return table  # as many as there are, in their order, as those of arrays
            raise ValueError(
                f"{title} lacks the columns {join_words(map(repr, lacking))} of the fit; pass the "
                "same columns, in any order."
            )
        if others := [name for name in names if name not in fitted]:
            message = f"{title} has the columns {join_words(map(repr, others))}"
            message += ", which the fit did not have: left out."
            warnings.warn(message, UserWarning, stacklevel=2)
        return table.take_columns([places[name] for name in wanted])

    def take_numbers(self, table: Table) -> Any:
        """Return the numeric columns of a table; sparse ones of pandas as a CSR matrix."""
        values = table.values if self.numbers is None else table.take_columns(self.numbers).values
        if not isinstance(values, pd.DataFrame):
            return values
        fills = {getattr(dtype, "fill_value", None) for dtype in values.dtypes}
        if not fills or None in fills:
            return values
        return values.sparse.to_coo().tocsr() if fills == {0} else values.sparse.to_dense()

    def check_numbers(self, table: Table, title: str) -> None:
        """Refuse new rows without numbers in a column that has held numbers in the fit."""
        places = range(self.n_columns) if self.numbers is None else self.numbers
        is_number = are_numbers(table.values) if table.is_frame else []
        for place in places[: len(is_number)]:
            if is_number[place]:
                continue
            column = read_column(table.values, place)
            if column.kind not in ("number", "boolean"):
                raise ValueError(
                    f"{title} has the column {column.name!r} ({column.content or 'categories'}), "
                    "which held numbers in the fit: pass numbers."
                )

    def fill(self, numbers: Any) -> Any:
        """Return numbers with medians for NaN, if the columns are those learned."""
        entries = numbers.data if issparse(numbers) else numbers
        if self.medians is None or numbers.shape[1] != len(self.medians):
            return numbers
        if entries.dtype.kind != "f" or not np.isnan(entries).any():
            return numbers
        if not issparse(numbers):
            return np.where(np.isnan(numbers), self.medians.astype(numbers.dtype), numbers)
        filled = numbers.copy()
        absent = np.isnan(filled.data)
        filled.data[absent] = self.medians[filled.indices[absent]]
        return filled

    def one_hot(
        self, frame: pd.DataFrame, title: str, *, is_new: bool
    ) -> tuple[Float, dict[str, int]]:
        """Return one-hot categories of every row, and how many are missing by column."""
        blocks, missing = [], {}
        for place, levels in self.levels.items():
            column = read_column(frame, place)
            values, lacking = column.values, column.missing
            if place in self.fill_levels:
                values = np.where(lacking, np.array([self.fill_levels[place]], object), values)
            elif lacking.any():
                missing[str(column.name)] = int(lacking.sum())
            codes = pd.Categorical(values, categories=list(levels)).codes
            if is_new and len(unknown := column.values[(codes < 0) & ~lacking]):
                shown = list_first(map(repr, sorted(set(unknown.tolist()), key=str)), 5)
                message = f"{title}, column {column.name!r}: {count(len(unknown), 'new sample')} "
                message += f"with values that the fit has not seen ({shown}); they count as "
                warnings.warn(f"{message}different from all others.", UserWarning, stacklevel=2)
            blocks.append((codes[:, None] == np.arange(len(levels))).astype(np.float64))
        return np.hstack(blocks), missing

    @property
    def labels(self) -> list[Any]:
        """What its columns are called."""
        return list(self.names or [f"column {place}" for place in range(self.n_columns)])

    def columns_of_numbers(self) -> list[str] | None:
        """Return the names of the numeric columns, None if they have none."""
        names = text_names(self.names)
        if names is None or self.numbers is None:
            return names
        return [names[place] for place in self.numbers]

    def columns_of_categories(self) -> list[str]:
        """Return the names of the one-hot columns: a column and one of its values."""
        return [
            f"{self.labels[place]}={level}"
            for place, levels in self.levels.items()
            for level in levels
        ]

    def sources_of_categories(self) -> list[Hashable]:
        """Return the names of the columns that the one-hot columns come from."""
        return [self.labels[place] for place, levels in self.levels.items() for _ in levels]

    def columns_of_one_value(self) -> list[Hashable]:
        """Return the names of the columns of categories that have one value only."""
        used = {*range(self.n_columns)} if self.numbers is None else {*self.numbers, *self.levels}
        return [label for place, label in enumerate(self.labels) if place not in used]


def text_names(names: Sequence[Any] | None) -> list[str] | None:
    """Return names that are all text, and None for others."""
    is_text = names is not None and all(isinstance(name, str) for name in names)
    return list(names) if is_text and names is not None else None


@dataclass(eq=False)
class Encoded:
    """Tables as views of numbers."""

    encoders: dict[str, TableEncoder]
    arrays: dict[str, Any] = field(default_factory=dict)
    # The table that each view comes from, its named columns, and its missing categories by column.
    sources: list[str] = field(default_factory=list)
    columns: dict[str, list[str]] = field(default_factory=dict)
    missing: dict[str, dict[str, int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, view: str, source: str, array: Any, columns: Any, note: str = "") -> None:
        """Add a view."""
        self.arrays[view] = array
        self.sources.append(source)
        if columns is not None:
            self.columns[view] = columns
        if n_dims(array) == 2:
            note = note or count(int(array.shape[1]), "column")
            self.notes.append(f"{view}: {n_rows(array):,} samples, {note}")


def encode_tables(
    tables: Mapping[str, Table],
    titles: Mapping[str, str],
    impute: str | None,
    learned: Mapping[str, TableEncoder] | None,
    may_lack_rows: bool,
) -> Encoded:
    """Turn tables into arrays, by what is learned from them or was learned before."""
    if learned is None:
        encoders = _fit_encoders(tables, titles, impute)
    else:
        encoders = {name: learned[name] for name in tables if name in learned}
    found = Encoded(encoders)

    def check(array: Any, title: str) -> Any:
        # One table is checked by scikit-learn's functions later, in its words.
        return array if title == "X" else check_view(array, title, may_lack_rows=may_lack_rows)

    for name, table in tables.items():
        encoder, title = encoders.get(name), titles[name]
        if encoder is None:
            found.add(name, name, check(table.values, title), text_names(table.columns))
            continue
        if alike := encoder.columns_of_one_value():
            some = join_words(map(repr, alike))
            found.notes.append(f"{name}: left out {some}, with fewer than two values")
        if encoder.numbers is None or encoder.numbers:
            if learned is not None:
                encoder.check_numbers(table, title)
            numbers = encoder.take_numbers(table)
            if encoder.medians is not None:
                numbers = encoder.fill(check_view(numbers, title, may_lack_rows=True))
            found.add(name, name, check(numbers, title), encoder.columns_of_numbers())
        if encoder.levels:
            view = CATEGORIES.format(name) if encoder.numbers else name
            if view in tables and view != name:
                raise ValueError(f"{title} has categories, which make the view {view!r}: rename it")
            one_hot, missing = encoder.one_hot(table.values, title, is_new=learned is not None)
            n_levels = one_hot.shape[1]
            note = f"{count(len(encoder.levels), 'column')} of categories with {n_levels} values"
            found.add(view, name, one_hot, encoder.columns_of_categories(), note)
            if missing:
                found.missing[view] = missing
    return found


def _fit_encoders(
    tables: Mapping[str, Table], titles: Mapping[str, str], impute: str | None
) -> dict[str, TableEncoder]:
    """Learn of all tables, or name all columns that are neither numbers nor categories."""
    learned: dict[str, TableEncoder] = {}
    refusals: list[str] = []
    remedies: dict[str, str] = {}
    for name, table in tables.items():
        if n_dims(table.values) != 2:
            continue
        encoder, unusable = _learn_columns(table, titles[name])
        if unusable:
            some = join_words([f"{column.name!r} ({column.content})" for column in unusable], 10)
            refusals.append(f"{titles[name]} has the columns {some}")
            remedies |= _ids_remedy(table, unusable)
            kinds = [AS_TEXT if c.content == AS_TEXT else c.kind for c in unusable]
            remedies |= {kind: _REMEDIES[kind] for kind in kinds}
        elif impute is not None:
            learned[name] = _with_fills(encoder, table, titles[name])
        elif encoder.names is not None or encoder.levels:
            learned[name] = encoder
    if refusals:
        raise ValueError(
            f"{'; '.join(refusals)}, which are neither numbers nor categories: "
            f"{'; '.join(remedies.values())}; or drop these columns by frame.drop(columns=[...])."
        )
    return learned


def _learn_columns(table: Table, title: str) -> tuple[TableEncoder, list[Column]]:
    """Learn which columns are numbers and categories, and return those that are neither."""
    encoder, names = TableEncoder(int(table.values.shape[1])), table.columns
    if names is not None and table.is_frame:  # genes of AnnData often have one name
        _refuse_doubles(names, title)
    if names is not None and len(set(names)) == len(names):
        plain = (n if isinstance(n, str | float | int) else key_of(n) for n in names)
        encoder = replace(encoder, names=tuple(plain))
    if not table.is_frame:
        return encoder, []
    # Numbers are told by the types of columns alone: there may be many.
    others = [place for place, is_one in enumerate(are_numbers(table.values)) if not is_one]
    columns = {place: read_column(table.values, place) for place in others}
    unusable = [column for column in columns.values() if column.kind in _REMEDIES]
    numbers = tuple(
        p for p in range(encoder.n_columns) if p not in columns or columns[p].kind == "number"
    )
    if encoder.n_columns == len(numbers):
        return encoder, unusable
    # One value says nothing of how alike samples are.
    levels = {
        place: tuple(column.levels)
        for place, column in columns.items()
        if column.kind in ("boolean", "category") and len(column.levels) > 1
    }
    if not (numbers or levels or unusable):
        raise ValueError(
            f"{title} has only columns of one value, {list_first(map(str, names or []))}."
        )
    return replace(encoder, numbers=numbers, levels=levels), unusable


def _ids_remedy(table: Table, unusable: Sequence[Column]) -> dict[str, str]:
    """Return what to do about text that differs in every row of a table without ids."""
    names = [
        column.name
        for column in unusable
        if column.kind == "text" and len(set(column.values.tolist())) == len(column.values) > 1
    ]
    if not names or has_ids(table.index):
        return {}
    way = f"frame.set_index({names[0]!r})" + " of pandas" * (table.index is None)
    return {"ids": f"if {names[0]!r} holds the ids of the samples, {way}"}


def _with_fills(encoder: TableEncoder, table: Table, title: str) -> TableEncoder:
    """Return the same with what missing cells are replaced by."""
    fill_levels = {}
    for place, levels in encoder.levels.items():
        column = read_column(table.values, place)
        fill_levels[place] = max(levels, key=column.values[~column.missing].tolist().count)
    numbers = encoder.take_numbers(table)
    if not in_memory(numbers) or not numbers.shape[1]:
        return replace(encoder, fill_levels=fill_levels)
    numbers = as_numbers(numbers, title)
    entries = numbers.data if issparse(numbers) else numbers
    if entries.dtype.kind == "f" and np.isinf(entries).any():  # which is refused elsewhere
        numbers = numbers.copy()
        entries = numbers.data if issparse(numbers) else numbers
        entries[np.isinf(entries)] = np.nan
    medians = SimpleImputer(strategy="median", keep_empty_features=True).fit(numbers).statistics_
    if issparse(numbers):
        n_nan = np.bincount(numbers.indices[np.isnan(entries)], minlength=numbers.shape[1])
    else:
        n_nan = pd.isna(numbers).sum(axis=0)
    if len(empty := np.flatnonzero(np.isnan(medians) | (n_nan == numbers.shape[0]))):
        names = encoder.columns_of_numbers()
        raise ValueError(
            f"{title} has {count(len(empty), 'column')} without any value (NaN), so there is no "
            f"median: drop {dropping([names[p] for p in empty]) if names else empty.tolist()}."
        )
    return replace(encoder, medians=medians, fill_levels=fill_levels)


def _refuse_doubles(names: Sequence[Hashable], title: str) -> None:
    """Refuse columns of one name, which could be meant twice or be two."""
    if doubles := [name for name, number in Counter(names).items() if number > 1]:
        raise ValueError(
            f"{title} has several columns of the name {join_words(map(repr, doubles))}: rename "
            "them, or keep the first by frame.loc[:, ~frame.columns.duplicated()]."
        )
