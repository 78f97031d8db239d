"""Certified minimization over the weights by cutting surfaces."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mkclust.engine.simplex import best_mixture, best_response
from mkclust.types import Float


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
