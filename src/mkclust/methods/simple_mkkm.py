"""SimpleMKKM: minimize over the weights what the partition maximizes."""

import warnings
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.metrics import adjusted_rand_score

from mkclust.generalize import inverse
from mkclust.linalg import to_host
from mkclust.methods.inductive import InductiveClusterer
from mkclust.methods.parameters import Allowed, Choice
from mkclust.methods.reduced_gradient import solve_reduced_gradient
from mkclust.methods.solution import Solution
from mkclust.stack import KernelStack
from mkclust.subspace import search
from mkclust.surfaces import CuttingSurfaces

# The learned weights suppress structure where they close the cluster gap to less than this share
# of what it is under uniform weights, and the clusters are no longer the same.
SUPPRESSED = 0.5
SAME_CLUSTERS = 0.8


class WeightsWarning(UserWarning):
    """The learned weights suppress structure that the average kernel has."""


def solve_simple_mkkm(
    stack: KernelStack, n_clusters: int, *, tol: float = 1e-6, max_iter: int = 200
) -> Solution:
    r"""Solve SimpleMKKM to a certified relative gap.

    .. math:: \min_{\gamma \in \Delta} J(\gamma), \qquad
              J(\gamma) = \max_{H^\top H = I_k} \mathrm{Tr}(K_\gamma H H^\top), \quad
              K_\gamma = \sum_p \gamma_p^2 K_p

    J is convex, so its minimum is global; ``lower_bound`` certifies how close to it the solution
    is. Weights and eigenvectors are found together in a small subspace (``mkclust.subspace``),
    ties of the k-th and the next eigenvalue included (``mkclust.surfaces``).

    Parameters
    ----------
    stack : KernelStack
        The kernels.
    n_clusters : int
        Number of clusters, k.
    tol : float, default=1e-6
        Relative gap at which to stop.
    max_iter : int, default=200
        Number of iterations at which to give up.

    Returns
    -------
    Solution

    References
    ----------
    .. [1] X. Liu, E. Zhu, J. Liu, T. Hospedales, Y. Wang, M. Wang. SimpleMKKM: Simple Multiple
       Kernel K-means. ICML 2020. Eqs. 4-5.
    """
    surfaces = CuttingSurfaces(stack.n_kernels)
    found = search(stack, n_clusters, surfaces, tol=tol, max_iter=max_iter)
    upper, lower = found.history.T
    return Solution(
        partition=found.relaxation.vectors[:, :n_clusters],
        weights=found.weights,
        objective=found.relaxation.value,
        # An early estimate may turn out to have been too low; what is known last is known best.
        history=np.maximum(np.minimum.accumulate(upper), upper[-1]),
        converged=found.converged,
        coefficients=found.weights**2,
        relaxation=found.relaxation,
        baseline=found.baseline,
        lower_bounds=lower,
        n_iter=len(upper),
        n_passes=found.n_passes,
    )


class SimpleMKKM(InductiveClusterer):
    r"""Simple multiple kernel k-means [1]_, solved to certified global optimality.

    Mixes the kernels as ``K = sum_p gamma_p^2 K_p`` with weights on the simplex, and clusters the
    samples by the leading eigenvectors of the mix. The weights minimize what the partition
    maximizes:

    .. math:: \min_{\gamma \in \Delta} \max_{H^\top H = I_k} \mathrm{Tr}(K_\gamma H H^\top)

    **What "certified" means.** This relaxed problem is convex in the weights, and every fit comes
    with a lower bound on its global minimum: ``duality_gap_`` bounds how far the result is from
    it. It does not say that clusters exist, that ``n_clusters`` is right, that the kernels are
    good, or that the k-means step that turns the relaxed partition into labels is optimal.

    **What a weight means.** ``weights_`` are mixing weights, not importance: at the optimum a
    weight is inversely proportional to the kernel's agreement with the consensus, so a kernel
    without structure gets the largest. Read ``alignments_`` beside them. Where several kernels
    are noise, the minimum can flatten the structure that the others share; a `WeightsWarning`
    says so, and ``baseline_labels_`` holds what uniform weights find.

    Parameters
    ----------
    {inputs}
    solver : {"subspace", "reduced-gradient"}, default="subspace"
        The certified subspace solver, or the paper's Algorithm 1. Both reach the same minimizer,
        but where eigenvalues k and k + 1 tie there, the reduced gradient can stall before it.
    stopping : {"gap", "step"}, default="gap"
        Stop at the certified relative gap ``tol`` or, for the reduced gradient only, as the paper
        does: when no weight changes by more than 1e-4.
    tol : float, default=1e-6
        Certified relative gap at which to stop.
    max_iter : int, default=200
        When to give up, with a warning that says how large the gap still is.
    {seeds}

    Attributes
    ----------
    {labels}
    weights_ : ndarray of shape (n_kernels,)
        Mixing weights, summing to one. Not importance: a large weight means little agreement with
        the consensus.
    coefficients_ : ndarray of shape (n_kernels,)
        Squares of the weights: the mixed kernel is ``sum_p coefficients_p K_p``.
    objective_ : float
        ``Tr(K H H^T)``, the minimum over the weights.
    duality_gap_ : float
        Relative distance of the objective to its global minimum at most. The lower side is exact.
        The upper side is that of an iterative eigensolver beyond 200 samples: what its residuals
        leave open is estimated and counted in, and missed eigenvectors are searched for.
    history_ : ndarray of shape (n_iter_,), with the start before it for the reduced gradient
        Best objective after each iteration, falling, what the residuals leave open counted in.
    lower_bounds_ : ndarray of the shape of history_
        Certified lower bound after each iteration, rising.
    cluster_gap_ : float
        Relative gap between eigenvalues k - 1 and k of the mixed kernel, where the structure of k
        centered clusters shows; NaN for k = 1.
    eigengap_ : float
        Relative gap between eigenvalues k and k + 1: zero at a tie, where the objective has a
        kink. It says nothing about clusters.
    baseline_labels_ : ndarray of shape (n_samples,)
        What uniform weights find: the average kernel's clusters.
    baseline_agreement_ : float
        Adjusted Rand index between ``labels_`` and ``baseline_labels_``.
    baseline_cluster_gap_ : float
        ``cluster_gap_`` under uniform weights.
    n_passes_ : int
        How often every kernel was read while solving.
    {notes}

    References
    ----------
    .. [1] X. Liu, E. Zhu, J. Liu, T. Hospedales, Y. Wang, M. Wang. SimpleMKKM: Simple Multiple
       Kernel K-means. ICML 2020.

    Examples
    --------
    >>> from mkclust import SimpleMKKM
    >>> from mkclust.datasets import load
    >>> digits = load("digits")
    >>> model = SimpleMKKM(n_clusters=10, random_state=0).fit(digits.views)
    >>> model.labels_.shape, bool(model.duality_gap_ < 1e-6)
    ((1797,), True)
    >>> bool((model.predict(digits.views) == model.labels_).all())
    True
    """

    ALLOWED: ClassVar[dict[str, Allowed]] = {
        "solver": Choice(("subspace", "reduced-gradient")),
        "stopping": Choice(("gap", "step")),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernels: Any = "auto",
        center: bool = True,
        normalize: bool = True,
        psd: Literal["error", "clip", "shift"] = "error",
        validate: bool = True,
        solver: Literal["subspace", "reduced-gradient"] = "subspace",
        stopping: Literal["gap", "step"] = "gap",
        tol: float = 1e-6,
        max_iter: int = 200,
        n_init: int = 10,
        random_state: Any = None,
    ):
        super().__init__(
            n_clusters,
            kernels=kernels,
            center=center,
            normalize=normalize,
            psd=psd,
            validate=validate,
            n_init=n_init,
            random_state=random_state,
        )
        self.solver = solver
        self.stopping = stopping
        self.tol = tol
        self.max_iter = max_iter

    def _check_parameters(self) -> None:
        """Refuse parameters that no data could make sense of."""
        super()._check_parameters()
        if self.stopping == "step" and self.solver == "subspace":
            raise ValueError(
                "stopping='step' is the reduced gradient's rule: pass solver='reduced-gradient', "
                "or stopping='gap' for the subspace solver"
            )

    def _solve(self, stack: KernelStack) -> Solution:
        """Solve with the chosen solver."""
        if self.solver == "subspace":
            return solve_simple_mkkm(stack, self.n_clusters, tol=self.tol, max_iter=self.max_iter)
        return solve_reduced_gradient(
            stack, self.n_clusters, tol=self.tol, max_iter=self.max_iter, stopping=self.stopping
        )

    def _explain_stop(self, solution: Solution) -> str:
        """Say why the solver stopped before its rule was met, and what to do about it."""
        if solution.n_iter >= self.max_iter:
            advice = "raise max_iter or tol"
        elif self.solver == "subspace":
            advice = "no further progress, rounding sets a limit; pass float64 or raise tol"
        else:
            advice = "no gradient leads further down (a tie); pass solver='subspace'"
        return (
            f"stopped after {solution.n_iter} iterations at a certified relative gap of "
            f"{solution.gap:.2g} (tol={self.tol:g}): {advice}"
        )

    def _learned(
        self, stack: KernelStack, solution: Solution, labels: np.ndarray
    ) -> dict[str, Any]:
        """Return the certificate and what uniform weights find; warn where they find more."""
        baseline, relaxation = solution.baseline, solution.relaxation
        assert baseline is not None
        assert relaxation is not None
        k = self.n_clusters
        scale = inverse(baseline.eigenvalues[:k], stack.n_samples, stack.precision)
        baseline_labels, _ = self._discretize(to_host(baseline.products[:, :k] * scale))
        learned: dict[str, Any] = {
            "duality_gap_": solution.gap,
            "lower_bounds_": solution.lower_bounds,
            "eigengap_": relaxation.eigengap,
            "cluster_gap_": relaxation.cluster_gap,
            "n_passes_": solution.n_passes,
            "baseline_labels_": baseline_labels,
            "baseline_agreement_": float(adjusted_rand_score(baseline_labels, labels)),
            "baseline_cluster_gap_": baseline.cluster_gap,
        }
        closed = relaxation.cluster_gap < SUPPRESSED * baseline.cluster_gap
        if closed and learned["baseline_agreement_"] < SAME_CLUSTERS:
            warnings.warn(
                "the learned weights suppress structure that the average kernel has: the gap in "
                f"the spectrum where {k} clusters show is {relaxation.cluster_gap:.2g} under the "
                f"learned weights and {baseline.cluster_gap:.2g} under uniform ones, and the two "
                f"agree on the clusters to {learned['baseline_agreement_']:.2f} only (adjusted "
                "Rand index). Some kernels may be noise, or n_clusters may not fit; compare with "
                "baseline_labels_, the average kernel's clusters",
                WeightsWarning,
                stacklevel=3,
            )
        return learned
