"""Cells with counts of genes and proteins, or of genes and peaks, compared with Leiden.

    pip install scanpy muon igraph leidenalg
    python benchmarks/cells.py [--only PART ...] [--share 0.1]

writes ``results/cells.json``, part by part: adjusted Rand index, types found (F1 above
.5 with one of the clusters), seconds with all preparation, and peak memory of every
contestant. All of them know the number of types.

cite            cells of `sets.count_cells`: twelve types, 30 to .5 %, three of which
                differ in proteins only; 3,000, 12,000 and 50,000 cells, one seed each
seeds           3,000 cells each of three more seeds
multiome        3,000 cells with peaks in place of proteins, three seeds
recognized      which views of the sets of `sets.py` are taken for counts, and scores of
                the single-cell sets SNARE and A549 (MKCLUST_DATA)

Contestants: this library from raw counts and from components; Leiden on components of
genes, and of both views side by side; Leiden on the graph of weighted nearest neighbors
(muon); k-means of both views side by side. Components are scanpy's: 50 of log counts.
Proteins are centered log-ratios, and peaks 50 components of tf-idf. The resolution of
Leiden is the one that gives as many clusters as there are types, and only the last cut
counts in its seconds.
"""

import time
import warnings
from importlib.metadata import version

import numpy as np
import scipy.sparse
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD

from mkclust import AgreementKKM
from mkclust.kernels.kinds import RULES, ViewProfile, kind_of
from mkclust.metrics import adjusted_rand_index
from records import measure_parts
from scale import run_alone, status
from sets import FAMILIES, REAL, TOUCHSTONE, count_cells, load

N_TYPES = 12
COMPONENTS, NEIGHBORS, HALVINGS = 50, 15, 14
N_PEAKS = 6000
# Cells on which packages compile their code before the clock starts.
WARM_CELLS = 300
# Cells that are simulated at a time, each time with another seed.
BLOCK = 5000
OTHER_PACKAGES = ("scanpy", "muon", "igraph", "leidenalg")


def simulate(n, seed):
    """Return sparse counts of genes, counts of proteins, and the types of cells."""
    parts = []
    for number, start in enumerate(range(0, n, BLOCK)):
        genes, *others = count_cells(min(BLOCK, n - start), 1000 * seed + number)
        parts.append((scipy.sparse.csr_array(genes), *others))
    genes, proteins, types = zip(*parts, strict=True)
    views = {
        "rna": scipy.sparse.csr_array(scipy.sparse.vstack(genes)),
        "adt": np.vstack(proteins),
    }
    return views, np.concatenate(types)


def simulate_multiome(n, seed):
    """Return sparse counts of genes and of peaks, and the types of cells."""
    views, y = simulate(n, seed)
    tissue = np.random.default_rng(5)
    rng = np.random.default_rng(seed)
    rates = tissue.lognormal(np.log(0.015), 0.8, N_PEAKS)
    effects = np.zeros((N_TYPES, N_PEAKS))
    for of_type in effects:
        of_type[tissue.choice(N_PEAKS, 200, False)] = tissue.normal(2.0, 0.4, 200)
    depths = rng.lognormal(0, 0.4, n)[:, None]
    peaks = rng.poisson(rates * np.exp(effects)[y] * depths).astype(np.float32)
    return {"rna": views["rna"], "atac": scipy.sparse.csr_array(peaks)}, y


def components(counts):
    """Return scanpy's principal components of log counts."""
    import anndata
    import scanpy

    data = anndata.AnnData(scipy.sparse.csr_matrix(counts))
    scanpy.pp.normalize_total(data)
    scanpy.pp.log1p(data)
    scanpy.pp.highly_variable_genes(data, n_top_genes=2000)
    scanpy.pp.pca(data, n_comps=COMPONENTS)
    return data.obsm["X_pca"]


def log_ratios(counts):
    """Return centered log-ratios."""
    logarithms = np.log1p(counts)
    return logarithms - logarithms.mean(axis=1, keepdims=True)


def tf_idf_components(counts):
    """Return components of tf-idf, without the first, which is the depth of a cell."""
    totals = np.asarray(counts.sum(axis=1)).reshape(-1, 1)
    seen = np.asarray((counts > 0).sum(axis=0)).reshape(-1)
    weighted = counts.multiply(1e4 / totals).multiply(len(totals) / np.maximum(seen, 1))
    weighted = scipy.sparse.csr_matrix(weighted)
    weighted.data = np.log1p(weighted.data)
    found = TruncatedSVD(COMPONENTS + 1, random_state=0).fit_transform(weighted)
    return found[:, 1:]


PREPARED = {"rna": components, "adt": log_ratios, "atac": tf_idf_components}


def prepare(views):
    """Return the representations that other contestants start from."""
    return {name: PREPARED[name](view) for name, view in views.items()}


def side_by_side(views):
    """Return representations as one table, each with the same total variance."""
    return np.hstack([x / np.sqrt(x.var(axis=0).sum()) for x in views.values()])


def ours_raw(views):
    return AgreementKKM(N_TYPES, random_state=0).fit(views).labels_, 0.0


def ours_components(views):
    return AgreementKKM(N_TYPES, random_state=0).fit(prepare(views)).labels_, 0.0


def leiden_rna(views):
    return leiden(neighbors_of(components(views["rna"])))


def leiden_both(views):
    return leiden(neighbors_of(side_by_side(prepare(views))))


def leiden_wnn(views):
    import anndata
    import mudata
    import muon
    import scanpy

    parts = {}
    for name, x in prepare(views).items():
        part = anndata.AnnData(x.astype(np.float32))
        part.obsm["X_rep"] = part.X
        scanpy.pp.neighbors(part, use_rep="X_rep", n_neighbors=NEIGHBORS)
        parts[name] = part
    data = mudata.MuData(parts)
    muon.pp.neighbors(data, random_state=0)
    return leiden(data.obsp["connectivities"])


def k_means(views):
    points = side_by_side(prepare(views))
    return KMeans(N_TYPES, n_init=10, random_state=0).fit_predict(points), 0.0


def neighbors_of(points):
    """Return scanpy's graph of neighbors."""
    import anndata
    import scanpy

    data = anndata.AnnData(points.astype(np.float32))
    scanpy.pp.neighbors(data, use_rep="X", n_neighbors=NEIGHBORS)
    return data.obsp["connectivities"]


def leiden(graph):
    """Return as many clusters as there are types, and the seconds of other cuts."""
    import anndata
    import scanpy

    data = anndata.AnnData(np.zeros((graph.shape[0], 1), np.float32))
    graph = scipy.sparse.csr_matrix(graph)
    low, high = 1e-2, 20.0
    best = None
    started = time.perf_counter()
    for _ in range(HALVINGS):
        middle = np.sqrt(low * high)
        last = time.perf_counter()
        scanpy.tl.leiden(data, middle, adjacency=graph, flavor="igraph", n_iterations=2)
        labels = data.obs["leiden"].cat.codes.to_numpy()
        distance = abs(labels.max() + 1 - N_TYPES)
        if best is None or distance < best[0]:
            best = distance, labels
        if distance == 0:
            break
        if labels.max() + 1 < N_TYPES:
            low = middle
        else:
            high = middle
    return best[1], last - started


CONTESTANTS = {
    "ours, raw counts": ours_raw,
    "ours, components": ours_components,
    "Leiden, components of genes": leiden_rna,
    "Leiden, both side by side": leiden_both,
    "Leiden, weighted neighbors": leiden_wnn,
    "k-means, both side by side": k_means,
}
SIMULATED = {"cite": simulate, "multiome": simulate_multiome}


def run_contestant(contestant, kind, n, seed):
    """Return what a contestant finds in simulated cells, in a process of its own."""
    warnings.simplefilter("ignore")
    CONTESTANTS[contestant](SIMULATED[kind](WARM_CELLS, seed)[0])
    views, y = SIMULATED[kind](n, seed)
    held = status("VmRSS")
    started = time.perf_counter()
    labels, other_cuts = CONTESTANTS[contestant](views)
    seconds = time.perf_counter() - started - other_cuts
    return {
        "ari": round(adjusted_rand_index(y, labels), 3),
        "types": types_found(y, labels),
        "clusters": len(np.unique(labels)),
        "seconds": round(seconds, 1),
        "peak_gb": round(status("VmHWM"), 2),
        "data_gb": round(held, 2),
    }


def types_found(y, labels):
    """Return how many types have an F1 above .5 with one of the clusters."""
    clusters, codes = np.unique(labels, return_inverse=True)
    both = np.zeros((N_TYPES, len(clusters)))
    np.add.at(both, (y, codes), 1)
    sizes = both.sum(axis=0) + both.sum(axis=1, keepdims=True)
    return int(np.sum((2 * both / sizes).max(axis=1) > 0.5))


def compare(kind, n, seed):
    """Return what all contestants find in the same cells."""
    found = {}
    for name in CONTESTANTS:
        found[name] = run_alone(
            run_contestant, contestant=name, kind=kind, n=n, seed=seed
        )
        print(kind, n, seed, name, found[name], flush=True)
    return found


def cite(share=1.0):
    """Compare on more and more cells."""
    sizes = [int(share * n) for n in (3_000, 12_000, 50_000)]
    return {str(n): compare("cite", n, 1) for n in sizes}


def seeds(share=1.0):
    """Compare on other cells of the same tissue."""
    return {str(seed): compare("cite", int(3_000 * share), seed) for seed in (2, 3, 4)}


def multiome(share=1.0):
    """Compare on genes and peaks."""
    n = int(3_000 * share)
    return {str(seed): compare("multiome", n, seed) for seed in (1, 2, 3)}


def recognized(share=1.0):
    """Return which views are taken for counts, and scores with and without the rule."""
    taken = []
    for name in (*REAL, *FAMILIES, *TOUCHSTONE):
        for view, rows in load(name)[0].items():
            kind = kind_of(ViewProfile(rows, len(rows))).kind
            if RULES[kind].of_counts:
                taken.append(f"{name}, {view}: {kind}")
    scores = {}
    for name in ("SNARE", "A549"):
        views, y = load(name)
        model = AgreementKKM(len(np.unique(y)), random_state=0).fit(views)
        scores[name] = round(adjusted_rand_index(y, model.labels_), 3)
    return {"views of sets.py taken for counts": taken, "ari": scores}


def measure(part, share):
    """Return what a part measures."""
    return part(share)


if __name__ == "__main__":
    parts = (cite, seeds, multiome, recognized)
    command = "python benchmarks/cells.py"
    others = {name: version(name) for name in OTHER_PACKAGES}
    measure_parts(__doc__, "cells.json", parts, measure, command, **others)
