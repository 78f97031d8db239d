"""LMKKM: every sample mixes the kernels by its own weights."""

from typing import ClassVar

import numpy as np

from mkclust.engine.certificate import relax_from
from mkclust.engine.eigen import Relaxation
from mkclust.engine.row_simplex import minimize_over_rows
from mkclust.fit import RelaxedClusterer, Solution
from mkclust.fit.mixture import EIGEN_TOLERANCE
from mkclust.linalg import empty, namespace, to_device, to_host, zeros
from mkclust.parameters import Allowed, Number, learned
from mkclust.stack import DenseKernel, Mix, Stack, Standardization, Standardized
from mkclust.stack.kernel import row_blocks
from mkclust.types import Array, Float


def solve_lmkkm(
    stack: Stack, n_clusters: int, *, tol: float = 0.0, max_iter: int = 10
) -> Solution:
    r"""Minimize the objective of `LMKKM` over partition and weights in turns.

    For H fixed it is :math:`\sum_p \theta_p^\top ((I - H H^\top) \circ K_p)\,
    \theta_p`, a convex quadratic in Theta, minimized by products with its m blocks,
    which are stored.
    """
    n = stack.n_samples
    m = stack.n_kernels
    like = stack.kernels[0].like
    xp = namespace(like)
    diagonals = xp.stack([K.diagonal() for K in stack.kernels], axis=1)
    explained = empty((m, n, n), like)  # H H^T o K_p

    def relax(theta: Array, start: Array | None = None) -> Relaxation:
        mixed = DenseKernel(mix_by_samples(stack, theta).dense())
        return relax_from(mixed, n_clusters, tol=EIGEN_TOLERANCE, start=start)

    # (I - H H^T) o K_p with the weights of each kernel.
    def multiply(theta: Array) -> Array:
        products = [explained[p, :, :] @ theta[:, p] for p in range(m)]
        return diagonals * theta - xp.stack(products, axis=1)

    theta = zeros((n, m), like) + 1 / m
    relaxation = relax(theta)
    history = list[float]()
    while len(history) < max_iter and not (
        len(history) > 2 and _has_settled(history[-2:], tol)
    ):
        H = relaxation.vectors[:, :n_clusters]
        for part in row_blocks(stack.kernels):
            rows = H[part, :] @ H.T
            for p, kernel in enumerate(stack.kernels):
                explained[p, part, :] = rows * kernel.rows(part)
        # The diagonals bound the blocks: I o K_p - (I - H H^T) o K_p = H H^T o K_p is
        # positive semidefinite, an entrywise product of positive semidefinite matrices.
        minimum = minimize_over_rows(multiply, diagonals, theta)
        theta = minimum.point
        history.append(2 * minimum.value)
        relaxation = relax(theta, relaxation.vectors)
    history.append(max(float(xp.sum(diagonals * theta**2)) - relaxation.value, 0.0))
    # Without a tolerance, a last relative change of the objective below this counts as
    # converged.
    default_tolerance = 1e-3
    tol = tol or default_tolerance
    is_certain = minimum.converged or minimum.gap < tol * minimum.value
    # The last entry is half a step; it counts if there is no whole one.
    whole_steps = history[-3:-1] if len(history) > 2 else history
    has_settled = _has_settled(whole_steps, tol)
    return Solution(
        partition=relaxation.vectors[:, :n_clusters],
        weights=to_host(xp.mean(theta, axis=0)),
        objective=history[-1],
        history=np.array(history),
        converged=is_certain and has_settled,
        relaxation=relaxation,
        kernel=mix_by_samples(stack, theta),
        n_iter=len(history) - 1,
        n_passes=2 * len(history),
        learned={"sample_weights_": to_host(theta)},
    )


def _has_settled(history: list[float], tol: float) -> bool:
    """Return whether the second of two objectives is hardly below the first."""
    before, now = history
    return now == 0 or before - now < tol * before


def mix_by_samples(stack: Stack, theta: Array) -> Mix:
    """Return ``sum_p (theta_p theta_p^T) o K_p``, not written out."""
    kernels = [
        Standardized(
            kernel, Standardization(kernel.diagonal(), scale=theta[:, p] + 0.0)
        )
        for p, kernel in enumerate(stack.kernels)
    ]
    return Mix(np.ones(stack.n_kernels), kernels)


class LMKKM(RelaxedClusterer):
    r"""Localized multiple kernel k-means [1]_.

    .. math:: \min_{\Theta \ge 0,\, \Theta 1 = 1,\, H^\top H = I_k}
              \mathrm{Tr}(K_\Theta (I - H H^\top)), \qquad
              K_\Theta = \sum_p (\theta_p \theta_p^\top) \circ K_p

    Every sample has weights of its own. H and Theta are minimized over in turns, and
    the objective falls to a stationary point. As in MKKM, a kernel that k directions
    explain well takes most of the weight, and one of low rank may take it all. The
    method has no partition of new samples.

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
    tol : float, default=0.0
        Relative change of the objective at which to stop. Zero runs all iterations, as
        the authors do; they count as converged if the last one changed the objective by
        less than 1e-3.
    max_iter : int, default=10
        Most iterations.
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
        Means over samples, summing to one. Not importance: large if k directions
        explain it well.
    sample_weights_ : ndarray of shape (n_samples, n_kernels)
        The weights of each sample, Theta; every row sums to one.
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
    .. [1] M. Gönen, A. A. Margolin. Localized Data Fusion for Kernel k-Means Clustering
       with Application to Cancer Biology. NIPS, 2014.

    Examples
    --------
    >>> from mkclust import LMKKM
    >>> from mkclust.datasets import load
    >>> views = [view[:300] for view in load("digits").views.values()]
    >>> LMKKM(n_clusters=10, random_state=0).fit(views).sample_weights_.shape
    (300, 4)
    """

    tol: float = 0.0
    max_iter: int = 10

    sample_weights_: Float = learned()

    SUMMARY = (
        "which mixes the kernels by weights of every sample, found in turn with a "
        "partition"
    )
    REFERENCES = (
        "M. Gönen, A. A. Margolin. Localized Data Fusion for Kernel k-Means Clustering "
        "with Application to Cancer Biology. NIPS, 2014.",
    )
    SLOWNESS = 10
    ALLOWED: ClassVar[dict[str, Allowed]] = {"tol": Number(0, 1, open_high=True)}
    SIMILARITIES = "the sum of the kernels by the weights of both samples"
    COPIES = 1

    def _solve(self, stack: Stack) -> Solution:
        return solve_lmkkm(stack, self.n_clusters, tol=self.tol, max_iter=self.max_iter)

    def _mixed_among(self, stack: Stack, samples: np.ndarray | None) -> Array:
        theta = self.sample_weights_
        held = stack
        if samples is not None:
            theta = theta[samples]
            held = stack.among(samples)
        return mix_by_samples(held, to_device(theta, held.kernels[0].like)).dense()
