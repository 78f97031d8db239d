"""LMKKM: every sample mixes the kernels by its own weights."""

from typing import ClassVar

import numpy as np

from mkclust.engine.certificate import relax_from
from mkclust.engine.eigen import Relaxation
from mkclust.engine.row_simplex import minimize_over_rows
from mkclust.fit.base import RelaxedClusterer
from mkclust.fit.mixture import EIGEN_TOLERANCE
from mkclust.fit.solution import Solution
from mkclust.linalg import empty, namespace, to_device, to_host, zeros
from mkclust.parameters import Allowed, Number, learned
from mkclust.stack import DenseKernel, Mix, Stack, Standardization, Standardized
from mkclust.stack.kernel import row_blocks
from mkclust.types import Array, Float


def solve_lmkkm(
    stack: Stack, n_clusters: int, *, tol: float = 0.0, max_iter: int = 10
) -> Solution:
    r"""Minimize the objective of `LMKKM` over partition and weights in turns.

    For H fixed it is :math:`\sum_p \theta_p^\top ((I - H H^\top) \circ K_p)\,
    \theta_p`, a convex quadratic in Theta, minimized by products with its m blocks,
    which are stored.
    """
    n, m, like = stack.n_samples, stack.n_kernels, stack.kernels[0].like
    xp = namespace(like)
    diagonals = xp.stack([K.diagonal() for K in stack.kernels], axis=1)
    explained = empty((m, n, n), like)  # H H^T o K_p

    def relax(theta: Array, start: Array | None = None) -> Relaxation:
        mixed = DenseKernel(mix_by_samples(stack, theta).dense())
        return relax_from(mixed, n_clusters, tol=EIGEN_TOLERANCE, start=start)

    # (I - H H^T) o K_p with the weights of each kernel.
    def multiply(theta: Array) -> Array:
        products = [explained[p, :, :] @ theta[:, p] for p in range(m)]
        return diagonals * theta - xp.stack(products, axis=1)

    theta = zeros((n, m), like) + 1 / m
    relaxation, history = relax(theta), list[float]()
    while len(history) < max_iter and not (
        len(history) > 2 and _has_settled(history[-2:], tol)
    ):
        H = relaxation.vectors[:, :n_clusters]
        for part in row_blocks(stack.kernels):
            rows = H[part, :] @ H.T
            for p, kernel in enumerate(stack.kernels):
                explained[p, part, :] = rows * kernel.rows(part)
        # The diagonals bound the blocks: I o K_p - (I - H H^T) o K_p = H H^T o K_p is
        # positive semidefinite, an entrywise product of positive semidefinite matrices.
        minimum = minimize_over_rows(multiply, diagonals, theta)
        theta = minimum.point
        history.append(2 * minimum.value)
        relaxation = relax(theta, relaxation.vectors)
    history.append(max(float(xp.sum(diagonals * theta**2)) - relaxation.value, 0.0))
    # Without a tolerance, a last relative change of the objective below this counts as
    # converged.
    default_tolerance = 1e-3
    tol = tol or default_tolerance
    is_certain = minimum.converged or minimum.gap < tol * minimum.value
    # The last entry is half a step; it counts if there is no whole one.
    has_settled = _has_settled(history[-3:-1] if len(history) > 2 else history, tol)
    return Solution(
        partition=relaxation.vectors[:, :n_clusters],
        weights=to_host(xp.mean(theta, axis=0)),
        objective=history[-1],
        history=np.array(history),
        converged=is_certain and has_settled,
        relaxation=relaxation,
        kernel=mix_by_samples(stack, theta),
        n_iter=len(history) - 1,
        n_passes=2 * len(history),
        learned={"sample_weights_": to_host(theta)},
    )


def _has_settled(history: list[float], tol: float) -> bool:
    before, now = history
    return now == 0 or before - now < tol * before


def mix_by_samples(stack: Stack, theta: Array) -> Mix:
    """Return ``sum_p (theta_p theta_p^T) o K_p``, not written out."""
    kernels = [
        Standardized(
            kernel, Standardization(kernel.diagonal(), scale=theta[:, p] + 0.0)
        )
        for p, kernel in enumerate(stack.kernels)
    ]
    return Mix(np.ones(stack.n_kernels), kernels)


class LMKKM(RelaxedClusterer):
    r"""Localized multiple kernel k-means [1]_.

    .. math:: \min_{\Theta \ge 0,\, \Theta 1 = 1,\, H^\top H = I_k}
              \mathrm{Tr}(K_\Theta (I - H H^\top)), \qquad
              K_\Theta = \sum_p (\theta_p \theta_p^\top) \circ K_p

    Every sample has weights of its own. H and Theta are minimized over in turns, and
    the objective falls to a stationary point. As in MKKM, a kernel that k directions
    explain well takes most of the weight, and one of low rank may take it all. The
    method has no partition of new samples.

    Parameters
    ----------
    {inputs}
    tol : float, default=0.0
        Relative change of the objective at which to stop. Zero runs all iterations, as
        the authors do; they count as converged if the last one changed the objective by
        less than 1e-3.
    max_iter : int, default=10
        Most iterations.
    {rounding}
    {common}
    weights_ : ndarray of shape (n_kernels,)
        Means over samples, summing to one. Not importance: large if k directions
        explain it well.
    sample_weights_ : ndarray of shape (n_samples, n_kernels)
        The weights of each sample, Theta; every row sums to one.
    {descent}
    {rounded}
    {notes}

    Examples
    --------
    >>> from mkclust import LMKKM
    >>> from mkclust.datasets import load
    >>> views = [view[:300] for view in load("digits").views.values()]
    >>> LMKKM(n_clusters=10, random_state=0).fit(views).sample_weights_.shape
    (300, 4)
    """

    tol: float = 0.0
    max_iter: int = 10

    sample_weights_: Float = learned()

    SUMMARY = (
        "which mixes the kernels by weights of every sample, found in turn with a "
        "partition"
    )
    REFERENCES = (
        "M. Gönen, A. A. Margolin. Localized Data Fusion for Kernel k-Means Clustering "
        "with Application to Cancer Biology. NIPS, 2014.",
    )
    SLOWNESS = 10
    ALLOWED: ClassVar[dict[str, Allowed]] = {"tol": Number(0, 1, open_high=True)}
    SIMILARITIES = "the sum of the kernels by the weights of both samples"
    COPIES = 1

    def _solve(self, stack: Stack) -> Solution:
        return solve_lmkkm(stack, self.n_clusters, tol=self.tol, max_iter=self.max_iter)

    @property
    def _mixes_kernels(self) -> bool:
        return True

    def _mixed_among(self, stack: Stack, samples: np.ndarray | None) -> Array:
        theta = (
            self.sample_weights_ if samples is None else self.sample_weights_[samples]
        )
        held = stack if samples is None else stack.among(samples)
        return mix_by_samples(held, to_device(theta, held.kernels[0].like)).dense()
