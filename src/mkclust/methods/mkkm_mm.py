"""MKKM-MM: the partition that is best for the kernels it explains worst."""

from typing import Any, ClassVar, Literal

import numpy as np

from mkclust.engine.eigen import Relaxation
from mkclust.engine.simplex import minimize_quadratic
from mkclust.fit.base import RelaxedClusterer
from mkclust.fit.documentation import LARGE_WEIGHT
from mkclust.fit.inductive import InductiveClusterer
from mkclust.fit.mixture import Mixture, alternate
from mkclust.fit.solution import Solution
from mkclust.parameters import Allowed, Choice
from mkclust.stack import Stack
from mkclust.types import Float


def solve_mkkm_mm(
    stack: Stack, n_clusters: int, *, tol: float = 1e-4, max_iter: int = 10
) -> Solution:
    """Alternate between a partition and the weights worst for it, as `MKKMMM` says."""
    mixture = Mixture(stack, n_clusters)

    def respond(relaxation: Relaxation) -> tuple[Float, float]:
        unexplained = mixture.unexplained(relaxation)
        # If nothing is left unexplained, all weights are equally bad.
        worst = unexplained if unexplained.any() else mixture.uniform
        return _unit(worst), float(np.linalg.norm(unexplained))

    start = _unit(mixture.uniform)
    found = alternate(
        start, mixture.relax, respond, tol=tol, max_iter=max_iter - 1, order=2
    )
    found = found._replace(n_iter=found.n_iter + 1)
    return mixture.solution(coefficients=found.weights, **found._asdict())


def solve_mkkm_mm_saddle(
    stack: Stack,
    n_clusters: int,
    *,
    tol: float = 1e-8,
    max_iter: int = 100,
    random_state: Any = None,
) -> Solution:
    r"""Find the saddle point of `MKKMMM`, to a certified relative gap ``tol``.

    .. math:: \max_{\theta \ge 0,\, \|\theta\|_2 \le 1} g(\theta), \qquad
              g(\theta) = \min_{H^\top H = I_k} \sum_p \theta_p\, a_p(H)

    g is concave, the least of linear functions, so the planes :math:`a(H_j)` seen so
    far bound it by the norm of the shortest vector in their convex hull, whose
    direction is tried next.
    """
    mixture = Mixture(stack, n_clusters)
    theta = _unit(mixture.uniform)
    planes, history = list[Float](), list[float]()
    while True:
        relaxation = mixture.relax(theta)
        planes.append(mixture.unexplained(relaxation))
        history.append(max([float(theta @ planes[-1]), *history[-1:]]))
        if len(history) < 2 or history[-1] > history[-2]:
            best = (theta, relaxation)
        A = np.array(planes)
        shortest = minimize_quadratic(A @ A.T) @ A
        bound = float(np.linalg.norm(shortest))
        # If nothing is left unexplained, the errors of the eigenvalues are rounding.
        converged = bound == 0 or bound - history[-1] + best[1].error <= tol * bound
        if converged or len(history) >= max_iter:
            break
        theta = shortest / bound
    theta, relaxation = best
    distance = max(bound - history[-1], 0.0)
    allowed = tol * bound - (distance if converged else 0.0)
    certificate = mixture.certify(relaxation, theta, allowed, random_state=random_state)
    gap = (distance + certificate.error) / bound if bound else 0.0
    return mixture.solution(
        relaxation,
        theta,
        theta,
        history,
        converged and certificate.is_within(allowed),
        len(history),
        gap=gap,
        certificate=certificate,
        learned={"duality_gap_": gap, "certificate_": str(certificate)},
    )


def _unit(weights: Float) -> Float:
    return weights / np.linalg.norm(weights)


class MKKMMM(RelaxedClusterer, InductiveClusterer):
    r"""Multiple kernel k-means by min-max optimization [1]_.

    .. math:: \min_{H^\top H = I_k} \max_{\theta \ge 0,\, \|\theta\|_2 \le 1}
              \sum_p \theta_p\, a_p(H), \qquad a_p(H) = \mathrm{Tr}(K_p (I - H H^\top))

    The kernels that the partition explains worst get the largest weights. The authors
    alternate between :math:`\theta = a(H) / \|a(H)\|_2` and the leading eigenvectors H
    of :math:`\sum_p \theta_p K_p`, which often ends in a cycle of two: a warning says
    so, and the best iterate after the start is returned. ``solver="saddle"`` finds the
    saddle point, certified.

    Parameters
    ----------
    {inductive}
    solver : {"alternate", "saddle"}, default="alternate"
        The authors' alternation, or the weights of the saddle point.
    tol : float, default=1e-4
        Change of the weights (l2 norm) at which the alternation stops. The saddle point
        stops at a certified relative gap of ``tol**2``.
    max_iter : int, default=10
        Most iterations of the alternation; the saddle point may take ten times as many.
    {rounding}
    {common}
    weights_ : ndarray of shape (n_kernels,)
        Of unit l2 norm. Not importance: a large weight means little agreement with the
        consensus.
    {coefficients}
    objective_ : float
        What the partition leaves unexplained under the weights that are worst for it;
        for the saddle point, the value of its weights.
    history_ : ndarray of shape (n_iter_,) or (n_iter_ + 1,)
        The objective of each iteration, and that of the returned one if it is not the
        last; for the saddle point the best so far, rising.
    duality_gap_, certificate_ : float, str
        Only for the saddle point, as for SimpleMKKM.
    {rounded}
    {notes}

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

    SUMMARY = (
        "which finds the relaxed partition that is best for the weights that are worst "
        "for it"
    )
    REFERENCES = (
        "S. Bang, Y. Yu, W. Wu. Robust Multiple Kernel k-means Clustering using "
        "Min-Max Optimization. arXiv:1803.02458, 2018.",
    )
    WEIGHT_MEANING = LARGE_WEIGHT
    ALLOWED: ClassVar[dict[str, Allowed]] = {"solver": Choice(("alternate", "saddle"))}

    def _solve(self, stack: Stack) -> Solution:
        k, tol, max_iter = self.n_clusters, self.tol, self.max_iter
        if self.solver == "alternate":
            return solve_mkkm_mm(stack, k, tol=tol, max_iter=max_iter)
        options = {
            "tol": tol**2,
            "max_iter": 10 * max_iter,
            **self._options("random_state"),
        }
        return solve_mkkm_mm_saddle(stack, k, **options)
