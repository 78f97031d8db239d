"""How well each sample fits into its cluster: silhouette and margin."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics import silhouette_samples

from mkclust.explain.fitted import check_fitted
from mkclust.fit import MultipleKernelClusterer
from mkclust.stack.discretize import compared_rows, normalize_rows
from mkclust.types import Float


@dataclass(frozen=True, eq=False)
class SampleScores:
    """How well each sample fits into its cluster.

    Attributes
    ----------
    silhouette : ndarray of shape (n_samples,)
        From -1 to 1: how much nearer its own cluster is than the next one. Zero for a
        sample alone in its cluster; NaN if there is a single cluster, or one per
        sample.
    margin : ndarray of shape (n_samples,)
        0 on the border to the next cluster, NaN for one cluster. For rows of unit
        length, the cosine to its own center minus that to the next one; for components
        (``rounding_``), how far it is from the border, where its own center is at 1.
    """

    silhouette: Float
    margin: Float


def sample_scores(
    model: MultipleKernelClusterer, *, most_compared: int = 10_000
) -> SampleScores:
    """Return the silhouette and the margin of every sample of a fit.

    Both are those of the rows that k-means has clustered, in which it made the clusters
    as tight as it could: the scores compare samples, and do not prove that clusters
    exist.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator, any of ``METHODS``.
    most_compared : int, default=10_000
        Up to this many samples the silhouette uses the mean distances to the samples of
        the clusters; beyond, the distances to their centers (the simplified
        silhouette).

    Returns
    -------
    SampleScores
        In the order of ``labels_``; NaN for samples with the label -1.

    Examples
    --------
    >>> from mkclust import AverageKKM, sample_scores
    >>> from mkclust.datasets import load
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> model = AverageKKM(n_clusters=10, random_state=0).fit(views)
    >>> scores = sample_scores(model)
    >>> scores.silhouette.shape, bool(abs(scores.margin).max() <= 2)
    ((300,), True)
    """
    check_fitted(model)
    labels = np.asarray(model.labels_)
    silhouette, margin = np.full((2, len(labels)), np.nan)
    known = np.flatnonzero(labels >= 0)
    clusters, own = np.unique(labels[known], return_inverse=True)
    if len(clusters) < 2:
        return SampleScores(silhouette, margin)
    embedded = model._rows_of(model.embedding_)[known]
    rows = compared_rows(embedded, model._root)
    centers = np.array([rows[own == c].mean(axis=0) for c in range(len(clusters))])
    margin[known] = margins(embedded, own, centers, model._root)
    if len(known) > most_compared:
        sizes = np.bincount(own)
        to_own, to_next = own_and_nearest(cdist(rows, centers), own)
        larger = np.maximum(np.maximum(to_own, to_next), np.finfo(float).tiny)
        scores = (to_next - to_own) / larger
        silhouette[known] = np.where(sizes[own] == 1, 0.0, scores)
    elif len(clusters) < len(known):
        silhouette[known] = silhouette_samples(rows, own)
    return SampleScores(silhouette, margin)


def margins(
    embedded: Float, labels: np.ndarray, centers: Float, root: Float | None = None
) -> Float:
    """Return the margins of rows of an embedding; NaN if there is one cluster.

    With a `root`, rows times it are compared with the centers, otherwise directions
    are.
    """
    if len(centers) < 2:
        return np.full(len(labels), np.nan)
    rows = compared_rows(embedded, root)
    if root is None:
        unit_centers = normalize_rows(centers)
        to_own, to_next = own_and_nearest(-rows @ unit_centers.T, labels)
        return to_next - to_own

    squares = cdist(rows, centers, "sqeuclidean")
    between = cdist(centers, centers, "sqeuclidean")[labels]
    between[between == 0] = np.inf
    # From the border to the own center it is half of the way between two centers.
    own = np.take_along_axis(squares, labels[:, None], axis=1)
    shares = (squares - own) / between
    np.put_along_axis(
        shares,
        labels[:, None],
        np.inf,
        axis=1,
    )
    return shares.min(axis=1)


def own_and_nearest(distances: Float, own: np.ndarray) -> tuple[Float, Float]:
    """Return the distances to the own center and to the nearest of the others."""
    others = distances.copy()
    np.put_along_axis(
        others,
        own[:, None],
        np.inf,
        axis=1,
    )
    return distances[np.arange(len(own)), own], others.min(axis=1)
