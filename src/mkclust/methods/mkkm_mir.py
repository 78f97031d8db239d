"""MKKM-MiR: multiple kernel k-means that avoids mixing kernels that say the same."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from mkclust.engine.simplex import drop_small, minimize_quadratic
from mkclust.fit.base import RelaxedClusterer
from mkclust.fit.inductive import InductiveClusterer
from mkclust.fit.mixture import Mixture, descend
from mkclust.fit.solution import Solution
from mkclust.parameters import Allowed, Number
from mkclust.stack import Stack
from mkclust.types import Float

# Weights below this are set to zero, as the authors do.
SMALLEST_WEIGHT = 1e-6


def solve_mkkm_mir(
    stack: Stack,
    n_clusters: int,
    *,
    reg: float = 0.5,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> Solution:
    """Minimize the objective of `MKKMMiR` over partition and weights in turns."""
    return descend_regularized(
        stack, n_clusters, reg * stack.gram(), tol=tol, max_iter=max_iter
    )


def descend_regularized(
    stack: Stack,
    n_clusters: int,
    overlap: Float,
    *,
    tol: float,
    max_iter: int,
    mix: Callable[[Float], Float] = np.square,
) -> Solution:
    """Minimize ``sum_p gamma_p^2 a_p(H) + gamma^T overlap gamma / 2``.

    H is the partition of ``mix(gamma)``.
    """
    mixture = Mixture(stack, n_clusters)

    def hessian(unexplained: Float) -> Float:
        return overlap + 2 * np.diag(unexplained)

    return descend(
        mixture,
        mixture.uniform,
        lambda a: drop_small(minimize_quadratic(hessian(a)), SMALLEST_WEIGHT),
        lambda gamma, a: float(gamma @ hessian(a) @ gamma) / 2,
        tol=tol,
        max_iter=max_iter,
        mix=mix,
    )


class MKKMMiR(RelaxedClusterer, InductiveClusterer):
    r"""Multiple kernel k-means with matrix-induced regularization [1]_.

    .. math:: \min_{\gamma \in \Delta,\, H^\top H = I_k}
              \mathrm{Tr}(K_\gamma (I - H H^\top)) + \frac\lambda2 \gamma^\top M \gamma,
              \qquad K_\gamma = \sum_p \gamma_p^2 K_p,
              \quad M_{pq} = \mathrm{Tr}(K_p K_q)

    The regularization keeps kernels that resemble each other from all getting large
    weights. A large ``reg`` prefers kernels that resemble no other, noise included;
    zero is MKKM.

    Parameters
    ----------
    {inductive}
    reg : float, default=0.5
        The paper's lambda, not negative. The authors search 2^-15, 2^-14, ..., 2^10
        (``GRID``).
    {stopping}
    {rounding}
    {common}
    weights_ : ndarray of shape (n_kernels,)
        Mixing weights, summing to one; some may be zero. Not importance.
    {coefficients}
    {descent}
    {rounded}
    {notes}

    Examples
    --------
    >>> from mkclust import MKKMMiR
    >>> from mkclust.datasets import load
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> model = MKKMMiR(n_clusters=10, reg=1.0, random_state=0).fit(views)
    >>> model.converged_, bool((model.history_[1:] <= model.history_[:-1]).all())
    (True, True)
    """

    reg: float = 0.5
    tol: float = 1e-6
    max_iter: int = 100

    SUMMARY = (
        "multiple kernel k-means with a regularization by the products of the kernels"
    )
    REFERENCES = (
        "X. Liu, Y. Dou, J. Yin, L. Wang, E. Zhu. Multiple Kernel k-Means Clustering "
        "with Matrix-Induced Regularization. AAAI, 2016.",
    )
    GRID: ClassVar[dict[str, list]] = {"reg": [2.0**e for e in range(-15, 11)]}
    ALLOWED: ClassVar[dict[str, Allowed]] = {"reg": Number(0)}

    def _solve(self, stack: Stack) -> Solution:
        return solve_mkkm_mir(
            stack, self.n_clusters, **self._options("reg", "tol", "max_iter")
        )
