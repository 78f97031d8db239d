"""
7. How many clusters, if any
============================

Every method returns as many clusters as it is asked for, even from noise.
``suggest_n_clusters`` names the number that fits best and two more candidates, and
says, if asked, how strong the evidence of clusters is.
"""

# %%
# We make two views of 150 samples in four clusters.

import matplotlib.pyplot as plt
import numpy as np

from mkclust import suggest_n_clusters
from mkclust.plots import ClusterTreeDisplay, NumberOfClustersDisplay

rng = np.random.default_rng(0)
y = rng.integers(4, size=150)
clustered = [
    3 * rng.normal(size=(4, 6))[y] + rng.normal(size=(150, 6)) for _ in range(2)
]
found = suggest_n_clusters(clustered, range(2, 8), evidence=True)
print(found)

# %%
# The picture shows three criteria for each number of clusters. The best number has the
# highest sum of the three, each from 0 for the worst number to 1 for the best.

NumberOfClustersDisplay.from_suggestion(found)
plt.show()

# %%
# How the clusters of one number become those of the next: nodes are clusters, and edges
# show where their samples come from.

ClusterTreeDisplay.from_suggestion(found)
plt.show()

# %%
# **No evidence.** The same views, one of them with its rows shuffled: each view still
# has four clusters, but they are not the same ones.

shuffled = [rng.permutation(clustered[0]), clustered[1]]
nothing = suggest_n_clusters(shuffled, range(2, 8), evidence=True)
print(nothing.n_clusters, nothing.evidence)
print(nothing.verdict())

# %%
# **A continuum.** Samples along a curve that both views share. It can be cut into
# parts, and the parts are stable, but no gap separates them.

place = rng.uniform(size=150)
curve = np.c_[np.cos(3 * place), np.sin(3 * place)]
line = [
    curve @ rng.normal(size=(2, 6)) + 0.05 * rng.normal(size=(150, 6)) for _ in range(2)
]
continuum = suggest_n_clusters(line, range(2, 8), evidence=True)
print(continuum.n_clusters, continuum.evidence)

# %%
# No evidence is not evidence that there are no clusters: clusters that only one view
# has are not found, and clusters that overlap look like a continuum.
# :doc:`/guides/number_of_clusters` says how often the answers were right.
