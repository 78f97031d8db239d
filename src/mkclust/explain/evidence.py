"""How strong the evidence is that there are clusters at all."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import binom

from mkclust.data import Samples
from mkclust.engine.eigen import relax
from mkclust.explain.null_draws import NullDraws, mix, open_stack
from mkclust.explain.sample_scores import own_and_nearest
from mkclust.graph.numbers import Tight, k_means_for_all
from mkclust.linalg.threads import one_thread_if_small
from mkclust.methods import AverageKKM
from mkclust.stack import DenseKernel
from mkclust.text import p_of_draws
from mkclust.types import Float
from mkclust.watch import tell

Verdict = Literal["none", "weak", "strong"]

# Positions on the line from a center, 0, to the next one, 1, with the border at 1/2: up
# to the first a sample is near its center, from the second on at the border.
CORE, BORDER = 0.25, 0.375


@dataclass(frozen=True, eq=False)
class EvidenceOfClusters:
    """How strong the evidence is that there are clusters at all.

    Attributes
    ----------
    verdict : {"none", "weak", "strong"}
        "none" if samples without clusters may be as clear; "weak" if they are not, but
        samples are hardly sparser between the clusters than within them; else "strong".
    p_cloud, p_shuffled, p_continuum : float
        p-values against one cloud without clusters, against views that share nothing
        (at least that of their agreement; NaN for one view), and against a continuum
        that is cut in parts.
    border_density, continuum_density : float
        How dense samples are at the borders between clusters, in units of that near the
        centers, and how dense they would be in a continuum, at least.
    level : float
        The limit of the p-values.
    n_tested : int
        How many samples the tests used.
    n_draws : int
        Draws without clusters; no p-value of these is smaller than one over one more
        than these.
    """

    verdict: Verdict
    p_cloud: float
    p_shuffled: float
    p_continuum: float
    border_density: float
    continuum_density: float
    level: float
    n_tested: int
    n_draws: int

    @property
    def p_value(self) -> float:
        """The larger of the p-values against samples without clusters."""
        return float(np.nanmax([self.p_cloud, self.p_shuffled]))

    def p_text(self, value: float, sign: str = "= ") -> str:
        """Return a p-value after a sign, as a bound if no draw was as clear."""
        return p_of_draws(value, 1 / (1 + self.n_draws), sign)

    def title(self) -> str:
        """Return how strong the evidence is, in a few words."""
        strength = "no" if self.verdict == "none" else self.verdict
        return f"{strength} evidence of clusters (p {self.p_text(self.p_value)})"

    def summary(self) -> str:
        """Return the reasons in sentences."""
        cloud, shuffled = (
            f"p {self.p_text(value)}" for value in (self.p_cloud, self.p_shuffled)
        )
        limit = f"the limit is {self.level:g}"
        if self.p_cloud > self.level:
            return (
                "No number of clusters is clearer than in one cloud of the same "
                f"covariance ({cloud}; {limit})."
            )
        if self.p_shuffled > self.level:
            return (
                f"Clusters are clearer than in one cloud ({cloud}), but not clearer "
                f"than in views that share nothing ({shuffled}; {limit}): there is no "
                "evidence that the views share them. Call the function for each view "
                "alone."
            )

        unrelated = ""
        if not np.isnan(self.p_shuffled):
            unrelated = f", and than in unrelated views ({shuffled})"
        hardly, meaning = "", ""
        if self.verdict == "weak":
            hardly = "hardly "
            meaning = ": they may overlap, or be parts of a continuum"
        return (
            "Clusters are clearer than in one cloud of the same covariance "
            f"({cloud}){unrelated}. Samples are {hardly}sparser between clusters than "
            f"within them{meaning}: at the borders {self.border_density:.2g} times as "
            f"dense as near the centers, in a continuum {self.continuum_density:.2g} "
            f"times or more (p = {self.p_continuum:.2g}; {limit})."
        )

    __repr__ = summary


class Clusterings(NamedTuple):
    """The clusters of one centered kernel for s numbers of them."""

    silhouettes: Float  # means of k clusters in k - 1 leading eigenvectors, (s,)
    labels: list[np.ndarray]
    vectors: Float  # the leading eigenvectors, (n_samples, b)
    eigenvalues: Float  # (b,)

    def coordinates(self, n_clusters: int) -> Float:
        """Return the samples by the kernel's own distances, (n, k - 1)."""
        leading = np.maximum(self.eigenvalues[: n_clusters - 1], 0)
        return self.vectors[:, : n_clusters - 1] * np.sqrt(leading)


def cluster_kernel(K: Float, k_values: list[int]) -> Clusterings:
    """Cluster samples by k - 1 leading eigenvectors of a centered kernel."""
    with one_thread_if_small(len(K)):
        # A relative error of 1e-4 of the sum of the leading eigenvalues is enough.
        found = relax(DenseKernel(K), max(k_values), tol=1e-4)
        values = found.eigenvalues
        V = found.vectors
        # Directions that the kernel does not have carry no information: eigenvalues
        # below this share of the largest are rounding.
        known = V * (values > 1e-10 * max(values[0], 0))
        # In units in which rounding is the same for any number of samples.
        points = [np.sqrt(len(K)) * known[:, : k - 1] for k in k_values]
        tight = k_means_for_all(points, k_values)
    silhouettes = np.array(list(map(silhouette, points, tight)))
    return Clusterings(silhouettes, [each.labels for each in tight], V, values)


def silhouette(points: Float, found: Tight) -> float:
    """Return the mean silhouette by centers, zero if a cluster is empty."""
    labels = found.labels
    sizes = np.bincount(labels, minlength=len(found.centers))
    if len(sizes) < 2 or sizes.min() == 0:
        return 0.0
    distances = cdist(points, found.centers)
    own, nearest = own_and_nearest(distances, labels)
    # Centers nearer than this share of the longest distance are the same.
    if nearest.min() <= 1e-6 * distances.max():
        return 0.0
    return float(np.where(sizes[labels] > 1, (nearest - own) / nearest, 0).mean())


def numbers_to_test(k_values: list[int]) -> list[int]:
    """Return the numbers that are tested, evenly spread by their ratios."""
    kept = k_values[:1]
    # Numbers near each other are as clear.
    for k in k_values:
        if k >= 1.3 * kept[-1]:
            kept.append(k)
    return kept


def find_evidence(
    model: AverageKKM,
    samples: Samples,
    shares: Float,
    k_values: list[int],
    n_clusters: int,
    *,
    p_agreement: float,
    n_draws: int,
    level: float,
    rng: np.random.Generator,
) -> EvidenceOfClusters:
    """Compare samples with ones without clusters, and clusters with a continuum.

    Kernels are mixed by their shares; no p-value against views that share nothing is
    below that of the agreement of views.
    """
    K = mix(open_stack(model, samples), shares)
    numbers = numbers_to_test(k_values)
    observed = cluster_kernel(K, numbers).silhouettes
    null = NullDraws(samples, model, shares)

    p_cloud = compare_with_draws(observed, lambda: null.cloud(rng), numbers, n_draws)
    p_shuffled = float("nan")
    if null.n_views > 1:
        p_shuffled = 1.0
        if p_cloud <= level:
            p_shuffled = max(
                p_agreement,
                compare_with_draws(
                    observed, lambda: null.shuffled(rng), numbers, n_draws
                ),
            )

    found = cluster_kernel(K, [n_clusters])
    borders = count_at_borders(found.coordinates(n_clusters), found.labels[0])
    verdict: Verdict = "strong" if borders.p_value <= level else "weak"
    if np.nanmax([p_cloud, p_shuffled]) > level:
        verdict = "none"
    return EvidenceOfClusters(
        verdict,
        p_cloud,
        p_shuffled,
        borders.p_value,
        borders.density,
        borders.sparse,
        float(level),
        samples.n_samples,
        n_draws,
    )


def compare_with_draws(
    observed: Float,
    draw_kernel: Callable[[], Float],
    k_values: list[int],
    n_draws: int,
) -> float:
    """Return the p-value of silhouettes among those of draws without clusters."""
    drawn: list[Float] = []
    # If a fifth of the first draws shows clearer clusters, the others are not worth the
    # time.
    for count in (min(19, n_draws), n_draws):
        while len(drawn) < count:
            tell(len(drawn), n_draws)
            drawn.append(cluster_kernel(draw_kernel(), k_values).silhouettes)
        p_value = rank_p_value(observed, np.array(drawn))
        if p_value > 0.2:
            break
    return p_value


def rank_p_value(criterion: Float, drawn: Float) -> float:
    """Return the share of the draws, and of the data, with the data's maximum."""
    # All are standardized together, so that the data are treated as any of the draws.
    everything = np.vstack([criterion, drawn])
    deviations = everything.std(axis=0)
    divisors = np.where(deviations > 0, deviations, 1)
    largest = ((everything - everything.mean(axis=0)) / divisors).max(axis=1)
    return float(np.mean(largest >= largest[0]))


class Borders(NamedTuple):
    """How many samples are between neighboring clusters and near their centers."""

    n_between: int  # samples at a border
    # Samples near the centers: at each border, twice those of the sparser side.
    n_within: int
    sparse: float  # a lower density than this is sparser than in a continuum

    @property
    def density(self) -> float:
        """How dense samples are at borders, in units of that near centers."""
        if self.n_within == 0:
            return float("inf") if self.n_between else float("nan")
        return self.n_between / self.n_within * CORE / (0.5 - BORDER)

    @property
    def p_value(self) -> float:
        """How likely a continuum is to have as few samples at borders."""
        odds = self.sparse * (0.5 - BORDER) / CORE
        total = self.n_between + self.n_within
        if total == 0:
            return 1.0
        return float(binom.cdf(self.n_between, total, odds / (1 + odds)))


def count_at_borders(points: Float, labels: np.ndarray) -> Borders:
    """Count points, (n, d), at the borders between clusters and near their centers.

    A sample has a position between its own center and that of the neighbor with the
    nearest border. At the edge of a cloud a border is denser than the sparser core,
    hence the sparser side counts.
    """
    labels = np.unique(labels, return_inverse=True)[1]
    k = int(labels.max()) + 1
    centers = np.array([points[labels == c].mean(axis=0) for c in range(k)])
    squares = cdist(points, centers, "sqeuclidean")
    apart = cdist(centers, centers, "sqeuclidean")
    apart[apart == 0] = np.inf  # of every center to itself
    gained = np.take_along_axis(squares, labels[:, None], axis=1) - squares
    positions = np.where(
        np.isinf(apart[labels]), -np.inf, 0.5 + gained / (2 * apart[labels])
    )
    neighbors = positions.argmax(axis=1)
    position = positions.max(axis=1)
    # Positions of samples at the very center are zero up to rounding.
    near = (position >= -1e-6) & (position < CORE)
    cores = np.zeros((k, k), dtype=np.int64)
    np.add.at(
        cores,
        (labels[near], neighbors[near]),
        1,
    )
    # Every pair of clusters counts twice.
    n_within = int(np.minimum(cores, cores.T).sum())
    # How dense a border of a continuum is at least, in units of the sparser of the two
    # cores: 0.36 was the least on curves and surfaces of a thousand samples cut into
    # two or three parts, 0.53 for more parts. From the third on, each dimension of the
    # parts adds as much again.
    least = 0.35 if k <= 3 else 0.5
    sparse = least * max(1.0, _dimensions(points - centers[labels], labels) - 1)
    return Borders(int((position >= BORDER).sum()), n_within, sparse)


def _dimensions(offsets: Float, labels: np.ndarray) -> float:
    """Return the mean number of directions of clusters, by their variances."""
    total = 0.0
    for size, c in zip(np.bincount(labels), np.unique(labels), strict=True):
        own = offsets[labels == c]
        scatter = own.T @ own
        squares = np.square(scatter).sum()
        total += size * (np.trace(scatter) ** 2 / squares if squares > 0 else 1.0)
    return float(total / len(labels))
