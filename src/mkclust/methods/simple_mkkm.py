"""SimpleMKKM: minimize over the weights what the partition maximizes."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from mkclust.engine.certificate import search_key
from mkclust.engine.eigen import Relaxation
from mkclust.engine.search import Search, search
from mkclust.exceptions import WeightsWarning, warn
from mkclust.methods.agreement import Agreement
from mkclust.methods.certified import CertifiedClusterer
from mkclust.methods.documentation import LARGE_WEIGHT
from mkclust.methods.inductive import InductiveClusterer
from mkclust.methods.learned_fill import AlignedFills, learn_fills
from mkclust.methods.reduced_gradient import solve_reduced_gradient
from mkclust.methods.solution import Solution
from mkclust.parameters import Allowed, Choice
from mkclust.stack import Stack
from mkclust.text import join_words
from mkclust.types import Array, Float

# The learned weights are warned of if they find other clusters than the compromise of the views
# does: if the adjusted Rand index of both is below this.
OTHER_CLUSTERS = 0.8


def solve_simple_mkkm(
    stack: Stack,
    n_clusters: int,
    *,
    tol: float = 1e-6,
    max_iter: int = 200,
    prove: bool | Literal["auto"] = "auto",
    start: Relaxation | None = None,
    random_state: Any = None,
) -> Solution:
    r"""Solve SimpleMKKM to a certified relative gap.

    .. math:: \min_{\gamma \in \Delta} J(\gamma), \qquad
              J(\gamma) = \max_{H^\top H = I_k} \mathrm{Tr}(K_\gamma H H^\top), \quad
              K_\gamma = \sum_p \gamma_p^2 K_p

    J is convex, so its minimum is global; ``lower_bound`` certifies how close to it the solution
    is. Weights and eigenvectors are found together in a small subspace (``mkclust.engine.search``),
    ties of the k-th and the next eigenvalue included (``mkclust.engine.cutting``).

    Parameters
    ----------
    stack : Stack
        The kernels.
    n_clusters : int
        Number of clusters, k.
    tol : float, default=1e-6
        Relative gap at which to stop.
    max_iter : int, default=200
        Number of iterations at which to give up.
    prove : bool or "auto", default="auto"
        Whether to prove, by a Cholesky factorization of one more n x n matrix, that no eigenvector
        was missed. "auto" does so where it is cheaper than a search, or where a random search
        cannot tell; False only searches.
    start : Relaxation, default=None
        A partition to begin with, such as that of similar kernels; None begins with that of weights
        found on a sample.
    random_state : int, RandomState or None, default=None
        What the random vectors of a search for missed eigenvectors depend on; with None they are
        always the same.

    Returns
    -------
    Solution

    References
    ----------
    .. [1] X. Liu, E. Zhu, J. Liu, T. Hospedales, Y. Wang, M. Wang. SimpleMKKM: Simple Multiple
       Kernel K-means. ICML 2020. Eqs. 4-5.
    """
    result = search(
        stack,
        n_clusters,
        tol=tol,
        max_iter=max_iter,
        prove=prove,
        start=None if start is None else start.vectors,
        key=search_key(random_state),
    )
    return replace(solution_of(result), shared_sums=result.alignments)


def solution_of(result: Search) -> Solution:
    """Return what a search found as the solution of a method."""
    upper, lower = result.history.T
    return Solution(
        partition=result.relaxation.vectors[:, : result.relaxation.n_clusters],
        weights=result.weights,
        objective=result.relaxation.value,
        # An early estimate may turn out to have been too low; what is known last is known best.
        history=np.maximum(np.minimum.accumulate(upper), upper[-1]),
        converged=result.converged,
        coefficients=result.weights**2,
        relaxation=result.relaxation,
        lower_bounds=lower,
        certificate=result.certificate,
        n_iter=len(upper),
        n_passes=result.n_passes,
    )


class SimpleClusterer(CertifiedClusterer):
    """Base of SimpleMKKM and its localized form: the choice of the solver."""

    solver: Literal["subspace", "reduced-gradient"] = "subspace"
    stopping: Literal["gap", "step"] = "gap"

    WEIGHT_MEANING: ClassVar[str] = LARGE_WEIGHT
    ALLOWED: ClassVar[dict[str, Allowed]] = CertifiedClusterer.ALLOWED | {
        "solver": Choice(("subspace", "reduced-gradient")),
        "stopping": Choice(("gap", "step")),
    }

    def check_parameters(self) -> None:
        """Refuse parameters that no data could make sense of."""
        super().check_parameters()
        if self.stopping == "step" and self.solver == "subspace":
            raise ValueError(
                "stopping='step' is the reduced gradient's rule: pass solver='reduced-gradient', "
                "or stopping='gap' for the subspace solver"
            )

    def _minimize(self, stack: Stack, previous: Solution | None = None) -> Solution:
        """Solve with the chosen solver, which may begin with an earlier solution."""
        if self.solver == "subspace":
            return solve_simple_mkkm(
                stack,
                self.n_clusters,
                tol=self.tol,
                max_iter=self.max_iter,
                prove=self.prove,
                start=None if previous is None else previous.relaxation,
                random_state=self.random_state,
            )
        return solve_reduced_gradient(
            stack,
            self.n_clusters,
            tol=self.tol,
            max_iter=self.max_iter,
            stopping=self.stopping,
            prove=self.prove,
            random_state=self.random_state,
        )

    def _explain_stop(self, solution: Solution) -> str:
        """Say why the solver stopped before its rule was met, and what to do about it."""
        if self.solver == "subspace" or solution.n_iter >= self.max_iter:
            return super()._explain_stop(solution)
        return (
            f"stopped after {solution.n_iter} iterations at a certified relative gap of "
            f"{solution.gap:.2g} (tol={self.tol:g}): no gradient leads further down (a tie); pass "
            "solver='subspace'"
        )


class SimpleMKKM(SimpleClusterer, InductiveClusterer):
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
    without structure gets the largest. Read ``alignments_`` beside them. Where some views share
    nothing with the others, the minimum can flatten what the others share: a `WeightsWarning` says
    so where the clusters are not those that the views agree on. `AgreementKKM` and `AnchoredMKKM`
    set such views aside.

    **Samples missing from views.** With ``missing_views="learn"``, the default, what stands for
    them is learned in turns with the clustering, to raise the same objective: combinations of
    observed samples along what the partition says of a missing one, no longer than what it explains
    of those observed. The objective after each turn is in ``fill_history_``; turns end where it
    rises by 0.1 % or less, or after 20. ``duality_gap_`` is that of the last solve: it bounds the
    distance to the optimum over weights and partitions for these fills, not over fills.

    Parameters
    ----------
    {inputs}
    {neighbors}
    {approximation}
    {solver}
    {proof}
    {seeds}
    {tables}

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
    {certificate}
    history_ : ndarray of shape (n_iter_,), with the start before it for the reduced gradient
        Best objective after each iteration, falling, what the residuals leave open counted in.
    {notes}
    {approximation_error}

    References
    ----------
    {references}

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

    LEARNS_MISSING: ClassVar[bool] = True

    def _solve(self, stack: Stack) -> Solution:
        """Solve with the chosen solver, and learn what is missing where that is asked for."""
        if not self._learns_missing(stack):
            return self._minimize(stack)
        return learn_fills(stack, self._minimize, AlignedFills(), goal="rising")

    def _learned(
        self, stack: Stack, solution: Solution, labels: Array, *further: Array
    ) -> dict[str, Any]:
        """Return the certificate and what the compromise finds; warn where that is different."""
        learned = super()._learned(stack, solution, labels, *further)
        warn_of_other_clusters(solution, learned["baseline_agreement_"])
        return learned


def warn_of_other_clusters(solution: Solution, rand_index: float) -> None:
    """Warn, from within `_learned`, where the weights find other clusters than the compromise."""
    agreement = solution.agreement
    if agreement is not None and agreement.any_share and rand_index < OTHER_CLUSTERS:
        message = _explain_other_clusters(agreement, solution.weights, rand_index)
        warn(message, WeightsWarning)


def _explain_other_clusters(agreement: Agreement, weights: Float, rand_index: float) -> str:
    """Say that the weights find other clusters than the views agree on, why, and what to take."""
    strangers = agreement.set_aside
    reason = "The views agree to different degrees, or n_clusters may not fit"
    advice = "compare with AgreementKKM, which finds baseline_labels_"
    if strangers:
        indices = [agreement.names.index(name) for name in strangers]
        share, have, them = (
            ("shares", "has", "it") if len(strangers) == 1 else ("share", "have", "them")
        )
        reason = (
            f"{join_words(strangers)} {share} nothing with the other views beyond chance, and "
            f"{have} {weights[indices].sum():.0%} of the weight"
        )
        advice = f"use AgreementKKM, which sets {them} aside"
    return (
        "the learned weights find other clusters than those that the views agree on: the "
        "adjusted Rand index between labels_ and baseline_labels_, the clusters that the "
        f"views agree on, is {rand_index:.2f}. {reason}; {advice}, or use AnchoredMKKM, "
        "which stays near them"
    )
