"""LocalizedSimpleMKKM: certified SimpleMKKM, by similarities between neighbors only."""

from dataclasses import replace
from typing import Any, ClassVar

from mkclust.fit.solution import Solution
from mkclust.methods.localize import LocalizedClusterer, MaskKind, Neighbors, localize
from mkclust.methods.simple_mkkm import CertifiedClusterer, solve_simple_mkkm
from mkclust.parameters import Allowed, Choice
from mkclust.stack import Stack


def solve_localized_simple_mkkm(
    stack: Stack,
    n_clusters: int,
    *,
    neighbors: Neighbors = "auto",
    mask: MaskKind = "counts",
    **options: Any,
) -> Solution:
    """Solve `LocalizedSimpleMKKM`; ``options`` are those of `solve_simple_mkkm`."""
    local, _, size = localize(stack, n_clusters, neighbors, mask)
    solution = solve_simple_mkkm(local, n_clusters, **options)
    return replace(solution, products=None, learned={"n_neighbors_": size})


class LocalizedSimpleMKKM(LocalizedClusterer, CertifiedClusterer):
    r"""Localized simple multiple kernel k-means [1]_ with certified global optimality.

    SimpleMKKM, with every kernel's similarities counted only between samples that are
    neighbors of a common sample, the more often the more:

    .. math:: \min_{\gamma \in \Delta} \max_{H^\top H = I_k}
              \mathrm{Tr}((B \circ K_\gamma) H H^\top),
              \qquad K_\gamma = \sum_p \gamma_p^2 K_p

    The neighborhoods are those of the average kernel. With the mask B, kernels remain
    positive semidefinite, so that the problem is convex and certified as SimpleMKKM's
    is. Masked kernels are not centered: k clusters show in k eigenvalues rather than k
    - 1. The method has no partition of new samples. A `WeightsWarning` names views that
    mislead neighborhoods and weights; `AgreementKKM` and `AnchoredMKKM` set them aside.

    Parameters
    ----------
    {inputs}
    neighbors : float, int or "auto", default="auto"
        The size of a neighborhood. A float is the paper's tau, a share of the samples:
        the authors search 0.05, 0.10, ..., 0.95 (``GRID``). An integer of at least 2 is
        a count. "auto" is two thirds of a cluster's mean size, but at least 20, and at
        most a third of all samples.
    mask : {"counts", "published"}, default="counts"
        With A_ab, the number of samples in whose neighborhood both a and b are, the
        mask B is A / n, every sample being in its own neighborhood. "published" leaves
        every sample out of its own; one that is in no other has then no similarity to
        any, and a warning names it.
    {proof}
    {rounding}
    {common}
    weights_ : ndarray of shape (n_kernels,)
        They sum to one. Not importance: a large weight means little agreement with the
        consensus.
    coefficients_ : ndarray of shape (n_kernels,)
        Squares of the weights: ``sum_p coefficients_p K_p`` is masked and clustered.
    n_neighbors_ : int
        How many samples a neighborhood has, itself not counted.
    objective_ : float
        ``Tr((B o K) H H^T)``, the minimum over the weights.
    {certificate}
    {rounded}
    {notes}

    Examples
    --------
    >>> from mkclust import LocalizedSimpleMKKM
    >>> from mkclust.datasets import load
    >>> views = {name: view[:500] for name, view in load("digits").views.items()}
    >>> model = LocalizedSimpleMKKM(n_clusters=10, random_state=0).fit(views)
    >>> model.labels_.shape, bool(model.duality_gap_ < 1e-6)
    ((500,), True)
    """

    neighbors: Neighbors = "auto"
    mask: MaskKind = "counts"

    SUMMARY = (
        "SimpleMKKM with similarities counted by the neighborhoods that two samples "
        "share"
    )
    REFERENCES = (
        "X. Liu, S. Zhou, L. Liu, C. Tang, S. Wang, J. Liu, Y. Zhang. Localized Simple "
        "Multiple Kernel K-means. ICCV, 2021.",
    )
    WARNS = "if views are set aside"  # other clusters are what neighborhoods are for
    GRID: ClassVar[dict[str, list]] = {
        "neighbors": [round(0.05 * i, 2) for i in range(1, 20)]
    }
    ALLOWED: ClassVar[dict[str, Allowed]] = (
        CertifiedClusterer.ALLOWED
        | LocalizedClusterer.ALLOWED
        | {"mask": Choice(("counts", "published"))}
    )

    def _solve(self, stack: Stack) -> Solution:
        options = self._options(
            "neighbors", "mask", "tol", "max_iter", "prove", "random_state"
        )
        return solve_localized_simple_mkkm(stack, self.n_clusters, **options)
