"""Samples missing from some views: our ways, fills and published methods.

    pip install --no-deps imml==0.6.0 control==0.10.2
    MKCLUST_DATA=DATA OMP_NUM_THREADS=1 python benchmarks/missing_views.py --jobs 16

writes a row for every data set, rate, seed and competitor to
``results/missing_views/rows.jsonl.gz``, and ``--table`` prints the means.

In every view ``rate`` percent of the samples are missing, at random; a sample that lost
all of its views gets the last one back. Every score is on all samples except that of
the inner join. No competitor sees labels; all get the number of clusters, and the seed
as random state.

SimpleMKKM             by ``missing_views="rescale"``, ``"zero"`` and ``"learn"``
AgreementKKM           samples are compared by the views that both have
inner join             SimpleMKKM of the samples that all views have, scored on these
                       alone
inner join + predict   the same, and ``predict`` for the others
zero, mean fill        of the columns of the views, then SimpleMKKM
kNN fill               scikit-learn's KNNImputer of all columns side by side, then
                       SimpleMKKM
kNN fill, balanced     neighbors by standardized columns, every view with the same
                       weight
NEMO, EE-IMVC          imml, its defaults, of standardized columns (see peers.py)
EE-IMVC, same kernels  imml, of the library's kernels, centered and with a unit diagonal
"""

import time
import warnings
import zlib
from functools import partial
from importlib.metadata import version
from itertools import product
from typing import NamedTuple

import numpy as np
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.preprocessing import KernelCenterer, StandardScaler

from mkclust import AgreementKKM, SimpleMKKM
from mkclust.kernels import default_bank
from mkclust.metrics import scores
from paper.datasets import load
from records import JOBS, parse, read_rows, rounded, write_rows, write_run

NAMES = ("digit", "digits", "msrc-v5", "bbcsport")
RATES = (0, 10, 30, 50, 70)
N_SEEDS = 3


class Problem(NamedTuple):
    """Views by name with NaN for the rows of missing samples, their mask, and the
    classes."""

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
    data = load(name)
    observed = observed_mask(name, data.n_samples, len(data.views), rate, seed)
    pairs = zip(data.views.items(), observed.T, strict=True)
    views = {view: np.where(seen[:, None], X, np.nan) for (view, X), seen in pairs}
    return Problem(views, observed, np.asarray(data.y), seed)


def fill_simple(problem, strategy):
    """Fill every view by scikit-learn's SimpleImputer."""
    imputer = SimpleImputer(strategy=strategy, fill_value=0.0)
    return {name: imputer.fit_transform(view) for name, view in problem.views.items()}


def fill_nearest(problem, balanced=False):
    """Fill by scikit-learn in all columns side by side, or in these with balanced
    views."""
    views = problem.views.values()
    columns, widths = np.hstack(list(views)), [view.shape[1] for view in views]
    scale = np.ones(columns.shape[1])
    if balanced:
        deviations = np.nanstd(columns, axis=0)
        scale = np.where(deviations > 0, deviations, 1) * np.sqrt(
            np.repeat(widths, widths)
        )
    filled = scale * KNNImputer(n_neighbors=5).fit_transform(columns / scale)
    return dict(
        zip(
            problem.views, np.split(filled, np.cumsum(widths)[:-1], axis=1), strict=True
        )
    )


def cluster(problem, method=SimpleMKKM, fill=None, **options):
    """Return the clusters of views with missing samples, filled beforehand or by the
    method."""
    views = (
        problem.views if fill is None or problem.is_complete.all() else fill(problem)
    )
    model = method(problem.n_clusters, random_state=problem.seed, **options)
    return model.fit(views).labels_


def inner_join(problem, predict=False):
    """Return clusters of the samples that all views have; the others are -1, or
    predicted."""
    rows = problem.is_complete
    if rows.sum() <= problem.n_clusters:
        raise ValueError(f"only {rows.sum()} samples are in all views")
    model = SimpleMKKM(problem.n_clusters, random_state=problem.seed)
    model.fit({name: view[rows] for name, view in problem.views.items()})
    labels = np.full(len(rows), -1)
    labels[rows] = model.labels_
    if predict and not rows.all():
        labels[~rows] = model.predict(
            {name: X[~rows] for name, X in problem.views.items()}
        )
    return labels


def cluster_by_imml(problem, method, same_kernels=False):
    """Return the clusters of a method of imml 0.6.0 with its defaults (see `peers`).

    Columns are standardized by the samples that a view has, as in the comparison of
    imml's authors.
    """
    from imml import cluster as methods

    options = {"n_clusters": problem.n_clusters, "random_state": problem.seed}
    parts = [StandardScaler().fit_transform(view) for view in problem.views.values()]
    if same_kernels:
        # A function of the part.
        parts, options["kernel"] = observed_kernels(problem), lambda K: K
    return getattr(methods, method)(**options).fit_predict(parts)


def observed_kernels(problem):
    """Return the library's kernel of every view, centered, with NaN for what is
    missing."""
    kernels = []
    for (name, view), seen in zip(
        problem.views.items(), problem.observed.T, strict=True
    ):
        block = default_bank(True, "auto").fit_transform({name: view[seen]})[0]
        block = block.toarray() if hasattr(block, "toarray") else np.asarray(block)
        block = KernelCenterer().fit_transform(block)
        lengths = np.sqrt(np.diag(block))
        K = np.full((len(seen), len(seen)), np.nan)
        K[np.ix_(seen, seen)] = block / np.outer(lengths, lengths)
        kernels.append(K)
    return kernels


GROUPS = {
    "ours": {
        f"SimpleMKKM, {way}": partial(cluster, method=SimpleMKKM, missing_views=way)
        for way in ("rescale", "zero", "learn")
    }
    | {"AgreementKKM": partial(cluster, method=AgreementKKM)}
    | {"inner join + predict": partial(inner_join, predict=True)},
    "fills": {
        "inner join": inner_join,
        "zero fill": partial(cluster, fill=partial(fill_simple, strategy="constant")),
        "mean fill": partial(cluster, fill=partial(fill_simple, strategy="mean")),
        "kNN fill": partial(cluster, fill=fill_nearest),
        "kNN fill, balanced": partial(
            cluster, fill=partial(fill_nearest, balanced=True)
        ),
    },
    "imml": {
        "NEMO": partial(cluster_by_imml, method="NEMO"),
        "EE-IMVC": partial(cluster_by_imml, method="EEIMVC"),
        "EE-IMVC, same kernels": partial(
            cluster_by_imml, method="EEIMVC", same_kernels=True
        ),
    },
}


def run(name, rate, seed, group):
    """Return the rows of the competitors of a group for one problem."""
    warnings.simplefilter("ignore")
    problem, rows = make_problem(name, rate, seed), []
    for competitor in GROUPS[group]:
        # Nothing to fill: one fit for all of them.
        if rate == 0 and group == "fills" and rows:
            rows.append(rows[0] | {"competitor": competitor})
            continue
        row = {"dataset": name, "rate": rate, "seed": seed, "competitor": competitor}
        row |= {
            "n_samples": len(problem.y),
            "missing": round(1 - problem.observed.mean(), 4),
        }
        started = time.perf_counter()
        try:
            labels = np.asarray(GROUPS[group][competitor](problem))
        except Exception as error:  # whatever a competitor raises is its outcome
            rows.append(row | {"status": f"{type(error).__name__}: {error}"[:200]})
            continue
        seconds, scored = time.perf_counter() - started, labels >= 0
        found = scores(problem.y[scored], labels[scored])
        row |= rounded({score: found[score] for score in ("acc", "nmi", "ari")}, 5)
        row |= {"scored": round(float(scored.mean()), 4), "seconds": round(seconds, 2)}
        rows.append(row | {"status": "ok"})
    return rows


def mean_table(frame, score):
    """Return means in percent over data sets, competitors on all samples by rate."""
    frame = frame[(frame["status"] == "ok") & (frame["scored"] == 1)]
    means = (
        100 * frame.groupby(["competitor", "rate", "dataset"])[score].mean().unstack()
    )
    table = means.mean(axis=1, skipna=False).unstack().dropna(how="all")
    known = [name for group in GROUPS.values() for name in group if name in table.index]
    known.remove("inner join")
    return table.loc[known].rename_axis(index=None, columns="missing per view, %")


def main():
    """Run all competitors, and print the means."""
    options = parse(
        __doc__,
        "missing_views/rows.jsonl.gz",
        jobs=JOBS,
        datasets={"nargs": "+", "default": NAMES},
        seeds={"type": int, "default": N_SEEDS},
        table={"action": "store_true"},
    )
    if not options.table:
        seeds = range(options.seeds)
        # The group that takes longest first.
        problems = product(options.datasets, RATES, seeds, reversed(GROUPS))
        write_rows(options.out, run, problems, options.jobs)
        write_run(options.out, imml=version("imml"))
    rows = read_rows(options.out)
    for score in ("acc", "nmi", "ari"):
        print(f"\n{score}\n{mean_table(rows, score).round(1).to_string()}")


if __name__ == "__main__":
    main()
