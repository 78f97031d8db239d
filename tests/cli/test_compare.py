import json

import numpy as np
import pytest

pytest.importorskip("typer")

import mkclust
from command_line import fail, succeed, three_clusters
from mkclust import metrics
from mkclust.cli import compare

pytestmark = pytest.mark.slow

FAST = ("--resamples", 2)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Run every test in a folder of its own, with two views and their clusters in a file."""
    monkeypatch.chdir(tmp_path)
    views, y = three_clusters()
    np.savez("d.npz", **views, y=y)


def test_all_methods_are_compared_with_the_labels_of_their_estimators():
    record = json.loads(succeed("compare", "d.npz", "-k", 3, "--resamples", 0, "--json").stdout)
    assert list(record["methods"]) == list(mkclust.METHODS)
    assert record["left_out"] == {}
    assert "Agreement is not truth" in record["caution"]
    views, y = three_clusters()
    models = {
        name: mkclust.METHODS[name](3, random_state=0).fit(views) for name in ("lkam", "avg-kkm")
    }
    matrix, names = np.array(record["adjusted_rand_index"]), list(mkclust.METHODS)
    np.testing.assert_array_equal(np.diag(matrix), 1)
    np.testing.assert_array_equal(matrix, matrix.T)
    index = metrics.adjusted_rand_index(models["lkam"].labels_, models["avg-kkm"].labels_)
    assert matrix[names.index("lkam"), names.index("avg-kkm")] == pytest.approx(index)
    scores = record["methods"]["lkam"]["scores"]
    assert scores == pytest.approx(metrics.scores(y, models["lkam"].labels_))
    assert record["methods"]["simplemkkm"]["gap"] < 1e-4
    assert record["methods"]["avg-kkm"]["gap"] is None


def test_the_methods_named_are_compared_in_a_table_that_warns_of_itself():
    names = "avg-kkm, agreement-kkm"
    output = succeed("compare", "d.npz", "-k", 3, "--methods", names, *FAST).stdout
    lines = output.splitlines()
    assert lines[0].split() == ["method", "stability", "gap", "seconds", "ARI", "(%)"]
    assert [line.split()[1] for line in lines[1:3]] == ["avg-kkm", "agreement-kkm"]
    assert lines[-1].startswith("Agreement is not truth")


def test_views_that_a_method_sets_aside_are_named():
    views, _ = three_clusters()
    views["dice"] = np.random.default_rng(1).normal(size=(45, 5))
    np.savez("noisy.npz", **views)
    args = ("compare", "noisy.npz", "-k", 3, "--methods", "agreement-kkm,avg-kkm")
    assert "agreement-kkm sets aside: dice." in succeed(*args, *FAST).stdout


def test_methods_that_would_take_long_are_left_out_by_name_and_run_where_named(monkeypatch):
    monkeypatch.setattr(compare, "MOST_ENTRIES", 2 * 45**2)
    args = ("compare", "d.npz", "-k", 3, "--resamples", 0, "--json")
    record = json.loads(succeed(*args).stdout)
    slow = {name for name, method in mkclust.METHODS.items() if method.SLOWNESS > 1}
    assert set(record["left_out"]) == slow
    assert "--methods lkam runs it" in record["left_out"]["lkam"]
    record = json.loads(succeed(*args, "--methods", "lkam").stdout)
    assert list(record["methods"]) == ["lkam"]


def test_the_kernels_that_are_asked_for_tell_how_long_a_method_takes(monkeypatch):
    monkeypatch.setattr(compare, "MOST_ENTRIES", 45**2)
    np.save("one.npy", three_clusters()[0]["left"])
    args = ("compare", "one.npy", "-k", 3, "--resamples", 0, "--json")
    record = json.loads(succeed(*args, "--kernels", "cosine").stdout)
    assert "mkkm" in record["methods"]
    assert "no method gave clusters" in fail(*args)


def test_a_method_that_cannot_take_the_options_is_left_out_with_the_reason():
    args = ("compare", "d.npz", "-k", 3, "--resamples", 0, "--approximation", "nystroem")
    args = (*args, "--landmarks", 20, "--methods", "lkam,avg-kkm")
    assert "Left out: lkam: --approximation nystroem: lkam needs" in succeed(*args).stdout
    assert "no method gave clusters; lkam" in fail(*args[:-1], "lkam")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["-k", 3, "--methods", "lkan"], "did you mean --methods lkam?"),
        (["-k", 3, "--methods", ","], "names no method"),
        (["-k", "auto"], "-k N"),
        (["-k", 90], "90"),
        ([], "-k"),
    ],
)
def test_a_comparison_that_cannot_be_is_refused(args, words):
    assert words in fail("compare", "d.npz", *args)
