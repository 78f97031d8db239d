"""How clear and how stable clusters are: what the words mean, in one place.

The report, the command line and `mkclust.stability` take their words from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

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
        known: dict[str, Any] = {}
        if stability is not None:
            known = {"stability": stability.mean, "vary": stability.vary}
        if suggestion is not None:
            known["evidence"] = suggestion.evidence
            known["fits_best"] = n_clusters == suggestion.n_clusters
        return cls(silhouette, **known)

    @property
    def stability_level(self) -> Literal["high", "middling", "low"] | None:
        """How stable the clusters are, None if nobody has measured it."""
        if self.stability is None:
            return None
        if self.stability < LOW_STABILITY:
            return "low"
        return "high" if self.stability >= HIGH_STABILITY else "middling"

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
        if self.silhouette < 0.25:
            return "not well separated"
        if self.silhouette < 0.5:
            return "weakly separated"
        if self.stability_level == "low" or self.evidence in ("none", "weak"):
            return "far apart in the embedding only"
        return "well separated"

    def about_stability(self) -> str:
        """Return in a sentence how far the clusters are to be relied on."""
        depends = DEPENDS[self.vary]
        doubt = ", though there may be no clusters" if self.may_not_exist else ""
        if self.stability_level == "high":
            return f"High: the clusters do not depend {depends}{doubt}."

        advice = "; raise n_components"
        if self.vary == "landmarks" and self.may_not_exist:
            doubt = "; if that changes nothing, the clusters are not clear"
        elif self.vary == "samples":
            advice = "; another number of clusters may fit better"
            doubt = doubt.replace("though", "or")
            if self.fits_best:
                advice = ""
        what = "to which cluster some samples belong depends"
        if self.stability_level == "low":
            what = "the clusters depend"
        level = str(self.stability_level).capitalize()
        return f"{level}: {what} {depends}{advice}{doubt}."
