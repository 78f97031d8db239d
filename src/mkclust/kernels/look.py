"""What a view looks like: a look at some of its rows, and questions that tell its kind."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mkclust.kernels.preparations import are_marks, numbers_looked_at, rows_looked_at
from mkclust.linalg import select, to_host
from mkclust.linalg.sparse_rows import dense_rows
from mkclust.types import Array, Float

# A view is sparse where fewer of its entries than this share are not zero.
SPARSE_SHARE = 0.1
# Rows are histograms where their sums differ by less than this share of their mean, and directions
# where their lengths do.
EQUAL_SUMS, EQUAL_LENGTHS = 0.01, 1e-3
# Sums of columns that have nothing to do with each other vary by the root of the sum of their
# variances; those of histograms by less than this share of it.
RELATED = 0.5
# What two entries of a symmetric matrix may differ by, in shares of the largest.
SYMMETRIC = 1e-6


@dataclass(frozen=True)
class Look:
    """What is looked at to tell the kind of a view.

    Attributes
    ----------
    view : array of shape (n_samples, n_features)
        The view.
    n_samples : int or None
        How many samples there are; None where columns cannot be samples.
    """

    view: Array = field(repr=False)
    n_samples: int | None

    @cached_property
    def numbers(self) -> np.ndarray:
        """The numbers of the rows that are looked at."""
        return numbers_looked_at(*self.view.shape)

    @cached_property
    def raw_rows(self) -> Float:
        """These rows, on the host in float64."""
        return rows_looked_at(self.view, self.numbers)

    @cached_property
    def unit(self) -> float:
        """Their largest entry, signs aside: kinds do not depend on the unit of a view."""
        return float(np.abs(self.raw_rows).max(initial=0)) or 1.0

    @cached_property
    def rows(self) -> Float:
        """The same in units of their largest entry."""
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
        """Whether entries are those at their mirror images, one row and one column a sample."""
        n, d = self.view.shape
        if not n == d == self.n_samples:
            return False
        columns = to_host(dense_rows(select(self.view, self.numbers, axis=1))).T
        difference = np.abs(self.rows - columns / self.unit)
        return bool(difference.max() <= SYMMETRIC)

    @cached_property
    def is_of_pairs(self) -> bool:
        """Whether entries are of pairs of samples: square, symmetric and nonnegative."""
        return self.is_nonnegative and self.is_symmetric

    @cached_property
    def diagonal(self) -> Float:
        """The entries of samples with themselves, of what is of pairs."""
        return self.rows[np.arange(len(self.numbers)), self.numbers]


def are_categories(look: Look) -> bool:
    """Return whether columns fall into groups of two or more with one mark in every row."""
    return are_marks(look.rows)


def are_distances(look: Look) -> bool:
    """Return whether entries are distances between samples."""
    n = look.view.shape[0]
    return (
        look.is_of_pairs
        and not look.diagonal.any()
        and (look.share_of_zeros - 1 / n) < 0.5 * (1 - 1 / n)
    )


def is_graph(look: Look) -> bool:
    """Return whether entries are links between samples, most of which are not linked."""
    return look.is_of_pairs and look.share_of_zeros > 0.5 and bool(look.rows.any())


def is_sparse(look: Look) -> bool:
    """Return whether few entries are not zero, these positive, and most rows have some."""
    return (
        look.is_nonnegative
        and look.share_of_zeros > 1 - SPARSE_SHARE
        and bool(np.mean(look.rows.any(axis=1)) > 0.5)
    )


def is_binary(look: Look) -> bool:
    """Return whether there are two values only."""
    rows = look.rows
    return bool(np.all((rows == rows.min()) | (rows == rows.max())))


def are_histograms(look: Look) -> bool:
    """Return whether rows add up to about the same, and not for their columns hardly vary."""
    if not look.is_nonnegative:
        return False
    sums, of_unrelated = look.rows.sum(axis=1), np.sqrt(look.rows.var(axis=0).sum())
    return _are_about_equal(sums, EQUAL_SUMS) and bool(sums.std() <= RELATED * of_unrelated)


def are_directions(look: Look) -> bool:
    """Return whether rows have the same length, and entries both signs."""
    if look.is_nonnegative or look.rows.max() <= 0 or look.rows.shape[1] < 2:
        return False
    return _are_about_equal(np.linalg.norm(look.rows, axis=1), EQUAL_LENGTHS)


def _are_about_equal(numbers: Float, share: float) -> bool:
    """Return whether numbers differ by no more than a share of their mean."""
    return bool(numbers.mean() > 0 and numbers.std() <= share * numbers.mean())
