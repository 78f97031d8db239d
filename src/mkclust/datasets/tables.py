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
    RawTable,
    TableLayout,
    is_name_of_ids,
    unique_names,
)
from mkclust.text import is_number

# Dates other than those of ISO 8601: 31/12/2019, 31.12.2019 and 2019/12/31, also with a
# time.
DATE = (
    r"\s*(\d{1,2}([./-])\d{1,2}\2\d{4}|\d{4}([./])\d{1,2}\3\d{1,2})"
    r"( +\d{1,2}:\d{2}(:\d{2})?)?\s*"
)
# What a reader of tables returns: tables by name, and sentences about what it skipped.
Tables = tuple[dict[str, RawTable], list[str]]
# How packed text files are opened, by the last suffix.
PACKED: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
# Characters of a cell that is too long; the module csv takes no more either.
LONGEST_CELL = 1 << 17
# The first lines, of at least this number of bytes, decide on separator and encoding.
HEAD_BYTES = 1 << 18
# Cells that are missing, as pandas reads them, a blank, and errors of formulas; an id
# may be spelled like one.
MISSING = frozenset(
    {
        "",
        " ",
        "#N/A N/A",
        "#N/A",
        "#NA",
        "-1.#IND",
        "-1.#QNAN",
        "-NaN",
        "-nan",
        "1.#IND",
        "1.#QNAN",
        "<NA>",
        "N/A",
        "NA",
        "NULL",
        "NaN",
        "None",
        "n/a",
        "nan",
        "null",
        "#DIV/0!",
        "#NAME?",
        "#NULL!",
        "#NUM!",
        "#REF!",
        "#VALUE!",
    }
)


def unpacked(path: Path) -> Path:
    """Return the path without the suffix that says how the file is packed."""
    if path.suffix.lower() in PACKED:
        return path.with_suffix("")
    return path


def read_text(path: Path, selection: frozenset[str], layout: TableLayout) -> Tables:
    """Read a text file; its first lines decide on separator, decimals and encoding."""
    opener = PACKED.get(path.suffix.lower(), open)
    encoding, n_lines = _look_at_lines(path, opener)
    with opener(path, "rb") as file:
        lines = [file.readline() for _ in range(5)]
        head = b"".join([*lines, *file.readlines(HEAD_BYTES)])
    text = head.decode(encoding, errors="ignore")
    if not text.strip():
        raise DatasetError(f"{path}: is empty; check that it was written")
    if "\0" in text:
        raise DatasetError(
            f"{path}: is not a text file, because it holds zero bytes; check it"
        )
    delimiter, rows = _split(unpacked(path).suffix.lower(), text)
    decimal = _decimal_mark(delimiter, rows)
    for place, name in enumerate(rows[0], start=1):
        _check_length(path, f"the header, column {place:,}", len(name))
    header, has_header = _header(rows, decimal)
    names = unique_names(path, header)
    may_be_ids = _possible_ids(names, layout.id)
    check_memory(path, 8 * len(names) * n_lines)
    unknown = MISSING.union(layout.missing)
    options: Any = {
        "sep": delimiter,
        "decimal": decimal,
        "names": names,
        "header": 0 if has_header else None,
        # With a mark, so that an id that is spelled like a missing value stays.
        "converters": dict.fromkeys(may_be_ids, "={}".format),
        "na_values": [" ", *layout.missing],
        "skipinitialspace": delimiter == " ",
    }
    with opener(path, "rb") as file:
        frame = pd.read_csv(file, encoding=encoding, **options)
    for name in may_be_ids:
        frame[name] = frame[name].str.removeprefix("=")
    written = {name: frame[name] for name in may_be_ids}
    for name in frame.select_dtypes(exclude=["number", "bool"]):
        lengths = frame[name].dropna().astype(str).str.len()
        if len(lengths) and name not in layout.drop:
            row = f"row {lengths.idxmax() + 1:,} below the header"
            _check_length(path, f"{row}, the column {name or 1}", lengths.max())
        frame[name] = _as_typed(frame[name], decimal, unknown)
    notes = [] if has_header else ["The first line holds numbers: no header."]
    return {unpacked(path).stem: RawTable(frame, written)}, notes


def _look_at_lines(path: Path, opener: Callable[..., Any]) -> tuple[str, int]:
    """Return the encoding of a text file, and the number of its lines.

    A line that is too long for a table is refused before it is in memory.
    """
    # Bytes of a line: eight million columns of eight characters.
    longest = 1 << 26
    encoding = "utf-8-sig"
    number = 0
    with opener(path, "rb") as file:
        for line in iter(lambda: file.readline(longest + 1), b""):
            number += 1
            if len(line) > longest:
                raise DatasetError(
                    f"{path}: line {number:,} has more than {longest >> 20} MiB; check "
                    "that it is a table, or store it as .npz"
                )
            if number == 1 and line.startswith((b"\xff\xfe", b"\xfe\xff")):
                encoding = "utf-16"
            if encoding == "utf-8-sig" and not _is_utf8(line):
                encoding = "latin-1"
    return encoding, number


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _check_length(path: Path, place: str, length: int) -> None:
    """Refuse a cell, or the name of a column, that is too long for one."""
    if length >= LONGEST_CELL:
        raise DatasetError(
            f"{path}: the cell in {place}, has {length:,} characters; shorten it, or "
            "drop the column"
        )


def _decimal_mark(delimiter: str, rows: list[list[str]]) -> str:
    """Return the comma if some cell is a number with one, else the point."""
    if delimiter == ",":
        return "."
    if any("," in cell and is_number(cell, ",") for row in rows[1:] for cell in row):
        return ","
    return "."


def _header(rows: list[list[str]], decimal: str) -> tuple[list[str], bool]:
    """Return the names of the columns, and whether the first line holds them."""
    header = rows[0]
    width = max(map(len, rows))
    if len(header) == width - 1 and all(len(row) == width for row in rows[1:]):
        header = ["", *header]  # as R writes tables with names of rows
    if not _is_row(header, decimal):
        return header, True

    if is_number(header[0], decimal):
        return [f"column {place}" for place in range(1, len(header) + 1)], False
    return ["", *(f"column {place}" for place in range(1, len(header)))], False


def _possible_ids(names: list[str], asked: str | None = None) -> list[str]:
    """Return the columns that may hold ids, which are read as they are spelled."""
    n_first = 1
    if names[0] == "":
        n_first = 2  # a column of row numbers may come before the ids
    others = [name for name in names[n_first:] if name == asked]
    return names[:n_first] + others


def _split(suffix: str, text: str) -> tuple[str, list[list[str]]]:
    """Return the separator that cuts all lines evenly, and the cells."""
    separators = "\t,; "
    if suffix == ".csv":
        separators = ",;\t "

    cells = {}
    quality = {}
    for delimiter in separators:
        rows = _rows(text, delimiter)
        if len(text) > HEAD_BYTES and len(rows) > 1:
            rows = rows[:-1]  # the last one may be cut off
        n_columns = len(rows[0])
        widths = {len(row) for row in rows[1:]} or {n_columns}
        width = max(widths)
        is_even = len(widths) == 1 and width > 1 and width - n_columns in (0, 1)
        cells[delimiter] = rows
        quality[delimiter] = (is_even, n_columns)

    best = max(separators[:-1], key=lambda delimiter: quality[delimiter])
    # R separates by blanks; elsewhere they are part of cells.
    if quality[" "][0] and quality[best][1] == 1:
        best = " "
    return best, cells[best]


def _rows(text: str, delimiter: str) -> list[list[str]]:
    """Return the cells of all lines that are not empty, of any length."""
    limit = csv.field_size_limit(max(len(text), LONGEST_CELL))
    try:
        lines = csv.reader(io.StringIO(text), delimiter=delimiter)
        return [row for row in lines if any(row)]
    finally:
        csv.field_size_limit(limit)


def _is_row(cells: list[str], decimal: str) -> bool:
    """Return whether the first line is a sample: numbers, possibly after an id."""
    first, *others = cells
    if not all(is_number(cell, decimal) for cell in others):
        return False
    is_named = first.strip() == "" or is_name_of_ids(first)
    whole = all(cell.strip().lstrip("+-").isdigit() for cell in others)
    return is_number(first, decimal) or (not is_named and not whole)


def _as_typed(column: pd.Series, decimal: str, missing: frozenset[str]) -> pd.Series:
    """Return a column of text as numbers or dates, if all its cells are."""
    text = column.mask(column.isin(missing), None)
    present = text.dropna()
    if all(is_number(cell, decimal) for cell in present):
        return text.str.replace(decimal, ".", regex=False).astype(float)
    if present.str.fullmatch(r"\d{4}-\d{2}-\d{2}([T ].*)?").all():
        return pd.to_datetime(text, errors="coerce", format="ISO8601")
    if present.str.fullmatch(DATE).all():
        days = text.str.replace(r"[./-]", "/", regex=True).str.split().str[0]
        for form in ("%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y"):
            found = pd.to_datetime(days, errors="coerce", format=form)
            if found.notna().sum() == len(present):
                return found
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
        cells = {name: pd.read_excel(book, name, **options) for name in names}
    titles = names
    if not selection:
        titles = [path.stem]
    tables = {
        title: _sheet(path, cells[name])
        for title, name in zip(titles, names, strict=True)
    }
    others = [name for name in sheets if name not in names]
    if not others:
        return tables, []
    return tables, [f"Skipped: the sheets {', '.join(others)}."]


def _sheet(path: Path, cells: pd.DataFrame) -> RawTable:
    """Return the cells of a spreadsheet as a table, its first row as header."""
    cells = cells.mask(cells == "").dropna(how="all").dropna(axis=1, how="all")
    if cells.empty:
        raise DatasetError(f"{path}: the sheet is empty; check that it was written")
    header = [None if pd.isna(cell) else cell for cell in cells.iloc[0]]
    frame = cells.iloc[1:].reset_index(drop=True)
    names = unique_names(path, header)
    frame.columns = pd.Index(names)
    written = {name: frame[name] for name in _possible_ids(names)}
    return RawTable(frame.mask(frame.isin(MISSING), None).infer_objects(), written)


def read_frame(path: Path, selection: frozenset[str], layout: TableLayout) -> Tables:
    """Read a parquet, Feather or Arrow file; a stored index holds the ids."""
    import pyarrow.parquet

    if path.suffix.lower() == ".parquet":
        metadata = pyarrow.parquet.read_metadata(path)
        check_memory(path, 8 * metadata.num_rows * metadata.num_columns)
        frame = pd.read_parquet(path)
    else:
        check_memory(path, path.stat().st_size)
        frame = pd.read_feather(path)

    frame.columns = pd.Index(unique_names(path, list(frame.columns)))
    if frame.index.nlevels > 1:
        advice = "store one column of ids, for example by frame.reset_index()"
        raise DatasetError(
            f"{path}: its index has {frame.index.nlevels} levels; {advice}"
        )
    return {path.stem: RawTable(frame, {})}, []
