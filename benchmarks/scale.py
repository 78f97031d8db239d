"""The cost of many samples: features, a cluster, files of kernels, sparse views.

    MKCLUST_DATA=DATA taskset -c 0,1 python benchmarks/scale.py [--only PART ...]

prints what it measures on two cores, and writes ``results/scale.json``, part by part.
Every fit runs in a process of its own, so that its peak of memory is its own.
``--share`` tries the parts on fewer samples. A part whose packages are not there is
left out.

million         one million samples, three views of which one is noise, Nystroem, 200
                landmarks
growth          the same for 100,000 to one million samples: the exponent of the time
compared        the same million compared with scikit-learn alone, in turns: its
                ``Nystroem(200)`` of every view with the same width, one
                eigendecomposition of the products of all features, and ``KMeans(20,
                n_init=10)`` of the rows with unit length
ten_million     ten million samples in three files of arrays, as memory maps
cluster         the same million by ``dask.distributed`` with two worker processes
hdigit          Hdigit (MKCLUST_DATA), every second sample: features, and kernels on
                the fly, compared with the exact kernels
files           four kernels of 20,000 samples in a file of 12 GB, streamed
sparse          100,000 samples with a sparse view of 50,000 columns and a dense one
neighborhoods   shared neighborhoods of 50,000 samples, compared with features
any_number      the recommended method, AgreementKKM, on 200,000 samples
any_million     the same on one million
wide            a compressed CSV file of 5,000 x 20,000, clustered by the command line
"""

import importlib
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import numpy as np
import pandas as pd
import scipy.sparse
import sklearn.kernel_approximation
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

import mkclust
from mkclust import KernelBank, SimpleMKKM
from mkclust.data import as_dask
from mkclust.kernels import Nystroem
from mkclust.metrics import adjusted_rand_index
from paper.datasets import load
from records import ONE_GAUSSIAN, blobs, measure_parts

# The dimensions of the three views of the million, and how far its clusters are apart
# in each.
DIMENSIONS, STRENGTHS = (20, 35, 50), (1.2, 1.0, 0.0)
K = 20


def features(k=K, landmarks=200, method="SimpleMKKM"):
    """Return an estimator that approximates its kernels."""
    return getattr(mkclust, method)(
        k, approximation=Nystroem(landmarks), random_state=0
    )


def status(field):
    """Return a field of this process's status in GB, such as its peak of resident
    memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return (
        next(int(each.split()[1]) for each in lines if each.startswith(field))
        * 1024
        / 1e9
    )


def measured(model, X, y):
    """Fit a model, and return what it took and how near its clusters are to the
    classes."""
    before, started, processor = (
        status("VmHWM"),
        time.perf_counter(),
        time.process_time(),
    )
    model.fit(X)
    return {
        "n_samples": len(y),
        "seconds": round(time.perf_counter() - started, 2),
        "processor_seconds": round(time.process_time() - processor, 2),
        "peak_gb": round(status("VmHWM"), 2),
        "peak_before_gb": round(before, 2),
        "ari": round(adjusted_rand_index(y, np.asarray(model.labels_)), 3),
    }


def million(n=1_000_000):
    """Fit one million samples."""
    return measured(features(), *blobs(n, K, DIMENSIONS, STRENGTHS))


def growth(n=1_000_000):
    """Fit more and more samples."""
    rows = [run_alone(million, n=n // part) for part in (10, 5, 2, 1)]
    found = {name: [row[name] for row in rows] for name in ("n_samples", "seconds")}
    return found | {
        "exponent": float(np.log10(rows[-1]["seconds"] / rows[0]["seconds"]))
    }


class Plain:
    """Scikit-learn alone, in float64 as its own defaults have it, with our widths."""

    def fit(self, views):
        n, d = len(next(iter(views.values()))), 200
        # Filled view by view: less memory than np.hstack.
        columns = np.empty((n, d * len(views)))
        for p, view in enumerate(views.values()):
            median = Nystroem(1, random_state=0).fit(view[:20_000]).median_
            options = {"gamma": 0.5 / median**2, "n_components": d, "random_state": p}
            plain = sklearn.kernel_approximation.Nystroem(**options)
            columns[:, p * d : (p + 1) * d] = plain.fit_transform(view)
        vectors = np.linalg.eigh(columns.T @ columns)[1]
        rows = normalize(columns @ vectors[:, -K:])
        del columns
        self.labels_ = KMeans(K, n_init=10, random_state=0).fit_predict(rows)


def fit_plain(n):
    """Fit scikit-learn alone to one million samples."""
    return measured(Plain(), *blobs(n, K, DIMENSIONS, STRENGTHS))


def compared(n=1_000_000):
    """Compare the fit of a million samples with scikit-learn alone, in turns."""
    works = (million, fit_plain)
    turns = [{work.__name__: run_alone(work, n=n) for work in works} for _ in range(2)]
    ratios = [
        turn["million"]["seconds"] / turn["fit_plain"]["seconds"] for turn in turns
    ]
    return {"ratio": float(np.median(ratios)), "runs": turns}


def ten_million(n=10_000_000):
    """Write three views into files, and fit them."""
    rng = np.random.default_rng(0)
    y = rng.integers(K, size=n)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "classes.npy", y)
        for p, (d, strength) in enumerate(zip(DIMENSIONS, STRENGTHS, strict=True)):
            view = (strength * rng.normal(size=(K, d))).astype(np.float32)[y]
            view += rng.standard_normal(view.shape, np.float32)
            np.save(Path(folder) / f"view {p}.npy", view)
        del view
        return run_alone(fit_files, folder=folder)


def fit_files(folder):
    """Fit views in files."""
    paths = sorted(Path(folder).glob("view *.npy"))
    views = {path.stem: np.load(path, mmap_mode="r") for path in paths}
    size = sum(path.stat().st_size for path in paths) / 1e9
    found = measured(features(), views, np.load(Path(folder) / "classes.npy"))
    return {"files_gb": round(size, 2)} | found


def cluster(n=1_000_000):
    """Fit the same samples by two worker processes, which read their own chunks of
    files."""
    from dask.distributed import Client, LocalCluster

    with tempfile.TemporaryDirectory() as folder:
        views, y = blobs(n, K, DIMENSIONS, STRENGTHS)
        alone = measured(reference := features(), views, y)
        for name in list(views):
            np.save(path := Path(folder) / f"{name}.npy", views[name])
            views[name] = np.load(path, mmap_mode="r")
        workers = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
        with (
            LocalCluster(**workers, dashboard_address=None) as local,
            Client(local) as client,
        ):
            shared = measured(model := features(), as_dask(views), y)
            peaks = list(client.run(status, "VmHWM").values())
    ari = adjusted_rand_index(np.asarray(model.labels_), reference.labels_)
    ratio = shared["seconds"] / alone["seconds"]
    return shared | {
        "ratio": ratio,
        "worker_peaks_gb": peaks,
        "ari_with_one_process": ari,
    }


def hdigit(n=5_000):
    """Compare features and kernels on the fly with the exact kernels of real data."""
    data = load("hdigit")
    step = data.n_samples // n
    views = {name: view[::step] for name, view in data.views.items()}
    y = data.y[::step]
    bank = KernelBank(**ONE_GAUSSIAN, on_the_fly=True)
    models = {
        "exact": SimpleMKKM(10, random_state=0),
        "features": features(10, 500),
        "on_the_fly": SimpleMKKM(10, kernels=bank, random_state=0),
    }
    return {name: measured(model, views, y) for name, model in models.items()}


def files(n=20_000, m=4, k=10):
    """Stream kernels from a file that is larger than the memory allowed."""
    with tempfile.TemporaryDirectory() as folder:
        views, y = blobs(n, k, range(20, 20 + 5 * m, 5), (1,) * (m - 1) + (0,))
        np.save(Path(folder) / "classes.npy", y)
        kernels = np.lib.format.open_memmap(
            Path(folder) / "K.npy", "w+", np.float64, (m, n, n)
        )
        for p, view in enumerate(views.values()):
            source = KernelBank(**ONE_GAUSSIAN, on_the_fly=True).fit_transform(view)
            for start in range(0, n, 1000):
                kernels[p, start : start + 1000] = source.rows(
                    start, min(start + 1000, n)
                )[0]
        kernels.flush()
        size = kernels.nbytes / 1e9
        del kernels
        return {"file_gb": size} | run_alone(fit_file, folder=folder, k=k)


def fit_file(folder, k):
    """Fit the kernels of a file, watching the memory that is not the page cache's."""
    peaks = [0.0]

    def watch():
        while True:
            peaks.append(status("RssAnon"))
            time.sleep(0.02)

    threading.Thread(target=watch, daemon=True).start()
    model, y = SimpleMKKM(k, random_state=0), np.load(Path(folder) / "classes.npy")
    found = measured(model, np.load(Path(folder) / "K.npy", mmap_mode="r"), y)
    return found | {"anonymous_peak_gb": max(peaks), "passes": model.n_passes_}


def sparse(n=100_000):
    """Fit a wide sparse view beside a dense one, by features."""
    methods = ("SimpleMKKM", "AnchoredMKKM")
    return {name: run_alone(fit_sparse, n=n, method=name) for name in methods}


def fit_sparse(n, method, k=10, n_words=50_000, per_sample=50, per_topic=500):
    """Fit word counts and blobs; in each of them two clusters are alike."""
    rng = np.random.default_rng(0)
    y = rng.integers(k, size=n)
    topics = rng.integers(n_words, size=(k // 2, per_topic))
    words = rng.integers(n_words, size=(n, per_sample))
    is_topic = rng.random(words.shape) < 0.6
    of_topic = topics[y // 2][
        np.arange(n)[:, None], rng.integers(per_topic, size=words.shape)
    ]
    words[is_topic] = of_topic[is_topic]
    ends = np.arange(0, words.size + 1, per_sample)
    counts = scipy.sparse.csr_array(
        (np.ones(words.size), words.ravel(), ends), (n, n_words)
    )
    counts.sum_duplicates()
    centers = rng.normal(size=(k // 2, 50))[(y + 1) % k // 2]
    views = {"words": counts, "blobs": centers + 0.7 * rng.normal(size=(n, 50))}
    return measured(features(k, method=method), views, y)


def neighborhoods(n=50_000):
    """Fit shared neighborhoods, and features, of three views in which two clusters are
    alike."""
    ways = ("neighbors", "Nystroem")
    return {
        method: {way: run_alone(fit_near, n=n, method=method, way=way) for way in ways}
        for method in ("SimpleMKKM", "AverageKKM")
    }


def fit_near(n, method, way):
    """Fit one model."""
    views, y = blobs(n, K, (50,) * 3, (1 / 0.7,) * 3, places=2)
    bank = mkclust.KernelBank(widths=(1.0,), polynomials=(), linear=None, neighbors=30)
    near = getattr(mkclust, method)(K, kernels=bank, random_state=0)
    return measured(near if way == "neighbors" else features(method=method), views, y)


def wide(n=5_000, n_columns=20_000, k=5):
    """Write a wide compressed CSV file, and cluster it by the command line."""
    importlib.import_module("typer")  # or this part is left out
    rng = np.random.default_rng(0)
    y = rng.integers(k, size=n)
    X = rng.normal(size=(n, n_columns))
    X[:, :500] += rng.normal(size=(k, 500))[y]
    with tempfile.TemporaryDirectory() as folder:
        path, labels = Path(folder) / "genes.csv.gz", Path(folder) / "labels.csv"
        frame = pd.DataFrame(X).add_prefix("gene")
        compression = {"method": "gzip", "compresslevel": 1}
        frame.to_csv(
            path, index_label="id", float_format="%.4f", compression=compression
        )
        command = [
            sys.executable,
            "-m",
            "mkclust.cli",
            "cluster",
            str(path),
            "-k",
            str(k),
        ]
        started = time.perf_counter()
        subprocess.run(
            [*command, "--labels", str(labels)], stdout=sys.stderr, check=True
        )
        seconds, usage = time.perf_counter() - started, getrusage(RUSAGE_CHILDREN)
        found = pd.read_csv(labels)
    return {
        "n_samples": n,
        "n_columns": n_columns,
        "seconds": round(seconds, 1),
        "processor_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_gb": round(usage.ru_maxrss / 2**20, 2),
        "ari": round(adjusted_rand_index(y[found["id"]], found["cluster"]), 3),
    }


def run_alone(part, **options):
    """Run a part in a process of its own and return what it found."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(part, **options).result()


def any_number(n=200_000):
    """Fit many samples by neighborhoods, without an approximation of kernels."""
    views, y = blobs(n, K, DIMENSIONS, STRENGTHS)
    return measured(mkclust.AgreementKKM(K, random_state=0), views, y)


def any_million(n=1_000_000):
    """Fit a million samples by neighborhoods."""
    return any_number(n)


PARTS = (
    million,
    compared,
    growth,
    any_number,
    any_million,
    ten_million,
    cluster,
    hdigit,
    files,
    sparse,
    neighborhoods,
    wide,
)


def measure(part, share):
    return run_alone(part, n=max(600, int(share * part.__defaults__[0])))


if __name__ == "__main__":
    measure_parts(__doc__, "scale.json", PARTS, measure)
