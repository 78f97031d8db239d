"""What a solver returns."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mkclust.engine.certificate import Certificate
from mkclust.engine.eigen import Relaxation
from mkclust.methods.agreement import Agreement
from mkclust.stack import Stack
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
        The objective after each iteration, before it the start where that was evaluated. Where
        eigenvectors are found to a tolerance, what their residuals leave open is counted in.
    converged : bool
        Whether the method's own stopping rule was met.
    coefficients : ndarray of shape (n_kernels,) or None
        The combined kernel is ``sum_p coefficients_p K_p``.
    relaxation : Relaxation or None
        Eigenvectors, eigenvalues and products of the combined kernel.
    projections : sequence of m ndarrays of shape (n_samples, n_clusters), or None
        Where the partition is no eigenvector of a combined kernel but still a function of
        similarities: its rows are ``sum_p k_p(x) projections_p``.
    sample_weights : ndarray of shape (n_samples, n_kernels) or None
        Weights of each sample, where a method has them; ``weights`` are their means.
    kernel : array of shape (n_samples, n_samples) or None
        The kernel a method learns where it is no combination of those given.
    kernel_rank : int or None
        Its rank, up to rounding.
    baseline : Relaxation or None
        The same of the uniform combination, where it was computed on the way.
    lower_bounds : ndarray of the shape of history, or None
        Certified lower bounds on the global minimum.
    upper_bounds : ndarray of the shape of history, or None
        Certified upper bounds on the global maximum, where the objective is one.
    certificate : Certificate or None
        How the eigenvalue sum behind the bound is known, where the method has a bound.
    n_iter : int
        Number of iterations.
    n_passes : int
        How often every kernel was read.
    anchor : float
        How strongly the partition was drawn to that of the compromise.
    agreement : Agreement or None
        What the kernels share, where that was asked.
    included : sequence of int or None
        Which kernels are mixed, where others may be set aside.
    cycle : int
        Length of the cycle that the iterates were seen to repeat, zero where there is none.
    seconds : float
        What the solve took, where an estimator timed it.
    shared_sums : ndarray of shape (n_kernels,) or None
        ``Tr(H^T K_p H)`` of every kernel and the partition H, where the solver knows them.
    stack : Stack or None
        The kernels that it is of, where samples that are missing from some became something else
        than they were given as.
    fill_history : ndarray of shape (n_fills + 1,) or None
        The objective before anything stood for missing samples, and after each time that what
        stands for them was learned.
    """

    partition: Array
    weights: Float
    objective: float
    history: Float
    converged: bool
    coefficients: Float | None = None
    relaxation: Relaxation | None = None
    projections: Sequence[Float] | None = None
    sample_weights: Float | None = None
    kernel: Array | None = None
    kernel_rank: int | None = None
    baseline: Relaxation | None = None
    lower_bounds: Float | None = None
    upper_bounds: Float | None = None
    certificate: Certificate | None = None
    n_iter: int = 0
    n_passes: int = 0
    anchor: float = 0.0
    agreement: Agreement | None = None
    included: Sequence[int] | None = None
    cycle: int = 0
    seconds: float = 0.0
    shared_sums: Float | None = None
    stack: Stack | None = None
    fill_history: Float | None = None

    @property
    def lower_bound(self) -> float:
        """The best certified lower bound, NaN where the method has none."""
        return float("nan") if self.lower_bounds is None else float(np.max(self.lower_bounds))

    @property
    def gap(self) -> float:
        """Relative distance to the global optimum at most, NaN where the method has no bound.

        What the residuals of the eigenvectors leave open counts as distance.
        """
        if self.upper_bounds is not None and self.relaxation is not None:
            bound = float(np.min(self.upper_bounds))
            distance = max(bound - self.objective, 0.0) + self.relaxation.error
            if bound <= 0:  # nothing is left unexplained
                return float("inf") if distance else 0.0
            return distance / bound
        if self.relaxation is None or self.lower_bounds is None:
            return float("nan")
        return self.relaxation.gap_above(self.lower_bound)
