"""What SimpleMKKM costs beside the plain alternative, on this machine.

    MKCLUST_DATA=DATA python benchmarks/speed/measure.py         # all parts
    # some parts; the others stay
    python benchmarks/speed/measure.py --only b4000 k

writes ``results/ARCHITECTURE.json`` after every part; ``table.py`` makes tables of the
files of all architectures. Let the machine have nothing else to do meanwhile, and do
not limit its threads. Data sets that are absent are skipped. The parts are problems of
``problems.py``, and n, m, k: blobs of which one size grows eightfold. On each problem,
in turns (see ``timing.py``):

base               ``kernels.mean(0)`` and SciPy's ``eigsh`` for k vectors, on prepared
                   kernels
alternative        the same, and ``KMeans(k, n_init=10)`` on the vectors with rows of
                   unit length
solve_prepared     ``solve_simple_mkkm`` on kernels centered and scaled beforehand
solve_on_the_fly   ``solve_simple_mkkm`` on kernels as they come
fit                ``SimpleMKKM.fit`` on kernels as they come, with all checks

Beside them: the most memory that is allocated, the certificate, the gap, and the
largest difference of a weight to those of a solve with ``tol=1e-9``.
"""

import argparse
import json
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans

from mkclust import SimpleMKKM
from mkclust.datasets import DatasetError
from mkclust.methods import solve_simple_mkkm
from mkclust.stack import as_stack

HERE = Path(__file__).resolve().parent
# The modules below are found without PYTHONPATH, too.
sys.path.insert(0, str(HERE.parent))

from records import read_record, stamp  # noqa: E402
from speed.problems import growing_problems, standardized_copy, table_problems  # noqa: E402
from speed.timing import architecture, peak_memory, rounded, spread, take_turns, threads  # noqa: E402

# What the seconds of each measurement are divided by.
UNITS = {"solve_prepared": "base", "solve_on_the_fly": "base", "fit": "alternative"}


def mean_and_eigsh(kernels, k):
    """Solve the average kernel."""
    return eigsh(kernels.mean(0), k)[1]


def mean_eigsh_and_kmeans(kernels, k):
    """Cluster by the average kernel."""
    rows = mean_and_eigsh(kernels, k)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return KMeans(k, n_init=10, random_state=0).fit(rows)


def works_of(kernels, prepared, k):
    """Return for every measurement what prepares the work that is timed."""

    def solve(kernels, **options):
        return partial(
            solve_simple_mkkm, as_stack(kernels, validate=False, **options), k
        )

    return {
        "base": lambda: partial(mean_and_eigsh, prepared, k),
        "alternative": lambda: partial(mean_eigsh_and_kmeans, prepared, k),
        "solve_prepared": lambda: solve(prepared, center=False, normalize=False),
        "solve_on_the_fly": lambda: solve(kernels),
        "fit": lambda: partial(
            SimpleMKKM(k, kernels="precomputed", random_state=0).fit, kernels
        ),
    }


def answer_of(result, reference):
    """Return the certificate of a solution or a model, and how far its weights are
    off."""
    end = "_" * isinstance(result, SimpleMKKM)
    gap = result.duality_gap_ if end else result.gap
    off = np.abs(getattr(result, f"weights{end}") - reference.weights).max()
    return {
        "certificate": str(getattr(result, f"certificate{end}")),
        "converged": bool(getattr(result, f"converged{end}")),
        "relative_gap": rounded(gap),
        "weights_differ_by": rounded(off),
        "passes": int(getattr(result, f"n_passes{end}")),
    }


def measure(problem, options):
    """Return one row: times, their ratios, memory, and how right the answers are."""
    kernels, k = problem.make(), problem.n_clusters
    prepared = standardized_copy(kernels)
    works = works_of(kernels, prepared, k)
    reference = solve_simple_mkkm(works["solve_prepared"]().args[0], k, tol=1e-9)
    memory = {name: peak_memory(works[name]()) for name in UNITS}
    seconds, answers = take_turns(
        works,
        options.repetitions,
        options.pause,
        lambda name, result: answer_of(result, reference) if name in UNITS else None,
    )
    row = {
        "problem": problem.title,
        "n": kernels.shape[1],
        "m": len(kernels),
        "k": k,
        "repetitions": options.repetitions,
        "seconds": {name: spread(values) for name, values in seconds.items()},
        "ratios": {
            f"{name} / {unit}": spread(np.divide(seconds[name], seconds[unit]))
            for name, unit in UNITS.items()
        },
        "memory_bytes": memory,
        "memory": {
            name: rounded(peak / kernels.nbytes) for name, peak in memory.items()
        },
        # Of all repetitions, the answer that is furthest from proved.
        "answers": {
            name: max(
                answers[name], key=lambda a: (not a["converged"], a["relative_gap"])
            )
            for name in UNITS
        },
    }
    print(json.dumps(row, indent=1), flush=True)
    return row


def measure_growth(problems, options):
    """Return a row for every size, and the exponents of times and memory."""
    rows = [
        {"size": size} | measure(problem, options) for size, problem in problems.items()
    ]
    sizes = np.log(list(problems))

    def exponents(values):
        slopes = np.polyfit(sizes, np.log(pd.DataFrame(values)), 1)[0]
        return {
            name: rounded(slope) for name, slope in zip(values[0], slopes, strict=True)
        }

    medians = [
        {name: v["median"] for name, v in row["seconds"].items()} for row in rows
    ]
    return {
        "sizes": list(problems),
        "exponents": exponents(medians),
        "memory_exponents": exponents([row["memory_bytes"] for row in rows]),
        "rows": rows,
    }


def main(arguments=None):
    """Measure, print, and write after every part."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--only", nargs="*", metavar="PART", help="see the head of this file"
    )
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument(
        "--pause", type=float, default=0.4, help="seconds before each measurement"
    )
    parser.add_argument(
        "--shrink", type=int, default=1, help="divide the samples of blobs by this"
    )
    parser.add_argument("--out", type=Path, help="default: results/ARCHITECTURE.json")
    options = parser.parse_args(arguments)
    problems, growing = table_problems(options.shrink), growing_problems(options.shrink)
    parts = {name: partial(measure, of, options) for name, of in problems.items()}
    parts |= {
        name: partial(measure_growth, of, options) for name, of in growing.items()
    }
    path = options.out or HERE / "results" / f"{architecture()}.json"
    earlier = read_record(path)
    if earlier.get("shrink") != options.shrink:
        earlier = {}
    record = {
        "threads": threads(),
        "shrink": options.shrink,
        "pause_seconds": options.pause,
        "skipped": [],
        "parts": earlier.get("parts", {}),
    }
    warnings.simplefilter("ignore")
    for name in options.only or parts:
        print(f"[{name}]", flush=True)
        try:
            record["parts"][name] = parts[name]()
        except DatasetError as error:
            print(f"skipped: {error}")
            record["skipped"].append(name)
        path.write_text(json.dumps(record | stamp(), indent=1) + "\n")


if __name__ == "__main__":
    main()
