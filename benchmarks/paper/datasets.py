"""The data sets of the paper, what stands in for them, and a few more, read from
MKCLUST_DATA.

Importing this module adds them to the data sets that ``mkclust.datasets.load`` knows by
name. A plan of a benchmark names it by ``loaders``.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.metrics.pairwise import euclidean_distances

from mkclust.datasets import CATALOG, Dataset, DatasetError, Entry, load
from mkclust.datasets.arrays import read_arrays
from mkclust.datasets.interpret import as_dataset

__all__ = ["KNOWN", "Known", "Source", "load"]

# Parameters of KernelBank: one Gaussian kernel per view, as wide as the median
# distance.
ONE_GAUSSIAN: dict[str, Any] = {"widths": (1.0,), "polynomials": (), "linear": None}


class Source(NamedTuple):
    """Files of a data set, and the function that reads them."""

    files: tuple[str, ...]
    read: Callable[[Sequence[Path]], Dataset]


class Known(NamedTuple):
    """What a data set is, its sizes, and how it is read.

    `n_views` counts kernels if there are no views; None allows any number. `sources`
    are files to read it from, the best first; `fallback` is the name of the entry that
    is read if none is there. `paper` is its name in the tables of the SimpleMKKM paper,
    and `caveat` that of `Dataset`.
    """

    name: str
    n_samples: int
    n_views: int | None
    n_clusters: int
    origin: str
    sources: tuple[Source, ...]
    paper: str = ""
    caveat: str = ""
    fallback: str = ""

    def find(self) -> tuple[Source, list[Path]] | None:
        """Return the best source whose files are all there, and their paths."""
        for source in self.sources:
            paths = [
                path for name in source.files if (path := _locate(name)) is not None
            ]
            if len(paths) == len(source.files):
                return source, paths
        return None

    def read(self, source: Source, paths: Sequence[Path]) -> Dataset:
        """Read the data set from files, and check its sizes."""
        data, place = source.read(paths), " and ".join(map(str, paths))
        if data.y is None:
            raise DatasetError(
                f"{place}: holds no labels; {self.name} should have them in Y"
            )
        found = (data.n_samples, len(data.X), data.n_classes)
        expected = (self.n_samples, self.n_views or found[1], self.n_clusters)
        if found != expected:
            raise DatasetError(
                f"{place}: found {found[0]} samples, {found[1]} views or kernels and "
                f"{found[2]} classes, but {self.name} has "
                f"{', '.join(map(str, expected))}; check that it is the right file, or "
                "load it by its path"
            )
        return replace(data, name=self.name, caveat=self.caveat, paper=self.paper)


def _locate(name: str) -> Path | None:
    """Return a file of the folder MKCLUST_DATA, or of a folder in it, without regard to
    case."""
    root = Path(os.environ.get("MKCLUST_DATA") or "/nowhere").expanduser()
    for path in [*sorted(root.glob("*")), *sorted(root.glob("*/*"))]:
        names = (path.name.lower(), f"{path.parent.name}/{path.name}".lower())
        if name.lower() in names and path.is_file():
            return path
    return None


def versions(entry):
    """Return an entry, and the one that stands in for it."""
    return [KNOWN[name] for name in (entry.name, entry.fallback) if name]


def found_name(entry: Known) -> str | None:
    """Return the name of the version whose files are there, None without any."""
    return next((each.name for each in versions(entry) if each.find()), None)


def read_known(entry: Known) -> Dataset:
    """Read a known data set, or else what stands in for it."""
    for each in versions(entry):
        if (found := each.find()) is not None:
            return each.read(*found)
    folder = (
        os.environ.get("MKCLUST_DATA")
        or "the folder that MKCLUST_DATA names (set it to one)"
    )
    files = [" and ".join(s.files) for each in versions(entry) for s in each.sources]
    raise DatasetError(
        f"{entry.name}: not found in {folder} or one folder deeper; put there "
        f"{' or '.join(files)}. The data come from {entry.origin}."
    )


def read_file(paths, variable: str = ""):
    """Read one file of views, or of the kernels in a variable, and labels."""
    selection = frozenset([variable] if variable else [])
    content = read_arrays(paths[0], selection, on_disk=False)
    return as_dataset(paths[0], content, selected=bool(variable), square=False)


def _read_views(paths):
    """Read the views of one file, and the labels."""
    data = read_file(paths)
    views = (data.views or {}).items()
    return {
        name: view.toarray() if issparse(view) else view for name, view in views
    }, data.y


def named_views(paths, names: Sequence[str], bank: dict[str, Any]):
    """Read views, give them names (none: as in the file), and note the bank of their
    kernels."""
    views, y = _read_views(paths)
    names = names if len(names) == len(views) else list(views)
    named = dict(zip(names, views.values(), strict=True))
    return Dataset(paths[0].stem, named, None, y, tuple(names), bank={**bank})


def factor_kernels(paths, unit_diagonal: bool = False):
    """Multiply factors of reduced rank back to kernels ``X X^T``."""
    factors, y = _read_views(paths)
    kernels = np.array([factor @ factor.T for factor in factors.values()])
    if unit_diagonal:
        np.einsum("mii->mi", kernels)[:] = 1
    names = tuple(f"K_{i + 1}" for i in range(len(kernels)))
    return Dataset(paths[0].stem, None, kernels, y, names)


def histogram_kernels(paths, euclidean, per_class=None):
    """Make ``exp(-D / mean D)`` of squared Hellinger distances between histograms.

    Features that are not histograms, those named by `euclidean`, have squared Euclidean
    distances. Of each class the first `per_class` samples are taken, or all.
    """
    views, y = _read_views(paths)
    rows = np.sort(np.concatenate([np.flatnonzero(y == c)[:per_class] for c in set(y)]))
    views = {name.removeprefix("X_"): view[rows] for name, view in views.items()}
    kernels = np.empty((len(views), len(rows), len(rows)))
    for kernel, (name, view) in zip(kernels, views.items(), strict=True):
        points = view.astype(float) if name in euclidean else np.sqrt(view, dtype=float)
        distances = euclidean_distances(points, squared=True)
        kernel[:] = np.exp((distances + distances.T) / -(2 * distances.mean()))
    return Dataset(paths[0].stem, views, kernels, y[rows], tuple(views))


def _authors(*stems: str) -> tuple[Source, ...]:
    """Return the files in which authors store their kernels."""
    read = partial(read_file, variable="KH")
    return tuple(Source((f"{stem}_Kmatrix.mat",), read) for stem in stems)


def _views(file: str, *names: str, bank: dict[str, Any] = ONE_GAUSSIAN) -> Source:
    """Return the file of views, with names for them."""
    return Source((file,), partial(named_views, names=names, bank=bank))


def _pair(caveat: str, entry: Known, *sources: Source) -> list[Known]:
    """Return an entry, and the one that is read if no file of the first is there."""
    name = f"{entry.name}-{caveat}"
    other = entry._replace(name=name, sources=sources, caveat=caveat)
    return [entry._replace(fallback=name), other]


def _caltech(n: int) -> list[Known]:
    """Return the entries of n images per category of Caltech-101.

    The paper lists 15 n samples, 25 kernels and n classes, but its scores belong to 102
    classes with n samples each.
    """
    origin = "Caltech-101, www.vision.caltech.edu/Image_Datasets/Caltech101"
    authors = _authors(f"caltech101_nTrain{n}_48")
    entry = Known(f"cal-{n}", 102 * n, None, 102, origin, authors, f"Cal-{n}")
    read = partial(histogram_kernels, euclidean=("gist", "pix16"), per_class=n)
    own = Source(("caltech101/features.npz",), read)
    return [entry] if n > 10 else _pair("substitute", entry, own)


# Where data come from.
_FLOWERS = "the Visual Geometry Group in Oxford, www.robots.ox.ac.uk/~vgg/data/flowers"
_PROTEINS = "mkl.ucsd.edu/dataset/protein-fold-prediction"
_VIDEOS = "Columbia Consumer Video, www.ee.columbia.edu/ln/dvmm/CCV"
_DIGITS = (
    "the UCI repository's Multiple Features; the paper's copy was at ss.sysu.edu.cn/py"
)
_OTHERS = (
    "collections of multi-view data that researchers pass on; no home page is known"
)
# Features computed anew from the images, and factors of reduced rank.
_FLOWER_FEATURES = Source(
    ("flower17/features.npz",), partial(histogram_kernels, euclidean=("hog_fg",))
)
_FOLDS = tuple(
    Source((file,), factor_kernels)
    for file in ("ProteinFold.mat", "ProteinFold_v73.mat")
)
_CCV = Source(("CCV.mat",), partial(factor_kernels, unit_diagonal=True))
_UCI = (*_authors("UCI_DIGIT", "Digit"), _views("UCI.mat", "pix", "fou", "mor"))
_SIX = _views("Handwritten_6view.mat", "fac", "fou", "kar", "mor", "pix", "zer")
_JAFFE = Source(("jaffe_12kernels.mat",), partial(read_file, variable="Ks"))
# File and sizes of further data sets; those of up to 2,000 samples have twelve kernels
# per view.
_MULTIVIEW = (
    ("BBCSport.mat", 544, 2, 5),
    ("3Sources.mat", 169, 3, 6),
    ("MSRC-v5.mat", 210, 5, 7),
    ("COIL20.mat", 1440, 1, 20),
    ("Hdigit.mat", 10000, 2, 10),
    ("Cora.mat", 2708, 4, 7),
)
_FLO17 = Known("flo17", 1360, 7, 17, f"{_FLOWERS}/17", _authors("flower17"), "Flo17")
_PFOLD = Known("pfold", 694, 12, 27, _PROTEINS, _authors("proteinFold"), "PFold")
_FACES = "the Japanese Female Facial Expression database"
_ENTRIES = [
    *_pair("substitute", _FLO17, _FLOWER_FEATURES),
    Known("flo102", 8189, 4, 102, f"{_FLOWERS}/102", _authors("flower102"), "Flo102"),
    *_pair("truncated", _PFOLD, *_FOLDS),
    *_pair(
        "truncated", Known("ccv", 6773, 3, 20, _VIDEOS, _authors("CCV"), "CCV"), _CCV
    ),
    Known("digit", 2000, 3, 10, _DIGITS, _UCI, "Digit"),
    *(each for n in (5, 10, 15, 20, 25, 30) for each in _caltech(n)),
    Known("handwritten", 2000, 6, 10, _DIGITS, (_SIX,)),
    Known("ar10p", 130, 6, 10, "the AR face database", _authors("AR10P")),
    Known("jaffe", 213, 12, 10, _FACES, (_JAFFE,)),
    *(
        Known(
            *(file.removesuffix(".mat").lower(), n, m, k, _OTHERS),
            (_views(file, bank=ONE_GAUSSIAN if n > 2000 else {}),),
        )
        for file, n, m, k in _MULTIVIEW
    ),
]

# The data sets by name.
KNOWN = {entry.name: entry for entry in _ENTRIES}
for _known in _ENTRIES:
    CATALOG[_known.name] = Entry(
        _known.name, partial(read_known, _known), partial(found_name, _known)
    )
