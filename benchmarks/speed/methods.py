"""What every method costs beside the average kernel.

Run ``python benchmarks/speed/methods.py``; it prints a table and writes
``benchmarks/results/methods.json``. All solves of a problem are timed in one process, in turns, so
that their ratios to the average kernel's solve are comparable; the seconds themselves depend on the
machine. Every solver runs with its defaults, to its own stopping rule. "memory" is the most that a
solve allocates beside the caller's kernels, in matrices of n x n.
"""

import argparse
import json
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from mkclust import METHODS, methods
from mkclust.stack import as_stack

BENCHMARKS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BENCHMARKS))  # the modules below are found without PYTHONPATH, too

from speed.problems import blobs, standardized_copy  # noqa: E402
from speed.timing import machine, peak_memory, versions  # noqa: E402

OWN_NAMES = {"avg-kkm": "average_kkm", "simplemkkm": "simple_mkkm"}
OWN_NAMES["localized-simplemkkm"] = "localized_simple_mkkm"
SOLVERS = {
    key: getattr(methods, f"solve_{OWN_NAMES.get(key, key.replace('-', '_'))}") for key in METHODS
}
SOLVERS["anchored-mkkm (1)"] = partial(methods.solve_anchored_mkkm, anchor=1.0)
SOLVERS["mkkm-mm (saddle)"] = methods.solve_mkkm_mm_saddle


def measure(kernels, k, repetitions):
    """Return seconds, iterations and memory of every solver on one problem."""
    stack = as_stack(kernels, center=False, normalize=False, validate=False)
    rows = {name: {"seconds": []} for name in SOLVERS}
    for repetition in range(repetitions):
        for name, solve in SOLVERS.items():
            if repetition and rows[name]["seconds"][0] > 20 * rows["avg-kkm"]["seconds"][0]:
                continue  # a long run is its own average
            time.sleep(0.5)  # the threads of the last solve fall asleep
            started = time.perf_counter()
            solution = solve(stack, k)
            rows[name]["seconds"].append(time.perf_counter() - started)
            rows[name] |= {"n_iter": solution.n_iter, "converged": bool(solution.converged)}
    medians = {name: float(np.median(row["seconds"])) for name, row in rows.items()}
    for name, solve in SOLVERS.items():
        peak = peak_memory(partial(solve, stack, k))
        rows[name] |= {
            "median_seconds": medians[name],
            "ratio": medians[name] / medians["avg-kkm"],
            "memory_matrices": peak / (8 * stack.n_samples**2),
        }
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=BENCHMARKS / "results" / "methods.json")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    result = {"command": "python benchmarks/speed/methods.py"}
    result |= {"machine": machine(), "versions": versions(), "problems": {}}
    for m in (5, 3):
        problem = blobs(options.samples, m, 10, 1)
        rows = measure(standardized_copy(problem.make()), 10, options.repetitions)
        result["problems"][problem.title] = rows
        table = pd.DataFrame(rows).T.drop(columns="seconds")
        print(f"\n{problem.title}\n{table.to_string(float_format='{:.2f}'.format)}")
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
