"""Methods as users write them: outside the package, and in no registry."""

import numpy as np

from mkclust.fit import InductiveClusterer, Mixture, MultipleKernelClusterer, Solution


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


class Unfinished(InductiveClusterer):
    """Claims to embed new samples, and returns nothing to embed them by."""

    _solve = FirstKernel._solve


class Demanding(MultipleKernelClusterer):
    """Cannot be made without an argument."""

    def __init__(self, strength):
        self.strength = strength
