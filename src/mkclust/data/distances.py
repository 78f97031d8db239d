"""Distances and norms of the rows of a view."""

import numpy as np
from scipy.sparse import issparse

from mkclust.linalg import (
    astype,
    free_bytes,
    is_foreign,
    namespace,
    precision_of,
    ranges,
    select,
    to_host,
)
from mkclust.linalg.sparse_rows import row_products, row_width
from mkclust.linalg.threads import in_threads
from mkclust.types import Array

# At most this many rows, and products of entries, give the median distance.
MEDIAN_ROWS, MEDIAN_PRODUCTS = 5_000, 5e10


def squared_norms(view: Array) -> Array:
    """Return the squared norm of every row, in float64."""
    if issparse(view):
        squares = view.astype(np.float64).power(2)
        return np.asarray(squares.sum(axis=1)).reshape(-1)
    if not is_foreign(view):
        return np.einsum("ij,ij->i", view, view, dtype=np.float64)
    xp = namespace(view)
    # Entries of a view that are brought to float64 at a time on a device.
    block_entries = 2**24
    height = max(1, block_entries // max(view.shape[1], 1))
    blocks = ranges(view.shape[0], height)
    wide = (astype(view[rows, :], "float64") for rows in blocks)
    sums = [xp.sum(part * part, axis=1) for part in wide]
    return xp.concat(sums)


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
        finding = (
            f"{'zero, or too small' if scale < 1 else 'too large'} to square and sum"
        )
        raise ValueError(
            f"The entries of view {name!r} are {finding}; rescale or drop the view."
        )
    return scale


def squared_distances(A: Array, B: Array, norms: Array = None) -> Array:
    """Return squared distances of rows, rounding errors as zeros.

    The norms, if known, are the sums of the squared norms of every two rows.
    """
    if norms is None:
        norms = squared_norms(A)[:, None] + squared_norms(B)

    squared = row_products(A, B)
    squared *= -2
    squared += norms
    limit = 0.0
    if precision_of(squared) == "float64":
        # Squared distances below this share of the squared norms are rounding.
        limit = 1e-13

    if is_foreign(squared):
        return namespace(squared).where(squared <= norms * limit, 0.0, squared)
    # Only distances that are small for the largest norms are compared with their own.
    largest = norms.max(initial=0.0)
    small = np.flatnonzero(squared <= limit * largest)
    flat = squared.reshape(-1)
    limits = limit * norms.reshape(-1)[small]
    is_rounding = flat[small] <= limits
    flat[small[is_rounding]] = 0.0
    return squared


def drawn_rows(view: Array, drawn: int | None = None) -> Array:
    """Return at most 5,000 rows, fewer if they are long, for the median distance."""
    most_by_products = int(np.sqrt(2 * MEDIAN_PRODUCTS / row_width(view)))
    most = min(MEDIAN_ROWS, most_by_products)
    if view.shape[0] <= most:
        return view
    return some_rows(view, min(drawn or most, most))


def some_rows(view: Array, count: int) -> Array:
    """Return at most `count` rows, drawn with a fixed seed, in their order."""
    if view.shape[0] <= count:
        return view
    rng = np.random.default_rng(0)
    chosen = rng.choice(view.shape[0], count, replace=False)
    return select(view, np.sort(chosen))


def middle(view: Array) -> Array:
    """Return the median of every column, of some rows if there are many."""
    if issparse(view):
        return np.zeros(view.shape[1])
    if not is_foreign(view):
        # Of views of more entries than this, so many rows are looked at.
        middle_entries = 10_000_000
        middle_rows = 1_000
        is_large = view.size > middle_entries
        return np.median(some_rows(view, middle_rows) if is_large else view, axis=0)
    drawn = astype(drawn_rows(view), "float64")
    rows = namespace(view).sort(drawn, axis=0)
    n = rows.shape[0]
    low = rows[(n - 1) // 2, :]
    high = rows[n // 2, :]
    return (low + high) / 2


def median_distance(name: str, rows: Array, drawn: int | None = None) -> float:
    """Return the median distance of rows, or if it is zero the mean positive one."""
    rows = drawn_rows(rows, drawn)
    # Without memory of its own, a device is slower than NumPy.
    if free_bytes(rows) is None:
        median, mean = _on_host(to_host(rows))
    else:
        median, mean = _on_device(rows)
    if median > 0:
        return median
    if not mean > 0:
        raise ValueError(
            f"All {rows.shape[0]} rows compared{f' in view {name!r}' if name else ''} "
            "are identical, so that a Gaussian kernel has no width; leave it out."
        )
    return mean


def _on_host(rows: Array) -> tuple[float, float]:
    """Return the median and the mean positive distance of rows in NumPy."""
    n = rows.shape[0]
    n_pairs = n * (n - 1) // 2
    squared = np.empty(n_pairs)

    def fill(part: slice) -> None:
        block = squared_distances(rows[part], rows[part.start :])
        above = block[np.triu_indices(len(block), 1, n - part.start)]
        n_before = part.start * (part.start + 1) // 2
        place = part.start * n - n_before
        squared[place : place + len(above)] = above

    # Rows whose distances to all others are computed at a time.
    block_rows = 256
    in_threads(fill, ranges(n, block_rows), rows)
    middle = len(squared) // 2
    squared.partition([max(middle - 1, 0), middle])
    pair = squared[max(middle - 1, 0) : middle + 1]
    median = float(np.sqrt(pair if len(squared) % 2 == 0 else pair[-1:]).mean())
    if median > 0:
        return median, median

    positive = np.sqrt(squared[squared > 0])
    return median, float(positive.mean()) if positive.size else 0.0


def _on_device(rows: Array) -> tuple[float, float]:
    """Return the median and the mean positive distance of rows on a device."""
    xp = namespace(rows)
    n = rows.shape[0]
    rows = astype(rows, "float64")
    distances = xp.sqrt(xp.sort(xp.reshape(squared_distances(rows, rows), (-1,))))
    # The distance of every row to itself comes first; in the rest, each pair is there
    # twice.
    n_pairs = n * (n - 1) // 2
    half = n + n_pairs
    median = float(xp.mean(distances[half - 1 : half + 1]))
    is_positive = distances > 0
    n_positive = int(xp.sum(xp.astype(is_positive, xp.int64)))
    total = float(xp.sum(distances))
    return median, total / max(n_positive, 1)
