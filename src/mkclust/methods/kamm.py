"""KAMM-R and KAMM-A: SimpleMKKM's ablations, of its min-max and of its optimization."""

import numpy as np

from mkclust.engine.eigen import Relaxation
from mkclust.engine.simplex import (
    best_response,
    drop_small,
    longest_step,
    reduced_direction,
)
from mkclust.fit.base import RelaxedClusterer
from mkclust.fit.inductive import InductiveClusterer
from mkclust.fit.mixture import Mixture, alternate
from mkclust.fit.solution import Solution
from mkclust.methods.simple_mkkm import SimpleMKKM
from mkclust.stack import Stack
from mkclust.types import Float


def solve_kamm_r(
    stack: Stack, n_clusters: int, *, tol: float = 1e-4, max_iter: int = 200
) -> Solution:
    """Maximize the objective of `KAMMR` by reduced gradient ascent.

    Every step is as long as the simplex allows, and there are at most m - 1 of them.
    """
    mixture = Mixture(stack, n_clusters)
    gamma = mixture.uniform
    relaxation = mixture.relax(gamma**2)
    history = [relaxation.value]
    converged = False
    # Weights that differ by less, relative to the largest, are equal up to rounding.
    weight_rounding = 1e-9
    while len(history) <= max_iter:
        gradient = 2 * gamma * mixture.alignments(relaxation)  # Theorem 1
        # Among equal largest weights the steepest is the pivot: the order must not
        # decide.
        is_largest = gamma >= (1 - weight_rounding) * gamma.max()
        pivot = int(np.argmax(np.where(is_largest, gradient, -np.inf)))
        same = np.abs(gradient - gradient[pivot]) <= tol * np.abs(gradient[pivot])
        direction = reduced_direction(
            gamma, np.where(same, -gradient[pivot], -gradient), pivot
        )
        if converged := not direction.any():
            break
        gamma = drop_small(
            gamma + longest_step(gamma, direction) * direction, weight_rounding
        )
        relaxation = mixture.relax(gamma**2)
        history.append(relaxation.value)
    n_iter = max(len(history) - 1, 1)
    return mixture.solution(relaxation, gamma, gamma**2, history, converged, n_iter)


class KAMMR(RelaxedClusterer, InductiveClusterer):
    r"""SimpleMKKM with its minimum turned into a maximum (an ablation [1]_).

    .. math:: \max_{\gamma \in \Delta} \max_{H^\top H = I_k}
              \mathrm{Tr}(K_\gamma H H^\top),
              \qquad K_\gamma = \sum_p \gamma_p^2 K_p

    A convex function has its maximum over a simplex at a corner: one kernel gets all
    the weight.

    Parameters
    ----------
    {inductive}
    tol : float, default=1e-4
        Kernels whose slopes differ by less than this share count as alike: the ascent
        rests.
    max_iter : int, default=200
        Most steps; one fewer than there are kernels is always enough.
    {rounding}
    {common}
    weights_ : ndarray of shape (n_kernels,)
        One for a single kernel and zero for the others; uniform if no kernel stands
        out.
    {coefficients}
    objective_ : float
        ``Tr(K H H^T)``, a local maximum over the weights.
    history_ : ndarray of shape (n_iter_ + 1,), or (1,) if no step leads up
        The objective before the first and after every step, rising.
    {rounded}
    {notes}

    Examples
    --------
    >>> from mkclust import KAMMR
    >>> from mkclust.datasets import load
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> model = KAMMR(n_clusters=10, random_state=0).fit(views)
    >>> sorted(model.weights_.tolist())
    [0.0, 0.0, 0.0, 1.0]
    """

    tol: float = 1e-4
    max_iter: int = 200

    SUMMARY = (
        "an ablation of SimpleMKKM that also maximizes the alignment over the weights"
    )
    REFERENCES = SimpleMKKM.REFERENCES

    def _solve(self, stack: Stack) -> Solution:
        return solve_kamm_r(
            stack, self.n_clusters, tol=self.tol, max_iter=self.max_iter
        )


def solve_kamm_a(
    stack: Stack, n_clusters: int, *, tol: float = 1e-4, max_iter: int = 50
) -> Solution:
    """Alternate between the two sides of the problem of `KAMMA`."""
    mixture = Mixture(stack, n_clusters)

    def respond(relaxation: Relaxation) -> tuple[Float, float]:
        return best_response(mixture.alignments(relaxation))[0], relaxation.value

    found = alternate(
        mixture.uniform,
        lambda gamma: mixture.relax(gamma**2),
        respond,
        tol=tol,
        max_iter=max_iter,
    )
    return mixture.solution(coefficients=found.weights**2, **found._asdict())


class KAMMA(RelaxedClusterer, InductiveClusterer):
    r"""SimpleMKKM's problem by alternation instead of descent (an ablation [1]_).

    .. math:: \min_{\gamma \in \Delta} \max_{H^\top H = I_k}
              \mathrm{Tr}(K_\gamma H H^\top),
              \qquad K_\gamma = \sum_p \gamma_p^2 K_p

    H is the leading eigenvectors of the mixed kernel, and the best weights for H are
    :math:`\gamma_p \propto 1 / \mathrm{Tr}(K_p H H^\top)`. A fixed point would be the
    minimum, but unless kernels are much alike the alternation mostly ends in a cycle
    far from it. A warning says so, and the best iterate after the start is returned.

    Parameters
    ----------
    {inductive}
    tol : float, default=1e-4
        Largest change of a weight at which to stop.
    max_iter : int, default=50
        Most iterations.
    {rounding}
    {common}
    weights_ : ndarray of shape (n_kernels,)
        Mixing weights, summing to one. Not importance.
    {coefficients}
    objective_ : float
        ``Tr(K H H^T)`` of the returned iterate.
    history_ : ndarray of shape (n_iter_ + 1,) or (n_iter_ + 2,)
        The objective of uniform weights, of each iterate, and of the returned one if
        not the last.
    {rounded}
    {notes}

    Examples
    --------
    >>> from mkclust import KAMMA
    >>> from mkclust.datasets import load
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> KAMMA(n_clusters=10, random_state=0).fit(views).converged_
    True
    """

    tol: float = 1e-4
    max_iter: int = 50

    SUMMARY = (
        "an ablation of SimpleMKKM that alternates between the partition and the "
        "weights"
    )
    REFERENCES = SimpleMKKM.REFERENCES

    def _solve(self, stack: Stack) -> Solution:
        return solve_kamm_a(
            stack, self.n_clusters, tol=self.tol, max_iter=self.max_iter
        )
