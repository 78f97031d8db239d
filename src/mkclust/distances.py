"""Distances and norms of the rows of a view."""

import numpy as np

# The median distance of longer views is that of some rows; so many, if nobody says otherwise.
MEDIAN_ROWS = 5_000
BLOCK_ROWS = 256
# Squared distances come from inner products; below this share of the squared norms their
# difference is rounding, and the two rows count as identical.
RESOLUTION = 1e-13


def squared_norms(view: np.ndarray) -> np.ndarray:
    """Return the squared norm of every row, in float64."""
    return np.einsum("ij,ij->i", view, view, dtype=np.float64)


def safe_norms(view: np.ndarray) -> np.ndarray:
    """Return the norm of every row to divide by, with 1 for rows of zeros."""
    norms = np.sqrt(squared_norms(view))
    return np.where(norms > 0, norms, 1)


def mean_squared_norm(name: str, view: np.ndarray) -> float:
    """Return the scale of a view's inner products."""
    with np.errstate(over="ignore"):
        scale = float(squared_norms(view).mean())
    if not np.finfo(np.float64).tiny <= scale < np.inf:
        found = f"{'zero, or too small' if scale < 1 else 'too large'} to square and sum"
        advice = "rescale the view, or leave it out"
        raise ValueError(f"The entries of view {name!r} are {found}; {advice}.")
    return scale


def squared_distances(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return squared distances between rows, exactly zero where rows are identical."""
    norms = squared_norms(A)[:, None] + squared_norms(B)
    squared = A @ B.T
    squared *= -2
    squared += norms
    norms *= RESOLUTION
    squared[squared <= norms] = 0
    return squared


def median_distance(name: str, rows: np.ndarray, drawn: int | None = None) -> float:
    """Return the median distance between two rows, or a stand-in where it is zero.

    Of more than 5,000 rows it is that of 5,000, or of as many as are to be drawn, with a fixed
    seed.
    """
    if len(rows) > MEDIAN_ROWS:
        chosen = np.random.default_rng(0).choice(len(rows), drawn or MEDIAN_ROWS, replace=False)
        rows = rows[np.sort(chosen)]
    # In place, for all pairs of 5,000 rows are 100 MB and a copy of them would be as much again.
    median = float(np.median(_pair_distances(rows), overwrite_input=True))
    if median > 0:
        return median
    distances = _pair_distances(rows)  # in their order again
    if not distances.any():
        raise ValueError(
            f"All {len(rows)} rows looked at{f' in view {name!r}' if name else ''} are identical, "
            "so it says nothing about the clusters and its Gaussian kernels have no width; leave "
            "it out."
        )
    return float(distances[distances > 0].mean())


def _pair_distances(rows: np.ndarray) -> np.ndarray:
    """Return the distance between every two rows, each pair once."""
    n = len(rows)
    found, filled = np.empty(n * (n - 1) // 2), 0
    for start in range(0, n, BLOCK_ROWS):
        squared = squared_distances(rows[start : start + BLOCK_ROWS], rows[start:])
        for i, row in enumerate(squared, start=1):
            found[filled : filled + n - start - i] = row[i:]
            filled += n - start - i
    return np.sqrt(found, out=found)
