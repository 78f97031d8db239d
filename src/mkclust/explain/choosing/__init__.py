"""How many clusters there are, if any."""

from mkclust.explain.choosing.result import NumberOfClusters, Strength
from mkclust.explain.choosing.suggest import suggest_n_clusters

__all__ = ["NumberOfClusters", "Strength", "suggest_n_clusters"]
