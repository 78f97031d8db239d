"""The two loops of the methods that find partition and weights in turns."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from mkclust.engine.eigen import Relaxation
from mkclust.types import Float

# An alternation is in a cycle if it returns to within this share of a step.
REPEATED = 1e-3
# One that its cap has ended is reported as a cycle within this share.
NEARLY_REPEATED = 0.1


class Iterates(NamedTuple):
    """Weights and partition at the end of a loop, and how it got there."""

    weights: Any
    relaxation: Relaxation
    history: Float
    converged: bool
    n_iter: int
    cycle: int = 0


def descend(
    weights: Any,
    relax: Callable[[Any], Relaxation],
    measure: Callable[[Relaxation], Any],
    update: Callable[[Any], Any],
    objective: Callable[[Any, Any], float],
    *,
    tol: float,
    max_iter: int,
    recorded: Literal["before", "after"] = "before",
) -> Iterates:
    """Minimize an objective over partition and weights in turns.

    ``relax(weights)`` solves for the partition, ``measure(relaxation)`` returns what the weights
    depend on, ``update(measured)`` the best weights for it, and ``objective(weights, measured)``
    their value. The loop stops, from the third iteration on, if the objective ``recorded`` before
    or after the update changes by less than the share ``tol``. The history ends with the objective
    of the pair that is returned.
    """
    relaxation = relax(weights)
    measured = measure(relaxation)
    history: list[float] = []
    converged = False
    while not converged and len(history) < max_iter:
        updated = update(measured)
        history.append(objective(weights if recorded == "before" else updated, measured))
        weights = updated
        relaxation = relax(weights)
        measured = measure(relaxation)
        converged = len(history) > 2 and (
            history[-1] == 0 or abs(history[-2] - history[-1]) < tol * abs(history[-2])
        )
    n_iter = len(history)
    history.append(objective(weights, measured))
    return Iterates(weights, relaxation, np.array(history), converged, n_iter)


def alternate(
    weights: Float,
    relax: Callable[[Float], Relaxation],
    respond: Callable[[Relaxation], tuple[Float, float]],
    *,
    tol: float,
    max_iter: int,
    order: float = np.inf,
) -> Iterates:
    """Alternate between two sides with opposite goals.

    ``relax(weights)`` solves for the partition, ``respond(relaxation)`` returns the weights that
    answer it, and the objective by which iterates are compared. The loop stops if the weights
    change by less than ``tol`` in the norm of some ``order``. Nothing makes it descend: a cycle
    ends it, too, and the iterate with the least objective is returned, so that the result does not
    depend on whether the cap is even or odd. The start is not an iterate.
    """
    trail = [weights]
    relaxation = relax(weights)
    answer, value = respond(relaxation)
    history, best = [value], (value, weights, relaxation)
    converged, cycle = False, 0
    while not converged and not cycle and len(trail) <= max_iter:
        weights = answer
        relaxation = relax(weights)
        answer, value = respond(relaxation)
        history.append(value)
        converged = float(np.linalg.norm(weights - trail[-1], order)) < tol
        if converged or len(trail) == 1 or value < best[0]:
            best = (value, weights, relaxation)
        if not converged:
            cycle = _cycle(trail, weights, REPEATED)
        trail.append(weights)
    if not converged and not cycle:
        cycle = _cycle(trail[:-1], weights, NEARLY_REPEATED)
    value, weights, relaxation = best
    if value != history[-1]:
        history.append(value)
    return Iterates(weights, relaxation, np.array(history), converged, len(trail) - 1, cycle)


def _cycle(trail: list[Float], weights: Float, share: float) -> int:
    """Return after how many steps the weights have returned to an earlier iterate, or zero."""
    if len(trail) < 2:
        return 0
    step = np.max(np.abs(weights - trail[-1]))
    for length in range(2, len(trail) + 1):
        if np.max(np.abs(weights - trail[-length])) <= share * step:
            return length
    return 0
