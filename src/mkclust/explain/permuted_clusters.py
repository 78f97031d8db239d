"""Clusters in the orders that permutation tests compare the given ones with."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mkclust.data.groups import permutation_of_groups

# With fewer different orders, p-values are coarse, which is said.
FEW_ORDERS = 200
# Statistics of permutations that differ by less, relatively, are the same but for
# rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class PermutedClusters:
    """Permutations of clusters; those of groups of samples respect the groups."""

    clusters: np.ndarray  # from 0; -1 for samples without a cluster
    # The number of every sample's group, None if all are exchangeable.
    groups: np.ndarray | None
    n_permutations: int
    seed: int

    def of(self, name: str, known: np.ndarray) -> Iterator[np.ndarray]:
        """Yield permuted clusters of the known samples of a variable."""
        key = zlib.crc32(name.encode())
        rng = np.random.default_rng([self.seed, key])
        if self.groups is None:
            for _ in range(self.n_permutations):
                yield rng.permutation(self.clusters[known])
            return

        # Groups are exchangeable with all of their samples, known or not.
        for permuted in self._of_groups(rng):
            yield permuted[known]

    def p_value(
        self, name: str, known: np.ndarray, statistic_of: Callable[[np.ndarray], float]
    ) -> float:
        """Return the share of permutations with a statistic at least as large."""
        statistic = statistic_of(self.clusters[known])
        statistics = [statistic_of(each) for each in self.of(name, known)]
        drawn = np.array(statistics)
        reach = ROUNDING * abs(statistic)
        is_smaller = drawn < statistic - reach
        n_as_large = int(np.sum(~is_smaller))  # unknown ones count as large
        return (1 + n_as_large) / (1 + len(drawn))

    def only(self, kept: Sequence[int]) -> "PermutedClusters":
        """Return the same of the samples of some clusters alone."""
        is_kept = np.isin(self.clusters, kept)
        clusters = np.where(is_kept, self.clusters, -1)
        return replace(self, clusters=clusters)

    def count_orders(self) -> int:
        """Return the number of different orders of the clusters."""
        rng = np.random.default_rng(self.seed)

        return len({permuted.tobytes() for permuted in self._of_groups(rng)})

    def _of_groups(self, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Yield clusters permuted within groups and between groups of one size."""
        assert self.groups is not None
        has_cluster = self.clusters >= 0
        clusters = self.clusters[has_cluster]
        groups = self.groups[has_cluster]

        permuted = self.clusters.copy()
        for _ in range(self.n_permutations):
            permuted[has_cluster] = clusters[permutation_of_groups(groups, rng)]
            yield permuted
