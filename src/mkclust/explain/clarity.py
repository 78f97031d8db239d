"""How clear and how stable clusters are: what the words mean, in one place.

The report, the command line and `mkclust.stability` take their words from here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from mkclust.explain.evidence import Verdict

if TYPE_CHECKING:
    from mkclust.explain.number_of_clusters import NumberOfClusters
    from mkclust.explain.stability import Stability

# Mean adjusted Rand indices of refits from which on stability is high, and below which
# it is low.
HIGH_STABILITY = 0.95
LOW_STABILITY = 0.8

Vary = Literal["samples", "landmarks"]

# What clusters depend on if they are not stable.
DEPENDS = {"samples": "on a few samples", "landmarks": "on which landmarks were drawn"}


@dataclass(frozen=True)
class Clarity:
    """How clear clusters are, by all that is known of them; None for what is not.

    Clusters **may not exist** if there is no evidence of them, or if they are unstable
    and nobody has looked for evidence. They are **well separated** if their silhouette
    is high, and neither low stability nor weak evidence casts doubt on them: the
    silhouette of an embedding is high for a cloud that is cut, too. So no two
    statements about the same clusters contradict each other.

    Parameters
    ----------
    silhouette : float
        The mean over all samples.
    stability : float
        Mean adjusted Rand index of refits.
    evidence : {"none", "weak", "strong"}
        That of clusters, as `mkclust.suggest_n_clusters` states it.
    fits_best : bool
        Whether no other number of clusters fits better.
    vary : {"samples", "landmarks"}, default="samples"
        What the refits have drawn again.

    Examples
    --------
    >>> Clarity(0.6).separation, Clarity(0.6, stability=0.5).separation
    ('well separated', 'far apart in the embedding only')
    >>> Clarity(0.6, stability=0.99, evidence="strong").about_stability()
    'High: the clusters do not depend on a few samples.'
    """

    silhouette: float | None = None
    stability: float | None = None
    evidence: Verdict | None = None
    fits_best: bool | None = None
    vary: Vary = "samples"

    @classmethod
    def of_fit(
        cls,
        n_clusters: int,
        silhouette: float,
        stability: Stability | None,
        suggestion: NumberOfClusters | None,
    ) -> Clarity:
        """Return how clear the clusters of a fit are, by what was measured of them."""
        known = cls(silhouette)
        if stability is not None:
            known = replace(known, stability=stability.mean, vary=stability.vary)
        if suggestion is not None:
            is_best = n_clusters == suggestion.n_clusters
            known = replace(known, evidence=suggestion.evidence, fits_best=is_best)
        return known

    @property
    def stability_level(self) -> Literal["high", "middling", "low"] | None:
        """How stable the clusters are, None if nobody has measured it."""
        if self.stability is None:
            return None
        if self.stability >= HIGH_STABILITY:
            return "high"
        if self.stability < LOW_STABILITY:
            return "low"
        return "middling"

    @property
    def may_not_exist(self) -> bool:
        """Whether there may be no clusters at all."""
        if self.evidence is None:
            return self.stability_level == "low"
        return self.evidence == "none"

    @property
    def separation(self) -> str | None:
        """How far clusters are apart, None for a single one."""
        if self.silhouette is None or self.silhouette != self.silhouette:
            return None

        # The limits of Kaufman and Rousseeuw for a weak and a reasonable structure, by
        # the mean silhouette of the embedding.
        weakly_separated = 0.25
        well_separated = 0.5
        if self.silhouette < weakly_separated:
            return "not well separated"
        if self.silhouette < well_separated:
            return "weakly separated"

        is_unstable = self.stability_level == "low"
        if is_unstable or self.evidence in ("none", "weak"):
            return "far apart in the embedding only"
        return "well separated"

    def about_stability(self) -> str:
        """Return in a sentence how far the clusters are to be relied on."""
        depends = DEPENDS[self.vary]
        if self.stability_level == "high":
            text = f"High: the clusters do not depend {depends}"
            if self.may_not_exist:
                text += ", though there may be no clusters"
            return f"{text}."

        what = "to which cluster some samples belong depends"
        if self.stability_level == "low":
            what = "the clusters depend"
        level = str(self.stability_level).capitalize()
        return f"{level}: {what} {depends}{self._advice()}."

    def _advice(self) -> str:
        """Return what may help unstable clusters, and whether there may be none."""
        doubt = ""
        if self.vary == "landmarks" and self.may_not_exist:
            doubt = "; if that changes nothing, the clusters are not clear"
        elif self.may_not_exist:
            doubt = ", or there may be no clusters"
        if self.vary == "samples" and self.fits_best:
            return doubt
        advice = {
            "samples": "another number of clusters may fit better",
            "landmarks": "raise n_components",
        }
        return f"; {advice[self.vary]}{doubt}"
