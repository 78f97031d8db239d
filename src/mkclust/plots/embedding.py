"""The samples in a picture of the embedding, colored by cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mkclust.linalg import select, to_host
from mkclust.plots.neighbor_map import (
    CAUTION,
    MAX_MAPPED,
    SampleMap,
    amid,
    check_map_method,
    map_samples,
    spread_names,
)
from mkclust.plots.sampling import sample_clusters, with_cluster
from mkclust.plots.style import FAINT, INK, PALETTE, Display, learned, set_titles, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_POINTS = 20_000  # more dots than this only add ink and file size
MAX_ROWS = 200_000  # of more samples, so many tell the axes and the centers of a plane
MAX_NUMBERED = 30  # beyond this many clusters their numbers would cover the dots


def draw_embedding(
    ax: Axes,
    embedding: Any,
    labels: Any,
    *,
    n_samples: int | None = None,
    n_clusters: int | None = None,
    sizes: Mapping[int, int] | None = None,
    names: Mapping[int, str] | None = None,
    method: str = "neighbors",
) -> None:
    """Draw the samples, with clusters named where they are.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    embedding : array-like of shape (n, k)
        The relaxed partition matrix; its rows are scaled to length one, as k-means sees them.
    labels : array-like of int of shape (n,)
        The cluster of each sample. Clusters have their number and size written among their dots,
        unless there are too many.
    n_samples, n_clusters : int, optional
        How many there are in all, where what is given is a sample.
    sizes : mapping of int to int, optional
        Number of samples of each cluster in all, where what is given is a sample.
    names : mapping of int to str, optional
        Names of clusters, written in place of their numbers.
    method : {"neighbors", "plane"}, default="neighbors"
        "neighbors": a map (t-SNE) on which neighbors stay neighbors, of 2,000 samples at most,
        each cluster in proportion. "plane": the two axes along which the rows spread most, found
        on 200,000 samples at most. Ten samples or fewer are drawn on the plane.
    """
    check_map_method(method)
    labels = to_host(labels, None)
    clusters, counts = np.unique(labels, return_counts=True)
    n = len(labels) if n_samples is None else n_samples
    k = len(clusters) if n_clusters is None else n_clusters
    if sizes is None:
        sizes = dict(zip(clusters.tolist(), counts.tolist(), strict=True))
    most = MAX_MAPPED if method == "neighbors" else MAX_ROWS
    embedding, labels = _sample(embedding, labels, most)
    placed = map_samples(to_host(embedding), method)
    palette = dict(zip(clusters.tolist(), np.resize(PALETTE, len(clusters)).tolist(), strict=True))
    _draw_dots(ax, placed.points, [palette[label] for label in labels.tolist()])
    title = f"Embedding of {n:,} samples, {k:,} cluster{'s' * (k != 1)}"
    if k > MAX_NUMBERED:
        title += " (colors repeat)"
    set_titles(ax, title, *_captions(placed, n, are_named=k <= MAX_NUMBERED))
    if placed.method == "neighbors":
        ax.xaxis.label.set(fontsize=9, color=INK)
    if k <= MAX_NUMBERED:
        texts = {
            cluster: f"{shortened((names or {}).get(cluster, cluster), 20)} ({sizes[cluster]:,})"
            for cluster in np.unique(labels).tolist()
        }
        groups = [placed.points[labels == cluster] for cluster in texts]
        _draw_names(ax, list(texts.values()), groups)


def _draw_dots(ax: Axes, points: np.ndarray, colors: list[str]) -> None:
    """Draw a dot a sample, with one scale for both axes."""
    # A fixed order drawn once at random: no cluster is painted over by the ones after it.
    order = np.random.default_rng(0).permutation(len(points))[:MAX_POINTS]
    x, y = points[order].T
    size = float(np.clip(22_000 / max(len(order), 1), 3, 26))
    shades = [colors[i] for i in order]
    ax.scatter(x, y, size, shades, alpha=0.75, linewidths=0, rasterized=True)
    ax.set(xticks=[], yticks=[])
    ax.margins(0.06)
    ax.set_aspect("equal", adjustable="datalim")
    ax.spines[:].set(color=FAINT, linewidth=0.6)


def _captions(placed: SampleMap, n_samples: int, *, are_named: bool) -> tuple[str, str]:
    """Return what is written at the two axes."""
    if placed.method == "plane":
        first, second = (f"{share:.0%}" for share in placed.shares)
        return f"first axis ({first} of the variance)", f"second axis ({second})"
    n_drawn = len(placed.points)
    some = f"\n{n_drawn:,} of {n_samples:,} samples drawn, clusters in proportion."
    labels = " Labels: cluster (samples)." if are_named else ""
    # Broken at a word, it fits below half a page.
    caution = CAUTION.replace(" far clusters", " far\nclusters")
    return caution + labels + some * (n_drawn < n_samples), ""


class EmbeddingDisplay(Display):
    """The samples on a map of the embedding, colored by cluster.

    Make it by :meth:`from_estimator`, or of arrays. Positions say who is near whom and little else,
    and are not used to cluster; ``method="plane"`` draws distances as they are, along the two axes
    on which they are largest.

    Parameters
    ----------
    embedding : array-like of shape (n, k)
        The relaxed partition matrix, or the rows of some samples.
    labels : array-like of int of shape (n,)
        The cluster of each of these samples.
    n_samples, n_clusters : int, default=None
        How many there are in all; None where the arrays hold all samples.
    sizes : mapping of int to int, default=None
        Number of samples of each cluster in all; None where the arrays hold all samples.
    names : mapping of int to str, default=None
        Names of clusters, written in place of their numbers.
    method : {"neighbors", "plane"}, default="neighbors"
        How the samples are placed; see :func:`~mkclust.plots.draw_embedding`.

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
        sizes: Mapping[int, int] | None = None,
        names: Mapping[int, str] | None = None,
        method: str = "neighbors",
    ):
        self.embedding = to_host(embedding)
        self.labels = to_host(labels, None)
        self.n_samples = n_samples
        self.n_clusters = n_clusters
        self.sizes = sizes
        self.names = names
        self.method = method

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        max_samples: int | None = None,
        names: Mapping[int, str] | None = None,
        method: str = "neighbors",
        ax: Axes | None = None,
    ) -> EmbeddingDisplay:
        """Draw the embedding of a fitted model.

        Parameters
        ----------
        model : estimator
            A fitted clusterer of this library.
        max_samples : int, default=None
            Of more samples so many are drawn at random, each cluster in proportion, also where
            results are on a device or with the workers of a cluster; None takes 200,000, of which
            a map of neighbors shows 2,000.
        names : mapping of int to str, default=None
            Names of clusters, written in place of their numbers.
        method : {"neighbors", "plane"}, default="neighbors"
            How the samples are placed; see :func:`~mkclust.plots.draw_embedding`.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        EmbeddingDisplay
        """
        embedding, labels = learned(model, "embedding_", "labels_")
        embedding, labels = with_cluster(embedding, np.asarray(labels))
        clusters, counts = np.unique(labels, return_counts=True)
        sizes = dict(zip(clusters.tolist(), counts.tolist(), strict=True))
        most = MAX_ROWS if max_samples is None else max_samples
        embedding, some_labels = _sample(embedding, labels, most)
        return cls(
            embedding=embedding,
            labels=some_labels,
            n_samples=len(labels),
            n_clusters=len(clusters),
            sizes=sizes,
            names=names,
            method=method,
        ).plot(ax)

    def _size(self) -> tuple[float, float]:
        """Return the width and height of a new figure, in inches."""
        return (6.5, 5.5)

    def _draw(self, ax: Axes) -> None:
        """Draw on given axes."""
        draw_embedding(
            ax,
            self.embedding,
            self.labels,
            n_samples=self.n_samples,
            n_clusters=self.n_clusters,
            sizes=self.sizes,
            names=self.names,
            method=self.method,
        )


def _sample(embedding: Any, labels: np.ndarray, most: int) -> tuple[Any, np.ndarray]:
    """Return the rows and labels of as many samples at most, each cluster in proportion."""
    if len(labels) <= most:
        return embedding, labels
    some = sample_clusters(labels, most)
    return select(embedding, some), labels[some]


def _draw_names(ax: Axes, texts: Sequence[str], groups: Sequence[np.ndarray]) -> None:
    """Write the name of each cluster among its dots, apart where names would overlap."""
    from matplotlib.patheffects import withStroke

    size = 10.5 if len(texts) <= 12 else 9
    ax.apply_aspect()
    # Of a bold text, in pixels: about so wide a letter, so high a line.
    unit = size * ax.figure.dpi / 72
    boxes = np.array([[0.68 * len(text) + 0.3, 1.4] for text in texts]) * unit
    centers = [
        _place(ax.transData.transform(points), box)
        for points, box in zip(groups, boxes, strict=True)
    ]
    frame = ax.get_window_extent()
    corners = np.array([[frame.x0, frame.y0], [frame.x1, frame.y1]])
    places = ax.transData.inverted().transform(spread_names(np.array(centers), boxes, corners))
    for text, (x, y) in zip(texts, places, strict=True):
        # A dollar sign in a name is not a formula.
        label = ax.text(x, y, text, ha="center", va="center", parse_math=False)
        label.set(color="black", fontsize=size, fontweight="bold")
        label.set_path_effects([withStroke(linewidth=3, foreground="white")])


def _place(points: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Return where the name of a cluster goes, in pixels: amid its dots, or above close ones."""
    place = amid(points)
    top, bottom = np.quantile(points[:, 1], [0.98, 0.02])
    covers = top - bottom < 3 * box[1]
    return np.array([place[0], top + 0.6 * box[1]]) if covers else place
