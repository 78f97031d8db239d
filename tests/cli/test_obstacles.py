"""All that is in the way of a fit is named at once, with a command that cures it."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from helpers.cli import invoke, stop, succeed
from mkclust import AgreementKKM
from mkclust.datasets import load
from mkclust.exceptions import InputError, UnknownCellsWarning

N = 90
Y = np.arange(N) % 3
PATIENTS = [f"TCGA-AB-{1000 + place}" for place in range(N)]
FILES = ["rna.tsv.gz", "proteins.csv", "clinic.csv"]
# Six problems of three files, and the options that cure them.
CURES = {
    "--samples-in rna.tsv.gz=columns": "has samples in its columns",
    "--trim-ids rna.tsv.gz=12": "'TCGA-AB-1000-01A'",
    "--drop clinic.csv=born": "'born' of dates",
    "--missing 'clinic.csv=<0.5'": "'crp' of numbers, but 10 cells",
    "--join outer": "lacks 27 of 90 samples",
    "--impute median": "empty cells",
}


def tables():
    """Return genes x barcodes, fewer proteins, and a messy table of a clinic."""
    rng = np.random.default_rng(0)
    rna = pd.DataFrame(rng.normal(size=(N, 40)), columns=[f"g{j}" for j in range(40)])
    rna.iloc[:, :12] += 4 * rng.normal(size=(3, 12))[Y]
    proteins = pd.DataFrame(rng.normal(size=(N, 10)), index=PATIENTS).add_prefix("p")
    proteins.iloc[:, :6] += 4 * rng.normal(size=(3, 6))[Y]
    proteins.iloc[3, 2] = np.nan
    crp = [f"{5 + y + rng.normal():.3f}" for y in Y]
    crp[::9] = ["<0.5"] * 10
    clinic = pd.DataFrame(
        {
            "patient": PATIENTS,
            "age": 50 + 10 * (Y == 0) + rng.normal(size=N),
            "born": pd.date_range("1950-01-01", periods=N),
            "crp": crp,
        }
    )
    return (
        rna.set_axis([f"{each}-01A" for each in PATIENTS]).T,
        proteins.iloc[: N * 7 // 10],
        clinic,
    )


@pytest.fixture(autouse=True)
def files(folder):
    """Write the three tables."""
    rna, proteins, clinic = tables()
    rna.to_csv("rna.tsv.gz", sep="\t", index_label="gene")
    proteins.to_csv("proteins.csv", index_label="sample")
    clinic.to_csv("clinic.csv", index=False)


def truth(ids):
    return pd.Series(Y, index=PATIENTS).loc[ids]


def test_six_problems_are_named_at_once_and_the_command_that_is_printed_works():
    message = stop("cluster", *FILES, "-k", 3)
    for option, found in CURES.items():
        assert found in message
        assert option in message
    assert "reset_index" not in message
    command = message.splitlines()[-1]
    assert command.startswith("mkclust cluster rna.tsv.gz proteins.csv clinic.csv -k 3")
    succeed(*shlex.split(command)[1:])
    labels = pd.read_csv("labels.csv", index_col="id")["cluster"]
    assert len(labels) == N
    assert adjusted_rand_score(truth(labels.index), labels) > 0.9


def test_inspect_goes_on_to_the_end_and_fails_if_a_fit_would():
    result = invoke("inspect", *FILES)
    assert result.exit_code == 1
    problems = [line for line in result.stdout.splitlines() if "problem: " in line]
    assert all(any(each in line for line in problems) for each in CURES)
    assert "rna\n  90 x 40, ids such as 'TCGA-AB-1000'" in result.stdout
    command = result.stdout.splitlines()[-1]
    assert " -k auto " in command
    options = shlex.split(command)[7:]
    cured = json.loads(succeed("inspect", *FILES, *options, "--json").stdout)
    assert cured["problems"] == []


def test_python_names_the_same_problems_in_its_own_words():
    rna, proteins, clinic = tables()
    views = {"rna": rna, "proteins": proteins, "clinic": clinic}
    with pytest.raises(InputError) as caught:
        AgreementKKM(3).fit(views)
    message = str(caught.value)
    assert all(found in message for found in CURES.values())
    assert "--" not in message
    assert len(caught.value.findings) == len(message.splitlines()) - 1

    rna = rna.T
    rna.index = rna.index.str[:12]
    clinic = clinic.set_index("patient").drop(columns="born")
    clinic["crp"] = pd.to_numeric(clinic["crp"], errors="coerce")
    options = {"join": "outer", "impute": "median", "random_state": 0}
    views = {"rna": rna, "proteins": proteins, "clinic": clinic}
    model = AgreementKKM(3, **options).fit(views)
    assert adjusted_rand_score(truth(model.sample_ids_), model.labels_) > 0.9


def test_two_tables_of_genes_by_patients_are_both_turned():
    rna, proteins, _ = tables()
    rna.columns = PATIENTS
    rna.to_csv("rna.tsv", sep="\t", index_label="gene")
    proteins.T.to_csv("proteins.tsv", sep="\t", index_label="protein")
    files = ("rna.tsv", "proteins.tsv", "--join", "outer", "--impute", "median")
    result = succeed("cluster", *files, "-k", 3)
    assert result.stdout.count("its columns are the samples") == 2


def test_genes_that_are_there_twice_do_not_hide_that_samples_are_columns():
    rna, _, _ = tables()
    rna.columns = PATIENTS
    names = [*rna.index[:-1], rna.index[0]]
    rna.set_axis(names).to_csv("rna.csv", index_label="name")
    message = stop("cluster", "rna.csv", "proteins.csv", "-k", 3)
    succeed(*shlex.split(message.splitlines()[-1])[1:])


def test_a_problem_that_no_option_cures_is_in_the_list_with_what_to_do():
    _, proteins, _ = tables()
    proteins.iloc[0, 0] = np.inf
    proteins.rename({PATIENTS[1]: PATIENTS[0]}).to_csv("proteins.csv", index_label="id")
    clinic = pd.read_csv("clinic.csv")
    clinic.loc[5, "age"] = np.inf
    clinic.to_csv("clinic.csv", index=False)
    message = stop("cluster", *FILES, "-k", 3)
    assert "replace infinity in the file" in message
    assert "give every row an id of its own" in message
    assert "What options can do is done by:" in message


def test_a_table_of_one_problem_keeps_its_own_message():
    proteins = load("proteins.csv").views["proteins"]
    with pytest.raises(InputError, match="impute='median'") as caught:
        AgreementKKM(3).fit(proteins)
    assert "\n" not in str(caught.value)


def messy_visits():
    """Return a clinic's table in which words say that nothing is known."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "patient": PATIENTS,
            "weight": (60 + 9 * (Y == 1) + rng.normal(size=N)).round(4).astype(str),
            "height": rng.normal(170, 9, size=N),
            "stage": rng.choice(["I", "II"], size=N),
            "OS_MONTHS": rng.exponential(30, size=N),
            "OS_STATUS": rng.choice(["0:LIVING", "1:DECEASED"], size=N),
        }
    )
    frame.loc[4:9, "stage"] = "[Not Available]"
    return frame


def test_words_for_what_is_not_known_are_named_with_the_option_that_empties_them():
    tables()[1].reindex(PATIENTS).fillna(0).to_csv("proteins.csv", index_label="sample")
    frame = messy_visits()
    frame.to_csv("visits.csv", index=False)
    inspected = succeed("inspect", "proteins.csv", "visits.csv")
    advice = [line for line in inspected.stdout.splitlines() if "advice: " in line]
    cells, survival, empty = advice
    assert "the cells '[Not Available]' in 1 column ('stage')" in cells
    assert "'OS_MONTHS' and 'OS_STATUS' of survival" in survival
    assert "--annotate visits.csv" in survival
    assert "('stage': 6)" in empty
    command = inspected.stdout.splitlines()[-1]
    assert "--missing 'visits.csv=[Not Available]' --annotate visits.csv" in command
    said = succeed(*shlex.split(command)[1:])
    assert re.search("OS_MONTHS, OS_STATUS +log-rank", said.stdout)
    assert "Not Available" not in said.stderr

    plain = succeed("cluster", "proteins.csv", "visits.csv", "-k", 3)
    assert "--missing 'visits.csv=[Not Available]'" in plain.stderr
    assert "--annotate visits.csv" in plain.stderr
    assert "annotate to" not in plain.stderr

    frame.loc[20:80, "weight"] = "NA?"
    frame.to_csv("visits.csv", index=False)
    message = stop("cluster", "proteins.csv", "visits.csv", "-k", 3)
    assert "'NA?' and '[Not Available]' in 2 columns" in message
    succeed(*shlex.split(message.splitlines()[-1])[1:])


def test_words_for_what_is_not_known_are_named_in_the_file_of_variables_too():
    tables()[1].reindex(PATIENTS).fillna(0).to_csv("proteins.csv", index_label="sample")
    messy_visits().to_csv("visits.csv", index=False)
    command = ("cluster", "proteins.csv", "-k", 3, "--annotate", "visits.csv")
    missing = "visits.csv=[Not Available]"
    assert f"--missing '{missing}'" in succeed(*command).stderr
    result = succeed(*command, "--missing", missing)
    assert "Not Available" not in result.stderr
    with open("run.json", encoding="utf-8") as file:
        tests = json.load(file)["annotation"]["tests"]
    assert {each["variable"]: each["n_missing"] for each in tests}["stage"] == 6


def test_a_table_of_survival_alone_belongs_to_another_option():
    Path("more").mkdir()
    survival = messy_visits()[["patient", "OS_MONTHS", "OS_STATUS"]]
    survival.to_csv("more/os.csv", index=False)
    proteins = tables()[1].reindex(PATIENTS).fillna(0)
    proteins.to_csv("proteins.csv", index_label="sample")
    proteins[::-1].add_suffix("_b").to_csv("others.csv", index_label="sample")
    files = ("proteins.csv", "more/os.csv", "others.csv")
    assert "os.csv: has only columns of survival" in stop("cluster", *files, "-k", 3)

    report = json.loads(invoke("inspect", *files, "--json").stdout)
    words = shlex.split(report["command"])
    assert words[:4] == ["mkclust", "cluster", "proteins.csv", "others.csv"]
    assert words[words.index("--annotate") + 1] == "more/os.csv"
    succeed(*words[1:])


def test_python_is_told_of_words_for_what_is_not_known():
    frame = messy_visits().set_index("patient").drop(columns=["OS_MONTHS", "OS_STATUS"])
    frame["weight"] = frame["weight"].astype(float)
    with pytest.warns(UnknownCellsWarning, match=r"'stage'.*\[Not Available\]"):
        AgreementKKM(3, random_state=0).fit(frame)
    frame["weight"] = frame["weight"].astype(str).where(frame.index < PATIENTS[40], "?")
    with pytest.raises(InputError, match=r"missing=\['\?', '\[Not Available\]'\]"):
        AgreementKKM(3).fit(frame)
