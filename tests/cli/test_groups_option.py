"""``--groups COLUMN``: samples that belong together, in a column that is not
clustered."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers.cli import fail, succeed

IDS = [f"s{i:03d}" for i in range(150)]


@pytest.fixture(autouse=True)
def families(folder):
    """Write two tables of common clusters, and one that shares only the families with
    them."""
    rng = np.random.default_rng(0)
    families = rng.permutation(np.repeat(np.arange(30), 5))
    y = rng.integers(3, size=150)
    names = pd.Series([f"F{i}" for i in families], IDS, name="family")
    for name in "abc":
        effects = 2 * rng.normal(size=(30, 6))[families]
        places = 2.5 * rng.normal(size=(3, 6))[y] * (name != "c")
        noise = rng.normal(size=(150, 6)) * (0.4 if name == "c" else 1)
        frame = pd.DataFrame(places + effects + noise, IDS).add_prefix(name)
        if name != "b":
            frame["family"] = names
        frame.to_csv(f"{name}.csv", index_label="id")
        frame.drop(columns="family", errors="ignore").to_csv(
            f"{name}{name}.csv", index_label="id"
        )
    clinic = pd.DataFrame({"age": rng.normal(size=150), "family": names}, IDS)
    clinic.to_csv("clinic.csv", index_label="id")
    return names


def test_a_table_that_shares_only_the_families_is_not_used():
    text = succeed(
        "cluster", "a.csv", "b.csv", "c.csv", "-k", 3, "--groups", "family"
    ).stdout
    assert "Groups: 30 groups in the column family, 5 samples each." in text
    assert "Used: a and b, which agree" in text
    assert "Not used: c: no clear agreement" in text
    labels = pd.read_csv("labels.csv")["cluster"]
    record = json.loads(Path("run.json").read_text())
    assert record["command"]["options"]["groups"] == "family"

    # The column is not clustered, in any of the tables.
    succeed("cluster", "aa.csv", "bb.csv", "-k", 3)
    assert pd.read_csv("labels.csv")["cluster"].equals(labels)
    ignored = succeed("cluster", "aa.csv", "bb.csv", "cc.csv", "-k", 3).stdout
    assert "Not used" not in ignored


@pytest.mark.slow
def test_a_run_with_groups_is_repeated_and_predicts():
    succeed(
        "cluster", "a.csv", "b.csv", "-k", 3, "--groups", "family", "--save", "m.skops"
    )
    assert "Same labels" in succeed("rerun", "run.json").stdout
    labels = pd.read_csv("labels.csv")["cluster"]
    # With the column, and without.
    for files in (("a.csv", "b.csv"), ("aa.csv", "bb.csv")):
        succeed("predict", "m.skops", *files)
        assert pd.read_csv("predicted.csv")["cluster"].equals(labels)


def test_groups_of_the_variables_are_those_of_the_permutations():
    annotated = ("--annotate", "clinic.csv", "--groups", "family")
    text = succeed("cluster", "aa.csv", "bb.csv", "-k", 3, *annotated).stdout
    assert "Groups: 30 groups in the column family" in text
    assert "Permutations respect 30 groups of samples." in text


@pytest.mark.slow
@pytest.mark.parametrize("command", ["inspect", "diagnose", "suggest"])
def test_other_commands_leave_the_column_out(command):
    options = {
        "diagnose": ("-k", 3, "--no-leave-one-out"),
        "suggest": ("--from", 2, "--to", 4),
    }
    given = (*options.get(command, ()), "--groups", "family")
    text = succeed(command, "a.csv", "b.csv", *given).stdout
    said = {"inspect": "Groups: 30 groups", "diagnose": "within and between 30 groups"}
    assert said.get(command, "clusters fit best") in text


def test_groups_that_are_not_there_or_contradict_each_other_are_refused(families):
    near = fail("cluster", "a.csv", "b.csv", "-k", 3, "--groups", "famly")
    assert "--groups famly: no table has such a column" in near
    assert "'family'" in near

    wrong = pd.read_csv("c.csv")
    wrong.loc[7, "family"] = "another"
    wrong.to_csv("wrong.csv", index=False)
    found = fail("cluster", "a.csv", "wrong.csv", "-k", 3, "--groups", "family")
    assert f"give s007 the groups {families['s007']} and another" in found

    families.to_csv("only.csv", index_label="id")
    assert "has no column but the groups" in fail(
        "cluster", "a.csv", "b.csv", "only.csv", "-k", 3, "--groups", "family"
    )
