"""Weights beside alignments, never alone."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from mkclust.plots.style import (
    BLUE,
    INK,
    ORANGE,
    ORANGE_INK,
    Display,
    learned,
    set_titles,
    shortened,
    written,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGE_WEIGHT = "A large weight means little agreement with the consensus; it is not importance."
# Letters in a line of the sentence below the bars.
NOTE_WIDTH = 70
MIXING_WEIGHT = "A weight says how the kernels are mixed; it is not importance."
AGREEING_WEIGHT = (
    "A weight is large if a view agrees with the others, and zero if it was set aside."
)
MAX_NAMED = 60  # beyond this many kernels only every second, third ... one is named


def draw_weights(
    ax: Axes, names: Sequence[str], weights: Any, alignments: Any, *, note: str = LARGE_WEIGHT
) -> None:
    """Draw each kernel's weight to the left and its alignment to the right.

    Weights are never drawn alone: read without the alignments they are easily taken for
    importance. The two sides have their own scales; the numbers at the bars are the values.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    names : sequence of str, length m
        Names of the kernels, in their order; the first is drawn at the top.
    weights : array-like of shape (m,)
        Mixing weights, not negative.
    alignments : array-like of shape (m,)
        The share, from 0 to 1, of each kernel's own best value that the consensus captures.
    note : str
        The sentence below the bars on how to read them.
    """
    values = np.array([weights, alignments], dtype=float)
    m = len(values[0])
    rows = np.arange(m)
    # Both sides fill the same width, so that small weights (1/m on average) stay visible.
    ends = np.array([-_unit(values[0]), _unit(values[1], top=1.0)])
    for end, color in zip(ends, (ORANGE, BLUE), strict=True):
        ax.barh(rows, end, height=0.68, color=color)
    ax.axvline(0, color=INK, linewidth=0.8)
    size = 9 if m <= 16 else 8 if m <= 30 else 7
    every = -(-m // MAX_NAMED)
    style: dict[str, Any] = {"textcoords": "offset points", "va": "center", "color": INK}
    for row in rows[::every]:
        for i, (side, gap) in enumerate((("right", -3), ("left", 3))):
            # Of alignments two digits are known.
            value_text, end = written(values[i, row], decimals=3 - i), ends[i, row]
            ax.annotate(value_text, (end, row), (gap, 0), ha=side, fontsize=size, **style)
    # `parse_math=False`: a dollar sign in a file's variable name is not a formula.
    ax.set_yticks(rows[::every], [shortened(name) for name in names[::every]], parse_math=False)
    ax.tick_params(axis="y", length=0, labelsize=size, labelcolor=INK)
    # Room for four bars at least, so that one or two kernels are not drawn as slabs.
    middle, room = (m - 1) / 2, max(m, 4) / 2 + 0.1
    ax.set(xlim=(-1.3, 1.3), ylim=(middle + room, middle - room))
    ax.set_xticks([-0.5, 0.5], ["weight", "alignment"])
    ax.xaxis.tick_top()
    ax.tick_params(axis="x", length=0, labelsize=10)
    for label, color in zip(ax.get_xticklabels(), (ORANGE_INK, BLUE), strict=True):
        label.set(color=color, fontweight="bold")
    ax.spines[:].set_visible(False)
    set_titles(ax, "Weights and alignments of the kernels")
    # Broken into lines, the sentence fits below half a page.
    ax.set_xlabel("\n".join(wrap(note, NOTE_WIDTH)), fontsize=9, color=INK, labelpad=6)


def how_to_read(model: Any) -> str:
    """Return the sentence on how to read the weights of a fitted model."""
    return getattr(model, "WEIGHT_MEANING", MIXING_WEIGHT)


class KernelWeightsDisplay(Display):
    """The weights of the kernels, beside their alignments.

    Make it by :meth:`from_estimator`, or of arrays. Weights are never drawn alone: read without
    the alignments they are easily taken for importance.

    Parameters
    ----------
    kernel_names : sequence of str, length m
        Names of the kernels.
    weights : array-like of shape (m,)
        Mixing weights, not negative.
    alignments : array-like of shape (m,)
        The share, from 0 to 1, of each kernel's own best value that the consensus captures.
    note : str, default=MIXING_WEIGHT
        The sentence below the bars on how to read them.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        What was drawn on last.
    figure_ : matplotlib.figure.Figure
        The figure of these axes.

    Examples
    --------
    >>> from mkclust import SimpleMKKM
    >>> from mkclust.datasets import load
    >>> from mkclust.plots import KernelWeightsDisplay
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> model = SimpleMKKM(n_clusters=10, random_state=0).fit(views)
    >>> display = KernelWeightsDisplay.from_estimator(model)
    >>> display.ax_.get_title(loc="left")
    'Weights and alignments of the kernels'
    """

    def __init__(
        self,
        *,
        kernel_names: Sequence[str],
        weights: Any,
        alignments: Any,
        note: str = MIXING_WEIGHT,
    ):
        self.kernel_names = list(kernel_names)
        self.weights = np.asarray(weights, dtype=float)
        self.alignments = np.asarray(alignments, dtype=float)
        self.note = note

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Axes | None = None) -> KernelWeightsDisplay:
        """Draw the weights and alignments of a fitted model.

        Parameters
        ----------
        model : estimator
            A fitted clusterer of this library.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        KernelWeightsDisplay
        """
        names, weights, alignments = learned(model, "kernel_names_", "weights_", "alignments_")
        note = how_to_read(model)
        return cls(kernel_names=names, weights=weights, alignments=alignments, note=note).plot(ax)

    def _size(self) -> tuple[float, float]:
        """Return the width and height of a new figure, in inches."""
        height = max(3.0, 0.21 * min(len(self.weights), MAX_NAMED) + 1.5)
        return (7.0, height)

    def _draw(self, ax: Axes) -> None:
        """Draw on given axes."""
        draw_weights(ax, self.kernel_names, self.weights, self.alignments, note=self.note)


def _unit(values: np.ndarray, top: float | None = None) -> np.ndarray:
    """Return finite values as lengths from 0 to 1, relative to `top` or to the largest."""
    values = np.clip(np.nan_to_num(values, posinf=0.0), 0, None)
    top = max(top or 0.0, float(values.max(initial=0.0)))
    return values / top if top > 0 else values
