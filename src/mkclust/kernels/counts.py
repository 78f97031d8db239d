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
from mkclust.kernels.preparations import Preparation
from mkclust.linalg import arrays_to_host, precision_of, ranges, select, to_device
from mkclust.linalg.sparse_rows import (
    dense_rows,
    divide_rows,
    entrywise,
    zero_rows,
)
from mkclust.types import Array, Float

# Genes are many columns, and proteins, or species, at least a few.
MANY_COLUMNS = 100
FEW_COLUMNS = 8
# Fewer rows do not show how a column is distributed.
FEWEST_ROWS = 10
# Of the variances of columns over their means, the median and the fifth percentile are
# at least these: counts vary at least as Poisson's, less what few rows leave to chance.
LEAST_VARIANCE = 0.9
LEAST_OF_NEARLY_ALL = 0.5
# Counts have no largest value that many entries have, as scores and pixels do: it is
# above this number, and at most this share of the positive entries is as large.
LEAST_MAXIMUM = 10
MOST_AT_MAXIMUM = 1e-3
# The median skewness of columns is at least this, that of few columns more.
LEAST_SKEWNESS = 0.5
LEAST_SKEWNESS_OF_FEW = 1.0
# Of the means of columns, the 95th percentile is this many times the fifth.
LEAST_RANGE = 10
# Columns that are positive in most rows have this share of all counts. Those of words
# and of peaks of chromatin have at most 2 %, and go by the rarity of their columns.
LEAST_COMMON_SHARE = 0.05
# Of the positive counts of few columns, some are large, and at least this share is
# small, unlike amounts of money.
LEAST_MAXIMUM_OF_FEW = 50
SMALL_COUNT = 10
LEAST_SHARE_OF_SMALL = 0.01
# Columns that are used, and principal components of these: scanpy's and Seurat's usual
# numbers.
VARIABLE_COLUMNS = 2000
COMPONENTS = 50
# Rows that both are learned from, and rows that are written out at a time.
LEARNED_ROWS = 10_000
BLOCK_ROWS = 1024
# Lanczos' method is faster if there are more times as many columns as directions.
FEW_DIRECTIONS = 10
# The variance that is expected of a column is the median of this many of about the same
# mean.
SIMILAR_COLUMNS = 101


def are_many_counts(rows: Float) -> bool:
    """Return whether rows hold counts of many columns, some of them common."""
    if rows.shape[1] < MANY_COLUMNS or not _may_be_counts(rows, LEAST_SKEWNESS):
        return False
    means = rows.mean(axis=0)
    low, high = np.quantile(means[means > 0], (0.05, 0.95))
    is_common = np.mean(rows > 0, axis=0) > 0.5
    common_share = means[is_common].sum() / means.sum()
    return bool(high >= LEAST_RANGE * low and common_share >= LEAST_COMMON_SHARE)


def are_few_counts(rows: Float) -> bool:
    """Return whether rows hold counts of few columns, large in some of the rows."""
    if not FEW_COLUMNS <= rows.shape[1] < MANY_COLUMNS:
        return False
    positive = rows[rows > 0]
    if positive.max(initial=0) < LEAST_MAXIMUM_OF_FEW:
        return False
    if np.mean(positive <= SMALL_COUNT) < LEAST_SHARE_OF_SMALL:
        return False
    return _may_be_counts(rows, LEAST_SKEWNESS_OF_FEW)


def are_whole(entries: Array) -> bool:
    """Return whether all entries are whole numbers, none of them negative."""
    if not entries.size:
        return False
    return bool(entries.min() >= 0 and np.all(entries == np.rint(entries)))


def _may_be_counts(rows: Float, least_skewness: float) -> bool:
    """Return whether rows hold whole numbers that are distributed as counts."""
    largest = rows.max(initial=0)
    if len(rows) < FEWEST_ROWS or not are_whole(rows) or largest < LEAST_MAXIMUM:
        return False
    # One entry is the largest in any case.
    n_at_maximum = np.count_nonzero(rows == largest) - 1
    if n_at_maximum > MOST_AT_MAXIMUM * np.count_nonzero(rows):
        return False

    means = rows.mean(axis=0)
    variances = rows.var(axis=0)
    varying = variances > 0
    relative = variances[varying] / means[varying]
    nearly_least, middle = np.quantile(relative, (0.05, 0.5))
    if middle < LEAST_VARIANCE or nearly_least < LEAST_OF_NEARLY_ALL:
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
        rows = arrays_to_host(some_rows(view, LEARNED_ROWS))
        totals = _totals(rows)
        total = float(np.median(totals[totals > 0])) if totals.any() else 1.0
        logarithms = _logarithms(rows, total)
        columns = _most_variable(logarithms)
        means, covariances = _moments(select(logarithms, columns, axis=1))
        d = len(columns)
        r = max(1, min(COMPONENTS, d, rows.shape[0] - 1))
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


def _totals(rows: Array) -> Float:
    """Return the sums of rows."""
    return np.asarray(rows.sum(axis=1, dtype=np.float64)).reshape(-1)


def _logarithms(rows: Array, total: float) -> Array:
    """Return log(1 + x) of rows scaled to a total."""
    totals = _totals(rows)
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
    expected = median_filter(found, SIMILAR_COLUMNS, mode="nearest")
    rising = np.argsort(found - expected, kind="stable")
    return np.sort(order[rising[-VARIABLE_COLUMNS:]])


def _leading_directions(covariances: Float, r: int) -> Float:
    """Return the leading eigenvectors of covariances, (d, r)."""
    d = len(covariances)
    if FEW_DIRECTIONS * r >= d:
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
    for part in ranges(n, BLOCK_ROWS):
        centered = dense_rows(rows[part]) - means.astype(rows.dtype)
        total += centered.T @ centered
    return means, total / n
