"""Which number of clusters fits best, and which others may."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mkclust.agreements import Agreement
from mkclust.data import Samples
from mkclust.exceptions import silence
from mkclust.explain.evidence import EvidenceOfClusters, Verdict, find_evidence
from mkclust.explain.parts import Parts
from mkclust.explain.stability import draw, seeded
from mkclust.fit import MultipleKernelClusterer
from mkclust.fit.neighborhoods import find_memberships
from mkclust.fit.steps import MOST_WRITTEN, open_training
from mkclust.graph import Cuts, Way, cut_alike, cut_for_all, list_sizes
from mkclust.linalg.sparse_rows import spread_rows
from mkclust.methods import AgreementKKM, AverageKKM
from mkclust.methods.agreement_kkm import find_compromise
from mkclust.metrics import agreement_of_labels
from mkclust.parameters import Count, Number, check_parameter
from mkclust.text import join_words
from mkclust.types import Float

# With fewer samples than this nothing could be told.
FEWEST_SAMPLES = 20
# Without k_values, clusters have at least this number of samples on average.
FEWEST_PER_CLUSTER = 5
# Parameters of estimators that say how X is read, and which kernels are made of it.
OPTIONS = {
    *("kernels", "center", "normalize", "psd", "views", "join", "impute", "scale"),
}

# What the columns of the table are.
CRITERIA = (
    "Score: the three criteria, each from 0 for the worst number to 1 for the best, "
    "added. Eigengap: how far the eigenvalues of the graph of neighborhoods drop after "
    "k. Tightness: how near samples are to the centers of their clusters. Agreement: "
    "that of the clusters in two graphs, by short lists and by all (adjusted Rand "
    "index). Stability: that with the clusters of resamples, for the candidates alone."
)


@dataclass(frozen=True, eq=False)
class NumberOfClusters:
    """Which number of clusters fits best, and which others may; ``print`` it.

    Attributes
    ----------
    k_values : ndarray of int of shape (s,)
        The numbers that were tried, rising; the following arrays are in that order.
    eigengaps : ndarray of shape (s,)
        Gap between eigenvalues k and k + 1 of the graph of neighborhoods in the mix.
    tightness : ndarray of shape (s,)
        Share of the squared length of the samples' directions in the embedding that
        the centers explain.
    agreements : ndarray of shape (s,)
        Adjusted Rand index of the clusters in the two graphs that `AgreementKKM` cuts.
    stabilities : ndarray of shape (s,)
        Mean adjusted Rand index of the clusters of resamples with these; NaN but for
        the candidates.
    labels : ndarray of int of shape (s, n_used)
        The clusters for every number, numbered by falling size; -1 for samples of which
        nothing is known.
    samples : ndarray of int of shape (n_used,), or None
        The numbers of the samples that were used; None if all were.
    n_samples : int
        How many samples there are.
    tests : EvidenceOfClusters or None
        What the tests of evidence have found; None unless they were asked for.
    """

    k_values: np.ndarray
    eigengaps: Float
    tightness: Float
    agreements: Float
    stabilities: Float
    labels: np.ndarray
    samples: np.ndarray | None
    n_samples: int
    tests: EvidenceOfClusters | None = None

    @property
    def scores(self) -> Float:
        """The scores that decide, (s,): see `scores_of`."""
        return scores_of(self.eigengaps, self.tightness, self.agreements)

    @property
    def n_clusters(self) -> int:
        """The number that fits best, with the highest score."""
        return self.candidates[0]

    @property
    def candidates(self) -> tuple[int, ...]:
        """The best number and the next ones by their score."""
        return highest(self.k_values, self.scores)

    @property
    def labels_by_k(self) -> dict[int, np.ndarray]:
        """The clusters for every number, as `labels` has them."""
        return {
            int(k): labels for k, labels in zip(self.k_values, self.labels, strict=True)
        }

    @property
    def evidence(self) -> Verdict | None:
        """How strong the evidence of clusters is; None unless it was asked for."""
        return None if self.tests is None else self.tests.verdict

    @property
    def table(self) -> pd.DataFrame:
        """All criteria, one row for each number of clusters."""
        columns = {
            "score": self.scores,
            "eigengap": self.eigengaps,
            "tightness": self.tightness,
            "agreement": self.agreements,
            "stability": self.stabilities,
        }
        return pd.DataFrame(columns, index=pd.Index(self.k_values, name="k"))

    def verdict(self) -> str:
        """Return the answer and the reasons, without the table."""
        return " ".join([f"{self._title()}.", *self._reasons()])

    def summary(self) -> str:
        """Return the table of all numbers of clusters, and the answer in sentences."""
        rows = self.table.to_string(float_format="{:.2f}".format, na_rep="-")
        return "\n".join([self._title(), "", rows, "", *self._reasons(), CRITERIA])

    __repr__ = summary

    def _title(self) -> str:
        """Return the answer in a few words."""
        answer = f"{self.n_clusters} clusters fit best"
        return answer if self.tests is None else f"{answer}; {self.tests.title()}"

    def _reasons(self) -> list[str]:
        """Return what the answer depends on, in sentences."""
        stable = self.table["stability"]
        each = [f"{k} ({stable[k]:.2f})" for k in self.candidates]
        first, last = int(self.k_values[0]), int(self.k_values[-1])
        sentences = [
            f"Candidates, and how stable their clusters are: {join_words(each)}.",
            f"Tried: {len(self.k_values)} numbers from {first} to {last}.",
        ]
        if self.n_clusters == last or self.n_clusters == first > 2:
            end = "largest" if self.n_clusters == last else "smallest"
            sentences.append(
                f"{self.n_clusters} is the {end} of them: pass k_values beyond it."
            )
        if self.samples is not None:
            sentences.append(
                f"Computed on {len(self.samples):,} of {self.n_samples:,} samples."
            )
        if self.tests is not None:
            sentences.append(self.tests.summary())
        return sentences


def scores_of(*criteria: Float) -> Float:
    """Return the sum of criteria, (s,), each from 0 for the worst to 1 for the best."""
    total = np.zeros(len(criteria[0]))
    for values in criteria:
        known = np.nan_to_num(values)
        lowest, spread = known.min(), np.ptp(known)
        total += (known - lowest) / (spread if spread > 0 else 1.0)
    return total


def highest(k_values: np.ndarray, scores: Float) -> tuple[int, ...]:
    """Return the numbers with the highest scores, the best first."""
    # How many numbers are candidates: the best one and the next ones.
    candidates = 3
    order = np.argsort(-scores, kind="stable")[:candidates]
    return tuple(int(k) for k in k_values[order])


def suggest_n_clusters(
    X: Any,
    k_values: Iterable[int] | None = None,
    *,
    evidence: bool = False,
    max_samples: int = 5000,
    level: float = 0.02,
    random_state: Any = 0,
    **options: Any,
) -> NumberOfClusters:
    r"""Say which number of clusters fits best, which others may, and their clusters.

    The graph of neighborhoods of the recommended method, `AgreementKKM`, does not
    depend on the number of clusters: its eigenvectors are found once, and clustered for
    every number. Views that the method does not use play no part.

    **Which number fits best.** The number with the highest sum of three criteria, each
    from 0 for the worst number to 1 for the best:

    - *Eigengap*: the gap between eigenvalues k and k + 1 of the graph. Of k separate
      clusters of any size, k eigenvalues are near one.
    - *Tightness*: how near samples are to the centers of their clusters, in the
      directions of k eigenvectors.
    - *Agreement* of the clusters in the two graphs that the method cuts, one by shorter
      lists of neighbors in the mix, one by all lists of the mix and of the views.

    The next two numbers by this score are candidates, too: more than one number may be
    right, and `ClusterTreeDisplay` shows how the clusters of one become those of the
    next.

    **How strong the evidence is** that there are clusters at all, is tested if asked
    for, on at most 300 samples. The test statistic is the largest standardized
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
    X : array of shape (m, n, n), list or dict of kernels or views, or table
        All that ``fit`` takes.
    k_values : iterable of int, default=None
        Numbers of clusters to try, from 2 to n - 1; None tries 2 to 25, at most n / 5.
    evidence : bool, default=False
        Whether to test how strong the evidence of clusters is, which takes longer.
    max_samples : int, default=5000
        Of more samples, this number is drawn at random.
    level : float, default=0.02
        Limit of the p-values; 1 / level - 1 draws without clusters are made.
    random_state : int, RandomState instance or None, default=0
        Seed of samples, resamples and draws.
    **options
        ``kernels``, ``center``, ``normalize``, ``psd``, ``views``, ``join``,
        ``impute`` and ``scale``, as in every estimator.

    Returns
    -------
    NumberOfClusters
        With `n_clusters`, `candidates`, a `table`, and the clusters `labels_by_k`.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import suggest_n_clusters
    >>> rng = np.random.default_rng(0)
    >>> places = rng.normal(size=(4, 6))[np.arange(120) % 4]
    >>> views = [3 * places + rng.normal(size=(120, 6)) for _ in range(2)]
    >>> found = suggest_n_clusters(views)
    >>> found.n_clusters, np.bincount(found.labels_by_k[4])
    (4, array([30, 30, 30, 30]))
    >>> noise = [rng.normal(size=(120, 6)), rng.normal(size=(120, 6))]
    >>> suggest_n_clusters(noise, [2, 3, 4], evidence=True).evidence
    'none'
    """
    check_parameter("max_samples", max_samples, Count())
    check_parameter("level", level, Number(0, 1, open_low=True, open_high=True))
    model, source = _open(X, options)
    n_used = min(source.n_samples, max_samples)
    numbers = _check_k_values(k_values, n_used)
    rng = seeded(random_state)
    with silence():
        drawn = None
        samples = source.samples
        if n_used < source.n_samples:
            drawn = draw(rng, source.n_samples, n_used)
            samples = source.take(drawn)
        pass_ = cut_samples(_model_of(model, source, n_used), samples, numbers, rng)
        tests = None
        if evidence:
            tests = _test(model, source, drawn, pass_, numbers, level, rng)

    cuts = pass_.cuts
    return NumberOfClusters(
        k_values=np.array(numbers),
        eigengaps=cuts.eigengaps,
        tightness=cuts.tightness,
        agreements=cuts.agreements,
        stabilities=pass_.stabilities,
        labels=cuts.labels,
        samples=drawn,
        n_samples=source.n_samples,
        tests=tests,
    )


class _Pass(NamedTuple):
    """What one pass over the graph of some samples has found."""

    cuts: Cuts
    candidates: tuple[int, ...]  # the best number and the next ones
    stabilities: Float
    shares: Float  # of all kernels in the mix, summing to one
    agreement: Agreement


def _open(X: Any, options: dict[str, Any]) -> tuple[AgreementKKM, Parts]:
    """Return the model whose graph is cut, and its input."""
    if unknown := sorted(set(options) - OPTIONS):
        raise TypeError(f"suggest_n_clusters has no parameter {unknown[0]!r}")
    model = AgreementKKM(n_clusters=2, random_state=0, **options)
    model.check_parameters()
    return model, Parts(model, X)


def _model_of(model: AgreementKKM, source: Parts, n_used: int) -> Any:
    """Return a model for some samples; for many it reads rows of kernels."""
    copy = source.unfitted(model)
    if source.kernels != "precomputed" and n_used > MOST_WRITTEN:
        copy.set_params(kernels__on_the_fly=True)
    return copy


def cut_samples(
    model: MultipleKernelClusterer,
    samples: Samples,
    k_values: list[int],
    rng: np.random.Generator,
) -> _Pass:
    """Cut the graph of samples, found as in a fit, into every number of clusters."""
    training = open_training(model, samples.computed())
    stack = training.source.stack(model, training.kernels)
    compromise = find_compromise(stack)
    coefficients = compromise.scatter(compromise.coefficients)

    n = stack.n_samples
    sizes = [list_sizes(model.neighbors, n, k) for k in k_values]
    memberships = find_memberships(stack, coefficients, max(sizes, key=len))[2]
    n_sizes = [len(each) for each in sizes]
    cuts = cut_for_all(memberships, k_values, n_sizes)

    scores = scores_of(cuts.eigengaps, cuts.tightness, cuts.agreements)
    candidates = highest(np.array(k_values), scores)
    best = sorted(candidates)
    places = [k_values.index(k) for k in best]
    stabilities = np.full(len(k_values), np.nan)
    ways = [cuts.ways[place] for place in places]
    stabilities[places] = _resample(memberships, cuts.labels[places], best, ways, rng)
    if training.fitted is not None:
        spread = spread_rows(cuts.labels.T, training.fitted, samples.n_samples, -1)
        cuts = replace(cuts, labels=spread.T)
    shares = coefficients / coefficients.sum()
    return _Pass(cuts, candidates, stabilities, shares, compromise.agreement)


def _resample(
    memberships: Sequence[Sequence[Any]],
    labels: np.ndarray,
    k_values: list[int],
    ways: list[Way],
    rng: np.random.Generator,
) -> Float:
    """Return how far clusters of resamples agree with those of all samples, (s,)."""
    n = labels.shape[1]
    # Resamples that the stability of the candidates is measured on, and their share of
    # the samples.
    resamples = 3
    fraction = 0.8
    size = round(fraction * n)
    agreements = np.full((resamples, len(k_values)), np.nan)
    if k_values[-1] >= size:
        return agreements[0]

    for row in agreements:
        part = draw(rng, n, size)
        among = [[each[part][:, part] for each in several] for several in memberships]
        found = cut_alike(among, k_values, ways)
        pairs = zip(labels[:, part], found, strict=True)
        row[:] = [agreement_of_labels(*pair) for pair in pairs]
    return agreements.mean(axis=0)


def _test(
    model: AgreementKKM,
    source: Parts,
    drawn: np.ndarray | None,
    found: _Pass,
    k_values: list[int],
    level: float,
    rng: np.random.Generator,
) -> EvidenceOfClusters:
    """Test how strong the evidence of clusters is, on some of the samples."""
    everyone = np.arange(source.n_samples) if drawn is None else drawn
    # Tests use this number of samples, or this number for each cluster if that is more.
    tested_samples = 300
    tested_per_cluster = 2
    most = max(tested_samples, tested_per_cluster * k_values[-1])
    n_tested = min(len(everyone), most)
    part = source.take(everyone[draw(rng, len(everyone), n_tested)])
    names = ("center", "normalize", "psd")
    options = {name: getattr(model, name) for name in names}
    mixing = AverageKKM(kernels=source.kernels, missing_views="rescale", **options)

    agreement = found.agreement
    p_agreement = 0.0
    if agreement.n_independent_views > 1:
        p_agreement = float(agreement.p_values.min())
    return find_evidence(
        mixing,
        part,
        found.shares,
        k_values,
        found.candidates[0],
        p_agreement=p_agreement,
        n_draws=int(np.ceil(1 / level - 1e-9)) - 1,
        level=level,
        rng=rng,
    )


def _check_k_values(k_values: Any, n_used: int) -> list[int]:
    """Return the numbers to try, rising."""
    if n_used < FEWEST_SAMPLES:
        raise ValueError(
            f"{n_used} samples are used, at most max_samples: {FEWEST_SAMPLES} are "
            "needed to tell clusters from chance"
        )
    # Without k_values: up to this number of clusters.
    most_clusters = 25
    if k_values is None:
        return list(range(2, min(most_clusters, n_used // FEWEST_PER_CLUSTER) + 1))
    numbers = list(k_values) if np.iterable(k_values) else []
    if not numbers or not all(Count(least=2).holds(k) and k < n_used for k in numbers):
        raise ValueError(
            f"k_values={k_values!r}: pass integers from 2 to {n_used - 1}, less than "
            "the samples used, at most max_samples"
        )
    return sorted({int(k) for k in numbers})
