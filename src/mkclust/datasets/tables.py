"""Tables in text files, Excel workbooks and Feather files."""

import bz2
import csv
import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from mkclust.datasets.dataset import DatasetError, check_memory, missing_package
from mkclust.datasets.layout import ID_NAMES, RawTable, TableLayout, normalize_name, unique_names
from mkclust.linalg.memory import available_bytes

# What a reader of tables returns: tables by name, and sentences about what it skipped.
Tables = tuple[dict[str, RawTable], list[str]]
# How packed text files are opened, by the last suffix.
PACKED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# The separator and the encoding of a text file are told from so many lines or bytes.
HEAD_LINES, HEAD_BYTES = 100, 4 << 20
# Bytes that a cell of a sheet takes, first as an object and then in a frame.
CELL_BYTES = 50
# Cells that are missing, as pandas reads them, and a blank. An id may be spelled like one.
MISSING = frozenset(
    ("", " ", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND")
) | {"1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}
# How numbers with either decimal mark, and dates, are spelled.
NUMBER = r"\s*[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?\s*"
DATE = r"\d{4}-\d{2}-\d{2}([T ].*)?"


def unpacked(path: Path) -> Path:
    """Return the path without the suffix that says how the file is packed."""
    return path.with_suffix("") if path.suffix.lower() in PACKED else path


def read_text(path: Path, selection: frozenset[str], layout: TableLayout) -> Tables:
    """Read a text file; separator, decimal mark and encoding are told from its first lines."""
    head = _head(path)
    encoding, text = _decode(path, head)
    delimiter, rows = _split(unpacked(path).suffix.lower(), text)
    has_comma = any("," in c and _is_number(c, ",") for row in rows[1:] for c in row)
    decimal = "," if has_comma and delimiter != "," else "."
    header, width = rows[0], max(map(len, rows))
    if len(rows) > 1 and len(header) == width - 1 and all(len(row) == width for row in rows[1:]):
        header = ["", *header]  # as R writes tables with names of rows
    has_header = not _is_row(header, decimal)
    if not has_header:
        first = [] if _is_number(header[0], decimal) else [""]
        header = [*first, *(f"column {i + 1}" for i in range(len(header) - len(first)))]
    names = unique_names(path, header)
    # These may hold ids, which are read as they are spelled.
    may_be_ids = {
        names[0],
        *names[1 : 1 + (names[0] == "")],
        *(name for name in names if name == layout.id),
    }
    n_rows = max(head.count(b"\n"), 1) * path.stat().st_size / len(head)
    check_memory(path, int(8 * len(names) * n_rows))
    options = {
        "sep": delimiter,
        "decimal": decimal,
        "names": names,
        "header": 0 if has_header else None,
        "converters": dict.fromkeys(may_be_ids, str),
        "na_values": [" "],
        "skipinitialspace": delimiter == " ",
        "float_precision": "round_trip",
    }
    try:
        frame = _parse(path, encoding, options)
    except UnicodeDecodeError:
        frame = _parse(path, "latin-1", options)
    if frame.empty:
        raise DatasetError(f"{path}: has a header and no rows; check that it is complete")
    written = {name: frame[name] for name in may_be_ids}
    for name in frame.select_dtypes(object):
        frame[name] = _as_typed(path, str(name), frame[name], decimal)
    note = "" if has_header else "The first line holds numbers: no header."
    return {unpacked(path).stem: RawTable(_whole_as_float(frame), written, note)}, []


def _open(path: Path) -> Any:
    """Open a file, packed or not, to read its bytes."""
    return PACKED.get(path.suffix.lower(), open)(path, "rb")


def _head(path: Path) -> bytes:
    """Return the first lines of a file."""
    lines: list[bytes] = []
    with _open(path) as file:
        while len(lines) < HEAD_LINES and (len(lines) < 5 or sum(map(len, lines)) < HEAD_BYTES):
            if not (line := file.readline(16 * HEAD_BYTES)):
                break
            lines.append(line)
    return b"".join(lines)


def _decode(path: Path, head: bytes) -> tuple[str, str]:
    """Return the encoding and the text of the first lines."""
    is_utf16 = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    encoding = "utf-16" if is_utf16 else "utf-8-sig"
    try:
        text = head[: len(head) - len(head) % 2 if is_utf16 else None].decode(encoding)
    except UnicodeDecodeError:
        encoding, text = "latin-1", head.decode("latin-1")
    if not text.strip():
        raise DatasetError(f"{path}: is empty; check that it was written")
    if "\0" in text:
        raise DatasetError(f"{path}: is not a text file, because it holds zero bytes; check it")
    return encoding, text


def _split(suffix: str, text: str) -> tuple[str, list[list[str]]]:
    """Return the separator that gives every line the same number of cells, and the cells."""
    found: list[tuple[bool, int, str, list[list[str]]]] = []
    for delimiter in ",;\t " if suffix == ".csv" else "\t,; ":
        try:
            rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if any(row)]
        except csv.Error:  # a line without separators, too long for a cell
            continue
        rows = rows[:-1] if len(rows) >= HEAD_LINES else rows  # the last one may be cut off
        widths = {len(row) for row in rows[1:]} or {len(rows[0])}
        is_even = len(widths) == 1 and max(widths) - len(rows[0]) in (0, 1) and max(widths) > 1
        # R separates by blanks; elsewhere they are part of cells.
        if delimiter != " " or (is_even and all(each[1] == 1 for each in found)) or not found:
            found.append((is_even, len(rows[0]), delimiter, rows))
    if not found:
        raise ValueError("its lines have no separator: comma, semicolon or tab")
    *_, delimiter, rows = max(found, key=lambda each: each[:2])
    return delimiter, rows


def _is_row(cells: list[str], decimal: str) -> bool:
    """Return whether the first line is a sample: numbers, possibly after an id.

    Columns may be called by whole numbers, and after the name of an id column by any.
    """
    first, *others = cells
    if not all(_is_number(cell, decimal) for cell in others):
        return False
    is_named = first.strip() == "" or normalize_name(first) in ID_NAMES
    whole = all(cell.strip().lstrip("+-").isdigit() for cell in others)
    return _is_number(first, decimal) or (not is_named and not whole)


def _is_number(cell: str, decimal: str) -> bool:
    """Return whether a cell is a number."""
    try:
        float(cell.replace(decimal, "."))
    except ValueError:
        return False
    return "_" not in cell and (decimal == "." or "." not in cell)


class _Metered(io.RawIOBase):
    """The bytes of a file, refused as soon as the numbers in them do not fit into memory."""

    def __init__(self, path: Path, file: Any, width: int):
        self.path, self.file, self.width = path, file, width
        self.free, self.n_bytes, self.n_lines = available_bytes(), 0, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n = self.file.readinto(buffer)
        self.n_bytes, self.n_lines = self.n_bytes + n, self.n_lines + bytes(buffer[:n]).count(b"\n")
        n_bytes = max(8 * self.width * self.n_lines, self.n_bytes // 4)
        check_memory(f"{self.path}: its first {self.n_lines:,} lines", n_bytes, self.free)
        return n


def _parse(path: Path, encoding: str, options: dict[str, Any]) -> pd.DataFrame:
    """Return the table of a text file by pandas."""
    with _open(path) as file:
        metered = _Metered(path, file, len(options["names"]))
        return pd.read_csv(io.BufferedReader(metered, 1 << 20), encoding=encoding, **options)


def _as_typed(path: Path, name: str, column: pd.Series, decimal: str) -> pd.Series:
    """Return a column of text as numbers, truth values or dates if all of it are.

    A column in which some numbers have another decimal mark than those of the file is refused.
    """
    text = column.mask(column.isin(MISSING), None)
    present, other = text.dropna().astype(str), "." if decimal == "," else ","
    if name != "" and normalize_name(name) not in ID_NAMES:
        numbers = present[present.str.fullmatch(NUMBER)]
        odd = numbers[numbers.str.contains(other, regex=False)]
        both = numbers.str.contains(decimal, regex=False).any()
        if len(odd) and (both or len(numbers) == len(present)):
            raise DatasetError(
                f"{path}: the column {name} has {odd.iloc[0]!r} in row {odd.index[0] + 1} below "
                f"the header, and {decimal!r} is the decimal mark elsewhere; use one in the file"
            )
    if all(_is_number(cell, decimal) for cell in present):
        return text.str.replace(decimal, ".", regex=False).astype(float)
    if len(present) == len(text) and present.str.lower().isin(["true", "false"]).all():
        return text.str.lower() == "true"
    if present.str.fullmatch(DATE).all():
        return pd.to_datetime(text, errors="coerce", format="ISO8601")
    return text


def _whole_as_float(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose columns of integers are floats; without any, the frame itself."""
    whole = frame.select_dtypes("integer").columns
    return frame.astype(dict.fromkeys(whole, float)) if len(whole) else frame


def read_sheets(path: Path, selection: frozenset[str], layout: TableLayout) -> Tables:
    """Read the selected sheets of a workbook, or its first one."""
    try:
        import openpyxl
    except ImportError as error:
        raise missing_package(path, "openpyxl", "excel") from error
    check_memory(path, path.stat().st_size)
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        sheets = [sheet.title for sheet in book.worksheets]
        if unknown := sorted(selection - set(sheets)):
            raise DatasetError(f"{path}: no sheet {unknown[0]}; select among {', '.join(sheets)}")
        names = [name for name in sheets if name in selection] or sheets[:1]
        tables = {name if selection else path.stem: _sheet(path, book[name]) for name in names}
    finally:
        book.close()
    others = [name for name in sheets if name not in names]
    return tables, [f"Skipped: the sheets {', '.join(others)}."] if others else []


def _sheet(path: Path, sheet: Any) -> RawTable:
    """Return the table of a sheet, refusing cells apart from it, which can mean anything."""
    from openpyxl.cell.cell import ERROR_CODES
    from openpyxl.utils import get_column_letter

    sheet.reset_dimensions()  # rows then end with their last cell
    rows: list[list[Any]] = []
    first = end = previous = 0
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        filled = [i for i, cell in enumerate(row) if cell is not None]
        if not filled:
            continue
        if not rows:
            first, end = max(filled[0] - 1, 0), filled[-1] + 1  # the ids may have no name
        is_apart = rows and number > previous + 1 and len(filled) == 1 and end - first > 2
        if outside := [i for i in filled if is_apart or not first <= i < end]:
            cell = f"{get_column_letter(outside[0] + 1)}{number}"
            table = f"its table, whose header ends in the column {get_column_letter(end)}"
            place = f"{path}: the sheet {sheet.title} has the cell {cell} apart from {table}"
            raise DatasetError(f"{place}; empty it, or name its column")
        rows.append([*row[first:end], *[None] * (end - max(len(row), first))])
        previous = number
        if len(rows) % 1000 == 0:
            check_memory(f"{path}: the sheet {sheet.title}", CELL_BYTES * (end - first) * len(rows))
    if len(rows) < 2:
        advice = "it should hold a header, and one row per sample"
        raise DatasetError(f"{path}: the sheet {sheet.title} has {len(rows)} rows; {advice}")
    frame = pd.DataFrame(rows[1:], dtype=object)
    frame = frame.mask(frame.isin(ERROR_CODES), None)
    is_named = pd.Series([cell is not None for cell in rows[0]])
    frame = frame.loc[:, is_named | frame.notna().any()]
    frame.columns = pd.Index(unique_names(path, [rows[0][i] for i in frame.columns]))
    written = {name: frame[name] for name in frame.columns[: 1 + (frame.columns[0] == "")]}
    written = {n: column for n, column in written.items() if column.map(type).eq(str).any()}
    frame = frame.mask(frame.isin(MISSING), None).infer_objects()
    return RawTable(_whole_as_float(frame), written)


def read_feather(path: Path, selection: frozenset[str], layout: TableLayout) -> Tables:
    """Read a Feather or Arrow file, of any version, or a stream of Arrow."""
    try:
        import pyarrow
        from pyarrow import feather
    except ImportError as error:
        raise missing_package(path, "pyarrow", "parquet") from error
    check_memory(path, path.stat().st_size)
    try:
        table = feather.read_table(str(path))
    except pyarrow.ArrowInvalid:
        with pyarrow.memory_map(str(path)) as source:
            table = pyarrow.ipc.open_stream(source).read_all()
    return {path.stem: arrow_table(path, table)}, []


def arrow_table(path: Path, table: Any) -> RawTable:
    """Return a table of pyarrow as a frame; what pandas stored as its index is one again."""
    unique_names(path, table.column_names)
    check_memory(path, table.nbytes)
    frame = table.to_pandas()
    frame.columns = pd.Index(unique_names(path, list(frame.columns)))
    if frame.index.nlevels > 1:
        advice = "store one column of ids, for example by frame.reset_index()"
        raise DatasetError(f"{path}: its index has {frame.index.nlevels} levels; {advice}")
    return RawTable(frame, {})
