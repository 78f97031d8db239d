"""A convex quadratic over matrices whose rows lie on the simplex."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mkclust.linalg import namespace
from mkclust.types import Array

# The gap at which to stop, relative to the minimum.
TOLERANCE = 1e-10
# Added to that for minima that vanish, relative to the bound of the quadratic.
VANISHING = 1e-10
# Most products with the matrices.
MAX_PRODUCTS = 1000
# A quadratic this far below zero, relative to its bound, is not convex.
INDEFINITE = 1e-6


class RowMinimum(NamedTuple):
    """A minimizer, and how good it is."""

    point: Array  # (n, m), nonnegative, each row summing to one
    value: float  # the quadratic there
    gap: float  # how far the value lies above the minimum at most
    converged: bool  # whether the gap is as small as asked for


def minimize_over_rows(
    product: Callable[[Array], Array], bound: Array, start: Array
) -> RowMinimum:
    r"""Minimize a sum of convex quadratics, one per column, over rows on the simplex.

    .. math:: \min_{\Theta \ge 0,\, \Theta 1 = 1} \tfrac12 \sum_p \theta_p^\top Q_p \theta_p,
              \qquad 0 \preceq Q_p \preceq \mathrm{diag}(d_p)

    By accelerated gradient steps in the metric of the bound, which makes a line search
    unnecessary; the momentum restarts when it leads up. The Frank-Wolfe gap
    :math:`\sum_i (g_i^\top \theta_i - \min_p g_{ip})`, with g the gradient, bounds the
    distance to the minimum.

    ``product(Theta)`` returns the (n, m) matrix with columns ``Q_p theta_p``, and the
    bound has columns ``d_p``. The result is never worse than the start. An indefinite
    matrix that makes the quadratic negative is an ArithmeticError.
    """
    xp = namespace(bound)
    smallest = float(np.finfo(np.float64).eps) * float(xp.max(bound)) or 1.0
    d = xp.maximum(bound, smallest)

    def evaluate(x: Array) -> tuple[Array, Array, float, float, bool]:
        gradient = product(x)
        value, size = float(xp.sum(x * gradient)) / 2, float(xp.sum(x * d * x)) / 2
        if value < -INDEFINITE * size:
            raise ArithmeticError(
                "the quadratic program of the samples' weights falls to "
                f"{value / size:.1e} times its bound, below zero: the kernels are "
                "indefinite; pass psd='clip'"
            )
        value = max(value, 0.0)
        # No minimum is below zero either.
        gap = min(2 * value - float(xp.sum(xp.min(gradient, axis=1))), value)
        return x, gradient, value, gap, gap <= TOLERANCE * value + VANISHING * size

    first = now = evaluate(start)
    ahead, slope, t = now[0], now[1], 1.0
    for _ in range(MAX_PRODUCTS):
        if now[-1]:
            break
        (x, gradient), now = now[:2], evaluate(_gradient_step(ahead, slope, d))
        step = now[0] - x
        if float(xp.sum(d * (ahead - now[0]) * step)) > 0:  # the momentum leads up
            t = 1.0
        t, previous = (1 + math.sqrt(1 + 4 * t * t)) / 2, t
        momentum = (previous - 1) / t
        ahead = now[0] + momentum * step
        slope = now[1] + momentum * (now[1] - gradient)
    x, _, value, gap, done = now if now[2] <= first[2] else first
    return RowMinimum(x, value, gap, done)


def _gradient_step(x: Array, gradient: Array, d: Array) -> Array:
    """Return the point with rows on the simplex at which the bound around x is least."""
    xp = namespace(x)
    # A row's mean gradient moves nothing, and would cost digits.
    y = x - (gradient - xp.sum(x * gradient, axis=1, keepdims=True)) / d
    # The entries of a row are max(y - tau / d, 0): those with the largest d y stay.
    order = xp.argsort(-(d * y), axis=1, stable=True)
    ordered, ease = (xp.take_along_axis(a, order, axis=1) for a in (y, 1 / d))
    tau = (xp.cumulative_sum(ordered, axis=1) - 1) / xp.cumulative_sum(ease, axis=1)
    n_kept = xp.sum(xp.astype(ordered > tau * ease, xp.int64), axis=1, keepdims=True)
    x = xp.maximum(y - xp.take_along_axis(tau, n_kept - 1, axis=1) / d, 0.0)
    return x / xp.sum(x, axis=1, keepdims=True)
