"""AnchoredMKKM: SimpleMKKM over the views that agree, drawn to their compromise."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.metrics import adjusted_rand_score

from mkclust.engine.certificate import rounding_of_entries
from mkclust.engine.eigen import Relaxation, relax
from mkclust.fit.embedding import inverse
from mkclust.fit.inductive import InductiveClusterer
from mkclust.fit.mixture import EIGEN_TOLERANCE
from mkclust.fit.rounding import root_of_gram
from mkclust.fit.solution import Solution
from mkclust.linalg import sum_of_squares, to_device, zeros
from mkclust.methods.agreement_kkm import AgreementKKM
from mkclust.methods.compromise import Compromise, find_compromise
from mkclust.methods.simple_mkkm import (
    CertifiedClusterer,
    SimpleMKKM,
    solve_simple_mkkm,
)
from mkclust.parameters import Allowed, Choice, Either, Number
from mkclust.stack import Factored, Mix, Stack
from mkclust.stack.discretize import discretize
from mkclust.types import Array

# The anchors that "auto" tries, in this order.
ANCHORS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
# Share of the compromise's leading directions that the partition has to keep.
SHARE_KEPT = 0.98


def solve_anchored_mkkm(
    stack: Stack,
    n_clusters: int,
    *,
    anchor: float | Literal["auto"] = "auto",
    n_init: int = 10,
    rounding: str = "best",
    **options: Any,
) -> Solution:
    """Minimize the objective of `AnchoredMKKM`.

    ``n_init`` and ``rounding`` are those of the k-means by which ``anchor="auto"``
    compares clusters: by components, unless rows of unit length are asked for. The
    ``options`` are those of `solve_simple_mkkm`.
    """
    compromise = find_compromise(stack)
    included = compromise.stack
    mix = included.mix(compromise.coefficients / len(compromise.indices))
    baseline = relax(mix, n_clusters, tol=EIGEN_TOLERANCE)
    H_0 = baseline.vectors[:, :n_clusters]
    n_passes = 2
    starts: Any = {"n_init": n_init, "is_unit": rounding == "unit"}
    for factor in ANCHORS if anchor == "auto" else (anchor,):
        strength = float(factor * baseline.value / n_clusters)  # c
        anchored = included
        if strength:  # the last kernel is c H_0 H_0^T
            kernels = *included.kernels, Factored(strength**0.5 * H_0)
            anchored = Stack(
                kernels, (*included.names, "anchor"), (*included.views, -1)
            )
        solution = solve_simple_mkkm(
            anchored, n_clusters, start=baseline, n_fixed=int(strength > 0), **options
        )
        n_passes += solution.n_passes
        if n_clusters == 1 or _keeps(included, solution, baseline, **starts):
            break
    weights = compromise.scatter(solution.weights)
    coefficients = np.append(solution.weights**2, [1.0] * bool(strength))
    projections = (
        _projections(compromise, solution, baseline, strength) if strength else None
    )
    return replace(
        solution,
        weights=weights,
        coefficients=weights**2,
        kernel=Mix(coefficients, anchored.kernels),
        projections=projections,
        baseline=baseline,
        agreement=compromise.agreement,
        included=compromise.indices,
        n_passes=n_passes,
        stack=compromise.active,
        products=None,  # they are those of the included kernels and the anchor
        learned={"anchor_": factor, "set_aside_": compromise.set_aside},
    )


def _keeps(
    stack: Stack,
    solution: Solution,
    baseline: Relaxation,
    *,
    n_init: int,
    is_unit: bool,
) -> bool:
    """Return whether a partition keeps a baseline's leading directions and clusters."""
    k = baseline.n_clusters
    # K centered clusters have k - 1 dimensions; the k-th is noise.
    leading = max(k - 1, 1)
    share_kept = (
        sum_of_squares(baseline.vectors[:, :leading].T @ solution.partition) / leading
    )
    if share_kept < SHARE_KEPT:
        return False
    labels = []
    for each in (baseline, solution.relaxation):
        assert each is not None
        H = each.vectors[:, :k]
        rows = H if stack.features is None else stack.features.lift_some(H)
        root = None
        if not is_unit:
            root = root_of_gram(np.diag(each.eigenvalues[:k]), rows.shape[0])
        # Always by the same seed, so that the anchor does not depend on that of the
        # estimator.
        labels.append(discretize(rows, k, root=root, n_init=n_init, random_state=0)[0])
    # Adjusted Rand index that its clusters have to reach with those of the compromise.
    same_clusters = 0.95
    return adjusted_rand_score(*labels) >= same_clusters


def _projections(
    compromise: Compromise, solution: Solution, baseline: Relaxation, strength: float
) -> list[Array]:
    precision = rounding_of_entries(compromise.stack)

    def over_eigenvalues(found: Any) -> Array:
        H = found.vectors[:, : found.n_clusters]
        values = found.eigenvalues[: found.n_clusters]
        return H * to_device(inverse(values, H.shape[0], precision), H)

    # H_0 is a function of the compromise, which the anchor adds to the mix: H_0 = K H_0
    # / L_0.
    H, H_0 = (
        over_eigenvalues(solution.relaxation),
        baseline.vectors[:, : baseline.n_clusters],
    )
    shared = over_eigenvalues(baseline) @ (strength * (H_0.T @ H))
    coefficients = compromise.coefficients / len(compromise.indices)
    projections = [zeros(tuple(H.shape), H) for _ in compromise.agreement.names]
    for p, weight, c in zip(
        compromise.indices, solution.weights, coefficients, strict=True
    ):
        projections[p] = float(weight) ** 2 * H + float(c) * shared
    return projections


class AnchoredMKKM(CertifiedClusterer, InductiveClusterer):
    r"""SimpleMKKM over the views that agree, drawn to their compromise; certified.

    .. math:: \min_{\gamma \in \Delta} \max_{H^\top H = I_k}
              \mathrm{Tr}((K_\gamma + c H_0 H_0^\top) H H^\top)

    SimpleMKKM gives the largest weight to the kernel that agrees least. Here views that
    share nothing with the others are set aside, as by `AgreementKKM`, and the partition
    is drawn to that of the others' compromise, :math:`H_0`. The problem stays convex
    and certified.

    Parameters
    ----------
    {inductive}
    anchor : float or "auto", default="auto"
        How strongly the partition is drawn to that of the compromise, in units of its
        mean leading eigenvalue over the number of views that are included, up to 1000.
        Zero is SimpleMKKM over these views. "auto" takes the first of 0, 1/4, 1/2, 1,
        ..., 16 that keeps 98 % of the compromise's leading k - 1 directions, and its
        clusters (adjusted Rand index 0.95).
    {proof}
    {rounding}
    {common}
    weights_ : ndarray of shape (n_kernels,)
        They sum to one. Not importance: a large weight means little agreement with the
        consensus, zero that a view was set aside, or has no part in the minimum.
    {coefficients}
    set_aside_ : tuple of str
        Names of the kernels without clear agreement with those that are included.
    anchor_ : float
        The anchor used.
    objective_ : float
        ``Tr((K + c H_0 H_0^T) H H^T)``, the minimum over the weights.
    {certificate}
    {rounded}
    {notes}

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

    SUMMARY = (
        "SimpleMKKM over the kernels that agree, drawn to the partition of their "
        "compromise"
    )
    WARNS = "never"
    REFERENCES = (*SimpleMKKM.REFERENCES, AgreementKKM.REFERENCES[0])
    ALLOWED: ClassVar[dict[str, Allowed]] = CertifiedClusterer.ALLOWED | {
        # Beyond this the weights have no measurable share in the objective.
        "anchor": Either(Number(0, 1000), Choice(("auto",))),
    }

    def _solve(self, stack: Stack) -> Solution:
        options = self._options(
            "anchor", "tol", "max_iter", "prove", "n_init", "rounding", "random_state"
        )
        return solve_anchored_mkkm(stack, self.n_clusters, **options)
