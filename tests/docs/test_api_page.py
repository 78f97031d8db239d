"""The API reference names everything that is public."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import mkclust
from mkclust import (
    bench,
    datasets,
    exceptions,
    explain,
    fit,
    kernels,
    methods,
    metrics,
    plots,
)

PAGE = Path(__file__).parents[2] / "docs" / "api" / "index.rst"


def names_on_the_page() -> list[str]:
    """Return the full names that the page lists."""
    names: list[str] = []
    module = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.match(r"(?:   |\.\. data:: )(\w+)$", line):
            names.append(f"{module}.{found[1]}")
    return names


PUBLIC = {
    mkclust: mkclust.__all__,
    kernels: [name for name in kernels.__all__ if name not in mkclust.__all__],
    bench: bench.__all__,
    datasets: datasets.__all__,
    plots: plots.__all__,
    exceptions: [name for name in vars(exceptions) if name.endswith("Warning")],
    explain: [name for name in explain.__all__ if name not in mkclust.__all__],
    fit: fit.__all__,
    methods: [name for name in methods.__all__ if name not in mkclust.__all__],
    # From counts, or for labels of the library itself.
    metrics: [
        name
        for name, value in inspect.getmembers(metrics, inspect.isfunction)
        if value.__module__ == metrics.__name__ and not name.startswith("_")
        if name not in (*mkclust.__all__, "agreement_of_labels")
    ],
}


def imported_for_types() -> set[str]:
    """Return the names that type checkers, and nobody else, see imported at once."""
    tree = ast.parse(Path(mkclust.__file__).read_text(encoding="utf-8"))
    branches = (node for node in tree.body if isinstance(node, ast.If))
    (branch,) = (node for node in branches if ast.unparse(node.test) == "TYPE_CHECKING")
    return {alias.name for node in branch.body for alias in node.names}


def test_the_package_names_the_same_for_users_and_for_type_checkers():
    later = set(mkclust._IMPORTED_LATER)
    assert later == imported_for_types()
    assert later | {"__version__"} == set(mkclust.__all__)
    assert len(mkclust.__all__) == len(set(mkclust.__all__))


@pytest.mark.parametrize("module", PUBLIC, ids=lambda module: module.__name__)
def test_every_public_name_is_on_the_page_of_the_api(module):
    expected = {f"{module.__name__}.{name}" for name in PUBLIC[module]}
    assert expected - set(names_on_the_page()) == set()


def test_no_name_is_on_the_page_twice():
    names = names_on_the_page()
    assert sorted(names) == sorted(set(names))


def test_every_name_on_the_page_exists():
    for name in names_on_the_page():
        module, _, last = name.rpartition(".")
        assert hasattr(__import__(module, fromlist=[last]), last), name
