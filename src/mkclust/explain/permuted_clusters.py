"""Clusters in the orders that permutation tests compare the given ones with."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mkclust.data.groups import permutation_of_groups

# With fewer different orders, p-values are coarse, which is said.
FEW_ORDERS = 200


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
        rng = np.random.default_rng([self.seed, zlib.crc32(name.encode())])
        if self.groups is None:
            for _ in range(self.n_permutations):
                yield rng.permutation(self.clusters[known])
            return

        # Groups are exchangeable with all of their samples, known or not.
        for permuted in self._of_groups(rng):
            yield permuted[known]

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
