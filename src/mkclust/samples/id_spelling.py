"""Ids of the same samples that are written differently, as tables of several sources have them."""

import re
from collections.abc import Callable, Iterable
from typing import Any

from mkclust.text import join_words

_SEPARATORS = re.compile(r"(?<=[^\W_])[\W_]+(?=[^\W_])")
_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
# What people write differently, by what a message calls it.
_ALIKE: dict[str, Callable[[str], str]] = {
    "blanks around them": str.strip,
    "upper and lower case": str.casefold,
    "separators": lambda name: _SEPARATORS.sub("-", name),
    "leading zeros": lambda name: _ZEROS.sub("", name),
}


def spelling_difference(ids: Iterable[Any], others: Iterable[Any]) -> str:
    """Return a sentence on two ids that are most likely one, empty where there are none.

    Parameters
    ----------
    ids, others : iterable of id
        The ids of two tables.

    Returns
    -------
    str
    """
    names, other_names = list(map(str, ids)), list(map(str, others))
    known, own = set(other_names), set(names)
    by_key = {_alike(name): name for name in reversed(other_names) if name not in own}
    for name in names:
        other = by_key.get(_alike(name))
        if other is not None and name not in known:
            return f"{name!r} and {other!r} differ in {_kinds(name, other)}: write them alike"
    return ""


def _alike(name: str, *, but: str = "") -> str:
    """Return an id without what people write differently, but for one of these things."""
    for kind, normalize in _ALIKE.items():
        if kind != but:
            name = normalize(name)
    return name


def _kinds(name: str, other: str) -> str:
    """Return in what two ids differ that are alike."""
    kinds = [kind for kind in _ALIKE if _alike(name, but=kind) != _alike(other, but=kind)]
    pairs = zip(*(_SEPARATORS.findall(each) for each in (name, other)), strict=True)
    signs = next((f"{a!r} and {b!r}" for a, b in pairs if a != b), "")
    return join_words([signs if kind == "separators" else kind for kind in kinds])
