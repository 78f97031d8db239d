"""Somebody with three CSV files and a file of kernels, and nothing to read but the
README and the first page of the site."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.io

from helpers.cli import fail, invoke, succeed
from helpers.docs import blocks, commands
from mkclust import AgreementKKM, load_model
from mkclust.datasets import load

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")
pytest.importorskip("skops")

N, NEW = 90, 30
INSPECT, SUGGEST, CLUSTER = commands("README.md")
ANNOTATE, PREDICT, KERNELS = commands("docs/index.md")


def write_tables(folder):
    """Write tables of patients: different orders of rows, a category, an empty cell,
    and noise."""
    rng = np.random.default_rng(0)
    n = N + NEW
    ids, group = [f"P{i:03}" for i in range(n)], np.arange(n) % 3
    smokes = rng.random(n) < np.array([0.9, 0.1, 0.1])[group]
    tables = {
        "blood": {
            "glucose": 5 + 2 * (group == 0) + rng.normal(size=n) / 2,
            "iron": 12 - 4 * (group == 1) + rng.normal(size=n),
        },
        "visit": {
            "age": 40 + 15 * (group == 0) + 5 * rng.normal(size=n),
            "weight": 60 + 15 * (group == 2) + 4 * rng.normal(size=n),
            "smoker": np.where(smokes, "yes", "no"),
        },
        "survey": {f"question {i}": rng.normal(size=n) for i in range(5)},
    }
    (folder / "new").mkdir()
    for seed, (name, columns) in enumerate(tables.items()):
        frame = pd.DataFrame({"patient": ids, **columns})
        if name == "visit":
            frame.loc[7, "age"] = np.nan
        for part, path in ((frame[:N], f"{name}.csv"), (frame[N:], f"new/{name}.csv")):
            part.sample(frac=1, random_state=seed).to_csv(folder / path, index=False)


def write_kernels(folder):
    """Write kernels of ten clusters: as one array in MATLAB's order, and as a cell
    array."""
    rng, y = np.random.default_rng(0), np.repeat(np.arange(10), 9)
    views = [
        4 * rng.normal(size=(10, 8))[y] + rng.normal(size=(len(y), 8)) for _ in range(3)
    ]
    cells = np.empty((1, 3), object)
    cells[0, :] = [None] * 3
    for place, X in enumerate(views):
        cells[0, place] = X @ X.T
    KH = np.stack(list(cells[0]), axis=2)
    scipy.io.savemat(folder / "kernels.mat", {"KH": KH, "Y": y[:, None] + 1})
    scipy.io.savemat(folder / "cells.mat", {"KH": cells, "Y": y[:, None] + 1})


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    """Return the folder of the files, and what its owner reads after each command."""
    folder = tmp_path_factory.mktemp("walk")
    write_tables(folder)
    write_kernels(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        # The owner has one more table, and does what the first refusal says.
        seen = SimpleNamespace(folder=folder)
        inspected = invoke(*INSPECT, "survey.csv")
        assert inspected.exit_code == 1
        assert "--impute median" in inspected.stdout
        seen.refused = fail(*CLUSTER, "survey.csv")
        seen.clustered = succeed(*CLUSTER, "survey.csv", "--impute", "median").stdout
        seen.predicted = succeed(*PREDICT).stdout
        yield seen


@pytest.fixture(autouse=True)
def inside(walk, monkeypatch):
    monkeypatch.chdir(walk.folder)


def tables(folder="", names=("blood", "visit", "survey")):
    """Return the tables as they are read in Python."""
    return {
        name: load(f"{folder}{name}.csv", id="patient").views[name] for name in names
    }


@pytest.mark.slow
def test_the_number_of_clusters_is_suggested(walk):
    assert (
        "3 clusters fit best"
        in succeed(*SUGGEST, "--impute", "median", "--to", 6).stdout
    )


@pytest.mark.slow
def test_outcomes_are_tested_with_survival_curves(walk):
    rng, group = np.random.default_rng(1), np.arange(N) % 3
    ids = pd.Index([f"P{i:03}" for i in range(N)], name="patient")
    genes = 3 * rng.normal(size=(3, 30))[group] + rng.normal(size=(N, 30))
    frame = pd.DataFrame(genes, ids, [f"gene {i}" for i in range(30)])
    frame.iloc[5, 3] = -9999
    frame[:-4].to_csv("rna.tsv", sep="\t")
    months = rng.exponential(10 + 40 * group)
    months[9] = -9999  # which the command says is empty
    status = np.where(rng.random(N) < 0.8, "1:DECEASED", "0:LIVING")
    outcome = pd.DataFrame(
        {"OS_MONTHS": months, "OS_STATUS": status, "site": ids.str[-1]}, ids
    )
    outcome.to_csv("outcome.csv")
    options = ["--labels", "annotated.csv", "--run", "annotated.json"]
    said = succeed(
        *[w.replace("fit.html", "outcome.html") for w in ANNOTATE], *options
    ).stdout
    assert "log-rank" in said
    assert "OS_MONTHS" in (walk.folder / "outcome.html").read_text()


def test_the_table_of_noise_is_named_first_and_the_clusters_are_described_by_columns(
    walk,
):
    assert "--impute median" in walk.refused
    unused = walk.clustered.index("Not used: survey")
    assert unused < walk.clustered.index("Clusters by what")
    for words in ("high glucose", "smoker=yes", "low iron", "high weight"):
        assert words in walk.clustered
    for name in ("labels.csv", "run.json", "fit.html", "model.skops"):
        assert f"Wrote {name}\n" in walk.clustered
        assert (walk.folder / name).stat().st_size > 0


def test_the_command_and_python_give_every_patient_the_same_cluster():
    model = AgreementKKM(n_clusters=3, impute="median", random_state=0).fit(tables())
    written = pd.read_csv("labels.csv", index_col="id")["cluster"]
    assert written.to_dict() == dict(zip(model.sample_ids_, model.labels_, strict=True))
    group = written.index.str[1:].astype(int) % 3
    assert pd.crosstab(group, written).max(axis=1).sum() >= 0.95 * N


def test_the_guide_to_tables_reads_the_files_of_the_command_in_python():
    (example,) = (
        code for code in blocks("docs/guides/tables.md", "python") if ">>>" not in code
    )
    exec(example, names := {})
    for name, table in names["tables"].items():
        pd.testing.assert_frame_equal(table, tables()[name])


def test_new_patients_need_no_unused_table_and_have_the_clusters_of_the_model_in_python(
    walk,
):
    assert "30 new samples, 3 clusters" in walk.predicted
    written = pd.read_csv("predicted.csv", index_col="id")["cluster"]
    model = load_model("model.skops")
    new = tables("new/", ("blood", "visit"))
    assert written.to_dict() == dict(
        zip(new["blood"].index, model.predict(new), strict=True)
    )
    np.testing.assert_array_equal(model.predict(tables("new/")), model.predict(new))


@pytest.mark.parametrize("file", ["kernels.mat", "cells.mat"])
def test_kernels_of_a_mat_file_are_clustered_and_scored(file, walk):
    command = [word.replace("kernels.mat", file) for word in KERNELS]
    assert "All 3 views agree" in succeed(*command, "--labels", f"{file}.csv").stdout
    assert (
        json.loads((walk.folder / f"{file}.run.json").read_text())["scores"]["acc"]
        == 1.0
    )
    kernels = load(file, kernels=True).kernels
    model = AgreementKKM(n_clusters=10, kernels="precomputed", random_state=0).fit(
        kernels
    )
    np.testing.assert_array_equal(pd.read_csv(f"{file}.csv")["cluster"], model.labels_)


def test_the_page_on_matlab_has_commands_that_run():
    for number, command in enumerate(commands("docs/coming_from_matlab.md")):
        assert (
            "3 clusters" in succeed(*command, "--labels", f"matlab{number}.csv").stdout
        )
