"""What SimpleMKKM costs beside the plain alternative, on this machine.

    MKCLUST_DATA=DATA python benchmarks/speed/measure.py         # the table: problems and growth
    MKCLUST_DATA=DATA python benchmarks/speed/measure.py all     # released and million, too
    python benchmarks/speed/measure.py b4000 k                   # some parts; the others stay

writes ``results/ARCHITECTURE.json`` beside itself after every part; ``table.py`` makes the README's
tables of the files of all architectures. Let the machine have nothing else to do meanwhile, and do
not limit its threads. Data sets that are absent are skipped. The parts:

digit, flo17, jaffe, b4000, b8189   the problems, see ``problems.py``
n, m, k         blobs of which one size grows eightfold: exponents of times and memory
released        the authors' released routine and the tuned reduced gradient, beside the solve
million         one million samples, as ``../scale.py --only compared`` measures them

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
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans

from mkclust import SimpleMKKM
from mkclust.datasets import DatasetError
from mkclust.methods import solve_reduced_gradient, solve_simple_mkkm
from mkclust.methods.agreement import measure_agreement
from mkclust.stack import as_stack

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # the modules below are found without PYTHONPATH, too

from records import read_record  # noqa: E402
from released.reduced_gradient import descend_as_released  # noqa: E402
from speed.problems import growing_problems, standardized_copy, table_problems  # noqa: E402
from speed.timing import machine, peak_memory, rounded, spread, take_turns, versions  # noqa: E402

# What the seconds of each measurement are divided by.
UNITS = {
    "solve_prepared": "base",
    "solve_on_the_fly": "base",
    "agreement": "base",
    "fit": "alternative",
}
OURS = ("solve_prepared", "solve_on_the_fly", "fit")


def mean_and_eigsh(kernels, k):
    """Solve the average kernel."""
    return eigsh(kernels.mean(0), k)[1]


def mean_eigsh_and_kmeans(kernels, k):
    """Cluster by the average kernel."""
    rows = mean_and_eigsh(kernels, k)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return KMeans(k, n_init=10, random_state=0).fit(rows)


def prepared_stack(prepared):
    """Return kernels that were standardized beforehand as a solver takes them."""
    return as_stack(prepared, validate=False, center=False, normalize=False)


def works_of(kernels, prepared, k):
    """Return for every measurement what prepares the work that is timed."""

    def fit():
        return partial(SimpleMKKM(k, kernels="precomputed", random_state=0).fit, kernels)

    def stack():
        return as_stack(kernels, validate=False)

    return {
        "base": lambda: partial(mean_and_eigsh, prepared, k),
        "alternative": lambda: partial(mean_eigsh_and_kmeans, prepared, k),
        "solve_prepared": lambda: partial(solve_simple_mkkm, prepared_stack(prepared), k),
        "solve_on_the_fly": lambda: partial(solve_simple_mkkm, stack(), k),
        "fit": fit,
        "agreement": lambda: partial(measure_agreement, stack()),
    }


def summary_of(result, reference):
    """Return the certificate of a solution or a model, how far its weights are off, and seconds."""
    if isinstance(result, SimpleMKKM):
        found = result.weights_, result.certificate_, result.converged_, result.duality_gap_
        parts = {name: value for name, value in vars(result).items() if "_seconds_" in name}
    else:
        found, parts = (result.weights, result.certificate, result.converged, result.gap), {}
    weights, certificate, converged, gap = found
    return parts, {
        "certificate": str(certificate),
        "converged": bool(converged),
        "relative_gap": rounded(gap),
        "weights_differ_by": rounded(np.abs(weights - reference.weights).max()),
        "passes": int(result.n_passes_ if parts else result.n_passes),
    }


def worst(summaries):
    """Return the answer that is furthest from proved, of all repetitions."""
    answers = [answer for _, answer in summaries]
    return max(answers, key=lambda answer: (not answer["converged"], answer["relative_gap"]))


def measure(problem, options):
    """Return one row: times, their ratios, memory, and how right the answers are."""
    kernels, k = problem.make(), problem.n_clusters
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
    ratios = {
        f"{name} / {unit}": spread(np.divide(seconds[name], seconds[unit]))
        for name, unit in UNITS.items()
    }
    parts = pd.DataFrame([parts for parts, _ in summaries["fit"]]).median()
    row = {
        "problem": problem.title,
        "n": kernels.shape[1],
        "m": len(kernels),
        "k": k,
        "repetitions": options.repetitions,
        "seconds": {name: spread(values) for name, values in seconds.items()},
        "ratios": ratios,
        "fit_parts": {name.removesuffix("_seconds_"): rounded(v) for name, v in parts.items()},
        "memory_bytes": memory,
        "memory": {name: rounded(peak / kernels.nbytes) for name, peak in memory.items()},
        "reference_gap": rounded(reference.gap),
        "answers": {name: worst(summaries[name]) for name in OURS},
    }
    print(f"{problem.title} (base {row['seconds']['base']['median']:.3f} s)")
    for part in ("ratios", "answers"):
        print(pd.DataFrame(row[part]).T.to_string())
    print({part: row[part] for part in ("fit_parts", "memory")}, flush=True)
    return row


def measure_growth(problems, options):
    """Return a row for every size, and the exponents of times and memory."""
    rows = [{"size": size} | measure(problem, options) for size, problem in problems.items()]
    sizes = np.log(list(problems))

    def exponents(values):
        slopes = np.polyfit(sizes, np.log(pd.DataFrame(values)), 1)[0]
        return {name: rounded(slope) for name, slope in zip(values[0], slopes, strict=True)}

    medians = [{name: v["median"] for name, v in row["seconds"].items()} for row in rows]
    return {
        "sizes": list(problems),
        "exponents": exponents(medians),
        "memory_exponents": exponents([row["memory_bytes"] for row in rows]),
        "rows": rows,
    }


def measure_released(problem, options):
    """Return how many times as long as the solve older ways to the same weights take."""
    prepared = standardized_copy(problem.make())
    ways = {
        "solve": solve_simple_mkkm,
        "released": descend_as_released,
        "reduced_gradient": solve_reduced_gradient,
    }
    works = {
        name: lambda way=way: partial(way, prepared_stack(prepared), problem.n_clusters)
        for name, way in ways.items()
    }
    repetitions = min(options.repetitions, 3)  # a minute each: noise hardly shows
    seconds, _ = take_turns(works, repetitions, options.pause)
    times = {name: spread(np.divide(seconds[name], seconds["solve"])) for name in list(ways)[1:]}
    return {"problem": problem.title, "repetitions": repetitions, "times_slower": times}


def measure_million():
    """Compare a million samples with scikit-learn alone, by another script."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "scale.json"
        command = [sys.executable, HERE.parent / "scale.py", "--only", "compared", "--out", target]
        subprocess.run(command, check=True)
        return {"million": json.loads(target.read_text())["parts"]["compared"]}


def main(arguments=None):
    """Measure, print, and write after every part."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="see the head of this file")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--pause", type=float, default=0.4, help="seconds before each measurement")
    parser.add_argument("--shrink", type=int, default=1, help="divide the samples of blobs by this")
    parser.add_argument("--out", type=Path, help="default: results/ARCHITECTURE.json")
    options = parser.parse_args(arguments)
    if options.out is None and options.shrink > 1:
        parser.error("blobs with fewer samples are not for the table: name a file by --out")
    problems, growing = table_problems(options.shrink), growing_problems(options.shrink)
    parts = {name: partial(measure, of, options) for name, of in problems.items()}
    parts |= {name: partial(measure_growth, of, options) for name, of in growing.items()}
    default = list(parts)
    parts["released"] = partial(measure_released, problems["digit"], options)
    parts["million"] = measure_million
    if unknown := set(options.parts) - {*parts, "all"}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are all, {', '.join(parts)}")
    record = {
        "command": "python benchmarks/speed/measure.py",
        "machine": machine(),
        "versions": versions(),
        "shrink": options.shrink,
    }
    path = options.out or HERE / "results" / f"{record['machine']['architecture']}.json"
    earlier = read_record(path)
    if any(earlier.get(field) != record[field] for field in ("machine", "versions", "shrink")):
        earlier = {}  # figures of other machines or versions are not mixed
    record |= {"pause_seconds": options.pause, "skipped": [], "parts": earlier.get("parts", {})}
    path.parent.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for name in parts if "all" in options.parts else options.parts or default:
        print(f"[{name}]", flush=True)
        try:
            record["parts"][name] = parts[name]()
        except DatasetError as error:
            print(f"skipped: {error}")
            record["skipped"].append(name)
        path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
