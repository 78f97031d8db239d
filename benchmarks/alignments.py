"""Is a row ever taken for another sample? Random tables, matched by their ids.

    OMP_NUM_THREADS=1 python benchmarks/alignments.py [--problems 1000] [--first-seed 0]

writes the counts of outcomes to ``results/alignments.json`` beside itself, and a row
per problem to ``results/alignments.jsonl.gz``.

Every problem passes two tables of the same samples to a function. The second has its
rows in another order, may lack samples, have others, or hold a sample twice, and has
the ids in its index or in a column, perhaps as text or floats for numbers. The outcome
is

by id        every row is the sample that its id says
refused      an error says why not, and what to do
by position  at least one row counts as another sample: this must not happen
"""

import warnings
from functools import partial

import numpy as np
import pandas as pd

from mkclust import AverageKKM, annotate, describe
from mkclust.version import versions
from records import JOBS, parse, read_rows, write_record, write_rows

USES = ("fit", "inner join", "outer join", "predict", "annotate", "describe")
IDS = ("text", "digits", "numbers", "small numbers", "dates", "pairs")
SPELLINGS = ("same", "text", "floats")
PLACES = ("index", "column", "text index and column")
COLUMNS = ("patient_id", "id", "sample", "code", "no")
CHANGES = ("none", "subset", "superset", "repeated", "other samples in part")


def draw_ids(kind, n, rng):
    """Return an index of n ids of a kind."""
    numbers = rng.permutation(np.arange(1000, 1000 + 3 * n))[:n]
    if kind == "small numbers":
        return pd.Index(rng.permutation(n))
    if kind == "numbers":
        return pd.Index(numbers)
    if kind == "digits":
        return pd.Index(numbers.astype(str))
    if kind == "text":
        return pd.Index([f"P{number}" for number in numbers])
    if kind == "dates":
        return pd.Index(pd.Timestamp("2020-01-30") + pd.to_timedelta(numbers, unit="D"))
    pairs = [(f"plate {number % 3}", int(number)) for number in numbers]
    return pd.MultiIndex.from_tuples(pairs, names=["plate", "well"])


def respelled(index, spelling):
    """Return ids in another spelling, as after a round trip through a file."""
    if index.nlevels > 1 or spelling == "same":
        return index
    if spelling == "floats" and pd.api.types.is_integer_dtype(index):
        return index.astype(float)
    return index.astype(str)


def draw_rows(change, n, n_all, rng):
    """Return the samples in the rows of a table: of n common ones, and some others."""
    order = rng.permutation(n)
    others = rng.permutation(np.arange(n, n_all))
    if change == "subset":
        return order[: max(n // 2, 8)]
    if change == "superset":
        return rng.permutation(np.append(order, others))
    if change == "repeated":
        return np.append(order, order[0])
    if change == "other samples in part":
        return rng.permutation(np.append(order[: n // 2], others))
    return order


def placed(frame, ids, place, column, rng):
    """Return a frame with its ids in the index or in a column."""
    if place == "index":
        return frame.set_axis(ids, axis=0)
    values = ids if ids.nlevels == 1 else ids.get_level_values(1)
    frame = frame.reset_index(drop=True)
    frame.insert(int(rng.integers(frame.shape[1] + 1)), column, np.asarray(values))
    if place == "column":
        return frame
    return frame.set_axis([f"row {i}" for i in rng.permutation(len(frame))], axis=0)


class Problem:
    """Two tables of the same samples, and who is in which row of the second."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.use = str(rng.choice(USES))
        self.kind = str(rng.choice(IDS))
        self.spelling = str(rng.choice(SPELLINGS))
        self.place = str(rng.choice(PLACES, p=[0.5, 0.4, 0.1]))
        self.column = str(rng.choice(COLUMNS))
        self.change = str(rng.choice(CHANGES, p=[0.4, 0.2, 0.15, 0.1, 0.15]))
        self.is_first = bool(rng.random() < 0.3)
        self.n, n_all = 24, 32

        self.ids = draw_ids(self.kind, n_all, rng)
        y = rng.permutation(n_all) % 3
        self.a = 4.0 * y[:, None] + rng.normal(size=(n_all, 3))
        self.b = 4.0 * y[:, None] + rng.normal(size=(n_all, 3))
        self.rows = draw_rows(self.change, self.n, n_all, rng)
        self.first = pd.DataFrame(self.a, self.ids, ["a0", "a1", "a2"])[: self.n]
        second = pd.DataFrame(self.b[self.rows], columns=["b0", "b1", "b2"])
        ids = respelled(self.ids[self.rows], self.spelling)
        self.second = placed(second, ids, self.place, self.column, rng)

    def tables(self):
        """Return both tables, in either order."""
        tables = {"a": self.first, "b": self.second}
        return dict(reversed(tables.items())) if self.is_first else tables

    def facts(self):
        """Return what was drawn."""
        names = ("use", "kind", "spelling", "place", "column", "change", "is_first")
        return {name: getattr(self, name) for name in names}


def model_of(**options):
    """Return a model that is fitted soon and has no random parts but k-means."""
    options |= {"n_init": 2, "random_state": 0, "scale": "none"}
    return AverageKKM(3, kernels="linear", **options)


def samples_of(rows, values):
    """Return the numbers of the samples that rows of values belong to, -1 for none."""
    distances = np.abs(np.asarray(rows)[:, None, :3] - values).max(axis=2)
    found = distances.argmin(axis=1)
    return np.where(distances[np.arange(len(found)), found] < 1e-9, found, -1)


def is_fit_right(problem, **options):
    """Return whether a fit pairs the rows of two tables as their ids do."""
    model = model_of(**options).fit(problem.tables())
    n = len(model.labels_)
    observed = getattr(model, "observed_", np.ones((n, 2), bool))
    samples = {}
    for view, name in enumerate(model.view_names_in_):
        values = {"a": problem.a, "b": problem.b}[name]
        samples[name] = np.full(n, -1)
        samples[name][observed[:, view]] = samples_of(model.bank_.views_[name], values)
    both = observed.all(axis=1)
    if not np.array_equal(samples["a"][both], samples["b"][both]):
        return False

    # Everyone is in the fit as often as the join says, and by the right name.
    given = np.where(samples["a"] >= 0, samples["a"], samples["b"])
    common = set(range(problem.n)) & set(problem.rows.tolist())
    everyone = set(range(problem.n)) | set(problem.rows.tolist())
    expected = everyone if options.get("join") == "outer" else common
    named = model.sample_ids_
    pairs = zip(named, given, strict=True)
    is_named = all(same_id(found, problem.ids[sample]) for found, sample in pairs)
    return sorted(given.tolist()) == sorted(expected) and is_named


def same_id(found, expected):
    """Return whether two ids are the same in any spelling."""
    if isinstance(expected, tuple):
        return tuple(map(str, found)) == tuple(map(str, expected))
    if isinstance(expected, pd.Timestamp):
        return pd.Timestamp(found) == expected
    return str(found).removesuffix(".0") == str(expected)


def is_predict_right(problem):
    """Return whether new samples are embedded by the rows that their ids say."""
    rng = np.random.default_rng(0)
    model = model_of().fit(framed(rng.normal(size=(30, 3)), rng.normal(size=(30, 3))))
    found = np.asarray(model.transform(problem.tables()))
    order = problem.rows if problem.is_first else np.arange(problem.n)
    new = framed(problem.a[order], problem.b[order])
    expected = np.asarray(model.transform(new))
    return found.shape == expected.shape and np.allclose(found, expected)


def framed(a, b):
    """Return two views as frames without ids."""
    views = {"a": a, "b": b}
    return {name: pd.DataFrame(X).add_prefix(name) for name, X in views.items()}


def by_hand(problem):
    """Return the columns of the second table in the order of the fit, NaN if absent."""
    columns = np.full((problem.n, 3), np.nan)
    is_known = problem.rows < problem.n
    columns[problem.rows[is_known]] = problem.b[problem.rows[is_known]]
    return dict(zip(["b0", "b1", "b2"], columns.T, strict=True))


def is_annotate_right(problem):
    """Return whether variables are tested by the rows that their ids say."""
    model = model_of().fit({"a": problem.first})
    found = annotate(model, problem.second, n_permutations=1)
    tests = {test.variable: test for test in found.tests}
    expected = annotate(model.labels_, by_hand(problem), n_permutations=1)
    return same_values(
        [
            [tests[each.variable].statistic, tests[each.variable].n_missing]
            for each in expected.tests
        ],
        [[each.statistic, each.n_missing] for each in expected.tests],
    )


def is_describe_right(problem):
    """Return whether columns are described by the rows that their ids say."""
    model = model_of().fit({"a": problem.first})
    found, expected = (
        {
            (each.cluster, each.feature): each.standardized
            for each in describe(model, table).effects
        }
        for table in (problem.second, by_hand(problem))
    )
    shared = [key for key in expected if key in found]
    return len(shared) == len(expected) and all(
        same_values(found[key], expected[key]) for key in shared
    )


def same_values(found, expected):
    """Return whether numbers are the same but for rounding."""
    return np.allclose(found, expected, equal_nan=True)


CHECKS = {
    "fit": is_fit_right,
    "inner join": partial(is_fit_right, join="inner"),
    "outer join": partial(is_fit_right, join="outer"),
    "predict": is_predict_right,
    "annotate": is_annotate_right,
    "describe": is_describe_right,
}


def run(seed):
    """Return the row of one problem, in a list."""
    problem = Problem(seed)
    row = {"seed": seed, "mkclust": versions()["mkclust"]} | problem.facts()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            is_right = CHECKS[problem.use](problem)
        except (ValueError, TypeError) as error:
            return [row | {"outcome": "refused", "message": str(error)}]
    return [row | {"outcome": "by id" if is_right else "by position", "message": ""}]


def main():
    """Run the problems and write their counts."""
    problems, seed = ({"type": int, "default": number} for number in (1000, 0))
    more = {"problems": problems, "jobs": JOBS, "first-seed": seed}
    options = parse(__doc__, "alignments.json", **more)
    path = options.out.with_suffix(".jsonl.gz")
    seeds = range(options.first_seed, options.first_seed + options.problems)
    write_rows(path, run, [(seed,) for seed in seeds], options.jobs)
    rows = read_rows(path)

    counts = pd.crosstab(rows["use"], rows["outcome"])
    counts = counts.reindex(columns=["by id", "refused", "by position"], fill_value=0)
    print(counts.to_string())
    print(rows[rows["outcome"] == "by position"].to_string())
    record = {"problems": len(rows), "outcomes": counts.to_dict(orient="index")}
    write_record(options.out, record)


if __name__ == "__main__":
    main()
