"""AgreementKKM: kernel k-means on the compromise of the views that agree."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mkclust.engine.eigen import Relaxation
from mkclust.kernels.neighbors import NeighborCount
from mkclust.methods.agreement import Agreement, measure_agreement
from mkclust.methods.inductive import InductiveClusterer
from mkclust.methods.learned_fill import AlignedFills, learn_fills
from mkclust.methods.mixture import Mixture
from mkclust.methods.neighbor_step import count_mix_neighbors, follow_neighbors
from mkclust.methods.solution import Solution
from mkclust.parameters import Allowed
from mkclust.stack import Kernel, Stack
from mkclust.stack.features import with_active_views
from mkclust.stack.observed import maps_of, with_active, with_maps
from mkclust.types import Float


@dataclass(frozen=True)
class Compromise:
    """The kernels that are included, and how they are mixed."""

    agreement: Agreement  # of all kernels
    stack: Stack  # the included ones
    active: Stack  # all, rescaled for the included ones
    indices: list[int]  # which they are
    weights: Float
    coefficients: Float  # what mixes them

    def scatter(self, values: Float) -> Float:
        """Return values of the included kernels, with zeros for the others, (m,)."""
        scattered = np.zeros(len(self.agreement.names))
        scattered[self.indices] = values
        return scattered

    @property
    def set_aside(self) -> tuple[str, ...]:
        """Names of the kernels that are not included."""
        names = enumerate(self.agreement.names)
        return tuple(name for p, name in names if p not in self.indices)


def find_compromise(stack: Stack) -> Compromise:
    """Return the compromise of the kernels that agree, which does not depend on the others."""
    agreement = measure_agreement(stack)
    indices = agreement.chosen
    if len(indices) == stack.n_kernels:
        weights, coefficients = agreement.weights(), agreement.coefficients()
        return Compromise(agreement, stack, stack, indices, weights, coefficients)

    # Found once more among these alone.
    active = activate(stack, indices)
    compromise = find_compromise(active.subset(indices))
    included = [indices[p] for p in compromise.indices]
    if len(included) < len(indices):
        active = activate(stack, included)

    return replace(
        compromise,
        agreement=agreement,
        stack=active.subset(included),
        active=active,
        indices=included,
    )


def activate(stack: Stack, indices: list[int]) -> Stack:
    """Return kernels with samples rescaled to compensate for included kernels that lack them."""
    if stack.features is not None:
        return with_active_views(stack, indices)
    return replace(stack, kernels=with_active(stack.kernels, indices))


def solve_agreement_kkm(
    stack: Stack, n_clusters: int, *, neighbors: Any = "auto", learn_missing: bool = False
) -> Solution:
    """Solve `AgreementKKM`, with coefficients that sum to one.

    ``learn_missing`` says whether to learn values for samples missing from kernels; agreement is
    always measured on what was observed.
    """
    compromise = find_compromise(stack)
    weights = compromise.scatter(compromise.weights)
    coefficients = compromise.scatter(compromise.coefficients)
    mixes: list[tuple[Relaxation, Kernel]] = []  # the latest, which may have been rejected

    def relax(included: Stack, previous: Solution | None = None) -> Solution:
        mixture = Mixture(included, n_clusters)
        found = mixture.relax(compromise.coefficients)
        mixes[:] = [(found, mixture.mixed)]
        return mixture.solution(found, weights, coefficients, [found.value], True, 1)

    active = compromise.active
    if learn_missing:
        solution = learn_fills(compromise.stack, relax, AlignedFills(), goal="rising")
        assert solution.stack is not None
        learned = dict(zip(compromise.indices, maps_of(solution.stack.kernels), strict=True))
        maps = [
            learned.get(p, before and replace(before, scale=None))
            for p, before in enumerate(maps_of(active.kernels))
        ]
        active = replace(active, kernels=with_maps(active.kernels, maps))
    else:
        solution = relax(compromise.stack)
    followed = None
    if neighbors is not None and stack.features is None:
        size = count_mix_neighbors(neighbors, stack.n_samples, n_clusters)
        found, mixed = mixes.pop()
        if found is not solution.relaxation:
            mixed = (solution.stack or compromise.stack).mix(compromise.coefficients)
        assert solution.relaxation is not None
        followed = follow_neighbors(mixed, solution.relaxation, size)
    if followed is not None:
        solution = replace(
            solution,
            partition=followed.partition,
            rows=followed.partition,
            projections=[float(c) * followed.projection for c in coefficients],
            n_passes=solution.n_passes + followed.n_products,
        )
    return replace(
        solution,
        agreement=compromise.agreement,
        learned={"mix_neighbors_": size if followed else None, "set_aside_": compromise.set_aside},
        included=compromise.indices,
        n_passes=solution.n_passes + 1,
        stack=active,
    )


class AgreementKKM(InductiveClusterer):
    r"""Kernel k-means on what the views agree on: a view without agreement changes nothing.

    .. math:: \max_{H^\top H = I_k} \mathrm{Tr}(K H H^\top), \qquad
              K = \sum_{p \text{ included}} \frac{v_p}{d_p} K_p

    Without labels, one thing tells a useful view from a useless one: whether it agrees with another
    view. Views without clear agreement (`mkclust.agreement` says what that is) are set aside, and
    the labels and the weights of the others are those of a fit without them. The others have the
    same weight, :math:`v_p`, but less if a view agrees much less than the median one, or has few
    effective directions, as a single column has. Copies of a view share one weight. Each is divided
    by its norm, :math:`d_p`, so that none dominates by a few large directions.

    **Neighbors.** The clusters then follow the nearest neighbors of the samples in the mix: the
    leading eigenvectors of their shared neighborhoods, made a function of similarities by kernel
    ridge regression, so that new samples are embedded alike. Clusters need not be round for that.

    **When it cannot help.** If no two views agree clearly, all are used, and a `NoAgreementWarning`
    says so. Views that are made of one another outweigh one that is not. If views form groups
    without clear agreement between them, the largest is used, and a `GroupsWarning` says so.

    Parameters
    ----------
    {inductive}
    neighbors : "auto", None, int or float, default="auto"
        Neighbors of every sample in the mix, or their share of all samples; "auto" takes 10, or
        half of the samples that a cluster has on average, but at least 3. None clusters by the mix
        itself, as do fits of fewer than 30 samples, with an `approximation`, and if neighbors fall
        into more than k groups that nothing connects.
    {common}
    weights_ : ndarray of shape (n_kernels,)
        They sum to one: large for a view that agrees, zero for one that was set aside.
    coefficients_ : ndarray of shape (n_kernels,)
        Weights over debiased norms: the mixed kernel is ``sum_p coefficients_p K_p``.
    set_aside_ : tuple of str
        Names of the kernels that were set aside.
    mix_neighbors_ : int or None
        Neighbors of every sample that the clusters follow; None if they do not.
    objective_ : float
        The sum of the k largest eigenvalues of the mixed kernel.
    history_ : ndarray of shape (1,)
        The objective.
    {notes}

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import AgreementKKM
    >>> from mkclust.datasets import load
    >>> views = {name: view[:500] for name, view in load("digits").views.items()}
    >>> model = AgreementKKM(n_clusters=10, random_state=0).fit(views)
    >>> views["static"] = np.random.default_rng(0).normal(size=(500, 20))
    >>> disturbed = AgreementKKM(n_clusters=10, random_state=0).fit(views)
    >>> disturbed.set_aside_, bool((disturbed.labels_ == model.labels_).all())
    (('static',), True)
    """

    neighbors: Any = "auto"

    SUMMARY: ClassVar[str] = (
        "relaxed kernel k-means of the compromise of those kernels that agree with another one, "
        "each with its weight and divided by its debiased norm"
    )
    REFERENCES: ClassVar[tuple[str, ...]] = (
        "L. Song, A. Smola, A. Gretton, J. Bedo, K. Borgwardt. Feature Selection via Dependence "
        "Maximization. JMLR 13, 2012.",
        "C. Lavit, Y. Escoufier, R. Sabatier, P. Traissac. The ACT (STATIS method). Computational "
        "Statistics & Data Analysis 18, 1994.",
    )
    WEIGHT_MEANING: ClassVar[str] = (
        "A weight is large if a view agrees with the others, and zero if it was set aside."
    )
    LEARNS_MISSING: ClassVar[bool] = True
    ALLOWED: ClassVar[dict[str, Allowed]] = {"neighbors": NeighborCount()}

    def _solve(self, stack: Stack) -> Solution:
        k, learn = self.n_clusters, self._learns_missing(stack)
        return solve_agreement_kkm(stack, k, neighbors=self.neighbors, learn_missing=learn)
