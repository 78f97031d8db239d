"""SimpleMKKM: minimize over the weights the maximum over the partitions."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from mkclust.engine.certificate import rounding_of_entries, search_key
from mkclust.engine.eigen import Relaxation
from mkclust.engine.search import search
from mkclust.engine.simplex import CuttingSurfaces, longest_step, reduced_direction
from mkclust.fit import InductiveClusterer, Mixture, Solution
from mkclust.methods.certified import CertifiedClusterer
from mkclust.methods.learned_fill import AlignedFills, learn_fills
from mkclust.parameters import Allowed, Choice
from mkclust.stack import Stack
from mkclust.types import Float


def solve_simple_mkkm(
    stack: Stack,
    n_clusters: int,
    *,
    tol: float = 1e-6,
    max_iter: int = 200,
    prove: bool | Literal["auto"] = "auto",
    start: Relaxation | None = None,
    n_fixed: int = 0,
    random_state: Any = None,
) -> Solution:
    """Minimize the objective of `SimpleMKKM` to a certified relative gap.

    Weights and eigenvectors are found together in a small subspace
    (`mkclust.engine.search`). ``start`` is a partition to begin with, such as that of
    similar kernels. The last ``n_fixed`` kernels are added to the mix and have no
    weight. The other parameters are those of `SimpleMKKM`.
    """
    result = search(
        stack,
        n_clusters,
        tol=tol,
        max_iter=max_iter,
        n_fixed=n_fixed,
        start=None if start is None else start.vectors,
        prove=prove,
        key=search_key(random_state),
    )
    upper, lower = result.history.T
    return Solution(
        partition=result.relaxation.vectors[:, :n_clusters],
        weights=result.weights,
        objective=result.relaxation.value,
        # Early estimates may have been too low; the last one is the most accurate.
        history=np.maximum(np.minimum.accumulate(upper), upper[-1]),
        converged=result.converged,
        coefficients=result.weights**2,
        relaxation=result.relaxation,
        gap=result.relaxation.gap_above(float(lower.max())),
        lower_bounds=lower,
        certificate=result.certificate,
        n_iter=len(upper),
        n_passes=result.n_passes,
        products=result.products,
    )


def solve_reduced_gradient(
    stack: Stack,
    n_clusters: int,
    *,
    tol: float = 1e-6,
    max_iter: int = 200,
    stopping: Literal["gap", "step"] = "gap",
    prove: bool | Literal["auto"] = "auto",
    random_state: Any = None,
) -> Solution:
    """Minimize the objective of `SimpleMKKM` by its paper's Algorithm 1.

    The start is uniform weights.
    """
    mixture = Mixture(stack, n_clusters)
    gamma = mixture.uniform
    partition = mixture.relax(gamma**2)
    surfaces = CuttingSurfaces(gamma, 2 * rounding_of_entries(stack))
    history = [partition.value]
    bounds = []
    step = None
    converged = False
    # Largest change of a weight at which the paper stops.
    paper_step = 1e-4
    while True:
        alignments = mixture.alignments(partition)
        surfaces.add(alignments)
        bounds.append(surfaces.lower_bound)
        if stopping == "gap":
            converged = partition.gap_above(surfaces.lower_bound) <= tol
        if converged or len(history) > max_iter:
            break
        gradient = 2 * gamma * alignments  # Theorem 1
        direction = reduced_direction(gamma, gradient)
        slope = float(direction @ gradient)
        # The first guess moves no weight by more than a tenth; later ones start from
        # the last step.
        guess = 4 * step if step else 0.1 / (np.abs(direction).max() or 1.0)
        guess = min(guess, longest_step(gamma, direction))
        step, reached = _armijo(mixture, gamma, direction, partition, slope, guess)
        if step == 0:
            # Stationary: one kernel, or a kink from which no single gradient leads
            # down.
            converged = stopping == "step"
            break
        converged = stopping == "step" and bool(
            np.max(np.abs(step * direction)) <= paper_step
        )
        gamma = gamma + step * direction
        partition = reached
        history.append(partition.value)
    allowed = tol * partition.value
    if stopping == "gap" and converged:
        allowed -= max(partition.value - surfaces.lower_bound, 0.0)
    certificate = mixture.certify(
        partition, gamma**2, allowed, prove=prove, random_state=random_state
    )
    partition = replace(partition, error=certificate.error)
    return mixture.solution(
        partition,
        gamma,
        gamma**2,
        history,
        converged and certificate.is_within(allowed),
        len(history) - 1,
        gap=partition.gap_above(surfaces.lower_bound),
        lower_bounds=np.array(bounds),
        certificate=certificate,
    )


def _armijo(
    mixture: Mixture,
    gamma: Float,
    direction: Float,
    start: Relaxation,
    slope: float,
    step: float,
) -> tuple[float, Relaxation]:
    """Shorten a step until the decrease is a fair share of what the slope promises."""
    while slope < 0 and step * np.abs(direction).max() > np.finfo(np.float64).eps:
        reached = mixture.relax((gamma + step * direction) ** 2)
        rise = reached.value - start.value
        if rise <= 1e-4 * step * slope:
            return step, reached
        # The parabola through what is known has its minimum here.
        step *= float(np.clip(-slope * step / (2 * (rise - slope * step)), 0.1, 0.5))
    return 0.0, start


class SimpleMKKM(CertifiedClusterer, InductiveClusterer):
    r"""Simple multiple kernel k-means [1]_, solved to certified global optimality.

    The weights minimize what the partition, the leading eigenvectors of the mix,
    maximizes:

    .. math:: \min_{\gamma \in \Delta} \max_{H^\top H = I_k}
              \mathrm{Tr}(K_\gamma H H^\top),
              \qquad K_\gamma = \sum_p \gamma_p^2 K_p

    **What "certified" means.** This relaxed problem is convex in the weights, and
    ``duality_gap_`` bounds how far the result is from its global minimum. It does not
    say that clusters exist, that ``n_clusters`` is right, that the kernels are good, or
    that the k-means step is optimal.

    **What a weight means.** ``weights_`` are mixing weights, not importance: at the
    optimum a weight is inversely proportional to the kernel's agreement with the
    consensus, so a kernel without structure gets the largest. Read ``alignments_``
    beside them. A `WeightsWarning` says if the clusters are not those that the views
    agree on, which `AgreementKKM` finds.

    **Samples missing from views.** With ``missing_views="learn"``, the default,
    imputing missing features in the direction that the partition predicts alternates
    with clustering; both maximize the objective. ``duality_gap_`` is that of the last
    solve, for the imputed features.

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
    solver : {"subspace", "reduced-gradient"}, default="subspace"
        The certified subspace solver, or the paper's reduced gradient, which can stall
        before the minimizer if eigenvalues k and k + 1 tie there.
    stopping : {"gap", "step"}, default="gap"
        Stop at the certified relative gap ``tol`` or, for the reduced gradient only, as
        the paper does: when no weight changes by more than 1e-4.
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
        The mixed kernel is ``sum_p coefficients_p K_p``: the weights, or their squares,
        as above.
    objective_ : float
        ``Tr(K H H^T)``, the minimum over the weights.
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

    Examples
    --------
    >>> from mkclust import SimpleMKKM
    >>> from mkclust.datasets import load
    >>> digits = load("digits")
    >>> model = SimpleMKKM(n_clusters=10, random_state=0).fit(digits.views)
    >>> model.labels_.shape, bool(model.duality_gap_ < 1e-6)
    ((1797,), True)
    >>> bool((model.predict(digits.views) == model.labels_).all())
    True
    """

    solver: Literal["subspace", "reduced-gradient"] = "subspace"
    stopping: Literal["gap", "step"] = "gap"

    SUMMARY = (
        "whose squared weights minimize the alignment that a relaxed partition "
        "maximizes"
    )
    REFERENCES = (
        "X. Liu, E. Zhu, J. Liu, T. Hospedales, Y. Wang, M. Wang. SimpleMKKM: Simple "
        "Multiple Kernel K-means. ICML, 2020.",
    )
    LEARNS_MISSING = True
    ALLOWED: ClassVar[dict[str, Allowed]] = CertifiedClusterer.ALLOWED | {
        "solver": Choice(("subspace", "reduced-gradient")),
        "stopping": Choice(("gap", "step")),
    }

    def check_parameters(self) -> None:
        """Refuse parameters that are invalid for all data."""
        super().check_parameters()
        if self.stopping == "step" and self.solver == "subspace":
            raise ValueError(
                "stopping='step' is the reduced gradient's rule: pass "
                "solver='reduced-gradient', or stopping='gap' for the subspace solver"
            )

    def _solve(self, stack: Stack) -> Solution:
        if not self._learns_missing(stack):
            return self._minimize(stack)
        return learn_fills(stack, self._minimize, AlignedFills(), goal="rising")

    def _minimize(self, stack: Stack, previous: Solution | None = None) -> Solution:
        options = self._options("tol", "max_iter", "prove", "random_state")
        if self.solver == "reduced-gradient":
            return solve_reduced_gradient(
                stack, self.n_clusters, stopping=self.stopping, **options
            )
        start = None if previous is None else previous.relaxation
        return solve_simple_mkkm(stack, self.n_clusters, start=start, **options)
