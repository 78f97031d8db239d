"""How often ``suggest_n_clusters`` is right: on noise, planted clusters and real data.

    MKCLUST_DATA=DATA OMP_NUM_THREADS=1 python benchmarks/n_clusters.py --jobs 15

prints what is found and writes ``results/n_clusters.json`` beside itself, keeping the
parts that were not run (``--parts``). Every problem has a fixed seed.

noise       views of independent noise: 150 to 400 samples, 2 to 4 views, 5 to 30
            features, normal, uniform, exponential or heavy-tailed (t with 3 degrees of
            freedom)
planted     3 to 8 clusters of equal size in 2 or 3 views of 10 features, 200 to 400
            samples; centers are normal, noise has deviation 1; two centers are 4.5
            apart on average
closer      the same, 2.7 apart
categories  the same as planted, beside one random category of two levels
real        data sets of ``MKCLUST_DATA`` and scikit-learn (in two views) with up to 20
            classes
"""

from functools import partial

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import agreement
from mkclust import suggest_n_clusters
from mkclust.stack.discretize import count_clusters
from records import JOBS, in_processes, parse, read_record, write_record

SCIKIT_LEARN = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer, halves": load_breast_cancer,
}


def noise(name, seed):
    """Return views of independent noise."""
    rng = np.random.default_rng([1, seed])
    n, m = int(rng.integers(150, 401)), int(rng.integers(2, 5))
    draw = (rng.normal, rng.random, rng.exponential, partial(rng.standard_t, 3))[
        seed % 4
    ]
    return [draw(size=(n, int(rng.integers(5, 31)))) for _ in range(m)], None


def planted(name, seed, strength=1.0):
    """Return views with planted clusters of equal size, and their number."""
    rng = np.random.default_rng([2, seed])
    k, n, m = 3 + seed % 6, int(rng.integers(200, 401)), int(rng.integers(2, 4))
    y = np.arange(n) % k
    views = [
        strength * rng.normal(size=(k, 10))[y] + rng.normal(size=(n, 10))
        for _ in range(m)
    ]
    return views, k


def categories(name, seed):
    """Return planted clusters beside a random category, and their number."""
    views, k = planted(name, seed)
    sex = np.eye(2)[np.random.default_rng([5, seed]).integers(2, size=len(views[0]))]
    return [*views, sex], k


def real(name, seed):
    """Return the views or kernels of a data set, and its number of classes."""
    if name in SCIKIT_LEARN:
        data = SCIKIT_LEARN[name]()
        X, y = (
            dict(zip("ab", np.array_split(data.data, 2, axis=1), strict=True)),
            data.target,
        )
    else:
        X, y = agreement.read(name)
    return X, count_clusters(y)


# How to make a problem of a name and a seed, its names, and the number of seeds.
PARTS = {
    "noise": (noise, ["noise"], 100),
    "planted": (planted, ["4.5 apart"], 100),
    "closer": (partial(planted, strength=0.6), ["2.7 apart"], 20),
    "categories": (categories, ["beside a random category"], 20),
    "real": (real, [*SCIKIT_LEARN, *agreement.NAMES], 1),
}
CRITERIA = ("eigengaps", "silhouettes", "stabilities")


def find(part, name, seed):
    """Return what is found for one problem; None for real data of more than 20 classes."""
    X, k = PARTS[part][0](name, seed)
    if k is not None and k > 20:
        return None
    found = suggest_n_clusters(X)
    largest = {
        c: int(found.k_values[np.nanargmax(getattr(found, c))]) for c in CRITERIA
    }
    p_values = {
        each: getattr(found, each) for each in ("p_cloud", "p_shuffled", "p_continuum")
    }
    return {
        "problem": name,
        "seed": seed,
        "true": k,
        "n_clusters": found.n_clusters,
        "evidence": found.evidence,
        "next": found.candidates[1:],
        **largest,
        **{name: None if np.isnan(p) else round(p, 4) for name, p in p_values.items()},
    }


def main():
    parts = {"nargs": "+", "choices": PARTS, "default": list(PARTS)}
    options = parse(__doc__, "n_clusters.json", jobs=JOBS, parts=parts)
    record = read_record(options.out)
    for part in options.parts:
        _, names, n_seeds = PARTS[part]
        tasks = [(part, name, seed) for name in names for seed in range(n_seeds)]
        rows = [
            row for row in in_processes(find, tasks, options.jobs) if row is not None
        ]
        record[part] = sorted(
            rows, key=lambda row: (names.index(row["problem"]), row["seed"])
        )
        print(pd.DataFrame(record[part]).to_string())
        write_record(options.out, record, "python benchmarks/n_clusters.py")


if __name__ == "__main__":
    main()
