"""The data sets of the paper, what stands in for them, and a few more, read from MKCLUST_DATA.

Importing this module adds them to the data sets that ``mkclust.datasets.load`` knows by name. A
plan of a benchmark names it by ``loaders``.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
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

# Parameters of KernelBank: one Gaussian kernel per view, as wide as the median distance.
ONE_GAUSSIAN: dict[str, Any] = {"widths": (1.0,), "polynomials": (), "linear": None}


class Source(NamedTuple):
    """Files of a data set, how kernels are made of them in words, and the function that reads."""

    files: tuple[str, ...]
    kernels: str
    read: Callable[[Sequence[Path]], Dataset]


@dataclass(frozen=True)
class Known:
    """What a data set is, its sizes, and how it is read.

    `n_views` counts kernels if there are no views. `sources` are files to read it from, the best
    first; `fallbacks` are names of entries that are read if none is there. `paper` is its name in
    the tables of the SimpleMKKM paper, and `caveat` that of `Dataset`. `per_class` is the number of
    samples of every class, if files with other numbers of kernels are in use.
    """

    name: str
    title: str
    n_samples: int
    n_views: int
    n_clusters: int
    origin: str
    sources: tuple[Source, ...] = field(repr=False)
    aliases: tuple[str, ...] = ()
    paper: str = ""
    caveat: str = ""
    fallbacks: tuple[str, ...] = ()
    note: str = ""
    per_class: int | None = None

    def find(self) -> tuple[Source, list[Path]] | None:
        """Return the best source whose files are all there, and their paths."""
        for source in self.sources:
            paths = [path for name in source.files if (path := _locate(name)) is not None]
            if len(paths) == len(source.files):
                return source, paths
        return None

    def read(self, source: Source, paths: Sequence[Path]) -> Dataset:
        """Read the data set from files, and check its sizes."""
        data, place = source.read(paths), " and ".join(map(str, paths)) or self.name
        if data.y is None:
            raise DatasetError(f"{place}: holds no labels; {self.name} should have them in Y")
        found = (data.n_samples, len(data.X), data.n_classes)
        expected = (self.n_samples, self.n_views, self.n_clusters)
        fits = found == expected
        if self.per_class is not None:
            sizes = set(np.unique(data.y, return_counts=True)[1].tolist())
            # The paper's own table lists `per_class` classes of 15 samples each.
            in_use = (self.n_clusters, {self.per_class}), (self.per_class, {15})
            fits = (data.n_classes, sizes) in in_use
        if not fits:
            raise DatasetError(
                f"{place}: found {found[0]} samples, {found[1]} views or kernels and {found[2]} "
                f"classes, but {self.name} has {', '.join(map(str, expected))}; check that it is "
                "the right file, or load it by its path"
            )
        text = " ".join(filter(None, (f"{self.title}.", source.kernels, self.note)))
        facts = {"name": self.name, "caveat": self.caveat, "paper": self.paper}
        return replace(data, description=text, **facts)


def data_folder() -> Path | None:
    """Return the folder that MKCLUST_DATA names, or None without one."""
    named = os.environ.get("MKCLUST_DATA")
    return Path(named).expanduser() if named and Path(named).expanduser().is_dir() else None


def _locate(name: str) -> Path | None:
    """Return a file of the data folder, or of a folder in it, without regard to case."""
    root = data_folder()
    for path in [] if root is None else [*sorted(root.glob("*")), *sorted(root.glob("*/*"))]:
        names = (path.name.lower(), f"{path.parent.name}/{path.name}".lower())
        if name.lower() in names and path.is_file():
            return path
    return None


def versions(entry: Known) -> list[Known]:
    """Return an entry and its fallbacks."""
    return [entry, *(KNOWN[name] for name in entry.fallbacks)]


def found_name(entry: Known) -> str | None:
    """Return the name of the version whose files are there, None without any."""
    return next((each.name for each in versions(entry) if each.find()), None)


def read_known(entry: Known) -> Dataset:
    """Read a known data set, or else a fallback."""
    for each in versions(entry):
        if (found := each.find()) is not None:
            return each.read(*found)
    folder = data_folder() or "the folder that MKCLUST_DATA names (set it to one)"
    files = [" and ".join(source.files) for source in entry.sources]
    others = [(KNOWN[name].caveat, KNOWN[name].sources[0].files[0]) for name in entry.fallbacks]
    files += [f"{file} for a {caveat} version" for caveat, file in others]
    raise DatasetError(
        f"{entry.name}: not found in {folder} or one folder deeper; put there "
        f"{' or '.join(files)}. The data come from {entry.origin}."
    )


def _read(path: Path, *variables: str) -> Dataset:
    """Read one file of views, or of the kernels in a variable, and labels."""
    content = read_arrays(path, frozenset(variables), on_disk=False)
    return as_dataset(path, content, selected=bool(variables), square=False)


def _read_views(path: Path) -> tuple[dict[str, np.ndarray], Any]:
    """Read the views of one file, and the labels."""
    data = _read(path)
    views = (data.views or {}).items()
    return {name: view.toarray() if issparse(view) else view for name, view in views}, data.y


def named_views(paths: Sequence[Path], names: Sequence[str], bank: dict[str, Any]) -> Dataset:
    """Read views, give them names (none: as in the file), and note the bank of their kernels."""
    views, y = _read_views(paths[0])
    names = names if len(names) == len(views) else list(views)
    named = dict(zip(names, views.values(), strict=True))
    return Dataset(paths[0].stem, named, None, y, tuple(names), bank={**bank})


def factor_kernels(paths: Sequence[Path], unit_diagonal: bool = False) -> Dataset:
    """Multiply factors of reduced rank back to kernels ``X X^T``."""
    factors, y = _read_views(paths[0])
    kernels = np.array([factor @ factor.T for factor in factors.values()])
    if unit_diagonal:
        np.einsum("mii->mi", kernels)[:] = 1
    names = tuple(f"K_{i + 1}" for i in range(len(kernels)))
    return Dataset(paths[0].stem, None, kernels, y, names)


def histogram_kernels(
    paths: Sequence[Path], euclidean: Sequence[str], per_class: int | None = None
) -> Dataset:
    """Make ``exp(-D / mean D)`` of squared Hellinger distances between histograms.

    Features that are not histograms, those named by `euclidean`, have squared Euclidean distances.
    Of each class the first `per_class` samples are taken, or all.
    """
    views, y = _read_views(paths[0])
    rows = np.sort(np.concatenate([np.flatnonzero(y == c)[:per_class] for c in set(y)]))
    views = {name.removeprefix("X_"): view[rows] for name, view in views.items()}
    kernels = np.empty((len(views), len(rows), len(rows)))
    for kernel, (name, view) in zip(kernels, views.items(), strict=True):
        points = view.astype(float) if name in euclidean else np.sqrt(view, dtype=float)
        distances = euclidean_distances(points, squared=True)
        kernel[:] = _similarity(distances + distances.T)
    return Dataset(paths[0].stem, views, kernels, y[rows], tuple(views))


def distance_kernels(paths: Sequence[Path], n_classes: int, per_class: int) -> Dataset:
    """Make ``exp(-D / mean D)`` of the square matrices ``D...``; samples are in order of class."""
    found: dict[str, np.ndarray] = {}
    for path in paths:
        arrays = read_arrays(path, frozenset(), on_disk=False).arrays
        found |= {name: D for name, D in arrays.items() if name[0] == "D" and D.size > 1}
    kernels = np.array([_similarity(D.astype(float)) for D in found.values()])
    y = np.repeat(np.arange(n_classes), per_class)
    return Dataset(paths[0].stem, None, kernels, y, tuple(found))


def _similarity(distances: np.ndarray) -> np.ndarray:
    """Return ``exp(-D / mean D)``."""
    return np.exp(distances / -distances.mean())


def _authors(*stems: str, variable: str = "KH", suffix: str = "_Kmatrix") -> tuple[Source, ...]:
    """Return the files in which authors store their kernels."""
    text = "The kernels are as their makers stored them."

    def read(paths: Sequence[Path]) -> Dataset:
        return _read(paths[0], variable)

    return tuple(Source((f"{stem}{suffix}.mat",), text, read) for stem in stems)


def _views(file: str, *names: str, bank: dict[str, Any] = ONE_GAUSSIAN) -> Source:
    """Return the file of views, with names for them."""
    one = "One Gaussian kernel per view of the raw features, as wide as the median distance."
    text = one if bank else "The default bank of twelve kernels per view."
    return Source((file,), text, partial(named_views, names=names, bank=bank))


def _histograms(file: str, euclidean: Sequence[str], per_class: int | None = None) -> Source:
    """Return the file of features that were computed anew from the images of the paper."""
    text = (
        "Kernels are exp(-D / mean D), with D the squared Hellinger distance between histograms, "
        f"or the squared Euclidean one ({', '.join(euclidean)})."
    )
    read = partial(histogram_kernels, euclidean=euclidean, per_class=per_class)
    return Source((file,), text, read)


# Where data come from, and sentences about versions that are not the paper's.
_FLOWERS = "the Visual Geometry Group in Oxford, www.robots.ox.ac.uk/~vgg/data/flowers"
_CALTECH = "Caltech-101, www.vision.caltech.edu/Image_Datasets/Caltech101"
_PROTEINS = "mkl.ucsd.edu/dataset/protein-fold-prediction"
_VIDEOS = "Columbia Consumer Video, www.ee.columbia.edu/ln/dvmm/CCV"
_DIGITS = "the UCI repository's Multiple Features; the paper's copy was at ss.sysu.edu.cn/py"
_OTHERS = "collections of multi-view data that researchers pass on; no home page is known"
_OWN = "A substitute: features computed anew from the images, not the kernels of the paper"
_LOW_RANK = "Truncated: methods that use the tail of a spectrum are not comparable to the paper"
_RANK_27, _RANK_20 = (f"Kernels are X X^T of factors X of rank {rank}" for rank in (27, 20))
_MAKERS = Source(
    ("distancematrices17gcfeat06.mat", "distancematrices17itfeat08.mat"),
    "Kernels are exp(-D / mean D) of the distances D that the makers published.",
    partial(distance_kernels, n_classes=17, per_class=80),
)


def _with_fallback(entry: Known, caveat: str, note: str, n: int, *sources: Source) -> list[Known]:
    """Return an entry and the one that is read if no file of the first is there."""
    name = f"{entry.name}-{caveat}"
    facts = {"note": f"{note}.", "n_views": n, "aliases": (), "per_class": None}
    other = replace(entry, name=name, caveat=caveat, sources=sources, **facts)  # type: ignore
    return [replace(entry, fallbacks=(name,)), other]


def _caltech(n: int) -> list[Known]:
    """Return the entries of n images per category of Caltech-101."""
    entry = Known(
        f"cal-{n}",
        f"{n} images of each of the 102 categories of Caltech-101",
        *(102 * n, 48, 102, _CALTECH, _authors(f"caltech101_nTrain{n}_48")),
        aliases=(f"caltech101-{n}", f"caltech-{n}", f"caltech101_nTrain{n}"),
        paper=f"Cal-{n}",
        note=f"The paper lists {15 * n} samples, 25 kernels and {n} classes, but its scores "
        f"belong to 102 classes with {n} samples each.",
        per_class=n,
    )
    if n > 10:
        return [entry]
    note = f"{_OWN}; of each class the first {n} images"
    source = _histograms("caltech101/features.npz", ("gist", "pix16"), n)
    return _with_fallback(entry, "substitute", note, 22, source)


_FLO17 = Known(
    *("flo17", "Images of 17 kinds of flowers", 1360, 7, 17, f"{_FLOWERS}/17"),
    (*_authors("flower17"), _MAKERS),
    ("flower17", "flowers17", "oxford-flower17"),
    "Flo17",
)
_FLO102 = Known(
    *("flo102", "Images of 102 kinds of flowers", 8189, 4, 102, f"{_FLOWERS}/102"),
    _authors("flower102"),
    ("flower102", "flowers102", "oxford-flower102"),
    "Flo102",
)
_PFOLD = Known(
    *("pfold", "Proteins of 27 folds", 694, 12, 27, _PROTEINS, _authors("proteinFold")),
    ("proteinfold",),
    "PFold",
)
_CCV = Known(
    *("ccv", "Videos of 20 kinds of events", 6773, 3, 20, _VIDEOS, _authors("CCV")),
    ("columbia-consumer-video",),
    "CCV",
)
_DIGIT = Known(
    *("digit", "Handwritten numerals: pixels, Fourier coefficients and morphology", 2000, 3, 10),
    _DIGITS,
    (*_authors("UCI_DIGIT", "Digit"), _views("UCI.mat", "pix", "fou", "mor")),
    ("uci-digit", "uci"),
    "Digit",
)
_SIX = _views("Handwritten_6view.mat", "fac", "fou", "kar", "mor", "pix", "zer")
# File, title and sizes of further data sets; those of up to 2,000 samples have twelve kernels.
_MULTIVIEW = (
    ("BBCSport.mat", "News on sports", 544, 2, 5),
    ("3Sources.mat", "News of 3 agencies", 169, 3, 6),
    ("MSRC-v5.mat", "Images of scenes", 210, 5, 7),
    ("COIL20.mat", "Images of objects", 1440, 1, 20),
    ("Hdigit.mat", "Handwritten digits", 10000, 2, 10),
    ("Cora.mat", "Papers and citations", 2708, 4, 7),
)
_ENTRIES = [
    *_with_fallback(
        *(_FLO17, "substitute", _OWN, 7, _histograms("flower17/features.npz", ("hog_fg",)))
    ),
    _FLO102,
    *_with_fallback(
        *(_PFOLD, "truncated", _LOW_RANK, 12),
        *(
            Source((file,), f"{_RANK_27}.", factor_kernels)
            for file in ("ProteinFold.mat", "ProteinFold_v73.mat")
        ),
    ),
    *_with_fallback(
        *(_CCV, "truncated", f"{_LOW_RANK}; some videos are all zero in a factor", 3),
        Source(
            *(("CCV.mat",), f"{_RANK_20}, the diagonal set to 1."),
            partial(factor_kernels, unit_diagonal=True),
        ),
    ),
    _DIGIT,
    *(each for n in (5, 10, 15, 20, 25, 30) for each in _caltech(n)),
    Known(
        *("handwritten", "Handwritten numerals: all six views", 2000, 6, 10, _DIGITS, (_SIX,)),
        aliases=("handwritten-6view", "mfeat"),
    ),
    Known("ar10p", "Faces of ten people", 130, 6, 10, "the AR face database", _authors("AR10P")),
    Known(
        *("jaffe", "Faces of ten women with seven expressions; the classes are the women"),
        *(213, 12, 10, "the Japanese Female Facial Expression database"),
        _authors("jaffe", variable="Ks", suffix="_12kernels"),
    ),
    *(
        Known(
            *(file.removesuffix(".mat").lower(), title, n, m, k, _OTHERS),
            (_views(file, bank=ONE_GAUSSIAN if n > 2000 else {}),),
        )
        for file, title, n, m, k in _MULTIVIEW
    ),
]

# The data sets by name.
KNOWN = {entry.name: entry for entry in _ENTRIES}
for _known in _ENTRIES:
    _entry = Entry(_known.name, partial(read_known, _known), partial(found_name, _known))
    CATALOG.update(dict.fromkeys((_known.name, *_known.aliases), _entry))
