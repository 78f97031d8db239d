"""A suggested number of clusters, what speaks for it, and its reading in words."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from mkclust.text import join_words
from mkclust.types import Float

# How often resamples must name the same number for a word.
STRONG, MODERATE = 0.9, 0.6
# Two numbers are nearly tied where their excess differs by no more than this, or where resamples
# name one at least this many times as often as the other.
TIED_EXCESS, TIED_SUPPORT = 0.01, 0.5
# A number that fewer resamples name than this is no candidate, unless it is nearly tied.
LEAST_SUPPORT = 0.1

Kind = Literal["clusters", "continuum", "no evidence"]


class Strength(NamedTuple):
    """How far a suggestion is to be relied on: a word, and the number behind it.

    Attributes
    ----------
    word : {"strong", "moderate", "weak", "none"}
        "strong" from a share of 0.9 on, "moderate" from 0.6 on; "none" without evidence of
        clusters.
    share : float
        Of the resamples, the share that names the same number of clusters; zero for "none".
    """

    word: str
    share: float

    @classmethod
    def of(cls, share: float) -> "Strength":
        """Return the strength that a share of the resamples gives."""
        word = "strong" if share >= STRONG else "moderate" if share >= MODERATE else "weak"
        return cls(word, share)


@dataclass(frozen=True, eq=False)
class NumberOfClusters:
    """How many clusters there seem to be, and what speaks for each number; ``print`` it.

    Attributes
    ----------
    n_clusters : int
        The suggestion; 1 where there is no evidence of separate clusters.
    strength : Strength
        A word, and the share of the resamples that name the same number. See ``is_unclear``.
    kind : {"clusters", "continuum", "no evidence"}
        What was found. "continuum": more than one cloud, and shared by the views, but not
        clearly sparser between the parts than within them; to cluster it is to cut a continuum.
    k_values : ndarray of int of shape (s,)
        The numbers that were tried, rising; what follows is in that order, too.
    eigengaps : ndarray of shape (s,)
        Relative gap between eigenvalues k - 1 and k of the mixed kernel, centered.
    silhouettes : ndarray of shape (s,)
        Mean silhouette of the k clusters in the k - 1 leading eigenvectors, by distances to the
        centers.
    support : ndarray of shape (s,)
        The share of the resamples that name each number: in which its excess is the largest.
    stabilities : ndarray of shape (s,)
        Mean adjusted Rand index of the clusters of a resample with those of all samples; NaN for
        more clusters than a resample has samples.
    expected_silhouettes : ndarray of shape (s,)
        Mean silhouette of samples without clusters, of the same covariance: one cloud.
    null_silhouettes : ndarray of shape (2, s)
        What 95 % of such clouds lie between.
    null_eigengaps : ndarray of shape (2, s)
        The same for the eigengaps: where there are several views, with the samples of each
        shuffled for themselves.
    p_cloud : float
        How likely one cloud without clusters is to show as clear clusters.
    p_shuffled : float
        How likely views that share nothing are to show as clear clusters; NaN for one view.
    p_continuum : float
        How likely a continuum, cut into parts, is to have as few samples at the borders between
        them, for the number of clusters with the largest excess.
    border_density : float
        How dense samples are at these borders, in units of that near the centers.
    continuum_density : float
        How dense they would be in a continuum, at least.
    level : float
        All have to be as low as this to speak of clusters.
    n_samples : int
        How many samples there are.
    n_used, n_tested : int
        How many of them the criteria and the tests were computed on.
    """

    n_clusters: int
    strength: Strength
    kind: Kind
    k_values: np.ndarray
    eigengaps: Float
    silhouettes: Float
    support: Float
    stabilities: Float
    expected_silhouettes: Float
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

    @property
    def excess(self) -> Float:
        """How much higher silhouettes are than without clusters, which decides, (s,)."""
        return self.silhouettes - self.expected_silhouettes

    @property
    def candidates(self) -> tuple[int, ...]:
        """The numbers of clusters that come into question, the best first.

        That is ``n_clusters``, then all that a tenth of the resamples name or that are nearly tied
        with it, in the order of how many resamples name them. Empty without evidence of clusters.
        """
        if self.kind != "clusters":
            return ()
        in_question = self._nearly_tied() | (self.support >= LEAST_SUPPORT)
        in_question |= self.k_values == self.n_clusters
        order = np.lexsort((-self.excess, -self.support, self.k_values != self.n_clusters))
        return tuple(int(self.k_values[place]) for place in order if in_question[place])

    @property
    def is_unclear(self) -> bool:
        """Whether there are clusters, but the samples do not tell how many.

        So it is where the strength is "weak", and where another number is nearly tied with the
        best: its excess is less by 0.01 at most, or half as many resamples name it. Where nine of
        ten resamples name the same number, none is tied with it.
        """
        if self.kind != "clusters" or self.strength.word == "strong":
            return False
        return self.strength.word == "weak" or bool(self._nearly_tied().any())

    def _nearly_tied(self) -> np.ndarray:
        """Return which numbers are about as good as the suggestion, (s,) of bool."""
        best = self.k_values == self.n_clusters
        close = self.excess >= self.excess[best] - TIED_EXCESS
        named = self.support >= TIED_SUPPORT * max(float(self.support[best][0]), LEAST_SUPPORT)
        return (close | named) & ~best if self.strength.word != "strong" else np.zeros_like(best)

    def summary(self) -> str:
        """Return the table of all numbers of clusters, and the reading in sentences.

        Returns
        -------
        str
        """
        return "\n".join([self._title(), "", *self._table(), "", *self._sentences()])

    def verdict(self) -> str:
        """Return the suggestion and what speaks for it, without the table.

        Returns
        -------
        str
        """
        return f"{self._title()}. {self._say_evidence()}"

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def _title(self) -> str:
        """Return the suggestion in one line."""
        if self.kind == "continuum":
            return "No evidence of separate clusters: a continuum"
        if self.kind == "no evidence":
            return "No evidence of clusters"
        word, share = self.strength
        if self.is_unclear:
            shares = dict(zip(self.k_values.tolist(), self.support.tolist(), strict=True))
            first, *others = [f"{k} ({shares[k]:.0%} of the resamples)" for k in self.candidates]
            then = f"; then {join_words(others)}" if others else ""
            return f"Unclear how many clusters: {first} at best{then}"
        return f"{self.n_clusters} clusters ({word}: {share:.0%} of the resamples say the same)"

    def _table(self) -> list[str]:
        """Return the table, a line for each number of clusters."""
        lines = ["  k  eigengap  silhouette  without clusters  excess  named by  stability"]
        columns = zip(
            self.eigengaps,
            self.silhouettes,
            self.expected_silhouettes,
            self.excess,
            self.support,
            self.stabilities,
            strict=True,
        )
        candidates = self.candidates
        for k, (gap, silhouette, expected, excess, support, stability) in zip(
            self.k_values, columns, strict=True
        ):
            mark = "  <-" if k == self.n_clusters else "  ?" if k in candidates else ""
            stable = "-" if np.isnan(stability) else f"{stability:.2f}"
            lines.append(
                f"{k:3}  {gap:8.2f}  {silhouette:10.2f}  {expected:16.2f}  {excess:6.2f}  "
                f"{support:8.0%}  {stable:>9}{mark}"
            )
        return lines

    def _sentences(self) -> list[str]:
        """Return the reading, a sentence each."""
        sentences = [
            "Eigengap: the relative drop of the spectrum of the mixed kernel after the "
            f"directions of k clusters; largest for {self._best(self.eigengaps)}.",
            "Silhouette: how much nearer samples are to their own cluster than to the "
            "next; its excess over one cloud of the same covariance decides, and is "
            f"largest for {self._best(self.excess)}.",
            "Named by: the share of resamples in which that excess is the largest of all.",
            "Stability: how far the clusters stay the same when a fifth of the samples is left out "
            f"(1: all of them do); highest for {self._best(self.stabilities)}. It favors few "
            "clusters.",
            self._say_evidence(),
            *self._say_unclear(),
        ]
        # Two is where numbers of clusters begin: nothing lies beyond.
        if self.n_clusters > 2 and self.n_clusters in (self.k_values[0], self.k_values[-1]):
            end = "largest" if self.n_clusters == self.k_values[-1] else "smallest"
            sentences.append(
                f"It is the {end} number that was tried: pass more k_values to see what lies "
                "beyond."
            )
        if self.n_used < self.n_samples:
            sentences.append(
                f"Computed on {self.n_used} of {self.n_samples} samples, the tests on "
                f"{self.n_tested}."
            )
        return sentences

    def _best(self, values: Float) -> str:
        """Return the number of clusters at which a criterion is largest."""
        return "none" if np.isnan(values).all() else f"k = {self.k_values[np.nanargmax(values)]}"

    def _say_unclear(self) -> list[str]:
        """Say what to do where the number is open, nothing where it is not."""
        if not self.is_unclear:
            return []
        return [
            "The samples do not tell how many there are: fit the candidates, first the "
            "number marked <- and then those marked ?, and take the clusters that mean "
            "something."
        ]

    def _say_evidence(self) -> str:
        """Say whether there are clusters at all, and why."""
        cloud = f"p = {self.p_cloud:.2g}"
        shared = f"p = {self.p_shuffled:.2g}"
        several = not np.isnan(self.p_shuffled)
        borders = (
            f"at borders between neighbors they are {self.border_density:.2g} times as dense as "
            f"near centers, and {self.continuum_density:.2g} times or more in a continuum "
            f"(p = {self.p_continuum:.2g})"
        )
        also = f", and than in views that share nothing ({shared})" if several else ""
        clear = f"Clusters are clearer than in one cloud of the same covariance ({cloud}){also}"
        if self.kind == "clusters":
            return (
                f"{clear}, and samples are sparser between them: {borders}. There is more than "
                f"one. Level {self.level:g}."
            )
        if self.kind == "continuum":
            parts = self._best(self.excess)
            return (
                f"{clear}, but for {parts} samples are not clearly sparser between them: "
                f"{borders}, level {self.level:g}. Views may share a gradual change, or "
                "clusters overlap: if you ask for clusters, you cut a continuum into "
                "parts."
            )
        if self.p_cloud > self.level:
            return (
                "No number of clusters is clearer than in one cloud of the same covariance "
                f"({cloud}, level {self.level:g}). What views share may still be a gradual change: "
                "that is no cluster."
            )
        return (
            f"Some clusters are clearer than in one cloud ({cloud}), but not clearer than "
            f"in views that share nothing ({shared}, level {self.level:g}): if there are "
            "clusters, the views do not share them. Call the function for each view alone."
        )
