"""One million samples by features, beside what one writes with scikit-learn alone.

Run ``python benchmarks/speed/million.py``; it prints what it measures and writes ``million.json``
beside itself. Every figure is taken in a process of its own, for the peak of its memory, and the
roads take turns, with pauses, so that their ratios are comparable; the seconds themselves depend on
the machine and on its mood. ``--n-samples 100000`` is a small run.

ours        ``SimpleMKKM(20, approximation=Nystroem(200))`` fitted on three views
plain       scikit-learn's ``Nystroem(200)`` of every view with the same width, one
            eigendecomposition of the products of all features, and ``KMeans(20, n_init=10)`` of the
            rows, scaled to unit length
sampled     the same with a k-means that learns from 50,000 rows
parquet     ours for ten million samples in three parquet files that were written before, read as
            ``mkclust.datasets.load`` gives them; only where ``--parquet`` asks for it
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import sklearn
from sklearn.cluster import KMeans
from sklearn.kernel_approximation import Nystroem as PlainNystroem
from sklearn.preprocessing import normalize

import mkclust
from mkclust import SimpleMKKM
from mkclust.datasets import load
from mkclust.kernels import Nystroem
from mkclust.metrics import clustering_accuracy

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from scale import DIMENSIONS, STRENGTHS, K, mixture, status  # noqa: E402

LANDMARKS = 200
SAMPLE_ROWS = 50_000
GROUP_ROWS = 65_536


def cluster_plainly(views, gammas, laps, *, sample_rows=None):
    """Return clusters by scikit-learn alone, in float64 as its own defaults have it."""
    n, width = len(next(iter(views.values()))), LANDMARKS * len(views)
    features = np.empty((n, width))  # filled view by view, which takes less than np.hstack
    for p, (view, gamma) in enumerate(zip(views.values(), gammas, strict=True)):
        map_ = PlainNystroem(gamma=gamma, n_components=LANDMARKS, random_state=p)
        features[:, p * LANDMARKS : (p + 1) * LANDMARKS] = map_.fit_transform(view)
    laps("features")
    vectors = np.linalg.eigh(features.T @ features)[1]
    laps("products")
    rows = normalize(features @ vectors[:, -K:])
    del features
    laps("rows")
    k_means = KMeans(K, n_init=10, random_state=0)
    if sample_rows is None or n <= sample_rows:
        labels = k_means.fit(rows).labels_
    else:
        drawn = np.random.default_rng(0).choice(n, sample_rows, replace=False)
        labels = k_means.fit(rows[drawn]).predict(rows)
    laps("k-means")
    return labels


class Laps:
    """Seconds by the name of what took them."""

    def __init__(self):
        self.seconds, self.last = {}, time.perf_counter()

    def __call__(self, name):
        now = time.perf_counter()
        self.seconds[name], self.last = now - self.last, now


def ours(n):
    """Fit the library's model."""
    views, y = mixture(n)
    return measured(views, lambda laps: fitted(views, laps)) | {"data_gb": gigabytes(views)}, y


def fitted(views, laps):
    """Return a fitted model's labels, with its own account of the time."""
    model = SimpleMKKM(K, approximation=Nystroem(LANDMARKS), random_state=0).fit(views)
    laps("all")
    laps.seconds |= {"features": model.kernel_seconds_, "solve": model.solve_seconds_}
    laps.seconds["labels"] = laps.seconds.pop("all") - model.kernel_seconds_ - model.solve_seconds_
    return model.labels_


def plain(n, sample_rows=None):
    """Do the same with scikit-learn alone; its widths are known beforehand."""
    views, y = mixture(n)
    medians = [Nystroem(1, random_state=0).fit(view[:20_000]).median_ for view in views.values()]
    gammas = [0.5 / median**2 for median in medians]
    run = measured(
        views, lambda laps: cluster_plainly(views, gammas, laps, sample_rows=sample_rows)
    )
    return run, y


def sampled(n):
    """Do the same with a k-means that learns from some rows."""
    return plain(n, SAMPLE_ROWS)


def measured(views, cluster):
    """Return what a road takes, and its labels."""
    before, laps = status("VmHWM"), Laps()
    started, of_processor = time.perf_counter(), time.process_time()
    labels = cluster(laps)
    return {
        "seconds": time.perf_counter() - started,
        "seconds_of_processor": time.process_time() - of_processor,
        "peak_gb": status("VmHWM"),
        "peak_before_gb": before,
        "phases": laps.seconds,
        "load": os.getloadavg()[0],  # more than there are cores where others compute, too
        "labels": labels,
    }


def gigabytes(views):
    """Return what views take in memory."""
    return sum(view.nbytes for view in views.values()) / 1e9


ROADS = {"ours": ours, "plain": plain, "sampled": sampled}


def run_road(name, n):
    """Run one road in this process and return its figures."""
    run, y = ROADS[name](n)
    return run | {"labels": None, "acc": clustering_accuracy(y, np.asarray(run["labels"]))}


def write_files(n, folder):
    """Write three views of n samples into parquet files, some rows at a time, and the classes."""
    import pyarrow as pa
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    y = rng.integers(K, size=n)
    np.save(Path(folder) / "classes.npy", y)
    for name, d, strength in zip(("first", "second", "noise"), DIMENSIONS, STRENGTHS, strict=True):
        centers = strength * rng.normal(size=(K, d))
        schema = pa.schema([(f"{name} {j}", pa.float32()) for j in range(d)])
        path = Path(folder) / f"{name}.parquet"
        with pyarrow.parquet.ParquetWriter(
            path, schema, compression=None, use_dictionary=False
        ) as file:
            for start in range(0, n, GROUP_ROWS):
                classes = y[start : start + GROUP_ROWS]
                rows = centers[classes] + rng.standard_normal((len(classes), d), np.float32)
                columns = list(rows.T.astype(np.float32))
                file.write_table(pa.table(columns, schema=schema))


def fit_files(folder):
    """Fit the parquet files of a folder in this process."""
    paths = [Path(folder) / f"{name}.parquet" for name in ("first", "second", "noise")]
    views = {path.stem: load(path, on_disk=True).views[path.stem] for path in paths}
    y = np.load(Path(folder) / "classes.npy")
    run = measured(views, lambda laps: fitted(views, laps))
    run["acc"] = clustering_accuracy(y, np.asarray(run["labels"]))
    files = {"files_gb": sum(path.stat().st_size for path in paths) / 1e9, "n_samples": len(y)}
    return run | files | {"labels": None}


def run_alone(*arguments):
    """Run this file in a process of its own and return what it printed."""
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return {k: v for k, v in json.loads(done.stdout).items() if k != "labels"}


def compare(n, repeats, pause):
    """Return all figures of all roads, in turns, and the ratios of their medians."""
    runs = {name: [] for name in ROADS}
    for _ in range(repeats):
        for name, of_road in runs.items():
            time.sleep(pause)
            of_road.append(run_alone("--road", name, "--n-samples", n))
            print(name, json.dumps(of_road[-1]), flush=True)
    seconds = {name: [run["seconds"] for run in of_road] for name, of_road in runs.items()}
    median = {name: float(np.median(values)) for name, values in seconds.items()}
    # Where others compute, too, these depend less on them.
    processor = {
        name: float(np.median([run["seconds_of_processor"] for run in of_road]))
        for name, of_road in runs.items()
    }
    peak = max(run["peak_gb"] for run in runs["ours"])
    return {
        "n_samples": n,
        "seconds": median,
        "spread": {name: [min(values), max(values)] for name, values in seconds.items()},
        "ratio_to_plain": median["ours"] / median["plain"],
        "ratio_to_sampled": median["ours"] / median["sampled"],
        "ratio_to_plain_of_processor_seconds": processor["ours"] / processor["plain"],
        "ratio_to_sampled_of_processor_seconds": processor["ours"] / processor["sampled"],
        "peak_gb": peak,
        "peak_allowed_gb": 1.3 * runs["ours"][0]["data_gb"] + 1,
        "runs": runs,
    }


def main():
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-samples", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--pause", type=float, default=5.0, help="seconds between two runs")
    parser.add_argument("--parquet", type=int, metavar="N", help="fit N samples in parquet files")
    parser.add_argument("--out", type=Path, default=HERE / "million.json")
    parser.add_argument("--road", choices=ROADS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.road or options.folder:
        road, n = options.road, options.n_samples
        print(json.dumps(fit_files(options.folder) if options.folder else run_road(road, n)))
        return
    record = json.loads(options.out.read_text()) if options.out.exists() else {}
    if options.parquet:
        with tempfile.TemporaryDirectory() as folder:
            write_files(options.parquet, folder)
            record["parquet"] = run_alone("--folder", folder)
        print(json.dumps(record["parquet"], indent=2))
    else:
        record["million"] = compare(options.n_samples, options.repeats, options.pause)
        print(json.dumps(record["million"], indent=2))
    record |= {
        "command": "python benchmarks/speed/million.py, and with --parquet 10000000",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": {
            "mkclust": mkclust.__version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
    }
    options.out.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
