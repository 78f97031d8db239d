"""Kernels of any form, one by one or as a source of rows: whether they are held or streamed."""

import sys
from typing import Any

import numpy as np
import scipy.sparse

from mkclust.linalg.memory import available_bytes, require_memory
from mkclust.samples.observed_block import ObservedBlock, single_kernels
from mkclust.samples.row_source import RowSource
from mkclust.samples.samples import Samples
from mkclust.stack.checks import as_numbers
from mkclust.stack.sources import GivenRows, MatrixRows, Source

# Kernels in files are streamed if one matrix of their size, and what must be copied to compute
# with them, would take more than this: solvers form such a matrix.
LARGEST_IN_MEMORY = 2 * 2**30
# Or more than this share of the memory there is: who keeps kernels in files has none to spare.
LARGEST_SHARE_IN_MEMORY = 0.25


def open_kernels(samples: Samples, streamed: bool | None, psd: str) -> Source | list[Any]:
    """Return a source of rows if kernels are to be streamed, else the kernels one by one."""
    whole, asked = samples.whole, "streamed=False" if psd == "error" else f"psd={psd!r}"
    is_source = isinstance(whole, RowSource)
    if (streamed or is_source) and (streamed is False or psd != "error"):
        raise ValueError(
            f"{asked} needs the kernels in memory, and these are read some rows at a time: "
            "pass arrays, such as K[:], if they fit"
        )
    if is_source:
        return whole if isinstance(whole, Source) else GivenRows(whole)
    parts = list(samples.parts) if whole is None else _taken_apart(whole)
    if not parts:
        raise ValueError("no kernels: the list is empty; pass at least one n x n matrix")
    stored = [part for part in parts if _is_stored(part)]
    if streamed is None and psd == "error" and stored:
        available = available_bytes()
        if available is None:  # a map costs nothing to hold
            streamed = not all(isinstance(part, np.memmap) for part in stored)
        else:
            largest = min(LARGEST_IN_MEMORY, LARGEST_SHARE_IN_MEMORY * available)
            streamed = _bytes_needed(stored) > largest
    if streamed:
        return MatrixRows([part if _is_stored(part) else as_numbers(part, "X") for part in parts])
    if stored:
        require_memory(
            _bytes_needed(stored),
            f"{asked} needs the kernels in memory, and loading {len(stored)} kernels of "
            f"{stored[0].shape[-1]} samples and mixing them",
            "pass streamed=None and psd='error' to read some rows at a time, or use fewer samples",
        )
    return parts


def _taken_apart(whole: Any) -> list[Any]:
    """Return the kernels of an array or a dataset of shape (m, n, n), those in files unread."""
    if scipy.sparse.issparse(whole) or whole.ndim == 2:
        raise ValueError(
            f"one matrix of shape {whole.shape} where several kernels belong: pass K[None] or "
            "[K] if it is the only kernel"
        )
    if whole.shape[0] == whole.shape[1] != whole.shape[2]:
        raise ValueError(
            f"an array of shape {tuple(whole.shape)}, samples x samples x kernels as MATLAB has "
            "them: the first axis has to count the kernels; pass np.moveaxis(K, 2, 0)"
        )
    return single_kernels(whole)


def _is_stored(part: Any) -> bool:
    """Return whether a kernel is in a file; without h5py loaded, nothing is a dataset of it."""
    h5py = sys.modules.get("h5py")
    is_dataset = h5py is not None and isinstance(part, h5py.Dataset)
    return is_dataset or isinstance(part, np.memmap | ObservedBlock)


def _bytes_needed(stored: list[Any]) -> int:
    """Return how much memory kernels in files and a mix of them take, beside the files."""
    needed = max(part.shape[-1] ** 2 * min(part.dtype.itemsize, 8) for part in stored)
    for part in stored:
        if part.dtype not in (np.float64, np.float32):
            needed += 8 * part.shape[-1] ** 2
        elif not isinstance(part, np.memmap):
            needed += part.dtype.itemsize * part.shape[-1] ** 2
    return needed
