"""The peak of the resident memory of fits, beside what `mkclust.estimate_memory` says.

Run ``python benchmarks/memory.py``; it prints a table and writes ``results/memory.json`` beside
itself. ``--quick`` measures a few small fits and prints them as JSON, nothing else. Every fit is
made in a process of its own, which has imported and used everything before: what it takes beyond
that is the peak. Memory that is freed goes back to the system at once here, as it does everywhere
for arrays above 32 MiB, so that small fits tell what large ones take. Runs on Linux.

peak      what the fit took beside its input, in MiB
estimate  what was announced, in MiB
ratio     the estimate, without its constant part, as a multiple of the peak
"""

import argparse
import inspect
import json
import multiprocessing
import os
import platform
import sys
import warnings
from pathlib import Path

# Before anything is allocated: the threshold stays where it is, and threads add no pools.
SETTINGS = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
SETTINGS |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
if __name__ == "__main__" and any(os.environ.get(key) != SETTINGS[key] for key in SETTINGS):
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **SETTINGS})

import numpy as np  # noqa: E402

import mkclust  # noqa: E402
from mkclust import METHODS, KernelBank  # noqa: E402
from mkclust.kernels import Nystroem  # noqa: E402
from mkclust.linalg.memory_terms import OVERHEAD  # noqa: E402

ROADS = {"precomputed": "precomputed", "views": "dense", "on-the-fly": "on-the-fly"}
ROADS["features"] = "features"
N_COLUMNS, N_LANDMARKS = 10, 150
INDUCTIVE = [name for name, method in METHODS.items() if hasattr(method, "predict")]


def views_of(n, m, dtype):
    """Return views of seven Gaussian blobs."""
    rng, y = np.random.default_rng(0), np.arange(n) % 7
    views = [2 * rng.normal(size=(7, N_COLUMNS))[y] + rng.normal(size=(n, N_COLUMNS))]
    views += [rng.normal(size=(n, N_COLUMNS)) + views[0] for _ in range(m - 1)]
    return [view.astype(dtype) for view in views]


def prepared(case):
    """Return a model, with few iterations, and what to fit it on."""
    X, options = views_of(case["n"], case["m"], case["dtype"]), dict(case.get("options", {}))
    if case["source"] == "precomputed":
        X = KernelBank(widths=(1.0,), polynomials=(), linear=None).fit_transform(X)
    elif case["source"] == "on-the-fly":
        options["kernels"] = "on-the-fly"
    elif case["source"] == "features":
        options["approximation"] = Nystroem(N_LANDMARKS)
    method = METHODS[case["method"]]
    if "max_iter" in inspect.signature(method).parameters:
        options["max_iter"] = 3
    return method(case["k"], n_init=1, random_state=0, **options), X


def status(key):
    """Return a line of what Linux knows of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(key))


def fit(case):
    """Fit one model and return how much memory it took."""
    warnings.simplefilter("ignore")
    model, X = prepared(case)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = status("VmRSS")
    model.fit(X)
    return status("VmHWM") - before


def announced(case):
    """Return the estimate for a case."""
    estimate = mkclust.estimate_memory(
        case["n"],
        case["m"],
        n_clusters=case["k"],
        n_features=N_COLUMNS * case["m"],
        n_components=N_LANDMARKS,
        dtype=case["dtype"],
        method=case["method"],
    )
    return estimate.n_bytes[ROADS[case["source"]]]


def measured(cases):
    """Yield every case with its peak, its estimate and their ratio."""
    forks = multiprocessing.get_context("fork")
    for case in cases:
        with forks.Pool(1) as pool:
            peak = pool.apply(fit, (case,))
        estimate = announced(case)
        found = {"peak": round(peak / 2**20, 1), "estimate": round(estimate / 2**20, 1)}
        yield {**case, **found, "ratio": round((estimate - OVERHEAD) / peak, 2)}


def all_cases():
    """Return the table: many clusters for every method, and the rest for one of each kind."""
    wanted = [
        (method, "precomputed", 600, 5, k, "float64") for method in METHODS for k in (60, 150)
    ]
    for method in ("simplemkkm", "localized-simplemkkm", "lkam", "onkc"):
        wanted += [(method, "precomputed", 600, 5, k, "float64") for k in (3, 100, 300, 599)]
    for method in ("simplemkkm", "lmkkm", "onkc"):
        wanted += [(method, "precomputed", 600, 2, 150, "float64")]
        wanted += [(method, "precomputed", 600, 5, 150, "float32")]
    wanted += [(method, "views", 600, 5, 150, "float64") for method in ("mkkm", "lkam", "onkc")]
    for method in ("simplemkkm", "lf-mvc"):
        wanted += [(method, "on-the-fly", 600, 2, k, "float64") for k in (3, 60)]
        wanted += [(method, "features", 1000, 2, 100, "float64")]
    wanted += [("simplemkkm", "precomputed", 2000, 2, k, "float64") for k in (3, 200)]
    keys = ("method", "source", "n", "m", "k", "dtype")
    return [dict(zip(keys, case, strict=True)) for case in wanted]


def quick_cases():
    """Return a few small fits, one for each way in which memory is taken."""
    sizes = {"n": 500, "m": 3, "dtype": "float64"}
    chosen = [
        ("simplemkkm", "precomputed", 50),
        ("agreement-kkm", "views", 50),
        ("anchored-mkkm", "precomputed", 50),
        ("simplemkkm", "views", 120),
        ("lkam", "views", 50),
        ("localized-simplemkkm", "views", 50),
        ("lmkkm", "precomputed", 50),
        ("onkc", "precomputed", 120),
        ("simplemkkm", "on-the-fly", 20),
        ("simplemkkm", "features", 50),
    ]
    return [{"method": a, "source": b, **sizes, "k": k} for a, b, k in chosen]


def warm_up(methods):
    """Use everything once, so that what libraries take for themselves is there already."""
    for method in methods:
        for source in ROADS if method in INDUCTIVE else ("precomputed", "views"):
            case = {"method": method, "source": source, "n": 310, "m": 2, "k": 3}
            model, X = prepared({**case, "dtype": "float64"})
            model.fit(X)


def main():
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few small fits, printed as JSON")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), help="only these")
    parser.add_argument("--sources", nargs="*", default=list(ROADS), help="only these")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.quick:
        warm_up(("simplemkkm", "onkc"))
        print(json.dumps(list(measured(quick_cases()))))
        return
    warm_up(METHODS)
    cases = [c for c in all_cases() if c["method"] in options.methods]
    rows = []
    for row in measured([c for c in cases if c["source"] in options.sources]):
        rows.append(row)
        shape = "{method:11} {source:12} n={n} m={m} k={k:<4} {dtype}".format(**row)
        sizes = f"{row['peak']:8.1f} MiB, estimate {row['estimate']:8.1f} MiB"
        within = "" if row["peak"] <= row["estimate"] else "  MORE THAN ANNOUNCED"
        print(f"{shape} {sizes}, ratio {row['ratio']:.2f}{within}", flush=True)
    if options.methods == list(METHODS) and options.sources == list(ROADS):
        made = {"command": "python benchmarks/memory.py", "python": platform.python_version()}
        made |= {"numpy": np.__version__, "overhead": OVERHEAD, "rows": rows}
        path = Path(__file__).parent / "results" / "memory.json"
        path.write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
