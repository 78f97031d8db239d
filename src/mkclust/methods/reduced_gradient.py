"""Reduced gradient descent on the weights: the paper's Algorithm 1."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from mkclust.engine.certificate import Certificate, rounding_of_entries
from mkclust.engine.cutting import CuttingSurfaces
from mkclust.engine.eigen import Relaxation
from mkclust.engine.simplex import longest_step, reduced_direction
from mkclust.methods.mixture import Mixture
from mkclust.methods.solution import Solution
from mkclust.types import Float

# The largest change of a weight at which the paper stops.
PAPER_STEP = 1e-4


def solve_reduced_gradient(
    stack: Any,
    n_clusters: int,
    *,
    tol: float = 1e-6,
    max_iter: int = 200,
    stopping: Literal["gap", "step"] = "gap",
    prove: bool | Literal["auto"] = "auto",
    random_state: Any = None,
) -> Solution:
    r"""Minimize J over the simplex by reduced gradient descent (Algorithm 1).

    .. math:: J(\gamma) = \max_{H^\top H = I_k} \mathrm{Tr}(K_\gamma H H^\top),
              \qquad K_\gamma = \sum_p \gamma_p^2 K_p

    Parameters
    ----------
    stack : Stack
        The kernels.
    n_clusters : int
        Number of clusters, k.
    tol : float, default=1e-6
        Certified relative gap at which to stop.
    max_iter : int, default=200
        Number of descent steps at which to give up.
    stopping : {"gap", "step"}, default="gap"
        Stop at the gap, or as the paper does when no weight changes by more than 1e-4.
    prove : bool or "auto", default="auto"
        Whether to prove at the end, by a Cholesky factorization, that no eigenvector was missed.
        "auto" does so where a random search cannot tell; False only searches.
    random_state : int, RandomState or None, default=None
        What the random vectors of a search for missed eigenvectors depend on; with None they are
        always the same.

    Returns
    -------
    Solution

    References
    ----------
    .. [1] X. Liu, E. Zhu, J. Liu, T. Hospedales, Y. Wang, M. Wang. SimpleMKKM: Simple Multiple
       Kernel K-means. ICML 2020. Theorem 1, Eqs. 6-9, Algorithm 1.
    """
    evaluate = Evaluator(stack, n_clusters)
    gamma = evaluate.uniform
    partition = evaluate(gamma)
    surfaces = CuttingSurfaces(stack.n_kernels, 2 * rounding_of_entries(stack))
    baseline = partition
    history, bounds, step, converged = [partition.value], [], None, False
    while True:
        alignments = evaluate.alignments(partition)
        surfaces.add(alignments)
        bounds.append(surfaces.lower_bound)
        if stopping == "gap":
            converged = partition.gap_above(surfaces.lower_bound) <= tol
        if converged or len(history) > max_iter:
            break
        gradient = 2 * gamma * alignments  # Theorem 1
        direction = reduced_direction(gamma, gradient)
        step, reached = _armijo(evaluate, gamma, direction, partition, gradient, step)
        if step == 0:
            # Stationary: one kernel, or a kink from which no single gradient leads down.
            converged = stopping == "step"
            break
        converged = stopping == "step" and bool(np.max(np.abs(step * direction)) <= PAPER_STEP)
        gamma, partition = gamma + step * direction, reached
        history.append(partition.value)
    allowed = tol * partition.value
    if stopping == "gap" and converged:
        allowed -= max(partition.value - surfaces.lower_bound, 0.0)
    certificate = evaluate.certify(
        partition, gamma**2, allowed, prove=prove, random_state=random_state
    )
    return evaluate.descended(
        gamma,
        replace(partition, error=certificate.error),
        baseline,
        history,
        bounds,
        converged and certificate.kind != "open",
        certificate,
    )


class Evaluator(Mixture):
    """J and its maximizer as a function of the weights."""

    def __call__(self, gamma: Float) -> Relaxation:
        """Return the leading eigenvectors of the kernels mixed by squared weights."""
        return self.relax(gamma**2)

    def descended(
        self,
        gamma: Float,
        partition: Relaxation,
        baseline: Relaxation,
        history: list[float],
        bounds: list[float],
        converged: bool,
        certificate: Certificate | None = None,
    ) -> Solution:
        """Return what a descent found; its history begins with the uniform weights."""
        return self.solution(
            partition,
            gamma,
            gamma**2,
            history,
            converged,
            len(history) - 1,
            baseline=baseline,
            lower_bounds=np.array(bounds),
            certificate=certificate,
        )


def _armijo(
    evaluate: Evaluator,
    gamma: Float,
    direction: Float,
    partition: Relaxation,
    gradient: Float,
    last_step: float | None,
) -> tuple[float, Relaxation]:
    """Backtrack until the decrease is a fair share of what the slope promises."""
    slope = float(direction @ gradient)
    if slope >= 0:
        return 0.0, partition
    # The first guess moves no weight by more than a tenth; later ones start from the last step.
    guess = 0.1 / np.abs(direction).max() if last_step is None else 4 * last_step
    step = min(guess, longest_step(gamma, direction))
    while step * np.abs(direction).max() > np.finfo(np.float64).eps:
        reached = evaluate(gamma + step * direction)
        rise = reached.value - partition.value
        if rise <= 1e-4 * step * slope:
            return step, reached
        # The parabola through what is known has its minimum here.
        step *= float(np.clip(-slope * step / (2 * (rise - slope * step)), 0.1, 0.5))
    return 0.0, partition
