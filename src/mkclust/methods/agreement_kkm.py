"""AgreementKKM: clusters by the neighborhoods in the views that agree."""

from dataclasses import field
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mkclust.data.samples import Samples
from mkclust.fit.embedding import Extension
from mkclust.fit.inductive import InductiveClusterer
from mkclust.fit.neighborhoods import (
    NeighborhoodExtension,
    find_clusters,
    mixed_among,
    sampled_alignments,
)
from mkclust.fit.same_input import known_again, only_covered
from mkclust.fit.solution import Solution
from mkclust.fit.steps import learn
from mkclust.linalg import to_device, to_host
from mkclust.linalg.sparse_rows import spread_links
from mkclust.methods.anchors import (
    embed_in_blocks,
    graph_of,
    has_blocks,
    kept_samples,
    learn_from_anchors,
    needs_anchors,
    with_kinds_of_all,
)
from mkclust.methods.compromise import find_compromise
from mkclust.methods.number_of_clusters import NumberOfClusters, find_number
from mkclust.parameters import Allowed, Choice, Count, Either
from mkclust.stack import Stack
from mkclust.types import Array, Float


def solve_agreement_kkm(
    stack: Stack,
    n_clusters: int,
    *,
    neighbors: Any = "auto",
    n_init: int = 10,
    random_state: Any = None,
) -> Solution:
    """Solve `AgreementKKM`, with coefficients that sum to one."""
    compromise = find_compromise(stack)
    coefficients = compromise.scatter(compromise.coefficients)
    options: Any = {"n_init": n_init, "random_state": random_state}
    found = find_clusters(stack, coefficients, n_clusters, neighbors, **options)
    neighborhoods, cut, embedding = found
    like = stack.kernels[0].like
    return Solution(
        partition=to_device(embedding, like),
        weights=compromise.scatter(compromise.weights),
        objective=cut.relaxation.value,
        history=np.array([cut.relaxation.value]),
        converged=True,
        coefficients=coefficients,
        rows=cut.rows,
        n_iter=1,
        agreement=compromise.agreement,
        included=compromise.indices,
        stack=compromise.active,
        alignments=sampled_alignments(compromise.active, embedding),
        centers=cut.centers,
        neighborhoods=neighborhoods,
        learned={"neighbors_": neighborhoods.sizes, "set_aside_": compromise.set_aside},
    )


class AgreementKKM(InductiveClusterer):
    r"""Clusters by neighborhoods in the views that agree; other views change nothing.

    .. math:: \max_{U^\top U = I_k} \mathrm{Tr}(U^\top D^{-1/2} W D^{-1/2} U), \qquad
              W = F F^\top - \mathrm{diag}

    Without labels, one thing tells a useful view from a useless one: whether it agrees
    with another view. Views without clear agreement (`mkclust.agreement` says what that
    is) are set aside, and the labels and the weights of the others are those of a fit
    without them. The others have the same weight, :math:`v_p`, but less if a view
    agrees much less than the median one, or has few effective directions, as a single
    column has. Copies of a view share one weight. Each is divided by its norm,
    :math:`d_p`, so that none dominates by a few large directions, and they are mixed:
    :math:`K = \sum_p \frac{v_p}{d_p} K_p`.

    **Neighborhoods.** Samples belong together if they share neighbors, in the mix and
    in the views. F says who is in which list: that of a sample reaches as far as its
    5th, 10th or 20th nearest one. Clusters are cut from the sparse graph W of shared
    lists, normalized by its degrees D and not centered, so that they may be of any size
    and shape. Of two graphs, one by the shorter lists of the mix alone, one by all
    lists of the mix and of the views, the one is taken whose clusters have the higher
    modularity.

    **Missing samples.** Two samples are compared by the views that both have. Nothing
    is filled in.

    **When it cannot help.** If no two views agree clearly, all are used, and a
    `NoAgreementWarning` says so. Views that are made of one another outweigh one that
    is not. If views form groups without clear agreement between them, the largest is
    used, and a `GroupsWarning` says so.

    **How many clusters.** ``n_clusters="auto"`` takes the number that
    `suggest_n_clusters` finds; of more than 5,000 samples, by some of them. There is no
    resolution: ``suggestion_.labels_by_k`` has the clusters for every number, from
    coarse to fine.

    Parameters
    ----------
    {inputs}
    neighbors : "auto" or int, default="auto"
        How far the longest lists reach: to this number of nearest samples; others reach
        to a half and to a quarter of it. "auto" takes 5, 10 and 20, but none above the
        average size of the clusters, except 5.
    anchors : int, default=10_000
        Most samples whose neighborhoods make up the graph. Of more samples, this number
        is drawn by their ids or contents; clusters of a few dozen of them are found.
        Kernels are computed between all samples and these, some rows at a time.
    learn_from : int, default=100_000
        Most samples that the graph is cut with, the anchors among them; all others are
        assigned in blocks, as new samples are.
    {common}
    anchors_ : ndarray of shape (n_anchors,)
        The rising numbers of the anchors, if not all samples are.
    weights_ : ndarray of shape (n_kernels,)
        They sum to one: large for a view that agrees, zero for one that was set aside.
    coefficients_ : ndarray of shape (n_kernels,)
        Weights over debiased norms: the mixed kernel is ``sum_p coefficients_p K_p``.
    set_aside_ : tuple of str
        Names of the kernels that were set aside.
    suggestion_ : NumberOfClusters
        With ``n_clusters="auto"``: what `suggest_n_clusters` says of every number, with
        the clusters ``labels_by_k``.
    neighbors_ : tuple of int
        How far the lists reach, in nearest samples.
    objective_ : float
        The sum of the k largest eigenvalues of the normalized graph, at most k.
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

    n_clusters: Any = field(default=8, kw_only=False)
    neighbors: Any = "auto"
    anchors: int = 10_000
    learn_from: int = 100_000
    # Exact kernels for any number of samples: there is nothing to approximate.
    approximation: ClassVar[None] = None  # type: ignore[misc]

    SUMMARY: ClassVar[str] = (
        "clusters cut from the graph of neighborhoods, in the mix of those kernels "
        "that agree with another one and in their views"
    )
    REFERENCES: ClassVar[tuple[str, ...]] = (
        "L. Song, A. Smola, A. Gretton, J. Bedo, K. Borgwardt. Feature Selection via "
        "Dependence Maximization. JMLR 13, 2012.",
        "C. Lavit, Y. Escoufier, R. Sabatier, P. Traissac. The ACT (STATIS method). "
        "Computational Statistics & Data Analysis 18, 1994.",
        "A. Ng, M. Jordan, Y. Weiss. On Spectral Clustering: Analysis and an "
        "Algorithm. NIPS 14, 2001.",
    )
    WEIGHT_MEANING: ClassVar[str] = (
        "A weight is large if a view agrees with the others, and zero if it was set "
        "aside."
    )
    SCALES_MISSING: ClassVar[bool] = False
    NEEDS_ENTRIES: ClassVar[bool] = False
    READS_ROWS: ClassVar[bool] = True
    LEARNS_FROM_ANCHORS: ClassVar[bool] = True
    ALLOWED: ClassVar[dict[str, Allowed]] = {
        "n_clusters": Either(Count(), Choice(("auto",))),
        "neighbors": Either(Count(), Choice(("auto",))),
        "anchors": Count(least=2),
        "learn_from": Count(least=2),
    }

    def _solve(self, stack: Stack) -> Solution:
        options = self._options("neighbors", "n_init", "random_state")
        return solve_agreement_kkm(stack, self.n_clusters, **options)

    def _learn(self, samples: Samples) -> dict[str, Any]:
        if self.n_clusters == "auto":
            found: NumberOfClusters = find_number(self, samples)
            chosen = clone(self).set_params(n_clusters=found.n_clusters)
            return chosen._learn(samples) | {"suggestion_": found}
        if needs_anchors(samples, self.anchors):
            model = with_kinds_of_all(self, samples)
            return learn_from_anchors(model, samples)
        return learn(self, samples.computed())

    def _embed_samples(
        self, samples: Samples, self_similarity: Any = None
    ) -> tuple[Float, np.ndarray, bool]:
        if self_similarity is None and has_blocks(samples):
            rows, state = embed_in_blocks(self, samples)
            return rows, np.flatnonzero(state > 0), bool((state > 1).any())
        return super()._embed_samples(samples, self_similarity)

    def _rows(self, stack: Stack, solution: Solution) -> tuple[Array, Extension | None]:
        return solution.rows, NeighborhoodExtension.of(stack, solution.neighborhoods)

    def _as_embedding(self, rows: Array) -> Array:
        return rows @ self._source.extension.neighborhoods.basis

    def _rows_of(self, embedding: Array) -> Float:
        basis = self._source.extension.neighborhoods.basis
        return to_host(embedding) @ np.linalg.pinv(basis, hermitian=True)

    def connectivities(self, X: Any = None) -> Any:
        r"""Return the graph of neighborhoods: how far samples of the fit share lists.

        It is :math:`D^{-1/2} W D^{-1/2}`, of which the leading eigenvectors are the
        embedding. If more samples were fitted than were learned from, it is the graph
        of all of them, by the same lists of the anchors.

        Parameters
        ----------
        X : array (m, n, n), list or dict of kernels or views, or table, default=None
            What the model was fitted on. None takes the views that the model has kept,
            if it was fitted on views and all samples are anchors.

        Returns
        -------
        scipy.sparse.csr_array of shape (n_samples, n_samples)
            Symmetric, not negative, and without a diagonal, in the order of
            ``labels_``. Samples of which nothing is known have no links.

        Examples
        --------
        >>> from mkclust import AgreementKKM
        >>> from mkclust.datasets import load
        >>> views = {name: view[:300] for name, view in load("digits").views.items()}
        >>> model = AgreementKKM(n_clusters=10, random_state=0).fit(views)
        >>> graph = model.connectivities()
        >>> graph.shape, bool((graph - graph.T).nnz), bool(graph.diagonal().any())
        ((300, 300), False, False)
        """
        check_is_fitted(self)
        if X is None:
            model, samples = only_covered(self), kept_samples(self)
        else:
            model, samples = known_again(self, X)
        links = graph_of(model, samples).links()
        if model is self or self._covered is None:
            return links
        return spread_links(links, self._covered, len(self.labels_))

    def _mixed_among(self, stack: Stack, samples: np.ndarray | None) -> Array:
        compared = self._source.extension.neighborhoods.compared
        return mixed_among(stack, compared, samples)
