"""Dot plots of a report: scores and run times, a panel for each data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mkclust.bench.report import figure as page
from mkclust.plots import BLUE, FAINT, INK, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STRIPE = "#f5f5f5"


@dataclass(frozen=True)
class Dot:
    """One line of a panel: a method and its value.

    Attributes
    ----------
    label : str
        What the line is called; the same in all panels of a figure.
    value : float or None
        Where the dot is; None for a line that shows `words` alone.
    deviation : float or None
        Half the length of the bar through the dot.
    reference : float or None
        The published value, a hollow diamond.
    leading : bool
        Whether the dot is in color: not significantly different from the best.
    words : str
        Written beside the panel at the line; in the panel, where there is no value.
    """

    label: str
    value: float | None
    deviation: float | None = None
    reference: float | None = None
    leading: bool = False
    words: str = ""


@dataclass(frozen=True)
class Panel:
    """The lines of one data set under its title.

    Attributes
    ----------
    title : str
        Name of the data set, with what must be said about it.
    dots : tuple of Dot
        From top to bottom.
    """

    title: str
    dots: tuple[Dot, ...]


def draw_dots(
    panels: Sequence[Panel],
    *,
    title: str,
    scale: str,
    notes: Sequence[str] = (),
    logarithmic: bool = False,
    legend: Mapping[str, str] | None = None,
) -> Figure:
    """Draw a panel of dots for each data set, a line for each method.

    Every panel has its own scale. The legend says which of "leading", "other" and "reference" it
    explains, and how.
    """
    lines = max(len(panel.dots) for panel in panels)
    legend = dict(legend or {})
    extra = 0.6 + 0.3 * bool(legend) + page.note_height(notes, page.panel_width(len(panels)))
    figure, axes = page.panel_grid(len(panels), 0.235 * max(lines, 3) + 0.85, extra)
    columns = min(page.COLUMNS, len(panels))
    for i, (ax, panel) in enumerate(zip(axes, panels, strict=True)):
        _draw_panel(ax, panel, named=i % columns == 0, logarithmic=logarithmic)
        ax.set_xlabel(scale if i >= len(panels) - columns else "", fontsize=9, color=INK)
    page.add_heading(figure, title, notes, _marks(legend))
    return figure


def draw_ratios(
    ratios: Mapping[str, Mapping[str, float]], *, title: str, scale: str, notes: Sequence[str] = ()
) -> Figure:
    """Draw how many times a reference each method takes: a dot a data set, a bar at the median.

    Ratios are positive, by method, from top to bottom, and data set.
    """
    figure = page.new_page(9.0, 0.32 * max(len(ratios), 3) + 1.4 + page.note_height(notes, 9.0))
    ax = figure.subplots()
    for row, values in enumerate(ratios.values()):
        points = np.array(list(values.values()), dtype=float)
        if not points.size:
            continue
        ax.plot(points, np.full(len(points), row), "o", color=FAINT, alpha=0.6, markersize=5.5)
        middle = float(np.median(points))
        ax.plot([middle, middle], [row - 0.32, row + 0.32], color=BLUE, linewidth=3)
        span = (
            f"{page.as_ratio(points.min())} to {page.as_ratio(points.max())}"
            if len(points) > 1
            else ""
        )
        _write_beside(ax, row, f"{page.as_ratio(middle)}   {span}".rstrip())
    ax.axvline(1.0, color=INK, linewidth=0.8, linestyle=":")
    _name_lines(ax, list(ratios), named=True)
    _scale_logarithmic(ax)
    page.simplify_frame(ax)
    ax.grid(axis="x", color=page.GRID, linewidth=0.7)
    ax.set_xlabel(scale, fontsize=9, color=INK)
    page.add_heading(figure, title, notes)
    return figure


def _draw_panel(ax: Axes, panel: Panel, *, named: bool, logarithmic: bool) -> None:
    """Draw the lines of one data set."""
    for row, dot in enumerate(panel.dots):
        if row % 2 == 0:
            ax.axhspan(row - 0.5, row + 0.5, color=STRIPE, linewidth=0)
        if dot.reference is not None:
            style: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": ORANGE}
            ax.plot(dot.reference, row, "D", markersize=7.5, markeredgewidth=1.5, **style)
        if dot.value is None:
            continue
        color = BLUE if dot.leading else FAINT
        ax.errorbar(dot.value, row, xerr=dot.deviation, fmt="o", color=color, markersize=5,
                    elinewidth=1.6, capsize=0)  # fmt: skip
        _write_beside(ax, row, dot.words, bold=dot.leading)
    _name_lines(ax, [dot.label for dot in panel.dots], named=named)
    positions = [dot.value for dot in panel.dots if dot.value is not None]
    positions += [dot.reference for dot in panel.dots if dot.reference is not None]
    if not positions:
        ax.set_xticks([])
    elif logarithmic:
        _scale_logarithmic(ax)
    else:
        # Room for two points at least: equal scores are not to look different.
        low, high = ax.get_xlim()
        room = max(0.0, 2.0 - (high - low)) / 2
        ax.set_xlim(low - room, high + room)
        ax.locator_params(axis="x", nbins=5)
    _write_words(ax, panel.dots)
    page.simplify_frame(ax)
    ax.tick_params(axis="y", length=0, labelsize=8.5)
    ax.grid(axis="x", color=page.GRID, linewidth=0.7)
    page.panel_title(ax, panel.title)


def _write_words(ax: Axes, dots: Sequence[Dot]) -> None:
    """Write why a line has no dot, on the side of the panel where its diamond is not."""
    middle = np.mean(ax.get_xlim())
    for row, dot in enumerate(dots):
        if dot.value is None:
            right = dot.reference is not None and dot.reference < middle
            ax.text(0.98 if right else 0.02, row, page.truncate(dot.words),
                    transform=ax.get_yaxis_transform(), ha="right" if right else "left",
                    va="center", fontsize=8, style="italic", color=INK,
                    parse_math=False)  # fmt: skip


def _name_lines(ax: Axes, labels: Sequence[str], *, named: bool) -> None:
    """Give each line its place, from top to bottom, and its name."""
    names = [page.shorten(label, 24) for label in labels] if named else [""] * len(labels)
    ax.set_yticks(np.arange(len(labels)), names, parse_math=False)
    ax.set_ylim(max(len(labels), 3) - 0.5, -0.5)


def _write_beside(ax: Axes, row: float, words: str, *, bold: bool = False) -> None:
    """Write the number of a line to the right of its panel."""
    ax.annotate(words, (1.0, row), (4, 0), xycoords=ax.get_yaxis_transform(),
                textcoords="offset points", va="center", fontsize=7.5, color=INK,
                fontweight="bold" if bold else "normal", parse_math=False)  # fmt: skip


def _scale_logarithmic(ax: Axes) -> None:
    """Make a scale logarithmic, one decade wide at least, with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_xscale("log")
    low, high = ax.get_xlim()
    widen = max(1.0, np.sqrt(10 * low / high))
    ax.set_xlim(low / widen, high * widen)
    ax.xaxis.set_major_locator(LogLocator(numticks=6))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _marks(legend: Mapping[str, str]) -> list[Any]:
    """Return the marks that a legend explains."""
    from matplotlib.lines import Line2D

    styles: dict[str, dict[str, Any]] = {
        "leading": {"marker": "o", "color": BLUE},
        "other": {"marker": "o", "color": FAINT},
        "reference": {"marker": "D", "color": ORANGE, "markerfacecolor": "none"},
    }
    return [
        Line2D([], [], linestyle="none", label=legend[kind], **style)
        for kind, style in styles.items()
        if kind in legend
    ]
