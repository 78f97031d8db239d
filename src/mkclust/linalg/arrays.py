"""Arrays of any library: devices, transfers, and functions that all libraries share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from typing import Any

import array_api_compat
import array_api_compat.numpy
import numpy as np
from array_api_compat import is_cupy_array, is_torch_array
from scipy.sparse import issparse

from mkclust.exceptions import warn
from mkclust.types import Array

# Relative rounding of double precision.
EPS = float(np.finfo(np.float64).eps)
# The functions for each type of array: they are asked for millions of times.
_LIBRARIES: dict[type, Any] = {}
# Similarities among which neighbors are looked for at a time on a host, and at least
# the rows of these: many, since sparse matrices take long to begin with.
BLOCK_PAIRS, FEWEST_ROWS = 2**20, 64
# With fewer samples, compiling code in Triton, which comes with torch, takes longer
# than it saves.
FEWEST_FUSED = 8000


def is_foreign(thing: Any) -> bool:
    """Return whether something is an array of torch, CuPy or another array-API library.

    Not so dask arrays, which are many, and arrays that cannot be written to (JAX's),
    which are taken to NumPy.
    """
    return _library(thing) is not None


def namespace(*arrays: Any) -> Any:
    """Return the functions of the library of arrays, by default those of NumPy."""
    if len(arrays) == 1:  # as mostly, and in the innermost loops
        return _library(arrays[0]) or array_api_compat.numpy
    libraries = {_library(array) for array in arrays} - {None}
    if len(libraries) > 1:
        raise TypeError(
            f"arrays of several libraries: {', '.join(sorted(map(str, libraries)))}"
        )
    if libraries:
        return libraries.pop()
    return array_api_compat.numpy


def _library(thing: Any) -> Any:
    """Return the functions of an array's library, None for NumPy and other objects."""
    kind = type(thing)
    if kind not in _LIBRARIES:
        is_ours = (
            not isinstance(thing, np.ndarray | np.generic)
            and array_api_compat.is_array_api_obj(thing)
            and array_api_compat.is_writeable_array(thing)
            and not array_api_compat.is_dask_array(thing)
            and not array_api_compat.is_pydata_sparse_array(thing)
        )
        _LIBRARIES[kind] = array_api_compat.array_namespace(thing) if is_ours else None
    return _LIBRARIES[kind]


def device(array: Any) -> Any:
    """Return the device of an array as its library names it, None on the host."""
    if is_foreign(array):
        return array_api_compat.device(array)
    return None


def is_on_accelerator(array: Any) -> bool:
    """Return whether an array lives on a device that is not the host's processor."""
    if type(array) is np.ndarray:
        return False
    return is_cupy_array(array) or (
        is_torch_array(array) and array.device.type != "cpu"
    )


def library_and_device(array: Any) -> str:
    """Return the names of the library and the device of an array."""
    if not is_foreign(array):
        return "NumPy"
    name = namespace(array).__name__
    library = name.removeprefix("array_api_compat.").split(".")[0]
    return f"{library} on {device(array)}"


def check_one_place(arrays: Sequence[Any], who: Sequence[str]) -> None:
    """Raise if arrays belong to different libraries, or live on different devices."""
    for array, label in zip(arrays, who, strict=True):
        found = library_and_device(array)
        if found != library_and_device(arrays[0]):
            raise ValueError(
                f"{who[0]} is an array of {library_and_device(arrays[0])} and {label} "
                f"one of {found}: bring all of them to one library and one device"
            )


def free_bytes(like: Any) -> int | None:
    """Return how much memory is free on the device of an array, None for the host."""
    if is_torch_array(like) and like.device.type == "cuda":
        import torch

        free, _ = torch.cuda.mem_get_info(like.device)
        # Memory that torch has reserved and does not use is also free.
        held = torch.cuda.memory_stats_as_nested_dict(like.device)
        reserved = held["reserved_bytes"]["all"]["current"]
        used = held["allocated_bytes"]["all"]["current"]
        return free + reserved - used
    if is_cupy_array(like):
        import cupy

        with like.device:
            return like.device.mem_info[0] + cupy.get_default_memory_pool().free_bytes()
    return None


def to_host(array: Any, dtype: Any = np.float64) -> Any:
    """Return an array as NumPy, by default in float64; a sparse matrix stays one."""
    if type(array) is np.ndarray:
        return np.asarray(array, dtype=dtype)
    if issparse(array):
        if dtype is None:
            return array
        return array.astype(dtype, copy=False)
    if is_torch_array(array):
        array = array.detach().cpu()
        if str(array.dtype) == "torch.bfloat16":  # NumPy has no such type
            array = array.float()
        array = array.numpy()
    elif is_cupy_array(array):
        array = array.get()
    elif is_foreign(array):
        array = np.from_dlpack(array)
    return np.asarray(array, dtype=dtype)


def to_device(array: Any, like: Any, dtype: str | None = None) -> Array:
    """Return an array in the library, and on the device, of ``like``."""
    if not is_foreign(like):
        return to_host(array, dtype)
    xp = namespace(like)
    target = device(like)
    if not (is_foreign(array) and namespace(array) is xp and device(array) == target):
        on_host = np.asarray(to_host(array, None), order="C")
        array = xp.asarray(on_host, device=target)
    if dtype is None:
        return array
    return xp.astype(array, getattr(xp, dtype), copy=False)


def arrays_to_host(thing: Any) -> Any:
    """Return arrays of other libraries as NumPy, in their own type, to store them."""
    if isinstance(thing, list | tuple):
        return type(thing)(map(arrays_to_host, thing))
    if is_foreign(thing):
        return to_host(thing, None)
    return thing


@dataclass(frozen=True)
class Stored:
    """Data that are stored by their fields alone, with arrays as NumPy."""

    def __getstate__(self) -> dict[str, Any]:
        own = fields(self)
        return {each.name: arrays_to_host(getattr(self, each.name)) for each in own}


def empty(
    shape: int | tuple[int, ...],
    like: Any,
    dtype: str = "float64",
) -> Array:
    """Return a new array on the device of ``like``, to be written to."""
    xp = namespace(like)
    return xp.empty(shape, dtype=getattr(xp, dtype), device=device(like))


def zeros(
    shape: int | tuple[int, ...],
    like: Any,
    dtype: str = "float64",
) -> Array:
    """Return zeros on the device of ``like``."""
    xp = namespace(like)
    return xp.zeros(shape, dtype=getattr(xp, dtype), device=device(like))


def random_normal(
    shape: tuple[int, int], like: Any, seed: int | Sequence[int], dtype: str = "float64"
) -> Array:
    """Return standard normal numbers on the device of ``like``."""
    options = _torch_random_options(shape, like, seed)
    if options is not None:
        xp = namespace(like)
        return xp.randn(shape, dtype=getattr(xp, dtype), **options)
    rng = np.random.default_rng(seed)
    drawn = rng.standard_normal(shape, dtype=np.dtype(dtype).type)
    return to_device(drawn, like, dtype)


def random_signs(shape: tuple[int, int], like: Any, dtype: str) -> Array:
    """Return random signs, 1 and -1, in a tenth of the time of normal numbers."""
    options = _torch_random_options(shape, like, 0)
    if options is not None:
        bits = namespace(like).randint(0, 2, shape, **options)
    else:
        rng = np.random.default_rng(0)
        bits = rng.integers(0, 2, shape, dtype=np.int8)
    return 2 * to_device(bits, like, dtype) - 1


def _torch_random_options(
    shape: tuple[int, int], like: Any, seed: int | Sequence[int]
) -> dict[str, Any] | None:
    """Return how torch draws many numbers on an accelerator; None if the host does.

    The host draws few numbers, the same for every library and device.
    """
    on_accelerator = is_torch_array(like) and is_on_accelerator(like)
    if not on_accelerator or shape[0] * shape[1] < 10**5:
        return None
    import torch

    words = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    state = int(words[0] >> 1)
    generator = torch.Generator(like.device).manual_seed(state)
    return {"generator": generator, "device": like.device}


def copy_array(array: Array) -> Array:
    """Return a copy of an array, or of a sparse matrix, in memory of its own."""
    if issparse(array):
        return array.copy()
    return namespace(array).asarray(array, copy=True)


def ranges(n: int, height: int) -> Iterator[slice]:
    """Yield consecutive slices of n rows, of at most ``height`` rows each."""
    for start in range(0, n, height):
        yield slice(start, min(start + height, n))


def row_ranges(n: int, width: int, like: Any, fewest: int = 1) -> Iterator[slice]:
    """Cut n rows of a width into slices to compute at a time, with ``fewest`` rows.

    On a host a slice stays in a core's cache; on a device starting a step takes long.
    """
    entries = 2**25 if is_foreign(like) else 2**15
    height = entries // max(1, width)
    return ranges(n, max(fewest, height))


def pair_ranges(n: int, width: int, like: Any) -> Iterator[slice]:
    """Cut n rows of similarities into slices in which neighbors are looked for."""
    if is_foreign(like):
        return row_ranges(n, width, like, FEWEST_ROWS)
    height = BLOCK_PAIRS // max(1, width)
    return ranges(n, max(FEWEST_ROWS, height))


def select(array: Array, index: Any, axis: int = 0) -> Array:
    """Return some rows or columns, given by a slice or an array of numbers."""
    before = (slice(None),) * axis
    if not is_foreign(array):
        by_numbers = isinstance(index, np.ndarray) and index.dtype != bool
        if by_numbers and type(array) is np.ndarray:
            return array.take(index, axis=axis)  # rows stay contiguous in memory
        return array[(*before, index)]
    if isinstance(index, slice):
        return array[(*before, index, ...)]
    return namespace(array).take(array, to_device(index, array), axis=axis)


def set_diagonal(M: Array, values: Any) -> None:
    """Write numbers, on the device of M, or one number to the diagonal of M."""
    if not is_foreign(M):
        np.fill_diagonal(M, values)
        return
    xp = namespace(M)
    for rows in ranges(M.shape[0], 1024):  # squares along the diagonal
        size = rows.stop - rows.start
        is_diagonal = xp.eye(size, dtype=xp.bool, device=device(M))
        new = values[rows] if is_foreign(values) else float(values)
        M[rows, rows] = xp.where(is_diagonal, new, M[rows, rows])


def precision_of(array: Any) -> str:
    """Return the name of a floating number type: "float32" or "float64"."""
    if rounding_of(array) > 1e-10:
        return "float32"
    return "float64"


def rounding_of(array: Any) -> float:
    """Return the relative rounding of the number type of an array or a kernel."""
    if type(array) is np.ndarray and array.dtype == np.float64:
        return EPS
    held = getattr(array, "like", array)
    return float(namespace(held).finfo(array.dtype).eps)


def astype(array: Any, dtype: str) -> Array:
    """Return an array, or a sparse matrix, in a number type, copied if needed."""
    if not is_foreign(array):
        return array.astype(dtype, copy=False)
    xp = namespace(array)
    return xp.astype(array, getattr(xp, dtype), copy=False)


def add_multiple(total: Array, array: Array, factor: float) -> None:
    """Add a multiple of an array to another, in blocks if that saves memory."""
    if is_torch_array(total):
        total.add_(array, alpha=factor)
        return
    for rows in row_ranges(total.shape[0], total.shape[1], total):
        part = array[rows, :]
        total[rows, :] += factor * part


def detached(array: Array) -> Array:
    """Return an array without the gradient that torch keeps with it."""
    if is_torch_array(array) and array.requires_grad:
        return array.detach()
    return array


def as_floats(array: Array, who: str) -> Array:
    """Return an array in float32 or float64, or raise if it is not of real numbers."""
    xp = namespace(array)
    array = detached(array)
    if xp.isdtype(array.dtype, ("bool", "integral")):
        return xp.astype(array, xp.float64)
    if not xp.isdtype(array.dtype, "real floating"):
        raise ValueError(
            f"{who} has the type {array.dtype}: a kernel or view is a matrix of real "
            "numbers; convert it to float64 or float32"
        )
    # Half precision, in either of its forms, is too coarse to compute in.
    if xp.finfo(array.dtype).bits < 32:
        return xp.astype(array, xp.float32)
    return array


def is_sparse_tensor(thing: Any) -> bool:
    """Return whether something is a sparse tensor of torch."""
    return is_torch_array(thing) and str(thing.layout) != "torch.strided"


def on_torch_device(device: Any) -> Array:
    """Return an empty array of torch on a device, to bring other arrays to."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            f"device={device!r} is reached by torch, which is not installed: pip "
            "install torch"
        ) from error
    try:
        # In double precision, since devices without it cannot be used.
        return torch.empty(0, dtype=torch.float64, device=device)
    except (RuntimeError, TypeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"device={device!r} cannot be used by torch ({reason}): pass one that is "
            "there and computes in float64, such as 'cuda', 'cuda:1' or 'cpu'"
        ) from error


def triton_module(name: str, like: Any) -> Any:
    """Return a module of this package that computes with tensors of n rows.

    None if it cannot be used, or if they are on the host, or few.
    """
    if not is_torch_array(like) or not is_on_accelerator(like):
        return None
    if like.shape[0] >= FEWEST_FUSED:
        return _tried_out(name)
    return None


@cache
def _tried_out(name: str) -> Any:
    """Return a module of this package if what it compiles works, else None."""
    try:
        module = import_module(f"mkclust.linalg.{name}")
        module.try_out()
    except ImportError:
        return None
    except Exception as error:  # such as no C compiler, which Triton asks for
        message = f"computing with kernels takes longer, Triton does not work: {error}"
        warn(message)
        return None
    return module
