"""Tables of the samples of a fit, in its order, with the types of their columns."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_integer_dtype
from scipy.sparse import csr_array, issparse

from mkclust.data import Samples
from mkclust.data.no_features import looks_like_an_id
from mkclust.data.samples import read_samples
from mkclust.data.tables import Table, as_table, by_name, read_column
from mkclust.explain.id_of_rows import with_ids
from mkclust.index import has_ids, index_of, match_rows
from mkclust.linalg import is_foreign, to_host
from mkclust.text import join_words
from mkclust.types import Float


@dataclass(frozen=True, eq=False)
class AlignedTable:
    """What is known of the samples from one table."""

    name: str
    samples: np.ndarray  # which samples of the fit its rows are, rising
    columns: tuple[str, ...]  # names of the columns that hold numbers
    numbers: Any  # these columns, an array or CSR array; NaN for missing cells
    # Columns of categories, by name.
    categories: tuple[tuple[str, pd.Categorical], ...] = ()
    # Columns that hold neither, and why.
    skipped: dict[str, str] = field(default_factory=dict)
    # Columns of numbers whose type is of whole ones.
    whole: frozenset[str] = frozenset()
    id_column: str = ""  # the column that its rows were matched by, if not the index

    @property
    def reasons(self) -> str:
        """The columns that hold neither, and why, in words."""
        return join_words(
            f"{column!r} {reason}" for column, reason in self.skipped.items()
        )

    @property
    def n_missing(self) -> int:
        """Number of empty cells."""
        numbers = self.numbers
        if issparse(numbers):
            numbers = numbers.data
        counts = (each.isna().sum() for _, each in self.categories)
        n_levels = sum(counts)
        return int(np.isnan(numbers).sum() + n_levels)

    def column(self, place: int) -> Float:
        """Return a column of numbers."""
        values = self.numbers[:, [place]]
        if issparse(values):
            values = values.toarray()
        return np.asarray(values, dtype=float)[:, 0]

    def is_id(self, name: str) -> bool:
        """Return whether a column looks like ids of the samples."""
        categories = dict(self.categories)
        if name in categories:
            return looks_like_an_id(name, categories[name])

        values = self.column(self.columns.index(name))
        if name in self.whole and np.isfinite(values).all():
            return looks_like_an_id(name, values.astype(np.int64))
        return looks_like_an_id(name, values)


def read_tables(
    tables: Any, index: Any, observed: Mapping[str, np.ndarray] | None = None
) -> list[AlignedTable]:
    """Return tables, or columns by name, in the order of the samples of a fit.

    `index` holds the ids, or is the number of samples; `observed` those of views that
    lack some.
    """
    observed = observed or {}
    names = dict[str, list[str]]()
    if isinstance(tables, Samples):
        if not isinstance(index, int):
            tables = read_samples(tables, ids=index)

        names = tables.columns
        index = tables.n_samples
        observed = tables.observed
        tables = tables.by_name
        for name, part in tables.items():
            if isinstance(part, pd.DataFrame):
                tables[name] = part.reset_index(drop=True)
    elif _are_columns(tables):
        return [_read_columns(tables, index, observed.get("table"))]
    return [
        _read(name, table, index, names.get(name), observed.get(name))
        for name, table in by_name(tables).items()
    ]


def _read_columns(
    columns: Mapping[str, Any], index: Any, observed: np.ndarray | None
) -> AlignedTable:
    """Return columns by name as one table, in the order of the samples of a fit."""
    who = "table 'table'"
    frame = pd.DataFrame(dict(columns))
    has_index = any(index_of(each) is not None for each in columns.values())
    frame, id_column = with_ids(frame, index, who, has_index=has_index)
    if not (id_column or has_index or isinstance(index, int)) and has_ids(index):
        match_rows(len(frame), index, who)  # refuses another number of rows
        frame.index = index
    if id_column:
        found = _read("table", frame, index, None, None)
        return replace(found, id_column=id_column)
    return _read("table", frame, index, None, observed)


def _are_columns(tables: Any) -> bool:
    """Return whether tables are columns by name, rather than tables by name."""
    is_mapping = isinstance(tables, Mapping) and bool(tables)
    return is_mapping and all(map(_is_column, tables.values()))


def _is_column(thing: Any) -> bool:
    return (
        not issparse(thing) and not hasattr(thing, "obs_names") and np.ndim(thing) == 1
    )


def _read(
    name: str, thing: Any, index: Any, columns: Any, observed: np.ndarray | None
) -> AlignedTable:
    """Return one table in the order of the samples of a fit."""
    who = f"table {name!r}"
    n = index
    if not isinstance(index, int):
        n = len(index)

    table = as_table(thing, who)
    if len(table.values.shape) != 2:
        raise ValueError(
            f"{who} has the shape {table.values.shape}: pass one row per sample"
        )
    id_column = ""
    if table.is_frame and observed is None:
        has_index = table.index is not None
        frame, id_column = with_ids(table.values, index, who, has_index=has_index)
        table = Table(frame, frame.index)
    n_rows = int(table.values.shape[0])
    by_position = not has_ids(table.index) and (
        isinstance(index, int) or not has_ids(index)
    )
    if by_position and observed is not None and n_rows == len(observed) < n:
        samples = observed
        rows = np.arange(n_rows)
    else:
        own: Any = table.index
        if own is None:
            own = n_rows
        rows = match_rows(own, index, who)
        if observed is not None:  # the fit has used nothing else
            is_observed = np.isin(np.arange(n), observed)
            rows = np.where(is_observed, rows, -1)
        samples = np.flatnonzero(rows >= 0)
        rows = rows[rows >= 0]
    if table.is_frame:
        aligned = _read_frame(name, table.values.iloc[rows], samples)
        return replace(aligned, id_column=id_column)
    if columns is None:
        # Of a parquet file.
        names = table.columns or getattr(table.values, "columns", None)
        columns = names or [f"column {place}" for place in range(table.values.shape[1])]
    titles = tuple(map(str, columns))
    numbers = _numbers(table, who)[rows]
    found = AlignedTable(name, samples, titles, numbers)
    if numbers.dtype.kind in "iu":
        return replace(found, whole=frozenset(titles))
    return found


def _numbers(table: Table, who: str) -> Any:
    """Return the values of a table as numbers in NumPy or CSR."""
    values = table.values
    if issparse(values):
        return csr_array(values)
    if is_foreign(values):
        values = to_host(values, None)
    else:
        values = np.asarray(values)

    try:
        if values.dtype.kind in "fiub":
            return values
        return values.astype(float)
    except (TypeError, ValueError):
        raise ValueError(
            f"{who} holds {values.dtype} entries that are not numbers: pass a data "
            "frame, whose columns may hold categories"
        ) from None


def _read_frame(name: str, frame: pd.DataFrame, samples: np.ndarray) -> AlignedTable:
    """Return a frame as numbers and categories, with what was left out."""
    columns = []
    numbers = []
    categories = []
    skipped = {}
    whole = []
    for place, label in enumerate(frame.columns):
        title = str(label)
        if isinstance(label, int | np.integer):
            title = f"column {label}"

        column = read_column(frame, place)
        if column.kind == "number":
            values = pd.to_numeric(frame.iloc[:, place])
            columns.append(title)
            numbers.append(values.to_numpy(float, na_value=np.nan))
            if is_integer_dtype(frame.dtypes.iloc[place]):
                whole.append(title)
        elif column.content:
            skipped[title] = f"holds {column.content}"
        else:
            known = pd.Series(column.values).mask(column.missing)
            texts = known.map(str, na_action="ignore")
            levels = list(map(str, column.levels))
            categories.append((title, pd.Categorical(texts, levels)))

    matrix = np.empty((len(frame), 0))
    if numbers:
        matrix = np.column_stack(numbers)
    return AlignedTable(
        name,
        samples,
        tuple(columns),
        matrix,
        categories=tuple(categories),
        skipped=skipped,
        whole=frozenset(whole),
    )
