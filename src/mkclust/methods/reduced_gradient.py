"""Reduced gradient descent on the weights: the paper's Algorithm 1."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from mkclust.engine.certificate import rounding_of_entries
from mkclust.engine.cutting import CuttingSurfaces
from mkclust.engine.eigen import Relaxation
from mkclust.engine.simplex import longest_step, reduced_direction
from mkclust.methods.mixture import Mixture
from mkclust.methods.solution import Solution
from mkclust.types import Float

# Largest change of a weight at which the paper stops.
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
    """Minimize the objective of `SimpleMKKM` by reduced gradient descent.

    Theorem 1, Eqs. 6-9 and Algorithm 1 of its paper. The history begins with the uniform weights.
    """
    mixture = Mixture(stack, n_clusters)
    gamma = mixture.uniform
    partition = mixture.relax(gamma**2)
    surfaces = CuttingSurfaces(gamma, 2 * rounding_of_entries(stack))
    history, bounds, step, converged = [partition.value], [], None, False
    while True:
        alignments = mixture.alignments(partition)
        surfaces.add(alignments)
        bounds.append(surfaces.lower_bound)
        if stopping == "gap":
            converged = partition.gap_above(surfaces.lower_bound) <= tol
        if converged or len(history) > max_iter:
            break
        gradient = 2 * gamma * alignments  # Theorem 1
        direction = reduced_direction(gamma, gradient)
        slope = float(direction @ gradient)
        # The first guess moves no weight by more than a tenth; later ones start from the last step.
        guess = 0.1 / (np.abs(direction).max() or 1.0) if step is None else 4 * step
        guess = min(guess, longest_step(gamma, direction))
        step, reached = _armijo(mixture, gamma, direction, partition, slope, guess)
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
    certificate = mixture.certify(
        partition, gamma**2, allowed, prove=prove, random_state=random_state
    )
    partition = replace(partition, error=certificate.error)
    return mixture.solution(
        partition,
        gamma,
        gamma**2,
        history,
        converged and certificate.kind != "open",
        len(history) - 1,
        gap=partition.gap_above(surfaces.lower_bound),
        lower_bounds=np.array(bounds),
        certificate=certificate,
    )


def _armijo(
    mixture: Mixture, gamma: Float, direction: Float, start: Relaxation, slope: float, step: float
) -> tuple[float, Relaxation]:
    """Shorten a step until the decrease is a fair share of what the slope promises."""
    while slope < 0 and step * np.abs(direction).max() > np.finfo(np.float64).eps:
        reached = mixture.relax((gamma + step * direction) ** 2)
        rise = reached.value - start.value
        if rise <= 1e-4 * step * slope:
            return step, reached
        # The parabola through what is known has its minimum here.
        step *= float(np.clip(-slope * step / (2 * (rise - slope * step)), 0.1, 0.5))
    return 0.0, start
