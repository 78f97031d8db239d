"""A convex quadratic over matrices whose rows lie on the simplex."""

import math
from collections.abc import Callable
from typing import NamedTuple

from mkclust.linalg import EPS, namespace
from mkclust.types import Array

# The gap at which to stop, as a share of the minimum, or of the bound of the quadratic
# if the minimum vanishes.
TOLERANCE = 1e-10


class RowMinimum(NamedTuple):
    """A minimizer, or a point on the way to it, and how good it is."""

    point: Array  # (n, m), nonnegative, each row summing to one
    gradient: Array  # of the quadratic there
    value: float  # the quadratic there
    gap: float  # how far the value lies above the minimum at most
    converged: bool  # whether the gap is as small as asked for


def minimize_over_rows(
    product: Callable[[Array], Array],
    bound: Array,
    start: Array,
) -> RowMinimum:
    r"""Minimize a sum of convex quadratics, one per column, over rows on the simplex.

    .. math:: \min_{\Theta \ge 0,\, \Theta 1 = 1}
              \tfrac12 \sum_p \theta_p^\top Q_p \theta_p,
              \qquad 0 \preceq Q_p \preceq \mathrm{diag}(d_p)

    By accelerated gradient steps in the metric of the bound, which makes a line search
    unnecessary; the momentum restarts when it leads up. The Frank-Wolfe gap
    :math:`\sum_i (g_i^\top \theta_i - \min_p g_{ip})`, with g the gradient, bounds the
    distance to the minimum.

    ``product(Theta)`` returns the (n, m) matrix with columns ``Q_p theta_p``, and the
    bound has columns ``d_p``. The result is never worse than the start. Raises
    ArithmeticError if a matrix is indefinite.
    """
    xp = namespace(bound)
    largest = float(xp.max(bound))
    smallest = EPS * largest or 1.0
    d = xp.maximum(bound, smallest)

    def evaluate(x: Array) -> RowMinimum:
        """Return a point with its value, gradient and gap."""
        gradient = product(x)
        value = float(xp.sum(x * gradient)) / 2
        size = float(xp.sum(x * d * x)) / 2
        if value < -1e-6 * size:
            raise ArithmeticError(
                "the quadratic program of the samples' weights falls to "
                f"{value / size:.1e} times its bound, below zero: the kernels are "
                "indefinite; pass psd='shift'"
            )
        value = max(value, 0.0)
        # No minimum is below zero either.
        lowest = float(xp.sum(xp.min(gradient, axis=1)))
        gap = min(2 * value - lowest, value)
        return RowMinimum(x, gradient, value, gap, gap <= TOLERANCE * (value + size))

    first = now = evaluate(start)
    ahead = now.point
    slope = now.gradient
    t = 1.0
    for _ in range(1000):
        if now.converged:
            break
        last = now
        now = evaluate(_gradient_step(ahead, slope, d))
        step = now.point - last.point

        leads_up = float(xp.sum(d * (ahead - now.point) * step)) > 0
        before = 1.0 if leads_up else t
        t = (1 + math.sqrt(1 + 4 * before * before)) / 2
        momentum = (before - 1) / t
        ahead = now.point + momentum * step
        slope = now.gradient + momentum * (now.gradient - last.gradient)

    return now if now.value <= first.value else first


def _gradient_step(x: Array, gradient: Array, d: Array) -> Array:
    """Return the point with rows on the simplex where the bound around x is least."""
    xp = namespace(x)
    # A row's mean gradient moves nothing, and would cost digits.
    mean = xp.sum(x * gradient, axis=1, keepdims=True)
    y = x - (gradient - mean) / d
    # The entries of a row are max(y - tau / d, 0): those with the largest d y stay.
    heights = d * y
    order = xp.argsort(-heights, axis=1, stable=True)
    ordered = xp.take_along_axis(y, order, axis=1)
    inverse_d = xp.take_along_axis(1 / d, order, axis=1)
    tau = xp.cumulative_sum(ordered, axis=1) - 1
    tau = tau / xp.cumulative_sum(inverse_d, axis=1)
    is_kept = xp.astype(ordered > tau * inverse_d, xp.int64)
    last_kept = xp.sum(is_kept, axis=1, keepdims=True) - 1
    level = xp.take_along_axis(tau, last_kept, axis=1)
    x = xp.maximum(y - level / d, 0.0)
    return x / xp.sum(x, axis=1, keepdims=True)
