"""The critical-difference diagram: average ranks, and which methods cannot be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mkclust.bench.report import figure as page
from mkclust.plots import BLUE, FAINT, INK, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE = 0.62  # distance of two lines of names, in units of the diagram's height
BAR = 0.34  # distance of two bars


def draw_ranks(
    methods: Sequence[str],
    ranks: Sequence[float],
    cliques: Sequence[Sequence[str]],
    critical_difference: float,
    *,
    title: str,
    notes: Sequence[str] = (),
) -> Figure:
    """Draw average ranks on an axis, with a bar over each group that the test leaves together.

    Methods come in any order, with their average ranks; the best, 1, is at the left. Cliques are
    groups that are not significantly different; groups of one are not drawn.
    """
    order = sorted(range(len(methods)), key=lambda i: (ranks[i], methods[i]))
    place = {methods[i]: float(ranks[i]) for i in order}
    bars = [_extent(clique, place) for clique in cliques if len(clique) > 1]
    levels = _levels(bars)
    below = BAR * (max(levels, default=-1) + 1) + 0.35
    half = (len(order) + 1) // 2
    # A critical difference longer than the axis lengthens the axis: it must be seen whole.
    last = max(float(len(order)), 1.0 + critical_difference)
    depth = below + LINE * half
    figure = page.new_page(10.0, 0.42 * (depth + 1.6) + 0.7 + page.note_height(notes, 10.0))
    ax = figure.subplots()
    room = 0.32 * (last - 1)
    ax.set(xlim=(1 - room, last + room), ylim=(-depth, 1.6))
    ax.axis("off")
    _draw_axis(ax, len(order), last)
    _draw_critical_difference(ax, critical_difference)
    for (left, right), level in zip(bars, levels, strict=True):
        height = -0.3 - BAR * level
        margin = 0.006 * (last - 1)
        ends = [left - margin, right + margin]
        ax.plot(ends, [height] * 2, color=ORANGE, linewidth=4.5, solid_capstyle="butt", zorder=3)
    for position, i in enumerate(order):
        left_side = position < half
        line = position if left_side else len(order) - 1 - position
        height, edge = -below - LINE * line, 1 - 0.04 * room if left_side else last + 0.04 * room
        rank = float(ranks[i])
        ax.plot([rank, rank, edge], [0, height, height], color=INK, linewidth=0.9)
        ax.plot(rank, 0, "o", color=BLUE, markersize=5, zorder=4)
        text: dict[str, Any] = {"va": "center", "fontsize": 10, "color": INK, "parse_math": False}
        words = f"{page.shorten(methods[i], 20)}  {rank:.2f}"
        if not left_side:
            words = f"{rank:.2f}  {page.shorten(methods[i], 20)}"
        shift = -0.02 * room if left_side else 0.02 * room
        ax.text(edge + shift, height, words, ha="right" if left_side else "left", **text)
    page.add_heading(figure, title, notes)
    return figure


def _extent(clique: Sequence[str], place: dict[str, float]) -> tuple[float, float]:
    """Return the least and the largest rank of a group."""
    ranks = [place[method] for method in clique]
    return min(ranks), max(ranks)


def _levels(bars: Sequence[tuple[float, float]]) -> list[int]:
    """Return how far below the axis each bar goes, so that bars that meet are apart."""
    levels: list[int] = []
    for left, right in bars:
        level = 0
        while any(
            other == level and left <= bars[i][1] and bars[i][0] <= right
            for i, other in enumerate(levels)
        ):
            level += 1
        levels.append(level)
    return levels


def _draw_axis(ax: Axes, count: int, last: float) -> None:
    """Draw the axis of ranks; beyond the last rank it only carries the critical difference."""
    ax.plot([1, count], [0, 0], color=INK, linewidth=1.4)
    ax.plot([count, last], [0, 0], color=FAINT, linewidth=0.8, linestyle=":")
    for rank in range(1, count + 1):
        ax.plot([rank, rank], [0, 0.14], color=INK, linewidth=1)
        ax.text(rank, 0.22, f"{rank}", ha="center", va="bottom", fontsize=9, color=INK)
    ax.text(1 - 0.03 * last, 0.0, "best", ha="right", va="center", fontsize=9, style="italic",
            color=INK)  # fmt: skip


def _draw_critical_difference(ax: Axes, width: float) -> None:
    """Draw the bar that shows how far two ranks must be apart."""
    ax.plot([1, 1 + width], [1.1, 1.1], color=INK, linewidth=1.4)
    for end in (1, 1 + width):
        ax.plot([end, end], [1.0, 1.2], color=INK, linewidth=1.4)
    ax.text(1 + width / 2, 1.22, f"critical difference {width:.2f}", ha="center", va="bottom",
            fontsize=9, color=INK)  # fmt: skip
