"""The program as a process: streams, signals, terminals, and the demo."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mkclust
from helpers.cli import stop, succeed, three_clusters

posix = pytest.mark.skipif(
    sys.platform == "win32", reason="needs POSIX devices and signals"
)
MAIN = "from mkclust.cli import main; main()"
# The picture of the demo that the README shows, and how far another one may be from it
# on average, in shares of white: more than other fonts, and less than another result.
SHOWN = Path(__file__).parents[2] / "docs" / "digits.png"
OF_FONTS = 0.02
SLOW = """
import signal, time, mkclust, mkclust.cli
signal.signal(signal.SIGINT, signal.default_int_handler)
method = mkclust.METHODS[mkclust.RECOMMENDED]
def slow(self, X, y=None, **options):
    open('begun', 'w').close()
    time.sleep(60)
method.fit = slow
mkclust.cli.main()
"""


@pytest.fixture(autouse=True)
def files(folder):
    """Write one file of two views."""
    np.savez("d.npz", **three_clusters()[0])


def program(*args, code=MAIN, **options):
    command = [sys.executable, "-c", code, *map(str, args)]
    defaults = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.run(
        command, text=True, check=False, timeout=120, **(defaults | options)
    )


def test_the_version_and_the_commands_are_shown():
    assert succeed("--version").stdout == f"mkclust {mkclust.__version__}\n"
    assert "demo" in succeed().stdout


@pytest.mark.slow
def test_the_program_exits_with_0_or_2_and_without_typer_it_says_what_to_install():
    done = program("cluster", "d.npz", "-k", 3)
    assert (done.returncode, done.stderr) == (0, "")
    done = program("cluster", "d.npz", "-k", 0)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    done = program(code="import sys; sys.modules['typer'] = None; import mkclust.cli")
    assert done.returncode == 2
    assert 'pip install "mkclust[cli]"' in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="has no full device")
@pytest.mark.slow
def test_a_full_disk_behind_standard_output_is_told():
    with open("/dev/full", "w") as full:
        done = program("inspect", "d.npz", stdout=full)
    assert done.returncode == 2
    assert done.stderr == "mkclust: error: standard output: No space left on device\n"


@posix
@pytest.mark.slow
def test_control_c_ends_a_running_program_with_one_line():
    command = [sys.executable, "-c", SLOW, "cluster", "d.npz", "-k", "3"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for _ in range(600):
        if os.path.exists("begun") or process.poll() is not None:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (130, "mkclust: interrupted\n")
    assert sorted(os.listdir()) == ["begun", "d.npz"]


@pytest.mark.slow
def test_the_demo_joins_files_explains_its_result_and_ends_with_a_command():
    image = pytest.importorskip("matplotlib.image")
    text = succeed("demo", "--out", "new/demo").stdout
    assert "Not used: shuffled" in text
    inputs = [
        "columns.tsv",
        "fourier.csv.gz",
        "gradients.csv",
        "rows.csv",
        "shuffled.csv",
    ]
    assert sorted(os.listdir("new/demo")) == sorted(
        [*inputs, "digits.png", "labels.csv"]
    )
    drawn, shown = (
        image.imread(path)[..., :3] for path in ("new/demo/digits.png", SHOWN)
    )
    assert drawn.shape == shown.shape, "copy demo/digits.png to docs"
    assert abs(drawn - shown).mean() < OF_FONTS, "copy demo/digits.png to docs"

    # The command that it shows gives the same clusters.
    labels = pd.read_csv("new/demo/labels.csv", index_col="id")["cluster"]
    (line,) = (line for line in text.splitlines() if "mkclust cluster new/demo" in line)
    succeed(*shlex.split(line)[1:])
    assert pd.read_csv("labels.csv", index_col="id")["cluster"].equals(labels)


def test_an_option_of_one_value_is_refused_if_it_is_given_twice():
    files = ("a.csv", "b.csv", "--annotate", "one.csv", "--annotate=two.csv")
    message = stop("cluster", *files, "-k", 3)
    assert "--annotate is given 2 times, and takes one value" in message
    assert "-k is given 2 times" in stop("cluster", "a.csv", "-k", 3, "-k", 4)
    assert "a.csv" in stop("cluster", "a.csv", "-k", 3, "--drop", "x", "--drop", "y")
