"""What a solver returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mkclust.agreements import Agreement
from mkclust.engine.certificate import Certificate
from mkclust.engine.eigen import Relaxation
from mkclust.stack import Kernel, Stack
from mkclust.types import Array, Float


@dataclass(frozen=True)
class Solution:
    """A relaxed partition with the weights it belongs to.

    Attributes
    ----------
    partition : array of shape (n_samples, n_clusters)
        The orthonormal H, unique up to a rotation.
    weights : ndarray of shape (n_kernels,)
        Mixing weights.
    objective : float
        The objective of this partition and these weights.
    history : ndarray of shape (n_iter,) or (n_iter + 1,)
        The objective after each iteration, preceded by that of the start if it was
        evaluated.
    converged : bool
        Whether the method's own stopping rule was met.
    coefficients : ndarray of shape (n_kernels,) or None
        The combined kernel is ``sum_p coefficients_p K_p``.
    relaxation : Relaxation or None
        Eigenvectors and eigenvalues of the combined kernel.
    kernel : Kernel or None
        The kernel that was relaxed, if it is not the combined one, such as a
        `mkclust.stack.kernel.DenseKernel`. It may be indefinite, then the partition is
        of its largest eigenvalues, and negative ones among these count as zero;
        ``mkclust.linalg.psd_part`` returns the nearest semidefinite matrix.
    projections : sequence of m arrays of shape (n_samples, n_clusters), or None
        If the partition is not made of eigenvectors of a combined kernel, but still a
        function of similarities: its rows are ``sum_p k_p(x) projections_p``.
    rows : array of shape (n_samples, n_clusters) or None
        The training samples by these projections, if known.
    n_iter, n_passes : int
        Number of iterations, and how often every kernel was read.
    gap, certificate : float, Certificate or None
        Largest relative distance to the global optimum, NaN if not bounded, and how it
        is known.
    lower_bounds : ndarray of the shape of history, or None
        Certified lower bounds on the global minimum.
    cycle : int
        Length of the cycle that the iterates repeat, or zero.
    agreement, baseline : Agreement, Relaxation or None
        What the kernels share, and the partition of their compromise, if the solver
        computed them.
    included : sequence of int or None
        Which kernels are mixed, if others may be set aside.
    stack : Stack or None
        The kernels that were solved, if samples missing from some were filled in or
        rescaled.
    fill_history : ndarray of shape (n_fills + 1,) or None
        The objective without fills, and after each fill.
    products : array of shape (n_kernels, n_samples, n_vectors) or None
        Every kernel times the ``basis``; a fit computes them if the solver did not.
    alignments : ndarray of shape (n_kernels,) or None
        The share of each kernel's own top-k eigenvalue sum that the partition captures,
        if known.
    centers : ndarray of shape (n_clusters, n_clusters) or None
        The centers of the clusters among the directions of the rows, if the solver
        found them.
    neighborhoods : object or None
        How new samples are embedded, if by neighborhoods.
    seconds : float
        Duration of the solve, if an estimator measured it.
    learned : mapping of str to object
        Further attributes of the fitted model, by name.
    """

    partition: Array
    weights: Float
    objective: float
    history: Float
    converged: bool
    coefficients: Float | None = None
    relaxation: Relaxation | None = None
    kernel: Kernel | None = None
    projections: Sequence[Array] | None = None
    rows: Array | None = None
    n_iter: int = 0
    n_passes: int = 0
    gap: float = float("nan")
    lower_bounds: Float | None = None
    certificate: Certificate | None = None
    cycle: int = 0
    agreement: Agreement | None = None
    included: Sequence[int] | None = None
    baseline: Relaxation | None = None
    stack: Stack | None = None
    fill_history: Float | None = None
    products: Array | None = None
    alignments: Float | None = None
    centers: Float | None = None
    neighborhoods: Any = None
    seconds: float = 0.0
    learned: Mapping[str, Any] = field(default_factory=dict)

    @property
    def basis(self) -> Array:
        """Orthonormal vectors, (n_samples, n_vectors), the partition's first."""
        if self.relaxation is None or self.projections is not None:
            return self.partition
        return self.relaxation.vectors

    @property
    def lower_bound(self) -> float:
        """The best certified lower bound, NaN if the method has none."""
        if self.lower_bounds is None:
            return float("nan")
        return float(np.max(self.lower_bounds))
