"""Clusters against classes that somebody gave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mkclust.linalg import to_host
from mkclust.plots.style import INK, MAX_TICKS, set_titles, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
