"""How many samples lie between neighboring clusters, compared with a continuum."""

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import binom

from mkclust.types import Float

# Positions on the line from a center, 0, to the next one, 1, with the border at 1/2: up
# to the first a sample is near its center, from the second on at the border.
CORE, BORDER = 0.25, 0.375


class Borders(NamedTuple):
    """How many samples are between neighboring clusters and near their centers."""

    n_between: int  # samples at a border
    # Samples near the centers: at each border, twice those of the sparser side.
    n_within: int
    sparse: float  # a lower density than this is sparser than in a continuum

    @property
    def density(self) -> float:
        """How dense samples are at borders, in units of that near centers."""
        if self.n_within == 0:
            return float("inf") if self.n_between else float("nan")
        return self.n_between / self.n_within * CORE / (0.5 - BORDER)

    @property
    def p_value(self) -> float:
        """How likely a continuum is to have as few samples at borders."""
        odds = self.sparse * (0.5 - BORDER) / CORE
        total = self.n_between + self.n_within
        if total == 0:
            return 1.0
        return float(binom.cdf(self.n_between, total, odds / (1 + odds)))


def count_at_borders(points: Float, labels: np.ndarray) -> Borders:
    """Count points, (n, d), at the borders between clusters and near their centers.

    A sample has a position between its own center and that of the neighbor with the
    nearest border. At the edge of a cloud a border is denser than the sparser core,
    hence the sparser side counts.
    """
    labels = np.unique(labels, return_inverse=True)[1]
    k = int(labels.max()) + 1
    centers = np.array([points[labels == c].mean(axis=0) for c in range(k)])
    squares = cdist(points, centers, "sqeuclidean")
    apart = cdist(centers, centers, "sqeuclidean")
    apart[apart == 0] = np.inf  # of every center to itself
    gained = np.take_along_axis(squares, labels[:, None], axis=1) - squares
    positions = np.where(
        np.isinf(apart[labels]), -np.inf, 0.5 + gained / (2 * apart[labels])
    )
    neighbors = positions.argmax(axis=1)
    position = positions.max(axis=1)
    # Positions of samples at the very center are zero up to rounding.
    near = (position >= -1e-6) & (position < CORE)
    cores = np.zeros((k, k), dtype=np.int64)
    np.add.at(cores, (labels[near], neighbors[near]), 1)
    # Every pair of clusters counts twice.
    n_within = int(np.minimum(cores, cores.T).sum())
    # How dense a border of a continuum is at least, in units of the sparser of the two
    # cores: 0.36 was the least on curves and surfaces of a thousand samples cut into
    # two or three parts, 0.53 for more parts. From the third on, each dimension of the
    # parts adds as much again.
    least = 0.35 if k <= 3 else 0.5
    sparse = least * max(1.0, _dimensions(points - centers[labels], labels) - 1)
    return Borders(int((position >= BORDER).sum()), n_within, sparse)


def _dimensions(offsets: Float, labels: np.ndarray) -> float:
    """Return the mean number of directions of clusters, by their variances."""
    total = 0.0
    for size, c in zip(np.bincount(labels), np.unique(labels), strict=True):
        own = offsets[labels == c]
        scatter = own.T @ own
        squares = np.square(scatter).sum()
        total += size * (np.trace(scatter) ** 2 / squares if squares > 0 else 1.0)
    return float(total / len(labels))
