"""What one GPU does: solves compared with reading the kernels, and many samples.

Run ``python benchmarks/gpu.py`` on a machine with a CUDA device and torch; it prints
what it measures and writes ``results/gpu.json``. Times are medians of five after a
warm-up.

solve      SimpleMKKM from kernels that are on the device: seconds, gap, memory beside
           the kernels
million    one million samples, three views, Nystroem with 200 landmarks each, float32:
           the whole fit, labels included
flying     exact kernels computed when they are asked for, three views of 30 columns,
           float32
far        the same for one million samples: the solve alone, one run
any_number the recommended method, AgreementKKM, on a million samples, as in scale.py
precision  one product of a kernel of a million samples, some rows beside double
           precision
agreement  UCI Digit (MKCLUST_DATA): float32 on the device beside float64 on the host
k_means    scikit-learn on the host, and Lloyd on the device
"""

import time
from dataclasses import replace

import joblib
import numpy as np
import torch
from sklearn.cluster import KMeans

from mkclust import AgreementKKM, KernelBank, SimpleMKKM
from mkclust.kernels import Nystroem
from mkclust.methods import solve_simple_mkkm
from mkclust.metrics import adjusted_rand_index
from mkclust.stack import as_stack
from mkclust.stack.discretize import k_means as device_k_means
from paper.datasets import load
from records import ONE_GAUSSIAN, blobs, measure_parts

# Samples, kernels, clusters and number type.
PROBLEMS = [
    (8189, 4, 102, torch.float64),
    (20_000, 5, 20, torch.float64),
    (50_000, 5, 50, torch.float32),
]
FLYING = KernelBank(**ONE_GAUSSIAN, on_the_fly=True)


def views_there(n, dimensions, k, dtype=torch.float32, strengths=None):
    """Return views of k Gaussian blobs on the device, and the classes."""
    views, y = blobs(n, k, dimensions, strengths or (1,) * len(dimensions))
    return [
        torch.as_tensor(view, dtype=dtype, device="cuda") for view in views.values()
    ], y


def timed(function, repetitions=5, warm_up=True):
    """Return the seconds of several calls, as numbers by name, and the result."""
    if warm_up:
        function()
    seconds = []
    for _ in range(repetitions):
        torch.cuda.synchronize()
        started = time.perf_counter()
        result = function()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    return {
        "seconds": round(float(np.median(seconds)), 4),
        "repetitions": repetitions,
    }, result


def solve():
    """Solve three sizes from kernels on the device."""
    rows = []
    for n, m, k, dtype in PROBLEMS:
        dimensions, strengths = range(20, 20 + 5 * m, 5), (1,) * (m - 1) + (0,)
        views, _ = views_there(n, dimensions, k, dtype, strengths)
        kernels = KernelBank(**ONE_GAUSSIAN).fit_transform(views)
        checks, stack = timed(lambda kernels=kernels: as_stack(kernels), 1)
        # Each time a new stack, or what is kept of kernels written out would be found
        # again.
        times, solution = timed(
            lambda stack=stack, k=k: solve_simple_mkkm(replace(stack), k)
        )
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        solve_simple_mkkm(replace(stack), k)
        peak = torch.cuda.max_memory_allocated() - before
        sizes = {"n": n, "m": m, "k": k, "dtype": str(dtype).removeprefix("torch.")}
        rows.append(sizes | times | certified(solution))
        rows[-1] |= {
            "iterations": solution.n_iter,
            "memory_beside_kernels": round(peak / kernels.nbytes, 3),
            "check_seconds": checks["seconds"],
        }
        del kernels, stack, solution, views
        torch.cuda.empty_cache()
    return {"problems": rows}


def certified(solution):
    """Return how a solution is certified, and how often it read the kernels."""
    gap, certificate = float(solution.gap), str(solution.certificate)
    return {
        "relative_gap": gap,
        "certificate": certificate,
        "passes": solution.n_passes,
    }


def million():
    """Fit a million samples by features."""
    views, y = views_there(1_000_000, (20, 35, 50), 10)
    model = SimpleMKKM(10, approximation=Nystroem(n_components=200), random_state=0)
    times, _ = timed(lambda: model.fit(views))
    ari = adjusted_rand_index(y, model.labels_)
    return times | {"relative_gap": model.duality_gap_, "adjusted_rand_index": ari}


def flying(n=200_000, k=20):
    """Fit exact kernels that are never held."""
    views, y = views_there(n, (30, 30, 30), k)
    model = SimpleMKKM(k, kernels=FLYING, random_state=0)
    # Warm up.
    SimpleMKKM(k, kernels=FLYING, random_state=0).fit([view[:20_000] for view in views])
    torch.cuda.reset_peak_memory_stats()
    times, _ = timed(lambda: model.fit(views), 1, warm_up=False)
    found = {"n": n, "k": k, "fit_seconds": times["seconds"], "passes": model.n_passes_}
    found |= {
        "solve_seconds": round(model.solve_seconds_, 2),
        "relative_gap": model.duality_gap_,
    }
    found["adjusted_rand_index"] = adjusted_rand_index(y, model.labels_)
    return found | {"peak_gigabytes": round(torch.cuda.max_memory_allocated() / 1e9, 2)}


def far(n=1_000_000, k=20):
    """Solve for a million samples with exact kernels."""
    views, _ = views_there(n, (30, 30, 30), k)
    stack = as_stack(FLYING.fit_transform(views), validate=False)
    torch.cuda.reset_peak_memory_stats()
    times, solution = timed(lambda: solve_simple_mkkm(stack, k), 1, warm_up=False)
    found = {"n": n, "k": k, "solve_seconds": times["seconds"]} | certified(solution)
    return found | {"peak_gigabytes": round(torch.cuda.max_memory_allocated() / 1e9, 2)}


def any_number(n=1_000_000, k=20):
    """Cluster by neighborhoods, without an approximation of kernels."""
    views, y = views_there(n, (20, 35, 50), k, strengths=(1.2, 1.0, 0.0))
    model = AgreementKKM(k, random_state=0)
    AgreementKKM(k, random_state=0).fit([view[:20_000] for view in views])  # warm up
    torch.cuda.reset_peak_memory_stats()
    times, _ = timed(lambda: model.fit(views), 1, warm_up=False)
    found = {"n": n, "k": k, "fit_seconds": times["seconds"]}
    found["adjusted_rand_index"] = adjusted_rand_index(y, model.labels_)
    return found | {"peak_gigabytes": round(torch.cuda.max_memory_allocated() / 1e9, 2)}


def precision(n=1_000_000, n_rows=64):
    """Compare products without entries, of random vectors and of ones, with double
    precision."""
    (view,), _ = views_there(n, (30,), 20)
    rows = FLYING.fit_transform([view])
    X = torch.randn((n, 28), dtype=torch.float64, device="cuda")
    X[:, 0] = 1.0
    times, product = timed(lambda: rows.product(0, X), 1)
    some = torch.arange(0, n, n // n_rows, device="cuda")
    entries = torch.cat([rows.rows(int(i), int(i) + 1)[0] for i in some]).double()
    exact = entries @ X
    errors = (product[some] - exact).norm(dim=0) / exact.norm(dim=0)
    return {
        "n": n,
        "seconds_a_product": times["seconds"],
        "relative_error_of_row_sums": float(errors[0]),
        "largest_relative_error_of_random_columns": float(errors[1:].max()),
    }


def agreement():
    """Compare float32 on the device with float64 on the host."""
    kernels = KernelBank(**ONE_GAUSSIAN).fit_transform(load("digit").views)
    host = SimpleMKKM(10, random_state=0).fit(kernels)
    device = SimpleMKKM(10, random_state=0).fit(
        torch.as_tensor(kernels, device="cuda").float()
    )
    return {
        "largest_difference_of_weights": float(
            np.abs(host.weights_ - device.weights_).max()
        ),
        "share_of_labels_that_differ": float(np.mean(host.labels_ != device.labels_)),
    }


def k_means():
    """Cluster rows on the host and on the device."""
    found = []
    for n, k in ((50_000, 10), (8189, 102), (50_000, 50)):
        rng = np.random.default_rng(0)
        rows = np.eye(k)[rng.integers(k, size=n)] + 0.35 * rng.normal(size=(n, k))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        started = time.perf_counter()
        KMeans(k, n_init=10, random_state=0).fit(rows)
        host = {
            f"{joblib.cpu_count()} threads": round(time.perf_counter() - started, 3)
        }
        there = torch.as_tensor(rows, device="cuda")
        times, _ = timed(
            lambda there=there, k=k: device_k_means(
                there, k, n_init=10, random_state=0
            ),
            3,
        )
        found.append(
            {"n": n, "k": k, "host_seconds": host, "device_seconds": times["seconds"]}
        )
    return found


PARTS = (solve, million, flying, any_number, agreement, k_means, far, precision)


def measure(part, share):
    """Measure a part, of all samples, if there is a device."""
    if not torch.cuda.is_available():
        raise SystemExit("torch sees no CUDA device here")
    return part()


if __name__ == "__main__":
    device = "none"
    if torch.cuda.is_available():
        device = torch.cuda.get_device_name()
    versions = {"torch": torch.__version__, "device": device}
    measure_parts(__doc__, "gpu.json", PARTS, measure, **versions)
