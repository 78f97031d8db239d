"""How often ``suggest_n_clusters`` is right, also where there are no clusters.

    MKCLUST_DATA=DATA OMP_NUM_THREADS=1 python benchmarks/n_clusters.py --jobs 15

writes ``results/n_clusters/`` beside itself: ``rules.json``, how often each rule is
right; ``sets.json``, what is found on every set of `sets.py` (families have the seeds
1, 2 and 3) and on clean mixtures; ``sets-untouched.json``, the same with other seeds,
which no rule was chosen by; ``evidence-untouched.json``, the evidence on data without
clusters and on continua, with such seeds; ``cost.json``, times in fits.

real, families  the sets of `sets.py`
mixtures        2 to 12 round clusters in two views, 1,000 samples; the largest cluster
                is 1, 5 or 20 times as large as the smallest
without         normal, t with 3 degrees of freedom, correlated columns, categories, one
                heavy outlier, uniform on a sphere
continua        a line, a circle, a gradient of two dimensions, sizes of libraries
"""

import time
import warnings
from itertools import combinations

import numpy as np

from mkclust import AgreementKKM, suggest_n_clusters
from mkclust.methods.number_of_clusters import highest, scores_of
from mkclust.metrics import adjusted_rand_index
from records import JOBS, blobs, in_processes, parse, write_record
from sets import FAMILIES, REAL, TOUCHSTONE, load

# Seeds of families, by half, and the files of their sets; no rule was chosen by the
# second half.
SEEDS = {"first": (1, 2, 3), "untouched": (4, 5, 6)}
FILES_OF_SETS = {"first": "sets.json", "untouched": "sets-untouched.json"}
NUMBERS = (2, 3, 4, 5, 6, 8, 10, 12)
RATIOS = (1, 5, 20)
CRITERIA = ("eigengaps", "tightness", "agreements")
# Data sets of each kind without clusters, and of continua.
REPEATS, REPEATS_OF_CONTINUA = 17, 10


def mixture(name, seed):
    """Return views of round clusters; the name has their number and ratio of sizes."""
    k, ratio = (int(each) for each in name.split(":"))
    rng = np.random.default_rng([k, ratio, seed])
    shares = np.geomspace(ratio, 1, k)
    sizes = np.round(1000 * shares / shares.sum()).astype(int)
    y = np.repeat(np.arange(k), np.maximum(sizes, 1))
    views = {}
    for width in (8, 15):
        centers = 2 * rng.normal(size=(k, width))
        views[f"of {width}"] = centers[y] + rng.normal(size=(len(y), width))
    return views, y


def without(name, seed):
    """Return views without clusters."""
    rng = np.random.default_rng([9, seed])
    n, widths = int(rng.integers(150, 401)), rng.integers(5, 31, size=2)
    views = []
    for width in widths:
        normal = rng.normal(size=(n, width))
        if name == "t with 3 degrees":
            normal = rng.standard_t(3, size=(n, width))
        if name == "correlated":
            normal = normal @ rng.normal(size=(width, width))
        if name == "categories":
            levels = rng.integers(3, size=(n, width))
            normal = np.eye(3)[levels].reshape(n, -1)
        if name == "outlier":
            normal[0] *= 100
        if name == "sphere":
            normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        views.append(normal)
    return {f"view {number}": view for number, view in enumerate(views)}


WITHOUT = (
    "normal",
    "t with 3 degrees",
    "correlated",
    "categories",
    "outlier",
    "sphere",
)


def continuum(name, seed):
    """Return views of samples along a line or circle, in a square, or by their size."""
    rng = np.random.default_rng([10, seed])
    place = rng.uniform(size=(400, 2))
    if name == "line":
        place = place[:, :1]
    if name == "circle":
        angle = 2 * np.pi * place[:, 0]
        place = np.column_stack([np.cos(angle), np.sin(angle)])
    if name == "library size":
        rates = rng.gamma(0.5, 2, size=(2, 30))
        sizes = rng.lognormal(0, 1, size=(400, 1))
        return {f"view {v}": np.log1p(rng.poisson(sizes * rates[v])) for v in (0, 1)}
    views = {}
    for v in (0, 1):
        curve = np.tanh(2 * place @ rng.normal(size=(place.shape[1], 8)))
        views[f"view {v}"] = curve + 0.1 * rng.normal(size=curve.shape)
    return views


CONTINUA = ("line", "circle", "gradient", "library size")


def rules():
    """Return which criteria every rule adds."""
    return [each for count in (1, 2, 3) for each in combinations(CRITERIA, count)]


def find(part, name, seed):
    """Return the row of one set: what is found, by every rule, and what it is worth."""
    warnings.simplefilter("ignore")
    views, y = mixture(name, seed) if part == "mixtures" else load(name, seed=seed)
    true = len(np.unique(y))
    started = time.perf_counter()
    found = suggest_n_clusters(views)
    seconds = time.perf_counter() - started

    def worth(labels):
        """Return the adjusted Rand index with the classes."""
        known = labels >= 0
        return float(adjusted_rand_index(y[known], labels[known]))

    by_k = {k: worth(labels) for k, labels in found.labels_by_k.items()}
    fit = AgreementKKM(true, random_state=0).fit(views).labels_
    at_true = by_k.get(true, worth(fit))
    row = {"part": part, "set": name, "seed": seed, "true": true}
    row |= {"found": found.n_clusters, "candidates": list(found.candidates)}
    row |= {"ari": by_k[found.n_clusters], "at true": at_true, "fit": worth(fit)}
    row["best of candidates"] = max(by_k[k] for k in found.candidates)
    if true in by_k:
        row["same as fit"] = float(adjusted_rand_index(fit, found.labels_by_k[true]))
    for criteria in rules():
        scores = scores_of(*(getattr(found, name) for name in criteria))
        k = highest(found.k_values, scores)[0]
        row[" + ".join(criteria)] = [k, by_k[k]]
    row["seconds"] = seconds
    return _rounded(row)


def _rounded(row):
    """Return a row with numbers of four digits."""
    kept = {}
    for name, value in row.items():
        if isinstance(value, float):
            value = round(value, 4)
        if isinstance(value, list):
            value = [round(each, 4) for each in value]
        kept[name] = value
    return kept


def judge(part, name, seed):
    """Return the row of the evidence in data without clear clusters."""
    warnings.simplefilter("ignore")
    make = without if part == "without" else continuum
    found = suggest_n_clusters(make(name, seed), evidence=True)
    tests = found.tests
    row = {"part": part, "set": name, "seed": seed, "evidence": found.evidence}
    row |= {"found": found.n_clusters, "p_cloud": tests.p_cloud}
    row |= {"p_shuffled": tests.p_shuffled, "p_continuum": tests.p_continuum}
    return _rounded(row | {"density": tests.border_density})


def cost():
    """Return times of the processor for one call, also in fits of 2,000 samples."""
    views, _ = blobs(2000, 8, (8, 15, 30), (1.3, 1.3, 1.3))
    seconds = {"fit": [], "without evidence": [], "with evidence": []}
    for repeat in range(4):
        for name, times in seconds.items():
            started = time.process_time()
            if name == "fit":
                AgreementKKM(8, random_state=0).fit(views)
            else:
                suggest_n_clusters(views, evidence=name == "with evidence")
            if repeat:
                times.append(time.process_time() - started)
    middle = {name: float(np.median(times)) for name, times in seconds.items()}
    ratios = {f"{name}, in fits": middle[name] / middle["fit"] for name in middle}
    return _rounded(middle | ratios)


def sets_of(seeds):
    """Return the parts, names and seeds of all sets."""
    every = [("real", name, 0) for name in REAL]
    families = (*FAMILIES, *TOUCHSTONE)
    every += [("families", name, seed) for name in families for seed in seeds]
    mixtures = [f"{k}:{ratio}" for ratio in RATIOS for k in NUMBERS]
    return every + [("mixtures", name, seeds[0]) for name in mixtures]


def summarize(rows):
    """Return by part how often a rule is right or within one, and what it loses."""
    found = {}
    parts = {
        "real": [row for row in rows if row["part"] == "real"],
        "families": [
            row for row in rows if row["part"] == "families" and row["set"] != "many"
        ],
        "mixtures": [row for row in rows if row["part"] == "mixtures"],
    }
    for part, own in parts.items():
        for criteria in rules():
            name = " + ".join(criteria)
            off = [abs(row[name][0] - row["true"]) for row in own]
            regret = np.mean([row["at true"] - row[name][1] for row in own])
            bias = np.mean([row[name][0] - row["true"] for row in own])
            values = {"right": off.count(0), "within one": off.count(0) + off.count(1)}
            values |= {"of": len(own), "regret": round(float(regret), 4)}
            found.setdefault(name, {})[part] = values | {"bias": round(float(bias), 2)}
    near = [min(abs(k - row["true"]) for k in row["candidates"]) <= 1 for row in rows]
    best = [row["at true"] - row["best of candidates"] for row in rows]
    same = [row["same as fit"] for row in rows if "same as fit" in row]
    about = {"truth within one of a candidate": sum(near), "of": len(rows)}
    about["regret of the best candidate"] = round(float(np.mean(best)), 4)
    about["clusters as of a fit (mean adjusted Rand index)"] = round(
        float(np.mean(same)), 4
    )
    about["clusters as of a fit (share above .99)"] = round(
        float(np.mean(np.array(same) > 0.99)), 4
    )
    return {"rules": found, "candidates": about}


def in_order(rows):
    """Return rows by part, set and seed."""
    return sorted(rows, key=lambda row: (row["part"], row["set"], row["seed"]))


def without_clusters(first_seed):
    """Return the parts, names and seeds of data without clear clusters."""
    parts = (("without", WITHOUT, REPEATS), ("continua", CONTINUA, REPEATS_OF_CONTINUA))
    return [
        (part, name, first_seed + each)
        for part, names, repeats in parts
        for name in names
        for each in range(repeats)
    ]


def main():
    """Run all parts and write them."""
    only = {"nargs": "*", "choices": ("sets", "evidence", "cost")}
    only["default"] = list(only["choices"])
    options = parse(__doc__, "n_clusters", jobs=JOBS, only=only)

    if "cost" in options.only:
        write_record(options.out / "cost.json", cost())
    if "sets" in options.only:
        found = {}
        for half, seeds in SEEDS.items():
            rows = in_order(in_processes(find, sets_of(seeds), options.jobs))
            name = FILES_OF_SETS[half]
            write_record(options.out / name, {"rows": rows})
            found[half] = summarize(rows)
        write_record(options.out / "rules.json", found)
    if "evidence" in options.only:
        tasks = without_clusters(1000 * SEEDS["untouched"][0])
        rows = in_order(in_processes(judge, tasks, options.jobs))
        write_record(options.out / "evidence-untouched.json", {"rows": rows})


if __name__ == "__main__":
    main()
