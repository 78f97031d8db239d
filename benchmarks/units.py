"""Whether the units of columns matter: tables whose columns are multiplied by random
factors.

    OMP_NUM_THREADS=1 python benchmarks/units.py --jobs 15

writes to ``results/units.json``, for scikit-learn's tables cut into two views and for
simulated clinics (clusters beside noise columns in large units), the adjusted Rand
index with the classes of AgreementKKM and of k-means on z-scores, and the least index
between the labels before and after columns are multiplied by factors between 1e-4 and
1e4. Diabetes is cut into three clusters.
"""

import warnings

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from mkclust import AgreementKKM
from mkclust.metrics import adjusted_rand_index
from records import JOBS, in_processes, parse, write_record

TABLES = {
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "iris": load_iris,
    "diabetes": lambda: load_diabetes(scaled=False),
}
N_FACTORS, N_CLINICS, FACTORS_PER_CLINIC = 100, 20, 5


def clinic(seed):
    """Return blood values and visits of three kinds of patients, and the kinds."""
    rng = np.random.default_rng([9, seed])
    n, k = int(rng.integers(90, 301)), 3
    y = rng.integers(k, size=n)
    views = {}
    for name in ("blood", "visit"):
        d = int(rng.integers(2, 6))
        useful = 3.0 * rng.normal(size=(k, d))[y] + rng.normal(size=(n, d))
        noise = rng.normal(size=(n, int(rng.integers(1, 3))))
        views[name] = np.hstack([useful, noise]) * 10 ** rng.uniform(
            -2, 4, d + noise.shape[1]
        )
    return views, y


def read(name):
    """Return two views and classes, None without any."""
    if name.startswith("clinic"):
        return clinic(int(name.split()[1]))
    data = TABLES[name]()
    views = dict(zip("ab", np.array_split(data.data, 2, axis=1), strict=True))
    return views, None if name == "diabetes" else data.target


def find(name):
    """Return a row for one data set."""
    warnings.simplefilter("ignore")
    views, y = read(name)
    k = 3 if y is None else len(np.unique(y))
    labels = AgreementKKM(k, random_state=0).fit(views).labels_
    rng, found = np.random.default_rng(0), []
    for _ in range(FACTORS_PER_CLINIC if name.startswith("clinic") else N_FACTORS):
        other = {
            each: v * 10 ** rng.uniform(-4, 4, v.shape[1]) for each, v in views.items()
        }
        again = AgreementKKM(k, random_state=0).fit(other).labels_
        found.append(adjusted_rand_index(labels, again))
    row = {
        "data": name,
        "least_agreement": round(min(found), 4),
        "n_factors": len(found),
    }
    if y is not None:
        X = StandardScaler().fit_transform(np.hstack(list(views.values())))
        by_kmeans = KMeans(k, n_init=10, random_state=0).fit_predict(X)
        row["ari"] = round(adjusted_rand_index(y, labels), 3)
        row["k_means_on_z_scores"] = round(adjusted_rand_index(y, by_kmeans), 3)
    return row


def main():
    options = parse(__doc__, "units.json", jobs=JOBS)
    names = [*TABLES, *(f"clinic {seed}" for seed in range(N_CLINICS))]
    found = {row["data"]: row for row in in_processes(find, zip(names), options.jobs)}
    rows = [found[name] for name in names]
    print(pd.DataFrame(rows).to_string())
    write_record(options.out, {"rows": rows})


if __name__ == "__main__":
    main()
