"""The relaxed k-means problem of one kernel: its leading eigenvectors, by thin products alone."""

import sys
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mkclust.linalg import (
    MOST_DOUBT,
    astype,
    eigvalsh,
    empty,
    namespace,
    noise,
    orthonormalize,
    orthonormalize_ahead,
    precision_of,
    runs_ahead,
    side_by_side,
    to_device,
    to_host,
    top_eigenpairs,
)
from mkclust.linalg.operators import Operator
from mkclust.types import Array, Float

# Iterations without progress after which rounding is taken to have set a limit.
PATIENCE = 5
# Blocks of vectors that a Krylov space holds before it is restarted; where eigenvalues lie so
# close together that it gets nowhere, more of them.
KRYLOV_BLOCKS, MANY_KRYLOV_BLOCKS = 4, 12
# Where a device computes ahead, a step takes less time than what the host does about a restart, and
# there are more of them. So many steps at most are taken there between two looks at a Krylov space:
# as many as the error takes to fall to what is asked for, by such a factor each or by that of
# earlier steps, and half a step to spare.
BLOCKS_AHEAD, MOST_AHEAD, EXPECTED_FALL, SPARE_STEPS = 9, 6, 15.0, 0.5
# Factors that are believed.
LEAST_FALL, LARGEST_FALL = 5.0, 1000.0
# Where a matrix is in the memory of an accelerator, a product with so many vectors takes hardly
# longer than one with fewer.
WIDTH_ON_ACCELERATOR = 64


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
    residuals : array of shape (n_samples, b) or None
        By how much the vectors miss being eigenvectors, where that was found on the way.
    fall : float
        By which factor the error fell in each step on the way, or may be expected to.
    """

    n_clusters: int
    vectors: Array
    products: Array
    eigenvalues: Float
    error: float = 0.0
    residuals: Array | None = None
    fall: float = EXPECTED_FALL

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

    def astype(self, precision: str) -> "Relaxation":
        """Return the same with vectors in another precision."""
        arrays = {name: getattr(self, name) for name in ("vectors", "products", "residuals")}
        return replace(
            self, **{name: astype(a, precision) for name, a in arrays.items() if a is not None}
        )

    def gap_above(self, lower_bound: float) -> float:
        """Return how far, relatively, the value may lie above a lower bound of its minimum.

        Found below the bound, the value is known to be too small; what its residuals leave open
        stays an estimate, and counts in full.
        """
        distance = max(self.value - lower_bound, 0.0) + self.error
        return distance / self.value if distance else 0.0  # both may be zero

    @cached_property
    def rises(self) -> Float:
        """By how much eigenvalues may rise, at a distance of one from the rest of them, (b,).

        In proportion to squared residuals, since these are all but orthogonal.
        """
        R: Any = self.residuals
        gram = to_host(R.T @ R)
        lengths = np.sqrt(np.maximum(np.diag(gram), 0))
        used = lengths > 0
        if not used.any():
            return np.zeros(len(lengths))
        cosines = gram[np.ix_(used, used)] / np.outer(lengths[used], lengths[used])
        return lengths**2 * float(eigvalsh(cosines)[-1])

    def _gap(self, index: int) -> float:
        """Return the drop after the first ``index`` eigenvalues, NaN where there is none."""
        if not 0 < index < len(self.eigenvalues):
            return float("nan")
        above, below = self.eigenvalues[index - 1 : index + 1]
        return float((above - below) / above) if above > 0 else 0.0


def relax(
    operator: Operator,
    n_clusters: int,
    *,
    tol: float,
    start: Array | None = None,
    width: int | None = None,
) -> Relaxation:
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
        Orthonormal vectors to start from, such as those of a similar kernel; what they miss, they
        may go on missing (`mkclust.engine.missed.relax_from` searches for it).
    width : int, default=None
        How many vectors to iterate together; None takes as many as `block_width` says.

    Returns
    -------
    Relaxation
    """
    n = operator.shape[0]
    width = width or block_width(n, n_clusters)
    if width >= n:
        return relax_whole(operator.dense(), n_clusters)
    if start is not None:
        start = astype(start, precision_of_products(operator))
    vectors = _complete(operator, start, width)
    return improve(operator, rayleigh_ritz(operator, vectors, n_clusters), tol)


class Progress:
    """Whether something that should fall still does."""

    def __init__(self) -> None:
        self.stalled, self.waited = False, 0
        self._best = np.inf

    def note(self, value: float) -> None:
        """Take in the next value; a tenth less than at the last progress is progress."""
        if value < 0.9 * self._best:
            self._best, self.waited = value, 0
        else:
            self.waited += 1
        self.stalled = self.waited >= PATIENCE


def block_width(n: int, n_clusters: int) -> int:
    """Return how many vectors to iterate together, or n where the whole space is cheaper."""
    # Guard vectors carry what follows in the spectrum: they speed up the convergence, and they
    # hold the other partners of a tie.
    width = n_clusters + max(8, n_clusters // 4)
    return n if n <= 200 or 5 * width >= n else width


def block_width_on_accelerator(n: int, n_clusters: int) -> int:
    """Return how many vectors to iterate together with a matrix in an accelerator's memory."""
    width = block_width(n, n_clusters)
    return width if n <= 5 * WIDTH_ON_ACCELERATOR else max(width, WIDTH_ON_ACCELERATOR)


def _complete(operator: Operator, start: Array | None, width: int) -> Array:
    """Return orthonormal vectors to start from, as many as wanted."""
    n_given = 0 if start is None else start.shape[1]
    if n_given < width:
        drawn = noise((operator.shape[0], width - n_given), 0, operator.like)
        drawn = astype(drawn, precision_of_products(operator))
        # Images of random vectors lean towards the leading eigenvectors; where the matrix has too
        # low a rank for that, the random vectors themselves fill up.
        for fresh in (operator @ drawn, drawn):
            new = orthonormalize(fresh, start)
            start = new if start is None else side_by_side(start, new)
            if start.shape[1] >= width:
                break
    assert start is not None
    return start[:, :width]


def precision_of_products(operator: Operator) -> str:
    """Return the precision that vectors to multiply with need not exceed."""
    return "float32" if operator.is_rounded else "float64"


def relax_whole(M: Array, n_clusters: int) -> Relaxation:
    """Solve one kernel by a dense eigendecomposition."""
    values, vectors = top_eigenpairs(M, min(n_clusters + 1, M.shape[0]))
    return Relaxation(n_clusters, vectors, M @ vectors, values)


def rayleigh_ritz(operator: Operator, vectors: Array, n_clusters: int) -> Relaxation:
    """Return what orthonormal vectors know of the leading eigenvectors of a matrix."""
    products = operator @ vectors
    T = to_host(vectors.T @ products)
    values, S = top_eigenpairs((T + T.T) / 2, len(T), vectors)
    rotation = to_device(S, vectors, precision_of(vectors))
    return with_error_bound(vectors @ rotation, products @ rotation, values, n_clusters)


def improve(
    operator: Operator,
    start: Relaxation,
    tol: float,
    *,
    max_products: int = sys.maxsize,
    n_blocks: int = KRYLOV_BLOCKS,
) -> Relaxation:
    """Improve leading eigenvectors by block Krylov steps with one matrix (thick restarts).

    All that is as long as the samples is computed in the precision of the vectors to start from.
    """
    if start.error <= tol * start.value or max_products <= 0:
        return start
    space, progress = KrylovSpace(operator, start, n_blocks), Progress()
    progress.note(start.error)
    while space.error > tol * space.value and not progress.stalled and max_products > 0:
        if not space.has_room:
            space.restart()
        n_products = space.advance(min(space.n_ahead(tol), max_products))
        if not n_products:
            break  # an invariant subspace: the residuals are rounding
        max_products -= n_products
        progress.note(space.error)
    return space.relaxation() if space.n_products else start


class KrylovSpace:
    """A block Krylov space: an orthonormal basis Q with ``A Q = Q T`` but for its last block.

    Of the last block something is left, ``A Q_last = Q T_last + F``, and the residuals of all Ritz
    vectors are parts of that rest: neither they nor products have to be written out to tell how
    accurate the Ritz vectors are. A device may take several steps between two looks at T.
    """

    def __init__(self, operator: Operator, start: Relaxation, n_blocks: int):
        n, width = start.vectors.shape
        self.operator, self.n_clusters, self.width = operator, start.n_clusters, width
        self._runs_ahead = runs_ahead(start.vectors)
        if self._runs_ahead:
            n_blocks = max(n_blocks, BLOCKS_AHEAD)
        self.capacity = max(KRYLOV_BLOCKS * width, min(n_blocks * width, n // 4))
        self.n_products, self.size, self.last = 0, width, slice(0, width)
        self.rows = empty((self.capacity, n), start.vectors, precision_of(start.vectors))
        self.rows[:width, :] = start.vectors.T
        self.T = np.zeros((self.capacity, self.capacity))
        self.T[:width, :width] = np.diag(start.eigenvalues)
        self.rest: Any = start.residuals
        self.rest_gram: Any = None
        self.values, self.S, self.error = start.eigenvalues, np.eye(width), start.error
        # What the residuals of Ritz vectors are of the rest.
        self.shares_of_rest: Float = self.S
        self._is_careful = False
        self._first_error, self._expected_fall = start.error, start.fall
        self._note_seen()

    @property
    def value(self) -> float:
        """Sum of the k largest Ritz values."""
        return float(self.values[: self.n_clusters].sum())

    @property
    def has_room(self) -> bool:
        """Whether another block fits."""
        return self.size + self.width <= self.capacity

    def n_ahead(self, tol: float) -> int:
        """Return how many products to take before the next look: several where looks cost time."""
        excess = self.error / self.value / tol if tol * self.value > 0 else np.inf
        if not self._runs_ahead or not 1 < excess < np.inf:
            return 1
        n_steps = np.log(excess) / np.log(self._expected_fall) + SPARE_STEPS
        return int(np.clip(np.ceil(n_steps), 1, MOST_AHEAD))

    def advance(self, most: int) -> int:
        """Expand, as long as there is room, so many times at most, and look; return how often."""
        before = self.n_products
        while self.n_products < before + most and self.has_room and self.expand():
            pass
        self.look()
        return self.n_products - before

    def expand(self) -> bool:
        """Take in what is left of the last block, by one product; return whether anything is."""
        basis = self.rows[: self.size, :].T
        ahead = None
        if not self._is_careful:
            ahead = orthonormalize_ahead(self.rest, basis, self.rest_gram)
        new, doubts = (orthonormalize(self.rest, basis), None) if ahead is None else ahead
        if not new.shape[1]:
            return False
        self.last = slice(self.size, self.size + new.shape[1])
        self.size, self.n_products = self.last.stop, self.n_products + 1
        self.rows[self.last, :] = new.T
        images, known = self.operator @ new, self.rows[: self.size, :]
        shares = known @ images
        self.rest = images - known.T @ shares
        self.rest_gram = self.rest.T @ self.rest
        self._unseen.append((shares, doubts))
        return True

    def look(self) -> None:
        """Find the Ritz vectors, and how accurate they are."""
        if not self._unseen:
            return
        together = [to_host(part) for pair in self._unseen for part in pair if part is not None]
        gram = to_host(self.rest_gram)
        if any(part.ndim == 1 and not np.all(part <= MOST_DOUBT) for part in together):
            self._repeat()
            return
        for shares in together:
            if shares.ndim == 2:
                last = slice(shares.shape[0] - shares.shape[1], shares.shape[0])
                self.T[: last.stop, last] = shares
                self.T[last, : last.start] = shares[: last.start].T
        T = self.T[: self.size, : self.size]
        self.values, self.S = top_eigenpairs((T + T.T) / 2, self.width, self.rows)
        self.shares_of_rest = self.S[self.last]
        squares = np.sum(self.shares_of_rest * (gram @ self.shares_of_rest), axis=0)
        lengths = np.sqrt(np.maximum(squares, 0))
        self.error = error_bound(self.values, lengths, self.n_clusters)
        self._note_seen()

    def _note_seen(self) -> None:
        """Note where to go back to where a block turns out to have lost directions."""
        self._seen = self.size, self.last, self.rest, self.rest_gram
        self._unseen: list[tuple[Array, Array | None]] = []

    def _repeat(self) -> None:
        """Take the steps since the last look once more: now each block is looked at."""
        n_steps, self._is_careful = len(self._unseen), True
        self.size, self.last, self.rest, self.rest_gram = self._seen
        self.n_products -= n_steps
        self._unseen = []
        self.advance(n_steps)

    def restart(self) -> None:
        """Make room: keep the Ritz vectors, whose residuals are parts of the rest."""
        self.rows[: self.width, :] = self._ritz_vectors().T
        self.size, self.S = self.width, np.eye(self.width)
        self.T[: self.size, : self.size] = np.diag(self.values)
        self._is_careful = False
        self._note_seen()

    def _ritz_vectors(self) -> Array:
        """Return the Ritz vectors, (n, width)."""
        rotation = to_device(self.S, self.rows, precision_of(self.rows))
        return (rotation.T @ self.rows[: self.size, :]).T

    def relaxation(self) -> Relaxation:
        """Return the Ritz vectors, and what is known of them."""
        self.look()
        precision, vectors = precision_of(self.rows), self._ritz_vectors()
        residuals = self.rest @ to_device(self.shares_of_rest, self.rows, precision)
        products = vectors * to_device(self.values, vectors, precision) + residuals
        found = vectors, products, self.values, self.error, residuals
        return Relaxation(self.n_clusters, *found, fall=self._fall())

    def _fall(self) -> float:
        """Return by which factor the error fell in each step."""
        if not 0 < self.error < self._first_error:
            return EXPECTED_FALL
        factor = (self._first_error / self.error) ** (1 / max(self.n_products, 1))
        return float(np.clip(factor, LEAST_FALL, LARGEST_FALL))


def with_error_bound(vectors: Array, products: Array, values: Float, n_clusters: int) -> Relaxation:
    """Return a relaxation with the error that its residuals leave open."""
    residuals = products - vectors * to_device(values, vectors, precision_of(vectors))
    lengths = np.sqrt(to_host(namespace(residuals).sum(residuals * residuals, axis=0)))
    error = error_bound(values, lengths, n_clusters)
    return Relaxation(n_clusters, vectors, products, values, error, residuals)


def error_bound(values: Float, lengths: Float, n_clusters: int) -> float:
    """Return by how much a sum of Ritz values may be too small, by the lengths of residuals.

    An eigenvalue lies within the residual, and within its square over the distance to the part of
    the spectrum that the block does not hold, which begins about where the block ends.
    """
    outside = values[-1] + lengths[-1]
    lengths = lengths[:n_clusters]
    distance = np.maximum(values[:n_clusters] - outside, lengths)
    distance[distance == 0] = 1
    return float((lengths**2 / distance).sum())
