"""From named arrays to views or kernels, and labels."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from mkclust.datasets.base import Content, Dataset, DatasetError, check_room, inventory
from mkclust.datasets.on_disk import HDF5View, TableOnDisk, is_hdf5

# Of columns that were left aside without being read, so many are named.
MAX_ASIDE, MORE = 8, "..."


def as_dataset(path: Path, content: Content, *, selected: bool, square: bool) -> Dataset:
    """Decide which arrays are views or kernels, and which vector labels them."""
    labels = {name: _as_labels(path, array) for name, array in content.labels.items()}
    sizes = [len(vector) for vector in labels.values() if len(vector)]
    stack = _find_stack(path, content, sizes)
    used = stack or _find_tables(path, content, sizes, selected=selected, square=square)
    n = next(iter(used.values())).shape[-2]
    truth = next((name for name, vector in labels.items() if len(vector) == n), "")
    held = content.arrays | content.labels
    aside = {name: held[name] for name in held if name not in used and name != truth}
    words = [inventory(aside)] if aside else []
    words += [*content.aside[:MAX_ASIDE], *([MORE] if len(content.aside) > MAX_ASIDE else [])]
    note = f" Left aside: {', '.join(words)}." if words else ""
    description, y = f"Read from {path.name}.{note}", labels.get(truth)
    links = content.linked_files
    if stack:
        [(name, kernels)] = stack.items()
        names = _rename([f"{name}_{i + 1}" for i in range(len(kernels))], content.names)
        return Dataset(path.stem, None, kernels, y, names, description, linked_files=links)
    names = _rename(list(used), content.names)
    if square:
        kernels = [np.asarray(K) if isinstance(K, TableOnDisk) else K for K in used.values()]
        return Dataset(path.stem, None, kernels, y, names, description, linked_files=links)
    views = {n: _as_rows(path, a) for n, a in zip(names, used.values(), strict=True)}
    return Dataset(path.stem, views, None, y, names, description, linked_files=links)


def _as_labels(path: Path, value: Any) -> np.ndarray:
    """Return a vector of labels, whole numbers as integers; empty if it is not a vector."""
    vector = np.squeeze(_as_vector(value))
    if vector.ndim != 1 or vector.dtype.kind not in "biufUS":
        return np.empty(0)
    text = vector.dtype.kind in "US"
    is_integer = not text and np.isfinite(vector).all() and (vector == np.rint(vector)).all()
    return vector.astype(np.int64) if is_integer else vector


def _find_stack(path: Path, content: Content, sizes: list[int]) -> dict[str, Any]:
    """Return the one stack of kernels, kernels first; empty if there is none."""
    stacks = {}
    for name, array in _numeric(content, 3).items():
        if (axis := _kernel_axis(array.shape, sizes, content.matlab)) is not None:
            stacks[name] = _kernels_first(path, name, array, axis)
    # Labels tell the kernels between samples from those between anything else.
    stacks = {name: K for name, K in stacks.items() if K.shape[1] in sizes} or stacks
    if len(stacks) > 1:
        advice = f"choose one, for example {path}::{next(iter(stacks))}"
        raise DatasetError(f"{path}: several 3-D arrays ({inventory(stacks)}); {advice}")
    stacks = {name: _as_float(K) for name, K in stacks.items()}
    # MATLAB lays out columns, products want rows.
    return {n: np.ascontiguousarray(K) for n, K in stacks.items()} if content.matlab else stacks


def _kernels_first(path: Path, name: str, array: Any, axis: int) -> Any:
    """Return a stack of kernels whose first axis counts them; one on disk must be stored so."""
    if axis == 0:
        return array
    if is_hdf5(array):
        problem = f"{inventory({name: array})} is too large to load, and its first axis is not that"
        advice = "store it kernels x samples x samples, or pass on_disk=False to load it all"
        raise DatasetError(f"{path}: {problem} of the kernels; {advice}")
    return np.moveaxis(array, axis, 0)


def _kernel_axis(shape: tuple[int, ...], sizes: list[int], matlab: bool) -> int | None:
    """Return the axis that counts the kernels: the other two are equal."""
    for axis in (2, 0, 1) if matlab else (0, 2, 1):
        rows, columns = shape[:axis] + shape[axis + 1 :]
        # As many square arrays as labels are images, not kernels.
        images = shape[axis] in sizes and rows not in sizes
        if rows == columns > 1 and not images:
            return axis
    return None


def _find_tables(
    path: Path, content: Content, sizes: list[int], *, selected: bool, square: bool
) -> dict[str, Any]:
    """Return the 2-D arrays that share the common number of rows, samples first."""
    tables = _numeric(content, 2)
    if square:
        tables = {name: a for name, a in tables.items() if a.shape[0] == a.shape[1]}
    elif not selected:
        # A lone column of an array may be anything; that of a table is a feature.
        tables = {n: a for n, a in tables.items() if min(a.shape) > 1 or isinstance(a, TableOnDisk)}
    rows = Counter(a.shape[0] for a in tables.values() if a.shape[0] > 1)
    if not rows:
        expected = "square 2-D arrays" if square else "2-D arrays (samples x features)"
        lone = next((f"{path.name}::{name}" for name in _numeric(content, 2)), "::NAME")
        advice = (
            f"it should hold {expected} or a 3-D array of kernels; {lone} selects a lone column"
        )
        held = inventory(content.arrays | content.labels)
        raise DatasetError(f"{path}: no usable array, only {held}; {advice}")
    sizes_named = [size for size in sizes if any(size in a.shape for a in tables.values())]
    (n, count), *others = rows.most_common(2)
    if not sizes_named and others and others[0][1] == count:
        advice = "select those of the same samples by ::NAME,NAME or store labels y beside them"
        raise DatasetError(f"{path}: numbers of rows differ ({inventory(tables)}); {advice}")
    n = sizes_named[0] if sizes_named else n
    fitting = {name: a for name, a in tables.items() if n in a.shape}
    if square:
        return {name: _as_float(a) for name, a in fitting.items()}
    return {name: _samples_first(a, a.shape[0] != n) for name, a in fitting.items()}


def _samples_first(array: Any, turned: bool) -> Any:
    """Return a table of floats, turned around if need be; one on disk is turned row by row."""
    if not is_hdf5(array):
        return _as_float(array.T if turned else array)
    shape = array.shape[::-1] if turned else array.shape
    return HDF5View(array.file.filename, array.name, shape, _float_type(array.dtype), turned)


def _numeric(content: Content, ndim: int) -> dict[str, Any]:
    """Return the nonempty real arrays with so many axes."""
    real = {name: a for name, a in content.arrays.items() if a.dtype.kind in "biuf"}
    return {name: a for name, a in real.items() if a.ndim == ndim and all(a.shape)}


def _as_float(array: Any) -> Any:
    """Return an array in single or double precision; one on disk is left to be read in parts."""
    if isinstance(array, np.memmap | TableOnDisk) or is_hdf5(array):
        return array
    return array.astype(_float_type(array.dtype), copy=False)


def _float_type(dtype: np.dtype) -> type:
    """Return single precision for float16 and float32, double for all else."""
    return np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64


def _as_rows(path: Path, array: Any) -> Any:
    """Return a sparse matrix held by rows, and anything else as it is."""
    if not scipy.sparse.issparse(array):
        return array
    place = f"{path}: a sparse matrix of {array.shape[0]} x {array.shape[1]} as a view"
    # Where every row begins, and the entries with their columns.
    check_room(place, 8 * array.shape[0] + (8 + array.dtype.itemsize) * array.nnz)
    return array.tocsr()


def _as_vector(value: Any) -> np.ndarray:
    """Return an array, and a sparse matrix written out if it is one row or column; else nothing."""
    if not scipy.sparse.issparse(value):
        return np.asarray(value)
    return value.toarray() if min(value.shape) == 1 else np.empty((0, 0))


def _rename(names: list[str], new_names: list[str]) -> tuple[str, ...]:
    """Return the names that the file gives, where they are those of its views."""
    short = [name.removeprefix("X_") for name in names]
    if set(short) <= set(new_names):
        return tuple(short)
    return tuple(new_names if len(new_names) == len(set(new_names)) == len(names) else names)
