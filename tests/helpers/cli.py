"""The real commands, run in the manner of a user, and small files for them."""

import os

import numpy as np
from typer.testing import CliRunner

from mkclust import cli


def invoke(*args):
    return CliRunner().invoke(cli.app, [str(arg) for arg in args])


def succeed(*args):
    result = invoke(*args)
    assert result.exit_code == 0, result.output
    return result


def fail(*args):
    """Run a command that must fail as promised: one line, exit code 2, and no new
    file."""
    before = sorted(os.listdir())
    result = invoke(*args)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert result.stderr.startswith("mkclust: error: ")
    assert result.stderr.count("\n") == 1
    assert sorted(os.listdir()) == before
    return result.stderr


def stop(*args):
    """Run a command that several things are in the way of, and return what it says."""
    before = sorted(os.listdir())
    result = invoke(*args)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert result.stderr.startswith("mkclust: error: ")
    assert sorted(os.listdir()) == before
    return result.stderr


def three_clusters(n=45, spread=4):
    """Return two views of three clusters, and the clusters."""
    rng, y = np.random.default_rng(0), np.arange(n) % 3
    X = spread * rng.normal(size=(3, 6))[y] + rng.normal(size=(n, 6))
    return {"left": X[:, :3], "right": X[:, 3:]}, y
