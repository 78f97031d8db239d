"""From the table of a file to a view: which column holds the ids, which the labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mkclust.datasets.dataset import (
    LABELS,
    Dataset,
    DatasetError,
    as_labels,
    find_labels,
)
from mkclust.index import has_ids
from mkclust.text import did_you_mean, from_spreadsheet, join_words

# Names of a first column that holds the ids of the samples, as `normalize_name` writes
# them.
ID_NAMES = {
    "id",
    "ids",
    "sample",
    "sampleid",
    "sampleids",
    "patient",
    "patientid",
    "barcode",
    "index",
    "name",
    "key",
}


@dataclass(frozen=True)
class TableLayout:
    """How to read a table: ids, where samples are, columns to drop, empty cells."""

    id: str | None = None
    samples_in: str = "rows"
    drop: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # what stands for an empty cell
    trim_ids: int | None = None  # characters of an id that are kept
    # The column of labels; None recognizes it, and "" means none.
    labels: str | None = None

    def __post_init__(self) -> None:
        if self.samples_in not in ("rows", "columns"):
            raise DatasetError(
                f"samples_in={self.samples_in!r}: pass 'rows' for samples x features, "
                "or 'columns' for features x samples"
            )


class RawTable(NamedTuple):
    """A table as it was read, with possible ids spelled as in the file."""

    frame: pd.DataFrame
    written: Mapping[str, pd.Series]


def table_dataset(
    path: Path,
    title: str,
    tables: Mapping[str, RawTable],
    layout: TableLayout,
    *,
    selection: frozenset[str],
    kernels: bool,
    notes: Sequence[str],
) -> Dataset:
    """Return the tables of a file as views whose index holds the ids, or as kernels.

    The title is the name of the data set.
    """
    views = {}
    dropped = set[str]()
    words = [f"Read from {path.name}.", *notes]
    y = None
    label_name = ""
    for name, table in tables.items():
        if not len(table.frame):
            raise DatasetError(
                f"{path}: has a header and no rows; check that it is complete"
            )
        frame, where = _with_ids(path, table, layout, dropped)
        if where:
            words.append(f"Ids: {where}.")
        for column in find_labels(frame, layout.labels, selection, path):
            labels = frame.pop(column)
            if y is None:
                y = as_labels(labels)
                label_name = column
        unknown = sorted(selection - set(frame.columns))
        if unknown:
            raise _no_column(path, unknown[0], frame)
        if selection:
            frame = frame[[each for each in frame if each in selection]]

        if layout.missing:
            as_numbers = pd.to_numeric(pd.Series(layout.missing), errors="coerce")
            values = {*layout.missing, *as_numbers.dropna()}
            frame = frame.mask(frame.isin(values)).infer_objects()
        _check_shape(path, name, frame, kernels)
        views[name] = frame

    facts: dict[str, Any] = {
        "y": y,
        "label_name": label_name,
        "kernel_names": tuple(views),
        "description": " ".join(words),
        "dropped": tuple(sorted(dropped)),
    }
    if kernels:
        return Dataset(title, None, list(views.values()), **facts)
    return Dataset(title, views, None, **facts)


def _check_shape(path: Path, name: str, frame: pd.DataFrame, is_kernel: bool) -> None:
    """Refuse a table without features, or a kernel that is not square."""
    n_rows, n_columns = frame.shape
    if not n_columns:
        raise DatasetError(
            f"{path}: no features other than ids and labels; it should hold a header, "
            "one row per sample, and features in columns"
        )
    if is_kernel and n_rows != n_columns:
        raise DatasetError(
            f"{path}: {name} is {n_rows} x {n_columns}, and a kernel is square; leave "
            "it out"
        )


def _with_ids(
    path: Path, table: RawTable, layout: TableLayout, dropped: set[str]
) -> tuple[pd.DataFrame, str]:
    """Return a table with its ids as index, and where they are from, "" without any."""
    frame = table.frame
    in_rows = layout.samples_in == "rows"
    if in_rows:
        frame = _drop(frame, layout, dropped)
        others = frame.iloc[:, 1:]
        if _counts_rows(frame) and _id_column(path, others, table, layout):
            del frame[""]  # pandas and R write such a column before one of ids

    ids = None
    where = "the index"
    column = _id_column(path, frame, table, layout)
    if column is not None:
        where = f"the column {column}" if column else "the first column"
        # In place: a copy of a wide table takes as much memory again.
        values = frame.pop(column)
        ids = _as_ids(table.written.get(column, values))
    elif has_ids(frame.index):
        ids = _as_ids(frame.index.to_series())

    if not in_rows:
        where = "the header"
        frame = _drop(_transposed(frame, ids), layout, dropped)
        ids = frame.index
    if ids is None:
        return frame, ""
    index = pd.Index([from_spreadsheet(name)[: layout.trim_ids] for name in ids])
    _check_ids(path, index, where, frame)
    frame.index = index
    return frame, where


def _drop(frame: pd.DataFrame, layout: TableLayout, dropped: set[str]) -> pd.DataFrame:
    """Return a frame without the columns that are to be dropped, noting which."""
    present = frame.columns.intersection(layout.drop)
    dropped.update(present)
    return frame.drop(columns=present) if len(present) else frame


def _transposed(frame: pd.DataFrame, names: Any) -> pd.DataFrame:
    """Return a table whose rows are features as one whose columns are, with names."""
    if names is None:
        names = [f"row {number}" for number in range(1, len(frame) + 1)]
    features = pd.Series(names)

    # A feature that is there twice gets a number.
    again = features.groupby(features).cumcount()
    numbered = features + " (" + (again + 1).astype(str) + ")"
    features = features.where(again == 0, numbered)
    return frame.set_axis(features.tolist(), axis=0).T.infer_objects()


def _id_column(
    path: Path, frame: pd.DataFrame, table: RawTable, layout: TableLayout
) -> str | None:
    """Return the name of the column of ids, None if there is none."""
    in_rows = layout.samples_in == "rows"
    if layout.id is not None and layout.id in frame.columns:
        return layout.id
    if layout.id is not None and in_rows and frame.index.name != layout.id:
        raise _no_column(path, layout.id, frame, " for the ids")
    if has_ids(frame.index) or not len(frame.columns):
        return None
    first = frame.columns[0]
    is_named = first == "" or is_name_of_ids(first)
    if in_rows:
        is_names = _has_unique_text(frame, first, table.written.get(first))
    else:
        is_names = _is_text(frame[first])
    if is_named or is_names:
        return first
    return None


def _has_unique_text(
    frame: pd.DataFrame, name: str, written: pd.Series | None = None
) -> bool:
    """Return whether a column holds unique text, and is not one of labels."""
    values = frame[name]
    if written is not None:
        values = written.mask(written == "", None)

    unique = len(values) > 1 and values.notna().all() and values.is_unique
    return bool(name not in LABELS and _is_text(frame[name]) and unique)


def _is_text(values: pd.Series) -> bool:
    return values.dtype.kind == "O"


def _counts_rows(frame: pd.DataFrame) -> bool:
    """Return whether the column without a name holds the numbers of the rows."""
    n = len(frame)
    counts = (list(range(n)), list(range(1, n + 1)))
    return "" in frame.columns and frame[""].tolist() in counts


def _as_ids(values: pd.Series) -> pd.Series:
    """Return ids as text, 7.0 as "7", and a missing one as ""."""
    values = values.infer_objects()
    if values.dtype.kind == "f" and (values.dropna() % 1 == 0).all():
        values = values.astype("Int64")
    return values.astype(str).str.strip().mask(values.isna(), "")


def _check_ids(path: Path, ids: pd.Index, where: str, frame: pd.DataFrame) -> None:
    """Refuse ids that are empty or repeated, and name a better column."""
    empty = np.flatnonzero(ids == "")
    twice = ids[ids.duplicated()].unique()
    if len(empty):
        found = (
            f"{len(empty)} empty cells, the first in row {empty[0] + 1} below the "
            "header"
        )
    elif len(twice):
        found = f"{len(twice)} of them more than once, such as {twice[0]!r}"
    else:
        return
    others = [name for name in frame.columns[:50] if _has_unique_text(frame, name)]
    advice = f"pass id={others[0]!r}, or " if others else ""
    raise DatasetError(
        f"{path}: {where} should hold ids and has {found}; {advice}give every row an "
        "id of its own in the file"
    )


def _no_column(
    path: Path, name: str, frame: pd.DataFrame, use: str = ""
) -> DatasetError:
    """Return the error that a file has no column of a name, and similar names."""
    columns = [column for column in frame.columns if column != ""]
    near = did_you_mean(name, columns)
    return DatasetError(
        f"{path}: no column {name}{use}{near}; it has {join_words(columns, 8)}"
    )


def unique_names(path: Path, names: Sequence[Any]) -> list[str]:
    """Return the header of a table as text, with names for nameless columns."""
    header = ["" if name is None else str(name).strip() for name in names]
    for place, name in enumerate(header):
        if place and not name:
            header[place] = f"column {place + 1}"
    if len(set(header)) < len(header):
        twice = next(name for i, name in enumerate(header) if name in header[:i])
        raise DatasetError(
            f"{path}: two columns are called {twice}; rename one in the file"
        )
    return header


def is_name_of_ids(name: object) -> bool:
    """Return whether a column is called like the ids of samples."""
    return normalize_name(name) in ID_NAMES


def normalize_name(name: object) -> str:
    """Return the letters and digits of a name in lower case."""
    return "".join(letter for letter in str(name).lower() if letter.isalnum())
