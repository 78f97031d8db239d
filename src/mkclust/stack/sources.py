"""Where the rows of kernels come from that are not in memory: files, formulas, other programs."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import lcm
from typing import Any

import numpy as np

from mkclust.linalg import (
    astype,
    empty,
    free_bytes,
    is_foreign,
    is_on_accelerator,
    is_sparse,
    namespace,
    precision_of,
    ranges,
    rounding_of,
    select,
    to_host,
)
from mkclust.samples.row_source import RowSource
from mkclust.stack.checks import as_numbers
from mkclust.types import Array

# What the rows read at a time take over all kernels; while they are at work, the next are read.
BLOCK_BYTES = 64 * 2**20
# With fewer rows at a time, products would wait for the thin matrix.
FEWEST_ROWS = 32
# At most this share of all rows is read at a time, so that small problems stay small.
LARGEST_SHARE = 1 / 32
# On a device, rows of every kernel take at most this share of the free memory at a time.
SHARE_ON_DEVICE = 0.01
# And so many entries of each kernel.
ENTRIES_ON_DEVICE = 2**27


class Source:
    """Kernels over the same samples, of which some rows are read or computed at a time.

    A subclass answers ``n_kernels``, ``n_samples``, ``dtype`` and ``rows``, and overrides what it
    knows better.

    Attributes
    ----------
    n_kernels, n_samples : int
        Number of kernels, m, and of samples, n.
    dtype : dtype
        Number type of the rows, as their library names it.
    like : array or None
        An array beside the rows; None for NumPy.
    step : int
        How many rows come together whether or not all are asked for.
    """

    n_kernels: int
    n_samples: int
    dtype: Any
    like: Any = None
    step: int = 1

    def rows(self, start: int, stop: int) -> Sequence[Array]:
        """Return the rows from start to stop of every kernel, m blocks (stop - start, n)."""
        raise NotImplementedError(f"{type(self).__name__} must define rows")

    def read(self, start: int, stop: int) -> list[Array]:
        """Return the same as a list, however the rows came."""
        rows: Any = self.rows(start, stop)
        return [rows[p, ...] for p in range(self.n_kernels)] if is_foreign(rows) else list(rows)

    def diagonal(self) -> Array | None:
        """Return the self-similarities, (m, n); None if only the rows tell."""
        return None

    def product(self, index: int, X: Array) -> Array | None:
        """Return a kernel times a thin matrix, (n, b), if that takes no rows; else None."""
        return None

    def only(self, indices: Sequence[int]) -> "Source":
        """Return a source of some of the kernels."""
        return _SomeRows(self, tuple(indices))

    @property
    def precision(self) -> float:
        """Relative rounding of the entries."""
        return rounding_of(self)

    @property
    def height(self) -> int:
        """How many rows to read at a time."""
        n, itemsize = max(1, self.n_samples), np.dtype(precision_of(self)).itemsize
        row_bytes = self.n_kernels * n * itemsize
        free = free_bytes(self.like)
        if free is not None:
            rows = min(ENTRIES_ON_DEVICE // n, int(SHARE_ON_DEVICE * free / (n * itemsize)))
            return min(max(1, rows), n)
        rows = max(FEWEST_ROWS, min(BLOCK_BYTES // row_bytes, int(LARGEST_SHARE * n)))
        # Whole steps, so that none is read twice, unless they are too tall.
        return min(rows - rows % self.step if self.step <= rows else rows, n)

    def blocks(self) -> Iterator[tuple[slice, list[Array]]]:
        """Yield the rows of every kernel, block after block; a thread reads the next meanwhile."""
        parts = list(ranges(self.n_samples, self.height))
        if is_foreign(
            self.like
        ):  # what is asked for on a device is only begun, nothing to wait for
            yield from ((part, self.read(part.start, part.stop)) for part in parts)
            return
        with ThreadPoolExecutor(1, "mkclust-reader") as reader:
            pending = reader.submit(self.read, parts[0].start, parts[0].stop)
            for part, following in zip(parts, [*parts[1:], None], strict=True):
                blocks = pending.result()
                if following is not None:
                    pending = reader.submit(self.read, following.start, following.stop)
                yield part, blocks
                del blocks  # not to be held beside the next two

    def products(self, wanted: Sequence[tuple[int, Array]]) -> list[Array]:
        """Return products of some kernels with a thin matrix each, in one pass over their rows."""
        results: list[Any] = [self.product(index, X) for index, X in wanted]
        places = [place for place, result in enumerate(results) if result is None]
        if not places:
            return results
        thin = [wanted[place][1] for place in places]
        for place, X in zip(places, thin, strict=True):
            results[place] = empty(tuple(X.shape), X, precision_of(X))
        on_accelerator = is_on_accelerator(self.like)
        if on_accelerator:
            thin = [astype(X, precision_of(self)) for X in thin]
        for part, blocks in self.only([wanted[place][0] for place in places]).blocks():
            for place, X, block in zip(places, thin, blocks, strict=True):
                block = block if on_accelerator else astype(block, precision_of(X))
                results[place][part, :] = astype(block @ X, precision_of(results[place]))
        return results

    def rows_of(self, index: int, samples: Any) -> Array:
        """Return the rows of one kernel for a slice or an array of numbers, (s, n), in float64.

        The rows of all kernels are kept until others are asked for: who goes through the kernels
        block by block has every block read once.
        """
        if isinstance(samples, slice):
            start, stop, _ = samples.indices(self.n_samples)
            key: Any = (start, stop)
        else:
            samples = to_host(samples, np.int64)
            key = samples.tobytes()
        if self.__dict__.get("_latest", (None,))[0] != key:
            rows = self.read(start, stop) if isinstance(samples, slice) else self._some(samples)
            self.__dict__["_latest"] = (key, rows)
        return astype(self.__dict__["_latest"][1][index], "float64")

    def _some(self, samples: np.ndarray) -> list[Array]:
        """Return the rows of some samples for every kernel."""
        rising, order = np.unique(samples, return_inverse=True)
        if not len(rising):
            return list(self.rows(0, 0))
        step, parts = self.step, []
        for tiles in np.split(rising, np.flatnonzero(np.diff(rising // step) > 1) + 1):
            if not len(tiles):
                continue
            start = int(tiles[0] // step * step)
            stop = min(int(tiles[-1] // step * step) + step, self.n_samples)
            blocks = self.read(start, stop)
            parts.append([select(block, tiles - start) for block in blocks])
        every = zip(*parts, strict=True)
        return [select(namespace(*blocks).concat(list(blocks)), order) for blocks in every]


@dataclass(frozen=True)
class _SomeRows(Source):
    """Some kernels of a source that can only tell the rows of all."""

    source: Source
    indices: tuple[int, ...]

    def __post_init__(self) -> None:
        """Take over what is the same."""
        values = {"n_kernels": len(self.indices), "n_samples": self.source.n_samples}
        values |= {"dtype": self.source.dtype, "like": self.source.like, "step": self.source.step}
        self.__dict__.update(values)

    def rows(self, start: int, stop: int) -> Sequence[Array]:
        """Return the rows from start to stop of these kernels."""
        blocks = self.source.read(start, stop)
        return [blocks[index] for index in self.indices]


class GivenRows(Source):
    """A source that somebody else wrote: anything with the members of `RowSource`."""

    def __init__(self, source: RowSource):
        self.source, self.like = source, getattr(source, "like", None)
        self.n_kernels, self.n_samples = source.n_kernels, source.n_samples
        self.dtype = source.dtype

    def rows(self, start: int, stop: int) -> Sequence[Array]:
        """Return the rows from start to stop of every kernel, m blocks (stop - start, n)."""
        return self.source.rows(start, stop)


@dataclass(frozen=True)
class DatasetKernel:
    """One kernel of a three-dimensional dataset, not read before its rows are asked for."""

    dataset: Any
    index: int
    ndim: int = 2

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.dataset.shape[1:]

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """Shape of the tiles that the file holds, None if it holds rows."""
        return self.dataset.chunks

    def __getitem__(self, rows: slice) -> Array:
        return self.dataset[self.index, rows]


@dataclass(frozen=True)
class MatrixRows(Source):
    """The rows of matrices that support slicing: memory maps, HDF5 datasets, arrays.

    Attributes
    ----------
    matrices : sequence of m matrices of shape (n, n)
        The kernels.
    whole : dataset of shape (m, n, n) or None
        What they all are parts of, read by a single call; None if there is no such thing.
    """

    matrices: Sequence[Any] = field(repr=False)
    whole: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Learn sizes, number type and tiles."""
        first = self.matrices[0]
        empty_parts = [_read(matrix, slice(0, 0), "a kernel") for matrix in self.matrices]
        tiles = [getattr(matrix, "chunks", None) for matrix in self.matrices]
        values = {"n_kernels": len(self.matrices), "n_samples": first.shape[0]}
        values |= {"like": first if is_foreign(first) else None}
        values |= {"step": lcm(*(chunks[-2] for chunks in tiles if chunks))}
        self.__dict__.update(values | {"dtype": max(empty_parts, key=rounding_of).dtype})

    def only(self, indices: Sequence[int]) -> "MatrixRows":
        """Return the rows of some of the kernels."""
        is_whole = list(indices) == list(range(self.n_kernels))
        return self if is_whole else MatrixRows([self.matrices[index] for index in indices])

    def rows(self, start: int, stop: int) -> Sequence[Array]:
        """Return the rows from start to stop of every kernel, m blocks (stop - start, n)."""
        part = slice(start, stop)
        if self.whole is not None:
            return _read(self.whole, (slice(None), part), "the kernels")
        return [_read(matrix, part, f"kernel {p}") for p, matrix in enumerate(self.matrices)]


def _read(matrix: Any, part: Any, who: str) -> Array:
    """Return a part of a matrix as floats in memory."""
    entries = matrix[part, ...] if is_foreign(matrix) else matrix[part]
    entries = entries.toarray() if is_sparse(entries) else entries
    return as_numbers(np.array(entries) if isinstance(entries, np.memmap) else entries, who)
