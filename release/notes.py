"""Print the changes of a version, as the notes of its release.

Called with a tag, such as v0.4.0, which has to be the version of the library.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def version() -> str:
    """Return the version of the library, without importing it."""
    text = (ROOT / "src" / "mkclust" / "version.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    if found is None:
        raise SystemExit("src/mkclust/version.py does not say __version__")
    return found[1]


def notes(number: str) -> str:
    """Return the section of a version in the changelog."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = re.escape(f"## {number} (")
    found = re.search(
        rf"^{heading}\d+-\d+-\d+\)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
    )
    if found is None:
        raise SystemExit(
            f"CHANGELOG.md has no section '## {number} (date)': write the date of the "
            "release into its heading"
        )
    return found[1].strip()


def main() -> None:
    """Refuse a tag that is not the version; else print its changes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tag", help="such as v0.4.0")
    tag = parser.parse_args().tag
    if tag != f"v{version()}":
        raise SystemExit(
            f"the tag is {tag}, but src/mkclust/version.py says {version()}: tag the "
            f"commit v{version()}"
        )
    sys.stdout.write(f"{notes(version())}\n")


if __name__ == "__main__":
    main()
