"""k-means where the rows live, all starts at once: Lloyd's algorithm as scikit-learn has it."""

import warnings

import numpy as np
from scipy.sparse import csc_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from mkclust.linalg import (
    astype,
    device,
    is_foreign,
    namespace,
    precision_of,
    ranges,
    rounding_of,
    select,
    to_device,
    to_host,
)
from mkclust.types import Array, Float

# Bytes of the distances from all rows to the centers of those starts that are taken at once; one
# start takes what it needs, which is about what its rows take.
DISTANCE_BYTES = 1 << 30
# Centers stay that move, squared and all together, by less than this share of a column's variance.
TOLERANCE, MAX_ITER = 1e-4, 300
# From so many distances of one start on, single precision pays on a host.
MANY_DISTANCES = 1 << 14
# Up to so many entries, who belongs where is written out on a host, zeros and all.
DENSE_MEMBERS = 1 << 17


def k_means(
    rows: Array,
    n_clusters: int,
    *,
    n_init: int = 10,
    init: str = "k-means++",
    random_state: int | np.random.RandomState | None = None,
    labels: np.ndarray | None = None,
    distance_bytes: int = DISTANCE_BYTES,
) -> Float:
    """Return the centers of the best of several starts of k-means.

    Starts of many rows on a host are settled in single precision, and the best of them in that of
    the rows.

    Parameters
    ----------
    rows : array of any library, of shape (n_samples, n_columns)
        The rows, float32 or float64.
    n_clusters : int
        Number of clusters, k.
    n_init : int, default=10
        Number of starts.
    init : {"k-means++", "random"}, default="k-means++"
        How a start chooses its centers: spread out, or any samples.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    labels : ndarray of int of shape (n_samples,), default=None
        Clusters of the rows that one more start begins with; one without rows makes it useless.
    distance_bytes : int, default=2**30
        What the distances of the starts that are taken at once may take; one start takes what it
        needs.

    Returns
    -------
    ndarray of shape (n_clusters, n_columns)
        The centers, on the host, in the number type of the rows.
    """
    xp, n, k = namespace(rows), rows.shape[0], n_clusters
    if n < k:
        raise ValueError(f"n_samples={n} should be >= n_clusters={k}.")
    if init not in ("k-means++", "random"):
        raise ValueError(f"init={init!r} is not known: pass 'k-means++' or 'random'")
    length = float(xp.max(xp.sum(rows * rows, axis=1)))
    if not np.isfinite(length):
        raise ValueError("the rows to cluster have entries that are NaN, infinite or too large")
    # Distances are differences of squared lengths, and these round least around the mean.
    middle = xp.mean(rows, axis=0)[None, :]
    rows = rows - middle
    if not is_foreign(rows):
        rows = np.ascontiguousarray(rows)  # rows are picked out, and NumPy would copy them all
    variance = float(xp.mean(xp.sum(rows * rows, axis=0))) / n
    rough = rows
    if not is_foreign(rows) and precision_of(rows) == "float64" and n * k >= MANY_DISTANCES:
        rough = rows.astype(np.float32)
    rng = check_random_state(random_state)
    at_once = max(1, distance_bytes // (8 * n * k))
    candidates = []
    for starts in ranges(n_init, at_once):
        centers = _start(rough, k, init, rng, starts.stop - starts.start)
        candidates.append(_best_settled(rough, centers, variance, length))
    if labels is not None:
        sizes, sums = _sums(rough, to_device(labels, rough, None)[:, None], k)
        if bool(xp.all(sizes > 0)):
            candidates.append(_best_settled(rough, sums / sizes[:, :, None], variance, length))
    best = min(candidates, key=lambda one: one[0])
    if rough is not rows:
        best = _best_settled(rows, best[1][None, :, :].astype(np.float64), variance, length)
    _, centers, labels = best
    distinct = xp.unique_values(labels).shape[0]
    if distinct < k:
        message = f"Number of distinct clusters ({distinct}) found smaller than n_clusters ({k})."
        warnings.warn(f"{message} Are there duplicates?", ConvergenceWarning, stacklevel=2)
    return to_host(centers + middle, None)


def _best_settled(
    rows: Array, centers: Array, variance: float, length: float
) -> tuple[float, Array, Array]:
    """Return the inertia, but for a constant, the centers and the labels of the best start."""
    xp, n = namespace(rows), rows.shape[0]
    # Nearer to each other than this, squared, equal rows and their mean may be by rounding.
    rounding = n * rounding_of(rows) ** 2 * length
    centers = _settle(rows, centers, max(TOLERANCE * variance, rounding), rounding)
    distances = _distances(rows, centers)
    inertia = to_host(xp.sum(astype(xp.min(distances, axis=2), "float64"), axis=0))
    best = int(np.argmin(inertia))
    return float(inertia[best]), centers[best, :, :], xp.argmin(distances[:, best, :], axis=1)


def _start(rows: Array, k: int, init: str, rng: np.random.RandomState, starts: int) -> Array:
    """Return the centers that starts begin with, (s, k, d).

    Random numbers are drawn in the order in which scikit-learn draws them, so that a seed begins
    where it begins there, and clusters do not depend on where the rows live.
    """
    n, xp = rows.shape[0], namespace(rows)
    if init == "random":
        alike = np.full(n, 1 / n)
        chosen = [rng.choice(n, k, replace=False, p=alike) for _ in range(starts)]
        return xp.reshape(select(rows, np.concatenate(chosen)), (starts, k, rows.shape[1]))
    trials = 2 + int(np.log(k))
    drawn = rng.random_sample((starts, 1 + (k - 1) * trials))
    firsts = np.minimum(drawn[:, 0] * n, n - 1).astype(np.int64)
    later = drawn[:, 1:].reshape(starts, k - 1, trials).transpose(1, 2, 0)
    return _spread(rows, select(rows, firsts), to_device(later, rows))  # one transfer for all steps


def _spread(rows: Array, firsts: Array, drawn: Array) -> Array:
    """Return centers by greedy k-means++, given the first, (s, d), and draws, (k-1, trials, s)."""
    xp, (steps, trials, starts), n = namespace(rows), drawn.shape, rows.shape[0]
    lengths = xp.sum(rows * rows, axis=1)
    numbers = xp.arange(starts, device=device(rows))
    chosen = [firsts]
    # To the nearest center so far, (s, n).
    nearest = _squared(rows, lengths, firsts, xp.sum(firsts * firsts, axis=1))
    for step in range(steps):
        heights = xp.cumulative_sum(astype(nearest, "float64"), axis=1)
        levels = drawn[step, :, :] * heights[:, -1][None, :]
        # The first row to reach a level; the last row reaches all of them.
        reached = heights[None, :, :] >= levels[:, :, None]
        if is_foreign(rows):  # the standard knows no largest of truth values
            reached = astype(reached, "uint8")
        tries = xp.reshape(xp.argmax(reached, axis=2), (trials * starts,))
        candidates = xp.take(rows, tries, axis=0)
        distances = _squared(rows, lengths, candidates, xp.take(lengths, tries, axis=0))
        distances = xp.minimum(xp.reshape(distances, (trials, starts, n)), nearest[None, :, :])
        best = xp.argmin(xp.sum(distances, axis=2), axis=0) * starts + numbers
        chosen.append(xp.take(candidates, best, axis=0))
        nearest = xp.take(xp.reshape(distances, (trials * starts, n)), best, axis=0)
    return xp.stack(chosen, axis=1)


def _settle(rows: Array, centers: Array, least: float, rounding: float) -> Array:
    """Return the centers of all starts, (s, k, d), each where it stays, in the order they stop."""
    xp, final = namespace(rows), []
    previous_labels = xp.full((rows.shape[0], centers.shape[0]), -1, device=device(rows))
    for _ in range(MAX_ITER):
        labels = xp.argmin(_distances(rows, centers), axis=2)
        means = _means(rows, labels, centers, rounding)
        shift = xp.sum((means - centers) ** 2, axis=(1, 2))
        moves = to_host(xp.any(labels != previous_labels, axis=0) & (shift > least), bool)
        centers, previous_labels = means, labels
        if not moves.all():
            final.append(select(centers, np.flatnonzero(~moves)))
            centers = select(centers, np.flatnonzero(moves))
            previous_labels = select(previous_labels, np.flatnonzero(moves), axis=1)
        if not moves.any():
            break
    return xp.concat([*final, centers])


def _means(rows: Array, labels: Array, centers: Array, rounding: float) -> Array:
    """Return the means of the clusters of every start, none without a row if it can be."""
    xp = namespace(rows)
    sizes, sums = _sums(rows, labels, centers.shape[1])
    is_occupied = (sizes > 0)[:, :, None]
    if bool(xp.all(is_occupied)):
        return sums / sizes[:, :, None]
    means = xp.where(is_occupied, sums / xp.where(is_occupied, sizes[:, :, None], 1.0), centers)
    for start in np.flatnonzero(to_host(xp.any(sizes == 0, axis=1), bool)).tolist():
        start_labels = labels[:, start]
        differences = rows - xp.take(centers[start, :, :], start_labels, axis=0)
        distances = xp.sum(differences * differences, axis=1)
        new_means = _relocate(
            rows, start_labels, distances, means[start, :, :], sizes[start, :], rounding
        )
        means[start, :, :] = to_device(new_means, rows)
    return means


def _sums(rows: Array, labels: Array, k: int) -> tuple[Array, Array]:
    """Return the sizes of the clusters of every start, (s, k), and the sums of their rows."""
    xp, n, d, starts = namespace(rows), rows.shape[0], rows.shape[1], labels.shape[1]
    # Sums by a product with who belongs where: no order of adding that varies.
    if not is_foreign(rows):
        numbers = (labels + k * np.arange(starts)).reshape(-1)
        if n * starts * k <= DENSE_MEMBERS:
            members = np.zeros((n, starts * k), rows.dtype)
            members[np.repeat(np.arange(n), starts), numbers] = 1.0
            sizes = members.sum(axis=0)
            return sizes.reshape(starts, k), (members.T @ rows).reshape(starts, k, d)
        ones, ends = np.ones(n * starts, rows.dtype), np.arange(0, n * starts + 1, starts)
        members = csc_array((ones, numbers, ends), shape=(starts * k, n))
        sizes = np.bincount(numbers, minlength=starts * k).astype(rows.dtype)
        return sizes.reshape(starts, k), (members @ rows).reshape(starts, k, d)
    clusters = xp.arange(k, dtype=labels.dtype, device=device(rows))
    membership = astype(labels[:, :, None] == clusters[None, None, :], precision_of(rows))
    membership = xp.reshape(membership, (n, starts * k))
    sizes = xp.reshape(xp.sum(membership, axis=0), (starts, k))
    return sizes, xp.reshape(membership.T @ rows, (starts, k, d))


def _relocate(
    rows: Array, labels: Array, distances: Array, means: Array, sizes: Array, rounding: float
) -> Float:
    """Return means, (k, d), where empty clusters have the rows farthest from their centers."""
    means, sizes = to_host(means, None).copy(), to_host(sizes).copy()
    empty = np.flatnonzero(sizes == 0)
    order = namespace(rows).argsort(distances, descending=True)
    numbers = to_host(order[: len(empty)], np.intp)
    numbers = numbers[to_host(select(distances, numbers)) > rounding]
    owners, farthest = (
        to_host(select(labels, numbers), np.intp),
        to_host(select(rows, numbers), None),
    )
    for cluster, owner, row in zip(empty, owners, farthest, strict=False):
        # One that gives its last row away stays where it is.
        if sizes[owner] > 1:
            means[owner] += (means[owner] - row) / (sizes[owner] - 1)
            sizes[owner] -= 1
        means[cluster] = row
    return means


def _distances(rows: Array, centers: Array) -> Array:
    """Return squared distances, (n, s, k), less the squared length of each row."""
    xp, (starts, k, d) = namespace(rows), centers.shape
    flat = xp.reshape(centers, (starts * k, d))
    distances = rows @ (-2 * flat.T)
    distances += xp.sum(flat * flat, axis=1)[None, :]
    return xp.reshape(distances, (rows.shape[0], starts, k))


def _squared(rows: Array, lengths: Array, others: Array, other_lengths: Array) -> Array:
    """Return the squared distances from other rows to all rows, none negative.

    Lengths are squared, too.
    """
    distances = (-2 * others) @ rows.T
    distances += lengths[None, :]
    distances += other_lengths[:, None]
    if not is_foreign(rows):
        return np.maximum(distances, 0.0, out=distances)
    return namespace(rows).where(distances > 0, distances, 0.0)
