"""How often ``suggest_n_clusters`` is right: on noise, planted clusters, continua and real data.

    MKCLUST_DATA=DATA OMP_NUM_THREADS=1 python benchmarks/n_clusters.py --jobs 15

prints what is found and writes ``results/n_clusters.json`` beside itself, keeping the parts that
were not run (``--parts``). Every problem has a fixed seed.

noise       views of independent noise: 150 to 400 samples, 2 to 4 views, 5 to 30 features, normal,
            uniform, exponential or heavy-tailed (t with 3 degrees of freedom)
shapes      no clusters, 200 samples: curves and surfaces that two views share, each by a smooth map
            of its own into six features, and counts with a shared rate
planted     3 to 8 clusters of equal size in 2 or 3 views of 10 features, 200 to 400 samples;
            centers are normal, noise has deviation 1; two centers are 4.5 apart on average
closer      the same, 2.7 apart
categories  the same as planted, beside one random category of two levels
awkward     one view; kernels instead of views; noise views beside good ones; unequal sizes
real        data sets of ``MKCLUST_DATA`` and scikit-learn (in two views) with up to 20 classes
"""

import argparse
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import agreement
from mkclust import KernelBank, suggest_n_clusters
from mkclust.stack.discretize import count_clusters
from records import ONE_GAUSSIAN, read_record, write_record

N_FEATURES = 10
SHAPES = ("evenly spaced line", "uniform line", "normal line", "circle", "swiss roll")
SHAPES += ("uniform square", "counts")
SCIKIT_LEARN = {"iris": load_iris, "wine": load_wine, "breast cancer, halves": load_breast_cancer}


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


def shape(name, seed, n=200):
    """Return two views without clusters, of one shape."""
    rng = np.random.default_rng([4, seed])
    if name == "counts":
        t = rng.uniform(-1.7, 1.7, size=(n, 1))
        return [rng.poisson(np.exp(3 + t * rng.normal(size=8))).astype(float) for _ in "12"]
    Z = latent(name, rng, n)
    return [smooth(rng, Z) for _ in "12"]


def smooth(rng, Z):
    """Return a random smooth map of coordinates into six features, and some noise."""
    F = np.tanh(0.7 * Z @ rng.normal(size=(Z.shape[1], 6)) + 0.5 * rng.normal(size=6))
    return F + 0.05 * rng.normal(size=F.shape)


def planted(seed, strength=1.0):
    """Return views with planted clusters of equal size, and their number."""
    rng = np.random.default_rng([2, seed])
    k, n, m = 3 + seed % 6, int(rng.integers(200, 401)), int(rng.integers(2, 4))
    return blobs(rng, n, k, [strength] * m)[0], k


def beside_category(seed):
    """Return planted clusters beside a random category, and their number."""
    views, k = planted(seed)
    sex = np.eye(2)[np.random.default_rng([5, seed]).integers(2, size=len(views[0]))]
    return [*views, sex], k


def kernels_of(views):
    return KernelBank(**ONE_GAUSSIAN).fit_transform(views)


UNEQUAL = np.array([5, 1, 1, 1]) / 8
# Data of a random generator, and the number of clusters; None for none.
AWKWARD = {
    "one view of noise": (lambda rng: rng.normal(size=(300, 8)), None),
    "one view of clusters": (lambda rng: blobs(rng, 300, 5, [1.3])[0][0], 5),
    "one Gaussian kernel of noise": (lambda rng: kernels_of(rng.normal(size=(200, 5))), None),
    "Gaussian kernels of clusters": (lambda rng: kernels_of(blobs(rng, 240, 4, [1, 1])[0]), 4),
    "one noise view beside two good ones": (lambda rng: blobs(rng, 300, 5, [1, 1, 0])[0], 5),
    "clusters of sizes 5:1:1:1": (lambda rng: blobs(rng, 320, 4, [1.2] * 3, UNEQUAL)[0], 4),
}


def awkward(name, seed):
    make, k = AWKWARD[name]
    return make(np.random.default_rng([3, seed])), k


def real(name):
    """Return the views or kernels of a data set, and its number of classes."""
    if name in SCIKIT_LEARN:
        data = SCIKIT_LEARN[name]()
        X, y = dict(zip("ab", np.array_split(data.data, 2, axis=1), strict=True)), data.target
    else:
        X, y = agreement.read(name)
    return X, count_clusters(y)


# How to make a problem of a name and a seed, its names, and the number of seeds.
PARTS = {
    "noise": (lambda name, seed: (noise(seed)[0], None), ["noise"], 100),
    "shapes": (lambda name, seed: (shape(name, seed), None), SHAPES, 10),
    "planted": (lambda name, seed: planted(seed), ["4.5 apart"], 100),
    "closer": (lambda name, seed: planted(seed, 0.6), ["2.7 apart"], 20),
    "categories": (lambda name, seed: beside_category(seed), ["beside a random category"], 20),
    "awkward": (awkward, list(AWKWARD), 10),
    "real": (lambda name, seed: real(name), [*SCIKIT_LEARN, *agreement.NAMES], 1),
}


def find(part, name, seed):
    """Return what is found for one problem; None for real data of more than 20 classes."""
    X, k = PARTS[part][0](name, seed)
    if k is not None and k > 20:
        return None
    found = suggest_n_clusters(X)
    largest = {
        criterion: int(found.k_values[np.nanargmax(getattr(found, criterion))])
        for criterion in ("eigengaps", "silhouettes", "stabilities")
    }
    p_values = {f"p_{each}": getattr(found, f"p_{each}") for each in ("cloud", "shuffled")}
    p_values["p_continuum"] = found.p_continuum
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


def tell(part, rows):
    """Print how often each answer was given."""
    rows = pd.DataFrame(rows)
    if part == "real":
        print(rows.drop(columns="seed").to_string())
    for name, own in [*rows.groupby("problem", sort=False), *[("all", rows)] * (part == "real")]:
        evidence = own["evidence"].value_counts().to_dict()
        told = [f"{part}, {name}: {len(own)} problems, evidence {evidence}"]
        if not own["true"].isna().any():
            for criterion in ("n_clusters", "eigengaps", "silhouettes", "stabilities"):
                apart = (own[criterion] - own["true"]).abs()
                right, near = (apart == 0).sum(), (apart <= 1).sum()
                told.append(f"{criterion} right in {right}, within one in {near}")
        if part != "real" or name == "all":
            print("; ".join(told), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    out = Path(__file__).parent / "results" / "n_clusters.json"
    parser.add_argument("--out", type=Path, default=out)
    options = parser.parse_args()
    record = read_record(options.out)
    for part in options.parts:
        _, names, n_seeds = PARTS[part]
        tasks = [(part, name, seed) for name in names for seed in range(n_seeds)]
        rows = joblib.Parallel(options.jobs)(joblib.delayed(find)(*task) for task in tasks)
        record[part] = [row for row in rows if row is not None]
        tell(part, record[part])
        write_record(options.out, record, "python benchmarks/n_clusters.py")


if __name__ == "__main__":
    main()
