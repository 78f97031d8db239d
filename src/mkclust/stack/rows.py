"""Kernels known by their rows: where these come from, and how they are read one after another."""

import itertools
import math
import mmap
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mkclust.linalg import (
    astype,
    free_bytes,
    is_foreign,
    is_sparse,
    precision_of,
    rounding_of,
    select,
)
from mkclust.samples.row_source import RowSource
from mkclust.stack.checks import as_numbers
from mkclust.types import Array

# What the rows read at a time take over all kernels; while they are at work, the next are read.
BLOCK_BYTES = 64 * 2**20
# But so many rows are worth more than that: with fewer, products wait for the thin matrix.
FEWEST_ROWS = 32
# And so much is, not to read the tiles of a file twice.
TILE_BYTES = 4 * BLOCK_BYTES
# Rows of all kernels are at most this share of one kernel's, so that small problems stay small;
# but not smaller than this, or they would be read row by row.
LARGEST_SHARE, SMALL_BYTES = 1 / 32, 4 * 2**20
# On a device, where each step has to be worth starting it, they are so many entries of each kernel;
# but of all kernels at most this share of the free memory, with as many blocks more as are at work
# on the way to one.
ENTRIES_ON_DEVICE, SHARE_ON_DEVICE, BLOCKS_AT_WORK = 2**27, 0.05, 3

Range = tuple[int, int]


@dataclass(frozen=True)
class DatasetKernel:
    """One kernel of a three-dimensional dataset, not read before its rows are asked for."""

    dataset: Any
    index: int
    ndim: ClassVar[int] = 2

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.dataset.shape[1:]

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """Shape of the tiles that the file holds, None where it holds rows."""
        return getattr(self.dataset, "chunks", None)

    def __getitem__(self, rows: slice) -> Array:
        return self.dataset[self.index, rows]


@dataclass(frozen=True)
class MatrixRows:
    """The rows of matrices that support slicing: memory maps, HDF5 datasets, arrays.

    Attributes
    ----------
    matrices : sequence of m matrices of shape (n, n)
        The kernels.
    whole : dataset of shape (m, n, n) or None
        What they all are parts of, where there is one: read by a single call.
    block_rows : int or None
        How many rows to read at a time; None reads as many as a few megabytes hold.
    """

    matrices: Sequence[Any] = field(repr=False)
    whole: Any = field(default=None, repr=False)
    block_rows: int | None = None

    @property
    def n_kernels(self) -> int:
        """Number of kernels, m."""
        return len(self.matrices)

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return self.matrices[0].shape[0]

    @property
    def like(self) -> Array:
        """An array, or something else where that is NumPy, that says where the rows live."""
        return self.matrices[0]

    @property
    def dtype(self) -> Any:
        """Number type of the rows, the shorter one where kernels differ."""
        empty_parts = [_read(matrix, slice(0, 0), "a kernel") for matrix in self.matrices]
        return max(empty_parts, key=rounding_of).dtype

    @property
    def step(self) -> int:
        """How many rows a file holds in one tile: to read one of them is to read them all."""
        tiles = [getattr(matrix, "chunks", None) for matrix in self.matrices]
        return math.lcm(*(chunks[-2] for chunks in tiles if chunks))

    def only(self, indices: Sequence[int]) -> "MatrixRows":
        """Return the rows of some of the kernels."""
        matrices = [self.matrices[index] for index in indices]
        return MatrixRows(matrices, block_rows=self.block_rows)

    def rows(self, start: int, stop: int) -> Sequence[Array]:
        """Return the rows from start to stop of every kernel, m blocks (stop - start, n)."""
        if self.whole is not None:
            return _read(self.whole, (slice(None), slice(start, stop)), "the kernels")
        block = slice(start, stop)
        return [_read(matrix, block, f"kernel {p}") for p, matrix in enumerate(self.matrices)]


def _read(matrix: Any, part: Any, who: str) -> Array:
    """Return a part of a matrix as floats in memory."""
    entries = matrix[part, ...] if is_foreign(matrix) else matrix[part]
    if is_sparse(entries):
        entries = entries.toarray()
    return as_numbers(
        _copy_from_map(entries, who) if isinstance(entries, np.memmap) else entries, who
    )


def _copy_from_map(part: np.memmap, who: str) -> Array:
    """Copy a part of a memory map, by reading its file where that can be told.

    What is read from a file that was cut short is an error; what is touched in its map ends the
    whole process.
    """
    owner: Any = part
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if not isinstance(owner.base, mmap.mmap) or not part.flags.c_contiguous:
        return np.array(part)
    position = owner.offset + _address(part) - _address(owner)
    cut = OSError(
        f"{who}: the file {part.filename} was cut short while in use, it ends before byte "
        f"{position + part.nbytes}; write it again, and open it anew"
    )
    try:
        file = open(str(part.filename), "rb", buffering=0)  # noqa: SIM115
    except OSError:  # moved away, or never had a name
        file = None
    with file or nullcontext():
        # In this order, so that a file cut in between is not taken for another one.
        named = None if file is None else os.fstat(file.fileno()).st_size
        mapped = owner.base.size()
        if mapped < position + part.nbytes:
            raise cut
        # By now another file may have that name; and changes to a map in copy-on-write mode are
        # not in its file.
        if file is None or named != mapped or part.mode == "c":
            return np.array(part)
        entries = np.fromfile(file, part.dtype, part.size, offset=position)
    if entries.size < part.size:
        raise cut
    return entries.reshape(part.shape)


def _address(array: np.ndarray) -> int:
    """Return where in memory an array begins."""
    return array.__array_interface__["data"][0]


def for_each_block(
    source: RowSource,
    handle: Callable[[slice, Sequence[Array]], None],
    ranges: Sequence[Range] | None = None,
) -> None:
    """Hand the rows of every kernel over, block after block, each read once.

    While one block is at work a thread reads the next. It ends with this call, however that ends.

    Parameters
    ----------
    source : RowSource
        The kernels.
    handle : callable
        Is given the place of the rows and the m blocks, which are good until it returns.
    ranges : sequence of (start, stop), default=None
        The rows to read; None reads all.
    """
    ranges = row_ranges(source) if ranges is None else ranges
    if not ranges:
        return
    if is_foreign(like_of(source)):
        # What is asked for on a device is only begun when it is handed over: no thread to wait.
        read = getattr(source, "parts", source.rows)
        for rows in ranges:
            handle(slice(*rows), read(*rows))
        return
    read = _reading(source, max(stop - start for start, stop in ranges))
    with ThreadPoolExecutor(1, "mkclust-reader") as reader:
        pending = reader.submit(read, *ranges[0])
        for rows, next_rows in zip(ranges, [*ranges[1:], None], strict=True):
            blocks = pending.result()
            if next_rows is not None:
                pending = reader.submit(read, *next_rows)
            handle(slice(*rows), blocks)
            del blocks  # not to be held beside the next two


def for_each_product(
    source: RowSource,
    columns: Sequence[Array],
    handle: Callable[[int, slice, Array], None],
) -> None:
    """Multiply every kernel with a thin matrix of its own, in one pass over their rows.

    Parameters
    ----------
    source : RowSource
        The kernels.
    columns : sequence of m arrays of shape (n, b)
        The thin matrices.
    handle : callable
        Is given the number of a kernel, the place of some rows, and these rows of its product, in
        float64.
    """
    of_rows, thin = [], []
    for p, X in enumerate(columns):
        product = source.product(p, X) if hasattr(source, "product") else None
        if product is None:
            of_rows.append(p)
            thin.append(X)
        else:
            handle(p, slice(0, source.n_samples), product)

    def multiply(rows: slice, blocks: Sequence[Array]) -> None:
        """Multiply some rows, in their own precision."""
        for i, block in enumerate(blocks):
            thin[i] = astype(thin[i], precision_of(block))  # once, for all blocks to come
            handle(of_rows[i], rows, astype(block @ thin[i], "float64"))

    if of_rows:
        for_each_block(only(source, of_rows), multiply)


def for_rows_of(
    source: RowSource,
    samples: np.ndarray,
    handle: Callable[[slice, np.ndarray, Iterator[Array]], None],
) -> np.ndarray | None:
    """Hand over the rows of some samples only, in rising order.

    Parameters
    ----------
    source : RowSource
        The kernels.
    samples : ndarray of int
        Whose rows to read.
    handle : callable
        Is given the place of some rows among those in rising order, the numbers of their samples,
        and the m blocks.

    Returns
    -------
    ndarray of int or None
        What takes rows in rising order to the order of the samples; None where that is the same.
    """
    order = None if np.all(samples[1:] >= samples[:-1]) else np.argsort(samples, kind="stable")
    rising = samples if order is None else samples[order]

    def handle_block(rows: slice, blocks: Sequence[Array]) -> None:
        """Hand over the rows that are asked for."""
        place = slice(*np.searchsorted(rising, [rows.start, rows.stop]).tolist())
        numbers = rising[place]
        handle(place, numbers, (select(block, numbers - rows.start) for block in blocks))

    for_each_block(source, handle_block, row_ranges(source, rising))
    return None if order is None else np.argsort(order)


def _reading(source: RowSource, height: int) -> Callable[[int, int], Sequence[Array]]:
    """Return what reads some rows, at most so many, while those read before are at work."""
    if not hasattr(source, "write"):
        return source.rows
    # Fresh memory for every block would be handed over and cleared page by page.
    shape = source.n_kernels, height, source.n_samples
    turns = itertools.cycle([np.empty(shape, source.dtype) for _ in range(2)])

    def read(start: int, stop: int) -> Sequence[Array]:
        """Read some rows into the memory whose turn it is."""
        block = next(turns)[:, : stop - start]
        source.write(start, stop, block)
        return list(block)

    return read


def row_ranges(source: RowSource, samples: Array | None = None) -> list[Range]:
    """Return which rows to read together, for all samples or for some in rising order."""
    n, height, step = source.n_samples, _height(source), getattr(source, "step", 1)
    if samples is None:
        return [(start, min(start + height, n)) for start in range(0, n, height)]
    ranges: list[Range] = []
    step = step if step <= height else 1
    for tile in np.unique(np.asarray(samples) // step).tolist():
        start, stop = tile * step, min((tile + 1) * step, n)
        if ranges and ranges[-1][1] == start and stop - ranges[-1][0] <= height:
            start, _ = ranges.pop()
        ranges.append((start, stop))
    return ranges


def _height(source: RowSource) -> int:
    """Return how many rows to read at a time."""
    m, n = source.n_kernels, source.n_samples
    if n == 0:
        return 1
    if (block_rows := getattr(source, "block_rows", None)) is not None:
        return min(block_rows, n)
    one = m * n * np.dtype(precision_of(source)).itemsize  # one row of every kernel
    free = free_bytes(like_of(source))
    if free is not None:
        at_work = one * (m + BLOCKS_AT_WORK) / m
        return min(max(1, min(ENTRIES_ON_DEVICE // n, int(SHARE_ON_DEVICE * free / at_work))), n)
    rows = max(BLOCK_BYTES // one, FEWEST_ROWS)
    height = min(max(1, min(rows, max(int(LARGEST_SHARE * n / m), SMALL_BYTES // one))), n)
    # Whole tiles, so that none is read twice, unless they are too tall.
    step = getattr(source, "step", 1)
    if step <= height:
        return height - height % step
    return step if step * one <= TILE_BYTES else height


def like_of(source: RowSource) -> Any:
    """Return an array that says where the rows of a source live; None for NumPy."""
    return getattr(source, "like", None)


def only(source: RowSource, indices: Sequence[int]) -> RowSource:
    """Return a source of some kernels, which reads only these where the given one can."""
    if len(indices) == source.n_kernels:
        return source
    return source.only(indices) if hasattr(source, "only") else _SomeKernels(source, tuple(indices))


@dataclass(frozen=True)
class _SomeKernels:
    """Some kernels of a source that can only tell the rows of all."""

    source: RowSource
    indices: tuple[int, ...]

    @property
    def n_kernels(self) -> int:
        """Number of kernels, m."""
        return len(self.indices)

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return self.source.n_samples

    @property
    def like(self) -> Array:
        """An array that says where the rows live."""
        return like_of(self.source)

    @property
    def dtype(self) -> Any:
        """Number type of the rows."""
        return self.source.dtype

    def rows(self, start: int, stop: int) -> Sequence[Array]:
        """Return the rows from start to stop of these kernels."""
        blocks = self.source.rows(start, stop)
        return [blocks[index] for index in self.indices]
