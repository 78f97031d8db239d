"""Three roundings of relaxed partitions: rows of unit length, components, and the better of both.

    MKCLUST_DATA=DATA OMP_NUM_THREADS=1 python benchmarks/rounding.py --jobs 2

adds a row for every set of `sets.py`, method and seed to ``results/rounding/rows.jsonl.gz``:
the adjusted Rand index of the clusters of both forms of rows, the share of the mixed kernel's
trace that lies between them, and which one ``rounding="best"`` takes. Real sets have one seed,
simulated ones three, "cite" two. ``--table`` prints how often the better one is taken, and the
mean index of the three roundings.
"""

import warnings

import numpy as np
from sklearn.metrics import adjusted_rand_score

from mkclust import METHODS
from mkclust.methods import rounding, training
from records import JOBS, add_rows, parse, rounded
from sets import FAMILIES, REAL, TOUCHSTONE, load

COMPARED = ("avg-kkm", "simplemkkm")
N_SEEDS, N_TOUCHSTONE = 3, 2
# Adjusted Rand indices that differ by less are taken to be equal.
SAME = 0.005


def compare(name, method, seed):
    """Return the row of one method on one set."""
    warnings.simplefilter("ignore")
    views, y = load(name, seed)
    row = {"dataset": name, "method": method, "seed": seed, "n_samples": len(y)}
    options = {"scale": "none"} if name in TOUCHSTONE else {}
    model = METHODS[method](len(np.unique(y)), random_state=0, **options)
    found = {}

    def round_all(stack, solution, rows, **settings):
        for form in ("unit", "components"):
            if form not in found:
                one = settings | {"rounding": form}
                found[form] = rounding.round_partition(stack, solution, rows, **one)
        if "shares" not in found:
            kernel = rounding.kernel_of(stack, solution)
            both = [found["unit"].labels, found["components"].labels]
            found["shares"] = rounding.explained(stack, kernel, both)
        return rounding.round_partition(stack, solution, rows, **settings)

    training.round_partition, given = round_all, training.round_partition
    try:
        model.fit(views)
    except ValueError as error:
        return [row | {"status": f"refused: {error}"[:200]}]
    finally:
        training.round_partition = given
    if model._covered is not None:
        y = y[model._covered]
    shares = dict(zip(("unit", "components"), found["shares"], strict=True))
    for form, share in shares.items():
        index = adjusted_rand_score(y, found[form].labels)
        row |= rounded({f"ari_{form}": index, f"share_{form}": share}, 6)
    return [row | {"chosen": model.rounding_, "status": "ok"}]


def problems():
    for method in COMPARED:
        for name in REAL:
            yield name, method, 0
        for name in (*FAMILIES, *TOUCHSTONE):
            for seed in range(N_TOUCHSTONE if name in TOUCHSTONE else N_SEEDS):
                yield name, method, seed


def main():
    options = parse(__doc__, "rounding/rows.jsonl.gz", jobs=JOBS, table={"action": "store_true"})
    if not options.table:
        add_rows(options.out, compare, problems(), options.jobs)


if __name__ == "__main__":
    main()
