"""Distances and norms of the rows of a view."""

import numpy as np

from mkclust.linalg import (
    astype,
    free_bytes,
    is_foreign,
    is_sparse,
    namespace,
    ranges,
    select,
    to_host,
)
from mkclust.linalg.sparse_rows import entrywise, row_products, row_width, sums_of_rows
from mkclust.types import Array, Float

# The median distance of longer views is that of some rows; so many, if nobody says otherwise.
MEDIAN_ROWS = 5_000
BLOCK_ROWS = 256
# Of long rows fewer are looked at: so many products of entries make a median distance, at most.
MEDIAN_PRODUCTS = 5e10
# The origin of views of more entries is the median of some of their rows, so many.
MIDDLE_ENTRIES, MIDDLE_ROWS = 10_000_000, 1_000
# Entries of a view that are brought to float64 at a time on a device.
BLOCK_ENTRIES = 2**24
# Squared distances come from inner products; below this share of the squared norms their
# difference is rounding, and the two rows count as identical.
RESOLUTION = 1e-13


def squared_norms(view: Array) -> Array:
    """Return the squared norm of every row, in float64."""
    if is_sparse(view):
        return sums_of_rows(entrywise(np.square, view.astype(np.float64)))
    if not is_foreign(view):
        return np.einsum("ij,ij->i", view, view, dtype=np.float64)
    xp = namespace(view)
    blocks = ranges(view.shape[0], max(1, BLOCK_ENTRIES // max(view.shape[1], 1)))
    wide = (astype(view[rows, :], "float64") for rows in blocks)
    return xp.concat([xp.sum(part * part, axis=1) for part in wide])


def safe_norms(view: Array) -> Array:
    """Return the norm of every row to divide by, with 1 for rows of zeros."""
    xp = namespace(view)
    norms = xp.sqrt(squared_norms(view))
    return xp.where(norms > 0, norms, 1.0)


def mean_squared_norm(name: str, view: Array) -> float:
    """Return the scale of a view's inner products."""
    with np.errstate(over="ignore"):
        scale = float(namespace(view).mean(squared_norms(view)))
    if not np.finfo(np.float64).tiny <= scale < np.inf:
        finding = f"{'zero, or too small' if scale < 1 else 'too large'} to square and sum"
        advice = "rescale the view, or leave it out"
        raise ValueError(f"The entries of view {name!r} are {finding}; {advice}.")
    return scale


def squared_distances(A: Array, B: Array) -> Array:
    """Return squared distances between rows in float64, exactly zero where rows are identical."""
    norms = squared_norms(A)[:, None] + squared_norms(B)
    squared = row_products(A, B)
    squared *= -2
    squared += norms
    norms *= RESOLUTION
    if is_foreign(squared):
        return namespace(squared).where(squared <= norms, 0.0, squared)
    squared[squared <= norms] = 0
    return squared


def drawn_rows(view: Array, drawn: int | None = None) -> Array:
    """Return the rows that the median distance is that of.

    Of more than 5,000 rows these are 5,000, or as many as are to be drawn, with a fixed seed; of
    rows of more than 4,000 entries fewer.
    """
    most = min(MEDIAN_ROWS, int(np.sqrt(2 * MEDIAN_PRODUCTS / row_width(view))))
    if view.shape[0] <= most:
        return view
    return _some_rows(view, min(drawn or most, most))


def _some_rows(view: Array, count: int) -> Array:
    """Return so many rows, drawn with a fixed seed, in their order."""
    chosen = np.random.default_rng(0).choice(view.shape[0], count, replace=False)
    return select(view, np.sort(chosen))


def middle(view: Array) -> Array:
    """Return the median of every column, (n_features,); of large views that of some rows.

    From anywhere but zero, sparse rows would no longer be sparse: their middle is zero.
    """
    if is_sparse(view):
        return np.zeros(view.shape[1])
    if not is_foreign(view):
        n, d = view.shape
        few = n > MIDDLE_ROWS and n * d > MIDDLE_ENTRIES
        return np.median(_some_rows(view, MIDDLE_ROWS) if few else view, axis=0)
    rows = namespace(view).sort(astype(drawn_rows(view), "float64"), axis=0)
    n = rows.shape[0]
    return (rows[(n - 1) // 2, :] + rows[n // 2, :]) / 2


def median_distance(name: str, rows: Array, drawn: int | None = None) -> float:
    """Return the median distance between two rows of float64, or a stand-in where it is zero.

    Of more than 5,000 rows, or fewer long ones, it is that of `drawn_rows`.
    """
    rows = drawn_rows(rows, drawn)
    # Where there is no memory but the host's, SciPy is the faster one.
    on_device = free_bytes(rows) is not None
    median, mean = _on_device(rows) if on_device else _on_host(to_host(rows))
    if median > 0:
        return median
    if not mean > 0:
        raise ValueError(
            f"All {rows.shape[0]} rows looked at{f' in view {name!r}' if name else ''} are "
            "identical, so the view says nothing about the clusters and its Gaussian "
            "kernels have no width; leave it out."
        )
    return mean


def _on_host(rows: Array) -> tuple[float, float]:
    """Return the median distance between two rows; if it is zero the mean of those that are not."""
    # In place, for all pairs of 5,000 rows are 100 MB and a copy of them would be as much again.
    median = float(np.median(_pair_distances(rows), overwrite_input=True))
    if median > 0:
        return median, median
    distances = _pair_distances(rows)  # in their order again
    return 0.0, float(distances[distances > 0].mean()) if distances.any() else 0.0


def _pair_distances(rows: Array) -> Float:
    """Return the distance between every two rows, each pair once."""
    n = rows.shape[0]
    distances, filled = np.empty(n * (n - 1) // 2), 0
    for start in range(0, n, BLOCK_ROWS):
        squared = squared_distances(rows[start : start + BLOCK_ROWS], rows[start:])
        for i, row in enumerate(squared, start=1):
            distances[filled : filled + n - start - i] = row[i:]
            filled += n - start - i
    return np.sqrt(distances, out=distances)


def _on_device(rows: Array) -> tuple[float, float]:
    """Return the same of an array that is no NumPy array, from every pair twice."""
    xp, n = namespace(rows), rows.shape[0]
    rows = astype(rows, "float64")
    squared = xp.sort(xp.reshape(squared_distances(rows, rows), (-1,)))
    # Every row with itself comes first; in the rest, each pair stands beside its mirror image.
    half = n + n * (n - 1) // 2
    median = float(xp.mean(xp.sqrt(squared[half - 1 : half + 1])))
    if median > 0:
        return median, median
    distances = xp.sqrt(squared)
    count = int(xp.sum(xp.astype(distances > 0, xp.int64)))
    return 0.0, float(xp.sum(distances)) / max(count, 1)
