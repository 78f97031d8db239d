"""A cohort of a hospital, from files as they come to a page, by two commands.

The first command is refused with all that is in the way; the second is the one that it
prints.
"""

import re
import shlex

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from helpers.cli import stop, succeed

SIZES = (70, 50, 35, 25)
Y = np.repeat(np.arange(4), SIZES)
N = len(Y)
PATIENTS = np.array([f"TCGA-AB-{1000 + place}" for place in range(N)])
FILES = ("rna.tsv.gz", "proteins.csv", "clinic.csv")
COMMAND = (
    *("cluster", *FILES, "-k", 4),
    *("--annotate", "outcome.csv", "--report", "page.html", "--save", "m.skops"),
)


def expression(rng):
    """Return genes x barcodes, with nuisance programs stronger than the groups."""
    effects = 1.8 * rng.normal(size=(4, 60))
    # Two groups have one expression, and differ in proteins.
    effects[3] = effects[2]
    programs = rng.normal(size=(N, 2)) @ rng.normal(size=(2, 400))
    logarithms = rng.uniform(1, 9, size=400) + programs + rng.normal(size=(N, 400))
    logarithms[:, :60] += effects[Y]
    frame = pd.DataFrame(2**logarithms, [f"{each}-01A" for each in PATIENTS])
    return frame.add_prefix("ENSG").T


def proteins(rng):
    """Return proteins of seven tenths of the patients, with empty cells."""
    X = rng.normal(size=(N, 40))
    X[:, :15] += 2.2 * rng.normal(size=(4, 15))[Y]
    X[rng.random(X.shape) < 0.02] = np.nan
    frame = pd.DataFrame(X, PATIENTS).add_prefix("P")
    return frame.iloc[np.sort(rng.choice(N, N * 7 // 10, replace=False))]


def clinic(rng):
    """Return laboratory values in units of their own, a limit of detection, dates."""
    centers = 3 * rng.normal(size=(4, 6))
    # What has the largest numbers says nothing.
    centers[:, 5] = 0
    X = centers[Y] + rng.normal(size=(N, 6))
    X *= [1, 10, 1000, 0.01, 5, 1e6]
    frame = pd.DataFrame(
        X, columns=["crp", "sodium", "platelets", "tsh", "bmi", "leukocytes"]
    )
    crp = frame["crp"].round(3).astype(str)
    frame["crp"] = crp.where(frame["crp"] > frame["crp"].quantile(0.1), "<LOD")
    frame.loc[rng.choice(N, 9, replace=False), "tsh"] = np.nan
    frame.insert(0, "patient", PATIENTS)
    admitted = pd.to_datetime("2019-01-01") + pd.to_timedelta(
        rng.integers(900, size=N), unit="D"
    )
    frame["admitted"] = admitted.strftime("%d.%m.%Y")
    return frame


def outcome(rng):
    """Return times and events of patients whose groups differ in their survival.

    Ids are those of tumors, and words say that a stage is not known.
    """
    months = rng.exponential([60, 40, 12, 8], size=(N, 4))[np.arange(N), Y]
    censored = rng.uniform(5, 80, size=N)
    return pd.DataFrame(
        {
            "patient": [f"{each}-01" for each in PATIENTS],
            "OS_MONTHS": np.minimum(months, censored),
            "OS_STATUS": (months <= censored).astype(int),
            "sex": rng.choice(["f", "m"], size=N),
            "stage": rng.choice(["I", "II", "[Not Available]"], size=N),
        }
    )


@pytest.fixture
def cohort(folder):
    """Write the files, in an order that says nothing."""
    rng = np.random.default_rng(0)
    rna = expression(rng)
    rna.sample(frac=1, axis=1, random_state=0).to_csv(
        "rna.tsv.gz", sep="\t", index_label="gene"
    )
    of_some = proteins(rng)
    of_some.sample(frac=1, random_state=1).to_csv("proteins.csv", index_label="sample")
    of_all = clinic(rng)
    of_all.sample(frac=1, random_state=2).to_csv("clinic.csv", index=False)
    outcome(rng).sample(frac=1, random_state=3).to_csv("outcome.csv", index=False)
    return rna, of_some, of_all


def k_means(rna, of_some, of_all):
    """Return the clusters of k-means on all columns, as a person would put them."""
    laboratory = of_all.set_index("patient").drop(columns="admitted")
    laboratory = laboratory.apply(pd.to_numeric, errors="coerce")
    rna = rna.T.set_axis(PATIENTS)
    wide = rna.join(of_some).join(laboratory)
    wide = wide.fillna(wide.median())
    return KMeans(4, n_init=10, random_state=0).fit_predict(wide)


@pytest.mark.slow
def test_two_commands_lead_from_the_files_of_a_hospital_to_a_page(cohort, folder):
    message = stop(*COMMAND)
    for found in ("columns", "TCGA-AB-", "admitted", "<LOD", "--join", "--impute"):
        assert found in message
    assert "--trim-ids outcome.csv=12" in message
    assert "--missing 'outcome.csv=[Not Available]'" in message
    command = shlex.split(message.splitlines()[-1])
    said = succeed(*command[1:]).stdout

    labels = pd.read_csv("labels.csv", index_col="id")["cluster"]
    truth = pd.Series(Y, PATIENTS)[labels.index]
    assert len(labels) == N
    assert adjusted_rand_score(truth, labels) >= 0.9
    assert adjusted_rand_score(Y, k_means(*cohort)) < 0.3
    assert re.search(r"OS_MONTHS.*log-rank", said)
    page = (folder / "page.html").read_text()
    assert "OS_MONTHS" in page
    assert page.count("<svg") >= 3
