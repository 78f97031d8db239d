"""The samples on a map of the embedding, colored by cluster."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from textwrap import wrap
from typing import Any

import numpy as np

from mkclust.linalg import select, to_host
from mkclust.plots.sampling import cluster_sizes, sample_clusters
from mkclust.plots.style import FAINT, PALETTE, Display, set_titles, shorten

# The most samples that are drawn: a map of 2,000 takes 5 s, and more dots only add ink.
MAX_SAMPLES = {"neighbors": 2_000, "plane": 20_000}
# Fewer samples have no neighborhoods, and are drawn on the plane.
MIN_MAPPED = 11
# The names of more clusters would cover the dots.
MAX_NAMED = 30


@dataclass(eq=False, kw_only=True)
class EmbeddingDisplay(Display):
    """The samples on a map of the embedding, colored by cluster.

    ``EmbeddingDisplay.from_estimator(model)`` makes it. Positions say which samples are neighbors
    and little else, and are not used to cluster; ``method="plane"`` draws distances as they are,
    along the two axes on which they are largest.

    Parameters
    ----------
    embedding : array-like of shape (n, k)
        The relaxed partition matrix; its rows are scaled to length one, as k-means uses them.
    labels : array-like of int of shape (n,)
        The cluster of each sample; samples labeled -1 are left out.
    names : mapping of int to str, default=None
        Names of clusters, written in place of their numbers.
    method : {"neighbors", "plane"}, default="neighbors"
        "neighbors": a map (t-SNE) on which neighbors stay neighbors. "plane": the two axes along
        which the rows spread most; also used for ten samples or fewer.
    max_samples : int, default=None
        If there are more samples, a random subset of this size is drawn, clusters in proportion;
        None draws 2,000 on a map and 20,000 on the plane.

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
    names: Mapping[int, str] | None = None
    method: str = "neighbors"
    max_samples: int | None = None

    def __post_init__(self) -> None:
        if self.method not in MAX_SAMPLES:
            raise ValueError(f"method={self.method!r}: pass 'neighbors' or 'plane'")
        most = MAX_SAMPLES[self.method] if self.max_samples is None else self.max_samples
        labels = to_host(self.labels, None)
        self.samples, self.sizes = sample_clusters(labels, most), cluster_sizes(labels)
        self.embedding = to_host(select(self.embedding, self.samples))
        self.labels = labels[self.samples]

    @classmethod
    def _read(cls, model: Any, X: Any, **options: Any) -> dict[str, Any]:
        return {"embedding": model.embedding_, "labels": model.labels_, **options}

    @cached_property
    def _axes(self) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates of the samples on their principal axes, and the shares of the variance."""
        return _principal_axes(self.embedding)

    @property
    def is_map(self) -> bool:
        """Whether positions are those of neighbors, and not of the plane."""
        coordinates, _ = self._axes
        is_enough = len(coordinates) >= MIN_MAPPED and bool(coordinates.any())
        return self.method == "neighbors" and is_enough

    @cached_property
    def points(self) -> np.ndarray:
        """Positions of the samples, (s, 2)."""
        coordinates, _ = self._axes
        return _neighbor_map(coordinates) if self.is_map else coordinates[:, :2]

    def _words(self) -> str:
        n = sum(self.sizes.values())
        sentences = [
            "Neighbors in the embedding are neighbors here; distances between far clusters mean "
            "little. Positions are not used to cluster."
        ]
        if not self.is_map:
            shares = "; second axis: ".join(f"{share:.0%}" for share in self._axes[1][:2])
            sentences = [f"First axis: {shares} of the variance. Other axes are not drawn."]
        if len(self.sizes) <= MAX_NAMED:
            sentences.append("Labels: cluster (samples).")
        if len(self.samples) < n:
            sentences.append(
                f"{len(self.samples):,} of {n:,} samples drawn, clusters in proportion."
            )
        return " ".join(sentences)

    def _draw(self, ax: Any) -> None:
        clusters, k, n = list(self.sizes), len(self.sizes), sum(self.sizes.values())
        colors = dict(zip(clusters, np.resize(PALETTE, k).tolist(), strict=True))
        # In random order, so that no cluster is painted over by the next ones.
        self.drawn_order = np.random.default_rng(0).permutation(len(self.points))
        x, y = self.points[self.drawn_order].T
        shades = [colors[label] for label in self.labels[self.drawn_order].tolist()]
        size = float(np.clip(22_000 / max(len(x), 1), 3, 26))
        dots = ax.scatter(x, y, size, shades, alpha=0.75, linewidths=0, gid="samples")
        dots.set_rasterized(len(x) > MAX_SAMPLES["neighbors"])
        ax.set(xticks=[], yticks=[])
        ax.margins(0.06)
        ax.set_aspect("equal", adjustable="datalim")
        ax.spines[:].set(color=FAINT, linewidth=0.6)
        title = f"Embedding of {n:,} samples, {k:,} cluster{'s' * (k != 1)}"
        title += " (colors repeat)" if k > len(PALETTE) else ""
        set_titles(ax, title, "\n".join(wrap(self.caption, 76)))
        if k <= MAX_NAMED:
            self._name_clusters(ax)

    def _name_clusters(self, ax: Any) -> None:
        """Write the name and size of each cluster at its medoid."""
        from matplotlib.patheffects import withStroke

        for cluster in np.unique(self.labels).tolist():
            here = self.points[self.labels == cluster]
            # The sample nearest to the median: if a cluster is in two pieces, in one of them.
            medoid = here[np.linalg.norm(here - np.median(here, axis=0), axis=1).argmin()]
            name = shorten((self.names or {}).get(cluster, cluster), 20)
            text = f"{name} ({self.sizes[cluster]:,})"
            label = ax.text(*medoid, text, ha="center", va="center", parse_math=False)
            label.set(color="black", fontsize=10, fontweight="bold")
            label.set_path_effects([withStroke(linewidth=3, foreground="white")])


def _principal_axes(embedding: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the unit rows on their principal axes, at least two, and the shares of variance.

    The embedding is unique only up to a rotation, so signs are chosen by the points.
    """
    lengths = np.linalg.norm(embedding, axis=1, keepdims=True)
    rows = embedding / np.where(lengths > 0, lengths, 1)
    vectors, values, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    coordinates = vectors * values
    coordinates *= np.where((coordinates**3).sum(axis=0) < 0, -1.0, 1.0)
    # Rotations differ in the last digits, which t-SNE would enlarge.
    coordinates = np.round(coordinates, 12)
    shares = values**2 / max(float((values**2).sum()), np.finfo(float).tiny)
    missing = max(2 - len(shares), 0)
    return np.pad(coordinates, ((0, 0), (0, missing))), np.pad(shares, (0, missing))


def _neighbor_map(coordinates: np.ndarray) -> np.ndarray:
    """Return the positions that t-SNE finds, begun on the first two axes: the same in every run."""
    from sklearn.manifold import TSNE  # slow to import, and only needed here
    from threadpoolctl import threadpool_limits

    n, k = coordinates.shape
    plane = coordinates[:, :2]
    # As wide as scikit-learn begins; noise lets copies of a sample, and rows on a line, separate.
    noise = np.random.default_rng(0).normal(scale=1e-5, size=plane.shape)
    start = 1e-4 * plane / plane[:, 0].std() + noise
    # About as many neighbors as a cluster has: more would mix small clusters.
    perplexity = min(30.0, (n - 1) / 3, max(5.0, n / k))
    options: dict[str, Any] = {"max_iter": 500, "n_iter_without_progress": 100, "angle": 0.8}
    tsne = TSNE(perplexity=perplexity, init=start.astype(np.float32), random_state=0, **options)
    # Several threads would add up in any order, which hundreds of steps would make visible.
    with threadpool_limits(1):
        return np.asarray(tsne.fit_transform(coordinates), dtype=float)
