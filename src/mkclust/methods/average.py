"""Avg-KKM: kernel k-means on the plain average of the kernels."""

from mkclust.fit.base import RelaxedClusterer
from mkclust.fit.inductive import InductiveClusterer
from mkclust.fit.mixture import Mixture
from mkclust.fit.solution import Solution
from mkclust.methods.learned_fill import AlignedFills, learn_fills
from mkclust.stack import Stack


def solve_average_kkm(
    stack: Stack, n_clusters: int, *, learn_missing: bool = False
) -> Solution:
    """Solve `AverageKKM`; ``learn_missing`` also learns values for missing samples."""

    def relax(stack: Stack, previous: Solution | None = None) -> Solution:
        mixture = Mixture(stack, n_clusters)
        uniform = mixture.uniform
        relaxation = mixture.relax(uniform)
        return mixture.solution(
            relaxation, uniform, uniform, [relaxation.value], True, 1
        )

    if learn_missing:
        return learn_fills(stack, relax, AlignedFills(), goal="rising")
    return relax(stack)


class AverageKKM(RelaxedClusterer, InductiveClusterer):
    r"""Kernel k-means on the average kernel: every kernel counts the same.

    .. math:: \max_{H^\top H = I_k} \mathrm{Tr}(\bar K H H^\top), \qquad
              \bar K = \frac1m \sum_p K_p

    No weights are learned, so this is the baseline for all other methods.

    Parameters
    ----------
    {inductive}
    {rounding}
    {common}
    weights_ : ndarray of shape (n_kernels,)
        One over the number of kernels.
    {coefficients}
    objective_ : float
        ``Tr(K H H^T)``, the sum of the k largest eigenvalues of the average kernel.
    history_ : ndarray of shape (1,)
        The objective.
    {rounded}
    {notes}

    Examples
    --------
    >>> from mkclust import AverageKKM
    >>> from mkclust.datasets import load
    >>> digits = load("digits")
    >>> model = AverageKKM(n_clusters=10, random_state=0).fit(digits.views)
    >>> model.weights_
    array([0.25, 0.25, 0.25, 0.25])
    """

    SUMMARY = "relaxed kernel k-means of the average of the kernels"
    REFERENCES = (
        "H. Zha, X. He, C. Ding, M. Gu, H. D. Simon. Spectral Relaxation for K-means "
        "Clustering. NIPS, 2001.",
    )
    LEARNS_MISSING = True

    def _solve(self, stack: Stack) -> Solution:
        learn = self._learns_missing(stack)
        return solve_average_kkm(stack, self.n_clusters, learn_missing=learn)
