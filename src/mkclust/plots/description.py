"""How clusters differ in the features that set them apart, as a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mkclust.plots.style import BLUE, INK, MAX_TICKS, ORANGE, Display, set_titles, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A difference of so many standard deviations has the full color.
FULL_COLOR = 2.0
# Up to so many clusters the differences are written into the cells.
MAX_WRITTEN = 12


class DescriptionDisplay(Display):
    """How clusters differ in the features that set them apart.

    Make it by ``mkclust.describe(model, tables).plot()``, or of arrays.

    Parameters
    ----------
    features : sequence of str, length d
        Names of the features; the first is drawn at the top.
    differences : array-like of shape (d, k)
        Standardized difference between each cluster and the rest.
    sizes : sequence of int, length k
        Number of samples in each cluster.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        What was drawn on last.
    figure_ : matplotlib.figure.Figure
        The figure of these axes.
    """

    def __init__(self, *, features: Sequence[str], differences: Any, sizes: Sequence[int]):
        self.features = list(features)
        self.sizes = list(sizes)
        shape = len(self.features), len(self.sizes)
        self.differences = np.asarray(differences, dtype=float).reshape(shape)

    def _size(self) -> tuple[float, float]:
        """Return the width and height of a new figure, in inches."""
        d, k = self.differences.shape
        return min(3.6 + 0.62 * max(k, 3), 16.0), min(1.7 + 0.27 * max(d, 4), 24.0)

    def _draw(self, ax: Axes) -> None:
        """Draw on given axes."""
        from matplotlib.colors import LinearSegmentedColormap

        d, k = self.differences.shape
        title = "What sets the clusters apart"
        if d == 0:
            ax.set_axis_off()
            set_titles(ax, title)
            text = "no feature stands out"
            ax.text(0.5, 0.5, text, ha="center", va="center", color=INK, transform=ax.transAxes)
            return
        hues = LinearSegmentedColormap.from_list("low to high", [ORANGE, "#ffffff", BLUE])
        colors = hues.with_extremes(bad="#f0f0f0")
        limits: dict[str, Any] = {"vmin": -FULL_COLOR, "vmax": FULL_COLOR}
        image = ax.imshow(
            np.ma.masked_invalid(self.differences), cmap=colors, aspect="auto", **limits
        )
        size = 9 if d <= 40 else 7
        # Dollars in names are no formulas.
        names = [shortened(name, 34) for name in self.features]
        ax.set_yticks(range(d), names, fontsize=size, parse_math=False)
        every = -(-k // MAX_TICKS)
        ticks = [f"{c}\n{self.sizes[c]:,}" for c in range(k)] if k <= MAX_WRITTEN else range(k)
        ax.set_xticks(range(0, k, every), list(map(str, ticks))[::every], fontsize=9)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set_xticks(np.arange(k - 1) + 0.5, minor=True)
        ax.set_yticks(np.arange(d - 1) + 0.5, minor=True)
        ax.tick_params(which="minor", length=0)
        ax.grid(which="minor", color="white", linewidth=1.5)
        if k <= MAX_WRITTEN:
            self._write_numbers(ax, size)
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.9, pad=0.02, extend="both")
        bar.outline.set_visible(False)
        bar.set_label("standard deviations from the rest", fontsize=9)
        set_titles(ax, title, "cluster, with its samples" if k <= MAX_WRITTEN else "cluster")

    def _write_numbers(self, ax: Axes, size: float) -> None:
        """Write the differences into their cells."""
        for row, cluster in np.ndindex(self.differences.shape):
            value = float(self.differences[row, cluster])
            if not np.isfinite(value):
                continue
            color = "white" if abs(value) > 0.8 * FULL_COLOR and value > 0 else INK
            text = f"{round(value, 1) + 0.0:+.1f}" if round(value, 1) else "0"
            ax.text(cluster, row, text, ha="center", va="center", fontsize=size - 1, color=color)
