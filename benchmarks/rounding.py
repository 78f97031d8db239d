"""Three roundings of relaxed partitions: rows of unit length, components, and the
better of both.

    MKCLUST_DATA=DATA OMP_NUM_THREADS=1 python benchmarks/rounding.py --jobs 2

writes a row for every set of `sets.py`, method and seed to
``results/rounding/rows.jsonl.gz``: the adjusted Rand index of the clusters by
``rounding="unit"``, "components" and "best", and which of the two "best" has taken.
Real sets have one seed, simulated ones three, "cite" two. ``--table`` prints the means,
and how often "best" takes the better one where the two differ.
"""

import warnings

import numpy as np
from sklearn.metrics import adjusted_rand_score

from mkclust import METHODS
from mkclust.fit.rounding import ROUNDINGS
from records import JOBS, parse, read_rows, rounded, write_rows, write_run
from sets import FAMILIES, REAL, TOUCHSTONE, load

COMPARED = ("avg-kkm", "simplemkkm", "mkkm", "lf-mvc", "anchored-mkkm")
N_SEEDS, N_TOUCHSTONE = 3, 2
# Adjusted Rand indices that differ by no more than this are taken to be equal.
SAME = 0.005


def compare(name, method, seed):
    """Return the row of one method on one set."""
    warnings.simplefilter("ignore")
    views, y = load(name, seed)
    row = {"dataset": name, "method": method, "seed": seed, "n_samples": len(y)}
    options = {"scale": "none"} if name in TOUCHSTONE else {}
    for rounding in ROUNDINGS:
        model = METHODS[method](
            len(np.unique(y)), rounding=rounding, random_state=0, **options
        )
        try:
            labels = model.fit(views).labels_
        except ValueError as error:
            return [row | {"status": f"refused: {error}"[:200]}]
        row |= rounded({rounding: adjusted_rand_score(y, labels)})
        if rounding == "best":
            row["chosen"] = model.rounding_
    return [row | {"status": "ok"}]


def problems():
    """Yield set, method and seed of every problem."""
    for method in COMPARED:
        for name in (*REAL, *FAMILIES, *TOUCHSTONE):
            n_seeds = 1 if name in REAL else N_SEEDS
            for seed in range(N_TOUCHSTONE if name in TOUCHSTONE else n_seeds):
                yield name, method, seed


def kind_of(name):
    """Return of which kind a set is."""
    if name in REAL:
        return "real sets"
    return "cite" if name in TOUCHSTONE else "families"


def table(rows):
    """Return mean indices by method and kind of set, and how often the better one is
    taken."""
    rows = rows[rows.status == "ok"]
    rows = rows.assign(kind=rows.dataset.map(kind_of))
    apart = (rows.unit - rows.components).abs() > SAME
    is_better = (rows.components > rows.unit) == (rows.chosen == "components")
    rows = rows.assign(differ=apart, taken=is_better.where(apart))
    columns = [*ROUNDINGS, "differ", "taken"]
    by_set = rows.groupby(["method", "kind", "dataset"])[columns].mean()
    return by_set.groupby(["method", "kind"]).mean()


def main():
    """Run all problems, and print what was refused and the means."""
    options = parse(
        __doc__, "rounding/rows.jsonl.gz", jobs=JOBS, table={"action": "store_true"}
    )
    if not options.table:
        write_rows(options.out, compare, problems(), options.jobs)
        write_run(options.out)
    rows = read_rows(options.out)
    print(rows[rows.status != "ok"][["dataset", "method", "status"]].to_string())
    print(table(rows).round(3).to_string())


if __name__ == "__main__":
    main()
