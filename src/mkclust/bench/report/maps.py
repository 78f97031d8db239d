"""Maps of numbers: weights beside alignments, and differences from the published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mkclust.bench.report import figure as page
from mkclust.plots import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDEST = 10.0  # points of difference from which on the color no longer deepens
WIDE = 6  # methods from which on maps are one below the other, not side by side
FEW_KERNELS = 15
READING = (
    "A weight says how the kernels are mixed; it is not importance. For SimpleMKKM a large weight "
    "means little agreement with the consensus, for AgreementKKM much agreement with the other "
    "views. The shade of a weight is relative to the method's "
    "largest. An alignment is the share of the kernel's own leading structure that the consensus "
    "captures; its shade runs from 0 to 1."
)


def draw_weights(
    kernels: Sequence[str],
    methods: Sequence[str],
    weights: Any,
    alignments: Any,
    *,
    title: str,
    notes: Sequence[str] = (),
) -> Figure:
    """Draw the weights that the methods give to the kernels, and beside them the alignments.

    Parameters
    ----------
    kernels : sequence of str, length m
        Names of the kernels, from top to bottom.
    methods : sequence of str, length q
        Names of the methods, from left to right.
    weights, alignments : array-like of shape (m, q)
        NaN where a method has none.
    title : str
        Title of the page.
    notes : sequence of str
        Paragraphs at the foot of the page, below the one on how to read it.

    Returns
    -------
    matplotlib.figure.Figure
    """
    weights, alignments = (np.array(values, dtype=float) for values in (weights, alignments))
    m, q = weights.shape
    # Side by side unless many methods would make a wide page with small letters.
    stacked = q > WIDE and m <= FEW_KERNELS
    width = max(6.5, 2.0 + (0.62 if stacked else 0.88) * q)
    notes = [READING, *notes]
    height = (0.24 * m + 1.3) * 2 if stacked else 0.21 * max(m, 3) + 1.3
    figure = page.new_page(width, height + 0.4 + page.note_height(notes, width))
    left, right = figure.subplots(2, 1) if stacked else figure.subplots(1, 2)
    with np.errstate(invalid="ignore"):
        largest = np.fmax.reduce(weights, axis=0)
        shades = weights / np.where(largest > 0, largest, 1.0)
    _draw_map(left, shades, weights, _three_digits, cmap="Oranges", limits=(0.0, 2.2))
    _draw_map(right, alignments, alignments, _three_digits, cmap="Blues", limits=(0.0, 1.6))
    names = [page.shorten(kernel, 30) for kernel in kernels]
    left.set_yticks(np.arange(m), names, parse_math=False)
    right.set_yticks(np.arange(m) if stacked else [], names if stacked else [], parse_math=False)
    for ax, text in ((left, "weight"), (right, "alignment")):
        _name_columns(ax, methods)
        page.panel_title(ax, text)
        ax.tick_params(axis="y", length=0, labelsize=8 if m <= 30 else 7.5)
    page.add_heading(figure, title, notes)
    return figure


def draw_differences(
    datasets: Sequence[str],
    methods: Sequence[str],
    differences: Mapping[str, Any],
    *,
    title: str,
    notes: Sequence[str] = (),
) -> Figure:
    """Draw by how many points our scores differ from the published ones.

    Parameters
    ----------
    datasets : sequence of str, length d
        Names of the data sets, with what must be said about them, from top to bottom.
    methods : sequence of str, length q
        Names of the methods, from left to right.
    differences : mapping of str to array-like of shape (d, q)
        For each score the differences in points, ours less theirs; NaN where there is none.
    title : str
        Title of the page.
    notes : sequence of str
        Paragraphs at the foot of the page.

    Returns
    -------
    matplotlib.figure.Figure
    """
    q = len(methods)
    stacked = q > WIDE
    count = 1 if stacked else len(differences)
    width = max(7.0, 1.9 + 0.55 * q * count)
    one = 0.26 * max(len(datasets), 2) + 1.2
    height = one * (len(differences) if stacked else 1) + 0.5 + page.note_height(notes, width)
    figure = page.new_page(width, height)
    axes = figure.subplots(len(differences) // count, count, squeeze=False).flat
    for i, (ax, (score, values)) in enumerate(zip(axes, differences.items(), strict=True)):
        values = np.array(values, dtype=float)
        limits = (-1.6 * WIDEST, 1.6 * WIDEST)
        _draw_map(ax, np.clip(values, -WIDEST, WIDEST), values, _signed, cmap="PuOr_r",
                  limits=limits)  # fmt: skip
        names = [page.shorten(name, 30) for name in datasets] if stacked or i == 0 else []
        ax.set_yticks(np.arange(len(names)), names, parse_math=False)
        ax.tick_params(axis="y", length=0, labelsize=8.5)
        _name_columns(ax, methods)
        page.panel_title(ax, score)
    page.add_heading(figure, title, notes)
    return figure


def _draw_map(
    ax: Axes,
    shades: np.ndarray,
    values: np.ndarray,
    words: Any,
    *,
    cmap: str,
    limits: tuple[float, float],
) -> None:
    """Draw a map of shades with its numbers; a cell without a number is a dash on white."""
    low, high = limits
    # The darkest shades are left unused, so that black numbers stay legible on all of them.
    masked = np.ma.masked_invalid(shades)
    ax.imshow(masked, cmap=cmap, vmin=low, vmax=high, aspect="auto", interpolation="nearest")
    size = 7.5 if values.shape[1] <= 14 else 6.5
    for (row, column), value in np.ndenumerate(values):
        text = words(value) if np.isfinite(value) else "-"
        # Numbers are within the map: to ask each of many for its size would only take time.
        ax.text(column, row, text, ha="center", va="center", fontsize=size, color=INK,
                in_layout=False)  # fmt: skip
    ax.spines[:].set_visible(False)


def _name_columns(ax: Axes, names: Sequence[str]) -> None:
    """Write the names of the columns above them, aslant."""
    labels = [page.shorten(name, 20) for name in names]
    ax.xaxis.tick_top()
    ax.set_xticks(np.arange(len(labels)), labels, rotation=40, ha="left", rotation_mode="anchor",
                  parse_math=False)  # fmt: skip
    ax.tick_params(axis="x", length=0, labelsize=8.5, pad=2)


def _three_digits(value: float) -> str:
    """Return a share with three decimals and no leading zero, as columns of them are read."""
    if value in (0, 1):
        return f"{value:.0f}"
    if 0 < value < 0.0005:
        return "<.001"
    return f"{value:.3f}".removeprefix("0")


def _signed(value: float) -> str:
    """Return a difference with its sign and one decimal."""
    text = f"{value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")  # noqa: RUF001
