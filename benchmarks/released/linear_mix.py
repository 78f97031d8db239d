"""MKKM-MiR and LKAM with partitions of the kernels mixed by the weights, not by their
squares."""

import numpy as np

from mkclust import LKAM, MKKMMiR
from mkclust.methods.localized_simple_mkkm import localize
from mkclust.methods.mkkm_mir import descend_regularized


class LinearMixMKKMMiR(MKKMMiR):
    """MKKM-MiR as its first released code solves it; its objective may rise."""

    def _solve(self, stack):
        options = self._options("tol", "max_iter")
        return descend_regularized(
            stack, self.n_clusters, self.reg * stack.gram(), **options, mix=np.copy
        )


class LinearMixLKAM(LKAM):
    """LKAM as an older copy of its released code solves it."""

    def _solve(self, stack):
        local, correlations, _ = localize(stack, self.n_clusters, self.neighbors)
        options = self._options("tol", "max_iter")
        return descend_regularized(
            local, self.n_clusters, self.reg * correlations, **options, mix=np.copy
        )
