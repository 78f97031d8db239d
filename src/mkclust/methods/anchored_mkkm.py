"""AnchoredMKKM: SimpleMKKM over the views that agree, drawn to their compromise."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.metrics import adjusted_rand_score

from mkclust.agreements import Compromise, find_compromise
from mkclust.engine.certificate import rounding_of_entries
from mkclust.engine.eigen import Relaxation, relax
from mkclust.fit import InductiveClusterer, Solution
from mkclust.fit.embedding import inverse
from mkclust.fit.mixture import EIGEN_TOLERANCE
from mkclust.fit.rounding import root_of_gram
from mkclust.linalg import sum_of_squares, to_device, zeros
from mkclust.methods.agreement_kkm import AgreementKKM
from mkclust.methods.certified import CertifiedClusterer
from mkclust.methods.simple_mkkm import SimpleMKKM, solve_simple_mkkm
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
    projections = None
    if strength:
        projections = _projections(compromise, solution, baseline, strength)
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

    def over_eigenvalues(found: Relaxation) -> Array:
        H = found.vectors[:, : found.n_clusters]
        values = found.eigenvalues[: found.n_clusters]
        return H * to_device(inverse(values, H.shape[0], precision), H)

    # H_0 is a function of the compromise, which the anchor adds to the mix: H_0 = K H_0
    # / L_0.
    assert solution.relaxation is not None
    H = over_eigenvalues(solution.relaxation)
    H_0 = baseline.vectors[:, : baseline.n_clusters]
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
    approximation : transformer or None, default=None
        A scikit-learn transformer, such as ``mkclust.kernels.Nystroem(200)``, cloned
        for each view. The kernels are those of its features, and no n x n matrix is
        ever made. Views are read some rows at a time, also from memory maps, HDF5 and
        parquet files or dask arrays.
    anchor : float or "auto", default="auto"
        How strongly the partition is drawn to that of the compromise, in units of its
        mean leading eigenvalue over the number of views that are included, up to 1000.
        Zero is SimpleMKKM over these views. "auto" takes the first of 0, 1/4, 1/2, 1,
        ..., 16 that keeps 98 % of the compromise's leading k - 1 directions, and its
        clusters (adjusted Rand index 0.95).
    prove : bool or "auto", default="auto"
        Whether to prove, by a Cholesky factorization of one more n x n matrix, that the
        eigensolver missed no eigenvector. "auto" does so if it is cheaper than a
        search, or if a random search cannot decide; False only searches.
    tol : float, default=1e-6
        Certified relative gap at which to stop.
    max_iter : int, default=200
        When to give up, with a warning that says how large the gap still is.
    rounding : {"best", "unit", "components"}, default="best"
        Which rows of the partition k-means clusters. "unit" brings them to unit length,
        as the authors do, and breaks up a large cluster next to a small one;
        "components" takes kernel principal components, eigenvectors times the roots of
        their eigenvalues. "best" takes components if their clusters explain more of the
        kernel by half a percent, or are the same, else unit length. What clusters
        explain is the share of the trace between them, which is the objective of kernel
        k-means before it is relaxed.
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
    weights_ : ndarray of shape (n_kernels,)
        They sum to one. Not importance: a large weight means little agreement with the
        consensus, zero that a view was set aside, or has no part in the minimum.
    coefficients_ : ndarray of shape (n_kernels,)
        The mixed kernel is ``sum_p coefficients_p K_p``: the weights, or their squares,
        as above.
    set_aside_ : tuple of str
        Names of the kernels without clear agreement with those that are included.
    anchor_ : float
        The anchor used.
    objective_ : float
        ``Tr((K + c H_0 H_0^T) H H^T)``, the minimum over the weights.
    duality_gap_ : float
        An upper bound on the relative distance of the objective to its global minimum;
        certain if ``certificate_`` is "proved", and otherwise wrong with the
        probability stated there.
    certificate_ : str
        How it is known that the eigensolver missed nothing: "proved" (by a
        factorization or a dense eigendecomposition), "searched (missed with probability
        at most ...)", or "open" if the solver stopped early.
    lower_bounds_ : ndarray of the shape of history_
        Certified lower bound after each iteration, rising.
    cluster_gap_ : float
        Relative gap between eigenvalues k - 1 and k, where k centered clusters show;
        NaN for k = 1.
    eigengap_ : float
        Relative gap between eigenvalues k and k + 1: zero at a tie. It says nothing
        about clusters.
    baseline_labels_ : ndarray of shape (n_samples,)
        Clusters of the compromise of the views, the mix that `AgreementKKM` makes of
        them, by relaxed kernel k-means.
    baseline_agreement_ : float
        Adjusted Rand index between ``labels_`` and ``baseline_labels_``.
    n_passes_ : int
        How often every kernel was read while solving.
    history_ : ndarray of shape (n_iter_,), or (n_iter_ + 1,) for the reduced gradient
        Best objective after each iteration: non-increasing upper bounds, residual
        errors included. For the reduced gradient, the objective at the start comes
        first.
    rounding_ : {"unit", "components"}
        Which rows k-means clustered.
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
    .. [1] X. Liu, E. Zhu, J. Liu, T. Hospedales, Y. Wang, M. Wang. SimpleMKKM: Simple
       Multiple Kernel K-means. ICML, 2020.
    .. [2] L. Song, A. Smola, A. Gretton, J. Bedo, K. Borgwardt. Feature Selection via
       Dependence Maximization. JMLR 13, 2012.

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
