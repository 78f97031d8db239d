"""Somebody adds a method: outside of the package by its guide, inside as CONTRIBUTING.md says."""

import os
import re
import shutil
import subprocess
import sys
from textwrap import dedent

import numpy as np
import pytest
import scipy.io

from command_line import succeed
from documentation import ROOT, blocks, commands

pytestmark = pytest.mark.slow

GUIDE = "docs/guides/own_method.md"
(EXAMPLE,) = blocks(GUIDE, "python")
(COMMAND,) = commands(GUIDE)


def page_of_the_library():
    """Return the example of the guide as a page of the library: a solver and a thin estimator."""
    head, signature, body = EXAMPLE.partition("    def _solve(self, stack):\n")
    imports, line, estimator = head.partition("class Powered")
    # Inside, `mkclust.methods` is what imports the page.
    imports = imports.replace("mkclust.methods import Ind", "mkclust.methods.inductive import Ind")
    imports = imports.replace(
        "# powered.py\n", '"""Kernels by a power of their own structure."""\n\n'
    )
    solve = dedent(body).replace("self.", "")
    solver = "def solve_powered(stack, n_clusters, *, strength=1.0):\n" + re.sub(
        "^", "    ", solve, flags=re.MULTILINE
    )
    call = "        return solve_powered(stack, self.n_clusters, strength=self.strength)\n"
    return f"{imports}{solver.rstrip()}\n\n\n{line}{estimator}{signature}{call}"


def insert(path, before, line):
    """Insert a line into a file, before one that is there once."""
    text = path.read_text()
    assert text.count(before) == 1
    path.write_text(text.replace(before, line + before))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Return a folder with a copy of the package to which the method was added."""
    folder = tmp_path_factory.mktemp("library")
    package = folder / "src" / "mkclust"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "mkclust", package, ignore=ignore)
    (package / "methods" / "powered.py").write_text(page_of_the_library())
    registry, face = package / "methods" / "__init__.py", package / "__init__.py"
    imported = "from mkclust.methods.powered import Powered, solve_powered\n"
    insert(registry, "from mkclust.methods.reduced_gradient", imported)
    insert(registry, '    "simplemkkm": SimpleMKKM,\n', '    "powered": Powered,\n')
    insert(face, "    SimpleMKKM,\n)", "    Powered,\n")
    write_views(folder / "views.mat")
    return folder


def write_views(path, n=100, k=10):
    rng, y = np.random.default_rng(0), np.arange(n) % k
    views = [4 * rng.normal(size=(k, 8))[y] + rng.normal(size=(n, 8)) for _ in range(3)]
    scipy.io.savemat(path, {f"X{i}": X for i, X in enumerate(views)} | {"Y": y[:, None]})


def run(library, *arguments):
    """Run Python on the copy, and return what it printed."""
    environment = os.environ | {"PYTHONPATH": str(library / "src")}
    result = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=library,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_example_of_the_guide_runs_by_the_command_of_the_guide(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "modules", {k: v for k, v in sys.modules.items() if k != "powered"})
    (tmp_path / "powered.py").write_text(EXAMPLE)
    write_views("views.mat")
    said = succeed(*COMMAND, "-v").stdout
    assert "Powered: 100 samples, 3 kernels, 10 clusters" in said
    assert "A large weight means much leading structure" in said
    assert "100.0" in said  # of the scores


def test_the_contract_tests_find_a_method_by_its_line_in_the_registry(library):
    tests = ("-m", "pytest", ROOT / "tests" / "test_contract.py", "-k", "powered", "-q")
    options = ("-p", "no:cacheprovider", "-c", ROOT / "pyproject.toml", "--rootdir", ROOT)
    said = run(library, *tests, *options)
    (passed,) = re.findall(r"^(\d+) passed", said, re.MULTILINE)
    assert int(passed) > 110
    assert "failed" not in said
