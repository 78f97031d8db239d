"""How the error of SimpleMKKM on new samples falls with the number of training samples.

Run ``python benchmarks/paper/generalization.py``; it prints a table for each data set,
and writes ``benchmarks/results/generalization.json``. Real data sets are used if
``MKCLUST_DATA`` is set.

Every split shuffles the samples: the first n train, for n = 100, 200, ..., and those
beyond the largest n are held out. One Gaussian kernel per view is computed from all
samples, so that it does not depend on the split, as in Theorem 2; centering and scaling
are learned from those that train.

empirical   mean alignment error of the training samples
held out    mean alignment error of the held-out samples
gap         held out less empirical
added       what Theorem 2 adds to the empirical error
bound       their sum: the bound that holds with a probability of 95 %
relaxed     one less the relaxed objective over n
slope       of log(mean gap) against log(n), over sizes with a positive mean gap
informative the number of samples from which the bound is below one
"""

import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from mkclust import KernelBank, SimpleMKKM
from mkclust.exceptions import WeightsWarning

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for the modules below

from paper.datasets import load
from records import ONE_GAUSSIAN, parse, write_record

REAL = {"Digit": "uci_digit/UCI.mat", "BBCSport": "multiview/BBCSport.mat"}
SIZES = (100, 200, 400, 800, 1600)
LEAST_HELD_OUT = 100
# The probability with which the bound may fail.
DELTA = 0.05


def problem(name):
    """Return the kernels of a data set and its number of classes."""
    data = load(Path(os.environ["MKCLUST_DATA"]) / REAL[name] if name in REAL else name)
    bank = KernelBank(**ONE_GAUSSIAN)
    return bank.fit_transform(list(data.views.values())), len(np.unique(data.y))


def standardize(K, seen, others):
    """Center and scale a kernel by the seen samples, (others, seen)."""
    means, among = K[:, seen].mean(axis=1), K[np.ix_(seen, seen)].mean()
    lengths = np.sqrt(np.diagonal(K) - 2 * means + among)
    entries = K[np.ix_(others, seen)] - means[others][:, None] - means[seen] + among
    return entries / np.outer(lengths[others], lengths[seen])


def alignment_errors(kernels, model, seen, others):
    """Return one minus each sample's largest inner product with a centroid of the
    clusters."""
    pairs = zip(model.coefficients_, kernels, strict=True)
    mixed = sum(c * standardize(K, seen, others) for c, K in pairs)
    members = (model.labels_[:, None] == np.unique(model.labels_)).astype(float)
    return 1 - (mixed @ (members / members.sum(axis=0))).max(axis=1)


def added_error(n, n_clusters, delta=DELTA):
    """Return what Theorem 2 adds to the empirical error, for kernels with a unit
    diagonal."""
    complexity = np.sqrt(np.pi / 2) * n_clusters
    return (complexity + 2 * np.sqrt(np.log(1 / delta) / 2)) / np.sqrt(n)


def examine(name, n_splits):
    """Return a frame with a row for every split and size of a data set, and its sizes
    in words."""
    kernels, k = problem(name)
    n_samples = kernels.shape[1]
    sizes = [n for n in SIZES if n <= n_samples - LEAST_HELD_OUT]
    rows = []
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(n_samples)
        held_out = order[sizes[-1] :]
        for n in sizes:
            seen = order[:n]
            model = SimpleMKKM(k, random_state=seed).fit(
                kernels[:, seen[:, None], seen]
            )
            empirical = alignment_errors(kernels, model, seen, seen).mean()
            row = {"dataset": name, "seed": seed, "n": n, "empirical": empirical}
            row["held out"] = alignment_errors(kernels, model, seen, held_out).mean()
            row["gap"] = row["held out"] - empirical
            row |= {"added": added_error(n, k), "relaxed": 1 - model.objective_ / n}
            rows.append(row | {"bound": empirical + row["added"]})
    title = f"{name}: {k} clusters, {len(kernels)} kernels, "
    title += f"{len(held_out)} samples held out"
    return pd.DataFrame(rows), {"title": title, "n_clusters": k}


def summarize(rows, facts):
    """Return the means of one data set by size, and facts such as the slope of its
    gap."""
    means = rows.groupby("n").mean(numeric_only=True).drop(columns="seed")
    gaps = means["gap"][means["gap"] > 0]
    alone = added_error(1, facts["n_clusters"]) / (1 - means["empirical"].iloc[-1])
    return means, facts | {
        "slope": float(np.polyfit(np.log(gaps.index), np.log(gaps), 1)[0]),
        "informative_at": int(alone**2) + 1,
        "n_fits": len(rows),
        "n_above_bound": int((rows["held out"] > rows["bound"]).sum()),
        "n_above_relaxed": int((rows["empirical"] > rows["relaxed"]).sum()),
    }


def main():
    splits = {"type": int, "default": 20}
    options = parse(__doc__, "generalization.json", splits=splits)
    warnings.simplefilter("ignore", WeightsWarning)
    results, frames = [], []
    for name in ["digits", *(REAL if "MKCLUST_DATA" in os.environ else ())]:
        rows, sizes = examine(name, options.splits)
        results.append(summarize(rows, sizes))
        frames.append(rows)
        means, facts = results[-1]
        print(f"\n{facts['title']}\n{means.round(5).to_string()}\n{facts}")
    facts = [facts | json.loads(means.to_json()) for means, facts in results]
    record = {"delta": DELTA, "results": facts}
    record["rows"] = json.loads(
        pd.concat(frames).to_json(orient="records", double_precision=6)
    )
    write_record(options.out, record)


if __name__ == "__main__":
    main()
