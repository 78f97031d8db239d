"""ONKC: learn a kernel in the neighborhood of the mixed one."""

from typing import ClassVar, NamedTuple

import numpy as np

from mkclust.engine.certificate import rounding_of_entries
from mkclust.engine.eigen import relax
from mkclust.engine.simplex import drop_small, minimize_quadratic
from mkclust.exceptions import warn
from mkclust.fit import RelaxedClusterer, Solution
from mkclust.fit.mixture import EIGEN_TOLERANCE
from mkclust.linalg import (
    copy_array,
    namespace,
    psd_part,
    select,
    set_diagonal,
    sum_of_squares,
    to_device,
    to_host,
)
from mkclust.parameters import Allowed, Number
from mkclust.stack import Mix, Stack
from mkclust.stack.kernel import row_blocks
from mkclust.types import Array, Float

# Weights below this are rounding of the quadratic program, as in the authors' code.
SMALLEST_WEIGHT = 1e-8


class NearbyKernel(NamedTuple):
    """The best kernel G for a mixed kernel and a partition."""

    kernel: Array  # G
    leading: Array  # its k leading eigenvectors
    rank: int  # how many eigenvalues are above rounding
    cost: float  # the two terms of the objective that depend on G


def solve_onkc(
    stack: Stack,
    n_clusters: int,
    *,
    reg: float = 1.0,
    proximity: float = 1.0,
    tol: float = 1e-3,
    max_iter: int = 50,
) -> Solution:
    """Minimize the objective of `ONKC` over partition, weights and G in turns."""
    M = stack.gram()
    totals = stack.traces()
    proximity = float(proximity)
    gamma = np.full(stack.n_kernels, 1 / stack.n_kernels)
    H = relax(stack.mix(gamma), n_clusters, tol=EIGEN_TOLERANCE).vectors[:, :n_clusters]
    nearby = find_nearby_kernel(stack, gamma, H, proximity)
    history = list[float]()
    converged = False
    # An objective below this share of the mixed kernel's trace is zero but for
    # rounding.
    zero_share = 1e-13
    while not converged and len(history) < max_iter:
        H = nearby.leading
        alignments = _alignments(stack, nearby.kernel)
        del nearby  # so that there is memory for the next G
        gamma = minimize_quadratic((proximity + reg) * M, -proximity * alignments)
        gamma = drop_small(gamma, SMALLEST_WEIGHT)
        nearby = find_nearby_kernel(stack, gamma, H, proximity)
        history.append(nearby.cost + reg / 2 * float(gamma @ M @ gamma))
        converged = history[-1] <= zero_share * float(totals @ gamma) or (
            len(history) > 2 and abs(history[-2] - history[-1]) < tol * history[-2]
        )
    if nearby.rank < n_clusters:
        warn(
            f"the learned kernel has rank {nearby.rank}, too low for "
            f"n_clusters={n_clusters}: raise proximity (now {proximity:g}), or ask for "
            "fewer clusters",
            UserWarning,
        )
    return Solution(
        partition=H,
        weights=gamma,
        objective=history[-1],
        history=np.array(history),
        converged=converged,
        coefficients=gamma,
        n_iter=len(history),
        n_passes=2 * len(history) + 2,
        learned={"kernel_rank_": nearby.rank},
    )


def _alignments(stack: Stack, G: Array) -> Float:
    """Return ``Tr(K_p G)`` for every kernel."""
    # Entry by entry, since G may have full rank.
    xp = namespace(G)
    sums = np.zeros(stack.n_kernels)
    for part in row_blocks(stack.kernels):
        for p, kernel in enumerate(stack.kernels):
            sums[p] += float(xp.sum(kernel.rows(part) * G[part, :]))
    return sums


def find_nearby_kernel(
    stack: Stack, gamma: Float, H: Array, rho: float
) -> NearbyKernel:
    """Return the best kernel G for given weights and partition."""
    n, k = H.shape
    xp = namespace(H)
    K = Mix(gamma, stack.kernels).dense()
    scaled = H / float(np.sqrt(rho))
    B = scaled @ scaled.T
    B += K
    set_diagonal(B, xp.linalg.diagonal(B) - 1 / rho)
    G, values, vectors = psd_part(B, count=k)
    cosines = vectors.T @ H
    unexplained = np.maximum(values, 0) @ (
        1 - to_host(xp.sum(cosines * cosines, axis=1))
    )
    K -= G
    rounding = n * rounding_of_entries(stack) * max(float(values[0]), 1 / rho)
    return NearbyKernel(
        kernel=G,
        leading=copy_array(vectors[:, :k]),
        rank=int((values > rounding).sum()),
        cost=max(float(unexplained), 0.0) + rho / 2 * sum_of_squares(K),
    )


class ONKC(RelaxedClusterer):
    r"""Optimal neighborhood kernel clustering [1]_.

    .. math:: \min_{\gamma \in \Delta,\, H^\top H = I_k,\, G \succeq 0}
              \mathrm{Tr}(G (I - H H^\top)) + \frac\rho2 \|G - K_\gamma\|_F^2
              + \frac\lambda2 \gamma^\top M \gamma, \qquad
              K_\gamma = \sum_p \gamma_p K_p, \quad M_{pq} = \mathrm{Tr}(K_p K_q)

    The samples are clustered by a kernel G of their own, near a mix of those given. In
    turns, H is the k leading eigenvectors of G, the weights solve a quadratic program
    on the simplex in which G enters by :math:`\mathrm{Tr}(K_p G)`, and G is the
    positive semidefinite part of :math:`K_\gamma - (I - H H^\top) / \rho`. The
    objective falls to a stationary point. G is known on the samples only: the method
    has no ``predict``.

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
        The paper's lambda, not negative: the larger, the less weight goes to kernels
        that are alike. The authors search 2^-6, ..., 2^7 (``GRID``).
    proximity : float, default=1.0
        The paper's rho, positive: how close G stays to the mixed kernel. The smaller,
        the lower is its rank. The authors search 2^-7, ..., 2^9.
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
        Mixing weights, summing to one. Not importance: noise is unlike other kernels,
        and favored.
    coefficients_ : ndarray of shape (n_kernels,)
        The mixed kernel is ``sum_p coefficients_p K_p``: the weights, or their squares,
        as above.
    objective_ : float
        The objective of the final weights, partition and G.
    history_ : ndarray of shape (n_iter_,)
        The objective after each iteration, falling.
    kernel_rank_ : int
        Rank of G, up to rounding. A warning says if it is below k.
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
    .. [1] X. Liu, S. Zhou, Y. Wang, M. Li, Y. Dou, E. Zhu, J. Yin. Optimal Neighborhood
       Kernel Clustering with Multiple Kernels. AAAI, 2017.

    Examples
    --------
    >>> from mkclust import ONKC
    >>> from mkclust.datasets import load
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> model = ONKC(n_clusters=10, random_state=0).fit(views)
    >>> model.converged_, bool((model.history_[1:] <= model.history_[:-1]).all())
    (True, True)
    """

    reg: float = 1.0
    proximity: float = 1.0
    tol: float = 1e-3
    max_iter: int = 50

    SUMMARY = (
        "which learns a kernel near a mix of the given ones, in turn with a relaxed "
        "partition"
    )
    REFERENCES = (
        "X. Liu, S. Zhou, Y. Wang, M. Li, Y. Dou, E. Zhu, J. Yin. Optimal Neighborhood "
        "Kernel Clustering with Multiple Kernels. AAAI, 2017.",
    )
    SLOWNESS = 10
    GRID: ClassVar[dict[str, list]] = {
        "proximity": [2.0**e for e in range(-7, 10)],
        "reg": [2.0**e for e in range(-6, 8)],
    }
    ALLOWED: ClassVar[dict[str, Allowed]] = {
        "reg": Number(0),
        "proximity": Number(0, open_low=True),
    }
    SIMILARITIES = "the kernel learned near the mix of the kernels"
    MATRICES = 4

    def _solve(self, stack: Stack) -> Solution:
        return solve_onkc(
            stack,
            self.n_clusters,
            **self._options("reg", "proximity", "tol", "max_iter"),
        )

    def _mixed_among(self, stack: Stack, samples: np.ndarray | None) -> Array:
        H = to_device(self.embedding_, stack.kernels[0].like)
        rho = float(self.proximity)
        G = find_nearby_kernel(stack, self.weights_, H, rho).kernel
        if samples is None:
            return G
        return select(select(G, samples), samples, axis=1)
