"""What a data set is, and what is handed on between reading a file and understanding it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mkclust.linalg.memory import available_bytes, in_units
from mkclust.text import count

# What a file calls the labels of its samples.
LABELS = ("y", "Y", "gnd", "labels")


class DatasetError(ValueError):
    """Say in one line what was found in a data set, where, and what to do about it."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Hold several views, several kernels, or both, of the same samples.

    Attributes
    ----------
    name : str
        Name of the data set; for a file its name without the suffix.
    views : dict of str to ndarray of shape (n, d), or None
        Samples x features, in file order. None where the data are only kernels. What stays on
        disk has a shape, and gives rows when it is sliced by them. Tables are data frames whose
        index are the ids of the samples, or AnnData.
    kernels : ndarray of shape (m, n, n), list of m matrices of shape (n, n), or None
        Precomputed kernels, dense or sparse, or HDF5 data sets. None where the data are only views.
        Beside views they are kernels that were made from these, and `X` is the kernels.
    y : ndarray of shape (n,) or None
        Ground truth where the file has it. It is never used to fit.
    kernel_names : tuple of str
        Names of what `X` holds, the views or the kernels, in order.
    description : str
        What the data are, and what was left aside when reading them.
    caveat : {"", "substitute", "truncated"}
        What has to be said wherever scores on these data appear: "substitute" for other features
        of the same samples than those of the paper, "truncated" for kernels of reduced rank.
    paper : str
        Name of the data set in the tables of the SimpleMKKM paper; empty where it has none.
    bank : dict or None
        Parameters of `mkclust.KernelBank` by which kernels are made from the views. None: one
        Gaussian kernel a view for several views, the default bank for one.
    linked_files : tuple of str
        Absolute paths of further files that were read, because links in an HDF5 file lead there.
    dropped : tuple of str
        Columns of a table that were left aside because it was asked for.
    """

    name: str
    views: dict[str, Any] | None
    kernels: Any | None
    y: np.ndarray | None
    kernel_names: tuple[str, ...]
    description: str = ""
    caveat: str = ""
    paper: str = ""
    bank: dict[str, Any] | None = None
    linked_files: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.X is None or len(self.X) == 0:
            raise DatasetError(f"{self.name}: give views or kernels, and at least one")
        if len(self.kernel_names) != len(self.X):
            problem = f"{len(self.kernel_names)} names for {len(self.X)} views or kernels"
            raise DatasetError(f"{self.name}: {problem}; give each a name of its own")
        rows = {view.shape[0] for view in (self.views or {}).values()} | {self.n_samples}
        if self.precomputed and len(rows) > 1:
            problem = f"kernels of {self.n_samples} samples beside views of {sorted(rows)} rows"
            raise DatasetError(f"{self.name}: {problem}; give both for the same samples")
        if self.y is not None and self.y.shape != (self.n_samples,):
            problem = f"labels of shape {self.y.shape} for {self.n_samples} samples"
            raise DatasetError(f"{self.name}: {problem}; give one label for each, or None")

    @property
    def X(self) -> Any:
        """The kernels, or else the views: what ``fit`` takes."""
        return self.views if self.kernels is None else self.kernels

    @property
    def precomputed(self) -> bool:
        """Whether ``X`` holds kernels."""
        return self.kernels is not None

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        # Not by asking for the first kernel of a stack, which may be on disk.
        if (shape := getattr(self.kernels, "shape", None)) is not None:
            return int(shape[1])
        first = next(iter(self.X if self.precomputed else self.X.values()))
        return int(first.shape[0])

    @property
    def n_classes(self) -> int | None:
        """Number of different labels, or None without labels."""
        return None if self.y is None else len(np.unique(self.y))

    def __repr__(self) -> str:
        parts = [count(len(self.X), "kernel" if self.precomputed else "view")]
        parts.append(f"{self.n_samples} samples")
        parts.append("no labels" if self.y is None else f"{self.n_classes} classes")
        return f"Dataset({self.name!r}: {', '.join(parts + [self.caveat] * bool(self.caveat))})"


class Tree(NamedTuple):
    """What a reader makes of a file: groups are dicts, cells are lists, and all else is arrays.

    Beside it: whether MATLAB's order of axes is to be expected, what was not even read, in words,
    and the paths of further files that were read.
    """

    content: dict[str, Any]
    matlab: bool
    aside: tuple[str, ...] = ()
    linked_files: tuple[str, ...] = ()


class Content(NamedTuple):
    """What a file holds, in order, and whether MATLAB's order of axes is to be expected.

    Beside arrays, labels and names of the views: what was not even read, in words, and the paths of
    further files that were read.
    """

    arrays: dict[str, Any]
    labels: dict[str, Any]
    names: list[str]
    matlab: bool
    aside: tuple[str, ...] = ()
    linked_files: tuple[str, ...] = ()


def check_room(place: str, n_bytes: int, held: int = 0) -> None:
    """Refuse to read what does not fit into memory together with a copy to work with.

    Parameters
    ----------
    place : str
        What it is, and the file it is in.
    n_bytes : int
        What it takes.
    held : int, default=0
        How much of it is in memory already.
    """
    free_bytes = available_bytes()
    if free_bytes is not None and 2 * n_bytes - held > free_bytes:
        advice = "check that the file is sound, or store it as .npy or .h5, which stay on disk"
        problem = (
            f"would take {in_units(n_bytes)} of memory, and as much again to work with, and "
            f"{in_units(free_bytes)} are free"
        )
        raise DatasetError(f"{place} {problem}; {advice}")


def bytes_as_floats(shape: Sequence[int], dtype: np.dtype) -> int:
    """Return what an array takes; whole numbers become float64 beside it."""
    return math.prod(shape) * (dtype.itemsize + 8 * (dtype.kind in "biu"))


def inventory(arrays: dict[str, Any], limit: int = 8) -> str:
    """List arrays with their types and shapes, the first few of them."""
    kinds = {name: "text" if a.dtype.kind == "U" else a.dtype.name for name, a in arrays.items()}
    items = [f"{name} {kinds[name]}{list(a.shape)}" for name, a in arrays.items()]
    more = [f"{len(items) - limit} more"] if len(items) > limit else []
    return ", ".join(items[:limit] + more) or "nothing"
