"""ONKC: learn a kernel in the neighborhood of the mixed one."""

from typing import ClassVar, NamedTuple

import numpy as np

from mkclust.engine.certificate import rounding_of_entries
from mkclust.engine.eigen import relax
from mkclust.engine.simplex import drop_small, minimize_quadratic
from mkclust.exceptions import warn
from mkclust.fit.base import RelaxedClusterer
from mkclust.fit.mixture import EIGEN_TOLERANCE
from mkclust.fit.solution import Solution
from mkclust.linalg import (
    copy_array,
    namespace,
    psd_part,
    select,
    set_diagonal,
    sum_of_squares,
    to_device,
    to_host,
)
from mkclust.parameters import Allowed, Number
from mkclust.stack import Mix, Stack
from mkclust.stack.kernel import row_blocks
from mkclust.types import Array, Float

# Weights below this are rounding of the quadratic program, as in the authors' code.
SMALLEST_WEIGHT = 1e-8


class NearbyKernel(NamedTuple):
    """The best kernel G for a mixed kernel and a partition."""

    kernel: Array  # G
    leading: Array  # its k leading eigenvectors
    rank: int  # how many eigenvalues are above rounding
    cost: float  # the two terms of the objective that depend on G


def solve_onkc(
    stack: Stack,
    n_clusters: int,
    *,
    reg: float = 1.0,
    proximity: float = 1.0,
    tol: float = 1e-3,
    max_iter: int = 50,
) -> Solution:
    """Minimize the objective of `ONKC` over partition, weights and G in turns."""
    M, totals, proximity = stack.gram(), stack.traces(), float(proximity)
    gamma = np.full(stack.n_kernels, 1 / stack.n_kernels)
    H = relax(stack.mix(gamma), n_clusters, tol=EIGEN_TOLERANCE).vectors[:, :n_clusters]
    nearby = find_nearby_kernel(stack, gamma, H, proximity)
    history, converged = list[float](), False
    # An objective below this share of the mixed kernel's trace is zero but for
    # rounding.
    zero_share = 1e-13
    while not converged and len(history) < max_iter:
        H = nearby.leading
        alignments = _alignments(stack, nearby.kernel)
        del nearby  # so that there is memory for the next G
        gamma = minimize_quadratic((proximity + reg) * M, -proximity * alignments)
        gamma = drop_small(gamma, SMALLEST_WEIGHT)
        nearby = find_nearby_kernel(stack, gamma, H, proximity)
        history.append(nearby.cost + reg / 2 * float(gamma @ M @ gamma))
        converged = history[-1] <= zero_share * float(totals @ gamma) or (
            len(history) > 2 and abs(history[-2] - history[-1]) < tol * history[-2]
        )
    if nearby.rank < n_clusters:
        warn(
            f"the learned kernel has rank {nearby.rank}, too low for "
            f"n_clusters={n_clusters}: raise proximity (now {proximity:g}), or ask for "
            "fewer clusters",
            UserWarning,
        )
    return Solution(
        partition=H,
        weights=gamma,
        objective=history[-1],
        history=np.array(history),
        converged=converged,
        coefficients=gamma,
        n_iter=len(history),
        n_passes=2 * len(history) + 2,
        learned={"kernel_rank_": nearby.rank},
    )


def _alignments(stack: Stack, G: Array) -> Float:
    """Return ``Tr(K_p G)`` for every kernel."""
    # Entry by entry, since G may have full rank.
    xp, sums = namespace(G), np.zeros(stack.n_kernels)
    for part in row_blocks(stack.kernels):
        for p, kernel in enumerate(stack.kernels):
            sums[p] += float(xp.sum(kernel.rows(part) * G[part, :]))
    return sums


def find_nearby_kernel(
    stack: Stack, gamma: Float, H: Array, rho: float
) -> NearbyKernel:
    """Return the best kernel G for given weights and partition."""
    n, k = H.shape
    xp = namespace(H)
    K = Mix(gamma, stack.kernels).dense()
    scaled = H / float(np.sqrt(rho))
    B = scaled @ scaled.T
    B += K
    set_diagonal(B, xp.linalg.diagonal(B) - 1 / rho)
    G, values, vectors = psd_part(B, count=k)
    cosines = vectors.T @ H
    unexplained = np.maximum(values, 0) @ (
        1 - to_host(xp.sum(cosines * cosines, axis=1))
    )
    K -= G
    rounding = n * rounding_of_entries(stack) * max(float(values[0]), 1 / rho)
    return NearbyKernel(
        kernel=G,
        leading=copy_array(vectors[:, :k]),
        rank=int((values > rounding).sum()),
        cost=max(float(unexplained), 0.0) + rho / 2 * sum_of_squares(K),
    )


class ONKC(RelaxedClusterer):
    r"""Optimal neighborhood kernel clustering [1]_.

    .. math:: \min_{\gamma \in \Delta,\, H^\top H = I_k,\, G \succeq 0}
              \mathrm{Tr}(G (I - H H^\top)) + \frac\rho2 \|G - K_\gamma\|_F^2
              + \frac\lambda2 \gamma^\top M \gamma, \qquad
              K_\gamma = \sum_p \gamma_p K_p, \quad M_{pq} = \mathrm{Tr}(K_p K_q)

    The samples are clustered by a kernel G of their own, near a mix of those given. In
    turns, H is the k leading eigenvectors of G, the weights solve a quadratic program
    on the simplex in which G enters by :math:`\mathrm{Tr}(K_p G)`, and G is the
    positive semidefinite part of :math:`K_\gamma - (I - H H^\top) / \rho`. The
    objective falls to a stationary point. G is known on the samples only: the method
    has no ``predict``.

    Parameters
    ----------
    {inputs}
    reg : float, default=1.0
        The paper's lambda, not negative: the larger, the less weight goes to kernels
        that are alike. The authors search 2^-6, ..., 2^7 (``GRID``).
    proximity : float, default=1.0
        The paper's rho, positive: how close G stays to the mixed kernel. The smaller,
        the lower is its rank. The authors search 2^-7, ..., 2^9.
    {stopping}
    {rounding}
    {common}
    weights_ : ndarray of shape (n_kernels,)
        Mixing weights, summing to one. Not importance: noise is unlike other kernels,
        and favored.
    {coefficients}
    objective_ : float
        The objective of the final weights, partition and G.
    history_ : ndarray of shape (n_iter_,)
        The objective after each iteration, falling.
    kernel_rank_ : int
        Rank of G, up to rounding. A warning says if it is below k.
    {rounded}
    {notes}

    Examples
    --------
    >>> from mkclust import ONKC
    >>> from mkclust.datasets import load
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> model = ONKC(n_clusters=10, random_state=0).fit(views)
    >>> model.converged_, bool((model.history_[1:] <= model.history_[:-1]).all())
    (True, True)
    """

    reg: float = 1.0
    proximity: float = 1.0
    tol: float = 1e-3
    max_iter: int = 50

    SUMMARY = (
        "which learns a kernel near a mix of the given ones, in turn with a relaxed "
        "partition"
    )
    REFERENCES = (
        "X. Liu, S. Zhou, Y. Wang, M. Li, Y. Dou, E. Zhu, J. Yin. Optimal Neighborhood "
        "Kernel Clustering with Multiple Kernels. AAAI, 2017.",
    )
    SLOWNESS = 10
    GRID: ClassVar[dict[str, list]] = {
        "proximity": [2.0**e for e in range(-7, 10)],
        "reg": [2.0**e for e in range(-6, 8)],
    }
    ALLOWED: ClassVar[dict[str, Allowed]] = {
        "reg": Number(0),
        "proximity": Number(0, open_low=True),
    }
    SIMILARITIES = "the kernel learned near the mix of the kernels"
    MATRICES = 4

    def _solve(self, stack: Stack) -> Solution:
        options = self._options("reg", "proximity", "tol", "max_iter")
        return solve_onkc(stack, self.n_clusters, **options)

    def _mixed_among(self, stack: Stack, samples: np.ndarray | None) -> Array:
        H, rho = (
            to_device(self.embedding_, stack.kernels[0].like),
            float(self.proximity),
        )
        G = find_nearby_kernel(stack, self.weights_, H, rho).kernel
        return G if samples is None else select(select(G, samples), samples, axis=1)
