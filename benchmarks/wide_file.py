"""A wide compressed CSV file, read and clustered by the command line: time, memory and accuracy.

``python benchmarks/wide_file.py`` writes ``benchmarks/results/wide_file.json``. The file has an id
column and is written anew, which takes longer than to cluster it; ``--samples 500`` tries it out.
"""

import argparse
import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

K, N_COLUMNS = 5, 20_000
# Columns that tell the clusters, so many standard deviations apart.
TELLING, APART = 500, 1.0
TARGET = Path(__file__).parent / "results" / "wide_file.json"


def write_file(path: Path, n: int, seed: int = 0) -> dict[str, int]:
    """Write the file, and return the cluster of every id."""
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    centers = np.zeros((K, N_COLUMNS))
    centers[:, :TELLING] = APART * rng.normal(size=(K, TELLING))
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write(",".join(["id", *(f"gene{j}" for j in range(N_COLUMNS))]) + "\n")
        for i, cluster in enumerate(y):
            row = centers[cluster] + rng.normal(size=N_COLUMNS)
            file.write(f"sample{i}," + ",".join(np.char.mod("%.4f", row)) + "\n")
    return {f"sample{i}": int(cluster) for i, cluster in enumerate(y)}


def cluster(path: Path, folder: Path) -> dict[str, float]:
    """Cluster the file by the command line in a process of its own."""
    command = [sys.executable, "-m", "mkclust.cli", "cluster", str(path), "-k", str(K)]
    command += ["--labels", str(folder / "labels.csv")]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=sys.stderr)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"the command failed with the status {status}")
    return {
        "seconds": round(time.perf_counter() - started, 1),
        "seconds of the processors": round(usage.ru_utime + usage.ru_stime, 1),
        "peak GB of the process": round(usage.ru_maxrss / 2**20, 2),
    }


def main() -> None:
    """Write the file, cluster it, and write what that took."""
    from sklearn.metrics import adjusted_rand_score

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=5_000)
    parser.add_argument("--to", type=Path, default=TARGET)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "genes.csv.gz"
        truth = write_file(path, arguments.samples)
        figures = {"samples": arguments.samples, "columns": N_COLUMNS, "clusters": K}
        figures["GB of the file"] = round(path.stat().st_size / 2**30, 2)
        figures |= cluster(path, folder)
        with (folder / "labels.csv").open() as file:
            labels = {row["id"]: int(row["cluster"]) for row in csv.DictReader(file)}
    index = adjusted_rand_score([truth[i] for i in labels], list(labels.values()))
    figures["adjusted Rand index"] = round(float(index), 3)
    print(json.dumps(figures, indent=2))
    arguments.to.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
