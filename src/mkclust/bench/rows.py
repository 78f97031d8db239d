"""The rows of a benchmark: how they are read and archived, and which settings they speak for."""

import gzip
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import stdev
from typing import Any, NoReturn

from mkclust.bench.row_checks import check_row, check_solve
from mkclust.files import write_atomically

Row = dict[str, Any]

# The scores of the paper; a setting is chosen for each of them apart.
SCORES = ("acc", "nmi", "purity")
# The text of a setting without parameters: a method's own defaults.
DEFAULT = "{}"


@dataclass(frozen=True)
class Choice:
    """The settings of one method on one data set that stand for it in a table.

    Attributes
    ----------
    oracle : dict of str to str
        For each score the setting with the best mean: chosen by the true classes.
    default : str or None
        The default setting, where there is one.
    stable : str or None
        The setting whose clusters change least under resampling: chosen without classes.
    """

    oracle: dict[str, str] = field(default_factory=dict)
    default: str | None = None
    stable: str | None = None

    def settings(self) -> list[str]:
        """Return all chosen settings, each once."""
        named = [self.default, *self.oracle.values(), self.stable]
        return list(dict.fromkeys(name for name in named if name is not None))


def canonical(parameters: Mapping[str, Any]) -> str:
    """Return a setting as text, the same for the same setting.

    Examples
    --------
    >>> from mkclust.bench.tables import canonical
    >>> canonical({"reg": 0.5, "neighbors": 0.1})
    '{"neighbors": 0.1, "reg": 0.5}'
    """
    return json.dumps(dict(parameters), sort_keys=True)


def read_rows(path: str | Path) -> list[Row]:
    """Read the rows of a benchmark, from its folder or from a file.

    Parameters
    ----------
    path : str or path-like
        A folder with ``rows.jsonl`` or ``rows.jsonl.gz``, or such a file. A last line that a kill
        has torn is left out.

    Returns
    -------
    list of dict
        One a line.

    Raises
    ------
    ValueError
        If there is no such file, or it is damaged: with the line that is no row, and why.
    """
    return list(_read(_find(Path(path), "rows.jsonl"), check_row))


def read_solves(path: str | Path) -> list[Row]:
    """Read what was recorded of each solve beside the rows; nothing where that is missing.

    Parameters
    ----------
    path : str or path-like
        A folder with ``solves.jsonl`` or ``solves.jsonl.gz``, or a file of rows beside it.

    Returns
    -------
    list of dict
        One a solve.
    """
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    files = [folder / name for name in ("solves.jsonl", "solves.jsonl.gz")]
    return next((list(_read(file, check_solve)) for file in files if file.exists()), [])


def choose(rows: Iterable[Row]) -> Choice:
    """Choose the settings of one method on one data set that stand for it.

    Grid points are compared by their first repetitions (``grid_repetitions`` of them) or by their
    summaries, so that those repeated more often have no advantage. Ties go to the setting that
    comes first in the order of their texts.

    Parameters
    ----------
    rows : iterable of dict
        Rows of one data set, one method and one way of resampling.

    Returns
    -------
    Choice
    """
    by_setting: dict[str, list[Row]] = {}
    oracle_only = False
    for row in rows:
        oracle_only |= bool(row.get("oracle"))
        if row["status"] == "ok":
            by_setting.setdefault(row["parameters"], []).append(row)
    first_rows = {name: _first_rows(by_setting[name]) for name in sorted(by_setting)}
    oracle = {}
    for score in SCORES:
        best = _best({name: _mean(group, score) for name, group in first_rows.items()})
        if best is not None:
            oracle[score] = best
    if oracle_only:
        return Choice(oracle)
    default = next((name for name, group in first_rows.items() if is_default(group[0])), None)
    stabilities = {name: group[0].get("stability") for name, group in first_rows.items()}
    return Choice(oracle, default, _best(stabilities))


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
    rows_to_keep: list[Row] = []
    chosen_settings: set[tuple[Any, ...]] = set()
    for key in sorted(groups):
        chosen = choose(groups[key]).settings()
        chosen_settings |= {(*key, name) for name in chosen}
        rows_to_keep += _condense(groups[key], set(chosen))
    order = ("dataset", "method", "resample", "parameters")
    solves = [
        solve
        for solve in read_solves(folder)
        if tuple(solve[name] for name in order) in chosen_settings
    ]
    solves.sort(key=lambda solve: (*(solve[name] for name in order), solve["repetition"] or 0))
    _write(target / "solves.jsonl.gz", solves)
    return _write(target / "rows.jsonl.gz", rows_to_keep)


def is_default(row: Row) -> bool:
    """Return whether a row is of an entry's own default setting."""
    return bool(row.get("default", row["parameters"] == DEFAULT))


def _first_rows(rows: list[Row]) -> list[Row]:
    """Return the rows by which a setting is compared with others: its summary, or the first."""
    if summary := [row for row in rows if row["repetition"] is None]:
        return summary[:1]
    first = [row for row in rows if row["repetition"] < row.get("grid_repetitions", math.inf)]
    return sorted(first or rows, key=lambda row: row["repetition"])


def _best(values: Mapping[str, float | None]) -> str | None:
    """Return the setting with the largest value, the first of these; None without values."""
    numbers = {name: value for name, value in values.items() if value is not None}
    return max(numbers, key=numbers.__getitem__, default=None)


def _mean(rows: list[Row], score: str) -> float | None:
    """Return the mean of a score, None where it is not known."""
    values = [row[score] for row in rows if row.get(score) is not None]
    # Rounded, so that the order of a sum does not decide between equal settings.
    return round(math.fsum(values) / len(values), 12) if values else None


def _find(path: Path, name: str) -> Path:
    """Return the file of rows that a path means."""
    if path.is_file():
        return path
    for candidate in (path / name, path / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    kind = "holds no" if path.is_dir() else "is not a folder with"
    raise ValueError(f"{path}: {kind} {name} or {name}.gz; run mkclust bench PLAN --out {path}")


def _read(path: Path, check: Callable[[Any], None]) -> Iterator[Row]:
    """Yield the objects of a file of JSON lines, checked, but for a torn last one."""
    for number, line in enumerate(_lines(path), start=1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            if not line.endswith(b"\n"):
                return
            _refuse(path, number, "is not a JSON object")
        try:
            check(row)
        except ValueError as error:
            _refuse(path, number, str(error))
        yield row


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, or say where it is damaged."""
    number = 0
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
            for line in file:
                yield line
                number += 1
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        kind = "ends too early" if isinstance(error, EOFError) else f"is damaged ({error})"
        raise ValueError(
            f"{path}: {kind}, behind line {number}; restore the file from a copy, or write it "
            "anew by mkclust bench PLAN --archive FOLDER"
        ) from None


def _refuse(path: Path, number: int, reason: str) -> NoReturn:
    """Refuse a file for one of its lines."""
    remedy = "restore the file from a copy" if path.suffix == ".gz" else "remove the line"
    raise ValueError(f"{path}, line {number}: {reason}; {remedy}, or run the benchmark again")


def _condense(rows: list[Row], chosen: set[str]) -> list[Row]:
    """Return the rows of chosen settings and of failures, and a summary of every grid point."""
    by_setting: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["parameters"], row["repetition"] or 0)):
        by_setting.setdefault(row["parameters"], []).append(row)
    rows_to_keep: list[Row] = []
    for name, group in by_setting.items():
        scored = [row for row in group if row["status"] == "ok" and row["repetition"] is not None]
        if name in chosen:
            rows_to_keep += scored
        rows_to_keep += [row for row in group if row["status"] != "ok" or row["repetition"] is None]
        has_summary = any(row["repetition"] is None for row in group)
        if len(by_setting) > 1 and scored and not has_summary:
            rows_to_keep.append(
                _summary([r for r in scored if r["repetition"] < r["grid_repetitions"]])
            )
    return rows_to_keep


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
    return write_atomically({path: gzip.compress(text.encode(), mtime=0)})[0]
