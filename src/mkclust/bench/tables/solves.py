"""Tables of what the solves took and gave: seconds, kernel weights, settings."""

from collections.abc import Sequence
from statistics import median

from mkclust.bench.rows import DEFAULT, SCORES, Row, is_default
from mkclust.bench.tables.formats import Cell, Table
from mkclust.bench.tables.outcomes import NOT_RUN, Entry, in_words, reason
from mkclust.bench.tables.results import Run
from mkclust.bench.tables.scores import TITLES
from mkclust.bench.tables.statistics import mean_and_deviation

REFERENCE = "avg-kkm"
SHOWN_TOGETHER = ("weights", "alignments")  # neither is shown without the other
Number = tuple[float | None, float | None]  # mean and deviation
TIME_NOTE = (
    "Seconds of one solve with the default setting, without k-means (the median, where refits "
    "make several); of clusterers that are not solved and discretized apart, of the whole fit. "
    "Single times vary, the more so where other processes share the machine: compare within "
    "one run only, and by orders of magnitude."
)
WEIGHT_NOTES = (
    "A weight says how a method mixes the kernels, not how important they are: read it beside the "
    "alignment, the share of the kernel's own leading structure that the consensus captures. For "
    "SimpleMKKM a large weight means little agreement with the consensus, in that Tr(K_p H H^T) is "
    "small; the alignment is relative to what the kernel has to give, and need not order alike. "
    "For AgreementKKM it is large if a view agrees with the others, and zero if it was set "
    "aside.",
    "Weights of different methods are not on one scale: some enter squared, some sum to one, some "
    "have squares that sum to one.",
)


def solve_seconds(run: Run) -> dict[str, dict[str, float]]:
    """Return the median seconds of a solve with the default setting.

    Parameters
    ----------
    run : Run
        Of a benchmark.

    Returns
    -------
    dict of str to dict of str to float
        By data set and method; what did not run is missing.
    """
    times: dict[str, dict[str, float]] = {dataset: {} for dataset in run.datasets}
    for (dataset, method), entry in run.entries.items():
        if (seconds := _seconds(entry.rows)) is not None:
            times[dataset][method] = seconds
    return times


def timed_methods(run: Run) -> list[str]:
    """Return the methods that have a default setting to time: no choice of the true classes."""
    timed = {name for (_, name), entry in run.entries.items() if not entry.oracle}
    return [method for method in run.methods if method in timed]


def time_table(run: Run) -> Table:
    """Return the table of solve times with default settings, and their ratios to avg-kkm.

    Parameters
    ----------
    run : Run
        Of a benchmark.

    Returns
    -------
    Table
        A block of seconds and one of ratios, data sets by methods; failures in words.
    """
    methods = timed_methods(run)
    problems: dict[str, str] = {}  # sentence -> mark
    seconds, ratios = [], []
    for dataset, times in solve_seconds(run).items():
        label, reference = run.label(dataset), times.get(REFERENCE)
        line, ratio_line = [], []
        for method in methods:
            if method in times:
                line.append(_three_digits(times[method]))
                ratio_line.append(_three_digits(times[method] / reference if reference else None))
                continue
            word, problem = missing_time(run.entry(dataset, method))
            place = f"{label}, {method}: " if problem != NOT_RUN else ""
            mark = problems.setdefault(place + problem, str(len(problems) + 1))
            line.append(Cell(None, text=word, mark=mark))
            ratio_line.append(Cell(None))
        seconds.append((label, *line))
        ratios.append((label, *ratio_line))
    notes = (TIME_NOTE, *_circumstances(run.rows()), *run.caveat_notes())
    return Table(
        f"times{run.suffix}",
        f"Solve times{run.ending}",
        ("data set", *methods),
        (("Seconds",), *seconds, (f"Times {REFERENCE}",), *ratios),
        (*notes, *(f"[{mark}] {sentence}" for sentence, mark in problems.items())),
        picture_notes=notes,
    )


def kernel_numbers(run: Run, dataset: str, name: str) -> dict[str, list[Number]]:
    """Return by method the "weights" or "alignments" of each kernel, None where one is missing."""
    n_kernels = len(kernel_names(run, dataset))
    return {m: _numbers(run.entry(dataset, m).rows, name, n_kernels) for m in run.methods}


def kernel_names(run: Run, dataset: str) -> list[str]:
    """Return the names of the kernels of a data set, of which solves were recorded."""
    entries = (run.entry(dataset, method) for method in run.methods)
    return next(entry.rows[0]["kernel_names"] for entry in entries if entry.rows)


def weight_table(run: Run) -> Table:
    """Return the kernel weights of each method with its default setting, beside the alignments.

    Parameters
    ----------
    run : Run
        What was recorded of the solves: one of the solves of `Results`. Of refits on parts of the
        samples the first stands for all; where several were recorded, weights are means with
        deviations.

    Returns
    -------
    Table
        A block for each data set, a row for each kernel, and for each method a column of weights
        and one of alignments.
    """
    lines: list[tuple] = []
    for dataset in run.datasets:
        lines.append((run.label(dataset),))
        weights, alignments = (kernel_numbers(run, dataset, name) for name in SHOWN_TOGETHER)
        for p, name in enumerate(kernel_names(run, dataset)):
            pairs = ((weights[method][p], alignments[method][p]) for method in run.methods)
            lines.append((name, *(Cell(*number) for pair in pairs for number in pair)))
    columns = [f"{method}{what}" for method in run.methods for what in ("", ": alignment")]
    return Table(
        f"weights{run.suffix}",
        f"Kernel weights and alignments, default settings{run.ending}",
        ("kernel", *columns),
        tuple(lines),
        (*WEIGHT_NOTES, *run.caveat_notes()),
        digits=3,
    )


def settings_table(run: Run) -> Table:
    """Return which settings were chosen, and of how many, for methods that have a choice.

    Parameters
    ----------
    run : Run
        Of a benchmark.

    Returns
    -------
    Table
        A row for each data set and each method of which more than one setting was tried.
    """
    columns = ["method", "tried", "failed"]
    columns += [f"oracle, {TITLES[score]}" for score in SCORES] + ["default", "stable"]
    blocks: dict[str, list[tuple]] = {}
    for (dataset, method), entry in run.entries.items():
        if len(entry.settings) == 1:
            continue
        failed = entry.settings - {row["parameters"] for row in entry.rows if row["status"] == "ok"}
        names = [entry.setting(score, "oracle") for score in SCORES]
        for selection in ("default", "stable"):
            names.append(None if entry.oracle else entry.setting("acc", selection))
        counts = [Cell(float(n), text=str(n)) for n in (len(entry.settings), len(failed))]
        cells = [*counts, *(Cell(None, text=_setting(name)) for name in names)]
        blocks.setdefault(dataset, [(run.label(dataset),)]).append((method, *cells))
    notes = (
        "The oracle's settings are chosen by the true classes, the stable one without them. "
        "Methods that are not listed had one setting, and nothing to choose.",
        *run.names.notes(blocks),
    )
    lines = tuple(line for block in blocks.values() for line in block)
    title = f"Settings tried and chosen{run.ending}"
    return Table(f"settings{run.suffix}", title, tuple(columns), lines, notes)


def _seconds(rows: Sequence[Row]) -> float | None:
    """Return the median seconds of one method's default setting on one data set."""
    timed = [row for row in rows if row["status"] == "ok" and not row.get("oracle")]
    timed = [row for row in timed if is_default(row) and row.get("solve_seconds") is not None]
    repetitions = [row for row in timed if row["repetition"] is not None]
    return median(row["solve_seconds"] for row in repetitions or timed) if timed else None


def missing_time(entry: Entry) -> tuple[str, str]:
    """Return why a method has no time: in a word or two, and in full."""
    failed = [row for row in entry.rows if row["status"] != "ok" and is_default(row)]
    if failed:
        return in_words(min(failed, key=lambda row: row["status"])), reason(failed)
    return "-", "the default setting was not run" if entry.rows else NOT_RUN


def _three_digits(number: float | None) -> Cell:
    """Return a cell that shows three digits of a number."""
    return Cell(number, text="" if number is None else f"{number:.3g}")


def _circumstances(rows: Sequence[Row]) -> list[str]:
    """Say on what machines and how many threads the times were taken."""
    machines = sorted({str(row["machine"]) for row in rows if row.get("machine")})
    threads = sorted({int(row["threads"]) for row in rows if row.get("threads") is not None})
    notes = [f"Machine: {machine}." for machine in machines]
    if threads:
        notes.append(f"Threads: {', '.join(map(str, threads))}.")
    return notes


def _numbers(solves: Sequence[Row], name: str, n_kernels: int) -> list[Number]:
    """Return mean and deviation of what one method's solves gave each kernel."""
    complete = [
        s for s in solves if all(_is_complete(s.get(each), n_kernels) for each in SHOWN_TOGETHER)
    ]
    if not complete:
        return [(None, None)] * n_kernels
    by_kernel = zip(*(solve[name] for solve in complete), strict=True)
    return [mean_and_deviation(values) for values in by_kernel]


def _is_complete(values: list | None, n_kernels: int) -> bool:
    """Return whether there is a number for every kernel."""
    return values is not None and len(values) == n_kernels and None not in values


def _setting(parameters: str | None) -> str:
    """Return a setting for a cell."""
    if parameters is None:
        return "-"
    return "defaults" if parameters == DEFAULT else parameters.strip("{}").replace('"', "")
