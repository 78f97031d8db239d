"""Weight-sized mathematics on the simplex ``{gamma >= 0, sum gamma = 1}``."""

import numpy as np
from scipy.optimize import minimize

from mkclust.types import Float


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

    ``D`` is concave with gradient ``sum_p gamma_p^2 a_p^(j)``, gamma the best response to a(q).

    Parameters
    ----------
    surfaces : ndarray of shape (n_surfaces, n_kernels)
        Alignment vectors, one a row.
    start : ndarray of shape (n_surfaces,)
        A mixture to start from.

    Returns
    -------
    ndarray of shape (n_surfaces,)
        Shares, nonnegative and summing to one; never worse than the start.
    """
    _, scale = best_response(start @ surfaces)
    scaled = surfaces / (scale or surfaces.mean())

    def negated(q):
        gamma, bound = best_response(np.maximum(q, 0) @ scaled)
        return -bound, -(scaled @ gamma**2)

    found = minimize(
        negated,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * len(start),
        constraints={"type": "eq", "fun": lambda q: q.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-13, "maxiter": 100},
    )
    q = np.clip(found.x, 0, None)
    q /= q.sum()
    return q if negated(q)[0] <= negated(start)[0] else start


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
