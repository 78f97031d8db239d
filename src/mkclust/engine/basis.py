"""A basis, and what every kernel is as seen from it."""

from dataclasses import replace
from typing import Any

import numpy as np

from mkclust.engine.cutting import Evaluation
from mkclust.engine.relaxation import Relaxation, block_width, with_error_bound
from mkclust.engine.small_problem import SmallProblem
from mkclust.linalg import (
    empty,
    is_foreign,
    namespace,
    orthonormalize,
    to_device,
    to_host,
    top_eigenpairs,
)
from mkclust.linalg.operators import Anchor
from mkclust.types import Array, Float


class Basis:
    """An orthonormal basis V, every kernel's products W_p = K_p V, and G_p = V^T W_p."""

    def __init__(
        self, stack: Any, n_clusters: int, anchor: Anchor | None = None, width: int | None = None
    ):
        n, m = stack.n_samples, stack.n_kernels
        self.n_clusters, width = n_clusters, width or block_width(n, n_clusters)
        # The products are kept within a small share of the kernels' own size.
        self.capacity = max(3 * width, min(6 * width, n // 24))
        self.width, self.keep = width, 2 * width
        self.size, self.n_samples, self.n_passes = 0, n, 0
        self.like = stack.like
        self._stack = stack
        self._rows = empty((self.capacity, n), self.like)
        self._images = empty((m, self.capacity, n), self.like)
        self._G = np.empty((m, self.capacity, self.capacity))
        # What is added to every combination, and H_0^T V.
        self._anchor = anchor
        self._overlap = np.empty((0 if anchor is None else anchor.vectors.shape[1], self.capacity))

    @property
    def vectors(self) -> Array:
        """The basis, (n, r)."""
        return self._rows[: self.size, :].T

    @property
    def G(self) -> Float:
        """Every kernel seen from the basis, (m, r, r)."""
        return self._G[:, : self.size, : self.size]

    def expand(self, vectors: Array, weights: Float, *, orthonormal: bool = False) -> None:
        """Take in more vectors, with one pass over the kernels.

        Orthonormal ones are orthogonal to the basis, too.
        """
        if self.size + vectors.shape[1] > self.capacity:
            self._restrict(weights)
        new = vectors
        if not orthonormal:
            new = orthonormalize(vectors, self.vectors if self.size else None)
        old, self.size = self.size, self.size + new.shape[1]
        images = self._stack.apply(new)
        self.n_passes += 1
        xp = namespace(images)
        self._rows[old : self.size, :] = new.T
        self._images[:, old : self.size, :] = xp.permute_dims(images, (0, 2, 1))
        self._see(old)

    def _see(self, old: int) -> None:
        """Fill in what the kernels are as seen from the basis, from its vector ``old`` on."""
        xp, added = namespace(self._rows), self.size - old
        if self._anchor is not None:
            new = self._rows[old : self.size, :].T
            self._overlap[:, old : self.size] = to_host(self._anchor.overlap(new))
        rows = self._images[:, old : self.size, :]
        # One product for all kernels.
        flat = xp.reshape(rows, (len(self._G) * added, self.n_samples)) @ self.vectors
        blocks = to_host(flat).reshape(len(self._G), added, self.size).transpose(0, 2, 1).copy()
        blocks[:, old:] = (blocks[:, old:] + blocks[:, old:].transpose(0, 2, 1)) / 2
        self._G[:, : self.size, old : self.size] = blocks
        self._G[:, old : self.size, : self.size] = blocks.transpose(0, 2, 1)

    @property
    def problem(self) -> SmallProblem:
        """The problem as seen from the basis."""
        strength, overlap = 0.0, None
        if self._anchor is not None:
            strength, overlap = self._anchor.strength, self._overlap[:, : self.size]
        G = np.ascontiguousarray(self.G)  # they are summed up many times
        return SmallProblem(G, self.n_clusters, self.width, self.like, strength, overlap)

    def foreseen_problem(self, vectors: Array, products: Array, weights: Float) -> SmallProblem:
        r"""Return the problem as it will be seen with more vectors, before the kernels are.

        The products of all kernels with the basis tell all but :math:`E^\top K_p E` of further
        vectors E, which is small where these are. Of its sum over the kernels each is given the
        same share: it is what chance makes of kernels of the same trace.

        Parameters
        ----------
        vectors : array of shape (n, b)
            Orthonormal to the basis and to each other, E.
        products : array of shape (n, b)
            Of the combination of some weights with them.
        weights : ndarray of shape (m,)
            Those weights.
        """
        seen, r = self.problem, self.size
        m, count = len(self._G), vectors.shape[1]
        G = np.empty((m, r + count, r + count))
        G[:, :r, :r] = seen.G
        G[:, :r, r:] = to_host(self._images[:, :r, :] @ vectors)
        G[:, r:, :r] = G[:, :r, r:].transpose(0, 2, 1)
        among = to_host(vectors.T @ products)
        G[:, r:, r:] = (among + among.T) / (2 * float(np.sum(weights**2)))
        if self._anchor is None or seen.overlap is None:
            return replace(seen, G=G)
        overlap = np.hstack([seen.overlap, to_host(self._anchor.overlap(vectors))])
        return replace(seen, G=G, overlap=overlap)

    def relaxation(self, weights: Float, evaluation: Evaluation) -> Relaxation:
        """Return the eigenvectors found in the basis as vectors over the samples."""
        values, S = evaluation.state
        rotation = to_device(S.T, self.like)
        vectors = (rotation @ self._rows[: self.size, :]).T
        # Summed up before they are rotated: of all kernels together, one product.
        combined = self._combined_images(weights**2)
        products = rotation @ combined
        images = products.T if self._anchor is None else products.T + self._anchor.products(vectors)
        return with_error_bound(vectors, images, values, self.n_clusters)

    def _combined_images(self, coefficients: Float) -> Array:
        """Return the products of a combination with the basis, as rows, (r, n)."""
        images = self._images[:, : self.size, :]
        if not is_foreign(images):
            return np.einsum("p,prn->rn", coefficients, images)
        combined = float(coefficients[0]) * images[0, :, :]
        for p, c in enumerate(coefficients[1:], start=1):
            combined += float(c) * images[p, :, :]
        return combined

    def kernel_products(self, evaluation: Evaluation) -> Array:
        """Return the products of every kernel with the partition found in the basis, (m, n, k)."""
        k, (_, S) = self.n_clusters, evaluation.state
        rotation = to_device(S[:, :k].T, self.like)
        products = empty((len(self._G), k, self.n_samples), self.like)
        for p in range(len(self._G)):
            products[p, :, :] = rotation @ self._images[p, : self.size, :]
        return namespace(products).permute_dims(products, (0, 2, 1))

    def residuals(self, relaxation: Relaxation) -> Array:
        """Return where the eigenvectors found in the basis still miss, orthonormal, (n, b)."""
        return orthonormalize(relaxation.residuals, self.vectors)

    def _restrict(self, weights: Float) -> None:
        """Keep the leading part of the basis only."""
        _, S = top_eigenpairs(self.problem.combined(weights), self.keep, self.like)
        rotation = to_device(S.T, self.like)
        old, self.size = self.size, self.keep
        self._rows[: self.keep, :] = rotation @ self._rows[:old, :]
        if self._anchor is not None:
            self._overlap[:, : self.keep] = self._overlap[:, :old] @ S
        for p, G in enumerate(self._G):
            self._images[p, : self.keep, :] = rotation @ self._images[p, :old, :]
            G[: self.keep, : self.keep] = S.T @ G[:old, :old] @ S
