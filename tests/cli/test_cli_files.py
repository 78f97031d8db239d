"""Paths, streams and names that are dangerous or broken end in one line, and leave nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")

from typer.testing import CliRunner

from mkclust import cli
from mkclust.cli import method

pytestmark = pytest.mark.slow

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX devices and signals")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Run every test in a folder of its own, with one file of two views in it."""
    monkeypatch.chdir(tmp_path)
    np.savez("d.npz", **views())
    return tmp_path


def views():
    rng, y = np.random.default_rng(0), np.repeat([0, 1, 2], 15)
    X = 4 * rng.normal(size=(3, 6))[y] + rng.normal(size=(45, 6))
    return {"left": X[:, :3], "right": X[:, 3:]}


def invoke(*args):
    return CliRunner().invoke(cli.app, [str(arg) for arg in args])


def succeed(*args):
    result = invoke("cluster", *args, "-k", 3)
    assert result.exit_code == 0, result.stderr
    return result


def fail(*args):
    """Run a command that must fail as promised: one line, exit code 2, and no new file."""
    before = sorted(os.listdir())
    result = invoke("cluster", *args, "-k", 3)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert result.stderr.startswith("mkclust: error: ")
    assert result.stderr.count("\n") == 1
    assert sorted(os.listdir()) == before
    return result.stderr


def program(*args, code="from mkclust.cli import main; main()", **options):
    command = [sys.executable, "-c", code, *map(str, args)]
    defaults = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.run(command, text=True, check=False, timeout=120, **{**defaults, **options})


# --- links ---------------------------------------------------------------------------------------


def test_a_file_that_links_to_another_one_is_refused():
    h5py = pytest.importorskip("h5py")
    with h5py.File("target.h5", "w") as file:
        file["X"] = views()["left"]
    with h5py.File("own.h5", "w") as file:
        file["a"], file["b"] = h5py.ExternalLink("target.h5", "/X"), views()["right"]
    assert "own.h5: a is a link" in fail("own.h5")


# --- names ---------------------------------------------------------------------------------------

EVIL = "\x1b[2J\x9b31m\u202eleft\n=1+1"


def test_names_from_a_file_cannot_steer_the_terminal_and_are_recorded_as_they_are():
    left, right = views().values()
    np.savez("d.npz", **{EVIL: left, "right": right, "odd\x07": np.ones((5, 4))})
    result = succeed("d.npz")
    for text in (result.stdout, Path("run.json").read_text()):
        assert all(character.isprintable() or character == "\n" for character in text)
    assert r"\x1b[2J\x9b31m\u202eleft\x0a=1+1" in result.stdout
    assert r"odd\x07" in result.stdout
    assert json.loads(Path("run.json").read_text())["kernel_names"] == [EVIL, "right"]


def test_a_message_with_a_name_from_a_file_cannot_steer_the_terminal():
    left, right = views().values()
    left[3, 1] = np.nan
    np.savez("d.npz", **{EVIL: left, "right": right})
    message = fail("d.npz")
    assert "NaN" in message
    assert message[:-1].isprintable()
    for name in (f"{EVIL}.npz", f"d.npz::{EVIL}"):
        assert fail(name)[:-1].isprintable()
    assert fail("d.npz", f"--{EVIL}")[:-1].isprintable()


def test_a_warning_with_a_name_from_a_file_cannot_steer_the_terminal():
    left, right = views().values()
    np.savez("one.npz", **{EVIL: left, "y": np.arange(45) % 3})
    np.savez("\x1btwo.npz", right=right, y=np.arange(45) % 2)
    result = succeed("\x1btwo.npz", "one.npz")
    assert "warning: the inputs hold different labels" in result.stderr
    assert all(line.isprintable() for line in result.stderr.split("\n"))


@posix
def test_a_file_whose_name_is_no_text_is_clustered_and_recorded(folder):
    name = os.fsdecode(b"\xff.npz")
    os.rename("d.npz", name)
    done = program("cluster", name, "-k", 3)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(Path("run.json").read_text())["inputs"][0]["input"] == name


# --- paths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([""], "names no file"),
        (["d.npz", ""], "names no file"),
        (["::left"], "names no file"),
        (["d.npz", "--labels", ""], "--labels': the path is empty"),
        (["d.npz", "--run", ""], "--run': the path is empty"),
        (["d.npz", "--plot", ""], "--plot': the path is empty"),
        (["d.npz", "--report", ""], "--report': the path is empty"),
        (["."], "is a directory"),
        (["no\nsuch.npz"], "no such file"),
        (["d.npz", "--labels", "two\nlines.csv"], r"'two\nlines.csv' has a line break"),
        (["d.npz", "--labels", "nowhere/labels.csv"], "no folder nowhere"),
        (["d.npz", "--labels", "./d.npz"], "is an input"),
        (["d.npz::left", "--run", "d.npz"], "is an input"),
        (["d.npz", "--labels", "a" * 300], "File name too long"),
        (["a" * 300 + ".npz"], "File name too long"),
    ],
)
def test_a_path_that_cannot_be_is_refused(args, words):
    assert words in fail(*args)


def test_an_output_with_as_long_a_name_as_can_be_is_written():
    assert "File name too long" in fail("d.npz", "--labels", "a" * 255)
    succeed("d.npz", "--labels", "a" * 255, "--run", "run.json")
    assert Path("a" * 255).read_text().startswith("id,cluster,silhouette,margin\n")


@posix
@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_an_input_under_another_name_is_not_overwritten(link):
    link("d.npz", "other.csv")
    content = Path("d.npz").read_bytes()
    assert "other.csv: is an input" in fail("d.npz", "--labels", "other.csv")
    assert Path("d.npz").read_bytes() == content


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs /proc")
def test_a_file_that_fails_while_it_is_read_is_named():
    os.symlink("/proc/self/mem", "broken.npz")
    assert "broken.npz: cannot be read (Input/output error)" in fail("broken.npz")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads it all")
def test_a_file_without_permission_is_named():
    os.chmod("d.npz", 0)
    assert "d.npz: cannot be read (Permission denied)" in fail("d.npz")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_are_neither_read_nor_replaced():
    os.mkfifo("pipe.npz")
    assert "pipe.npz: is not a regular file" in fail("pipe.npz")
    assert "pipe.npz: is not a regular file" in fail("d.npz", "--labels", "pipe.npz")


# --- streams -------------------------------------------------------------------------------------


@posix
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_standard_output_is_one_line_and_the_results_are_named():
    with open("/dev/full", "w") as full:
        done = program("cluster", "d.npz", "-k", 3, stdout=full)
        assert (done.returncode, done.stderr) == (
            2,
            "mkclust: error: standard output: No space left on device; these were written: "
            "labels.csv and run.json\n",
        )
        assert sorted(os.listdir()) == ["d.npz", "labels.csv", "run.json"]
        done = program("--help", stdout=full)
        assert done.returncode == 2
        assert done.stderr.startswith("mkclust: error: standard output: No space left on device")
        assert done.stderr.count("\n") == 1
        assert program("cluster", "none.npz", "-k", 3, stderr=full).returncode == 2


@posix
@pytest.mark.parametrize("device", ["/dev/stdout", "/dev/stderr"])
def test_labels_are_not_written_to_standard_streams(device):
    done = program("cluster", "d.npz", "-k", 3, "--labels", device)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"mkclust: error: {device}: is not a regular file")
    assert done.stderr.count("\n") == 1
    assert os.listdir() == ["d.npz"]


@posix
@pytest.mark.parametrize("device", ["/dev/full", "/dev/null"])
def test_labels_are_written_to_files_only(device):
    message = fail("d.npz", "--labels", device)
    assert message.startswith(f"mkclust: error: {device}: is not a regular file")


@posix
@pytest.mark.parametrize("name", ["/dev/stdout", "out.csv"])
def test_labels_do_not_replace_the_file_that_standard_output_goes_to(name):
    with open("out.csv", "w") as file:
        done = program("cluster", "d.npz", "-k", 3, "--labels", name, stdout=file)
    assert done.returncode == 2
    assert f"{name}: is where standard output goes" in done.stderr
    assert sorted(os.listdir()) == ["d.npz", "out.csv"]


@posix
def test_a_reader_that_has_gone_is_nothing_to_complain_about():
    read, write = os.pipe()
    os.close(read)
    done = program("cluster", "d.npz", "-k", 3, stdout=write)
    os.close(write)
    assert done.stderr == ""
    assert sorted(os.listdir()) == ["d.npz", "labels.csv", "run.json"]


@posix
def test_a_run_without_standard_streams_writes_its_files():
    closed = "import sys; sys.stdout = sys.stderr = None; from mkclust.cli import main; main()"
    assert program("cluster", "d.npz", "-k", 3, code=closed).returncode == 0
    assert sorted(os.listdir()) == ["d.npz", "labels.csv", "run.json"]


# --- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("1", 1),
        ("0.5", 0.5),
        ("1e-3", 0.001),
        ("no", "no"),
        ("yes", "yes"),
        ("off", "off"),
        ("auto", "auto"),
    ],
)
def test_a_setting_is_a_truth_value_only_where_it_spells_one(text, value):
    (parsed,) = method.parse_settings([f"normalize={text}"], {}).values()
    assert parsed == value
    assert type(parsed) is type(value)


def test_the_record_says_which_truth_value_was_used():
    for text, value in (("false", False), ("true", True)):
        succeed("d.npz", "--set", f"normalize={text}")
        assert json.loads(Path("run.json").read_text())["parameters"]["normalize"] is value


def test_a_parameter_that_an_option_has_set_is_not_set_again():
    assert "set twice" in fail("d.npz", "--no-normalize", "--set", "normalize=true")
    assert "set twice" in fail("d.npz", "--tol", "1e-3", "--set", "tol=1e-4")
