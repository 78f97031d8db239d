"""Kernels in files, memory maps and HDF5 datasets: whether to load them or to stream them."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from mkclust.linalg.memory import require_memory
from mkclust.samples.samples import Samples

# Kernels in files are streamed if one matrix of their size, and what must be copied to compute
# with them, would take more than this, or more than this share of the memory there is: solvers form
# such a matrix, and want room beside it. Who keeps kernels in files has no memory to spare.
LARGEST_IN_MEMORY, LARGEST_SHARE_IN_MEMORY = 2 * 2**30, 0.25


def has_files(samples: Samples) -> bool:
    """Return whether any kernels are memory maps or HDF5 datasets."""
    return bool(_in_files(samples))


def better_streamed(samples: Samples, available: int | None) -> bool:
    """Return whether kernels are better read some rows at a time than held in memory.

    Parameters
    ----------
    samples : Samples
        The kernels.
    available : int or None
        Bytes of memory there are, None if nobody knows.

    Returns
    -------
    bool
    """
    in_files = _in_files(samples)
    if not in_files or available is None:
        # A map costs nothing to hold; whether a dataset can be loaded, nobody knows here.
        return any(map(is_dataset, in_files))
    largest = min(LARGEST_IN_MEMORY, LARGEST_SHARE_IN_MEMORY * available)
    return _bytes_needed(in_files) > largest


def require_memory_to_load(samples: Samples, psd: str) -> None:
    """Refuse to load kernels from files that do not fit into memory."""
    if not (in_files := _in_files(samples)):
        return
    count = sum(len(part) if len(part.shape) == 3 else 1 for part in in_files)
    asked = "streamed=False" if psd == "error" else f"psd={psd!r}"
    require_memory(
        _bytes_needed(in_files),
        f"{asked} needs the kernels in memory, and loading {count} kernels of "
        f"{in_files[0].shape[-1]} samples and mixing them",
        "pass streamed=None and psd='error' to read some rows at a time, or use fewer samples",
    )


def _in_files(samples: Samples) -> list:
    """Return those matrices, or stacks of them, that are memory maps or HDF5 datasets."""
    return [
        part
        for part in (samples.parts if samples.whole is None else [samples.whole])
        if (isinstance(part, np.memmap) or is_dataset(part)) and len(part.shape) > 1
    ]


def _bytes_needed(in_files: Sequence[Any]) -> int:
    """Return how much memory kernels in files and a mix of them take, beside the files."""
    largest = max(part.shape[-1] ** 2 * min(part.dtype.itemsize, 8) for part in in_files)
    return largest + sum(map(_bytes_to_hold, in_files))


def _bytes_to_hold(part: Any) -> int:
    """Return how much memory a file's kernels take to be computed with, beside the file."""
    if part.dtype not in (np.float64, np.float32):
        return 8 * part.size
    return part.dtype.itemsize * part.size if is_dataset(part) else 0


def is_dataset(part: Any) -> bool:
    """Return whether something is an HDF5 dataset; without h5py loaded, nothing is."""
    h5py = sys.modules.get("h5py")
    return h5py is not None and isinstance(part, h5py.Dataset)
