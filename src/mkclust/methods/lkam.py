"""LKAM: multiple kernel k-means that trusts similarities between neighbors only."""

from dataclasses import replace
from typing import ClassVar

from mkclust.fit.solution import Solution
from mkclust.methods.localized_simple_mkkm import (
    LocalizedClusterer,
    Neighbors,
    localize,
)
from mkclust.methods.mkkm_mir import descend_regularized
from mkclust.parameters import Allowed, Number
from mkclust.stack import Stack


def solve_lkam(
    stack: Stack,
    n_clusters: int,
    *,
    reg: float = 1.0,
    neighbors: Neighbors = 0.5,
    tol: float = 1e-6,
    max_iter: int = 10,
) -> Solution:
    """Minimize the objective of `LKAM`, that of `MKKMMiR` for kernels of neighbors."""
    local, correlations, size = localize(stack, n_clusters, neighbors)
    overlap = reg * correlations
    solution = descend_regularized(
        local, n_clusters, overlap, tol=tol, max_iter=max_iter
    )
    return replace(solution, learned={"n_neighbors_": size})


class LKAM(LocalizedClusterer):
    r"""Multiple kernel clustering with local kernel alignment maximization [1]_.

    .. math:: \min_{\gamma \in \Delta,\, H^\top H = I_k} \sum_p \gamma_p^2\, z_p(H)
              + \frac\lambda2 \gamma^\top M \gamma

    .. math:: z_p(H) = \frac1n \sum_{ab} A_{ab} K_{p,ab} (I - H H^\top)_{ab}, \qquad
              M_{pq} = \frac1n \sum_{ab} A_{ab} K_{p,ab} K_{q,ab}

    MKKM-MiR, with every similarity multiplied by :math:`A_{ab}`, the number of
    neighborhoods (in the average kernel) that both a and b are in. The method has no
    partition of new samples.

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
    reg : float, default=1.0
        The paper's lambda, not negative. The authors search 2^-15, ..., 2^15
        (``GRID``).
    neighbors : float, int or "auto", default=0.5
        The size of a neighborhood. A float is the paper's tau, a share of the samples:
        the authors search 0.05, 0.15, ..., 0.95. For others see `LocalizedSimpleMKKM`.
    tol, max_iter : float, int
        Relative change of the objective at which to stop, and the most iterations.
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
        Mixing weights, summing to one; some may be zero. Not importance.
    coefficients_ : ndarray of shape (n_kernels,)
        Squares of the weights: ``sum_p coefficients_p K_p`` is masked and clustered.
    n_neighbors_ : int
        How many samples a neighborhood has.
    objective_ : float
        The objective of the final weights and partition.
    history_ : ndarray of shape (n_iter_ + 1,)
        The objective in each iteration, and at the end, falling.
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
    .. [1] M. Li, X. Liu, L. Wang, Y. Dou, J. Yin, E. Zhu. Multiple Kernel Clustering
       with Local Kernel Alignment Maximization. IJCAI, 2016.

    Examples
    --------
    >>> from mkclust import LKAM
    >>> from mkclust.datasets import load
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> model = LKAM(n_clusters=10, neighbors=0.1, random_state=0).fit(views)
    >>> model.converged_, bool((model.history_[1:] <= model.history_[:-1]).all())
    (True, True)
    """

    reg: float = 1.0
    neighbors: Neighbors = 0.5
    tol: float = 1e-6
    max_iter: int = 10

    SUMMARY = (
        "which aligns the mixed kernel with the partition among nearest neighbors only"
    )
    REFERENCES = (
        "M. Li, X. Liu, L. Wang, Y. Dou, J. Yin, E. Zhu. Multiple Kernel Clustering "
        "with Local Kernel Alignment Maximization. IJCAI, 2016.",
    )
    SLOWNESS = 10
    GRID: ClassVar[dict[str, list]] = {
        "reg": [2.0**e for e in range(-15, 16)],
        "neighbors": [round(0.05 + 0.1 * i, 2) for i in range(10)],
    }
    ALLOWED: ClassVar[dict[str, Allowed]] = LocalizedClusterer.ALLOWED | {
        "reg": Number(0)
    }

    def _solve(self, stack: Stack) -> Solution:
        return solve_lkam(
            stack,
            self.n_clusters,
            **self._options("reg", "neighbors", "tol", "max_iter"),
        )
