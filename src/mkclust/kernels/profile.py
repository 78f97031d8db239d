"""A profile of a view: some of its rows, and the questions that decide its kind."""

import numpy as np

from mkclust.kernels.preparations import is_one_hot, sampled_indices, sampled_rows
from mkclust.linalg import select, to_host
from mkclust.linalg.sparse_rows import dense_rows
from mkclust.types import Array, Float

# A view is sparse if fewer of its entries than this share are not zero.
SPARSE_SHARE = 0.1
# Rows are histograms if the standard deviation of their sums is at most this share of the mean.
EQUAL_SUMS = 0.01
# Rows are directions if that of their lengths is at most this share of the mean.
EQUAL_LENGTHS = 1e-3
# Sums of unrelated columns vary by the root of the sum of their variances; those of histograms by
# at most this share of it.
RELATED = 0.5
# Columns of a table are in units of their own if they are this few,
FEW_COLUMNS = 20
# or these few and their spreads differ by this factor.
SOME_COLUMNS, FAR_APART = 100, 1_000.0
# Two entries of a symmetric matrix differ by at most this share of the largest.
SYMMETRIC = 1e-6


class ViewProfile:
    """Some rows of a view, and what its kind is decided by.

    The view comes with the number of samples, None if columns cannot be samples.
    """

    def __init__(self, view: Array, n_samples: int | None):
        self.view, self.n_samples = view, n_samples
        indices, self.raw_rows = sampled_indices(view), sampled_rows(view)
        # Kinds do not depend on the unit of a view.
        unit = float(np.abs(self.raw_rows).max(initial=0)) or 1.0
        self.rows: Float = self.raw_rows / unit
        self.is_nonnegative = bool(self.rows.min() >= 0)
        self.share_of_zeros = float(np.mean(self.rows == 0))
        self.is_symmetric = False
        if tuple(view.shape) == (n_samples, n_samples):
            columns = to_host(dense_rows(select(view, indices, axis=1))).T / unit
            self.is_symmetric = bool(np.abs(self.rows - columns).max() <= SYMMETRIC)
            self.diagonal: Float = self.rows[np.arange(len(indices)), indices]
        # Whether entries belong to pairs of samples.
        self.is_of_pairs = self.is_nonnegative and self.is_symmetric

    def are_categories(self) -> bool:
        """Return whether columns fall into groups of two or more with a single one in every row."""
        return is_one_hot(self.rows)

    def are_distances(self) -> bool:
        """Return whether entries are distances between samples."""
        n = self.view.shape[0]
        return (
            self.is_of_pairs
            and not self.diagonal.any()
            and (self.share_of_zeros - 1 / n) < 0.5 * (1 - 1 / n)
        )

    def is_graph(self) -> bool:
        """Return whether entries are links between samples, most of which are not linked."""
        return self.is_of_pairs and self.share_of_zeros > 0.5 and bool(self.rows.any())

    def is_sparse(self) -> bool:
        """Return whether few entries are not zero, these positive, and most rows have some."""
        return (
            self.is_nonnegative
            and self.share_of_zeros > 1 - SPARSE_SHARE
            and bool(np.mean(self.rows.any(axis=1)) > 0.5)
        )

    def is_binary(self) -> bool:
        """Return whether there are two values only."""
        rows = self.rows
        return bool(np.all((rows == rows.min()) | (rows == rows.max())))

    def are_histograms(self) -> bool:
        """Return whether row sums are about equal although columns vary."""
        if not self.is_nonnegative:
            return False
        sums, of_unrelated = self.rows.sum(axis=1), np.sqrt(self.rows.var(axis=0).sum())
        return _are_about_equal(sums, EQUAL_SUMS) and bool(sums.std() <= RELATED * of_unrelated)

    def are_directions(self) -> bool:
        """Return whether rows have the same length, and entries both signs."""
        if self.is_nonnegative or self.rows.max() <= 0 or self.rows.shape[1] < 2:
            return False
        return _are_about_equal(np.linalg.norm(self.rows, axis=1), EQUAL_LENGTHS)

    def has_units(self) -> bool:
        """Return whether columns are likely to have units of their own, as in a table of people."""
        spreads, n_columns = self.rows.std(axis=0), self.rows.shape[1]
        varying = spreads[spreads > 0]
        are_far_apart = varying.size > 0 and varying.max() >= FAR_APART * varying.min()
        return n_columns <= FEW_COLUMNS or bool(n_columns <= SOME_COLUMNS and are_far_apart)


def _are_about_equal(numbers: Float, share: float) -> bool:
    """Return whether numbers differ by no more than a share of their mean."""
    return bool(numbers.mean() > 0 and numbers.std() <= share * numbers.mean())
