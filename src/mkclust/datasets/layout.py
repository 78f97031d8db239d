"""From a table of a file to a view: which column holds the ids, which the labels, what is left."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mkclust.datasets.base import LABELS, Dataset, DatasetError
from mkclust.index import has_ids

# What the first column of a table is called where it holds the ids of the samples.
ID_NAMES = frozenset(
    ("id", "ids", "sample", "sampleid", "sampleids", "patient", "patientid", "barcode", "index")
) | {"name", "key"}
SAMPLES_IN = ("rows", "columns")
# Endings of names that say how a file is packed, not what is in it.
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz"}
MAX_NAMED = 8
# What stands for a missing cell; as an id it is what it says.
MISSING = frozenset(
    ("", " ", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND")
) | {"1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}


@dataclass(frozen=True)
class TableLayout:
    """How a table is to be read, as far as it was said.

    Attributes
    ----------
    id : str or None
        Name of the column that holds the ids; None: the first one, where it looks like ids.
    samples_in : {"rows", "columns"}
        Where the samples are.
    drop : tuple of str
        Columns that are left aside.
    """

    id: str | None = None
    samples_in: str = "rows"
    drop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.samples_in not in SAMPLES_IN:
            raise DatasetError(
                f"samples_in={self.samples_in!r}: pass 'rows' for samples x features, or "
                "'columns' for features x samples"
            )

    @property
    def is_default(self) -> bool:
        """Whether nothing was said."""
        return self == TableLayout()


@dataclass(frozen=True, eq=False)
class RawTable:
    """A table as it was read, before it is known what its columns are.

    Attributes
    ----------
    frame : pandas.DataFrame
        The columns, with names that are text and all different; ids where the file marks them.
    as_text : frozenset of str
        Columns of numbers, maybe, that were read as text, for they may be ids: "NA" is one.
    decimal : str
        The decimal point of these.
    notes : tuple of str
        What has to be said of how it was read.
    """

    frame: Any
    as_text: frozenset[str] = frozenset()
    decimal: str = "."
    notes: tuple[str, ...] = field(default=())


def import_pandas(path: Any) -> Any:
    """Return pandas, or say how to install it."""
    try:
        import pandas
    except ImportError as error:
        advice = 'reading it needs pandas: pip install "mkclust[tables]"'
        raise DatasetError(f"{path}: is a table; {advice}") from error
    return pandas


def suffix_of(path: Path) -> str:
    """Return the ending that tells the format of a file, without that of how it is packed."""
    return (path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path).suffix.lower()


def stem_of(path: Path) -> str:
    """Return the name of a file without the endings that tell format and packing."""
    return (path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path).stem


def unique_names(path: Path, names: Sequence[Any]) -> list[str]:
    """Return the header of a table as text; nameless columns behind the first get a name."""
    header = [str(name).strip() if name is not None else "" for name in names]
    header = [name or (f"column {i + 1}" if i else "") for i, name in enumerate(header)]
    if len(set(header)) < len(header):
        twice = next(name for i, name in enumerate(header) if name in header[:i])
        advice = "rename one of them in the file; what would be read is the first of them"
        raise DatasetError(f"{path}: two columns are called {twice}; {advice}")
    return header


def table_dataset(
    path: Path,
    tables: dict[str, RawTable],
    layout: TableLayout,
    *,
    selection: frozenset[str] = frozenset(),
    square: bool = False,
    notes: Sequence[str] = (),
) -> Dataset:
    """Return the tables of a file as views, with ids for an index, or as kernels.

    Parameters
    ----------
    path : Path
        The file.
    tables : dict of str to RawTable
        What was read, by the names of the views.
    layout : TableLayout
        Where samples and ids are, and what to leave aside.
    selection : frozenset of str
        Columns that are features; empty: all of them.
    square : bool
        Whether the tables are kernels.
    notes : sequence of str
        What else has to be said.

    Returns
    -------
    Dataset
    """
    views, y, words = {}, None, list(notes)
    dropped: set[str] = set()
    for name, table in tables.items():
        if layout.samples_in == "rows":  # a first column that is dropped holds no ids
            left = _without(table.frame, layout.drop, dropped)
            table = replace(table, frame=left, as_text=table.as_text & set(left.columns))
        counter = None if layout.samples_in == "columns" or layout.id else row_counter(table.frame)
        if counter is not None:
            table.frame.pop(counter)
            table = replace(table, as_text=table.as_text - {counter})
        frame, said = _with_ids(path, table, layout)
        if counter is not None:
            said = [f"{said[0].rstrip('.')}; the first column only counts rows."]
        words += [*table.notes, *said]
        labels = [column for column in LABELS if column in frame.columns]
        for column in labels:
            values = frame.pop(column)
            y = _labels(values) if y is None else y
        frame = _without(frame, layout.drop, dropped)
        if selection:
            frame = _select(path, frame, selection)
        if not frame.shape[1] or not frame.shape[0]:
            advice = "it should hold a header, one row a sample, and features in columns"
            raise DatasetError(f"{path}: no feature in it beside ids and labels; {advice}")
        views[name] = frame
    description = " ".join([f"Read from {path.name}.", *words])
    names = tuple(views)
    if not square:
        return Dataset(
            stem_of(path), views, None, y, names, description, dropped=tuple(sorted(dropped))
        )
    for name, frame in views.items():
        if frame.shape[0] != frame.shape[1]:
            advice = "a kernel is square; leave it out of the kernels, or read it as a view"
            shape = f"{frame.shape[0]} x {frame.shape[1]}"
            raise DatasetError(f"{path}: {name} is {shape}, no kernel; {advice}")
    kernels, left = list(views.values()), tuple(sorted(dropped))
    return Dataset(stem_of(path), None, kernels, y, names, description, dropped=left)


def _without(frame: Any, names: Sequence[str], dropped: set[str]) -> Any:
    """Return a frame without columns of these names, noting which there were."""
    present = [name for name in names if name in frame.columns]
    dropped.update(present)
    return frame.drop(columns=present) if present else frame


def _with_ids(path: Path, table: RawTable, layout: TableLayout) -> tuple[Any, list[str]]:
    """Return the frame of a table, samples in rows, with their ids for its index, and notes."""
    pd, frame = import_pandas(path), table.frame
    turned = layout.samples_in == "columns"
    as_written = {name: frame[name] for name in table.as_text}
    for name, values in as_written.items():
        frame[name] = as_numbers(values, table.decimal)
    column = _name_column(frame, layout) if turned else _id_column(path, frame, layout)
    for name in table.as_text - {column}:
        frame[name] = frame[name].mask(frame[name].isin(MISSING), None)
    names = None
    if column is not None:
        # Taken out in place: a copy of a wide table takes as much memory again.
        values = frame.pop(column)
        names = _as_ids(as_written.get(column, values))
    if not turned:
        if names is not None:
            _check_ids(path, names, column, frame, asked=layout.id is not None)
            frame.index = pd.Index(names)
            where = "the first column" if column == "" else f"the column {column}"
            return frame, [f"Ids: {where}."]
        if has_ids(frame.index):
            frame.index = pd.Index(_as_ids(frame.index.to_series()))
            _check_ids(path, frame.index.to_numpy(), "index", frame, asked=False)
            return frame, ["Ids: the index."]
        return frame, []
    if names is None and has_ids(frame.index):
        names = _as_ids(frame.index.to_series())
    features = [f"row {i + 1}" for i in range(len(frame))] if names is None else _apart(names)
    frame = frame.set_axis(features, axis=0).T
    if any(kind == object for kind in frame.dtypes):  # noqa: E721
        frame = frame.infer_objects()
    return frame, ["Samples in columns, ids: the header."]


def _name_column(frame: Any, layout: TableLayout) -> str | None:
    """Return the column that names the features of a table of features x samples."""
    if layout.id is not None and layout.id in frame.columns:
        return layout.id
    first = frame.columns[0]
    if first == "" or spelling(first) in ID_NAMES or _is_text(frame[first]):
        return first
    return None


def _id_column(path: Path, frame: Any, layout: TableLayout) -> str | None:
    """Return the column that holds the ids, None where no column does."""
    if layout.id is not None:
        if layout.id not in frame.columns:
            if frame.index.name == layout.id:
                return None
            raise DatasetError(
                f"{path}: no column {layout.id} for the ids in it; {near(layout.id, frame, 'id')}"
            )
        return layout.id
    if has_ids(frame.index) or not len(frame.columns):
        return None
    first = frame.columns[0]
    if first == "" or spelling(first) in ID_NAMES:
        return first
    values = frame[first]
    is_id = _is_text(values) and first not in LABELS and values.notna().all() and values.is_unique
    return first if is_id and len(values) > 1 else None


def row_counter(frame: Any) -> str | None:
    """Return the nameless first column where it numbers the rows and ids follow it, else None.

    So pandas and R write a table whose ids are a column of it.
    """
    if len(frame.columns) < 2 or frame.columns[0] != "":
        return None
    first, second = frame.columns[:2]
    numbers, values = as_numbers(frame[first].astype(str)), frame[second]
    if not (
        numbers.dtype.kind == "f" and (numbers.diff()[1:] == 1).all() and numbers.iloc[0] in (0, 1)
    ):
        return None
    is_id = _is_text(values) and second not in LABELS and values.notna().all() and values.is_unique
    return first if spelling(second) in ID_NAMES or is_id else None


def _check_ids(path: Path, ids: np.ndarray, column: Any, frame: Any, *, asked: bool) -> None:
    """Refuse ids that are missing, or there more than once, naming columns that are not."""
    title = f"the column {column}" if column else "the first column"
    others = [
        name
        for name in frame.columns[:50]
        if (_is_text(frame[name]) or frame[name].dtype.kind in "iu")
        and frame[name].notna().all()
        and frame[name].is_unique
    ]
    advice = f"pass id={others[0]!r}" if others else "pass id='COLUMN' for another column"
    if column and not asked:
        advice += f", or drop={column!r} if its rows are in the order of the other files"
    empty = np.flatnonzero(ids == "")
    if len(empty):
        cells = f"{len(empty)} empty cells, the first in row {empty[0] + 1} below the header"
        raise DatasetError(f"{path}: {title} should hold ids and has {cells}; {advice}")
    values, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        n_twice, example = int((counts > 1).sum()), values[counts > 1][0]
        problem = f"has {n_twice} of them more than once, such as {example!r}"
        better = f"pass id={others[0]!r}, or " if others else ""
        rows = f"{better}keep one row an id in the file"
        raise DatasetError(f"{path}: {title} should hold ids and {problem}; {rows}")


def _as_ids(values: Any) -> np.ndarray:
    """Return ids as text, so that 7 in one file is 7 in another, and empty where there is none."""
    if values.dtype.kind == "f" and (values.dropna() % 1 == 0).all():
        values = values.astype("Int64")
    missing = values.isna().to_numpy()
    ids = values.astype(str).str.strip().to_numpy(dtype=object)
    ids[missing] = ""
    return ids


def _apart(names: np.ndarray) -> list[str]:
    """Return names of features, those that come again with a number behind them."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return result


def as_numbers(values: Any, decimal: str = ".") -> Any:
    """Return a column of text as numbers if all of it are, and as it is but for empty cells else.

    What stands for a missing cell is missing among numbers.
    """
    import pandas as pd

    text, values = values.mask(values.isin(MISSING), None), values.mask(values == "", None)
    if decimal != ".":
        if text.str.contains(".", regex=False, na=False).any():
            return values
        text = text.str.replace(decimal, ".", regex=False)
    try:
        numbers = pd.to_numeric(text).astype(np.float64)
    except (ValueError, TypeError):
        return values
    try:
        # pandas may be off by the last digit where it takes text for numbers; Python never is.
        return text.astype(np.float64)
    except (ValueError, TypeError):
        return numbers


def _is_text(values: Any) -> bool:
    """Return whether a column holds text rather than numbers, truth values or dates."""
    return values.dtype.kind == "O" or str(values.dtype) in ("category", "string", "str")


def _labels(values: Any) -> np.ndarray:
    """Return a column of labels, whole numbers as integers, words as text."""
    if values.dtype.kind in "biuf":
        array = values.to_numpy()
        whole = np.isfinite(array).all() and (array == np.rint(array)).all()
        return array.astype(np.int64) if whole else array
    return np.array(
        ["" if missing else str(v) for v, missing in zip(values, values.isna(), strict=True)]
    )


def _select(path: Path, frame: Any, selection: frozenset[str]) -> Any:
    """Return the selected columns of a table, in its order."""
    if missing := sorted(selection - set(frame.columns)):
        raise DatasetError(f"{path}: no {missing[0]} in it; {near(missing[0], frame)}")
    return frame[[name for name in frame.columns if name in selection]]


def near(name: str, thing: Any, parameter: str = "") -> str:
    """Say which columns a table or data set has, those of similar names first."""
    tables = list((thing.views or {}).values()) if isinstance(thing, Dataset) else [thing]
    columns = [str(c) for each in tables for c in getattr(each, "columns", ()) if c != ""]
    by_spelling = {spelling(column): column for column in reversed(columns)}
    close = difflib.get_close_matches(spelling(name), by_spelling, n=3, cutoff=0.6)
    if close and parameter:
        return f"did you mean {parameter}={by_spelling[close[0]]!r}?"
    if close:
        return f"did you mean {' or '.join(by_spelling[match] for match in close)}?"
    more = f" and {len(columns) - MAX_NAMED} more" if len(columns) > MAX_NAMED else ""
    return f"its columns are {', '.join(columns[:MAX_NAMED])}{more}"


def spelling(name: Any) -> str:
    """Return a name without what people spell differently."""
    return "".join(letter for letter in str(name).lower() if letter.isalnum())
