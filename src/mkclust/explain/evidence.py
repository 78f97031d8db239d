"""How strong the evidence is that there are clusters at all."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from mkclust.data import Samples
from mkclust.explain.null_draws import NullDraws, compare_with_draws, mix, open_stack
from mkclust.explain.spectral_path import cluster_for_all_k, count_at_borders
from mkclust.methods import AverageKKM
from mkclust.text import p_of_draws
from mkclust.types import Float

Verdict = Literal["none", "weak", "strong"]


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
        """Return a p-value of draws after a sign, as a bound if no draw was as clear."""
        return p_of_draws(value, 1 / (1 + self.n_draws), sign)

    def title(self) -> str:
        """Return how strong the evidence is, in a few words."""
        strength = "no" if self.verdict == "none" else self.verdict
        return f"{strength} evidence of clusters (p {self.p_text(self.p_value)})"

    def summary(self) -> str:
        """Return the reasons in sentences."""
        cloud = f"p {self.p_text(self.p_cloud)}"
        shuffled = f"p {self.p_text(self.p_shuffled)}"
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
    """Compare samples with random ones without clusters, and their clusters with a continuum.

    Kernels are mixed by their shares; no p-value against views that share nothing is
    below that of the agreement of views.
    """
    path = cluster_for_all_k(mix(open_stack(model, samples), shares), k_values)
    null = NullDraws(samples, model, shares)
    p_cloud = compare_with_draws(path, partial(null.cloud, rng), k_values, n_draws)
    p_shuffled = float("nan")
    if null.n_views > 1:
        drawn = partial(null.shuffled, rng)
        p_shuffled = compare_with_draws(path, drawn, k_values, n_draws)
        p_shuffled = max(p_shuffled, p_agreement)

    best = k_values.index(n_clusters)
    borders = count_at_borders(path.coordinates(n_clusters), path.labels[best])
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
