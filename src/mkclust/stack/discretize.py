"""From a relaxed partition to labels: row-normalized k-means."""

from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state

from mkclust.linalg import (
    astype,
    is_foreign,
    is_on_accelerator,
    namespace,
    precision_of,
    ranges,
    select,
    to_device,
    to_host,
)
from mkclust.linalg.threads import one_thread_if_small
from mkclust.stack.lloyd import k_means
from mkclust.types import Array, Float

# Up to this many rows k-means is faster on one thread.
FEW_ROWS = 20_000
# Two centers tie for a unit row if its squared distances to them differ by less than this: rounding
# must not decide between them.
TIE = 1e-9
# Up to this many rows, k-means learns the centers from all of them.
ALL_ROWS = 100_000
# Rows whose distances to the centers are computed together.
BLOCK_ROWS = 1 << 16


def normalize_rows(rows: Array) -> Array:
    """Return the rows scaled to unit length; a zero row has no direction and becomes zero."""
    xp = namespace(rows)
    lengths = xp.linalg.vector_norm(rows, axis=1, keepdims=True)
    # Rows of an orthonormal matrix are of the order sqrt(k / n); far below that is rounding.
    return xp.where(lengths <= 1e-15, 0.0, rows) / xp.where(lengths <= 1e-15, 1.0, lengths)


def discretize(
    rows: Array,
    n_clusters: int,
    *,
    n_init: int = 10,
    init: str = "k-means++",
    random_state: int | np.random.RandomState | None = None,
    all_rows: int | None = None,
) -> tuple[Array, Float]:
    """Cluster the row-normalized embedding by k-means.

    The centers are learned by scikit-learn on the host, or, with init="k-means++", where the rows
    are if that is an accelerator.

    Parameters
    ----------
    rows : array of any library, of shape (n_samples, n_columns)
        The embedding, one sample per row.
    n_clusters : int
        Number of clusters, k.
    n_init : int, default=10
        Number of starts; the best is kept.
    init : {"k-means++", "random"}, default="k-means++"
        How a start chooses its centers: spread out, or any samples.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts, and of the sample.
    all_rows : int, default=None
        Up to this many rows, 100,000 by default, the centers are learned from all of them; of more,
        from a sample of half this number, the same however the rows are cut into chunks. All rows
        are assigned to the nearest center.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
        Clusters numbered by falling size.
    centers : ndarray of shape (n_clusters, n_columns)
        Their centers, in that order.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.stack.discretize import discretize
    >>> rows = np.array([[1.0, 0.1], [5.0, 0.4], [0.0, 2.0]])
    >>> discretize(rows, 2, random_state=0)[0].tolist()
    [0, 0, 1]
    """
    n, most, some = rows.shape[0], all_rows or ALL_ROWS, rows
    if n > most:
        # A generator's choice needs no list of all n, unlike that of a RandomState.
        seed = check_random_state(random_state).randint(2**31 - 1)
        drawn = np.random.default_rng(seed).choice(n, most // 2, replace=False)
        some = select(rows, np.sort(drawn))
    sample = normalize_rows(some)
    options: Any = {"n_init": n_init, "random_state": random_state}
    if is_on_accelerator(sample) and init == "k-means++":
        centers = k_means(sample, n_clusters, **options)
    else:
        with one_thread_if_small(sample.shape[0], FEW_ROWS):
            found = KMeans(n_clusters, init=init, **options).fit(to_host(sample, None))
        centers = found.cluster_centers_
    # A row between two centers joins the first of them, so the order decides about sizes as sizes
    # do about the order; larger clusters only grow, which soon settles it.
    for step in range(n_clusters + 1):
        labels = assign(rows, centers)
        order = _order_by_size(labels, n_clusters)
        if step == n_clusters or np.array_equal(order, np.arange(n_clusters)):
            break
        centers = centers[order]
    return labels, centers


def assign(rows: Array, centers: Float) -> Array:
    """Return the number of the center nearest to the direction of each row, (n_samples,).

    The rows are an array of any library; the centers are those that :func:`discretize` found.
    """
    labels = [np.empty(0, np.intp)]
    for some in ranges(rows.shape[0], BLOCK_ROWS):
        nearest = nearest_center(normalize_rows(rows[some, :]), centers)
        labels.append(to_host(nearest, np.intp))
    return np.concatenate(labels)


def nearest_center(rows: Array, centers: Float) -> Array:
    """Return the number of the center nearest to each row of unit length, the first if some tie."""
    xp = namespace(rows)
    if is_foreign(rows):
        centers = to_device(centers, rows, precision_of(rows))
    distances = xp.sum(centers**2, axis=1) - 2 * rows @ centers.T
    is_near = distances <= xp.min(distances, axis=1, keepdims=True) + TIE
    # The standard has no argmax of truth values.
    return xp.argmax(astype(is_near, "uint8"), axis=1)


def count_clusters(labels: Array) -> int:
    """Return how many clusters have samples, given labels, -1 for none."""
    return int(np.sum(np.asarray(np.unique(labels)) >= 0))


def _order_by_size(labels: Array, n_clusters: int) -> np.ndarray:
    """Return the clusters by falling size; those of one size by their first sample."""
    clusters, first, sizes = np.unique(labels, return_index=True, return_counts=True)
    all_sizes, all_first = np.zeros((2, n_clusters), np.int64)
    all_sizes[clusters], all_first[clusters] = sizes, first
    return np.lexsort((all_first, -all_sizes))
