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
    # Some genes are found far more often than others.
    least_range = 10
    # Columns that are positive in most rows have this share of all counts. Those of
    # words and of peaks of chromatin have at most 2 %, and go by their rarity.
    least_common_share = 0.05
    means = rows.mean(axis=0)
    positive = means[means > 0]
    low, high = np.quantile(positive, (0.05, 0.95))
    share_of_rows = np.mean(rows > 0, axis=0)
    is_common = share_of_rows > 0.5
    common_share = means[is_common].sum() / means.sum()
    has_range = high >= least_range * low
    return bool(has_range and common_share >= least_common_share)


def are_few_counts(rows: Float) -> bool:
    """Return whether rows hold counts of few columns, large in some of the rows."""
    fewest_columns = 8
    if not fewest_columns <= rows.shape[1] < MANY_COLUMNS:
        return False
    # Some are large, unlike scores, and at least this share is small, unlike money.
    large = 50
    small = 10
    least_share_of_small = 0.01
    positive = rows[rows > 0]
    if positive.max(initial=0) < large:
        return False
    if np.mean(positive <= small) < least_share_of_small:
        return False
    return _may_be_counts(rows, least_skewness=1.0)


def are_whole(entries: Array) -> bool:
    """Return whether all entries are whole numbers, none of them negative."""
    if not entries.size:
        return False
    return bool(entries.min() >= 0 and np.all(entries == np.rint(entries)))


def _may_be_counts(rows: Float, least_skewness: float) -> bool:
    """Return whether rows hold whole numbers that are distributed as counts."""
    # Fewer rows do not show how a column is distributed, and scores are smaller.
    fewest_rows = 10
    least_maximum = 10
    largest = rows.max(initial=0)
    if len(rows) < fewest_rows or not are_whole(rows) or largest < least_maximum:
        return False

    # Hardly any entries are as large as the largest, as many scores and pixels are.
    most_at_maximum = 1e-3
    n_at_maximum = np.count_nonzero(rows == largest) - 1  # one is in any case
    if n_at_maximum > most_at_maximum * np.count_nonzero(rows):
        return False

    # Counts vary at least as Poisson's, less what few rows leave to chance.
    least_variance = 0.9
    least_of_nearly_all = 0.5
    means = rows.mean(axis=0)
    variances = rows.var(axis=0)
    varying = variances > 0
    relative = variances[varying] / means[varying]
    nearly_least, middle = np.quantile(relative, (0.05, 0.5))
    if middle < least_variance or nearly_least < least_of_nearly_all:
        return False
    skewnesses = skew(rows[:, varying], axis=0)
    return bool(np.median(skewnesses) >= least_skewness)


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
        most_rows = 10_000
        rows = arrays_to_host(some_rows(view, most_rows))
        totals = _totals(rows)
        total = float(np.median(totals[totals > 0])) if totals.any() else 1.0
        logarithms = _logarithms(rows, total)
        columns = _most_variable(logarithms)
        means, covariances = _moments(select(logarithms, columns, axis=1))
        d = len(columns)
        most = min(COMPONENTS, d, rows.shape[0] - 1)
        r = max(1, most)
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
    sums = rows.sum(axis=1, dtype=np.float64)
    return np.asarray(sums).reshape(-1)


def _logarithms(rows: Array, total: float) -> Array:
    """Return log(1 + x) of rows scaled to a total."""
    totals = _totals(rows)
    known = np.where(totals > 0, totals, total)
    scaled = divide_rows(rows, known / total)
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
    # The variance that is expected of a column is the median of this many of about the
    # same mean.
    similar = 101
    expected = median_filter(found, similar, mode="nearest")
    rising = np.argsort(found - expected, kind="stable")
    return np.sort(order[rising[-VARIABLE_COLUMNS:]])


def _leading_directions(covariances: Float, r: int) -> Float:
    """Return the leading eigenvectors of covariances, (d, r)."""
    # Lanczos' method is faster if there are more times as many columns as directions.
    few = 10
    d = len(covariances)
    if few * r >= d:
        largest = (d - r, d - 1)
        vectors = eigh(covariances, subset_by_index=largest)[1]
    else:
        start = np.random.default_rng(0).normal(size=d)
        vectors = eigsh(covariances, r, v0=start)[1]
    return np.ascontiguousarray(vectors[:, ::-1])


def _moments(rows: Array) -> tuple[Float, Float]:
    """Return the means and covariances of columns."""
    n, d = rows.shape
    found = rows.mean(axis=0, dtype=np.float64)
    means = np.asarray(found).reshape(-1)
    total = np.zeros((d, d))
    written_out = 1024  # rows at a time
    for part in ranges(n, written_out):
        centered = dense_rows(rows[part]) - means.astype(rows.dtype)
        total += centered.T @ centered
    return means, total / n
