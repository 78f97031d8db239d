"""What a first answer is worth: kernels by the kind of a view, neighborhoods, and other packages.

    MKCLUST_DATA=DATA OMP_NUM_THREADS=1 python benchmarks/first_answer.py --jobs 15

writes a row for every data set, contestant and seed to ``results/first_answer/rows.jsonl.gz``
beside itself, and ``--table`` prints the means of the rows that are there. Nobody sees labels, and
everybody is told the number of classes and nothing else. A contestant is a way to make kernels
with a method, or one of `peers.PEERS` (what these need is told there).

gaussian          one Gaussian kernel of median width a view, of the rows as they are: the default
                  before views had kinds
dense, histogram, sparse, directions
                  the rule of one kind for every view, whatever it is, where its numbers allow it
auto              the rule of each view's own kind
... + neighbors   the shared neighborhoods of these kernels
auto + noise      one view of twenty normal columns is added
auto + levels     one random categorical column of three levels, one-hot coded, is added

Kernels that come as such have no rules: "gaussian" and "auto" are then these kernels themselves.
Data sets of more than `agreement.LARGEST` samples take part with as many of them.
``agreement`` and ``stability`` are what a choice without labels could go by: the mean debiased
alignment between views, and the mean adjusted Rand index between the clusters of all samples and
those of fits to four fifths of them.
"""

import argparse
import gzip
import json
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

import agreement
from mkclust import METHODS
from mkclust.metrics import adjusted_rand_index, clustering_accuracy, normalized_mutual_info
from mkclust.stack.discretize import discretize
from paper.datasets import load
from peers import PEERS

NAMES = (*agreement.NAMES, "cal-10-substitute")
N_SEEDS, N_RESAMPLED, N_DISTURBED = 10, 3, 3
RULES = ("dense", "histogram", "sparse", "directions")
KERNELS = ("gaussian", *RULES, "auto", "gaussian + neighbors", "auto + neighbors")
FEW = ("gaussian", "auto", "auto + neighbors")
DISTURBED = ("auto + noise", "auto + levels")
COMPARED = ("lkam", "localized-simplemkkm", "simplemkkm", "agreement-kkm", "avg-kkm", "lf-mvc")
# Peers that take minutes from some thousand samples on: they have fewer seeds, or fewer samples.
SLOW_PEERS, FEW_SEEDS, MANY_SAMPLES = ("SNF", "co-", "NEMO"), 1, 600
# Takes hours: not run on that many.
SLOWEST_PEER = "co-training spectral"


def read(name):
    """Return the views of a data set by name or its kernels, and its classes; of some samples."""
    if name == "breast-cancer":
        X, y = load_breast_cancer(return_X_y=True)
        return {"mean": X[:, :10], "error": X[:, 10:20], "worst": X[:, 20:]}, y
    data = load(name)
    rows = np.arange(data.n_samples)
    if len(rows) > agreement.LARGEST:
        rows = np.sort(np.random.default_rng(0).choice(len(rows), agreement.LARGEST, replace=False))
    y = np.asarray(data.y)[rows]
    if data.views:
        return {view: np.asarray(X, dtype=float)[rows] for view, X in data.views.items()}, y
    return np.asarray(data.kernels)[:, rows][:, :, rows], y


def options_of(kernels, data):
    """Return the parameters of a way to make kernels; None where the numbers do not allow it."""
    rule, _, addition = kernels.partition(" + ")
    options = {"neighbors": "auto"} if addition == "neighbors" else {}
    if not isinstance(data, dict):
        return None if rule in RULES else options | {"kernels": "precomputed"}
    if rule in ("histogram", "sparse") and min(view.min() for view in data.values()) < 0:
        return None
    return options | {"kernels": dict.fromkeys(data, rule) if rule in RULES else rule}


def disturb(data, kernels, seed):
    """Return the views with what is added to them."""
    rng, n = np.random.default_rng(seed), len(next(iter(data.values())))
    if kernels.endswith("noise"):
        return data | {"noise": rng.normal(size=(n, 20))}
    return data | {"levels": np.eye(3)[rng.integers(3, size=n)]}


def take(data, rows):
    """Return some of the samples."""
    if isinstance(data, dict):
        return {name: view[rows] for name, view in data.items()}
    return data[:, rows][:, :, rows]


def measure_stability(model, data):
    """Return how alike the clusters of all samples are to those of fits to most of them."""
    n, scores = len(model.labels_), []
    for draw in range(N_RESAMPLED):
        rows = np.sort(np.random.default_rng(draw).choice(n, 4 * n // 5, replace=False))
        again = type(model)(**model.get_params()).fit(take(data, rows))
        scores.append(adjusted_rand_index(model.labels_[rows], again.labels_))
    return float(np.mean(scores))


def run_ours(name, method, kernels):
    """Return the rows of a method on kernels made in one way."""
    data, y = read(name)
    row = {"dataset": name, "kernels": kernels, "method": method, "n_samples": len(y)}
    base = kernels if kernels not in DISTURBED else "auto"
    options, k = options_of(base, data), len(np.unique(y))
    if options is None or (kernels in DISTURBED and not isinstance(data, dict)):
        return []
    if method in ("lkam", "localized-simplemkkm") and "neighbors" in options:
        return []  # their neighborhoods are their own
    rows = []
    for seed in range(N_DISTURBED if kernels in DISTURBED else 1):
        X = disturb(data, kernels, seed) if kernels in DISTURBED else data
        started = time.perf_counter()
        try:
            model = METHODS[method](k, random_state=seed, **options).fit(X)
        except ValueError as error:
            return [row | {"seed": seed, "status": f"failed: {error}"}]
        rows.append(row | {"seed": seed, "seconds": round(time.perf_counter() - started, 3)})
        rows[-1] |= score(y, model.labels_)
        if found := getattr(model, "agreement_", None):
            rows[-1]["set_aside"] = list(found.set_aside)
            C = np.asarray(found.alignments)
            rows[-1]["agreement"] = round(float(C[np.triu_indices(len(C), 1)].mean()), 4)
        if method == "agreement-kkm" and seed == 0 and kernels not in DISTURBED:
            rows[-1]["stability"] = round(measure_stability(model, data), 4)
    if kernels not in DISTURBED:
        # Of a fit, only k-means on the embedding depends on the seed.
        for seed in range(1, N_SEEDS):
            labels = discretize(model.embedding_, k, n_init=10, random_state=seed)[0]
            rows.append(row | {"seed": seed} | score(y, labels))
    return rows


def run_peer(name, peer):
    """Return the rows of another package."""
    data, y = read(name)
    if not isinstance(data, dict):
        return []
    row = {"dataset": name, "kernels": "", "method": peer, "n_samples": len(y)}
    is_large = len(y) > MANY_SAMPLES
    if is_large and peer == SLOWEST_PEER:
        return [row | {"seed": 0, "status": f"not run on more than {MANY_SAMPLES} samples"}]
    is_slow = is_large and peer.startswith(SLOW_PEERS)
    rows = []
    for seed in range(FEW_SEEDS if is_slow else N_SEEDS):
        started = time.perf_counter()
        try:
            labels = PEERS[peer](data, len(np.unique(y)), seed)
        except Exception as error:  # whatever another package raises is a result
            return [row | {"seed": seed, "status": f"failed: {error!r}"[:200]}]
        rows.append(row | {"seed": seed, "seconds": round(time.perf_counter() - started, 3)})
        rows[-1] |= score(y, labels)
    return rows


def score(y, labels):
    """Return what clusters are worth, by the classes."""
    scores = {
        "ari": adjusted_rand_index(y, labels),
        "acc": clustering_accuracy(y, labels),
        "nmi": normalized_mutual_info(y, labels),
    }
    return {name: round(float(value), 4) for name, value in scores.items()} | {"status": "ok"}


def run(name, contestant, kernels):
    """Return the rows of one contestant, warnings left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (
            run_peer(name, contestant) if kernels is None else run_ours(name, contestant, kernels)
        )


def problems(names, contestants):
    """Return data set, contestant and kernels of every problem, those that take long first."""
    if "peers" in contestants:
        slow_first = sorted(PEERS, key=lambda peer: not peer.startswith(SLOW_PEERS))
        yield from ((name, peer, None) for peer in slow_first for name in names)
    for method in COMPARED if "ours" in contestants else ():
        everything = (*KERNELS, *DISTURBED) if method in ("agreement-kkm", "avg-kkm") else FEW
        for kernels in everything:
            yield from ((name, method, kernels) for name in names)


def read_rows(path):
    """Return the rows of a file as a frame."""
    import pandas as pd

    with open_rows(path, "rt") as lines:
        return pd.DataFrame(map(json.loads, lines))


def open_rows(path, mode):
    """Open a file of rows, compressed or not by its name."""
    return gzip.open(path, mode) if path.suffix == ".gz" else path.open(mode)


def mean_scores(rows):
    """Return mean scores by contestant, and by data set."""
    rows = rows[rows.status == "ok"]
    rows = rows.assign(contestant=rows.method + " | " + rows.kernels)
    return rows.groupby(["contestant", "dataset"]).ari.mean().unstack()


def table(path):
    """Print what failed, and mean scores by contestant and by data set."""
    rows = read_rows(path)
    print(rows[rows.status != "ok"][["dataset", "method", "kernels", "status"]].to_string())
    scores = mean_scores(rows)
    print(scores.assign(mean=scores.mean(axis=1)).round(3).to_string())


def main():
    """Run all problems, or print the table of the rows that are there."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--datasets", nargs="*", default=NAMES)
    parser.add_argument("--contestants", nargs="*", default=("ours", "peers"))
    parser.add_argument("--table", action="store_true")
    default = Path(__file__).parent / "results/first_answer/rows.jsonl.gz"
    parser.add_argument("--out", type=Path, default=default)
    options = parser.parse_args()
    if not options.table:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        todo = list(problems(options.datasets, options.contestants))
        with ProcessPoolExecutor(options.jobs) as pool, open_rows(options.out, "at") as lines:
            for done in as_completed([pool.submit(run, *each) for each in todo]):
                for row in done.result():
                    lines.write(json.dumps(row) + "\n")
                lines.flush()
    table(options.out)


if __name__ == "__main__":
    main()
