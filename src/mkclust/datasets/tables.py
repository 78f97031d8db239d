"""Tables in text files, Excel workbooks, parquet and Feather files."""

import bz2
import csv
import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from mkclust.datasets.dataset import DatasetError, check_memory
from mkclust.datasets.layout import (
    HEADER_ONLY,
    ID_NAMES,
    RawTable,
    TableLayout,
    normalize_name,
    unique_names,
)
from mkclust.datasets.long_lines import (
    check_cells,
    check_header,
    open_lines,
    shorten_cells,
)
from mkclust.text import is_number

# What a reader of tables returns: tables by name, and sentences about what it skipped.
Tables = tuple[dict[str, RawTable], list[str]]
# How packed text files are opened, by the last suffix.
PACKED: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
# The first lines, of at least this number of bytes, decide on separator and encoding.
HEAD_BYTES = 1 << 18
# Cells that are missing, as pandas reads them, a blank, and errors of formulas; an id
# may be spelled like one.
MISSING = frozenset(
    (
        "",
        " ",
        "#N/A",
        "#N/A N/A",
        "#NA",
        "-1.#IND",
        "-1.#QNAN",
        "-NaN",
        "-nan",
        "1.#IND",
    )
) | {"1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}
MISSING |= {"#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"}


def unpacked(path: Path) -> Path:
    """Return the path without the suffix that says how the file is packed."""
    if path.suffix.lower() in PACKED:
        return path.with_suffix("")
    return path


def read_text(path: Path, selection: frozenset[str], layout: TableLayout) -> Tables:
    """Read a text file; its first lines decide on separator, decimals and encoding."""
    opener = PACKED.get(path.suffix.lower(), open)
    with open_lines(path, opener) as file:
        lines = [file.readline() for _ in range(5)]
        head = b"".join([*lines, *file.readlines(HEAD_BYTES)])
    encoding, text = _decode(path, head)
    delimiter, rows = _split(unpacked(path).suffix.lower(), text)
    has_comma = any("," in c and is_number(c, ",") for row in rows[1:] for c in row)
    decimal = "."
    if has_comma and delimiter != ",":
        decimal = ","

    header = rows[0]
    width = max(map(len, rows))
    check_header(path, header)
    if len(header) == width - 1 and all(len(row) == width for row in rows[1:]):
        header = ["", *header]  # as R writes tables with names of rows
    has_header = not _is_row(header, decimal)
    if not has_header:
        first = []
        if not is_number(header[0], decimal):
            first = [""]

        header = [*first, *(f"column {i + 1}" for i in range(len(header) - len(first)))]
    names = unique_names(path, header)
    # These may hold ids, which are read as they are spelled.
    may_be_ids = [
        n for i, n in enumerate(names) if i <= (names[0] == "") or n == layout.id
    ]
    n_rows = max(head.count(b"\n"), 1) * path.stat().st_size / len(head)
    check_memory(path, int(8 * len(names) * n_rows))
    options: Any = {
        "sep": delimiter,
        "decimal": decimal,
        "names": names,
        "header": 0 if has_header else None,
        "converters": dict.fromkeys(may_be_ids, str),
        "na_values": [" ", *layout.missing],
        "skipinitialspace": delimiter == " ",
    }
    try:
        with open_lines(path, opener) as file:
            frame = pd.read_csv(file, encoding=encoding, **options)
    except UnicodeDecodeError:
        with open_lines(path, opener) as file:
            frame = pd.read_csv(file, encoding="latin-1", **options)
    if frame.empty:
        raise DatasetError(f"{path}: {HEADER_ONLY}")
    for name in frame.select_dtypes(object):
        if name not in layout.drop:
            check_cells(path, name, frame[name])
    written = {name: frame[name] for name in may_be_ids}
    for name in frame.select_dtypes(object):
        frame[name] = _as_typed(frame[name], decimal, MISSING.union(layout.missing))
    note = []
    if not has_header:
        note = ["The first line holds numbers: no header."]

    return {unpacked(path).stem: RawTable(frame, written)}, note


def _decode(path: Path, head: bytes) -> tuple[str, str]:
    """Return the encoding of a file, by its first bytes."""
    is_utf16 = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    encoding = "utf-8-sig"
    if is_utf16:
        encoding = "utf-16"

    try:
        text = head[: len(head) - len(head) % 2 if is_utf16 else None].decode(encoding)
    except UnicodeDecodeError:
        encoding = "latin-1"
        text = head.decode("latin-1")
    if not text.strip():
        raise DatasetError(f"{path}: is empty; check that it was written")
    if "\0" in text:
        raise DatasetError(
            f"{path}: is not a text file, because it holds zero bytes; check it"
        )
    return encoding, text


def _split(suffix: str, text: str) -> tuple[str, list[list[str]]]:
    """Return the separator that cuts all lines evenly, and the cells."""
    found = []
    for delimiter in ",;\t " if suffix == ".csv" else "\t,; ":
        try:
            rows = _rows(text, delimiter)
        except csv.Error:  # a cell is too long, or a line without this separator
            rows = _rows(shorten_cells(text, delimiter), delimiter)
        if len(text) > HEAD_BYTES and len(rows) > 1:
            rows = rows[:-1]  # the last one may be cut off
        widths = {len(row) for row in rows[1:]} or {len(rows[0])}
        is_even = (
            len(widths) == 1
            and max(widths) - len(rows[0]) in (0, 1)
            and max(widths) > 1
        )
        found.append((is_even, len(rows[0]), delimiter, rows))
    *_, blank = found
    best = max(found[:-1], key=lambda each: each[:2])
    # R separates by blanks; elsewhere they are part of cells.
    _, _, delimiter, rows = blank if blank[0] and best[1] == 1 else best
    return delimiter, rows


def _rows(text: str, delimiter: str) -> list[list[str]]:
    """Return the cells of all lines that are not empty."""
    lines = csv.reader(io.StringIO(text), delimiter=delimiter)
    return [row for row in lines if any(row)]


def _is_row(cells: list[str], decimal: str) -> bool:
    """Return whether the first line is a sample: numbers, possibly after an id."""
    first, *others = cells
    if not all(is_number(cell, decimal) for cell in others):
        return False
    is_named = first.strip() == "" or normalize_name(first) in ID_NAMES
    whole = all(cell.strip().lstrip("+-").isdigit() for cell in others)
    return is_number(first, decimal) or (not is_named and not whole)


def _as_typed(column: pd.Series, decimal: str, missing: frozenset[str]) -> pd.Series:
    """Return a column of text as numbers, if all its cells are."""
    text = column.mask(column.isin(missing), None)
    present = text.dropna()
    if all(is_number(cell, decimal) for cell in present):
        return text.str.replace(decimal, ".", regex=False).astype(float)
    if present.str.fullmatch(r"\d{4}-\d{2}-\d{2}([T ].*)?").all():
        return pd.to_datetime(text, errors="coerce", format="ISO8601")
    return text


def read_sheets(path: Path, selection: frozenset[str], layout: TableLayout) -> Tables:
    """Read the selected sheets of a workbook, or its first one."""
    import openpyxl  # noqa: F401 - used by pandas

    # 10 bytes per cell become 50 of objects.
    check_memory(path, 5 * path.stat().st_size)
    with pd.ExcelFile(path, engine="openpyxl") as book:
        sheets = list(map(str, book.sheet_names))
        unknown = sorted(selection - set(sheets))
        if unknown:
            raise DatasetError(
                f"{path}: no sheet {unknown[0]}; select among {', '.join(sheets)}"
            )
        names = [name for name in sheets if name in selection] or sheets[:1]
        # Cells as they are: an id may be spelled like a missing value.
        options: Any = {"header": None, "dtype": object, "na_filter": False}
        cells = {name: book.parse(name, **options) for name in names}
    tables = {
        name if selection else path.stem: _sheet(path, cells[name]) for name in names
    }
    others = [name for name in sheets if name not in names]
    return tables, [f"Skipped: the sheets {', '.join(others)}."] if others else []


def _sheet(path: Path, cells: pd.DataFrame) -> RawTable:
    """Return the cells of a spreadsheet as a table, its first row as header."""
    cells = cells.mask(cells == "").dropna(how="all").dropna(axis=1, how="all")
    if len(cells) < 2:
        problem = "the sheet is empty; check that it was written"
        if len(cells):
            problem = HEADER_ONLY

        raise DatasetError(f"{path}: {problem}")
    header = [None if pd.isna(cell) else cell for cell in cells.iloc[0]]
    frame = cells.iloc[1:].reset_index(drop=True)
    frame.columns = pd.Index(unique_names(path, header))
    written = {
        name: frame[name] for name in frame.columns[: 1 + (frame.columns[0] == "")]
    }
    return RawTable(frame.mask(frame.isin(MISSING), None).infer_objects(), written)


def read_frame(path: Path, selection: frozenset[str], layout: TableLayout) -> Tables:
    """Read a parquet, Feather or Arrow file; a stored index holds the ids."""
    import pyarrow.parquet

    is_parquet = path.suffix.lower() == ".parquet"
    n_bytes = path.stat().st_size
    if is_parquet:
        metadata = pyarrow.parquet.read_metadata(path)
        n_bytes = 8 * metadata.num_rows * metadata.num_columns
    check_memory(path, n_bytes)
    if is_parquet:
        frame = pd.read_parquet(path)
    else:
        frame = pd.read_feather(path)

    frame.columns = pd.Index(unique_names(path, list(frame.columns)))
    if frame.index.nlevels > 1:
        advice = "store one column of ids, for example by frame.reset_index()"
        raise DatasetError(
            f"{path}: its index has {frame.index.nlevels} levels; {advice}"
        )
    return {path.stem: RawTable(frame, {})}, []
