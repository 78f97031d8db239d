"""Clusterings of one kernel for many numbers of clusters, and how separate clusters are."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.spatial.distance import cdist
from scipy.stats import binom
from sklearn.cluster import KMeans, kmeans_plusplus

from mkclust.engine.eigen import relax
from mkclust.explain.sample_scores import own_and_nearest
from mkclust.linalg.threads import one_thread_if_small
from mkclust.stack import DenseKernel
from mkclust.types import Float

# Relative error of the eigenvalue sum.
EIGEN_TOLERANCE = 1e-6
# Eigenvalues below this share of the largest are rounding: the kernel has a lower rank.
RANK_TOLERANCE = 1e-10
# Iterations of k-means, which from good seeds settles in a few.
MAX_ITER = 50
# Centers nearer than this share of the longest distance are the same, apart from
# rounding.
SAME_CENTER = 1e-6
# Positions on the line from a center, 0, to the next one, 1, with the border at 1/2: up
# to the first a sample is near its center, from the second on at the border.
CORE, BORDER = 0.25, 0.375
# Positions of samples at the very center are zero up to this.
ROUNDING = 1e-6
# How dense a border of a continuum is at least, in units of the sparser of the two
# cores: 0.36 was the least on curves and surfaces of a thousand samples cut into two or
# three parts, 0.53 for more parts. From the third on, each dimension of the parts adds
# as much again.
FEW_PARTS, SPARSE_OF_FEW, SPARSE_OF_MANY = 3, 0.35, 0.5


class SpectralPath(NamedTuple):
    """The clusterings of one centered kernel, one for each of s numbers of clusters."""

    eigengaps: Float  # relative gap between eigenvalues k - 1 and k, (s,)
    # Mean silhouette of k clusters in k - 1 leading eigenvectors, (s,).
    silhouettes: Float
    labels: np.ndarray  # (s, n_samples)
    vectors: Float  # the leading eigenvectors, (n_samples, b)
    eigenvalues: Float  # (b,)

    def coordinates(self, n_clusters: int) -> Float:
        """Return the samples by the kernel's own distances, (n_samples, n_clusters - 1)."""
        leading = np.maximum(self.eigenvalues[: n_clusters - 1], 0)
        return self.vectors[:, : n_clusters - 1] * np.sqrt(leading)


def centered(K: Float) -> Float:
    """Return a kernel centered."""
    K = K - K.mean(axis=0)
    return K - K.mean(axis=1)[:, None]


def cluster_for_all_k(K: Float, k_values: Sequence[int]) -> SpectralPath:
    """Cluster samples by the k - 1 leading eigenvectors of a centered kernel, for each k."""
    with one_thread_if_small(len(K)):
        found = relax(DenseKernel(K), max(k_values), tol=EIGEN_TOLERANCE)
        values, V = found.eigenvalues, found.vectors
        lowest = RANK_TOLERANCE * max(values[0], 0)
        # Directions that the kernel does not have carry no information, and are left
        # out.
        points = V * (values > lowest)
        clusterings = [cluster(points[:, : k - 1], k) for k in k_values]
    above, below = (
        values[np.array(k_values) - 2],
        np.maximum(values[np.array(k_values) - 1], 0),
    )
    gaps = np.where(above > lowest, 1 - below / np.where(above > lowest, above, 1), 0)
    silhouettes = np.array([silhouette(*each) for each in clusterings])
    return SpectralPath(
        gaps, silhouettes, np.array([each[0] for each in clusterings]), V, values
    )


def cluster(points: Float, n_clusters: int) -> tuple[np.ndarray, Float]:
    """Return k-means clusters of (n, k - 1) points, and all distances to the centers, (n, k)."""
    n = len(points)
    # With a constant beside them, points in k tight clusters are k directions at right
    # angles, so that a pivoted QR decomposition takes one point of each, unless
    # clusters overlap.
    with_constant = np.vstack([np.full(n, 1 / np.sqrt(n)), points.T])
    pivots = scipy.linalg.qr(
        with_constant, mode="r", pivoting=True, check_finite=False
    )[1]
    distant = kmeans_plusplus(points, n_clusters, random_state=0)[1]
    starts = (points[pivots[:n_clusters]], points[distant])
    options = {"n_init": 1, "max_iter": MAX_ITER, "tol": 0}
    found = [KMeans(n_clusters, init=start, **options).fit(points) for start in starts]
    best = min(found, key=lambda each: each.inertia_)
    return best.labels_, cdist(points, best.cluster_centers_)


def silhouette(labels: np.ndarray, distances: Float) -> float:
    """Return the mean silhouette by (n, k) distances to centers, zero if a cluster is empty."""
    to_center, nearest = own_and_nearest(distances, labels)
    sizes = np.bincount(labels, minlength=distances.shape[1])
    if sizes.min() == 0 or nearest.min() <= SAME_CENTER * distances.max():
        return 0.0
    return float(np.where(sizes[labels] > 1, (nearest - to_center) / nearest, 0).mean())


class Borders(NamedTuple):
    """How many samples lie between neighboring clusters, and how many near their centers."""

    n_between: int  # samples at a border
    # Samples near the centers: at each border, twice those of the sparser side.
    n_within: int
    sparse: float  # a lower density than this is sparser than in a continuum

    @property
    def density(self) -> float:
        """How dense samples are at borders, in units of that near centers; NaN without samples."""
        if self.n_within == 0:
            return float("inf") if self.n_between else float("nan")
        return self.n_between / self.n_within * CORE / (0.5 - BORDER)

    @property
    def p_value(self) -> float:
        """How likely a continuum is to have as few samples at the borders between its parts."""
        odds = self.sparse * (0.5 - BORDER) / CORE
        total = self.n_between + self.n_within
        return (
            float(binom.cdf(self.n_between, total, odds / (1 + odds))) if total else 1.0
        )


def count_at_borders(points: Float, labels: np.ndarray) -> Borders:
    """Count samples at the borders between clusters of (n, d) points, and near the centers.

    A sample has a position between its own center and that of the neighbor with the
    nearest border. At the edge of a cloud a border is denser than the sparser core,
    hence the sparser side counts.
    """
    labels = np.unique(labels, return_inverse=True)[1]
    k = int(labels.max()) + 1
    centers = np.array([points[labels == c].mean(axis=0) for c in range(k)])
    squares, apart = (
        cdist(points, centers, "sqeuclidean"),
        cdist(centers, centers, "sqeuclidean"),
    )
    apart[apart == 0] = np.inf  # of every center to itself
    gained = np.take_along_axis(squares, labels[:, None], axis=1) - squares
    positions = np.where(
        np.isinf(apart[labels]), -np.inf, 0.5 + gained / (2 * apart[labels])
    )
    neighbors, position = positions.argmax(axis=1), positions.max(axis=1)
    near = (position >= -ROUNDING) & (position < CORE)
    cores = np.zeros((k, k), dtype=np.int64)
    np.add.at(cores, (labels[near], neighbors[near]), 1)
    # Every pair of clusters counts twice.
    n_within = int(np.minimum(cores, cores.T).sum())
    least = SPARSE_OF_FEW if k <= FEW_PARTS else SPARSE_OF_MANY
    sparse = least * max(1.0, _dimensions(points - centers[labels], labels) - 1)
    return Borders(int((position >= BORDER).sum()), n_within, sparse)


def _dimensions(offsets: Float, labels: np.ndarray) -> float:
    """Return the mean number of directions of clusters: (sum of variances)^2 / sum of squares."""
    total = 0.0
    for c in range(labels.max() + 1):
        scatter = offsets[labels == c].T @ offsets[labels == c]
        squares = np.square(scatter).sum()
        total += np.sum(labels == c) * (
            np.trace(scatter) ** 2 / squares if squares > 0 else 1.0
        )
    return float(total / len(labels))
