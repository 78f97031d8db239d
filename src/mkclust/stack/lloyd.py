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


def k_means(rows: Array, n_clusters: int, *, n_init: int, random_state: int | None) -> Float:
    """Return the centers of the best of several starts, (k, d), on the host.

    Starts draw their random numbers in the order in which scikit-learn draws them. A cluster that
    loses all of its rows keeps its center.
    """
    xp, n = namespace(rows), rows.shape[0]
    # Distances are differences of squared lengths, which round least around the mean.
    middle = xp.mean(rows, axis=0)[None, :]
    rows = rows - middle
    tolerance = TOLERANCE * float(xp.mean(rows * rows))
    clusters = xp.arange(n_clusters, device=device(rows))[None, :, None]
    rng, best = check_random_state(random_state), (np.inf, rows[:n_clusters, :])
    for some in ranges(n_init, max(1, DISTANCES // (n * n_clusters))):
        centers, shift = _first_centers(rows, n_clusters, rng, some.stop - some.start), np.inf
        for _ in range(MAX_ITER):
            distances = _distances(rows, centers)
            if shift <= tolerance:
                break
            labels = xp.argmin(distances, axis=1)[:, None, :]
            members = astype(labels == clusters, precision_of(rows))  # (s, k, n)
            sizes = xp.sum(members, axis=2)[:, :, None]
            means = (members @ rows) / xp.where(sizes > 0, sizes, 1.0)
            means = xp.where(sizes > 0, means, centers)
            shift = float(xp.max(xp.sum((means - centers) ** 2, axis=(1, 2))))
            centers = means
        spread = to_host(xp.sum(xp.min(distances, axis=1), axis=1))
        start = int(np.argmin(spread))
        best = min(best, (float(spread[start]), centers[start, :, :]), key=lambda each: each[0])
    return to_host(best[1] + middle, None)


def _first_centers(rows: Array, k: int, rng: np.random.RandomState, n_starts: int) -> Array:
    """Return the centers that starts begin with, (s, k, d), chosen by greedy k-means++."""
    xp, n = namespace(rows), rows.shape[0]
    n_trials = 2 + int(np.log(k))
    uniform = rng.random_sample((n_starts, 1 + (k - 1) * n_trials))
    chosen = [select(rows, np.minimum(uniform[:, 0] * n, n - 1).astype(np.int64))]
    # In one transfer, (k - 1, trials, s).
    uniform = uniform[:, 1:].reshape(n_starts, k - 1, n_trials).transpose(1, 2, 0)
    levels = to_device(uniform, rows)
    numbers = xp.arange(n_starts, device=device(rows))
    nearest = _distances(rows, chosen[0][None, :, :])[0, :, :]  # to the nearest center, (s, n)
    for step in range(k - 1):
        heights = xp.cumulative_sum(astype(nearest, "float64"), axis=1)
        reached = heights[None, :, :] >= (levels[step, :, :] * heights[:, -1])[:, :, None]
        # The first row that reaches each level; the standard has no argmax of truth values.
        trials = xp.reshape(xp.argmax(astype(reached, "uint8"), axis=2), (n_trials * n_starts,))
        candidates = xp.take(rows, trials, axis=0)
        distances = _distances(rows, xp.reshape(candidates, (n_trials, n_starts, rows.shape[1])))
        distances = xp.minimum(distances, nearest[None, :, :])
        best = xp.argmin(xp.sum(distances, axis=2), axis=0) * n_starts + numbers
        chosen.append(xp.take(candidates, best, axis=0))
        nearest = xp.take(xp.reshape(distances, (n_trials * n_starts, n)), best, axis=0)
    return xp.stack(chosen, axis=1)


def _distances(rows: Array, centers: Array) -> Array:
    """Return squared distances from centers, (s, k, d), to rows, (s, k, n), none negative."""
    xp, lengths = namespace(rows), namespace(rows).sum(rows * rows, axis=1)
    distances = xp.sum(centers * centers, axis=2)[:, :, None] - 2 * (centers @ rows.T) + lengths
    return xp.where(distances > 0, distances, 0.0)
