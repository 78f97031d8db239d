"""From a relaxed partition to labels: row-normalized k-means."""

import numpy as np
from sklearn.cluster import KMeans

from mkclust.types import Float

# Two centers are equally near where their squared distances differ by less than this; unit rows
# make it an absolute figure. Rounding must not decide between them.
TIE = 1e-9


def normalize_rows(rows: Float) -> Float:
    """Return the rows scaled to unit length; a zero row has no direction and becomes zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    # Rows of an orthonormal matrix are of the order sqrt(k / n); far below that is rounding.
    return np.where(lengths > 1e-15, rows, 0) / np.where(lengths > 1e-15, lengths, 1)


def discretize(
    rows: Float,
    n_clusters: int,
    *,
    n_init: int = 10,
    init: str = "k-means++",
    random_state: int | np.random.RandomState | None = None,
) -> tuple[np.ndarray, Float]:
    """Cluster the row-normalized embedding by k-means.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_columns)
        The embedding, one sample a row.
    n_clusters : int
        Number of clusters, k.
    n_init : int, default=10
        Number of starts; the best is kept.
    init : {"k-means++", "random"}, default="k-means++"
        How a start chooses its centers: spread out, or any samples.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
        Clusters numbered by falling size.
    centers : ndarray of shape (n_clusters, n_columns)
        Their centers, in that order.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.discretize import discretize
    >>> rows = np.array([[1.0, 0.1], [5.0, 0.4], [0.0, 2.0]])
    >>> discretize(rows, 2, random_state=0)[0].tolist()
    [0, 0, 1]
    """
    rows = normalize_rows(rows)
    means = KMeans(n_clusters, init=init, n_init=n_init, random_state=random_state).fit(rows)
    centers = means.cluster_centers_
    labels = nearest_center(rows, centers)
    # A row between two centers joins the first of them, so that the order decides about sizes as
    # sizes do about the order; larger clusters only grow, which soon settles it.
    for _ in range(n_clusters):
        sizes = np.bincount(labels, minlength=n_clusters)
        # Equal sizes: who comes first among the samples, whatever the starts were.
        first = np.full(n_clusters, len(labels))
        np.minimum.at(first, labels, np.arange(len(labels)))
        order = np.lexsort((first, -sizes))
        if np.array_equal(order, np.arange(n_clusters)):
            break
        centers = centers[order]
        labels = nearest_center(rows, centers)
    return labels, centers


def nearest_center(rows: Float, centers: Float) -> np.ndarray:
    """Return the number of the center nearest to each row, the first of those that tie."""
    distances = (centers**2).sum(axis=1) - 2 * rows @ centers.T
    return np.argmax(distances <= distances.min(axis=1, keepdims=True) + TIE, axis=1)
