"""What each method reached on each data set with the setting that a selection gives it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from mkclust.bench.rows import SCORES, Choice, Row, choose, is_default
from mkclust.bench.tables.paper import PAPER_DATASETS, PAPER_METHODS

SELECTIONS = ("oracle", "default", "stable")
# What is meant where a run ends in one of these ways.
STATUSES = {"memory": "out of memory", "time": "out of time"}


@dataclass(frozen=True)
class Outcome:
    """What a method reached on a data set in one score.

    Attributes
    ----------
    values : dict of (int, int) to float
        The score in percent, by repetition and seed.
    parameters : str or None
        The setting that these are of.
    oracle : bool
        Whether the entry itself is chosen by the true classes.
    problem : str
        Why there are no values, or that some repetitions failed; else empty.
    converged : bool
        Whether all solves behind the values converged, as far as is known.
    """

    values: dict[tuple[int, int], float] = field(default_factory=dict)
    parameters: str | None = None
    oracle: bool = False
    problem: str = ""
    converged: bool = True


Grouped = dict[str, dict[str, list[Row]]]


def resamples(rows: Iterable[Row]) -> list[float]:
    """Return the ways of resampling that rows have, from the whole data set downward.

    Parameters
    ----------
    rows : iterable of dict

    Returns
    -------
    list of float
    """
    return sorted({float(row["resample"]) for row in rows}, reverse=True)


def group(rows: Iterable[Row], resample: float | None = None) -> tuple[Grouped, float]:
    """Return the rows of one way of resampling by data set and method, in the order of a table.

    Parameters
    ----------
    rows : iterable of dict
        Rows of a benchmark.
    resample : float or None
        The way of resampling; None stands for the largest share that there is.

    Returns
    -------
    grouped : dict of str to dict of str to list of dict
        Data sets of the paper come first, in the paper's order; methods likewise.
    resample : float

    Raises
    ------
    ValueError
        If there is no such row.
    """
    rows = list(rows)
    found = resamples(rows)
    if not found or (resample is not None and resample not in found):
        shares = ", ".join(map(str, found)) or "none at all"
        wanted = "" if resample is None else f" of resample={resample}"
        raise ValueError(f"There are no rows{wanted}; the rows given have resample: {shares}.")
    resample = found[0] if resample is None else resample
    kept = [row for row in rows if float(row["resample"]) == resample]
    names = {row["dataset"]: row.get("paper") or "" for row in kept}
    grouped: Grouped = {name: {} for name in sorted(names, key=lambda d: _dataset_key(names[d], d))}
    for row in sorted(kept, key=lambda row: _method_key(row["method"])):
        grouped[row["dataset"]].setdefault(row["method"], []).append(row)
    return grouped, resample


def methods_of(grouped: Grouped) -> list[str]:
    """Return all methods, those of the paper first."""
    return sorted({method for own in grouped.values() for method in own}, key=_method_key)


def outcome(rows: list[Row], score: str, selection: str) -> Outcome | None:
    """Return what one method reached on one data set with the setting that a selection gives it.

    Parameters
    ----------
    rows : list of dict
        Rows of one data set, one method and one way of resampling.
    score : {"acc", "nmi", "purity"}
    selection : {"oracle", "default", "stable"}

    Returns
    -------
    Outcome or None
        None where the method has no place in a table of that selection: an entry that the true
        classes choose, in a table where they choose nothing.
    """
    check(score, selection)
    oracle = any(row.get("oracle") for row in rows)
    if oracle and selection != "oracle":
        return None
    parameters = chosen(rows, score, selection)
    if parameters is None:
        return Outcome(oracle=oracle, problem=_why_none(rows, selection))
    own = [r for r in rows if r["parameters"] == parameters and r["repetition"] is not None]
    values = {
        (row["repetition"], row.get("seed", 0)): 100 * row[score]
        for row in sorted(own, key=lambda row: row["repetition"])
        if row["status"] == "ok" and row.get(score) is not None
    }
    problem = ""
    failed = [row for row in own if row["status"] != "ok"]
    failed = [row for row in failed if (row["repetition"], row.get("seed", 0)) not in values]
    if not values:
        problem = reason(failed) if failed else "only a summary was kept, no repetitions"
    elif failed:
        problem = f"{len(failed)} of {len(failed) + len(values)} repetitions: {reason(failed)}"
    converged = not any(row.get("converged") is False for row in own)
    return Outcome(values, parameters, oracle, problem, converged)


def chosen(rows: list[Row], score: str, selection: str) -> str | None:
    """Return the setting that a selection gives one method on one data set.

    Parameters
    ----------
    rows : list of dict
        Rows of one data set, one method and one way of resampling.
    score : {"acc", "nmi", "purity"}
    selection : {"oracle", "default", "stable"}

    Returns
    -------
    str or None
        None where there is no such setting that ran.
    """
    choice = choose(rows)
    if selection == "oracle":
        return _best_repeated(rows, choice, score)
    if selection == "default":
        return choice.default
    # Of a single setting nothing needs to be chosen, so that its stability need not be known.
    only = len({row["parameters"] for row in rows}) == 1
    return choice.default if only else choice.stable


def _best_repeated(rows: list[Row], choice: Choice, score: str) -> str | None:
    """Return the best of the settings that were repeated most, by all their repetitions.

    A few repetitions choose which settings are repeated; among these, all of them count.
    """
    values: dict[str, list[float]] = {}
    for row in rows:
        if row["status"] == "ok" and row["repetition"] is not None and row.get(score) is not None:
            values.setdefault(row["parameters"], []).append(row[score])
    first = choice.oracle.get(score)
    most = max((len(values.get(name, ())) for name in choice.settings()), default=0)
    full = {name: values[name] for name in sorted(values) if len(values[name]) == most}
    if first not in full:  # not repeated yet, or only a summary was kept
        return first
    return max(full, key=lambda name: round(math.fsum(full[name]) / most, 12))


def dataset_labels(rows: Iterable[Row]) -> dict[str, str]:
    """Return how each data set is called in a table, with what must be said of it.

    Parameters
    ----------
    rows : iterable of dict

    Returns
    -------
    dict of str to str
        The paper's name where there is one and no other data set claims it, else its own; the
        caveat in parentheses.
    """
    papers: dict[str, str] = {}
    caveats: dict[str, set[str]] = {}
    for row in rows:
        papers[row["dataset"]] = row.get("paper") or ""
        caveats.setdefault(row["dataset"], set()).add(row.get("caveat") or "")
    labels = {}
    for name, paper in papers.items():
        known = ", ".join(sorted(caveats[name] - {""}))
        claims = [other for other in papers if papers[other] == paper]
        own = name if not paper else paper if len(claims) == 1 else f"{paper}: {name}"
        labels[name] = f"{own} ({known})" if known else own
    return labels


def reason(rows: list[Row]) -> str:
    """Return in words why rows have no scores.

    Parameters
    ----------
    rows : list of dict
        Rows whose status is not "ok"; the first one's reason stands for all.

    Returns
    -------
    str
    """
    row = min(rows, key=lambda row: (row["status"], row.get("message") or ""))
    message = " ".join((row.get("message") or "").split())
    return f"{in_words(row)}: {message}" if message else in_words(row)


def in_words(row: Row) -> str:
    """Return the status of a row in words."""
    return STATUSES.get(row["status"], str(row["status"]))


def check(score: str, selection: str) -> None:
    """Refuse a score or a selection that does not exist."""
    if score not in SCORES:
        raise ValueError(f"score={score!r} is not known: give one of {', '.join(SCORES)}.")
    if selection not in SELECTIONS:
        known = ", ".join(SELECTIONS)
        raise ValueError(f"selection={selection!r} is not known: give one of {known}.")


def _why_none(rows: list[Row], selection: str) -> str:
    """Return why a selection finds no setting."""
    failed = [row for row in rows if row["status"] != "ok"]
    if selection == "default":
        failed_default = [row for row in failed if is_default(row)]
        return reason(failed_default) if failed_default else "the default setting was not run"
    if any(row["status"] == "ok" for row in rows):
        return "the stability of its settings is not known"
    return reason(failed)


def _dataset_key(paper: str, name: str) -> tuple[int, str]:
    """Return what sorts data sets: the paper's first, as there."""
    known = PAPER_DATASETS.index(paper) if paper in PAPER_DATASETS else len(PAPER_DATASETS)
    return known, name


def _method_key(name: str) -> tuple[int, str]:
    """Return what sorts methods: the paper's first, as there."""
    known = PAPER_METHODS.index(name) if name in PAPER_METHODS else len(PAPER_METHODS)
    return known, name
