"""Tables in text files: separator, decimal mark and encoding are told from the first lines."""

import csv
import importlib
import io
import itertools
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mkclust.datasets.base import DatasetError, check_room
from mkclust.datasets.layout import (
    COMPRESSIONS,
    ID_NAMES,
    MISSING,
    RawTable,
    as_numbers,
    import_pandas,
    spelling,
    suffix_of,
    unique_names,
)

# So many lines, or of long lines so many bytes, show how a file is written.
LINES_LOOKED_AT, FEWEST_LINES, ENOUGH_BYTES = 100, 5, 4 << 20
# A line of a table is at most this long: the names of ten million columns.
LONGEST_LINE = 64 << 20
# What a byte of text takes while its line is taken apart into cells.
BYTES_PER_LETTER = 20
# Of wide tables fewer rows tell which columns hold numbers: so many cells.
CELLS_LOOKED_AT = 200_000
# What a text takes beside its letters, and after how many bytes the free memory is asked again.
BYTES_PER_TEXT, CHECKED_BYTES = 64, 4 << 20
# So many columns of text are put between the numbers one by one; more are joined, by a copy.
FEW_COLUMNS = 50
_NUMBER = re.compile(r"\s*[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?\s*")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")
_BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


@dataclass(frozen=True)
class Dialect:
    """How a text file is written.

    Attributes
    ----------
    encoding, delimiter, decimal : str
        Of its letters, cells and numbers.
    names : list of str
        Its columns; made up if it has no header.
    has_header : bool
        Whether the first line names the columns.
    numeric : list of bool
        Which columns hold numbers in the lines that were looked at.
    n_blank : int
        Empty lines before the first one.
    """

    encoding: str
    delimiter: str
    decimal: str
    names: list[str]
    has_header: bool
    numeric: list[bool]
    n_blank: int


def read_text_table(path: Path, id_column: str | None = None) -> RawTable:
    """Read a table of a text file, its numbers as one array.

    Parameters
    ----------
    path : Path
        The file, packed or not.
    id_column : str or None
        A column to read as text, beside the first one, because it holds ids.

    Returns
    -------
    RawTable
    """
    import_pandas(path)
    head = _head(path)
    dialect = _dialect(path, head)
    # About as many rows as there are, if the others are as long; more, if the file is packed.
    n_rows = max(head.count(b"\n"), 1) * path.stat().st_size / len(head)
    check_room(f"{path}: its numbers", int(8 * len(dialect.names) * n_rows))
    as_text = {dialect.names[0]}
    if dialect.names[0] == "":  # it may count the rows, with ids behind it
        second = zip(dialect.names[1:2], dialect.numeric[1:2], strict=True)
        as_text.update(n for n, is_number in second if not is_number or spelling(n) in ID_NAMES)
    if id_column is not None and id_column in dialect.names:
        as_text.add(id_column)
    notes = () if dialect.has_header else ("The first line holds numbers: no header.",)
    try:
        frame = _read(path, dialect, as_text)
    except UnicodeDecodeError:
        frame = _read(path, replace(dialect, encoding="latin-1"), as_text)
    return RawTable(frame, frozenset(as_text), dialect.decimal, notes)


def _head(path: Path) -> bytes:
    """Return the first lines of a file, unpacked."""
    lines: list[bytes] = []
    with _open_unpacked(path) as file:
        while len(lines) < LINES_LOOKED_AT:
            if len(lines) >= FEWEST_LINES and sum(map(len, lines)) > ENOUGH_BYTES:
                break
            line = file.readline(LONGEST_LINE)
            if not line:
                break
            lines.append(line)
            if len(line) == LONGEST_LINE:
                _refuse_length(path, len(lines))
            n_bytes = BYTES_PER_LETTER * sum(map(len, lines))
            check_room(f"{path}: its first {len(lines)} lines", n_bytes)
    return b"".join(lines)


def _refuse_length(path: Path, number: int) -> None:
    """Refuse a line that is no line of a table."""
    advice = "check that it is a table in text, with a line break after every sample"
    raise DatasetError(f"{path}: line {number} is longer than {LONGEST_LINE >> 20} MiB; {advice}")


def _dialect(path: Path, head: bytes) -> Dialect:
    """Tell from the first lines how a file is written."""
    encoding = next((name for bom, name in _BOMS.items() if head.startswith(bom)), "utf-8")
    if encoding == "utf-16":
        head = head[: len(head) // 2 * 2]
    try:
        text = head.decode(encoding)
    except UnicodeDecodeError:
        encoding, text = "latin-1", head.decode("latin-1")
    if not text.strip():
        raise DatasetError(f"{path}: is empty; check that it was written")
    if "\0" in text:
        advice = "check that it is of the format of its suffix"
        raise DatasetError(f"{path}: is not a text file, because it holds zero bytes; {advice}")
    delimiter, rows = _split(path, text)
    (header, *body), width = rows, max(map(len, rows))
    if body and len(header) == width - 1 and all(len(row) == width for row in body):
        header = ["", *header]  # as R writes tables with names of rows
    for number, row in enumerate(body, start=2):
        _check_width(path, number, len(row), len(header), delimiter)
    comma = any(_is_number(c, ",") and "," in c for row in body for c in row)
    decimal = "," if comma and delimiter != "," else "."
    has_header, has_ids = not _is_row(header, decimal), not _is_number(header[0], decimal)
    if not has_header:
        # What has no name, and comes first, are ids.
        first = [""] if has_ids else []
        names = [f"column {i + 1}" for i in range(len(header) - len(first))]
        body, header = rows, [*first, *names]
    numeric = [
        all(c in MISSING or _is_number(c, decimal) for c in column)
        for column in zip(*body[: max(CELLS_LOOKED_AT // len(header), 5)], strict=True)
    ] or [True] * len(header)
    names = unique_names(path, header)
    n_blank = next(i for i, line in enumerate(text.splitlines()) if line.strip("\ufeff \t"))
    return Dialect(encoding, delimiter, decimal, names, has_header, numeric, n_blank)


def _is_row(cells: list[str], decimal: str) -> bool:
    """Return whether the first line is one of samples: numbers, after what may be an id.

    Columns may be called by whole numbers, and after the name of an id column by any.
    """
    first, *others = cells
    if not all(_is_number(cell, decimal) for cell in others):
        return False
    if _is_number(first, decimal):
        return True
    named = first.strip() == "" or spelling(first) in ID_NAMES
    return not named and any(not cell.strip().lstrip("+-").isdigit() for cell in others)


def _split(path: Path, text: str) -> tuple[str, list[list[str]]]:
    """Return the character between cells and the cells: all lines are to have the same number."""
    best: tuple[tuple[bool, int], str, list[list[str]]] | None = None
    # Of equally good ones the first; R separates by blanks, if nothing else does.
    tabs_first = suffix_of(path) in (".tsv", ".txt", ".tab")
    order = ("\t", ",", ";") if tabs_first else (",", ";", "\t")
    for delimiter in (*order, " "):
        try:
            reader = csv.reader(io.StringIO(text), delimiter=delimiter)
            rows = [row for row in reader if row and row != [""]]
        except csv.Error:  # cells of more than 100,000 letters: of lines that are not taken apart
            continue
        # The last line may have been cut off.
        rows = rows[:-1] if text.count("\n") >= LINES_LOOKED_AT else rows
        widths = {len(row) for row in rows[1:]} or {len(rows[0])}
        even = len(widths) == 1 and len(rows[0]) in (max(widths), max(widths) - 1)
        width = len(rows[0]) if delimiter != " " or even else 1
        rank = (even and width > 1, width)
        if delimiter == " " and best is not None and best[0][1] > 1:
            continue
        if best is None or rank > best[0]:
            best = rank, delimiter, rows
    if best is None:
        advice = "separate cells by a comma, a semicolon or a tab"
        raise DatasetError(f"{path}: its lines cannot be taken apart; {advice}")
    return best[1], best[2]


def _rows(path: Path, dialect: Dialect) -> Iterator[list[str]]:
    """Yield the cells of every row, as many as the header has; only a line is in memory."""
    width, first = len(dialect.names), dialect.n_blank + dialect.has_header
    with io.TextIOWrapper(_open_unpacked(path), encoding=dialect.encoding, newline="") as file:
        reader = csv.reader(_lines(path, file), delimiter=dialect.delimiter)
        try:
            for row in itertools.islice(reader, first, None):
                if len(row) == width:
                    yield row
                elif row:
                    _check_width(path, reader.line_num, len(row), width, dialect.delimiter)
        except csv.Error as error:  # such as cells of more than 100,000 letters
            line = f"line {reader.line_num} cannot be taken apart ({error})"
            raise DatasetError(f"{path}: {line}; check its quotes") from error


def _lines(path: Path, file: io.TextIOWrapper) -> Iterator[str]:
    """Yield the lines of a file, or refuse one that is too long for a table."""
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE:
            _refuse_length(path, number)
        yield line


def _check_width(path: Path, number: int, n_cells: int, width: int, delimiter: str) -> None:
    """Refuse a line with fewer or more cells than the first one."""
    if n_cells != width:
        name = {"\t": "a tab", " ": "a blank"}.get(delimiter, f"a {delimiter!r}")
        problem = f"line {number} has {n_cells} cells and the first line {width}"
        advice = f"give every line as many, and quote cells that hold {name}"
        raise DatasetError(f"{path}: {problem}; {advice}")


def _read(path: Path, dialect: Dialect, as_text: set[str]) -> Any:
    """Return a table as a data frame whose numbers are one array."""
    import pandas as pd

    columns = list(zip(dialect.names, dialect.numeric, strict=True))
    numeric = [i for i, (n, is_number) in enumerate(columns) if is_number and n not in as_text]
    numbers, text, late = _parse(path, dialect, numeric)
    names = [dialect.names[i] for i in numeric]
    if not text:
        raise DatasetError(f"{path}: has a header and no rows; check that it is complete")
    others = sorted(set(range(len(columns))) - set(numeric))
    cells = dict(zip(others, zip(*text, strict=True), strict=False))
    table = np.frombuffer(numbers, dtype=np.float64).reshape(len(text), len(numeric))
    if late:
        # Below the lines that were looked at, these hold text: all of them is read as such.
        rows = ([row[i] for i in late] for row in _rows(path, dialect))
        cells |= dict(zip(late, zip(*rows, strict=True), strict=True))
        kept = np.flatnonzero(~np.isin(numeric, late))
        table, names = table[:, kept], [names[place] for place in kept]
    series = {
        dialect.names[i]: _text_column(path, dialect, dialect.names[i], cells[i], as_text)
        for i in sorted(cells)
    }
    frame = pd.DataFrame(table, columns=names, copy=False)
    if names and len(series) <= FEW_COLUMNS:
        for place, name in enumerate(dialect.names):
            if name in series:
                frame.insert(place, name, series[name])
        return frame
    rest = pd.DataFrame(series)
    return pd.concat([frame, rest], axis=1)[dialect.names] if names else rest


def _parse(
    path: Path, dialect: Dialect, numeric: list[int]
) -> tuple[array, list[tuple[str, ...]], list[int]]:
    """Return the numbers of some columns by rows, the cells of the others, and which hold text."""
    numbers, text, late = array("d"), list[tuple[str, ...]](), set[int]()
    others = sorted(set(range(len(dialect.names))) - set(numeric))
    words: dict[str, str] = {}  # equal cells are one text
    next_check = CHECKED_BYTES
    for row in _rows(path, dialect):
        cells = [row[i] for i in numeric] if others else row
        try:
            numbers.fromlist(_plain_numbers(cells, dialect.decimal))
        except ValueError:
            for i, cell in zip(numeric, cells, strict=True):
                is_number = _is_number(cell, dialect.decimal)
                if not is_number and cell not in MISSING:
                    late.add(i)
                numbers.append(float(cell.replace(dialect.decimal, ".")) if is_number else np.nan)
        text.append(tuple(words.setdefault(row[i], row[i]) for i in others))
        n_bytes = 8 * (len(numbers) + len(text) * len(others)) + BYTES_PER_TEXT * len(words)
        if n_bytes > next_check:
            check_room(f"{path}: its first {len(text):,} rows", n_bytes, held=n_bytes)
            next_check = n_bytes + CHECKED_BYTES
    return numbers, text, sorted(late)


def _plain_numbers(cells: list[str], decimal: str) -> list[float]:
    """Return the numbers that cells spell, none of them missing."""
    letters = "".join(cells)
    if "_" in letters or (decimal == "," and "." in letters):
        raise ValueError("letters that are not those of numbers")
    if decimal == ",":
        cells = [cell.replace(",", ".") for cell in cells]
    return list(map(float, cells))


def _text_column(
    path: Path, dialect: Dialect, name: str, cells: Sequence[str], as_text: set[str]
) -> Any:
    """Return a column of text, as truth values, dates or numbers if all of it are."""
    import pandas as pd

    if name and spelling(name) not in ID_NAMES:
        _refuse_other_mark(path, dialect, name, cells)
    if name in as_text:
        return pd.Series(cells, dtype=object)
    present = [None if cell in MISSING else cell for cell in cells]
    return _refine(as_numbers(pd.Series(present, dtype=object), dialect.decimal))


def _refuse_other_mark(path: Path, dialect: Dialect, name: str, column: Sequence[str]) -> None:
    """Refuse a column of numbers some of which have another decimal mark than those of the file."""
    other = "." if dialect.decimal == "," else ","
    cells = set(column) - MISSING
    numbers = [cell for cell in cells if _NUMBER.fullmatch(cell)]
    odd = {cell for cell in numbers if other in cell}
    both = any(dialect.decimal in cell for cell in numbers)
    if odd and (both or len(numbers) == len(cells)):
        row, cell = next((i, cell) for i, cell in enumerate(column, start=1) if cell in odd)
        problem = f"has {cell!r} in row {row} below the header, and {dialect.decimal!r} is the"
        raise DatasetError(
            f"{path}: the column {name} {problem} decimal mark elsewhere; use one in the whole file"
        )


def _refine(values: Any) -> Any:
    """Return a column of text as truth values or dates if all of it are."""
    import pandas as pd

    present = values.dropna()
    if values.dtype != object or not len(present):
        return values
    if present.str.lower().isin(["true", "false"]).all() and len(present) == len(values):
        return values.str.lower() == "true"
    if present.str.fullmatch(_DATE).all():
        return pd.to_datetime(values, errors="coerce", format="ISO8601")
    return values


def _is_number(cell: str, decimal: str) -> bool:
    """Return whether a cell spells a number."""
    if "_" in cell or (decimal != "." and "." in cell):  # which Python allows
        return False
    try:
        float(cell.replace(decimal, "."))
    except ValueError:
        return False
    return True


def _open_unpacked(path: Path) -> Any:
    """Open a file for reading bytes, unpacked."""
    kind = COMPRESSIONS.get(path.suffix.lower())
    if kind is None:
        return path.open("rb")
    return importlib.import_module("lzma" if kind == "xz" else kind).open(path, "rb")
