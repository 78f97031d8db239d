"""Methods as users write them: outside the package, and in no registry."""

from typing import ClassVar

import numpy as np

from mkclust.engine.eigen import relax
from mkclust.methods import InductiveClusterer, MultipleKernelClusterer, Solution


class Powered(InductiveClusterer):
    """Weights by powers of the kernels' own leading eigenvalue sums."""

    strength: float = 1.0

    SUMMARY = "which weighs the kernels by a power of their leading eigenvalue sums"
    REFERENCES = ("A. User. Powers of Kernels. 2026.",)
    WEIGHT_MEANING = "A large weight means much leading structure; it is not importance."
    GRID: ClassVar = {"strength": [0.0, 1.0, 2.0]}

    def _solve(self, stack):
        k = self.n_clusters
        sums = np.array(
            [relax(stack.kernels[p], k, tol=1e-8).value for p in range(stack.n_kernels)]
        )
        weights = sums**self.strength / (sums**self.strength).sum()
        found = relax(stack.mix(weights), k, tol=1e-8)
        return Solution(
            partition=found.vectors[:, :k],
            weights=weights,
            objective=found.value,
            history=np.array([found.value]),
            converged=True,
            coefficients=weights,
            relaxation=found,
            n_iter=1,
        )


class FirstKernel(MultipleKernelClusterer):
    """The first kernel alone: no mix, nothing to say about new samples, and not a word on it."""

    def _solve(self, stack):
        found = relax(stack.kernels[0], self.n_clusters, tol=1e-8)
        return Solution(
            partition=found.vectors[:, : self.n_clusters],
            weights=np.eye(stack.n_kernels)[0],
            objective=found.value,
            history=np.array([found.value]),
            converged=True,
        )


class Unfinished(InductiveClusterer):
    """Says that it knows new samples, and returns nothing by which to know them."""

    _solve = FirstKernel._solve


class Demanding(MultipleKernelClusterer):
    """Cannot be made without an argument."""

    def __init__(self, strength):
        self.strength = strength
