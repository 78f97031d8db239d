"""MKKM-MM and KAMM-A where their cap stops them, not where their objective is least."""

from collections.abc import Callable

import numpy as np

from mkclust import MKKMMM
from mkclust.engine.eigen import Relaxation
from mkclust.methods import Solution
from mkclust.methods.alternate import Alternation
from mkclust.methods.kamm import alternate_with_best_weights
from mkclust.methods.mkkm_mm import alternate_with_worst_weights
from mkclust.stack import Stack
from mkclust.types import Float


def alternate_to_the_cap(
    weights: Float,
    relax: Callable[[Float], Relaxation],
    respond: Callable[[Relaxation], tuple[Float, float]],
    *,
    tol: float,
    max_iter: int,
    order: float = np.inf,
) -> Alternation:
    """Answer each side's move in turns, in cycles too, and return the last iterate."""
    relaxation = relax(weights)
    answer, value = respond(relaxation)
    history, converged = [value], False
    while not converged and len(history) <= max_iter:
        converged = bool(np.linalg.norm(answer - weights, order) < tol)
        weights = answer
        relaxation = relax(weights)
        answer, value = respond(relaxation)
        history.append(value)
    n_iter = len(history) - 1
    return Alternation(weights, relaxation, np.array(history), converged, n_iter, cycle=0)


def solve_mkkm_mm_last(
    stack: Stack, n_clusters: int, *, tol: float = 1e-4, max_iter: int = 10
) -> Solution:
    """Solve as the released code of MKKM-MM does."""
    return alternate_with_worst_weights(
        stack, n_clusters, alternate_to_the_cap, tol=tol, max_iter=max_iter
    )


def solve_kamm_a_last(
    stack: Stack, n_clusters: int, *, tol: float = 1e-4, max_iter: int = 50
) -> Solution:
    """Solve KAMM-A by as many turns as are asked for."""
    return alternate_with_best_weights(
        stack, n_clusters, alternate_to_the_cap, tol=tol, max_iter=max_iter
    )


class LastIterateMKKMMM(MKKMMM):
    """MKKM-MM whose alternation ends as in its released code."""

    def _solve(self, stack: Stack) -> Solution:
        if self.solver == "saddle":
            return super()._solve(stack)
        return solve_mkkm_mm_last(stack, self.n_clusters, tol=self.tol, max_iter=self.max_iter)
