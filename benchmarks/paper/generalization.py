"""How the error of SimpleMKKM on new samples falls with the number of training samples.

Run ``python benchmarks/paper/generalization.py``; it prints a table for each data set, and writes
``benchmarks/results/generalization.json`` and a picture beside it. Real data sets
beside the bundled digits take part where ``MKCLUST_DATA`` is set.

Every split shuffles the samples by its own seed: the first n train, for n = 100, 200, ..., and
those beyond the largest n are held out for every n alike. One Gaussian kernel a view is made of all
samples together, so that the kernels themselves do not depend on the split, as Theorem 2 assumes;
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
slope       of log(mean gap) against log(n) by least squares, with its jackknife standard error over
            the splits. Single gaps may be negative: only their mean over the splits is taken to a
            logarithm, and a size whose mean is not positive is left out, and said to be. Plain
            least squares lets a mean gap within its own error of zero, with a logarithm that could
            be anything, count as much as the others; "weighted" counts each mean gap by its ratio
            to its standard error.
"""

import argparse
import json
import os
import platform
import time
import warnings
from pathlib import Path

import numpy as np
import sklearn

import mkclust
from datasets import load
from mkclust import KernelBank, SimpleMKKM
from mkclust.exceptions import WeightsWarning
from mkclust.explain.held_out import alignment_error, generalization_bound, informative_sample_size

REAL = {"Digit": "uci_digit/UCI.mat", "BBCSport": "multiview/BBCSport.mat"}
SIZES = (100, 200, 400, 800, 1600)
LEAST_HELD_OUT = 100


def problem(name):
    """Return the kernels of a data set and its number of classes."""
    data = load(Path(os.environ["MKCLUST_DATA"]) / REAL[name] if name in REAL else name)
    bank = KernelBank(widths=(1.0,), polynomials=(), linear=None)
    return bank.fit_transform(list(data.views.values())), len(np.unique(data.y))


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
            model = SimpleMKKM(k, random_state=seed)
            model.fit(kernels[:, seen[:, None], seen])
            rows.append(
                {
                    "dataset": name,
                    "n_clusters": k,
                    "n_kernels": len(kernels),
                    "n_held_out": len(held_out),
                    "seed": seed,
                    "n": n,
                    "empirical": model.alignment_error_,
                    "held_out": alignment_error(model, kernels[:, held_out[:, None], seen]),
                    "bound": generalization_bound(model),
                    "relaxed": 1 - model.objective_ / n,
                    "least": 1 - float(model.coefficients_.sum()),
                }
            )
    return rows


def summarize(rows):
    """Return the means of one data set by size, and the slope of its gap."""
    sizes = sorted({row["n"] for row in rows})
    table = {}
    for key in ("empirical", "held_out", "bound", "relaxed", "least"):
        table[key] = np.array([[row[key] for row in rows if row["n"] == n] for n in sizes])
    gaps = table["held_out"] - table["empirical"]
    means = {key: values.mean(axis=1).tolist() for key, values in table.items()}
    n_splits = gaps.shape[1]
    plain, weighted = slope_of(sizes, gaps), slope_of(sizes, gaps, weighted=True)
    first = rows[0]
    return {
        "dataset": first["dataset"],
        "n_clusters": first["n_clusters"],
        "n_kernels": first["n_kernels"],
        "n_held_out": first["n_held_out"],
        "sizes": sizes,
        **means,
        "gap": gaps.mean(axis=1).tolist(),
        "gap_error": (gaps.std(axis=1, ddof=1) / np.sqrt(n_splits)).tolist(),
        "n_negative": (gaps < 0).sum(axis=1).tolist(),
        "own": [
            first["n_clusters"] * (seen - least) / n
            for n, seen, least in zip(sizes, means["empirical"], means["least"], strict=True)
        ],
        "added": (table["bound"] - table["empirical"]).mean(axis=1).tolist(),
        "n_above_relaxed": int((table["empirical"] > table["relaxed"]).sum()),
        "n_above_bound": int((table["held_out"] > table["bound"]).sum()),
        "n_fits": len(rows),
        "plain": plain,
        "weighted": weighted,
        "left_out": [n for n, row in zip(sizes, gaps, strict=True) if row.mean() <= 0],
        "informative_at": informative_sample_size(first["n_clusters"], means["empirical"][-1]),
    }


def slope_of(sizes, gaps, weighted=False):
    """Return slope and intercept of log(mean gap) against log(n), and the slope's error."""
    n_splits = gaps.shape[1]
    slope, intercept = fit_line(sizes, gaps, weighted)
    others = [fit_line(sizes, np.delete(gaps, j, axis=1), weighted)[0] for j in range(n_splits)]
    error = np.sqrt((n_splits - 1) / n_splits * np.sum((others - np.mean(others)) ** 2))
    return {"slope": float(slope), "intercept": float(intercept), "error": float(error)}


def fit_line(sizes, gaps, weighted):
    """Return slope and intercept by least squares, over the sizes with a positive mean gap."""
    means = gaps.mean(axis=1)
    kept = means > 0
    if kept.sum() < 2:
        return np.nan, np.nan
    weights = means[kept] / gaps.std(axis=1, ddof=1)[kept] if weighted else None
    return np.polyfit(np.log(np.array(sizes)[kept]), np.log(means[kept]), 1, w=weights)


def show(found):
    """Print what was found on one data set."""
    print(
        f"\n{found['dataset']}: {found['n_clusters']} clusters, {found['n_kernels']} kernels, "
        f"{found['n_held_out']} samples held out"
    )
    print("    n  empirical  held out       gap            < 0     own   added   bound  relaxed")
    columns = ("sizes", "empirical", "held_out", "gap", "gap_error", "n_negative", "own")
    columns += ("added", "bound", "relaxed")
    for n, seen, unseen, gap, error, negative, own, added, bound, relaxed in zip(
        *(found[name] for name in columns), strict=True
    ):
        print(
            f"{n:5} {seen:10.4f} {unseen:9.4f} {gap:9.5f} +- {error:.5f} {negative:3} "
            f"{own:9.5f} {added:7.3f} {bound:7.3f} {relaxed:8.4f}"
        )
    left_out = f" (left out: n = {found['left_out']})" if found["left_out"] else ""
    plain, weighted = (f"{f['slope']:.2f} +- {f['error']:.2f}" for f in fits(found))
    print(f"slope of the gap {plain}, weighted {weighted}{left_out}")
    print(
        f"The coefficients allow no error below {found['least'][-1]:.3f} at n = "
        f"{found['sizes'][-1]}; at its empirical error the bound falls below one from n = "
        f"{found['informative_at']}."
    )
    print(
        f"Of {found['n_fits']} fits, held-out error above the bound: {found['n_above_bound']}; "
        f"empirical error above the relaxed one: {found['n_above_relaxed']}."
    )


def fits(found):
    """Return the plain and the weighted line."""
    return found["plain"], found["weighted"]


def draw(results, path):
    """Draw gaps and errors against the number of training samples."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    width = 4.2 * len(results)
    figure, axes = plt.subplots(2, len(results), figsize=(width, 7), sharex="col", squeeze=False)
    for (top, bottom), found in zip(axes.T, results, strict=True):
        n = np.array(found["sizes"])
        gap, error = np.array(found["gap"]), np.array(found["gap_error"])
        top.plot(n, found["added"], "s-", color="0.5", label="added by Theorem 2, slope -0.50")
        for fit, style, kind in zip(fits(found), ("--", "-"), ("plain", "weighted"), strict=True):
            line = np.exp(fit["intercept"]) * n ** fit["slope"]
            label = f"{kind} fit, slope {fit['slope']:.2f} ± {fit['error']:.2f}"
            top.plot(n, line, style, color="C0", label=label)
        kept = gap > 0
        # A logarithmic axis has no room for bars that reach below zero.
        bars = np.minimum(2 * error, 0.9 * gap)[kept], (2 * error)[kept]
        label = "gap, 2 standard errors"
        top.errorbar(n[kept], gap[kept], bars, fmt="o", color="C0", capsize=3, label=label)
        top.plot(n, found["own"], ":", color="C3", label="own share in the centroids")
        top.set(xscale="log", yscale="log", title=found["dataset"])
        top.set_ylim(top=1000 * max(found["added"]))
        top.legend(loc="upper right", fontsize=8)
        bottom.plot(n, found["held_out"], "o-", color="C1", label="held out")
        bottom.plot(n, found["empirical"], "o-", color="C0", label="empirical")
        bottom.plot(n, found["relaxed"], "^:", color="C2", label="1 - Tr(K H H^T) / n, relaxed")
        bottom.set(xscale="log", xlabel="training samples")
        bottom.legend(fontsize=8)
        bottom.set_xticks(n)
        bottom.xaxis.set_major_formatter(ScalarFormatter())
        bottom.xaxis.set_minor_formatter(NullFormatter())
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
    # They tell of weights that find other clusters than the views agree on; the error is the same
    # matter with or without.
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
        "delta": 0.05,
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
