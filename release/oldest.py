"""Print the oldest supported version of every dependency, as constraints for pip.

They are the lower bounds of pyproject.toml, so that what is tested is what is promised.
"""

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def oldest(project: dict) -> dict[str, str]:
    """Return the lower bounds of all dependencies of users, by their names."""
    extras = project["optional-dependencies"]
    lists = [
        project["dependencies"],
        *(v for name, v in extras.items() if name not in TOOLS),
    ]
    bounds = {}
    for requirement in (line for each in lists for line in each):
        if requirement.startswith(f"{project['name']}["):
            continue
        parts = re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", requirement)
        if parts is None:
            raise ValueError(
                f"{PYPROJECT}: {requirement} has no lower bound, or an upper one"
            )
        name, bound = parts.groups()
        if bounds.setdefault(name, bound) != bound:
            raise ValueError(
                f"{PYPROJECT}: {name} has the bounds {bounds[name]} and {bound}"
            )
    return bounds


# Extras for work on the library, which may be as new as they like.
TOOLS = ("dev", "docs")

if __name__ == "__main__":
    with PYPROJECT.open("rb") as file:
        bounds = oldest(tomllib.load(file)["project"])
    sys.stdout.writelines(
        f"{name}=={bound}\n" for name, bound in sorted(bounds.items())
    )
