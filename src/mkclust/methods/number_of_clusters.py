"""Which number of clusters fits best, by the graph that `AgreementKKM` cuts."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from mkclust.agreements import Agreement, find_compromise
from mkclust.data import Samples, as_blocks
from mkclust.data.draw import draw_samples
from mkclust.exceptions import silence
from mkclust.fit import MultipleKernelClusterer
from mkclust.fit.neighborhoods import find_memberships
from mkclust.fit.steps import open_training
from mkclust.graph import Cuts, Memberships, Way, cut_alike, cut_for_all, list_sizes
from mkclust.linalg.sparse_rows import spread_rows
from mkclust.methods.anchors import needs_anchors, with_kinds_of_all
from mkclust.metrics import agreement_of_labels
from mkclust.parameters import Count, Number, check_parameter
from mkclust.text import join_words
from mkclust.types import Float
from mkclust.watch import steps

# With fewer samples than this nothing could be told.
FEWEST_SAMPLES = 20
# Without k_values, clusters have at least this number of samples on average.
FEWEST_PER_CLUSTER = 5
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
    within, by_chance : ndarray of shape (s,)
        Share of the links of the mix's graph that are within clusters, and the share
        that would be by chance: the modularity is the difference.
    tests : EvidenceOfClusters or None
        What the tests of evidence have found; None unless they were asked for.
    resolution : float or None
        If it is not None, `n_clusters` is the number `at_resolution`.
    """

    k_values: np.ndarray
    eigengaps: Float
    tightness: Float
    agreements: Float
    stabilities: Float
    labels: np.ndarray
    samples: np.ndarray | None
    n_samples: int
    within: Float
    by_chance: Float
    tests: Any = None
    resolution: float | None = None

    @property
    def scores(self) -> Float:
        """The scores that decide, (s,): see `scores_of`."""
        return scores_of(self.eigengaps, self.tightness, self.agreements)

    @property
    def n_clusters(self) -> int:
        """The number that fits best, with the highest score, or at the resolution."""
        if self.resolution is None:
            return self.candidates[0]
        return self.at_resolution(self.resolution)

    @property
    def candidates(self) -> tuple[int, ...]:
        """The best number and the next ones by their score."""
        return highest(self.k_values, self.scores)

    def at_resolution(self, resolution: float = 1.0) -> int:
        r"""Return the number whose clusters have the highest modularity.

        Parameters
        ----------
        resolution : float, default=1.0
            :math:`\gamma` of the modularity: the share of links within clusters, less
            :math:`\gamma` times the share by chance. The larger, the more clusters, but
            none beyond the numbers that were tried.
        """
        check_parameter("resolution", resolution, Number(0, open_low=True))
        return int(self.k_values[np.argmax(self.within - resolution * self.by_chance)])

    @property
    def labels_by_k(self) -> dict[int, np.ndarray]:
        """The clusters for every number, as `labels` has them."""
        return {
            int(k): labels for k, labels in zip(self.k_values, self.labels, strict=True)
        }

    @property
    def evidence(self) -> Any:
        """How strong the evidence of clusters is; None unless it was asked for."""
        return self.tests and self.tests.verdict

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
        if self.resolution is not None:
            answer += f" at resolution {self.resolution:g}"
        return answer if self.tests is None else f"{answer}; {self.tests.title()}"

    def _reasons(self) -> list[str]:
        """Return what the answer depends on, in sentences."""
        stable = self.table["stability"]
        each = [f"{k} ({stable[k]:.2f})" for k in self.candidates]
        first = int(self.k_values[0])
        last = int(self.k_values[-1])
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
    known = np.nan_to_num(np.array(criteria))
    spreads = np.ptp(known, axis=1, keepdims=True)
    above = known - known.min(axis=1, keepdims=True)
    return np.sum(above / np.where(spreads > 0, spreads, 1), axis=0)


def highest(k_values: np.ndarray, scores: Float) -> tuple[int, ...]:
    """Return the numbers with the highest scores, the best first."""
    # How many numbers are candidates: the best one and the next ones.
    candidates = 3
    order = np.argsort(-scores, kind="stable")[:candidates]
    return tuple(int(k) for k in k_values[order])


class Pass(NamedTuple):
    """What one pass over the graph of some samples has found."""

    cuts: Cuts
    candidates: tuple[int, ...]  # the best number and the next ones
    stabilities: Float
    shares: Float  # of all kernels in the mix, summing to one
    agreement: Agreement


def find_number(model: MultipleKernelClusterer, samples: Samples) -> NumberOfClusters:
    """Return which number of clusters fits samples best, by some of them if many."""
    most_samples = 5000
    drawn = None
    part = samples
    if needs_anchors(samples, most_samples):
        blocks = as_blocks(samples)
        model = with_kinds_of_all(model, samples)
        drawn = np.sort(draw_samples(blocks, most_samples, samples.ids))
        part = samples.held(blocks.take(drawn), drawn)

    k_values = check_k_values(None, part.n_samples)
    rng = np.random.default_rng(0)
    cutting = clone(model).set_params(n_clusters=2)
    with silence():  # the fit warns
        found = cut_samples(cutting, part, k_values, rng)
    return result_of(found, k_values, drawn, samples.n_samples)


def cut_samples(
    model: MultipleKernelClusterer,
    samples: Samples,
    k_values: list[int],
    rng: np.random.Generator,
) -> Pass:
    """Cut the graph of samples, found as in a fit, into every number of clusters."""
    training = open_training(model, samples.computed())
    stack = training.make_stack()
    compromise = find_compromise(stack)
    coefficients = compromise.scatter(compromise.coefficients)

    sizes = [list_sizes(model.neighbors, stack.n_samples, k) for k in k_values]
    longest = max(sizes, key=len)
    *_, memberships = find_memberships(stack, coefficients, longest)
    cuts = cut_for_all(memberships, k_values, list(map(len, sizes)))

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
    return Pass(cuts, candidates, stabilities, shares, compromise.agreement)


def _resample(
    memberships: Memberships,
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

    for row in steps(list(agreements)):
        part = np.sort(rng.choice(n, size, replace=False))
        among = [[each[part][:, part] for each in several] for several in memberships]
        found = cut_alike(among, k_values, ways)
        row[:] = list(map(agreement_of_labels, labels[:, part], found))
    return agreements.mean(axis=0)


def check_k_values(k_values: Any, n_used: int) -> list[int]:
    """Return the numbers to try, rising."""
    if n_used < FEWEST_SAMPLES:
        raise ValueError(
            f"{n_used} samples are used: {FEWEST_SAMPLES} are needed to tell clusters "
            "from chance; pass more (max_samples limits them), or a number of clusters"
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


def result_of(
    found: Pass,
    k_values: list[int],
    samples: np.ndarray | None,
    n_samples: int,
    tests: Any = None,
) -> NumberOfClusters:
    """Return what one pass over the graph says of the number of clusters."""
    known = {name: each for name, each in vars(found.cuts).items() if name != "ways"}
    return NumberOfClusters(
        k_values=np.array(k_values),
        stabilities=found.stabilities,
        samples=samples,
        n_samples=n_samples,
        tests=tests,
        **known,
    )
