"""Whether logarithms of strongly skewed positive views give better clusters.

    MKCLUST_DATA=DATA OMP_NUM_THREADS=1 python benchmarks/skew.py

writes ``results/skew.json``, in a few minutes.

For every set of `sets`, and for patients with expression that is left as it was
measured (`expression`), views without negative entries are found whose columns are
scaled by their kind and have a median skewness of at least `LEAST`. If there are any,
AgreementKKM clusters with scale="auto", and with scale="log" for these views; rows hold
the adjusted Rand index of both with the classes, and which of the views
`are_strongly_skewed` names. `scale="auto"` should only take logarithms if real sets
gain.
"""

import warnings

import numpy as np
from sklearn.metrics import adjusted_rand_score

import sets
from mkclust import AgreementKKM
from mkclust.kernels.kinds import kind_of
from mkclust.kernels.preparations import (
    are_strongly_skewed,
    sampled_rows,
    skewness,
)
from mkclust.kernels.profile import ViewProfile
from records import JOBS, in_processes, parse, write_record

LEAST = 0.8
SEEDS = range(3)
SIGNALS = (1.0, 1.5, 2.0)
# The name of patients with raw expression.
EXPRESSION = "expression"


def skewed_views(views: sets.Views) -> dict[str, float]:
    """Return the median skewness of views that logarithms may change."""
    found = {}
    for name, view in views.items():
        before, _ = skewness(sampled_rows(view))
        is_scaled = kind_of(ViewProfile(view, len(view))).has_units
        if is_scaled and before >= LEAST:
            found[name] = round(before, 2)
    return found


def expression(signal: float, seed: int) -> tuple[sets.Views, np.ndarray]:
    """Return three groups of patients by raw expression of genes, and by proteins.

    Expression is 2 ** normal numbers, with means of genes from 2 to 2 ** 10; a tenth of
    the genes differ between groups by a signal, in standard deviations.
    """
    rng = np.random.default_rng(seed)
    classes = np.repeat([0, 1, 2], [60, 50, 40])
    views = []
    for n_columns in (300, 60):
        levels = rng.uniform(1, 10, size=n_columns)
        differ = rng.normal(size=(3, n_columns)) * signal
        differ[:, n_columns // 10 :] = 0
        logarithms = levels + differ[classes] + rng.normal(size=(150, n_columns))
        views.append(2**logarithms)
    return sets.numbered(views), classes


def row_of(name: str, views: sets.Views, classes: np.ndarray, seed: int) -> dict | None:
    """Return both adjusted Rand indices of a set, None without skewed views."""
    skewed = skewed_views(views)
    if not skewed:
        return None
    k = len(np.unique(classes))
    named = [each for each in skewed if are_strongly_skewed(views[each])]
    found = {"set": name, "seed": seed, "skewness": skewed, "strongly_skewed": named}
    scales = {"auto": "auto", "log": dict.fromkeys(skewed, "log")}
    for title, scale in scales.items():
        model = AgreementKKM(k, scale=scale, random_state=seed, impute="median")
        model.fit(views)
        found[title] = round(float(adjusted_rand_score(classes, model.labels_)), 4)
    return found


def problem(name: str, seed: int) -> tuple[sets.Views, np.ndarray]:
    """Return the views and classes of a set, or of patients with raw expression."""
    kind, _, signal = name.partition(", signal ")
    if kind == EXPRESSION:
        return expression(float(signal), seed)
    return sets.load(name, seed)


def row_of_set(name: str, seed: int) -> dict | None:
    """Return the row of a set by its name, None without skewed views."""
    warnings.simplefilter("ignore")
    return row_of(name, *problem(name, seed), seed)


def tasks() -> list[tuple[str, int]]:
    """Return the names and seeds of all sets."""
    of_expression = [f"{EXPRESSION}, signal {signal}" for signal in SIGNALS]
    simulated = (*sets.SIMULATED, *of_expression)
    return [(name, 0) for name in sets.REAL] + [
        (name, seed) for name in simulated for seed in SEEDS
    ]


def main() -> None:
    """Measure, print, and write the rows."""
    options = parse(__doc__, "skew.json", jobs=JOBS)
    found = list(in_processes(row_of_set, tasks(), options.jobs))
    rows = sorted(
        (row for row in found if row is not None),
        key=lambda row: (row["set"], row["seed"]),
    )
    for row in rows:
        print(f"{row['set']:24} {row['seed']}  {row['auto']:.3f}  {row['log']:.3f}")
    write_record(options.out, {"rows": rows})


if __name__ == "__main__":
    main()
