"""Recognize principal components: uncorrelated columns with falling spreads."""

import numpy as np
from scipy.sparse import issparse
from scipy.special import gammainc

from mkclust.data.distances import some_rows
from mkclust.kernels.preparations import column_deviations, sampled_rows
from mkclust.linalg import astype, namespace, row_ranges, to_host
from mkclust.types import Array, Float


def are_components(view: Array) -> bool:
    """Return whether columns are uncorrelated but for rounding, with falling spreads.

    Correlations of n rows of independent columns are about ``1 / sqrt(n)``, those of
    components are zero but for the rounding of single or double precision.
    """
    n, d = view.shape
    # Two columns can be uncorrelated by chance; three or more hardly are.
    if issparse(view) or d < 3 or n <= d:
        return False

    # Few wide views need more than a look at some rows, in which spreads fall but for
    # chance.
    if not _fall(column_deviations(sampled_rows(view)), equal=1.0):
        return False

    spreads = column_deviations(view)
    by_rounding = 1e-3
    if not _fall(spreads, by_rounding) or spreads[-1] * (1 + by_rounding) > spreads[0]:
        return False

    # Columns with fewer distinct values are levels of a design.
    rows = to_host(some_rows(view, 10_000))
    if min(len(np.unique(column)) for column in rows.T) < len(rows) / 2:
        return False

    # Are correlations of independent columns ever that small?
    total = n * _squared_correlations(_covariances(view), spreads)
    n_pairs = d * (d - 1) / 2
    if gammainc(n_pairs / 2, total / 2) > 1e-6:  # of the chi-squared distribution
        return False

    # Columns with a few huge entries are hardly correlated either, and shuffled no more
    # than that. In single precision the last of many components are correlated by
    # rounding, a thousandth of that.
    rng = np.random.default_rng(0)
    shuffled = [_total_of(rng.permuted(rows, axis=0)) for _ in range(10)]
    return total <= 1e-3 * min(shuffled)


def _fall(spreads: Float, equal: float) -> bool:
    """Return whether spreads are positive and fall, or rise by at most a share."""
    if not np.all((spreads > 0) & np.isfinite(spreads)):
        return False
    larger = 1 + equal
    limits = larger * spreads[:-1]
    return bool(np.all(spreads[1:] <= limits))


def _covariances(view: Array) -> Float:
    """Return the covariances of columns, on the host in float64."""
    n, d = view.shape
    xp = namespace(view)
    means = xp.mean(astype(view, "float64"), axis=0)
    total = np.zeros((d, d))
    for part in row_ranges(n, d, view):
        centered = astype(view[part, :], "float64") - means
        total += to_host(centered.T @ centered)
    return total / n


def _squared_correlations(covariances: Float, spreads: Float) -> float:
    """Return the sum of the squared correlations of all pairs of columns."""
    correlations = covariances / spreads / spreads[:, None]
    above = np.triu(correlations, 1)
    return float(np.sum(np.square(above)))


def _total_of(rows: Float) -> float:
    """Return the sum of squared correlations times the number of rows."""
    spreads = column_deviations(rows)
    return len(rows) * _squared_correlations(_covariances(rows), spreads)
