"""What a release promises: one version everywhere, lean extras, and bounds that are
tested."""

import ast
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
# The names of packages that are imported by another one.
PACKAGES = {"sklearn": "scikit-learn", "array_api_compat": "array-api-compat"}
# Libraries of a GPU, which are installed by hand: none of the extras has them.
OF_A_GPU = {"torch", "cupy", "triton"}
KINDS_OF_CHANGES = {"Added", "Changed", "Removed", "Fixed"}
# Extras for work on the library.
OF_DEVELOPERS = ("all", "dev", "docs")
# Needed by pandas for tables of Markdown, and so never imported by the library.
ONLY_OTHERS_IMPORT_IT = {"tabulate"}


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


def test_the_changelog_tells_one_fact_a_bullet_by_kind():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^### (.+)$", changes, re.M)) <= KINDS_OF_CHANGES
    bullets = re.findall(r"^- (?:.+\n(?:  .+\n)*)", changes, re.M)
    released = changes.partition(f"## {mkclust.__version__} ")[2]
    assert len(bullets) > 100
    assert max(map(len, released.splitlines())) <= 100


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


def imported_modules(path):
    """Return the modules that a file imports, also within its functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module)
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            found |= {
                argument.value
                for argument in node.args
                if isinstance(argument, ast.Constant)
            }
    return found


def imported_packages():
    """Return the packages of others that the library imports, by their names on an
    index of packages."""
    modules = set()
    for path in (ROOT / "src").rglob("*.py"):
        modules |= imported_modules(path)
    roots = {module.partition(".")[0] for module in modules}
    others = roots - set(sys.stdlib_module_names) - {PROJECT["name"]}
    return {PACKAGES.get(name, name) for name in others}


def test_what_the_library_imports_is_declared_and_nothing_else_is():
    of_users = [
        line
        for name, extra in EXTRAS.items()
        if name not in OF_DEVELOPERS
        for line in extra
    ]
    declared = names([*PROJECT["dependencies"], *of_users])
    imported = imported_packages()
    assert imported - declared == OF_A_GPU
    assert declared - imported == ONLY_OTHERS_IMPORT_IT


def test_the_addresses_of_the_project_are_those_of_one_repository():
    repository = PROJECT["urls"]["Repository"]
    owner, name = re.fullmatch(
        r"https://github.com/([\w-]+)/(\w+)", repository
    ).groups()
    pages = f"https://{owner}.github.io/{name}/"
    for address in PROJECT["urls"].values():
        assert address.startswith((repository, pages))
    citation = (ROOT / "CITATION.cff").read_text()
    assert f'repository-code: "{repository}"' in citation


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
