"""Files become views of the same samples, and mistakes that would pass silently are
refused."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import mkclust
from helpers.cli import fail, invoke, stop, succeed
from mkclust.datasets import load

N = 60
Y = np.repeat([0, 1, 2], [25, 20, 15])
Recommended = mkclust.METHODS[mkclust.RECOMMENDED]


@pytest.fixture(autouse=True)
def files(folder):
    """Write two tables of the same samples."""
    left, right = tables()
    left.to_csv("mrna.csv", index_label="patient")
    right.sample(frac=1, random_state=1).to_csv(
        "mirna.tsv", sep="\t", index_label="patient"
    )


def tables():
    rng = np.random.default_rng(0)
    X = 4 * rng.normal(size=(3, 7))[Y] + rng.normal(size=(N, 7))
    ids = [f"p{i:02d}" for i in range(N)]
    left = pd.DataFrame(X[:, :3], index=ids, columns=["a", "b", "c"])
    return left, pd.DataFrame(X[:, 3:], index=ids, columns=["d", "e", "f", "g"])


def distances(frame):
    values = frame.to_numpy()
    D = np.sqrt(np.square(values[:, None] - values).sum(axis=2))
    return pd.DataFrame(D, index=frame.index, columns=frame.index)


def cluster(*args):
    return succeed("cluster", *args, "-k", 3)


def refuse(*args):
    return fail("cluster", *args, "-k", 3)


def labels():
    return pd.read_csv("labels.csv", index_col="id")["cluster"]


def recovered():
    """Return how far the clusters are those that the tables were made of, by id."""
    y = pd.Series(Y, index=tables()[0].index)
    return adjusted_rand_score(y.loc[labels().index], labels())


def typed(message):
    """Return the options that a message says to pass."""
    return re.search(r"pass (--[\w-]+ \S+)", message).group(1).rstrip(",;").split()


def test_tables_in_different_orders_are_joined_by_id_and_the_join_is_printed():
    result = cluster("mrna.csv", "mirna.tsv")
    assert "mrna (mrna.csv): 60 samples x 3 columns, ids such as 'p00'" in result.stdout
    assert "Joined by id: all 60 samples." in result.stdout
    shuffled = labels()
    tables()[1].to_csv("mirna.tsv", sep="\t", index_label="patient")
    cluster("mrna.csv", "mirna.tsv")
    assert labels().equals(shuffled)


def test_labels_of_files_in_another_order_are_scored_by_id():
    right = tables()[1].assign(y=Y).sample(frac=1, random_state=2)
    right.to_csv("mirna.tsv", sep="\t", index_label="id")
    assert re.search(r"AgreementKKM +100\.0", cluster("mrna.csv", "mirna.tsv").stdout)


def test_the_column_of_ids_is_named_for_all_files_or_for_one():
    left = tables()[0].rename_axis("patient").reset_index()
    left.insert(0, "sample", [1, 2] * 30)
    left.to_csv("mrna.csv", index=False)
    assert "sample" in refuse("mrna.csv", "mirna.tsv")
    cluster("mrna.csv", "mirna.tsv", "--id", "patient", "--drop", "sample")
    left.drop(columns="sample").rename(columns={"patient": "code"}).to_csv(
        "mrna.csv", index=False
    )
    assert "no column patient" in refuse("mrna.csv", "mirna.tsv", "--id", "patient")
    cluster("mrna.csv", "mirna.tsv", "--id", "patient", "--id", "mrna.csv=code")
    assert recovered() > 0.9


def test_a_file_without_ids_beside_ids_is_said_to_be_paired_by_row():
    np.save("mirna.npy", tables()[1].to_numpy())
    result = cluster("mirna.npy", "mrna.csv")
    assert "warning: mirna.npy has no ids" in result.stderr
    assert "paired by row" in result.stdout
    assert recovered() > 0.9


def test_a_table_without_ids_is_refused_beside_one_with_ids_with_the_option():
    left = tables()[0].sample(frac=1, random_state=2)
    left.assign(code=left.index).to_csv("mrna.csv", index=False)
    message = refuse("mrna.csv", "mirna.tsv")
    assert "mrna.csv: has no ids" in message
    assert "--id mrna.csv=code" in message
    cluster("mrna.csv", "mirna.tsv", "--id", "mrna.csv=code")
    assert recovered() > 0.9


def test_several_files_are_joined_in_order_and_clashing_names_tell_their_file():
    left, right = (frame.to_numpy() for frame in tables())
    np.savez("one.npz", X=left, only=right)
    np.savez("two.npz", X=right)
    cluster("one.npz", "two.npz")
    assert json.loads(Path("run.json").read_text())["kernel_names"] == [
        "one/X",
        "only",
        "two/X",
    ]


def test_views_and_kernels_are_not_joined():
    np.savez("V.npz", X=tables()[0].to_numpy())
    np.save("K.npy", np.exp(-(distances(tables()[0]).to_numpy()[None] ** 2)))
    assert "K.npy holds kernels but V.npz holds views" in refuse("V.npz", "K.npy")


def test_a_transposed_file_is_turned_if_its_header_has_the_ids_of_another():
    cluster("mrna.csv", "mirna.tsv")
    expected = labels()
    tables()[1].T.to_csv("mirna.tsv", sep="\t")
    result = cluster("mrna.csv", "mirna.tsv")
    assert "mirna.tsv: its columns are the samples" in result.stdout
    assert labels().equals(expected)
    inputs = json.loads(Path("run.json").read_text())["inputs"]
    assert [each["layout"]["samples_in"] for each in inputs] == ["rows", "columns"]


def test_a_transposed_file_without_ids_is_refused_with_the_option_that_turns_it():
    left, right = tables()
    left.to_csv("mrna.csv", index=False)
    right.T.to_csv("mirna.tsv", sep="\t", index=False)
    message = stop("cluster", "mrna.csv", "mirna.tsv", "-k", 3)
    assert typed(message) == ["--samples-in", "mirna.tsv=columns"]
    assert "mrna.csv: has no ids" in message


def test_distances_are_not_taken_for_a_table():
    distances(tables()[0]).sample(frac=1, random_state=0).to_csv(
        "d.csv", index_label="patient"
    )
    assert typed(refuse("d.csv")) == ["--kernels", "from_distances"]
    assert typed(refuse("d.csv", "mirna.tsv")) == ["--kernels", "d=from_distances"]
    cluster("d.csv", "mirna.tsv", "--kernels", "d=from_distances")
    assert recovered() > 0.9


def test_a_kernel_is_not_taken_for_a_table():
    K = np.exp(-(distances(tables()[0]) ** 2) / 20)
    K.to_csv("k.csv", index_label="patient")
    np.savez("K.npz", a=K.to_numpy(), b=K.to_numpy() ** 2)
    for args, name in (
        (["k.csv"], ""),
        (["mirna.tsv", "k.csv"], "k="),
        (["K.npz"], "a="),
    ):
        message = stop("cluster", *args, "-k", 3)
        assert f"--kernels {name}precomputed" in message
    cluster("mirna.tsv", "k.csv", "--kernels", "k=precomputed")
    assert recovered() > 0.9


def test_files_with_some_common_ids_are_inspected_and_joined_if_asked():
    left, right = tables()
    left.iloc[5:].to_csv("mrna.csv", index_label="patient")
    right.iloc[:-8].to_csv("mirna.tsv", sep="\t", index_label="patient")
    found = invoke("inspect", "mrna.csv", "mirna.tsv")
    assert found.exit_code == 1
    assert "mrna\n  55 x 3, ids such as 'p05'" in found.stdout
    assert "--join outer" in found.stdout.partition("problem: ")[2]
    assert "--join inner" in refuse("mrna.csv", "mirna.tsv")
    result = cluster("mrna.csv", "mirna.tsv", "--join", "inner")
    assert "Joined by id: 47 of 60 samples; 47 are in all tables." in result.stdout
    assert len(labels()) == 47
    files = ("mrna.csv", "mirna.tsv", "--join", "outer")
    report = json.loads(succeed("inspect", *files, "--json").stdout)
    assert report["patterns"][1] == {"lacks": ["mirna"], "samples": 8}


def test_samples_that_a_join_drops_for_the_spelling_of_their_ids_are_told():
    left, right = tables()
    left.to_csv("mrna.csv", index_label="patient")
    right.rename({"p03": "P03", "p04": "p 04"}).to_csv(
        "mirna.tsv", sep="\t", index_label="patient"
    )
    result = cluster("mrna.csv", "mirna.tsv", "--join", "inner")
    assert "Joined by id: 58 of 62 samples; 58 are in all tables." in result.stdout
    assert (
        "'p03' and 'P03' differ in spelling only, as do 1 further pair" in result.stderr
    )


def test_components_are_inspected_as_they_are_fitted():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2100, 6)) * np.geomspace(5, 1, 6)
    U, sizes, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    np.savez("d.npz", pca=U * sizes, blood=rows)
    pca, blood = (
        view["kernels"][0]
        for view in json.loads(succeed("inspect", "d.npz", "--json").stdout)["views"]
    )
    assert "as those of principal components); rows as they are" in pca
    assert "columns divided by their spread" in blood


def test_inspect_says_which_kernel_a_fit_would_refuse():
    X = np.random.default_rng(0).normal(size=(3, N, 5))
    kernels = X @ X.transpose(0, 2, 1)
    np.savez("k.npz", K=kernels, y=Y)
    said = succeed("inspect", "k.npz").stdout
    assert "y holds the true classes (3), which are used for scores only." in said

    kernels[1, 3, 7] = kernels[1, 7, 3] = np.nan
    np.savez("k.npz", K=kernels, y=Y)
    result = invoke("inspect", "k.npz", "--json")
    assert result.exit_code == 1
    (problem,) = json.loads(result.stdout)["problems"]
    assert "kernel 1 ('K_2') contains NaN or infinity: 2 entries" in problem
    assert "row 3, column 7" in problem
    assert problem in " ".join(fail("cluster", "k.npz", "-k", 3).split())


FORMULAS = ["=1+1", "+49 30", "-A1", "@SUM(A1)", "=HYPERLINK(A1)"]


def test_ids_that_a_spreadsheet_would_run_are_marked_and_read_again():
    left, right = tables()
    names = [*FORMULAS, *left.index[5:]]
    left.set_axis(names).to_csv("mrna.csv", index_label="patient")
    right.set_axis(names).to_csv("mirna.tsv", sep="\t", index_label="patient")
    cluster("mrna.csv", "mirna.tsv", "--save", "model.skops")
    table = pd.read_csv("labels.csv", dtype=str)
    assert table["id"].tolist() == [f"'{name}" for name in FORMULAS] + names[5:]
    assert load("labels.csv").views["labels"].index.tolist() == names

    # Not exactly the clusters, which would be taken for cuts of a clustered column.
    group = ("group " + table["cluster"]).where(table.index % 3 > 0, "others")
    known = table[["id"]].assign(group=group).sample(frac=1, random_state=0)
    known.to_csv("known.csv", index=False)
    result = cluster("mrna.csv", "mirna.tsv", "--annotate", "known.csv")
    assert re.search(r"^group +chi-square +60 +0 +", result.stdout, re.MULTILINE)

    succeed("predict", "model.skops", "mrna.csv", "mirna.tsv")
    found = pd.read_csv("predicted.csv", dtype=str)
    assert found[["id", "cluster"]].equals(table[["id", "cluster"]])


@pytest.mark.parametrize("sign", ["\x1b[2J", "\x07", "\x9b31m"])
def test_ids_with_control_characters_are_refused_by_file(sign):
    left, _ = tables()
    left.rename(index={"p03": f"p{sign}03"}).to_csv("mrna.csv", index_label="patient")
    message = refuse("mrna.csv", "mirna.tsv")
    assert "mrna.csv: 1 id with control characters, 'p\\x" in message
    assert message[:-1].isprintable()


EVIL = "\x1b[2J\x9b31m\u202eleft\n=1+1"


def test_names_from_a_file_cannot_steer_the_terminal_and_are_recorded_as_they_are():
    left, right = (frame.to_numpy() for frame in tables())
    np.savez("d.npz", **{EVIL: left, "right": right})
    result = cluster("d.npz")
    for text in (result.stdout, Path("run.json").read_text()):
        assert all(character.isprintable() or character == "\n" for character in text)
    assert json.loads(Path("run.json").read_text())["kernel_names"] == [EVIL, "right"]
    np.savez("d.npz", **{EVIL: np.full_like(left, np.nan), "right": right})
    assert invoke("cluster", "d.npz", "-k", 3).stderr[:-1].isprintable()
