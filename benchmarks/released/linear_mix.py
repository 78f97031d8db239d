"""MKKM-MiR and LKAM with partitions of the kernels mixed by the weights, not by their squares."""

import numpy as np

from mkclust import LKAM, MKKMMiR
from mkclust.methods import Solution
from mkclust.methods.localize import localize
from mkclust.methods.mkkm_mir import descend_regularized
from mkclust.stack import Stack


def solve_mkkm_mir_linear(
    stack: Stack, n_clusters: int, *, reg: float, tol: float = 1e-6, max_iter: int = 100
) -> Solution:
    """Solve as the first released code of MKKM-MiR, whose objective may rise."""
    return descend_regularized(
        stack, n_clusters, reg * stack.gram(), tol=tol, max_iter=max_iter, mix=np.copy
    )


def solve_lkam_linear(
    stack: Stack,
    n_clusters: int,
    *,
    reg: float,
    neighbors: float,
    tol: float = 1e-6,
    max_iter: int = 10,
) -> Solution:
    """Solve as an older copy of LKAM's released code."""
    local, correlations, _ = localize(stack, n_clusters, neighbors)
    return descend_regularized(
        local, n_clusters, reg * correlations, tol=tol, max_iter=max_iter, mix=np.copy
    )


class LinearMixMKKMMiR(MKKMMiR):
    """MKKM-MiR as its first released code solves it."""

    def _solve(self, stack: Stack) -> Solution:
        return solve_mkkm_mir_linear(
            stack, self.n_clusters, reg=self.reg, tol=self.tol, max_iter=self.max_iter
        )


class LinearMixLKAM(LKAM):
    """LKAM as an older copy of its released code solves it."""

    def _solve(self, stack: Stack) -> Solution:
        return solve_lkam_linear(
            stack,
            self.n_clusters,
            reg=self.reg,
            neighbors=self.neighbors,
            tol=self.tol,
            max_iter=self.max_iter,
        )
