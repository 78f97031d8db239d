"""A fitted model on one page, clusters against given classes, and pictures in files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mkclust.linalg import to_host
from mkclust.plots.convergence import draw_convergence
from mkclust.plots.embedding import draw_embedding
from mkclust.plots.sampling import with_cluster
from mkclust.plots.style import INK, MAX_TICKS, set_titles, shortened
from mkclust.plots.weights import MAX_NAMED, draw_weights, how_to_read

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_fit(model: Any, y: Any = None, *, names: Mapping[int, str] | None = None) -> Figure:
    """Draw a fitted model on one page.

    Parameters
    ----------
    model : estimator
        A fitted clusterer of this library.
    y : array-like of shape (n,), optional
        Given classes, drawn against the clusters found.
    names : mapping of int to str, optional
        Names of clusters, written in place of their numbers among the samples.

    Returns
    -------
    figure : matplotlib.figure.Figure
        Pass it to :func:`~mkclust.plots.save`, or to a notebook, which shows it.
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
    kernels, note = list(model.kernel_names_), how_to_read(model)
    draw_weights(axes["weights"], kernels, model.weights_, model.alignments_, note=note)
    _draw_solve(axes["convergence"], model)
    embedding, labels = with_cluster(model.embedding_, np.asarray(model.labels_))
    draw_embedding(axes["embedding"], embedding, labels, names=names)
    if y is not None:
        known = np.asarray(model.labels_) >= 0
        draw_classes(axes["classes"], labels, to_host(y, None)[known])
    return figure


def _draw_solve(ax: Axes, model: Any) -> None:
    """Draw how a model was solved or, where that took one step, what its views share."""
    agreement = getattr(model, "agreement_", None)
    if agreement is not None and len(model.history_) == 1:
        agreement.plot(ax)
        return
    bounds, gap = (getattr(model, name, None) for name in ("lower_bounds_", "duality_gap_"))
    draw_convergence(ax, model.history_, bounds, gap=gap)


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure to a file whose suffix names the format (png, pdf, svg ...)."""
    figure.savefig(path, dpi=150)


def draw_classes(ax: Axes, labels: Any, y: Any) -> None:
    """Draw how the samples of each given class spread over the clusters.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    labels : array-like of int of shape (n,)
        The cluster of each sample.
    y : array-like of shape (n,)
        The given class of each sample. Classes are ordered by the cluster that holds most of
        them, so that a good clustering reads as a dark diagonal.
    """
    clusters, rows = np.unique(to_host(labels, None), return_inverse=True)
    classes, columns = np.unique(to_host(y, None), return_inverse=True)
    counts = np.zeros((len(clusters), len(classes)), dtype=int)
    np.add.at(counts, (rows, columns), 1)
    order = np.lexsort((-counts.max(axis=0), counts.argmax(axis=0)))
    counts, classes = counts[:, order], classes[order]
    shares = counts / counts.sum(axis=0)
    darkest = shares.max()
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=darkest, aspect="auto", interpolation="nearest")
    if max(counts.shape) <= 12:
        for (row, column), count in np.ndenumerate(counts):
            if count:
                shade = "white" if shares[row, column] > 0.55 * darkest else INK
                ax.text(column, row, count, ha="center", va="center", fontsize=8, color=shade)
    for axis, values in ((ax.yaxis, clusters), (ax.xaxis, classes)):
        names = [shortened(value, 12) for value in values] if len(values) <= MAX_TICKS else []
        axis.set_ticks(np.arange(len(names)), names, parse_math=False)
    if len(classes) <= MAX_TICKS and max(len(str(value)) for value in classes) > 3:
        ax.tick_params(axis="x", rotation=45)
    ax.tick_params(length=0, labelsize=8)
    ax.spines[:].set_visible(False)
    title = f"Share of each class in each cluster (darkest: {darkest:.0%})"
    set_titles(ax, title, "given class (not used to fit)", "cluster")
