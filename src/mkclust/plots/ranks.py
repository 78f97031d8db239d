"""Average ranks of methods, and which of them do not differ significantly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkclust.plots.style import BLUE, FAINT, INK, Display, set_titles, shorten

# Heights, in rows of names, of what lies above and below the axis.
BAR_STEP = 0.35
NAMES_BELOW = 0.9
TICK = 0.22


@dataclass(eq=False, kw_only=True)
class CriticalDifferenceDisplay(Display):
    """Methods on an axis of average ranks; bars connect what does not differ [1]_.

    Parameters
    ----------
    names : sequence of str, length k
        Names of the methods.
    ranks : array-like of shape (k,)
        Their average ranks over data sets; 1 is the best.
    critical_difference : float
        Average ranks that differ by less do not differ significantly, such as
        ``critical_difference`` of :func:`mkclust.bench.tables.rank_methods`.

    References
    ----------
    .. [1] J. Demsar, "Statistical comparisons of classifiers over multiple data sets",
       Journal of Machine Learning Research 7, 2006.

    Examples
    --------
    >>> from mkclust.plots import CriticalDifferenceDisplay
    >>> ranks = {"names": ["a", "b", "c"], "ranks": [2.5, 1.0, 2.5]}
    >>> print(CriticalDifferenceDisplay(**ranks, critical_difference=1.2).caption)
    The best average rank, 1.00, is that of b; bars connect ranks that differ by less
    than 1.20.
    """

    names: Sequence[str]
    ranks: Any
    critical_difference: float

    def __post_init__(self) -> None:
        self.ranks = np.asarray(self.ranks, dtype=float)

    def _size(self) -> tuple[float, float]:
        return 6.8, 1.6 + 0.13 * len(self.ranks) + 0.09 * len(self.groups())

    def _words(self) -> str:
        """Return which method is the best, and what the bars mean."""
        best = self.names[int(np.argmin(self.ranks))]
        return (
            f"The best average rank, {self.ranks.min():.2f}, is that of {best}; bars "
            "connect ranks that differ by less than "
            f"{self.critical_difference:.2f}."
        )

    def groups(self) -> list[tuple[float, float]]:
        """Return the first and last rank of all largest groups that do not differ."""
        rising = np.sort(self.ranks)
        found = list[tuple[float, float]]()
        for first in rising:
            last = rising[rising - first < self.critical_difference].max()
            if last > first and (not found or last > found[-1][1]):
                found.append((float(first), float(last)))
        return found

    def _draw(self, ax: Any) -> None:
        """Draw the axis, the critical difference, the bars and the names."""
        highest = max(2, int(np.ceil(self.ranks.max())))
        ax.set_axis_off()
        ax.plot([1, highest], [0, 0], color=INK, linewidth=1)
        for rank in range(1, highest + 1):
            ax.plot([rank, rank], [0, TICK], color=INK, linewidth=1)
            ax.text(rank, 1.5 * TICK, rank, ha="center", va="bottom", fontsize=9)
        depth = 0.0
        for ends in self.groups():
            depth -= BAR_STEP
            ax.plot(
                ends,
                [depth, depth],
                color=BLUE,
                linewidth=4,
                solid_capstyle="round",
            )
        # The better half of the methods is named to the left, the others to the right.
        order = np.argsort(self.ranks, kind="stable")
        n_left = -(-len(order) // 2)
        self._draw_names(ax, order[:n_left], 1, "right", depth)
        self._draw_names(ax, order[n_left:][::-1], highest, "left", depth)
        self._draw_difference(ax)
        set_titles(ax, "Average ranks")

    def _draw_names(
        self, ax: Any, methods: np.ndarray, end: int, alignment: str, depth: float
    ) -> None:
        """Name methods below each other at an end of the axis."""
        for height, method in enumerate(methods, start=1):
            rank = self.ranks[method]
            y = depth - NAMES_BELOW + 1 - height
            ax.plot(
                [rank, rank, end],
                [0, y, y],
                color=FAINT,
                linewidth=0.8,
                zorder=1,
            )
            ax.annotate(
                f"{shorten(self.names[method], 34)} ({rank:.2f})",
                (end, y),
                xytext=(4 if alignment == "left" else -4, 0),
                textcoords="offset points",
                ha=alignment,
                va="center",
                fontsize=9,
                color=INK,
                parse_math=False,
            )

    def _draw_difference(self, ax: Any) -> None:
        """Draw the critical difference above the axis."""
        height = 8 * TICK
        ends = [1, 1 + self.critical_difference]
        ax.plot(ends, [height, height], color=INK, linewidth=1.4)
        for x in ends:
            ax.plot([x, x], [height - TICK / 2, height + TICK / 2], color=INK)
        ax.text(
            1,
            height + TICK,
            f"critical difference {self.critical_difference:.2f}",
            ha="left",
            va="bottom",
            fontsize=9,
            color=INK,
        )
