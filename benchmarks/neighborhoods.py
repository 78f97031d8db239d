"""What the clusters by neighborhoods are worth, on the sets of `sets.py`.

    MKCLUST_DATA=DATA OMP_NUM_THREADS=1 python benchmarks/neighborhoods.py --jobs 15

writes ``results/neighborhoods.json``: for every contestant and way to disturb the sets,
the adjusted Rand index with the true number of clusters of every set, and means.
Families have the seeds 1, 2 and 3.

contestants   the method as it is; each of its two settings alone; lists to 10, 20 and
              40 nearest
disturbed     as they are; beside a noise view; beside a random category; without 30 and
              50 % of all pairs of sample and view (sets of several views)
sizes         four families of 400, 4,000 and 40,000 samples
"""

import time
import warnings
from unittest import mock

import numpy as np

from mkclust import AgreementKKM
from mkclust.graph import partition as graph
from mkclust.metrics import adjusted_rand_index
from records import JOBS, blobs, in_processes, parse, read_record, write_record
from sets import (
    FAMILIES,
    REAL,
    TOUCHSTONE,
    load,
    with_category,
    with_missing,
    with_noise,
)

SEEDS = (1, 2, 3)
DISTURBED = {
    "as they are": lambda views, seed: views,
    "noise view": with_noise,
    "random category": with_category,
    "30 % missing": lambda views, seed: with_missing(views, 0.3, seed),
    "50 % missing": lambda views, seed: with_missing(views, 0.5, seed),
}
CONTESTANTS = {
    "as it is": {},
    "first setting": {"settings": graph.SETTINGS[:1]},
    "second setting": {"settings": graph.SETTINGS[1:]},
    "neighbors=10": {"neighbors": 10},
    "neighbors=20": {"neighbors": 20},
    "neighbors=40": {"neighbors": 40},
}
SIZES = (400, 4_000, 40_000)


def names_of_sets():
    """Return the sets and seeds of all."""
    families = [(name, seed) for name in (*FAMILIES, *TOUCHSTONE) for seed in SEEDS]
    return [(name, 0) for name in REAL] + families


def run(contestant, disturbed, name, seed):
    """Return the row of one fit: the adjusted Rand index, or why there is none."""
    warnings.simplefilter("ignore")
    views, y = load(name, seed=seed)
    views = DISTURBED[disturbed](views, seed)
    options = dict(CONTESTANTS[contestant])
    settings = options.pop("settings", graph.SETTINGS)
    model = AgreementKKM(len(np.unique(y)), random_state=0, **options)
    row = {"contestant": contestant, "disturbed": disturbed, "set": name, "seed": seed}

    started = time.perf_counter()
    try:
        with mock.patch.object(graph, "SETTINGS", settings):
            model.fit(views)
    except ValueError as error:
        return row | {"ari": 0.0, "refused": str(error)}
    known = model.labels_ >= 0
    return row | {
        "ari": round(float(adjusted_rand_index(y[known], model.labels_[known])), 4),
        "known": round(float(known.mean()), 4),
        "seconds": round(time.perf_counter() - started, 2),
    }


def tasks():
    """Return all fits: every contestant as they are, the method itself on all disturbed
    sets."""
    every = names_of_sets()
    found = [(who, "as they are", *each) for who in CONTESTANTS for each in every]
    disturbed = list(DISTURBED)[1:]
    found += [("as it is", how, *each) for how in disturbed for each in every]
    return found


def of_size(family, n):
    """Return views and classes of a family of some size."""
    if family == "blobs":
        return blobs(n, 8, (10, 20), (1.2, 1.0))
    rng = np.random.default_rng(0)
    if family == "unequal":
        y = rng.choice(5, p=[0.6, 0.25, 0.1, 0.03, 0.02], size=n)
        return {
            v: 1.8 * rng.normal(size=(5, 12))[y] + rng.normal(size=(n, 12))
            for v in "ab"
        }, y
    if family == "cells":
        y = rng.choice(6, p=[0.4, 0.25, 0.15, 0.1, 0.06, 0.04], size=n)
        spread = np.array([0.6, 1.0, 1.4, 0.8, 1.0, 0.5])[y, None]
        lineages, types = rng.normal(size=(3, 15)), rng.normal(size=(6, 15))
        centers = 3 * lineages[np.arange(6) % 3] + 1.5 * types
        return {v: centers[y] + spread * rng.normal(size=(n, 15)) for v in "ab"}, y
    y, angles = rng.integers(2, size=n), rng.uniform(0, np.pi, n)
    moon = np.column_stack([np.cos(angles), np.sin(angles)])
    moon[y == 1] = [1, 0.5] - moon[y == 1]
    return {v: moon + 0.08 * rng.normal(size=(n, 2)) for v in "ab"}, y


def run_size(family, n):
    """Return the row of a fit of some samples of a family."""
    warnings.simplefilter("ignore")
    views, y = of_size(family, n)
    started = time.perf_counter()
    labels = AgreementKKM(len(np.unique(y)), random_state=0).fit(views).labels_
    seconds = time.perf_counter() - started
    ari = round(float(adjusted_rand_index(y, labels)), 4)
    return {"family": family, "n": n, "ari": ari, "seconds": round(seconds, 1)}


def means(rows):
    """Return the means over real sets and families, and by family, of every
    contestant."""
    found = {}
    groups = sorted({(row["contestant"], row["disturbed"]) for row in rows})
    for who, how in groups:
        own = [
            row for row in rows if (row["contestant"], row["disturbed"]) == (who, how)
        ]
        by = {}
        for row in own:
            by.setdefault(row["set"], []).append(row["ari"])
        family = {name: float(np.mean(by[name])) for name in (*FAMILIES, *TOUCHSTONE)}
        values = {
            "real": np.mean([by[name][0] for name in REAL]),
            "families": np.mean([family[name] for name in FAMILIES]),
            "spread over seeds": np.mean([np.std(by[name]) for name in FAMILIES]),
            "refused": sum("refused" in row for row in own),
        } | family
        found[f"{who}, {how}"] = {
            name: round(float(v), 4) for name, v in values.items()
        }
    return found


def main():
    """Run all fits and write them."""
    parts = {"nargs": "*", "choices": ("sets", "sizes"), "default": ["sets", "sizes"]}
    options = parse(__doc__, "neighborhoods.json", jobs=JOBS, only=parts)
    record = read_record(options.out)
    if "sets" in options.only:
        rows = list(in_processes(run, tasks(), options.jobs))
        rows.sort(key=lambda row: [str(value) for value in row.values()][:4])
        record |= {"means": means(rows), "rows": rows}
    if "sizes" in options.only:
        families = ("blobs", "unequal", "cells", "moons")
        record["sizes"] = [run_size(family, n) for family in families for n in SIZES]
    write_record(options.out, record)


if __name__ == "__main__":
    main()
