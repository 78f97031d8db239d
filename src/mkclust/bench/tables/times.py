"""A table of solve times."""

from collections.abc import Iterable
from statistics import median

from mkclust.bench.rows import Row, is_default
from mkclust.bench.tables.formats import Cell, Table
from mkclust.bench.tables.outcomes import dataset_labels, group, in_words, methods_of, reason
from mkclust.bench.tables.scores import caveat_notes, repeated, suffix

REFERENCE = "avg-kkm"


def solve_seconds(rows: Iterable[Row], resample: float | None = None) -> dict:
    """Return the median seconds of a solve with the default setting.

    Parameters
    ----------
    rows : iterable of dict
        Rows of a benchmark.
    resample : float or None
        The way of resampling; None stands for the largest share that there is.

    Returns
    -------
    dict of str to dict of str to float
        By data set and method; what did not run is missing.
    """
    grouped, _ = group(rows, resample)
    return {
        dataset: {
            method: seconds for method, its in own.items() if (seconds := _seconds(its)) is not None
        }
        for dataset, own in grouped.items()
    }


def time_table(rows: Iterable[Row], resample: float | None = None) -> Table:
    """Return the table of solve times with default settings, and their ratios to avg-kkm.

    Parameters
    ----------
    rows : iterable of dict
        Rows of a benchmark.
    resample : float or None
        The way of resampling; None stands for the largest share that there is.

    Returns
    -------
    Table
        A block of seconds and one of ratios, data sets by methods; failures in words.
    """
    rows = list(rows)
    grouped, resample = group(rows, resample)
    labels = dataset_labels(rows)
    # An entry that the true classes choose has no default setting to time.
    methods = [
        method
        for method in methods_of(grouped)
        if any(not row.get("oracle") for own in grouped.values() for row in own.get(method, []))
    ]
    problems: dict[str, str] = {}
    seconds, ratios = [], []
    for dataset, own in grouped.items():
        times = {method: _seconds(own.get(method, [])) for method in methods}
        reference = times.get(REFERENCE)
        first, second = [], []
        for method in methods:
            time = times[method]
            if time is None:
                word, why = _problem(own.get(method, []))
                where = f"{labels[dataset]}, {method}: " if why != "not run" else ""
                mark = problems.setdefault(where + why, str(len(problems) + 1))
                first.append(Cell(None, text=word, mark=mark))
            else:
                first.append(Cell(time, text=f"{time:.3g}"))
            ratio = time / reference if time is not None and reference else None
            second.append(Cell(ratio, text="" if ratio is None else f"{ratio:.3g}"))
        seconds.append((labels[dataset], *first))
        ratios.append((labels[dataset], *second))
    lines = [("Seconds",), *seconds, (f"Times {REFERENCE}",), *ratios]
    kept = [row for own in grouped.values() for its in own.values() for row in its]
    notes = [
        "Seconds of one solve with the default setting, without k-means (the median, where refits "
        "make several); of clusterers that are not solved and discretized apart, of the whole fit. "
        "Single times vary, the more so where other processes share the machine: compare within "
        "one run only, and by orders of magnitude.",
        *_circumstances(kept),
        *caveat_notes(kept),
        *(f"[{mark}] {sentence}" for sentence, mark in problems.items()),
    ]
    title = "Solve times" + repeated(resample)
    return Table(
        "times" + suffix(resample), title, ("data set", *methods), tuple(lines), tuple(notes)
    )


def _seconds(rows: list[Row]) -> float | None:
    """Return the median seconds of one method's default setting on one data set."""
    own = [row for row in rows if row["status"] == "ok" and not row.get("oracle")]
    own = [row for row in own if is_default(row) and row.get("solve_seconds") is not None]
    repetitions = [row for row in own if row["repetition"] is not None]
    return median(row["solve_seconds"] for row in repetitions or own) if own else None


def _problem(rows: list[Row]) -> tuple[str, str]:
    """Return why there is no time: in a word or two, and in full."""
    failed = [row for row in rows if row["status"] != "ok" and is_default(row)]
    if failed:
        return in_words(min(failed, key=lambda row: row["status"])), reason(failed)
    if not rows:
        return "-", "not run"
    return "-", "the default setting was not run"


def _circumstances(rows: list[Row]) -> list[str]:
    """Say on what machines and how many threads the times were taken."""
    machines = sorted({str(row["machine"]) for row in rows if row.get("machine")})
    threads = sorted({int(row["threads"]) for row in rows if row.get("threads") is not None})
    notes = [f"Machine: {machine}." for machine in machines]
    if threads:
        notes.append(f"Threads: {', '.join(map(str, threads))}.")
    return notes
