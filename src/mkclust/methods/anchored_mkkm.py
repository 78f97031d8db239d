"""AnchoredMKKM: SimpleMKKM over the views that agree, drawn to their compromise."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.metrics import adjusted_rand_score

from mkclust.engine.certificate import rounding_of_entries, search_key
from mkclust.engine.eigen import Relaxation, relax
from mkclust.engine.search import search
from mkclust.linalg import select, sum_of_squares, to_device, to_host, zeros
from mkclust.methods.agreement_kkm import Compromise, find_compromise, names_set_aside
from mkclust.methods.certified import CertifiedClusterer
from mkclust.methods.documentation import LARGE_WEIGHT
from mkclust.methods.inductive import InductiveClusterer
from mkclust.methods.out_of_sample import inverse
from mkclust.methods.simple_mkkm import solution_of
from mkclust.methods.solution import Solution
from mkclust.parameters import Allowed, Choice, Either, Number
from mkclust.stack import Factored, Stack
from mkclust.stack.discretize import discretize
from mkclust.stack.observed import with_active
from mkclust.types import Array, Float

# An anchor chosen automatically is the first of these at which the partition keeps this share of
# the compromise's leading directions, and agrees to this with its clusters.
ANCHORS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
SHARE_KEPT, SAME_CLUSTERS = 0.98, 0.95
# How accurately (relative to the value) the compromise is solved: it becomes part of the problem,
# which vectors do to first order, while eigenvalues tell of their error to second.
ANCHOR_TOLERANCE = 1e-12


def solve_anchored_mkkm(
    stack: Stack,
    n_clusters: int,
    *,
    anchor: float | Literal["auto"] = "auto",
    tol: float = 1e-6,
    max_iter: int = 200,
    prove: bool | Literal["auto"] = "auto",
    n_init: int = 10,
    random_state: Any = None,
) -> Solution:
    r"""Solve SimpleMKKM over the kernels that agree, drawn to their compromise's partition.

    .. math:: \min_{\gamma \in \Delta} \max_{H^\top H = I_k}
              \mathrm{Tr}((K_\gamma + c H_0 H_0^\top) H H^\top), \quad
              K_\gamma = \sum_{p \text{ included}} \gamma_p^2 K_p

    :math:`H_0` is the partition of the compromise (``mkclust.methods.agreement_kkm``). The problem
    is convex as SimpleMKKM's is, and certified alike.

    Parameters
    ----------
    stack : Stack
        The kernels.
    n_clusters : int
        Number of clusters, k.
    anchor : float or "auto", default="auto"
        c is so many times the mean of the k largest eigenvalues of the compromise, divided by the
        number of kernels that are included. "auto" is the smallest of 0, 1/4, 1/2, 1, ..., 16 at
        which the partition keeps what the compromise shows.
    tol : float, default=1e-6
        Relative gap at which to stop.
    max_iter : int, default=200
        Number of iterations at which to give up.
    prove : bool or "auto", default="auto"
        As in `solve_simple_mkkm`.
    n_init : int, default=10
        Number of k-means starts by which "auto" compares clusters.
    random_state : int, RandomState or None, default=None
        What the random vectors of a search for missed eigenvectors depend on; with None they are
        always the same.

    Returns
    -------
    Solution
    """
    compromise = find_compromise(stack)
    included, n_included = compromise.stack, len(compromise.indices)
    mix = included.mix(compromise.coefficients / n_included)
    baseline = relax(mix, n_clusters, tol=ANCHOR_TOLERANCE)
    n_passes = 2
    for factor in ANCHORS if anchor == "auto" else (anchor,):
        strength = float(factor * baseline.value / n_clusters)
        result = search(
            _with_anchor(included, baseline, strength) if strength else included,
            n_clusters,
            tol=tol,
            max_iter=max_iter,
            n_fixed=1 if strength else 0,
            start=baseline.vectors,
            prove=prove,
            key=search_key(random_state),
        )
        n_passes += result.n_passes
        solution = replace(solution_of(result), baseline=baseline)
        if n_clusters == 1 or _keeps(stack, solution.partition, baseline, n_init):
            break
    weights = compromise.scatter(solution.weights)
    return replace(
        solution,
        weights=weights,
        coefficients=weights**2,
        projections=_projections(stack, solution, compromise, strength),
        anchor=factor,
        agreement=compromise.agreement,
        included=compromise.indices,
        n_passes=n_passes,
        stack=replace(stack, kernels=with_active(stack.kernels, compromise.indices)),
    )


def _with_anchor(stack: Stack, baseline: Relaxation, strength: float) -> Stack:
    """Return a stack with ``c H_0 H_0^T`` as its last kernel."""
    anchor = Factored(strength**0.5 * baseline.vectors[:, : baseline.n_clusters])
    return Stack((*stack.kernels, anchor), (*stack.names, "anchor"), (*stack.views, -1))


def _keeps(stack: Stack, partition: Array, baseline: Relaxation, n_init: int) -> bool:
    """Return whether a partition keeps the leading directions and the clusters of a baseline.

    The structure of k centered clusters has k - 1 dimensions: the k-th direction is noise, and
    need not be kept. Clusters are always those of one seed, so that the anchor depends on none.
    """
    k = baseline.n_clusters
    leading = max(k - 1, 1)
    share_kept = sum_of_squares(baseline.vectors[:, :leading].T @ partition) / leading
    if share_kept < SHARE_KEPT:
        return False
    labels = []
    for H in (baseline.vectors[:, :k], partition):
        rows = H if stack.features is None else stack.features.lift_some(H)
        labels.append(discretize(rows, k, n_init=n_init, random_state=0)[0])
    return adjusted_rand_score(*labels) >= SAME_CLUSTERS


def _projections(
    stack: Stack, solution: Solution, compromise: Compromise, strength: float
) -> list[Array] | None:
    """Return an anchored partition as a function of similarities; others follow from their mix."""
    baseline, relaxation = solution.baseline, solution.relaxation
    if not strength or baseline is None or relaxation is None:
        return None
    k, H, precision = relaxation.n_clusters, solution.partition, rounding_of_entries(stack)
    H = H * to_device(inverse(relaxation.eigenvalues[:k], stack.n_samples, precision), H)
    # H_0 is a function of the compromise, which the anchor adds to the mix: H_0 = K H_0 / L_0.
    H_0 = baseline.vectors[:, :k]
    scale = inverse(baseline.eigenvalues[:k], stack.n_samples, precision)
    shared = (H_0 * to_device(scale, H_0)) @ (strength * (H_0.T @ H))
    coefficients = compromise.coefficients / len(compromise.indices)
    projections = [zeros(tuple(H.shape), H) for _ in range(stack.n_kernels)]
    for p, weight, c in zip(compromise.indices, solution.weights, coefficients, strict=True):
        projections[p] = float(weight) ** 2 * H + float(c) * shared
    return projections


class AnchoredMKKM(CertifiedClusterer, InductiveClusterer):
    r"""SimpleMKKM over the views that agree, drawn to their compromise; certified.

    .. math:: \min_{\gamma \in \Delta} \max_{H^\top H = I_k}
              \mathrm{Tr}((K_\gamma + c H_0 H_0^\top) H H^\top)

    SimpleMKKM gives the largest weight to the kernel that agrees least, so views that share nothing
    with the others mislead it. Here these are set aside, as by `AgreementKKM`, and the partition is
    drawn to that of the others' compromise, :math:`H_0`. The problem stays convex, and every fit
    comes with a certificate as SimpleMKKM's does.

    **What a weight means.** ``weights_`` are mixing weights, not importance: a large one means
    little agreement with the consensus, zero that a view was set aside, or has no part in the
    minimum. Read ``alignments_`` beside them.

    Parameters
    ----------
    {inputs}
    {neighbors}
    {approximation}
    anchor : float or "auto", default="auto"
        How strongly the partition is drawn to that of the compromise, in units of its mean leading
        eigenvalue over the number of views that are included, up to 1000. Zero is SimpleMKKM over
        these views. "auto" tries 0, 1/4, 1/2, 1, ..., 16, and takes the first at which the
        partition keeps 98 % of the compromise's leading k - 1 directions, and its clusters to an
        adjusted Rand index of 0.95.
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
    set_aside_ : tuple of str
        Names of the kernels that share nothing with those that are included.
    anchor_ : float
        The anchor used.
    objective_ : float
        ``Tr((K + c H_0 H_0^T) H H^T)``, the minimum over the weights.
    {certificate}
    history_ : ndarray of shape (n_iter_,)
        Best objective after each iteration, falling, what the residuals leave open counted in.
    {notes}
    {approximation_error}

    References
    ----------
    {references}

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import AnchoredMKKM
    >>> from mkclust.datasets import load
    >>> views = {name: view[:500] for name, view in load("digits").views.items()}
    >>> views["static"] = np.random.default_rng(0).normal(size=(500, 20))
    >>> model = AnchoredMKKM(n_clusters=10, random_state=0).fit(views)
    >>> model.set_aside_, bool(model.duality_gap_ < 1e-6)
    (('static',), True)
    """

    anchor: float | Literal["auto"] = "auto"

    SUMMARY: ClassVar[str] = (
        "which mixes the kernels that agree with another one beyond chance by the squares of "
        "weights on the simplex, the partition drawn to that of their compromise"
    )
    REFERENCES: ClassVar[tuple[str, ...]] = (
        "X. Liu, E. Zhu, J. Liu, T. Hospedales, Y. Wang, M. Wang. SimpleMKKM: Simple Multiple "
        "Kernel K-means. ICML, 2020.",
        "L. Song, A. Smola, A. Gretton, J. Bedo, K. Borgwardt. Feature Selection via Dependence "
        "Maximization. JMLR 13, 2012.",
    )
    WEIGHT_MEANING: ClassVar[str] = LARGE_WEIGHT
    ALLOWED: ClassVar[dict[str, Allowed]] = CertifiedClusterer.ALLOWED | {
        # A larger one leaves the weights no share in the objective that could be told.
        "anchor": Either(Number(0, 1000), Choice(("auto",))),
    }

    def _solve(self, stack: Stack) -> Solution:
        """Solve with the anchor, or the smallest that keeps what the compromise shows."""
        return solve_anchored_mkkm(
            stack,
            self.n_clusters,
            anchor=self.anchor,
            tol=self.tol,
            max_iter=self.max_iter,
            prove=self.prove,
            n_init=self.n_init,
            random_state=self.random_state,
        )

    def _compromise(self, stack: Stack, solution: Solution) -> Relaxation | None:
        """Return the partition of the views' compromise."""
        return solution.baseline

    def _learned(
        self, stack: Stack, solution: Solution, labels: Array, *further: Array
    ) -> dict[str, Any]:
        """Return the certificate, the anchor, and which kernels were set aside."""
        learned = super()._learned(stack, solution, labels, *further)
        aside = names_set_aside(stack, solution)
        learned |= {"anchor_": solution.anchor, "set_aside_": aside}
        baseline, k = solution.baseline, self.n_clusters
        if solution.anchor and baseline is not None and stack.features is None:
            strength = float(solution.anchor * baseline.value / k)
            learned["_anchor_rows"] = strength**0.5 * baseline.vectors[:, :k]
        return learned

    def _mixed_among(self, stack: Stack, samples: np.ndarray | None) -> Float:
        """Return the mix among samples that exist, with what draws it to the compromise."""
        mixed = to_host(super()._mixed_among(stack, samples))
        rows = getattr(self, "_anchor_rows", None)
        if rows is None:
            return mixed
        rows = to_host(rows if samples is None else select(rows, samples))
        return mixed + rows @ rows.T
