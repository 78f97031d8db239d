"""Tables in text files, whose separators, decimal points and encodings the text tells."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import numpy as np

from mkclust.datasets.base import DatasetError, check_room
from mkclust.datasets.layout import (
    ID_NAMES,
    RawTable,
    as_numbers,
    spelling,
    suffix_of,
    unique_names,
)
from mkclust.datasets.text_parsers import (
    MISSING,
    Columns,
    Dialect,
    NotNumbersError,
    NotUtf8Error,
    has_arrow,
    open_unpacked,
    parse_by_arrow,
    parse_by_pandas,
    spell,
)

# So many lines tell how a file is written, and so many characters are read of them at most.
LINES_LOOKED_AT, HEAD_BYTES = 100, 64 << 20
FEW_LINES, ENOUGH_BYTES = 10, 4 << 20
# A column that turns out to be text is read anew as such; so many rounds, then all at once.
MAX_ROUNDS = 8
# Of wide tables fewer rows tell which columns hold numbers: so many cells.
CELLS_LOOKED_AT = 200_000
# So many columns of text are put between the numbers one by one; more are joined, by a copy.
FEW_COLUMNS = 50
_COMMA_NUMBER = re.compile(r"\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")
_BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


def read_text_table(path: Path, id_column: str | None = None) -> RawTable:
    """Read a table of a text file, its numbers as one array.

    Parameters
    ----------
    path : Path
        The file, packed or not.
    id_column : str or None
        A column to read as text, beside the first one, for it holds ids.

    Returns
    -------
    RawTable
    """
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        advice = 'reading it needs pandas: pip install "mkclust[tables]"'
        raise DatasetError(f"{path}: is a table in text; {advice}") from error
    parse = parse_by_arrow if has_arrow() else parse_by_pandas
    dialect = _dialect(path, _head(path))
    as_text = {dialect.names[0]}
    if dialect.names[0] == "" and len(dialect.names) > 1 and spelling(dialect.names[1]) in ID_NAMES:
        as_text.add(dialect.names[1])
    if id_column is not None and id_column in dialect.names:
        as_text.add(id_column)
    numeric = {
        name: is_number and name not in as_text
        for name, is_number in zip(dialect.names, dialect.numeric, strict=True)
    }
    encoding = dialect.encoding
    for _ in range(MAX_ROUNDS):
        try:
            columns = parse(path, dialect, encoding, numeric)
            break
        except NotUtf8Error:
            encoding = "latin-1"
        except NotNumbersError as error:
            numeric |= dict.fromkeys(error.args[0], False)
    else:
        numeric = dict.fromkeys(numeric, False)
        columns = parse(path, dialect, encoding, numeric)
    if not columns.n_rows:
        raise DatasetError(f"{path}: has a header and no rows; check that it is complete")
    notes = () if dialect.has_header else ("The first line holds numbers: no header.",)
    frame = _frame(path, columns, numeric, as_text, dialect.decimal)
    if parse is parse_by_arrow:
        import pyarrow

        del columns
        # Arrow keeps what it has freed, twice as much as the numbers take, for tables that never
        # come.
        pyarrow.default_memory_pool().release_unused()
    return RawTable(frame, frozenset(as_text), dialect.decimal, notes)


def _head(path: Path) -> bytes:
    """Return the first lines of a file, unpacked."""
    lines: list[bytes] = []
    with open_unpacked(path) as file:
        # Of very long lines a few will do.
        while len(lines) < (LINES_LOOKED_AT if sum(map(len, lines)) < ENOUGH_BYTES else FEW_LINES):
            line = file.readline(HEAD_BYTES)
            if not line:
                break
            lines.append(line)
    return b"".join(lines)


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
    delimiter, rows = _split(text, suffix_of(path))
    (header, *body), width = rows, max(map(len, rows))
    if body and len(header) == width - 1 and all(len(row) == width for row in body):
        header = ["", *header]  # as R writes tables with names of rows
    for number, row in enumerate(body, start=2):
        if len(row) != len(header):
            problem = f"line {number} has {len(row)} cells and the first line {len(header)}"
            raise DatasetError(
                f"{path}: {problem}; give every line as many, and quote cells that hold "
                f"{spell(delimiter)}"
            )
    decimal = "."
    if delimiter != "," and any(_COMMA_NUMBER.fullmatch(c) for row in body for c in row):
        decimal = ","
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
    row_bytes = max(map(len, head.splitlines()), default=1)
    names = unique_names(path, header)
    n_blank = next(i for i, line in enumerate(text.splitlines()) if line.strip("\ufeff \t"))
    return Dialect(
        encoding, delimiter, decimal, names, has_header, numeric, row_bytes, n_blank, '"' in text
    )


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


def _split(text: str, suffix: str) -> tuple[str, list[list[str]]]:
    """Return the character between cells and the cells: all lines are to have the same number."""
    best: tuple[tuple[bool, int], str, list[list[str]]] | None = None
    # Of equally good ones the first; R separates by blanks, where nothing else does.
    order = ("\t", ",", ";") if suffix in (".tsv", ".txt", ".tab") else (",", ";", "\t")
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
        raise DatasetError(
            "its lines cannot be taken apart; separate cells by a comma, a semicolon or a tab"
        )
    return best[1], best[2]


def _frame(
    path: Path, columns: Columns, numeric: dict[str, bool], as_text: set, decimal: str
) -> Any:
    """Return a table as a data frame whose numbers are one array."""
    import pandas as pd

    names = [name for name, is_number in numeric.items() if is_number]
    check_room(f"{path}: its numbers", len(names) * columns.n_rows * 8)
    # As data frames hold them: one column after the other.
    numbers = np.empty((len(names), columns.n_rows))
    for name, row in zip(names, numbers, strict=True):
        columns.write_numbers(name, row)
    frame = pd.DataFrame(numbers.T, columns=names, copy=False)
    others = [name for name, is_number in numeric.items() if not is_number]
    if not others:
        return frame
    text = {}
    for name in others:
        values = columns.text(name)
        text[name] = values if name in as_text else _refine(as_numbers(values, decimal))
    if names and len(others) <= FEW_COLUMNS:
        for place, name in enumerate(numeric):
            if name in text:
                frame.insert(place, name, text[name])
        return frame
    rest = pd.DataFrame(text, index=frame.index)
    return pd.concat([frame, rest], axis=1)[list(numeric)] if names else rest


def _refine(values: Any) -> Any:
    """Return a column of text as truth values or dates where all of it are."""
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
    if "_" in cell:  # which Python allows
        return False
    try:
        float(cell.replace(decimal, "."))
    except ValueError:
        return False
    return True
