"""Objectives by iteration: certified gaps, and how far each was from where it ended."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mkclust.report.fit.charts.style import axis, color, margins
from mkclust.report.fit.words import counted
from mkclust.report.web import number, paragraph, plot, subheading, table, text
from mkclust.report.web.plot import plot_text
from mkclust.tables import Row, dataset_labels
from mkclust.tables.outcomes import group
from mkclust.tables.rows import is_default

FIRST = "simplemkkm"  # the method that certifies how far from the optimum it is
# Values of a curve that are drawn; of longer ones as many, evenly spaced, the last among them.
MOST_VALUES = 60
DASHES = ("solid", "dash", "dot")  # for every ten lines another
LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}


class Course(NamedTuple):
    """The objective of one solve: its values, lower bounds on the optimum, and how it ended."""

    label: str
    values: np.ndarray
    bounds: np.ndarray | None
    gap: float | None
    converged: bool | None


def objective_parts(solves: Sequence[Row], places: Mapping[str, int]) -> Iterator[str]:
    """Yield the plots of objectives and their table.

    Parameters
    ----------
    solves : sequence of dict
        What was recorded of the solves.
    places : mapping of str to int
        The place of each method among those of the page, which gives it its color.

    Yields
    ------
    str
    """
    known = [
        solve
        for solve in solves
        if is_default(solve) and not solve.get("oracle") and len(solve.get("history") or ()) > 1
    ]
    if not known:
        return
    grouped, _ = group(known)
    labels = dataset_labels(known)
    courses = {
        labels[dataset]: [_course(method, its) for method, its in own.items()]
        for dataset, own in grouped.items()
    }
    if any(len(each.values) > MOST_VALUES for own in courses.values() for each in own):
        yield paragraph(
            f"Curves of more than {MOST_VALUES} values are drawn by {MOST_VALUES} of them, evenly "
            "spaced, the first and the last among them.",
            kind="quiet",
        )
    certified = {
        label: course
        for label, own in courses.items()
        for course in own
        if course.label == FIRST and course.bounds is not None
    }
    if certified:
        yield subheading(f"{FIRST}: certified gap on all data sets")
        yield _gap_plot(certified)
    yield subheading("All methods, on each data set")
    yield paragraph(
        "To share a scale, each objective is drawn by its distance from the value returned, above "
        "or below it, relative to that at the start. Curves begin at 1; the value returned itself, "
        "at distance zero, has no place on a logarithmic scale. All values are in the table."
    )
    for at, (label, own) in enumerate(courses.items()):
        yield from _distance_plot(f"objective-{at + 1}-plot", label, own, places)
    yield _objective_table(courses)


def _course(label: str, solves: Sequence[Row]) -> Course:
    """Return the objective of the first repetition."""
    solve = min(solves, key=lambda own: -1 if own["repetition"] is None else own["repetition"])
    values, bounds = _numbers(solve["history"]), _numbers(solve.get("lower_bounds") or ())
    matched = bounds if len(bounds) == len(values) else None
    return Course(label, values, matched, solve.get("gap"), solve.get("converged"))


def _numbers(values: Iterable[float | None]) -> np.ndarray:
    """Return numbers as they were recorded, NaN where there was none."""
    return np.array([math.nan if value is None else float(value) for value in values])


def _gap_plot(courses: dict[str, Course]) -> str:
    """Draw how far above its certified lower bound a method was at each iteration."""
    data, ends = [], []
    for at, (label, course) in enumerate(courses.items()):
        assert course.bounds is not None
        with np.errstate(divide="ignore", invalid="ignore"):
            gaps = (course.values - course.bounds) / np.abs(course.values)
        if course.gap is not None:
            gaps[-1] = course.gap
        ends.append(gaps[-1])
        # A gap of zero, which rounding makes, has no place on a logarithmic scale.
        data.append(_line(label, np.where(gaps > 0, gaps, np.nan), at, "gap %{y:.1e}"))
    layout = _layout(data, "relative gap to the certified bound")
    known = [end for end in ends if math.isfinite(end)]
    said = f" They end at {max(known):.1e} at most." if known else ""
    return plot(
        "objective-gap-plot", data, layout,
        label=f"Certified gap of {FIRST} by iteration, a line for each data set",
        summary=f"{counted(len(courses), 'data set')}, a line each.{said}", height=420,
    )  # fmt: skip


def _distance_plot(
    name: str, label: str, courses: Sequence[Course], places: Mapping[str, int]
) -> Iterator[str]:
    """Draw how far the objectives of one data set were from where they ended."""
    data, same = [], []
    for course in courses:
        way = course.values[0] - course.values[-1]
        if not way or not math.isfinite(way):
            same.append(course.label)
            continue
        distances = np.abs((course.values - course.values[-1]) / way)
        shown = np.where(distances > 0, distances, np.nan)
        data.append(_line(course.label, shown, places[course.label], "%{y:.2g}"))
    if not data:
        return
    unfinished = [course.label for course in courses if course.converged is False]
    said = [f"Not converged: {', '.join(unfinished)}." if unfinished else "All converged."]
    if same:
        said.append(f"Left out, since they end where they began: {', '.join(same)}.")
    yield subheading(f"{label}: all methods")
    yield plot(
        name, data, _layout(data, "distance from the end", range=[-6.3, 1]),
        label=f"{label}: objectives by iteration, relative to where they began",
        summary=" ".join(said), height=340,
    )  # fmt: skip


def _line(label: str, values: np.ndarray, at: int, says: str) -> dict[str, Any]:
    """Return one curve; a long one by some of its values."""
    steps = np.arange(len(values))
    if len(values) > MOST_VALUES:
        steps = np.unique(np.linspace(0, len(values) - 1, MOST_VALUES).round().astype(int))
    return {
        "type": "scatter", "mode": "lines+markers", "name": plot_text(label), "x": steps,
        "y": values[steps], "marker": {"size": 4},
        "line": {"color": color(at), "width": 1.6, "dash": DASHES[at // 10 % len(DASHES)]},
        "hovertemplate": f"{plot_text(label)}, iteration %{{x}}: {says}<extra></extra>",
    }  # fmt: skip


def _layout(data: Sequence[dict[str, Any]], measure: str, **more: Any) -> dict[str, Any]:
    """Return the layout of curves by iteration."""
    last = max(int(line["x"][-1]) for line in data)
    margin, every = 0.02 * last, -(-last // 12)
    return {
        "margin": margins(),
        "legend": LEGEND,
        "showlegend": True,
        "hovermode": "closest",
        "xaxis": axis("iteration", range=[-margin, last + margin], dtick=every),
        "yaxis": axis(measure, type="log", dtick=1, exponentformat="power") | more,
    }


def _objective_table(courses: dict[str, list[Course]]) -> str:
    """Return the table of objectives: where they began and ended, and what is certified."""
    rows = []
    for label, own in courses.items():
        for course in own:
            ended = {True: "yes", False: "no", None: "not known"}[course.converged]
            values = [number(float(v), ".6g") for v in (course.values[0], course.values[-1])]
            iterations = number(float(len(course.values) - 1), ".0f")
            gap = number(math.nan if course.gap is None else course.gap, ".1e")
            rows.append([text(label), text(course.label), *values, iterations, gap, text(ended)])
    heads = ["data set", "method", "first value", "value returned", "iterations", "relative gap"]
    return table([*heads, "converged"], rows, "Objectives, default settings")
