"""LMKKM: every sample mixes the kernels by its own weights."""

from typing import Any, ClassVar

import numpy as np

from mkclust.engine.certificate import relax_from
from mkclust.engine.eigen import Relaxation
from mkclust.engine.row_simplex import RowMinimum, minimize_over_rows
from mkclust.linalg import empty, free_bytes, namespace, to_device, to_host, zeros
from mkclust.linalg.memory import require_memory
from mkclust.methods.alternate import descend
from mkclust.methods.base import MultipleKernelClusterer
from mkclust.methods.fields import learned
from mkclust.methods.mixture import EIGEN_TOLERANCE
from mkclust.methods.solution import Solution
from mkclust.parameters import Allowed, Number
from mkclust.stack import Array as DenseKernel
from mkclust.stack import Mix, Stack, Standardization, Standardized
from mkclust.stack.kernel import dense_of, row_blocks
from mkclust.types import Array, Float

# Without a tolerance, an objective that changes relatively by less has converged.
DEFAULT_TOLERANCE = 1e-3


def solve_lmkkm(stack: Stack, n_clusters: int, *, tol: float = 0.0, max_iter: int = 10) -> Solution:
    r"""Minimize what a partition leaves unexplained of a kernel mixed sample by sample.

    .. math:: \min_{\Theta \ge 0,\, \Theta 1 = 1,\, H^\top H = I_k}
              \mathrm{Tr}(K_\Theta (I - H H^\top)), \qquad
              K_\Theta = \sum_p (\theta_p \theta_p^\top) \circ K_p

    H is the leading eigenvectors of :math:`K_\Theta`. For H fixed the objective is
    :math:`\sum_p \theta_p^\top ((I - H H^\top) \circ K_p)\, \theta_p`, a convex quadratic in the
    n x m entries of Theta, minimized by products with its m blocks. Each is the minimizer for the
    other fixed, so the objective falls to a stationary point.

    The blocks are written out: m + 1 matrices of n x n, and some five more for more than about
    n / 6 clusters. An iteration costs one eigenproblem of n x n, O(n^2 k) per product,
    O((m + k) n^2) for the blocks, and O(m n^2) per product with them: some 15 to 100 for a few
    kernels, and at most 1000. Products are few if kernels have a slowly falling spectrum, and many
    if the objective goes to zero.

    Parameters
    ----------
    stack : Stack
        The kernels.
    n_clusters : int
        Number of clusters, k.
    tol : float, default=0.0
        Relative change of the objective at which to stop. Zero runs all iterations, as the authors
        do; they count as converged if the last one changed the objective by less than 1e-3.
    max_iter : int, default=10
        Most iterations.

    Returns
    -------
    Solution
        Its history is the objective after each update of the weights, and that of the final pair;
        ``sample_weights`` is Theta, and ``weights`` its column means.

    Raises
    ------
    MemoryError
        If the blocks do not fit into memory, before any of them is written out.
    """
    problem = _Localized(stack, n_clusters)
    descent = descend(
        problem.theta,
        problem.relax,
        problem.compute_unexplained_kernels,
        problem.best_weights,
        problem.objective,
        tol=tol,
        max_iter=max_iter,
        recorded="after",
    )
    return Solution(
        partition=descent.relaxation.vectors[:, :n_clusters],
        weights=to_host(namespace(descent.weights).mean(descent.weights, axis=0)),
        objective=float(descent.history[-1]),
        history=descent.history,
        converged=_converged(descent.history, descent.converged, tol, problem.minimum),
        relaxation=descent.relaxation,
        sample_weights=np.ascontiguousarray(to_host(descent.weights)),
        n_iter=descent.n_iter,
        n_passes=2 * descent.n_iter + 2,
    )


def _converged(history: Float, stopped: bool, tol: float, minimum: RowMinimum) -> bool:
    """Return whether the objective has settled, and its minimum over the weights is known."""
    tol = tol or DEFAULT_TOLERANCE
    # The last entry is half a step; it counts if there is no whole one.
    before, now = history[-3:-1] if len(history) > 2 else history
    is_certain = minimum.converged or minimum.gap < tol * minimum.value
    return bool(is_certain and (stopped or now == 0 or before - now < tol * before))


def mix_by_samples(stack: Stack, theta: Array) -> Mix:
    """Return ``sum_p (theta_p theta_p^T) o K_p``, not written out: each kernel between scales."""
    kernels = [
        Standardized(kernel, Standardization(kernel.diagonal(), scale=theta[:, p] + 0.0))
        for p, kernel in enumerate(stack.kernels)
    ]
    return Mix(np.ones(stack.n_kernels), kernels)


class _Localized:
    """The problem of one solve, with the memory that its iterations share."""

    def __init__(self, stack: Stack, n_clusters: int) -> None:
        n, m, like = stack.n_samples, stack.n_kernels, stack.kernels[0].like
        require_memory(
            8 * (m + 1) * n**2,
            f"LMKKM, which writes out {m} kernels of {n} samples,",
            "use fewer samples or kernels, or a method that needs products only, such as MKKM",
            available=free_bytes(like),
        )
        self.stack, self.n_clusters = stack, n_clusters
        self.theta = zeros((n, m), like) + 1 / m
        self.diagonals = namespace(like).stack([K.diagonal() for K in stack.kernels], axis=1)
        self.explained = empty((m, n, n), like)  # H H^T o K_p
        self.start: Array | None = None
        self.minimum: RowMinimum

    def relax(self, theta: Array) -> Relaxation:
        """Return the leading eigenvectors of the mix."""
        self.theta = theta
        mixed = DenseKernel(dense_of(mix_by_samples(self.stack, theta)))
        relaxation = relax_from(mixed, self.n_clusters, tol=EIGEN_TOLERANCE, start=self.start)
        self.start = relaxation.vectors
        return relaxation

    def compute_unexplained_kernels(self, relaxation: Relaxation) -> None:
        """Compute what a partition explains of each kernel, and so what is left of it."""
        H = relaxation.vectors[:, : self.n_clusters]
        for part in row_blocks(self.stack.kernels):
            rows = H[part, :] @ H.T
            for p, kernel in enumerate(self.stack.kernels):
                self.explained[p, part, :] = rows * kernel.rows(part)

    def multiply(self, theta: Array) -> Array:
        """Multiply ``(I - H H^T) o K_p`` with the weights of each kernel, (n, m)."""
        products = [self.explained[p, :, :] @ theta[:, p] for p in range(theta.shape[1])]
        return self.diagonals * theta - namespace(theta).stack(products, axis=1)

    def best_weights(self, _: None) -> Array:
        """Return the weights that leave the least unexplained."""
        # The diagonals bound the blocks: I o K_p - (I - H H^T) o K_p = H H^T o K_p, a product of
        # two positive semidefinite matrices entry by entry, which is positive semidefinite again.
        self.minimum = minimize_over_rows(self.multiply, self.diagonals, self.theta)
        return self.minimum.point

    def objective(self, theta: Array, _: None) -> float:
        """Return what is left of the mix; a negative value is rounding."""
        return max(float(namespace(theta).sum(theta * self.multiply(theta))), 0.0)


class LMKKM(MultipleKernelClusterer):
    r"""Localized multiple kernel k-means [1]_.

    .. math:: \min_{\Theta \ge 0,\, \Theta 1 = 1,\, H^\top H = I_k}
              \mathrm{Tr}(K_\Theta (I - H H^\top)), \qquad
              K_\Theta = \sum_p (\theta_p \theta_p^\top) \circ K_p

    Every sample has weights of its own. As in MKKM, a kernel that k directions explain well takes
    most of the weight, and one of low rank may take it all. The problem is not convex; the result
    is a stationary point. The method needs the kernels written out, and it has no partition of
    samples it has not seen.

    Parameters
    ----------
    {inputs}
    {neighbors}
    tol : float, default=0.0
        Relative change of the objective at which to stop. Zero runs all iterations, as the authors
        do; they count as converged if the last one changed the objective by less than 1e-3.
    max_iter : int, default=10
        Most iterations.
    {seeds}
    {tables}

    Attributes
    ----------
    {labels}
    weights_ : ndarray of shape (n_kernels,)
        Means of the samples' weights, summing to one. Not importance: a large weight means that k
        directions explain the kernel well.
    sample_weights_ : ndarray of shape (n_samples, n_kernels)
        The weights of each sample, Theta; every row sums to one.
    objective_ : float
        ``Tr(K (I - H H^T))`` of the mixed kernel.
    history_ : ndarray of shape (n_iter_ + 1,)
        The objective after each update of the weights, falling; the last is that of the final pair.
    {notes}

    References
    ----------
    {references}

    Examples
    --------
    The objective falls, up to rounding once it has settled:

    >>> import numpy as np
    >>> from mkclust import LMKKM
    >>> from mkclust.datasets import load
    >>> views = [view[:300] for view in load("digits").views.values()]
    >>> model = LMKKM(n_clusters=10, random_state=0).fit(views)
    >>> model.sample_weights_.shape, bool(np.diff(model.history_).max() < 1e-12)
    ((300, 4), True)
    """

    tol: float = 0.0
    max_iter: int = 10

    sample_weights_: Float = learned()

    SUMMARY: ClassVar[str] = (
        "which mixes the kernels by weights of their own for every sample, found in turn with a "
        "relaxed partition"
    )
    REFERENCES: ClassVar[tuple[str, ...]] = (
        "M. Gönen, A. A. Margolin. Localized Data Fusion for Kernel k-Means Clustering with "
        "Application to Cancer Biology. NIPS, 2014.",
    )
    SLOWNESS: ClassVar[int] = 10
    ALLOWED: ClassVar[dict[str, Allowed]] = {"tol": Number(0, 1, open_high=True)}
    SIMILARITIES: ClassVar[str] = "the sum of the kernels by the weights of both samples"
    COPIES: ClassVar[int] = 1

    def _solve(self, stack: Stack) -> Solution:
        """Solve by block descent."""
        return solve_lmkkm(stack, self.n_clusters, tol=self.tol, max_iter=self.max_iter)

    @property
    def _mixes_kernels(self) -> bool:
        """Whether kernels are mixed: by the weights of both samples, without coefficients."""
        return True

    def _mixed_among(self, stack: Stack, samples: np.ndarray | None) -> Array:
        """Return the similarities among samples that exist, mixed by the weights of both."""
        theta = self.sample_weights_ if samples is None else self.sample_weights_[samples]
        held = stack if samples is None else stack.among(samples)
        return dense_of(mix_by_samples(held, to_device(theta, held.kernels[0].like)))

    def _learned(
        self, stack: Stack, solution: Solution, labels: Array, *further: Array
    ) -> dict[str, Any]:
        """Return the weights of each sample."""
        return {"sample_weights_": solution.sample_weights}

    def _explain_stop(self, solution: Solution) -> str:
        """Say that the objective has not settled."""
        return f"after {solution.n_iter} iterations the objective still falls: raise max_iter"
