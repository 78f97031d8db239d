"""Recognize principal components: columns that are uncorrelated, with falling spreads."""

import numpy as np
from scipy.sparse import issparse
from scipy.special import gammainc

from mkclust.data.distances import some_rows
from mkclust.kernels.preparations import column_deviations, sampled_rows
from mkclust.linalg import astype, namespace, row_ranges, to_host
from mkclust.types import Array, Float

# Two columns can be uncorrelated by chance; three or more hardly are.
FEWEST_COLUMNS = 3
# The probability that correlations of independent columns are as small as those of
# components.
CHANCE = 1e-6
# Squared correlations of components sum to at most this share of those of shuffled
# columns: in single precision the last of many components are correlated by rounding.
ROUNDED = 1e-3
# Rows that are shuffled, and how often.
SHUFFLED_ROWS, N_SHUFFLES = 10_000, 10
# Spreads of components fall, but for this share by rounding; among some rows, by
# chance.
EQUAL_SPREADS, EQUAL_BY_CHANCE = 1e-3, 1.0
# Columns with fewer distinct values than this share of the rows are levels of a design.
DISTINCT = 0.5


def are_components(view: Array) -> bool:
    """Return whether columns are uncorrelated but for rounding, with falling spreads.

    Correlations of n rows of independent columns are about ``1 / sqrt(n)``, those of
    components are zero but for the rounding of single or double precision.
    """
    n, d = view.shape
    if issparse(view) or d < FEWEST_COLUMNS or n <= d:
        return False

    # Few wide views need more than a look at some rows.
    if not _fall(column_deviations(sampled_rows(view)), EQUAL_BY_CHANCE):
        return False

    spreads = column_deviations(view)
    if (
        not _fall(spreads, EQUAL_SPREADS)
        or spreads[-1] * (1 + EQUAL_SPREADS) > spreads[0]
    ):
        return False

    rows = to_host(some_rows(view, SHUFFLED_ROWS))
    if min(len(np.unique(column)) for column in rows.T) < DISTINCT * len(rows):
        return False

    total = n * _squared_correlations(_covariances(view), spreads)
    n_pairs = d * (d - 1) / 2
    if gammainc(n_pairs / 2, total / 2) > CHANCE:  # of the chi-squared distribution
        return False

    # Columns with a few huge entries are hardly correlated either, and shuffled no more
    # than that.
    rng = np.random.default_rng(0)
    shuffled = [_total_of(rng.permuted(rows, axis=0)) for _ in range(N_SHUFFLES)]
    return total <= ROUNDED * min(shuffled)


def _fall(spreads: Float, equal: float) -> bool:
    """Return whether spreads are positive, and none is above the one before by over a share."""
    are_positive = np.all((spreads > 0) & np.isfinite(spreads))
    return bool(are_positive and np.all(spreads[1:] <= (1 + equal) * spreads[:-1]))


def _covariances(view: Array) -> Float:
    """Return the covariances of columns, some rows at a time, on the host in float64."""
    xp, (n, d) = namespace(view), view.shape
    means = xp.mean(astype(view, "float64"), axis=0)
    total = np.zeros((d, d))
    for part in row_ranges(n, d, view):
        centered = astype(view[part, :], "float64") - means
        total += to_host(centered.T @ centered)
    return total / n


def _squared_correlations(covariances: Float, spreads: Float) -> float:
    """Return the sum of the squared correlations of all pairs of columns."""
    correlations = covariances / spreads / spreads[:, None]
    return float(np.sum(np.square(np.triu(correlations, 1))))


def _total_of(rows: Float) -> float:
    """Return the sum of squared correlations times the number of rows."""
    return len(rows) * _squared_correlations(
        _covariances(rows), column_deviations(rows)
    )
