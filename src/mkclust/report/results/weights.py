"""The plot of weights, which never come without the alignments."""

import math
from typing import Any

import numpy as np

from mkclust.report.fit.charts.style import SHADES, axis, margins, short
from mkclust.report.web import plot
from mkclust.tables import Table

ORANGES = [[0, "#ffffff"], [0.5, "#f5cf9f"], [1, "#d07d1f"]]


def weight_plot(source: Table) -> str:
    """Draw the weights of one data set's kernels beside the alignments, a column a method.

    Parameters
    ----------
    source : Table
        Kernels by methods, for each a column of weights and one of alignments.

    Returns
    -------
    str
    """
    rows = [row for row in source.rows if len(row) > 1]
    kernels, methods = [row[0] for row in rows], source.columns[1::2]
    values = np.array(
        [[math.nan if cell.mean is None else cell.mean for cell in row[1:]] for row in rows]
    )
    weights, alignments = values[:, ::2], values[:, 1::2]
    m, q = weights.shape
    largest = np.fmax.reduce(weights, axis=0)
    shades = weights / np.where(largest > 0, largest, 1.0)
    both = np.stack([weights, alignments], axis=2)

    def shaded(z: np.ndarray, colors: Any, across: str) -> dict[str, Any]:
        return {
            "type": "heatmap", "x": list(range(q)), "y": list(range(m)), "z": np.round(z, 3),
            "zmin": 0, "zmax": 1, "colorscale": colors, "showscale": False, "xaxis": across,
            "customdata": np.round(both, 4), "xgap": 1, "ygap": 1, "hoverongaps": False,
            "hovertemplate": "%{y}<br>%{x}<br>weight %{customdata[0]:.3f}, "
            "alignment %{customdata[1]:.3f}<extra></extra>",
        }  # fmt: skip

    names = {"tickvals": list(range(q)), "ticktext": [short(name, 20) for name in methods]}
    across = {
        "showgrid": False,
        "side": "top",
        "tickangle": -60,
        "tickfont": {"size": 11},
        "range": [-0.5, q - 0.5],
    } | names
    layout = {
        "margin": margins(),
        "xaxis": axis("", domain=[0, 0.485], **across),
        "xaxis2": axis("", domain=[0.515, 1], **across),
        "yaxis": axis("", range=[m - 0.5, -0.5], showgrid=False, tickvals=list(range(m)),
                      ticktext=[short(name, 24) for name in kernels]),
    }  # fmt: skip
    known = alignments[np.isfinite(alignments)]
    spread = f" Alignments run from {known.min():.2f} to {known.max():.2f}." if len(known) else ""
    return plot(
        f"{source.name}-plot",
        [shaded(shades, ORANGES, "x"), shaded(alignments, SHADES, "x2")],
        layout,
        label=f"{source.title}, as two maps of shades",
        summary="Left, orange: weights, relative to the method's largest. Right, blue: alignments, "
        f"white 0 to dark 1. Point at a field to read both.{spread}",
        height=int(np.clip(17 * m + 170, 240, 1400)),
    )  # fmt: skip
