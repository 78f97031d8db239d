"""Tables of any library: what their columns hold, and how they become numbers."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype, is_bool_dtype, is_numeric_dtype
from scipy.sparse import issparse

from mkclust.data.check import n_dims
from mkclust.data.missing import take_columns
from mkclust.text import count, did_you_mean, is_number, join_words
from mkclust.unknown import unknown_marks

ColumnKind = Literal["number", "boolean", "category", "text", "date", "other"]
# The name of one table that has none.
TABLE = "table"
# Text is a category if it has at most this many values, each twice on average.
MOST_LEVELS = 20
# What columns hold, by what pandas infers from their entries.
_KINDS: dict[str, ColumnKind] = {
    **dict.fromkeys(
        ("integer", "floating", "mixed-integer-float", "decimal", "empty"), "number"
    ),
    **dict.fromkeys(("datetime64", "datetime", "date", "time"), "date"),
    **dict.fromkeys(("timedelta64", "timedelta", "period", "interval"), "date"),
    "boolean": "boolean",
    "categorical": "category",
    "string": "text",
}


@dataclass(frozen=True, eq=False)
class Table:
    """One view before its columns become numbers, with its index and names, if any."""

    values: Any
    index: Any = None
    names: list[Any] | None = None

    @property
    def is_frame(self) -> bool:
        """Whether its columns have types of their own."""
        return isinstance(self.values, pd.DataFrame)

    @property
    def columns(self) -> list[Any] | None:
        """The labels of its columns, None if they have none."""
        if self.is_frame:
            return list(self.values.columns)
        return self.names

    def take_columns(self, places: Sequence[int]) -> "Table":
        """Return some columns."""
        values = take_columns(self.values, np.array(places, int))
        return replace(
            self, values=values, names=self.names and [self.names[p] for p in places]
        )


# By the names of tables: these, and what messages call them.
Tables: TypeAlias = Mapping[str, Table]
Titles: TypeAlias = Mapping[str, str]


def as_table(thing: Any, title: str) -> Table:
    """Return a table of samples by features of any library, or refuse it."""
    if isinstance(thing, pd.DataFrame):
        return Table(thing, thing.index)
    if all(hasattr(thing, name) for name in ("X", "obs_names", "var_names")):
        return _table_of_anndata(thing, title)
    native = nw.from_native(thing, pass_through=True)
    if isinstance(native, nw.DataFrame):
        return Table(_as_pandas(native))
    if isinstance(thing, list | tuple) and not any(map(_is_series, thing)):
        thing = np.ma.asarray(thing)
        if not np.ma.is_masked(thing):
            thing = thing.data
    is_array = hasattr(thing, "shape") or hasattr(thing, "__array__")
    if _is_series(thing) or not is_array:
        raise TypeError(
            f"{title} is a {type(thing).__name__}: pass a 2-D array or a data frame, "
            "such as series.to_frame()"
        )
    if not hasattr(thing, "shape"):
        thing = np.asarray(thing)
    if isinstance(thing, np.ma.MaskedArray):
        if thing.dtype.kind != "f":
            thing = thing.astype(np.float64)
        thing = np.ma.filled(thing, np.nan)
    return Table(thing)


def _is_series(thing: Any) -> bool:
    return type(thing).__name__ == "Series"


def _table_of_anndata(data: Any, title: str) -> Table:
    """Return the matrix of AnnData, with the names of its rows and columns."""
    if getattr(data, "isbacked", False):
        data = data.to_memory()
    if data.X is None:
        raise ValueError(f"{title} is AnnData without a matrix X: pass one that has it")
    matrix = data.X
    if issparse(matrix):
        matrix = matrix.tocsr()
    else:
        matrix = np.asarray(matrix)
    return Table(matrix, data.obs_names, list(data.var_names))


def _as_pandas(frame: Any) -> pd.DataFrame:
    """Return a frame of polars or pyarrow as one of pandas, without needing pyarrow."""
    columns: dict[str, Any] = {}
    for name in frame.columns:
        column = frame[name]
        if column.dtype.is_numeric() and not column.dtype.is_decimal():
            columns[name] = column.to_numpy()
        elif column.dtype in (nw.Categorical, nw.Enum):
            columns[name] = pd.Categorical(column.to_list())
        else:
            columns[name] = pd.Series(column.to_list(), dtype=object)
    return pd.DataFrame(columns)


def by_name(X: Any) -> dict[str, Any]:
    """Return several views by their names, and all else as one table."""
    if isinstance(X, Mapping | list | tuple) and not issparse(X) and not len(X):
        raise ValueError(
            f"X is an empty {type(X).__name__}: pass at least one kernel or view"
        )
    if hasattr(X, "mod") and isinstance(X.mod, Mapping):  # MuData
        X = X.mod
    # One of SciPy's sparse formats is a dict.
    if isinstance(X, Mapping) and not issparse(X):
        named = {str(name): view for name, view in X.items()}
        if len(named) < len(X):
            raise ValueError(
                f"two have the same name, among {list(X)}: rename one of them"
            )
        return named
    if isinstance(X, list | tuple) and any(n_dims(item) > 1 for item in X):
        return {f"view {i}": view for i, view in enumerate(X)}
    return {TABLE: X}


def split_columns(
    table: Table, views: Mapping[str, Any]
) -> tuple[dict[str, Table], list[str]]:
    """Split a wide table into views, and note which columns are in none of them."""
    if n_dims(table.values) != 2:
        raise TypeError(f"views={list(views)} takes one table apart: pass one as X")
    width = table.values.shape[1]
    names = table.columns
    labels = names or list(range(width))
    places = {
        view: _places(view, choice, names, width) for view, choice in views.items()
    }
    counts = Counter(place for each in places.values() for place in each)
    repeated = [
        repr(labels[place]) for place, n_chosen in counts.items() if n_chosen > 1
    ]
    if repeated:
        raise ValueError(
            f"views has more than once the columns {join_words(repeated)}: pass once"
        )
    tables = {view: table.take_columns(each) for view, each in places.items()}
    unused = [label for place, label in enumerate(labels) if place not in counts]
    if not unused:
        return tables, []
    named = join_words(unused)
    return tables, [f"{len(unused):,} of {width:,} columns are in no view: {named}"]


def _places(view: str, choice: Any, names: list[Any] | None, width: int) -> list[int]:
    """Return the numbers of the columns that a view is made of."""
    if isinstance(choice, slice):
        places = list(range(width))[choice]
    elif isinstance(choice, str):
        known = enumerate(names or [])
        places = [place for place, name in known if str(name).startswith(choice)]
    else:
        places = _places_of_columns(view, choice, names, width)
    if not places:
        raise ValueError(
            f"views asks for no column in {view!r}: no column matches {choice!r}"
        )
    return places


def _places_of_columns(
    view: str, columns: Any, names: list[Any] | None, width: int
) -> list[int]:
    """Return the numbers of columns that are chosen by name, or else by number."""
    if isinstance(columns, np.ndarray):
        columns = columns.tolist()
    counts = Counter(names or [])
    known = {name: place for place, name in enumerate(names or [])}
    places = []
    for column in columns:
        place = known.get(column)
        if place is None and type(column) is int and -width <= column < width:
            place = column % width
        if place is None or counts[column] > 1:
            near = did_you_mean(str(column), map(str, known))
            raise ValueError(
                f"views asks for the column {column!r} in {view!r}, of which there are "
                f"{counts[column]}{near}: the columns are "
                f"{join_words(names or range(width))}"
            )
        places.append(place)
    return places


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a frame: its name, kind, entries, and which are missing."""

    name: Hashable
    kind: ColumnKind
    values: np.ndarray
    missing: np.ndarray

    @property
    def known(self) -> list[Any]:
        """The entries that are not missing."""
        return self.values[~self.missing].tolist()

    @property
    def levels(self) -> list[Any]:
        """The different values, in order."""
        values = set(self.known)
        try:
            return sorted(values)
        except TypeError:  # values of several types have no order
            return sorted(values, key=str)

    @property
    def words(self) -> list[str]:
        """The cells of mostly numbers that are not, as text."""
        others = [str(value) for value in self.known if not is_number(value, ".,")]
        if len(others) > len(self.known) / 2:
            return []
        return others

    @property
    def unknown(self) -> list[str]:
        """The different cells that seem to mean that a value is not known."""
        return unknown_marks(self.known)

    @property
    def mixed(self) -> str:
        """In words, how many cells of mostly numbers are not; else empty."""
        words = self.words
        if not words:
            return ""
        n_cells = count(len(words), "cell")
        return f"numbers, but {n_cells} such as {words[0][:20]!r}"

    @property
    def content(self) -> str:
        """In words, what it holds that no kernel takes; else empty."""
        if self.kind in ("text", "other") and self.mixed:
            return self.mixed
        if self.kind == "text":
            return f"text, such as {self.known[0][:20]!r}"
        return {"date": "dates", "other": "values of several types"}.get(self.kind, "")


def are_numbers(frame: pd.DataFrame) -> list[bool]:
    """Return whether each column holds numbers, judging by its type alone."""
    return [
        is_numeric_dtype(dtype) and not is_bool_dtype(dtype) for dtype in frame.dtypes
    ]


def read_column(frame: pd.DataFrame, place: int) -> Column:
    """Return one column of a data frame, with what it holds."""
    series = frame.iloc[:, place]
    values = series.astype(object).to_numpy()
    kind = _KINDS.get(infer_dtype(series), "other")

    missing = series.isna().to_numpy()
    if kind in ("text", "category"):
        missing = missing | np.array(
            [isinstance(v, str) and not v.strip() for v in values], bool
        )

    if kind == "text" and _are_levels(values[~missing].tolist()):
        kind = "category"
    return Column(frame.columns[place], kind, values, missing)


def _are_levels(texts: Sequence[str]) -> bool:
    """Return whether text repeats as categories do, and is not measured numbers."""
    levels = set(texts)
    most = min(MOST_LEVELS, len(texts) / 2)
    if len(levels) > most:
        return False

    return are_codes(levels) or not all(is_number(level, ".,") for level in levels)


def are_codes(levels: Iterable[Any]) -> bool:
    """Return whether all values are text of digits only."""
    return all(isinstance(level, str) and level.strip().isdecimal() for level in levels)
