"""What a data set is, and what readers of files share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mkclust.linalg.memory import available_bytes, in_units
from mkclust.text import count

# Names of variables and columns that hold the labels of the samples.
LABELS = ("y", "Y", "gnd", "labels")


class DatasetError(ValueError):
    """Say in one line what was found in a data set, where, and what to do about it."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Hold several views, several kernels, or both, of the same samples.

    Attributes
    ----------
    name : str
        Its name; for a file that of the file without the suffix.
    views : dict of str to array-like of shape (n, d), or None
        Samples x features, in file order: arrays, sparse matrices, data frames whose index holds
        the ids, AnnData, or rows on disk. None if there are only kernels.
    kernels : ndarray of shape (m, n, n), list of m matrices of shape (n, n), or None
        Precomputed kernels, dense, sparse or on disk; `X` if there are also views.
    y : ndarray of shape (n,) or None
        Ground truth if the file has it. It is never used to fit.
    kernel_names : tuple of str
        Names of what `X` holds, the views or the kernels, in order.
    description : str
        What the data are, and what was skipped when reading them.
    caveat : {"", "substitute", "truncated"}
        "substitute" for other features of the same samples than those of the paper, "truncated" for
        kernels of reduced rank. Scores on these data have to be shown with it.
    paper : str
        Name of the data set in the tables of the SimpleMKKM paper, or "".
    bank : dict or None
        Parameters of `mkclust.KernelBank` by which kernels are made from the views. None: one
        Gaussian kernel per view for several views, the default bank for one.
    dropped : tuple of str
        Columns that were dropped on request.
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
    dropped: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.X is None or len(self.X) == 0:
            raise DatasetError(f"{self.name}: give views or kernels, and at least one")
        rows = {view.shape[0] for view in (self.views or {}).values()} | {self.n_samples}
        problem = ""
        if len(self.kernel_names) != len(self.X):
            problem = f"{len(self.kernel_names)} names for {len(self.X)} views or kernels"
        elif self.precomputed and len(rows) > 1:
            problem = f"kernels of {self.n_samples} samples, but views of {sorted(rows)} rows"
        elif self.y is not None and self.y.shape != (self.n_samples,):
            problem = f"labels of shape {self.y.shape} for {self.n_samples} samples"
        if problem:
            raise DatasetError(f"{self.name}: {problem}; the numbers must be equal")

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


def whole_labels(labels: np.ndarray) -> np.ndarray:
    """Return labels that are whole numbers as integers, others as they are."""
    if labels.dtype.kind in "US" or not np.isfinite(labels).all():
        return labels
    return labels.astype(np.int64) if (labels == np.rint(labels)).all() else labels


def check_memory(place: str | Path, n_bytes: int, free: int | None = None) -> None:
    """Refuse what does not fit twice into the memory that is free: a fit works on a copy."""
    free = available_bytes() if free is None else free
    if free is not None and 2 * n_bytes > free:
        raise DatasetError(
            f"{place} would take {in_units(n_bytes)} of memory, and as much again to work with, "
            f"and {in_units(free)} are free; store it as .npy, .h5 or .parquet, which stay on disk"
        )


def missing_package(path: Path, package: str, extra: str) -> DatasetError:
    """Return the error that names the package by which a file is read."""
    return DatasetError(f'{path}: reading it needs {package}: pip install "mkclust[{extra}]"')
