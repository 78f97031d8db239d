"""What it costs to tell which views agree, beside averaging the kernels and one ``eigsh``.

    python benchmarks/speed/agreement.py

writes ``agreement.json`` beside itself: n = 4000, m = 8 (two of them noise), k = 20, float64; the
smallest of three times each, and their ratios in one run.
"""

import json
import platform
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.sparse.linalg import eigsh

from mkclust import METHODS
from mkclust.methods.agreement import measure_agreement
from mkclust.stack import as_stack

N_SAMPLES, N_KERNELS, N_NOISE, N_CLUSTERS = 4000, 8, 2, 20
REPETITIONS = 3


def kernels():
    """Return Gaussian kernels of blobs, the last of them of noise."""
    rng = np.random.default_rng(0)
    y = rng.integers(N_CLUSTERS, size=N_SAMPLES)
    stacked = np.empty((N_KERNELS, N_SAMPLES, N_SAMPLES))
    for p in range(N_KERNELS):
        strength = 0.0 if p >= N_KERNELS - N_NOISE else 1.5
        X = strength * rng.normal(size=(N_CLUSTERS, 10))[y] + rng.normal(size=(N_SAMPLES, 10))
        norms = np.square(X).sum(axis=1)
        squares = np.maximum(norms[:, None] + norms - 2 * X @ X.T, 0)
        stacked[p] = np.exp(-squares / np.median(squares[:200]))
    return stacked


def seconds(work):
    """Return the smallest of several times that a piece of work takes."""
    times = []
    for _ in range(REPETITIONS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def main():
    """Measure, print and store."""
    K = kernels()
    stack = as_stack(K, validate=False)
    times = {
        "mean + eigsh": seconds(lambda: eigsh(K.mean(axis=0), k=N_CLUSTERS, which="LA")),
        "agreement": seconds(lambda: measure_agreement(stack)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("avg-kkm", "agreement-kkm", "simplemkkm", "anchored-mkkm"):
            times[name] = seconds(lambda method=METHODS[name]: method(N_CLUSTERS).solve(stack))
    record = {
        "machine": platform.machine(),
        "seconds": {name: round(value, 4) for name, value in times.items()},
        "agreement / (mean + eigsh)": round(times["agreement"] / times["mean + eigsh"], 3),
        "agreement-kkm / avg-kkm": round(times["agreement-kkm"] / times["avg-kkm"], 3),
        "anchored-mkkm / avg-kkm": round(times["anchored-mkkm"] / times["avg-kkm"], 3),
    }
    text = json.dumps(record, indent=1)
    Path(__file__).with_suffix(".json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
