"""What learning the weights costs, beside one eigendecomposition of the average kernel.

Run ``PYTHONPATH=benchmarks python benchmarks/speed/solve.py``; it prints a table and writes
``solve.json`` beside itself. All times of a row are taken in one process, in turns, so that their
ratios are comparable; the seconds themselves depend on the machine and on its mood.

base           ``kernels.mean(0)`` and SciPy's ``eigsh`` for k vectors on prepared kernels, the unit
loose          the same with ``eigsh(tol=1e-4)``, residuals about as large as the solver's
prepared       ``solve_simple_mkkm`` on kernels centered and scaled beforehand
on the fly     ``solve_simple_mkkm`` on kernels as they come, centered and scaled on the fly
checks         ``as_stack`` with all its checks, on kernels as they come
fit            ``SimpleMKKM.fit`` without checks on kernels as they come: the solve, the average
               kernel's clusters, alignments and k-means
memory         most memory a solve allocates beside the caller's kernels, relative to their size
"""

import argparse
import json
import os
import platform
import time
import tracemalloc
from pathlib import Path

import numpy as np
import scipy
import sklearn
from scipy.sparse.linalg import eigsh

import mkclust
from mkclust import KernelBank, SimpleMKKM
from mkclust.datasets import load
from mkclust.engine.relaxation import Relaxation
from mkclust.methods import solve_reduced_gradient, solve_simple_mkkm
from mkclust.stack import as_stack
from released.reduced_gradient import descend_as_released

ONE_GAUSSIAN = {"widths": (1.0,), "polynomials": (), "linear": None}
RAW = {"center": False, "normalize": False}


def uci_digit():
    """Return Gaussian kernels of the UCI digits: n = 2000, m = 3, k = 10."""
    folder = os.environ.get("MKCLUST_DATA")
    if not folder:
        return None
    views = load(Path(folder) / "uci_digit" / "UCI.mat").views
    return KernelBank(**ONE_GAUSSIAN).fit_transform(views), 10


def blobs(n, m, k, n_noise):
    """Return Gaussian kernels of k blobs, the last views pure noise."""
    rng = np.random.default_rng(0)
    y = rng.integers(k, size=n)
    kernels = np.empty((m, n, n))
    for p in range(m):
        n_features = 20 + 5 * p
        centers = rng.normal(size=(k, n_features)) * (p < m - n_noise)
        view = centers[y] + rng.normal(size=(n, n_features))
        kernels[p] = KernelBank(**ONE_GAUSSIAN).fit_transform(view)[0]
    return kernels, k


PROBLEMS = {
    "a: UCI Digit, n = 2000, m = 3, k = 10": uci_digit,
    "b: blobs, n = 4000, m = 8 (2 noise), k = 20": lambda: blobs(4000, 8, 20, 2),
    "c: blobs, n = 8189, m = 4 (1 noise), k = 102": lambda: blobs(8189, 4, 102, 1),
}


def seconds(function, *args, **kwargs):
    """Return how long a call takes; the pause lets the threads of the last one fall asleep."""
    time.sleep(0.5)
    started = time.perf_counter()
    result = function(*args, **kwargs)
    return time.perf_counter() - started, result


def mean_and_eigsh(kernels, k, tol=0):
    """Solve the average kernel, as anybody would."""
    average = kernels.mean(0)
    return eigsh(average, k, tol=tol)


def cold_eigsh(operator, k):
    """Solve one trial of a line search from scratch, as the released routine does."""
    values, vectors = eigsh(operator.matrix, k)
    order = np.argsort(-values)
    vectors = vectors[:, order]
    return Relaxation(k, vectors, operator @ vectors, values[order])


def peak_memory(function, *args):
    """Return the most memory that a call has allocated at a time, in bytes."""
    tracemalloc.start()
    function(*args)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def standardize_in_place(kernels):
    """Center and scale kernels in their own memory."""
    for K in kernels:
        means = K.mean(0)
        K -= means
        K -= (means - means.mean())[:, None]
        scale = 1 / np.sqrt(np.diag(K))
        K *= scale
        K *= scale[:, None]


def measure(name, kernels, k, repetitions):
    """Return one row of the table."""
    checks, fly = seconds(as_stack, kernels)
    copies = kernels.copy()
    standardize_in_place(copies)
    prepared = as_stack(copies, validate=False, **RAW)
    model = SimpleMKKM(k, kernels="precomputed", validate=False, random_state=0)
    solve_simple_mkkm(prepared, k)  # warm up
    times = {"base": [], "loose": [], "prepared": [], "on_the_fly": []}
    for _ in range(repetitions):
        times["base"].append(seconds(mean_and_eigsh, copies, k)[0])
        elapsed, solution = seconds(solve_simple_mkkm, prepared, k)
        times["prepared"].append(elapsed)
        times["loose"].append(seconds(mean_and_eigsh, copies, k, 1e-4)[0])
        times["on_the_fly"].append(seconds(solve_simple_mkkm, fly, k)[0])
    fit, _ = seconds(model.fit, kernels)
    typical = {key: float(np.median(values)) for key, values in times.items()}
    base = typical.pop("base")
    row = {
        "problem": name,
        "repetitions": repetitions,
        "base_seconds": base,
        **{f"{key}_ratio": value / base for key, value in typical.items()},
        "checks_ratio": checks / base,
        "fit_ratio": fit / base,
        "passes": solution.n_passes,
        "relative_gap": float(solution.gap),
    }
    if name.startswith("a:"):
        released, _ = seconds(descend_as_released, prepared, k, eigensolver=cold_eigsh)
        tuned, _ = seconds(solve_reduced_gradient, prepared, k)
        ours = typical["prepared"]
        row |= {"released_times_slower": released / ours, "tuned_times_slower": tuned / ours}
    del prepared, copies
    row["memory"] = peak_memory(solve_simple_mkkm, fly, k) / kernels.nbytes
    return row


def main():
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="abc", help="letters of the problems to run")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    options = parser.parse_args()
    rows = []
    columns = ("loose", "prepared", "on_the_fly", "checks", "fit")
    print(f"{'problem':<46}{'base s':>8}", *(f"{c.replace('_', ' '):>11}" for c in columns), end="")
    print(f"{'passes':>8}{'gap':>8}{'memory':>8}")
    for name, make in PROBLEMS.items():
        if name[0] not in options.only:
            continue
        problem = make()
        if problem is None:
            print(f"{name:<46} skipped: MKCLUST_DATA is not set")
            continue
        row = measure(name, *problem, options.repetitions)
        del problem
        rows.append(row)
        ratios = (f"{row[f'{column}_ratio']:>11.2f}" for column in columns)
        print(f"{name:<46}{row['base_seconds']:>8.3f}", *ratios, end="")
        print(f"{row['passes']:>8}{row['relative_gap']:>8.0e}{row['memory']:>8.2f}")
        if "released_times_slower" in row:
            print(
                f"{'':<46}the released routine with a cold eigsh per trial takes "
                f"{row['released_times_slower']:.0f} times as long, the tuned reduced gradient "
                f"{row['tuned_times_slower']:.1f} times"
            )
    done = {row["problem"] for row in rows}
    if options.out.exists():  # rows of other problems stay
        kept = json.loads(options.out.read_text())["rows"]
        rows = sorted(
            rows + [row for row in kept if row["problem"] not in done], key=lambda r: r["problem"]
        )
    record = {
        "command": "python benchmarks/speed/solve.py [--only LETTERS] [--repetitions N]",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": {
            "mkclust": mkclust.__version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
        },
        "rows": rows,
    }
    options.out.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
