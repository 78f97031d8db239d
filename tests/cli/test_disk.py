"""Errors of the disk while something is read name the file, in every command."""

import os
from pathlib import Path

import pytest

from helpers.cli import fail
from mkclust.datasets import DatasetError, load

# Reading it from the beginning is an error of the device.
BROKEN = Path("/proc/self/mem")

pytestmark = [
    pytest.mark.usefixtures("folder"),
    pytest.mark.skipif(not BROKEN.exists(), reason="has no file that cannot be read"),
]


def broken(name):
    """Return the name of a file that exists and cannot be read."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(BROKEN)
    return name


@pytest.mark.parametrize(
    "name",
    ["x.csv", "x.csv.gz", "x.xlsx", "x.npy", "x.npz", "x.mat", "x.h5", "x.parquet"],
)
def test_a_table_that_cannot_be_read_is_named(name):
    path = broken(name)
    command = ["cluster", path, "-k", "2"]

    assert fail(*command) == f"mkclust: error: {name}: Input/output error\n"
    with pytest.raises(DatasetError, match=f"^{name}: cannot be read"):
        load(path)


def test_a_file_that_cannot_be_read_is_named_by_every_command():
    plan = Path("plan.toml")
    plan.write_text('datasets = ["digits"]\nmethods = ["avg-kkm"]\n')
    Path("table.csv").write_text("id,a\ns1,1\ns2,2\n")
    commands = {
        "run.json": ["rerun", "run.json"],
        "other.toml": ["bench", "other.toml"],
        "old/rows.jsonl": ["report", "old"],
        "new/protocol.json": ["bench", plan, "--out", "new"],
        "model.skops": ["predict", "model.skops", "table.csv"],
        "variables.csv": [
            "cluster",
            "table.csv",
            "-k",
            "2",
            "--annotate",
            "variables.csv",
        ],
    }
    for name, command in commands.items():
        path = broken(name)
        assert fail(*command).startswith(f"mkclust: error: {name}: ")
        os.unlink(path)
