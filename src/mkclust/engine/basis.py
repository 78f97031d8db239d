"""The problem restricted to a small basis, and the solution of that."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mkclust.engine.cutting import CuttingSurfaces, Evaluation
from mkclust.engine.eigen import Relaxation, block_width, ritz_vectors
from mkclust.linalg import (
    astype,
    namespace,
    orthonormalize,
    to_device,
    to_host,
    top_eigenpairs,
    zeros,
)
from mkclust.types import Array, Float

# Of the accuracy asked for, what goes to the weights; the rest is for the eigenvectors.
SHARE = 0.3
# A basis holds at most this many times the vectors that are iterated.
MOST_BLOCKS = 6
# A restart keeps this many times the vectors that are iterated.
KEPT_BLOCKS = 2


@dataclass(frozen=True)
class Problem:
    """What is searched for, as the arguments of `search` say it."""

    n_clusters: int
    n_weights: int
    n_fixed: int
    tol: float
    max_iter: int
    prove: bool | Literal["auto"] = False
    key: int = 0

    def coefficients(self, weights: Float) -> Float:
        """Return the coefficients of a mix: squared weights, and ones for fixed kernels."""
        return np.concatenate([weights**2, np.ones(self.n_fixed)])

    def evaluation(self, value: float, alignments: Float, state: Any) -> Evaluation:
        """Return an evaluation; the alignments of fixed kernels are its offset."""
        m = self.n_weights
        return Evaluation(value, alignments[:m], state, float(alignments[m:].sum()))


class Basis:
    """An orthonormal basis V, the products K_p V of all kernels, and all ``V^T K_p V``.

    Sample-sized arrays are kept as rows; the small matrices are on the host.
    """

    def __init__(self, stack: Any, problem: Problem, dtype: str):
        n = stack.n_samples
        self.stack, self.problem, self.dtype = stack, problem, dtype
        self.width = block_width(n, problem.n_clusters)
        self._rows: Any = zeros((0, n), stack.kernels[0].like, dtype)
        self._images: list[Array] = []  # (m, b, n) each
        self._G = np.empty((stack.n_kernels, 0, 0))

    def expand(self, X: Array, weights: Float) -> bool:
        """Take in more vectors, by one pass over all kernels; return whether there were any."""
        if len(self._G[0]) + X.shape[1] > MOST_BLOCKS * self.width:
            self._restart(weights)
        old, X = self._rows.shape[0], astype(X, self.dtype)
        new = orthonormalize(X, self._rows.T if old else None)
        if not new.shape[1]:
            return False
        xp, size, G = namespace(new), old + new.shape[1], self._G
        self._rows = xp.concat([self._rows, new.T])
        self._images.append(xp.permute_dims(self.stack.apply(new), (0, 2, 1)))
        blocks = to_host(xp.matmul(self._images[-1], self._rows.T))
        self._G = np.empty((len(G), size, size))
        self._G[:, :old, :old], self._G[:, old:, :] = G, blocks
        self._G[:, :old, old:] = blocks[:, :, :old].transpose(0, 2, 1)
        return True

    def _restart(self, weights: Float) -> None:
        """Keep the leading part of the basis only."""
        S = self._eigenpairs(weights)[1][:, : KEPT_BLOCKS * self.width]
        turn = to_device(np.ascontiguousarray(S.T), self._rows, self.dtype)
        xp = namespace(turn)
        self._G, self._rows = S.T @ self._G @ S, turn @ self._rows
        self._images = [xp.matmul(turn, xp.concat(self._images, axis=1))]

    def _eigenpairs(self, weights: Float) -> tuple[Float, Float]:
        """Return the eigenpairs of a mix as seen from the basis."""
        m, size, _ = self._G.shape
        mixed = (self.problem.coefficients(weights) @ self._G.reshape(m, -1)).reshape(size, size)
        return top_eigenpairs((mixed + mixed.T) / 2, size)

    def evaluate(self, weights: Float) -> Evaluation:
        """Return the value and the alignments at some weights; the state are the eigenpairs."""
        values, S = self._eigenpairs(weights)
        H = S[:, : self.problem.n_clusters]
        alignments = self._G.reshape(len(self._G), -1) @ (H @ H.T).ravel()
        value = float(values[: self.problem.n_clusters].sum())
        return self.problem.evaluation(value, alignments, (values, S))

    def relaxation(self, weights: Float, evaluation: Evaluation) -> Relaxation:
        """Return the eigenvectors found in the basis as vectors over the samples."""
        values, S = (part[..., : self.width] for part in evaluation.state)
        turn = to_device(np.ascontiguousarray(S.T), self._rows, self.dtype)
        c = to_device(self.problem.coefficients(weights), self._rows, self.dtype)
        start, xp = 0, namespace(turn)
        products: Any = 0.0
        for images in self._images:
            m, b, n = images.shape
            mixed = xp.reshape(c @ xp.reshape(images, (m, b * n)), (b, n))
            products = products + turn[:, start : start + b] @ mixed
            start += b
        vectors = (turn @ self._rows).T
        return ritz_vectors(self.problem.n_clusters, vectors, products.T, values)

    def minimize(self, surfaces: CuttingSurfaces, error: float) -> Relaxation:
        """Solve the problem restricted to the basis, to about the accuracy that this deserves.

        ``error`` is the relative one of the eigenvectors before.
        """
        tol = self.problem.tol
        while True:
            small_tol = SHARE * max(tol, error)
            surfaces.weights, best, _ = surfaces.minimize(self.evaluate, small_tol)
            relaxation = self.relaxation(surfaces.weights, best)
            error = relative(relaxation.error, relaxation)
            above = best.value - surfaces.lower_bound
            # Good enough as it is, it is not sought elsewhere, where the basis may know less.
            is_enough = above <= SHARE * max(2 * tol, error) * best.value
            if is_enough or SHARE * max(tol, error) >= small_tol:
                return relaxation


def relative(error: float, relaxation: Relaxation) -> float:
    """Return an error as a share of an eigenvalue sum, which may vanish in a poor basis."""
    return error / max(relaxation.value, np.finfo(np.float64).tiny)
