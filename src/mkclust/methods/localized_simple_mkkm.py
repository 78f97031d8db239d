"""LocalizedSimpleMKKM: SimpleMKKM that trusts similarities between neighbors only; certified."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from mkclust.exceptions import warn
from mkclust.linalg import to_host
from mkclust.methods.localize import (
    Mask,
    MaskKind,
    NeighborhoodSize,
    Neighbors,
    localize,
    mix_among_neighbors,
    neighborhood_mask,
    neighborhood_size,
)
from mkclust.methods.simple_mkkm import SimpleClusterer, solve_simple_mkkm, warn_of_other_clusters
from mkclust.methods.solution import Solution
from mkclust.parameters import Allowed, Choice
from mkclust.stack import Stack
from mkclust.text import list_first
from mkclust.types import Array, Float


def solve_localized_simple_mkkm(
    stack: Stack,
    n_clusters: int,
    *,
    neighbors: Neighbors = "auto",
    mask: MaskKind = "counts",
    tol: float = 1e-6,
    max_iter: int = 200,
    prove: bool | Literal["auto"] = "auto",
    random_state: Any = None,
) -> Solution:
    r"""Solve SimpleMKKM on kernels among neighbors, to a certified relative gap.

    .. math:: \min_{\gamma \in \Delta} \max_{H^\top H = I_k}
              \mathrm{Tr}((B \circ K_\gamma) H H^\top), \qquad K_\gamma = \sum_p \gamma_p^2 K_p

    With :math:`A_{ab}`, the number of samples in whose neighborhood both a and b are, the mask is
    :math:`B = A / n`, or :math:`B_{ab} = A_{ab} / \sqrt{A_{aa} A_{bb}}`. Either is
    positive semidefinite, so that :math:`B \circ K_p` are kernels, and the problem is SimpleMKKM's
    with these. They are written out: m + 1 matrices of n x n beside the kernels.

    Parameters
    ----------
    stack : Stack
        The kernels.
    n_clusters : int
        Number of clusters, k.
    neighbors : float, int or "auto", default="auto"
        The size of a neighborhood: the paper's tau, a share of the samples; a count of them; or
        "auto" (`neighborhood_size`).
    mask : {"counts", "published", "cosine"}, default="counts"
        How shared neighborhoods count, see `LocalizedSimpleMKKM`.
    tol : float, default=1e-6
        Relative gap at which to stop.
    max_iter : int, default=200
        Number of iterations at which to give up.
    prove : bool or "auto", default="auto"
        As in `solve_simple_mkkm`.
    random_state : int, RandomState or None, default=None
        As in `solve_simple_mkkm`.

    Returns
    -------
    Solution
    """
    size = neighborhood_size(neighbors, stack.n_samples, n_clusters)
    local, _ = localize(stack, neighborhood_mask(stack, size, mask))
    return solve_simple_mkkm(
        local, n_clusters, tol=tol, max_iter=max_iter, prove=prove, random_state=random_state
    )


class LocalizedSimpleMKKM(SimpleClusterer):
    r"""Localized simple multiple kernel k-means [1]_, solved to certified global optimality.

    SimpleMKKM, with every kernel's similarities counted only between samples that are neighbors of
    a common sample, the more often the more:

    .. math:: \min_{\gamma \in \Delta} \max_{H^\top H = I_k}
              \mathrm{Tr}((B \circ K_\gamma) H H^\top), \qquad K_\gamma = \sum_p \gamma_p^2 K_p

    Similarities of far samples tell little, and most of a kernel's entries are such. The
    neighborhoods are those of the average of the kernels, centered and of unit diagonal, and stay
    as they are; with the mask B, which they make, kernels remain kernels, so that the problem is
    convex as SimpleMKKM's is, and certified alike. Masked kernels are not centered: k clusters show
    in k eigenvalues rather than k - 1. It has no partition of samples it has not seen.

    **What a weight means.** ``weights_`` are mixing weights, not importance: a large one means
    little agreement with the consensus among neighbors. Views that share nothing with the others
    mislead the neighborhoods as well as the weights, more than they do SimpleMKKM: if there are
    such, and the clusters are not those that the views agree on, a `WeightsWarning` says so. Leave
    them out, or take `AgreementKKM` or `AnchoredMKKM`, which set them aside.

    Parameters
    ----------
    {inputs}
    neighbors : float, int or "auto", default="auto"
        The size of a neighborhood. A float is the paper's tau, above 0 and at most 1, a share of
        the samples: the authors search 0.05, 0.10, ..., 0.95 (``GRID``). An integer of at least 2
        is a count. "auto" is two thirds of the samples that a cluster has on average, but at least
        20, and at most a third of all samples.
    mask : {"counts", "published", "cosine"}, default="counts"
        With A_ab, the number of samples in whose neighborhood both a and b are, the mask B is
        A / n for "counts", every sample being in its own neighborhood. "published" is the same with
        every sample left out of its own. One that is in no other has then no similarity to any:
        its row of ``embedding_`` is zero, its cluster the one with the center nearest to the
        origin, and a warning names it. "cosine" is A_ab / sqrt(A_aa A_bb), every sample being in
        its own neighborhood: samples in few neighborhoods count as much as others. Take it for
        kernels with little beside their diagonal, such as graphs repaired by ``psd="shift"``.
    {solver}
    {proof}
    {seeds}
    {tables}

    Attributes
    ----------
    {labels}
    weights_ : ndarray of shape (n_kernels,)
        Mixing weights, summing to one. Not importance: a large weight means little agreement with
        the consensus.
    coefficients_ : ndarray of shape (n_kernels,)
        Squares of the weights: ``sum_p coefficients_p K_p`` is what is masked and clustered.
    n_neighbors_ : int
        How many samples a neighborhood has, itself not counted.
    objective_ : float
        ``Tr((B o K) H H^T)``, the minimum over the weights.
    {certificate}
    history_ : ndarray of shape (n_iter_,), with the start before it for the reduced gradient
        Best objective after each iteration, falling, what the residuals leave open counted in.
    {notes}

    References
    ----------
    {references}

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

    SUMMARY: ClassVar[str] = (
        "which mixes the kernels by the squares of weights on the simplex, similarities counted by "
        "the neighborhoods that two samples share; the weights minimize the alignment with a "
        "relaxed partition that the partition maximizes"
    )
    REFERENCES: ClassVar[tuple[str, ...]] = (
        "X. Liu, S. Zhou, L. Liu, C. Tang, S. Wang, J. Liu, Y. Zhang. Localized Simple Multiple "
        "Kernel K-means. ICCV, 2021.",
    )
    GRID: ClassVar[dict[str, list]] = {"neighbors": [round(0.05 * i, 2) for i in range(1, 20)]}
    ALLOWED: ClassVar[dict[str, Allowed]] = SimpleClusterer.ALLOWED | {
        "neighbors": NeighborhoodSize(),
        "mask": Choice(("counts", "published", "cosine")),
    }
    SIMILARITIES: ClassVar[str] = "the sum of the kernels by their coefficients, among neighbors"
    MATRICES: ClassVar[int] = 2
    COPIES: ClassVar[int] = 1

    def _solve(self, stack: Stack) -> Solution:
        """Solve on the kernels among neighbors."""
        mask = neighborhood_mask(stack, self._size(stack), self.mask)
        _warn_of_isolated_samples(mask)
        solution = self._minimize(localize(stack, mask)[0])
        return replace(solution, shared_sums=None)  # these are of the localized kernels

    def _learned(
        self, stack: Stack, solution: Solution, labels: Array, *further: Array
    ) -> dict[str, Any]:
        """Return the certificate and what the compromise finds; warn if noise misled."""
        learned = super()._learned(stack, solution, labels, *further)
        # Other clusters are what neighborhoods are for, unless views of noise are in them.
        if solution.agreement is not None and solution.agreement.set_aside:
            warn_of_other_clusters(solution, learned["baseline_agreement_"])
        return learned | {"n_neighbors_": self._size(stack)}

    def _size(self, stack: Stack) -> int:
        """Return how many samples a neighborhood has."""
        return neighborhood_size(self.neighbors, stack.n_samples, self.n_clusters)

    def _mixed_among(self, stack: Stack, samples: np.ndarray | None) -> Float:
        """Return the mix among samples that exist, by the neighborhoods they share."""
        mask = neighborhood_mask(stack, self.n_neighbors_, self.mask)
        return mix_among_neighbors(stack, self.coefficients_, mask, samples)


def _warn_of_isolated_samples(mask: Mask) -> None:
    """Say which samples are in no neighborhood."""
    isolated = np.flatnonzero(to_host(mask.n_neighborhoods) == 0)
    if not len(isolated):
        return
    samples, have = ("sample is", "it has") if len(isolated) == 1 else ("samples are", "they have")
    warn(
        f"{len(isolated)} {samples} in no neighborhood ({list_first(isolated)}): {have} no "
        "similarity to any other sample, so the cluster means nothing; raise neighbors, "
        "or pass mask='counts'",
        UserWarning,
    )
