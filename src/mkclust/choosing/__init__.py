"""How many clusters there are, if any."""

from mkclust.choosing.reading import NumberOfClusters, Strength
from mkclust.choosing.suggest import suggest_n_clusters

__all__ = ["NumberOfClusters", "Strength", "suggest_n_clusters"]
