"""SimpleMKKM's released routine, step by step."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mkclust.engine.cutting import CuttingSurfaces
from mkclust.engine.eigen import Relaxation
from mkclust.engine.simplex import longest_step, reduced_direction
from mkclust.methods import Solution
from mkclust.methods.reduced_gradient import Evaluator
from mkclust.types import Float

GOLDEN = (1 + np.sqrt(5)) / 2
# The largest change of a weight at which the routine stops.
SMALLEST_STEP = 1e-5


def descend_as_released(
    stack: Any,
    n_clusters: int,
    *,
    eta: float = 1e-3,
    max_iter: int = 200,
    eigensolver: Callable[[Any, int], Relaxation] | None = None,
) -> Solution:
    """Minimize SimpleMKKM's objective as the released routine does, its quirks included.

    Parameters
    ----------
    stack : Stack
        The kernels.
    n_clusters : int
        Number of clusters, k.
    eta : float, default=1e-3
        Relative width at which the golden section stops.
    max_iter : int, default=200
        Number of descent steps at which to give up; the routine itself has no such cap.
    eigensolver : callable, default=None
        ``eigensolver(operator, n_clusters) -> Relaxation``; by default eigenvectors are iterated
        from those of the previous evaluation.

    Returns
    -------
    Solution
        Its partition is that of the last end of a bracket, which the next gradient is taken from.
    """
    evaluate = Evaluator(stack, n_clusters, eigensolver=eigensolver)
    gamma = evaluate.uniform
    partition = baseline = evaluate(gamma)
    surfaces = CuttingSurfaces(len(gamma))
    history, bounds, converged = [partition.value], [], False
    while not converged and len(history) <= max_iter:
        alignments = evaluate.alignments(partition)
        surfaces.add(alignments)
        bounds.append(surfaces.lower_bound)
        gradient = 2 * gamma * alignments
        direction = reduced_direction(gamma, gradient / np.linalg.norm(gradient))
        reached, cost, partition = _take_step(
            evaluate, gamma, direction, history[-1], partition, eta
        )
        converged = bool(np.max(np.abs(reached - gamma)) < SMALLEST_STEP)
        gamma = reached
        history.append(cost)
    surfaces.add(evaluate.alignments(partition))
    bounds.append(surfaces.lower_bound)
    return evaluate.descended(gamma, partition, baseline, history, bounds, converged)


def _take_step(
    evaluate: Evaluator,
    gamma: Float,
    direction: Float,
    start_cost: float,
    partition: Relaxation,
    eta: float,
) -> tuple[Float, float, Relaxation]:
    """Take one outer step: expand while that pays, then narrow by the golden section."""
    pivot, tiny = int(np.argmax(gamma)), 1e-16
    point, best = gamma, start_cost
    width = longest_step(point, direction)
    low, high = 0.0, min(width, 0.1)
    at_high = evaluate(point + high * direction)
    while at_high.value < best:
        best, partition = at_high.value, at_high
        point = point + high * direction
        point = np.where(point < tiny, 0.0, point)
        point = point / point.sum()
        direction = np.where((point <= tiny) & (direction < 0), 0.0, direction)
        direction[pivot] = 0
        direction[pivot] = -direction.sum()
        width = high = longest_step(point, direction)
        if high == 0:
            break
        at_high = evaluate(point + high * direction)
    steps, costs = [low, high], [best, at_high.value]
    while high - low > eta * abs(width) and high > np.finfo(np.float64).eps:
        right = low + (high - low) / GOLDEN
        left = low + (right - low) / GOLDEN
        at_left, at_right = evaluate(point + left * direction), evaluate(point + right * direction)
        steps = [low, left, right, high]
        costs = [costs[0], at_left.value, at_right.value, costs[-1]]
        chosen = int(np.argmin(costs))
        best, step = costs[chosen], steps[chosen]
        # The partition kept is that of the interior point which becomes an end of the bracket,
        # not that of the best point: the released code's own habit.
        partition = at_left if chosen in (0, 2) else at_right
        if chosen <= 1:
            high = left if chosen == 0 else right
            costs = [costs[0], partition.value]
        else:
            low = left if chosen == 2 else right
            costs = [partition.value, costs[-1]]
    if len(steps) == 2:
        step = 0.0
    return (point + step * direction if best < start_cost else point), best, partition
