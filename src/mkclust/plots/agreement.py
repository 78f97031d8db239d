"""What every two views share, as a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mkclust.plots.style import INK, Display, set_titles, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Up to so many kernels the alignments are written into the cells.
MAX_WRITTEN = 12


class AgreementDisplay(Display):
    """How much every two views share, and which were set aside.

    Make it by ``mkclust.agreement(X).plot()``, or of arrays.

    Parameters
    ----------
    kernel_names : sequence of str, length m
        Names of the kernels.
    alignments : array-like of shape (m, m)
        Debiased alignments: one for copies, about zero for kernels that share nothing.
    weights : array-like of shape (m,)
        Weights; zero for kernels that were set aside, whose names are put in brackets.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        What was drawn on last.
    figure_ : matplotlib.figure.Figure
        The figure of these axes.
    """

    def __init__(self, *, kernel_names: Sequence[str], alignments: Any, weights: Any):
        self.kernel_names = list(kernel_names)
        self.alignments = np.asarray(alignments, dtype=float)
        self.weights = np.asarray(weights, dtype=float)

    def _size(self) -> tuple[float, float]:
        """Return the width and height of a new figure, in inches."""
        side = max(4.0, min(0.45 * len(self.kernel_names) + 2.5, 12.0))
        return side + 0.5, side

    def _draw(self, ax: Axes) -> None:
        """Draw on given axes."""
        m = len(self.kernel_names)
        image = ax.imshow(self.alignments, cmap="Blues", vmin=0, vmax=1)
        names = [
            shortened(name) if weight > 0 else f"({shortened(name)})"
            for name, weight in zip(self.kernel_names, self.weights, strict=True)
        ]
        # Dollars in names are no formulas.
        ax.set_xticks(range(m), names, rotation=45, ha="right", fontsize=9, parse_math=False)
        ax.set_yticks(range(m), names, fontsize=9, parse_math=False)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        if m <= MAX_WRITTEN:
            for p, q in np.ndindex(m, m):
                value = float(self.alignments[p, q])
                color = "white" if value > 0.6 else INK
                text = f"{round(value, 2) + 0.0:.2f}"
                ax.text(q, p, text, ha="center", va="center", fontsize=8, color=color)
        else:
            ax.figure.colorbar(image, ax=ax, shrink=0.8).outline.set_visible(False)
        note = "in brackets: set aside" if np.any(self.weights == 0) else ""
        set_titles(ax, "What every two views share", note)
