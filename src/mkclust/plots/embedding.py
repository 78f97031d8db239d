"""The samples on a map of the embedding, colored by cluster."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from textwrap import fill
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from mkclust.linalg import select, to_host
from mkclust.plots.style import (
    FAINT,
    PALETTE,
    Display,
    FittedModel,
    cluster_sizes,
    names_of,
    sample_clusters,
    set_titles,
    title_of,
    when,
)
from mkclust.text import count

# The most samples that are drawn by default: a map of 2,000 takes 5 s.
MAX_SAMPLES = 2_000
# The names of more clusters would cover the dots.
MAX_NAMED = 30


@dataclass(eq=False, kw_only=True)
class EmbeddingDisplay(Display):
    """The samples on a map of the embedding, colored by cluster.

    ``EmbeddingDisplay.from_estimator(model)`` makes it. Neighbors in the embedding are
    neighbors on the map (t-SNE); positions say little else, and are not used to
    cluster. Ten samples or fewer are drawn on the two axes along which they spread
    most.

    Parameters
    ----------
    embedding : array-like of shape (n, k)
        The relaxed partition matrix; its rows are scaled to length one, as k-means uses
        them.
    labels : array-like of int of shape (n,)
        The cluster of each sample; samples labeled -1 are left out.
    max_samples : int, default=2000
        If there are more samples, a random subset of this size is drawn, clusters in
        proportion.
    names : sequence of str, default=None
        The names of the clusters; None takes their numbers.

    Attributes
    ----------
    samples : ndarray of int of shape (s,)
        The samples that are drawn; ``embedding`` and ``labels`` are then theirs.
    sizes : dict of int to int
        Number of samples of each cluster, drawn or not.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.plots import EmbeddingDisplay
    >>> display = EmbeddingDisplay(embedding=np.eye(3), labels=[0, 1, 2])
    >>> display.plot().ax_.get_title(loc="left")
    'Embedding of 3 samples, 3 clusters'
    """

    embedding: Any
    labels: Any
    max_samples: int = MAX_SAMPLES
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        labels = to_host(self.labels, None)
        self.samples = sample_clusters(labels, self.max_samples)
        self.sizes = cluster_sizes(labels)
        self.embedding = to_host(select(self.embedding, self.samples))
        self.labels = labels[self.samples]

    @classmethod
    def _read(cls, model: FittedModel, X: Any, **options: Any) -> dict[str, Any]:
        """Return the rows and the clusters of a fit."""
        return {
            "embedding": model._rows_of(model.embedding_),
            "labels": model.labels_,
            "names": names_of(model),
            **options,
        }

    @cached_property
    def _coordinates(self) -> np.ndarray:
        """Coordinates of the unit rows on principal axes, at least two."""
        # The embedding is unique only up to a rotation, so signs are chosen by the
        # points.
        rows = normalize(self.embedding)
        vectors, values, _ = np.linalg.svd(
            rows - rows.mean(axis=0), full_matrices=False
        )
        coordinates = vectors * values
        coordinates *= np.where((coordinates**3).sum(axis=0) < 0, -1.0, 1.0)
        # Rotations differ in the last digits, which t-SNE would enlarge.
        n_lacking = max(2 - len(values), 0)
        return np.pad(np.round(coordinates, 12), ((0, 0), (0, n_lacking)))

    @property
    def is_map(self) -> bool:
        """Whether positions are those of neighbors, and not those on two axes."""
        return len(self._coordinates) > 10 and bool(self._coordinates.any())

    @cached_property
    def points(self) -> np.ndarray:
        """Positions of the samples, (s, 2)."""
        n, k = self._coordinates.shape
        plane = self._coordinates[:, :2]
        if not self.is_map:
            return plane
        from sklearn.manifold import TSNE  # slow to import, and only needed here
        from threadpoolctl import threadpool_limits

        # As wide as scikit-learn begins; noise separates copies of a sample, and rows
        # on a line.
        noise = np.random.default_rng(0).normal(scale=1e-5, size=plane.shape)
        start = 1e-4 * plane / plane[:, 0].std() + noise
        # About as many neighbors as a cluster has: more would mix small clusters.
        perplexity = min(30.0, (n - 1) / 3, max(5.0, n / k))
        tsne = TSNE(
            perplexity=perplexity,
            init=start.astype(np.float32),
            random_state=0,
            max_iter=500,
            n_iter_without_progress=100,
            angle=0.8,
        )
        # Several threads would add up in any order, which hundreds of steps would make
        # visible.
        with threadpool_limits(1):
            return np.asarray(tsne.fit_transform(self._coordinates), dtype=float)

    def central(self, cluster: int) -> int:
        """Return which of the drawn samples is nearest to the median of a cluster.

        If a cluster is in two pieces, it is in one of them.
        """
        members = np.flatnonzero(self.labels == cluster)
        here = self.points[members]
        distances = np.linalg.norm(here - np.median(here, axis=0), axis=1)
        return int(members[distances.argmin()])

    def _size(self) -> tuple[float, float]:
        return 6.2, 5.4

    def _words(self) -> str:
        """Return what the picture shows, in words."""
        n = sum(self.sizes.values())
        drawn = len(self.samples)
        positions = "The two axes along which the samples spread most."
        if self.is_map:
            positions = (
                "Neighbors in the embedding are neighbors here; distances between far "
                "clusters mean little. Positions are not used to cluster."
            )
        labels = when(len(self.sizes) <= MAX_NAMED, " Labels: cluster (samples).")
        some = f" {drawn:,} of {n:,} samples drawn, clusters in proportion."
        return positions + labels + when(drawn < n, some)

    def _draw(self, ax: Any) -> None:
        """Draw the samples in the plane, with a label at the center of each cluster."""
        from matplotlib.patheffects import withStroke

        k = len(self.sizes)
        n = sum(self.sizes.values())
        colors = dict(zip(self.sizes, itertools.cycle(PALETTE), strict=False))
        # In random order, so that no cluster is painted over by the next ones.
        self.drawn_order = np.random.default_rng(0).permutation(len(self.points))
        x, y = self.points[self.drawn_order].T
        shades = [colors[label] for label in self.labels[self.drawn_order].tolist()]
        ax.scatter(
            x,
            y,
            s=np.clip(22_000 / max(len(x), 1), 3, 26),
            c=shades,
            alpha=0.75,
            linewidths=0,
            gid="samples",
            rasterized=len(x) > MAX_SAMPLES,
        )
        ax.set(xticks=[], yticks=[])
        ax.margins(0.06)
        ax.set_aspect("equal", adjustable="datalim")
        ax.spines[:].set(color=FAINT, linewidth=0.6)
        repeat = when(k > len(PALETTE), " (colors repeat)")
        title = f"Embedding of {n:,} samples, {count(k, 'cluster')}{repeat}"
        set_titles(ax, title, fill(self.caption, 76))
        for cluster, samples in self.sizes.items() if k <= MAX_NAMED else ():
            ax.text(
                *self.points[self.central(cluster)],
                f"{title_of(cluster, self.names)} ({samples:,})",
                ha="center",
                va="center",
                color="black",
                fontsize=10,
                fontweight="bold",
                path_effects=[withStroke(linewidth=3, foreground="white")],
            )
