"""Weight-sized mathematics on the simplex ``{gamma >= 0, sum gamma = 1}``."""

import numpy as np
from scipy.optimize import nnls

from mkclust.types import Float

# How close, relatively, the best mixture comes to the best there is.
MIXTURE_TOLERANCE = 1e-12
MAX_NEWTON_STEPS = 50


def best_response(alignments: Float) -> tuple[Float, float]:
    r"""Return the weights that minimize ``sum gamma_p^2 a_p`` over the simplex, and the minimum.

    .. math:: \gamma_p \propto 1 / a_p, \qquad D = 1 / \sum_p 1 / a_p

    A vanishing alignment makes the minimum zero; the kernels that vanish share the weight.
    """
    smallest = alignments.min()
    if smallest <= 0:
        gamma = (alignments <= 0).astype(np.float64)
        return gamma / gamma.sum(), 0.0
    ratio = smallest / alignments  # at most one, so nothing overflows
    total = ratio.sum()
    return ratio / total, float(smallest / total)


def best_mixture(surfaces: Float, start: Float) -> Float:
    r"""Return the mixture of alignment vectors with the largest certified lower bound.

    .. math:: \max_{q \in \Delta} D(q), \qquad D(q) = 1 / \sum_p 1 / a_p(q),
              \quad a(q) = \sum_j q_j a^{(j)}

    ``D`` is homogeneous, so the constraint that shares sum to one can be traded for a penalty
    without moving the direction of the maximizer: ``sum_p 1 / a_p(q) + (rho / 2) (sum_j q_j)^2``
    is minimized over ``q >= 0``. Its Newton steps are nonnegative least squares problems, which
    leave exact zeros where a surface supports nothing.

    Parameters
    ----------
    surfaces : ndarray of shape (n_surfaces, n_kernels)
        Alignment vectors, one a row.
    start : ndarray of shape (n_surfaces,)
        A mixture to start from, with no vanishing alignment if any mixture has none.

    Returns
    -------
    ndarray of shape (n_surfaces,)
        Shares, nonnegative and summing to one; never worse than the start.
    """
    q, (gamma, bound) = start, best_response(start @ surfaces)
    for _ in range(MAX_NEWTON_STEPS):
        # The largest entry of the gradient bounds D over all mixtures (Frank-Wolfe gap).
        if bound <= 0 or np.max(surfaces @ gamma**2) <= bound * (1 + MIXTURE_TOLERANCE):
            break
        a = (q @ surfaces) / bound  # in units of the bound, so that D = rho = 1
        scaled = (surfaces / bound * a**-1.5).T
        system = np.vstack([scaled, np.full(len(q), np.sqrt(0.5))])
        try:
            target, _ = nnls(system, np.append(1.5 * a**-0.5, 0.0))
        except RuntimeError:
            break  # it ran out of iterations; what is there is a valid mixture all the same
        step = 1.0
        while step > 1e-6:
            trial = q + step * (target - q)
            trial /= trial.sum() or 1.0
            trial_gamma, trial_bound = best_response(trial @ surfaces)
            if trial_bound > bound:
                break
            step /= 2
        else:
            break
        q, gamma, bound = trial, trial_gamma, trial_bound
    return q


def reduced_direction(gamma: Float, gradient: Float) -> Float:
    """Return the reduced-gradient descent direction on the simplex (Eqs. 7-9 of the paper)."""
    pivot = np.argmax(gamma)
    direction = gradient[pivot] - gradient
    direction[(gamma <= 0) & (direction < 0)] = 0
    direction[pivot] = 0
    # The pivot pays for the rest, so the weights still sum to one even where a blocked
    # component was zeroed (the paper's formula for it forgets those).
    direction[pivot] = -direction.sum()
    return direction


def longest_step(gamma: Float, direction: Float) -> float:
    """Return how far one can walk along the direction before a weight turns negative."""
    falling = direction < 0
    return float(np.min(-gamma[falling] / direction[falling])) if falling.any() else 0.0
