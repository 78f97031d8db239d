"""What the documentation tells a reader to type, taken from its pages."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[2]


def blocks(page: str, language: str = "") -> list[str]:
    """Return the examples of a page that are marked as of one language; without one, of
    a shell."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [example for marked, example in found if marked == language]


def commands(page: str) -> list[list[str]]:
    """Return the commands ``mkclust`` of a page, each as its arguments, without
    comments."""
    lines = [line for block in blocks(page) for line in block.splitlines()]
    return [
        shlex.split(line, comments=True)[1:]
        for line in lines
        if line.startswith("mkclust ")
    ]
