"""Keep a benchmark in a small space: repeated settings whole, other grid points summed up."""

import gzip
import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from statistics import stdev
from typing import Any

from mkclust.bench.rows import SCORES, Row, choose, read_rows, read_solves


def archive(folder: str | Path, target: str | Path) -> Path:
    """Write a compressed copy of a benchmark that gives the same tables.

    The settings that stand for a method keep all their rows and what is known of their solves;
    every grid point has one more row, of the means of the repetitions that compared it.

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
    target = Path(target)
    target.mkdir(parents=True, exist_ok=True)
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in read_rows(folder):
        key = (row["dataset"], row["method"], row["resample"])
        groups.setdefault(key, []).append(row)
    kept: list[Row] = []
    named: set[tuple[Any, ...]] = set()
    for key in sorted(groups):
        chosen = choose(groups[key]).settings()
        named |= {(*key, name) for name in chosen}
        kept += _condense(groups[key], set(chosen))
    solves = [
        solve
        for solve in read_solves(folder)
        if (solve["dataset"], solve["method"], solve["resample"], solve["parameters"]) in named
    ]
    order = ("dataset", "method", "resample", "parameters")
    solves.sort(key=lambda solve: (*(solve[name] for name in order), solve["repetition"] or 0))
    _write(target / "solves.jsonl.gz", solves)
    return _write(target / "rows.jsonl.gz", kept)


def _condense(rows: list[Row], chosen: set[str]) -> list[Row]:
    """Return the rows of chosen settings and of failures, and a summary of every grid point."""
    by_setting: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["parameters"], row["repetition"] or 0)):
        by_setting.setdefault(row["parameters"], []).append(row)
    kept: list[Row] = []
    for name, own in by_setting.items():
        scored = [row for row in own if row["status"] == "ok" and row["repetition"] is not None]
        if name in chosen:
            kept += scored
        kept += [row for row in own if row["status"] != "ok" or row["repetition"] is None]
        summed_up = any(row["repetition"] is None for row in own)
        if len(by_setting) > 1 and scored and not summed_up:
            kept.append(_summary([r for r in scored if r["repetition"] < r["grid_repetitions"]]))
    return kept


def _summary(rows: list[Row]) -> Row:
    """Return one row for the repetitions of a grid point."""
    summary = rows[0] | {"repetition": None, "n_repetitions": len(rows), "seed": None}
    for score in (*SCORES, "ari"):
        values = [row[score] for row in rows]
        summary[score] = math.fsum(values) / len(values)
        summary[f"{score}_std"] = stdev(values) if len(values) > 1 else 0.0
    return summary


def _write(path: Path, objects: Iterable[dict[str, Any]]) -> Path:
    """Write lines, compressed, completely or not at all; the same lines give the same bytes."""
    text = "".join(json.dumps(each, allow_nan=False) + "\n" for each in objects)
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_bytes(gzip.compress(text.encode(), mtime=0))
    os.replace(fresh, path)
    return path
