"""What many samples cost: features, a cluster, kernels on the fly, kernels in files.

Run ``python benchmarks/scale.py``; it prints what it measures and writes ``results/scale.json``.
Every part runs in a process of its own, so that its peak of memory is its own. Seconds depend on
the machine and on its mood; the ratios are taken within one run.

million   one million samples, three views of which one is noise, k = 20, Nystroem with 200
          landmarks a view: seconds, memory and accuracy, beside those of what the views agree on
growth    the same for 100,000 to one million samples: the exponent of the time
cluster   the same million by ``dask.distributed`` with two worker processes, beside one process
subset    the same model's labels on 5,000 samples, beside the exact solution for these
hdigit    Hdigit (MKCLUST_DATA): Nystroem with 500 landmarks, and kernels on the fly, beside the
          exact solution
files     four kernels of 20,000 samples in a file of 12 GB, streamed: anonymous memory and gap
chunks    weights and labels for other chunks and numbers of threads
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import mkclust
from mkclust import KernelBank, SimpleMKKM
from mkclust.kernels import Nystroem
from mkclust.metrics import adjusted_rand_index, clustering_accuracy
from paper.datasets import load

K = 20
DIMENSIONS = (20, 35, 50)
# How far the clusters of each view are apart; the last view is noise.
STRENGTHS = (1.2, 1.0, 0.0)
ONE_GAUSSIAN = {"widths": (1.0,), "polynomials": (), "linear": None}


def mixture(n):
    """Return three views of n samples from Gaussian mixtures, the last of them noise."""
    rng = np.random.default_rng(0)
    y = rng.integers(K, size=n)
    views = {}
    for name, d, strength in zip(("first", "second", "noise"), DIMENSIONS, STRENGTHS, strict=True):
        views[name] = strength * rng.normal(size=(K, d))[y]
        for start in range(0, n, 1 << 16):
            rows = views[name][start : start + (1 << 16)]
            rows += rng.normal(size=rows.shape)
    return views, y


def model_of_features(landmarks=200):
    """Return the estimator that all parts fit."""
    return SimpleMKKM(K, approximation=Nystroem(n_components=landmarks), random_state=0)


def status(field):
    """Return a field of this process's status in GB, such as its peak of resident memory."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024 / 1e9
    raise KeyError(field)


def timed_fit(model, X):
    """Fit a model and return the seconds it took."""
    started = time.perf_counter()
    model.fit(X)
    return time.perf_counter() - started


def report_of(model, y):
    """Return what is reported of every fit."""
    return {
        "acc": clustering_accuracy(y, np.asarray(model.labels_)),
        "agreement_acc": clustering_accuracy(y, np.asarray(model.baseline_labels_)),
        "weights": model.weights_.tolist(),
        "alignments": model.alignments_.tolist(),
        "relative_gap": model.duality_gap_,
        "approximation_error": np.asarray(model.approximation_error_).tolist(),
    }


def million(n=1_000_000):
    """Fit one million samples in this process."""
    views, y = mixture(n)
    before = status("VmHWM")
    model = model_of_features()
    seconds = timed_fit(model, views)
    memory = {"peak_gb": status("VmHWM"), "peak_before_gb": before}
    return {"n_samples": n, "seconds": seconds} | memory | report_of(model, y)


def growth():
    """Fit more and more samples."""
    rows = [run_alone("million", n=n) for n in (100_000, 200_000, 500_000, 1_000_000)]
    seconds = [row["seconds"] for row in rows]
    exponent = np.log(seconds[-1] / seconds[0]) / np.log(10)
    return {"n_samples": [r["n_samples"] for r in rows], "seconds": seconds, "exponent": exponent}


def cluster(n=1_000_000, chunk=50_000):
    """Fit the same samples by two worker processes, which read their own chunks of files."""
    from dask.distributed import Client, LocalCluster

    with tempfile.TemporaryDirectory() as folder:
        views, y = mixture(n)
        paths = {name: Path(folder) / f"{name}.npy" for name in views}
        for name, path in paths.items():
            np.save(path, views[name])
        alone = model_of_features()
        seconds = timed_fit(alone, views)
        del views
        # Forked from this process, the workers would begin with its memory.
        workers = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
        with LocalCluster(**workers, dashboard_address=None) as local, Client(local) as client:
            lazy = {name: chunks_of(path, chunk) for name, path in paths.items()}
            model = model_of_features()
            started = time.perf_counter()
            model.fit(lazy)
            labels = model.labels_
            shared = time.perf_counter() - started
            peaks = list(client.run(status, "VmHWM").values())
    return {
        "n_samples": n,
        "chunk": chunk,
        "seconds": shared,
        "ratio_to_one_process": shared / seconds,
        "worker_peaks_gb": peaks,
        "weights_differ_by": float(np.abs(model.weights_ - alone.weights_).max()),
        "labels_agree_ari": adjusted_rand_index(labels, alone.labels_),
        "acc": clustering_accuracy(y, labels),
    }


def chunks_of(path, chunk):
    """Return a file's array as a dask array whose chunks are read by whoever needs them."""
    import dask.array as da

    shape = np.load(path, mmap_mode="r").shape
    starts = range(0, shape[0], chunk)
    heights = tuple(min(chunk, shape[0] - start) for start in starts)
    return da.map_blocks(
        read_rows, path=str(path), chunk=chunk, chunks=(heights, (shape[1],)), dtype=np.float64
    )


def read_rows(path, chunk, block_info=None):
    """Read one chunk of a file."""
    start, stop = block_info[None]["array-location"][0]
    return np.load(path, mmap_mode="r")[start:stop]


def subset(n=1_000_000, part=5_000):
    """Compare the million's labels of some samples with the exact solution for these."""
    views, y = mixture(n)
    model = model_of_features().fit(views)
    chosen = np.sort(np.random.default_rng(1).choice(n, part, replace=False))
    few = {name: view[chosen] for name, view in views.items()}
    exact = SimpleMKKM(K, random_state=0).fit(few)
    return {
        "n_samples": part,
        "acc_of_features": clustering_accuracy(y[chosen], model.labels_[chosen]),
        "acc_of_features_of_the_subset": clustering_accuracy(
            y[chosen], model_of_features().fit(few).labels_
        ),
        "acc_exact": clustering_accuracy(y[chosen], exact.labels_),
        "agreement_acc_exact": clustering_accuracy(y[chosen], exact.baseline_labels_),
        "weights_exact": exact.weights_.tolist(),
    }


def hdigit():
    """Compare features and kernels on the fly with the exact solution of real data."""
    if not os.environ.get("MKCLUST_DATA"):
        return {"skipped": "MKCLUST_DATA is not set"}
    data = load("hdigit")
    exact = SimpleMKKM(10, random_state=0)
    fast = SimpleMKKM(10, approximation=Nystroem(n_components=500), random_state=0)
    fly = SimpleMKKM(10, kernels=KernelBank(**ONE_GAUSSIAN, on_the_fly=True), random_state=0)
    seconds = {name: [] for name in ("exact", "features", "on_the_fly")}
    for _ in range(3):
        for name, model in (("features", fast), ("exact", exact)):
            seconds[name].append(timed_fit(model, data.views))
    seconds["on_the_fly"].append(timed_fit(fly, data.views))
    typical = {name: float(np.median(values)) for name, values in seconds.items()}
    at_default, acc = difference(fly, exact), clustering_accuracy(data.y, exact.labels_)
    # The minimum is flat: weights are known to about the root of the gap.
    for model in (fly, exact):
        model.set_params(tol=1e-10).fit(data.views)
    return {
        "seconds": typical,
        "times_faster": typical["exact"] / typical["features"],
        "acc_exact": acc,
        "acc_of_features": clustering_accuracy(data.y, fast.labels_),
        "acc_of_features_by_seed": [
            clustering_accuracy(data.y, fast.set_params(random_state=seed).fit(data.views).labels_)
            for seed in range(1, 4)
        ],
        "approximation_error": fast.approximation_error_.tolist(),
        "on_the_fly_apart": {"tol 1e-6": at_default, "tol 1e-10": difference(fly, exact)},
    }


def difference(one, other):
    """Return how far two solutions of the same problem are apart."""
    common = np.square(one.embedding_.T @ other.embedding_).sum()
    return {
        "objective_relative": abs(one.objective_ / other.objective_ - 1),
        "weights": float(np.abs(one.weights_ - other.weights_).max()),
        "projector": float(np.sqrt(max(one.n_clusters - common, 0))),
        "labels_ari": adjusted_rand_index(one.labels_, other.labels_),
        "gaps": [one.duality_gap_, other.duality_gap_],
    }


def files(n=20_000, m=4, k=10):
    """Stream kernels from a file that is larger than the memory allowed."""
    rng = np.random.default_rng(0)
    y = rng.integers(k, size=n)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels.npy"
        kernels = np.lib.format.open_memmap(path, "w+", np.float64, (m, n, n))
        for p in range(m):
            view = rng.normal(size=(k, 20 + 5 * p))[y] * (p < m - 1)
            view += rng.normal(size=view.shape)
            source = KernelBank(**ONE_GAUSSIAN, on_the_fly=True).fit_transform(view)
            for start in range(0, n, 1000):
                kernels[p, start : start + 1000] = source.rows(start, start + 1000)[0]
        kernels.flush()
        size = kernels.nbytes / 1e9
        del kernels
        return {"file_gb": size} | run_alone("solve_file", path=str(path), k=k)


def solve_file(path, k):
    """Solve the kernels of a file, watching the memory that is not the page cache's."""
    peak, done = [0.0], threading.Event()

    def watch():
        while not done.wait(0.02):
            peak[0] = max(peak[0], status("RssAnon"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    model = SimpleMKKM(k, random_state=0)
    try:
        seconds = timed_fit(model, np.load(path, mmap_mode="r"))
    finally:
        done.set()
        watcher.join()
    return {
        "anonymous_peak_gb": peak[0],
        "seconds": seconds,
        "passes": model.n_passes_,
        "relative_gap": model.duality_gap_,
        "weights": model.weights_.tolist(),
        "alignments": model.alignments_.tolist(),
    }


def chunks(n=100_000):
    """Return how far weights differ between chunks, and between numbers of workers."""
    import dask
    import dask.array as da

    views, _ = mixture(n)
    reference = model_of_features().fit(views)
    found = {}
    rng = np.random.default_rng(0)
    ways = {"one chunk": n, "7,000 rows": 7_000, "uneven": uneven(rng, n), "1,000 rows": 1_000}
    for name, rows in ways.items():
        lazy = {view: da.from_array(v, chunks=(rows, -1)) for view, v in views.items()}
        for threads in (1, 4):
            with dask.config.set(scheduler="threads", num_workers=threads):
                model = model_of_features().fit(lazy)
            found[f"{name}, {threads} threads"] = {
                "weights_differ_by": float(np.abs(model.weights_ - reference.weights_).max()),
                "labels_agree_ari": adjusted_rand_index(model.labels_, reference.labels_),
            }
    return found


def uneven(rng, n):
    """Return chunks of random heights."""
    cuts = np.sort(rng.choice(np.arange(1, n), 12, replace=False))
    return tuple(np.diff([0, *cuts, n]).tolist())


def run_alone(part, **options):
    """Run a part in a process of its own and return what it found."""
    command = [sys.executable, __file__, "--part", part, "--options", json.dumps(options)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


PARTS = ("million", "growth", "cluster", "subset", "hdigit", "files", "chunks")


def main():
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--options", type=json.loads, default={}, help=argparse.SUPPRESS)
    out = Path(__file__).parent / "results" / "scale.json"
    parser.add_argument("--out", type=Path, default=out)
    options = parser.parse_args()
    if options.part:
        print(json.dumps(globals()[options.part](**options.options)))
        return
    record = json.loads(options.out.read_text()) if options.out.exists() else {"parts": {}}
    for part in options.only:
        record["parts"][part] = run_alone(part)
        print(part, json.dumps(record["parts"][part], indent=2))
        record |= {
            "command": "python benchmarks/scale.py [--only PART ...]",
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "versions": {"mkclust": mkclust.__version__, "numpy": np.__version__},
        }
        options.out.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
