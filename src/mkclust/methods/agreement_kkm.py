"""AgreementKKM: clusters by the neighborhoods in the views that agree."""

from dataclasses import field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mkclust.agreements import find_compromise
from mkclust.data.samples import Samples
from mkclust.fit import InductiveClusterer, Solution
from mkclust.fit.embedding import Extension
from mkclust.fit.neighborhoods import (
    NeighborhoodExtension,
    find_clusters,
    mixed_among,
    sampled_alignments,
)
from mkclust.fit.same_input import known_again, only_covered
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
from mkclust.methods.number_of_clusters import find_number
from mkclust.parameters import Allowed, Choice, Count, Either, Number
from mkclust.stack import Stack
from mkclust.types import Array, Float


def solve_agreement_kkm(
    stack: Stack,
    n_clusters: int,
    *,
    neighbors: int | Literal["auto"] = "auto",
    n_init: int = 10,
    random_state: Any = None,
) -> Solution:
    """Solve `AgreementKKM`, with coefficients that sum to one."""
    compromise = find_compromise(stack)
    coefficients = compromise.scatter(compromise.coefficients)
    neighborhoods, cut, embedding = find_clusters(
        stack,
        coefficients,
        n_clusters,
        neighbors,
        n_init=n_init,
        random_state=random_state,
    )
    return Solution(
        partition=to_device(embedding, stack.kernels[0].like),
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
    `suggest_n_clusters` finds; of more than 5,000 samples, by some of them. With a
    ``resolution`` it is, of the same numbers, the one whose clusters have the highest
    modularity. ``suggestion_.labels_by_k`` has the clusters for every number, from
    coarse to fine.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, k.
    kernels : str, view, dict or KernelBank, default="auto"
        How X is read.

        - "auto" takes a 3-D array as kernels. It gives each view the kernel of its kind
          (``rules`` of `KernelBank`; ``bank_.explain()`` says which and why), and one
          table twelve kernels, or the one of its kind. It refuses square matrices of
          one size that may be kernels.
        - "precomputed" takes kernels only.
        - "on-the-fly" is "auto" with kernels that are computed whenever they are used,
          and never stored. AgreementKKM stores no kernels of views anyway.
        - A name makes that kernel of each view: "gaussian" (twelve of a table),
          "self-tuning", "linear", "cosine", "polynomial", "laplacian", "chi2",
          "hellinger", "jaccard", "overlap" (or "categorical"), or "from_distances" for
          views of distances.
        - A dict such as ``{"text": "sparse", "K": "precomputed"}`` decides for the
          views that it names.
        - A `mkclust.view` adds a transformer of rows, and a `KernelBank` gives full
          control.

        With an approximation, names and a dict say how the rows of each view are
        prepared.
    center : bool, default=True
        Center every kernel in its feature space (on the fly; nothing is copied).
    normalize : bool, default=True
        Scale every kernel to a unit diagonal (on the fly; nothing is copied).
    psd : {"error", "shift"}, default="error"
        What to do with an indefinite kernel, also for new samples. "error" refuses it,
        and "shift" adds the multiple of the identity that repairs it.
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
    resolution : float or None, default=None
        With ``n_clusters="auto"``: take the number, from 2 to 25, whose clusters have
        the highest modularity at this resolution, which means what Leiden's does: 1 is
        usual, and a higher one gives more clusters. Not used with a number.
    n_init : int, default=10
        Number of k-means starts on the embedding; the best is kept.
    random_state : int, RandomState instance or None, default=None
        Seed of the k-means starts (and of the rows they learn from beyond 100,000
        samples), of an approximation without its own seed, and of the search behind a
        certificate.
    views : dict of str to (list, slice or str) or None, default=None
        Splits one wide data frame or array into views, each given by a list of columns
        (names or numbers), a slice of their numbers, or a prefix of their names, such
        as ``{"mrna": ["g1", "g2"], "mirna": "mirna_"}``. This is for scikit-learn,
        which takes one table. Other columns are left out.

        Categorical and boolean columns of data frames, and text with at most 20
        repeated values, become a view ``NAME (categories)``, compared by equal
        categories. Other text and dates are refused.
    join : {"exact", "inner", "outer"}, default="exact"
        Data frames are aligned by their ids (the index of pandas, the observations of
        AnnData); arrays, polars and the default index by the order of rows. "exact"
        requires the same ids, in any order, "inner" takes the samples that all frames
        have, and "outer" all samples.
    impute : {None, "median"}, default=None
        Missing cells (NaN, None, masked entries) are refused, or filled with the median
        of their column, or the most frequent category, also in new samples; not on
        disk, in dask or on devices.
    missing_views : {None, "learn", "zero", "rescale"}, default=None
        How to treat samples that are missing from a view: not in its frame, a row of
        NaN, NaN in the whole row and column of a kernel, or marked in ``observed``.
        "zero" sets their similarities there to zero, the average. "rescale" also scales
        them up to the self-similarity of samples in all views. "learn" imputes values
        predicted by the clustering, in turns with it. None is "learn" for SimpleMKKM,
        MKKM and AverageKKM with exact kernels, otherwise "rescale". AgreementKKM fills
        in nothing, and compares two samples by the views that both have, whichever is
        passed; it refuses "learn".
    scale : {"auto", "standard", "robust", "log", "none"} or dict, default="auto"
        How columns of numbers are scaled, in all views or by the name of a view. "auto"
        divides those of a table (at most 20 columns, or at most 100 whose spreads
        differ by a factor of 1,000) by their spread. It leaves principal components
        (uncorrelated columns whose spreads fall) as they are, and in other views scales
        down columns that vary much more than the others. "standard" divides by the
        standard deviation, "robust" by the distance between the quartiles, "log" takes
        log2(x + 1) first, as for strongly skewed expression, and "none" changes
        nothing. Counts, histograms, directions and categories are not scaled by "auto".

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Clusters, numbered by falling size; -1 for samples of which nothing is known.
    alignments_ : ndarray of shape (n_kernels,)
        Share of each kernel's own top-k eigenvalue sum that the consensus captures, 0
        to 1.
    embedding_ : array of shape (n_samples, n_clusters)
        The orthonormal H, unique up to a rotation.
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
    converged_ : bool
        Whether the stopping rule was met within ``max_iter``.
    n_iter_ : int
        Number of iterations.
    kernel_names_ : tuple of str
        Names of the kernels.
    agreement_ : Agreement
        Which kernels agree (`mkclust.agreement`), if there are several.
    uncovered_samples_ : ndarray
        Ids, or else numbers, of samples with the label -1: no used view has an entry,
        or a neighbor, of them.
    fill_history_ : ndarray of shape (n_fills + 1,)
        Objective without and with each learned fill; ``history_`` is of the last solve.
    missingness_ : Missingness
        Whether the clusters follow which views samples are missing from; only if some
        are.
    n_components_ : int
        Number of groups that no neighborhood connects, if all kernels consist of
        neighborhoods.
    bank_ : KernelBank
        Source of the kernels of views or a table; not for precomputed kernels.
    sample_ids_ : ndarray of shape (n_samples,)
        The index of the data frames in X, in the order of ``labels_``; only if they
        have ids.
    observed_ : ndarray of bool of shape (n_samples, n_views)
        Which views, or precomputed kernels, have which samples; only if some are
        missing.
    view_names_in_ : tuple of str
        Names of the views, those of categorical columns included; not for precomputed
        kernels.
    n_features_in_ : int
        Columns of the table, or of all views together, or the number of samples for
        kernels.
    solve_seconds_, fit_seconds_ : float
        Time spent on solving, and on the whole fit.
    approximation_error_ : ndarray of shape (n_kernels,)
        With an approximation: the share of each kernel's trace, before centering, that
        its features miss, on some of the samples; NaN if the feature map does not know
        it.

    References
    ----------
    .. [1] L. Song, A. Smola, A. Gretton, J. Bedo, K. Borgwardt. Feature Selection via
       Dependence Maximization. JMLR 13, 2012.
    .. [2] C. Lavit, Y. Escoufier, R. Sabatier, P. Traissac. The ACT (STATIS method).
       Computational Statistics & Data Analysis 18, 1994.
    .. [3] A. Ng, M. Jordan, Y. Weiss. On Spectral Clustering: Analysis and an
       Algorithm. NIPS 14, 2001.

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
    resolution: float | None = None
    # Exact kernels for any number of samples: there is nothing to approximate.
    approximation: ClassVar[None] = None  # type: ignore[misc]

    SUMMARY: ClassVar[str] = (
        "clusters cut from the graph of neighborhoods, in the mix of those views "
        "that agree with another one and in each of them"
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
        "resolution": Either(Number(0, open_low=True), Choice((None,))),
    }

    def _solve(self, stack: Stack) -> Solution:
        options = self._options("neighbors", "n_init", "random_state")
        return solve_agreement_kkm(stack, self.n_clusters, **options)

    def _learn(self, samples: Samples) -> dict[str, Any]:
        if self.n_clusters == "auto":
            found = replace(find_number(self, samples), resolution=self.resolution)
            chosen = clone(self).set_params(n_clusters=found.n_clusters)
            return chosen._learn(samples) | {"suggestion_": found}
        if needs_anchors(samples, self.anchors):
            model = with_kinds_of_all(self, samples)
            return learn_from_anchors(model, samples, self.anchors, self.learn_from)
        return learn(self, samples.computed())

    def _embed_samples(
        self, samples: Samples, self_similarity: Any = None
    ) -> tuple[Float, np.ndarray]:
        if self_similarity is None and has_blocks(samples):
            return embed_in_blocks(self, samples)
        return super()._embed_samples(samples, self_similarity)

    def _rows(self, stack: Stack, solution: Solution) -> tuple[Array, Extension | None]:
        return solution.rows, NeighborhoodExtension.of(stack, solution.neighborhoods)

    def _as_embedding(self, rows: Array) -> Array:
        return rows @ self._source.extension.neighborhoods.basis

    def _rows_of(self, embedding: Array) -> Float:
        basis = self._source.extension.neighborhoods.basis
        return to_host(embedding) @ np.linalg.pinv(basis, hermitian=True)

    def connectivities(self, X: Any = None) -> Array:
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
            model = only_covered(self)
            samples = kept_samples(self)
        else:
            model, samples = known_again(self, X)
        links = graph_of(model, samples).links()
        if model is self or self._covered is None:
            return links
        return spread_links(links, self._covered, len(self.labels_))

    def _mixed_among(self, stack: Stack, samples: np.ndarray | None) -> Array:
        compared = self._source.extension.neighborhoods.compared
        return mixed_among(stack, compared, samples)
