"""What a release promises: one version everywhere, lean extras, and bounds that are
tested."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import mkclust

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
# What importing the library must not load, and no extra but those for it may bring.
HEAVY = (
    *(
        "matplotlib",
        "jinja2",
        "dask",
        "distributed",
        "torch",
        "cupy",
        "h5py",
        "pyarrow",
    ),
    *(
        "typer",
        "rich",
        "skops",
        "anndata",
        "mudata",
        "openpyxl",
        "statsmodels",
        "polars",
    ),
)


def names(requirements):
    """Return the packages of a list of requirements, with those of the extras that it
    names."""
    found = set()
    for requirement in requirements:
        name, extras = re.match(r"([\w-]+)(?:\[([\w,]+)\])?", requirement).groups()
        if name == PROJECT["name"]:
            found |= names(
                line for extra in extras.split(",") for line in EXTRAS[extra]
            )
        else:
            found.add(name)
    return found


def test_the_version_is_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text()
    version = re.search(r"^version: (.+)$", citation, re.M)[1]
    date = re.search(r"^date-released: (.+)$", citation, re.M)[1]
    changes = (ROOT / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## (.+)$", changes, re.M)
    released = [
        heading for heading in headings if not heading.endswith(" (unreleased)")
    ]
    assert len(headings) - len(released) <= 1
    assert released[0] == f"{version} ({date})"
    assert mkclust.__version__ == version


def test_runtime_dependencies_have_lower_bounds_and_no_upper_ones():
    sys.path.insert(0, str(ROOT / "release"))
    try:
        from oldest import oldest
    finally:
        sys.path.remove(str(ROOT / "release"))
    bounds = oldest(PROJECT)
    assert set(bounds) == names(PROJECT["dependencies"]) | names(EXTRAS["all"])
    text = (ROOT / "docs" / "install.md").read_text()
    for package, title in (
        ("numpy", "NumPy"),
        ("scipy", "SciPy"),
        ("scikit-learn",) * 2,
    ):
        assert f"{title} {bounds[package]}" in text.replace("\n", " ")
    with pytest.raises(ValueError, match="numpy<3 has no lower bound"):
        oldest(PROJECT | {"dependencies": ["numpy<3"]})


@pytest.mark.slow
def test_the_library_fits_without_any_extra():
    program = (
        "import sys\n"
        # As if they were not installed: nobody finds them.
        "class Without:\n"
        "    def __init__(self, finder):\n"
        "        self.finder = finder\n"
        "    def __getattr__(self, name):\n"
        "        return getattr(self.finder, name)\n"
        "    def find_spec(self, name, *rest):\n"
        f"        if name.partition('.')[0] not in {HEAVY}:\n"
        "            return self.finder.find_spec(name, *rest)\n"
        "sys.meta_path[:] = map(Without, sys.meta_path)\n"
        "import mkclust\n"
        "from mkclust.datasets import load\n"
        "views = {name: view[:60] for name, view in load('digits').views.items()}\n"
        "model = mkclust.AgreementKKM(3, random_state=0).fit(views)\n"
        "print((model.predict(views) == model.labels_).all())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    assert done.stdout == "True\n", done.stderr
