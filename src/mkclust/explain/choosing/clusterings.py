"""Clusterings of one kernel, one for each of many numbers of clusters, by one decomposition."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from sklearn.cluster import kmeans_plusplus

from mkclust.engine.eigen import Relaxation, block_width, relax, relax_whole
from mkclust.linalg import orthonormalize
from mkclust.stack import Array
from mkclust.types import Float

# Relative error of the eigenvalue sum.
EIGEN_TOLERANCE = 1e-6
# Eigenvalues below this share of the largest are rounding: the kernel has a lower rank.
RANK_TOLERANCE = 1e-10
# Rounds of k-means, which from good seeds settles in a few.
MOST_ROUNDS = 50
# Centers nearer than this share of the longest distance are one: rounding parts copies of a sample.
SAME_CENTER = 1e-6


@dataclass(frozen=True)
class Clusterings:
    """The clusterings of one centered kernel, one for each of s numbers of clusters.

    Attributes
    ----------
    eigengaps : ndarray of shape (s,)
        Relative gap between eigenvalues k - 1 and k.
    silhouettes : ndarray of shape (s,)
        Mean silhouette of the k clusters in the k - 1 leading eigenvectors.
    labels : ndarray of shape (s, n_samples)
        The clusters.
    vectors : ndarray of shape (n_samples, b)
        The leading eigenvectors, as many as clusters at most, or more.
    eigenvalues : ndarray of shape (b,)
        Their eigenvalues.
    """

    eigengaps: Float
    silhouettes: Float
    labels: np.ndarray
    vectors: Float
    eigenvalues: Float

    def coordinates(self, n_clusters: int) -> Float:
        """Return where samples are by the kernel's own distances, (n_samples, n_clusters - 1)."""
        leading = np.maximum(self.eigenvalues[: n_clusters - 1], 0)
        return self.vectors[:, : n_clusters - 1] * np.sqrt(leading)


def cluster_for_all_k(K: Float, k_values: Sequence[int], start: Float | None = None) -> Clusterings:
    """Cluster the samples of one kernel into each of several numbers of clusters.

    One eigendecomposition serves all numbers: k clusters of a centered kernel show in its k - 1
    leading eigenvectors, whatever k is.

    Parameters
    ----------
    K : ndarray of shape (n_samples, n_samples)
        A centered kernel.
    k_values : sequence of int
        The numbers of clusters, between 2 and n_samples - 1.
    start : ndarray of shape (n_samples, b), default=None
        What the leading eigenvectors may be close to.

    Returns
    -------
    Clusterings
    """
    relaxation = _leading_eigenpairs(K, max(k_values), start)
    values, V = relaxation.eigenvalues, relaxation.vectors
    lowest = RANK_TOLERANCE * max(values[0], 0)
    # Directions that the kernel does not have tell nothing, and are left out.
    points = V * (values > lowest)
    gaps, silhouettes, labels = [], [], []
    for k in k_values:
        above, below = values[k - 2], max(values[k - 1], 0)
        gaps.append((above - below) / above if above > lowest else 0.0)
        labels_of_k, distances = cluster(points[:, : k - 1], k)
        silhouettes.append(silhouette(labels_of_k, distances))
        labels.append(labels_of_k)
    return Clusterings(np.array(gaps), np.array(silhouettes), np.array(labels), V, values)


def _leading_eigenpairs(K: Float, count: int, start: Float | None) -> Relaxation:
    """Return the leading eigenpairs of a kernel held as an array, count of them or more."""
    if block_width(len(K), count) >= len(K):
        return relax_whole(K, count)
    vectors = None if start is None else orthonormalize(start)
    return relax(Array(K), count, tol=EIGEN_TOLERANCE, start=vectors)


def cluster(points: Float, n_clusters: int) -> tuple[np.ndarray, Float]:
    """Cluster points by k-means, from two sets of seeds of which the better one counts.

    With a constant beside them, the k - 1 coordinates of points in k tight clusters are k
    directions at right angles, so that a pivoted QR decomposition takes one point of each. Where
    clusters overlap it may take two of one; seeds drawn far apart err elsewhere.

    Parameters
    ----------
    points : ndarray of shape (n_samples, k - 1)
        Leading eigenvectors of a centered kernel.
    n_clusters : int
        Number of clusters, k.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
        The clusters, in no particular order.
    distances : ndarray of shape (n_samples, k)
        From every sample to every center.
    """
    n = len(points)
    with_constant = np.vstack([np.full(n, 1 / np.sqrt(n)), points.T])
    pivots = scipy.linalg.qr(with_constant, mode="r", pivoting=True, check_finite=False)[1]
    distant = kmeans_plusplus(points, n_clusters, random_state=0)[1]
    candidates = [_k_means(points, points[seeds]) for seeds in (pivots[:n_clusters], distant)]
    labels, squares = min(candidates, key=lambda candidate: candidate[1].min(axis=1).sum())
    return labels, np.sqrt(np.maximum(squares, 0))


def _k_means(points: Float, centers: Float) -> tuple[np.ndarray, Float]:
    """Move centers by k-means until they stay; return labels and squared distances to them."""
    n, n_clusters = len(points), len(centers)
    everyone, lengths = np.arange(n), (points**2).sum(axis=1)[:, None]
    labels = np.full(n, -1)
    for _ in range(MOST_ROUNDS):
        squares = (centers**2).sum(axis=1) - 2 * points @ centers.T
        nearest = squares.argmin(axis=1)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
        members = np.zeros((n, n_clusters))
        members[everyone, labels] = 1
        sizes = members.sum(axis=0)[:, None]
        centers = np.where(sizes > 0, members.T @ points / np.maximum(sizes, 1), centers)
    return labels, squares + lengths


def silhouette(labels: np.ndarray, distances: Float) -> float:
    """Return the mean silhouette by distances to the centers.

    Of a sample, it is how much nearer its own center is than the next one, relatively. A sample
    alone in its cluster counts zero, and so do all where there are fewer clusters than asked for.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
        Clusters.
    distances : ndarray of shape (n_samples, k)
        From every sample to every center.

    Returns
    -------
    float
        At most 1.
    """
    everyone = np.arange(len(labels))
    to_center, others = distances[everyone, labels], distances.copy()
    others[everyone, labels] = np.inf
    nearest = others.min(axis=1)
    sizes = np.bincount(labels, minlength=distances.shape[1])
    if sizes.min() == 0 or nearest.min() <= SAME_CENTER * distances.max():
        return 0.0
    return float(np.where(sizes[labels] > 1, (nearest - to_center) / nearest, 0).mean())
