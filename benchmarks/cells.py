"""Cells with counts of genes and proteins, or of genes and peaks, compared with Leiden.

    pip install igraph
    python benchmarks/cells.py [--only PART ...] [--contestants NAME ...] [--jobs N]

writes what is not there yet into ``results/cells.json``, row by row: adjusted Rand
index, types found (F1 above .5 with one of the clusters), seconds with all preparation,
and peak memory of every contestant. All of them know the number of types. Each runs in
a process of its own with two cores (Linux); ``--jobs`` says how many at once, by
default half as many as there are cores.

cite_3000       cells of `sets.count_cells`: twelve types, 30 to .5 %, three of which
                differ in proteins only
cite_12000, cite_50000
                the same with more cells
seeds           3,000 cells each of four more seeds
multiome        3,000 cells with peaks in place of proteins, two seeds
real            the single-cell sets SNARE and A549 (MKCLUST_DATA), whose tables are no
                counts but components, topics and logarithms
recognized      which views of the sets of `sets.py` are taken for counts
numbers         how many clusters are found if the number is not known, by "auto" and by
                resolutions, on six samples of cells and on the sets of `sets.py`

Contestants: this library from raw counts and from components; Leiden on components of
genes, and of both views side by side; Leiden on weighted nearest neighbors (Hao et al.,
Cell 184, 2021); k-means of both views side by side. Components are the 50 leading ones
of log counts per median total, as scanpy's defaults. Proteins are centered log-ratios,
and peaks 50 components of tf-idf; of real tables, standardized columns and at most 50
components of them. Leiden (igraph) cuts Seurat's graph: the Jaccard index of the lists
of the 20 nearest, if it is above 1 / 15. Its resolution is the one that gives as many
clusters as there are types, and only the last cut counts in its seconds. As in Seurat,
cells that this graph leaves almost alone (clusters of fewer than five) join a cluster
of their nearest cells, and are not counted.
"""

import importlib
import os
import random
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.metadata import version
from pathlib import Path
from queue import SimpleQueue

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler, normalize

from mkclust import AgreementKKM, suggest_n_clusters
from mkclust.datasets import DatasetError
from mkclust.kernels.kinds import RULES, ViewProfile, kind_of
from mkclust.metrics import adjusted_rand_index
from records import parse, read_record, write_record
from scale import run_alone, status
from sets import FAMILIES, REAL, TOUCHSTONE, count_cells, load

N_TYPES = 12
COMPONENTS = 50
# Seurat's numbers: the nearest cells, those of each view that weighted neighbors are
# chosen from, and the least Jaccard index.
NEIGHBORS, CANDIDATES, PRUNED = 20, 200, 1 / 15
# Steps to the resolution of Leiden, and iterations of a cut, as scanpy has them.
HALVINGS, ITERATIONS = 14, 2
# The least cells of a cluster of Leiden; fewer are left over by the bound on the graph.
LEAST = 5
# Seconds of other cuts, by the clock and by all processors.
NO_OTHERS = np.zeros(2)
N_PEAKS = 6000
# Cells that are simulated at a time, each time with another seed.
BLOCK = 5000


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
    """Return principal components of log counts per median total."""
    totals = np.asarray(counts.sum(axis=1)).reshape(-1)
    scaled = scipy.sparse.diags_array(np.median(totals) / totals) @ counts
    logarithms = scipy.sparse.csr_array(scaled)
    logarithms.data = np.log1p(logarithms.data)
    pca = PCA(COMPONENTS, svd_solver="arpack", random_state=0)
    return pca.fit_transform(logarithms)


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


def standardized_components(table):
    """Return standardized columns, or the leading components of many."""
    columns = StandardScaler().fit_transform(table)
    if columns.shape[1] <= COMPONENTS:
        return columns
    return PCA(COMPONENTS, random_state=0).fit_transform(columns)


PREPARED = {"rna": components, "adt": log_ratios, "atac": tf_idf_components}


def prepared(name, view):
    """Return the representation of a view that other contestants start from."""
    return PREPARED.get(name, standardized_components)(view)


def prepare(views):
    """Return the representations of views."""
    return {name: prepared(name, view) for name, view in views.items()}


def side_by_side(views):
    """Return representations as one table, each with the same total variance."""
    return np.hstack([x / np.sqrt(x.var(axis=0).sum()) for x in views.values()])


def ours_raw(views, k):
    return AgreementKKM(k, random_state=0).fit(views).labels_, NO_OTHERS


def ours_components(views, k):
    return AgreementKKM(k, random_state=0).fit(prepare(views)).labels_, NO_OTHERS


def leiden_first(views, k):
    name = "rna" if "rna" in views else next(iter(views))
    return leiden(nearest(prepared(name, views[name]), NEIGHBORS)[1], k)


def leiden_both(views, k):
    return leiden(nearest(side_by_side(prepare(views)), NEIGHBORS)[1], k)


def leiden_weighted(views, k):
    return leiden(weighted_neighbors(list(prepare(views).values())), k)


def k_means(views, k):
    points = side_by_side(prepare(views))
    return KMeans(k, n_init=10, random_state=0).fit_predict(points), NO_OTHERS


def nearest(points, count):
    """Return distances and numbers of the nearest cells, without the cell itself."""
    finder = NearestNeighbors(algorithm="brute").fit(points.astype(np.float32))
    return finder.kneighbors(n_neighbors=count)


def lists_of(near):
    """Return which cells are in whose list, those of a cell with itself."""
    n, count = near.shape
    columns = np.hstack([np.arange(n)[:, None], near]).ravel()
    ends = np.arange(0, columns.size + 1, count + 1)
    return scipy.sparse.csr_array((np.ones(columns.size), columns, ends), (n, n))


def jaccard(near):
    """Return the Jaccard indices of lists, sparse."""
    lists = lists_of(near)
    shared = scipy.sparse.csr_array(lists @ lists.T)
    shared.data /= 2 * (near.shape[1] + 1) - shared.data
    return shared


def shared_lists(near):
    """Return Seurat's graph of shared neighbors."""
    graph = jaccard(near)
    graph.data[graph.data < PRUNED] = 0
    graph.eliminate_zeros()
    return graph


def weighted_neighbors(views):
    """Return the nearest cells by both views, as Seurat's FindMultiModalNeighbors."""
    views = [normalize(view).astype(np.float32) for view in views]
    found = [nearest(view, CANDIDATES) for view in views]
    widths = [
        width_of(view, near[:, :NEIGHBORS])
        for view, (_, near) in zip(views, found, strict=True)
    ]
    firsts = [distances[:, 0] for distances, _ in found]

    ratios = []
    for view, first, width, own in zip(views, firsts, widths, range(2), strict=True):
        predicted = [view[near[:, :NEIGHBORS]].mean(axis=1) for _, near in found]
        alike = [
            affinity(np.linalg.norm(view - each, axis=1), first, width)
            for each in predicted
        ]
        ratios.append(alike[own] / (alike[1 - own] + 1e-4))
    weights = np.exp(np.clip(ratios, 0, 200))
    weights /= weights.sum(axis=0)

    n = len(views[0])
    near = np.empty((n, NEIGHBORS), int)
    for i in range(n):
        candidates = np.union1d(found[0][1][i], found[1][1][i])
        total = np.zeros(len(candidates))
        for view, first, width, weight in zip(
            views, firsts, widths, weights, strict=True
        ):
            distances = np.linalg.norm(view[candidates] - view[i], axis=1)
            total += weight[i] * affinity(distances, first[i], width[i])
        near[i] = candidates[np.argsort(-total, kind="stable")[:NEIGHBORS]]
    return near


def width_of(view, near):
    """Return the mean distance to the cells that share fewest neighbors, of any."""
    shared = jaccard(near)
    widths = np.empty(len(view))
    for i in range(len(view)):
        part = slice(shared.indptr[i], shared.indptr[i + 1])
        fewest = np.argsort(shared.data[part], kind="stable")[:NEIGHBORS]
        others = shared.indices[part][fewest]
        widths[i] = np.linalg.norm(view[others] - view[i], axis=1).mean()
    return widths


def affinity(distances, first, width):
    """Return similarities that fall with the distance beyond the nearest cell."""
    scale = np.maximum(width - first, 1e-12)
    return np.exp(-np.maximum(distances - first, 0) / scale)


def leiden(near, k):
    """Return k clusters by the nearest cells, and the seconds of other cuts."""
    igraph = importlib.import_module("igraph")
    upper = scipy.sparse.triu(shared_lists(near), 1, "coo")
    links = igraph.Graph(len(near), np.column_stack(upper.coords))
    options = {"objective_function": "modularity", "weights": upper.data}
    low, high = 1e-2, 20.0
    best, best_distance = None, np.inf
    started = clocks()
    for _ in range(HALVINGS):
        resolution = np.sqrt(low * high)
        last = clocks()
        random.seed(0)  # igraph draws from it
        found = links.community_leiden(
            resolution=resolution, n_iterations=ITERATIONS, **options
        )
        labels = without_leftovers(np.array(found.membership), near)
        count = len(np.unique(labels))
        if abs(count - k) < best_distance:
            best, best_distance = labels, abs(count - k)
        if count == k:
            break
        if count < k:
            low = resolution
        else:
            high = resolution
    return best, last - started


def without_leftovers(labels, near):
    """Return labels in which tiny clusters join those of their nearest cells."""
    labels = labels.copy()
    is_tiny = np.bincount(labels) < LEAST
    for cell in np.flatnonzero(is_tiny[labels]):
        others = labels[near[cell]]
        others = others[~is_tiny[others]]
        if len(others):
            labels[cell] = np.bincount(others).argmax()
    return labels


CONTESTANTS = {
    "ours, raw counts": ours_raw,
    "Leiden, weighted neighbors": leiden_weighted,
    "Leiden, both side by side": leiden_both,
    "ours, components": ours_components,
    "k-means, both side by side": k_means,
    "Leiden, components of genes": leiden_first,
}
SIMULATED = {"cite": simulate, "multiome": simulate_multiome}
# The cells of each part: kind, or name of a real set, number and seed.
PARTS = {
    "cite_3000": [("cite", 3_000, 1)],
    "cite_12000": [("cite", 12_000, 1)],
    "cite_50000": [("cite", 50_000, 1)],
    "seeds": [("cite", 3_000, seed) for seed in (2, 3, 4, 5)],
    "multiome": [("multiome", 3_000, seed) for seed in (1, 2)],
    "real": [("SNARE", 800, 0), ("A549", 800, 0)],
    "recognized": [],
    "numbers": [],
}
# Cells whose number of types is not known, and resolutions to find it by.
UNKNOWN = [("cite", 3_000, seed) for seed in (1, 2, 3)]
UNKNOWN += [("cite", 1_000, 1), ("cite", 2_500, 7), ("multiome", 3_000, 1)]
RESOLUTIONS = (0.5, 1.0, 2.0)
# Cores of a contestant.
CORES = 2


def clocks():
    """Return the seconds of a clock and those of all processors, to subtract."""
    return np.array([time.perf_counter(), time.process_time()])


def run_contestant(contestant, folder):
    """Return what a contestant finds in cells of a folder, in a process of its own."""
    warnings.simplefilter("ignore")
    folder = Path(folder)
    y = np.load(folder / "types.npy")
    views = {path.stem: read_view(path) for path in sorted(folder.glob("view_*"))}
    views = {name.removeprefix("view_"): view for name, view in views.items()}
    held = status("VmRSS")
    started = clocks()
    labels, other_cuts = CONTESTANTS[contestant](views, len(np.unique(y)))
    seconds, processor_seconds = clocks() - started - other_cuts
    return {
        "ari": round(adjusted_rand_index(y, labels), 3),
        "types": types_found(y, labels),
        "clusters": len(np.unique(labels)),
        "seconds": round(float(seconds), 1),
        "processor_seconds": round(float(processor_seconds), 1),
        "peak_gb": round(status("VmHWM"), 2),
        "data_gb": round(held, 2),
    }


def write_view(folder, name, view):
    """Write a view, sparse or not, into a folder."""
    if scipy.sparse.issparse(view):
        scipy.sparse.save_npz(folder / f"view_{name}.npz", view, compressed=False)
    else:
        np.save(folder / f"view_{name}.npy", view)


def read_view(path):
    """Read a view that `write_view` has written."""
    if path.suffix == ".npz":
        return scipy.sparse.csr_array(scipy.sparse.load_npz(path))
    return np.load(path)


def types_found(y, labels):
    """Return how many types have an F1 above .5 with one of the clusters."""
    clusters, codes = np.unique(labels, return_inverse=True)
    both = np.zeros((y.max() + 1, len(clusters)))
    np.add.at(both, (y, codes), 1)
    sizes = both.sum(axis=0) + both.sum(axis=1, keepdims=True)
    return int(np.sum((2 * both / sizes).max(axis=1) > 0.5))


def write_cells(kind, n, seed, folder):
    """Write the views of cells, and their types, into a folder."""
    folder = Path(folder)
    if kind in SIMULATED:
        views, y = SIMULATED[kind](n, seed)
    else:
        views, y = load(kind)
    np.save(folder / "types.npy", y)
    for name, view in views.items():
        write_view(folder, name, view)


def compare(tasks, jobs):
    """Yield rows as they come, of tasks: cells, and the names of contestants.

    Every contestant has cores of its own, which its process inherits.
    """
    cores = sorted(os.sched_getaffinity(0))
    shares = SimpleQueue()
    for number in range(jobs):
        start = number * CORES % len(cores)
        shares.put(cores[start : start + CORES])

    def take_cores():
        os.sched_setaffinity(0, shares.get())

    with (
        tempfile.TemporaryDirectory() as name,
        ThreadPoolExecutor(jobs, initializer=take_cores) as pool,
    ):
        folders = [Path(name) / str(number) for number in range(len(tasks))]
        for folder in folders:
            folder.mkdir()
        written = [
            pool.submit(
                run_alone, write_cells, kind=kind, n=n, seed=seed, folder=folder
            )
            for ((kind, n, seed), _), folder in zip(tasks, folders, strict=True)
        ]
        for future in written:
            future.result()
        rows = [
            pool.submit(row_of, cells, contestant, folder)
            for (cells, contestants), folder in zip(tasks, folders, strict=True)
            for contestant in contestants
        ]
        for row in as_completed(rows):
            yield row.result()


def row_of(cells, contestant, folder):
    """Return what a contestant finds in the cells of a folder."""
    known = dict(zip(("cells", "n", "seed"), cells, strict=True))
    found = run_alone(run_contestant, contestant=contestant, folder=folder)
    return known | {"contestant": contestant} | found


def recognized():
    """Return which views are taken for counts, and which sets are not there."""
    taken, missing = [], []
    for name in (*REAL, *FAMILIES, *TOUCHSTONE):
        if not is_there(name):
            missing.append(name)
            continue
        for view, rows in load(name)[0].items():
            kind = kind_of(ViewProfile(rows, len(rows))).kind
            if RULES[kind].of_counts:
                taken.append(f"{name}, {view}: {kind}")
    return {"taken for counts": taken, "not there": missing}


def numbers():
    """Return what is found on cells and, on average, on other sets, by every rule."""
    found = {"cells": [], "real": [], "families": []}
    for kind, n, seed in UNKNOWN:
        known = {"cells": kind, "n": n, "seed": seed}
        rules = by_rules(*SIMULATED[kind](n, seed))
        found["cells"] += [known | rule for rule in rules]
    for part, names in {"real": REAL, "families": FAMILIES}.items():
        for name in filter(is_there, names):
            found[part] += by_rules(*load(name, seed=1))
    for part in ("real", "families"):
        frame = pd.DataFrame(found[part])
        means = frame.groupby("rule")["ari"].agg(["mean", "count"]).round(3)
        found[part] = means.to_dict("index")
    return found


def by_rules(views, y):
    """Return the clusters that every rule finds, and how good they are."""
    suggestion = suggest_n_clusters(views)
    chosen = {"auto": suggestion.n_clusters}
    for resolution in RESOLUTIONS:
        chosen[f"resolution {resolution}"] = suggestion.at_resolution(resolution)
    rows = []
    for rule, k in chosen.items():
        labels = suggestion.labels_by_k[k]
        is_known = labels >= 0
        ari = adjusted_rand_index(y[is_known], labels[is_known])
        types = types_found(y[is_known], labels[is_known])
        rows.append({"rule": rule, "clusters": k, "types": types, "ari": round(ari, 3)})
    return rows


def is_there(name):
    """Return whether a set can be read, and say so if not."""
    if name in SIMULATED:
        return True
    try:
        load(name)
    except (DatasetError, KeyError) as error:
        print(f"{name} is skipped: {error}", flush=True)
        return False
    return True


def todo(record, parts, contestants):
    """Return tasks without the rows that a record has, those of most cells first."""
    tasks = []
    for cells in [cells for part in parts for cells in PARTS[part]]:
        there = {
            row["contestant"]
            for row in record["rows"]
            if (row["cells"], row["n"], row["seed"]) == cells
        }
        names = [name for name in contestants if name not in there]
        if names and is_there(cells[0]):
            tasks.append((cells, names))
    return sorted(tasks, key=lambda task: -task[0][1])


def main():
    """Run what is not in the file yet, and write it row by row."""
    only = {"nargs": "*", "choices": PARTS, "default": list(PARTS)}
    names = {"nargs": "*", "choices": CONTESTANTS, "default": list(CONTESTANTS)}
    jobs = {"type": int, "default": max(1, len(os.sched_getaffinity(0)) // CORES)}
    options = parse(__doc__, "cells.json", only=only, contestants=names, jobs=jobs)
    record = {"rows": [], "recognized": None} | read_record(options.out)
    tasks = todo(record, options.only, options.contestants)
    for row in compare(tasks, options.jobs):
        print(row, flush=True)
        record["rows"].append(row)
        write(options.out, record)
    for part in (recognized, numbers):
        if part.__name__ in options.only:
            record[part.__name__] = part()
            write(options.out, record)


def write(path, record):
    """Write the record of this script, its rows in the order of parts."""
    order = list(CONTESTANTS)
    record["rows"].sort(
        key=lambda row: (
            row["cells"],
            row["n"],
            row["seed"],
            order.index(row["contestant"]),
        )
    )
    write_record(path, record, igraph=version("igraph"))


if __name__ == "__main__":
    main()
