"""The shares of several small kernels that a partition captures, all kernels at the same time.

The steps are those of `mkclust.engine.leading`. Of few samples a step takes longer to begin than to
do, so each is taken for all kernels that still need it.
"""

from collections.abc import Sequence

import numpy as np

from mkclust.engine.leading import (
    ALLOWED,
    FIRST_ALLOWED,
    LEAST_SIZE,
    LEAST_WIDTH,
    MOST_BLOCKS,
    N_RANDOM,
    SLOWEST,
    SMALLEST_SHARE,
    leading_share,
)
from mkclust.engine.relaxation import block_width
from mkclust.linalg import eigh, eigvalsh, noise
from mkclust.linalg.algebra import (
    LEAST_LEFT,
    LITTLE_TAKEN,
    VERY_WELL_CONDITIONED,
    WELL_CONDITIONED,
)
from mkclust.linalg.operators import Operator
from mkclust.types import Float


def leading_shares_together(
    operators: Sequence[Operator],
    H: Float,
    *,
    tol: float,
    products: Float | None,
    captured: Float | None,
) -> Float:
    """Return what `leading_share` returns of every kernel, (m,).

    Parameters
    ----------
    operators : sequence of m Operators
        The kernels, on the host.
    H : ndarray of shape (n, k)
        The orthonormal partition.
    tol : float
        About by how much a share may be wrong.
    products : ndarray of shape (m, n, k) or None
        The kernels times the partition, where they are known.
    captured : ndarray of shape (m,) or None
        ``Tr(H^T K_p H)``, where it is known more exactly than by these products.
    """
    m, (n, k) = len(operators), H.shape
    products = np.stack([K @ H for K in operators]) if products is None else products
    known = np.tensordot(products, H, 2) if captured is None else captured
    if block_width(n, k) >= n:
        sums = [eigvalsh(K.dense())[-k:].sum() for K in operators]
        return _shares(known, np.array(sums))
    result, left = np.full(m, np.nan), np.arange(m)
    space = _Spaces(operators, H, products)
    capacity = min(MOST_BLOCKS * max(k, LEAST_WIDTH) + N_RANDOM, n)
    blind = np.broadcast_to(noise((n, N_RANDOM), 0, H).T, (m, N_RANDOM, n))
    new = np.concatenate([space.first_residuals(), blind], axis=1)
    allowed = FIRST_ALLOWED * tol
    while space.size + new.shape[1] <= capacity and space.expand(new):
        lower, upper, highest, new = space.sums(k)
        first, second, last = (_shares(known[left], each) for each in (lower, upper, highest))
        fallen = first - second
        goes_on = (fallen > allowed) | (second - last > SLOWEST * tol)
        goes_on |= space.size < min(LEAST_SIZE, n)
        result[left[~goes_on]] = np.maximum(second - fallen / 2, 0.0)[~goes_on]
        allowed, left, new = ALLOWED * tol, left[goes_on], new[goes_on]
        if not len(left):
            return result
        space.keep(goes_on)
    for p in left.tolist():  # of low rank, or of eigenvalues that lie close together
        result[p] = leading_share(
            operators[p], H, tol=tol, products=products[p], captured=float(known[p])
        )
    return result


def _shares(known: Float, totals: Float) -> Float:
    """Return the shares of sums of eigenvalues, whose rounding may make them too small."""
    shares = np.divide(known, totals, out=np.ones_like(totals), where=totals != 0)
    return np.clip(shares, 0.0, 1.0)


class _Spaces:
    """A basis for every kernel, as rows, the products with it, and the inner products of both."""

    def __init__(self, operators: Sequence[Operator], H: Float, products: Float):
        self._operators = np.fromiter(operators, dtype=object)
        self._rows = np.repeat(np.ascontiguousarray(H.T)[None], len(operators), axis=0)
        self._images = np.ascontiguousarray(products.transpose(0, 2, 1))
        self._G, self._squares = self._gram(self._rows), self._gram(self._images)

    def _gram(self, rows: Float) -> Float:
        """Return the inner products of some rows with the products, (m, r, r)."""
        return rows @ self._images.transpose(0, 2, 1)

    @property
    def size(self) -> int:
        """How many vectors each basis has."""
        return self._rows.shape[1]

    def keep(self, which: np.ndarray) -> None:
        """Go on with some of the kernels only."""
        if not which.all():
            for name, array in vars(self).items():
                setattr(self, name, array[which])

    def first_residuals(self) -> Float:
        """Return what the products have outside the bases, (m, r, n)."""
        return self._images - self._G.transpose(0, 2, 1) @ self._rows

    def expand(self, blocks: Float) -> bool:
        """Take in what blocks, (m, b, n), have outside the bases; return whether that can be."""
        for _ in range(2):  # twice is enough
            before = np.einsum("pbn,pbn->pb", blocks, blocks)
            blocks = blocks - (blocks @ self._rows.transpose(0, 2, 1)) @ self._rows
            gram = blocks @ blocks.transpose(0, 2, 1)
            squares = np.einsum("pbb->pb", gram)
            if not np.all(squares > LEAST_LEFT * before):
                return False
            lengths = np.sqrt(squares)[:, :, None]
            try:
                root = np.linalg.cholesky(gram / lengths / lengths.transpose(0, 2, 1))
            except np.linalg.LinAlgError:
                return False
            inverse = np.linalg.inv(root)
            size = np.sqrt(np.einsum("pbc,pbc->p", inverse, inverse).max() / inverse.shape[1])
            if not size < WELL_CONDITIONED:
                return False
            blocks = (inverse / lengths.transpose(0, 2, 1)) @ blocks
            if size < VERY_WELL_CONDITIONED and np.all(squares >= LITTLE_TAKEN * before):
                break
        pairs = zip(self._operators, blocks, strict=True)
        images = np.stack([(operator @ block.T).T for operator, block in pairs])
        old, size = self.size, self.size + blocks.shape[1]
        self._rows = np.concatenate([self._rows, blocks], axis=1)
        self._images = np.concatenate([self._images, images], axis=1)
        for name, basis in (("_G", self._rows), ("_squares", self._images)):
            new = basis @ images.transpose(0, 2, 1)
            whole = np.empty((len(new), size, size))
            whole[:, :old, :old] = getattr(self, name)
            whole[:, :, old:], whole[:, old:, :old] = new, new[:, :old].transpose(0, 2, 1)
            setattr(self, name, whole)
        return True

    def sums(self, count: int) -> tuple[Float, Float, Float, Float]:
        """Return both sums of the leading eigenvalues, about their most, and the residuals."""
        values, S = eigh((self._G + self._G.transpose(0, 2, 1)) / 2)
        some = values > SMALLEST_SHARE * np.maximum(values[:, -1:], 0.0)
        root = S * np.where(some, 1 / np.sqrt(np.where(some, values, 1.0)), 0.0)[:, None, :]
        halfway = eigvalsh(root.transpose(0, 2, 1) @ self._squares @ root)
        width = min(max(count, LEAST_WIDTH), self.size)
        rotation = S[:, :, -width:].transpose(0, 2, 1)
        residuals = rotation @ self._images
        residuals -= (rotation * values[:, -width:, None]) @ self._rows
        leading = values[:, -count:]
        # As for other eigenvectors, by the distance to the part of the spectrum not held.
        squares = np.einsum("pbn,pbn->pb", residuals, residuals)[:, -count:]
        outside = values[:, -min(count + max(count // 4, 4), self.size)]
        distance = np.maximum(leading - outside[:, None], np.sqrt(squares))
        lower = leading.sum(axis=1)
        highest = lower + np.sum(squares / np.where(distance > 0, distance, 1.0), axis=1)
        return lower, halfway[:, -count:].sum(axis=1), highest, residuals
