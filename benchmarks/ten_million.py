"""Ten million samples by the recommended method, on all cores of one machine.

    python benchmarks/ten_million.py [--workers 8] [--share 0.1]

writes the views of `scale.py`, of which one is noise, into files of single precision,
clusters them by AgreementKKM with a cluster of dask workers on this machine, each with
two threads, and writes ``results/ten_million.json``. ``--share`` tries it on fewer
samples.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
from dask.distributed import Client, LocalCluster

from mkclust import AgreementKKM
from mkclust.data import as_dask
from mkclust.metrics import adjusted_rand_index
from records import parse, write_record
from scale import DIMENSIONS, STRENGTHS, K, status

SAMPLES = 10_000_000
# Half as many as by default: time grows with them, and no cluster is small.
ANCHORS = 5_000


def write_views(folder, n):
    """Write views into files, and return them as memory maps, with the classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(K, size=n)
    views = {}
    for p, (d, strength) in enumerate(zip(DIMENSIONS, STRENGTHS, strict=True)):
        path = Path(folder) / f"view {p}.npy"
        view = np.lib.format.open_memmap(path, "w+", np.float32, (n, d))
        centers = (strength * rng.normal(size=(K, d))).astype(np.float32)
        for start in range(0, n, 1 << 18):
            classes = y[start : start + (1 << 18)]
            noise = rng.standard_normal((len(classes), d), np.float32)
            view[start : start + (1 << 18)] = centers[classes] + noise
        del view
        views[f"view {p}"] = np.load(path, mmap_mode="r")
    return views, y


def cluster(views, y, n_workers):
    """Return what the clusters of views take, and how near they are to the classes."""
    workers = {"n_workers": n_workers, "threads_per_worker": 2, "processes": True}
    with (
        LocalCluster(**workers, dashboard_address=None) as local,
        Client(local) as client,
    ):
        started = time.perf_counter()
        model = AgreementKKM(K, anchors=ANCHORS, random_state=0).fit(as_dask(views))
        labels = np.asarray(model.labels_)
        seconds = time.perf_counter() - started
        peaks = list(client.run(status, "VmHWM").values())
    return {
        "n_samples": len(y),
        "anchors": ANCHORS,
        "files_gb": round(sum(view.nbytes for view in views.values()) / 1e9, 2),
        "workers": n_workers,
        "seconds": round(seconds, 1),
        "peak_gb": round(status("VmHWM"), 2),
        "worker_peak_gb": round(max(peaks), 2),
        "set_aside": list(model.set_aside_),
        "ari": round(adjusted_rand_index(y, labels), 4),
    }


def main():
    """Write the views, cluster them, and write what it took."""
    workers = {"type": int, "default": 8}
    share = {"type": float, "default": 1.0}
    options = parse(__doc__, "ten_million.json", workers=workers, share=share)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        views, y = write_views(folder, int(options.share * SAMPLES))
        print(f"written in {time.perf_counter() - started:.0f} s", flush=True)
        found = cluster(views, y, options.workers)
    print(found, flush=True)
    write_record(options.out, found)


if __name__ == "__main__":
    main()
