"""Tables with names: the columns of data frames and of AnnData, looked at one by one.

No library of data frames is imported: what there is of one says what it is.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.sparse import issparse

ColumnKind = Literal["number", "boolean", "category", "text", "date", "other"]
# A column of text holds categories where it has at most so many values, each twice on average.
MOST_LEVELS, FEWEST_REPEATS = 20, 2
# What columns of text hold if all of it spells numbers.
AS_TEXT = "numbers as text"
# So many characters of a text show what a column holds.
LONGEST_EXAMPLE = 20
# What the types of columns of polars are called, and what they hold.
_POLARS_KINDS: dict[str, ColumnKind] = {
    "Boolean": "boolean",
    "Categorical": "category",
    "Enum": "category",
    "String": "text",
    "Utf8": "text",
    "Date": "date",
    "Datetime": "date",
    "Time": "date",
    "Duration": "date",
    "Null": "number",
}
# The same by the letters that NumPy has for types.
_LETTERS: dict[str, ColumnKind] = {
    "b": "boolean",
    "i": "number",
    "u": "number",
    "f": "number",
    "M": "date",
    "m": "date",
    "U": "text",
    "S": "text",
}


@dataclass(frozen=True, eq=False)
class AnnotatedMatrix:
    """A matrix whose rows have ids and whose columns have names, as that of AnnData.

    Parameters
    ----------
    matrix : array or sparse matrix of shape (n_samples, n_features)
        Its entries.
    index : pandas.Index of shape (n_samples,)
        The ids of its rows.
    columns : pandas.Index of shape (n_features,)
        The names of its columns.
    """

    matrix: Any
    index: Any
    columns: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.matrix.shape


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a data frame.

    Parameters
    ----------
    name : hashable
        Its name.
    kind : {"number", "boolean", "category", "text", "date", "other"}
        What it holds; text of few values is a category, unless all of it spells numbers.
    values : ndarray of shape (n_samples,)
        Its entries, of any type where they are no numbers.
    missing : ndarray of bool of shape (n_samples,)
        Which of them are not there.
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
            cells = f"{len(odd)} cell{'s' * (len(odd) > 1)}"
            return f"numbers, but for {cells} such as {_shortened(odd[0])}" if odd else AS_TEXT
        return f"text, such as {_shortened(values[0])}"


def is_frame(thing: Any) -> bool:
    """Return whether something is a data frame whose rows have ids, as those of pandas do."""
    named = hasattr(thing, "iloc") and hasattr(thing, "columns")
    return named and hasattr(thing.index, "get_indexer")


def is_polars(thing: Any) -> bool:
    """Return whether something is a data frame of polars, found out without importing it."""
    return type(thing).__module__.startswith("polars.") and hasattr(thing, "get_column_index")


def has_columns(thing: Any) -> bool:
    """Return whether something is a table whose columns have names and types of their own."""
    return is_frame(thing) or is_polars(thing)


def opened(X: Any) -> Any:
    """Return MuData as a dict of its modalities, AnnData as matrices with names, all else as is.

    Parameters
    ----------
    X : object
        What a user passed for views: one thing, or a list or dict of them.
    """
    if hasattr(X, "mod") and isinstance(X.mod, Mapping) and hasattr(X, "obs_names"):
        return {name: _matrix_of(part) for name, part in X.mod.items()}
    if isinstance(X, Mapping) and not issparse(X):
        return {name: _matrix_of(part) for name, part in X.items()}
    if isinstance(X, list | tuple):
        parts = [_matrix_of(part) for part in X]
        return X if all(new is old for new, old in zip(parts, X, strict=True)) else parts
    return _matrix_of(X)


def _is_anndata(thing: Any) -> bool:
    """Return whether something has a matrix with names for rows and columns, as AnnData has."""
    return all(hasattr(thing, name) for name in ("X", "obs_names", "var_names"))


def _is_lazy_frame(thing: Any) -> bool:
    """Return whether something is a query of polars that has not been run."""
    return type(thing).__module__.startswith("polars.") and hasattr(thing, "collect")


def _matrix_of(thing: Any) -> Any:
    """Return AnnData as a matrix with names, and all else as it is."""
    if _is_lazy_frame(thing):
        raise TypeError("X holds a LazyFrame of polars: pass the data frame that collect() returns")
    if not _is_anndata(thing):
        return thing
    if getattr(thing, "isbacked", False):
        thing = thing.to_memory()
    if thing.X is None:
        raise ValueError(
            "X holds AnnData without a matrix X: pass one that has it, such as "
            "AnnData(X=adata.layers[name], obs=adata.obs, var=adata.var)"
        )
    matrix = thing.X.tocsr() if issparse(thing.X) else np.asarray(thing.X)
    return AnnotatedMatrix(matrix, thing.obs_names, thing.var_names)


def column_labels(table: Any) -> list[Any] | None:
    """Return what the columns of a table are called, numbers or text; None of arrays."""
    is_named = has_columns(table) or isinstance(table, AnnotatedMatrix)
    return list(table.columns) if is_named else None


def column_names(table: Any) -> list[str] | None:
    """Return the names of the columns of a table, None where not all have one that is text."""
    return text_names(column_labels(table))


def text_names(names: Sequence[Any] | None) -> list[str] | None:
    """Return names that are all text, and None for others."""
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    return list(names)


def take_rows(table: Any, rows: np.ndarray) -> Any:
    """Return some rows of a table of any form, in the given order."""
    if is_frame(table):
        return table.iloc[rows]
    if isinstance(table, AnnotatedMatrix):
        return replace(table, matrix=table.matrix[rows], index=table.index[rows])
    if isinstance(table, list | tuple):
        return [table[row] for row in rows]
    return table[rows.tolist()] if is_polars(table) else table[rows]


def take_columns(table: Any, columns: Sequence[int]) -> Any:
    """Return some columns of a table of any form, by their numbers."""
    columns = list(columns)
    if is_frame(table):
        return table.iloc[:, columns]
    if isinstance(table, AnnotatedMatrix):
        matrix, names = table.matrix[:, columns], table.columns[columns]
        return replace(table, matrix=matrix, columns=names)
    return table[:, columns]


def is_numeric(frame: Any) -> bool:
    """Return whether all columns of a data frame are numbers, told from their types alone."""
    return all(are_numbers(frame))


def are_numbers(frame: Any) -> list[bool]:
    """Return of every column of a data frame whether it holds numbers, told from its type alone."""
    kind_of = _polars_kind if is_polars(frame) else _pandas_kind
    dtypes = list(frame.dtypes)
    is_number = {dtype: kind_of(dtype) == "number" for dtype in set(dtypes)}
    return [is_number[dtype] for dtype in dtypes]


def sparse_matrix(frame: Any) -> Any:
    """Return a frame of pandas whose columns all are sparse as a CSR matrix, others as they are."""
    fills = [getattr(dtype, "fill_value", None) for dtype in set(frame.dtypes)]
    if not fills or None in fills:
        return frame
    return frame.sparse.to_coo().tocsr() if set(fills) == {0} else frame.sparse.to_dense()


def read_columns(frame: Any, places: Sequence[int]) -> Iterator[Column]:
    """Read some columns of a data frame one by one, but plain truth values of pandas at once."""
    dtypes = list(frame.dtypes) if is_frame(frame) else []
    plain = [place for place in places if dtypes and dtypes[place] == np.dtype(bool)]
    marks = dict(zip(plain, frame.iloc[:, plain].to_numpy().T, strict=True)) if plain else {}
    for place in places:
        if place in marks:
            missing = np.zeros(len(frame), dtype=bool)
            yield Column(frame.columns[place], "boolean", marks[place], missing)
        else:
            yield read_column(frame, place)


def read_column(frame: Any, place: int) -> Column:
    """Return one column of a data frame, with what it holds.

    Parameters
    ----------
    frame : data frame of pandas or polars
        The frame.
    place : int
        The number of the column.
    """
    if is_polars(frame):
        return column_of(frame.columns[place], frame.to_series(place))
    return column_of(frame.columns[place], frame.iloc[:, place])


def column_of(name: Hashable, entries: Any) -> Column:
    """Return a series of pandas or polars, or a 1-D array, with what it holds.

    Parameters
    ----------
    name : hashable
        The name of the column.
    entries : pandas.Series, polars.Series or ndarray of shape (n_samples,)
        Its entries.
    """
    if isinstance(entries, np.ndarray):
        kind = _LETTERS.get(entries.dtype.kind, "other")
        missing = np.array([value is None or value != value for value in entries.tolist()], bool)
    elif hasattr(entries, "is_null"):  # of polars
        kind, missing = _polars_kind(entries.dtype), entries.is_null().to_numpy()
    else:
        kind, missing = _pandas_kind(entries.dtype), entries.isna().to_numpy()
    values = np.empty(len(missing), dtype=object)
    values[:] = entries.tolist() if isinstance(entries, np.ndarray) else entries.to_list()
    if kind == "other":
        kind = _kind_of_objects(values[~missing])
    if kind == "text" and _is_repeated(values[~missing]):
        kind = "text" if all(map(_is_number, set(values[~missing].tolist()))) else "category"
    return Column(name, kind, values, missing)


def _polars_kind(dtype: Any) -> ColumnKind:
    """Return what a column of polars holds by its type, text not looked at."""
    if dtype.is_numeric():
        return "number"
    return _POLARS_KINDS.get(str(dtype).partition("(")[0], "other")


def _pandas_kind(dtype: Any) -> ColumnKind:
    """Return what a column of pandas holds by its type, text and objects not looked at."""
    name = str(dtype)
    if name == "category" or hasattr(dtype, "categories"):
        return "category"
    if name.startswith(("string", "str", "large_string")):
        return "text"
    if name.startswith(("period", "interval", "date", "time", "duration")):
        return "date"
    return _LETTERS.get(getattr(dtype, "kind", "O"), "other")


def _kind_of_objects(values: np.ndarray) -> ColumnKind:
    """Return what a column of Python's objects holds by those that are there."""
    if all(isinstance(value, bool | np.bool_) for value in values) and len(values):
        return "boolean"
    if all(isinstance(value, str) for value in values) and len(values):
        return "text"
    if any(hasattr(value, "year") or hasattr(value, "isoformat") for value in values):
        return "date"
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        return "other"
    return "number"


def _is_repeated(values: np.ndarray) -> bool:
    """Return whether text has so few different values that these are categories."""
    n_levels = len(set(values.tolist()))
    return 0 < n_levels <= MOST_LEVELS and FEWEST_REPEATS * n_levels <= len(values)


def _is_number(text: Any) -> bool:
    """Return whether a text spells a number, with a decimal point or a decimal comma."""
    if "_" in text:  # which Python allows
        return False
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def _shortened(text: Any) -> str:
    """Return the beginning of a text, in quotes."""
    return repr(str(text)[:LONGEST_EXAMPLE])
