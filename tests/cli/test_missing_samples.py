"""Files of which some lack samples, on the command line."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from mkclust.cli import app
from mkclust.cli.inputs import joined_views, read_all, read_inputs
from mkclust.cli.table_request import TableRequest

N = 40


def invoke(*arguments):
    """Run a command, and return what came of it."""
    return CliRunner().invoke(app, [str(each) for each in arguments])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Two files of the same samples, of which each lacks some."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    ids = [f"p{i:02}" for i in range(N)]
    places = 6 * np.eye(3)[np.arange(N) % 3]
    mrna = pd.DataFrame(places + rng.normal(size=(N, 3)), ids, columns=list("abc"))
    mirna = pd.DataFrame(places @ rng.normal(size=(3, 4)), ids, columns=list("defg"))
    mrna.iloc[5:].to_csv("mrna.csv", index_label="patient")
    mirna.iloc[:-8].to_csv("mirna.tsv", sep="\t", index_label="patient")


def read(*inputs, **options):
    """Return the samples of files."""
    tables = TableRequest.of(None, None, None, options.get("join", "exact"), options.get("impute"))
    return joined_views(read_all(inputs, tables=tables)[1], tables)[0]


def test_files_are_joined_by_all_ids():
    samples = read("mrna.csv", "mirna.tsv", join="outer", impute="median")
    assert samples.n_samples == N
    assert samples.missing.sum(axis=0).tolist() == [5, 8]
    assert samples.ids[0] == "p05"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--join", "outter"], "did you mean --join outer?"),
        (["--impute", "medain"], "did you mean --impute median?"),
    ],
)
def test_near_misses_are_named(options, words):
    result = invoke("inspect", "mrna.csv", "mirna.tsv", *options)
    assert result.exit_code == 2
    assert words in result.stderr


def test_inspect_counts_the_samples_that_files_lack():
    plain = invoke("inspect", "mrna.csv", "mirna.tsv").stdout
    assert "27 of 40 samples are in all files; --join inner keeps these, --join outer all." in plain
    assert "or --join outer to keep all samples" in plain
    result = invoke("inspect", "mrna.csv", "mirna.tsv", "--join", "outer")
    assert result.exit_code == 0, result.stderr
    assert "problem" not in result.stdout
    assert "27 of 40 samples are in all files; all are kept." in result.stdout
    for words in (
        "  lacks 5 samples",
        "  lacks 8 samples",
        "3 patterns of missing views: 27 samples in all views, 8 samples without mirna and "
        "5 samples without mrna.",
    ):
        assert words in result.stdout
    report = json.loads(
        invoke("inspect", "mrna.csv", "mirna.tsv", "--join", "outer", "--json").stdout
    )
    assert [view["lacks"] for view in report["views"]] == [5, 8]
    assert report["patterns"][1] == {"lacks": ["mirna"], "samples": 8}


def test_inspect_counts_empty_rows():
    table = pd.read_csv("mirna.tsv", sep="\t", index_col=0)
    table.iloc[12] = np.nan
    table.to_csv("mirna.tsv", sep="\t", index_label="patient")
    result = invoke("inspect", "mrna.csv", "mirna.tsv", "--join", "inner")
    assert "  lacks 1 sample" in result.stdout
    assert "2 patterns of missing views: 26 samples in all views" in result.stdout
    table.iloc[12, 0] = 1.0
    table.to_csv("mirna.tsv", sep="\t", index_label="patient")
    assert "lacks" not in invoke("inspect", "mrna.csv", "mirna.tsv", "--join", "inner").stdout


def test_near_spellings_are_warned_of():
    table = pd.read_csv("mirna.tsv", sep="\t", index_col=0)
    table.rename(index={"p09": "P09"}).to_csv("mirna.tsv", sep="\t", index_label="patient")
    result = invoke("inspect", "mrna.csv", "mirna.tsv", "--join", "outer")
    assert "'p09' and 'P09'" in result.stdout


def test_a_sample_in_no_file_is_named():
    table = pd.read_csv("mrna.csv", index_col=0)
    table.loc["p39"] = np.nan
    table.to_csv("mrna.csv", index_label="patient")
    result = invoke("inspect", "mrna.csv", "mirna.tsv", "--join", "outer")
    assert "problem: 1 sample is missing from every view: 'p39'" in result.stdout


def test_what_each_file_lacks_is_said_before_clustering():
    tables = TableRequest.of(None, None, None, "outer", None)
    data = read_inputs(["mrna.csv", "mirna.tsv"], precomputed=False, tables=tables)
    assert data.contributions[-2:] == (
        "Joined by id: 40 samples, 27 of which are in all files.",
        "Missing samples: mrna lacks 5, mirna 8.",
    )


def test_distances_that_lack_samples_are_told_as_distances():
    values = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    values[2], values[:, 2] = np.nan, np.nan
    ids = [f"p{i:02}" for i in range(5)]
    pd.DataFrame(values, ids, ids).to_csv("d.csv", index_label="patient")
    result = invoke("inspect", "d.csv", "mrna.csv")
    assert "d.csv: holds the distances of 5 samples" in result.stdout
