"""Two parsers of tables in text: pyarrow's where it is installed, pandas' where it is not.

Both make the same numbers and the same text of the same file, and refuse the same lines.
"""

import csv
import gzip
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mkclust.datasets.base import DatasetError
from mkclust.datasets.layout import COMPRESSIONS, as_numbers

# Rows are parsed in blocks of this size, or of some rows where these are long.
BLOCK_BYTES, BLOCK_ROWS = 4 << 20, 400
MOST_BLOCK_BYTES = 64 << 20
# What pandas takes for missing.
MISSING = frozenset(
    ("", " ", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND")
) | {"1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}


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


class Columns(Protocol):
    """What a parser has made of a file."""

    n_rows: int

    def write_numbers(self, name: str, row: np.ndarray) -> None:
        """Write a column of numbers into an array of float64, (n_rows,)."""

    def text(self, name: str) -> Any:
        """Return a column of text as a series of objects, None where a cell is missing."""


class NotUtf8Error(ValueError):
    """A file holds bytes that are no UTF-8."""


class NotNumbersError(ValueError):
    """Columns hold text below lines that hold numbers; the argument has their names."""


def has_arrow() -> bool:
    """Return whether pyarrow is installed, which parses faster."""
    try:
        import pyarrow.csv  # noqa: F401
    except ImportError:
        return False
    return True


def parse_by_arrow(
    path: Path, dialect: Dialect, encoding: str, numeric: Mapping[str, bool]
) -> Columns:
    """Parse a whole file by pyarrow, columns of numbers as float64 and all others as text.

    Parameters
    ----------
    path : Path
        The file, packed or not.
    dialect : Dialect
        How it is written.
    encoding : str
        Of its letters.
    numeric : mapping of str to bool
        Which columns hold numbers.

    Returns
    -------
    Columns
    """
    import pyarrow

    try:
        return _ArrowColumns(_read_by_arrow(path, dialect, encoding, numeric))
    except pyarrow.ArrowInvalid as error:
        message = str(error)
        if "UTF8" in message and encoding != "latin-1":
            raise NotUtf8Error from error
        if (place := re.search(r"In CSV column #(\d+)", message)) and "conversion" in message:
            raise NotNumbersError([dialect.names[int(place.group(1))]]) from error
        raise DatasetError(f"{path}: {_reason(message, dialect)}") from error


def parse_by_pandas(
    path: Path, dialect: Dialect, encoding: str, numeric: Mapping[str, bool]
) -> Columns:
    """Parse a whole file by pandas, with the same arguments and results as by pyarrow."""
    try:
        _check_lines(path, dialect, encoding)
        kinds = {name: float if is_number else str for name, is_number in numeric.items()}
        try:
            return _PandasColumns(_read_by_pandas(path, dialect, encoding, kinds))
        except UnicodeDecodeError:
            raise
        except ValueError as error:
            # pandas does not say which columns are none of numbers.
            text = {name: str for name, is_number in numeric.items() if not is_number}
            frame = _read_by_pandas(path, dialect, encoding, text)
            names = [n for n, is_n in numeric.items() if is_n and not _is_numeric(frame[n])]
            raise NotNumbersError(names or list(numeric)) from error
    except UnicodeDecodeError as error:
        raise NotUtf8Error from error


class _ArrowColumns:
    """The columns of a table of pyarrow."""

    def __init__(self, table: Any):
        self.n_rows = table.num_rows
        # By place, for a column is found by its name only after a look at all names.
        self._columns = dict(zip(table.column_names, table.itercolumns(), strict=True))

    def write_numbers(self, name: str, row: np.ndarray) -> None:
        """Write a column of numbers into an array."""
        start = 0
        for chunk in self._columns[name].chunks:
            row[start : start + len(chunk)] = chunk.to_numpy(zero_copy_only=False)
            start += len(chunk)

    def text(self, name: str) -> Any:
        """Return a column of text."""
        import pandas as pd

        return pd.Series(self._columns[name].to_pandas(), dtype=object)


class _PandasColumns:
    """The columns of a data frame of pandas."""

    def __init__(self, frame: Any):
        self.n_rows = len(frame)
        self._frame = frame

    def write_numbers(self, name: str, row: np.ndarray) -> None:
        """Write a column of numbers into an array."""
        row[:] = self._frame[name].to_numpy()

    def text(self, name: str) -> Any:
        """Return a column of text."""
        import pandas as pd

        cells, missing = self._frame[name].to_numpy(dtype=object), self._frame[name].isna()
        return pd.Series(np.where(missing, None, cells), dtype=object)


def _read_by_arrow(path: Path, dialect: Dialect, encoding: str, numeric: Mapping[str, bool]) -> Any:
    """Return a whole file as a table of pyarrow."""
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
        with open_unpacked(path) as file:
            return arrow_csv.read_csv(file, **arguments)
    with pyarrow.input_stream(str(path), compression=kind) as stream:
        return arrow_csv.read_csv(stream, **arguments)


def _read_by_pandas(path: Path, dialect: Dialect, encoding: str, kinds: Mapping[str, type]) -> Any:
    """Return a whole file as a data frame, columns without a kind as pandas takes them."""
    import pandas as pd

    with open_unpacked(path) as file:
        return pd.read_csv(
            file,
            sep=dialect.delimiter,
            header=None,
            names=dialect.names,
            index_col=False,
            skiprows=dialect.n_blank + int(dialect.has_header),
            encoding=encoding,
            decimal=dialect.decimal,
            dtype=dict(kinds),
            na_values=sorted(MISSING),
            keep_default_na=False,
            # Numbers are those next to what is written, as pyarrow's are.
            float_precision="round_trip",
            low_memory=False,
        )


def _check_lines(path: Path, dialect: Dialect, encoding: str) -> None:
    """Refuse a file in which a line has fewer or more cells than others, as pyarrow does.

    pandas would fill up short lines without a word.
    """
    width = len(dialect.names)
    with io.TextIOWrapper(open_unpacked(path), encoding=encoding, newline="") as file:
        reader = csv.reader(file, delimiter=dialect.delimiter)
        first = dialect.n_blank + int(dialect.has_header)
        try:
            for number, row in enumerate(reader):
                if number >= first and row and len(row) != width:
                    raise DatasetError(
                        f"{path}: line {reader.line_num} has {len(row)} cells and the first line "
                        f"{width}; {_advise_on_cells(dialect)}"
                    )
        except csv.Error as error:  # such as cells of more than 100,000 letters
            raise DatasetError(
                f"{path}: line {reader.line_num} cannot be taken apart ({error}); "
                'pip install "mkclust[parquet]" has it read by pyarrow'
            ) from error


def _is_numeric(column: Any) -> bool:
    """Return whether a column as pandas takes it holds numbers."""
    return column.dtype.kind in "iuf" or as_numbers(column.astype(object)).dtype.kind == "f"


def open_unpacked(path: Path) -> Any:
    """Open a file for reading bytes, unpacked."""
    import bz2
    import lzma

    opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(
        path.suffix.lower(), open
    )
    return opener(path, "rb")


def _reason(message: str, dialect: Dialect) -> str:
    """Say what is wrong with a file, given what its parser said."""
    found = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", message)
    lines = re.search(r"Expected (\d+) columns, got (\d+)", message)
    advice = _advise_on_cells(dialect)
    if found:
        row, expected, got = found.groups()
        return f"line {row} has {got} cells and the first line {expected}; {advice}"
    if lines:
        return f"a line has {lines.group(2)} cells and the first line {lines.group(1)}; {advice}"
    reason = " ".join(message.split())
    return f"cannot be read ({reason}); check that it is complete, and a table in text"


def _advise_on_cells(dialect: Dialect) -> str:
    """Say how lines come to have the same number of cells."""
    return f"give every line as many, and quote cells that hold {spell(dialect.delimiter)}"


def spell(delimiter: str) -> str:
    """Return the name of a character that separates cells."""
    return {"\t": "a tab", " ": "a blank"}.get(delimiter, f"a {delimiter!r}")
