"""What the catalog knows of a data set, and how its files are found and read."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mkclust.datasets.base import Dataset, DatasetError
from mkclust.datasets.recipes import Recipe

VARIABLE = "MKCLUST_DATA"


class Way(NamedTuple):
    """One way to read a data set.

    Attributes
    ----------
    files : tuple of str
        Names of the files it takes, all of them. None: the data come with the library.
    kernels : str
        How the kernels are made from what the files hold, in words.
    read : callable
        Makes the data set of the paths of the files.
    """

    files: tuple[str, ...]
    kernels: str
    read: Recipe


@dataclass(frozen=True)
class Entry:
    """Say what a data set is, where it comes from and how to read it.

    Attributes
    ----------
    name : str
        The name under which `load` knows it.
    title : str
        What the data are.
    n_samples, n_views, n_clusters : int
        Its sizes; `n_views` counts the kernels where it has kernels.
    origin : str
        Where the data come from.
    ways : tuple of Way
        Ways to read it, the best first.
    aliases : tuple of str
        Further names. Case, ``-``, ``_`` and blanks never matter.
    paper : str
        Its name in the tables of the SimpleMKKM paper; empty where it has none.
    caveat : {"", "substitute", "truncated"}
        What has to be said wherever its scores appear.
    stand_ins : tuple of str
        Names of the entries that `load` gives where no file of this one is there.
    note : str
        What else to know about it.
    per_class : int or None
        Samples of every class, where files of other sizes are in use; see `note`.
    """

    name: str
    title: str
    n_samples: int
    n_views: int
    n_clusters: int
    origin: str
    ways: tuple[Way, ...] = field(repr=False)
    aliases: tuple[str, ...] = ()
    paper: str = ""
    caveat: str = ""
    stand_ins: tuple[str, ...] = ()
    note: str = ""
    per_class: int | None = None

    def present(self) -> bool:
        """Tell whether files of the data set itself, not of a stand-in, are there.

        Returns
        -------
        bool
            True also where it comes with the library.
        """
        return self.find() is not None

    def find(self) -> tuple[Way, list[Path]] | None:
        """Return the best way whose files are all there, and their paths.

        Returns
        -------
        tuple of Way and list of Path, or None
            None where no way has all its files.
        """
        for way in self.ways:
            paths = [path for name in way.files if (path := _locate(name)) is not None]
            if len(paths) == len(way.files):
                return way, paths
        return None

    def read(self, way: Way, paths: list[Path]) -> Dataset:
        """Read the data set from files, and check that it is the one meant.

        Parameters
        ----------
        way : Way
            How to read it.
        paths : list of Path
            The files that the way takes.

        Returns
        -------
        Dataset
            Under the name of this entry, with its caveat.
        """
        data = way.read(paths)
        self._check(data, " and ".join(map(str, paths)) or self.name)
        description = " ".join(filter(None, (f"{self.title}.", way.kernels, self.note)))
        return replace(
            data,
            name=self.name,
            caveat=self.caveat,
            paper=self.paper,
            description=description,
        )

    def _check(self, data: Dataset, place: str) -> None:
        """Refuse data of other sizes than those of this data set."""
        if data.y is None:
            raise DatasetError(f"{place}: holds no labels; {self.name} should have them in Y")
        counts = (data.n_samples, len(data.X), data.n_classes)
        if self.per_class is not None:
            sizes = set(np.unique(data.y, return_counts=True)[1].tolist())
            # The paper's own table lists this many classes, of 15 samples each.
            is_part = data.n_classes == self.per_class and sizes == {15}
            fits = is_part or (data.n_classes == self.n_clusters and sizes == {self.per_class})
        else:
            fits = counts == (self.n_samples, self.n_views, self.n_clusters)
        if not fits:
            description = "found {} samples, {} views or kernels and {} classes".format(*counts)
            expected = f"{self.n_samples}, {self.n_views} and {self.n_clusters}"
            advice = "check that it is the file meant, or load it by its path"
            raise DatasetError(f"{place}: {description}, but {self.name} has {expected}; {advice}")

    def describe(self) -> str:
        """Say in a few lines what the data set is and which files it takes.

        Returns
        -------
        str
            Lines of text.
        """
        kind = f"{self.n_samples} samples, {self.n_views} views or kernels"
        lines = [f"{self.name}: {self.title}", f"  {kind}, {self.n_clusters} classes"]
        lines.append(f"  from {self.origin}")
        files = [f" Files: {' and '.join(way.files)}" if way.files else "" for way in self.ways]
        lines += [f"  {way.kernels}{names}" for way, names in zip(self.ways, files, strict=True)]
        lines += [f"  {self.note}"] if self.note else []
        return "\n".join(lines)


def data_folder() -> Path | None:
    """Return the folder in which data sets are looked for, or None without one."""
    named = os.environ.get(VARIABLE)
    folder = Path(named).expanduser() if named else None
    return folder if folder is not None and folder.is_dir() else None


def _locate(name: str) -> Path | None:
    """Find a file in the data folder or one folder deep, without regard to case."""
    lower = name.lower()
    for path in _files():
        if path.name.lower() == lower or f"{path.parent.name}/{path.name}".lower() == lower:
            return path
    return None


def _files() -> Iterator[Path]:
    """List the files of the data folder, then those of its folders, in order of their names."""
    folder = data_folder()
    if folder is not None:
        for pattern in ("*", "*/*"):
            yield from (path for path in sorted(folder.glob(pattern)) if path.is_file())
