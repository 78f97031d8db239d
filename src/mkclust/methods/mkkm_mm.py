"""MKKM-MM: the partition that is best for the kernels it explains worst."""

from typing import Any, ClassVar, Literal

import numpy as np

from mkclust.engine.eigen import Relaxation
from mkclust.engine.simplex import minimize_quadratic
from mkclust.fit import InductiveClusterer, Solution
from mkclust.fit.base import LARGE_WEIGHT, RelaxedClusterer
from mkclust.fit.mixture import Mixture, alternate
from mkclust.parameters import Allowed, Choice
from mkclust.stack import Stack
from mkclust.types import Float


def solve_mkkm_mm(
    stack: Stack, n_clusters: int, *, tol: float = 1e-4, max_iter: int = 10
) -> Solution:
    """Alternate between a partition and the weights worst for it, as `MKKMMM` says."""
    mixture = Mixture(stack, n_clusters)

    def respond(relaxation: Relaxation) -> tuple[Float, float]:
        unexplained = mixture.unexplained(relaxation)
        # If nothing is left unexplained, all weights are equally bad.
        worst = unexplained if unexplained.any() else mixture.uniform
        return _unit(worst), float(np.linalg.norm(unexplained))

    start = _unit(mixture.uniform)
    found = alternate(
        start, mixture.relax, respond, tol=tol, max_iter=max_iter - 1, order=2
    )
    found = found._replace(n_iter=found.n_iter + 1)
    return mixture.solution(coefficients=found.weights, **found._asdict())


def solve_mkkm_mm_saddle(
    stack: Stack,
    n_clusters: int,
    *,
    tol: float = 1e-8,
    max_iter: int = 100,
    random_state: Any = None,
) -> Solution:
    r"""Find the saddle point of `MKKMMM`, to a certified relative gap ``tol``.

    .. math:: \max_{\theta \ge 0,\, \|\theta\|_2 \le 1} g(\theta), \qquad
              g(\theta) = \min_{H^\top H = I_k} \sum_p \theta_p\, a_p(H)

    g is concave, the least of linear functions, so the planes :math:`a(H_j)` seen so
    far bound it by the norm of the shortest vector in their convex hull, whose
    direction is tried next.
    """
    mixture = Mixture(stack, n_clusters)
    theta = _unit(mixture.uniform)
    planes = list[Float]()
    history = list[float]()
    while True:
        relaxation = mixture.relax(theta)
        planes.append(mixture.unexplained(relaxation))
        history.append(max([float(theta @ planes[-1]), *history[-1:]]))
        if len(history) < 2 or history[-1] > history[-2]:
            best = (theta, relaxation)
        A = np.array(planes)
        shortest = minimize_quadratic(A @ A.T) @ A
        bound = float(np.linalg.norm(shortest))
        # If nothing is left unexplained, the errors of the eigenvalues are rounding.
        converged = bound == 0 or bound - history[-1] + best[1].error <= tol * bound
        if converged or len(history) >= max_iter:
            break
        theta = shortest / bound
    theta, relaxation = best
    distance = max(bound - history[-1], 0.0)
    allowed = tol * bound
    if converged:
        allowed -= distance
    certificate = mixture.certify(relaxation, theta, allowed, random_state=random_state)
    gap = (distance + certificate.error) / bound if bound else 0.0
    return mixture.solution(
        relaxation,
        theta,
        theta,
        history,
        converged and certificate.is_within(allowed),
        len(history),
        gap=gap,
        certificate=certificate,
        learned={"duality_gap_": gap, "certificate_": str(certificate)},
    )


def _unit(weights: Float) -> Float:
    """Return weights of unit length."""
    return weights / np.linalg.norm(weights)


class MKKMMM(RelaxedClusterer, InductiveClusterer):
    r"""Multiple kernel k-means by min-max optimization [1]_.

    .. math:: \min_{H^\top H = I_k} \max_{\theta \ge 0,\, \|\theta\|_2 \le 1}
              \sum_p \theta_p\, a_p(H), \qquad a_p(H) = \mathrm{Tr}(K_p (I - H H^\top))

    The kernels that the partition explains worst get the largest weights. The authors
    alternate between :math:`\theta = a(H) / \|a(H)\|_2` and the leading eigenvectors H
    of :math:`\sum_p \theta_p K_p`, which often ends in a cycle of two: a warning says
    so, and the best iterate after the start is returned. ``solver="saddle"`` finds the
    saddle point, certified.

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
    solver : {"alternate", "saddle"}, default="alternate"
        The authors' alternation, or the weights of the saddle point.
    tol : float, default=1e-4
        Change of the weights (l2 norm) at which the alternation stops. The saddle point
        stops at a certified relative gap of ``tol**2``.
    max_iter : int, default=10
        Most iterations of the alternation; the saddle point may take ten times as many.
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
        Of unit l2 norm. Not importance: a large weight means little agreement with the
        consensus.
    coefficients_ : ndarray of shape (n_kernels,)
        The mixed kernel is ``sum_p coefficients_p K_p``: the weights, or their squares,
        as above.
    objective_ : float
        What the partition leaves unexplained under the weights that are worst for it;
        for the saddle point, the value of its weights.
    history_ : ndarray of shape (n_iter_,) or (n_iter_ + 1,)
        The objective of each iteration, and that of the returned one if it is not the
        last; for the saddle point the best so far, rising.
    duality_gap_, certificate_ : float, str
        Only for the saddle point, as for SimpleMKKM.
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
    .. [1] S. Bang, Y. Yu, W. Wu. Robust Multiple Kernel k-means Clustering using
       Min-Max Optimization. arXiv:1803.02458, 2018.

    Examples
    --------
    >>> from mkclust import MKKMMM
    >>> from mkclust.datasets import load
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> model = MKKMMM(n_clusters=10, solver="saddle", random_state=0).fit(views)
    >>> model.converged_, bool(model.duality_gap_ < 1e-8)
    (True, True)
    """

    solver: Literal["alternate", "saddle"] = "alternate"
    tol: float = 1e-4
    max_iter: int = 10

    SUMMARY = (
        "which finds the relaxed partition that is best for the weights that are worst "
        "for it"
    )
    REFERENCES = (
        "S. Bang, Y. Yu, W. Wu. Robust Multiple Kernel k-means Clustering using "
        "Min-Max Optimization. arXiv:1803.02458, 2018.",
    )
    WEIGHT_MEANING = LARGE_WEIGHT
    ALLOWED: ClassVar[dict[str, Allowed]] = {"solver": Choice(("alternate", "saddle"))}

    def _solve(self, stack: Stack) -> Solution:
        k = self.n_clusters
        if self.solver == "alternate":
            return solve_mkkm_mm(stack, k, tol=self.tol, max_iter=self.max_iter)
        return solve_mkkm_mm_saddle(
            stack,
            k,
            tol=self.tol**2,
            max_iter=10 * self.max_iter,
            random_state=self.random_state,
        )
