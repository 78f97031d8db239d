"""A basis, and what every kernel is as seen from it."""

from typing import Any

import numpy as np

from mkclust.engine.cutting import Evaluation
from mkclust.engine.relaxation import Relaxation, block_width, with_error_bound
from mkclust.linalg import (
    empty,
    namespace,
    orthonormalize,
    sum_of_squares,
    to_device,
    to_host,
    top_eigenpairs,
    zeros,
)
from mkclust.linalg.operators import Anchor
from mkclust.types import Array, Float


class Basis:
    """An orthonormal basis V, every kernel's products W_p = K_p V, and G_p = V^T W_p."""

    def __init__(self, stack: Any, n_clusters: int, anchor: Anchor | None = None):
        n, m = stack.n_samples, stack.n_kernels
        self.n_clusters, width = n_clusters, block_width(n, n_clusters)
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

    def evaluate(self, weights: Float) -> Evaluation:
        """Return the value and the alignments at some weights as seen from the basis."""
        offset, k = 0.0, self.n_clusters
        values, S = top_eigenpairs(self._combined(weights), min(self.width, self.size), self.like)
        if self._anchor is not None:
            overlap = self._overlap[:, : self.size] @ S[:, :k]
            offset = self._anchor.strength * sum_of_squares(overlap)
        value = float(values[:k].sum())
        return Evaluation(value, alignments(S, self.G, k), (values, S), offset)

    def _combined(self, weights: Float) -> Float:
        """Return a combination, anchor included, as seen from the basis, (r, r)."""
        combined = np.tensordot(weights**2, self.G, 1)
        if self._anchor is None:
            return combined
        Z = self._overlap[:, : self.size]
        return combined + self._anchor.strength * (Z.T @ Z)

    def relaxation(self, weights: Float, evaluation: Evaluation) -> Relaxation:
        """Return the eigenvectors found in the basis as vectors over the samples."""
        values, S = evaluation.state
        rotation = to_device(S.T, self.like)
        vectors = (rotation @ self._rows[: self.size, :]).T
        products = zeros((vectors.shape[1], vectors.shape[0]), self.like)
        for p, c in enumerate(weights**2):
            products += (float(c) * rotation) @ self._images[p, : self.size, :]
        images = products.T if self._anchor is None else products.T + self._anchor.products(vectors)
        return with_error_bound(vectors, images, values, self.n_clusters)

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
        _, S = top_eigenpairs(self._combined(weights), self.keep, self.like)
        rotation = to_device(S.T, self.like)
        old, self.size = self.size, self.keep
        self._rows[: self.keep, :] = rotation @ self._rows[:old, :]
        if self._anchor is not None:
            self._overlap[:, : self.keep] = self._overlap[:, :old] @ S
        for p, G in enumerate(self._G):
            self._images[p, : self.keep, :] = rotation @ self._images[p, :old, :]
            G[: self.keep, : self.keep] = S.T @ G[:old, :old] @ S


def alignments(S: Float, G: Float, n_clusters: int) -> Float:
    """Return ``Tr(S_k^T G_p S_k)`` for every kernel."""
    S = S[:, :n_clusters]
    return np.array([np.vdot(S, G_p @ S) for G_p in G])
