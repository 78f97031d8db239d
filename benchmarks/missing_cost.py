"""What samples missing from views cost: solve and fit beside those of the complete views.

    MKCLUST_DATA=DATA OMP_NUM_THREADS=1 python benchmarks/missing_cost.py

prints a table and writes ``results/missing_cost.json`` beside itself. Of every view 30 % of the
samples are missing, at random. All times of a row are taken in one process, in turns, with pauses,
and are medians of seconds of the processor, which other work on the machine changes less than
those of the clock: with one thread. Ratios are comparable, the seconds depend on the machine.

solve        seconds of the solve of the complete problem, and ratios to it with
             ``missing_views="zero"`` and ``"rescale"``
fit          the same of ``fit``, kernels, agreement and k-means included
passes       products with all kernels that a solve took, complete / zero / rescale
memory       most memory that a solve allocates beside the kernels, in MiB, complete / zero /
             rescale: beside it the size of the engine's basis, and of the observed blocks. What a
             solve of kernels in memory may take in all is blocks + basis.
"""

import argparse
import json
import os
import platform
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import scipy
import sklearn

import mkclust
from missing_views import observed_mask
from mkclust import KernelBank, SimpleMKKM
from mkclust.engine.eigen import block_width
from mkclust.engine.search import MOST_BLOCKS
from mkclust.kernels import Nystroem
from mkclust.methods import solve_simple_mkkm
from mkclust.stack import as_stack
from paper.datasets import load

RATE = 30
WAYS = ("complete", "zero", "rescale")


def digit_views():
    """Return the views of the UCI digits: n = 2000, m = 3, k = 10."""
    return {name: np.asarray(view, float) for name, view in load("digit").views.items()}, 10


def blobs(n, m, k):
    """Return views of k blobs."""
    rng = np.random.default_rng(0)
    y, views = rng.integers(k, size=n), {}
    for p in range(m):
        n_features = 20 + 5 * p
        centers = rng.normal(size=(k, n_features))
        views[f"view {p}"] = centers[y] + rng.normal(size=(n, n_features))
    return views, k


def gaussian_kernels(views):
    """Return one Gaussian kernel a view, by name."""
    bank = KernelBank(widths=(1.0,), polynomials=(), linear=None)
    return {name: bank.fit_transform([view])[0] for name, view in views.items()}


def without_rows(parts, observed, *, are_kernels):
    """Return views or kernels with NaN where a sample is missing."""
    masked = {}
    for (name, part), seen in zip(parts.items(), observed.T, strict=True):
        inside = np.outer(seen, seen) if are_kernels else seen[:, None]
        masked[name] = np.where(inside, part, np.nan)
    return masked


PROBLEMS = {
    "kernels, UCI Digit, n = 2000, m = 3, k = 10": (digit_views, {"kernels": "precomputed"}),
    "kernels, blobs, n = 4000, m = 8, k = 20": (
        lambda: blobs(4000, 8, 20),
        {"kernels": "precomputed"},
    ),
    "on the fly, blobs, n = 1500, m = 3, k = 10": (
        lambda: blobs(1500, 3, 10),
        {"kernels": "on-the-fly"},
    ),
    "features, UCI Digit, 300 landmarks": (
        digit_views,
        {"approximation": Nystroem(300, random_state=0)},
    ),
    "features, blobs, n = 20000, m = 4, k = 20, 300 landmarks": (
        lambda: blobs(20_000, 4, 20),
        {"approximation": Nystroem(300, random_state=0)},
    ),
}


class TimedSimpleMKKM(SimpleMKKM):
    """SimpleMKKM that tells the seconds of the processor that its solve took."""

    def _solve(self, stack):
        started = time.process_time()
        solution = super()._solve(stack)
        self.processor_seconds = time.process_time() - started
        return solution


def fit_seconds(model, X):
    """Return how long a fit took, and its solve; the pause lets other threads fall asleep."""
    time.sleep(0.5)
    started = time.process_time()
    model.fit(X)
    return time.process_time() - started, model.processor_seconds


def solve_memory(X, k, fill):
    """Return the peak of a solve of kernels in memory beside them, and the size of the basis."""
    stack = as_stack(X, validate=False, **fill)
    capacity = MOST_BLOCKS * block_width(stack.n_samples, k)
    basis_bytes = 8 * (1 + stack.n_kernels) * capacity * stack.n_samples
    tracemalloc.start()
    solution = solve_simple_mkkm(stack, k)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, basis_bytes, solution.n_passes


def measure(name, repetitions):
    """Return one row of the table."""
    make, options = PROBLEMS[name]
    parts, k = make()
    are_kernels = options.get("kernels") == "precomputed"
    n = len(next(iter(parts.values())))
    observed = observed_mask(name, n, len(parts), RATE, 0)
    if are_kernels:
        parts = gaussian_kernels(parts)
    masked = without_rows(parts, observed, are_kernels=are_kernels)
    inputs = {way: parts if way == "complete" else masked for way in WAYS}
    fills = {way: {} if way == "complete" else {"missing_views": way} for way in WAYS}
    models = {way: TimedSimpleMKKM(k, random_state=0, **options, **fills[way]) for way in WAYS}
    fits, solves = ({way: [] for way in WAYS} for _ in range(2))
    for repetition in range(repetitions + 1):
        for way in WAYS:
            fit, solve = fit_seconds(models[way], inputs[way])
            if repetition:  # the first one warms up
                fits[way].append(fit)
                solves[way].append(solve)
    row = {"problem": name, "repetitions": repetitions}
    for what, times in (("solve", solves), ("fit", fits)):
        typical = {way: float(np.median(values)) for way, values in times.items()}
        row[f"{what}_seconds"] = round(typical["complete"], 4)
        row |= {f"{what}_{way}": round(typical[way] / typical["complete"], 3) for way in WAYS[1:]}
    if are_kernels:
        row |= memory(inputs, k, observed)
    return row


def memory(inputs, k, observed):
    """Return what solves take beside the kernels, and what they may take."""
    found, n = {"passes": {}, "peak_mib": {}, "basis_mib": {}}, len(observed)
    for way in WAYS:
        fill = {} if way == "complete" else {"fill": way}
        peak, basis, found["passes"][way] = solve_memory(inputs[way], k, fill)
        found["peak_mib"][way] = round(peak / 2**20, 1)
        found["basis_mib"][way] = round(basis / 2**20, 1)
    blocks = 8 * int((observed.sum(axis=0) ** 2).sum())
    found["blocks_mib"] = round(blocks / 2**20, 1)
    found["complete_blocks_mib"] = round(8 * observed.shape[1] * n**2 / 2**20, 1)
    return found


def show(row):
    """Print one row."""
    for what in ("solve", "fit"):
        print(
            f"{row['problem']:<58}{what:>6}{row[f'{what}_seconds']:>9.3f} s complete, "
            f"zero {row[f'{what}_zero']:.2f}, rescale {row[f'{what}_rescale']:.2f} times",
            flush=True,
        )
    if "peak_mib" in row:
        peaks = " / ".join(f"{row['peak_mib'][way]:.0f}" for way in WAYS)
        passes = " / ".join(str(row["passes"][way]) for way in WAYS)
        print(
            f"{'':<58}memory {peaks} MiB beside kernels (basis {row['basis_mib']['zero']:.0f}, "
            f"observed blocks {row['blocks_mib']:.0f} MiB), passes {passes}",
            flush=True,
        )


def write(path, rows):
    """Write rows beside those of other problems that are there."""
    new = {row["problem"]: row for row in rows}
    old = json.loads(path.read_text())["rows"] if path.exists() else []
    known = {row["problem"]: row for row in old} | new
    record = {
        "command": "python benchmarks/missing_cost.py [--only NAME] [--repetitions N]",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": {
            "mkclust": mkclust.__version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
        },
        "rows": [known[name] for name in PROBLEMS if name in known],
    }
    path.write_text(json.dumps(record, indent=1) + "\n")


def main():
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--only", default="", help="problems whose name has this in it")
    default = Path(__file__).parent / "results/missing_cost.json"
    parser.add_argument("--out", type=Path, default=default)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name in PROBLEMS:
        if options.only in name:
            rows.append(measure(name, options.repetitions))
            show(rows[-1])
            write(options.out, rows)


if __name__ == "__main__":
    main()
