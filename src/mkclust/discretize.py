"""From a relaxed partition to labels: row-normalized k-means."""

import numpy as np
from sklearn.cluster import KMeans

from mkclust.types import Float

# Two centers are equally near where their squared distances differ by less than this; unit rows
# make it an absolute figure. Rounding must not decide between them.
TIE = 1e-9


def normalize_rows(rows: Float) -> Float:
    """Return the rows scaled to unit length; a zero row has no direction and stays zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1)


def discretize(
    rows: Float,
    n_clusters: int,
    *,
    n_init: int = 10,
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
    means = KMeans(n_clusters, n_init=n_init, random_state=random_state).fit(rows)
    labels = nearest_center(rows, means.cluster_centers_)
    sizes = np.bincount(labels, minlength=n_clusters)
    # Equal sizes: who comes first among the samples, so that numbers do not depend on the starts.
    first = np.full(n_clusters, len(labels))
    np.minimum.at(first, labels, np.arange(len(labels)))
    order = np.lexsort((first, -sizes))
    rank = np.argsort(order)
    return rank[labels], means.cluster_centers_[order]


def nearest_center(rows: Float, centers: Float) -> np.ndarray:
    """Return the number of the center nearest to each row, the first of those that tie."""
    distances = (centers**2).sum(axis=1) - 2 * rows @ centers.T
    return np.argmax(distances <= distances.min(axis=1, keepdims=True) + TIE, axis=1)
