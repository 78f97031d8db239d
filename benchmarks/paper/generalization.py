"""How the error of SimpleMKKM on new samples falls with the number of training samples.

Run ``python benchmarks/paper/generalization.py``; it prints a table for each data set, and writes
``benchmarks/results/generalization.json`` and a picture beside it. Real data sets
beside the bundled digits take part where ``MKCLUST_DATA`` is set.

Every split shuffles the samples by its own seed: the first n train, for n = 100, 200, ..., and
those beyond the largest n are held out for every n alike. One Gaussian kernel per view is made of
all samples together, so that the kernels themselves do not depend on the split, as in Theorem 2;
centering and scaling are learned from the training samples.

empirical   mean alignment error of the training samples
held out    mean alignment error of the held-out samples
gap         held out less empirical, with its standard error over the splits (which share samples,
            so that it is somewhat too small)
own         k (empirical - least) / n, least the smallest error that the coefficients allow: about
            what training samples gain by being members of their own centroids, so a gap that falls
            with 1 / n is to be expected
< 0         number of splits with a negative gap
added       what Theorem 2 adds to the empirical error
bound       their sum: the bound that holds with a probability of 95 %
relaxed     one less the relaxed objective over n, which the paper takes for an upper bound of the
            empirical error
slope       of log(mean gap) against log(n) by least squares, each mean gap weighted by its ratio to
            its standard error; with its jackknife standard error over the splits. A size whose mean
            gap is not positive is left out, and listed.
"""

import argparse
import json
import os
import platform
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn

import mkclust
from datasets import load
from mkclust import KernelBank, SimpleMKKM
from mkclust.exceptions import WeightsWarning

REAL = {"Digit": "uci_digit/UCI.mat", "BBCSport": "multiview/BBCSport.mat"}
SIZES = (100, 200, 400, 800, 1600)
LEAST_HELD_OUT = 100
# The probability with which the bound may fail.
DELTA = 0.05


def problem(name):
    """Return the kernels of a data set and its number of classes."""
    data = load(Path(os.environ["MKCLUST_DATA"]) / REAL[name] if name in REAL else name)
    bank = KernelBank(widths=(1.0,), polynomials=(), linear=None)
    return bank.fit_transform(list(data.views.values())), len(np.unique(data.y))


def standardize(K, seen, others):
    """Center and scale a kernel by the seen samples, (others, seen)."""
    means, among = K[:, seen].mean(axis=1), K[np.ix_(seen, seen)].mean()
    lengths = np.sqrt(np.diagonal(K) - 2 * means + among)
    entries = K[np.ix_(others, seen)] - means[others][:, None] - means[seen] + among
    return entries / np.outer(lengths[others], lengths[seen])


def alignment_errors(kernels, model, seen, others):
    """Return one minus each sample's largest inner product with a centroid of the clusters.

    The centroids are means of the training samples of a cluster in the feature space of the mixed
    kernel. The mean of the errors over the training samples is the empirical error, at most
    1 - Tr(K Y Y^T) / n for the normalized indicators Y of the clusters.
    """
    pairs = zip(model.coefficients_, kernels, strict=True)
    mixed = sum(c * standardize(K, seen, others) for c, K in pairs)
    members = (model.labels_[:, None] == np.unique(model.labels_)).astype(float)
    return 1 - (mixed @ (members / members.sum(axis=0))).max(axis=1)


def added_error(n, n_clusters, delta=DELTA):
    """Return what Theorem 2 adds to the empirical error, for kernels with a unit diagonal (b = 1).

    The theorem is for independent samples and fixed kernels, with coefficients that sum to one at
    most. Its right side does not grow with the number of kernels, as a bound for all weights must.
    """
    complexity = np.sqrt(np.pi / 2) * n_clusters
    return (complexity + 2 * np.sqrt(np.log(1 / delta) / 2)) / np.sqrt(n)


def informative_size(n_clusters, error):
    """Return the least n at which the bound is below one, the error of centroids at zero."""
    return int((added_error(1, n_clusters) / (1 - error)) ** 2) + 1


def examine(name, n_splits):
    """Return one row for every split and size of a data set."""
    kernels, k = problem(name)
    n_samples = kernels.shape[1]
    sizes = [n for n in SIZES if n <= n_samples - LEAST_HELD_OUT]
    rows = []
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(n_samples)
        held_out = order[sizes[-1] :]
        for n in sizes:
            seen = order[:n]
            model = SimpleMKKM(k, random_state=seed).fit(kernels[:, seen[:, None], seen])
            empirical = alignment_errors(kernels, model, seen, seen).mean()
            rows.append(
                {
                    "dataset": name,
                    "n_clusters": k,
                    "n_kernels": len(kernels),
                    "n_held_out": len(held_out),
                    "seed": seed,
                    "n": n,
                    "empirical": float(empirical),
                    "held_out": float(alignment_errors(kernels, model, seen, held_out).mean()),
                    "bound": float(empirical + added_error(n, k)),
                    "relaxed": 1 - model.objective_ / n,
                    "least": 1 - float(model.coefficients_.sum()),
                }
            )
    return rows


def summarize(rows):
    """Return the means of one data set by size, and the slope of its gap."""
    first, sizes = rows[0], sorted({row["n"] for row in rows})
    table = {
        key: np.array([[row[key] for row in rows if row["n"] == n] for n in sizes])
        for key in ("empirical", "held_out", "bound", "relaxed", "least")
    }
    means = {key: values.mean(axis=1) for key, values in table.items()}
    gaps, k = table["held_out"] - table["empirical"], first["n_clusters"]
    lists = {
        **means,
        "gap": gaps.mean(axis=1),
        "gap_error": gaps.std(axis=1, ddof=1) / np.sqrt(gaps.shape[1]),
        "n_negative": (gaps < 0).sum(axis=1),
        "own": k * (means["empirical"] - means["least"]) / sizes,
        "added": means["bound"] - means["empirical"],
    }
    return {
        **{key: first[key] for key in ("dataset", "n_clusters", "n_kernels", "n_held_out")},
        "sizes": sizes,
        **{key: values.tolist() for key, values in lists.items()},
        "n_above_relaxed": int((table["empirical"] > table["relaxed"]).sum()),
        "n_above_bound": int((table["held_out"] > table["bound"]).sum()),
        "n_fits": len(rows),
        "weighted": slope_of(sizes, gaps),
        "left_out": [n for n, gap in zip(sizes, lists["gap"], strict=True) if gap <= 0],
        "informative_at": informative_size(k, means["empirical"][-1]),
    }


def slope_of(sizes, gaps):
    """Return slope and intercept of log(mean gap) against log(n), and the slope's error."""
    n_splits = gaps.shape[1]
    slope, intercept = fit_line(sizes, gaps)
    others = [fit_line(sizes, np.delete(gaps, j, axis=1))[0] for j in range(n_splits)]
    error = np.sqrt((n_splits - 1) / n_splits * np.sum((others - np.mean(others)) ** 2))
    return {"slope": float(slope), "intercept": float(intercept), "error": float(error)}


def fit_line(sizes, gaps):
    """Return slope and intercept by weighted least squares, over sizes with a positive mean gap."""
    means = gaps.mean(axis=1)
    kept = means > 0
    if kept.sum() < 2:
        return np.nan, np.nan
    weights = means[kept] / gaps.std(axis=1, ddof=1)[kept]
    return np.polyfit(np.log(np.array(sizes)[kept]), np.log(means[kept]), 1, w=weights)


def show(found):
    """Print what was found on one data set."""
    title = "{dataset}: {n_clusters} clusters, {n_kernels} kernels, {n_held_out} samples held out"
    print("\n" + title.format(**found))
    columns = ("empirical", "held_out", "gap", "gap_error", "n_negative", "own", "added", "bound")
    table = pd.DataFrame({key: found[key] for key in (*columns, "relaxed")}, found["sizes"])
    print(table.round(5).to_string())
    left_out = f" (left out: n = {found['left_out']})" if found["left_out"] else ""
    slope = found["weighted"]
    print(f"slope of the gap {slope['slope']:.2f} +- {slope['error']:.2f}{left_out}")
    print(f"The bound is below one from n = {found['informative_at']} at this empirical error.")
    print(
        f"Of {found['n_fits']} fits, held-out error above the bound: {found['n_above_bound']}; "
        f"empirical error above the relaxed one: {found['n_above_relaxed']}."
    )


def draw(results, path):
    """Draw gaps and errors against the number of training samples."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    width = 4.2 * len(results)
    figure, axes = plt.subplots(2, len(results), figsize=(width, 7), sharex="col", squeeze=False)
    for (top, bottom), found in zip(axes.T, results, strict=True):
        n, gap, slope = found["sizes"], found["gap"], found["weighted"]
        top.plot(n, found["added"], "s-", color="0.5", label="added by Theorem 2, slope -0.50")
        line = np.exp(slope["intercept"]) * np.array(n) ** slope["slope"]
        top.plot(n, line, label=f"slope {slope['slope']:.2f} ± {slope['error']:.2f}")
        bars = 2 * np.array(found["gap_error"])
        top.errorbar(n, gap, bars, fmt="o", capsize=3, label="gap, 2 standard errors")
        top.plot(n, found["own"], ":", label="own share in the centroids")
        top.set(xscale="log", yscale="log", title=found["dataset"])
        for key in ("held_out", "empirical", "relaxed"):
            bottom.plot(n, found[key], "o-", label=key.replace("_", " "))
        bottom.set(xscale="log", xlabel="training samples")
        top.legend(fontsize=8)
        bottom.legend(fontsize=8)
    axes[0, 0].set_ylabel("held-out less empirical error")
    axes[1, 0].set_ylabel("alignment error")
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def rounded(value):
    """Return a value with its numbers rounded for the record."""
    if isinstance(value, dict):
        return {key: rounded(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [rounded(entry) for entry in value]
    return round(value, 6) if isinstance(value, float) else value


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--splits", type=int, default=20)
    default = Path(__file__).parents[1] / "results/generalization.json"
    parser.add_argument("--out", type=Path, default=default)
    options = parser.parse_args()
    if options.splits < 2:
        parser.error(f"--splits {options.splits}: standard errors need at least 2")
    warnings.simplefilter("ignore", WeightsWarning)
    started = time.perf_counter()
    names = ["digits", *(REAL if "MKCLUST_DATA" in os.environ else ())]
    rows, results = [], []
    for name in names:
        rows += (own := examine(name, options.splits))
        results.append(summarize(own))
        show(results[-1])
    print(f"\n{time.perf_counter() - started:.0f} s")
    record = {
        "command": f"python benchmarks/paper/generalization.py --splits {options.splits}",
        "score": "alignment error",
        "delta": DELTA,
        "versions": {
            "mkclust": mkclust.__version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
        },
        "results": rounded(results),
        "rows": rounded(rows),
    }
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(record).replace("}, {", "},\n{") + "\n")
    draw(results, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
