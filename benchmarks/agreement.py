"""What noise, categorical, shuffled, repeated and contradicting views do to every method.

    MKCLUST_DATA=DATA OMP_NUM_THREADS=1 python benchmarks/agreement.py --jobs 15

writes a row for every data set, variant, seed and method to ``results/agreement/rows.jsonl.gz``
beside itself, and ``--table`` prints the means of the rows that are there. Methods run at their
defaults and see no labels; every view has one Gaussian kernel of median width. ``--set-aside``
counts over a hundred seeds how often an added view is set aside, and writes ``set_aside.json``.

as it is     the views, or the kernels, of the data set
noise 1..5   and as many views of twenty normal columns
levels L     and one random categorical column of L levels, one-hot coded
shuffled     the samples of the last view in random order
copies 2..5  the first view as many times
two camps    all views twice: as they are, and with all samples in one other random order

Of the last the score is that with the nearer of both structures. Data sets of more than `LARGEST`
samples take part with as many of them. The methods that work on all entries (`SLOW`) take part in
small problems only, of up to `SMALL` samples times kernels, and with fewer seeds (`FEW_SEEDS`), as
the other methods do in larger ones, except the four that the question is about (`ASKED`).
"""

import argparse
import gzip
import json
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from mkclust import METHODS
from mkclust.kernels import default_bank
from mkclust.methods.agreement import measure_agreement
from mkclust.metrics import adjusted_rand_index
from mkclust.stack import as_stack
from mkclust.stack.discretize import discretize
from paper.datasets import load

NAMES = (
    "breast-cancer",
    "digits",
    "digit",
    "handwritten",
    "flo17-substitute",
    "cal-5-substitute",
    "pfold-truncated",
    "ccv-truncated",
    "ar10p",
    "jaffe",
    "bbcsport",
    "3sources",
    "msrc-v5",
    "hdigit",
    "cora",
    "coil20",
)
LARGEST, SMALL, FEW_SEEDS = 2000, 5000, 3
SLOW = ("lmkkm", "onkc", "lkam")
ASKED = ("avg-kkm", "simplemkkm", "agreement-kkm", "anchored-mkkm")
FIXED = ("as it is", "copies 2", "copies 3", "copies 5")
RANDOM = (
    *(f"noise {count}" for count in (1, 2, 3, 4, 5)),
    *(f"levels {count}" for count in (2, 3, 5, 10)),
    "shuffled",
    "two camps",
)


@dataclass(frozen=True)
class Problem:
    """Kernels with names, and the classes of one structure, or of two."""

    kernels: dict[str, np.ndarray]
    classes: tuple[np.ndarray, ...]


def read(name):
    """Return the kernels of a data set by name, and its classes; of the first samples if many."""
    if name == "breast-cancer":
        X, y = load_breast_cancer(return_X_y=True)
        X = StandardScaler().fit_transform(X)
        views = {"mean": X[:, :10], "error": X[:, 10:20], "worst": X[:, 20:]}
        return kernels_of(views), y
    data = load(name)
    rows = np.arange(data.n_samples)
    if len(rows) > LARGEST:
        rows = np.sort(np.random.default_rng(0).choice(len(rows), LARGEST, replace=False))
    y = np.asarray(data.y)[rows]
    if data.views:
        return kernels_of({view: np.asarray(X)[rows] for view, X in data.views.items()}), y
    names = data.kernel_names or [f"kernel {p}" for p in range(len(data.kernels))]
    return {name: K[np.ix_(rows, rows)] for name, K in zip(names, data.kernels, strict=True)}, y


def kernels_of(views):
    """Return one Gaussian kernel a view, by the views' names."""
    return dict(zip(views, default_bank(True, "gaussian").fit_transform(views), strict=True))


def vary(kernels, y, variant, seed):
    """Return the problem that a variant makes of a data set."""
    rng, n = np.random.default_rng(seed), len(y)
    what, _, count = variant.partition(" ")
    names = list(kernels)
    if what == "noise":
        views = {f"noise {p}": rng.normal(size=(n, 20)) for p in range(int(count))}
        return Problem(kernels | kernels_of(views), (y,))
    if what == "levels":
        column = np.eye(int(count))[rng.integers(int(count), size=n)]
        return Problem(kernels | kernels_of({"levels": column}), (y,))
    if what == "copies":
        again = {f"copy {p}": kernels[names[0]] for p in range(1, int(count))}
        return Problem(kernels | again, (y,))
    order = rng.permutation(n)
    if what == "shuffled":
        return Problem(kernels | {names[-1]: kernels[names[-1]][np.ix_(order, order)]}, (y,))
    if what == "two":
        other = {f"other {name}": K[np.ix_(order, order)] for name, K in kernels.items()}
        return Problem(kernels | other, (y, y[order]))
    return Problem(kernels, (y,))


def takes_part(method, size, variant, seed):
    """Return whether a method is run on so many samples times kernels with this seed."""
    is_large = size > SMALL
    if method in ASKED or (variant in FIXED and method not in SLOW):
        return True
    if method in SLOW and is_large:
        return False
    return seed < FEW_SEEDS or not (is_large or method in SLOW)


def score(solution, stack, k, classes, seed):
    """Return the adjusted Rand index with the nearest structure, and which that is."""
    labels = discretize(stack.lift_some(solution.partition), k, n_init=10, random_state=seed)[0]
    scores = [adjusted_rand_index(y, labels) for y in classes]
    return max(scores), int(np.argmax(scores))


def run(name, variant, seed):
    """Return the rows of one problem, a method each; what is not random is solved once."""
    kernels, y = read(name)
    problem, k = vary(kernels, y, variant, seed), len(np.unique(y))
    stack = as_stack(problem.kernels, validate=False)
    agreement = measure_agreement(stack)
    rows = []
    for method, estimator in METHODS.items():
        if not takes_part(method, len(y) * len(kernels), variant, seed):
            continue
        row = {"dataset": name, "variant": variant, "method": method, "n_samples": len(y)}
        row |= {"n_kernels": stack.n_kernels, "n_groups": len(agreement.groups)}
        row |= {"set_aside": list(agreement.set_aside)}
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                solution = estimator(k, random_state=0).solve(stack)
            except ValueError as error:
                rows.append(row | {"seed": seed, "status": str(error)})
                continue
        row["solve_seconds"] = round(time.perf_counter() - started, 4)
        row["weights"] = [round(float(weight), 5) for weight in solution.weights]
        for each in range(10) if variant in FIXED else (seed,):
            ari, structure = score(solution, stack, k, problem.classes, each)
            rows.append(row | {"seed": each, "ari": round(ari, 4), "structure": structure})
            rows[-1]["status"] = "ok"
    return rows


def problems(names):
    """Return data set, variant and seed of every problem."""
    for variant, seeds in [*((v, 1) for v in FIXED), *((v, 10) for v in RANDOM)]:
        for seed in range(seeds):
            for name in names:
                if name != "coil20" or variant.split()[0] in ("as", "noise", "levels"):
                    yield name, variant, seed


def count_set_aside(name, n_seeds=100):
    """Return how often an added view, and how often a real one, is set aside, by variant."""
    kernels, y = read(name)
    counts = {"dataset": name, "n_samples": len(y), "n_kernels": len(kernels), "n_seeds": n_seeds}
    counts["real_views_set_aside_as_it_is"] = len(aside(kernels)) if len(kernels) > 1 else 0
    for variant in ("noise 1", "levels 2", "levels 3", "levels 5", "levels 10"):
        added = real = 0
        for seed in range(n_seeds):
            names = set(aside(vary(kernels, y, variant, seed).kernels))
            added += not names.issubset(kernels)
            real += bool(names.intersection(kernels))
        counts[variant] = {"added_set_aside": added, "real_set_aside": real}
    return counts


def aside(kernels):
    """Return the names of the kernels that are set aside."""
    return measure_agreement(as_stack(kernels, validate=False)).set_aside


def mean_scores(path):
    """Return mean scores by method and variant over the data sets of several views: two frames.

    The first is of all data sets, without the slow methods; the second of the small ones.
    """
    import pandas as pd

    with gzip.open(path, "rt") as lines:
        rows = pd.DataFrame(map(json.loads, lines))
    rows = rows[(rows.status == "ok") & (rows.dataset != "coil20")]
    rows["kind"] = rows.variant.str.replace(r"^(noise|levels|copies) .*", r"\1", regex=True)
    small = rows[rows.dataset.isin(rows[rows.method.isin(SLOW)].dataset)]
    parts = {"all data sets": rows[~rows.method.isin(SLOW)], "small ones": small}
    means = {}
    for title, part in parts.items():
        by_data = part.groupby(["method", "kind", "dataset"]).ari.mean()
        means[title] = by_data.groupby(level=[0, 1]).mean().unstack()
    return means


def table(path):
    """Print mean scores by method and variant."""
    for title, means in mean_scores(path).items():
        print(f"\n{title}\n{means.round(3).to_string()}")


def main():
    """Run all problems, or print the table of the rows that are there."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--datasets", nargs="*", default=NAMES)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--set-aside", action="store_true", help="count over a hundred seeds")
    default = Path(__file__).parent / "results/agreement/rows.jsonl.gz"
    parser.add_argument("--out", type=Path, default=default)
    options = parser.parse_args()
    if options.table:
        table(options.out)
        return
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if options.set_aside:
        with ProcessPoolExecutor(options.jobs) as pool:
            counts = list(pool.map(count_set_aside, options.datasets))
        path = options.out.with_name("set_aside.json")
        path.write_text(json.dumps(counts, indent=1) + "\n")
        print(path.read_text())
        return
    with ProcessPoolExecutor(options.jobs) as pool, gzip.open(options.out, "wt") as lines:
        for done in as_completed([pool.submit(run, *each) for each in problems(options.datasets)]):
            for row in done.result():
                lines.write(json.dumps(row) + "\n")
            lines.flush()
    table(options.out)


if __name__ == "__main__":
    main()
