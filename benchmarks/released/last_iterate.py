"""MKKM-MM and KAMM-A where their cap stops them, not where their objective is least."""

from collections.abc import Callable

import numpy as np

from mkclust import MKKMMM
from mkclust.engine.eigen import Relaxation
from mkclust.engine.simplex import best_response
from mkclust.methods import Solution
from mkclust.methods.mixture import Iterates, Mixture
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
) -> Iterates:
    """Alternate between the two sides, in cycles too, and return the last iterate."""
    relaxation = relax(weights)
    answer, value = respond(relaxation)
    history, converged = [value], False
    while not converged and len(history) <= max_iter:
        converged = bool(np.linalg.norm(answer - weights, order) < tol)
        weights = answer
        relaxation = relax(weights)
        answer, value = respond(relaxation)
        history.append(value)
    return Iterates(weights, relaxation, np.array(history), converged, len(history) - 1)


def solve_mkkm_mm_last(
    stack: Stack, n_clusters: int, *, tol: float = 1e-4, max_iter: int = 10
) -> Solution:
    """Solve as the released code of MKKM-MM does."""
    mixture = Mixture(stack, n_clusters)

    def respond(relaxation: Relaxation) -> tuple[Float, float]:
        unexplained = mixture.unexplained(relaxation)
        length = float(np.linalg.norm(unexplained))
        return unexplained / length, length

    start = np.full(stack.n_kernels, stack.n_kernels**-0.5)
    found = alternate_to_the_cap(
        start, mixture.relax, respond, tol=tol, max_iter=max_iter - 1, order=2
    )
    return mixture.loop_solution(found._replace(n_iter=found.n_iter + 1), found.weights)


def solve_kamm_a_last(
    stack: Stack, n_clusters: int, *, tol: float = 1e-4, max_iter: int = 50
) -> Solution:
    """Solve KAMM-A by as many turns as are asked for."""
    mixture = Mixture(stack, n_clusters)
    found = alternate_to_the_cap(
        mixture.uniform,
        lambda gamma: mixture.relax(gamma**2),
        lambda relaxation: (best_response(mixture.alignments(relaxation))[0], relaxation.value),
        tol=tol,
        max_iter=max_iter,
    )
    return mixture.loop_solution(found, found.weights**2)


class LastIterateMKKMMM(MKKMMM):
    """MKKM-MM whose alternation ends as in its released code."""

    def _solve(self, stack: Stack) -> Solution:
        if self.solver == "saddle":
            return super()._solve(stack)
        return solve_mkkm_mm_last(stack, self.n_clusters, tol=self.tol, max_iter=self.max_iter)
