"""A profile of a view: some of its rows, and the questions that decide its kind."""

from dataclasses import dataclass, field
from functools import cached_property

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
# Two entries of a symmetric matrix differ by at most this share of the largest.
SYMMETRIC = 1e-6


@dataclass(frozen=True)
class ViewProfile:
    """What the kind of a view is decided by."""

    view: Array = field(repr=False)  # the view
    n_samples: int | None  # how many samples there are; None if columns cannot be samples

    @cached_property
    def indices(self) -> np.ndarray:
        """The indices of the sampled rows."""
        return sampled_indices(self.view)

    @cached_property
    def raw_rows(self) -> Float:
        """These rows, on the host in float64."""
        return sampled_rows(self.view)

    @cached_property
    def unit(self) -> float:
        """Their largest absolute entry: kinds do not depend on the unit of a view."""
        return float(np.abs(self.raw_rows).max(initial=0)) or 1.0

    @cached_property
    def rows(self) -> Float:
        """These rows in units of their largest entry."""
        return self.raw_rows / self.unit

    @cached_property
    def is_nonnegative(self) -> bool:
        """Whether no entry is negative."""
        return bool(self.rows.min() >= 0)

    @cached_property
    def share_of_zeros(self) -> float:
        """The share of the entries that are zero."""
        return float(np.mean(self.rows == 0))

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether the view equals its transpose, with one row and one column per sample."""
        n, d = self.view.shape
        if not n == d == self.n_samples:
            return False
        columns = to_host(dense_rows(select(self.view, self.indices, axis=1))).T
        difference = np.abs(self.rows - columns / self.unit)
        return bool(difference.max() <= SYMMETRIC)

    @cached_property
    def is_of_pairs(self) -> bool:
        """Whether entries belong to pairs of samples: square, symmetric and nonnegative."""
        return self.is_nonnegative and self.is_symmetric

    @cached_property
    def diagonal(self) -> Float:
        """The entries of samples with themselves, if entries belong to pairs."""
        return self.rows[np.arange(len(self.indices)), self.indices]


def are_categories(profile: ViewProfile) -> bool:
    """Return whether columns fall into groups of two or more with a single one in every row."""
    return is_one_hot(profile.rows)


def are_distances(profile: ViewProfile) -> bool:
    """Return whether entries are distances between samples."""
    n = profile.view.shape[0]
    return (
        profile.is_of_pairs
        and not profile.diagonal.any()
        and (profile.share_of_zeros - 1 / n) < 0.5 * (1 - 1 / n)
    )


def is_graph(profile: ViewProfile) -> bool:
    """Return whether entries are links between samples, most of which are not linked."""
    return profile.is_of_pairs and profile.share_of_zeros > 0.5 and bool(profile.rows.any())


def is_sparse(profile: ViewProfile) -> bool:
    """Return whether few entries are not zero, these positive, and most rows have some."""
    return (
        profile.is_nonnegative
        and profile.share_of_zeros > 1 - SPARSE_SHARE
        and bool(np.mean(profile.rows.any(axis=1)) > 0.5)
    )


def is_binary(profile: ViewProfile) -> bool:
    """Return whether there are two values only."""
    rows = profile.rows
    return bool(np.all((rows == rows.min()) | (rows == rows.max())))


def are_histograms(profile: ViewProfile) -> bool:
    """Return whether row sums are about equal although columns vary."""
    if not profile.is_nonnegative:
        return False
    sums, of_unrelated = profile.rows.sum(axis=1), np.sqrt(profile.rows.var(axis=0).sum())
    return _are_about_equal(sums, EQUAL_SUMS) and bool(sums.std() <= RELATED * of_unrelated)


def are_directions(profile: ViewProfile) -> bool:
    """Return whether rows have the same length, and entries both signs."""
    if profile.is_nonnegative or profile.rows.max() <= 0 or profile.rows.shape[1] < 2:
        return False
    return _are_about_equal(np.linalg.norm(profile.rows, axis=1), EQUAL_LENGTHS)


def _are_about_equal(numbers: Float, share: float) -> bool:
    """Return whether numbers differ by no more than a share of their mean."""
    return bool(numbers.mean() > 0 and numbers.std() <= share * numbers.mean())
