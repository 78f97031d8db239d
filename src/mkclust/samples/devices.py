"""The way to a device: kernels or views of the host, copied there if they fit."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mkclust.linalg import empty, free_bytes, is_foreign, namespace, place, ranges
from mkclust.linalg import to_device as to_same_device
from mkclust.linalg.arrays import detached, is_sparse_tensor, on_torch_device
from mkclust.linalg.memory import require_memory
from mkclust.samples.forms import TABLE, check_masks, named_parts
from mkclust.samples.samples import read_views
from mkclust.types import Array

# Bytes that are under way at a time: what a copy takes beside the two arrays.
COPIED_BYTES = 256 << 20
# What a solve takes beside the kernels and one mix of them, as a share of the kernels.
SOLVE_SHARE = 0.1
# Number types that are computed with as they are; others are converted by a fit.
COMPUTED = ("float32", "float64")
# A type of half precision that NumPy does not know.
HALF = "bfloat16"


def to_device(X: Any, device: Any = None, *, like: Any = None, dtype: Any = None) -> Any:
    """Copy kernels or views to a device, in the form in which they are given.

    What does not fit is refused before anything is copied, with how much it takes and how much
    is there. Kernels must leave room for what a solve holds beside them: one mix, and a tenth.

    Parameters
    ----------
    X : array of shape (m, n, n), list or dict of matrices or views, or table of shape (n, d)
        What ``fit`` takes, dense: NumPy arrays, memory maps and HDF5 datasets, of which some rows
        are read at a time, or data frames of numbers.
    device : str or torch.device, default=None
        Where torch puts it, such as "cuda", "cuda:1" or "cpu".
    like : array of any library, default=None
        An array that says where instead: beside it, by its library and on its device. With a
        NumPy array things come back to the host.
    dtype : {"float32", "float64"}, default=None
        The number type to convert to on the way; None keeps that of each array. float32 takes
        half the memory.

    Returns
    -------
    array, list, tuple or dict
        A list of a list, a dict of a dict, an array of an array. What is there already, in that
        type, is not copied.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import SimpleMKKM
    >>> from mkclust.datasets import load
    >>> from mkclust.samples.devices import to_device
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> copies = to_device(views, like=np.empty(0), dtype="float32")  # or to_device(views, "cuda")
    >>> {str(view.dtype) for view in copies.values()}
    {'float32'}
    >>> SimpleMKKM(n_clusters=10, random_state=0).fit(copies).labels_.shape
    (300,)
    """
    if (device is None) == (like is None):
        raise ValueError(
            "pass one of the two: device, such as 'cuda', or like, an array that is there already"
        )
    if like is None:
        like = on_torch_device(device)
    elif not (isinstance(like, np.ndarray) or is_foreign(like)):
        raise TypeError(f"like={like!r} is no array: pass one, or a device by device={like!r}")
    requested = None if dtype is None else _type_name(dtype)
    if isinstance(X, Mapping | list | tuple) and not issparse(X) and not X:
        raise ValueError(f"X is an empty {type(X).__name__}: pass at least one kernel or view")
    for name, part in named_parts(X).items():
        check_masks(part, _title(name, X))
    named = read_views(X, compact=False).by_name
    parts = [_sliceable(part, _title(name, X)) for name, part in named.items()]
    types = [requested or _type_of(part) for part in parts]
    for part, name, dtype_name in zip(parts, named, types, strict=True):
        _check_type(part, dtype_name, like, _title(name, X))
    _require_room(parts, types, like)
    copies = _copy_all(parts, types, like)
    if isinstance(X, Mapping):
        # Categories of a data frame are a view more than there were tables.
        keys = X if len(X) == len(copies) else named
        return dict(zip(keys, copies, strict=True))
    if list(named) == [TABLE]:
        return copies[0]
    if TABLE in named:  # one table, and its categories
        return dict(zip(named, copies, strict=True))
    return tuple(copies) if isinstance(X, tuple) else copies


def _type_name(dtype: Any) -> str:
    """Return the name of a number type that kernels and views may be converted to."""
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = str(dtype).rpartition(".")[2]  # torch's own
    if name not in COMPUTED:
        raise ValueError(f"dtype={dtype!r}: pass 'float32', 'float64', or None to keep the type")
    return name


def _title(name: str, X: Any) -> str:
    """Return how a message calls a part of X."""
    return "X" if name == TABLE and not isinstance(X, Mapping) else repr(name)


def _sliceable(part: Any, who: str) -> Any:
    """Return something with a shape and a type that is read by rows, or say why it is none."""
    if issparse(part) or is_sparse_tensor(part):
        dense = ".toarray()" if issparse(part) else ".to_dense()"
        raise TypeError(
            f"{who} is a sparse matrix, and what goes to a device is dense: pass its {dense} if "
            "that fits, or leave it on the host"
        )
    if hasattr(part, "dask"):
        raise TypeError(
            f"{who} is a dask array, which stays with its workers: pass its .compute() if it fits"
        )
    is_array = all(hasattr(part, name) for name in ("shape", "dtype", "__getitem__"))
    if not is_array or hasattr(part, "columns"):
        part = np.asarray(part)
    if len(part.shape) < 2:
        raise ValueError(
            f"{who} has the shape {tuple(part.shape)}: pass kernels or views, of two dimensions "
            "or more"
        )
    if not is_foreign(part) and np.dtype(part.dtype).kind not in "biufc":
        raise TypeError(f"{who} has the type {part.dtype}: pass kernels or views of numbers")
    if "complex" in str(part.dtype):
        raise TypeError(f"{who} has the type {part.dtype}: pass real kernels or views")
    return detached(part)


def _type_of(part: Any) -> str:
    """Return the name of the number type of an array of any library."""
    return str(part.dtype).rpartition(".")[2] if is_foreign(part) else np.dtype(part.dtype).name


def _check_type(part: Any, dtype_name: str, like: Any, who: str) -> None:
    """Refuse a number type that the library there does not know, or the host on the way."""
    can_travel = place(part) == place(like) or dtype_name != HALF
    if not can_travel or not hasattr(namespace(like), dtype_name):
        raise ValueError(
            f"{who} has the type {part.dtype}, which cannot be brought to {place(like)}: pass "
            "dtype='float32' or 'float64'"
        )


def _is_in_place(part: Any, dtype_name: str, like: Any) -> bool:
    """Return whether an array need not be copied."""
    return place(part) == place(like) and _type_of(part) == dtype_name


def _require_room(parts: Sequence[Any], types: Sequence[str], like: Any) -> None:
    """Refuse what does not fit, counting what a solve holds beside kernels."""
    needed = sum(
        _bytes(part, dtype_name)
        for part, dtype_name in zip(parts, types, strict=True)
        if not _is_in_place(part, dtype_name, like)
    )
    if not needed:
        return
    lighter = "" if set(types) == {"float32"} else "dtype='float32', "
    n, first = int(parts[0].shape[-1]), parts[0]
    if {tuple(part.shape[-2:]) for part in parts} == {(n, n)} and len(first.shape) <= 3:
        m = int(first.shape[0]) if len(first.shape) == 3 else len(parts)
        solved = list(map(_computed_type, types))
        kernel_bytes = list(map(_bytes, parts, solved))
        # A fit converts all other types to one of the two it computes in, which is a copy.
        pairs = zip(kernel_bytes, solved, types, strict=True)
        needed += sum(size for size, computed, stored in pairs if computed != stored)
        needed += int((1 / m + SOLVE_SHARE) * sum(kernel_bytes))
        purpose = f"copying {m} kernels of {n:,} samples to {place(like)} and solving there"
        advice = (
            f"pass {lighter}fewer samples, or the views with kernels='on-the-fly' or "
            "approximation=Nystroem()"
        )
    else:
        purpose = f"copying {len(parts)} views to {place(like)}"
        advice = f"pass {lighter}fewer columns, or leave the views on the host"
    require_memory(needed, purpose, advice, available=free_bytes(like))


def _computed_type(dtype_name: str) -> str:
    """Return the number type that a fit computes in: for half precision the single one."""
    if dtype_name in COMPUTED:
        return dtype_name
    return "float32" if "float16" in dtype_name else "float64"


def _bytes(part: Any, dtype_name: str) -> int:
    """Return how much memory an array takes in a number type."""
    return math.prod(part.shape) * (2 if dtype_name == HALF else np.dtype(dtype_name).itemsize)


def _copy_all(parts: Sequence[Any], types: Sequence[str], like: Any) -> list[Array]:
    """Return arrays beside ``like``: all of them, or none."""
    copies: list[Array] = []
    try:
        for part, dtype_name in zip(parts, types, strict=True):
            copies.append(
                part if _is_in_place(part, dtype_name, like) else _copy(part, dtype_name, like)
            )
    except BaseException:
        copies.clear()  # an error that is kept to be read would keep them, too
        raise
    return copies


def _copy(part: Any, dtype_name: str, like: Any) -> Array:
    """Return one array beside ``like``, copied some rows at a time."""
    shape = tuple(map(int, part.shape))
    target = empty(shape, like, dtype_name)
    height = max(
        1, COPIED_BYTES // max(1, _bytes(part, dtype_name) // max(1, math.prod(shape[:-1])))
    )
    try:
        for front in np.ndindex(*shape[:-2]):
            for rows in ranges(shape[-2], height):
                target[(*front, rows, slice(None))] = to_same_device(
                    _read(part, front, rows, dtype_name), like
                )
    except BaseException:
        del target
        raise
    return target


def _read(part: Any, front: tuple[int, ...], rows: slice, dtype_name: str) -> Array:
    """Return some rows of an array, in a number type, in memory of the host or of its device."""
    if is_foreign(part):
        block = part[(*front, rows, slice(None))]
        xp = namespace(block)
        return xp.astype(block, getattr(xp, dtype_name), copy=False)
    block = np.ascontiguousarray(part[(*front, rows) if front else rows], dtype=dtype_name)
    # Other libraries take no arrays that cannot be written to without a warning.
    return block if block.flags.writeable else block.copy()
