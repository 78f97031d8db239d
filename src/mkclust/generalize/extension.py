"""Embed samples that were not there when the model was fitted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkclust.linalg import (
    empty,
    is_foreign,
    namespace,
    on_host,
    precision_of,
    to_device,
    to_host,
    zeros,
)
from mkclust.types import Array, Float


def inverse(eigenvalues: Float, n_samples: int, precision: float) -> Float:
    """Return the reciprocals of falling eigenvalues, zero where there is only rounding."""
    kept = eigenvalues > n_samples * precision * max(eigenvalues[0], 0)
    return kept / np.where(kept, eigenvalues, 1)


@dataclass(frozen=True)
class Extension:
    r"""The embedding as a function of similarities to the training samples.

    .. math:: h(x) = \sum_p P_p^\top k_p(x)

    Leading eigenvectors H of a combination, with eigenvalues :math:`\Lambda`, have
    :math:`P_p = c_p H \Lambda^{-1}`.

    Attributes
    ----------
    standards : sequence of Standard
        How each kernel was centered and scaled.
    names : sequence of str
        Names of the kernels.
    projections : sequence of m arrays of shape (n_samples, k)
        What the similarities by each kernel are multiplied with.
    """

    standards: Sequence[Any]
    names: Sequence[str]
    projections: Sequence[Array]

    def __getstate__(self) -> dict[str, Any]:
        """Return what is stored of it: arrays of the host."""
        return {name: on_host(value) for name, value in vars(self).items()}

    @classmethod
    def of(cls, stack: Any, coefficients: Float, H: Array, eigenvalues: Float) -> "Extension":
        """Return the extension of a partition H with the given eigenvalues.

        Where an eigenvalue is zero (the combined kernel has rank below k) the coordinate is zero.
        """
        projection = H * to_device(inverse(eigenvalues, H.shape[0], stack.precision), H)
        parts = [float(c) * projection for c in coefficients]
        return cls(stack.standards, stack.names, parts)

    def toward_centroids(self, coefficients: Float, labels: np.ndarray) -> "Extension":
        """Return the alignments with the clusters' centroids, as such a function.

        Column v is the inner product with the mean of the members of the v-th cluster, in the
        feature space of ``sum_p coefficients_p K_p``. A cluster without members has no column.
        """
        members = (labels[:, None] == np.unique(labels)).astype(np.float64)
        # Where the kernels live, or it would have to get there for every block of samples.
        means = to_device(members / members.sum(axis=0), self.standards[0].diagonal)
        parts = [float(c) * means for c in coefficients]
        return Extension(self.standards, self.names, parts)

    def embed_training(self, stack: Any) -> Array:
        """Embed the training samples by the same road as new ones, (n_samples, k).

        Their embedding is H itself but for rounding, for what a tolerance left open, and for what
        was repaired in a kernel and cannot be repaired in a new sample.
        """
        diagonals = [standard.diagonal for standard in self.standards]
        own = namespace(*diagonals).stack(diagonals)
        if not hasattr(stack, "sweep"):
            return self.embed(stack.given, own)
        # Kernels that are read or computed some rows at a time: all in one pass.
        found = empty((stack.n_samples, self.projections[0].shape[1]), stack.like)

        def take(rows: slice, blocks: Sequence[Array]) -> None:
            found[rows, :] = self.embed(blocks, own[:, rows])

        stack.sweep(take)
        return found

    def embed(self, cross: Sequence[Array], self_similarity: Array | None = None) -> Array:
        """Embed new samples.

        Parameters
        ----------
        cross : m matrices of shape (n_new, n_samples)
            Similarities of the new samples to the training samples; or something with
            ``blocks()``, which gives some rows of all kernels at a time, with their place.
        self_similarity : array of shape (m, n_new), default=None
            Similarities of the new samples to themselves. None serves where they are known.

        Returns
        -------
        array of shape (n_new, k)
            Where the similarities live.
        """
        if hasattr(cross, "blocks"):
            own = self_similarity
            parts = [
                self.embed(block, None if own is None else own[:, rows])
                for rows, block in cross.blocks()
            ]
            return namespace(*parts).concat(parts)
        first = _nth(cross, 0)
        rows = zeros((first.shape[0], self.projections[0].shape[1]), first)
        for p, (P, standard) in enumerate(zip(self.projections, self.standards, strict=True)):
            given = None if self_similarity is None else self_similarity[p, :]
            if standard.scale is not None and given is None:
                given = self._known_self_similarity(p, _nth(cross, p))
            rows += standard.project(_nth(cross, p), P, given)
        return rows

    def _known_self_similarity(self, index: int, cross: Array) -> Array:
        """Return the self-similarities of new samples where they follow from what is there."""
        standard = self.standards[index]
        n_new, n = cross.shape
        if n_new == n:
            xp, known = namespace(cross), to_device(standard.diagonal, cross)
            diagonal = cross.diagonal() if not is_foreign(cross) else xp.linalg.diagonal(cross)
            diagonal = xp.astype(diagonal, xp.float64)
            same = bool(xp.all(xp.abs(diagonal - known) <= 1e-6 * xp.abs(known)))
            if same and _symmetric(cross):
                return diagonal
        constant = standard.constant_self_similarity()
        if constant is not None:
            return zeros((n_new,), cross) + constant
        raise ValueError(
            f"{self.names[index]}: scaling new samples needs their similarity to themselves, and "
            "it is not constant for this kernel; pass self_similarity, an array of shape "
            f"({len(self.standards)}, {cross.shape[0]}) of k(x, x), or fit with normalize=False"
        )


def _nth(matrices: Any, index: int) -> Array:
    """Return one of several matrices, be they in a list or in one array."""
    return matrices[index, ...] if is_foreign(matrices) else matrices[index]


def _symmetric(matrix: Array) -> bool:
    """Return whether a matrix equals its transpose but for rounding, judged by one product."""
    probe = np.random.default_rng(0).standard_normal((matrix.shape[0], 1))
    thin = to_device(probe, matrix, precision_of(matrix))
    left, right = to_host(matrix @ thin), to_host(matrix.T @ thin)
    return bool(np.abs(left - right).max() <= 1e-3 * np.abs(left).max())
