"""Methods as users write them: outside the package, and in no registry."""

import numpy as np

from mkclust.engine.eigen import relax
from mkclust.fit import (
    InductiveClusterer,
    Mixture,
    MultipleKernelClusterer,
    RelaxedClusterer,
    Solution,
)
from mkclust.stack import DenseKernel


class Powered(InductiveClusterer):
    """Weights by powers of the kernels' own leading eigenvalue sums."""

    strength: float = 1.0

    WEIGHT_MEANING = (
        "A large weight means much leading structure; it is not importance."
    )

    def _solve(self, stack):
        mixture = Mixture(stack, self.n_clusters)
        sums = np.array([mixture.relax(one).value for one in np.eye(stack.n_kernels)])
        weights = sums**self.strength / (sums**self.strength).sum()
        found = mixture.relax(weights)
        return mixture.solution(found, weights, weights, [found.value], True, 1)


class FirstKernel(MultipleKernelClusterer):
    """The first kernel alone: no mix, no new samples, no class attributes."""

    def _solve(self, stack):
        one = np.eye(stack.n_kernels)[0]
        found = Mixture(stack, self.n_clusters).relax(one)
        history = np.array([found.value])
        return Solution(
            found.vectors[:, : self.n_clusters], one, found.value, history, True
        )


class MedianKernel(RelaxedClusterer):
    """A kernel of its own, which no coefficients make of the others."""

    SIMILARITIES = "the median of the kernels"

    def _solve(self, stack):
        kernel = DenseKernel(self._mixed_among(stack, None))
        found = relax(kernel, self.n_clusters, tol=1e-12)
        return Solution(
            partition=found.vectors[:, : self.n_clusters],
            weights=np.full(stack.n_kernels, 1 / stack.n_kernels),
            objective=found.value,
            history=np.array([found.value]),
            converged=True,
            n_iter=1,
            kernel=kernel,
        )

    def _mixed_among(self, stack, samples):
        return np.median(stack.among(samples).entries, axis=0)


class Unfinished(InductiveClusterer):
    """Claims to embed new samples, and returns nothing to embed them by."""

    _solve = FirstKernel._solve


class Demanding(MultipleKernelClusterer):
    """Cannot be made without an argument."""

    def __init__(self, strength):
        self.strength = strength
