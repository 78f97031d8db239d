"""LF-MVC: cluster by every kernel alone, then align the partitions with a consensus."""

from typing import ClassVar, NamedTuple

import numpy as np

from mkclust.engine.certificate import rounding_of_entries
from mkclust.engine.eigen import relax
from mkclust.fit import InductiveClusterer, Solution
from mkclust.fit.base import COSINES, RelaxedClusterer
from mkclust.fit.embedding import inverse
from mkclust.fit.mixture import EIGEN_TOLERANCE
from mkclust.linalg import hstack, namespace, polar_factor, to_device, to_host
from mkclust.parameters import Allowed, Number
from mkclust.stack import Mix, Stack
from mkclust.types import Array, Float

# A partition with at most this weight keeps the rotation it has, as in the authors'
# code.
SMALLEST_WEIGHT = 1e-4


class Fusion(NamedTuple):
    """A consensus of partitions: ``F`` is the polar factor of ``total``."""

    partition: Array  # F, (n, k)
    weights: Float  # b, (m,)
    rotations: Float  # W, (m, k, k)
    total: Array  # sum_p b_p H_p W_p + lambda H_0, (n, k)
    history: Float
    converged: bool


def solve_lf_mvc(
    stack: Stack,
    n_clusters: int,
    *,
    reg: float = 2.0,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> Solution:
    """Maximize the objective of `LFMVC` over consensus, rotations, weights in turn."""
    k = n_clusters
    n = stack.n_samples
    rounding = rounding_of_entries(stack)
    uniform = np.full(stack.n_kernels, 1 / stack.n_kernels)
    average = stack.mix(uniform)
    found = [
        relax(kernel, k, tol=EIGEN_TOLERANCE) for kernel in (average, *stack.kernels)
    ]
    inverses = [inverse(each.eigenvalues[:k], n, rounding) for each in found]
    pairs = list(zip((each.vectors[:, :k] for each in found), inverses, strict=True))
    # Columns in the null space of a kernel of rank below k become zeros: which of these
    # vectors an eigensolver returns must not matter.
    H_0, *H = (
        vectors * to_device(values > 0, vectors, "float64") for vectors, values in pairs
    )
    fusion = fuse(H, H_0, reg=float(reg), tol=tol, max_iter=max_iter)
    R = to_host(namespace(fusion.total).linalg.qr(fusion.total)[1])
    _, lengths, Vt = np.linalg.svd(R)
    root = (Vt.T * inverse(lengths, n, rounding)) @ Vt  # (X^T X)^(-1/2)
    # H_p = K_p V_p.
    V_0, *V = (vectors * to_device(values, vectors) for vectors, values in pairs)
    shared = V_0 @ to_device(reg / stack.n_kernels * root, V_0)
    parts = zip(V, fusion.weights, fusion.rotations, strict=True)
    projections = [V_p @ to_device(b * W @ root, V_p) + shared for V_p, b, W in parts]
    return Solution(
        partition=fusion.partition,
        weights=fusion.weights,
        objective=float(fusion.history[-1]),
        history=fusion.history,
        kernel=Mix(uniform, stack.kernels),
        converged=fusion.converged,
        projections=projections,
        n_iter=len(fusion.history) - 1,
        n_passes=2,
    )


def fuse(
    H: list[Array],
    H_0: Array,
    *,
    reg: float,
    align: bool = True,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> Fusion:
    """Find the consensus of m orthonormal partitions H, starting near one of them, H_0.

    With ``align``, every partition is turned towards ``H_0`` at the start.
    """
    m = len(H)
    k = H_0.shape[1]
    partitions = hstack(*H)
    xp = namespace(H_0)

    def overlaps(F: Array) -> Float:
        return to_host(partitions.T @ F).reshape(m, k, k)

    W = np.stack([np.eye(k)] * m)
    if align:
        W = np.stack([polar_factor(M_p) for M_p in overlaps(H_0)])
    b = np.full(m, 1 / m)
    history = list[float]()
    converged = False
    while True:
        A = (b[:, None, None] * W).reshape(m * k, k)
        X = partitions @ to_device(A, partitions) + reg * H_0
        F = polar_factor(X)
        M = overlaps(F)
        anchored = reg * float(xp.sum(F * H_0))
        if converged or len(history) == max_iter:
            # F once more, so that partition, rotations and weights belong together.
            history.append(float(b @ np.sum(M * W, axis=(1, 2))) + anchored)
            return Fusion(F, b, W, X, np.array(history), converged)
        for p in np.flatnonzero(b > SMALLEST_WEIGHT):
            W[p] = polar_factor(M[p])
        # Nuclear norms, except for rotations that were kept, which may give negative
        # numbers.
        c = np.maximum(np.sum(M * W, axis=(1, 2)), 0)
        length = float(np.linalg.norm(c))
        b = c / length if length > 0 else np.full(m, m**-0.5)
        history.append(length + anchored)
        if len(history) > 2:
            change = abs(history[-1] - history[-2])
            converged = change < tol * abs(history[-2])


class LFMVC(RelaxedClusterer, InductiveClusterer):
    r"""Multi-view clustering via late fusion alignment maximization [1]_.

    .. math:: \max_{F,\, W_p,\, b} \mathrm{Tr}\Bigl(F^\top \sum_p b_p H_p W_p\Bigr)
              + \lambda\, \mathrm{Tr}(F^\top H_0), \qquad
              F^\top F = W_p^\top W_p = I_k, \quad \|b\|_2 = 1, \quad b \ge 0

    Every kernel is clustered alone, into its k leading eigenvectors :math:`H_p`; these
    partitions are mixed, not the kernels, each turned by a rotation :math:`W_p`. The
    consensus F also stays near the partition :math:`H_0` of the average kernel. In
    turns over F, the rotations and the weights b, the objective rises to a stationary
    point of at most :math:`k (\sqrt m + \lambda)`. Rotations start towards :math:`H_0`,
    so that signs of eigenvectors do not matter.

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
    reg : float, default=2.0
        The paper's lambda, not negative: how much the average kernel's partition
        counts. The authors search 2^-15, ..., 2^15 (``GRID``). Small values may need
        more iterations.
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
        Mixing weights b of the partitions, of unit l2 norm. Not importance: a large
        weight means that the kernel's own partition agrees with the consensus.
    objective_ : float
        ``Tr(F^T sum_p b_p H_p W_p) + reg Tr(F^T H_0)``.
    history_ : ndarray of shape (n_iter_ + 1,)
        The objective after each update of the weights, and at the end, rising.
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
    .. [1] S. Wang, X. Liu, E. Zhu, C. Tang, J. Liu, J. Hu, J. Xia, J. Yin. Multi-view
       Clustering via Late Fusion Alignment Maximization. IJCAI, 2019.

    Examples
    --------
    >>> from mkclust import LFMVC
    >>> from mkclust.datasets import load
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> model = LFMVC(n_clusters=10, random_state=0).fit(views)
    >>> model.converged_, round(float((model.weights_**2).sum()), 6)
    (True, 1.0)
    """

    reg: float = 2.0
    tol: float = 1e-6
    max_iter: int = 100

    SUMMARY = (
        "which aligns a consensus with rotated partitions of all kernels and of their "
        "average"
    )
    REFERENCES = (
        "S. Wang, X. Liu, E. Zhu, C. Tang, J. Liu, J. Hu, J. Xia, J. Yin. Multi-view "
        "Clustering via Late Fusion Alignment Maximization. IJCAI, 2019.",
    )
    GRID: ClassVar[dict[str, list]] = {"reg": [2.0**e for e in range(-15, 16)]}
    SIMILARITIES = COSINES
    ALLOWED: ClassVar[dict[str, Allowed]] = {"reg": Number(0)}

    def _solve(self, stack: Stack) -> Solution:
        return solve_lf_mvc(
            stack, self.n_clusters, **self._options("reg", "tol", "max_iter")
        )
