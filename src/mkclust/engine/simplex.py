"""Weight-sized mathematics on the simplex ``{gamma >= 0, sum gamma = 1}``.

Cutting surfaces minimize over the weights, with a certificate.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from mkclust.linalg import eigh
from mkclust.types import Float

# Vanishing eigenvalues of a quadratic are raised to this share of its largest
# coefficient, so that the active set does not cycle among equals.
QUADRATIC_RIDGE = 1e-13


def best_response(alignments: Float) -> tuple[Float, float]:
    r"""Return the weights of the least ``sum gamma_p^2 a_p``, and that minimum.

    .. math:: \gamma_p \propto 1 / a_p, \qquad D = 1 / \sum_p 1 / a_p

    A vanishing alignment makes the minimum zero; the kernels that vanish share the
    weight.
    """
    smallest = alignments.min()
    if smallest <= 0:
        gamma = (alignments <= 0).astype(np.float64)
        return gamma / gamma.sum(), 0.0
    ratio = smallest / alignments  # at most one, so nothing overflows
    total = ratio.sum()
    return ratio / total, float(smallest / total)


def best_mixture(surfaces: Float, start: Float, b: Float) -> Float:
    r"""Return the mixture of alignment vectors with the largest certified lower bound.

    .. math:: \max_{q \in \Delta} D(q) + b^\top q, \qquad D(q) = 1 / \sum_p 1 / a_p(q),
              \quad a(q) = \sum_j q_j a^{(j)}

    The bound is homogeneous, so the constraint that shares sum to one can be traded for
    a penalty without moving the direction of the maximizer. The Newton steps over ``q
    >= 0`` are nonnegative least squares problems, which leave exact zeros for inactive
    surfaces.

    Surfaces are the rows of a matrix, (n_surfaces, n_kernels), with nonnegative
    constant terms b. The result is never worse than the start, which has no vanishing
    alignment if any mixture has none.
    """
    q = start
    gamma, bound = best_response(q @ surfaces)
    for _ in range(50):
        # The largest entry of the gradient bounds what all mixtures reach (Frank-Wolfe
        # gap).
        reached = bound + float(q @ b)
        heights = surfaces @ gamma**2 + b
        most = np.max(heights)
        if bound <= 0 or most <= reached * (1 + 1e-12):
            break
        try:
            target = _newton_target(surfaces, q, gamma, reached, b)
        except RuntimeError:
            break  # it ran out of iterations; q is a valid mixture

        step = 1.0
        while step > 1e-6:
            trial = q + step * (target - q)
            trial /= trial.sum() or 1.0
            trial_gamma, trial_bound = best_response(trial @ surfaces)
            if trial_bound + trial @ b > reached:
                break
            step /= 2
        else:
            break
        q = trial
        gamma = trial_gamma
        bound = trial_bound
    return q


def _newton_target(
    surfaces: Float,
    q: Float,
    gamma: Float,
    reached: float,
    b: Float,
) -> Float:
    """Minimize the model of ``(rho / 2) (sum_j q_j)^2 - D(q) - b^T q`` around q.

    All is in units of what q reaches.
    """
    # -D has the Hessian 2 A W (I - u u^T) W A^T, W = diag(gamma_p / sqrt(a_p)), u =
    # sqrt(gamma).
    u = np.sqrt(gamma)
    sums = q @ surfaces
    half = (surfaces / reached) * (gamma / np.sqrt(sums / reached))
    half = half - np.outer(half @ u, u)
    hessian = 2 * half @ half.T + 1.0
    heights = surfaces @ gamma**2 + b
    gradient = heights / reached
    # The gradient need not lie in the range of the Hessian; a small ridge lets it.
    values, vectors = eigh(hessian)
    least = QUADRATIC_RIDGE * values[-1]
    values = np.maximum(values, least)
    roots = np.sqrt(values)
    root = roots[:, None] * vectors.T
    target = (vectors.T @ gradient) / np.sqrt(values)
    return nnls(root, target, maxiter=30 * len(q))[0]


def minimize_quadratic(Q: Float, c: Float | None = None) -> Float:
    r"""Return the weights on the simplex that minimize a convex quadratic.

    .. math:: \min_{\gamma \in \Delta} \tfrac12 \gamma^\top Q \gamma + c^\top \gamma

    With ``Q = L^T L`` and ``c = -Q v`` this is ``|L (gamma - v)|^2``, and on the
    simplex ``gamma - v`` is the homogeneous ``(I - v 1^T) gamma``. So the constraint
    that the weights sum to one can be traded for one more row: nonnegative least
    squares, which leaves exact zeros and copes with a singular Q. Raises
    ArithmeticError if the weights fail a check of their optimality.
    """
    m = len(Q)
    unit = float(np.abs(Q).max()) or 1.0
    Q = Q / unit
    c = np.zeros(m) if c is None else c / unit

    system = _homogeneous_system(Q, c)
    # Columns of one length, so that the least squares see no unit.
    lengths = np.linalg.norm(system, axis=0)
    target = np.zeros(m + 1)
    target[-1] = system[-1, 0]
    gap = np.inf
    try:
        solved, _ = nnls(system / lengths, target, maxiter=30 * m)
    except RuntimeError:
        pass  # out of iterations
    else:
        found = solved / lengths
        gamma = found / found.sum()
        gradient = Q @ gamma + c
        # The Frank-Wolfe gap bounds the distance to the minimum.
        gap = float(gradient @ gamma - gradient.min())

    size = 1 + float(np.abs(c).max())
    if not gap <= 1e-8 * size:
        raise ArithmeticError(
            f"the weights' quadratic program of {m} kernels could be solved only to a "
            f"gap of {gap:.1e}, relative to its largest coefficient: it is not convex, "
            "or its numbers span too many orders of magnitude; pass normalize=True, or "
            "leave out kernels"
        )
    return gamma


def _homogeneous_system(Q: Float, c: Float) -> Float:
    """Return ``L (I - v 1^T)``, and a row for the sum of weights, (m + 1, m)."""
    # In the scale of each variable, in which the diagonal is one: kernels may differ by
    # orders of magnitude.
    scale = np.sqrt(np.abs(np.diag(Q)))
    scale[scale == 0] = 1
    scaled = Q / scale / scale[:, None]
    values, vectors = eigh(scaled)
    null = values <= QUADRATIC_RIDGE
    values[null] = QUADRATIC_RIDGE
    roots = np.sqrt(values)[:, None]
    L = roots * vectors.T * scale

    # The part of c outside the range of Q is rounding; equal kernels shall have equal
    # weights.
    inner = vectors.T @ (c / scale)
    coordinates = np.where(null, 0, inner / values)
    v = -(vectors @ coordinates) / scale
    # The row for the sum weighs about as much as the minimum, or rounding would swallow
    # that.
    squares = scale**-2.0
    weight = 1 / np.sqrt(np.sum(squares))
    last = np.full(len(Q), weight)
    return np.vstack([L - (L @ v)[:, None], last])


def drop_small(gamma: Float, threshold: float) -> Float:
    """Return weights without those below the threshold, summing to one again."""
    gamma = np.where(gamma < threshold, 0, gamma)
    return gamma / gamma.sum()


def reduced_direction(gamma: Float, gradient: Float, pivot: int | None = None) -> Float:
    """Return the reduced-gradient descent direction on the simplex (Eqs. 7-9)."""
    if pivot is None:
        pivot = int(np.argmax(gamma))
    direction = gradient[pivot] - gradient
    direction[(gamma <= 0) & (direction < 0)] = 0
    direction[pivot] = 0
    # So that the weights sum to one even if a blocked component was zeroed, unlike in
    # the paper.
    direction[pivot] = -direction.sum()
    return direction


def longest_step(gamma: Float, direction: Float) -> float:
    """Return how far along the direction no weight turns negative."""
    falling = direction < 0
    if not falling.any():
        return 0.0
    # A direction may be all but zero, and the way too long.
    with np.errstate(over="ignore"):
        steps = -gamma[falling] / direction[falling]
    least = steps.min()
    return float(min(least, np.finfo(np.float64).max))


class Evaluation(NamedTuple):
    """The value of J at some weights, the alignments there, and a solver's state."""

    value: float
    alignments: Float
    state: Any = None
    offset: float = 0.0


class CuttingSurfaces:
    r"""Minimize a maximum of quadratics over the simplex, with a certified lower bound.

    .. math:: \min_{\gamma \in \Delta} J(\gamma), \qquad
              J(\gamma) = \max_P \sum_p \gamma_p^2 \langle K_p, P \rangle + b(P)

    Every evaluation of J yields an alignment vector ``a_p = <K_p, P>``, and with it a
    surface ``sum_p gamma_p^2 a_p + b`` that lies below J everywhere and touches it at
    the evaluated weights; the offset b, zero but for an anchored problem, does not
    depend on the weights. The mixture of all surfaces with the largest minimum gives a
    certified lower bound on the global minimum of J, and the minimizer of that mixture
    is where J is evaluated next. If J has a kink (equal eigenvalues), the optimal P is
    a mixture of projectors, and such a mixture is kept.
    """

    def __init__(self, weights: Float, rounding: float = 0.0):
        # By this share alignments may have been rounded up, and the bound with them.
        self.rounding = rounding
        self.weights = weights  # where J is evaluated next
        self.lower_bound = 0.0
        self._alignments: Float = np.empty((0, len(weights)))
        self._offsets: Float = np.empty(0)
        self._shares: Float = np.empty(0)

    def add(self, alignments: Float, offset: float = 0.0) -> None:
        """Take in one more surface; renew the bound and the next weights."""
        self._alignments = np.vstack([self._alignments, alignments])
        self._offsets = np.append(self._offsets, offset)
        self._mix()
        self.weights, bound = best_response(self._shares @ self._alignments)
        of_fixed = float(self._shares @ self._offsets)
        bound = (bound + of_fixed) * (1 - self.rounding)
        self.lower_bound = max(self.lower_bound, bound)

    def _mix(self) -> None:
        """Mix the surfaces anew, and leave out those that are inactive."""
        if len(self._alignments) == 1:
            self._shares = np.ones(1)
            return
        start = np.append(self._shares, 0.0)
        if best_response(start @ self._alignments)[1] == 0:
            # From a bound of zero no gradient leads away; the middle is a better start.
            n = len(start)
            start = np.full(n, 1 / n)
        shares = best_mixture(self._alignments, start, self._offsets)
        # A smaller share only slows the mixture down.
        active = shares > 1e-14
        self._alignments = self._alignments[active]
        self._offsets = self._offsets[active]
        self._shares = shares[active] / shares[active].sum()

    def minimize(
        self,
        evaluate: Callable[[Float], Evaluation],
        tol: float,
        max_evaluations: int = 200,
        known: tuple[Float, Evaluation] | None = None,
    ) -> tuple[Float, Evaluation, list[tuple[float, float]]]:
        """Evaluate and cut until the relative gap is below ``tol``.

        Return the best weights, the evaluation there, and the best values with their
        lower bounds. The first two of an earlier call may be ``known``, to go on from
        there.
        """
        weights, best = known or (self.weights, None)
        history = list[tuple[float, float]]()
        # No further surface makes up for the rounding of the bound.
        limit = tol + self.rounding
        while True:
            if best is not None:
                is_close = best.value - self.lower_bound <= limit * best.value
                if is_close or len(history) >= max_evaluations:
                    return weights, best, history
            evaluation = evaluate(self.weights)
            if best is None or evaluation.value < best.value:
                weights = self.weights
                best = evaluation
            self.add(evaluation.alignments, evaluation.offset)
            history.append((best.value, self.lower_bound))
