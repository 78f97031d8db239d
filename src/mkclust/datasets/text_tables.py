"""Tables in text files, whose separators, decimal points and encodings the text tells."""

import csv
import gzip
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mkclust.datasets.base import DatasetError, check_room
from mkclust.datasets.layout import (
    COMPRESSIONS,
    ID_NAMES,
    RawTable,
    as_numbers,
    spelling,
    suffix_of,
    unique_names,
)

# So many lines tell how a file is written, and so many characters are read of them at most.
LINES_LOOKED_AT, HEAD_BYTES = 100, 64 << 20
FEW_LINES, ENOUGH_BYTES = 10, 4 << 20
# Rows are parsed in blocks of this size, or of some rows where these are long.
BLOCK_BYTES, BLOCK_ROWS = 4 << 20, 400
MOST_BLOCK_BYTES = 64 << 20
# A column that turns out to be text is read anew as such; so many rounds, then all at once.
MAX_ROUNDS = 8
# What pandas takes for missing.
MISSING = frozenset(
    ("", " ", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND")
) | {"1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}
# Of wide tables fewer rows tell which columns hold numbers: so many cells.
CELLS_LOOKED_AT = 200_000
# So many columns of text are put between the numbers one by one; more are joined, by a copy.
FEW_COLUMNS = 50
_COMMA_NUMBER = re.compile(r"\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*")
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
        Its columns; made up where it has no header.
    has_header : bool
        Whether the first line names the columns.
    numeric : list of bool
        Which columns hold numbers in the lines that were looked at.
    row_bytes : int
        About how long a line is.
    n_blank : int
        Empty lines before the first one.
    has_quotes : bool
        Whether cells are quoted, which may then hold line breaks.
    """

    encoding: str
    delimiter: str
    decimal: str
    names: list[str]
    has_header: bool
    numeric: list[bool]
    row_bytes: int
    n_blank: int
    has_quotes: bool


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
        import pyarrow.csv
    except ImportError as error:
        advice = 'reading it needs pandas and pyarrow: pip install "mkclust[tables]"'
        raise DatasetError(f"{path}: is a table in text; {advice}") from error
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
            table = _parse(path, dialect, encoding, numeric)
            break
        except pyarrow.ArrowInvalid as error:
            message = str(error)
            if "UTF8" in message and encoding != "latin-1":
                encoding = "latin-1"
            elif (place := re.search(r"In CSV column #(\d+)", message)) and "conversion" in message:
                numeric[dialect.names[int(place.group(1))]] = False
            else:
                raise DatasetError(f"{path}: {_reason(message, dialect)}") from error
    else:
        table = _parse(path, dialect, encoding, dict.fromkeys(numeric, False))
    if not table.num_rows:
        raise DatasetError(f"{path}: has a header and no rows; check that it is complete")
    notes = () if dialect.has_header else ("The first line holds numbers: no header.",)
    frame = _frame(path, table, numeric, as_text, dialect.decimal)
    del table
    # Arrow keeps what it has freed, twice as much as the numbers take, for tables that never come.
    pyarrow.default_memory_pool().release_unused()
    return RawTable(frame, frozenset(as_text), dialect.decimal, notes)


def _head(path: Path) -> bytes:
    """Return the first lines of a file, unpacked."""
    lines: list[bytes] = []
    with _open(path) as file:
        # Of very long lines a few will do.
        while len(lines) < (LINES_LOOKED_AT if sum(map(len, lines)) < ENOUGH_BYTES else FEW_LINES):
            line = file.readline(HEAD_BYTES)
            if not line:
                break
            lines.append(line)
    return b"".join(lines)


def _open(path: Path) -> Any:
    """Open a file for reading bytes, unpacked."""
    import bz2
    import lzma

    opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(
        path.suffix.lower(), open
    )
    return opener(path, "rb")


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
        raise DatasetError(f"{path}: is no text, for it holds zero bytes; {advice}")
    delimiter, rows = _split(text, suffix_of(path))
    (header, *body), width = rows, max(map(len, rows))
    if body and len(header) == width - 1 and all(len(row) == width for row in body):
        header = ["", *header]  # as R writes tables with names of rows
    for number, row in enumerate(body, start=2):
        if len(row) != len(header):
            problem = f"line {number} has {len(row)} cells and the first line {len(header)}"
            raise DatasetError(
                f"{path}: {problem}; give every line as many, and quote cells that hold "
                f"{_spell(delimiter)}"
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


def _parse(path: Path, dialect: Dialect, encoding: str, numeric: dict[str, bool]) -> Any:
    """Parse a whole file, columns of numbers as float64 and all others as text."""
    import pyarrow
    from pyarrow import csv as arrow_csv

    block = min(max(BLOCK_BYTES, BLOCK_ROWS * dialect.row_bytes), MOST_BLOCK_BYTES)
    kinds = {n: pyarrow.float64() if is_n else pyarrow.string() for n, is_n in numeric.items()}
    arguments = {
        "read_options": arrow_csv.ReadOptions(
            # A row has to fit into a block.
            block_size=max(block, 4 * dialect.row_bytes),
            column_names=dialect.names,
            skip_rows=dialect.n_blank + int(dialect.has_header),
            encoding="utf-8" if encoding == "utf-8-sig" else encoding,
        ),
        "parse_options": arrow_csv.ParseOptions(
            delimiter=dialect.delimiter, newlines_in_values=dialect.has_quotes
        ),
        "convert_options": arrow_csv.ConvertOptions(
            column_types=kinds,
            null_values=sorted(MISSING),
            strings_can_be_null=True,
            decimal_point=dialect.decimal,
        ),
    }
    kind = COMPRESSIONS.get(path.suffix.lower())
    if kind == "xz":
        with _open(path) as file:
            return arrow_csv.read_csv(file, **arguments)
    with pyarrow.input_stream(str(path), compression=kind) as stream:
        return arrow_csv.read_csv(stream, **arguments)


def _frame(path: Path, table: Any, numeric: dict[str, bool], as_text: set, decimal: str) -> Any:
    """Return a table as a data frame whose numbers are one array."""
    import pandas as pd

    names = [name for name in table.column_names if numeric[name]]
    check_room(f"{path}: its numbers", len(names) * table.num_rows * 8)
    # As data frames hold them: one column after the other.
    numbers = np.empty((len(names), table.num_rows))
    # By place, for a column is found by its name only after a look at all names.
    columns = dict(zip(table.column_names, table.itercolumns(), strict=True))
    for place, name in enumerate(names):
        start = 0
        for chunk in columns[name].chunks:
            numbers[place, start : start + len(chunk)] = chunk.to_numpy(zero_copy_only=False)
            start += len(chunk)
    frame = pd.DataFrame(numbers.T, columns=names, copy=False)
    others = [name for name in table.column_names if not numeric[name]]
    if not others:
        return frame
    text = {}
    for name in others:
        values = pd.Series(columns[name].to_pandas(), dtype=object)
        text[name] = values if name in as_text else _refine(as_numbers(values, decimal))
    if names and len(others) <= FEW_COLUMNS:
        for place, name in enumerate(table.column_names):
            if name in text:
                frame.insert(place, name, text[name])
        return frame
    rest = pd.DataFrame(text, index=frame.index)
    return pd.concat([frame, rest], axis=1)[table.column_names] if names else rest


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


def _reason(message: str, dialect: Dialect) -> str:
    """Say what is wrong with a file, given what its parser said."""
    found = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", message)
    lines = re.search(r"Expected (\d+) columns, got (\d+)", message)
    advice = f"give every line as many, and quote cells that hold {_spell(dialect.delimiter)}"
    if found:
        row, expected, got = found.groups()
        return f"line {row} has {got} cells and the first line {expected}; {advice}"
    if lines:
        return f"a line has {lines.group(2)} cells and the first line {lines.group(1)}; {advice}"
    reason = " ".join(message.split())
    return f"cannot be read ({reason}); check that it is complete, and a table in text"


def _spell(delimiter: str) -> str:
    """Return the name of a character that separates cells."""
    return {"\t": "a tab", " ": "a blank"}.get(delimiter, f"a {delimiter!r}")
