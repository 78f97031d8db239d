"""
12. Cells with several modalities
=================================

Genes and proteins of the same cells, from raw counts to types, a map and markers, in
AnnData and MuData, next to Leiden and weighted nearest neighbors.
"""

# %%
# We make up 900 cells of six types, with counts of 600 genes and 20 proteins. Types 1
# and 2 have the same genes, and differ in proteins only. The last type is rare.

import anndata
import mudata
import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

mudata.set_options(pull_on_update=False)
rng = np.random.default_rng(0)
types = rng.choice(6, 900, p=[0.3, 0.22, 0.2, 0.15, 0.1, 0.03])
ids = [f"cell {number}" for number in range(900)]


def count(expected):
    """Return counts of cells of different sizes, as sequencing finds them."""
    sizes = rng.lognormal(0, 0.4, size=(len(expected), 1))
    return rng.poisson(sizes * expected * rng.gamma(2, 1 / 2, expected.shape))


fold = np.ones((6, 600))
for number in range(6):
    fold[number, 40 * number : 40 * number + 40] = 5
fold[2] = fold[1]
genes = count(rng.lognormal(-0.5, 1.3, 600) * fold[types])
fold = np.ones((6, 20))
for number in range(6):
    fold[number, 3 * number : 3 * number + 3] = 10
proteins = count(rng.lognormal(3, 0.6, 20) * fold[types])

rna = anndata.AnnData(csr_matrix(genes.astype(np.float32)))
rna.var_names = [f"gene {number}" for number in range(600)]
prot = anndata.AnnData(proteins.astype(np.float32))
prot.var_names = [f"protein {number}" for number in range(20)]
rna.obs_names = prot.obs_names = ids

# %%
# ``mkclust.scverse.cluster`` works as the functions of ``scanpy.tl`` do: it writes its
# result into the data. Nothing needs to be prepared, and the number of clusters is
# found.

from mkclust import scverse

data = mudata.MuData({"rna": rna, "prot": prot})
model = scverse.cluster(data, "auto")
print(data)

# %%
# The summary says what was done with the counts: genes are scaled to the same total for
# every cell, and become principal components of logarithms; proteins become centered
# log-ratios. ``scale="none"`` turns this off, and ``use_rep={"rna": "X_pca"}`` takes a
# representation of yours.

print(model.summary())

# %%
# The clusters are the types. From genes alone, types 1 and 2 are one, and the cells of
# both are cut at random if six clusters are asked for.

print(pd.crosstab(data.obs["mkclust"].to_numpy(), types, colnames=["type"]))

from mkclust.metrics import adjusted_rand_index

alone = scverse.cluster(rna.copy(), 6)
for name, labels in {
    "genes and proteins": model.labels_,
    "genes": alone.labels_,
}.items():
    print(f"{name:18} adjusted Rand index {adjusted_rand_index(types, labels):.2f}")

# %%
# **How many clusters?** ``suggestion_`` holds what was tried: the clusters for every
# number, and a tree of how they split. ``resolution=`` takes the number with the
# highest modularity instead, as Leiden's resolution does.

import matplotlib.pyplot as plt

from mkclust.plots import ClusterTreeDisplay

print(model.suggestion_.verdict())
for resolution in (0.5, 1.0, 2.0):
    number = model.suggestion_.at_resolution(resolution)
    print(f"resolution {resolution}: {number} clusters")

ClusterTreeDisplay.from_suggestion(model.suggestion_).plot()
plt.show()

# %%
# **A map.** The graph that the clusters were cut from is in ``obsp``, and scanpy takes
# it: for UMAP, and for its own Leiden. Scanpy is not needed: without it we take t-SNE
# of the embedding.

from importlib.util import find_spec

has_scanpy = all(find_spec(name) for name in ("scanpy", "igraph"))
if has_scanpy:
    import scanpy

    scanpy.tl.umap(data, neighbors_key="mkclust")
    places = data.obsm["X_umap"]
else:
    from sklearn.manifold import TSNE

    places = TSNE(random_state=0).fit_transform(data.obsm["X_mkclust"])


def draw(ax, labels, title):
    """Draw the cells of every cluster in a color."""
    for cluster in np.unique(labels):
        ax.scatter(*places[labels == cluster].T, s=4, label=cluster)
    ax.set(xticks=[], yticks=[], title=title)
    ax.legend(markerscale=3)


figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
draw(axes[0], data.obs["mkclust"].to_numpy(), "clusters")
draw(axes[1], types, "types")
plt.show()

# %%
# **Next to Leiden and weighted neighbors.** Here are the usual steps of scanpy, with
# genes alone. Weighted nearest neighbors of genes and proteins are muon's; compiling
# them takes more than a minute, and so they are not run here::
#
#     muon.prot.pp.clr(data["prot"])
#     scanpy.pp.pca(data["prot"], n_comps=15)
#     scanpy.pp.neighbors(data["prot"])  # and data["rna"], as below
#     muon.pp.neighbors(data, key_added="wnn")
#     scanpy.tl.leiden(data, neighbors_key="wnn", flavor="igraph", n_iterations=2)
#
# With scanpy 1.11 and muon 0.1.9, this finds six clusters with an adjusted Rand index
# of 0.99.


def usual_steps(genes):
    """Return the clusters of Leiden at its usual resolution."""
    scanpy.pp.normalize_total(genes)
    scanpy.pp.log1p(genes)
    scanpy.pp.pca(genes)
    scanpy.pp.neighbors(genes)
    scanpy.tl.leiden(genes, flavor="igraph", n_iterations=2, directed=False)
    return genes.obs["leiden"].to_numpy()


labels_of = {"mkclust": model.labels_}
if has_scanpy:
    labels_of["Leiden, genes"] = usual_steps(rna.copy())
for name, labels in labels_of.items():
    score = adjusted_rand_index(types, labels)
    count = len(np.unique(labels))
    print(f"{name:13} {count} clusters, adjusted Rand index {score:.2f}")

# %%
# **Markers.** ``describe`` lists what sets each cluster apart, in genes and proteins.

from mkclust import describe

print(describe(model, scverse.views_of(data), n_features=4).summary())

# %%
# The clusters are in every modality as well, so that scanpy ranks genes at once. It
# wants logarithms, which we make in a copy.

if has_scanpy:
    logarithms = rna.copy()
    scanpy.pp.normalize_total(logarithms)
    scanpy.pp.log1p(logarithms)
    scanpy.tl.rank_genes_groups(logarithms, "mkclust")
    ranked = logarithms.uns["rank_genes_groups"]["names"]
    print(pd.DataFrame(ranked[:4]))

# %%
# **Cells that lack a modality** stay. Here a third of them has no proteins, and types 1
# and 2 can only be told for the others.

some = mudata.MuData({"rna": rna, "prot": prot[:600].copy()})
scverse.cluster(some, model.n_clusters_)
found = some.obs["mkclust"].cat.codes[ids].to_numpy()
for name, cells in {"all": slice(600), "genes only": slice(600, None)}.items():
    score = adjusted_rand_index(types[cells], found[cells])
    print(f"cells with {name:10} adjusted Rand index {score:.2f}")

# %%
# **New cells** are assigned from their counts, by the columns and components that were
# learned.

new = mudata.MuData({"rna": rna[:5].copy(), "prot": prot[:5].copy()})
print(model.predict(scverse.views_of(new)), model.labels_[:5])

# %%
# :doc:`/guides/cells` compares this with Leiden, weighted neighbors and k-means.
