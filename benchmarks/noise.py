"""What noise, weak, duplicated and corrupted views do to every method.

Run ``python benchmarks/noise.py [--jobs N]``; it prints tables of mean adjusted Rand indices and
writes ``results/noise.json`` beside itself. Real data sets take part where ``MKCLUST_DATA`` is set.
Methods run at their defaults and see no labels, except "best kernel", an oracle: the single kernel
whose own clusters agree best with the true classes.

noise       two good views and 0 to 5 views of pure noise
lone        one good view and 1 to 5 views of pure noise
weak        a good view, a view of falling strength, and a noise view
duplicates  three good views, the first of them up to 5 times
noise twice two good views and a noise view, the latter up to 5 times
labels      three good views, one with a share of its samples shuffled
outliers    three good views, one with a share of its samples far off
NAME        the views of a data set and 0 to 5 views of pure noise
"""

import argparse
import json
import os
import platform
import warnings
from pathlib import Path

import joblib
import numpy as np
import sklearn
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

import mkclust
from mkclust import METHODS, KernelBank
from mkclust.datasets import load
from mkclust.metrics import adjusted_rand_index

REAL = {
    "Digit": "uci_digit/UCI.mat",
    "MSRC": "multiview/MSRC-v5.mat",
    "BBCSport": "multiview/BBCSport.mat",
}
N_SAMPLES, N_CLUSTERS, N_FEATURES = 240, 4, 10
N_NOISE = (0, 1, 2, 3, 4, 5)
ANCHORED = "anchored"
MODELS = {
    **METHODS,
    ANCHORED: lambda k, **settings: METHODS["simplemkkm"](k, anchor="auto", **settings),
}


def blobs(rng, strengths):
    """Return views of Gaussian blobs and their classes; strength zero is pure noise."""
    y = np.arange(N_SAMPLES) % N_CLUSTERS
    shape = (N_CLUSTERS, N_FEATURES)
    return [
        strength * rng.normal(size=shape)[y] + rng.normal(size=(N_SAMPLES, N_FEATURES))
        for strength in strengths
    ], y


def shuffled(rng, view, share):
    """Return a view in which a share of the samples have changed places."""
    chosen = rng.choice(len(view), int(share * len(view)), replace=False)
    view = view.copy()
    view[chosen] = view[rng.permutation(chosen)]
    return view


def with_outliers(rng, view, share):
    """Return a view in which a share of the samples lie far off, each its own way."""
    chosen = rng.choice(len(view), int(share * len(view)), replace=False)
    view = view.copy()
    view[chosen] += 20 * rng.normal(size=(len(chosen), view.shape[1]))
    return view


def synthetic(sweep, level, seed):
    """Return views and classes of one synthetic problem."""
    rng = np.random.default_rng(seed)
    if sweep == "noise":
        return blobs(rng, (2, 2, *[0] * level))
    if sweep == "lone":
        return blobs(rng, (2, *[0] * level))
    if sweep == "weak":
        return blobs(rng, (2, level, 0))
    if sweep == "noise twice":
        views, y = blobs(rng, (2, 2, 0))
        return [*views, *[views[-1]] * (level - 1)], y
    views, y = blobs(rng, (2, 2, 2))
    if sweep == "duplicates":
        return [*views, *[views[0]] * (level - 1)], y
    spoil = {"labels": shuffled, "outliers": with_outliers}[sweep]
    return [spoil(rng, views[0], level), *views[1:]], y


SWEEPS = {
    "noise": N_NOISE,
    "lone": N_NOISE[1:],
    "weak": (1.5, 1.0, 0.7, 0.5, 0.3),
    "duplicates": (1, 2, 3, 5),
    "noise twice": (1, 2, 3, 5),
    "labels": (0.1, 0.3, 0.6, 1.0),
    "outliers": (0.02, 0.1, 0.3),
}


def real(name, level, seed):
    """Return the views of a data set with noise views added, and its classes."""
    data = load(Path(os.environ["MKCLUST_DATA"]) / REAL[name])
    rng = np.random.default_rng(seed)
    noise = [rng.normal(size=(data.n_samples, N_FEATURES)) for _ in range(level)]
    return [*data.views.values(), *noise], data.y


def examine(sweep, level, seed):
    """Return the adjusted Rand index of every method on one problem."""
    views, y = (real if sweep in REAL else synthetic)(sweep, level, seed)
    k = len(np.unique(y))
    bank = KernelBank(widths=(1.0,), polynomials=(), linear=None)
    kernels = bank.fit_transform(views)
    row = {"sweep": sweep, "level": level, "seed": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model in MODELS.items():
            fitted = model(k, kernels="precomputed", validate=False, random_state=0).fit(kernels)
            row[name] = adjusted_rand_index(y, fitted.labels_)
            if name == ANCHORED:
                row["anchor"] = fitted.anchor_
        singles = (METHODS["avg-kkm"](k, random_state=0).fit(K[None]).labels_ for K in kernels)
        row["best kernel"] = max(adjusted_rand_index(y, labels) for labels in singles)
        table = np.hstack([StandardScaler().fit_transform(view) for view in views])
        labels = KMeans(k, n_init=10, random_state=0).fit_predict(table)
        row["k-means"] = adjusted_rand_index(y, labels)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--real-seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results/noise.json")
    options = parser.parse_args()
    problems = [
        (sweep, level, seed)
        for sweep, levels in SWEEPS.items()
        for level in levels
        for seed in range(options.seeds)
    ]
    names = list(REAL) if "MKCLUST_DATA" in os.environ else []
    # Without noise views there is nothing random about a data set.
    problems = [
        (name, level, seed)
        for name in names
        for level in N_NOISE
        for seed in range(options.real_seeds if level else 1)
    ] + problems
    rows = joblib.Parallel(options.jobs, verbose=1)(
        joblib.delayed(examine)(*problem) for problem in problems
    )
    columns = [*MODELS, "best kernel", "k-means"]
    print(f"{'sweep':13}{'level':>6}", *(f"{name[:10]:>11}" for name in columns))
    worst = (np.inf, None)
    for sweep, level in dict.fromkeys((sweep, level) for sweep, level, _ in problems):
        own = [row for row in rows if (row["sweep"], row["level"]) == (sweep, level)]
        means = {name: float(np.mean([row[name] for row in own])) for name in columns}
        print(f"{sweep:13}{level:>6}", *(f"{means[name]:>11.2f}" for name in columns))
        worst = min(worst, (means[ANCHORED] - means["avg-kkm"], f"{sweep} {level}"))
    print(f"Anchored against the average kernel, at its worst: {worst[0]:+.3f} ({worst[1]})")
    record = {
        "command": "python benchmarks/noise.py",
        "score": "adjusted Rand index",
        "versions": {
            "mkclust": mkclust.__version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
        },
        "rows": [
            {key: round(v, 4) if isinstance(v, float) else v for key, v in row.items()}
            for row in rows
        ],
    }
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(record, indent=None).replace("}, {", "},\n{") + "\n")


if __name__ == "__main__":
    main()
