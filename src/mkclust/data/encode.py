"""What is learned of the columns of tables, and how tables become views of numbers."""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from mkclust.data.blocks import some_of
from mkclust.data.check import check_view, in_memory, n_dims, n_rows
from mkclust.data.no_features import is_own_column, outcome_columns
from mkclust.data.tables import (
    Column,
    Table,
    Tables,
    Titles,
    are_codes,
    are_numbers,
    read_column,
)
from mkclust.exceptions import UnknownCellsWarning, warn
from mkclust.index import has_ids, key_of, match_rows
from mkclust.linalg.sparse_rows import stored_entries
from mkclust.text import count, join_words
from mkclust.types import Float

# What to do about cells that are not numbers,
EMPTY = "if a cell means that a value is missing, pass missing= to load, or NaN"
# and about columns that are neither numbers nor categories.
REMEDY = (
    f"{EMPTY}; turn numbers stored as text into numbers by "
    "pd.to_numeric(frame[column]), text into categories by astype('category') or into "
    "numbers by scikit-learn's TfidfVectorizer, ids of samples into the index by "
    "frame.set_index(column), and dates into days since the first; or drop these "
    "columns by frame.drop(columns=[...])"
)


# Ends the name of the view of the categories of a table that also has numbers.
_CATEGORIES = " (categories)"


def of_categories(name: str) -> str:
    """Return the name of the view of the categories of a table that has numbers."""
    return f"{name}{_CATEGORIES}"


def table_of(view: str) -> str:
    """Return the name of the table that a view is made of."""
    return view.removesuffix(_CATEGORIES)


class EncodedView(NamedTuple):
    """A view of numbers, with the names of its columns, if all are text, and a note."""

    name: str
    array: Any
    columns: list[str]
    note: str


@dataclass(frozen=True, eq=False)
class TableEncoder:
    """What is learned of the columns of one table, and applied to new rows of it."""

    n_columns: int
    # None if several columns have the same name.
    names: tuple[Hashable, ...] | None = None
    # Positions of numeric columns; None if all are.
    numbers: tuple[int, ...] | None = None
    # Of categorical columns.
    levels: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    # What missing numbers, and categories, are replaced by, if any.
    medians: Float | None = None
    fill_levels: dict[int, Any] = field(default_factory=dict)
    # Places among the numbers that no sample of the fit had.
    unknown: tuple[int, ...] = ()

    def parts(self, name: str) -> list[str]:
        """Return the names of the views that a table of this name becomes."""
        has_numbers = self.numbers is None or len(self.numbers) > 0
        if has_numbers and self.levels:
            return [name, of_categories(name)]
        if has_numbers or self.levels:
            return [name]
        return []

    def in_order(self, table: Table, title: str) -> Table:
        """Return new rows with their columns in the order of the fit."""
        if self.levels and not table.is_frame:
            raise TypeError(
                f"{title} was a data frame with categories in the fit: pass one again."
            )
        if table.columns is None or self.names in (None, tuple(table.columns)):
            return table
        _refuse_duplicates(table, title)
        names = pd.Index(list(table.columns))
        fitted = pd.Index(list(self.names or ()))
        are_named = has_ids(names) and has_ids(fitted)
        if are_named and not set(names) >= set(fitted):
            # A text file makes text of numbers and of dates.
            names = pd.Index(list(map(key_of, names)))
            fitted = pd.Index(list(map(key_of, fitted)))
        lacking = [name for name in fitted if name not in names]
        fills = self.medians is not None or bool(self.fill_levels)
        is_little = table.is_frame and 2 * len(lacking) <= self.n_columns
        if are_named and lacking and fills and is_little:
            empty = pd.DataFrame(np.nan, table.values.index, pd.Index(lacking))
            table = replace(table, values=pd.concat([table.values, empty], axis=1))
            names = names.append(pd.Index(lacking))
        elif len(names) < len(fitted):
            raise ValueError(
                f"{title} lacks the columns {join_words(map(repr, lacking))} of the "
                "fit: pass all of these; a fit with impute='median' fills some that "
                "are missing."
            )
        who = f"the header of {title}"
        places = match_rows(names, fitted, who, "the columns of the fit", every=True)
        if len(names) > len(fitted):
            _warn_of_columns(table, places, title)
        return table.take_columns(places.tolist())

    def encode(
        self, table: Table, name: str, title: str, is_new: bool, may_lack_rows: bool
    ) -> Iterator[EncodedView]:
        """Yield a view of the numbers and one of the categories, if there are any."""
        n_samples = f"{n_rows(table.values):,} samples"
        if self.numbers is None or self.numbers:
            numbers = self.only_numbers(table)
            array = self._impute(numbers, title, is_new)
            array = check_view(array, title, may_lack_rows=may_lack_rows)
            columns = numbers.columns or []
            if not all(isinstance(column, str) for column in columns):
                columns = []
            note = f"{name}: {n_samples}, {count(int(array.shape[1]), 'column')}"
            yield EncodedView(name, array, columns, note)

        if self.levels:
            view = self.parts(name)[-1]
            one_hot = self._one_hot(table.values, title, is_new)
            columns = [*self.sources()]
            n_columns = count(len(self.levels), "column")
            note = (
                f"{view}: {n_samples}, {n_columns} of categories with {len(columns)} "
                "values"
            )
            if view != name:  # which agreement counts as one
                note += f"; one source with {name}"
            yield EncodedView(view, one_hot, columns, note)

    def only_numbers(self, table: Table) -> Table:
        """Return the columns of a table that hold numbers."""
        if self.numbers is None:
            return table
        return table.take_columns(self.numbers)

    def _impute(self, table: Table, title: str, is_new: bool) -> Any:
        """Return the numbers of a table, empty cells filled with medians if asked."""
        if self.medians is None:
            return table.values
        from sklearn.impute import SimpleImputer  # takes long to import

        values = table.values
        if table.is_frame:
            values = values.copy(deep=False)
            for place in self.unknown:
                values.isetitem(place, 0.0)  # it may be of any type
        numbers = check_view(values, title, may_lack_rows=True)
        if numbers.shape[1] != len(self.medians) or not numbers.shape[0]:
            return numbers

        if is_new and not issparse(numbers):
            is_empty = np.isnan(numbers).all(axis=0)
            is_empty[list(self.unknown)] = False
            if is_empty.any():
                columns = _columns(table, np.flatnonzero(is_empty))
                warn(
                    f"{title} has no value in {columns}: filled by the medians of the "
                    "fit."
                )
        if self.unknown and not table.is_frame:
            is_known = np.ones(len(self.medians))
            is_known[list(self.unknown)] = 0
            if issparse(numbers):
                numbers = numbers.multiply(is_known).tocsr()
            else:
                numbers = numbers * is_known
        imputer = SimpleImputer(strategy="median").fit(self.medians[None])
        return imputer.transform(numbers)

    def _one_hot(self, frame: pd.DataFrame, title: str, is_new: bool) -> Float:
        """Return the categories of a frame as columns of zeros and ones."""
        blocks = []
        for place, levels in self.levels.items():
            column = read_column(frame, place)
            known = pd.Index(list(levels), dtype=object)
            codes = known.get_indexer(column.values)
            unknown = column.values[(codes < 0) & ~column.missing]
            if is_new and len(unknown):
                different = sorted(set(unknown.tolist()), key=str)
                shown = join_words(map(repr, different))
                warn(
                    f"{title}, column {column.name!r}: "
                    f"{count(len(unknown), 'new sample')} with values that the fit has "
                    f"not seen ({shown}), which count as different."
                )
            every = np.arange(len(levels))
            block = np.equal.outer(codes, every).astype(np.float64)
            block[column.missing] = np.nan
            if place in self.fill_levels:
                fill = self.fill_levels[place]
                block[column.missing] = [level == fill for level in levels]
                if is_new and column.missing.all() and len(block):
                    warn(
                        f"{title}, column {column.name!r}: no value, filled by the "
                        f"fit's {fill!r}."
                    )
            blocks.append(block)
        return np.hstack(blocks)

    def sources(self) -> dict[str, Hashable]:
        """Return the column that each one-hot column comes from, by their names."""
        names = self.names or [f"column {place}" for place in range(self.n_columns)]
        return {
            f"{names[place]}={level}": names[place]
            for place, levels in self.levels.items()
            for level in levels
        }


def encode_tables(
    tables: Tables,
    titles: Titles,
    encoders: Mapping[str, TableEncoder],
    missing: np.ndarray | None,
    is_new: bool,
) -> tuple[list[EncodedView], np.ndarray | None]:
    """Return tables as views of numbers, and which samples each of them lacks."""
    views: list[EncodedView] = []
    places: list[int] = []
    for place, (name, table) in enumerate(tables.items()):
        encoder = encoders.get(name, TableEncoder(0))
        options = (is_new, missing is not None)
        views += encoder.encode(table, name, titles[name], *options)
        places += [place] * (len(views) - len(places))
    names = [view.name for view in views]
    if len(set(names)) < len(names):
        raise ValueError(
            f"two views have one name, for categories have a view: {names}"
        )
    return views, some_of(missing, (slice(None), places))


def fit_encoders(
    tables: Tables, titles: Titles, impute: str | None
) -> dict[str, TableEncoder]:
    """Learn how to encode all tables, or name the columns that cannot be encoded."""
    learned: dict[str, TableEncoder] = {}
    refusals: list[str] = []
    for name, table in tables.items():
        if n_dims(table.values) != 2:
            continue  # refused elsewhere
        learned[name], unusable = learn_columns(table, titles[name])
        if unusable:
            found = (f"{column.name!r} ({column.content})" for column in unusable)
            refusals.append(f"{titles[name]} has the columns {join_words(found, 10)}")
        elif impute is not None:
            learned[name] = _with_fills(learned[name], table, titles[name])
    if refusals:
        raise ValueError(
            f"{'; '.join(refusals)}, neither numbers nor categories: {REMEDY}."
        )
    return learned


def learn_columns(table: Table, title: str) -> tuple[TableEncoder, list[Column]]:
    """Return the encoder of a table, and its columns that cannot be encoded."""
    encoder = TableEncoder(int(table.values.shape[1]))
    names = table.columns
    if table.is_frame:  # genes of AnnData often have one name
        _refuse_duplicates(table, title)
    if names is not None and len(set(names)) == len(names):
        plain = (
            label if isinstance(label, str | float | int) else key_of(label)
            for label in names
        )
        encoder = replace(encoder, names=tuple(plain))
    if not table.is_frame:
        return encoder, []
    # The type of a column says whether it holds numbers: there may be many columns.
    numbers = []
    levels = {}
    unusable = []
    for place, is_number in enumerate(are_numbers(table.values)):
        if is_number:
            numbers.append(place)
            continue

        column = read_column(table.values, place)
        if column.kind == "number":
            numbers.append(place)
        elif column.content:
            unusable.append(column)
        elif len(column.levels) > 1:  # one value says nothing of similarities
            levels[place] = tuple(column.levels)

        is_declared = isinstance(table.values.dtypes.iloc[place], pd.CategoricalDtype)
        if column.kind == "category" and not is_declared:
            _warn_of_numbers(column, title)
    if names and not (numbers or levels or unusable):
        raise ValueError(f"{title} has only columns of one value, {join_words(names)}.")
    if len(numbers) < encoder.n_columns:
        encoder = replace(encoder, numbers=tuple(numbers), levels=levels)
    return encoder, unusable


def _warn_of_numbers(column: Column, title: str) -> None:
    """Warn of text that is taken for categories, and may be numbers."""
    found = f"{title}, column {column.name!r}"
    if column.mixed:
        warn(f"{found}: {column.mixed}; its values are taken for categories: {EMPTY}.")
    elif column.unknown:
        marks = join_words(map(repr, column.unknown))
        warn(
            f"{found}: the cells {marks} count as categories: {EMPTY}.",
            UnknownCellsWarning,
        )
    elif len(column.levels) > 1 and are_codes(column.levels):
        warn(
            f"{found}: whole numbers stored as text, such as {column.levels[0]!r}; its "
            "values are taken for categories: make numbers of them by "
            "pd.to_numeric(frame[column]), or say that they are none by "
            "astype('category')."
        )


def _with_fills(encoder: TableEncoder, table: Table, title: str) -> TableEncoder:
    """Return an encoder that fills empty cells by medians and frequent levels."""
    fill_levels = {}
    for place, levels in encoder.levels.items():
        known = read_column(table.values, place).known
        fill_levels[place] = max(levels, key=known.count)
    encoder = replace(encoder, fill_levels=fill_levels)

    chosen = encoder.only_numbers(table)
    if not in_memory(chosen.values) or not chosen.values.shape[1]:
        return encoder
    numbers = check_view(chosen.values, title)
    if np.isinf(stored_entries(numbers)).any():
        return encoder  # which is refused with its columns by whoever uses the numbers
    from sklearn.impute import SimpleImputer  # takes long to import

    medians = SimpleImputer(strategy="median").fit(numbers).statistics_
    empty = np.flatnonzero(np.isnan(medians))
    if not len(empty):
        return replace(encoder, medians=medians)

    found = (
        f"{title} has {_columns(chosen, empty)} without any value (NaN), so there is "
        "no median"
    )
    if len(empty) == len(medians):
        raise ValueError(f"{found}: leave the table out.")
    warn(f"{found}: filled by zeros, which change nothing.")
    return replace(
        encoder, medians=np.nan_to_num(medians), unknown=tuple(empty.tolist())
    )


def _columns(table: Table, places: Any) -> str:
    """Return how many of its columns some are, and their names."""
    names = table.columns
    listed = [f"column {place}" for place in places]
    if names:
        listed = [repr(names[place]) for place in places]
    n_columns = count(table.values.shape[1], "column")
    return f"{len(listed):,} of {n_columns} ({join_words(listed)})"


def _warn_of_columns(table: Table, known: np.ndarray, title: str) -> None:
    """Warn of columns of new rows that the fit did not have, but for outcomes."""
    unknown = set(range(table.values.shape[1])).difference(known)
    names = [table.columns[place] for place in sorted(unknown) if table.columns]
    others = [name for name in names if not is_own_column(name)]
    if table.is_frame:
        outcomes = outcome_columns(table.values)
        others = [name for name in others if name not in outcomes]
    if others:
        listed = join_words(map(repr, others))
        warn(f"{title} has the columns {listed}, which the fit did not have: left out.")


def _refuse_duplicates(table: Table, title: str) -> None:
    """Refuse a table in which several columns have one name."""
    names = pd.Series(table.columns, dtype=object)
    repeated = names[names.duplicated()].unique()
    if len(repeated):
        raise ValueError(
            f"{title} has several columns of the name "
            f"{join_words(map(repr, repeated))}: rename them, or pass "
            "frame.loc[:, ~frame.columns.duplicated()]."
        )
