"""The relaxed k-means problem of one kernel: its leading eigenvectors, by thin products alone."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mkclust.linalg import inner, orthonormalize, to_host, top_eigenpairs
from mkclust.types import Array, Float

# Iterations without progress after which rounding is taken to have set a limit.
PATIENCE = 5


@dataclass(frozen=True)
class Relaxation:
    """The relaxed k-means clustering of one kernel: its leading eigenvectors.

    Attributes
    ----------
    n_clusters : int
        How many of the eigenvectors make up the partition, k.
    vectors : array of shape (n_samples, b)
        Orthonormal; the first k are the partition, the others follow in the spectrum.
    products : array of shape (n_samples, b)
        The kernel times the vectors.
    eigenvalues : ndarray of shape (b,)
        Falling.
    error : float
        By how much the eigenvalue sum may still be too small, judged by the residuals.
    """

    n_clusters: int
    vectors: Array
    products: Array
    eigenvalues: Float
    error: float = 0.0

    @property
    def value(self) -> float:
        """Sum of the k largest eigenvalues."""
        return float(self.eigenvalues[: self.n_clusters].sum())

    @property
    def eigengap(self) -> float:
        """Relative gap between the k-th eigenvalue and the next: J is smooth where it is open."""
        return self._gap(self.n_clusters)

    @property
    def cluster_gap(self) -> float:
        """Relative gap between eigenvalues k - 1 and k, where k centered clusters show."""
        return self._gap(self.n_clusters - 1)

    def _gap(self, index: int) -> float:
        """Return the drop after the first ``index`` eigenvalues, NaN where there is none."""
        if not 0 < index < len(self.eigenvalues):
            return float("nan")
        above, below = self.eigenvalues[index - 1 : index + 1]
        return float((above - below) / above) if above > 0 else 0.0


def relax(operator: Any, n_clusters: int, *, tol: float, start: Array | None = None) -> Relaxation:
    """Solve the relaxed k-means problem of one kernel: find its leading eigenvectors.

    Parameters
    ----------
    operator : Operator
        The kernel, as something that supports ``@``.
    n_clusters : int
        Number of eigenvectors wanted, k.
    tol : float
        Relative error allowed in the sum of the k largest eigenvalues.
    start : array of shape (n_samples, b), default=None
        Orthonormal vectors to start from, such as those of a similar kernel.

    Returns
    -------
    Relaxation
    """
    n = operator.shape[0]
    width = block_width(n, n_clusters)
    if width >= n:
        return relax_whole(operator.dense(), n_clusters)
    start = _complete(operator, start, width)
    return improve(operator, start, operator @ start, n_clusters, tol)


class Progress:
    """Whether something that should fall still does."""

    def __init__(self) -> None:
        self.stalled = False
        self._best, self._waited = np.inf, 0

    def note(self, value: float) -> None:
        """Take in the next value; a tenth less than the best so far counts as progress."""
        self._waited = 0 if value < 0.9 * self._best else self._waited + 1
        self._best = min(value, self._best)
        self.stalled = self._waited >= PATIENCE


def block_width(n: int, n_clusters: int) -> int:
    """Return how many vectors to iterate together, or n where the whole space is cheaper."""
    # Guard vectors carry what follows in the spectrum: they speed up the convergence, and they
    # hold the other partners of a tie.
    width = n_clusters + max(8, n_clusters // 4)
    return n if n <= 200 or 5 * width >= n else width


def _complete(operator: Any, start: Array | None, width: int) -> Array:
    """Return orthonormal vectors to start from, as many as wanted."""
    known = 0 if start is None else start.shape[1]
    if known < width:
        noise = np.random.default_rng(0).standard_normal((operator.shape[0], width - known))
        # Images of random vectors lean towards the leading eigenvectors; where the matrix has too
        # low a rank for that, the random vectors themselves fill up.
        for fresh in (operator @ noise, noise):
            new = orthonormalize(fresh, start)
            start = new if start is None else np.hstack([start, new])
    assert start is not None
    return start[:, :width]


def relax_whole(M: Float, n_clusters: int) -> Relaxation:
    """Solve one kernel by a dense eigendecomposition."""
    values, vectors = top_eigenpairs(M, min(n_clusters + 1, len(M)))
    return Relaxation(n_clusters, vectors, M @ vectors, values)


def improve(
    operator: Any, vectors: Array, products: Array, n_clusters: int, tol: float
) -> Relaxation:
    """Improve leading eigenvectors by block Krylov steps with one matrix (thick restarts)."""
    n, width = vectors.shape
    capacity = 5 * width
    rows, images = np.empty((capacity, n)), np.empty((capacity, n))
    T = np.zeros((capacity, capacity))
    size, progress = width, Progress()
    rows[:width], images[:width] = vectors.T, products.T
    T[:width, :width] = inner(vectors, products)
    while True:
        values, S = top_eigenpairs((T[:size, :size] + T[:size, :size].T) / 2, width)
        vectors, products = (S.T @ rows[:size]).T, (S.T @ images[:size]).T
        current = judged(vectors, products, values, n_clusters)
        progress.note(current.error)
        if current.error <= tol * current.value or progress.stalled:
            return current
        if size + width > capacity:
            rows[:width], images[:width] = vectors.T, products.T
            T[:width, :width] = np.diag(values)
            size = width
        new = orthonormalize(products - vectors * values, rows[:size].T)
        if not new.shape[1]:
            return current  # an invariant subspace: the residuals are rounding
        fresh = operator @ new
        end = size + new.shape[1]
        rows[size:end], images[size:end] = new.T, fresh.T
        T[:end, size:end] = inner(rows[:end].T, fresh)
        T[size:end, :size] = T[:size, size:end].T
        size = end


def judged(vectors: Array, products: Array, values: Float, n_clusters: int) -> Relaxation:
    """Return a relaxation with the error that its residuals leave open."""
    residuals = products - vectors * values
    lengths = np.sqrt(to_host((residuals**2).sum(axis=0)))
    # An eigenvalue lies within the residual, and within its square over the distance to the part
    # of the spectrum that the block does not hold, which begins about where the block ends.
    outside = values[-1] + lengths[-1]
    lengths = lengths[:n_clusters]
    distance = np.maximum(values[:n_clusters] - outside, lengths)
    distance[distance == 0] = 1
    return Relaxation(n_clusters, vectors, products, values, float((lengths**2 / distance).sum()))
