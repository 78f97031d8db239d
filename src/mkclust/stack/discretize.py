"""From a relaxed partition to labels: k-means on its rows."""

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state

from mkclust.linalg import (
    astype,
    device,
    is_foreign,
    is_on_accelerator,
    namespace,
    one_thread_if_small,
    precision_of,
    ranges,
    select,
    to_device,
    to_host,
)
from mkclust.types import Array, Float

# From this many distances on, several threads are faster than one.
MANY_DISTANCES = 200_000
# Squared distances between centers below which single precision may mistake them: a
# thousandth of the length of a row apart.
CLOSE = 1e-6
# Lloyd's algorithm stops when the squared shifts of all centers sum to less than this
# share of the mean variance of a column, as in scikit-learn.
TOLERANCE = 1e-4


def normalize_rows(rows: Array) -> Array:
    """Return rows of unit length; a zero row has no direction and becomes zero."""
    xp = namespace(rows)
    lengths = xp.linalg.vector_norm(rows, axis=1, keepdims=True)
    # Rows of an orthonormal matrix are of the order sqrt(k / n); far below that is
    # rounding.
    is_zero = lengths <= 1e-15
    return xp.where(is_zero, 0.0, rows) / xp.where(is_zero, 1.0, lengths)


def compared_rows(rows: Array, root: Float | None = None) -> Array:
    """Return the rows that k-means compares: of unit length, or times a root."""
    if root is None:
        return normalize_rows(rows)
    return rows @ to_device(root, rows, precision_of(rows))


def discretize(
    rows: Array,
    n_clusters: int,
    *,
    root: Float | None = None,
    n_init: int = 10,
    init: str = "k-means++",
    random_state: int | np.random.RandomState | None = None,
    all_rows: int = 100_000,
    mass: Float | None = None,
) -> tuple[Array, Float]:
    """Cluster the rows of an embedding, (n, d), by k-means with several starts.

    Rows are brought to unit length, or multiplied with a `root`, (d, d), if there is
    one. The centers are learned from all rows if there are up to `all_rows` (100,000 by
    default), otherwise from a random sample of half this number. All rows are assigned
    to the nearest center.

    Return labels, (n,), with clusters numbered by falling size, and their centers, (k,
    d). Of clusters of one size the one of the largest mass is the first, if rows have a
    mass, (n,), and then the one of the first row.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.stack.discretize import discretize
    >>> rows = np.array([[1.0, 0.1], [5.0, 0.4], [0.0, 2.0]])
    >>> discretize(rows, 2, random_state=0)[0].tolist()
    [0, 0, 1]
    """
    n = rows.shape[0]
    sample = rows
    if n > all_rows:
        # A generator's choice needs no list of all n, unlike that of a RandomState.
        seed = check_random_state(random_state).randint(2**31 - 1)
        rng = np.random.default_rng(seed)
        drawn = rng.choice(n, all_rows // 2, replace=False)
        sample = select(rows, np.sort(drawn))
    sample = compared_rows(sample, root)

    options: Any = {"n_init": n_init, "random_state": random_state}
    # For few distances, starts are faster together than one by one.
    is_quick = is_on_accelerator(sample) or sample.shape[0] * n_clusters <= 5_000
    if is_quick and init == "k-means++":
        centers = k_means(sample, n_clusters, **options)
    else:
        centers = _centers_on_host(to_host(sample, None), n_clusters, init, options)

    # A row between two centers joins the first of them, so the order decides about
    # sizes as sizes do about the order; larger clusters only grow, which soon settles
    # it.
    for _ in range(n_clusters):
        order = order_by_size(assign(rows, centers, root), n_clusters, mass)
        if np.array_equal(order, np.arange(n_clusters)):
            break
        centers = centers[order]
    return assign(rows, centers, root), centers


def _centers_on_host(
    sample: Any,
    n_clusters: int,
    init: Any,
    options: dict[str, Any],
) -> Float:
    """Return the centers of scikit-learn's k-means, (k, d)."""
    middle = sample.mean(axis=0)
    with one_thread_if_small(len(sample) * n_clusters, MANY_DISTANCES):
        for precision in ("float32", "float64"):
            rows = astype(sample - middle, precision)
            found = _k_means_on_host(rows, n_clusters, init, options)
            distances = pdist(found.cluster_centers_, "sqeuclidean")
            if distances.min(initial=np.inf) > CLOSE:
                break
    # Which rows belong together may be found in single precision, their means in
    # double.
    members = np.eye(n_clusters)[found.labels_].T
    sizes = members.sum(axis=1, keepdims=True)
    means = members @ sample / np.maximum(sizes, 1)
    return np.where(sizes > 0, means, found.cluster_centers_ + middle)


def _k_means_on_host(
    rows: Array,
    n_clusters: int,
    init: Any,
    options: dict[str, Any],
) -> Any:
    """Return scikit-learn's k-means, fitted to rows around zero."""
    if init != "k-means++":
        return KMeans(n_clusters, init=init, **options).fit(rows)

    # For all starts together, in less time than one by one.
    rng = check_random_state(options["random_state"])
    starts = first_centers(rows, n_clusters, rng, options["n_init"])

    # A start goes on to equal rows only if no others are left: then there are fewer
    # clusters. Squared distances between unit rows below 16 roundings may be those of
    # equal rows.
    distances = squareform(pdist(starts[0], "sqeuclidean"))
    are_close = np.triu(distances <= 16 * np.finfo(rows.dtype).eps, 1)
    n_found = n_clusters - int(are_close.any(axis=0).sum())
    following = iter(starts[:, :n_found])

    found = KMeans(n_found, init=lambda *_, **__: next(following), **options).fit(rows)
    added = ((0, n_clusters - n_found), (0, 0))
    found.cluster_centers_ = np.pad(found.cluster_centers_, added, "edge")
    return found


def assign(rows: Array, centers: Float, root: Float | None = None) -> Array:
    """Return the center nearest to each row, the first if some tie, (n,)."""
    xp = namespace(rows)
    if is_foreign(rows):
        centers = to_device(centers, rows, precision_of(rows))
    lengths = xp.sum(centers**2, axis=1)
    labels = [np.empty(0, np.intp)]
    for part in ranges(rows.shape[0], 1 << 16):
        # Less the squared length of the row, the same for all centers.
        part_rows = compared_rows(rows[part, :], root)
        distances = lengths - 2 * part_rows @ centers.T
        # Rounding must not decide between centers that tie for a row, of length one on
        # average.
        nearest = xp.min(distances, axis=1, keepdims=True)
        is_near = distances <= nearest + 1e-9
        # The standard has no argmax of truth values.
        first = xp.argmax(astype(is_near, "uint8"), axis=1)
        labels.append(to_host(first, np.intp))
    return np.concatenate(labels)


def count_members(labels: np.ndarray, n_clusters: int) -> Float:
    """Return the indicators of the clusters of several partitions, side by side.

    From labels of shape (s, n), -1 for none, to zeros and ones of shape (n, s *
    n_clusters).
    """
    members = labels.T[:, :, None] == np.arange(n_clusters)
    return members.reshape(labels.shape[1], -1).astype(np.float64)


def count_clusters(labels: Array) -> int:
    """Return how many clusters have samples, given labels, -1 for none."""
    return int(np.sum(np.unique(labels) >= 0))


def order_by_size(
    labels: Array,
    n_clusters: int,
    mass: Float | None = None,
) -> np.ndarray:
    """Return the clusters by falling size, those of one size by mass and first row."""
    clusters, first, sizes = np.unique(labels, return_index=True, return_counts=True)
    all_sizes = np.zeros(n_clusters, np.int64)
    all_sizes[clusters] = sizes
    all_first = np.zeros(n_clusters, np.int64)
    all_first[clusters] = first
    shares = np.zeros(n_clusters)
    if mass is not None:
        # Sums that differ by rounding, which the order of rows decides, are the same.
        shares = np.bincount(labels, mass, n_clusters) / max(np.sum(mass), 1e-300)
        shares = np.round(shares, 9)
    return np.lexsort((all_first, -shares, -all_sizes))


def k_means(
    rows: Array,
    n_clusters: int,
    *,
    n_init: int,
    random_state: int | None,
) -> Float:
    """Return the centers of the best of several starts by Lloyd's algorithm, (k, d).

    All starts are computed together, on the device of the rows. A cluster that loses
    all of its rows keeps its center.
    """
    xp = namespace(rows)
    n = rows.shape[0]
    # Distances are differences of squared lengths, which round least around the mean.
    middle = xp.mean(rows, axis=0)[None, :]
    rows = rows - middle
    rng = check_random_state(random_state)

    least = np.inf
    best = rows[:n_clusters, :]
    # As many starts together as their distances fit into memory.
    height = max(1, 2**27 // (n * n_clusters))
    for part in ranges(n_init, height):
        starts = first_centers(rows, n_clusters, rng, part.stop - part.start)
        centers, distances = lloyd(rows, starts)
        spreads = to_host(xp.sum(xp.min(distances, axis=1), axis=1))
        start = int(np.argmin(spreads))
        if spreads[start] < least:
            least = float(spreads[start])
            best = centers[start, :, :]
    return to_host(best + middle, None)


def lloyd(rows: Array, centers: Array) -> tuple[Array, Array]:
    """Move the centers of starts, (s, k, d), and return distances, (s, k, n).

    Rows are around zero, where distances round least. A center that loses all of its
    rows stays where it is.
    """
    xp = namespace(rows)
    points = _with_lengths(rows)
    tolerance = TOLERANCE * float(xp.mean(rows * rows))
    clusters = xp.arange(centers.shape[1], device=device(rows))[None, :, None]
    shift = np.inf
    for _ in range(300):  # as in scikit-learn
        distances = _distances(points, centers)
        if shift <= tolerance:
            break
        labels = xp.argmin(distances, axis=1)[:, None, :]
        members = astype(labels == clusters, precision_of(rows))  # (s, k, n)
        sizes = xp.sum(members, axis=2)[:, :, None]
        means = (members @ rows) / xp.where(sizes > 0, sizes, 1.0)
        means = xp.where(sizes > 0, means, centers)
        shift = float(xp.max(xp.sum((means - centers) ** 2, axis=(1, 2))))
        centers = means
    return centers, distances


def first_centers(
    rows: Array,
    k: int,
    rng: np.random.RandomState,
    n_starts: int,
) -> Array:
    """Return the first centers of starts, (s, k, d), by greedy k-means++."""
    xp = namespace(rows)
    n = rows.shape[0]
    n_trials = 2 + int(np.log(k))
    uniform = rng.random_sample((n_starts, 1 + (k - 1) * n_trials))
    first = np.minimum(uniform[:, 0] * n, n - 1).astype(np.int64)
    chosen = [select(rows, first)]
    # In one transfer, (k - 1, trials, s).
    later = uniform[:, 1:].reshape(n_starts, k - 1, n_trials)
    levels = to_device(later.transpose(1, 2, 0), rows)

    numbers = xp.arange(n_starts, device=device(rows))
    points = _with_lengths(rows)
    # To the nearest center, (s, n).
    nearest = _distances(points, chosen[0][None, :, :])[0, :, :]
    for step in range(k - 1):
        nearest = xp.where(nearest > 0, nearest, 0.0)  # so that sums rise
        trials = _rows_at_levels(nearest, levels[step, :, :], numbers)
        candidates = xp.take(rows, trials, axis=0)
        grouped = xp.reshape(candidates, (n_trials, n_starts, -1))
        distances = _distances(points, grouped)
        distances = xp.minimum(distances, nearest[None, :, :])
        totals = xp.sum(distances, axis=2)
        best = xp.argmin(totals, axis=0) * n_starts + numbers
        chosen.append(xp.take(candidates, best, axis=0))
        shape = (n_trials * n_starts, n)
        nearest = xp.take(xp.reshape(distances, shape), best, axis=0)
    return xp.stack(chosen, axis=1)


def _rows_at_levels(nearest: Array, levels: Array, numbers: Array) -> Array:
    """Return rows in proportion to distances, (s, n), by levels, (t, s)."""
    xp = namespace(nearest)
    n_starts, n = nearest.shape
    heights = xp.cumulative_sum(astype(nearest, "float64"), axis=1)
    totals = xp.where(heights[:, -1:] > 0, heights[:, -1:], 1.0)
    # The first row that reaches each level, in one search over all starts.
    offsets = astype(numbers, "float64")
    shares = xp.reshape(heights / totals + offsets[:, None], (-1,))
    wanted = xp.reshape(levels + offsets, (-1,))
    reached = xp.reshape(xp.searchsorted(shares, wanted), (-1, n_starts))
    reached = reached - n * numbers
    return xp.reshape(xp.where(reached < n, reached, n - 1), (-1,))


def _with_lengths(rows: Array) -> Array:
    """Return columns, squared lengths and ones as rows, (d + 2, n)."""
    xp = namespace(rows)
    lengths = xp.linalg.vecdot(rows, rows)[:, None]
    return xp.concat([rows, lengths, 0 * lengths + 1], axis=1).T


def _distances(points: Array, centers: Array) -> Array:
    """Return squared distances from centers, (s, k, d), to points, (s, k, n)."""
    xp = namespace(centers)
    s, k, d = centers.shape
    lengths = xp.sum(centers * centers, axis=2)[:, :, None]
    # |c|^2 - 2 c x + |x|^2.
    factors = xp.concat([-2 * centers, 0 * lengths + 1, lengths], axis=2)
    return xp.reshape(xp.reshape(factors, (s * k, d + 2)) @ points, (s, k, -1))
