"""The basis of a search: vectors, their products with all kernels, and small matrices.

In it the weights are found as in a problem of a few dozen samples.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mkclust.engine.eigen import Relaxation, ritz_vectors
from mkclust.engine.protocol import StackLike
from mkclust.engine.simplex import CuttingSurfaces, Evaluation
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

# A certificate is asked for once the residuals suggest an error below this share of the
# one allowed, so that a search is short.
RESIDUAL_SHARE_TO_CERTIFY = 0.3


@dataclass(frozen=True)
class Problem:
    """The arguments of `search`."""

    n_clusters: int
    n_weights: int
    n_fixed: int
    width: int
    tol: float
    max_iter: int
    prove: bool | Literal["auto"] = False
    key: int = 0

    def coefficients(self, weights: Float) -> Float:
        """Return a mix's coefficients: squared weights, and ones for fixed kernels."""
        return np.concatenate([weights**2, np.ones(self.n_fixed)])

    def evaluation(self, value: float, alignments: Float, state: Any) -> Evaluation:
        """Return an evaluation; the alignments of fixed kernels are its offset."""
        m = self.n_weights
        return Evaluation(value, alignments[:m], state, float(alignments[m:].sum()))


class Basis:
    """An orthonormal basis V, the products K_p V of all kernels, and all ``V^T K_p V``.

    Sample-sized arrays are kept as rows; the small matrices are on the host.
    """

    # It holds at most, and a restart keeps, this many times the vectors iterated.
    MOST_BLOCKS = 6
    KEPT_BLOCKS = 2

    def __init__(self, stack: StackLike, problem: Problem, dtype: str):
        n = stack.n_samples
        m = stack.n_kernels
        like = stack.kernels[0].like
        self.stack = stack
        self.problem = problem
        self.dtype = dtype
        self.width = problem.width
        self._rows: Any = zeros((0, n), like, dtype)
        self._images: Any = zeros((m, 0, n), like, dtype)
        self._G = np.empty((m, 0, 0))

    def expand(self, X: Array, weights: Float) -> bool:
        """Take in vectors by one pass over all kernels; False if there are none."""
        n_rows = self._rows.shape[0] + X.shape[1]
        if n_rows > self.MOST_BLOCKS * self.width:
            self._restart(weights)
        known = self._rows.T if self._rows.shape[0] else None
        new = orthonormalize(astype(X, self.dtype), known)
        if not new.shape[1]:
            return False

        xp = namespace(new)
        self._rows = xp.concat([self._rows, new.T])
        applied = self.stack.apply(new)
        images = xp.permute_dims(applied, (0, 2, 1))
        self._images = xp.concat([self._images, images], axis=1)
        known_first = to_host(xp.matmul(images, self._rows.T))
        crossed = known_first[:, :, : self._G.shape[1]].transpose(0, 2, 1)
        above = np.concatenate([self._G, crossed], axis=2)
        self._G = np.concatenate([above, known_first], axis=1)
        return True

    def _restart(self, weights: Float) -> None:
        """Keep the leading eigenvectors of a mix alone."""
        _, S = self._eigenpairs(weights)
        S = S[:, : self.KEPT_BLOCKS * self.width]
        rotation = to_device(np.ascontiguousarray(S.T), self._rows, self.dtype)
        self._G = S.T @ self._G @ S
        self._rows = rotation @ self._rows
        self._images = namespace(rotation).matmul(rotation, self._images)

    def _eigenpairs(self, weights: Float) -> tuple[Float, Float]:
        """Return all eigenvalues and eigenvectors of a mix in the basis."""
        mixed = np.tensordot(self.problem.coefficients(weights), self._G, 1)
        return top_eigenpairs((mixed + mixed.T) / 2, len(mixed), self._rows)

    def evaluate(self, weights: Float) -> Evaluation:
        """Return value and alignments at some weights; the state are the eigenpairs."""
        values, S = self._eigenpairs(weights)
        H = S[:, : self.problem.n_clusters]
        alignments = np.tensordot(self._G, H @ H.T, 2)
        value = float(values[: self.problem.n_clusters].sum())
        return self.problem.evaluation(value, alignments, (values, S))

    def relaxation(self, weights: Float, evaluation: Evaluation) -> Relaxation:
        """Return the eigenvectors found in the basis as vectors over the samples."""
        values, S = evaluation.state
        leading = np.ascontiguousarray(S[:, : self.width].T)
        self._rotation = to_device(leading, self._rows, self.dtype)
        vectors = self._rotation @ self._rows

        xp = namespace(self._rows)
        m, b, n = self._images.shape
        c = to_device(self.problem.coefficients(weights), self._rows, self.dtype)
        mixed = xp.reshape(c @ xp.reshape(self._images, (m, b * n)), (b, n))
        products = self._rotation @ mixed
        return ritz_vectors(
            self.problem.n_clusters, vectors.T, products.T, values[: self.width]
        )

    @property
    def products(self) -> Array:
        """The products of all kernels with the latest eigenvectors, (m, n, b)."""
        xp = namespace(self._rotation)
        return xp.permute_dims(xp.matmul(self._rotation, self._images), (0, 2, 1))

    def minimize(self, surfaces: CuttingSurfaces, error: float) -> Relaxation:
        """Solve the problem in the basis to about its error, at first a guess."""
        tol = self.problem.tol
        known = None
        # The share of the tolerance that the weights may use; the rest is for the
        # eigenvectors.
        weights_share = 0.3
        while True:
            small_tol = weights_share * max(tol, error)
            weights, best, _ = surfaces.minimize(self.evaluate, small_tol, known=known)
            known = (weights, best)
            relaxation = self.relaxation(weights, best)
            error = relative(relaxation.error, relaxation)

            # If a certificate can follow, do not go to other weights, for which the
            # basis is worse: the weights may use most of what the vectors leave.
            left = tol - error / RESIDUAL_SHARE_TO_CERTIFY - surfaces.rounding
            enough = max(0.9 * left, weights_share * error)
            is_enough = best.value - surfaces.lower_bound <= enough * best.value
            if is_enough or weights_share * max(tol, error) >= small_tol:
                surfaces.weights = weights
                return relaxation


def relative(error: float, relaxation: Relaxation) -> float:
    """Return an error as a share of an eigenvalue sum, which may vanish at first."""
    size = max(relaxation.value, np.finfo(np.float64).tiny)
    return error / size
