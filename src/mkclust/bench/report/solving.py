"""Parts of a benchmark's report on the solves: weights, run times, objectives."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from mkclust.bench.report import figure as page
from mkclust.bench.report.curves import Curve, draw_objectives
from mkclust.bench.report.dots import Dot, Panel, draw_dots, draw_ratios
from mkclust.bench.report.maps import draw_weights
from mkclust.bench.report.sections import Picture, Section, file_name, why
from mkclust.bench.rows import is_default
from mkclust.bench.tables import Row, Table, weight_table
from mkclust.bench.tables.formats import plain
from mkclust.bench.tables.outcomes import dataset_labels, group, resamples
from mkclust.bench.tables.scores import caveat_notes, repeated
from mkclust.bench.tables.times import REFERENCE, time_table
from mkclust.bench.tables.weights import NOTES

FIRST = "simplemkkm"  # the method whose objectives the paper draws
NO_SOLVES = "No solves were recorded beside the rows, so that there is nothing to show."
NO_STEPS = "No solve that was recorded took steps whose objective could be shown."


def time_section(rows: Sequence[Row]) -> Section:
    """Return the seconds of a solve and their ratios to the average kernel's."""
    tables, pictures = [], []
    for resample in resamples(rows):
        table = time_table(rows, resample)
        tables.append(table)
        drawn, ratios = _times(table)
        notes = [note for note in table.notes if not note.startswith("[")]
        if any(dot.value is not None for panel in drawn for dot in panel.dots):
            title = f"Seconds of a solve, default settings{repeated(resample)}"
            figure = draw_dots(drawn, title=title, scale="seconds, logarithmic", notes=notes,
                               logarithmic=True)  # fmt: skip
            pictures.append(Picture(table.name, title, figure))
        if any(ratios.values()):
            title = f"Solve times relative to {REFERENCE}, default settings{repeated(resample)}"
            reading = "Dots are data sets; the bar and the first number are their median."
            figure = draw_ratios(ratios, title=title, scale=f"times {REFERENCE}, logarithmic",
                                 notes=[reading, *notes])  # fmt: skip
            name = table.name.replace("times", "time-ratios", 1)
            pictures.append(Picture(name, title, figure))
    return Section("Run times", (), tuple(tables), (), tuple(pictures))


def weight_section(solves: Sequence[Row]) -> Section:
    """Return the weights of the kernels on each data set, never without the alignments."""
    known = [_with_whole_weights(s) for s in _of_defaults(solves) if s.get("kernel_names")]
    if not known:
        return Section("Kernel weights", (NO_SOLVES,))
    grouped, resample = group(known)
    labels = dataset_labels(known)
    tables: list[Table] = []
    pictures = []
    for dataset, own in grouped.items():
        label = labels[dataset]
        table = weight_table([solve for its in own.values() for solve in its], resample)
        name = file_name(f"weights {dataset}", [other.name for other in tables])
        table = replace(table, name=name, title=f"{table.title}: {label}")
        tables.append(table)
        kernels, methods, weights, alignments = _weights(table)
        title = f"{label}: weights and alignments of the kernels, default settings"
        title += repeated(resample)
        notes = caveat_notes(solve for its in own.values() for solve in its)
        figure = draw_weights(kernels, methods, weights, alignments, title=title, notes=notes)
        pictures.append(Picture(name, title, figure))
    words = tuple(map(plain, NOTES))
    return Section("Kernel weights", words, (), tuple(tables), tuple(pictures))


def objective_section(solves: Sequence[Row]) -> Section:
    """Return objectives against iterations: SimpleMKKM on all data sets, then the others."""
    known = [solve for solve in _of_defaults(solves) if len(solve.get("history") or ()) > 1]
    if not known:
        return Section("Objectives", (NO_STEPS if solves else NO_SOLVES,))
    grouped, resample = group(known)
    labels = dataset_labels(known)
    ending = f"; default settings{repeated(resample)}"
    first = [
        _curve(labels[dataset], own[FIRST]) for dataset, own in grouped.items() if FIRST in own
    ]
    pictures = []
    if first:
        title = f"Objective of {FIRST} by iteration{ending}"
        notes = caveat_notes(solve for own in grouped.values() for solve in own.get(FIRST, ()))
        figure = draw_objectives(first, title=title, notes=notes)
        pictures.append(Picture(f"objective-{FIRST}", title, figure))
    for dataset, own in grouped.items():
        others = [_curve(method, its) for method, its in own.items() if method != FIRST]
        if others:
            title = f"{labels[dataset]}: objectives of the other methods by iteration{ending}"
            notes = caveat_notes(solve for its in own.values() for solve in its)
            figure = draw_objectives(others, title=title, notes=notes)
            taken = [picture.name for picture in pictures]
            pictures.append(Picture(file_name(f"objective {dataset}", taken), title, figure))
    words = (
        "Each method has its own objective, so that values of two methods do not compare. The last "
        "value is that of what is returned: of methods that may go round in circles, the best "
        "iterate."
    )
    return Section("Objectives", (words,), pictures=tuple(pictures))


def _of_defaults(solves: Iterable[Row]) -> list[Row]:
    """Return the solves of default settings; what the true classes choose has none."""
    return [solve for solve in solves if is_default(solve) and not solve.get("oracle")]


def _with_whole_weights(solve: Row) -> Row:
    """Return a solve without weights or alignments of which some are not numbers."""
    torn = [what for what in ("weights", "alignments") if None in (solve.get(what) or ())]
    return solve | dict.fromkeys(torn)


def _times(table: Table) -> tuple[list[Panel], dict[str, dict[str, float]]]:
    """Return a panel of seconds for each data set, and the ratios by method and data set."""
    cells = table.cells()
    methods = [column for column in table.columns[1:] if column != REFERENCE]
    ratios: dict[str, dict[str, float]] = {method: {} for method in methods}
    for block, row, column, cell in cells:
        if block != "Seconds" and column in ratios and cell.mean:
            ratios[column][row] = cell.mean
    lines: dict[str, list[Dot]] = {}
    for block, row, column, cell in cells:
        if block != "Seconds":
            continue
        words = why(table, cell.mark, f"{row}, {column}: ")
        if cell.mean is not None:
            ratio = ratios.get(column, {}).get(row)
            words = _seconds(cell.mean) + (f"  {page.as_ratio(ratio)}" if ratio else "")
        # A time too short to be measured has no place on a logarithmic scale.
        value = cell.mean if cell.mean and cell.mean > 0 else None
        lines.setdefault(row, []).append(Dot(column, value, words=words))
    return [Panel(row, tuple(dots)) for row, dots in lines.items()], ratios


def _seconds(value: float) -> str:
    """Return a time with its unit: 4.1 ms, 0.32 s, 540 s."""
    return f"{1000 * value:.2g} ms" if value < 0.0995 else f"{float(f'{value:.3g}'):,g} s"


def _weights(table: Table) -> tuple[list[str], list[str], np.ndarray, np.ndarray]:
    """Return kernels, methods, weights and alignments of a table of one data set."""
    rows = [row for row in table.rows if len(row) > 1]
    numbers = np.array(
        [[math.nan if cell.mean is None else cell.mean for cell in cells] for _, *cells in rows]
    )
    return [row[0] for row in rows], list(table.columns[1::2]), numbers[:, ::2], numbers[:, 1::2]


def _curve(title: str, solves: Sequence[Row]) -> Curve:
    """Return the objective of the first repetition."""
    solve = min(solves, key=lambda own: -1 if own["repetition"] is None else own["repetition"])
    history, bounds = _numbers(solve["history"]), solve.get("lower_bounds")
    remarks = []
    if solve.get("gap") is not None:
        remarks.append(f"relative gap {solve['gap']:.1e}" if solve["gap"] else "relative gap 0")
    if solve.get("converged") is False:
        remarks.append("not converged")
    lower = _numbers(bounds) if bounds and len(bounds) == len(history) else None
    return Curve(title, history, lower, ", ".join(remarks))


def _numbers(values: Iterable[float | None]) -> list[float]:
    """Return numbers as they were recorded, NaN where there was none."""
    return [math.nan if value is None else float(value) for value in values]
