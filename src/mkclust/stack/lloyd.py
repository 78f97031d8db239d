"""k-means for rows on a device, where scikit-learn does not compute: Lloyd's algorithm."""

import numpy as np
from sklearn.utils import check_random_state

from mkclust.linalg import (
    astype,
    device,
    namespace,
    precision_of,
    ranges,
    select,
    to_device,
    to_host,
)
from mkclust.types import Array, Float

# Distances between rows and centers that are computed together, over several starts.
DISTANCES = 1 << 27
# Lloyd's algorithm stops when the squared shifts of all centers sum to less than this share of the
# mean variance of a column, as in scikit-learn.
TOLERANCE = 1e-4
# Most iterations of one start, as in scikit-learn.
MAX_ITER = 300


def k_means(
    rows: Array, n_clusters: int, *, n_init: int, init: str, random_state: int | None
) -> Float:
    """Return the centers of the best of several starts, (k, d), on the host.

    Starts draw their random numbers in the order in which scikit-learn draws them. A cluster that
    loses all of its rows keeps its center.
    """
    xp, n = namespace(rows), rows.shape[0]
    # Distances are differences of squared lengths, which round least around the mean.
    middle = xp.mean(rows, axis=0)[None, :]
    rows = rows - middle
    tolerance = TOLERANCE * float(xp.mean(rows * rows))
    rng, best = check_random_state(random_state), (np.inf, rows[:n_clusters, :])
    for some in ranges(n_init, max(1, DISTANCES // (n * n_clusters))):
        centers = _first_centers(rows, n_clusters, init, rng, some.stop - some.start)
        for _ in range(MAX_ITER):
            labels = xp.argmin(_distances(rows, centers), axis=2)
            means = _means(rows, labels, centers)
            shift = float(xp.max(xp.sum((means - centers) ** 2, axis=(1, 2))))
            centers = means
            if shift <= tolerance:
                break
        spread = to_host(xp.sum(xp.min(_distances(rows, centers), axis=2), axis=0))
        start = int(np.argmin(spread))
        best = min(best, (float(spread[start]), centers[start, :, :]), key=lambda each: each[0])
    return to_host(best[1] + middle, None)


def _first_centers(
    rows: Array, k: int, init: str, rng: np.random.RandomState, n_starts: int
) -> Array:
    """Return the centers that starts begin with, (s, k, d): random rows, or greedy k-means++."""
    xp, n = namespace(rows), rows.shape[0]
    if init == "random":
        drawn = [rng.choice(n, k, replace=False, p=np.full(n, 1 / n)) for _ in range(n_starts)]
        return xp.reshape(select(rows, np.concatenate(drawn)), (n_starts, k, rows.shape[1]))
    n_trials = 2 + int(np.log(k))
    uniform = rng.random_sample((n_starts, 1 + (k - 1) * n_trials))
    chosen = [select(rows, np.minimum(uniform[:, 0] * n, n - 1).astype(np.int64))]
    # In one transfer, (k - 1, trials, s).
    uniform = uniform[:, 1:].reshape(n_starts, k - 1, n_trials).transpose(1, 2, 0)
    levels = to_device(uniform, rows)
    numbers = xp.arange(n_starts, device=device(rows))
    nearest = _squared_distances(rows, chosen[0])  # to the nearest center so far, (s, n)
    for step in range(k - 1):
        heights = xp.cumulative_sum(astype(nearest, "float64"), axis=1)
        reached = heights[None, :, :] >= (levels[step, :, :] * heights[:, -1])[:, :, None]
        # The first row that reaches each level; the standard has no argmax of truth values.
        trials = xp.reshape(xp.argmax(astype(reached, "uint8"), axis=2), (n_trials * n_starts,))
        candidates = xp.take(rows, trials, axis=0)
        distances = xp.reshape(_squared_distances(rows, candidates), (n_trials, n_starts, n))
        distances = xp.minimum(distances, nearest[None, :, :])
        best = xp.argmin(xp.sum(distances, axis=2), axis=0) * n_starts + numbers
        chosen.append(xp.take(candidates, best, axis=0))
        nearest = xp.take(xp.reshape(distances, (n_trials * n_starts, n)), best, axis=0)
    return xp.stack(chosen, axis=1)


def _means(rows: Array, labels: Array, centers: Array) -> Array:
    """Return the means of the clusters of every start, (s, k, d)."""
    xp, (n_starts, k, d) = namespace(rows), centers.shape
    clusters = xp.arange(k, dtype=labels.dtype, device=device(rows))
    members = astype(labels[:, :, None] == clusters[None, None, :], precision_of(rows))
    members = xp.reshape(members, (rows.shape[0], n_starts * k))
    sizes = xp.reshape(xp.sum(members, axis=0), (n_starts, k, 1))
    sums = xp.reshape(members.T @ rows, (n_starts, k, d))
    return xp.where(sizes > 0, sums / xp.where(sizes > 0, sizes, 1.0), centers)


def _distances(rows: Array, centers: Array) -> Array:
    """Return squared distances, (n, s, k), less the squared length of each row."""
    xp, (n_starts, k, d) = namespace(rows), centers.shape
    flat = xp.reshape(centers, (n_starts * k, d))
    distances = xp.sum(flat * flat, axis=1)[None, :] - 2 * (rows @ flat.T)
    return xp.reshape(distances, (rows.shape[0], n_starts, k))


def _squared_distances(rows: Array, others: Array) -> Array:
    """Return the squared distances from other rows to all rows, none negative."""
    xp = namespace(rows)
    lengths, other_lengths = xp.sum(rows * rows, axis=1), xp.sum(others * others, axis=1)
    distances = lengths[None, :] + other_lengths[:, None] - 2 * (others @ rows.T)
    return xp.where(distances > 0, distances, 0.0)
