"""What a data set is, and what readers of files share."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mkclust.exceptions import warn
from mkclust.linalg.memory import available_bytes, in_units
from mkclust.text import count, join_words

# Names of variables and columns that hold the labels of the samples, if they have few
# values.
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
        Samples x features, in file order: arrays, sparse matrices, data frames whose
        index holds the ids, AnnData, or rows on disk. None if there are only kernels.
    kernels : ndarray of shape (m, n, n), list of m matrices of shape (n, n), or None
        Precomputed kernels, dense, sparse or on disk; `X` if there are also views.
    y : ndarray of shape (n,) or None
        Ground truth if the file has it. It is never used to fit.
    label_name : str
        Name of the column or variable that `y` was read from, or "".
    kernel_names : tuple of str
        Names of what `X` holds, the views or the kernels, in order.
    description : str
        What the data are, and what was skipped when reading them.
    caveat : {"", "substitute", "truncated"}
        How the data differ from those of the paper: other features, or kernels of
        reduced rank.
    paper : str
        Name of the data set in the tables of the SimpleMKKM paper, or "".
    bank : dict or None
        Parameters of `mkclust.KernelBank` for these views. None: the default.
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
    label_name: str = ""

    def __post_init__(self) -> None:
        if self.y is not None and self.y.shape != (self.n_samples,):
            raise DatasetError(
                f"{self.name}: labels of shape {self.y.shape} for {self.n_samples} "
                "samples; give one label per sample"
            )

    @property
    def X(self) -> Any:
        """The kernels, or else the views: what ``fit`` takes."""
        return self.kernels if self.precomputed else self.views

    @property
    def precomputed(self) -> bool:
        """Whether ``X`` holds kernels."""
        return self.kernels is not None

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.arrays[0].shape[0])

    @property
    def arrays(self) -> Any:
        """The kernels or views one by one, in the order of `kernel_names`."""
        if self.precomputed:
            return self.kernels
        return list((self.views or {}).values())

    @property
    def n_classes(self) -> int | None:
        """Number of different labels, or None without labels."""
        return None if self.y is None else len(np.unique(self.y))

    def __repr__(self) -> str:
        parts = [count(len(self.X), "kernel" if self.precomputed else "view")]
        parts.append(f"{self.n_samples} samples")
        parts.append("no labels" if self.y is None else f"{self.n_classes} classes")
        if self.caveat:
            parts.append(self.caveat)
        return f"Dataset({self.name!r}: {', '.join(parts)})"


def as_labels(values: Any) -> np.ndarray:
    """Return labels: integers, other numbers as they are, or text."""
    column = pd.Series(values)
    if column.dtype.kind not in "biuf":
        return column.astype(object).where(column.notna(), "").astype(str).to_numpy(str)
    labels = column.to_numpy()
    is_whole = np.isfinite(labels).all() and (labels == np.rint(labels)).all()
    if is_whole:
        return labels.astype(np.int64)
    return labels


def labeled(data: Dataset, columns: Any, names: Sequence[str]) -> Dataset:
    """Return data with the first of some columns as labels, if there is one."""
    if not names:
        return data
    return replace(data, y=as_labels(columns[names[0]]), label_name=names[0])


def are_labels(values: Any) -> bool:
    """Return whether a column has so few different values that they may be classes.

    >>> are_labels([1, 1, 2, 2]), are_labels([0.1, 0.7, 0.4, 0.2])
    (True, False)
    """
    known = pd.Series(values).dropna()
    n_different = known.nunique()
    has_fractions = known.dtype.kind == "f" and (known % 1 != 0).any()
    # Classes are there twice on average, and fractions among them are few.
    if has_fractions and n_different > 20:
        return False
    return n_different <= 2 or 2 * n_different <= len(known)


def find_labels(
    columns: Mapping[str, Any],
    asked: str | None,
    features: Collection[str] = (),
    path: Path | None = None,
) -> list[str]:
    """Return the names of the labels among columns; `asked` names them, "" none.

    What was selected as a feature by its name is one. If the columns are those of a
    file, a warning names those that are called like labels and have too many values.
    """
    if asked is not None:
        return [name for name in columns if name == asked]
    named = [name for name in LABELS if name in columns and name not in features]
    names = [name for name in named if are_labels(columns[name])]
    others = [name for name in named if name not in names]
    if path is not None and others and not features:
        held = join_words(
            f"{name} ({pd.Series(columns[name]).nunique():,})" for name in others
        )
        warn(
            f"{path}: many different values in {held}, taken for a feature and not for "
            f"labels: drop=[{others[0]!r}] (--drop {others[0]}) leaves it out, and "
            f"labels={others[0]!r} in load takes it for labels"
        )
    return names


def check_memory(place: str | Path, n_bytes: int) -> None:
    """Refuse what does not fit into free memory twice: a fit works on a copy."""
    free = available_bytes()
    if free is not None and 2 * n_bytes > free:
        raise DatasetError(
            f"{place} would take {in_units(n_bytes)} of memory, and as much again to "
            f"work with, and {in_units(free)} are free; store it as .npy, .h5 or "
            ".parquet, which stay on disk"
        )
