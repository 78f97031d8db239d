"""Whether samples are sparser between clusters than within them, or fill a continuum."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from mkclust.types import Float

# Places on the line from a center, 0, to the next one, 1, with the border at 1/2: up to the first
# a sample is near its center, from the second on at the border.
CORE, BORDER = 0.25, 0.375
# Samples at the very center are so up to this.
ROUNDING = 1e-6
# How dense a border of a continuum is at least, in units of the sparser of the two cores. A curve
# cut into two or three parts is stretched in the middle where its kernel is scaled to a unit
# diagonal: 0.36 was the least on curves and surfaces of a thousand samples, 0.53 for more parts.
# The more dimensions parts have, the more of them lies at their borders: from the third on, each
# adds as much again.
FEW_PARTS, SPARSE_OF_FEW, SPARSE_OF_MANY = 3, 0.35, 0.5


@dataclass(frozen=True)
class Borders:
    """How many samples lie between neighboring clusters, and how many near their centers.

    Attributes
    ----------
    n_between : int
        Samples at a border.
    n_within : int
        Samples near the centers beside these borders: of the two clusters at a border, twice as
        many as the one has that has fewer.
    n_clusters : int
        Number of clusters.
    n_dimensions : float
        In how many directions clusters extend, on average: the squared sum of their variances over
        the sum of the squares.
    """

    n_between: int
    n_within: int
    n_clusters: int
    n_dimensions: float

    @property
    def sparse(self) -> float:
        """The density below which borders are sparser than in a continuum."""
        least = SPARSE_OF_FEW if self.n_clusters <= FEW_PARTS else SPARSE_OF_MANY
        return least * max(1.0, self.n_dimensions - 1)

    @property
    def density(self) -> float:
        """How dense samples are at borders, in units of that near centers; NaN without samples."""
        if self.n_within == 0:
            return float("inf") if self.n_between else float("nan")
        return self.n_between / self.n_within * CORE / (0.5 - BORDER)

    @property
    def p_value(self) -> float:
        """How likely a continuum is to have as few samples at the borders between its parts."""
        odds = self.sparse * (0.5 - BORDER) / CORE
        total = self.n_between + self.n_within
        return float(binom.cdf(self.n_between, total, odds / (1 + odds))) if total else 1.0


def count_at_borders(points: Float, labels: np.ndarray) -> Borders:
    """Count samples at the borders between clusters, and near the centers beside them.

    Every sample has a place on the line from its own center to that of the neighbor whose border it
    is nearest to, relatively. Evenly spread samples of a curve have evenly spread places, and those
    of a surface or a body crowd at the borders. Where density only falls, as at the edge of a
    cloud, a border is denser than the core of the sparser side, hence the sparser side counts.

    Parameters
    ----------
    points : ndarray of shape (n_samples, d)
        Coordinates of the samples.
    labels : ndarray of shape (n_samples,)
        Their clusters.

    Returns
    -------
    Borders
    """
    n, everyone = len(points), np.arange(len(points))
    numbers, labels = np.unique(labels, return_inverse=True)
    k = len(numbers)
    if k == 1:
        return Borders(0, 0, 1, 1.0)
    members = np.zeros((n, k))
    members[everyone, labels] = 1
    centers = members.T @ points / members.sum(axis=0)[:, None]
    apart = np.square(centers[:, None] - centers).sum(axis=-1)[labels]
    squares = np.square(points[:, None] - centers).sum(axis=-1)
    other = apart > 0
    gained = squares[everyone, labels][:, None] - squares
    places = np.where(other, 0.5 + gained / (2 * np.where(other, apart, 1)), -np.inf)
    neighbors, place = places.argmax(axis=1), places.max(axis=1)
    near = (place >= -ROUNDING) & (place < CORE)
    cores = np.zeros((k, k), dtype=np.int64)
    np.add.at(cores, (labels[near], neighbors[near]), 1)
    # Every pair of clusters stands in it twice.
    n_within = int(np.minimum(cores, cores.T).sum())
    n_between = int((place >= BORDER).sum())
    return Borders(n_between, n_within, k, _dimensions(points - centers[labels], labels))


def _dimensions(offsets: Float, labels: np.ndarray) -> float:
    """Return in how many directions samples lie around their centers, on average."""
    total = 0.0
    for c in range(labels.max() + 1):
        members = offsets[labels == c]
        scatter = members.T @ members
        squares = np.square(scatter).sum()
        # Copies of one sample extend nowhere.
        total += len(members) * (np.trace(scatter) ** 2 / squares if squares > 0 else 1.0)
    return float(total / len(labels))
