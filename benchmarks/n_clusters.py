"""How often ``suggest_n_clusters`` is right: on noise, on planted clusters, and on awkward data.

Run ``python benchmarks/n_clusters.py [--jobs N] [--parts noise planted ...]``; it prints what is
found and writes ``results/n_clusters.json`` beside itself, keeping the parts that were not run.
UCI Digit takes part where ``MKCLUST_DATA`` is set. Every problem has a fixed seed.

Where clusters cannot be the answer, since no number of them has sparse borders, data without
clusters ("words" aside) are not compared with draws, which take most of the time and cannot change
that.

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
import platform
import time
from collections import Counter
from pathlib import Path

import joblib
import numpy as np
import sklearn

import mkclust
from mkclust import AverageKKM, KernelBank
from mkclust.explain.choosing import suggest_n_clusters
from mkclust.explain.choosing.borders import count_at_borders
from mkclust.explain.choosing.clusterings import cluster_for_all_k
from mkclust.explain.choosing.mix import MixSettings, centered
from mkclust.explain.parts import Parts
from mkclust.methods import solve_average_kkm, solve_simple_mkkm
from mkclust.metrics import adjusted_rand_index
from paper.datasets import load

PARTS = ["noise", "shapes", "words", "planted", "weaker", "awkward", "borders", "real", "cost"]
N_FEATURES = 10
ONE_GAUSSIAN = {"widths": (1.0,), "polynomials": (), "linear": None}


def blobs(rng, n, k, strengths, shares=None):
    """Return views of Gaussian blobs and their classes; strength zero is pure noise."""
    y = np.arange(n) % k if shares is None else rng.choice(k, n, p=shares)
    shape = (k, N_FEATURES)
    views = [s * rng.normal(size=shape)[y] + rng.normal(size=(n, N_FEATURES)) for s in strengths]
    return views, y


def noise(seed):
    """Return views of independent noise."""
    rng = np.random.default_rng([1, seed])
    n, m = int(rng.integers(150, 401)), int(rng.integers(2, 5))
    law = ("normal", "uniform", "exponential", "t3")[seed % 4]
    samples = {
        "normal": lambda shape: rng.normal(size=shape),
        "uniform": lambda shape: rng.random(shape),
        "exponential": lambda shape: rng.exponential(size=shape),
        "t3": lambda shape: rng.standard_t(3, size=shape),
    }
    return [samples[law]((n, int(rng.integers(5, 31)))) for _ in range(m)], 1, f"{law} noise"


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
    """Return views with planted clusters of equal size."""
    rng = np.random.default_rng([2, seed])
    k, n, m = 3 + seed % 6, int(rng.integers(200, 401)), int(rng.integers(2, 4))
    return *blobs(rng, n, k, [strength] * m), k


def gradual(rng, t):
    """Return three views of a gradual change and noise."""
    return [np.outer(t, 1.5 * rng.normal(size=10)) + rng.normal(size=(len(t), 10)) for _ in "123"]


def awkward(name, seed):
    """Return data of one awkward kind, the number of clusters to be found, and settings."""
    rng = np.random.default_rng([3, seed])
    if name == "one view of noise":
        return rng.normal(size=(300, 8)), 1, {}
    if name == "one view of clusters":
        return blobs(rng, 300, 5, [1.3])[0][0], 5, {}
    if name == "Gaussian kernels of noise":
        views = [rng.normal(size=(200, 5)) for _ in "12"]
        return KernelBank(**ONE_GAUSSIAN).fit_transform(views), 1, {}
    if name == "one Gaussian kernel of noise":
        return KernelBank(**ONE_GAUSSIAN).fit_transform(rng.normal(size=(200, 5))), 1, {}
    if name == "Gaussian kernels of clusters":
        return KernelBank(**ONE_GAUSSIAN).fit_transform(blobs(rng, 240, 4, [1.0] * 2)[0]), 4, {}
    if name == "one noise view beside two good ones":
        return blobs(rng, 300, 5, [1, 1, 0])[0], 5, {}
    if name == "two noise views beside one good one":
        return blobs(rng, 300, 4, [1.5, 0, 0])[0], 4, {}
    if name == "clusters of sizes 5:1:1:1":
        return blobs(rng, 320, 4, [1.2] * 3, np.array([5, 1, 1, 1]) / 8)[0], 4, {}
    if name == "a shared normal factor":
        return gradual(rng, rng.normal(size=300)), 1, {}
    if name == "a shared uniform factor":
        return gradual(rng, rng.uniform(-1.7, 1.7, size=300)), 1, {}
    if name == "seven clusters, up to five tried":
        return blobs(rng, 350, 7, [1.0] * 3)[0], 7, {"k_values": [2, 3, 4, 5]}
    raise ValueError(name)


CURVES = ("evenly spaced line", "uniform line", "normal line", "circle")
SURFACES = ("swiss roll", "uniform square")
SHAPES = (
    *CURVES,
    *SURFACES,
    *(f"{name}, linear" for name in (*CURVES, *SURFACES)),
    "counts",
    "two curves that are not shared",
    "two views of normal noise",
    "one table of normal noise",
    "one exponential column",
)
# How far apart two centers are on average, in deviations of the noise in a view.
WEAKER = {f"{s * np.sqrt(2 * N_FEATURES):.1f} apart": s for s in (0.8, 0.6, 0.5, 0.4)}
AWKWARD = (
    "one view of noise",
    "one view of clusters",
    "one Gaussian kernel of noise",
    "Gaussian kernels of noise",
    "Gaussian kernels of clusters",
    "one noise view beside two good ones",
    "two noise views beside one good one",
    "clusters of sizes 5:1:1:1",
    "a shared normal factor",
    "a shared uniform factor",
    "seven clusters, up to five tried",
)


def row(found, **more):
    """Return what was found as a row."""
    chosen = {
        "n_clusters": int(found.n_clusters),
        "strength": found.strength.word,
        "share": round(found.strength.share, 2),
        "p_cloud": round(found.p_cloud, 3),
        "kind": found.kind,
        "p_continuum": round(found.p_continuum, 4),
        "p_shuffled": None if np.isnan(found.p_shuffled) else round(found.p_shuffled, 3),
    }
    best = {
        name: int(found.k_values[np.nanargmax(getattr(found, name))])
        for name in ("eigengaps", "excess", "stabilities")
    }
    return more | chosen | {"largest": best}


def borders_of(X, k):
    """Return how sparse the borders between k clusters are, as a row."""
    source = Parts(X, "auto")
    settings = MixSettings(source.kernels, True, True, "error")
    path = cluster_for_all_k(settings.mix(source.take(np.arange(source.n_samples))), [k])
    found = count_at_borders(path.coordinates(k), path.labels[0])
    return {
        "true": k,
        "border_density": round(found.density, 3),
        "p_continuum": round(found.likelihood, 4),
    }


def borders(seeds, fewer_seeds):
    """Return a row for each problem with clusters, and for real digits."""
    rows = []
    for name, strength in ({"4.5 apart": 1.0} | WEAKER).items():
        for seed in range(seeds if strength == 1 else fewer_seeds):
            views, _, k = planted(seed, strength)
            rows.append({"problem": name, "seed": seed} | borders_of(views, k))
    for name in AWKWARD:
        for seed in range(fewer_seeds):
            X, k, settings = awkward(name, seed)
            if k > 1 and not settings:
                rows.append({"problem": name, "seed": seed} | borders_of(X, k))
    for name in ["digits", *["digit"] * ("MKCLUST_DATA" in os.environ)]:
        data = load(name)
        rows.append({"problem": data.name} | borders_of(data.X, data.n_classes))
    sparse = Counter(r["problem"] for r in rows if r["p_continuum"] <= 0.02)
    for name, count in Counter(r["problem"] for r in rows).items():
        print(f"{name}: borders are sparse in {sparse[name]} of {count}", flush=True)
    return rows


def examine_quickly(X, level=0.02, **more):
    """Return a row for data without clusters: short where no number has sparse borders."""
    source, k_values = Parts(X, "auto"), list(range(2, 13))
    settings = MixSettings(source.kernels, True, True, "error")
    path = cluster_for_all_k(settings.mix(source.take(np.arange(source.n_samples))), k_values)
    likelihoods = [
        count_at_borders(path.coordinates(k), labels).likelihood
        for k, labels in zip(k_values, path.labels, strict=True)
    ]
    if min(likelihoods) > level:
        return more | {"n_clusters": 1, "least_p_continuum": round(min(likelihoods), 4)}
    return row(suggest_n_clusters(X, k_values, level=level), **more)


def examine(part, name, seed):
    """Return a row for one problem."""
    if part == "noise":
        views, k, law = noise(seed)
        return examine_quickly(views, seed=seed, problem=law, true=k, n=len(views[0]))
    if part == "shapes":
        name, n = name
        return examine_quickly(shape(name, seed, n), seed=seed, problem=name, true=1, n=n)
    if part == "words":
        found = suggest_n_clusters(shape(name, seed, 120), n_resamples=1)
        return row(found, seed=seed, problem=name, true=1, n=120)
    if part in ("planted", "weaker"):
        views, y, k = planted(seed, WEAKER.get(name, 1.0))
        together, alone = (
            adjusted_rand_index(y, AverageKKM(k, random_state=0).fit(given).labels_)
            for given in (views, {"first": views[0]})
        )
        ari = {"ari": round(together, 3), "ari_of_first_view": round(alone, 3)}
        found = suggest_n_clusters(views)
        more = {"seed": seed, "problem": name, "true": k, "n": len(y), "views": len(views)}
        return row(found, **more) | ari
    X, k, settings = awkward(name, seed)
    if k == 1:
        return examine_quickly(X, seed=seed, problem=name, true=k)
    return row(suggest_n_clusters(X, **settings), seed=seed, problem=name, true=k)


def real():
    """Return what is found on real digits."""
    names = ["digits", *["digit"] * ("MKCLUST_DATA" in os.environ)]
    rows = []
    for name in names:
        data, started = load(name), time.perf_counter()
        found = suggest_n_clusters(data.X, range(2, 16))
        print(f"\n{data.name}: {data.n_samples} samples, {data.n_classes} classes\n{found}")
        seconds = round(time.perf_counter() - started, 1)
        rows.append(row(found, data=data.name, true=data.n_classes, seconds=seconds))
    return rows


def cost(repetitions=5):
    """Return the time of the path over 2 to 12 clusters in units of one solve for 12."""
    rng = np.random.default_rng(0)
    k_values = list(range(2, 13))
    views, _ = blobs(rng, 2000, 8, [1.0] * 3)
    stack = MixSettings(KernelBank(**ONE_GAUSSIAN), True, True, "error").stack(views)
    average = np.full(3, 1 / 3)
    roads = {
        "path": lambda: cluster_for_all_k(centered(stack.mix(average).dense()), k_values),
        "average kernel, k = 12": lambda: solve_average_kkm(stack, 12),
        "SimpleMKKM, k = 12": lambda: solve_simple_mkkm(stack, 12),
        "AverageKKM.fit, k = 12": lambda: AverageKKM(12, random_state=0).fit(views),
    }
    seconds = {name: [] for name in roads}
    for _ in range(repetitions):
        for name, road in roads.items():
            started = time.process_time()
            road()
            seconds[name].append(time.process_time() - started)
    found = {name: round(float(np.median(times)), 3) for name, times in seconds.items()}
    ratios = {
        f"path over {name}": round(found["path"] / found[name], 2) for name in list(roads)[1:]
    }
    whole = {}
    for n in (300, 2000):
        views, _ = blobs(rng, n, 5, [1.0] * 3)
        started = time.process_time()
        suggest_n_clusters(views)
        whole[f"whole call, n = {n}"] = round(time.process_time() - started, 1)
    return {"n": 2000, "m": 3, "k": "2 to 12", "cpu_seconds": found | whole, "ratios": ratios}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--fewer-seeds", type=int, default=10)
    parser.add_argument("--parts", nargs="+", default=PARTS)
    folder = Path(__file__).parent / "results"
    parser.add_argument("--out", type=Path, default=folder / "n_clusters.json")
    options = parser.parse_args()
    record = json.loads(options.out.read_text()) if options.out.exists() else {}
    record |= {
        "versions": {
            "mkclust": mkclust.__version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
        },
    }
    for part in options.parts:
        record.setdefault("commands", {})[part] = (
            f"python benchmarks/n_clusters.py --parts {part} --seeds {options.seeds} "
            f"--fewer-seeds {options.fewer_seeds}"
        )
        if part == "borders":
            record[part] = borders(options.seeds, options.fewer_seeds)
        elif part in ("real", "cost"):
            record[part] = real() if part == "real" else cost()
            print(json.dumps(record[part], indent=1))
        else:
            names = {
                "shapes": [(name, n) for name in SHAPES for n in (120, 400)],
                "words": SHAPES,
                "awkward": AWKWARD,
                "weaker": WEAKER,
            }.get(part, [part])
            few = part in ("words", "awkward", "weaker")
            seeds = options.fewer_seeds if few else options.seeds
            record[part] = []
            for name in names:
                rows = joblib.Parallel(options.jobs)(
                    joblib.delayed(examine)(part, name, seed) for seed in range(seeds)
                )
                record[part] += rows
                right = sum(r["n_clusters"] == r["true"] for r in rows)
                found = dict(sorted(Counter(r["n_clusters"] for r in rows).items()))
                kinds = dict(Counter(r["kind"] for r in rows if "kind" in r))
                print(
                    f"{name}: {right} of {len(rows)} as planted; found {found}, {kinds}", flush=True
                )
        options.out.parent.mkdir(exist_ok=True)
        text = json.dumps(record).replace("}, {", "},\n{").replace('], "', '],\n"')
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
