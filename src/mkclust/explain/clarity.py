"""How clear and how stable clusters are, in words, with the limits of these words."""

from typing import Literal

# Mean adjusted Rand indices of refits from the first on are stable, below the second
# unstable.
STABLE, UNSTABLE = 0.95, 0.8
# Mean silhouettes from which on clusters are well, or weakly, separated.
WELL, WEAKLY = 0.5, 0.25

Level = Literal["high", "middling", "low"]


def stability_level(mean: float) -> Level:
    """Return how stable clusters are whose refits agree with them to a mean Rand index.

    >>> stability_level(0.91)
    'middling'
    """
    if mean >= STABLE:
        return "high"
    if mean < UNSTABLE:
        return "low"
    return "middling"


def separation(
    silhouette: float, *, stability: float | None = None, evidence: str | None = None
) -> str:
    """Return how far clusters are apart, by their mean silhouette.

    A silhouette of the embedding is high for a cloud that is cut, too. So clusters are
    not called well separated if their stability is low, or the evidence of clusters not
    strong.

    Parameters
    ----------
    silhouette : float
        The mean over all samples.
    stability : float, default=None
        Mean adjusted Rand index of refits; None if it was not measured.
    evidence : {"none", "weak", "strong"}, default=None
        That of clusters, as `mkclust.suggest_n_clusters` states it; None if it was not
        looked for.

    Examples
    --------
    >>> separation(0.6), separation(0.6, stability=0.5)
    ('well separated', 'far apart in the embedding only')
    """
    is_unstable = stability is not None and stability_level(stability) == "low"
    is_doubtful = is_unstable or evidence in ("none", "weak")
    if silhouette >= WELL:
        if is_doubtful:
            return "far apart in the embedding only"
        return "well separated"
    if silhouette >= WEAKLY:
        return "weakly separated"
    return "not well separated"
