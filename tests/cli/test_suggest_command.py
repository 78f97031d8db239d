import json

import numpy as np
import pytest

pytest.importorskip("typer")

import mkclust
from command_line import fail, succeed, three_clusters

pytestmark = pytest.mark.slow

RANGE = ("--from", 2, "--to", 4)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Run every test in a folder of its own, with one file of two views in it."""
    monkeypatch.chdir(tmp_path)
    views, y = three_clusters()
    np.savez("d.npz", **views, y=y)
    np.savez(
        "noise.npz",
        **{
            name: np.random.default_rng(len(name)).permutation(view) for name, view in views.items()
        },
    )


def test_suggest_prints_what_the_library_suggests_in_python():
    views, _ = three_clusters()
    suggestion = mkclust.suggest_n_clusters(views, [2, 3, 4])
    result = succeed("suggest", "d.npz", *RANGE)
    assert suggestion.n_clusters == 3
    assert result.stdout == f"{suggestion}\n"
    assert result.stderr == ""


def test_suggest_gives_json_and_mixes_as_a_method_does():
    result = succeed("suggest", "d.npz", "--to", 4, "--json", "--method", "agreement-kkm")
    record = json.loads(result.stdout)
    assert (record["n_clusters"], record["kind"]) == (3, "clusters")
    assert record["k_values"] == [2, 3, 4]
    assert len(record["stabilities"]) == 3
    assert record["candidates"][0] == 3
    assert record["is_unclear"] is False
    assert sum(record["support"]) == pytest.approx(1)


def test_suggest_leads_with_unclear_where_resamples_do_not_agree():
    # Three groups of two clusters each, about as clear as the groups.
    rng, y = np.random.default_rng(0), np.arange(60) % 6
    groups = 4 * rng.normal(size=(3, 6))[np.arange(6) % 3]
    places = (groups + 1.9 * rng.normal(size=(6, 6)))[y]
    views = {name: places + rng.normal(size=(60, 6)) for name in ("left", "right")}
    np.savez("nested.npz", **views)
    suggestion = mkclust.suggest_n_clusters(views, [2, 3, 4, 5, 6, 7])
    result = succeed("suggest", "nested.npz", "--to", 7)
    assert suggestion.is_unclear
    assert result.stdout.startswith(f"Unclear how many clusters: {suggestion.n_clusters} (")
    assert "then" in result.stdout.splitlines()[0]


def test_k_auto_clusters_by_the_suggestion_and_records_why():
    result = succeed("cluster", "d.npz", "-k", "auto")
    with open("run.json") as file:
        record = json.load(file)
    assert record["n_clusters"] == record["suggestion"]["n_clusters"] == 3
    assert record["command"]["options"]["n_clusters"] == "auto"
    assert (
        "-k auto: 3 clusters (moderate: 80% of the resamples say the same). Clusters are"
        in result.stdout
    )
    views, _ = three_clusters()
    model = mkclust.METHODS[mkclust.RECOMMENDED](3, random_state=0).fit(views)
    assert record["cluster_sizes"] == np.bincount(model.labels_).tolist()


def test_k_auto_does_not_cluster_what_has_no_clusters():
    message = fail("cluster", "noise.npz", "-k", "auto")
    assert "-k auto: No evidence" in message
    assert "give -k N" in message


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--from", 5, "--to", 3], "--from 5 --to 3"),
        (["--to", 1], "--to"),
        (["--method", "lf-mv"], "lf-mvc"),
        (["--to", 4, "--method", "lf-mvc"], "does not mix the kernels"),
        (["--to", 60], "60"),
    ],
)
def test_a_suggestion_that_cannot_be_is_refused(args, words):
    assert words in fail("suggest", "d.npz", *args)


def test_diagnose_prints_what_the_library_says_in_python():
    views, _ = three_clusters()
    views["dice"] = np.random.default_rng(1).normal(size=(45, 5))
    np.savez("three.npz", **views)
    model = mkclust.METHODS[mkclust.RECOMMENDED](3, random_state=0).fit(views)
    diagnosis = mkclust.diagnose(model, views)
    assert succeed("diagnose", "three.npz", "-k", 3).stdout == f"{diagnosis}\n"
    record = json.loads(succeed("diagnose", "three.npz", "-k", 3, "--json").stdout)
    assert record["noise"] == ["dice"]
    assert record["leave_one_out"] == pytest.approx(diagnosis.leave_one_out)
    quick = succeed("diagnose", "three.npz", "-k", 3, "--json", "--no-leave-one-out")
    assert json.loads(quick.stdout)["leave_one_out"] == [None, None, None]


def test_diagnose_wants_a_number_and_two_kernels():
    assert "-k N" in fail("diagnose", "d.npz", "-k", "auto")
    gaussian = ("-k", 3, "--kernels", "gaussian", "--approximation", "nystroem", "--landmarks", 9)
    assert "two kernels or more" in fail("diagnose", "d.npz::left", *gaussian)
