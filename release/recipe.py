"""Write the recipe of the conda package, for the source archive that `make dist` built.

Its dependencies are those of pyproject.toml. conda has no extras: the command line is
part of the package, and whoever installs an optional package gets a version that works.
"""

import argparse
import hashlib
import sys
import tomllib
from pathlib import Path

from oldest import PYPROJECT, oldest

# Names on conda-forge, if they differ from those on the index of Python packages.
ON_CONDA = {"dask": "dask-core", "matplotlib": "matplotlib-base"}
RECIPE = """\
schema_version: 1

context:
  version: "{version}"
  python_min: "{python}"

package:
  name: {name}
  version: ${{{{ version }}}}

source:
  url: https://pypi.org/packages/source/{name[0]}/{name}/{archive}
  sha256: {sha256}

build:
  number: 0
  noarch: python
  script: ${{{{ PYTHON }}}} -m pip install . -vv --no-deps --no-build-isolation
  python:
    entry_points:
      - {name} = {entry}

requirements:
  host:
    - python ${{{{ python_min }}}}.*
    - pip
{host}
  run:
    - python >=${{{{ python_min }}}}
{run}
  run_constraints:
{constraints}

tests:
  - python:
      imports:
        - {name}
      pip_check: true
      python_version: ${{{{ python_min }}}}.*
  - script:
      - {name} --version
    requirements:
      run:
        - python ${{{{ python_min }}}}.*

about:
  homepage: {repository}
  repository: {repository}
  documentation: {documentation}
  summary: {summary}
  license: {license}
  license_file: LICENSE

extra:
  recipe-maintainers:
    - {name}
"""


def conda(bounds: dict[str, str]) -> list[str]:
    """Return lower bounds as conda writes them, by name."""
    return sorted(f"{ON_CONDA.get(name, name)} >={bounds[name]}" for name in bounds)


def items(lines: list[str]) -> str:
    """Return lines as a list of YAML."""
    return "\n".join(f"    - {line}" for line in lines)


def recipe(pyproject: dict, archive: Path) -> str:
    """Return the recipe for a source archive."""
    project = pyproject["project"]
    extras = project["optional-dependencies"]
    always = oldest(
        project | {"optional-dependencies": {"cli": extras["cli"]}},
    )
    optional = {
        name: bound for name, bound in oldest(project).items() if name not in always
    }
    return RECIPE.format(
        name=project["name"],
        version=archive.name.removesuffix(".tar.gz").rpartition("-")[2],
        python=project["requires-python"].removeprefix(">="),
        archive=archive.name,
        sha256=hashlib.sha256(archive.read_bytes()).hexdigest(),
        entry=project["scripts"][project["name"]],
        host=items(pyproject["build-system"]["requires"]),
        run=items(conda(always)),
        constraints=items(conda(optional)),
        repository=project["urls"]["Repository"],
        documentation=project["urls"]["Documentation"],
        summary=f'"{project["description"]}"',
        license=project["license"],
    )


def main() -> None:
    """Write the recipe next to the source archive of a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the source archive is")
    folder = parser.parse_args().folder
    (archive,) = folder.glob("*.tar.gz")
    with PYPROJECT.open("rb") as file:
        text = recipe(tomllib.load(file), archive)
    (folder / "recipe.yaml").write_text(text, encoding="utf-8")
    sys.stdout.write(f"{folder / 'recipe.yaml'} is the recipe of {archive.name}\n")


if __name__ == "__main__":
    main()
