"""Cells of text that usually mean that a value is not known: ``[Not Available]``."""

from collections.abc import Iterable
from typing import Any

# What such cells say, without brackets and in lower case. "-" and "none" are not among
# them: they also are levels of categories.
UNKNOWN = {
    "unknown",
    "unk",
    "missing",
    "no data",
    "na",
    "n/a",
    "n.a.",
    "n.a",
    "nan",
    "null",
    ".",
    "..",
    "--",
    "---",
    "discrepancy",
    "not available",
    "not applicable",
    "not assessed",
    "not collected",
    "not documented",
    "not evaluated",
    "not known",
    "not recorded",
    "not reported",
    "not specified",
}


def means_unknown(cell: Any) -> bool:
    """Return whether a cell is text that usually means that a value is not known.

    >>> [means_unknown(each) for each in ("[Not Available]", "NA?", "?", "none", 3)]
    [True, True, True, False, False]
    """
    if not isinstance(cell, str):
        return False
    words = " ".join(cell.strip().strip("[](){}<>").replace("_", " ").split())
    if words and not words.strip("?"):
        return True
    return words.rstrip("?").casefold() in UNKNOWN


def known_first(levels: Iterable[Any]) -> list[Any]:
    """Return levels of a category in their order, those that are not known last.

    >>> known_first(["[Not Available]", "high", "low"])
    ['high', 'low', '[Not Available]']
    """
    return sorted(levels, key=means_unknown)


def unknown_marks(cells: Iterable[Any]) -> list[str]:
    """Return the different cells that usually mean that a value is not known."""
    return sorted({cell for cell in cells if means_unknown(cell)})
