"""A convex quadratic over matrices whose rows lie on the simplex."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mkclust.linalg import is_foreign, namespace
from mkclust.types import Array

# The gap at which a minimum is believed: relative to the minimum, plus, for those that vanish,
# relative to what the bound makes of the quadratic.
TOLERANCE = 1e-10
VANISHING = 1e-10
# Most products with the matrices.
MAX_PRODUCTS = 1000
# How much longer the accelerated steps go on each time that conjugate gradients run into the
# border, and for which share of these steps zeros must stay the same to count as settled.
GROWTH = 4
SAME_SHARE, MIN_SAME = 0.2, 5
# A quadratic as far as this below zero, relative to its bound, is not convex.
INDEFINITE = 1e-6


class RowMinimum(NamedTuple):
    """A minimizer with what is known about it.

    Attributes
    ----------
    point : array of shape (n, m)
        Nonnegative, each row summing to one.
    value : float
        The quadratic there.
    gap : float
        How far the value lies above the minimum at most.
    converged : bool
        Whether the gap is as small as asked for.
    n_products : int
        Number of products with the matrices.
    """

    point: Array
    value: float
    gap: float
    converged: bool
    n_products: int


def minimize_over_rows(
    product: Callable[[Array], Array], bound: Array, start: Array, *, tol: float = TOLERANCE
) -> RowMinimum:
    r"""Minimize a sum of convex quadratics, one a column, over rows on the simplex.

    .. math:: \min_{\Theta \ge 0,\, \Theta 1 = 1} \tfrac12 \sum_p \theta_p^\top Q_p \theta_p,
              \qquad 0 \preceq Q_p \preceq \mathrm{diag}(d_p)

    Conjugate gradients, preconditioned by the bound, minimize among the points that vanish where
    the current one does. Where they run into the border, or zeros hold back more descent than is
    left without them, accelerated gradient steps in the metric of the bound find other zeros, any
    number at a time; the bound spares them the search for a length. The Frank-Wolfe gap
    :math:`\sum_i (g_i^\top \theta_i - \min_p g_{ip})`, with g the gradient, bounds the distance to
    the minimum and ends the search, or the number of products does.

    Parameters
    ----------
    product : callable
        ``product(Theta)`` returns the (n, m) matrix with columns ``Q_p theta_p``.
    bound : array of shape (n, m)
        Columns ``d_p``, nonnegative, zero only where the matrices are.
    start : array of shape (n, m)
        Where to start, each row on the simplex, beside the bound. It is returned as it is where it
        is a minimizer.
    tol : float, default=TOLERANCE
        Relative gap at which to stop.

    Returns
    -------
    RowMinimum
        Never worse than the start.

    Raises
    ------
    ArithmeticError
        Where the quadratic falls below zero: some matrix is not positive semidefinite.
    """
    search = _Search(product, bound, start, tol)
    first = search.minimum()
    n_steps = 1
    while not search.finished():
        free = search.follow_face()
        search.accelerate(n_steps)
        n_steps *= 1 if free else GROWTH  # at a border the zeros are not settled yet
    last = search.minimum()
    if last.value > first.value:  # by rounding, or for want of convexity
        return first._replace(n_products=last.n_products)
    return last


class _Search:
    """Where the search is: a point, its gradient, and what the gradient says."""

    def __init__(
        self, product: Callable[[Array], Array], bound: Array, start: Array, tol: float
    ) -> None:
        self.product, self.tol, self.n_products = product, tol, 0
        self.xp = namespace(bound)
        smallest = float(np.finfo(np.float64).eps) * float(self.xp.max(bound)) or 1.0
        self.d = _by_columns(self.xp.maximum(bound, smallest))
        self.move(_by_columns(start))

    def move(self, x: Array, gradient: Array | None = None) -> None:
        """Go to a point; its gradient is computed where none is given."""
        # Updated gradients gather rounding: a gap is believed of a fresh one only.
        self.fresh = gradient is None
        self.x, self.gradient = x, self.multiply(x) if gradient is None else gradient
        xp = self.xp
        lowest = xp.min(xp.where(x > 0, self.gradient, np.inf), axis=1)
        self.value = _inner(x, self.gradient) / 2
        # The gap, as far as it can be closed without touching zeros, and what they hold back.
        self.inside = _inner(x, self.gradient - lowest[:, None])
        self.outside = float(xp.sum(lowest - xp.min(self.gradient, axis=1)))
        size = _inner(x, self.d * x) / 2
        if self.value < -INDEFINITE * size:
            raise ArithmeticError(
                f"the quadratic program of the samples' weights falls to {self.value / size:.1e} "
                "times its bound, below zero: the kernels are indefinite; pass psd='clip'"
            )
        # Nor is any minimum below zero.
        self.gap = min(self.inside + self.outside, max(self.value, 0.0))
        self.done = self.gap <= self.tol * max(self.value, 0.0) + VANISHING * size

    def multiply(self, x: Array) -> Array:
        """Return the products of the matrices with the columns."""
        self.n_products += 1
        return self.product(x)

    def finished(self) -> bool:
        """Return whether there is nothing left to do, as a fresh gradient sees it."""
        spent = self.n_products >= MAX_PRODUCTS
        if not self.fresh and (self.done or spent):
            self.move(self.x / self.xp.sum(self.x, axis=1, keepdims=True))
        return self.done or spent

    def minimum(self) -> RowMinimum:
        """Return the point with what is known about it."""
        return RowMinimum(self.x, max(self.value, 0.0), self.gap, self.done, self.n_products)

    def ended(self) -> bool:
        """Return whether to look up: at the minimum as it seems, or at the last product."""
        return self.done or self.n_products >= MAX_PRODUCTS

    def follow_face(self) -> bool:
        """Go on by conjugate gradients without touching zeros; return whether nothing is hit."""
        xp = self.xp
        direction, before = xp.zeros_like(self.x), np.inf
        ease = xp.where(self.x > 0, 1 / self.d, 0.0)
        total = xp.sum(ease, axis=1)
        while not self.ended() and self.inside >= self.outside:
            level = xp.sum(self.gradient * ease, axis=1) / total
            slope = self.gradient - level[:, None]
            squared = _inner(slope, slope * ease)
            direction = squared / before * direction - slope * ease
            before = squared
            change = self.multiply(direction)
            curvature, border = _inner(direction, change), _to_border(self.x, direction)
            hit = squared >= border * curvature
            step = border if hit else squared / curvature
            self.move(xp.maximum(self.x + step * direction, 0.0), self.gradient + step * change)
            if hit:
                return False
        return True

    def accelerate(self, n_steps: int) -> None:
        """Make some steps with momentum, anew where the value would rise, until zeros settle."""
        y, slope, t = self.x, self.gradient, 1.0
        n_same = 0
        for n_done in range(n_steps):
            if self.ended() or n_same >= max(MIN_SAME, SAME_SHARE * n_done):
                return
            x, gradient, value = self.x, self.gradient, self.value
            self.move(_gradient_step(y, slope, self.d))
            n_same = n_same + 1 if bool(self.xp.all((x > 0) == (self.x > 0))) else 0
            if self.value > value and t > 1:
                self.move(x, gradient)
                y, slope, t = x, gradient, 1.0
                continue
            t, previous = (1 + math.sqrt(1 + 4 * t * t)) / 2, t
            momentum = (previous - 1) / t
            y = self.x + momentum * (self.x - x)
            slope = self.gradient + momentum * (self.gradient - gradient)


def _to_border(x: Array, direction: Array) -> float:
    """Return how far one can walk before an entry turns negative."""
    xp, falling = namespace(x), direction < 0
    steps = xp.where(falling, x / xp.where(falling, -direction, 1.0), np.inf)
    shortest = float(xp.min(steps))
    return shortest if shortest < np.inf else 0.0


def _gradient_step(x: Array, gradient: Array, d: Array) -> Array:
    """Return the point with rows on the simplex where the quadratic's bound around x is least."""
    xp = namespace(x)
    # A row's mean gradient moves nothing, and would cost digits.
    y = x - (gradient - xp.sum(x * gradient, axis=1, keepdims=True)) / d
    # The entries of a row are max(y - tau / d, 0): those with the largest d y stay.
    order = xp.argsort(-(d * y), axis=1, stable=True)
    ordered, ease = (xp.take_along_axis(a, order, axis=1) for a in (y, 1 / d))
    tau = (xp.cumulative_sum(ordered, axis=1) - 1) / xp.cumulative_sum(ease, axis=1)
    n_kept = xp.sum(xp.astype(ordered > tau * ease, xp.int64), axis=1, keepdims=True)
    x = xp.maximum(y - xp.take_along_axis(tau, n_kept - 1, axis=1) / d, 0.0)
    return _by_columns(x / xp.sum(x, axis=1, keepdims=True))


def _by_columns(x: Array) -> Array:
    """Return a matrix with its columns contiguous on a host: they are what gets multiplied."""
    return x if is_foreign(x) else np.asfortranarray(x)


def _inner(x: Array, y: Array) -> float:
    """Return the sum of the products of entries."""
    # By BLAS it would be NumPy's, whose threads stand in the way of SciPy's in the products.
    return float(namespace(x).sum(x * y))
