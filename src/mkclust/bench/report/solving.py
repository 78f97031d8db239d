"""Parts of a benchmark's report on the solves: weights, run times, objectives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from mkclust.bench.report import figure as page
from mkclust.bench.report.curves import Curve, draw_objectives
from mkclust.bench.report.dots import Dot, Panel, draw_dots, draw_ratios
from mkclust.bench.report.maps import draw_weights
from mkclust.bench.report.sections import Picture, Section, file_name
from mkclust.bench.tables import (
    Results,
    Row,
    Run,
    Table,
    solve_seconds,
    time_table,
    weight_table,
)
from mkclust.bench.tables.formats import escape
from mkclust.bench.tables.solves import (
    REFERENCE,
    SHOWN_TOGETHER,
    WEIGHT_NOTES,
    kernel_names,
    kernel_numbers,
    missing_time,
    timed_methods,
)

FIRST = "simplemkkm"  # the method whose objectives the paper draws
NO_SOLVES = "No solves were recorded beside the rows, so that there is nothing to show."
NO_STEPS = "No solve that was recorded took steps whose objective could be shown."


def time_section(results: Results) -> Section:
    """Return the seconds of a solve and their ratios to the average kernel's."""
    tables, pictures = [], []
    for run in results.runs.values():
        table = time_table(run)
        tables.append(table)
        ratios = _ratios(run)
        panels = [_time_panel(run, *pair, ratios) for pair in solve_seconds(run).items()]
        if any(dot.value is not None for panel in panels for dot in panel.dots):
            title = f"Seconds of a solve, default settings{run.ending}"
            figure = draw_dots(panels, title=title, scale="seconds, logarithmic",
                               notes=table.picture_notes, logarithmic=True)  # fmt: skip
            pictures.append(Picture(table.name, title, figure))
        if any(ratios.values()):
            title = f"Solve times relative to {REFERENCE}, default settings{run.ending}"
            reading = "Dots are data sets; the bar and the first number are their median."
            figure = draw_ratios(ratios, title=title, scale=f"times {REFERENCE}, logarithmic",
                                 notes=[reading, *table.picture_notes])  # fmt: skip
            pictures.append(Picture(f"time-ratios{run.suffix}", title, figure))
    return Section("Run times", (), tuple(tables), (), tuple(pictures))


def weight_section(results: Results) -> Section:
    """Return the weights of the kernels on each data set, never without the alignments."""
    run = _largest(results.solves, lambda solve: bool(solve.get("kernel_names")))
    if run is None:
        return Section("Kernel weights", (NO_SOLVES,))
    tables: list[Table] = []
    pictures = []
    for dataset in run.datasets:
        part, label = run.on(dataset), run.label(dataset)
        name = file_name(f"weights {dataset}", [other.name for other in tables])
        table = weight_table(part)
        table = replace(table, name=name, title=f"{table.title}: {label}")
        tables.append(table)
        kernels = kernel_names(part, dataset)
        weights, alignments = (_means(part, dataset, name) for name in SHOWN_TOGETHER)
        title = f"{label}: weights and alignments of the kernels, default settings{run.ending}"
        figure = draw_weights(kernels, part.methods, weights, alignments, title=title,
                              notes=part.caveat_notes())  # fmt: skip
        pictures.append(Picture(name, title, figure))
    words = tuple(map(escape, WEIGHT_NOTES))
    return Section("Kernel weights", words, (), tuple(tables), tuple(pictures))


def objective_section(results: Results) -> Section:
    """Return objectives against iterations: SimpleMKKM on all data sets, then the others."""
    run = _largest(results.solves, lambda solve: len(solve.get("history") or ()) > 1)
    if run is None:
        return Section("Objectives", (NO_STEPS if results.n_solves else NO_SOLVES,))
    ending = f"; default settings{run.ending}"
    curves: dict[str, list[Curve]] = {dataset: [] for dataset in run.datasets}
    first: dict[str, Curve] = {}
    for (dataset, method), entry in run.entries.items():
        if method == FIRST:
            first[dataset] = _curve(run.label(dataset), entry.rows)
        else:
            curves[dataset].append(_curve(method, entry.rows))
    pictures = []
    if first:
        title = f"Objective of {FIRST} by iteration{ending}"
        notes = run.names.notes(first)
        figure = draw_objectives(list(first.values()), title=title, notes=notes)
        pictures.append(Picture(f"objective-{FIRST}", title, figure))
    for dataset, others in curves.items():
        if others:
            title = f"{run.label(dataset)}: objectives of the other methods by iteration{ending}"
            figure = draw_objectives(others, title=title, notes=run.names.notes([dataset]))
            names = [picture.name for picture in pictures]
            pictures.append(Picture(file_name(f"objective {dataset}", names), title, figure))
    words = (
        "Each method has its own objective, so that values of two methods do not compare. The last "
        "value is that of what is returned: of methods that may go round in circles, the best "
        "iterate."
    )
    return Section("Objectives", (words,), pictures=tuple(pictures))


def _largest(runs: Mapping[float, Run], belongs: Callable[[Row], bool]) -> Run | None:
    """Return the run on the largest share of the samples that has such solves, and only these."""
    parts = (run.only(belongs) for run in runs.values())
    return next((run for run in parts if run.entries), None)


def _ratios(run: Run) -> dict[str, dict[str, float]]:
    """Return how many times the reference's time each other method takes, by data set."""
    ratios: dict[str, dict[str, float]] = {
        method: {} for method in timed_methods(run) if method != REFERENCE
    }
    for dataset, times in solve_seconds(run).items():
        if reference := times.pop(REFERENCE, None):
            for method, seconds in times.items():
                if seconds:
                    ratios[method][dataset] = seconds / reference
    return ratios


def _time_panel(
    run: Run, dataset: str, times: Mapping[str, float], ratios: Mapping[str, Mapping[str, float]]
) -> Panel:
    """Return the seconds of the methods on one data set."""
    dots = []
    for method in timed_methods(run):
        # A time too short to be measured has no place on a logarithmic scale.
        seconds = times.get(method) or None
        if method in times:
            ratio = ratios.get(method, {}).get(dataset)
            words = _seconds(times[method]) + (f"  {page.as_ratio(ratio)}" if ratio else "")
        else:
            _, words = missing_time(run.entry(dataset, method))
        dots.append(Dot(method, seconds, words=words))
    return Panel(run.label(dataset), tuple(dots))


def _seconds(value: float) -> str:
    """Return a time with its unit: 4.1 ms, 0.32 s, 540 s."""
    return f"{1000 * value:.2g} ms" if value < 0.0995 else f"{float(f'{value:.3g}'):,g} s"


def _means(run: Run, dataset: str, name: str) -> np.ndarray:
    """Return the weights or the alignments, kernels by methods, NaN where there is none."""
    numbers = kernel_numbers(run, dataset, name).values()
    return np.array([[mean for mean, _ in column] for column in numbers], dtype=float).T


def _curve(title: str, solves: Sequence[Row]) -> Curve:
    """Return the objective of the first repetition."""
    solve = min(solves, key=lambda each: -1 if each["repetition"] is None else each["repetition"])
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
