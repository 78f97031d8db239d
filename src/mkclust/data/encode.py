"""What is learned of the columns of tables, and how tables become views of numbers."""

import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.impute import SimpleImputer

from mkclust.data.check import as_numbers, check_view, dropping, in_memory, n_dims, n_rows
from mkclust.data.tables import Column, Table, are_numbers, read_column
from mkclust.index import find, key_of, whole_numbers
from mkclust.text import count, join_words
from mkclust.types import Float

# What the view of the categorical columns of a table is called, after the table.
CATEGORIES = "{} (categories)"
# What to do about columns that are neither numbers nor categories.
REMEDY = (
    "turn numbers stored as text into numbers by pd.to_numeric(frame[column]), text into "
    "categories by astype('category') or into numbers by scikit-learn's TfidfVectorizer, ids of "
    "samples into the index by frame.set_index(column), and dates into days since the first; or "
    "drop these columns by frame.drop(columns=[...])"
)


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
        if table.columns is None or self.names is None or tuple(table.columns) == self.names:
            return table
        _refuse_duplicates(table, title)
        both = table.columns, self.names
        names, fitted = (pd.Index(list(each)) for each in both)
        if not set(names) >= set(fitted):  # a text file makes text of numbers and of dates
            keys = [pd.Index(list(map(key_of, each))) for each in both]
            names, fitted = keys if all(each.is_unique for each in keys) else (names, fitted)
        places = find(names, fitted)
        if (places < 0).any():
            is_counted = any(list(each) == list(range(len(fitted))) for each in both)
            if is_counted and None in map(whole_numbers, (names, fitted)):
                return table  # in their order, as those of arrays
            raise ValueError(
                f"{title} lacks the columns {join_words(map(repr, fitted[places < 0]))} of the "
                "fit; pass the same columns, in any order."
            )
        if len(names) > len(fitted):
            others = join_words(map(repr, names[find(fitted, names) < 0]))
            message = f"{title} has the columns {others}, which the fit did not have: left out."
            warnings.warn(message, UserWarning, stacklevel=2)
        return table.take_columns(places.tolist())

    def encode(
        self, table: Table, title: str, *, is_new: bool
    ) -> Iterator[tuple[str, Any, list[str] | None, str]]:
        """Yield a view of the numbers and one of the categories, if there are any.

        Each is the form of its name, its array, the names of its columns, and a note on these.
        """
        if self.numbers is None or self.numbers:
            names = text_names(table.columns)
            if is_new:
                self._check_numbers(table, title)
            if names is not None and self.numbers is not None:
                names = [names[place] for place in self.numbers]
            numbers = self._impute(self.take_numbers(table), title)
            width = int(numbers.shape[1]) if n_dims(numbers) == 2 else 0
            yield "{}", numbers, names, count(width, "column")
        if self.levels:
            one_hot, names = (
                self._one_hot(table.values, title, is_new),
                self.columns_of_categories(),
            )
            note = f"{count(len(self.levels), 'column')} of categories with {len(names)} values"
            yield CATEGORIES if self.numbers else "{}", one_hot, names, note

    def take_numbers(self, table: Table) -> Any:
        """Return the numeric columns of a table; sparse ones of pandas as a CSR matrix."""
        values = table.values if self.numbers is None else table.take_columns(self.numbers).values
        if not isinstance(values, pd.DataFrame):
            return values
        fills = {getattr(dtype, "fill_value", None) for dtype in values.dtypes}
        if not fills or None in fills:
            return values
        return values.sparse.to_coo().tocsr() if fills == {0} else values.sparse.to_dense()

    def _check_numbers(self, table: Table, title: str) -> None:
        """Refuse new rows without numbers in a column that has held numbers in the fit."""
        places = range(self.n_columns) if self.numbers is None else self.numbers
        is_number = are_numbers(table.values) if table.is_frame else []
        for place in places[: len(is_number)]:
            column = None if is_number[place] else read_column(table.values, place)
            if column is not None and column.kind not in ("number", "boolean"):
                raise ValueError(
                    f"{title} has the column {column.name!r} ({column.content or 'categories'}), "
                    "which held numbers in the fit: pass numbers."
                )

    def _impute(self, numbers: Any, title: str) -> Any:
        """Return numbers with medians for NaN, if the columns are those learned."""
        if self.medians is None:
            return numbers
        numbers = check_view(numbers, title, may_lack_rows=True)
        is_nan = np.isnan(numbers.data if issparse(numbers) else numbers)
        if numbers.shape[1] != len(self.medians) or not is_nan.any():
            return numbers
        if not issparse(numbers):
            return np.where(is_nan, self.medians.astype(numbers.dtype), numbers)
        filled = numbers.copy()
        filled.data[is_nan] = self.medians[filled.indices[is_nan]]
        return filled

    def _one_hot(self, frame: pd.DataFrame, title: str, is_new: bool) -> Float:
        """Return one-hot categories of every row, NaN if a category is missing."""
        blocks = []
        for place, levels in self.levels.items():
            column = read_column(frame, place)
            values, missing = column.values, column.missing
            if place in self.fill_levels:
                values = np.where(missing, np.array([self.fill_levels[place]], object), values)
            codes = pd.Categorical(values, categories=list(levels)).codes
            if is_new and len(unknown := column.values[(codes < 0) & ~missing]):
                shown = join_words(map(repr, sorted(set(unknown.tolist()), key=str)))
                message = f"{title}, column {column.name!r}: {count(len(unknown), 'new sample')} "
                message += f"with values that the fit has not seen ({shown}); they count as "
                warnings.warn(f"{message}different from all others.", UserWarning, stacklevel=2)
            block = (codes[:, None] == np.arange(len(levels))).astype(np.float64)
            if place not in self.fill_levels:
                block[missing] = np.nan
            blocks.append(block)
        return np.hstack(blocks)

    @property
    def labels(self) -> list[Any]:
        """What its columns are called."""
        return list(self.names or [f"column {place}" for place in range(self.n_columns)])

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


def text_names(names: Sequence[Any] | None) -> list[str] | None:
    """Return names that are all text, and None for others."""
    is_text = names is not None and all(isinstance(name, str) for name in names)
    return list(names) if is_text and names is not None else None


class EncodedView(NamedTuple):
    """A view of numbers: its array, the names of its columns, if any, and its table."""

    array: Any
    columns: list[str] | None
    table: str


def encode_tables(
    tables: Mapping[str, Table],
    titles: Mapping[str, str],
    encoders: Mapping[str, TableEncoder],
    *,
    is_new: bool,
    may_lack_rows: bool,
) -> tuple[dict[str, EncodedView], list[str]]:
    """Return views of numbers by name, and notes on them."""
    views: dict[str, EncodedView] = {}
    notes = []
    for name, table in tables.items():
        encoder, title = encoders.get(name, TableEncoder(0)), titles[name]
        for form, array, columns, note in encoder.encode(table, title, is_new=is_new):
            view = form.format(name)
            if view != name and view in tables:
                raise ValueError(f"{title} has categories, which make the view {view!r}: rename it")
            if title != "X" or encoder.levels:  # scikit-learn checks one table, in its own words
                array = check_view(array, title, may_lack_rows=may_lack_rows)
            views[view] = EncodedView(array, columns, name)
            notes.append(f"{view}: {n_rows(array):,} samples, {note}")
    return views, notes


def fit_encoders(
    tables: Mapping[str, Table], titles: Mapping[str, str], impute: str | None
) -> dict[str, TableEncoder]:
    """Learn of all tables, or name all columns that are neither numbers nor categories."""
    learned: dict[str, TableEncoder] = {}
    refusals: list[str] = []
    for name, table in tables.items():
        if n_dims(table.values) != 2:
            continue  # refused elsewhere
        learned[name], unusable = _learn_columns(table, titles[name])
        if unusable:
            some = join_words([f"{column.name!r} ({column.content})" for column in unusable], 10)
            refusals.append(f"{titles[name]} has the columns {some}")
        elif impute is not None:
            learned[name] = _with_fills(learned[name], table, titles[name])
    if refusals:
        raise ValueError(f"{'; '.join(refusals)}, neither numbers nor categories: {REMEDY}.")
    return learned


def _learn_columns(table: Table, title: str) -> tuple[TableEncoder, list[Column]]:
    """Learn which columns are numbers and categories, and return those that are neither."""
    encoder, names = TableEncoder(int(table.values.shape[1])), table.columns
    if table.is_frame:  # genes of AnnData often have one name
        _refuse_duplicates(table, title)
    if names is not None and len(set(names)) == len(names):
        plain = (n if isinstance(n, str | float | int) else key_of(n) for n in names)
        encoder = replace(encoder, names=tuple(plain))
    if not table.is_frame:
        return encoder, []
    # The type of a column says whether it holds numbers: there may be many columns.
    others = [place for place, is_one in enumerate(are_numbers(table.values)) if not is_one]
    columns = {place: read_column(table.values, place) for place in others}
    unusable = [column for column in columns.values() if column.content]
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
        raise ValueError(f"{title} has only columns of one value, {join_words(names or [])}.")
    return replace(encoder, numbers=numbers, levels=levels), unusable


def _with_fills(encoder: TableEncoder, table: Table, title: str) -> TableEncoder:
    """Return the same with what missing cells are replaced by."""
    fill_levels = {}
    for place, levels in encoder.levels.items():
        column = read_column(table.values, place)
        fill_levels[place] = max(levels, key=column.values[~column.missing].tolist().count)
    encoder, numbers = replace(encoder, fill_levels=fill_levels), encoder.take_numbers(table)
    if not in_memory(numbers) or not numbers.shape[1]:
        return encoder
    numbers = as_numbers(numbers, title)
    if np.isinf(numbers.data if issparse(numbers) else numbers).any():
        return encoder  # which is refused with its columns by whoever uses the numbers
    medians = SimpleImputer(strategy="median").fit(numbers).statistics_
    if len(empty := np.flatnonzero(np.isnan(medians))):
        names = [encoder.labels[p] for p in empty]
        if encoder.numbers is not None:
            names = [encoder.labels[encoder.numbers[p]] for p in empty]
        raise ValueError(
            f"{title} has {count(len(empty), 'column')} without any value (NaN), so there is no "
            f"median: drop {dropping(names)}."
        )
    return replace(encoder, medians=medians)


def _refuse_duplicates(table: Table, title: str) -> None:
    """Refuse columns of one name, which could be meant twice or be two."""
    names = pd.Series(table.columns, dtype=object)
    if names.duplicated().any():
        doubles = join_words(map(repr, names[names.duplicated()].unique()))
        raise ValueError(
            f"{title} has several columns of the name {doubles}: rename them, or keep the first "
            "by frame.loc[:, ~frame.columns.duplicated()]."
        )
