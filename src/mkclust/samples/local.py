"""Views on this machine: arrays, also on a device, sparse ones, memory maps, files read by rows."""

import hashlib
import mmap
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral
from typing import Any

import numpy as np

from mkclust.datasets.parquet import ParquetTable
from mkclust.linalg import device, is_foreign, is_sparse, namespace, ranges, select
from mkclust.linalg.sparse_rows import row_width, spread_rows
from mkclust.samples.block_threads import look_at_all
from mkclust.samples.blocks import (
    BlockFunction,
    SeenRows,
    add,
    block_height,
    without_missing,
)
from mkclust.samples.checks import as_floats, memory_map
from mkclust.types import Array

# Blocks of files are whole tiles, not to read one twice, unless a tile is larger than this.
TILE_BYTES = 32 << 20
# Rows between two that are wanted are read along where they take less than this: another call
# would take longer.
GAP_BYTES = 64 << 10
# What is read at a time to tell whether a file still holds the same numbers.
DIGEST_BYTES = 4 << 20


class SpreadRows:
    """A view that holds the rows of some samples only, sliced as if it had one for each.

    Where a sample is missing from the view, a row of NaN stands for it, of a sparse view one with
    NaN in its first column. Only the rows that are asked for are made, where the view lives.

    Parameters
    ----------
    view : array-like of shape (n_observed, n_features)
        What can be sliced by rows.
    samples : ndarray of int of shape (n_observed,)
        The numbers of its samples, rising.
    n_samples : int
        Number of all samples, n.
    """

    def __init__(self, view: Any, samples: np.ndarray, n_samples: int):
        if view.shape[0] != len(samples):
            raise ValueError(f"{view.shape[0]} rows of {len(samples)} samples: pass one for each")
        self.view, self.samples = view, np.asarray(samples)
        self.shape = (int(n_samples), int(view.shape[1]))
        self.dtype = view.dtype

    def __getitem__(self, rows: Any) -> Array:
        """Return the rows of a slice of samples, or of those with the numbers in an array."""
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(self.shape[0])
            first, last = np.searchsorted(self.samples, (start, stop)).tolist()
            places, count = self.samples[first:last] - start, stop - start
            part = self._take(slice(first, last))
        else:
            positions, count = np.searchsorted(self.samples, rows), len(rows)
            is_seen = np.isin(rows, self.samples)
            places, part = np.flatnonzero(is_seen), self._take(positions[is_seen])
        if len(places) == count:
            return part
        return spread_rows(as_floats(part, "A view"), places, count, np.nan)

    def _take(self, rows: Any) -> Any:
        """Return some of the rows that there are."""
        return select(self.view, rows) if is_foreign(self.view) else self.view[rows]


class LocalBlocks:
    """Views that can be sliced by rows: arrays, CSR matrices, memory maps, HDF5 data sets.

    Reading a block, and turning its numbers to floats, overlaps with looking at those before it.
    Arrays of another library than NumPy are there already: their blocks are slices, and large.

    Parameters
    ----------
    views : mapping of str to array-like
        Each of shape (n_samples, n_features), with ``shape`` and slices by rows; `SpreadRows` where
        a view holds only the rows of some samples.
    block_rows : int or None, default=None
        Samples of a block; None chooses.
    gap_bytes : int, default=GAP_BYTES
        Rows between two that are asked for are read along where they take less than this.
    """

    def __init__(
        self,
        views: Mapping[str, Any],
        block_rows: int | None = None,
        *,
        gap_bytes: int = GAP_BYTES,
    ):
        if block_rows is not None and not (isinstance(block_rows, Integral) and block_rows > 0):
            raise ValueError(f"block_rows={block_rows!r}: pass None or a positive whole number")
        self._views, self._gap_bytes = dict(views), gap_bytes
        self._n_samples = int(next(iter(self._views.values())).shape[0])
        self._maps = {name: memory_map(_table(view)) for name, view in self._views.items()}
        self._height = int(block_rows or self._whole_tiles())

    @property
    def _first(self) -> Any:
        """The first view, which says where all of them live."""
        return _table(next(iter(self._views.values())))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the views."""
        return tuple(self._views)

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return self._n_samples

    @property
    def n_features(self) -> tuple[int, ...]:
        """Number of columns of each view."""
        return tuple(int(view.shape[1]) for view in self._views.values())

    def lower(self, most_rows: int) -> "LocalBlocks":
        """Return the same views in blocks of at most so many samples."""
        return LocalBlocks(self._views, min(self._height, most_rows), gap_bytes=self._gap_bytes)

    def total(self, look: BlockFunction) -> Any:
        """Return the sum over all blocks of what `look` makes of each: an array or a tuple."""
        total = None
        for _, part in self._looks(look):
            total = add(total, part)
        return total

    def map(self, look: BlockFunction) -> Array:
        """Return what `look` makes of all blocks, one row a sample."""
        result: Array = None
        for start, part in self._looks(look):
            if result is None:
                shape = (self.n_samples, *part.shape[1:])
                result = namespace(part).empty(shape, dtype=part.dtype, device=device(part))
            result[start : start + part.shape[0], ...] = part
        assert result is not None
        return result

    def take(self, samples: np.ndarray) -> dict[str, Array]:
        """Return the views of some samples, given by rising numbers, in memory."""
        return {name: self._take_rows(name, samples) for name in self._views}

    def take_seen(self, samples: np.ndarray) -> dict[str, SeenRows]:
        """Return the rows that each view has of some samples; of all of them, views as they are."""
        seen = {}
        for name, view in self._views.items():
            if isinstance(view, SpreadRows):
                numbers = samples[np.isin(samples, view.samples)]
                there = LocalBlocks({name: view.view}, self._height, gap_bytes=self._gap_bytes)
                positions = np.searchsorted(view.samples, numbers)
                seen[name] = there.take(positions)[name], numbers
            else:
                seen[name] = without_missing(self._take_rows(name, samples), samples)
        return seen

    def _looks(self, look: BlockFunction) -> Iterator[tuple[int, Any]]:
        """Yield what `look` makes of every block, in order, with the number of its first sample.

        The next block is read while others are looked at. All threads end with the last block, or
        with an error.
        """
        if is_foreign(self._first) or self.n_samples <= self._height:
            # Nothing to read meanwhile: a device does not wait for its work to end.
            for start in range(0, self.n_samples, self._height):
                yield start, look(self._block(start), start)
            return
        with ThreadPoolExecutor(1, "mkclust-reader") as reader:
            yield from look_at_all(self._read_ahead(reader), look)

    def _read_ahead(self, reader: ThreadPoolExecutor) -> Iterator[tuple[int, dict[str, Array]]]:
        """Yield all blocks in order, the next being read meanwhile."""
        starts = range(0, self.n_samples, self._height)
        future = reader.submit(self._block, starts[0])
        for start, following in zip(starts, [*starts[1:], None], strict=True):
            block = future.result()
            if following is not None:
                future = reader.submit(self._block, following)
            yield start, block

    def _block(self, start: int) -> dict[str, Array]:
        """Read one block."""
        stop = min(start + self._height, self.n_samples)
        return {name: self._read(name, slice(start, stop)) for name in self._views}

    def _take_rows(self, name: str, samples: np.ndarray) -> Array:
        """Return some rows of one view."""
        view = self._views[name]
        if len(samples) == self.n_samples:
            return self._read(name, slice(0, self.n_samples))  # all of them: no need to copy
        table = _table(view)
        takes_numbers = isinstance(table, np.ndarray | ParquetTable) or is_sparse(table)
        if is_foreign(table) or takes_numbers or not len(samples):
            return self._read(name, samples)
        # HDF5 is slow with lists of rows, and others may know none.
        reach = max(self._gap_bytes // (8 * int(view.shape[1])), _tile_height(view))
        parts = []
        for run in _runs(samples, reach, self._height):
            first = int(run[0])
            parts.append(self._read(name, slice(first, int(run[-1]) + 1))[run - first])
        return np.concatenate(parts)

    def _read(self, name: str, rows: Any) -> Array:
        """Return some rows of one view as floats, and say which could not be read."""
        view, owner = self._views[name], self._maps[name]
        if is_foreign(view):
            block = view[rows, :] if isinstance(rows, slice) else select(view, rows)
            return as_floats(block, f"View {name!r}")
        try:
            if owner is None:
                block = as_floats(view[rows], f"View {name!r}")
            else:
                check_length(owner)
                # A copy, for otherwise the file would be read no sooner than it is looked at.
                block = as_floats(np.array(view[rows]), f"View {name!r}")
            expected = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
            if block.shape[0] != expected:
                raise OSError(f"there are {block.shape[0]} rows instead of {expected}")
            return block
        except (OSError, RuntimeError, KeyError, IndexError) as error:
            first, last = (rows.start, rows.stop - 1) if isinstance(rows, slice) else rows[[0, -1]]
            raise OSError(
                f"View {name!r} could not be read, at the samples {first} to {last}: {error}"
            ) from error

    def _whole_tiles(self) -> int:
        """Return the height of a block, in whole tiles of the files where that is possible."""
        widths = [row_width(_table(view)) for view in self._views.values()]
        height = block_height(widths, self._first)
        step = max(_tile_height(view) for view in self._views.values())
        if step <= height:
            return height - height % step
        return step if 8 * step * sum(widths) <= TILE_BYTES else height


def _table(view: Any) -> Any:
    """Return what holds the rows of a view."""
    return view.view if isinstance(view, SpreadRows) else view


def _tile_height(view: Any) -> int:
    """Return how many rows a file holds in one tile: to read one of them is to read them all."""
    chunks = getattr(_table(view), "chunks", None)
    return int(chunks[0]) if chunks else 1


def _runs(samples: np.ndarray, reach: int, height: int) -> Iterator[np.ndarray]:
    """Cut rising numbers into runs to be read together: no wide gaps, and no more than a block."""
    for run in np.split(samples, np.flatnonzero(np.diff(samples) > reach) + 1):
        yield from np.split(run, np.flatnonzero(np.diff((run - run[0]) // height)) + 1)


def fingerprint(view: Any) -> str | None:
    """Return a digest of the numbers in a memory map; None for what is in memory."""
    owner = memory_map(view)
    if owner is None:
        return None
    check_length(owner)
    digest = hashlib.blake2b(digest_size=16)
    for rows in ranges(view.shape[0], max(1, DIGEST_BYTES // max(1, view[:1].nbytes))):
        digest.update(np.ascontiguousarray(view[rows]).data)
    return digest.hexdigest()


def check_length(owner: np.memmap) -> None:
    """Refuse a map of a file that was cut short: to touch what is missing ends the process."""
    assert isinstance(owner.base, mmap.mmap)
    size, expected = owner.base.size(), owner.offset + owner.nbytes
    if size < expected:
        raise OSError(
            f"the file {owner.filename} was cut short while in use, it has {size} of {expected} "
            "bytes; write it again, and open it anew"
        )
