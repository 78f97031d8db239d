"""The rows of a benchmark: files that survive a kill, and which settings to repeat."""

import gzip
import json
import math
import os
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from mkclust.files import errors_of, write_atomically

Row = dict[str, Any]

# The scores of the paper; the best setting of a grid is chosen for each of them
# separately.
SCORES = ("acc", "nmi", "purity")
# Digits of a mean, so that the order of a sum does not decide between equal settings.
MEAN_DIGITS = 12


def canonical(parameters: Row) -> str:
    """Return a setting as text, the same for the same setting."""
    return json.dumps(parameters, sort_keys=True)


def read_rows(path: str | Path) -> list[Row]:
    """Read the rows of a benchmark.

    Parameters
    ----------
    path : str or path-like
        Folder with ``rows.jsonl`` or ``rows.jsonl.gz``, or such a file; a cut last line
        is ignored.

    Raises
    ------
    ValueError
        If there is no such file, it has no rows, or a line is damaged.
    """
    path = Path(path)
    if path.suffix == ".toml":
        raise ValueError(
            f"{path}: is a plan; pass the folder of its results, by default "
            f"{Path('bench') / path.stem}"
        )
    rows = _read(path if path.is_file() else path / "rows.jsonl")
    if not rows:
        raise ValueError(
            f"{path}: has no rows yet; run mkclust bench PLAN --out {path}"
        )
    return rows


def read_solves(path: str | Path) -> list[Row]:
    """Read the weights and objectives of each solve in a folder, if it has them."""
    return _read(Path(path) / "solves.jsonl")


def best_settings(rows: Iterable[Row] | pd.DataFrame) -> dict[str, str]:
    """Return the best settings of a method by the mean of each score, and "default".

    Of equal settings the first in alphabetical order is taken. Settings are compared by
    their first ``grid_repetitions``, so that more repetitions are no advantage.
    """
    frame = pd.DataFrame(rows)
    if frame.empty or not frame["status"].eq("ok").any():
        return {}
    frame = frame[frame["status"] == "ok"]
    is_first = frame["repetition"] < frame.get("grid_repetitions", math.inf)
    by_setting = frame[is_first].groupby("parameters")[list(SCORES)]
    best = by_setting.mean().round(MEAN_DIGITS).idxmax().to_dict()
    for default in frame.loc[frame["default"].astype(bool), "parameters"].head(1):
        best["default"] = default
    return best


def as_lines(objects: Iterable[Row]) -> bytes:
    """Return objects as lines of JSON."""
    return "".join(
        json.dumps(each, allow_nan=False) + "\n" for each in objects
    ).encode()


def _parse(path: Path, content: bytes) -> tuple[list[Row], int]:
    """Return the objects of a file, and its length without a last line cut short."""
    complete = content.rfind(b"\n") + 1
    objects = []
    for number, line in enumerate(content[:complete].splitlines(), start=1):
        try:
            objects.append(dict(json.loads(line)))
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{path}, line {number}: is not a row of a benchmark ({error}); remove "
                "it, or run the benchmark again"
            ) from None
    return objects, complete


def _read(path: Path) -> list[Row]:
    """Return the rows of a file, plain or compressed; none if there is no file."""
    for file in (path, path.with_name(f"{path.name}.gz")):
        if file.exists():
            with errors_of(file):
                content = file.read_bytes()
            if file.suffix == ".gz":
                content = gzip.decompress(content)
            return _parse(file, content)[0]
    return []


class Journal:
    """A file of objects, one per line, each key once, without a line cut by a kill."""

    def __init__(self, path: Path, key: Callable[[Row], Hashable]):
        self.path = path
        self._key = key
        with errors_of(path), path.open("a+b") as file:
            file.seek(0)
            objects, complete = _parse(path, file.read())
            file.truncate(complete)
        self.objects = {key(each): each for each in objects}

    def append(self, objects: Iterable[Row]) -> None:
        """Write the objects with new keys; they are on the disk when this returns."""
        new = {self._key(each): each for each in objects}
        new = {key: each for key, each in new.items() if key not in self.objects}
        text = as_lines(new.values())
        # Unbuffered: a buffer would be written on closing, after a failure.
        with errors_of(self.path), self.path.open("ab", buffering=0) as file:
            start = file.tell()
            try:
                while text:
                    text = text[file.write(text) :]
                os.fsync(file.fileno())
            except OSError:  # a full disk must not leave half a line
                file.truncate(start)
                raise
        self.objects |= new

    def drop(self, unwanted: Callable[[Row], bool]) -> None:
        """Remove objects, all at once."""
        kept = {key: each for key, each in self.objects.items() if not unwanted(each)}
        if len(kept) < len(self.objects):
            write_atomically({self.path: as_lines(kept.values())})
            self.objects = kept
