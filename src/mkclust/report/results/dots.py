"""Plots of numbers by method: scores with deviations, ranks, solve times and their ratios."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from mkclust.plots import BLUE, FAINT, INK, ORANGE
from mkclust.report.dots import Panel
from mkclust.report.fit.charts.style import axis, color, margins, short, symbol
from mkclust.report.fit.words import counted, listed
from mkclust.report.page import as_ratio
from mkclust.report.web import plot
from mkclust.report.web.plot import plot_text
from mkclust.tables import Ranking

STRIPE = "#f6f6f6"
# Pixels that a method takes within a data set's row, and a row takes at least.
OF_A_METHOD, OF_A_ROW = 4, 26
TALLEST = 2400
DECADES: dict[str, Any] = {"type": "log", "dtick": 1, "tickformat": "~g"}
LEGEND = {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0, "itemsizing": "constant"}
READING = (
    "Click a method in the legend to hide it, twice to see it alone. Filled: not significantly "
    "different from the best of the data set; hollow: below it, or nothing to compare."
)


def score_plot(
    name: str, title: str, scale: str, panels: Sequence[Panel], places: Mapping[str, int]
) -> str:
    """Draw scores, a row for each data set and a dot with its deviation for each method.

    Parameters
    ----------
    name : str
        Its place in the page.
    title : str
        What is drawn.
    scale : str
        What the scale measures.
    panels : sequence of Panel
        The data sets from top to bottom, with the scores of the methods.
    places : mapping of str to int
        The place of each method among those of the page, which gives it its color.

    Returns
    -------
    str
    """
    data = _traces(panels, places)
    theirs = [
        (
            dot.reference,
            row + _offset(at, len(panel.dots)),
            f"{plot_text(panel.title)}<br>{plot_text(dot.label)}",
        )
        for row, panel in enumerate(panels)
        for at, dot in enumerate(panel.dots)
        if dot.reference is not None
    ]
    shown = ""
    if theirs:
        x, y, words = zip(*theirs, strict=True)
        data.append(
            {
                "type": "scatter", "mode": "markers", "name": "the paper's figures", "x": x, "y": y,
                "marker": {"symbol": "diamond-tall-open", "size": 9, "color": ORANGE},
                "text": words, "visible": "legendonly",
                "hovertemplate": "%{text}<br>the paper's figure %{x:.1f}<extra></extra>",
            }
        )  # fmt: skip
        shown = "The paper's figures are shown on a click in the legend."
    layout = _layout(panels, axis(scale))
    return plot(
        name, data, layout, label=f"{title}, as dots",
        summary=" ".join(part for part in (_say_best(panels), READING, shown) if part),
        height=_height(panels),
    )  # fmt: skip


def rank_plot(name: str, title: str, ranking: Ranking) -> str:
    """Draw average ranks, with bars that meet where two methods cannot be told apart.

    Parameters
    ----------
    name, title : str
        Its place in the page, and what is drawn.
    ranking : Ranking
        Methods from the best average rank to the worst.

    Returns
    -------
    str
    """
    ranks, count = ranking.ranks.tolist(), len(ranking.methods)
    half = ranking.critical_difference / 2
    leading = [rank <= ranks[0] + ranking.critical_difference for rank in ranks]
    names = {"tickvals": list(range(count)), "ticktext": [short(m) for m in ranking.methods]}
    dots = {
        "type": "scatter", "mode": "markers", "x": ranks, "y": list(range(count)),
        "text": [plot_text(method) for method in ranking.methods],
        "hovertemplate": "%{text}<br>average rank %{x:.2f}<extra></extra>",
        "marker": {
            "size": 10, "color": BLUE,
            "symbol": ["circle" if own else "circle-open" for own in leading],
        },
        "error_x": {"type": "constant", "value": half, "color": ORANGE, "thickness": 3,
                    "width": 0},
    }  # fmt: skip
    layout = {
        "margin": margins(),
        "xaxis": axis("average rank, 1 is best", dtick=1),
        "yaxis": axis("", range=[count - 0.5, -0.5], showgrid=False, **names),
    }
    summary = (
        f"Best: {ranking.methods[0]}, at {ranks[0]:.2f}. Bars are as long as the critical "
        f"difference, {ranking.critical_difference:.2f}: two methods whose bars do not meet are "
        "significantly different. Filled: not told apart from the best."
    )
    return plot(
        name, [dots], layout, label=f"{title}, as dots", summary=summary, height=26 * count + 80
    )  # fmt: skip


def time_plot(name: str, title: str, panels: Sequence[Panel], places: Mapping[str, int]) -> str:
    """Draw seconds, a row for each data set and a dot for each method.

    Parameters
    ----------
    name, title : str
        Its place in the page, and what is drawn.
    panels : sequence of Panel
        The data sets from top to bottom, with the seconds of the methods.
    places : mapping of str to int
        The place of each method among those of the page, which gives it its color.

    Returns
    -------
    str
    """
    scale = axis("seconds of a solve, logarithmic", **DECADES)
    known = [(dot.value, dot.label, panel.title) for panel in panels for dot in panel.dots]
    seconds = [found for found in known if found[0] is not None]
    (low, fast, _), (high, slow, on) = min(seconds), max(seconds)
    summary = (
        f"From {low:.2g} seconds ({fast}) to {high:.3g} ({slow} on {on}). Click a method in the "
        "legend to hide it, twice to see it alone."
    )
    return plot(
        name, _traces(panels, places, filled=True), _layout(panels, scale),
        label=f"{title}, as dots", summary=summary, height=_height(panels),
    )  # fmt: skip


def ratio_plot(
    name: str, title: str, reference: str, ratios: Mapping[str, Mapping[str, float]]
) -> str:
    """Draw how many times a reference each method takes, a dot for each data set.

    Parameters
    ----------
    name, title : str
        Its place in the page, and what is drawn.
    reference : str
        The method that the others are compared with.
    ratios : mapping of str to mapping of str to float
        From method to data set to ratio, all positive.

    Returns
    -------
    str
    """
    known = {method: values for method, values in ratios.items() if values}
    middle = {method: median(values.values()) for method, values in known.items()}
    dots = [
        (ratio, row, f"{plot_text(method)}<br>{plot_text(dataset)}: {as_ratio(ratio)}")
        for row, (method, values) in enumerate(known.items())
        for dataset, ratio in values.items()
    ]
    x, y, words = zip(*dots, strict=True)
    data: list[dict[str, Any]] = [
        {
            "type": "scatter", "mode": "markers", "x": x, "y": y, "text": words,
            "name": "a data set", "marker": {"color": FAINT, "size": 8, "opacity": 0.6},
            "hovertemplate": "%{text}<extra></extra>",
        },
        {
            "type": "scatter", "mode": "markers", "name": "the median",
            "x": list(middle.values()), "y": list(range(len(middle))),
            "text": [f"{plot_text(m)}<br>median {as_ratio(r)}" for m, r in middle.items()],
            "marker": {"symbol": "line-ns", "size": 18, "line": {"color": BLUE, "width": 4}},
            "hovertemplate": "%{text}<extra></extra>",
        },
    ]  # fmt: skip
    layout = {
        "margin": margins(),
        "legend": LEGEND,
        "xaxis": axis(f"times {reference}, logarithmic", **DECADES),
        "yaxis": axis("", range=[len(known) - 0.5, -0.5], showgrid=False,
                      tickvals=list(range(len(known))), ticktext=[short(m) for m in known]),
        "shapes": [{"type": "line", "x0": 1, "x1": 1, "y0": 0, "y1": 1, "yref": "paper",
                    "line": {"color": INK, "width": 1, "dash": "dot"}}],
    }  # fmt: skip
    order = sorted(middle, key=lambda method: middle[method])
    summary = "Medians over the data sets: " + listed(
        [f"{method} {as_ratio(middle[method])}" for method in order], most=20
    )
    return plot(
        name, data, layout, label=f"{title}, as dots", summary=f"{summary}.",
        height=28 * len(known) + 110,
    )  # fmt: skip


def _traces(
    panels: Sequence[Panel], places: Mapping[str, int], *, filled: bool = False
) -> list[dict[str, Any]]:
    """Return a trace for each method, its dots apart from those of others in the same row."""
    methods = [dot.label for dot in panels[0].dots]
    data = []
    for at, method in enumerate(methods):
        found = [(row, panel.title, panel.dots[at]) for row, panel in enumerate(panels)]
        known = [own for own in found if own[2].value is not None]
        if not known:
            continue
        # The first dot is nowhere: the legend takes its shape from it.
        shape, shade = symbol(places[method]), color(places[method])
        dots: dict[str, Any] = {
            "type": "scatter", "mode": "markers", "name": plot_text(method),
            "x": [None, *(dot.value for _, _, dot in known)],
            "y": [None, *(row + _offset(at, len(methods)) for row, _, _ in known)],
            "text": ["", *(f"{plot_text(label)}<br>{plot_text(method)} {plot_text(dot.words)}"
                           for _, label, dot in known)],
            "hovertemplate": "%{text}<extra></extra>",
            "marker": {
                "color": shade, "size": 8,
                "symbol": [shape, *(shape if filled or dot.leading else f"{shape}-open"
                                    for _, _, dot in known)],
            },
        }  # fmt: skip
        deviations = [dot.deviation or 0 for _, _, dot in known]
        if any(deviations):
            dots["error_x"] = {
                "type": "data", "array": [0, *deviations], "thickness": 1, "width": 0,
                "color": shade,
            }  # fmt: skip
        data.append(dots)
    return data


def _layout(panels: Sequence[Panel], scale: dict[str, Any]) -> dict[str, Any]:
    """Return a row for each data set, every other one on a stripe."""
    stripes = [
        {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": row - 0.5, "y1": row + 0.5,
         "fillcolor": STRIPE, "line": {"width": 0}, "layer": "below"}
        for row in range(0, len(panels), 2)
    ]  # fmt: skip
    names = {
        "tickvals": list(range(len(panels))),
        "ticktext": [short(panel.title, 26) for panel in panels],
    }
    return {
        "margin": margins(),
        "legend": LEGEND,
        "showlegend": True,
        "hovermode": "closest",
        "xaxis": scale,
        "yaxis": axis("", range=[len(panels) - 0.5, -0.5], showgrid=False, **names),
        "shapes": stripes,
    }


def _offset(at: int, count: int) -> float:
    """Return how far a method's dots are from the middle of their row, in rows."""
    return 0.84 * ((at + 0.5) / count - 0.5)


def _height(panels: Sequence[Panel]) -> int:
    """Return the pixels that rows, legend and scale need."""
    row = max(OF_A_ROW, OF_A_METHOD * len(panels[0].dots) + 6)
    return int(np.clip(row * len(panels) + 150, 260, TALLEST))


def _say_best(panels: Sequence[Panel]) -> str:
    """Say which methods have the highest mean on how many data sets."""
    best: Counter[str] = Counter()
    for panel in panels:
        values = {dot.label: dot.value for dot in panel.dots if dot.value is not None}
        best.update(method for method, value in values.items() if value == max(values.values()))
    if not best:
        return "There are no scores."
    named = [f"{method} on {counted(times, 'data set')}" for method, times in best.most_common()]
    return f"Highest mean: {listed(named, most=8)}."
