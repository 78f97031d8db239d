"""The commands ``suggest``, ``diagnose``, ``compare`` and ``rerun``."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mkclust
from helpers.cli import fail, invoke, succeed, three_clusters

Recommended = mkclust.METHODS[mkclust.RECOMMENDED]


@pytest.fixture(autouse=True)
def files(folder):
    """Write files of clusters and of noise."""
    views, y = three_clusters()
    np.savez("d.npz", **views, y=y)
    dice = {"dice": np.random.default_rng(1).normal(size=(45, 5))}
    np.savez("three.npz", **views, **dice)


def test_a_quiet_run_prints_nothing_and_json_is_the_record():
    assert succeed("cluster", "d.npz", "-k", 3, "-q", "--labels", "q.csv").output == ""
    result = succeed("cluster", "d.npz", "-k", 3, "--json")
    assert (result.stdout, result.stderr) == (Path("run.json").read_text(), "")
    assert Path("q.csv").read_bytes() == Path("labels.csv").read_bytes()


@pytest.mark.slow
def test_suggest_prints_what_the_library_suggests_in_python():
    views, _ = three_clusters()
    suggestion = mkclust.suggest_n_clusters(views, [2, 3, 4], evidence=True)
    assert (
        succeed("suggest", "d.npz", "--from", 2, "--to", 4).stdout == f"{suggestion}\n"
    )
    record = json.loads(succeed("suggest", "d.npz", "--to", 4, "--json").stdout)
    assert record["n_clusters"] == 3
    assert record["evidence"] in ("weak", "strong")
    assert record["k_values"] == [2, 3, 4]
    assert record["candidates"][0] == 3


@pytest.mark.slow
def test_suggest_draws_the_tree_of_clusters():
    succeed("suggest", "d.npz", "--to", 4, "--picture", "tree.svg")
    assert "k = 3" in Path("tree.svg").read_text() or Path("tree.svg").stat().st_size
    assert "suffix" in fail("suggest", "d.npz", "--picture", "tree.txt")


@pytest.mark.slow
def test_k_auto_clusters_by_the_suggestion_and_records_why():
    result = succeed("cluster", "d.npz", "-k", "auto")
    record = json.loads(Path("run.json").read_text())
    assert record["n_clusters"] == record["suggestion"]["n_clusters"] == 3
    assert "-k auto: 3 clusters" in result.stdout
    views, _ = three_clusters()
    model = Recommended(3, random_state=0).fit(views)
    assert record["cluster_sizes"] == np.bincount(model.labels_).tolist()
    assert "Same labels" in succeed("rerun", "run.json").stdout


def test_k_auto_honors_the_settings_of_the_graph():
    views, _ = three_clusters()
    settings = {"resolution": 20.0, "neighbors": 8}
    model = Recommended("auto", **settings, random_state=0).fit(views)
    assert model.n_clusters_ > 3
    asked = [f"--set={name}={value}" for name, value in settings.items()]
    result = succeed("cluster", "d.npz", "-k", "auto", *asked)
    record = json.loads(Path("run.json").read_text())
    assert f"{model.n_clusters_} clusters fit best at resolution 20" in result.stdout
    np.testing.assert_array_equal(pd.read_csv("labels.csv")["cluster"], model.labels_)
    found = record["suggestion"]["eigengaps"]
    np.testing.assert_allclose(found, model.suggestion_.eigengaps, atol=1e-6)


@pytest.mark.slow
def test_k_auto_does_not_cluster_what_has_no_clusters():
    rng = np.random.default_rng
    views = {
        name: rng(len(name)).permutation(v) for name, v in three_clusters()[0].items()
    }
    np.savez("noise.npz", **views)
    assert "no evidence" in fail("cluster", "noise.npz", "-k", "auto")


def test_diagnose_prints_what_the_library_says_in_python():
    views = dict(np.load("three.npz"))
    model = Recommended(3, random_state=0).fit(views)
    diagnosis = mkclust.diagnose(model, views)
    assert succeed("diagnose", "three.npz", "-k", 3).stdout == f"{diagnosis}\n"
    args = ("diagnose", "three.npz", "-k", 3, "--json", "--no-leave-one-out")
    record = json.loads(succeed(*args).stdout)
    assert (record["noise"], record["leave_one_out"]) == (["dice"], [None, None, None])


def test_parts_of_one_table_are_named_apart_and_do_not_agree():
    rng, y = np.random.default_rng(0), np.arange(90) % 3
    is_male = rng.random(90) < 0.5
    height = 165 + 12 * is_male + rng.normal(scale=4, size=90)
    omics = pd.DataFrame(3 * rng.normal(size=(3, 20))[y] + rng.normal(size=(90, 20)))
    omics.to_csv("omics.csv")
    clinical = pd.DataFrame({"height": height, "sex": np.where(is_male, "m", "f")})
    clinical.to_csv("clinical.csv")
    files = "omics.csv", "clinical.csv"
    text = succeed("inspect", *files).stdout
    assert (
        "clinical (categories): 90 samples, 1 column of categories with 2 values"
        in text
    )
    assert "one source with clinical" in text

    record = json.loads(succeed("diagnose", *files, "-k", 3, "--json").stdout)
    assert record["names"] == ["omics", "clinical", "clinical (categories)"]
    assert record["noise"] == record["names"]
    assert "The two views do not agree clearly" in record["view_agreement"]["verdict"]
    assert record["view_agreement"]["p_values"][1][2] == 1
    assert record["agreement"][0] == 1


def test_the_methods_named_are_compared_in_a_table_that_warns_of_itself():
    names = "avg-kkm, agreement-kkm"
    args = ("compare", "three.npz", "-k", 3, "--methods", names, "--resamples", 2)
    lines = succeed(*args).stdout.splitlines()
    assert [line.split()[1] for line in lines[1:3]] == ["avg-kkm", "agreement-kkm"]
    assert "agreement-kkm sets aside: dice." in lines
    assert lines[-1].startswith("Agreement is not truth")


def test_methods_that_cannot_take_the_options_are_left_out_with_the_reason():
    args = (
        "compare",
        "d.npz",
        "-k",
        3,
        "--resamples",
        0,
        "--landmarks",
        20,
        "--methods",
    )
    assert "Left out: lkam: --landmarks" in succeed(*args, "lkam,avg-kkm").stdout
    assert "no method gave clusters; lkam" in fail(*args, "lkam")
    assert "'lkam'" in fail(*args, "lkan")


def test_a_recorded_command_gives_the_same_labels_and_writes_nothing():
    options = (
        "--method",
        "lkam",
        "--set",
        "reg=0.5",
        "--seed",
        4,
        "--kernels",
        "left=cosine",
    )
    succeed("cluster", "d.npz", "-k", 3, *options)
    before = {name: Path(name).read_bytes() for name in os.listdir()}
    result = succeed("rerun", "run.json")
    assert result.stdout == "Same labels as run.json records: 45 samples, 3 clusters.\n"
    assert {name: Path(name).read_bytes() for name in os.listdir()} == before
    succeed("rerun", "run.json", "--labels", "again.csv")
    assert Path("again.csv").read_bytes() == Path("labels.csv").read_bytes()
    assert "run.json" in fail("rerun", "run.json", "--labels", "run.json")


def test_an_input_or_a_version_that_has_changed_is_named():
    succeed("cluster", "d.npz", "-k", 3)
    views, y = three_clusters()
    np.savez("d.npz", left=np.sort(views["left"], axis=0), right=views["right"], y=y)
    record = json.loads(Path("run.json").read_text())
    record["versions"]["numpy"] = "1.0"
    Path("run.json").write_text(json.dumps(record))
    result = invoke("rerun", "run.json")
    assert result.exit_code == 1
    assert result.stdout.startswith("Other labels than run.json records")
    answer = json.loads(invoke("rerun", "run.json", "--json").stdout)
    assert (answer["same_labels"], answer["changed_inputs"]) == (False, ["d.npz"])
    assert answer["changed_versions"] == {"numpy": ["1.0", np.__version__]}


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"command": 3}'])
def test_a_file_that_records_no_command_is_refused(content):
    Path("other.json").write_text(content)
    assert "other.json: " in fail("rerun", "other.json")
    assert "none.json" in fail("rerun", "none.json")
