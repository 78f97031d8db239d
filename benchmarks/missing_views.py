"""Samples missing from some views: the library's ways beside fills and published methods.

    MKCLUST_DATA=DATA OMP_NUM_THREADS=1 python benchmarks/missing_views.py run --jobs 16 --out FILE
    python benchmarks/missing_views.py table FILE

``run`` adds a row for every data set, rate, seed and competitor to FILE (JSON lines, gzip if it
ends with .gz) and leaves out those that are there: it can be stopped at any time and begun again,
and run on several machines. ``--only ours``, ``fills``, ``imml`` or ``ablation`` runs a group of
competitors. imml asks for versions of its own: ``--imml-python`` names the Python of an environment
in which ``pip install imml==0.6.0`` was said. ``table`` prints the tables and, with ``--picture``,
draws accuracy against rate.

Of every view ``rate`` percent of the samples are missing, at random; a sample that lost all of its
views gets the last one back, so that with few views less is missing than was asked for: the share
is in the rows, and in the table. The masks are a function of data set, rate and seed alone, and
what is missing at one rate is missing at all higher ones. Every score is on all samples, with an
exception that says so. No competitor sees labels, or what is missing; all get the number of
clusters, and the seed as random state.

SimpleMKKM, AgreementKKM  by default, ``missing_views="rescale"``, ``"zero"`` and ``"learn"``
inner join             SimpleMKKM of the samples that all views have, scored on these alone; no
                       answer where they are too few to fit
inner join + predict   the same, and ``predict`` for the others
zero, mean fill        of the columns of the views, then SimpleMKKM
kNN fill               the mean of the five nearest samples that have the view, as scikit-learn's
                       KNNImputer finds them in all columns side by side, then SimpleMKKM
kNN fill, balanced     neighbors by standardized columns, every view with the same weight
NEMO, EE-IMVC          imml, its defaults, of standardized columns (see peers.py)
EE-IMVC, same kernels  imml, of the kernels that the library makes of the samples a view has,
                       centered and with a unit diagonal
"""

import argparse
import gzip
import json
import os
import time
import warnings
import zlib
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.preprocessing import KernelCenterer

from missing_views_imml import ImmlProcess
from mkclust import MKKM, AgreementKKM, SimpleMKKM
from mkclust.kernels import default_bank
from mkclust.metrics import scores
from paper.datasets import load

NAMES = ("digit", "digits", "msrc-v5", "bbcsport")
RATES = (0, 10, 20, 30, 40, 50, 60, 70)
N_SEEDS = 10
# The ablation asks for less, so that it does not double the time.
ABLATION_RATES, ABLATION_SEEDS = (0, 30, 60), 5
N_NEIGHBORS = 5


@dataclass(frozen=True)
class Problem:
    """Views by name with NaN for the rows of missing samples, their mask, and the classes."""

    views: dict[str, np.ndarray]
    observed: np.ndarray
    y: np.ndarray
    seed: int

    @property
    def n_clusters(self):
        return len(np.unique(self.y))

    @property
    def is_complete(self):
        return self.observed.all(axis=1)


@cache
def read(name):
    """Return the views of a data set, in float64, and its classes."""
    data = load(name)
    return {view: np.asarray(X, float) for view, X in data.views.items()}, np.asarray(data.y)


def observed_mask(name, n_samples, n_views, rate, seed):
    """Return which sample has which view, as a function of these arguments alone."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
    places = rng.random((n_samples, n_views)).argsort(axis=0).argsort(axis=0)
    observed = places >= round(rate * n_samples / 100)
    lost = np.flatnonzero(~observed.any(axis=1))
    observed[lost, places[lost].argmax(axis=1)] = True
    return observed


def make_problem(name, rate, seed):
    """Return a data set with some of its samples taken out of some of its views."""
    views, y = read(name)
    observed = observed_mask(name, len(y), len(views), rate, seed)
    columns = zip(views.items(), observed.T, strict=True)
    masked = {view: np.where(seen[:, None], X, np.nan) for (view, X), seen in columns}
    return Problem(masked, observed, y, seed)


def side_by_side(problem):
    return np.hstack(list(problem.views.values()))


def apart(problem, columns):
    """Return the views that stand side by side."""
    cuts = np.cumsum([view.shape[1] for view in problem.views.values()])[:-1]
    return dict(zip(problem.views, np.split(columns, cuts, axis=1), strict=True))


def fill_zero(problem):
    return {name: np.nan_to_num(view) for name, view in problem.views.items()}


def fill_mean(problem):
    return apart(problem, SimpleImputer().fit_transform(side_by_side(problem)))


def fill_nearest(problem):
    return from_nearest(problem, problem.views)


def fill_nearest_balanced(problem):
    scaled = {}
    for name, view in problem.views.items():
        deviations = np.nanstd(view, axis=0)
        scale = np.where(deviations > 0, deviations, 1) * np.sqrt(view.shape[1])
        scaled[name] = (view - np.nanmean(view, axis=0)) / scale
    return from_nearest(problem, scaled)


def from_nearest(problem, scaled):
    """Return the views, filled as KNNImputer does it with the distances of scaled views.

    It goes column by column, which takes minutes for a view of words; where rows are missing as a
    whole, all columns of a view have the same neighbors.
    """
    distances = common_distances(scaled, problem.observed)
    filled = {}
    for (name, view), seen in zip(problem.views.items(), problem.observed.T, strict=True):
        filled[name] = view.copy()
        donors = np.flatnonzero(seen)
        for i in np.flatnonzero(~seen):
            near = distances[i, donors]
            nearest = np.argsort(near)[:N_NEIGHBORS]  # NaN, without a common view, come last
            nearest = nearest[~np.isnan(near[nearest])]
            filled[name][i] = view[donors[nearest] if len(nearest) else donors].mean(axis=0)
    return filled


def common_distances(views, observed):
    """Return squared distances in the views that two samples share, per column: NaN for none."""
    n = len(observed)
    total, n_columns = np.zeros((n, n)), np.zeros((n, n))
    for view, seen in zip(views.values(), observed.T, strict=True):
        total[np.ix_(seen, seen)] += euclidean_distances(view[seen], squared=True)
        n_columns[np.ix_(seen, seen)] += view.shape[1]
    return np.divide(total, n_columns, out=np.full((n, n), np.nan), where=n_columns > 0)


def fit_filled(fill):
    """Return a competitor that fills views and then clusters them by SimpleMKKM."""

    def labels(problem):
        views = problem.views if problem.is_complete.all() else fill(problem)
        return SimpleMKKM(problem.n_clusters, random_state=problem.seed).fit(views).labels_

    return labels


def fit_own(method, **options):
    """Return a competitor of the library, on views with missing samples."""

    def labels(problem):
        model = method(problem.n_clusters, random_state=problem.seed, **options)
        return model.fit(problem.views).labels_

    return labels


def fit_complete(problem):
    """Return SimpleMKKM of the samples that all views have."""
    rows = problem.is_complete
    if rows.sum() <= problem.n_clusters:
        raise ValueError(f"only {rows.sum()} samples are in all views")
    views = {name: view[rows] for name, view in problem.views.items()}
    return SimpleMKKM(problem.n_clusters, random_state=problem.seed).fit(views)


def inner_join(problem):
    """Return clusters of the samples that all views have, -1 for the others."""
    labels = np.full(len(problem.y), -1)
    labels[problem.is_complete] = fit_complete(problem).labels_
    return labels


def inner_join_and_predict(problem):
    """Return clusters of the samples that all views have, and predict those of the others."""
    model, labels = fit_complete(problem), np.empty(len(problem.y), int)
    labels[problem.is_complete] = model.labels_
    others = ~problem.is_complete
    if others.any():
        labels[others] = model.predict({name: X[others] for name, X in problem.views.items()})
    return labels


@cache
def imml_process(python):
    return ImmlProcess(python)


def fit_imml(method, same_kernels=False):
    """Return a competitor that another Python computes."""

    def labels(problem, python):
        parts = observed_kernels(problem) if same_kernels else list(problem.views.values())
        process = imml_process(python)
        return process.labels(method, parts, problem.n_clusters, problem.seed, same_kernels)

    return labels


def observed_kernels(problem):
    """Return the library's kernel of every view, centered, with NaN for what is missing."""
    kernels = []
    for (name, view), seen in zip(problem.views.items(), problem.observed.T, strict=True):
        block = default_bank(True, "auto").fit_transform({name: view[seen]})[0]
        block = block.toarray() if hasattr(block, "toarray") else np.asarray(block)
        block = KernelCenterer().fit_transform(block)
        lengths = np.sqrt(np.diag(block))
        K = np.full((len(seen), len(seen)), np.nan)
        K[np.ix_(seen, seen)] = block / np.outer(lengths, lengths)
        kernels.append(K)
    return kernels


FILLS = ("rescale", "zero", "learn")
GROUPS = {
    "ours": {
        **{f"SimpleMKKM, {fill}": fit_own(SimpleMKKM, missing_views=fill) for fill in FILLS},
        "AgreementKKM, rescale": fit_own(AgreementKKM, missing_views="rescale"),
        "AgreementKKM, zero": fit_own(AgreementKKM, missing_views="zero"),
        "AgreementKKM, learn": fit_own(AgreementKKM, missing_views="learn"),
        "inner join + predict": inner_join_and_predict,
    },
    "fills": {
        "inner join": inner_join,
        "zero fill": fit_filled(fill_zero),
        "mean fill": fit_filled(fill_mean),
        "kNN fill": fit_filled(fill_nearest),
        "kNN fill, balanced": fit_filled(fill_nearest_balanced),
    },
    "imml": {
        "NEMO": fit_imml("NEMO"),
        "EE-IMVC": fit_imml("EEIMVC"),
        "EE-IMVC, same kernels": fit_imml("EEIMVC", same_kernels=True),
    },
    "ablation": {
        **{f"MKKM, {fill}": fit_own(MKKM, missing_views=fill) for fill in FILLS},
        **{
            f"SimpleMKKM (gaussian), {fill}": fit_own(
                SimpleMKKM, missing_views=fill, kernels="gaussian"
            )
            for fill in FILLS
        },
    },
}


def run(name, rate, seed, group, competitors, python):
    """Return the rows of some competitors of a group for one problem."""
    problem = make_problem(name, rate, seed)
    rows = []
    for competitor in competitors:
        if rate == 0 and group == "fills" and rows:  # nothing to fill: one fit for all of them
            rows.append(rows[0] | {"competitor": competitor})
            continue
        row = {"dataset": name, "rate": rate, "seed": seed, "competitor": competitor}
        row |= {"n_samples": len(problem.y), "missing": round(1 - problem.observed.mean(), 4)}
        arguments = (problem, python) if group == "imml" else (problem,)
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                labels = np.asarray(GROUPS[group][competitor](*arguments))
            except Exception as error:  # whatever a competitor raises is its outcome
                rows.append(row | {"status": f"{type(error).__name__}: {error}"[:200]})
                continue
        scored = labels >= 0
        found = scores(problem.y[scored], labels[scored])
        row |= {score: round(found[score], 5) for score in ("acc", "nmi", "ari")}
        row |= {"scored": round(float(scored.mean()), 4)}
        rows.append(row | {"seconds": round(time.perf_counter() - started, 2), "status": "ok"})
    return rows


def read_rows(path):
    """Return the rows of a file, of which a last line may have been cut short."""
    if not path.exists():
        return []
    rows = []
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for line in lines:
            try:
                rows.append(json.loads(line))
            except json.JSONDecodeError:
                continue
    return rows


def add_rows(path, rows):
    with gzip.open(path, "at") if path.suffix == ".gz" else path.open("a") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in rows)


def mean_table(rows, score):
    """Return means in percent over data sets, competitors on all samples by rate."""
    frame = pd.DataFrame(rows).drop_duplicates(["dataset", "rate", "seed", "competitor"])
    frame = frame[(frame["status"] == "ok") & (frame["scored"] == 1)]
    frame = frame[~frame["competitor"].isin([*GROUPS["ablation"], "inner join"])]
    means = 100 * frame.groupby(["competitor", "rate", "dataset"])[score].mean().unstack()
    table = means.mean(axis=1, skipna=False).unstack().dropna(how="all")
    known = [name for group in GROUPS.values() for name in group if name in table.index]
    return table.loc[known].rename_axis(index=None, columns="missing per view, %")


def ablation_table(rows):
    """Return accuracies less those of the complete views, by method and way to fill."""
    frame = pd.DataFrame(rows)
    names = [f"SimpleMKKM, {fill}" for fill in FILLS] + list(GROUPS["ablation"])
    is_few = frame["rate"].isin(ABLATION_RATES) & (frame["seed"] < ABLATION_SEEDS)
    frame = frame[is_few & frame["competitor"].isin(names)]
    means = 100 * frame.pivot_table("acc", "competitor", ["dataset", "rate"])
    lost = [column for column in means if column[1]]
    table = pd.DataFrame({f"{d}, {r} %": means[d, r] - means[d, 0] for d, r in lost})
    return table.loc[names].rename_axis(index="method, missing_views")


def draw(rows, path):
    """Draw accuracy against rate, a panel for each data set."""
    import matplotlib.pyplot as plt

    frame = pd.DataFrame(rows)
    frame = frame[(frame["status"] == "ok") & (frame["scored"] == 1)]
    means = 100 * frame.groupby(["dataset", "competitor", "rate"])["acc"].mean()
    figure, axes = plt.subplots(1, len(NAMES), figsize=(16, 4.4), layout="constrained")
    for ax, name in zip(axes, NAMES, strict=True):
        for number, competitor in enumerate(mean_table(rows, "acc").index):
            line = "-" if competitor in GROUPS["ours"] else "--"
            marker = "osv^dxP*"[number % 8]
            ax.plot(means[name][competitor], line, marker=marker, ms=4, label=competitor)
        ax.set(title=name, xlabel="missing per view, %")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("accuracy on all samples, %")
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    figure.savefig(path, dpi=120)


def print_tables(options):
    """Print the tables of rows, and draw the picture."""
    rows = [row for path in options.rows for row in read_rows(path)]
    for score in ("acc", "nmi", "ari"):
        print(f"\n{score.upper()}\n\n{mean_table(rows, score).to_markdown(floatfmt='.1f')}")
    print(f"\n{ablation_table(rows).to_markdown(floatfmt='+.1f')}")
    if options.picture:
        draw(rows, options.picture)


def jobs_to_do(options):
    """Yield what is not in the file yet: all problems of a seed before those of the next."""
    keys = ("dataset", "rate", "seed", "competitor")
    done = {tuple(row[key] for key in keys) for row in read_rows(options.out)}
    for seed in range(options.seeds):
        for group in options.only:
            for name in options.datasets:
                for rate in options.rates:
                    few = rate in ABLATION_RATES and seed < ABLATION_SEEDS
                    if group == "ablation" and not few:
                        continue
                    names = [c for c in GROUPS[group] if (name, rate, seed, c) not in done]
                    if names:
                        yield name, rate, seed, group, names, options.imml_python


def run_all(options):
    """Compute the rows that are not there, and write them as they come."""
    options.out.parent.mkdir(parents=True, exist_ok=True)
    jobs = list(jobs_to_do(options))
    started = time.perf_counter()
    with ProcessPoolExecutor(options.jobs) as pool:
        for number, done in enumerate(as_completed([pool.submit(run, *job) for job in jobs]), 1):
            add_rows(options.out, done.result())
            seconds = time.perf_counter() - started
            print(f"{number} of {len(jobs)} problems, {seconds:.0f} s", flush=True)


def main():
    """Run what is asked for, or print the tables of the rows that are there."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("run", help="add rows to a file")
    runs.add_argument("--jobs", type=int, default=os.cpu_count())
    runs.add_argument("--out", type=Path, required=True)
    runs.add_argument("--only", nargs="+", choices=GROUPS, help="groups; imml only if asked for")
    runs.add_argument("--datasets", nargs="+", default=NAMES)
    runs.add_argument("--rates", nargs="+", type=int, default=RATES)
    runs.add_argument("--seeds", type=int, default=N_SEEDS)
    runs.add_argument("--imml-python", help="the Python that has imml")
    runs.set_defaults(call=run_all)
    tables = commands.add_parser("table", help="print the tables of a file")
    tables.add_argument("rows", type=Path, nargs="+")
    tables.add_argument("--picture", type=Path)
    tables.set_defaults(call=print_tables)
    options = parser.parse_args()
    if "only" in options and options.only is None:
        options.only = [group for group in GROUPS if group != "imml" or options.imml_python]
    options.call(options)


if __name__ == "__main__":
    main()
