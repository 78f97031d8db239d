"""The rows of a benchmark: how to read them, and which settings to repeat."""

import gzip
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from mkclust.files import errors_of

Row = dict[str, Any]

# The scores of the paper; the best setting of a grid is chosen for each of them
# separately.
SCORES = ("acc", "nmi", "purity")
# Digits of a mean, so that the order of a sum does not decide between equal settings.
MEAN_DIGITS = 12


def canonical(parameters: Mapping[str, Any]) -> str:
    """Return a setting as text, the same for the same setting."""
    return json.dumps(dict(parameters), sort_keys=True)


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
    file = path
    if not path.is_file():
        file = path / "rows.jsonl"

    rows = _read(file)
    if rows is None:
        raise ValueError(
            f"{path}: has no rows.jsonl; run mkclust bench PLAN --out {path}"
        )
    if not rows:
        raise ValueError(
            f"{path}: rows.jsonl has no rows yet; run mkclust bench PLAN --out {path}"
        )
    return rows


def read_solves(path: str | Path) -> list[Row]:
    """Read the weights and objectives of each solve in a folder, if it has them."""
    return _read(Path(path) / "solves.jsonl") or []


def best_settings(rows: Iterable[Row] | pd.DataFrame) -> dict[str, str]:
    """Return the best settings of a method by the mean of each score, and "default".

    Of equal settings the first in alphabetical order is taken. Settings are compared by
    their first ``grid_repetitions`` or their summaries, so that more repetitions are no
    advantage.
    """
    frame = pd.DataFrame(rows)
    if len(frame):
        frame = frame[frame["status"] == "ok"]

    if frame.empty:
        return {}
    is_summary = frame["repetition"].isna()
    has_summary = frame["parameters"].isin(frame.loc[is_summary, "parameters"])
    is_first = frame["repetition"] < frame.get("grid_repetitions", math.inf)
    compared = frame[is_summary | (~has_summary & is_first)]
    by_setting = compared.groupby("parameters")[list(SCORES)]
    means = by_setting.mean().round(MEAN_DIGITS)
    is_default = frame["default"].astype(bool)
    default = frame.loc[is_default, "parameters"].unique()
    pairs = zip(("default",), default, strict=False)
    return means.idxmax().to_dict() | dict(pairs)


def as_lines(objects: Iterable[Row]) -> bytes:
    """Return objects as lines of JSON."""
    return "".join(
        json.dumps(each, allow_nan=False) + "\n" for each in objects
    ).encode()


def parse_lines(path: Path, content: bytes) -> tuple[list[Row], int]:
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


def _read(path: Path) -> list[Row] | None:
    """Return the rows of a file, plain or compressed; None if there is no file."""
    if not path.exists():
        path = path.with_name(f"{path.name}.gz")

    try:
        with errors_of(path):
            content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        return parse_lines(path, content)[0]
    except FileNotFoundError:
        return None
    except (EOFError, gzip.BadGzipFile) as error:
        raise ValueError(
            f"{path}: is damaged ({error}); restore it from a copy"
        ) from None
