"""How much a partition captures of a kernel's own leading structure, in a few products."""

import numpy as np

from mkclust.engine.relaxation import block_width, relax
from mkclust.linalg import (
    eigh,
    eigvalsh,
    empty,
    namespace,
    noise,
    orthonormalize,
    side_by_side,
    to_device,
    to_host,
)
from mkclust.linalg.operators import Operator
from mkclust.types import Array

# Random vectors beside the partition, so that nothing is missed that it is blind to, and how many
# Ritz vectors are improved at least: what follows in the spectrum holds the others back. A basis of
# fewer vectors than the last figure may have settled on eigenvectors that are not the leading ones.
N_RANDOM, LEAST_WIDTH, LEAST_SIZE = 4, 8, 20
# Blocks of products beyond which restarts get further.
MOST_BLOCKS = 8
# By how many times the error allowed the two sums may differ, and after the first product: a flat
# spectrum seems to be known before it is.
ALLOWED, FIRST_ALLOWED = 2.0, 0.5
# By how much more the residuals may leave open: of a flat spectrum both sums are too small alike.
SLOWEST = 4.0
# Directions of less than this share of the largest are left to rounding.
SMALLEST_SHARE = 1e-6


def leading_share(
    operator: Operator,
    H: Array,
    *,
    tol: float,
    products: Array | None = None,
    captured: float | None = None,
) -> float:
    r"""Return the share of a kernel's k largest eigenvalues, summed up, that a partition captures.

    Of products W = K V with a basis V two sums of leading eigenvalues are known, both too small:
    those of :math:`V^\top W`, and those of :math:`W (V^\top W)^{-1} W^\top`, half a product
    further. Where both say nearly the same, they tell what is left to say. Where they will not,
    since the kernel is indefinite or its eigenvalues lie close together, eigenvectors are found as
    elsewhere.

    Parameters
    ----------
    operator : Operator
        The kernel, K.
    H : array of shape (n_samples, k)
        The orthonormal partition.
    tol : float
        About by how much the share may be wrong.
    products : array of shape (n_samples, k), default=None
        The kernel times the partition, where it is known.
    captured : float, default=None
        ``Tr(H^T K H)``, where it is known more exactly than by these products.

    Returns
    -------
    float
        From 0 to 1.
    """
    n, k = H.shape
    products = operator @ H if products is None else products
    known = float(namespace(H).sum(products * H)) if captured is None else captured

    def share(total: float) -> float:
        """Return the share of a sum of eigenvalues, the rounding of which may make it too small."""
        return min(max(known / total, 0.0), 1.0) if total else 1.0

    if block_width(n, k) >= n:
        return share(float(eigvalsh(operator.dense())[-k:].sum()))
    space, blind = (
        _Space(H, products, min(MOST_BLOCKS * max(k, LEAST_WIDTH) + N_RANDOM, n)),
        noise((n, N_RANDOM), 0, H),
    )
    allowed = FIRST_ALLOWED * tol
    while True:
        lower, upper, highest, residuals = space.sums(k)
        fallen = share(lower) - share(upper)
        if (
            space.size >= min(LEAST_SIZE, n)
            and blind is None
            and fallen <= allowed
            and share(upper) - share(highest) <= SLOWEST * tol
        ):
            # Half a product leaves about a third of what is still to fall.
            return max(share(upper) - fallen / 2, 0.0)
        new = orthonormalize(
            residuals if blind is None else side_by_side(residuals, blind), space.vectors
        )
        if not new.shape[1]:
            return share(lower)  # an invariant subspace: the residuals are rounding
        if not space.has_room(new.shape[1]):
            return share(relax(operator, k, tol=tol, start=H).value)
        allowed = (FIRST_ALLOWED if blind is not None else ALLOWED) * tol
        space.expand(new, operator @ new)
        blind = None


class _Space:
    """An orthonormal basis V, the products W with it, and the inner products of both."""

    def __init__(self, vectors: Array, products: Array, capacity: int):
        n = vectors.shape[0]
        self.size = 0
        self._rows, self._images = empty((capacity, n), vectors), empty((capacity, n), vectors)
        self._G, self._squares = np.zeros((capacity, capacity)), np.zeros((capacity, capacity))
        self.expand(vectors, products)

    @property
    def vectors(self) -> Array:
        """The basis, (n, r)."""
        return self._rows[: self.size, :].T

    def has_room(self, count: int) -> bool:
        """Return whether so many vectors more can be taken in."""
        return self.size + count <= len(self._G)

    def expand(self, vectors: Array, products: Array) -> None:
        """Take in vectors that are orthogonal to the basis, and the products with them."""
        old, end = self.size, self.size + vectors.shape[1]
        self._rows[old:end, :], self._images[old:end, :] = vectors.T, products.T
        for matrix, basis in ((self._G, self._rows), (self._squares, self._images)):
            matrix[:end, old:end] = to_host(basis[:end, :] @ self._images[old:end, :].T)
            matrix[old:end, :old] = matrix[:old, old:end].T
        self.size = end

    def sums(self, count: int) -> tuple[float, float, float, Array]:
        """Return both sums of the leading eigenvalues, about their most, and the residuals."""
        part = slice(0, self.size)
        values, S = eigh((self._G[part, part] + self._G[part, part].T) / 2)
        some = values > SMALLEST_SHARE * max(values[-1], 0.0)
        root = S[:, some] / np.sqrt(values[some])
        halfway = eigvalsh(root.T @ self._squares[part, part] @ root)
        width = min(max(count, LEAST_WIDTH), self.size)
        rotation = to_device(S[:, -width:].T, self._rows)
        residuals = rotation @ self._images[part, :]
        residuals -= (rotation * to_device(values[-width:], rotation)[:, None]) @ self._rows[
            part, :
        ]
        leading = values[-count:]
        lower = float(leading.sum())
        # As for other eigenvectors, by the distance to the part of the spectrum not held.
        squares = to_host(namespace(residuals).sum(residuals * residuals, axis=1))[-count:]
        outside = values[-min(count + max(count // 4, 4), self.size)]
        distance = np.maximum(leading - outside, np.sqrt(squares))
        highest = lower + float(np.sum(squares / np.where(distance > 0, distance, 1.0)))
        return lower, float(halfway[-count:].sum()), highest, residuals.T
