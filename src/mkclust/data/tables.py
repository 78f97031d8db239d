"""Tables of any library: what their columns hold, and how they become numbers."""

import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype, is_bool_dtype, is_numeric_dtype
from scipy.sparse import issparse
from sklearn.impute import SimpleImputer

from mkclust.data.check import as_numbers, dropping, in_memory, n_dims
from mkclust.index import has_ids, is_whole, key_of
from mkclust.linalg import is_foreign, select
from mkclust.text import count, did_you_mean, join_words, list_first
from mkclust.types import Float

ColumnKind = Literal["number", "boolean", "category", "text", "date", "other"]
# The name of one table that has none.
TABLE = "table"
# What the view of the categorical columns of a table is called, after the table.
CATEGORIES = "{} (categories)"
# Text is a category if it has at most so many values, each twice on average.
MOST_LEVELS = 20
# What columns of text hold if all of it spells numbers.
AS_TEXT = "numbers as text"
# What columns hold, by what pandas infers from their entries.
_KINDS: dict[str, ColumnKind] = {
    **dict.fromkeys(("integer", "floating", "mixed-integer-float", "decimal", "empty"), "number"),
    **dict.fromkeys(("datetime64", "datetime", "date", "timedelta64", "timedelta"), "date"),
    **dict.fromkeys(("time", "period", "interval"), "date"),
    "boolean": "boolean",
    "categorical": "category",
    "string": "text",
}
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
class Table:
    """One view before its columns become numbers.

    Parameters
    ----------
    values : pandas.DataFrame, array, CSR matrix or rows in a file
        Its entries.
    index : pandas.Index or None, default=None
        The index of its rows; None if it has none.
    columns : list of hashable or None, default=None
        The labels of its columns; None if it has none.
    """

    values: Any
    index: Any = None
    columns: list[Any] | None = None

    @property
    def is_frame(self) -> bool:
        """Whether its columns have types of their own."""
        return isinstance(self.values, pd.DataFrame)

    def take_columns(self, places: Sequence[int]) -> "Table":
        """Return some columns."""
        places, columns = list(places), self.columns
        if self.is_frame:
            values = self.values.iloc[:, places]
        elif is_foreign(self.values):
            values = select(self.values, np.array(places, int), axis=1)
        else:
            values = self.values[:, places]
        return replace(self, values=values, columns=columns and [columns[p] for p in places])


def as_table(thing: Any, title: str) -> Table:
    """Return one table of any library, or say why it is none.

    Parameters
    ----------
    thing : data frame, AnnData, array, list of rows, sparse matrix, or rows in a file
        A table of samples by features.
    title : str
        What messages call it.
    """
    if thing is None:
        raise TypeError(f"{title} is None: pass a table of samples by features, or leave it out.")
    if isinstance(thing, pd.DataFrame):
        return Table(thing, thing.index, list(thing.columns))
    if all(hasattr(thing, name) for name in ("X", "obs_names", "var_names")):
        return _of_anndata(thing)
    if isinstance(native := nw.from_native(thing, pass_through=True), nw.LazyFrame):
        raise TypeError(f"{title} is a LazyFrame: pass the data frame that collect() returns")
    if isinstance(native, nw.DataFrame):
        return Table(_as_pandas(native), None, list(native.columns))
    several = isinstance(thing, list | tuple)
    columns = [x for x in (thing if several else [thing]) if type(x).__name__ == "Series"]
    if columns:
        raise TypeError(
            f"{title} is {'a list of' if several else 'a'} pandas Series, which could be columns "
            "or rows: pass a data frame, such as series.to_frame() for one column."
        )
    has_items = any(hasattr(thing, name) for name in ("shape", "__array__", "__getitem__"))
    if isinstance(thing, Iterable) and not has_items:
        raise TypeError(f"{title} is a {type(thing).__name__}: pass list(...) of it, or an array.")
    return Table(_unmasked(_array_of_rows(thing, title) if several else thing))


def _of_anndata(thing: Any) -> Table:
    """Return the matrix of AnnData with its names."""
    thing = thing.to_memory() if getattr(thing, "isbacked", False) else thing
    if thing.X is None:
        raise ValueError(
            "X holds AnnData without a matrix X: pass one that has it, such as "
            "AnnData(X=adata.layers[name], obs=adata.obs, var=adata.var)"
        )
    matrix = thing.X.tocsr() if issparse(thing.X) else np.asarray(thing.X)
    return Table(matrix, thing.obs_names, list(thing.var_names))


def _as_pandas(frame: Any) -> pd.DataFrame:
    """Return a frame of polars or pyarrow as one of pandas, without pyarrow's conversion."""
    columns = {}
    for name in frame.columns:
        column = frame[name]
        if column.dtype.is_numeric() and not column.dtype.is_decimal():
            entries: Any = column.to_numpy()
        elif column.dtype in (nw.Categorical, nw.Enum):
            entries = pd.Categorical(column.to_list())
        else:
            entries = pd.Series(column.to_list(), dtype=object)
        columns[name] = entries
    return pd.DataFrame(columns)


def _array_of_rows(rows: Any, title: str) -> Any:
    """Return a list of rows as an array."""
    if missing := [i for i, row in enumerate(rows) if row is None]:
        raise TypeError(f"{title} is a list whose item {missing[0]} is None: leave it out.")
    lengths = {len(row) if n_dims(row) and hasattr(row, "__len__") else 0 for row in rows}
    if len(lengths) > 1:
        raise ValueError(
            f"{title} is a list of rows that are not of one length: they have from {min(lengths)} "
            f"to {max(lengths)} entries; fill in what is missing, or drop rows from every view."
        )
    if any(isinstance(row, np.ma.MaskedArray) for row in rows):
        return np.ma.stack(rows)
    return np.asarray(rows)


def _unmasked(array: Any) -> Any:
    """Return a masked array with NaN for what is masked, and all else as it is."""
    if not isinstance(array, np.ma.MaskedArray):
        return array
    if not np.ma.is_masked(array):
        return np.asarray(array)
    precision = array.dtype if array.dtype.kind == "f" else np.float64
    return np.ma.filled(array.astype(precision), np.nan)


def by_name(X: Any) -> dict[str, Any]:
    """Return several views by their names, and all else as one table."""
    if hasattr(X, "mod") and isinstance(X.mod, Mapping):  # MuData
        X = X.mod
    if isinstance(X, Mapping) and not issparse(X):  # one of SciPy's sparse formats is a dict
        named = {str(name): view for name, view in X.items()}
        if len(named) < len(X):
            raise ValueError(f"two views have the same name, among {list(X)}: rename one of them")
        return named
    if isinstance(X, list | tuple) and (len(X) == 0 or any(n_dims(item) > 1 for item in X)):
        return {f"view {i}": view for i, view in enumerate(X)}
    return {TABLE: X}


def split_columns(
    table: Table, views: Mapping[str, Any]
) -> tuple[dict[str, Table], tuple[str, ...]]:
    """Take one wide table apart into views.

    Parameters
    ----------
    table : Table
        Of shape (n_samples, n_columns).
    views : mapping of str to (list, slice or str)
        The columns of each view: their names or numbers, or a prefix of their names.

    Returns
    -------
    tables : dict of str to Table
        The views.
    notes : tuple of str
        Which columns are in no view.
    """
    if n_dims(table.values) != 2:
        raise TypeError(f"views={list(views)} takes one table apart, and X is none: pass a table")
    width, names = table.values.shape[1], table.columns
    labels = list(range(width)) if names is None else names
    places = {view: _places(view, each, names, width) for view, each in views.items()}
    counts = Counter(place for each in places.values() for place in each)
    if repeated := [labels[place] for place, number in counts.items() if number > 1]:
        owners = [view for view in views if labels.index(repeated[0]) in places[view]]
        raise ValueError(
            f"the column {repeated[0]!r} is more than once in the views "
            f"{join_words(map(repr, owners))}: name it once"
        )
    unused = [labels[place] for place in range(width) if place not in counts]
    note = f"{len(unused):,} of {width:,} columns are in no view: {join_words(unused)}"
    tables = {view: table.take_columns(each) for view, each in places.items()}
    return tables, (note,) if unused else ()


def _places(view: str, choice: Any, names: list[Any] | None, width: int) -> list[int]:
    """Return the places of the columns of a view, or say which column there is not."""
    if isinstance(choice, slice):
        places = list(range(*choice.indices(width)))
    elif isinstance(choice, str):
        places = [p for p, name in enumerate(names or []) if str(name).startswith(choice)]
    else:
        places = []
        for column in choice.tolist() if isinstance(choice, np.ndarray) else choice:
            is_number = isinstance(column, int) and not isinstance(column, bool)
            if names is not None and names.count(column) > 1:
                raise ValueError(f"views={view!r}: several columns are called {column!r}")
            if names is not None and column in names:
                places.append(names.index(column))
            elif is_number and -width <= column < width:
                places.append(column % width)
            else:
                near = did_you_mean(str(column), map(str, names or []))
                known = "numbers only" if names is None else join_words(map(repr, names))
                raise ValueError(
                    f"there is no column {column!r}, which views asks for in {view!r}{near}: the "
                    f"columns are {known}"
                )
    if not places:
        raise ValueError(f"views asks for no column in {view!r}: no column matches {choice!r}")
    return places


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a data frame.

    Parameters
    ----------
    name : hashable
        Its name.
    kind : {"number", "boolean", "category", "text", "date", "other"}
        What it holds; text of few values is a category, unless all of it spells numbers.
    values : ndarray of object of shape (n_samples,)
        Its entries.
    missing : ndarray of bool of shape (n_samples,)
        Which of them are missing.
    """

    name: Hashable
    kind: ColumnKind
    values: np.ndarray
    missing: np.ndarray

    @property
    def levels(self) -> list[Any]:
        """The different values, in order."""
        values = set(self.values[~self.missing].tolist())
        try:
            return sorted(values)
        except TypeError:  # values of several types have no order
            return sorted(values, key=str)

    @property
    def content(self) -> str:
        """What it holds that no kernel takes, in words; empty for numbers and categories."""
        if self.kind != "text":
            return {"date": "dates", "other": "values of several types"}.get(self.kind, "")
        values = self.values[~self.missing].tolist()
        odd = [value for value in values if not _is_number(value)]
        if len(odd) < len(values) / 2:
            some = f"numbers, but for {count(len(odd), 'cell')} such as {str(odd[:1])[1:21]}"
            return some if odd else AS_TEXT
        return f"text, such as {values[0][:20]!r}"


def is_frame(thing: Any) -> bool:
    """Return whether something is a data frame of pandas."""
    return isinstance(thing, pd.DataFrame)


def are_numbers(frame: pd.DataFrame) -> list[bool]:
    """Return of every column whether it holds numbers, told from its type alone."""
    return [is_numeric_dtype(dtype) and not is_bool_dtype(dtype) for dtype in frame.dtypes]


def is_numeric(frame: pd.DataFrame) -> bool:
    """Return whether all columns hold numbers, told from their types alone."""
    return all(are_numbers(frame))


def read_column(frame: pd.DataFrame, place: int) -> Column:
    """Return one column of a data frame, with what it holds."""
    return column_of(frame.columns[place], frame.iloc[:, place])


def column_of(name: Hashable, entries: Any) -> Column:
    """Return a Series of pandas or polars, or a 1-D array, with what it holds."""
    if not isinstance(entries, pd.Series | np.ndarray):
        entries = _as_pandas(nw.from_native(entries, series_only=True).to_frame()).iloc[:, 0]
    series = pd.Series(entries)
    missing = series.isna().to_numpy()
    values = series.astype(object).to_numpy()
    kind = _KINDS.get(infer_dtype(series, skipna=True), "other")
    if kind == "other" and _are_floats(values[~missing]):
        kind = "number"
    known = values[~missing].tolist()
    if kind == "text" and len(set(known)) <= min(MOST_LEVELS, len(known) / 2):
        kind = "text" if all(map(_is_number, set(known))) else "category"
    return Column(name, kind, values, missing)


def _are_floats(values: np.ndarray) -> bool:
    """Return whether entries of several types all become floats."""
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return not any(hasattr(value, "isoformat") for value in values)


def _is_number(text: str) -> bool:
    """Return whether a text spells a number, with a decimal point or a decimal comma."""
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return "_" not in text  # which Python allows


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
        """Return the columns of new rows in the order of the fit, or name those that are missing.

        Parameters
        ----------
        table : Table
            New rows.
        title : str
            What messages call it.
        """
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
        levels = [level for levels in self.levels.values() for level in levels]
        pairs = zip(self.sources_of_categories(), levels, strict=True)
        return [f"{name}={level}" for name, level in pairs]

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


def fit_encoders(
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
    levels = {
        place: tuple(column.levels)
        for place, column in columns.items()
        if column.kind in ("boolean", "category")
    }
    # One value says nothing of how alike samples are.
    several = {place: values for place, values in levels.items() if len(values) > 1}
    if encoder.n_columns == len(numbers):
        return encoder, unusable
    if not (numbers or several or unusable):
        raise ValueError(
            f"{title} has only columns of one value, {list_first(map(str, names or []))}."
        )
    return replace(encoder, numbers=numbers, levels=several), unusable


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
    numbers = numeric_columns(table, encoder.numbers)
    if not in_memory(numbers) or not numbers.shape[1]:
        return replace(encoder, fill_levels=fill_levels)
    numbers = without_infinity(as_numbers(numbers, title))
    medians = SimpleImputer(strategy="median", keep_empty_features=True).fit(numbers).statistics_
    if len(empty := np.flatnonzero(np.isnan(medians) | _all_missing(numbers))):
        names = encoder.columns_of_numbers()
        raise ValueError(
            f"{title} has {count(len(empty), 'column')} without any value (NaN), so there is no "
            f"median: drop {dropping([names[p] for p in empty]) if names else empty.tolist()}."
        )
    return replace(encoder, medians=medians, fill_levels=fill_levels)


def without_infinity(numbers: Any) -> Any:
    """Return numbers with NaN for infinity, which is refused elsewhere."""
    entries = numbers.data if issparse(numbers) else numbers
    if entries.dtype.kind != "f" or not np.isinf(entries).any():
        return numbers
    numbers = numbers.copy()
    entries = numbers.data if issparse(numbers) else numbers
    entries[np.isinf(entries)] = np.nan
    return numbers


def _all_missing(numbers: Any) -> np.ndarray:
    """Return which columns hold nothing but NaN."""
    if issparse(numbers):
        found = np.bincount(numbers.indices[np.isnan(numbers.data)], minlength=numbers.shape[1])
        return found == numbers.shape[0]
    return pd.isna(numbers).all(axis=0)


def numeric_columns(table: Table, numbers: Sequence[int] | None) -> Any:
    """Return the numeric columns of a table; sparse ones of pandas as a CSR matrix."""
    values = table.values if numbers is None else table.take_columns(numbers).values
    if not isinstance(values, pd.DataFrame):
        return values
    fills = {getattr(dtype, "fill_value", None) for dtype in values.dtypes}
    if not fills or None in fills:
        return values
    return values.sparse.to_coo().tocsr() if fills == {0} else values.sparse.to_dense()


def _refuse_doubles(names: Sequence[Hashable], title: str) -> None:
    """Refuse columns of one name, which could be meant twice or be two."""
    if doubles := [name for name, number in Counter(names).items() if number > 1]:
        raise ValueError(
            f"{title} has several columns of the name {join_words(map(repr, doubles))}: rename "
            "them, or keep the first by frame.loc[:, ~frame.columns.duplicated()]."
        )
