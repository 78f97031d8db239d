"""The samples on the plane in which the embedding spreads most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mkclust.linalg import select, to_host
from mkclust.plots.style import FAINT, PALETTE, Display, learned, set_titles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_POINTS = 20_000  # more dots than this only add ink and file size
MAX_ROWS = 200_000  # of more samples, so many tell the axes and the centers
MAX_NUMBERED = 30  # beyond this many clusters their numbers would cover the dots


def draw_embedding(
    ax: Axes,
    embedding: Any,
    labels: Any,
    *,
    n_samples: int | None = None,
    n_clusters: int | None = None,
) -> None:
    """Draw the samples on the two leading axes of the row-normalized embedding.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    embedding : array-like of shape (n, k)
        The relaxed partition matrix; its rows are scaled to length one, as k-means sees them. Of
        more than 200,000 rows a sample is drawn.
    labels : array-like of int of shape (n,)
        The cluster of each sample. Clusters are numbered at their centers, unless too many.
    n_samples, n_clusters : int, optional
        How many there are in all, where what is given is a sample.
    """
    labels = to_host(labels, None)
    n = len(labels) if n_samples is None else n_samples
    k = len(np.unique(labels)) if n_clusters is None else n_clusters
    embedding, labels = _sample(embedding, labels, MAX_ROWS)
    points, shares = principal_plane(to_host(embedding))
    clusters = np.unique(labels)
    # A fixed order drawn once at random: no cluster is painted over by the ones after it.
    order = np.random.default_rng(0).permutation(len(points))[:MAX_POINTS]
    palette = np.resize(PALETTE, len(clusters))
    colors = palette[np.searchsorted(clusters, labels)]
    x, y = points[order].T
    size = float(np.clip(22_000 / max(len(order), 1), 3, 26))
    ax.scatter(x, y, size, colors[order], alpha=0.75, linewidths=0, rasterized=True)
    ax.set(xticks=[], yticks=[])
    ax.margins(0.06)
    # One scale for both axes: distances in the picture are distances in the plane.
    ax.set_aspect("equal", adjustable="datalim")
    ax.spines[:].set(color=FAINT, linewidth=0.6)
    title = f"Embedding of {n:,} samples, {k:,} cluster{'s' * (k != 1)}"
    if k > MAX_NUMBERED:
        title += " (colors repeat)"
    else:
        centers = np.array([points[labels == cluster].mean(axis=0) for cluster in clusters])
        _draw_numbers(ax, clusters, centers, palette)
    first, second = (f"{share:.0%}" for share in shares)
    set_titles(ax, title, f"first axis ({first} of the variance)", f"second axis ({second})")


class EmbeddingDisplay(Display):
    """The samples on the two leading axes of the embedding, colored by cluster.

    Make it by :meth:`from_estimator`, or of arrays.

    Parameters
    ----------
    embedding : array-like of shape (n, k)
        The relaxed partition matrix, or the rows of some samples.
    labels : array-like of int of shape (n,)
        The cluster of each of these samples.
    n_samples, n_clusters : int, default=None
        How many there are in all; None where the arrays hold all samples.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        What was drawn on last.
    figure_ : matplotlib.figure.Figure
        The figure of these axes.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.plots import EmbeddingDisplay
    >>> display = EmbeddingDisplay(embedding=np.eye(3), labels=[0, 1, 2])
    >>> display.plot().ax_.get_title(loc="left")
    'Embedding of 3 samples, 3 clusters'
    """

    def __init__(
        self,
        *,
        embedding: Any,
        labels: Any,
        n_samples: int | None = None,
        n_clusters: int | None = None,
    ):
        self.embedding = to_host(embedding)
        self.labels = to_host(labels, None)
        self.n_samples = n_samples
        self.n_clusters = n_clusters

    @classmethod
    def from_estimator(
        cls, model: Any, *, max_samples: int | None = None, ax: Axes | None = None
    ) -> EmbeddingDisplay:
        """Draw the embedding of a fitted model.

        Parameters
        ----------
        model : estimator
            A fitted clusterer of this library.
        max_samples : int, default=None
            Of more samples so many are drawn at random, also where results are on a device or with
            the workers of a cluster; None takes 200,000.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        EmbeddingDisplay
        """
        embedding, labels = learned(model, "embedding_", "labels_")
        labels = np.asarray(labels)
        counts = {"n_samples": len(labels), "n_clusters": len(np.unique(labels))}
        most = MAX_ROWS if max_samples is None else max_samples
        embedding, labels = _sample(embedding, labels, most)
        return cls(embedding=embedding, labels=labels, **counts).plot(ax)

    def _size(self) -> tuple[float, float]:
        """Return the width and height of a new figure, in inches."""
        return (6.5, 5.5)

    def _draw(self, ax: Axes) -> None:
        """Draw on given axes."""
        counts = {"n_samples": self.n_samples, "n_clusters": self.n_clusters}
        draw_embedding(ax, self.embedding, self.labels, **counts)


def _sample(embedding: Any, labels: np.ndarray, most: int) -> tuple[Any, np.ndarray]:
    """Return the rows and labels of as many samples at most as tell the axes and the centers."""
    if len(labels) <= most:
        return embedding, labels
    some = np.sort(np.random.default_rng(0).choice(len(labels), most, replace=False))
    return select(embedding, some), labels[some]


def principal_plane(embedding: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the row-normalized embedding on its two leading axes, and their shares of variance."""
    lengths = np.linalg.norm(embedding, axis=1, keepdims=True)
    rows = embedding / np.where(lengths > 0, lengths, 1)
    rows -= rows.mean(axis=0)
    values, vectors = np.linalg.eigh(rows.T @ rows)
    points = rows @ vectors[:, ::-1][:, :2]
    # The embedding is unique only up to a rotation, so the sign must come from the points.
    points *= np.where((points**3).sum(axis=0) < 0, -1.0, 1.0)
    total = max(float(values.sum()), np.finfo(float).tiny)
    shares = np.clip(values[::-1][:2], 0, None) / total
    missing = 2 - points.shape[1]
    return np.pad(points, ((0, 0), (0, missing))), np.pad(shares, (0, missing))


def _draw_numbers(ax: Axes, clusters: np.ndarray, centers: np.ndarray, colors: np.ndarray) -> None:
    """Write each cluster's number in its color at its center, apart where centers coincide."""
    (x0, x1), (y0, y1) = ax.get_xlim(), ax.get_ylim()
    origin, span = np.array([x0, y0]), np.array([x1 - x0, y1 - y0])
    places = _spread((centers - origin) / span) * span + origin
    size = 9.5 if len(clusters) <= 12 else 8
    for cluster, place, color in zip(clusters, places, colors, strict=True):
        # Red, green and blue as the eye weighs them: white on dark colors, black on light ones.
        red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
        light = 0.299 * red + 0.587 * green + 0.114 * blue > 140
        number = ax.text(place[0], place[1], f"{cluster}", ha="center", va="center")
        number.set(color="black" if light else "white", fontsize=size, fontweight="bold")
        number.set_bbox({"boxstyle": "circle,pad=0.25", "facecolor": color, "edgecolor": "white"})


def _spread(places: np.ndarray, distance: float = 0.06, rounds: int = 60) -> np.ndarray:
    """Push points of the unit square apart until none are closer than `distance`."""
    angles = 2.4 * np.arange(len(places))  # any fixed directions do, where two points coincide
    places = places + 1e-6 * np.column_stack([np.cos(angles), np.sin(angles)])
    for _ in range(rounds):
        steps = places[:, None] - places[None]
        lengths = np.linalg.norm(steps, axis=2)
        np.fill_diagonal(lengths, np.inf)
        short = np.maximum(distance - lengths, 0)
        if not short.any():
            break
        places = places + 0.5 * np.einsum("ij,ijd->id", short / lengths, steps)
    return np.clip(places, 0.02, 0.98)
