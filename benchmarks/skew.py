"""Whether logarithms of strongly skewed positive views give better clusters.

    python benchmarks/skew.py          # a few minutes; results/skew.json

For every set of `sets`, and for patients with expression that is left as it was
measured (`expression`), views without negative entries are found whose columns are
scaled by their kind and have a median skewness of at least `LEAST`. If there are any,
AgreementKKM clusters with scale="auto", and with scale="log" for these views; rows hold
the adjusted Rand index of both with the classes, and which of the views
`are_strongly_skewed` names. `scale="auto"` should only take logarithms if real sets
gain.
"""

import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

import sets
from mkclust import AgreementKKM
from mkclust.kernels.kinds import ViewProfile, kind_of
from mkclust.kernels.preparations import (
    are_strongly_skewed,
    sampled_rows,
    skewness,
)

RESULTS = Path(__file__).parent / "results" / "skew.json"
LEAST = 0.8
SEEDS = range(3)
SIGNALS = (1.0, 1.5, 2.0)


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


def measure() -> list[dict]:
    """Return the rows of all sets with skewed views."""
    rows = []
    for name in sets.REAL:
        rows.append(row_of(name, *sets.load(name), 0))
    for name in sets.SIMULATED:
        for seed in SEEDS:
            rows.append(row_of(name, *sets.load(name, seed), seed))
    for signal in SIGNALS:
        for seed in SEEDS:
            views, classes = expression(signal, seed)
            rows.append(row_of(f"expression, signal {signal}", views, classes, seed))
    return [row for row in rows if row is not None]


def main() -> None:
    """Measure, print, and write the rows."""
    start = time.perf_counter()
    with warnings.catch_warnings(action="ignore"):
        rows = measure()
    for row in rows:
        print(f"{row['set']:24} {row['seed']}  {row['auto']:.3f}  {row['log']:.3f}")
    seconds = time.perf_counter() - start
    RESULTS.write_text(json.dumps({"rows": rows, "seconds": round(seconds)}, indent=1))


if __name__ == "__main__":
    main()
