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
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from mkclust import METHODS, methods
from mkclust.stack import as_stack

BENCHMARKS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BENCHMARKS))  # the modules below are found without PYTHONPATH, too

from speed.problems import blob_problem, standardized_copy  # noqa: E402
from speed.timing import machine, peak_memory, take_turns, versions  # noqa: E402

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
    works = {name: lambda solve=solve: partial(solve, stack, k) for name, solve in SOLVERS.items()}
    seconds, solutions = take_turns(works, repetitions, 0.5, lambda _, found: found)
    medians = {name: float(np.median(values)) for name, values in seconds.items()}
    return {
        name: {
            "seconds": seconds[name],
            "n_iter": found[0].n_iter,
            "converged": bool(found[0].converged),
            "median_seconds": medians[name],
            "ratio": medians[name] / medians["avg-kkm"],
            "memory_matrices": peak_memory(works[name]()) / (8 * stack.n_samples**2),
        }
        for name, found in solutions.items()
    }


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
        problem = blob_problem(options.samples, m, 10, 1)
        rows = measure(standardized_copy(problem.make()), 10, options.repetitions)
        result["problems"][problem.title] = rows
        table = pd.DataFrame(rows).T.drop(columns="seconds")
        print(f"\n{problem.title}\n{table.to_string(float_format='{:.2f}'.format)}")
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
