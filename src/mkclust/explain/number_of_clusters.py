"""Which number of clusters fits best, and how strong the evidence of clusters is."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.base import clone

from mkclust.exceptions import silence
from mkclust.explain.null_draws import NullDraws, compare_with_draws, mix, open_stack
from mkclust.explain.parts import Parts
from mkclust.explain.spectral_path import centered, cluster_for_all_k, count_at_borders
from mkclust.explain.stability import draw, seeded
from mkclust.methods import AverageKKM
from mkclust.methods.agreement import Agreement
from mkclust.methods.agreement_kkm import find_compromise
from mkclust.metrics import agreement_of_labels
from mkclust.parameters import Count, Number, check_parameter
from mkclust.stack import Stack
from mkclust.text import join_words, p_of_draws
from mkclust.types import Float

# Share of the samples in a resample.
FRACTION = 0.8
# Tests use this number of samples, or this number for each cluster.
TESTED_SAMPLES, TESTED_PER_CLUSTER = 500, 20
# With fewer samples than this no test could tell.
FEWEST_SAMPLES = 20
# Without k_values: up to this number of clusters, with this number of samples each at
# least.
MOST_CLUSTERS, FEWEST_PER_CLUSTER = 25, 5
# Parameters of estimators that say how X is read, and which kernels are made of it.
OPTIONS = {"kernels", "center", "normalize", "psd", "views", "join", "impute"}
OPTIONS |= {"missing_views", "scale"}
# Quantiles of what draws without clusters show.
BAND = (0.025, 0.975)

# What the columns of the table are.
CRITERIA = (
    "Score: eigengap and excess of the silhouette over samples without clusters, each "
    "as a share of its maximum, added. Eigengap: relative drop of the spectrum after "
    "the directions of k clusters. Silhouette: how much nearer samples are to their "
    "own cluster than to the next. Stability: agreement of the clusters with those of "
    "resamples (1: the same). Support: share of the resamples with the highest score "
    "at k."
)

Evidence = Literal["none", "weak", "strong"]


@dataclass(frozen=True, eq=False)
class NumberOfClusters:
    """Which number of clusters fits best, and how strong the evidence of clusters is; ``print`` it.

    Attributes
    ----------
    n_clusters : int
        The number that fits best, with the highest score.
    evidence : {"none", "weak", "strong"}
        "none" if samples without clusters may be as clear; "weak" if they are not, but
        samples are hardly sparser between the clusters than within them; else "strong".
    k_values : ndarray of int of shape (s,)
        The numbers that were tried, rising; the following arrays are in that order.
    eigengaps : ndarray of shape (s,)
        Relative gap between eigenvalues k - 1 and k of the mixed kernel, centered.
    silhouettes, expected_silhouettes : ndarray of shape (s,)
        Mean silhouette of the k clusters in the k - 1 leading eigenvectors, by
        distances to the centers; and its mean for one cloud without clusters, of the
        same covariance.
    stabilities : ndarray of shape (s,)
        Mean adjusted Rand index of the clusters of a resample with those of all
        samples; NaN for more clusters than a resample has samples.
    support : ndarray of shape (s,)
        Share of the resamples in which each number has the highest score.
    null_silhouettes, null_eigengaps : ndarray of shape (2, s)
        The range that contains 95 % of the draws without clusters.
    p_cloud, p_shuffled, p_continuum : float
        p-values against one cloud without clusters, against views that share nothing
        (at least that of their agreement; NaN for one view), and against a continuum
        that is cut in parts.
    border_density, continuum_density : float
        How dense samples are at the borders between clusters, in units of that near the
        centers, and how dense they would be in a continuum, at least.
    level : float
        The limit of the p-values.
    n_samples, n_used, n_tested : int
        How many samples there are, and how many of them the criteria and the tests
        used.
    n_draws : int
        Draws without clusters; no p-value of these is smaller than one over one more
        than these.
    """

    n_clusters: int
    evidence: Evidence
    k_values: np.ndarray
    eigengaps: Float
    silhouettes: Float
    expected_silhouettes: Float
    stabilities: Float
    support: Float
    null_silhouettes: Float
    null_eigengaps: Float
    p_cloud: float
    p_shuffled: float
    p_continuum: float
    border_density: float
    continuum_density: float
    level: float
    n_samples: int
    n_used: int
    n_tested: int
    n_draws: int

    @property
    def p_value(self) -> float:
        """The larger of the p-values against samples without clusters."""
        return float(np.nanmax([self.p_cloud, self.p_shuffled]))

    @property
    def scores(self) -> Float:
        """The scores that decide, (s,): see `scores_of`."""
        return scores_of(self.eigengaps, self.silhouettes - self.expected_silhouettes)

    @property
    def candidates(self) -> tuple[int, ...]:
        """The best number and the two next ones by their score."""
        others = [
            int(k) for k in self.k_values[np.argsort(-self.scores, kind="stable")]
        ]
        others.remove(self.n_clusters)
        return (self.n_clusters, *others[:2])

    @property
    def table(self) -> pd.DataFrame:
        """All criteria, one row for each number of clusters."""
        columns = {
            "score": self.scores,
            "eigengap": self.eigengaps,
            "silhouette": self.silhouettes,
            "without clusters": self.expected_silhouettes,
            "stability": self.stabilities,
            "support": self.support,
        }
        return pd.DataFrame(columns, index=pd.Index(self.k_values, name="k"))

    def verdict(self) -> str:
        """Return both answers and the reasons, without the table."""
        return " ".join([f"{self._title()}.", *self._reasons()])

    def summary(self) -> str:
        """Return the table of all numbers of clusters, and both answers in sentences."""
        rows = self.table.to_string(float_format="{:.2f}".format, na_rep="-")
        return "\n".join([self._title(), "", rows, "", *self._reasons(), CRITERIA])

    __repr__ = summary

    def p_text(self, value: float, sign: str = "= ") -> str:
        """Return a p-value of draws after a sign, as a bound if no draw was as clear."""
        return p_of_draws(value, 1 / (1 + self.n_draws), sign)

    def _title(self) -> str:
        evidence = "no" if self.evidence == "none" else self.evidence
        found = f"{evidence} evidence of clusters (p {self.p_text(self.p_value)})"
        return f"{self.n_clusters} clusters fit best; {found}"

    def _reasons(self) -> list[str]:
        best = self.table.loc[self.n_clusters]
        stable = (
            "unknown" if np.isnan(best["stability"]) else f"{best['stability']:.2f}"
        )
        others = [str(k) for k in self.candidates[1:]]
        next_best = f"; next best: {join_words(others)}" if others else ""
        sentences = [
            f"For {self.n_clusters} clusters: stability {stable}, silhouette "
            f"{best['silhouette']:.2f} ({best['without clusters']:.2f} without "
            f"clusters), eigengap {best['eigengap']:.2f}; {best['support']:.0%} of the "
            f"resamples say the same{next_best}.",
            self._say_evidence(),
        ]
        end = "smallest" if self.n_clusters == self.k_values[0] > 2 else ""
        if end := "largest" if self.n_clusters == self.k_values[-1] else end:
            sentences.append(
                f"{self.n_clusters} is the {end} number that was tried: pass k_values "
                "beyond it."
            )
        if self.n_used < self.n_samples:
            sentences.append(
                f"Computed on {self.n_used} of {self.n_samples} samples, the tests on "
                f"{self.n_tested}."
            )
        return sentences

    def _say_evidence(self) -> str:
        cloud = f"p {self.p_text(self.p_cloud)}"
        shuffled = f"p {self.p_text(self.p_shuffled)}"
        level = f"the limit is {self.level:g}"
        if self.p_cloud > self.level:
            return (
                "No number of clusters is clearer than in one cloud of the same "
                f"covariance ({cloud}; {level})."
            )
        if self.p_shuffled > self.level:
            return (
                f"Clusters are clearer than in one cloud ({cloud}), but not clearer "
                f"than in views that share nothing ({shuffled}; {level}): there is no "
                "evidence that the views share them. Call the function for each view "
                "alone."
            )
        also = (
            ""
            if np.isnan(self.p_shuffled)
            else f", and than in unrelated views ({shuffled})"
        )
        hardly = meaning = ""
        if self.evidence != "strong":
            hardly, meaning = (
                "hardly ",
                ": they may overlap, or be parts of a continuum",
            )
        return (
            "Clusters are clearer than in one cloud of the same covariance "
            f"({cloud}){also}. Samples are {hardly}sparser between clusters than "
            f"within them{meaning}: at the borders {self.border_density:.2g} times as "
            f"dense as near the centers, in a continuum {self.continuum_density:.2g} "
            f"times or more (p = {self.p_continuum:.2g}; {level})."
        )


def scores_of(eigengaps: Float, excess: Float) -> Float:
    """Return the sum of two criteria over s numbers of clusters, each as a share of its maximum."""
    parts = [np.maximum(values, 0) for values in (eigengaps, excess)]
    return np.sum([part / (part.max() or 1.0) for part in parts], axis=0)


def suggest_n_clusters(
    X: Any,
    k_values: Iterable[int] | None = None,
    *,
    coefficients: Any = None,
    n_resamples: int = 20,
    n_draws: int = 49,
    max_samples: int = 2000,
    level: float = 0.02,
    random_state: Any = 0,
    **options: Any,
) -> NumberOfClusters:
    r"""Say which number of clusters fits best, and how strong the evidence of clusters is.

    Both are found in the mixed kernel of the recommended method, centered and scaled as
    in ``fit``; views that the method does not use play no part.

    **Which number fits best.** The number with the highest sum of two criteria, each as
    a share of its maximum. *Stability* under resampling is shown, but favors few
    clusters.

    - *Eigengap*: the relative gap of eigenvalues k - 1 and k, for k clusters span k - 1
      directions.
    - *Excess of the silhouette*, of k-means on the k - 1 leading eigenvectors: how much
      nearer samples are to their own center than to the next one, minus its mean
      without clusters.

    **How strong the evidence is.** The test statistic is the largest standardized
    silhouette over all numbers, :math:`\max_k (s_k - \bar s_k) / \sigma_k`, with mean
    and deviation over the data and all draws together. There is no evidence if it is
    not larger than for (almost) all draws of

    - *one cloud*: the samples rotated at random around their mean, with exactly their
      covariance.
    - *shuffled views*, if there are several: the samples of each view shuffled
      independently.

    The evidence is strong if samples are also sparser at the borders between clusters
    than in a continuum: significantly less than half as dense as near the centers for
    four clusters or more, 0.35 times as dense for two or three, and that times d - 1 if
    clusters extend in d > 2 directions. Else it is weak, as for a continuum cut into
    parts, or clusters that overlap.

    Parameters
    ----------
    X : array of shape (m, n, n), list or dict of kernels or views, or table of shape (n, d)
        All that ``fit`` takes.
    k_values : iterable of int, default=None
        Numbers of clusters to try, from 2 to n - 1; None tries 2 to 25, at most n / 5.
    coefficients : array-like of shape (n_kernels,), default=None
        Coefficients of the kernels in the mix, such as a model's ``coefficients_``;
        None takes those of the recommended method.
    n_resamples : int, default=20
        Number of resamples, of four fifths of the samples each.
    n_draws : int, default=49
        Number of draws without clusters, fewer if the first show that there is no
        evidence. The least possible p-value is 1 / (n_draws + 1).
    max_samples : int, default=2000
        Number of samples to use at most, drawn at random. Tests use 500, or 20 for each
        cluster.
    level : float, default=0.02
        Limit of the p-values.
    random_state : int, RandomState instance or None, default=0
        Seed of samples, resamples and draws.
    **options
        ``kernels``, ``center``, ``normalize``, ``psd``, ``views``, ``join``,
        ``impute``, ``missing_views`` and ``scale``, as in every estimator, but
        ``missing_views="learn"`` is taken for ``"rescale"``, because learned values
        depend on the number of clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import suggest_n_clusters
    >>> rng = np.random.default_rng(0)
    >>> places = rng.normal(size=(4, 6))[np.arange(120) % 4]
    >>> views = [3 * places + rng.normal(size=(120, 6)), 3 * places + rng.normal(size=(120, 6))]
    >>> found = suggest_n_clusters(views, [2, 3, 4, 5, 6])
    >>> found.n_clusters, found.evidence
    (4, 'strong')
    >>> noise = [rng.normal(size=(120, 6)), rng.normal(size=(120, 6))]
    >>> suggest_n_clusters(noise, [2, 3, 4]).evidence
    'none'
    """
    check_parameter("n_resamples", n_resamples, Count())
    check_parameter("max_samples", max_samples, Count())
    _check_draws(n_draws, level)
    model, source = _open(X, options)
    n_used = min(source.n_samples, max_samples)
    numbers = _check_k_values(k_values, n_used)
    n_tested = min(n_used, max(TESTED_SAMPLES, TESTED_PER_CLUSTER * numbers[-1]))
    rng = seeded(random_state)
    used = draw(rng, source.n_samples, n_used)
    with silence():
        part = source.take(used)
        stack = open_stack(model, part)
        shares, agreement = _shares(stack, coefficients)
        K = mix(stack, shares)
        path = tested = cluster_for_all_k(K, numbers)
        if n_tested < n_used:
            part = source.take(used[draw(rng, n_used, n_tested)])
            tested = cluster_for_all_k(mix(open_stack(model, part), shares), numbers)
        null = NullDraws(part, model, shares)
        draws, p_cloud = compare_with_draws(
            tested, partial(null.cloud, rng), numbers, n_draws
        )
        silhouettes, p_shuffled = (
            np.array([each.silhouettes for each in draws]),
            float("nan"),
        )
        if null.n_views > 1:
            drawn = partial(null.shuffled, rng)
            draws, p_shuffled = compare_with_draws(tested, drawn, numbers, n_draws)
            if agreement.n_independent_views > 1:
                p_shuffled = max(p_shuffled, float(agreement.p_values.min()))
        expected = silhouettes.mean(axis=0)
        stabilities, support = _resample(
            K, path.labels, numbers, expected, n_resamples, rng
        )
    best = int(np.argmax(scores_of(path.eigengaps, path.silhouettes - expected)))
    borders = count_at_borders(path.coordinates(numbers[best]), path.labels[best])
    evidence: Evidence = "strong" if borders.p_value <= level else "weak"
    if np.nanmax([p_cloud, p_shuffled]) > level:
        evidence = "none"
    return NumberOfClusters(
        n_clusters=numbers[best],
        evidence=evidence,
        k_values=np.array(numbers),
        eigengaps=path.eigengaps,
        silhouettes=path.silhouettes,
        expected_silhouettes=expected,
        stabilities=stabilities,
        support=support,
        null_silhouettes=np.quantile(silhouettes, BAND, axis=0),
        null_eigengaps=np.quantile([each.eigengaps for each in draws], BAND, axis=0),
        p_cloud=p_cloud,
        p_shuffled=p_shuffled,
        p_continuum=borders.p_value,
        border_density=borders.density,
        continuum_density=borders.sparse,
        level=float(level),
        n_samples=source.n_samples,
        n_used=n_used,
        n_tested=n_tested,
        n_draws=n_draws,
    )


def _open(X: Any, options: dict[str, Any]) -> tuple[AverageKKM, Parts]:
    """Return a model whose kernels are mixed, and its input, of which samples can be taken."""
    if unknown := sorted(set(options) - OPTIONS):
        raise TypeError(f"suggest_n_clusters has no parameter {unknown[0]!r}")
    model = AverageKKM(**options)
    model.check_parameters()
    source = Parts(model, X)
    # Learned values would depend on the number of clusters.
    fill = "zero" if model.missing_views == "zero" else "rescale"
    kernels = source.kernels
    if kernels != "precomputed":
        kernels = clone(kernels).set_params(on_the_fly=False)
    return model.set_params(kernels=kernels, scale="auto", missing_views=fill), source


def _check_k_values(k_values: Any, n_used: int) -> list[int]:
    if n_used < FEWEST_SAMPLES:
        raise ValueError(
            f"{n_used} samples are used, at most max_samples: {FEWEST_SAMPLES} are "
            "needed to tell clusters from chance"
        )
    if k_values is None:
        return list(range(2, min(MOST_CLUSTERS, n_used // FEWEST_PER_CLUSTER) + 1))
    numbers = list(k_values) if np.iterable(k_values) else []
    if not numbers or not all(Count(least=2).holds(k) and k < n_used for k in numbers):
        raise ValueError(
            f"k_values={k_values!r}: pass integers from 2 to {n_used - 1}, less than "
            "the samples used, at most max_samples"
        )
    return sorted({int(k) for k in numbers})


def _check_draws(n_draws: Any, level: Any) -> None:
    check_parameter("level", level, Number(0, 1, open_low=True, open_high=True))
    check_parameter("n_draws", n_draws, Count())
    least = int(np.ceil(1 / level - 1e-9)) - 1
    if n_draws < least:
        raise ValueError(
            f"n_draws={n_draws} cannot show a p-value below {1 / (n_draws + 1):.2g}, "
            f"and the level is {level:g}: pass n_draws={least} at least"
        )


def _shares(stack: Stack, coefficients: Any) -> tuple[Float, Agreement]:
    """Return coefficients that sum to one, by default of the recommended method; and agreement."""
    found = find_compromise(stack)
    if coefficients is None:
        given = found.scatter(found.coefficients)
    else:
        given = np.asarray(coefficients, dtype=np.float64)
        is_wrong = given.shape != (stack.n_kernels,) or not np.isfinite(given).all()
        if is_wrong or given.min() < 0 or given.sum() <= 0:
            raise ValueError(
                f"coefficients={coefficients!r}: pass a number for each of the "
                f"{stack.n_kernels} kernels, not negative and not all zero"
            )
    return given / given.sum(), found.agreement


def _resample(
    K: Float,
    labels: np.ndarray,
    k_values: list[int],
    expected: Float,
    n_resamples: int,
    rng: Any,
) -> tuple[Float, Float]:
    """Return how far clusters of resamples agree, and how many of these name each k, two (s,)."""
    n, size = len(K), round(FRACTION * len(K))
    numbers = [k for k in k_values if k < size]
    agreements = np.full((n_resamples, len(k_values)), np.nan)
    named = np.zeros(len(k_values))
    for index in range(n_resamples if numbers else 0):
        part = draw(rng, n, size)
        found = cluster_for_all_k(centered(K[np.ix_(part, part)]), numbers)
        for position, each in enumerate(found.labels):
            agreements[index, position] = agreement_of_labels(
                labels[position, part], each
            )
        scores = scores_of(
            found.eigengaps, found.silhouettes - expected[: len(numbers)]
        )
        named[np.argmax(scores)] += 1
    return agreements.mean(axis=0), named / n_resamples
