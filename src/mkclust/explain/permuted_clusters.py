"""Clusters in the orders that permutation tests compare the given ones with."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mkclust.data.groups import permutation_of_groups

# Statistics of permutations that differ by less, relatively, are the same but for
# rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class PermutedClusters:
    """Permutations of clusters; those of groups of samples respect the groups."""

    clusters: np.ndarray  # from 0; -1 for samples without a cluster
    # The number of every sample's group, None if all are exchangeable.
    groups: Any
    n_permutations: int
    seed: int

    def of(self, name: str, known: np.ndarray) -> Iterator[np.ndarray]:
        """Yield permuted clusters of the known samples of a variable."""
        rng = np.random.default_rng([self.seed, zlib.crc32(name.encode())])
        for _ in range(self.n_permutations):
            if self.groups is None:
                yield rng.permutation(self.clusters[known])
            else:  # exchangeable with all of their samples, known or not
                yield self._within_groups(rng)[known]

    def p_value(
        self, name: str, known: np.ndarray, statistic_of: Callable[[np.ndarray], float]
    ) -> float:
        """Return the share of permutations with a statistic at least as large."""
        statistic = statistic_of(self.clusters[known])
        drawn = np.array([statistic_of(each) for each in self.of(name, known)])
        is_smaller = drawn < statistic - ROUNDING * abs(statistic)
        n_as_large = int(np.sum(~is_smaller))  # unknown ones count as large
        return (1 + n_as_large) / (1 + len(drawn))

    def only(self, kept: Sequence[int]) -> "PermutedClusters":
        """Return the same of the samples of some clusters alone."""
        is_kept = np.isin(self.clusters, kept)
        return replace(self, clusters=np.where(is_kept, self.clusters, -1))

    def count_orders(self) -> int:
        """Return the number of different orders of the clusters."""
        rng = np.random.default_rng(self.seed)
        draws = range(self.n_permutations)
        return len({self._within_groups(rng).tobytes() for _ in draws})

    def _within_groups(self, rng: np.random.Generator) -> np.ndarray:
        """Return clusters permuted within groups and between groups of one size."""
        has_cluster = np.flatnonzero(self.clusters >= 0)
        order = permutation_of_groups(self.groups[has_cluster], rng)
        permuted = self.clusters.copy()
        permuted[has_cluster] = self.clusters[has_cluster[order]]
        return permuted
