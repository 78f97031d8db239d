"""Tables of the samples of a fit, brought to its order, their columns told apart by what they hold.

Tables are those that a model was fitted on, or others of the same samples: what has an index is
matched by the rule of `mkclust.index`, may hold further samples, and may lack some. Of a view that
lacks samples only those are looked at that it has.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from mkclust.data import Samples
from mkclust.data.samples import read_samples
from mkclust.data.tables import Column, by_name, column_of, is_frame
from mkclust.index import has_ids, index_of, match_rows
from mkclust.linalg import is_foreign, to_host
from mkclust.types import Float


@dataclass(frozen=True, eq=False)
class Category:
    """A column of categories: the number of the level in every row, -1 where it is missing."""

    name: str
    codes: np.ndarray
    levels: tuple[str, ...]
    is_truth: bool = False


@dataclass(frozen=True, eq=False)
class AlignedTable:
    """What is known of the samples from one table.

    Attributes
    ----------
    name : str
        Its name.
    samples : ndarray of int of shape (s,)
        Which samples of the fit its rows are.
    columns : tuple of str
        Names of the columns that hold numbers.
    numbers : ndarray or sparse array of shape (s, len(columns))
        These columns; NaN where a cell is missing.
    categories : tuple of Category
        The columns that hold categories.
    skipped : dict of str to str
        Columns that hold neither, and why.
    """

    name: str
    samples: np.ndarray
    columns: tuple[str, ...]
    numbers: Any
    categories: tuple[Category, ...] = ()
    skipped: dict[str, str] = field(default_factory=dict)

    def take(self, samples: np.ndarray) -> "AlignedTable":
        """Return some samples, by rising numbers, as far as there are; they become 0, 1, ..."""
        rows = np.flatnonzero(np.isin(self.samples, samples))
        return replace(
            self,
            samples=np.searchsorted(samples, self.samples[rows]),
            numbers=self.numbers[rows],
            categories=tuple(replace(each, codes=each.codes[rows]) for each in self.categories),
        )


def count_entries(table: AlignedTable) -> int:
    """Return how many entries a table holds, of a sparse one those that are stored."""
    numbers = table.numbers.nnz if issparse(table.numbers) else table.numbers.size
    return int(numbers) + len(table.categories) * len(table.samples)


def read_tables(
    tables: Any, index: Any, observed: Mapping[str, np.ndarray] | None = None
) -> list[AlignedTable]:
    """Return tables of the samples of a fit in its order.

    Parameters
    ----------
    tables : mapping, list, data frame, array, sparse matrix, AnnData or MuData
        One table or several: data frames of pandas or polars, 2-D arrays, sparse matrices, AnnData;
        a mapping of names to columns is one table, too.
    index : pandas.Index or int
        The index of the samples of the fit, or their number if they have none.
    observed : mapping of str to ndarray of int, default=None
        By the names of views that lack samples, rising, the numbers of those that they have. A
        table of such a name holds these alone, or all.

    Returns
    -------
    list of AlignedTable
        Of tables that lack samples, those that they have.
    """
    columns: dict[str, list[str]] = {}
    if isinstance(tables, Samples):
        tables = tables if isinstance(index, int) else read_samples(tables, ids=index)
        columns, index = tables.columns, tables.n_samples
        observed = None if tables.missing is None else tables.observed
        tables = {name: _without_index(part) for name, part in tables.by_name.items()}
    return [
        _read(name, table, index, columns.get(name), (observed or {}).get(name))
        for name, table in _by_name(tables).items()
    ]


def _without_index(part: Any) -> Any:
    """Return a part of samples in the order of the fit without its index."""
    return part.reset_index(drop=True) if is_frame(part) else part


def _by_name(tables: Any) -> dict[str, Any]:
    """Return tables by their names."""
    if isinstance(modalities := getattr(tables, "mod", None), Mapping):  # of MuData
        return dict(modalities)
    if isinstance(tables, Mapping) and tables and all(map(_is_column, tables.values())):
        return {"table": tables}
    if not hasattr(tables, "columns") and not hasattr(tables, "obs_names"):
        return by_name(tables)
    return {"table": tables}


def _is_column(thing: Any) -> bool:
    """Return whether something is one column: a list, a 1-D array or a Series."""
    return not issparse(thing) and not hasattr(thing, "obs_names") and np.ndim(thing) == 1


def _read(
    name: str,
    table: Any,
    index: Any,
    columns: Sequence[str] | None = None,
    observed: np.ndarray | None = None,
) -> AlignedTable:
    """Return one table in the order of the fit, of a view the samples that it has."""
    who, n = f"table {name!r}", index if isinstance(index, int) else len(index)
    if isinstance(table, Mapping) and not issparse(table):
        table = {label: _in_order(each, index, f"{label!r}") for label, each in table.items()}
        return _read_frame(name, table, np.arange(n), np.arange(n))
    own = index_of(table)
    if hasattr(table, "obs_names") and hasattr(table, "X"):
        columns, table = table.var_names, table.X
    if not hasattr(table, "shape"):
        table = np.asarray(table)
    if len(table.shape) != 2:
        raise ValueError(f"{who} has the shape {table.shape}: pass a table, one row a sample")
    n_rows = int(table.shape[0])
    by_position = not has_ids(own) and (isinstance(index, int) or not has_ids(index))
    if by_position and observed is not None and n_rows == len(observed) < n:
        samples, rows = observed, np.arange(n_rows)
    else:
        rows = match_rows(n_rows if own is None else own, index, who)
        if observed is not None:  # what else is there, the fit has not looked at
            rows = np.where(np.isin(np.arange(n), observed), rows, -1)
        samples, rows = np.flatnonzero(rows >= 0), rows[rows >= 0]
    if is_frame(table) or hasattr(table, "get_columns"):
        return _read_frame(name, table, samples, rows)
    if columns is None:  # a table on disk has names, an array has none
        numbered = [f"column {place}" for place in range(table.shape[1])]
        columns = getattr(table, "columns", numbered)
    return AlignedTable(name, samples, tuple(map(str, columns)), _numbers(table, rows, who))


def _in_order(column: Any, index: Any, who: str) -> Any:
    """Return a column in the order of the samples, NaN for those that it lacks."""
    own = index_of(column)
    if own is None:
        column = np.asarray(column)
        match_rows(len(column), index, who)
        return column
    rows = match_rows(own, index, who)
    return column.reset_index(drop=True).reindex(rows) if (rows < 0).any() else column.iloc[rows]


def _numbers(table: Any, rows: np.ndarray, who: str) -> Any:
    """Return a matrix of numbers in an order of rows, sparse where it is."""
    if issparse(table):
        table = csr_array(table)
        return table if np.array_equal(rows, np.arange(table.shape[0])) else table[rows]
    if isinstance(table, np.ma.MaskedArray):
        table = np.ma.filled(table.astype(float), np.nan)
    table = to_host(table, None) if is_foreign(table) else np.asarray(table)
    if table.dtype.kind not in "fiub":
        try:
            table = table.astype(float)
        except (TypeError, ValueError):
            raise ValueError(
                f"{who} holds {table.dtype} entries that are no numbers: pass a data frame, whose "
                "columns may hold categories"
            ) from None
    return table if np.array_equal(rows, np.arange(len(table))) else table[rows]


def _read_frame(name: str, frame: Any, samples: np.ndarray, rows: np.ndarray) -> AlignedTable:
    """Return the columns of a data frame, told apart by what they hold."""
    columns: list[str] = []
    numbers: list[np.ndarray] = []
    categories: list[Category] = []
    skipped: dict[str, str] = {}
    for label, entries in _columns(frame):
        column = column_of(str(label), entries)
        if column.kind == "number":
            columns.append(str(label))
            numbers.append(_as_floats(entries)[rows])
        elif column.content:
            skipped[str(label)] = f"holds {column.content}"
        else:
            category = _category(column)
            categories.append(replace(category, codes=category.codes[rows]))
    matrix = np.column_stack(numbers) if numbers else np.empty((len(rows), 0))
    return AlignedTable(name, samples, tuple(columns), matrix, tuple(categories), skipped)


def _columns(frame: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the columns of a frame with their names, of which there may be two of one."""
    if isinstance(frame, Mapping):
        yield from frame.items()
        return
    for place, label in enumerate(frame.columns):
        yield label, frame.iloc[:, place] if is_frame(frame) else frame[label]


def _as_floats(entries: Any) -> Float:
    """Return a column of numbers as floats, missing ones as NaN."""
    if isinstance(entries, np.ndarray):
        return np.array([np.nan if each is None else each for each in entries.tolist()], float)
    if hasattr(entries, "is_null"):  # of polars
        return entries.cast(float).to_numpy()
    return entries.to_numpy(dtype=float, na_value=np.nan)


def _category(column: Column) -> Category:
    """Return a column of categories or truth values by the numbers of its levels."""
    place = {level: number for number, level in enumerate(column.levels)}
    codes = [
        -1 if is_missing else place[value]
        for value, is_missing in zip(column.values.tolist(), column.missing, strict=True)
    ]
    names = tuple(map(str, column.levels))
    is_truth = column.kind == "boolean" or set(names) <= {"False", "True"}
    return Category(str(column.name), np.array(codes, dtype=int), names, is_truth)
