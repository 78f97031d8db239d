"""The relaxed k-means problem of one kernel: leading eigenvectors, by thin products.

One routine serves for all: block Krylov spaces, restarted from their Ritz vectors. Of a
kernel it asks ``K @ V``, ``K.n_samples`` and ``K.like``, and ``K.dense()`` if the whole
space is cheaper.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mkclust.engine.protocol import KernelLike, Operator
from mkclust.linalg import (
    EPS,
    FEW_SAMPLES,
    astype,
    eigvalsh,
    empty,
    hstack,
    namespace,
    orthonormalize,
    precision_of,
    random_normal,
    random_signs,
    sum_of_squares,
    to_device,
    to_host,
    top_eigenpairs,
    zeros,
)
from mkclust.types import Array, Float


@dataclass(frozen=True)
class Relaxation:
    """The relaxed k-means clustering of one kernel: its leading eigenvectors."""

    n_clusters: int  # how many of the eigenvectors make up the partition, k
    # Orthonormal, (n_samples, b); the first k are the partition, the others follow in
    # the spectrum.
    vectors: Array
    eigenvalues: Float  # falling, (b,)
    # By how much the sum of the first k may be too small, judged by the residuals.
    error: float = 0.0
    # K V - V diag(eigenvalues); None if the vectors are those of a dense
    # eigendecomposition.
    residuals: Any = None

    @property
    def value(self) -> float:
        """Sum of the k largest eigenvalues."""
        return float(self.eigenvalues[: self.n_clusters].sum())

    @property
    def products(self) -> Array:
        """The kernel times the vectors, (n_samples, b)."""
        V = self.vectors
        scaled = V * to_device(self.eigenvalues, V, precision_of(V))
        if self.residuals is None:
            return scaled
        return scaled + self.residuals

    # Relative gap after the k-th eigenvalue: open if J is smooth.
    eigengap = property(lambda self: self._gap(self.n_clusters))
    # Relative gap before the k-th eigenvalue, where k centered clusters show.
    cluster_gap = property(lambda self: self._gap(self.n_clusters - 1))

    def gap_above(self, lower_bound: float) -> float:
        """Return how far the value may lie above a lower bound, as a share of it."""
        distance = max(self.value - lower_bound, 0.0) + self.error
        if not distance:
            return 0.0  # the value may be zero, too
        return distance / self.value

    def _gap(self, index: int) -> float:
        """Return the drop after the first eigenvalues, NaN if there is none."""
        if not 0 < index < len(self.eigenvalues):
            return float("nan")
        above, below = self.eigenvalues[index - 1 : index + 1]
        return float((above - below) / above) if above > 0 else 0.0


def relax(
    K: KernelLike,
    n_clusters: int,
    *,
    tol: float,
    width: int | None = None,
    start: Array | None = None,
    products: Array | None = None,
    dtype: str = "float64",
) -> Relaxation:
    """Solve the relaxed k-means problem of one kernel: find its leading eigenvectors.

    The tolerance is the relative error allowed in the sum of the k largest eigenvalues.
    Directions orthogonal to `start` may never be found
    (`mkclust.engine.certificate.relax_from` searches for them); `products` are those of
    the kernel with it, if they are known. Arrays of length n use `dtype`; `width`
    vectors are returned, by default `block_width`.
    """
    width = width or block_width(K.n_samples, n_clusters)
    if width >= K.n_samples:
        return relax_whole(K.dense(), n_clusters)
    vectors = _complete(K, start, width, dtype)
    return improve(K, rayleigh_ritz(K, vectors, n_clusters, products), tol)


def _complete(
    K: Operator,
    start: Array | None,
    width: int,
    dtype: str = "float64",
) -> Array:
    """Return orthonormal vectors to start from, of which some may be given."""
    if start is None:
        start = zeros((K.n_samples, 0), K.like, dtype)
    vectors = astype(start, dtype)
    n_drawn = width - vectors.shape[1]
    if n_drawn > 0:
        drawn = random_signs((K.n_samples, n_drawn), K.like, dtype)
        # Images of random vectors lean towards the leading eigenvectors; if the rank is
        # too low for that, the random vectors themselves fill up.
        for fresh in (K @ drawn, drawn):
            if vectors.shape[1] < width:
                vectors = hstack(vectors, orthonormalize(fresh, vectors))
    return vectors[:, :width]


def block_width(n: int, n_clusters: int, *, wide: bool = False) -> int:
    """Return how many vectors to iterate together, or n if the whole space is cheaper.

    A ``wide`` block is for an accelerator, which multiplies 64 vectors as fast as few:
    with more of them, weights take fewer passes over all kernels, and searches fewer
    steps.
    """
    # Guard vectors speed up the convergence, shorten searches, and hold the partners of
    # a tie.
    n_guards = n_clusters // 4
    width = n_clusters + max(8, n_guards)
    if wide and n >= 8000:
        n_wanted = n_clusters + max(16, n_guards)
        width = 64 * -(-n_wanted // 64)
    if n <= 200 or 5 * width >= n:
        return n
    return width


def relax_whole(M: Array, n_clusters: int) -> Relaxation:
    """Solve one kernel, given as an array, by a dense eigendecomposition."""
    count = min(n_clusters + 1, M.shape[0])
    values, vectors = top_eigenpairs(M, count)
    return Relaxation(n_clusters, vectors, values)


def rayleigh_ritz(
    K: Operator,
    vectors: Array,
    n_clusters: int,
    products: Array | None = None,
) -> Relaxation:
    """Return the Ritz vectors of a kernel in the span of orthonormal vectors.

    The ``products`` with the first of the vectors may be known.
    """
    if products is None:
        products = K @ vectors
    else:
        n_known = min(products.shape[1], vectors.shape[1])
        products = astype(products[:, :n_known], precision_of(vectors))
        if n_known < vectors.shape[1]:
            new = K @ vectors[:, n_known:]
            products = hstack(products, new)
    T = to_host(vectors.T @ products)
    values, S = top_eigenpairs((T + T.T) / 2, len(T), vectors)
    rotation = to_device(np.ascontiguousarray(S), vectors, precision_of(vectors))
    return ritz_vectors(n_clusters, vectors @ rotation, products @ rotation, values)


def ritz_vectors(
    n_clusters: int,
    vectors: Array,
    products: Array,
    values: Float,
) -> Relaxation:
    """Return Ritz vectors with their residuals, and the error that these leave open."""
    scales = to_device(values, vectors, precision_of(vectors))
    residuals = products - vectors * scales
    xp = namespace(residuals)
    lengths = np.sqrt(to_host(xp.sum(residuals * residuals, axis=0)))
    error = error_of_sum(values, lengths, n_clusters)
    return Relaxation(n_clusters, vectors, values, error, residuals)


def error_of_sum(values: Float, lengths: Float, n_clusters: int) -> float:
    """Return by how much a sum of Ritz values may be too small, by their residuals.

    An eigenvalue is at most a residual away, and at most its square over the distance
    to the spectrum outside of the block, which begins about where the block ends.
    """
    outside = values[-1] + lengths[-1]
    lengths = lengths[:n_clusters]
    distance = np.maximum(values[:n_clusters] - outside, lengths)
    return float((lengths**2 / np.where(distance > 0, distance, 1)).sum())


def improve(
    K: Operator,
    start: Relaxation,
    tol: float,
    *,
    max_products: int = 1000,
) -> Relaxation:
    """Improve leading eigenvectors until the error of their sum is a share of it."""
    goal = max(tol, EPS) * start.value
    if start.error <= goal:
        return start
    space = Krylov(K, start)
    best = start.error
    n_waited = 0
    # After five decompositions without progress rounding has set a limit.
    while space.error > goal and space.n_products < max_products and n_waited < 5:
        # A step reduces the error about tenfold; a decomposition takes as long as one.
        ratio = space.error / max(goal, EPS * space.error)
        digits = np.ceil(np.log10(ratio))
        n_steps = int(np.clip(digits, 1, 4))
        for _ in range(n_steps):
            if not space.expand():
                max_products = 0  # an invariant space: the residuals are rounding
        space.decompose()

        n_waited = 0 if space.error < 0.9 * best else n_waited + 1
        best = min(best, space.error)
    return space.relaxation()


class Krylov:
    """A block Krylov space: an orthonormal Q with ``K Q = Q T`` but for its last block.

    ``K Q_last = Q T_last + rest``, so the residuals of all Ritz vectors are parts of
    the rest: products with the basis are neither kept nor computed again. It is
    restarted when it holds ``most_vectors``. It begins with ``rest``, by default the
    residuals of the start.
    """

    def __init__(
        self,
        K: Operator | Array,
        start: Relaxation,
        most_vectors: int | None = None,
        rest: Array | None = None,
    ):
        n, self.width = start.vectors.shape
        self.kernel = K
        self.n_clusters = start.n_clusters
        self.n_products = 0
        self.dtype = precision_of(start.vectors)
        most_vectors = min(most_vectors or 8 * self.width, n)
        self.rows = empty((most_vectors, n), start.vectors, self.dtype)
        self.T = np.zeros((most_vectors,) * 2)
        self._begin(start, rest)

    def _begin(self, start: Relaxation, rest: Array | None = None) -> None:
        """Begin with vectors and their residuals, or another rest."""
        self.size = self.width
        self._last = slice(0, self.width)
        self.rows[: self.size, :] = start.vectors.T
        if rest is None:
            rest = start.residuals
        self._rest: Any = rest
        known = start.eigenvalues[: self.size]
        self.T[: self.size, : self.size] = np.diag(known)
        self.values = start.eigenvalues
        self.error = start.error
        self._S = np.eye(self.size)

    def expand(self) -> bool:
        """Add one block, by one product; return False if the space is invariant."""
        most_vectors, n = self.rows.shape
        n_next = self.size + self._rest.shape[1]
        if n_next > most_vectors and most_vectors < n:
            self.decompose()
            self._begin(self.relaxation())

        new = orthonormalize(self._rest, self.rows[: self.size, :].T)
        room = most_vectors - self.size
        new = new[:, : min(new.shape[1], room)]
        if not new.shape[1]:
            return False
        old = self.size
        self.size = old + new.shape[1]
        self._last = slice(old, self.size)
        self.rows[self._last, :] = new.T

        image = self.kernel @ new
        self.n_products += 1
        known = self.rows[: self.size, :]
        shares = known @ image
        self._rest = image - known.T @ shares

        on_host = to_host(shares)
        self.T[: self.size, self._last] = on_host
        self.T[self._last, :old] = on_host[:old].T
        return True

    def restricted(self, first: int = 0) -> Float:
        """Return ``Q^T K Q``, for the vectors of the basis from the first on."""
        T = self.T[first : self.size, first : self.size]
        return (T + T.T) / 2

    def decompose(self) -> None:
        """Find the Ritz values, and how accurate they are."""
        self.values, self._S = top_eigenpairs(self.restricted(), self.size, self.rows)
        share = self._S[self._last, : self.width]
        gram = to_host(self._rest.T @ self._rest)
        squares = np.sum(share * (gram @ share), axis=0)
        lengths = np.sqrt(np.maximum(squares, 0))
        leading = self.values[: self.width]
        self.error = error_of_sum(leading, lengths, self.n_clusters)

    def relaxation(self) -> Relaxation:
        """Return the leading Ritz vectors, of a space that was decomposed."""
        leading = np.ascontiguousarray(self._S[:, : self.width].T)
        rotation = to_device(leading, self.rows, self.dtype)
        used = self.rows[: self.size, :]
        vectors = (rotation @ used).T
        residuals = self._rest @ rotation[:, self._last].T
        values = self.values[: self.width]
        return Relaxation(self.n_clusters, vectors, values, self.error, residuals)


def extreme_eigenvalues(
    K: KernelLike,
    *,
    converged: bool = False,
) -> tuple[float, float, float]:
    """Return the smallest eigenvalue of a kernel, the largest by size, and an error.

    For many samples by a few Lanczos steps: the true smallest eigenvalue can only be
    lower, so a negative one proves a kernel indefinite; finding none is evidence, not
    proof. If they are to be ``converged``, this goes on until the smallest is too high
    by that error at most, about six digits.
    """
    n = K.n_samples
    if n <= FEW_SAMPLES:
        values = eigvalsh(K.dense())
        size = float(np.abs(values).max())
        return float(values[0]), size, n * EPS * size

    diagonal = K.diagonal()
    # In units of the entries, so that no square overflows.
    absolute = namespace(diagonal).abs(diagonal)
    unit = float(namespace(diagonal).max(absolute)) or 1.0
    scaled = _Affine(K, 0.0, 1 / unit)
    values = _lanczos(scaled)
    smallest = float(values[0])
    largest = float(np.abs(values).max())
    if not converged:
        return unit * smallest, unit * largest, np.inf

    flipped_kernel = _Affine(scaled, 2 * largest, -1.0)
    vectors = _complete(flipped_kernel, None, block_width(n, 1))
    flipped = improve(flipped_kernel, rayleigh_ritz(flipped_kernel, vectors, 1), 1e-12)
    smallest = 2 * largest - float(flipped.eigenvalues[0])
    return unit * smallest, unit * largest, unit * flipped.error


def _lanczos(K: Operator) -> Float:
    """Return the Ritz values of ten Lanczos steps from a random vector, rising."""
    basis = images = zeros((K.n_samples, 0), K.like)
    # With two vectors at a time, each product takes three times as long.
    v = random_normal((K.n_samples, 1), K.like, 0)
    for _ in range(10):
        before = sum_of_squares(v)
        for _ in range(2):  # full reorthogonalization, twice
            v = v - basis @ (basis.T @ v)
        left = sum_of_squares(v)
        if left <= EPS * before:
            break  # an invariant space
        basis = hstack(basis, v / left**0.5)
        v = K @ basis[:, -1:]
        images = hstack(images, v)
    T = to_host(basis.T @ images)
    return eigvalsh((T + T.T) / 2)


@dataclass(frozen=True)
class _Affine:
    """``a I + b K``."""

    kernel: Operator
    a: float
    b: float

    n_samples = property(lambda self: self.kernel.n_samples)
    like = property(lambda self: self.kernel.like)

    def __matmul__(self, V: Array) -> Array:
        image = self.kernel @ V
        return self.a * V + self.b * image
