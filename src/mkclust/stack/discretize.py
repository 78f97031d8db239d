"""From a relaxed partition to labels: row-normalized k-means."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state

from mkclust.linalg import (
    astype,
    free_bytes,
    is_foreign,
    is_on_accelerator,
    namespace,
    precision_of,
    ranges,
    select,
    to_device,
    to_host,
)
from mkclust.samples.dask import DaskBlocks, is_dask, persist, reduce_blocks
from mkclust.stack.lloyd import k_means
from mkclust.types import Array, Float

# Two centers are equally near where their squared distances differ by less than this; unit rows
# make it an absolute figure. Rounding must not decide between them.
TIE = 1e-9
# Up to so many rows, k-means learns from all of them, wherever they are; beyond, from a sample, and
# gives the others to the nearest center some at a time.
ALL_ROWS, SAMPLE_ROWS, BLOCK_ROWS = 100_000, 50_000, 1 << 16
# Where the distances of one start take no more, all starts are computed at once on a host, too, as
# many as fit: scikit-learn takes longer for many small ones.
HOST_BYTES = 1 << 25
# On a device, as many at a time as have so many distances to the centers.
DEVICE_DISTANCES = 1 << 24


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
    start: np.ndarray | None = None,
    all_rows: int | None = None,
    sample_rows: int | None = None,
) -> tuple[Array, Float]:
    """Cluster the row-normalized embedding by k-means.

    Of more than 100,000 rows the centers are learned on a sample of 50,000, the same however the
    rows are cut into chunks, and all rows are given to the nearest. Rows on an accelerator stay
    there; the centers of many others are learned by scikit-learn on the host.

    Parameters
    ----------
    rows : array of any library, or dask array, of shape (n_samples, n_columns)
        The embedding, one sample a row.
    n_clusters : int
        Number of clusters, k.
    n_init : int, default=10
        Number of starts; the best is kept.
    init : {"k-means++", "random"}, default="k-means++"
        How a start chooses its centers: spread out, or any samples.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts, and of the sample.
    start : ndarray of int of shape (n_samples,), default=None
        Clusters to begin one more start with, where the centers are learned from all rows and not
        by scikit-learn; a third of the other starts is enough then.
    all_rows, sample_rows : int, default=None
        Up to how many rows the centers are learned on all of them, and on how many otherwise;
        None means 100,000 and 50,000.

    Returns
    -------
    labels : ndarray or dask array of shape (n_samples,)
        Clusters numbered by falling size; a dask array is kept where the rows are.
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
    sample = _sample(rows, random_state, all_rows or ALL_ROWS, sample_rows or SAMPLE_ROWS)
    unit_rows = normalize_rows(sample)
    options: Any = {"n_init": n_init, "init": init, "random_state": random_state}
    on_device = is_on_accelerator(unit_rows)
    if on_device or 8 * unit_rows.shape[0] * n_clusters <= HOST_BYTES:
        if start is not None and not is_dask(rows) and unit_rows.shape[0] == rows.shape[0]:
            options |= {"labels": start, "n_init": max(1, n_init // 3)}
        if not on_device:
            options["distance_bytes"] = HOST_BYTES
        centers = k_means(unit_rows, n_clusters, **options)
    else:
        centers = KMeans(n_clusters, **options).fit(unit_rows).cluster_centers_
    if is_dask(rows):
        for _ in range(n_clusters):
            if (order := _rank(*_census(rows, centers))) is None:
                break
            centers = centers[order]
        return persist(assign(rows, centers)), centers
    labels, tied = _labels_and_ties(rows, centers)
    for _ in range(n_clusters):
        if (order := _rank(*_count(labels, 0, n_clusters))) is None:
            break
        centers = centers[order]
        labels = np.argsort(order)[labels]
        if len(tied):  # all others have one nearest center, whatever its number
            labels[tied] = assign(select(rows, tied), centers)
    return labels, centers


def assign(rows: Array, centers: Float) -> Array:
    """Return the number of the center nearest to the direction of each row.

    Parameters
    ----------
    rows : array of any library, or dask array, of shape (n_samples, n_columns)
        Rows of any length.
    centers : ndarray of shape (n_clusters, n_columns)
        The centers that :func:`discretize` found.

    Returns
    -------
    ndarray or dask array of shape (n_samples,)
        Lazy for a dask array.
    """
    if is_dask(rows):
        return rows.rechunk({1: -1}).map_blocks(
            _assign_block, centers, drop_axis=1, dtype=np.intp, meta=np.empty(0, np.intp)
        )
    cut = _cut(rows, len(centers))
    return np.concatenate([_assign_block(block, centers) for _, block in cut])


def nearest_center(rows: Array, centers: Float) -> Array:
    """Return the number of the center nearest to each row, the first of those that tie.

    Parameters
    ----------
    rows : array of shape (n_samples, n_columns)
        Rows of unit length.
    centers : ndarray of shape (n_clusters, n_columns)
        The centers.

    Returns
    -------
    array of shape (n_samples,)
        Where the rows live.
    """
    return _first_true(_near_centers(rows, centers))


def _near_centers(rows: Array, centers: Float) -> Array:
    """Return which centers are the nearest of each row, or tie with it, (n_rows, n_clusters)."""
    xp = namespace(rows)
    if is_foreign(rows):
        centers = to_device(centers, rows, precision_of(rows))
    distances = xp.sum(centers**2, axis=1) - 2 * rows @ centers.T
    return distances <= xp.min(distances, axis=1, keepdims=True) + TIE


def _first_true(holds: Array) -> Array:
    """Return the number of the first column in which each row holds."""
    # The standard knows no largest of truth values.
    return namespace(holds).argmax(astype(holds, "uint8") if is_foreign(holds) else holds, axis=1)


def count_clusters(labels: Array) -> int:
    """Return how many clusters have samples.

    Parameters
    ----------
    labels : ndarray or dask array of shape (n_samples,)
        Clusters of the samples, -1 for none; those of a dask array are counted where they are.

    Returns
    -------
    int
    """
    return int(np.sum(np.asarray(np.unique(labels)) >= 0))


def _rank(sizes: np.ndarray, first: np.ndarray) -> np.ndarray | None:
    """Return the order of clusters by falling size, None where they are in it.

    A row between two centers joins the first of them, so that the order decides about sizes as
    sizes do about the order; larger clusters only grow, which soon settles it. Of equal sizes, that
    comes first which does among the samples, whatever the starts were.
    """
    order = np.lexsort((first, -sizes))
    return None if np.array_equal(order, np.arange(len(order))) else order


def _labels_and_ties(rows: Array, centers: Float) -> tuple[np.ndarray, np.ndarray]:
    """Return the centers that rows are assigned to, and the rows that are as near to another."""
    labels, tied = [], []
    for start, block in _cut(rows, len(centers)):
        near = _near_centers(normalize_rows(block), centers)
        labels.append(to_host(_first_true(near), np.intp))
        counts = to_host(namespace(near).sum(astype(near, "uint8"), axis=1), None)
        tied.append(start + np.flatnonzero(counts > 1))
    return np.concatenate(labels), np.concatenate(tied)


def _assign_block(rows: Array, centers: Float) -> np.ndarray:
    """Assign the rows of one block; labels come to the host."""
    return to_host(nearest_center(normalize_rows(rows), centers), np.intp)


def _census(rows: Array, centers: Float) -> tuple[np.ndarray, np.ndarray]:
    """Return how many rows of a dask array are nearest to each center, and the first of them."""
    n_clusters = len(centers)

    def count(blocks: Sequence[np.ndarray], start: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the census of one block."""
        return _count(_assign_block(blocks[0], centers), start, n_clusters)

    return reduce_blocks([rows.rechunk({1: -1})], count, _join)


def _count(labels: np.ndarray, start: int, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the sizes of clusters, and the first sample of each, numbered from a start."""
    first = np.full(n_clusters, np.iinfo(np.int64).max)
    np.minimum.at(first, labels, start + np.arange(len(labels)))
    return np.bincount(labels, minlength=n_clusters), first


def _join(one: tuple, other: tuple) -> tuple[np.ndarray, np.ndarray]:
    """Return the census of two sets of rows."""
    return one[0] + other[0], np.minimum(one[1], other[1])


def _cut(rows: Array, n_clusters: int) -> Iterator[tuple[int, Array]]:
    """Yield blocks of rows, with the number of their first row."""
    n, height = rows.shape[0], BLOCK_ROWS
    if free_bytes(rows) is not None:
        height = max(1, DEVICE_DISTANCES // max(n_clusters, rows.shape[1]))
    elif n <= ALL_ROWS:
        height = n
    for some in ranges(n, height) if n else [slice(0, 0)]:
        yield some.start, rows[some, :]


def _sample(rows: Array, random_state: Any, all_rows: int, sample_rows: int) -> Array:
    """Return the rows to learn from: all, or some drawn by their numbers alone.

    Those of an accelerator stay there, all others come to the host.
    """
    n = rows.shape[0]
    if n > all_rows:
        # A generator's choice needs no list of all n, unlike that of a RandomState.
        seed = check_random_state(random_state).randint(2**31 - 1)
        numbers = np.sort(np.random.default_rng(seed).choice(n, sample_rows, replace=False))
    elif is_dask(rows):
        numbers = np.arange(n)
    else:
        return rows if is_on_accelerator(rows) else to_host(rows, None)
    if is_dask(rows):
        return DaskBlocks({"rows": rows}).take(numbers)["rows"]
    drawn = select(rows, numbers)
    return drawn if is_on_accelerator(rows) else to_host(drawn, None)
