"""Views that are computed with block by block: in memory, in files, on devices."""

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import reduce
from typing import Any

import numpy as np
from sklearn import config_context, get_config

from mkclust.data.check import as_floats, in_memory, memory_map
from mkclust.linalg import (
    device,
    free_bytes,
    is_foreign,
    namespace,
    ranges,
    select,
    to_host,
)
from mkclust.linalg.sparse_rows import finite_rows, row_width
from mkclust.linalg.threads import n_threads, one_thread
from mkclust.types import Array

# A function of a block and the number of its first sample.
BlockFunction = Callable[["Block", int], Any]
# Bytes of a block over all views: large enough for fast products, small enough for the
# cache.
BLOCK_BYTES = 4 << 20
# Samples of a block. Features may be much wider than the views, so that there are not
# more.
FEWEST_ROWS, MOST_ROWS = 256, 8192
# On a device every call waits to begin: blocks are large, but leave most of the memory
# to others.
DEVICE_BYTES, DEVICE_SHARE, MOST_DEVICE_ROWS = 512 << 20, 0.05, 1 << 17


class Block(dict[str, Array]):
    """The rows of some samples, by view; `observed` says which views lack which."""

    def __init__(self, rows: Mapping[str, Array], n_rows: int, observed: Any = None):
        super().__init__(rows)
        self.n_rows = n_rows
        self.observed = observed
        if observed is None or observed.all():
            self.observed = None

    def index(self, name: str) -> np.ndarray | None:
        """Return which of the samples a view has, sorted; None if all have all."""
        if self.observed is None:
            return None
        return np.flatnonzero(self.observed[:, list(self).index(name)])

    def part(self, rows: slice) -> "Block":
        """Return the samples of a slice."""
        has = self.observed
        if has is None:
            has = np.ones((self.n_rows, len(self)), bool)
        firsts = has[: rows.start].sum(axis=0).tolist()
        ends = has[: rows.stop].sum(axis=0).tolist()
        spans = zip(self.items(), firsts, ends, strict=True)
        parts = {name: table[first:end, :] for (name, table), first, end in spans}
        return Block(parts, rows.stop - rows.start, has[rows])


class Blocks:
    """Several views of the same samples, computed with some samples at a time.

    A pass over the samples is a sum (:meth:`total`) or a result for every sample
    (:meth:`map`). Reading a block overlaps with computing those before it if there are
    several threads.

    The tables have ``shape``, ``dtype`` and slices by rows, of the samples that they
    have; `observed`, (n_samples, n_views) of bool, says which, None if all have all.
    """

    def __init__(
        self, tables: Mapping[str, Any], observed: Any = None, block_rows: Any = None
    ):
        self._tables = dict(tables)
        self.observed = observed
        first = next(iter(self._tables.values()))
        self.names = tuple(self._tables)
        self.n_samples = int(first.shape[0])
        widths = (int(table.shape[1]) for table in self._tables.values())
        self.n_features = tuple(widths)
        # Where the row of a sample is, (n_samples, n_views).
        self._ranks: Any = None
        if observed is not None:
            self.n_samples = len(observed)
            self._ranks = np.cumsum(observed, axis=0) - 1
        self._height = int(block_rows or self._choose_height(first))
        self._is_foreign = is_foreign(first)
        self._files = [
            n for n, t in self._tables.items() if not (in_memory(t) or self._is_foreign)
        ]

    def total(self, function: BlockFunction) -> Any:
        """Return the sum of a function over all blocks: an array, or several."""
        parts = (part for _, part in self._results(function))
        return reduce(add, parts, None)

    def map(self, function: BlockFunction) -> Array:
        """Return a function of all blocks, one row per sample."""
        result: Array = None
        for start, part in self._results(function):
            if result is None:
                result = namespace(part).empty(
                    (self.n_samples, *part.shape[1:]),
                    dtype=part.dtype,
                    device=device(part),
                )
            result[start : start + part.shape[0], ...] = part
        return result

    def take(self, samples: np.ndarray) -> Block:
        """Return some samples, given by sorted indices, in memory."""
        if self.observed is None:
            parts = {name: self._take_rows(name, samples) for name in self.names}
            return Block(parts, len(samples))
        parts = {}
        observed = self.observed[samples]
        for number, name in enumerate(self.names):
            known = samples[observed[:, number]]
            parts[name] = self._take_rows(name, self._ranks[known, number])
        return Block(parts, len(samples), observed)

    def with_features(self, features: Array, widths: Mapping[str, int]) -> "Blocks":
        """Return blocks of the columns of an array, of given widths for the views."""
        tables = {}
        stop = 0
        for number, (name, width) in enumerate(widths.items()):
            stop += width
            tables[name] = features[:, stop - width : stop]
            if self.observed is not None:
                own = np.flatnonzero(self.observed[:, number])
                tables[name] = select(tables[name], own)
        return Blocks(tables, self.observed)

    def __iter__(self) -> Iterator[tuple[int, Block]]:
        """Yield the blocks in order, with the number of the first sample of each."""
        for rows in ranges(self.n_samples, self._height):
            indices = np.arange(rows.start, rows.stop)
            yield rows.start, self.take(indices)

    def _results(self, function: BlockFunction) -> Iterator[tuple[int, Any]]:
        """Yield the function of every block, with the number of its first sample."""
        blocks = iter(self)
        # More threads would take more memory than they save time, and so would larger
        # results of blocks.
        most_threads = 16
        waiting_bytes = 256 << 20
        for start, block in blocks:
            part = function(block, start)
            yield start, part
            if self._is_foreign:  # a device computes asynchronously anyway
                continue
            results = part
            if not isinstance(part, tuple):
                results = (part,)
            n_bytes = sum(int(each.nbytes) for each in results)
            n_waiting = waiting_bytes // max(1, n_bytes)
            threads = min(n_threads(), most_threads, n_waiting)
            if threads > 1:
                with one_thread():
                    yield from _map_together(blocks, function, threads)

    def _take_rows(self, name: str, rows: np.ndarray) -> Array:
        """Return some rows of one view; a file is read in slices around them."""
        first = int(next(iter(rows), 0))
        if len(rows) == 0 or rows[-1] == first + len(rows) - 1:
            return self._read(name, slice(first, first + len(rows)))  # not copied
        if name not in self._files:
            return self._read(name, rows)

        parts = []
        breaks = np.flatnonzero(np.diff(rows // self._height)) + 1
        for some in np.split(rows, breaks):
            first = int(some[0])
            span = slice(first, int(some[-1]) + 1)
            between = self._read(name, span)
            parts.append(between[some - first])
        return np.concatenate(parts)

    def _read(self, name: str, rows: Any) -> Array:
        """Return rows of one view as floats, or say which could not be read."""
        if self._is_foreign:
            entries = select(self._tables[name], rows)
            return as_floats(entries, f"View {name!r}")
        try:
            part = self._tables[name][rows]
            if isinstance(rows, slice) and part.shape[0] != rows.stop - rows.start:
                raise OSError(f"there are {part.shape[0]} rows")
            if name in self._files:
                part = np.array(part)  # a memory map would be read when it is used
            return as_floats(part, name)
        except (OSError, RuntimeError, KeyError, IndexError) as error:
            numbers = np.r_[rows]
            raise OSError(
                f"View {name!r} unreadable at rows {numbers[0]} to {numbers[-1]}: "
                f"{error}"
            ) from error

    def _choose_height(self, first: Any) -> int:
        """Return how many samples a block has: few for the cache, but whole chunks."""
        widths = map(row_width, self._tables.values())
        width = max(1, sum(widths))
        size = device_bytes(first)
        most = MOST_DEVICE_ROWS
        if size is None:
            size = BLOCK_BYTES
            most = MOST_ROWS
        height = int(np.clip(size // (8 * width), FEWEST_ROWS, most))
        chunks = [getattr(table, "chunks", None) for table in self._tables.values()]
        step = max(int(np.max(each[0])) if each else 1 for each in chunks)
        if step <= height:
            return height - height % step

        # Blocks of files are whole chunks, to read none twice, unless a chunk is larger
        # than this.
        chunk_bytes = 32 << 20
        if 8 * step * width <= chunk_bytes:
            return step
        return height


def _map_together(
    blocks: Iterator[tuple[int, Any]], function: Callable[[Any, int], Any], threads: int
) -> Iterator[tuple[int, Any]]:
    """Yield the function of every block in order, computed by several threads."""
    config = get_config()
    waiting = deque[tuple[int, Future]]()

    def call(context: Any, block: Any, start: int) -> Any:
        """Compute one block with the settings of the caller, which threads lack."""
        # A new thread has not the settings of the caller.
        with config_context(**config):
            return context.run(function, block, start)

    with ThreadPoolExecutor(threads, "mkclust-block") as pool:
        for start, block in blocks:
            waiting.append((start, pool.submit(call, copy_context(), block, start)))
            del block
            if len(waiting) > threads:
                first, future = waiting.popleft()
                yield first, future.result()
        for first, future in waiting:
            yield first, future.result()


def some_of(values: Any, index: Any) -> Any:
    """Return some entries of an array, None of None."""
    if values is None:
        return None
    return values[index]


def opposite(mask: np.ndarray | None) -> np.ndarray | None:
    """Return the opposite of a mask: observed and missing samples, None of none."""
    if mask is None:
        return None
    return ~mask


def device_bytes(like: Any) -> int | None:
    """Return how many bytes to compute with at a time on a device, None on the host."""
    free = free_bytes(like)
    if free is None:
        return None
    return min(DEVICE_BYTES, int(DEVICE_SHARE * free))


def add(total: Any, part: Any) -> Any:
    """Add what was computed from one block to the sum so far, None before the first."""
    if total is None:
        return part
    if isinstance(total, tuple):
        pairs = zip(total, part, strict=True)
        return tuple(a + b for a, b in pairs)
    return total + part


def check_finite(block: Block, samples: int | np.ndarray) -> None:
    """Refuse entries that are not finite, and name the view and the first sample."""
    numbers = np.asarray(samples)
    if numbers.ndim == 0:
        numbers = numbers + np.arange(block.n_rows)

    for name, rows in block.items():
        finite = finite_rows(rows)
        if bool(namespace(finite).all(finite)):
            continue
        index = block.index(name)
        own = numbers
        if index is not None:
            own = numbers[index]
        bad = own[~to_host(finite, None)]
        raise ValueError(
            f"View {name!r} has entries that are not finite in {len(bad)} of "
            f"{len(numbers)} samples, first in sample {bad[0]}; fill them, as "
            "impute='median' does for tables in memory, or drop these samples from "
            "every view."
        )


def fingerprint(view: Any) -> str | None:
    """Return a digest of the numbers in a memory map; None for what is in memory."""
    if memory_map(view) is None:
        return None
    digest = hashlib.blake2b(digest_size=16)
    row_bytes = max(1, view[:1].nbytes)
    height = max(1, BLOCK_BYTES // row_bytes)
    for rows in ranges(view.shape[0], height):
        digest.update(np.ascontiguousarray(view[rows]).data)
    return digest.hexdigest()
