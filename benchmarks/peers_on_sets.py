"""Other packages on the sets of `sets.py`, with the true number of clusters.

    pip install --no-deps snfpy==0.2.2 imml==0.6.0 control==0.10.2 igraph==1.0.0
    pip install --no-deps leidenalg==0.12.0 texttable mofapy2==0.7.5 h5py
    export MKCLUST_DATA=DATA OMP_NUM_THREADS=1
    python benchmarks/peers_on_sets.py --jobs 2

writes ``results/peers.json``: adjusted Rand index and seconds of every contestant on
every set, and means. Families have the seeds 1, 2 and 3. Nothing is tuned, and nobody
sees labels. A contestant that fails on a set has 0 there, and the reason; so has one
that takes longer than `LONGEST` seconds.

`peers.py` says what is done to columns. Leiden cuts the graph of the fifteen nearest
neighbors in the thirty leading principal components of all columns, standardized and
every view of the same weight; its resolution is the one that gives as many clusters as
there are.
"""

import importlib
import signal
import time
import warnings

import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import kneighbors_graph

from mkclust import AgreementKKM
from mkclust.metrics import adjusted_rand_index
from neighborhoods import means, names_of_sets
from peers import PEERS, prepared
from records import JOBS, in_processes, parse, write_record
from sets import load

COMPONENTS, NEIGHBORS, HALVINGS = 30, 15, 40
LONGEST = 300  # seconds


def ours(views, n_clusters, seed):
    """Cluster by the recommended method."""
    return AgreementKKM(n_clusters, random_state=seed).fit(views).labels_


def leiden(views, n_clusters, seed):
    """Cut the graph of neighbors in principal components, into as many as asked for."""
    igraph, leidenalg = map(importlib.import_module, ("igraph", "leidenalg"))
    columns = np.hstack(prepared(views, "balanced"))
    n = len(columns)
    n_components = min(COMPONENTS, *columns.shape)
    points = PCA(n_components, random_state=seed).fit_transform(columns)
    graph = kneighbors_graph(points, min(NEIGHBORS, n - 1))
    links = igraph.Graph(n, list(zip(*(graph + graph.T).nonzero(), strict=True)))
    links.simplify()

    low, high = 1e-4, 1e2
    best = None
    for _ in range(HALVINGS):
        resolution = np.sqrt(low * high)
        partition = leidenalg.find_partition(
            links,
            leidenalg.RBConfigurationVertexPartition,
            resolution_parameter=resolution,
            seed=seed,
        )
        found = np.array(partition.membership)
        distance = abs(len(partition) - n_clusters)
        if best is None or distance < best[0]:
            best = distance, found
        if distance == 0:
            break
        if len(partition) < n_clusters:
            low = resolution
        else:
            high = resolution
    return best[1]


CONTESTANTS = {
    "AgreementKKM": ours,
    **PEERS,
    "Leiden, principal components": leiden,
}


def give_up(number, frame):
    """End a contestant that takes too long."""
    raise TimeoutError(f"took longer than {LONGEST} s")


def run(contestant, name, seed):
    """Return the row of one contestant on one set."""
    warnings.simplefilter("ignore")
    views, y = load(name, seed=seed)
    views = {
        view: rows.toarray() if hasattr(rows, "toarray") else rows
        for view, rows in views.items()
    }
    row = {"contestant": contestant, "disturbed": "as they are"}
    row |= {"set": name, "seed": seed}
    started = time.perf_counter()
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LONGEST)
    try:
        labels = CONTESTANTS[contestant](views, len(np.unique(y)), 0)
    except Exception as error:
        return row | {"ari": 0.0, "refused": f"{type(error).__name__}: {error}"[:200]}
    finally:
        signal.alarm(0)
    known = np.asarray(labels) >= 0
    ari = adjusted_rand_index(y[known], np.asarray(labels)[known])
    seconds = round(time.perf_counter() - started, 2)
    return row | {"ari": round(float(ari), 4), "seconds": seconds}


def main():
    """Run all contestants and write the record."""
    options = parse(__doc__, "peers.json", jobs=JOBS)
    tasks = [(who, *each) for who in CONTESTANTS for each in names_of_sets()]
    rows = sorted(
        in_processes(run, tasks, options.jobs),
        key=lambda row: (row["contestant"], row["set"], row["seed"]),
    )
    write_record(options.out, {"means": means(rows), "rows": rows})


if __name__ == "__main__":
    main()
