"""MKKM-MM and KAMM-A at the iteration limit, instead of the iterate with the best
objective."""

import numpy as np

from mkclust import MKKMMM
from mkclust.engine.simplex import best_response
from mkclust.fit.mixture import Iterates, Mixture


def alternate_to_the_cap(weights, relax, respond, *, tol, max_iter, order=np.inf):
    """Alternate between the two sides, in cycles too, and return the last iterate."""
    relaxation = relax(weights)
    answer, value = respond(relaxation)
    history, converged = [value], False
    while not converged and len(history) <= max_iter:
        converged = bool(np.linalg.norm(answer - weights, order) < tol)
        weights, relaxation = answer, relax(answer)
        answer, value = respond(relaxation)
        history.append(value)
    return Iterates(weights, relaxation, np.array(history), converged, len(history) - 1)


def solve_kamm_a_last(stack, n_clusters, *, tol=1e-4, max_iter=50):
    """Solve KAMM-A by as many turns as are asked for."""
    mixture = Mixture(stack, n_clusters)
    found = alternate_to_the_cap(
        mixture.uniform,
        lambda gamma: mixture.relax(gamma**2),
        lambda relaxation: (
            best_response(mixture.alignments(relaxation))[0],
            relaxation.value,
        ),
        tol=tol,
        max_iter=max_iter,
    )
    return mixture.solution(coefficients=found.weights**2, **found._asdict())


class LastIterateMKKMMM(MKKMMM):
    """MKKM-MM whose alternation ends as in its released code."""

    def _solve(self, stack):
        mixture = Mixture(stack, self.n_clusters)

        def respond(relaxation):
            unexplained = mixture.unexplained(relaxation)
            length = float(np.linalg.norm(unexplained))
            return unexplained / length, length

        start = np.full(stack.n_kernels, stack.n_kernels**-0.5)
        limits = {"tol": self.tol, "max_iter": self.max_iter - 1}
        found = alternate_to_the_cap(start, mixture.relax, respond, **limits, order=2)
        found = found._replace(n_iter=found.n_iter + 1)
        return mixture.solution(coefficients=found.weights, **found._asdict())
