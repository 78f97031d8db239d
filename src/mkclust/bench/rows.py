"""The rows of a benchmark: how they are read and archived, and which settings are repeated."""

import gzip
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from mkclust.files import write_atomically

Row = dict[str, Any]

# The scores of the paper; the best setting of a grid is chosen for each of them separately.
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
        A folder with ``rows.jsonl`` or ``rows.jsonl.gz``, or such a file. A last line that a killed
        run left incomplete is ignored.

    Returns
    -------
    list of dict
        One per line.

    Raises
    ------
    ValueError
        If there is no such file, or a line is damaged.
    """
    path = Path(path)
    files = [path, path / "rows.jsonl", path / "rows.jsonl.gz"]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        raise ValueError(f"{path}: has no rows.jsonl; run mkclust bench PLAN --out {path}")
    return _read(file)


def read_solves(path: str | Path) -> list[Row]:
    """Read the weights and objectives of each solve in a folder; empty if it has no such file."""
    files = [Path(path) / name for name in ("solves.jsonl", "solves.jsonl.gz")]
    return next((_read(file) for file in files if file.exists()), [])


def best_settings(rows: Iterable[Row] | pd.DataFrame) -> dict[str, str]:
    """Return the settings of one method on one data set that are repeated in full.

    These are the ones with the best mean by each score, and that of "default". Of equal settings
    the first in alphabetical order is taken.
    """
    frame = pd.DataFrame(rows)
    frame = frame[frame["status"] == "ok"] if len(frame) else frame
    if frame.empty:
        return {}
    means = compared(frame).groupby("parameters")[list(SCORES)].mean().round(MEAN_DIGITS)
    default = frame.loc[frame["default"].astype(bool), "parameters"].unique()
    return means.idxmax().to_dict() | dict(zip(("default",), default, strict=False))


def compared(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with scores by which settings are compared.

    These are their first ``grid_repetitions`` or their summaries, so that settings which are
    repeated more often have no advantage.
    """
    is_summary = frame["repetition"].isna()
    limits = frame.get("grid_repetitions", math.inf)
    has_summary = frame["parameters"].isin(frame.loc[is_summary, "parameters"])
    return frame[is_summary | (~has_summary & (frame["repetition"] < limits))]


def archive(folder: str | Path, target: str | Path) -> Path:
    """Write a compressed copy of a benchmark that gives the same tables.

    The settings that are repeated in full keep all their rows and solves; every grid point has one
    more row, with the means of the repetitions that compared it.

    Parameters
    ----------
    folder : str or path-like
        Folder of a run, with ``rows.jsonl``.
    target : str or path-like
        Folder for ``rows.jsonl.gz`` and ``solves.jsonl.gz``.

    Returns
    -------
    Path
        The file of rows.
    """
    groups: dict[tuple, list[Row]] = {}
    for row in sorted(read_rows(folder), key=lambda r: (r["parameters"], r["repetition"] or 0)):
        groups.setdefault((row["dataset"], row["method"], row["resample"]), []).append(row)
    rows: list[Row] = []
    kept: set[tuple] = set()
    for key in sorted(groups):
        repeated = set(best_settings(groups[key]).values())
        kept |= {(*key, setting) for setting in repeated}
        rows += _condense(groups[key], repeated)
    names = ("dataset", "method", "resample", "parameters")
    solves = [s for s in read_solves(folder) if tuple(s[name] for name in names) in kept]
    solves.sort(key=lambda s: (*(s[name] for name in names), s["repetition"] or 0))
    files = {Path(target) / "rows.jsonl.gz": rows, Path(target) / "solves.jsonl.gz": solves}
    contents = {path: gzip.compress(as_lines(each), mtime=0) for path, each in files.items()}
    return write_atomically(contents)[0]


def as_lines(objects: Iterable[Row]) -> bytes:
    """Return objects as lines of JSON."""
    return "".join(json.dumps(each, allow_nan=False) + "\n" for each in objects).encode()


def parse_lines(path: Path, content: bytes) -> tuple[list[Row], int]:
    """Return the objects of a file, and its length without a last line that was cut short."""
    complete = content.rfind(b"\n") + 1
    objects = []
    for number, line in enumerate(content[:complete].splitlines(), start=1):
        try:
            objects.append(dict(json.loads(line)))
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{path}, line {number}: is not a row of a benchmark ({error}); remove it, or run "
                "the benchmark again"
            ) from None
    return objects, complete


def _read(path: Path) -> list[Row]:
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (EOFError, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: is damaged ({error}); restore it from a copy") from None
    rows, _ = parse_lines(path, content)
    return [{"default": row.get("parameters") == "{}"} | row for row in rows]


def _condense(rows: list[Row], repeated: set[str]) -> list[Row]:
    """Return the rows of repeated settings and of failures, and a summary of every grid point."""
    settings = dict.fromkeys(row["parameters"] for row in rows)
    kept: list[Row] = []
    for name in settings:
        own = [row for row in rows if row["parameters"] == name]
        scored = [row for row in own if row["status"] == "ok" and row["repetition"] is not None]
        others = [row for row in own if row["status"] != "ok" or row["repetition"] is None]
        kept += (scored if name in repeated else []) + others
        if len(settings) > 1 and scored and all(row["repetition"] is not None for row in others):
            first = compared(pd.DataFrame(scored))
            means = {n: math.fsum(first[n]) / len(first) for n in (*SCORES, "ari")}
            summary = {"repetition": None, "n_repetitions": len(first), "seed": None}
            kept.append(scored[0] | summary | means)
    return kept
