"""What a view looks like: the properties that decide its kind."""

import numpy as np
from scipy.sparse import issparse
from scipy.special import gammainc

from mkclust.data.distances import some_rows
from mkclust.kernels.preparations import (
    column_deviations,
    sampled_indices,
    sampled_rows,
)
from mkclust.linalg import (
    astype,
    dense_rows,
    namespace,
    row_ranges,
    select,
    to_host,
)
from mkclust.types import Array, Float

# Two entries of a symmetric matrix differ by at most this share of the largest.
SYMMETRIC = 1e-6


class ViewProfile:
    """Some rows of a view, and the properties that decide its kind."""

    def __init__(self, view: Array, n_samples: int | None):
        self.view = view
        self.n_samples = n_samples  # None if columns are no samples
        indices = sampled_indices(view)
        self.raw_rows = sampled_rows(view)
        # Kinds do not depend on the unit of a view.
        unit = float(np.abs(self.raw_rows).max(initial=0)) or 1.0
        self.rows: Float = self.raw_rows / unit
        self.lowest = float(self.rows.min())
        self.is_nonnegative = self.lowest >= 0
        self.share_of_zeros = float(np.mean(self.rows == 0))
        self.is_symmetric = False
        if tuple(view.shape) == (n_samples, n_samples):
            columns = to_host(dense_rows(select(view, indices, axis=1))).T / unit
            difference = np.abs(self.rows - columns).max()
            self.is_symmetric = bool(difference <= SYMMETRIC)
            self.diagonal: Float = self.rows[np.arange(len(indices)), indices]
        # Whether entries belong to pairs of samples.
        self.is_of_pairs = self.is_nonnegative and self.is_symmetric

    def are_distances(self) -> bool:
        """Return whether entries are distances: a zero diagonal, few other zeros."""
        if not self.is_of_pairs or self.diagonal.any():
            return False
        on_diagonal = 1 / self.view.shape[0]
        return self.share_of_zeros - on_diagonal < 0.5 * (1 - on_diagonal)

    def is_graph(self) -> bool:
        """Return whether entries are links, mostly zero."""
        return self.is_of_pairs and self.share_of_zeros > 0.5 and bool(self.rows.any())

    def is_sparse(self) -> bool:
        """Return whether fewer than a tenth of the entries are not zero."""
        if not self.is_nonnegative or self.share_of_zeros <= 0.9:
            return False
        return bool(np.mean(self.rows.any(axis=1)) > 0.5)

    def is_binary(self) -> bool:
        """Return whether there are two values only."""
        rows = self.rows
        return bool(np.all((rows == rows.min()) | (rows == rows.max())))

    def are_histograms(self) -> bool:
        """Return whether sums of rows are equal, unlike those of unrelated columns."""
        if not self.is_nonnegative:
            return False
        sums = self.rows.sum(axis=1)
        of_unrelated = np.sqrt(self.rows.var(axis=0).sum())
        if sums.std() > 0.5 * of_unrelated:
            return False
        return _are_about_equal(sums, 0.01)

    def are_directions(self) -> bool:
        """Return whether lengths of rows are equal, with entries of both signs."""
        if self.is_nonnegative or self.rows.max() <= 0 or self.rows.shape[1] < 2:
            return False
        return _are_about_equal(np.linalg.norm(self.rows, axis=1), 1e-3)

    def has_units(self) -> bool:
        """Return whether columns have units: few, or some whose spreads differ much."""
        n_columns = self.rows.shape[1]
        if n_columns <= 20:
            return True
        spreads = self.rows.std(axis=0)
        varying = spreads[spreads > 0]
        if n_columns > 100 or not varying.size:
            return False
        return bool(varying.max() >= 1000 * varying.min())


def _are_about_equal(numbers: Float, share: float) -> bool:
    """Return whether the deviation of numbers is at most a share of their mean."""
    mean = numbers.mean()
    return bool(mean > 0 and numbers.std() <= share * mean)


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
    total = _squared_correlations(view, spreads)
    n_pairs = d * (d - 1) / 2
    if gammainc(n_pairs / 2, total / 2) > 1e-6:  # of the chi-squared distribution
        return False

    # Columns with a few huge entries are hardly correlated either, and shuffled no more
    # than that. In single precision the last of many components are correlated by
    # rounding, a thousandth of that.
    rng = np.random.default_rng(0)
    draws = (rng.permuted(rows, axis=0) for _ in range(10))
    shuffled = [_squared_correlations(each, column_deviations(each)) for each in draws]
    return total <= 1e-3 * min(shuffled)


def _fall(spreads: Float, equal: float) -> bool:
    """Return whether spreads are positive and fall, or rise by at most a share."""
    if not np.all((spreads > 0) & np.isfinite(spreads)):
        return False
    return bool(np.all(spreads[1:] <= (1 + equal) * spreads[:-1]))


def _squared_correlations(view: Array, spreads: Float) -> float:
    """Return the rows times the sum of squared correlations of all pairs of columns."""
    n, d = view.shape
    xp = namespace(view)
    means = xp.mean(astype(view, "float64"), axis=0)
    total = np.zeros((d, d))
    for part in row_ranges(n, d, view):
        centered = astype(view[part, :], "float64") - means
        total += to_host(centered.T @ centered)
    correlations = total / n / spreads / spreads[:, None]
    return n * float(np.sum(np.square(np.triu(correlations, 1))))
