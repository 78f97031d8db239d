"""Weights next to alignments, never alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np

from mkclust.plots.style import (
    BLUE,
    INK,
    ORANGE,
    Display,
    FittedModel,
    format_range,
    noun_of_kernels,
    set_titles,
    shorten,
)
from mkclust.text import join_words

# Of more kernels, only every second, third ... one is named.
MAX_NAMED = 60


@dataclass(eq=False, kw_only=True)
class KernelWeightsDisplay(Display):
    """The weights of the kernels to the left, and their alignments to the right.

    ``KernelWeightsDisplay.from_estimator(model)`` makes it. Weights are never drawn
    alone: without the alignments they are easily taken for importance. The two sides
    have scales of their own.

    Parameters
    ----------
    kernel_names : sequence of str, length m
        Names of the kernels; the first is drawn at the top.
    weights : array-like of shape (m,)
        Mixing weights, not negative.
    alignments : array-like of shape (m,)
        The share, from 0 to 1, of each kernel's own best value that the consensus
        captures.
    note : str, default=""
        The sentence below the bars on how to read them.
    noun : str, default="kernel"
        What is weighted; views, if each of them has one kernel.

    Examples
    --------
    >>> from mkclust.plots import KernelWeightsDisplay
    >>> bars = {"weights": [0.4, 0.6], "alignments": [0.9, 0.7]}
    >>> KernelWeightsDisplay(kernel_names=["pixels", "text"], **bars).caption
    'The largest weight, 0.600, is that of text. Alignments: 0.70 to 0.90.'
    """

    kernel_names: Sequence[str]
    weights: Any
    alignments: Any
    note: str = ""
    noun: str = "kernel"

    def __post_init__(self) -> None:
        self.weights = np.asarray(self.weights, dtype=float)
        self.alignments = np.asarray(self.alignments, dtype=float)

    @classmethod
    def _read(cls, model: FittedModel, X: Any, **options: Any) -> dict[str, Any]:
        return {
            "kernel_names": model.kernel_names_,
            "weights": model.weights_,
            "alignments": model.alignments_,
            "note": getattr(model, "WEIGHT_MEANING", ""),
            "noun": noun_of_kernels(model),
            **options,
        }

    def _size(self) -> tuple[float, float]:
        return 6.2, max(2.8, 0.21 * min(len(self.weights), MAX_NAMED) + 1.5)

    def _words(self) -> str:
        """Return which view has the largest weight, in words."""
        largest = np.nanmax(self.weights)
        is_largest = largest - self.weights < 5e-4
        holders = np.asarray(self.kernel_names, object)[is_largest]
        words = f"The largest weight, {largest:.3f}, is that of {join_words(holders)}."
        known = self.alignments[np.isfinite(self.alignments)]
        if len(known):
            words += f" Alignments: {format_range(known)}."
        return words

    def _draw(self, ax: Any) -> None:
        """Draw a bar to the left for every weight, one to the right for alignments."""
        m = len(self.weights)
        rows = np.arange(m)
        size = 9 if m <= 16 else 7.5
        every = -(-m // MAX_NAMED)
        # Both sides have the same width, so that small weights (1/m on average) stay
        # visible.
        for values, top, color, side, decimals in (
            (self.weights, np.nanmax(self.weights), ORANGE, -1, 3),
            (self.alignments, 1.0, BLUE, 1, 2),
        ):
            ends = side * np.clip(np.nan_to_num(values / (top or 1)), 0, 1)
            ax.barh(rows, ends, height=0.68, color=color)
            for row in rows[::every]:
                ax.annotate(
                    f"{values[row]:.{decimals}f}",
                    (ends[row], row),
                    xytext=(3 * side, 0),
                    textcoords="offset points",
                    va="center",
                    ha={1: "left", -1: "right"}[side],
                    color=INK,
                    fontsize=size,
                )
        ax.axvline(0, color=INK, linewidth=0.8)
        # A dollar sign in a name is not a formula.
        names = [shorten(name) for name in self.kernel_names[::every]]
        ax.set_yticks(rows[::every], names, parse_math=False)
        ax.tick_params(axis="y", length=0, labelsize=size, labelcolor=INK)
        # At least as high as four bars, so that one or two kernels are not drawn as
        # slabs.
        middle = (m - 1) / 2
        half = max(m, 4) / 2 + 0.1
        ax.set(xlim=(-1.3, 1.3), ylim=(middle + half, middle - half))
        ax.set_xticks([-0.5, 0.5], ["weight", "alignment"], fontweight="bold")
        ax.xaxis.tick_top()
        ax.tick_params(axis="x", length=0, labelsize=10)
        ax.spines[:].set_visible(False)
        set_titles(
            ax,
            f"Weights and alignments of the {self.noun}s",
            fill(self.note, 70),
        )
