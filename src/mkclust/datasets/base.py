"""What a data set is, and what is handed on between reading a file and understanding it."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


class DatasetError(ValueError):
    """Say in one line what was found in a data set, where, and what to do about it."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Hold several views, or several kernels, of the same samples.

    Attributes
    ----------
    name : str
        Name of the data set; for a file its name without the suffix.
    views : dict of str to ndarray of shape (n, d), or None
        Samples x features, in file order. None where the data are kernels.
    kernels : ndarray of shape (m, n, n), list of m matrices of shape (n, n), or None
        Precomputed kernels, dense or sparse. None where the data are views.
    y : ndarray of shape (n,) or None
        Ground truth where the file has it. It is never used to fit.
    kernel_names : tuple of str
        Names of the views or of the kernels, in order.
    description : str
        What the data are, and what was left aside when reading them.
    """

    name: str
    views: dict[str, Any] | None
    kernels: Any | None
    y: np.ndarray | None
    kernel_names: tuple[str, ...]
    description: str = ""

    def __post_init__(self) -> None:
        if (self.views is None) == (self.kernels is None) or len(self.X) == 0:
            raise DatasetError(f"{self.name}: give either views or kernels, and at least one")
        if len(self.kernel_names) != len(self.X):
            found = f"{len(self.kernel_names)} names for {len(self.X)} views or kernels"
            raise DatasetError(f"{self.name}: {found}; give each a name of its own")
        if self.y is not None and self.y.shape != (self.n_samples,):
            found = f"labels of shape {self.y.shape} for {self.n_samples} samples"
            raise DatasetError(f"{self.name}: {found}; give one label for each, or None")

    @property
    def X(self) -> Any:
        """The views or the kernels: what ``fit`` takes."""
        return self.kernels if self.views is None else self.views

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        first = next(iter(self.X if self.views is None else self.views.values()))
        return int(first.shape[0])

    @property
    def n_classes(self) -> int | None:
        """Number of different labels, or None without labels."""
        return None if self.y is None else len(np.unique(self.y))

    def __repr__(self) -> str:
        kind = "kernels" if self.views is None else "views"
        truth = "no labels" if self.y is None else f"{self.n_classes} classes"
        return f"Dataset({self.name!r}: {len(self.X)} {kind}, {self.n_samples} samples, {truth})"


class Content(NamedTuple):
    """What a file holds, in order, and whether MATLAB's order of axes is to be expected."""

    arrays: dict[str, Any]
    labels: dict[str, Any]
    names: list[str]
    matlab: bool


def inventory(arrays: dict[str, Any], limit: int = 8) -> str:
    """List arrays with their types and shapes, the first few of them."""
    kinds = {name: "text" if a.dtype.kind == "U" else a.dtype.name for name, a in arrays.items()}
    items = [f"{name} {kinds[name]}{list(a.shape)}" for name, a in arrays.items()]
    more = [f"{len(items) - limit} more"] if len(items) > limit else []
    return ", ".join(items[:limit] + more) or "nothing"
