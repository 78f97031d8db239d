"""Objectives against iterations, a small panel for each solve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mkclust.bench.report import figure as page
from mkclust.plots import BLUE, FAINT, INK, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEW = 40  # more values than this are a line without dots


@dataclass(frozen=True, eq=False)
class Curve:
    """The objective of one solve.

    Attributes
    ----------
    title : str
        What was solved.
    history : sequence of float
        Values of the objective, one an iteration.
    lower_bounds : sequence of float or None
        Certified lower bounds on the minimum, one for each value; NaN where there is none.
    remark : str
        Written beside the title: the gap, or that the solve did not converge.
    """

    title: str
    history: Sequence[float]
    lower_bounds: Sequence[float] | None = None
    remark: str = ""


def draw_objectives(curves: Sequence[Curve], *, title: str, notes: Sequence[str] = ()) -> Figure:
    """Draw objectives against iterations, a panel each, every panel with its own scales."""
    certified = any(curve.lower_bounds is not None for curve in curves)
    extra = 0.6 + 0.3 * certified + page.note_height(notes, page.panel_width(len(curves)))
    figure, axes = page.panel_grid(len(curves), 2.3, extra)
    columns = min(page.COLUMNS, len(curves))
    for i, (ax, curve) in enumerate(zip(axes, curves, strict=True)):
        _draw_curve(ax, curve)
        ax.set_ylabel("objective" if i % columns == 0 else "", fontsize=9, color=INK)
        ax.set_xlabel("iteration" if i >= len(curves) - columns else "", fontsize=9, color=INK)
    page.add_heading(figure, title, notes, _marks() if certified else ())
    return figure


def _draw_curve(ax: Axes, curve: Curve) -> None:
    """Draw one objective and, where there are any, its lower bounds."""
    from matplotlib.ticker import MaxNLocator

    history = np.array(curve.history, dtype=float)
    steps = np.arange(len(history))
    marks: dict[str, Any] = {"linewidth": 1.6}
    if len(history) <= FEW:
        marks |= {"marker": "o", "markersize": 3.5}
    ax.plot(steps, history, color=BLUE, **marks)
    if curve.lower_bounds is not None:
        bounds = np.array(curve.lower_bounds, dtype=float)
        ax.plot(steps[: len(bounds)], bounds, color=ORANGE, linestyle="--", linewidth=1.6)
    page.simplify_frame(ax)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
    ax.yaxis.set_major_locator(MaxNLocator(nbins=5))
    margin = 0.04 * (len(history) - 1) or 0.5
    ax.set_xlim(-margin, len(history) - 1 + margin)
    ax.grid(axis="y", color=page.GRID, linewidth=0.7)
    page.panel_title(ax, curve.title)
    ax.text(1.0, 1.02, curve.remark, transform=ax.transAxes, ha="right", va="bottom", fontsize=8,
            color=INK, parse_math=False)  # fmt: skip
    ax.yaxis.get_offset_text().set(fontsize=7.5, color=FAINT)


def _marks() -> list[Any]:
    """Return the two lines, for a legend."""
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=BLUE, marker="o", markersize=3.5, label="objective"),
        Line2D([], [], color=ORANGE, linestyle="--", label="certified lower bound"),
    ]
