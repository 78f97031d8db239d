"""A fitted model on one page, and pictures in files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkclust.plots.classes import draw_classes
from mkclust.plots.convergence import draw_convergence
from mkclust.plots.embedding import draw_embedding
from mkclust.plots.weights import MAX_NAMED, draw_weights, how_to_read

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_fit(model: Any, y: Any = None) -> Figure:
    """Draw a fitted model on one page.

    Parameters
    ----------
    model : estimator
        A fitted clusterer of this library.
    y : array-like of shape (n,), optional
        Given classes, drawn against the clusters found.

    Returns
    -------
    figure : matplotlib.figure.Figure
        Pass it to :func:`save`, or to a notebook, which shows it.
    """
    from matplotlib.figure import Figure

    m = len(model.weights_)
    if m > 16:
        # A tall column of bars, the other panels beside it.
        panels = ["convergence", "embedding"] + ([] if y is None else ["classes"])
        mosaic = [["weights", panel] for panel in panels]
        heights = [3.2, 5.2, 5.2][: len(panels)]
        height = max(sum(heights) + 1.0, 0.21 * min(m, MAX_NAMED) + 2.0)
    else:
        mosaic = [["weights", "convergence"], ["embedding", "classes"]]
        heights = [max(3.6, 0.3 * m + 1.2), 5.4]
        if y is None:
            mosaic = [["weights", "embedding"], ["convergence", "embedding"]]
            heights = [max(3.2, 0.3 * m + 1.2), 3.6]
        height = sum(heights) + 0.8
    figure = Figure(figsize=(13, height), layout="constrained", facecolor="white")
    axes = figure.subplot_mosaic(mosaic, height_ratios=heights)  # type: ignore[arg-type]
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12, wspace=0.03, hspace=0.03)  # type: ignore[union-attr, call-arg]
    names, note = list(model.kernel_names_), how_to_read(model)
    draw_weights(axes["weights"], names, model.weights_, model.alignments_, note=note)
    bounds, gap = (getattr(model, name, None) for name in ("lower_bounds_", "duality_gap_"))
    draw_convergence(axes["convergence"], model.history_, bounds, gap=gap)
    draw_embedding(axes["embedding"], model.embedding_, model.labels_)
    if y is not None:
        draw_classes(axes["classes"], model.labels_, y)
    return figure


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure to a file whose suffix names the format (png, pdf, svg ...)."""
    figure.savefig(path, dpi=150)
