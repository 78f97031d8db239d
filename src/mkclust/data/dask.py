"""Views as dask arrays: functions go to the chunks, and small results come back."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from itertools import pairwise
from typing import Any

import numpy as np

from mkclust.data.blocks import MOST_ROWS, BlockFunction, Blocks, add, some_of
from mkclust.data.check import as_floats
from mkclust.types import Array

# Samples of a chunk if no view has all samples.
_ROWS = 10 * MOST_ROWS


class DaskBlocks(Blocks):
    """Views as dask arrays in chunks of samples, computed by the active scheduler.

    A pass is one task per chunk, which runs where the chunk is. Sums are added up in a
    tree.
    """

    def __init__(
        self, tables: Mapping[str, Any], observed: Any = None, block_rows: Any = None
    ):
        super().__init__(tables, observed, block_rows or MOST_ROWS)
        complete = [
            view.chunks[0]
            for view in self._tables.values()
            if view.shape[0] == self.n_samples
        ]
        n_whole, left = divmod(self.n_samples, _ROWS)
        by_default = [_ROWS] * n_whole + [left]
        heights = min(complete, key=max, default=by_default)
        # Filters leave chunks without rows.
        self._starts = np.cumsum([0, *(height for height in heights if height)])
        self._chunks = []
        for number, table in enumerate(self._tables.values()):
            ends = self._starts
            if observed is not None:
                ends = np.append(0, self._ranks[:, number] + 1)[ends]
            steps = tuple(np.diff(ends).tolist())
            cut = table.rechunk({0: steps, 1: -1})
            self._chunks.append(cut.to_delayed().ravel().tolist())

    def total(self, function: BlockFunction) -> Any:
        """Return the sum of a function over all blocks: an array, or several."""
        import dask

        add_all = partial(reduce, add)
        parts = self._tasks(function, add_all)
        tree = dask.delayed(add_all)
        # Partial sums that one task adds up: few, for each may be as large as all
        # features squared.
        fan_in = 4
        while len(parts) > 1:
            starts = range(0, len(parts), fan_in)
            parts = [tree(parts[i : i + fan_in]) for i in starts]
        return parts[0].compute()

    def map(self, function: BlockFunction) -> Array:
        """Return a function of all blocks, one row per sample."""
        import dask

        tasks = self._tasks(function, _concatenated)
        return np.concatenate(dask.compute(*tasks))

    def map_lazily(self, function: BlockFunction, example: Array) -> Any:
        """Return a function of all blocks as a dask array; `example` is its result.

        Nothing is computed before it is asked for. The first axis is that of samples.
        """
        import dask.array as da

        tasks = self._tasks(function, _concatenated)
        heights = np.diff(self._starts).tolist()
        parts = [
            da.from_delayed(task, (height, *example.shape[1:]), example.dtype)
            for task, height in zip(tasks, heights, strict=True)
        ]
        return da.concatenate(parts)

    def _take_rows(self, name: str, rows: Any) -> Array:
        rows_of_table = self._tables[name][rows]
        return as_floats(rows_of_table.compute(), f"View {name!r}")

    def _tasks(
        self, function: BlockFunction, combine: Callable[[Iterable], Any]
    ) -> list[Any]:
        """Return the task of every chunk, which combines the results of its blocks."""
        import dask

        shared = dask.delayed((function, combine), pure=False)
        task = dask.delayed(_compute_chunk)
        tasks = []
        for number, (start, stop) in enumerate(pairwise(self._starts.tolist())):
            observed = some_of(self.observed, slice(start, stop))
            chunks = [each[number] for each in self._chunks]
            rows = (start, stop, self._height)
            tasks.append(task(shared, self.names, chunks, observed, rows))
        return tasks


def _concatenated(parts: Iterable[Array]) -> Array:
    """Return the results of some blocks, one row per sample."""
    return np.concatenate([*parts])


def _compute_chunk(
    shared: tuple[BlockFunction, Callable[[Iterable], Any]],
    names: Sequence[str],
    chunks: Sequence[np.ndarray],
    observed: np.ndarray | None,
    rows: tuple[int, int, int],
) -> Any:
    """Return the combined results of the blocks of one chunk, checked for its rows."""
    function, combine = shared
    start, stop, height = rows
    counts = [stop - start] * len(names)
    if observed is not None:
        counts = observed.sum(axis=0).tolist()
    for name, chunk, n_rows in zip(names, chunks, counts, strict=True):
        if chunk.shape[0] != n_rows:
            raise ValueError(
                f"View {name!r} has other chunk sizes: call compute_chunk_sizes()."
            )
    blocks = Blocks(dict(zip(names, chunks, strict=True)), observed, height)
    results = (function(block, start + first) for first, block in blocks)
    return combine(results)
