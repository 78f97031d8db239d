"""How often ``suggest_n_clusters`` is right: on noise, on planted clusters, and on awkward data.

Run ``python benchmarks/n_clusters.py [--jobs N] [--parts noise planted ...]``; it prints what is
found and writes ``results/n_clusters.json`` beside itself, keeping the parts that were not run.
UCI Digit takes part if ``MKCLUST_DATA`` is set. Every problem has a fixed seed.

If clusters cannot be the answer, since no number of them has sparse borders, data without clusters
("words" aside) are not compared with draws, which take most of the time and cannot change that.

noise     views of independent noise: 150 to 400 samples, 2 to 4 views, 5 to 30 features, normal,
          uniform, exponential or heavy-tailed (t with 3 degrees of freedom)
shapes    no clusters, 120 and 400 samples: curves and surfaces that two views share, each by a
          smooth map of its own into six features; counts with a shared rate; one table of noise;
          two curves that views do not share
words     the same, 120 samples: which of the two words they get, "continuum" or "no evidence". The
          first would have been called clusters by the comparisons with draws alone
planted   3 to 8 clusters of equal size in 2 or 3 views of 10 features, 200 to 400 samples. Centers
          are normal, noise has deviation 1, and two centers are 4.5 apart on average in a view
weaker    the same, with centers closer to each other
awkward   one view; kernels instead of views; a noise view beside good ones; one good view beside
          noise; clusters of unequal size; a gradual change that views share; k out of range
borders   planted, weaker and awkward clusters and real digits: whether samples are sparser between
          the true number of clusters than within them, without any draws
real      the bundled digits and UCI Digit, which have ten classes
cost      the time of the path for 2 to 12 clusters against one solve for 12, n = 2000, m = 3
"""

import argparse
import json
import os
import time
from itertools import product
from pathlib import Path

import joblib
import numpy as np
import pandas as pd

from mkclust import AverageKKM, KernelBank
from mkclust.explain.choosing import suggest_n_clusters
from mkclust.explain.choosing.borders import count_at_borders
from mkclust.explain.choosing.clusterings import cluster_for_all_k
from mkclust.explain.choosing.mix import MixSettings, centered
from mkclust.explain.parts import Parts
from mkclust.methods import solve_average_kkm, solve_simple_mkkm
from mkclust.metrics import adjusted_rand_index
from paper.datasets import load
from records import ONE_GAUSSIAN, read_record, rounded, write_record

N_FEATURES = 10
K_VALUES = list(range(2, 13))
LEVEL = 0.02
CURVES = ("evenly spaced line", "uniform line", "normal line", "circle")
SURFACES = ("swiss roll", "uniform square")
OTHERS = ("counts", "two curves that are not shared", "two views of normal noise")
OTHERS += ("one table of normal noise", "one exponential column")
SHAPES = (*CURVES, *SURFACES, *(f"{name}, linear" for name in (*CURVES, *SURFACES)), *OTHERS)
# How far apart two centers are on average, in deviations of the noise in a view.
APART = {f"{s * np.sqrt(2 * N_FEATURES):.1f} apart": s for s in (1.0, 0.8, 0.6, 0.5, 0.4)}


def blobs(rng, n, k, strengths, shares=None):
    """Return views of Gaussian blobs and their classes; strength zero is pure noise."""
    y = np.arange(n) % k if shares is None else rng.choice(k, n, p=shares)
    shape = (k, N_FEATURES)
    views = [s * rng.normal(size=shape)[y] + rng.normal(size=(n, N_FEATURES)) for s in strengths]
    return views, y


def noise(seed):
    """Return views of independent noise, and the name of its distribution."""
    rng = np.random.default_rng([1, seed])
    n, m = int(rng.integers(150, 401)), int(rng.integers(2, 5))
    draw = {
        "normal": lambda shape: rng.normal(size=shape),
        "uniform": lambda shape: rng.random(shape),
        "exponential": lambda shape: rng.exponential(size=shape),
        "t3": lambda shape: rng.standard_t(3, size=shape),
    }
    law = list(draw)[seed % 4]
    return [draw[law]((n, int(rng.integers(5, 31)))) for _ in range(m)], f"{law} noise"


def latent(name, rng, n):
    """Return coordinates on a curve or surface without clusters, of unit size."""
    t, u = rng.random((2, n))
    turn = 1.5 * np.pi * (1 + 2 * t)
    Z = {
        "evenly spaced line": np.linspace(0, 1, n)[:, None],
        "uniform line": t[:, None],
        "normal line": rng.normal(size=(n, 1)),
        "circle": np.c_[np.cos(2 * np.pi * t), np.sin(2 * np.pi * t)],
        "swiss roll": np.c_[turn * np.cos(turn), 10 * u, turn * np.sin(turn)],
        "uniform square": np.c_[t, u],
    }[name]
    Z = Z - Z.mean(axis=0)
    return Z / Z.std()


def shape(name, seed, n):
    """Return data without clusters, of one shape."""
    rng = np.random.default_rng([4, seed])
    if name == "one table of normal noise":
        return rng.normal(size=(n, 1 + seed % 10))
    if name == "one exponential column":
        return rng.exponential(size=(n, 1))
    if name == "two views of normal noise":
        return [rng.normal(size=(n, 6)) for _ in "12"]
    if name == "counts":
        t = rng.uniform(-1.7, 1.7, size=(n, 1))
        return [rng.poisson(np.exp(3 + t * rng.normal(size=8))).astype(float) for _ in "12"]
    if name == "two curves that are not shared":
        return [smooth(rng, latent("uniform line", rng, n)) for _ in "12"]
    linear = name.endswith(", linear")
    Z = latent(name.removesuffix(", linear"), rng, n)
    return [smooth(rng, Z, linear) for _ in "12"]


def smooth(rng, Z, linear=False):
    """Return a random smooth, or linear, map of coordinates into six features, and some noise."""
    F = Z @ rng.normal(size=(Z.shape[1], 6))
    F = F if linear else np.tanh(0.7 * F + 0.5 * rng.normal(size=6))
    return F + 0.05 * rng.normal(size=F.shape)


def planted(seed, strength=1.0):
    """Return views with planted clusters of equal size, the classes, and their number."""
    rng = np.random.default_rng([2, seed])
    k, n, m = 3 + seed % 6, int(rng.integers(200, 401)), int(rng.integers(2, 4))
    return *blobs(rng, n, k, [strength] * m), k


def gradual(rng, t):
    """Return three views of a gradual change and noise."""
    return [np.outer(t, 1.5 * rng.normal(size=10)) + rng.normal(size=(len(t), 10)) for _ in "123"]


def kernels_of(views):
    return KernelBank(**ONE_GAUSSIAN).fit_transform(views)


UNEQUAL = np.array([5, 1, 1, 1]) / 8
# Data of a random generator, and the number of clusters to be found.
AWKWARD = {
    "one view of noise": (lambda rng: rng.normal(size=(300, 8)), 1),
    "one view of clusters": (lambda rng: blobs(rng, 300, 5, [1.3])[0][0], 5),
    "one Gaussian kernel of noise": (lambda rng: kernels_of(rng.normal(size=(200, 5))), 1),
    "Gaussian kernels of noise": (
        lambda rng: kernels_of([rng.normal(size=(200, 5)) for _ in "12"]),
        1,
    ),
    "Gaussian kernels of clusters": (lambda rng: kernels_of(blobs(rng, 240, 4, [1, 1])[0]), 4),
    "one noise view beside two good ones": (lambda rng: blobs(rng, 300, 5, [1, 1, 0])[0], 5),
    "two noise views beside one good one": (lambda rng: blobs(rng, 300, 4, [1.5, 0, 0])[0], 4),
    "clusters of sizes 5:1:1:1": (lambda rng: blobs(rng, 320, 4, [1.2] * 3, UNEQUAL)[0], 4),
    "a shared normal factor": (lambda rng: gradual(rng, rng.normal(size=300)), 1),
    "a shared uniform factor": (lambda rng: gradual(rng, rng.uniform(-1.7, 1.7, size=300)), 1),
    "seven clusters, up to five tried": (lambda rng: blobs(rng, 350, 7, [1] * 3)[0], 7),
}
TOO_FEW = {"seven clusters, up to five tried": {"k_values": [2, 3, 4, 5]}}


def awkward(name, seed):
    """Return data of one awkward kind, and the number of clusters to be found."""
    make, k = AWKWARD[name]
    return make(np.random.default_rng([3, seed])), k


def row(found, **more):
    """Return what was found as a row."""
    best = {
        name: int(found.k_values[np.nanargmax(getattr(found, name))])
        for name in ("eigengaps", "excess", "stabilities")
    }
    return more | {
        "n_clusters": int(found.n_clusters),
        "strength": found.strength.word,
        "share": round(found.strength.share, 2),
        "p_cloud": round(found.p_cloud, 3),
        "kind": found.kind,
        "p_continuum": round(found.p_continuum, 4),
        "p_shuffled": None if np.isnan(found.p_shuffled) else round(found.p_shuffled, 3),
        "largest": best,
    }


def borders_of(X, k_values):
    """Return how sparse the borders between clusters are, for several numbers of these."""
    source = Parts(X, "auto")
    settings = MixSettings(source.kernels, True, True, "error")
    path = cluster_for_all_k(settings.mix(source.take(np.arange(source.n_samples))), k_values)
    pairs = zip(k_values, path.labels, strict=True)
    return [count_at_borders(path.coordinates(k), labels) for k, labels in pairs]


def without_clusters(X, **more):
    """Return a row for data without clusters: short if no number has sparse borders."""
    least = min(found.p_value for found in borders_of(X, K_VALUES))
    if least > LEVEL:
        return more | {"n_clusters": 1, "least_p_continuum": round(least, 4)}
    return row(suggest_n_clusters(X, K_VALUES, level=LEVEL), **more)


def noise_row(name, seed):
    views, law = noise(seed)
    return without_clusters(views, seed=seed, problem=law, true=1, n=len(views[0]))


def shape_row(name, seed):
    name, n = name
    return without_clusters(shape(name, seed, n), seed=seed, problem=name, true=1, n=n)


def word_row(name, seed):
    found = suggest_n_clusters(shape(name, seed, 120), n_resamples=1)
    return row(found, seed=seed, problem=name, true=1, n=120)


def planted_row(name, seed):
    views, y, k = planted(seed, APART.get(name, 1.0))
    more = {"seed": seed, "problem": name, "true": k, "n": len(y), "views": len(views)}
    for score, given in {"ari": views, "ari_of_first_view": {"first": views[0]}}.items():
        labels = AverageKKM(k, random_state=0).fit(given).labels_
        more[score] = round(adjusted_rand_index(y, labels), 3)
    return row(suggest_n_clusters(views), **more)


def awkward_row(name, seed):
    X, k = awkward(name, seed)
    if k == 1:
        return without_clusters(X, seed=seed, problem=name, true=k)
    found = suggest_n_clusters(X, **TOO_FEW.get(name, {}))
    return row(found, seed=seed, problem=name, true=k)


def border_row(name, seed):
    if name in REAL:
        data = load(name)
        X, k = data.X, data.n_classes
    else:
        X, k = planted(seed, APART[name])[::2] if name in APART else awkward(name, seed)
    (found,) = borders_of(X, [k])
    return {
        "problem": name,
        "seed": seed,
        "true": k,
        "border_density": round(found.density, 3),
        "p_continuum": round(found.p_value, 4),
    }


def real(name):
    """Return what is found on real digits."""
    data, started = load(name), time.perf_counter()
    found = suggest_n_clusters(data.X, range(2, 16))
    print(f"\n{data.name}: {data.n_samples} samples, {data.n_classes} classes\n{found}")
    seconds = round(time.perf_counter() - started, 1)
    return row(found, data=data.name, true=data.n_classes, seconds=seconds)


def cpu_seconds(work):
    started = time.process_time()
    work()
    return time.process_time() - started


def cost(repetitions=5):
    """Return the time of the path over 2 to 12 clusters in units of one solve for 12."""
    rng = np.random.default_rng(0)
    views, _ = blobs(rng, 2000, 8, [1.0] * 3)
    stack = MixSettings(KernelBank(**ONE_GAUSSIAN), True, True, "error").stack(views)
    average = np.full(3, 1 / 3)
    works = {
        "path": lambda: cluster_for_all_k(centered(stack.mix(average).dense()), K_VALUES),
        "average kernel, k = 12": lambda: solve_average_kkm(stack, 12),
        "SimpleMKKM, k = 12": lambda: solve_simple_mkkm(stack, 12),
        "AverageKKM.fit, k = 12": lambda: AverageKKM(12, random_state=0).fit(views),
    }
    turns = [{name: cpu_seconds(work) for name, work in works.items()} for _ in range(repetitions)]
    found = pd.DataFrame(turns).median()
    ratios = {f"path over {name}": found["path"] / found[name] for name in list(works)[1:]}
    for n in (300, 2000):
        views, _ = blobs(rng, n, 5, [1.0] * 3)
        found[f"whole call, n = {n}"] = cpu_seconds(lambda views=views: suggest_n_clusters(views))
    sizes = {"n": 2000, "m": 3, "k": "2 to 12"}
    return sizes | {"cpu_seconds": rounded(found, 3), "ratios": rounded(ratios, 2)}


REAL = ("digits", *["digit"] * ("MKCLUST_DATA" in os.environ))
CLUSTERED = [name for name, (_, k) in AWKWARD.items() if k > 1 and name not in TOO_FEW]
# The function that returns a row, and the problems that it is called with.
PARTS = {
    "noise": (noise_row, ["noise"]),
    "shapes": (shape_row, list(product(SHAPES, (120, 400)))),
    "words": (word_row, SHAPES),
    "planted": (planted_row, ["planted"]),
    "weaker": (planted_row, list(APART)[1:]),
    "awkward": (awkward_row, list(AWKWARD)),
    "borders": (border_row, [*APART, *CLUSTERED, *REAL]),
}


def run(part, options):
    """Return the rows of a part, and print what was found for every problem."""
    (make, names), rows = PARTS[part], []
    for name in names:
        is_few = part in ("words", "weaker", "awkward") or (part == "borders" and name != names[0])
        seeds = options.fewer_seeds if is_few else options.seeds
        tasks = [joblib.delayed(make)(name, seed) for seed in range(1 if name in REAL else seeds)]
        own = joblib.Parallel(options.jobs)(tasks)
        rows, own = rows + own, pd.DataFrame(own)
        if part == "borders":
            found = f"borders are sparse in {(own['p_continuum'] <= LEVEL).sum()} of {len(own)}"
        else:
            right = (own["n_clusters"] == own["true"]).sum()
            counts = own["n_clusters"].value_counts().sort_index().to_dict()
            found = f"{right} of {len(own)} as planted; found {counts}"
        print(f"{name}: {found}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--fewer-seeds", type=int, default=10)
    parts = (*PARTS, "real", "cost")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    out = Path(__file__).parent / "results" / "n_clusters.json"
    parser.add_argument("--out", type=Path, default=out)
    options = parser.parse_args()
    record = read_record(options.out)
    for part in options.parts:
        command = f"python benchmarks/n_clusters.py --parts {part} --seeds {options.seeds} "
        command += f"--fewer-seeds {options.fewer_seeds}"
        record.setdefault("commands", {})[part] = command
        if part in PARTS:
            record[part] = run(part, options)
        else:
            record[part] = [real(name) for name in REAL] if part == "real" else cost()
            print(json.dumps(record[part], indent=1))
        write_record(options.out, record, "python benchmarks/n_clusters.py")


if __name__ == "__main__":
    main()
