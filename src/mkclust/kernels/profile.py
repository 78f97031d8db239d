"""What some rows of a view look like: the properties that decide its kind."""

import numpy as np

from mkclust.kernels.preparations import sampled_indices, sampled_rows
from mkclust.linalg import dense_rows, select, to_host
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
        largest = float(np.abs(self.raw_rows).max(initial=0))
        unit = largest or 1.0
        self.rows: Float = self.raw_rows / unit
        self.lowest = float(self.rows.min())
        self.is_nonnegative = self.lowest >= 0
        self.share_of_zeros = float(np.mean(self.rows == 0))
        self.is_symmetric = False
        if tuple(view.shape) == (n_samples, n_samples):
            chosen = dense_rows(select(view, indices, axis=1))
            columns = to_host(chosen).T / unit
            difference = np.abs(self.rows - columns).max()
            self.is_symmetric = bool(difference <= SYMMETRIC)
            places = np.arange(len(indices))
            self.diagonal: Float = self.rows[places, indices]
        # Whether entries belong to pairs of samples.
        self.is_of_pairs = self.is_nonnegative and self.is_symmetric

    def are_distances(self) -> bool:
        """Return whether entries are distances: a zero diagonal, few other zeros."""
        if not self.is_of_pairs or self.diagonal.any():
            return False
        on_diagonal = 1 / self.view.shape[0]
        elsewhere = self.share_of_zeros - on_diagonal
        return elsewhere < 0.5 * (1 - on_diagonal)

    def is_graph(self) -> bool:
        """Return whether entries are links, mostly zero."""
        return self.is_of_pairs and self.share_of_zeros > 0.5 and bool(self.rows.any())

    def is_sparse(self) -> bool:
        """Return whether fewer than a tenth of the entries are not zero."""
        if not self.is_nonnegative or self.share_of_zeros <= 0.9:
            return False
        has_entries = self.rows.any(axis=1)
        return bool(np.mean(has_entries) > 0.5)

    def is_binary(self) -> bool:
        """Return whether there are two values only."""
        rows = self.rows
        low = rows.min()
        high = rows.max()
        return bool(np.all((rows == low) | (rows == high)))

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
        smallest = varying.min()
        return bool(varying.max() >= 1000 * smallest)


def _are_about_equal(numbers: Float, share: float) -> bool:
    """Return whether the deviation of numbers is at most a share of their mean."""
    mean = numbers.mean()
    return bool(mean > 0 and numbers.std() <= share * mean)
