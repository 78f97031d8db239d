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

from mkclust import methods
from mkclust.stack import as_stack

BENCHMARKS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BENCHMARKS))  # the neighbors below are found without PYTHONPATH, too

from speed.problems import blobs, standardized_copy  # noqa: E402
from speed.timing import machine, peak_memory, versions  # noqa: E402

SOLVERS = {
    "avg-kkm": methods.solve_average_kkm,
    "simplemkkm": methods.solve_simple_mkkm,
    "agreement-kkm": methods.solve_agreement_kkm,
    "anchored-mkkm": methods.solve_anchored_mkkm,
    "anchored-mkkm (1)": partial(methods.solve_anchored_mkkm, anchor=1.0),
    "localized-simplemkkm": methods.solve_localized_simple_mkkm,
    "mkkm": methods.solve_mkkm,
    "mkkm-mir": methods.solve_mkkm_mir,
    "mkkm-mm": methods.solve_mkkm_mm,
    "mkkm-mm (saddle)": methods.solve_mkkm_mm_saddle,
    "lkam": methods.solve_lkam,
    "lf-mvc": methods.solve_lf_mvc,
    "kamm-r": methods.solve_kamm_r,
    "kamm-a": methods.solve_kamm_a,
    "onkc": methods.solve_onkc,
    "lmkkm": methods.solve_lmkkm,
}


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
    for name, solve in SOLVERS.items():
        peak = peak_memory(partial(solve, stack, k))
        median = float(np.median(rows[name]["seconds"]))
        unit = float(np.median(rows["avg-kkm"]["seconds"]))
        rows[name] |= {
            "median_seconds": median,
            "ratio": median / unit,
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
    result = {
        "command": "python benchmarks/speed/methods.py",
        "machine": machine(),
        "versions": versions(),
        "problems": {},
    }
    for m in (5, 3):
        problem = blobs(options.samples, m, 10, 1)
        rows = measure(standardized_copy(problem.make()), 10, options.repetitions)
        result["problems"][problem.title] = rows
        print(f"\n{problem.title}")
        print(f"{'method':18}{'seconds':>9}{'ratio':>8}{'iterations':>12}{'memory':>8}")
        for method, row in rows.items():
            print(
                f"{method:18}{row['median_seconds']:9.3f}{row['ratio']:8.1f}"
                f"{row['n_iter']:12d}{row['memory_matrices']:8.1f}"
            )
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
