"""The two loops of the methods that find partition and weights in turns."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from mkclust.engine.eigen import Relaxation
from mkclust.types import Float

# Iterates repeat where they come back to within this share of a step, which ends an alternation;
# and they all but repeat within the other share, which is said of one that its cap has ended.
REPEATED, NEARLY_REPEATED = 1e-3, 0.1


class Descent(NamedTuple):
    """Where block descent ended; the relaxation is that of the final weights."""

    weights: Any
    relaxation: Relaxation
    history: Float
    converged: bool
    n_iter: int


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
) -> Descent:
    """Minimize an objective over partition and weights in turns.

    Parameters
    ----------
    weights : object
        Where to start.
    relax : callable
        ``relax(weights)`` solves for the partition.
    measure : callable
        ``measure(relaxation)`` returns all that the weights need to know of a partition.
    update : callable
        ``update(measured)`` returns the best weights for it.
    objective : callable
        ``objective(weights, measured)``.
    tol : float
        Relative change of the recorded objective at which to stop, from the third iteration on.
    max_iter : int
        Most updates of the weights.
    recorded : {"before", "after"}, default="before"
        Whether the objective is recorded before or after the update of the weights: what is
        compared with ``tol``. One more is recorded at the end, that of the final pair.

    Returns
    -------
    Descent
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
        converged = len(history) > 2 and _settled(history[-2], history[-1], tol)
    n_iter = len(history)
    history.append(objective(weights, measured))
    return Descent(weights, relaxation, np.array(history), converged, n_iter)


def _settled(before: float, now: float, tol: float) -> bool:
    """Return whether an objective has come to rest; below zero, where it ends, it cannot fall."""
    return now == 0 or abs(before - now) < tol * abs(before)


class Alternation(NamedTuple):
    """Where plain alternation ended: one of its iterates."""

    weights: Float
    relaxation: Relaxation
    history: Float
    converged: bool
    n_iter: int
    cycle: int


def alternate(
    weights: Float,
    relax: Callable[[Float], Relaxation],
    respond: Callable[[Relaxation], tuple[Float, float]],
    *,
    tol: float,
    max_iter: int,
    order: float = np.inf,
) -> Alternation:
    """Answer each side's move in turns where their interests differ.

    Nothing makes this descend, and it may repeat itself for ever. A repetition is noticed and
    ends it, and the iterate with the least objective is returned, so that the result does not hang
    on whether the cap is even or odd. The start is no iterate: it has answered nothing.

    Parameters
    ----------
    weights : ndarray of shape (m,)
        Where to start.
    relax : callable
        ``relax(weights)`` solves for the partition.
    respond : callable
        ``respond(relaxation)`` returns the weights that answer a partition, and the objective by
        which iterates are compared.
    tol : float
        Change of the weights at which to stop.
    max_iter : int
        Most answers.
    order : float, default=inf
        Which norm of a change is meant.

    Returns
    -------
    Alternation
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
        step = float(np.linalg.norm(weights - trail[-1], order))
        converged = step < tol
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
    return Alternation(weights, relaxation, np.array(history), converged, len(trail) - 1, cycle)


def _cycle(trail: list[Float], weights: Float, share: float) -> int:
    """Return after how many steps the weights have come back to where they were, or zero."""
    if len(trail) < 2:
        return 0
    step = np.max(np.abs(weights - trail[-1]))
    for length in range(2, len(trail) + 1):
        if np.max(np.abs(weights - trail[-length])) <= share * step:
            return length
    return 0
