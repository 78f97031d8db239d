"""LKAM: multiple kernel k-means that trusts similarities between neighbors only."""

from dataclasses import replace
from typing import ClassVar

from mkclust.fit.solution import Solution
from mkclust.methods.localize import LocalizedClusterer, Neighbors, localize
from mkclust.methods.mkkm_mir import descend_regularized
from mkclust.parameters import Allowed, Number
from mkclust.stack import Stack


def solve_lkam(
    stack: Stack,
    n_clusters: int,
    *,
    reg: float = 1.0,
    neighbors: Neighbors = 0.5,
    tol: float = 1e-6,
    max_iter: int = 10,
) -> Solution:
    """Minimize the objective of `LKAM`, that of `MKKMMiR` for kernels of neighbors."""
    local, correlations, size = localize(stack, n_clusters, neighbors)
    overlap = reg * correlations
    solution = descend_regularized(
        local, n_clusters, overlap, tol=tol, max_iter=max_iter
    )
    return replace(solution, learned={"n_neighbors_": size})


class LKAM(LocalizedClusterer):
    r"""Multiple kernel clustering with local kernel alignment maximization [1]_.

    .. math:: \min_{\gamma \in \Delta,\, H^\top H = I_k} \sum_p \gamma_p^2\, z_p(H)
              + \frac\lambda2 \gamma^\top M \gamma

    .. math:: z_p(H) = \frac1n \sum_{ab} A_{ab} K_{p,ab} (I - H H^\top)_{ab}, \qquad
              M_{pq} = \frac1n \sum_{ab} A_{ab} K_{p,ab} K_{q,ab}

    MKKM-MiR, with every similarity multiplied by :math:`A_{ab}`, the number of
    neighborhoods (in the average kernel) that both a and b are in. The method has no
    partition of new samples.

    Parameters
    ----------
    {inputs}
    reg : float, default=1.0
        The paper's lambda, not negative. The authors search 2^-15, ..., 2^15
        (``GRID``).
    neighbors : float, int or "auto", default=0.5
        The size of a neighborhood. A float is the paper's tau, a share of the samples:
        the authors search 0.05, 0.15, ..., 0.95. For others see `LocalizedSimpleMKKM`.
    {stopping}
    {rounding}
    {common}
    weights_ : ndarray of shape (n_kernels,)
        Mixing weights, summing to one; some may be zero. Not importance.
    coefficients_ : ndarray of shape (n_kernels,)
        Squares of the weights: ``sum_p coefficients_p K_p`` is masked and clustered.
    n_neighbors_ : int
        How many samples a neighborhood has.
    {descent}
    {rounded}
    {notes}

    Examples
    --------
    >>> from mkclust import LKAM
    >>> from mkclust.datasets import load
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> model = LKAM(n_clusters=10, neighbors=0.1, random_state=0).fit(views)
    >>> model.converged_, bool((model.history_[1:] <= model.history_[:-1]).all())
    (True, True)
    """

    reg: float = 1.0
    neighbors: Neighbors = 0.5
    tol: float = 1e-6
    max_iter: int = 10

    SUMMARY = (
        "which aligns the mixed kernel with the partition among nearest neighbors only"
    )
    REFERENCES = (
        "M. Li, X. Liu, L. Wang, Y. Dou, J. Yin, E. Zhu. Multiple Kernel Clustering "
        "with Local Kernel Alignment Maximization. IJCAI, 2016.",
    )
    SLOWNESS = 10
    GRID: ClassVar[dict[str, list]] = {
        "reg": [2.0**e for e in range(-15, 16)],
        "neighbors": [round(0.05 + 0.1 * i, 2) for i in range(10)],
    }
    ALLOWED: ClassVar[dict[str, Allowed]] = LocalizedClusterer.ALLOWED | {
        "reg": Number(0)
    }

    def _solve(self, stack: Stack) -> Solution:
        options = self._options("reg", "neighbors", "tol", "max_iter")
        return solve_lkam(stack, self.n_clusters, **options)
