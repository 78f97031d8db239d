"""What noise, categorical, shuffled, repeated and contradicting views do to methods.

    MKCLUST_DATA=DATA OMP_NUM_THREADS=1 python benchmarks/agreement.py --jobs 15

writes a row for every data set, variant, seed and method to
``results/agreement/rows.jsonl.gz``, and ``--table`` prints the means. Methods run at
their defaults and see no labels; every view has one Gaussian kernel of median width.
Of a data set at most `LARGEST` samples are taken. Slow methods run on small problems
only.

as it is   the views, or the kernels, of the data set
noise 1, 3, 5
           and as many views of twenty normal columns
levels 3   and one random categorical column of three levels, one-hot coded
shuffled   the samples of the last view in random order
copies 3   the first view three times
two camps  all views twice: as they are, and with all samples in one other random order;
           scored with the nearer of both structures
"""

import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from mkclust import METHODS
from mkclust.agreements import measure_agreement
from mkclust.kernels import default_bank
from mkclust.metrics import adjusted_rand_index
from mkclust.stack import as_stack
from mkclust.stack.discretize import discretize
from paper.datasets import load
from records import JOBS, parse, read_rows, write_rows, write_run

NAMES = (
    "breast-cancer",
    "digits",
    "digit",
    "handwritten",
    "flo17-substitute",
    "cal-5-substitute",
)
NAMES += (
    "pfold-truncated",
    "ccv-truncated",
    "ar10p",
    "jaffe",
    "bbcsport",
    "3sources",
    "msrc-v5",
)
NAMES += ("hdigit", "cora")
LARGEST = 1000
# Methods that run only where samples times kernels are no more than this.
SLOW, SMALL = ("lmkkm", "onkc", "lkam"), 2600
# What is not random, and is solved once, for as many starts of k-means as there are
# seeds; and what is drawn by a seed.
FIXED = ("as it is", "copies 3")
RANDOM = ("noise 1", "noise 3", "noise 5", "levels 3", "shuffled", "two camps")
N_SEEDS = 2


def read(name):
    """Return the views of a data set by name, or its kernels, and its classes;
    `LARGEST` samples.

    Without views the first is an array of kernels.
    """
    if name == "breast-cancer":
        X, y = load_breast_cancer(return_X_y=True)
        return {"mean": X[:, :10], "error": X[:, 10:20], "worst": X[:, 20:]}, y
    data = load(name)
    rows, y = np.arange(data.n_samples), np.asarray(data.y)
    if len(rows) > LARGEST:
        rows = np.sort(
            np.random.default_rng(0).choice(len(rows), LARGEST, replace=False)
        )
    if data.views:
        return {
            name: np.asarray(X, dtype=float)[rows] for name, X in data.views.items()
        }, y[rows]
    return np.asarray(data.kernels)[:, rows][:, :, rows], y[rows]


def read_kernels(name):
    """Return the kernels of a data set by name, and its classes."""
    data, y = read(name)
    if not isinstance(data, dict):
        names = load(name).kernel_names or [f"kernel {p}" for p in range(len(data))]
        return dict(zip(names, data, strict=True)), y
    if name == "breast-cancer":
        data = {view: StandardScaler().fit_transform(X) for view, X in data.items()}
    return kernels_of(data), y


def kernels_of(views):
    """Return one Gaussian kernel per view, by the views' names."""
    return dict(
        zip(views, default_bank(True, "gaussian").fit_transform(views), strict=True)
    )


def vary(kernels, y, variant, seed):
    """Return the kernels that a variant makes of a data set, and the classes of each
    structure."""
    rng, n = np.random.default_rng(seed), len(y)
    what, _, count = variant.partition(" ")
    names = list(kernels)
    if what == "noise":
        views = {f"noise {p}": rng.normal(size=(n, 20)) for p in range(int(count))}
        return kernels | kernels_of(views), (y,)
    if what == "levels":
        column = np.eye(int(count))[rng.integers(int(count), size=n)]
        return kernels | kernels_of({"levels": column}), (y,)
    if what == "copies":
        return kernels | {
            f"copy {p}": kernels[names[0]] for p in range(1, int(count))
        }, (y,)
    order = rng.permutation(n)
    moved = {"shuffled": names[-1:], "two": names}.get(what, [])
    other = {name: kernels[name][np.ix_(order, order)] for name in moved}
    if what == "two":
        return kernels | {f"other {name}": K for name, K in other.items()}, (
            y,
            y[order],
        )
    return kernels | other, (y,)


def run(name, variant, seed):
    """Return the rows of one problem, one per method; what is not random is solved
    once."""
    warnings.simplefilter("ignore")
    given, y = read_kernels(name)
    kernels, structures = vary(given, y, variant, seed)
    stack, k = as_stack(kernels, validate=False), len(np.unique(y))
    agreement = measure_agreement(stack)
    rows = []
    for method, estimator in METHODS.items():
        if method in SLOW and len(y) * len(given) > SMALL:
            continue
        row = {
            "dataset": name,
            "variant": variant,
            "method": method,
            "n_samples": len(y),
        }
        row |= {"n_kernels": stack.n_kernels, "n_groups": len(agreement.groups)}
        row |= {"set_aside": list(agreement.set_aside)}
        started = time.perf_counter()
        try:
            solution = estimator(k, random_state=0).solve(stack)
        except ValueError as error:
            rows.append(row | {"seed": seed, "status": str(error)})
            continue
        row["solve_seconds"] = round(time.perf_counter() - started, 4)
        row["weights"] = [round(float(weight), 5) for weight in solution.weights]
        for each in range(N_SEEDS) if variant in FIXED else (seed,):
            labels = discretize(solution.partition, k, n_init=10, random_state=each)[0]
            scores = [adjusted_rand_index(classes, labels) for classes in structures]
            found = {"ari": round(max(scores), 4), "structure": int(np.argmax(scores))}
            rows.append(row | {"seed": each} | found | {"status": "ok"})
    return rows


def problems(names):
    """Return data set, variant and seed of every problem."""
    every = [(variant, 0) for variant in FIXED]
    every += [(variant, seed) for variant in RANDOM for seed in range(N_SEEDS)]
    return [(name, *each) for name in names for each in every]


def mean_scores(path):
    """Return mean scores by method and variant over the data sets: two frames.

    The first is of all data sets, without the slow methods; the second of the small
    ones.
    """
    rows = read_rows(path)
    rows = rows[(rows.status == "ok") & rows.dataset.isin(NAMES)]
    rows["kind"] = rows.variant.str.replace(
        r"^(noise|levels|copies) .*", r"\1", regex=True
    )
    is_slow = rows.method.isin(SLOW)
    parts = {
        "all data sets": ~is_slow,
        "small ones": rows.dataset.isin(rows[is_slow].dataset),
    }
    return {
        title: rows[part]
        .pivot_table("ari", ["method", "dataset"], "kind")
        .groupby("method")
        .mean()
        for title, part in parts.items()
    }


def main():
    """Run all problems, or print the table of the rows that are there."""
    more = {
        "datasets": {"nargs": "*", "default": NAMES},
        "table": {"action": "store_true"},
    }
    options = parse(__doc__, "agreement/rows.jsonl.gz", jobs=JOBS, **more)
    if not options.table:
        write_rows(options.out, run, problems(options.datasets), options.jobs)
        write_run(options.out)
    for title, means in mean_scores(options.out).items():
        print(f"\n{title}\n{means.round(3).to_string()}")


if __name__ == "__main__":
    main()
