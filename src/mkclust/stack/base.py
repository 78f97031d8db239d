"""What every stack of kernels answers, and how one kernel is centered and scaled."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mkclust.types import Array, Float


class Operator(Protocol):
    """A symmetric matrix known by its products."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""

    def __matmul__(self, X: Array) -> Array:
        """Multiply with a thin matrix, (n, b) to (n, b)."""

    def dense(self) -> Float:
        """Write the entries out, (n, n)."""


class KernelStack(Protocol):
    """Several kernels over the same samples: all that a method may ask of them.

    What is as long as the samples stays with the array library of the kernels; what is as long
    as the number of kernels comes out as NumPy float64.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the kernels."""

    @property
    def standards(self) -> Sequence["Standard"]:
        """How each kernel is centered and scaled."""

    @property
    def given(self) -> Sequence[Array]:
        """The kernels as they came: neither centered nor scaled nor repaired."""

    @property
    def precision(self) -> float:
        """Relative rounding of the entries."""

    @property
    def n_kernels(self) -> int:
        """Number of kernels, m."""

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""

    @property
    def compressed(self) -> bool:
        """Whether ``n_samples`` counts coordinates that stand for many more samples."""

    def lift(self, *vectors: Array) -> tuple[Array, ...]:
        """Return vectors over all samples, from vectors as long as ``n_samples``."""

    def lift_some(self, vectors: Array) -> Array:
        """Return the same for samples that stand for all, where clusters are only compared."""

    def kernel(self, index: int) -> Operator:
        """Return one kernel, as something that supports ``@``."""

    def apply(self, V: Array) -> Array:
        """Multiply every kernel with V, (n, b) to (m, n, b), in one pass over the data."""

    def combine(self, coefficients: Float, out: Operator | None = None) -> Operator:
        """Return ``sum_p c_p K_p``, in the memory of an earlier combination where given."""

    def traces(self) -> Float:
        """Return the m traces."""

    def gram(self) -> Float:
        """Return ``Tr(K_p K_q)``, (m, m)."""

    def entries(self, samples: Array | None = None) -> Array:
        """Write the kernels out, (m, n, n), or their part that belongs to some samples."""


@dataclass(frozen=True)
class Standard:
    """How one kernel is centered and scaled, as learned from the training samples.

    The standardized kernel is ``s_i s_j (K_ij - r_i - r_j + r)``: r_i the row means, r their mean,
    s the scale that makes the diagonal one.

    Attributes
    ----------
    diagonal : ndarray of shape (n_samples,)
        Self-similarities before any centering or scaling.
    row_means : ndarray of shape (n_samples,) or None
        None where the kernel is not centered.
    scale : ndarray of shape (n_samples,) or None
        None where the kernel is not scaled.
    """

    diagonal: Float
    row_means: Float | None = None
    scale: Float | None = None

    @property
    def mean(self) -> float:
        """Mean of all entries of the kernel."""
        return 0.0 if self.row_means is None else float(self.row_means.mean())

    def centered_diagonal(self) -> Float:
        """Return the self-similarities after centering, before scaling, (n_samples,)."""
        if self.row_means is None:
            return self.diagonal
        return self.diagonal - 2 * self.row_means + self.mean

    def constant_self_similarity(self) -> float | None:
        """Return the self-similarity all training samples share, or None where they differ."""
        first = self.diagonal[0]
        # A float32 kernel computes its unit diagonal to about 1e-6.
        shared = np.all(np.abs(self.diagonal - first) <= 1e-6 * abs(first))
        return float(first) if shared else None

    def project(self, cross: Array, P: Float, self_similarity: Float | None) -> Float:
        """Multiply the standardized similarities of new samples to the training ones with P.

        Parameters
        ----------
        cross : array of shape (n_new, n_samples)
            Similarities as they come, neither centered nor scaled.
        P : ndarray of shape (n_samples, b)
            What to multiply with.
        self_similarity : ndarray of shape (n_new,) or None
            The new samples' similarities to themselves; needed only to scale.

        Returns
        -------
        ndarray of shape (n_new, b)
        """
        if self.scale is not None:
            P = P * self.scale[:, None]
        if self.row_means is not None:
            P = P - P.mean(axis=0)  # cancels the new samples' own means exactly
        rows, means = np.empty((cross.shape[0], P.shape[1])), np.zeros(cross.shape[0])
        # In float64 whatever the similarities are, some rows at a time to spare the memory.
        for start in range(0, len(rows), 256):
            block = cross[start : start + 256].astype(np.float64, copy=False)
            rows[start : start + 256] = block @ P
            if self.row_means is not None:
                means[start : start + 256] = np.asarray(block.mean(axis=1)).reshape(-1)
        if self.row_means is not None:
            rows -= self.row_means @ P
        if self.scale is None:
            return rows
        if self_similarity is None:
            raise ValueError("scaling needs the self-similarity of the new samples")
        lengths = self_similarity - 2 * means + self.mean
        # A new sample at the very mean of the training samples has no direction: leave it at zero.
        seen = lengths > 1e-10 * np.abs(self.centered_diagonal()).mean()
        return rows * (seen / np.sqrt(np.where(seen, lengths, 1)))[:, None]
