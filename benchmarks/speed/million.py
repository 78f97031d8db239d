"""One million samples by features, beside what one writes with scikit-learn alone.

Run ``python benchmarks/speed/million.py``; it prints what it measures and writes ``million.json``
beside itself. Every figure is taken in a process of its own, for the peak of its memory, and the
ways take turns, with pauses, so that their ratios are comparable; the seconds themselves depend on
the machine and its load. ``--n-samples 100000`` is a small run.

ours        ``SimpleMKKM(20, approximation=Nystroem(200))`` fitted on three views
plain       scikit-learn's ``Nystroem(200)`` of every view with the same width, one
            eigendecomposition of the products of all features, and ``KMeans(20, n_init=10)`` of the
            rows, scaled to unit length
sampled     the same with a k-means that learns from 50,000 rows
parquet     ours for ten million samples in three parquet files that were written before, read as
            ``mkclust.datasets.load`` gives them; only if ``--parquet`` asks for it
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.kernel_approximation import Nystroem as PlainNystroem
from sklearn.preprocessing import normalize

from mkclust.datasets import load
from mkclust.kernels import Nystroem
from mkclust.metrics import clustering_accuracy

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from records import read_record, write_record  # noqa: E402
from scale import DIMENSIONS, STRENGTHS, K, features, mixture, status  # noqa: E402

LANDMARKS = 200
SAMPLE_ROWS = 50_000
GROUP_ROWS = 65_536
WAYS = ("ours", "plain", "sampled")


def cluster(views):
    """Return the labels of the library's model, and its own account of the time."""
    started = time.perf_counter()
    model = features(K, LANDMARKS).fit(views)
    phases = {"features": model.kernel_seconds_, "solve": model.solve_seconds_}
    phases["labels"] = time.perf_counter() - started - sum(phases.values())
    return model.labels_, phases


def cluster_plainly(views, gammas, sample_rows):
    """Return clusters by scikit-learn alone, in float64 as its own defaults have it, and times."""
    times = [time.perf_counter()]
    n = len(next(iter(views.values())))
    columns = np.empty((n, LANDMARKS * len(views)))  # filled view by view, less than np.hstack
    for p, (view, gamma) in enumerate(zip(views.values(), gammas, strict=True)):
        plain = PlainNystroem(gamma=gamma, n_components=LANDMARKS, random_state=p)
        columns[:, p * LANDMARKS : (p + 1) * LANDMARKS] = plain.fit_transform(view)
    times.append(time.perf_counter())
    vectors = np.linalg.eigh(columns.T @ columns)[1]
    times.append(time.perf_counter())
    rows = normalize(columns @ vectors[:, -K:])
    del columns
    times.append(time.perf_counter())
    drawn = np.random.default_rng(0).choice(n, min(n, sample_rows), replace=False)
    k_means = KMeans(K, n_init=10, random_state=0).fit(rows if len(drawn) == n else rows[drawn])
    labels = k_means.labels_ if len(drawn) == n else k_means.predict(rows)
    times.append(time.perf_counter())
    names = ("features", "products", "rows", "k-means")
    return labels, dict(zip(names, np.diff(times).tolist(), strict=True))


def measured(y, work, *arguments):
    """Return what a way takes, and how near its clusters are to the classes."""
    before, started, processor = status("VmHWM"), time.perf_counter(), time.process_time()
    labels, phases = work(*arguments)
    return {
        "seconds": time.perf_counter() - started,
        "seconds_of_processor": time.process_time() - processor,
        "peak_gb": status("VmHWM"),
        "peak_before_gb": before,
        "phases": phases,
        "load": os.getloadavg()[0],  # more than there are cores if others compute, too
        "acc": clustering_accuracy(y, np.asarray(labels)),
    }


def run(way, n):
    """Run one way in this process; the widths of the plain ones are known beforehand."""
    views, y = mixture(n)
    data = {"data_gb": sum(view.nbytes for view in views.values()) / 1e9}
    if way == "ours":
        return data | measured(y, cluster, views)
    medians = [Nystroem(1, random_state=0).fit(view[:20_000]).median_ for view in views.values()]
    gammas = [0.5 / median**2 for median in medians]
    rows = n if way == "plain" else SAMPLE_ROWS
    return data | measured(y, cluster_plainly, views, gammas, rows)


def write_files(n, folder):
    """Write three views of n samples into parquet files, some rows at a time, and the classes."""
    import pyarrow as pa
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    y = rng.integers(K, size=n)
    np.save(folder / "classes.npy", y)
    for name, d, strength in zip(("first", "second", "noise"), DIMENSIONS, STRENGTHS, strict=True):
        centers = strength * rng.normal(size=(K, d))
        schema = pa.schema([(f"{name} {j}", pa.float32()) for j in range(d)])
        options = {"compression": None, "use_dictionary": False}
        with pyarrow.parquet.ParquetWriter(folder / f"{name}.parquet", schema, **options) as file:
            for start in range(0, n, GROUP_ROWS):
                classes = y[start : start + GROUP_ROWS]
                rows = centers[classes] + rng.standard_normal((len(classes), d), np.float32)
                file.write_table(pa.table(list(rows.T.astype(np.float32)), schema=schema))


def fit_files(folder):
    """Fit the parquet files of a folder in this process."""
    paths = [folder / f"{name}.parquet" for name in ("first", "second", "noise")]
    views = {path.stem: load(path, on_disk=True).views[path.stem] for path in paths}
    y = np.load(folder / "classes.npy")
    files = {"files_gb": sum(path.stat().st_size for path in paths) / 1e9, "n_samples": len(y)}
    return measured(y, cluster, views) | files


def run_alone(*arguments):
    """Run this file in a process of its own and return what it printed."""
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    print(arguments[1], done.stdout, flush=True)
    return json.loads(done.stdout)


def compare(n, repeats, pause):
    """Return all figures of all ways, in turns, and the ratios of their medians."""
    runs = {way: [] for way in WAYS}
    for _ in range(repeats):
        for way in WAYS:
            time.sleep(pause)
            runs[way].append(run_alone("--way", way, "--n-samples", n))
    frame = pd.concat({way: pd.DataFrame(own) for way, own in runs.items()}, names=["way"])
    figures = frame[["seconds", "seconds_of_processor"]].groupby("way")
    seconds, processor = (figures.median()[column] for column in figures.median())
    spread = {way: [own["seconds"].min(), own["seconds"].max()] for way, own in figures}
    found = {"n_samples": n, "seconds": seconds.to_dict(), "spread": spread}
    for other in WAYS[1:]:
        found[f"ratio_to_{other}"] = seconds["ours"] / seconds[other]
        # If others compute, too, this depends less on them.
        ratio = processor["ours"] / processor[other]
        found[f"ratio_to_{other}_of_processor_seconds"] = ratio
    return found | {
        "peak_gb": frame.loc["ours", "peak_gb"].max(),
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
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way or options.folder:
        found = run(options.way, options.n_samples) if options.way else fit_files(options.folder)
        print(json.dumps(found))
        return
    record = read_record(options.out)
    if options.parquet:
        with tempfile.TemporaryDirectory() as folder:
            write_files(options.parquet, Path(folder))
            record["parquet"] = run_alone("--folder", folder)
    else:
        record["million"] = compare(options.n_samples, options.repeats, options.pause)
    command = "python benchmarks/speed/million.py, and with --parquet 10000000"
    write_record(options.out, record, command)


if __name__ == "__main__":
    main()
