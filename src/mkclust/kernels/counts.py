"""Views of counts, as of molecules in cells: how they are recognized and prepared.

Counts of many columns, such as genes, become principal components of logarithms; those
of few columns, such as proteins, logarithms of ratios. Both are what the field does.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import eigh
from scipy.ndimage import median_filter
from scipy.sparse import issparse
from scipy.sparse.linalg import eigsh
from scipy.stats import skew
from sklearn.utils.sparsefuncs import mean_variance_axis

from mkclust.data.distances import some_rows
from mkclust.kernels.formulas import nonnegative
from mkclust.kernels.preparations import Preparation, row_totals
from mkclust.linalg import (
    arrays_to_host,
    dense_rows,
    divide_rows,
    entrywise,
    precision_of,
    ranges,
    select,
    to_device,
    zero_rows,
)
from mkclust.types import Array, Float

# Genes are at least so many columns, and proteins fewer.
MANY_COLUMNS = 100
# Columns that are used, and principal components of these: scanpy's and Seurat's usual
# numbers.
VARIABLE_COLUMNS = 2000
COMPONENTS = 50


def are_many_counts(rows: Float) -> bool:
    """Return whether rows hold counts of many columns, some of them common."""
    if rows.shape[1] < MANY_COLUMNS or not _may_be_counts(rows, least_skewness=0.5):
        return False
    means = rows.mean(axis=0)
    # Some genes are found far more often than others.
    low, high = np.quantile(means[means > 0], (0.05, 0.95))
    # Columns that are positive in most rows have a share of all counts. Those of words
    # and of peaks of chromatin have at most 2 %, and go by their rarity.
    is_common = np.mean(rows > 0, axis=0) > 0.5
    common_share = means[is_common].sum() / means.sum()
    return bool(high >= 10 * low and common_share >= 0.05)


def are_few_counts(rows: Float) -> bool:
    """Return whether rows hold counts of few columns, large in some of the rows."""
    if not 8 <= rows.shape[1] < MANY_COLUMNS:
        return False
    # Some are large, unlike scores, and some are small, unlike money.
    positive = rows[rows > 0]
    if positive.max(initial=0) < 50 or np.mean(positive <= 10) < 0.01:
        return False
    return _may_be_counts(rows, least_skewness=1.0)


def are_whole(entries: Array) -> bool:
    """Return whether all entries are whole numbers, none of them negative."""
    is_whole = (
        entries.size and entries.min() >= 0 and np.all(entries == np.rint(entries))
    )
    return bool(is_whole)


def _may_be_counts(rows: Float, least_skewness: float) -> bool:
    """Return whether rows hold whole numbers that are distributed as counts."""
    # Fewer rows do not show how a column is distributed, and scores are smaller.
    largest = rows.max(initial=0)
    if len(rows) < 10 or not are_whole(rows) or largest < 10:
        return False

    # Hardly any entries are as large as the largest, as many scores and pixels are.
    n_at_maximum = np.count_nonzero(rows == largest) - 1  # one is in any case
    if n_at_maximum > 1e-3 * np.count_nonzero(rows):
        return False

    # Counts vary at least as Poisson's, less what few rows leave to chance.
    variances = rows.var(axis=0)
    varying = variances > 0
    relative = variances[varying] / rows.mean(axis=0)[varying]
    nearly_least, middle = np.quantile(relative, (0.05, 0.5))
    if middle < 0.9 or nearly_least < 0.5:
        return False
    return bool(np.median(skew(rows[:, varying], axis=0)) >= least_skewness)


@dataclass(frozen=True)
class CountComponents(Preparation):
    """Principal components of the logarithms of counts, relative to the row's total.

    Rows are scaled to the median total of the training rows. The components are those
    of log(1 + x) in the columns whose variance is furthest above that of columns of
    about the same mean.
    """

    ignores_zeros = True
    total: float  # that every row is scaled to
    columns: np.ndarray = field(repr=False)  # those that are used
    means: Float = field(repr=False)  # of their logarithms
    directions: Float = field(repr=False)  # of the components, (n_columns, r)

    @classmethod
    def learn(cls, view: Array) -> "CountComponents":
        """Learn the columns and the components, from many rows if there are more."""
        rows = arrays_to_host(some_rows(view, 10_000))
        totals = row_totals(rows)
        total = float(np.median(totals[totals > 0])) if totals.any() else 1.0
        logarithms = _logarithms(rows, total)
        columns = _most_variable(logarithms)
        means, covariances = _moments(select(logarithms, columns, axis=1))
        r = max(1, min(COMPONENTS, len(columns), rows.shape[0] - 1))
        return cls(total, columns, means, _leading_directions(covariances, r))

    def apply(self, rows: Array) -> Array:
        """Return the components of rows."""
        logarithms = _logarithms(arrays_to_host(rows), self.total)
        used = select(logarithms, self.columns, axis=1)
        components = used @ self.directions.astype(used.dtype)
        origin = (self.means @ self.directions).astype(used.dtype)
        return to_device(components - origin, rows, precision_of(rows))

    def zero_rows(self, rows: Array) -> np.ndarray:
        """Return which rows have no counts, on the host."""
        return zero_rows(rows)

    def __str__(self) -> str:
        n_columns, n_components = self.directions.shape
        return (
            f"counts per {self.total:,.0f}, logarithms, {n_components} principal "
            f"components of the {n_columns:,} most variable columns"
        )


class LogRatios(Preparation):
    """Take logarithms of counts less their mean in the row (centered log-ratios)."""

    text = "centered log-ratios"
    ignores_zeros = True

    def apply(self, rows: Array) -> Array:
        """Return log(1 + x) less the mean of the row."""
        logarithms = np.log1p(nonnegative(dense_rows(arrays_to_host(rows))))
        ratios = logarithms - logarithms.mean(axis=1, keepdims=True)
        return to_device(ratios, rows, precision_of(rows))

    def zero_rows(self, rows: Array) -> np.ndarray:
        """Return which rows have no counts, on the host."""
        return zero_rows(rows)


def _logarithms(rows: Array, total: float) -> Array:
    """Return log(1 + x) of rows scaled to a total."""
    totals = row_totals(rows)
    scaled = divide_rows(rows, np.where(totals > 0, totals, total) / total)
    return entrywise(lambda x: np.log1p(nonnegative(x)), scaled)


def _most_variable(logarithms: Array) -> np.ndarray:
    """Return the columns that vary more than others of about the same mean."""
    if issparse(logarithms):
        means, variances = mean_variance_axis(logarithms, axis=0)
    else:
        means = logarithms.mean(axis=0, dtype=np.float64)
        variances = logarithms.var(axis=0, dtype=np.float64)
    varying = np.flatnonzero(variances > 0)
    if not len(varying):
        return np.arange(1)
    if len(varying) <= VARIABLE_COLUMNS:
        return varying
    order = varying[np.argsort(means[varying], kind="stable")]
    found = variances[order]
    # The variance that is expected of a column is the median of 101 of about the same
    # mean.
    expected = median_filter(found, 101, mode="nearest")
    rising = np.argsort(found - expected, kind="stable")
    return np.sort(order[rising[-VARIABLE_COLUMNS:]])


def _leading_directions(covariances: Float, r: int) -> Float:
    """Return the leading eigenvectors of covariances, (d, r)."""
    # Lanczos' method is faster if there are ten times as many columns as directions.
    d = len(covariances)
    if 10 * r >= d:
        vectors = eigh(covariances, subset_by_index=(d - r, d - 1))[1]
    else:
        start = np.random.default_rng(0).normal(size=d)
        vectors = eigsh(covariances, r, v0=start)[1]
    return np.ascontiguousarray(vectors[:, ::-1])


def _moments(rows: Array) -> tuple[Float, Float]:
    """Return the means and covariances of columns."""
    n, d = rows.shape
    means = np.asarray(rows.mean(axis=0, dtype=np.float64)).reshape(-1)
    total = np.zeros((d, d))
    for part in ranges(n, 1024):  # rows that are written out at a time
        centered = dense_rows(rows[part]) - means.astype(rows.dtype)
        total += centered.T @ centered
    return means, total / n
