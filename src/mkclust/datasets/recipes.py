"""From the files of a known data set to its views and kernels."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.metrics.pairwise import euclidean_distances

from mkclust.datasets.base import Dataset, DatasetError
from mkclust.datasets.files import read_file
from mkclust.datasets.interpret import as_dataset

# What makes a data set of its files: their paths, in the order in which the catalog names them.
Recipe = Callable[[Sequence[Path]], Dataset]

# Parameters of KernelBank: the raw features, a Gaussian as wide as the median distance.
ONE_GAUSSIAN: dict[str, Any] = {"widths": (1.0,), "polynomials": (), "linear": None}
TWELVE_KERNELS: dict[str, Any] = {}


def ready_kernels(variable: str = "KH") -> Recipe:
    """Read a stack of kernels, and the labels beside it."""

    def read(paths: Sequence[Path]) -> Dataset:
        [path] = paths
        data = as_dataset(path, read_file(path, frozenset({variable})), selected=True, square=False)
        if data.kernels is None:
            problem = f"{variable} is not a stack of square kernels"
            raise DatasetError(f"{path}: {problem}; it should have the shape samples x samples x m")
        return data

    return read


def views(names: Sequence[str] = (), *, bank: dict[str, Any] | None = None) -> Recipe:
    """Read views, give them their names, and note the bank that makes their kernels."""

    def read(paths: Sequence[Path]) -> Dataset:
        data = _read_views(paths)
        assert data.views is not None
        view_names = tuple(names) or data.kernel_names
        if len(view_names) != len(data.views):
            advice = f"expected the {len(view_names)} views {', '.join(view_names)}"
            raise DatasetError(f"{paths[0]}: found {len(data.views)} views; {advice}")
        named = dict(zip(view_names, data.views.values(), strict=True))
        # A copy, since what a caller changes in it must not reach the next data set.
        return Dataset(
            data.name, named, None, data.y, view_names, bank=None if bank is None else {**bank}
        )

    return read


def factor_kernels(*, unit_diagonal: bool = False) -> Recipe:
    """Multiply factors of reduced rank back to kernels ``X X^T``."""

    def read(paths: Sequence[Path]) -> Dataset:
        data = _read_views(paths)
        factors = list((data.views or {}).values())
        kernels = np.empty((len(factors), data.n_samples, data.n_samples))
        for kernel, factor in zip(kernels, factors, strict=True):
            np.matmul(factor, factor.T, out=kernel)
            if unit_diagonal:
                np.fill_diagonal(kernel, 1)
        names = tuple(f"K_{i + 1}" for i in range(len(factors)))
        return Dataset(data.name, None, kernels, data.y, names)

    return read


def histogram_kernels(*, euclidean: Sequence[str], per_class: int | None = None) -> Recipe:
    """Make ``exp(-D / mean D)`` of squared Hellinger distances between histograms.

    Features that are no histograms, those named by `euclidean`, have squared Euclidean
    distances. Of each class the first `per_class` samples are taken, or all.
    """

    def read(paths: Sequence[Path]) -> Dataset:
        data = _read_views(paths)
        assert data.views is not None
        assert data.y is not None
        rows = np.arange(data.n_samples)
        if per_class is not None:
            rows = np.sort(np.concatenate([rows[data.y == c][:per_class] for c in set(data.y)]))
        features = {name: view[rows] for name, view in data.views.items()}
        kernels = np.empty((len(features), len(rows), len(rows)))
        for kernel, (name, view) in zip(kernels, features.items(), strict=True):
            points = view.astype(np.float64) if name in euclidean else np.sqrt(view, dtype=float)
            distances = euclidean_distances(points, squared=True)
            # Rounding leaves them symmetric only nearly.
            np.add(distances, distances.T, out=kernel)
            _exponential(kernel)
        return Dataset(data.name, features, kernels, data.y[rows], data.kernel_names)

    return read


def distance_kernels(n_classes: int, per_class: int) -> Recipe:
    """Make ``exp(-D / mean D)`` of the square matrices ``D...``; samples are in order of class."""

    def read(paths: Sequence[Path]) -> Dataset:
        distances: dict[str, np.ndarray] = {}
        for path in paths:
            for name, array in read_file(path, frozenset()).arrays.items():
                dense = isinstance(array, np.ndarray) and array.dtype.kind in "iuf"
                square = array.ndim == 2 and array.shape[0] == array.shape[1] > 1
                if not (name.startswith("D") and dense and square):
                    continue
                if name in distances:
                    advice = "both files hold it; check that they are two different files"
                    raise DatasetError(f"{path}: a second matrix of distances {name}; {advice}")
                distances[name] = array
        shapes = ", ".join(f"{name} {list(D.shape)}" for name, D in distances.items())
        n = n_classes * per_class
        if not distances or any(len(D) != n for D in distances.values()):
            expected = f"{n} x {n} distances, in matrices whose names start with D"
            raise DatasetError(f"{paths[0]}: expected {expected}; found {shapes or 'none'}")
        kernels = np.array(list(distances.values()), dtype=np.float64)
        for kernel in kernels:
            _exponential(kernel)
        y = np.repeat(np.arange(n_classes), per_class)
        return Dataset(paths[0].stem, None, kernels, y, tuple(distances))

    return read


def _read_views(paths: Sequence[Path]) -> Dataset:
    """Read one file of views and labels."""
    [path] = paths
    data = as_dataset(path, read_file(path, frozenset()), selected=False, square=False)
    if data.views is None or data.y is None:
        missing = "views" if data.views is None else "labels"
        raise DatasetError(f"{path}: holds no {missing}; check that it is the file meant")
    # Published data are small, and code that was written for them expects arrays.
    arrays = {n: v.toarray() if issparse(v) else v for n, v in data.views.items()}
    return replace(data, views=arrays)


def _exponential(distances: np.ndarray) -> None:
    """Turn distances into similarities in place, measured by their mean."""
    distances /= -distances.mean()
    np.exp(distances, out=distances)
