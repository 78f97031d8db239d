"""SimpleMKKM: minimize over the weights what the partition maximizes."""

import warnings
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.metrics import adjusted_rand_score

from mkclust.engine.cutting import CuttingSurfaces
from mkclust.engine.relaxation import Relaxation, relax
from mkclust.engine.search import ANCHOR_TOLERANCE, Search, search
from mkclust.linalg import sum_of_squares, to_device
from mkclust.methods.inductive import InductiveClusterer
from mkclust.methods.out_of_sample import inverse
from mkclust.methods.reduced_gradient import solve_reduced_gradient
from mkclust.methods.solution import Solution
from mkclust.metrics import adjusted_rand_of_table
from mkclust.parameters import Allowed, Choice, Either, Number
from mkclust.plots import LARGE_WEIGHT
from mkclust.samples.dask import contingency, is_dask
from mkclust.stack import KernelStack
from mkclust.stack.discretize import discretize
from mkclust.types import Array

# The learned weights suppress structure where the partition keeps less than this share of the
# average kernel's leading directions, and agrees with its clusters to less than this.
SUPPRESSED, OTHER_CLUSTERS = 0.9, 0.8
# An anchor chosen automatically is the first of these at which the partition keeps this share of
# the leading directions, and agrees to this with the clusters: closer than what is warned of.
ANCHORS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
KEPT, SAME_CLUSTERS = 0.98, 0.95
# By so many roundings of the kernels' entries, at most, alignments are rounded up.
ROUNDINGS = 2


class WeightsWarning(UserWarning):
    """The learned weights suppress structure that the average kernel has."""


def solve_simple_mkkm(
    stack: KernelStack,
    n_clusters: int,
    *,
    anchor: float = 0.0,
    tol: float = 1e-6,
    max_iter: int = 200,
    baseline: Relaxation | None = None,
    prove: bool | Literal["auto"] = "auto",
) -> Solution:
    r"""Solve SimpleMKKM to a certified relative gap.

    .. math:: \min_{\gamma \in \Delta} J(\gamma), \qquad
              J(\gamma) = \max_{H^\top H = I_k} \mathrm{Tr}(K_\gamma H H^\top), \quad
              K_\gamma = \sum_p \gamma_p^2 K_p

    J is convex, so its minimum is global; ``lower_bound`` certifies how close to it the solution
    is. Weights and eigenvectors are found together in a small subspace (``mkclust.engine.search``),
    ties of the k-th and the next eigenvalue included (``mkclust.engine.cutting``).

    Anchored, the partition is drawn to that of the average kernel, :math:`H_0`. The problem stays
    convex and is certified alike:

    .. math:: \min_{\gamma \in \Delta} \max_{H^\top H = I_k}
              \mathrm{Tr}((K_\gamma + c H_0 H_0^\top) H H^\top)

    Parameters
    ----------
    stack : KernelStack
        The kernels.
    n_clusters : int
        Number of clusters, k.
    anchor : float, default=0.0
        c is so many times the mean of the k largest eigenvalues of the average kernel, divided by
        the number of kernels. Zero is the paper's problem; a large one tends to the partition of
        the average kernel.
    tol : float, default=1e-6
        Relative gap at which to stop.
    max_iter : int, default=200
        Number of iterations at which to give up.
    baseline : Relaxation, default=None
        The partition of the uniform weights, where it is known from another solve.
    prove : bool or "auto", default="auto"
        Whether to prove, by a Cholesky factorization of one more n x n matrix, that no eigenvector
        was missed. "auto" does so where it takes a fraction of the solve, or where a random search
        cannot tell; False only searches.

    Returns
    -------
    Solution

    References
    ----------
    .. [1] X. Liu, E. Zhu, J. Liu, T. Hospedales, Y. Wang, M. Wang. SimpleMKKM: Simple Multiple
       Kernel K-means. ICML 2020. Eqs. 4-5.
    """
    surfaces = CuttingSurfaces(stack.n_kernels, ROUNDINGS * stack.precision)
    result = search(
        stack,
        n_clusters,
        surfaces,
        tol=tol,
        max_iter=max_iter,
        anchor=anchor,
        baseline=baseline,
        prove=prove,
    )
    upper, lower = result.history.T
    return Solution(
        partition=result.relaxation.vectors[:, :n_clusters],
        weights=result.weights,
        objective=result.relaxation.value,
        # An early estimate may turn out to have been too low; what is known last is known best.
        history=np.maximum(np.minimum.accumulate(upper), upper[-1]),
        converged=result.converged,
        coefficients=result.weights**2,
        relaxation=result.relaxation,
        projections=_projections(stack, result),
        anchor=anchor,
        baseline=result.baseline,
        lower_bounds=lower,
        certificate=result.certificate,
        n_iter=len(upper),
        n_passes=result.n_passes,
    )


def _projections(stack: KernelStack, result: Search) -> list[Array] | None:
    """Return an anchored partition as a function of similarities; others follow from their mix."""
    if result.anchor is None:
        return None
    k, m, baseline = result.relaxation.n_clusters, stack.n_kernels, result.baseline
    H = result.relaxation.vectors[:, :k]
    values = result.relaxation.eigenvalues[:k]
    H = H * to_device(inverse(values, stack.n_samples, stack.precision), H)
    # H_0 is a function of the average kernel, which the anchor adds to the mix: H_0 = K H_0 / L_0.
    H_0 = result.anchor.vectors
    scale = inverse(baseline.eigenvalues[:k], stack.n_samples, stack.precision)
    shared = (H_0 * to_device(scale, H_0)) @ (result.anchor.strength * (H_0.T @ H)) / m**2
    return [float(c) * H + shared for c in result.weights**2]


def _agreement(first: Array, second: Array, n_clusters: int) -> float:
    """Return the adjusted Rand index of two clusterings; only counts of a dask array travel."""
    if is_dask(first):
        return adjusted_rand_of_table(contingency(first, second, n_clusters))
    return float(adjusted_rand_score(first, second))


def structure_kept(partition: Array, baseline: Relaxation) -> float:
    """Return the share of a baseline's leading k - 1 directions that a partition keeps, 0 to 1.

    The structure of k centered clusters has k - 1 dimensions: the k-th direction is noise, and
    need not be kept.
    """
    leading = max(baseline.n_clusters - 1, 1)
    return sum_of_squares(baseline.vectors[:, :leading].T @ partition) / leading


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

    **What an anchor does.** It draws the partition towards that of the average kernel, which noise
    views disturb much less. The problem stays convex and certified. A large anchor tends to the
    average kernel's answer, so it cannot be much better than that either. ``anchor="auto"`` takes
    the smallest anchor, or 16, at which the partition keeps what the average kernel shows:
    98 % of its leading k - 1 directions, and its clusters to an adjusted Rand index of 0.95. It
    uses no labels, and trusts the average kernel: where that is wrong, so is what it protects.

    Parameters
    ----------
    {inputs}
    {approximation}
    solver : {"subspace", "reduced-gradient"}, default="subspace"
        The certified subspace solver, or the paper's Algorithm 1. Both reach the same minimizer,
        but where eigenvalues k and k + 1 tie there, the reduced gradient can stall before it.
    anchor : float or "auto", default=0.0
        How strongly the partition is drawn to that of the average kernel, in units of its mean
        leading eigenvalue, up to 1000. Zero is the paper's method. "auto" tries 0, 1/4, 1/2, 1,
        ..., 16, and takes up to eight solves.
    stopping : {"gap", "step"}, default="gap"
        Stop at the certified relative gap ``tol`` or, for the reduced gradient only, as the paper
        does: when no weight changes by more than 1e-4.
    prove : bool or "auto", default="auto"
        Whether to prove, by a Cholesky factorization of one more n x n matrix, that the eigensolver
        missed no eigenvector. "auto" does so where it takes a fraction of the solve, or where a
        random search cannot tell; False only searches. ``certificate_`` says what was done.
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
    anchor_ : float
        The anchor used.
    objective_ : float
        ``Tr(K H H^T)``, the minimum over the weights, with what the anchor adds.
    duality_gap_ : float
        Relative distance of the objective to its global minimum at most. The lower side is exact,
        and so is the upper one where ``certificate_`` is "proved"; otherwise it holds but for the
        probability that is told there. With an
        approximation it is the gap of the approximated problem; how far that is from the kernels
        themselves, ``approximation_error_`` tells.
    certificate_ : str
        How it is known that the eigensolver missed nothing: "proved" (by a factorization or a dense
        eigendecomposition), "searched (missed with probability at most ...)" or, for streamed
        kernels and those computed on the fly, "searched"; "open" where the solver stopped before.
    history_ : ndarray of shape (n_iter_,), with the start before it for the reduced gradient
        Best objective after each iteration, falling, what the residuals leave open counted in.
    lower_bounds_ : ndarray of the shape of history_
        Certified lower bound after each iteration, rising.
    cluster_gap_ : float
        Relative gap between eigenvalues k - 1 and k of the mixed kernel, anchor included, where the
        structure of k centered clusters shows; NaN for k = 1.
    eigengap_ : float
        Relative gap between eigenvalues k and k + 1: zero at a tie, where the objective has a
        kink. It says nothing about clusters.
    baseline_labels_ : ndarray of shape (n_samples,)
        What uniform weights find: the average kernel's clusters.
    baseline_agreement_ : float
        Adjusted Rand index between ``labels_`` and ``baseline_labels_``.
    baseline_cluster_gap_ : float
        ``cluster_gap_`` under uniform weights.
    structure_kept_ : float
        The share of the average kernel's leading k - 1 directions that the partition keeps.
    n_passes_ : int
        How often every kernel was read while solving.
    {notes}
    {approximation_error}

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

    SUMMARY: ClassVar[str] = (
        "which mixes the kernels by the squares of weights on the simplex; the weights minimize "
        "the alignment with a relaxed partition that the partition maximizes"
    )
    REFERENCES: ClassVar[tuple[str, ...]] = (
        "X. Liu, E. Zhu, J. Liu, T. Hospedales, Y. Wang, M. Wang. SimpleMKKM: Simple Multiple "
        "Kernel K-means. ICML, 2020.",
    )
    WEIGHT_MEANING: ClassVar[str] = LARGE_WEIGHT
    ALLOWED: ClassVar[dict[str, Allowed]] = {
        "solver": Choice(("subspace", "reduced-gradient")),
        # A larger one leaves the weights no share in the objective that could be told.
        "anchor": Either(Number(0, 1000), Choice(("auto",))),
        "stopping": Choice(("gap", "step")),
        "prove": Choice((True, False, "auto")),
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
        approximation: Any = None,
        solver: Literal["subspace", "reduced-gradient"] = "subspace",
        anchor: float | Literal["auto"] = 0.0,
        stopping: Literal["gap", "step"] = "gap",
        prove: bool | Literal["auto"] = "auto",
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
            approximation=approximation,
            n_init=n_init,
            random_state=random_state,
        )
        self.solver = solver
        self.anchor = anchor
        self.stopping = stopping
        self.prove = prove
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
        if self.anchor != 0 and self.solver != "subspace":
            raise ValueError(
                f"anchor={self.anchor!r}: the reduced gradient is the paper's and has no anchor; "
                "pass solver='subspace', or anchor=0"
            )

    def _solve(self, stack: KernelStack) -> Solution:
        """Solve with the chosen solver."""
        if self.anchor != 0 and stack.n_kernels < 2:
            raise ValueError(
                f"anchor={self.anchor!r} with one kernel: there are no weights to protect; pass at "
                "least two kernels, or anchor=0"
            )
        if self.anchor == "auto":
            return self._solve_anchored(stack)
        if self.solver == "subspace":
            return solve_simple_mkkm(
                stack,
                self.n_clusters,
                anchor=self.anchor,
                tol=self.tol,
                max_iter=self.max_iter,
                prove=self.prove,
            )
        return solve_reduced_gradient(
            stack,
            self.n_clusters,
            tol=self.tol,
            max_iter=self.max_iter,
            stopping=self.stopping,
            prove=self.prove,
        )

    def _solve_anchored(self, stack: KernelStack) -> Solution:
        """Solve with the smallest anchor that keeps the average kernel's structure."""
        k, baseline = self.n_clusters, None
        n_passes = 0
        for anchor in ANCHORS:
            solution = solve_simple_mkkm(
                stack,
                k,
                anchor=anchor,
                tol=self.tol,
                max_iter=self.max_iter,
                baseline=baseline,
                prove=self.prove,
            )
            n_passes += solution.n_passes
            if baseline is None:
                assert solution.baseline is not None
                # What anchors is part of the problem, and must be known as well as it is solved.
                uniform = np.full(stack.n_kernels, 1 / stack.n_kernels)
                start = solution.baseline.vectors
                baseline = relax(stack.combine(uniform**2), k, tol=ANCHOR_TOLERANCE, start=start)
                clusters = self._clusters(stack, baseline.vectors[:, :k])
            share_kept = structure_kept(solution.partition, baseline)
            labels = self._clusters(stack, solution.partition)
            if k == 1 or (
                share_kept >= KEPT and adjusted_rand_score(clusters, labels) >= SAME_CLUSTERS
            ):
                break
        return replace(solution, n_passes=n_passes)

    def _clusters(self, stack: KernelStack, partition: Array) -> np.ndarray:
        """Return clusters to compare; always of one seed, so that the anchor hangs on none."""
        rows = stack.lift_some(partition)
        return discretize(rows, self.n_clusters, n_init=self.n_init, random_state=0)[0]

    def _explain_stop(self, solution: Solution) -> str:
        """Say why the solver stopped before its rule was met, and what to do about it."""
        if solution.n_iter >= self.max_iter:
            advice = "raise max_iter or tol"
        elif self.solver == "subspace":
            advice = (
                "no further progress: eigenvalues around the last one that counts lie too close "
                "together, or rounding sets a limit; raise tol, or pass float64 where kernels are "
                "float32"
            )
        else:
            advice = "no gradient leads further down (a tie); pass solver='subspace'"
        return (
            f"stopped after {solution.n_iter} iterations at a certified relative gap of "
            f"{solution.gap:.2g} (tol={self.tol:g}): {advice}"
        )

    def _further_rows(self, stack: KernelStack, solution: Solution) -> list[Array]:
        """Return the rows of the average kernel's partition."""
        baseline, k = solution.baseline, self.n_clusters
        assert baseline is not None
        scale = inverse(baseline.eigenvalues[:k], stack.n_samples, stack.precision)
        products = baseline.products[:, :k]
        return [products * to_device(scale, products)]

    def _learned(
        self, stack: KernelStack, solution: Solution, labels: Array, *further: Array
    ) -> dict[str, Any]:
        """Return the certificate and what uniform weights find; warn where they find more."""
        baseline, relaxation = solution.baseline, solution.relaxation
        assert baseline is not None
        assert relaxation is not None
        k = self.n_clusters
        baseline_labels, _ = self._discretize(further[0])
        learned: dict[str, Any] = {
            "duality_gap_": solution.gap,
            "certificate_": str(solution.certificate),
            "lower_bounds_": solution.lower_bounds,
            "eigengap_": relaxation.eigengap,
            "cluster_gap_": relaxation.cluster_gap,
            "n_passes_": solution.n_passes,
            "baseline_labels_": baseline_labels,
            "baseline_agreement_": _agreement(baseline_labels, labels, k),
            "baseline_cluster_gap_": baseline.cluster_gap,
            "structure_kept_": structure_kept(solution.partition, baseline),
            "anchor_": solution.anchor,
        }
        share_kept, agreement = learned["structure_kept_"], learned["baseline_agreement_"]
        if share_kept < SUPPRESSED and agreement < OTHER_CLUSTERS:
            warnings.warn(
                "the learned weights suppress structure that the average kernel has: the "
                f"partition keeps {share_kept:.0%} of the directions in which the average kernel "
                f"shows its {k} clusters, and agrees with them to {agreement:.2f} only (adjusted "
                "Rand index). Some kernels may be noise, or n_clusters may not fit; pass "
                "anchor='auto', compare with baseline_labels_, the average kernel's clusters, or "
                "ask mkclust.diagnose which kernels share nothing with the others",
                WeightsWarning,
                stacklevel=3,
            )
        return learned
