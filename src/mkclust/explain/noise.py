"""Which kernels look like noise: what they share with others, and what clusters they have."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import gammaincc, ndtr
from sklearn.cluster import KMeans

from mkclust.linalg import to_device, to_host
from mkclust.methods import MultipleKernelClusterer
from mkclust.stack import KernelStack
from mkclust.types import Float

# Two kernels with a redundancy above this are one kernel, given twice.
SAME = 0.99
# What two kernels share is beyond chance where chance alone would do as well this seldom.
BEYOND_CHANCE = 1e-4
# Off the identity by less than this share, a kernel is the identity: nothing can be shared.
IDENTITY = 1e-6
# A kernel has clusters of its own where its spectrum drops by this share after as many
# eigenvalues, and where few of its samples lie between them. The middle third of the way between
# two halves of a shapeless cloud holds a tenth to a fifth of it.
CLEAR_GAP = 0.25
FEW_BETWEEN = 0.08
# How many clusters more than the model has are looked for in a kernel that shares nothing.
MORE_CLUSTERS = 2
# Relative error of the eigenvalue sums; the gaps between single eigenvalues are read off.
EIGEN_TOLERANCE = 1e-10


class Moments(NamedTuple):
    """What the shuffled products of a centered kernel depend on; entries belong to kernels."""

    trace: Float
    norm: Float  # squared
    squares: Float  # sum of the squared entries of the diagonal


class Diagonals(Protocol):
    """The diagonals of m kernels, as far as the moments depend on them."""

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""

    def mixed(self, mix: Float) -> "Diagonals":
        """Return the diagonals of mixtures of the kernels, one a row of mix, (b, m)."""

    def totals(self) -> Float:
        """Return their sums, which are the traces, (m,)."""

    def squares(self) -> Float:
        """Return the sums of their squares, (m,)."""


@dataclass(frozen=True)
class WholeDiagonals:
    """Diagonals of which every entry is known, (m, n)."""

    entries: Float

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return self.entries.shape[1]

    def mixed(self, mix: Float) -> "WholeDiagonals":
        """Return the diagonals of mixtures of the kernels, one a row of mix, (b, m)."""
        return WholeDiagonals(mix @ self.entries)

    def totals(self) -> Float:
        """Return their sums, which are the traces, (m,)."""
        return self.entries.sum(axis=1)

    def squares(self) -> Float:
        """Return the sums of their squares, (m,)."""
        return (self.entries**2).sum(axis=1)


@dataclass(frozen=True)
class SummedDiagonals:
    """Diagonals known by sums over the samples: their own, (m,), and of their products, (m, m)."""

    sums: Float
    products: Float
    n_samples: int

    def mixed(self, mix: Float) -> "SummedDiagonals":
        """Return the diagonals of mixtures of the kernels, one a row of mix, (b, m)."""
        return SummedDiagonals(mix @ self.sums, mix @ self.products @ mix.T, self.n_samples)

    def totals(self) -> Float:
        """Return their sums, which are the traces, (m,)."""
        return self.sums

    def squares(self) -> Float:
        """Return the sums of their squares, (m,)."""
        return np.diag(self.products)


def centered_products(stack: KernelStack) -> tuple[Float, WholeDiagonals]:
    """Return ``<K_p, K_q>``, (m, m), and the diagonals of kernels exactly centered."""
    n = stack.n_samples
    # Scaling comes after centering and moves the center, so it takes both once more.
    sums = to_host(stack.apply(to_device(np.ones((n, 1)), stack.like)))[:, :, 0]
    totals = sums.sum(axis=1)
    gram = stack.gram() - 2 / n * sums @ sums.T + np.outer(totals, totals) / n**2
    kernels = map(stack.kernel, range(stack.n_kernels))
    diagonals = np.array([to_host(kernel.diagonal()) for kernel in kernels])
    return gram, WholeDiagonals(diagonals - 2 / n * sums + totals[:, None] / n**2)


def _lengths(gram: Float) -> Float:
    """Return the norms of the kernels, one for a kernel of which nothing is left."""
    norms = np.diag(gram)
    return np.sqrt(np.where(norms > 0, norms, 1))


def redundancies(gram: Float) -> Float:
    """Return the alignment of every two kernels."""
    lengths = _lengths(gram)
    redundancy = np.clip(gram / lengths / lengths[:, None], -1, 1)
    np.fill_diagonal(redundancy, 1)
    return redundancy


def chances(gram: Float, diagonals: Diagonals, together: np.ndarray) -> Float:
    """Return how likely chance makes each kernel as much like the others as it is, (m,).

    Like one of the others, or like their average; what is judged together is taken together.
    """
    _, first, group = np.unique(together.argmax(axis=1), return_index=True, return_inverse=True)
    if len(first) == 1:
        return np.ones(len(gram))
    n, mix = diagonals.n_samples, together[first] / _lengths(gram)
    gram, diagonals = mix @ gram @ mix.T, diagonals.mixed(mix)
    moments = Moments(diagonals.totals(), np.diag(gram), diagonals.squares())
    pairs = chance_of(gram, Moments(*(moment[:, None] for moment in moments)), moments, n)
    np.fill_diagonal(pairs, 1)
    mix = (1 - np.eye(len(gram))) / _lengths(gram)
    average = Moments(
        mix @ moments.trace,
        ((mix @ gram) * mix).sum(axis=1),
        diagonals.mixed(mix).squares(),
    )
    best = np.minimum(chance_of((mix * gram).sum(axis=1), moments, average, n), pairs.min(axis=1))
    return np.minimum(best * len(gram), 1)[group]


def chance_of(product: Float, first: Moments, second: Moments, n: int) -> Float:
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


def judged_together(model: MultipleKernelClusterer, redundancy: Float) -> np.ndarray:
    """Return which kernels prove nothing by what they share, copies and those of one view, (m, m).

    The kernels of a single table are all that there is to compare: they count as of several views.
    """
    n_views = len(model.bank_.views_) if hasattr(model, "bank_") else 1
    if n_views == 1:
        return connected(redundancy > SAME)
    # Views are copies where all their kernels are: narrow ones, close to the identity, always are.
    b = len(redundancy) // n_views
    paired = np.einsum("vbwb->vwb", redundancy.reshape(n_views, b, n_views, b))
    copies = connected((paired > SAME).all(axis=2))
    return copies.repeat(b, axis=0).repeat(b, axis=1)


def connected(edges: np.ndarray) -> np.ndarray:
    """Return which nodes are connected, be it by way of others."""
    for _ in edges:
        edges = edges @ edges
    return edges


def most_clusters(n_clusters: int, n_samples: int) -> int:
    """Return up to how many clusters of its own are looked for in a kernel."""
    return min(n_clusters + MORE_CLUSTERS, n_samples - 1)


def has_clusters(values: Float, vectors: Float) -> bool:
    """Return whether a centered kernel has clear clusters, as many as it has values at most.

    Parameters
    ----------
    values : ndarray of shape (c,)
        Leading eigenvalues of the kernel, falling.
    vectors : ndarray of shape (n_samples, b)
        Its leading eigenvectors, c - 1 or more of them where so many eigenvalues are not zero.
    """
    for c in range(2, len(values) + 1):
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
