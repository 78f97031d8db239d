"""Suggest how many clusters there are, if any."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np

from mkclust.data.options import TableOptions
from mkclust.explain.choosing.borders import count_at_borders
from mkclust.explain.choosing.clusterings import Clusterings, cluster_for_all_k
from mkclust.explain.choosing.mix import MixSettings, NullSamples, centered
from mkclust.explain.choosing.result import Kind, NumberOfClusters, Strength
from mkclust.explain.parts import Parts
from mkclust.explain.stability import (
    check_resamples,
    count_pairs,
    draw,
    part_size,
    seeded,
)
from mkclust.metrics import adjusted_rand_of_table
from mkclust.parameters import Count, Number, check_parameter
from mkclust.stack.observed import FillRule
from mkclust.types import Float

# Share of the samples in a resample.
FRACTION = 0.8
# Draws without clusters: the first of them tell whether the others are worth while, which they are
# not where this share of them shows clearer clusters.
FIRST_DRAWS, HOPELESS = 19, 0.2
# Tests look at so many samples, or at so many for each cluster.
TESTED_SAMPLES, TESTED_IN_CLUSTER = 500, 20
# P-values are shares of draws, and one may be the level but for rounding.
ROUNDING = 1e-9
# With fewer samples than this no test could tell.
FEWEST_SAMPLES = 20
# Without k_values: up to this number of clusters, of so many samples each at least.
MOST_CLUSTERS, FEWEST_IN_CLUSTER = 12, 5
# An example, for messages.
SUCH_AS = "pass numbers of clusters to try, such as [2, 3, 4]"
# Ends of what draws without clusters mostly show.
BAND = (0.025, 0.975)


def suggest_n_clusters(
    X: Any,
    k_values: Iterable[int] | None = None,
    *,
    kernels: Any = "auto",
    center: bool = True,
    normalize: bool = True,
    psd: Literal["error", "clip", "shift"] = "error",
    views: Any = None,
    join: Literal["exact", "inner", "outer"] = "exact",
    impute: Literal["median"] | None = None,
    missing_views: Literal["learn", "zero", "rescale"] | None = None,
    coefficients: Any = None,
    n_resamples: int = 20,
    n_draws: int = 49,
    max_samples: int = 2000,
    level: float = 0.02,
    random_state: Any = 0,
) -> NumberOfClusters:
    r"""Suggest how many clusters there are, by three criteria; one stands for no evidence of any.

    Clusters are looked for in the average of the kernels, centered and scaled as in ``fit``. It
    does not depend on the number of clusters, as learned weights do, and noise views disturb it
    less; so one eigendecomposition serves all numbers.

    - *Eigengap.* k clusters of a centered kernel span k - 1 directions: the relative gap between
      eigenvalues k - 1 and k.
    - *Silhouette.* How much nearer samples are to the center of their own cluster than to the
      next one, relatively, for k-means on the k - 1 leading eigenvectors. To be compared between
      numbers of clusters it has to be compared with what it would be without clusters first: the
      suggestion is the number with the largest *excess* over one cloud.
    - *Stability.* The adjusted Rand index between the clusters of all samples and those of a
      resample, a part of them, on average.

    **Whether there are clusters at all.** The test statistic is the largest standardized
    silhouette over all numbers, :math:`\max_k (s_k - \bar s_k) / \sigma_k`, with mean and deviation
    over the data and all draws together. It has to be larger than for (almost) all draws of

    - *one cloud*: random samples of exactly the covariance that the samples have, within views and
      between them.
    - *shuffled views*, where there are several: each view keeps what it has, but its samples are
      shuffled for themselves, so that views share nothing.

    With 49 draws the least possible p-value is 1/50, which is the level: the statistic has to
    exceed those of all draws.

    **Whether they are separate.** A curve or a surface that views share is no cloud, and can be cut
    into parts as well. So samples have to be sparser at the borders between clusters than in a
    continuum: significantly less than half as dense as near the centers for four clusters or more,
    0.35 times as dense for two or three, and that times d - 1 where clusters extend in d > 2
    directions. Else the answer is a continuum.

    If any of these fails, the suggestion is 1.

    **Whether their number is clear.** The suggestion is the number with the largest excess. Where
    less than six of ten resamples name it, or another number is nearly tied with it, the reading
    begins with "Unclear", and ``candidates`` has the numbers that come into question, the best
    first.

    Parameters
    ----------
    X : array of shape (m, n, n), list or dict of kernels or views, or table of shape (n, d)
        All that ``fit`` takes.
    k_values : iterable of int, default=None
        Numbers of clusters to try, from 2 to n - 1; None tries 2 to 12, and less for fewer than
        sixty samples.
    kernels, center, normalize, psd, views, join, impute, missing_views
        As in every estimator; ``missing_views="learn"``, and None, are taken for ``"rescale"``, for
        what is learned depends on the number of clusters. Draws lack the samples that the views
        lack.
    coefficients : array-like of shape (n_kernels,), default=None
        Coefficients of the kernels in the mix, such as a model's ``coefficients_``; None takes the
        average.
    n_resamples : int, default=20
        Number of resamples, of four fifths of the samples each.
    n_draws : int, default=49
        Number of draws without clusters; fewer are drawn where the first show that there is no
        evidence.
    max_samples : int, default=2000
        Number of samples to use, drawn at random from more. The tests look at 500 of them, or 20
        for each cluster.
    level : float, default=0.02
        How likely chance may be to look as clear.
    random_state : int, RandomState instance or None, default=0
        Seed of samples, resamples and draws.

    Returns
    -------
    NumberOfClusters

    Notes
    -----
    Clusters that overlap, with no valley between them, are not told from a continuum, and clusters
    that only one of several views has are no evidence here; the reading says so where it looks like
    that.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.explain.choosing import suggest_n_clusters
    >>> rng = np.random.default_rng(0)
    >>> places = rng.normal(size=(4, 6))[np.arange(120) % 4]
    >>> views = [3 * places + rng.normal(size=(120, 6)), 3 * places + rng.normal(size=(120, 6))]
    >>> found = suggest_n_clusters(views, [2, 3, 4, 5, 6])
    >>> found.n_clusters, found.strength.word
    (4, 'strong')
    >>> noise = [rng.normal(size=(120, 6)), rng.normal(size=(120, 6))]
    >>> print(suggest_n_clusters(noise, [2, 3, 4]))  # doctest: +ELLIPSIS
    No evidence of clusters
    ...
    """
    check_resamples(n_resamples, FRACTION, max_samples)
    _check_draws(n_draws, level)
    options = TableOptions(views, join, impute, missing_views)
    source = Parts(X, kernels, options)
    n_used = min(source.n_samples, max_samples)
    numbers = _check_k_values(k_values, source.n_samples, n_used)
    n_tested = min(n_used, max(TESTED_SAMPLES, TESTED_IN_CLUSTER * numbers[-1]))
    mix = _check_coefficients(coefficients)
    # What is learned depends on the number of clusters.
    fill: FillRule = "zero" if missing_views == "zero" else "rescale"
    settings = MixSettings(source.kernels, center, normalize, psd, mix, fill)
    rng = seeded(random_state)
    used = draw(rng, source.n_samples, n_used)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        part = source.take(used)
        K = settings.mix(part)
        clusterings = tested_clusterings = cluster_for_all_k(K, numbers)
        if n_tested < n_used:
            part = source.take(used[draw(rng, n_used, n_tested)])
            tested_clusterings = cluster_for_all_k(settings.mix(part), numbers)
        evidence = _test(part, settings, tested_clusterings, numbers, n_draws, level, rng)
        expected = evidence.expected_silhouettes
        stabilities, best_of_resamples = _resample(
            K, clusterings, numbers, expected, n_resamples, rng
        )
    best = int(np.argmax(clusterings.silhouettes - expected))
    borders = count_at_borders(clusterings.coordinates(numbers[best]), clusterings.labels[best])
    kind = _kind(evidence.p_cloud, evidence.p_shuffled, borders.p_value, level + ROUNDING)
    separate = kind == "clusters"
    support = np.mean(best_of_resamples[:, None] == np.arange(len(numbers)), axis=0)
    share = float(support[best])
    return NumberOfClusters(
        n_clusters=numbers[best] if separate else 1,
        strength=Strength.of(share) if separate else Strength("none", 0.0),
        kind=kind,
        k_values=np.array(numbers),
        eigengaps=clusterings.eigengaps,
        silhouettes=clusterings.silhouettes,
        support=support,
        stabilities=stabilities,
        p_continuum=borders.p_value,
        border_density=borders.density,
        continuum_density=borders.sparse,
        level=float(level),
        n_samples=source.n_samples,
        n_used=n_used,
        n_tested=n_tested,
        **evidence._asdict(),
    )


def _check_k_values(k_values: Any, n_samples: int, n_used: int) -> list[int]:
    """Return the numbers of clusters to try, rising, or say which cannot be; None chooses."""
    if n_used < FEWEST_SAMPLES:
        what = f"{n_samples} samples" if n_used == n_samples else f"max_samples={n_used}"
        raise ValueError(
            f"{what}: too few to tell clusters from chance, which needs at least {FEWEST_SAMPLES}"
        )
    if k_values is None:
        return list(range(2, min(MOST_CLUSTERS, n_used // FEWEST_IN_CLUSTER) + 1))
    if isinstance(k_values, str) or not isinstance(k_values, Iterable):
        raise ValueError(f"k_values={k_values!r}: {SUCH_AS}")
    values = list(k_values)
    if not values:
        raise ValueError(f"k_values is empty: {SUCH_AS}")
    for k in values:
        if not isinstance(k, Integral) or isinstance(k, bool):
            raise ValueError(f"k_values holds {k!r}, which is not an integer: {SUCH_AS}")
    numbers = sorted({int(k) for k in values})
    if numbers[0] < 2:
        raise ValueError(
            f"k_values holds {numbers[0]}: pass numbers of at least 2; all of them are "
            "compared with the case of one cluster, or none"
        )
    if numbers[-1] > n_used - 1:
        advice = "" if n_used == n_samples else ", or raise max_samples"
        raise ValueError(
            f"k_values holds {numbers[-1]}, with {n_used} samples to look at: pass numbers up to "
            f"{n_used - 1}{advice}"
        )
    return numbers


def _check_draws(n_draws: Any, level: Any) -> None:
    """Refuse a level that so many draws cannot reach."""
    check_parameter("level", level, Number(0, 1, open_low=True, open_high=True))
    check_parameter("n_draws", n_draws, Count())
    least = int(np.ceil(1 / level - 1e-9)) - 1
    if n_draws < least:
        raise ValueError(
            f"n_draws={n_draws} cannot show a p-value below {1 / (n_draws + 1):.2g}, and the "
            f"level is {level:g}: pass n_draws={least} at least"
        )


def _check_coefficients(coefficients: Any) -> Float | None:
    """Return coefficients as an array, or say why they are none."""
    if coefficients is None:
        return None
    array = np.asarray(coefficients, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all() or array.min() < 0 or array.sum() <= 0:
        raise ValueError(
            f"coefficients={coefficients!r}: pass one number a kernel, not negative and not all "
            "zero"
        )
    return array


class _Evidence(NamedTuple):
    """What draws without clusters show, as `NumberOfClusters` has it."""

    expected_silhouettes: Float
    null_silhouettes: Float
    null_eigengaps: Float
    p_cloud: float
    p_shuffled: float


def _test(
    part: Any,
    settings: MixSettings,
    clusterings: Clusterings,
    k_values: Sequence[int],
    n_draws: int,
    level: float,
    rng: np.random.Generator,
) -> _Evidence:
    """Compare the clusterings of some samples with those of draws without clusters."""
    cloud = NullSamples(part, settings)
    draws, p_cloud = _compare(clusterings, lambda: cloud.draw(rng), k_values, n_draws)
    silhouettes = _silhouettes(draws)
    p_shuffled = float("nan")
    if len(part.names) > 1:
        mixes = settings.mixes(part)
        # Without a chance to matter, the first draws are enough to show what shuffling does.
        count = n_draws if p_cloud <= level + ROUNDING else min(FIRST_DRAWS, n_draws)
        draws, p_shuffled = _compare(clusterings, lambda: mixes.shuffled(rng), k_values, count)
    return _Evidence(
        expected_silhouettes=silhouettes.mean(axis=0),
        null_silhouettes=np.quantile(silhouettes, BAND, axis=0),
        null_eigengaps=np.quantile([one.eigengaps for one in draws], BAND, axis=0),
        p_cloud=p_cloud,
        p_shuffled=p_shuffled,
    )


def _kind(p_cloud: float, p_shuffled: float, p_continuum: float, level: float) -> Kind:
    """Return what kind of answer p-values give."""
    # Of one view nothing can be shuffled, and its p-value is not a number.
    if p_cloud > level or p_shuffled > level:
        return "no evidence"
    return "clusters" if p_continuum <= level else "continuum"


def _compare(
    clusterings: Clusterings,
    draw_kernel: Callable[[], Float],
    k_values: Sequence[int],
    n_draws: int,
) -> tuple[list[Clusterings], float]:
    """Return draws without clusters, and how likely they are to look as clear as the data."""
    draws: list[Clusterings] = []
    for count in (min(FIRST_DRAWS, n_draws), n_draws):
        for _ in range(len(draws), count):
            draws.append(cluster_for_all_k(draw_kernel(), k_values))
        p_value = chance(clusterings.silhouettes, _silhouettes(draws))
        if p_value > HOPELESS:
            break
    return draws, p_value


def chance(criterion: Float, drawn: Float) -> float:
    """Return how likely draws are to stand out somewhere as far as the data do.

    All are standardized together, so that the data are treated as any of the draws.

    Parameters
    ----------
    criterion : ndarray of shape (s,)
        A criterion of the data.
    drawn : ndarray of shape (n_draws, s)
        The same of draws without clusters.

    Returns
    -------
    float
        Between 1 / (n_draws + 1) and 1.
    """
    everything = np.vstack([criterion, drawn])
    deviations = everything.std(axis=0)
    standardized = (everything - everything.mean(axis=0)) / np.where(deviations > 0, deviations, 1)
    largest = standardized.max(axis=1)
    return float(np.mean(largest >= largest[0]))


def _resample(
    K: Float,
    clusterings: Clusterings,
    k_values: Sequence[int],
    expected: Float,
    n_resamples: int,
    rng: np.random.Generator,
) -> tuple[Float, np.ndarray]:
    """Return how far clusters of resamples agree, (s,), and the place of each resample's best k."""
    n = len(K)
    size = part_size(n, FRACTION, n)
    numbers = [k for k in k_values if k < size]
    agreements = np.full((n_resamples, len(k_values)), np.nan)
    best = np.full(n_resamples, -1)
    for index in range(n_resamples if numbers else 0):
        part = draw(rng, n, size)
        K_part, start = centered(K[np.ix_(part, part)]), clusterings.vectors[part]
        resampled = cluster_for_all_k(K_part, numbers, start)
        for place, (k, labels) in enumerate(zip(numbers, resampled.labels, strict=True)):
            table = count_pairs(clusterings.labels[place][part], labels, k)
            agreements[index, place] = adjusted_rand_of_table(table)
        best[index] = np.argmax(resampled.silhouettes - expected[: len(numbers)])
    return agreements.mean(axis=0), best


def _silhouettes(draws: Sequence[Clusterings]) -> Float:
    """Return the silhouettes of draws, (n_draws, s)."""
    return np.array([clusterings.silhouettes for clusterings in draws])
