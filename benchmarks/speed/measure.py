"""What SimpleMKKM costs beside what anybody would do instead, on this machine.

    MKCLUST_DATA=DATA python benchmarks/speed/measure.py         # the table: problems and growth
    MKCLUST_DATA=DATA python benchmarks/speed/measure.py all     # released and million, too
    python benchmarks/speed/measure.py b4000 k                   # some parts; the others stay

writes ``results/ARCHITECTURE.json`` beside itself after every part; ``table.py`` makes the README's
tables of the files of all architectures. Let the machine have nothing else to do meanwhile, and do
not limit its threads. Data sets that are absent are skipped. The parts:

digit, flo17, jaffe, b4000, b8189   the problems, see ``problems.py``
n, m, k         blobs of which one size grows eightfold: exponents of times and memory
released        the authors' released routine and the tuned reduced gradient, beside the solve
million         ``million.py`` in a process of its own: one million samples

On each problem, in turns (see ``timing.py``), with ratios taken within a repetition:

base               ``kernels.mean(0)`` and SciPy's ``eigsh`` for k vectors, on prepared kernels
alternative        the same, and ``KMeans(k, n_init=10)`` on the vectors with rows of unit length
solve_prepared     ``solve_simple_mkkm`` on kernels centered and scaled beforehand
solve_on_the_fly   ``solve_simple_mkkm`` on kernels as they come
fit                ``SimpleMKKM.fit`` on kernels as they come, with all checks, and its parts
agreement          what the kernels share, as every fit measures it

Beside them: the most memory that a solve and a fit allocate, as a share of the kernels', and how
right the answers are: the certificate, the gap, and the largest difference of a weight to those of
a solve in double precision with ``tol=1e-9``.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans

from mkclust import SimpleMKKM
from mkclust.datasets import DatasetError
from mkclust.engine.eigen import Relaxation
from mkclust.methods import solve_reduced_gradient, solve_simple_mkkm
from mkclust.methods.agreement import measure_agreement
from mkclust.stack import as_stack

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # the neighbors below are found without PYTHONPATH, too

from released.reduced_gradient import descend_as_released  # noqa: E402
from speed.problems import growing_problems, standardized_copy, table_problems  # noqa: E402
from speed.timing import (  # noqa: E402
    architecture,
    exponent,
    machine,
    peak_memory,
    rounded,
    spread,
    take_turns,
    versions,
)

RAW = {"center": False, "normalize": False}
UNITS = {
    "solve_prepared": "base",
    "solve_on_the_fly": "base",
    "agreement": "base",
    "fit": "alternative",
}
OURS = ("solve_prepared", "solve_on_the_fly", "fit")


def mean_and_eigsh(kernels, k):
    """Solve the average kernel, as anybody would."""
    return eigsh(kernels.mean(0), k)[1]


def mean_eigsh_and_kmeans(kernels, k):
    """Cluster by the average kernel, as anybody would."""
    rows = mean_and_eigsh(kernels, k)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return KMeans(k, n_init=10, random_state=0).fit(rows)


def prepared_stack(prepared):
    """Return kernels that were standardized beforehand as a solver takes them."""
    return as_stack(prepared, validate=False, **RAW)


def works_of(kernels, prepared, k):
    """Return for every measurement what prepares the work that is timed."""

    def fit():
        return partial(SimpleMKKM(k, kernels="precomputed", random_state=0).fit, kernels)

    return {
        "base": lambda: partial(mean_and_eigsh, prepared, k),
        "alternative": lambda: partial(mean_eigsh_and_kmeans, prepared, k),
        "solve_prepared": lambda: partial(solve_simple_mkkm, prepared_stack(prepared), k),
        "solve_on_the_fly": lambda: partial(
            solve_simple_mkkm, as_stack(kernels, validate=False), k
        ),
        "fit": fit,
        "agreement": lambda: partial(measure_agreement, as_stack(kernels, validate=False)),
    }


def measure(problem, options):
    """Return one row: times, their ratios, memory, and how right the answers are."""
    k = problem.n_clusters
    kernels = problem.make()
    prepared = standardized_copy(kernels)
    works = works_of(kernels, prepared, k)
    reference = solve_simple_mkkm(prepared_stack(prepared), k, tol=1e-9)
    memory = {name: peak_memory(works[name]()) for name in OURS}
    seconds, summaries = take_turns(
        works,
        options.repetitions,
        options.pause,
        lambda name, result: summary_of(result, reference) if name in OURS else None,
    )
    return {
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
        "fit_parts": medians([summary["parts"] for summary in summaries["fit"]]),
        "memory_bytes": memory,
        "memory": {name: rounded(peak / kernels.nbytes) for name, peak in memory.items()},
        "reference_gap": rounded(reference.gap),
        "answers": {name: worst([each["answer"] for each in summaries[name]]) for name in OURS},
    }


def summary_of(result, reference):
    """Return the answer of a solution or a model, and the parts of the seconds of a fit."""
    if not isinstance(result, SimpleMKKM):
        values = result.weights, result.certificate, result.converged, result.gap, result.n_passes
        return {"answer": answer_of(reference, *values)}
    values = result.weights_, result.certificate_, result.converged_, result.duality_gap_
    parts = {
        name.removesuffix("_seconds_"): value
        for name, value in vars(result).items()
        if name.endswith("_seconds_")
    }
    return {"answer": answer_of(reference, *values, result.n_passes_), "parts": parts}


def answer_of(reference, weights, certificate, converged, gap, n_passes):
    """Return the certificate of an answer, and how far its weights are off."""
    return {
        "certificate": str(certificate),
        "converged": bool(converged),
        "relative_gap": rounded(gap),
        "weights_differ_by": rounded(np.abs(weights - reference.weights).max()),
        "passes": int(n_passes),
    }


def worst(answers):
    """Return the answer that is furthest from proved, of all repetitions."""
    return max(answers, key=lambda answer: (not answer["converged"], answer["relative_gap"]))


def medians(parts):
    """Return the median of each part over the repetitions, whichever parts a model tells."""
    return {name: rounded(np.median([part[name] for part in parts])) for name in parts[0]}


def measure_growth(problems, options):
    """Return a row for every size, and the exponents of times and memory."""
    rows = []
    for size, problem in problems.items():
        rows.append({"size": size, **measure(problem, options)})
        print_row(rows[-1])
    sizes = list(problems)
    seconds = {
        name: exponent(sizes, [row["seconds"][name]["median"] for row in rows])
        for name in rows[0]["seconds"]
    }
    memory = {
        name: exponent(sizes, [row["memory_bytes"][name] for row in rows])
        for name in rows[0]["memory_bytes"]
    }
    return {"sizes": sizes, "exponents": seconds, "memory_exponents": memory, "rows": rows}


def cold_eigsh(operator, k):
    """Solve one trial of a line search from scratch, as the released routine does."""
    values, vectors = eigsh(operator.matrix, k)
    order = np.argsort(-values)
    vectors = vectors[:, order]
    return Relaxation(k, vectors, values[order])


def measure_released(problem, options):
    """Return how many times as long as the solve older ways to the same weights take."""
    k = problem.n_clusters
    prepared = standardized_copy(problem.make())
    ways = {
        "solve": solve_simple_mkkm,
        "released": partial(descend_as_released, eigensolver=cold_eigsh),
        "reduced_gradient": solve_reduced_gradient,
    }
    works = {
        name: lambda way=way: partial(way, prepared_stack(prepared), k)
        for name, way in ways.items()
    }
    repetitions = min(options.repetitions, 3)  # a minute each: noise hardly shows
    seconds, _ = take_turns(works, repetitions, options.pause)
    return {
        "problem": problem.title,
        "repetitions": repetitions,
        "times_slower": {
            name: spread(np.divide(seconds[name], seconds["solve"]))
            for name in ("released", "reduced_gradient")
        },
    }


def measure_million(script=HERE / "million.py"):
    """Run the million in a process of its own, for its peak of memory is the process's."""
    if not script.exists():
        raise FileNotFoundError(f"{script.name} is not there")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "million.json"
        subprocess.run([sys.executable, script, "--out", target], check=True)
        return json.loads(target.read_text())


def print_row(row):
    """Print the ratios of a row with their quartiles, and how right its answers are."""
    print(f"{row['problem']} (base {row['seconds']['base']['median']:.3f} s)")
    for name, values in row["ratios"].items():
        low, high = values["quartiles"]
        print(f"  {name:28}{values['median']:8.2f}  ({low:.2f} to {high:.2f})")
    parts = ", ".join(f"{name} {value:.3f}" for name, value in row["fit_parts"].items())
    print(f"  seconds of a fit: {parts}")
    memory = ", ".join(f"{name} {value:.2f}" for name, value in row["memory"].items())
    print(f"  memory: {memory}")
    for name, answer in row["answers"].items():
        print(
            f"  {name}: {answer['certificate']}, gap {answer['relative_gap']:.0e}, "
            f"weights within {answer['weights_differ_by']:.0e}"
        )
    sys.stdout.flush()


def parts_of(options):
    """Return what measures each part, by its name."""
    problems, growing = table_problems(options.shrink), growing_problems(options.shrink)

    def problem(name):
        row = measure(problems[name], options)
        print_row(row)
        return row

    parts = {name: partial(problem, name) for name in problems}
    parts |= {name: partial(measure_growth, of, options) for name, of in growing.items()}
    parts["released"] = partial(measure_released, problems["digit"], options)
    parts["million"] = measure_million
    return parts


def begin(path, record):
    """Add what was measured before, if on this machine and by what is here now."""
    record |= {"skipped": [], "parts": {}}
    if not path.exists():
        return
    earlier = json.loads(path.read_text())
    if any(earlier[field] != record[field] for field in ("machine", "versions", "shrink")):
        print(f"{path.name} is of another machine or of other versions: written anew")
        return
    record |= {field: earlier[field] for field in ("skipped", "parts")}


def parse(arguments):
    """Return the options, with the parts to measure in the order in which they are known."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="see the head of this file")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--pause", type=float, default=0.4, help="seconds before each measurement")
    parser.add_argument("--shrink", type=int, default=1, help="divide the samples of blobs by this")
    parser.add_argument("--out", type=Path, help="default: results/ARCHITECTURE.json")
    options = parser.parse_args(arguments)
    if options.out is None and options.shrink > 1:
        parser.error("blobs with fewer samples are not for the table: name a file by --out")
    if options.out is None:
        options.out = HERE / "results" / f"{architecture()}.json"
    known = list(parts_of(options))
    if unknown := set(options.parts) - {*known, "all"}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are all, {', '.join(known)}")
    optional = ("released", "million")
    wanted = options.parts or [name for name in known if name not in optional]
    options.parts = [name for name in known if name in wanted or "all" in wanted]
    return options


def main(arguments=None):
    """Measure, print, and write after every part."""
    options = parse(arguments)
    record = {
        "command": "python benchmarks/speed/measure.py",
        "machine": machine(),
        "versions": versions(),
        "shrink": options.shrink,
        "pause_seconds": options.pause,
    }
    begin(options.out, record)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    parts = parts_of(options)
    measured, skipped = record["parts"], set(record["skipped"])
    for name in options.parts:
        print(f"[{name}]", flush=True)
        started = time.perf_counter()
        measured.pop(name, None)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                measured[name] = parts[name]()
            skipped.discard(name)
        except (DatasetError, FileNotFoundError) as error:
            print(f"skipped: {error}")
            skipped.add(name)
        record["skipped"] = [part for part in parts if part in skipped]
        record["parts"] = {part: measured[part] for part in parts if part in measured}
        options.out.write_text(json.dumps(record, indent=1) + "\n")
        print(f"[{name}: {time.perf_counter() - started:.0f} s in all]", flush=True)


if __name__ == "__main__":
    main()
