"""SimpleMKKM's released routine, step by step."""

import numpy as np

from mkclust.engine.simplex import longest_step, reduced_direction
from mkclust.fit.mixture import Mixture

GOLDEN = (1 + np.sqrt(5)) / 2
# The largest change of a weight at which the routine stops.
SMALLEST_STEP = 1e-5


def descend_as_released(stack, n_clusters, *, eta=1e-3, max_iter=200):
    """Minimize SimpleMKKM's objective as the released routine does, its quirks
    included.

    `eta` is the relative width at which the golden section stops; the routine itself
    has no `max_iter`. The partition is that of the last end of a bracket, which the
    next gradient is of.
    """
    mixture = Mixture(stack, n_clusters)
    gamma = mixture.uniform
    partition = mixture.relax(gamma**2)
    history, converged = [partition.value], False
    while not converged and len(history) <= max_iter:
        gradient = 2 * gamma * mixture.alignments(partition)
        direction = reduced_direction(gamma, gradient / np.linalg.norm(gradient))
        step = _take_step(mixture, gamma, direction, history[-1], partition, eta)
        reached, cost, partition = step
        converged = bool(np.max(np.abs(reached - gamma)) < SMALLEST_STEP)
        gamma = reached
        history.append(cost)
    return mixture.solution(
        partition, gamma, gamma**2, history, converged, len(history) - 1
    )


def _take_step(mixture, gamma, direction, start_cost, partition, eta):
    """Take one outer step: expand while that pays, then narrow by the golden
    section."""

    def evaluate(weights):
        return mixture.relax(weights**2)

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
        at_left, at_right = (
            evaluate(point + left * direction),
            evaluate(point + right * direction),
        )
        steps = [low, left, right, high]
        costs = [costs[0], at_left.value, at_right.value, costs[-1]]
        chosen = int(np.argmin(costs))
        best, step = costs[chosen], steps[chosen]
        # The partition kept is that of the interior point which becomes an end of the
        # bracket, not that of the best point: the released code's own habit.
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
