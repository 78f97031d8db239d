"""The data sets that are known by name, and how each is read."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from mkclust.datasets.base import Dataset
from mkclust.datasets.digits import read_digits
from mkclust.datasets.entry import Entry, Way
from mkclust.datasets.paper import DIGITS, PAPER_ENTRIES, RAW, READY, authors_kernels
from mkclust.datasets.recipes import ONE_GAUSSIAN, TWELVE_KERNELS, ready_kernels, views

_MULTIVIEW = "collections of multi-view data that researchers pass on; no home page is known"
_BANK = "The default bank of twelve kernels a view."
_LEAN = "One Gaussian kernel a view; twelve a view would be too large for most machines."


def _bundled(_: Sequence[Path]) -> Dataset:
    """Return the data that come with the library."""
    return read_digits()


_ENTRIES = (
    Entry(
        "digits",
        "Four views of the 8 x 8 images of handwritten digits in scikit-learn",
        1797,
        4,
        10,
        "scikit-learn; it comes with the library",
        (Way((), "One Gaussian kernel a view.", _bundled),),
    ),
    *PAPER_ENTRIES,
    Entry(
        "handwritten",
        "Handwritten numerals: all six views of them",
        2000,
        6,
        10,
        DIGITS,
        (
            Way(
                ("Handwritten_6view.mat",),
                RAW,
                views(("fac", "fou", "kar", "mor", "pix", "zer"), bank=ONE_GAUSSIAN),
            ),
        ),
        aliases=("handwritten-6view", "mfeat"),
    ),
    Entry(
        "ar10p",
        "Faces of ten people",
        130,
        6,
        10,
        "the AR face database, through the kernels of a released code",
        authors_kernels("AR10P"),
    ),
    Entry(
        "jaffe",
        "Faces of ten women with seven expressions; the classes are the women",
        213,
        12,
        10,
        "the Japanese Female Facial Expression database, through the kernels of a released code",
        (Way(("jaffe_12kernels.mat",), READY, ready_kernels("Ks")),),
    ),
    *(
        Entry(name, title, n, n_views, k, _MULTIVIEW, (Way((file,), made, views(bank=bank)),))
        for name, file, title, n, n_views, k, made, bank in (
            ("bbcsport", "BBCSport.mat", "News on sports", 544, 2, 5, _BANK, TWELVE_KERNELS),
            ("3sources", "3Sources.mat", "News of 3 agencies", 169, 3, 6, _BANK, TWELVE_KERNELS),
            ("msrc-v5", "MSRC-v5.mat", "Images of scenes", 210, 5, 7, _BANK, TWELVE_KERNELS),
            ("coil20", "COIL20.mat", "Images of objects", 1440, 1, 20, _BANK, TWELVE_KERNELS),
            ("hdigit", "Hdigit.mat", "Handwritten digits", 10000, 2, 10, _LEAN, ONE_GAUSSIAN),
            ("cora", "Cora.mat", "Papers and citations", 2708, 4, 7, _LEAN, ONE_GAUSSIAN),
        )
    ),
)

CATALOG: Mapping[str, Entry] = MappingProxyType({entry.name: entry for entry in _ENTRIES})


def spelling(name: str) -> str:
    """Reduce a name to what counts in it."""
    return "".join(letter for letter in name.lower() if letter not in "-_ ")


# Every spelling that is understood, with the name that it means.
SPELLINGS: Mapping[str, str] = MappingProxyType(
    {spelling(alias): e.name for e in _ENTRIES for alias in (e.name, *e.aliases)}
)
