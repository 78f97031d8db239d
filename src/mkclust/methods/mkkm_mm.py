"""MKKM-MM: the partition that is best for the kernels it explains worst."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from mkclust.engine.eigen import Relaxation
from mkclust.engine.simplex import minimize_quadratic
from mkclust.methods.alternate import Alternation, alternate
from mkclust.methods.documentation import LARGE_WEIGHT
from mkclust.methods.inductive import InductiveClusterer
from mkclust.methods.mixture import Mixture
from mkclust.methods.solution import Solution
from mkclust.parameters import Allowed, Choice
from mkclust.stack import Stack
from mkclust.types import Array, Float


def solve_mkkm_mm(
    stack: Stack,
    n_clusters: int,
    *,
    tol: float = 1e-4,
    max_iter: int = 10,
) -> Solution:
    r"""Alternate between a partition and the weights that are worst for it.

    .. math:: \min_{H^\top H = I_k} \max_{\theta \ge 0,\, \|\theta\|_2 \le 1}
              \sum_p \theta_p\, a_p(H), \qquad a_p(H) = \mathrm{Tr}(K_p (I - H H^\top))

    The worst weights are :math:`\theta = a(H) / \|a(H)\|_2`; H is the leading eigenvectors of
    :math:`\sum_p \theta_p K_p`. Nothing makes this converge, and it often ends in a cycle of two:
    then the iterate with the least :math:`\|a(H)\|_2` is returned, that of the uniform weights at
    the start left out.

    Parameters
    ----------
    stack : Stack
        The kernels.
    n_clusters : int
        Number of clusters, k.
    tol : float, default=1e-4
        Change of the weights (l2 norm) at which to stop.
    max_iter : int, default=10
        Most iterations; the first has uniform weights.

    Returns
    -------
    Solution
        Its history is ``|a(H)|_2`` of every iteration, and that of the returned one if it is not
        the last.
    """
    return alternate_with_worst_weights(stack, n_clusters, alternate, tol=tol, max_iter=max_iter)


def alternate_with_worst_weights(
    stack: Stack,
    n_clusters: int,
    take_turns: Callable[..., Alternation],
    *,
    tol: float,
    max_iter: int,
) -> Solution:
    """Answer a partition by the weights that are worst for it."""
    mixture = Mixture(stack, n_clusters)

    def respond(relaxation: Relaxation) -> tuple[Float, float]:
        unexplained = mixture.unexplained(relaxation)
        return _worst_weights(unexplained), float(np.linalg.norm(unexplained))

    alternation = take_turns(
        _unit(mixture.uniform),
        mixture.relax,
        respond,
        tol=tol,
        max_iter=max_iter - 1,
        order=2,
    )
    return mixture.solution(
        alternation.relaxation,
        alternation.weights,
        alternation.weights,
        alternation.history,
        alternation.converged,
        alternation.n_iter + 1,
        cycle=alternation.cycle,
    )


def solve_mkkm_mm_saddle(
    stack: Stack,
    n_clusters: int,
    *,
    tol: float = 1e-8,
    max_iter: int = 100,
    random_state: Any = None,
) -> Solution:
    r"""Find the weights whose best partition leaves most unexplained, certified.

    .. math:: \max_{\theta \ge 0,\, \|\theta\|_2 \le 1} g(\theta), \qquad
              g(\theta) = \min_{H^\top H = I_k} \sum_p \theta_p\, a_p(H)

    g is concave, the least of linear functions, so planes :math:`a(H_j)` seen so far bound it from
    above: by the norm of the shortest vector in their convex hull, whose direction is tried next.

    Parameters
    ----------
    stack : Stack
        The kernels.
    n_clusters : int
        Number of clusters, k.
    tol : float, default=1e-8
        Certified relative gap at which to stop.
    max_iter : int, default=100
        Most iterations.
    random_state : int, RandomState or None, default=None
        As in `solve_simple_mkkm`.

    Returns
    -------
    Solution
        Its history is the best ``g`` so far, rising, beside certified ``upper_bounds``.
    """
    mixture = Mixture(stack, n_clusters)
    theta = _unit(mixture.uniform)
    planes: list[Float] = []
    lower: list[float] = []
    upper: list[float] = []
    while True:
        relaxation = mixture.relax(theta)
        planes.append(mixture.unexplained(relaxation))
        value = float(theta @ planes[-1])
        if not lower or value > lower[-1]:
            best = (theta, relaxation)
        lower.append(max([value, *lower[-1:]]))
        A = np.array(planes)
        shortest = minimize_quadratic(A @ A.T) @ A
        upper.append(float(np.linalg.norm(shortest)))
        gap = upper[-1] - lower[-1] + best[1].error
        # If nothing is left unexplained, the errors of the eigenvalues are rounding.
        converged = gap <= tol * upper[-1] or upper[-1] == 0
        if converged or len(lower) >= max_iter:
            break
        theta = shortest / upper[-1]
    theta, relaxation = best
    allowed = tol * upper[-1] - (max(upper[-1] - lower[-1], 0.0) if converged else 0.0)
    certificate = mixture.certify(relaxation, theta, allowed, random_state=random_state)
    return mixture.solution(
        replace(relaxation, error=certificate.error if upper[-1] else 0.0),
        theta,
        theta,
        lower,
        converged and certificate.kind != "open",
        len(lower),
        upper_bounds=np.array(upper),
        certificate=certificate,
    )


def _unit(weights: Float) -> Float:
    """Return weights scaled to unit l2 norm."""
    return weights / np.linalg.norm(weights)


def _worst_weights(unexplained: Float) -> Float:
    """Return the weights of unit norm under which most is left unexplained."""
    # If nothing is, all weights are as bad; the uniform ones prefer no kernel.
    return _unit(unexplained if unexplained.any() else np.ones_like(unexplained))


class MKKMMM(InductiveClusterer):
    r"""Multiple kernel k-means by min-max optimization [1]_.

    .. math:: \min_{H^\top H = I_k} \max_{\theta \ge 0,\, \|\theta\|_2 \le 1}
              \mathrm{Tr}(K_\theta (I - H H^\top)), \qquad K_\theta = \sum_p \theta_p K_p

    The kernels that the partition explains worst get the largest weights. The authors alternate
    between the two sides, which often ends in a cycle; ``converged_`` and a warning say so, and the
    best iterate after the start is returned. ``solver="saddle"`` finds the true saddle point,
    certified.

    Parameters
    ----------
    {inputs}
    {neighbors}
    {approximation}
    solver : {"alternate", "saddle"}, default="alternate"
        The authors' alternation, or the weights of the saddle point.
    tol : float, default=1e-4
        Change of the weights (l2 norm) at which the alternation stops. The saddle point stops at
        a certified relative gap of ``tol**2``: the value moves by the square of a small error in
        the weights.
    max_iter : int, default=10
        Most iterations of the alternation; the saddle point may take ten times as many.
    {seeds}
    {tables}

    Attributes
    ----------
    {labels}
    weights_ : ndarray of shape (n_kernels,)
        Mixing weights, of unit l2 norm. Not importance: a large weight means little agreement with
        the consensus.
    coefficients_ : ndarray of shape (n_kernels,)
        The same: the mixed kernel is ``sum_p coefficients_p K_p``.
    objective_ : float
        What the partition leaves unexplained under the weights that are worst for it; for the
        saddle point, the value of its weights.
    history_ : ndarray of shape (n_iter_,) or (n_iter_ + 1,)
        The objective of each iteration, neither falling nor rising, closed by that of the returned
        one if it is not the last; for the saddle point the best so far, rising.
    duality_gap_ : float
        Only for the saddle point: relative distance of the objective to its maximum at most.
    certificate_ : str
        Only for the saddle point: how it is known that no eigenvector was missed, as SimpleMKKM
        tells it.
    {notes}
    {approximation_error}

    References
    ----------
    {references}

    Examples
    --------
    >>> from mkclust import MKKMMM
    >>> from mkclust.datasets import load
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> model = MKKMMM(n_clusters=10, solver="saddle", random_state=0).fit(views)
    >>> model.converged_, bool(model.duality_gap_ < 1e-8)
    (True, True)
    """

    solver: Literal["alternate", "saddle"] = "alternate"
    tol: float = 1e-4
    max_iter: int = 10

    SUMMARY: ClassVar[str] = (
        "which finds the relaxed partition that is best for the weights, of unit length, under "
        "which most of the kernels is left unexplained"
    )
    REFERENCES: ClassVar[tuple[str, ...]] = (
        "S. Bang, Y. Yu, W. Wu. Robust Multiple Kernel k-means Clustering using Min-Max "
        "Optimization. arXiv:1803.02458, 2018.",
    )
    WEIGHT_MEANING: ClassVar[str] = LARGE_WEIGHT
    ALLOWED: ClassVar[dict[str, Allowed]] = {"solver": Choice(("alternate", "saddle"))}

    def _solve(self, stack: Stack) -> Solution:
        """Alternate, or find the saddle point."""
        if self.solver == "saddle":
            return solve_mkkm_mm_saddle(
                stack,
                self.n_clusters,
                tol=self.tol**2,
                max_iter=10 * self.max_iter,
                random_state=self.random_state,
            )
        return solve_mkkm_mm(stack, self.n_clusters, tol=self.tol, max_iter=self.max_iter)

    def _learned(
        self, stack: Stack, solution: Solution, labels: Array, *further: Array
    ) -> dict[str, Any]:
        """Return the certificate of a saddle point."""
        if self.solver != "saddle":
            return {}
        return {"duality_gap_": solution.gap, "certificate_": str(solution.certificate)}
