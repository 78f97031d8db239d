"""From named arrays to views or kernels, and labels."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from mkclust.datasets.arrays import Content, inventory, is_hdf5
from mkclust.datasets.dataset import (
    Dataset,
    DatasetError,
    are_labels,
    as_labels,
    check_memory,
)


def as_dataset(
    path: Path,
    content: Content,
    *,
    selected: bool,
    square: bool,
    asked: str | None = None,
) -> Dataset:
    """Decide which arrays are views or kernels, and which vector labels them."""
    labels = {name: _label_vector(array) for name, array in content.labels.items()}
    sizes = [len(vector) for vector in labels.values() if len(vector)]
    stack = _find_stack(path, content, sizes)
    used = stack or _find_tables(path, content, sizes, selected=selected, square=square)
    n = next(iter(used.values())).shape[-2]
    named = (
        name
        for name, vector in labels.items()
        if len(vector) == n
        if (are_labels(vector) if asked is None else name == asked)
    )
    truth = next(named, "")
    held = content.arrays | content.labels
    unused = {name: held[name] for name in held if name not in used and name != truth}
    text = f"Read from {path.name}."
    if unused:
        text += f" Skipped: {inventory(unused)}."

    facts: dict[str, Any] = {
        "y": labels.get(truth),
        "label_name": truth,
        "description": text,
        "kernel_names": tuple(used),
    }
    if stack:
        [(name, kernels)] = stack.items()
        facts["kernel_names"] = tuple(f"{name}_{i + 1}" for i in range(len(kernels)))
        return Dataset(path.stem, None, kernels, **facts)
    if square:
        return Dataset(path.stem, None, list(used.values()), **facts)
    for name, array in used.items():
        if scipy.sparse.issparse(array):
            used[name] = array.tocsr()
    return Dataset(path.stem, used, None, **facts)


def _label_vector(value: Any) -> np.ndarray:
    """Return labels in an array or sparse column; empty if there are none."""
    if scipy.sparse.issparse(value) and min(value.shape) == 1:
        value = value.toarray()
    vector = np.squeeze(np.asarray(value))
    if vector.ndim == 1 and vector.dtype.kind in "biufU":
        return as_labels(vector)
    return np.empty(0)


def _find_stack(path: Path, content: Content, sizes: list[int]) -> dict[str, Any]:
    """Return the kernels of one 3-D array in a file; nothing if it has none."""
    stacks = {}
    for name, array in _numeric(content, 3).items():
        axis = _kernel_axis(array.shape, sizes, content.matlab)
        if axis is not None:
            stacks[name] = np.moveaxis(array, axis, 0)
    # Kernels between samples have the size of the labels, others may not.
    stacks = {name: K for name, K in stacks.items() if K.shape[1] in sizes} or stacks
    if len(stacks) > 1:
        raise DatasetError(
            f"{path}: several 3-D arrays ({inventory(stacks)}); choose one, for "
            f"example {path}::{next(iter(stacks))}"
        )
    stacks = {name: _as_float(path, K) for name, K in stacks.items()}
    # MATLAB stores columns first, products need rows first.
    if content.matlab:
        return {n: np.ascontiguousarray(K) for n, K in stacks.items()}
    return stacks


def _kernel_axis(shape: tuple[int, ...], sizes: list[int], matlab: bool) -> int | None:
    """Return the axis that counts the kernels: the other two are equal."""
    axes = (0, 2, 1)
    if matlab:
        axes = (2, 0, 1)

    for axis in axes:
        rows, columns = shape[:axis] + shape[axis + 1 :]
        # Square arrays whose number is that of the labels are images, not kernels.
        images = shape[axis] in sizes and rows not in sizes
        if rows == columns > 1 and not images:
            return axis
    return None


def _find_tables(
    path: Path, content: Content, sizes: list[int], *, selected: bool, square: bool
) -> dict[str, Any]:
    """Return the arrays with the common number of rows, or say how to select."""
    tables = _numeric(content, 2)
    if square:
        tables = {name: a for name, a in tables.items() if a.shape[0] == a.shape[1]}
    elif not selected:  # a single column may be further labels
        tables = {name: a for name, a in tables.items() if min(a.shape) > 1}
    rows = Counter(a.shape[0] for a in tables.values() if a.shape[0] > 1)
    if not rows:
        held = content.arrays | content.labels
        raise DatasetError(
            f"{path}: no usable array, only {inventory(held)}; it should hold 2-D "
            "arrays (samples x features; square ones, if they are kernels) or a 3-D "
            f"array of kernels; {path.name}::NAME selects a column"
        )
    sizes_named = [
        size for size in sizes if any(size in a.shape for a in tables.values())
    ]
    (n, count), *others = rows.most_common(2)
    if not sizes_named and others and others[0][1] == count:
        raise DatasetError(
            f"{path}: numbers of rows differ ({inventory(tables)}); select those of "
            "the same samples by ::NAME,NAME or store labels y beside them"
        )
    if square and others:
        raise DatasetError(
            f"{path}: kernels of different sizes ({inventory(tables)}); all kernels "
            f"must be over the same samples: select those by {path.name}::NAME,NAME"
        )
    if sizes_named:
        n = sizes_named[0]

    fitting = {}
    for name, array in tables.items():
        if array.shape[0] == n:
            fitting[name] = _as_float(path, array)
        elif array.shape[1] == n and is_hdf5(array):
            raise DatasetError(
                f"{path}: {inventory({name: array})} is transposed; store it samples x "
                "features, or pass on_disk=False to load it"
            )
        elif array.shape[1] == n:
            fitting[name] = _as_float(path, array.T)
    return fitting


def _numeric(content: Content, ndim: int) -> dict[str, Any]:
    """Return the arrays of numbers with some number of axes that are not empty."""
    return {
        name: array
        for name, array in content.arrays.items()
        if array.dtype.kind in "biuf" and array.ndim == ndim and all(array.shape)
    }


def _as_float(path: Path, array: Any) -> Any:
    """Return an array of float32 or float64; one on disk is converted when read."""
    if isinstance(array, np.memmap) or is_hdf5(array):
        return array
    if array.dtype.kind == "f" and array.dtype.itemsize <= 4:
        return array.astype(np.float32, copy=False)
    if array.dtype.kind in "biu" and not scipy.sparse.issparse(array):
        check_memory(path, 8 * array.size)
    return array.astype(np.float64, copy=False)
