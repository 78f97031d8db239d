"""Data sets that are known by name: the bundled digits, and what other code adds to `CATALOG`."""

from collections.abc import Callable
from typing import NamedTuple

from mkclust.datasets.dataset import Dataset
from mkclust.datasets.digits import read_digits
from mkclust.datasets.layout import normalize_name


class Entry(NamedTuple):
    """A data set that :func:`load` knows by name.

    ``read()`` returns it, or raises `DatasetError` if its files are not there. ``find()`` returns
    the name of what `read` would return, maybe another version, or None if its files are not there.
    """

    name: str
    read: Callable[[], Dataset]
    find: Callable[[], str | None]


# Every name that `load` knows, with its entry; several names may share one. Add entries to extend.
CATALOG: dict[str, Entry] = {"digits": Entry("digits", read_digits, lambda: "digits")}


def find_entry(name: str) -> Entry | None:
    """Return the entry that a name means; case and separators do not matter, but in paths."""
    if set(name) & set("./\\:"):
        return None
    by_name = {normalize_name(known): entry for known, entry in CATALOG.items()}
    return by_name.get(normalize_name(name))
