"""What each kernel brings to a fitted model: structure, agreement, copies of others, or noise."""

import numbers
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaincc, ndtr
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.utils.validation import check_is_fitted

from mkclust.discretize import discretize
from mkclust.generalize import inverse
from mkclust.linalg import to_host
from mkclust.methods import MultipleKernelClusterer
from mkclust.methods.inputs import kind_of_input
from mkclust.metrics import adjusted_rand_index
from mkclust.relaxation import Relaxation, relax
from mkclust.stack import DenseStack, Operator, as_stack
from mkclust.types import Array, Float

# Relative error of the eigenvalue sums; the gaps between single eigenvalues are read off.
EIGEN_TOLERANCE = 1e-10
# Two kernels with a redundancy above this are one kernel, given twice.
SAME = 0.99
# Alignments, of which eigenvalue sums are known to a thousandth, differ by less than this.
SAME_ALIGNMENT = 0.01
# What two kernels share is beyond chance where chance alone would do as well this seldom.
BEYOND_CHANCE = 1e-4
# With fewer samples than this even kernels of the same clusters may not get beyond chance.
FEWEST_SAMPLES = 30
# Off the identity by less than this share, a kernel is the identity: nothing can be shared.
IDENTITY = 1e-6
# A kernel has clusters of its own where its spectrum drops by this share after as many
# eigenvalues, and where few of its samples lie between them. The middle third of the way between
# two halves of a shapeless cloud holds a tenth to a fifth of it.
CLEAR_GAP = 0.25
FEW_BETWEEN = 0.08
# How many clusters more than the model has are looked for in a kernel that shares nothing.
MORE_CLUSTERS = 2


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What each kernel of a fitted model is, and does; ``print`` it for a reading in words.

    Attributes
    ----------
    method : str
        Name of the model's class.
    n_clusters : int
        The model's number of clusters, k.
    names : tuple of str
        Names of the kernels, in the model's order; what follows is in that order, too.
    weights : ndarray of shape (n_kernels,)
        The model's mixing weights. Not importance: read the alignments beside them.
    alignments : ndarray of shape (n_kernels,)
        The share of each kernel's own top-k eigenvalue sum that the consensus captures.
    top_share : ndarray of shape (n_kernels,)
        The share of the kernel's trace in its k largest eigenvalues. This and the next are those
        of the kernels as the model sees them, but centered in any case.
    cluster_gap : ndarray of shape (n_kernels,)
        Relative gap between eigenvalues k - 1 and k of the kernel, where k clusters show; NaN for
        k = 1.
    agreement : ndarray of shape (n_kernels,)
        Adjusted Rand index between the kernel's own clusters (relaxed kernel k-means of that
        kernel alone) and the model's.
    leave_one_out : ndarray of shape (n_kernels,)
        Adjusted Rand index between the model's clusters and those of the same model fitted
        without that kernel; NaN where that was not asked for, or the other kernels cannot be
        clustered.
    redundancy : ndarray of shape (n_kernels, n_kernels)
        Alignment of every two centered kernels, ``<K_p, K_q> / (|K_p| |K_q|)``.
    chance : ndarray of shape (n_kernels,)
        How likely it is, by chance alone, that a kernel has as much in common with one of the
        others, or with their average, as it has: near zero for a kernel that shares something.
    noise : tuple of str
        Kernels that look like noise, by the rule that `diagnose` states.
    alone : tuple of str
        Kernels that share nothing with the others, but have clear clusters of their own.
    duplicates : tuple of (str, str)
        Pairs of kernels that are nearly the same: of a redundancy above 0.99.
    """

    method: str
    n_clusters: int
    names: tuple[str, ...]
    weights: Float
    alignments: Float
    top_share: Float
    cluster_gap: Float
    agreement: Float
    leave_one_out: Float
    redundancy: Float
    chance: Float
    noise: tuple[str, ...]
    alone: tuple[str, ...]
    duplicates: tuple[tuple[str, str], ...]

    def report(self) -> str:
        """Return the reading in words: a table of all kernels, and what stands out.

        Returns
        -------
        str
        """
        count = f"{self.n_clusters} cluster{'s' * (self.n_clusters > 1)}"
        title = f"{self.method}, {count}, {len(self.names)} kernels"
        return "\n".join([title, "", *self._table(), "", *self._sentences()])

    def __str__(self) -> str:
        return self.report()

    def _table(self) -> list[str]:
        """Return the table of all kernels, a line each."""
        columns = {
            "weight": self.weights,
            "alignment": self.alignments,
            "agreement": self.agreement,
            "without it": self.leave_one_out,
            "cluster gap": self.cluster_gap,
            "top share": self.top_share,
        }
        shown = {title: column for title, column in columns.items() if not np.isnan(column).all()}
        width = max(map(len, ("kernel", *self.names)))
        lines = ["kernel".ljust(width) + "".join(f"  {title}" for title in shown) + "   chance"]
        for p, name in enumerate(self.names):
            cells = [f"  {_number(column[p]):>{len(title)}}" for title, column in shown.items()]
            cells.append(f"  {_likelihood(self.chance[p]):>7}")
            lines.append(name.ljust(width) + "".join(cells))
        return lines

    def _sentences(self) -> list[str]:
        """Return what stands out, a sentence each."""
        said = [self._say_noise(self.names.index(name)) for name in self.noise]
        if len(self.noise) == len(self.names):
            said.append("All kernels look like noise: there may be no clusters to be found.")
        elif self.noise:
            largest = self.names[int(np.argmax(self.weights))]
            if largest in self.noise and np.ptp(self.weights) > 0:
                said.append(
                    "Weights are not importance: the largest of all, "
                    f"{_number(self.weights.max())}, is that of {largest!r}."
                )
            kept = [name for name in self.names if name not in self.noise]
            said.append(
                f"Fit again without what looks like noise, with {_listed(kept)}; but look first: "
                "overlapping clusters that no other kernel shares would look the same."
            )
        else:
            said.append("No kernel looks like noise.")
        said += [
            f"Kernel {name!r} stands alone: it has clear clusters of its own, but shares nothing "
            f"with the other kernels beyond chance{self._likely(self.names.index(name))}. It is no "
            "noise; whether its clusters are wanted, it cannot say."
            for name in self.alone
        ]
        said += [
            f"Kernels {_listed([self.names[p] for p in group])} are nearly the same (redundancy "
            f"above {SAME}): they say one thing {len(group)} times."
            for p, group in enumerate(map(np.flatnonzero, _connected(self.redundancy > SAME)))
            if len(group) > 1 and group[0] == p
        ]
        if not np.isnan(self.leave_one_out).all() and self.n_clusters > 1:
            p = int(np.nanargmin(self.leave_one_out))
            if self.leave_one_out[p] >= 0.995:
                said.append("No single kernel changes the clusters.")
            else:
                said.append(
                    f"The clusters depend most on kernel {self.names[p]!r}: without it they stay "
                    f"the same to {_number(self.leave_one_out[p])} (adjusted Rand index)."
                )
        return said

    def _say_noise(self, p: int) -> str:
        """Say why a kernel looks like noise."""
        gap, reasons = self.cluster_gap[p], []
        shares = f"it shares nothing with the other kernels beyond chance{self._likely(p)}"
        if gap > CLEAR_GAP:
            reasons.append(f"its samples form no clusters that are apart (cluster gap {gap:.2f})")
        elif not np.isnan(gap):
            reasons.append(
                f"its spectrum has no gap where {self.n_clusters} clusters would show ({gap:.2f})"
            )
        if self.n_clusters > 1:
            value = self.agreement[p]
            only = " only" if value < 0.2 else ""
            reasons.append(f"its own clusters agree with the consensus to {_number(value)}{only}")
        listed = ", ".join([shares, *reasons[:-1]])
        last = f", and {reasons[-1]}" if reasons else ""
        return f"Kernel {self.names[p]!r} looks like noise: {listed}{last}."

    def _likely(self, p: int) -> str:
        """Return how likely chance would do as well, in brackets."""
        return f" (p = {_likelihood(self.chance[p])})"


def diagnose(model: Any, X: Any, *, leave_one_out: bool = True) -> Diagnosis:
    r"""Say what each kernel of a fitted model brings: structure, agreement, a copy, or noise.

    **When a kernel looks like noise.** If it shares nothing with any other kernel beyond chance,
    and has no clear clusters of its own. Labels and weights play no part in that, nor does the
    consensus, which noise may have ruined.

    - *Shares.* :math:`\langle K_p, K_q \rangle` of the centered kernels is compared with what it
      would be if the samples of one of them were shuffled. The mean and the variance over all
      permutations are known exactly [1]_, and a gamma distribution with these says how likely
      that is. So it is done with every other kernel and with the average of the others; the
      least likely of these, times their number, is ``chance``. Less than 1e-4 is beyond chance.
      Kernels of a redundancy above 0.99 are judged together, by their average, and so are the
      kernels that a bank made of one of several views: what they share with each other proves
      nothing.
    - *Clusters of its own.* For some number c of clusters, from two to k + 2, the spectrum of the
      centered kernel drops by a quarter or more after c - 1 eigenvalues, and few samples
      (8 percent) lie in the middle third of the way between the clusters that k-means finds in
      these eigenvectors. Such a kernel stands alone: it is no noise.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator, any of ``METHODS``.
    X : array of shape (m, n, n), list or dict of kernels or views, or table of shape (n, d)
        What the model was fitted on, with two kernels or more.
    leave_one_out : bool, default=True
        Fit the model again without each kernel in turn, which takes most of the time.

    Returns
    -------
    Diagnosis

    Notes
    -----
    Everything is deterministic: where ``random_state`` is no integer, k-means starts from the
    seed zero.

    Limits of the rule. Clusters that overlap and that no other kernel shares cannot be told from
    noise: they are called noise. Whatever two kernels share counts, be it a batch effect, and the
    more samples the less of it is needed. Two unlike kernels that were precomputed from one noise
    view share that view's features, so that neither is called noise; the same holds for the
    kernels of a single table. With fewer than thirty samples, or where all kernels are copies of
    one, no kernel is called noise. If all kernels are noise, all are named.

    References
    ----------
    .. [1] F. Kazi-Aoual, S. Hitier, R. Sabatier, J.-D. Lebreton. Refined approximations to
       permutation tests for multivariate inference. Computational Statistics & Data Analysis 20,
       1995.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import AverageKKM, diagnose
    >>> from mkclust.datasets import load
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> views["dice"] = np.random.default_rng(0).normal(size=(300, 20))
    >>> model = AverageKKM(n_clusters=10, random_state=0).fit(views)
    >>> diagnosis = diagnose(model, views)
    >>> diagnosis.noise
    ('dice',)
    >>> print(diagnosis)  # doctest: +ELLIPSIS
    AverageKKM, 10 clusters, 5 kernels
    ...
    Kernel 'dice' looks like noise: it shares nothing with the other kernels beyond chance ...
    """
    if not isinstance(model, MultipleKernelClusterer):
        raise TypeError(f"model is a {type(model).__name__}: pass a fitted estimator of mkclust")
    check_is_fitted(model)
    kernels = _rebuilt_kernels(model, X)
    k, names = model.n_clusters, model.kernel_names_
    # Seeds that change from call to call would make a diagnosis do so, too.
    integral = isinstance(model.random_state, numbers.Integral)
    seed = int(model.random_state) if integral else 0
    # What was checked in fit need not be checked again, but what was repaired must be.
    repaired = model.psd != "error" and model.validate and not hasattr(model, "bank_")

    def standardized(normalize: bool) -> DenseStack:
        return as_stack(
            kernels,
            center=model.center,
            normalize=normalize,
            psd=model.psd,
            validate=repaired,
            names=names,
        )

    with warnings.catch_warnings():
        # The model itself has warned when it was fitted.
        warnings.simplefilter("ignore")
        stack = standardized(model.normalize)
        gram, diagonals = _centered_products(stack)
        redundancy = _redundancy(gram)
        own = [relax(kernel, k, tol=EIGEN_TOLERANCE) for kernel in stack.kernels]
        _check_same(model, stack, own)
        structure, traces = own, stack.traces()
        if not model.center:
            structure = [relax(Centered(K), k, tol=EIGEN_TOLERANCE) for K in stack.kernels]
            traces = diagonals.sum(axis=1)
        agreement = [
            adjusted_rand_index(model.labels_, _labels(found, stack, model.n_init, seed))
            for found in own
        ]
        without = [
            _agreement_without(p, kernels, model, repaired, seed) if leave_one_out else np.nan
            for p in range(len(names))
        ]
        together = _judged_together(model, redundancy)
        chance = _chances(gram, diagonals, together)
        alone, noise = np.zeros((2, len(names)), bool)
        if stack.n_samples >= FEWEST_SAMPLES and not together.all():
            # Scaling to unit length would push the samples of few dimensions apart.
            plain = standardized(False).kernels
            unshared = chance >= BEYOND_CHANCE
            for p in np.flatnonzero(unshared).tolist():
                alone[p] = _has_clusters(Centered(plain[p]), k)
            alone = together @ alone
            noise = unshared & ~alone
    values, known = np.array([found.value for found in structure]), traces > 0
    return Diagnosis(
        method=type(model).__name__,
        n_clusters=k,
        names=names,
        weights=model.weights_.copy(),
        alignments=model.alignments_.copy(),
        top_share=np.where(known, values / np.where(known, traces, 1), np.nan),
        cluster_gap=np.array([found.cluster_gap for found in structure]),
        agreement=np.array(agreement),
        leave_one_out=np.array(without),
        redundancy=redundancy,
        chance=chance,
        noise=_chosen(names, noise),
        alone=_chosen(names, alone),
        duplicates=tuple(
            (names[p], names[q]) for p, q in np.argwhere(np.triu(redundancy > SAME, 1))
        ),
    )


def _rebuilt_kernels(model: MultipleKernelClusterer, X: Any) -> Sequence[Array]:
    """Return the kernels that the model was fitted on, neither centered nor scaled."""
    names, n = model.kernel_names_, len(model.labels_)
    if len(names) < 2:
        raise ValueError(
            "the model was fitted on one kernel: there is nothing to compare it with; a diagnosis "
            "takes two kernels or more"
        )
    if hasattr(model, "bank_"):
        kernels = model.bank_.transform(model._views(X, model, reset=False))
        if kernels.shape[1] != n:
            raise ValueError(f"X has {kernels.shape[1]} samples, the model was fitted on {n}")
        # The bank's kernels are exactly symmetric where, and only where, it knows the samples.
        if not all(np.array_equal(K, K.T) for K in kernels):
            raise ValueError("X holds other samples than the model was fitted on: pass the same")
        return kernels
    kind_of_input(X, "precomputed")  # refuses all that is not several matrices
    if len(X) != len(names):
        raise ValueError(f"X has {len(X)} kernels, the model was fitted on {len(names)}")
    if isinstance(X, Mapping):
        X = {str(name): kernel for name, kernel in X.items()}
        if missing := [name for name in names if name not in X]:
            raise ValueError(f"X lacks the kernel {missing[0]!r}, it has {list(X)}")
        X = [X[name] for name in names]
    for name, K in zip(names, X, strict=True):
        if np.shape(K) != (n, n):
            raise ValueError(
                f"{name} has the shape {np.shape(K)}, the model was fitted on {n} samples: pass "
                f"the same {n} x {n} kernels"
            )
    return X


class Centered:
    """A kernel centered on the fly, however it was scaled before."""

    def __init__(self, kernel: Operator):
        self.kernel, self.shape = kernel, kernel.shape

    def __matmul__(self, X: Array) -> Array:
        """Multiply with a thin matrix, (n, b) to (n, b)."""
        Y = self.kernel @ (X - X.mean(axis=0))
        return Y - Y.mean(axis=0)

    def dense(self) -> Float:
        """Write the entries out, (n, n)."""
        K = self.kernel.dense()
        K = K - K.mean(axis=0)
        return K - K.mean(axis=1)[:, None]


def _labels(found: Relaxation, stack: DenseStack, n_init: int, seed: int) -> np.ndarray:
    """Return the clusters of one kernel alone."""
    k = found.n_clusters
    # As in fit: where the kernel has a rank below k, the coordinate is zero.
    scale = inverse(found.eigenvalues[:k], stack.n_samples, stack.precision)
    rows = to_host(found.products[:, :k] * scale)
    return discretize(rows, k, n_init=n_init, random_state=seed)[0]


def _check_same(
    model: MultipleKernelClusterer, stack: DenseStack, own: Sequence[Relaxation]
) -> None:
    """Refuse kernels that the model's partition does not fit as it fitted those of the fit."""
    H = model.embedding_
    captured = to_host((stack.apply(H) * H).sum(axis=(1, 2)))
    alignments = captured / np.array([found.value for found in own])
    for name, now, then in zip(stack.names, alignments, model.alignments_, strict=True):
        if abs(now - then) > SAME_ALIGNMENT:
            raise ValueError(
                f"X is not what the model was fitted on: kernel {name!r} is aligned with the "
                f"consensus to {now:.2f}, and was to {then:.2f}; pass the same kernels and samples "
                "in the same order"
            )


def _agreement_without(
    p: int, kernels: Sequence[Array], model: MultipleKernelClusterer, validate: bool, seed: int
) -> float:
    """Return how far the clusters stay the same without one kernel, NaN where none are found."""
    others = [K for q, K in enumerate(kernels) if q != p]
    refitted = clone(model)
    refitted.set_params(kernels="precomputed", validate=validate, random_state=seed)
    if len(others) == 1 and "anchor" in refitted.get_params():
        refitted.set_params(anchor=0)  # one kernel has no weights, and so nothing to anchor
    try:
        refitted.fit(others)
    except ValueError:  # the other kernels may tell too few samples apart
        return float("nan")
    return adjusted_rand_index(model.labels_, refitted.labels_)


class Moments(NamedTuple):
    """What the shuffled products of a centered kernel depend on; entries belong to kernels."""

    trace: Float
    norm: Float  # squared
    squares: Float  # sum of the squared entries of the diagonal


def _centered_products(stack: DenseStack) -> tuple[Float, Float]:
    """Return ``<K_p, K_q>``, (m, m), and the diagonals, (m, n), of kernels exactly centered."""
    n = stack.n_samples
    # Scaling comes after centering and moves the center, so it takes both once more.
    sums = to_host(stack.apply(np.ones((n, 1))))[:, :, 0]
    totals = sums.sum(axis=1)
    gram = stack.gram() - 2 / n * sums @ sums.T + np.outer(totals, totals) / n**2
    diagonals = np.array([kernel.diagonal() for kernel in stack.kernels])
    return gram, diagonals - 2 / n * sums + totals[:, None] / n**2


def _lengths(gram: Float) -> Float:
    """Return the norms of the kernels, one for a kernel of which nothing is left."""
    norms = np.diag(gram)
    return np.sqrt(np.where(norms > 0, norms, 1))


def _redundancy(gram: Float) -> Float:
    """Return the alignment of every two kernels."""
    lengths = _lengths(gram)
    redundancy = np.clip(gram / lengths / lengths[:, None], -1, 1)
    np.fill_diagonal(redundancy, 1)
    return redundancy


def _chances(gram: Float, diagonals: Float, together: np.ndarray) -> Float:
    """Return how likely chance makes each kernel as much like the others as it is, (m,).

    Like one of the others, or like their average; what is judged together is taken together.
    """
    _, first, group = np.unique(together.argmax(axis=1), return_index=True, return_inverse=True)
    if len(first) == 1:
        return np.ones(len(gram))
    n, mix = diagonals.shape[1], together[first] / _lengths(gram)
    gram, diagonals = mix @ gram @ mix.T, mix @ diagonals
    own = Moments(diagonals.sum(axis=1), np.diag(gram), (diagonals**2).sum(axis=1))
    pairs = _chance(gram, Moments(*(moment[:, None] for moment in own)), own, n)
    np.fill_diagonal(pairs, 1)
    mix = (1 - np.eye(len(gram))) / _lengths(gram)
    average = Moments(
        mix @ own.trace,
        ((mix @ gram) * mix).sum(axis=1),
        ((mix @ diagonals) ** 2).sum(axis=1),
    )
    best = np.minimum(_chance((mix * gram).sum(axis=1), own, average, n), pairs.min(axis=1))
    return np.minimum(best * len(gram), 1)[group]


def _chance(product: Float, first: Moments, second: Moments, n: int) -> Float:
    """Return how likely ``<A, B>`` is as large, or larger, with the samples of A shuffled.

    Its mean and variance over all permutations are exact. A sum of squares, it is close to gamma
    distributed.
    """
    if n < 4:
        return np.ones_like(product)
    one, other = ((n - 1) * kernel.norm - kernel.trace**2 for kernel in (first, second))
    variance = 2 * one * other / ((n - 1) ** 2 * (n + 1) * (n - 2))
    tested = (one > IDENTITY * n * first.norm) & (other > IDENTITY * n * second.norm)
    one, other = (
        n * (n + 1) * kernel.squares - (n - 1) * (kernel.trace**2 + 2 * kernel.norm)
        for kernel in (first, second)
    )
    variance = variance + one * other / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))
    tested &= variance > 0
    variance = np.where(tested, variance, 1)
    mean = first.trace * second.trace / (n - 1)
    # Indefinite kernels may have no positive mean; they are left to the normal distribution.
    normal = ndtr((mean - product) / np.sqrt(variance))
    positive = np.where(mean > 0, mean, 1)
    gamma = gammaincc(positive**2 / variance, np.maximum(product, 0) * positive / variance)
    return np.where(tested, np.where(mean > 0, gamma, normal), 1)


def _judged_together(model: MultipleKernelClusterer, redundancy: Float) -> np.ndarray:
    """Return which kernels prove nothing by what they share, copies and those of one view, (m, m).

    The kernels of a single table are all that there is to compare: they count as of several views.
    """
    n_views = len(model.bank_.views_) if hasattr(model, "bank_") else 1
    if n_views == 1:
        return _connected(redundancy > SAME)
    # Views are copies where all their kernels are: narrow ones, close to the identity, always are.
    b = len(redundancy) // n_views
    paired = np.einsum("vbwb->vwb", redundancy.reshape(n_views, b, n_views, b))
    copies = _connected((paired > SAME).all(axis=2))
    return copies.repeat(b, axis=0).repeat(b, axis=1)


def _connected(edges: np.ndarray) -> np.ndarray:
    """Return which nodes are connected, be it by way of others."""
    for _ in edges:
        edges = edges @ edges
    return edges


def _has_clusters(kernel: Any, n_clusters: int) -> bool:
    """Return whether a kernel has clear clusters of its own, few more than the model at most."""
    most = min(n_clusters + MORE_CLUSTERS, kernel.shape[0] - 1)
    found = relax(kernel, most, tol=EIGEN_TOLERANCE)
    values, vectors = found.eigenvalues, to_host(found.vectors)
    for c in range(2, most + 1):
        above, below = values[c - 2 : c]
        # Below that is rounding: the kernel has a lower rank.
        real = above > EIGEN_TOLERANCE * max(values[0], 0)
        clear = real and above - below > CLEAR_GAP * above
        if clear and _share_between(vectors[:, : c - 1], c) < FEW_BETWEEN:
            return True
    return False


def _share_between(points: Float, n_clusters: int) -> float:
    """Return the share of samples in the middle between two clusters, one if a cluster is tiny."""
    means = KMeans(n_clusters, n_init=10, random_state=0).fit(points)
    labels, centers = means.labels_, means.cluster_centers_
    sizes = np.bincount(labels, minlength=n_clusters)
    # A few outliers are no cluster.
    if sizes.min() < max(3, len(points) / (10 * n_clusters)):
        return 1.0
    shares = np.zeros((n_clusters, n_clusters))
    for i in range(n_clusters):
        for j in range(i):
            axis = (centers[i] - centers[j]) / 2
            both = points[(labels == i) | (labels == j)]
            way = (both - (centers[i] + centers[j]) / 2) @ axis / (axis @ axis)
            # One more than were counted: in small clusters, none in the middle proves little.
            between = 1 + np.sum(np.abs(way) < 1 / 3)
            shares[i, j] = shares[j, i] = between / (2 + 2 * min(sizes[i], sizes[j]))
    return float(np.average(shares.max(axis=1), weights=sizes))


def _chosen(names: Sequence[str], mask: np.ndarray) -> tuple[str, ...]:
    """Return the names that a mask chooses."""
    return tuple(name for name, chosen in zip(names, mask, strict=True) if chosen)


def _listed(names: Sequence[str]) -> str:
    """Return "'a'", or "'a', 'b' and 'c'"."""
    quoted = [repr(name) for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def _number(value: float) -> str:
    """Return a value in two decimals, a dash for NaN."""
    return "-" if np.isnan(value) else f"{round(value, 2) + 0:.2f}"  # no minus before a zero


def _likelihood(value: float) -> str:
    """Return how likely something is, in two digits."""
    return f"{value:.2g}" if value >= BEYOND_CHANCE else f"<{BEYOND_CHANCE:g}"
