"""LocalizedSimpleMKKM: certified SimpleMKKM, by similarities between neighbors only."""

from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np

from mkclust.exceptions import warn
from mkclust.fit import RelaxedClusterer, Solution
from mkclust.linalg import (
    astype,
    empty,
    namespace,
    select,
    set_diagonal,
    to_host,
    zeros,
)
from mkclust.linalg.nearest import kth_smallest
from mkclust.methods.certified import CertifiedClusterer
from mkclust.methods.simple_mkkm import solve_simple_mkkm
from mkclust.parameters import Allowed, Choice, Count, Either, Rule
from mkclust.stack import Mix, Stack
from mkclust.stack.kernel import row_blocks
from mkclust.stack.stack import HeldStack
from mkclust.text import join_words
from mkclust.types import Array, Float

Neighbors = float | int | Literal["auto"]
MaskKind = Literal["counts", "published"]


def neighborhood_size(neighbors: Neighbors, n_samples: int, n_clusters: int) -> int:
    """Return how many samples a neighborhood has, for a share, a count, or "auto"."""
    # neighbors="auto" takes this part of the samples that a cluster has on average.
    # Measured on seven data sets: above a cluster's size the gain fades, below half of
    # it good clusters may fall apart.
    auto_part_of_cluster = 2 / 3
    # But not fewer samples: less than about ten neighbors are harmful.
    auto_fewest = 20
    # And not more than this part of all samples.
    auto_part_of_all = 1 / 3
    if neighbors == "auto":
        wanted = max(auto_fewest, auto_part_of_cluster * n_samples / n_clusters)
        return max(1, int(min(wanted, auto_part_of_all * n_samples) + 0.5))
    if not isinstance(neighbors, Integral):
        return max(1, int(np.floor(neighbors * n_samples + 0.5)))
    if neighbors >= n_samples:
        raise ValueError(
            f"neighbors={neighbors} with n_samples={n_samples}: pass a count below "
            "that, a share of the samples, or 'auto'"
        )
    return int(neighbors)


def neighborhood_mask(stack: Stack, size: int, kind: MaskKind = "published") -> Array:
    """Return the mask of `LocalizedSimpleMKKM`, by the average kernel, (n, n)."""
    n = stack.n_samples
    m = stack.n_kernels
    average = Mix(np.full(m, 1 / m), stack.kernels).dense()
    set_diagonal(average, -np.inf if kind == "published" else np.inf)
    if kind == "counts":
        size = min(size + 1, n)
    # Counts are exact in single precision up to 2^24 samples.
    members = empty((n, n), average, "float32")
    for part in row_blocks(stack.kernels):
        members[part, :] = astype(_nearest(average[part, :], size), "float32")
    return astype(members.T @ members, "float64") / n


def _nearest(similarities: Array, size: int) -> Array:
    """Return which entries are among the largest of their row, ``size`` of each."""
    xp = namespace(similarities)
    smallest = -kth_smallest(-similarities, size)
    is_above = similarities > smallest
    is_equal = similarities == smallest
    # Among equal similarities the first are taken, as by a stable sort.
    n_left = size - xp.sum(astype(is_above, "int32"), axis=1, keepdims=True)
    return is_above | (
        is_equal & (xp.cumulative_sum(astype(is_equal, "int32"), axis=1) <= n_left)
    )


def localize(
    stack: Stack, n_clusters: int, neighbors: Neighbors, kind: MaskKind = "published"
) -> tuple[Stack, Float, int]:
    """Return masked kernels, their correlations, and the size of a neighborhood.

    With the mask B, the correlations are ``sum_ab B_ab K_p,ab K_q,ab``.
    """
    size = neighborhood_size(neighbors, stack.n_samples, n_clusters)
    mask = neighborhood_mask(stack, size, kind)
    isolated = np.flatnonzero(to_host(namespace(mask).linalg.diagonal(mask)) == 0)
    if len(isolated):
        warn(
            f"samples in no neighborhood: {join_words(isolated)}. They have no "
            "similarity to others, and their clusters mean nothing; raise neighbors, "
            "or use LocalizedSimpleMKKM(mask='counts')",
            UserWarning,
        )
    entries = stack.among().entries
    m = stack.n_kernels
    xp = namespace(entries)
    total = zeros((m, m), entries)
    for part in row_blocks(stack.kernels):
        block = entries[:, part, :]
        local = block * mask[part, :]
        total += xp.reshape(local, (m, -1)) @ xp.reshape(block, (m, -1)).T
        entries[:, part, :] = local
    correlations = to_host(total)
    for name, correlation in zip(stack.names, correlations.diagonal(), strict=True):
        if correlation == 0:
            raise ValueError(
                f"{name} is zero between all samples that share a neighborhood: raise "
                "neighbors, or leave it out"
            )
    local_stack = HeldStack(entries, stack.names, stack.views)
    return local_stack, (correlations + correlations.T) / 2, size


# Integers are counts, other numbers shares of the samples.
SHARE = Rule(
    lambda value: isinstance(value, float | np.floating) and bool(0 < value <= 1),
    "pass a share of the samples, a float above 0 and at most 1.0",
)


class LocalizedClusterer(RelaxedClusterer):
    """Base of the methods for kernels among neighbors."""

    ALLOWED: ClassVar[dict[str, Allowed]] = {
        "neighbors": Either(Either(Count(least=2), SHARE), Choice(("auto",)))
    }
    SIMILARITIES = "the sum of the kernels by their coefficients, among neighbors"
    MATRICES = 2
    COPIES = 1

    def _mixed_among(self, stack: Stack, samples: np.ndarray | None) -> Array:
        mask = neighborhood_mask(
            stack, self.n_neighbors_, getattr(self, "mask", "published")
        )
        mix = Mix(self.coefficients_, stack.kernels)
        if samples is None:
            return mix.dense() * mask
        mixed = mix.rows(samples) * select(mask, samples)
        return select(mixed, samples, axis=1)


def solve_localized_simple_mkkm(
    stack: Stack,
    n_clusters: int,
    *,
    neighbors: Neighbors = "auto",
    mask: MaskKind = "counts",
    **options: Any,
) -> Solution:
    """Solve `LocalizedSimpleMKKM`; ``options`` are those of `solve_simple_mkkm`."""
    local, _, size = localize(stack, n_clusters, neighbors, mask)
    solution = solve_simple_mkkm(local, n_clusters, **options)
    return replace(solution, products=None, learned={"n_neighbors_": size})


class LocalizedSimpleMKKM(LocalizedClusterer, CertifiedClusterer):
    r"""Localized simple multiple kernel k-means [1]_ with certified global optimality.

    SimpleMKKM, with every kernel's similarities counted only between samples that are
    neighbors of a common sample, the more often the more:

    .. math:: \min_{\gamma \in \Delta} \max_{H^\top H = I_k}
              \mathrm{Tr}((B \circ K_\gamma) H H^\top),
              \qquad K_\gamma = \sum_p \gamma_p^2 K_p

    The neighborhoods are those of the average kernel. With the mask B, kernels remain
    positive semidefinite, so that the problem is convex and certified as SimpleMKKM's
    is. Masked kernels are not centered: k clusters show in k eigenvalues rather than k
    - 1. The method has no partition of new samples. A `WeightsWarning` names views that
    mislead neighborhoods and weights; `AgreementKKM` and `AnchoredMKKM` set them aside.

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
    neighbors : float, int or "auto", default="auto"
        The size of a neighborhood. A float is the paper's tau, a share of the samples:
        the authors search 0.05, 0.10, ..., 0.95 (``GRID``). An integer of at least 2 is
        a count. "auto" is two thirds of a cluster's mean size, but at least 20, and at
        most a third of all samples.
    mask : {"counts", "published"}, default="counts"
        With A_ab, the number of samples in whose neighborhood both a and b are, the
        mask B is A / n, every sample being in its own neighborhood. "published" leaves
        every sample out of its own; one that is in no other has then no similarity to
        any, and a warning names it.
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
        consensus.
    coefficients_ : ndarray of shape (n_kernels,)
        Squares of the weights: ``sum_p coefficients_p K_p`` is masked and clustered.
    n_neighbors_ : int
        How many samples a neighborhood has, itself not counted.
    objective_ : float
        ``Tr((B o K) H H^T)``, the minimum over the weights.
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
    .. [1] X. Liu, S. Zhou, L. Liu, C. Tang, S. Wang, J. Liu, Y. Zhang. Localized Simple
       Multiple Kernel K-means. ICCV, 2021.

    Examples
    --------
    >>> from mkclust import LocalizedSimpleMKKM
    >>> from mkclust.datasets import load
    >>> views = {name: view[:500] for name, view in load("digits").views.items()}
    >>> model = LocalizedSimpleMKKM(n_clusters=10, random_state=0).fit(views)
    >>> model.labels_.shape, bool(model.duality_gap_ < 1e-6)
    ((500,), True)
    """

    neighbors: Neighbors = "auto"
    mask: MaskKind = "counts"

    SUMMARY = (
        "SimpleMKKM with similarities counted by the neighborhoods that two samples "
        "share"
    )
    REFERENCES = (
        "X. Liu, S. Zhou, L. Liu, C. Tang, S. Wang, J. Liu, Y. Zhang. Localized Simple "
        "Multiple Kernel K-means. ICCV, 2021.",
    )
    WARNS = "if views are set aside"  # other clusters are what neighborhoods are for
    GRID: ClassVar[dict[str, list]] = {
        "neighbors": [round(0.05 * i, 2) for i in range(1, 20)]
    }
    ALLOWED: ClassVar[dict[str, Allowed]] = (
        CertifiedClusterer.ALLOWED
        | LocalizedClusterer.ALLOWED
        | {"mask": Choice(("counts", "published"))}
    )

    def _solve(self, stack: Stack) -> Solution:
        options = self._options(
            "neighbors", "mask", "tol", "max_iter", "prove", "random_state"
        )
        return solve_localized_simple_mkkm(stack, self.n_clusters, **options)
