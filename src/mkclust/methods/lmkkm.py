"""LMKKM: every sample mixes the kernels by its own weights."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from scipy.linalg.blas import dsymv

from mkclust.engine.missed import relax_from
from mkclust.engine.relaxation import Relaxation
from mkclust.engine.row_simplex import RowMinimum, minimize_over_rows
from mkclust.linalg import (
    copy_array,
    empty,
    free_bytes,
    is_foreign,
    namespace,
    set_diagonal,
    to_device,
    to_host,
    zeros,
)
from mkclust.linalg.memory import require_memory
from mkclust.linalg.operators import MatrixOperator
from mkclust.methods.alternate import descend
from mkclust.methods.base import MultipleKernelClusterer
from mkclust.methods.fields import learned
from mkclust.methods.memory_checks import fit_bytes
from mkclust.methods.mixture import EIGEN_TOLERANCE
from mkclust.methods.solution import Solution
from mkclust.parameters import Allowed, Number
from mkclust.stack import KernelStack
from mkclust.types import Array, Float

# A relative change of the objective below this counts as none where no tolerance is given.
SETTLED = 1e-3
# Rows worked on at a time: enough for BLAS, few enough to stay in the cache.
BLOCK_ROWS = 64


def solve_lmkkm(
    stack: KernelStack, n_clusters: int, *, tol: float = 0.0, max_iter: int = 10
) -> Solution:
    r"""Minimize what a partition leaves unexplained of a kernel mixed sample by sample.

    .. math:: \min_{\Theta \ge 0,\, \Theta 1 = 1,\, H^\top H = I_k}
              \mathrm{Tr}(K_\Theta (I - H H^\top)), \qquad
              K_\Theta = \sum_p (\theta_p \theta_p^\top) \circ K_p

    H is the leading eigenvectors of :math:`K_\Theta`. For H fixed the objective is
    :math:`\sum_p \theta_p^\top ((I - H H^\top) \circ K_p)\, \theta_p`, a convex quadratic in the
    n x m entries of Theta, minimized by products with its m blocks. Each is the minimizer for the
    other fixed, so the objective falls to a stationary point.

    The kernels are written out: m + 1 matrices of n x n, and some five more for more than about
    n / 6 clusters. An iteration costs one
    eigenproblem of n x n, O(n^2 k) a product, O((m + k) n^2) for the blocks, and O(m n^2) a
    product with them: some 15 to 100 for a few kernels, and at most 1000. Products are few where
    kernels have a slowly falling spectrum, and many where the objective goes to zero.

    Parameters
    ----------
    stack : KernelStack
        The kernels.
    n_clusters : int
        Number of clusters, k.
    tol : float, default=0.0
        Relative change of the objective at which to stop. Zero runs all iterations, as the authors
        do; they count as converged where the last one changed the objective by less than 1e-3.
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
        Where the kernels do not fit into memory, before any of them is written out.

    References
    ----------
    .. [1] M. Gönen, A. A. Margolin. Localized Data Fusion for Kernel k-Means Clustering with
       Application to Cancer Biology. NIPS 2014.
    """
    localized = _localize(stack, n_clusters)
    descent = descend(
        localized.theta,
        localized.relax,
        localized.leave,
        localized.best_weights,
        localized.objective,
        tol=tol,
        max_iter=max_iter,
        recorded="after",
    )
    return Solution(
        partition=descent.relaxation.vectors[:, :n_clusters],
        weights=to_host(namespace(descent.weights).mean(descent.weights, axis=0)),
        objective=float(descent.history[-1]),
        history=descent.history,
        converged=_converged(descent.history, descent.converged, tol, localized.minimum),
        relaxation=descent.relaxation,
        sample_weights=np.ascontiguousarray(to_host(descent.weights)),
        n_iter=descent.n_iter,
        n_passes=1,
    )


def _converged(history: Float, stopped: bool, tol: float, minimum: RowMinimum) -> bool:
    """Return whether the objective has come to rest, and its minimum over the weights is known."""
    tol = tol or SETTLED
    # The last entry is half a step; it counts where there is no whole one.
    before, now = history[-3:-1] if len(history) > 2 else history
    minimum_is_certain = minimum.converged or minimum.gap < tol * minimum.value
    return bool(minimum_is_certain and (stopped or now == 0 or before - now < tol * before))


class _Localized(ABC):
    """The kernels, mixed by the weights of each sample, and what a partition leaves of them."""

    diagonals: Array  # of the kernels, (n, m)

    def __init__(self, stack: KernelStack, n_clusters: int) -> None:
        self.n_clusters = n_clusters
        self.theta = zeros((stack.n_samples, stack.n_kernels), stack.like) + 1 / stack.n_kernels
        self.start: Array | None = None
        self.minimum: RowMinimum

    @abstractmethod
    def mix(self, theta: Array) -> Array:
        """Return ``sum_p (theta_p theta_p^T) o K_p``, in the same memory each time."""

    @abstractmethod
    def leave(self, relaxation: Relaxation) -> "_Localized":
        """Compute what a partition leaves of each kernel, ``(I - H H^T) o K_p``."""

    @abstractmethod
    def multiply(self, theta: Array) -> Array:
        """Multiply what is left of each kernel with its column of weights."""

    def relax(self, theta: Array) -> Relaxation:
        """Return the leading eigenvectors of the mix."""
        self.theta = theta
        relaxation = relax_from(
            MatrixOperator(self.mix(theta)), self.n_clusters, tol=EIGEN_TOLERANCE, start=self.start
        )
        self.start = relaxation.vectors
        return relaxation

    def best_weights(self, _: "_Localized") -> Array:
        """Return the weights that minimize what is left."""
        # The diagonals bound the blocks: I o K_p - (I - H H^T) o K_p = H H^T o K_p, a product of
        # two positive semidefinite matrices entry by entry, which is positive semidefinite again.
        self.minimum = minimize_over_rows(self.multiply, self.diagonals, self.theta)
        return self.minimum.point

    def objective(self, theta: Array, _: "_Localized") -> float:
        """Return what is left of the mix; below zero is rounding."""
        return max(float(namespace(theta).sum(theta * self.multiply(theta))), 0.0)


class _OnHost(_Localized):
    """The same in half of the memory.

    Both are symmetric, so one array has room for both: the kernels above its diagonal, and on the
    diagonal and below what is left, the blocks of the quadratic program.
    """

    def __init__(self, stack: KernelStack, n_clusters: int) -> None:
        super().__init__(stack, n_clusters)
        n, m = stack.n_samples, stack.n_kernels
        self.both = np.empty((m, n, n))
        self.diagonals = np.empty((n, m), order="F")
        for p in range(m):
            self.both[p] = stack.kernel(p).dense()
            self.diagonals[:, p] = self.both[p].diagonal()
        self.mixed = np.empty((n, n))

    def mix(self, theta: Float) -> Float:
        """Return ``sum_p (theta_p theta_p^T) o K_p``, in the same memory each time."""
        T, mixed = np.ascontiguousarray(theta.T), self.mixed
        for first, last in _blocks(len(mixed)):
            upper = np.einsum(
                "pi,pj,pij->ij", T[:, first:last], T[:, first:], self.both[:, first:last, first:]
            )
            square = np.triu(upper[:, : last - first], 1)
            mixed[first:last, last:] = upper[:, last - first :]
            mixed[last:, first:last] = upper[:, last - first :].T
            mixed[first:last, first:last] = square + square.T
        np.fill_diagonal(mixed, (theta**2 * self.diagonals).sum(axis=1))
        return mixed

    def leave(self, relaxation: Relaxation) -> "_Localized":
        """Compute what a partition leaves of each kernel, ``(I - H H^T) o K_p``."""
        H = relaxation.vectors[:, : self.n_clusters]
        for first, last in _blocks(len(H)):
            rows, left = slice(first, last), -H[first:last] @ H[:last].T
            on_diagonal = np.eye(last - first) + left[:, first:]
            for K, diagonal in zip(self.both, self.diagonals.T, strict=True):
                np.multiply(left[:, :first], K[:first, rows].T, out=K[rows, :first])
                upper = np.triu(K[rows, rows], 1)
                square = on_diagonal * (upper.T + np.diag(diagonal[rows]))
                K[rows, rows] = upper + square
        return self

    def multiply(self, theta: Float) -> Float:
        """Multiply what is left of each kernel with its column of weights."""
        product = np.empty_like(theta, order="F")
        for p, K in enumerate(self.both):
            # The transposed view is what BLAS takes without a copy; its upper triangle is read.
            product[:, p] = dsymv(1.0, K.T, theta[:, p], lower=0)
        return product


class _OnDevice(_Localized):
    """The same by whole matrices: what is left is held, and kernels are written out anew.

    They are asked for twice an iteration, what is left of them as often as the quadratic program
    takes products.
    """

    def __init__(self, stack: KernelStack, n_clusters: int) -> None:
        super().__init__(stack, n_clusters)
        n, m, xp = stack.n_samples, stack.n_kernels, namespace(stack.like)
        self.kernels = [stack.kernel(p) for p in range(m)]
        # Copied, so that none of them keeps a whole kernel alive.
        diagonals = [copy_array(xp.linalg.diagonal(kernel.dense())) for kernel in self.kernels]
        self.diagonals = xp.stack(diagonals, axis=1)
        self.left = empty((m, n, n), stack.like)
        self.mixed = empty((n, n), stack.like)

    def mix(self, theta: Array) -> Array:
        """Return ``sum_p (theta_p theta_p^T) o K_p``, in the same memory each time."""
        self.mixed[:, :] = 0.0
        for p, kernel in enumerate(self.kernels):
            part = kernel.dense()
            part *= theta[:, p][:, None]
            part *= theta[:, p]
            self.mixed += part
        return self.mixed

    def leave(self, relaxation: Relaxation) -> "_OnDevice":
        """Compute what a partition leaves of each kernel, ``(I - H H^T) o K_p``."""
        H = relaxation.vectors[:, : self.n_clusters]
        rest = -H @ H.T
        set_diagonal(rest, namespace(H).linalg.diagonal(rest) + 1)
        for p, kernel in enumerate(self.kernels):
            self.left[p, :, :] = rest * kernel.dense()
        return self

    def multiply(self, theta: Array) -> Array:
        """Multiply what is left of each kernel with its column of weights."""
        products = [self.left[p, :, :] @ theta[:, p] for p in range(theta.shape[1])]
        return namespace(theta).stack(products, axis=1)


def _localize(stack: KernelStack, n_clusters: int, *, available: int | None = None) -> _Localized:
    """Return the kernels written out where they live, if there is room for them."""
    n, m = stack.n_samples, stack.n_kernels
    require_memory(
        fit_bytes(LMKKM, "precomputed", n, m, n_clusters),
        f"LMKKM, which writes out {m} kernels of {n} samples,",
        "use fewer samples or kernels, or a method that needs products only, such as MKKM",
        available=free_bytes(stack.like) if available is None else available,
    )
    return (_OnDevice if is_foreign(stack.like) else _OnHost)(stack, n_clusters)


def _blocks(n: int) -> list[tuple[int, int]]:
    """Return the first and the last row, exclusive, of each block of rows."""
    return [(first, min(first + BLOCK_ROWS, n)) for first in range(0, n, BLOCK_ROWS)]


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
        do; they count as converged where the last one changed the objective by less than 1e-3.
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
    The objective falls, but for rounding where it has settled:

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

    def _solve(self, stack: KernelStack) -> Solution:
        """Solve by block descent."""
        return solve_lmkkm(stack, self.n_clusters, tol=self.tol, max_iter=self.max_iter)

    @property
    def _mixes_kernels(self) -> bool:
        """Whether kernels are mixed: by the weights of both samples, without coefficients."""
        return True

    def _mixed_among(self, stack: KernelStack, samples: np.ndarray | None) -> Array:
        """Return the similarities among samples that exist, mixed by the weights of both."""
        theta = self.sample_weights_ if samples is None else self.sample_weights_[samples]
        entries = stack.entries(samples)
        T, mixed = to_device(theta.T, entries), zeros(entries.shape[1:], entries)
        for p in range(entries.shape[0]):
            mixed += entries[p, :, :] * T[p, :] * T[p, :][:, None]
        return mixed

    def _learned(
        self, stack: KernelStack, solution: Solution, labels: Array, *further: Array
    ) -> dict[str, Any]:
        """Return the weights of each sample."""
        return {"sample_weights_": solution.sample_weights}

    def _explain_stop(self, solution: Solution) -> str:
        """Say that the objective has not come to rest."""
        return f"after {solution.n_iter} iterations the objective still falls: raise max_iter"
