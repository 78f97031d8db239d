"""Somebody writes a method outside of the package, by its guide."""

import sys

import numpy as np
import pytest
import scipy.io

from helpers.cli import succeed
from helpers.docs import blocks, commands

pytestmark = pytest.mark.slow

GUIDE = "docs/guides/own_method.md"
(EXAMPLE,) = blocks(GUIDE, "python")
(COMMAND,) = commands(GUIDE)


def test_the_example_of_the_guide_runs_by_the_command_of_the_guide(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    # The class is found in the current folder; what is added to the path is removed.
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    monkeypatch.setattr(
        sys, "modules", {k: v for k, v in sys.modules.items() if k != "powered"}
    )
    (tmp_path / "powered.py").write_text(EXAMPLE)
    rng, y = np.random.default_rng(0), np.arange(100) % 10
    views = [
        4 * rng.normal(size=(10, 8))[y] + rng.normal(size=(100, 8)) for _ in range(3)
    ]
    scipy.io.savemat(
        "views.mat", {f"X{i}": X for i, X in enumerate(views)} | {"Y": y[:, None]}
    )
    said = succeed(*COMMAND, "-v").stdout
    assert "Powered: 100 samples, 3 kernels, 10 clusters" in said
    assert "A large weight means much leading structure" in said
    assert "100.0" in said  # of the scores
