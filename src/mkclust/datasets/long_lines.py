"""Text files whose lines and cells are too long for a table are refused early."""

import io
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from mkclust.datasets.dataset import DatasetError

# Characters of a cell that is too long; the module csv takes no more either.
LONGEST_CELL = 1 << 17


class _Lines(io.RawIOBase):
    """A file that refuses a line that is too long, before it is in memory."""

    def __init__(self, path: Path, file: Any) -> None:
        self._path = path
        self._file = file
        self._n_lines = 0
        self._length = 0

    def readable(self) -> bool:
        """Return that the file can be read, as TextIOWrapper asks."""
        return True

    def readinto(self, target: Any) -> int:
        """Read some bytes, and count those since the last end of a line."""
        chunk = self._file.read(len(target))
        target[: len(chunk)] = chunk

        end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        if end >= 0:
            self._length = 0
        self._length += len(chunk) - end - 1
        self._n_lines += chunk.count(b"\n")
        # Bytes of a line: eight million columns of eight characters.
        longest_line = 1 << 26
        if self._length > longest_line:
            raise DatasetError(
                f"{self._path}: line {self._n_lines + 1:,} has more than "
                f"{longest_line >> 20} MiB; check that it is a table, or store it as "
                ".npz"
            )
        return len(chunk)

    def close(self) -> None:
        """Close the file, and what it reads from."""
        self._file.close()
        super().close()


def open_lines(path: Path, opener: Callable[..., Any]) -> io.BufferedReader:
    """Return a text file that is read in bytes, and refuses a line that is too long."""
    return io.BufferedReader(_Lines(path, opener(path, "rb")))


def shorten_cells(text: str, delimiter: str) -> str:
    """Return a text whose cells have at most the characters of one that is too long."""
    cell = rf'"(?:[^"]+|"")*+(?:"|\Z)|[^{re.escape(delimiter)}\r\n]+'

    def mark(found: re.Match[str]) -> str:
        """Return a cell, or dots in the place of one that is too long."""
        if len(found[0]) < LONGEST_CELL:
            return found[0]
        return "." * LONGEST_CELL

    return re.sub(cell, mark, text)


def check_header(path: Path, header: Iterable[str]) -> None:
    """Refuse a name of a column that is too long for one."""
    for place, name in enumerate(header, start=1):
        if len(name) >= LONGEST_CELL:
            size = f"{LONGEST_CELL:,} or more"
            raise _too_long(path, "the header", f"column {place:,}", size)


def check_cells(path: Path, name: str, column: pd.Series) -> None:
    """Refuse a column that has a cell which is too long, and say where it is."""
    lengths = column.dropna().astype(str).str.len()
    if len(lengths) and lengths.max() >= LONGEST_CELL:
        row = f"row {lengths.idxmax() + 1:,} below the header"
        place = "the first column"
        if name:
            place = f"the column {name}"

        raise _too_long(path, row, place, f"{lengths.max():,}")


def _too_long(path: Path, row: str, place: str, size: str) -> DatasetError:
    """Return the error that a row of a file has a cell that is too long."""
    return DatasetError(
        f"{path}: the cell in {row}, {place}, has {size} characters; shorten it, or "
        "drop the column"
    )
