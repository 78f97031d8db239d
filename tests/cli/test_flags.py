import json
import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")

from typer.testing import CliRunner

import mkclust
from command_line import fail, invoke, succeed, three_clusters
from mkclust import cli
from mkclust.cli.progress import Progress

pytestmark = pytest.mark.slow

COMMANDS = [command.name for command in cli.app.registered_commands]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Run every test in a folder of its own, with one file of two views in it."""
    monkeypatch.chdir(tmp_path)
    views, y = three_clusters()
    np.savez("d.npz", **views, y=y)


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_h_is_help_everywhere_and_help_is_plain_text(command):
    args = () if command is None else (command,)
    short, long = succeed(*args, "-h").stdout, succeed(*args, "--help").stdout
    assert short == long
    assert short.startswith("Usage: mkclust")
    assert short.isascii()
    assert "\x1b" not in short


def test_the_help_of_the_program_names_every_command():
    output = succeed("-h").stdout
    names = ("demo", "cluster", "suggest", "diagnose", "compare", "predict", "rerun", "bench")
    assert set(names) <= set(COMMANDS)
    assert all(f"\n  {name} " in output for name in names)


def complete(*words):
    """Return what a shell is given for the last of some words."""
    environment = {
        "_MKCLUST_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    return CliRunner().invoke(cli.app, [], prog_name="mkclust", env=environment).stdout.split()


def test_a_shell_completes_commands_and_methods():
    assert complete("mkclust", "sug") == ["suggest"]
    assert complete("mkclust", "cluster", "--method", "lo") == ["localized-simplemkkm"]


def test_quiet_runs_write_their_files_and_say_nothing():
    np.savez("noise.npz", a=np.random.default_rng(0).normal(size=(40, 3)), b=np.eye(40, 4) + 1.0)
    loud = succeed("cluster", "noise.npz", "-k", 2)
    assert "warning" in loud.stderr
    labels = Path("labels.csv").read_bytes()
    result = succeed("cluster", "noise.npz", "-k", 2, "-q", "--labels", "quiet.csv")
    assert result.output == ""
    assert Path("quiet.csv").read_bytes() == labels
    assert json.loads(Path("quiet.run.json").read_text())["warnings"]
    assert "none.npz" in fail("cluster", "none.npz", "-k", 3, "-q")


def test_verbose_runs_say_how_long_each_step_took():
    result = succeed("cluster", "d.npz", "-k", 3, "-v")
    for word in ("s  reading", "s  clustering 45 samples, 2 views"):
        assert word in result.stdout
    assert "s  reading" not in succeed("cluster", "d.npz", "-k", 3).stdout
    # A bank without rules is explained on request only.
    assert "left: " in succeed("cluster", "d.npz", "-k", 3, "--kernels", "gaussian", "-v").stdout


def test_the_record_is_printed_as_json_in_place_of_tables():
    result = succeed("cluster", "d.npz", "-k", 3, "--json")
    assert result.stdout == Path("run.json").read_text()
    assert result.stderr == ""
    assert json.loads(succeed("cluster", "d.npz", "-k", 3, "--json", "-q").stdout)["method"]


def test_the_record_holds_the_whole_command():
    succeed("cluster", "d.npz", "-k", 3, "--seed", 2, "--labels", "out.csv")
    command = json.loads(Path("out.run.json").read_text())["command"]
    assert (command["name"], command["folder"]) == ("cluster", os.getcwd())
    options = command["options"]
    assert (options["inputs"], options["n_clusters"], options["seed"]) == (["d.npz"], 3, 2)
    assert options["labels"] == "out.csv"


@pytest.mark.parametrize(
    "args",
    [["suggest", "--to", 3], ["diagnose", "-k", 3], ["compare", "-k", 3, "--methods", "avg-kkm"]],
)
def test_commands_take_the_options_of_cluster_and_write_no_file(args):
    command, *rest = args
    before = sorted(os.listdir())
    result = succeed(command, "d.npz", *rest, "--kernels", "gaussian", "--seed", 1, "-q")
    assert result.stdout
    assert result.stderr == ""
    assert sorted(os.listdir()) == before
    assert "--labels" in invoke(command, "d.npz", *rest, "--labels", "x.csv").stderr


def test_steps_of_what_takes_long_are_told():
    views, _ = three_clusters()
    model = mkclust.AverageKKM(3, random_state=0).fit(views)
    steps = []

    def listen(*step):
        steps.append(step)

    mkclust.diagnose(model, views, progress=listen)
    assert steps == [(0, 2, "kernels left out in turn"), (1, 2, "kernels left out in turn")]
    steps.clear()
    mkclust.explain.stability.resample(model, views, n_resamples=3, progress=listen)
    assert steps == [(done, 3, "resamples") for done in range(3)]
    steps.clear()
    mkclust.suggest_n_clusters(views, [2, 3], n_resamples=2, progress=listen)
    assert {text for _, _, text in steps} == {"draws of one cloud", "shuffled views", "resamples"}
    assert all(0 <= done < total for done, total, _ in steps)


def test_progress_that_nobody_sees_still_measures_its_phases(capsys):
    with Progress(quiet=True) as progress:
        progress.phase("reading")
        progress.step(1, 2, "files")
        progress.phase("writing")
    assert list(progress.seconds) == ["reading", "writing"]
    assert capsys.readouterr().err == ""
