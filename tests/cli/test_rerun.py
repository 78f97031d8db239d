import json
import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")

from command_line import fail, invoke, succeed, three_clusters

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Run every test in a folder of its own, with one file of two views in it."""
    monkeypatch.chdir(tmp_path)
    views, y = three_clusters()
    np.savez("d.npz", **views, y=y)


def change_record(**changes):
    record = json.loads(Path("run.json").read_text()) | changes
    Path("run.json").write_text(json.dumps(record))


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--method", "lkam", "--set", "reg=0.5", "--set", "max_iter=7", "--seed", 4),
        ("--method", "anchored-mkkm", "--anchor", 0.5, "--no-normalize", "--n-init", 2),
        ("--approximation", "nystroem", "--landmarks", 20, "--plot", "fit.png"),
        ("--kernels", "on-the-fly", "--json"),
    ],
)
def test_a_recorded_command_gives_the_same_labels_and_writes_nothing(options):
    succeed("cluster", "d.npz", "-k", 3, *options)
    before = {name: Path(name).read_bytes() for name in os.listdir()}
    result = succeed("rerun", "run.json")
    assert result.stdout == "Same labels as run.json records: 45 samples, 3 clusters.\n"
    assert {name: Path(name).read_bytes() for name in os.listdir()} == before


def test_labels_are_written_where_asked_and_are_the_same():
    succeed("cluster", "d.npz", "-k", 3)
    succeed("rerun", "run.json", "--labels", "again.csv")
    assert Path("again.csv").read_bytes() == Path("labels.csv").read_bytes()
    assert "is an input" in fail("rerun", "run.json", "--labels", "run.json")


def test_an_input_that_has_changed_is_named():
    succeed("cluster", "d.npz", "-k", 3)
    views, y = three_clusters()
    np.savez("d.npz", left=np.sort(views["left"], axis=0), right=views["right"], y=y)
    result = invoke("rerun", "run.json")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0].startswith("Other labels than run.json records")
    assert "Input d.npz has changed" in result.stdout
    answer = json.loads(invoke("rerun", "run.json", "--json").stdout)
    assert answer == {"same_labels": False, "changed_inputs": ["d.npz"], "changed_versions": {}}


def test_what_has_changed_without_effect_is_said_beside_the_same_labels():
    succeed("cluster", "d.npz", "-k", 3)
    versions = json.loads(Path("run.json").read_text())["versions"]
    change_record(versions=versions | {"numpy": "1.0"})
    result = succeed("rerun", "run.json")
    assert "Same labels" in result.stdout
    assert "numpy was 1.0, and is " in result.stdout


def test_other_labels_without_a_change_are_no_secret():
    succeed("cluster", "d.npz", "-k", 3)
    change_record(labels_sha256="0" * 64)
    result = invoke("rerun", "run.json")
    assert result.exit_code == 1
    assert "No input and no version has changed" in result.stdout


def test_a_record_is_rerun_from_the_folder_of_its_command_which_is_named(monkeypatch, tmp_path):
    succeed("cluster", "d.npz", "-k", 3)
    os.mkdir("elsewhere")
    monkeypatch.chdir("elsewhere")
    message = fail("rerun", "../run.json")
    assert f"d.npz: there is no such file here; the command was run in {tmp_path}" in message


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"command": 3}', '{"command": {"options": {}}, "labels_sha256": ""}'],
)
def test_a_file_that_records_no_command_is_refused(content):
    Path("other.json").write_text(content)
    assert "other.json: " in fail("rerun", "other.json")


@pytest.mark.parametrize(
    "options",
    [
        {"inputs": 3},
        {"inputs": ["d.npz"], "magic": 1},
        {"inputs": ["d.npz"], "method": 5},
        {"inputs": ["d.npz"], "n_clusters": "three"},
    ],
)
def test_a_record_with_options_that_cannot_be_is_refused(options):
    succeed("cluster", "d.npz", "-k", 3)
    change_record(command={"options": {"n_clusters": 3} | options})
    fail("rerun", "run.json")


def test_a_record_that_is_not_there_is_named():
    assert "none.json" in fail("rerun", "none.json")
