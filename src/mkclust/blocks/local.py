"""Views on this machine: arrays, memory maps, and files read by rows."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from mkclust.blocks.base import Look, add
from mkclust.types import Array

# Bytes of a block over all views: large enough for fast products, small enough for the cache.
BLOCK_BYTES = 4 << 20


class LocalBlocks:
    """Views that can be sliced by rows: arrays, memory maps, HDF5 and parquet files.

    Reading a block overlaps with looking at the one before it.

    Parameters
    ----------
    views : mapping of str to array-like
        Each of shape (n_samples, n_features), with ``shape`` and slices by rows.
    block_rows : int or None, default=None
        Samples of a block; None chooses.
    """

    def __init__(self, views: Mapping[str, Any], block_rows: int | None = None):
        self._views = dict(views)
        width = sum(view.shape[1] for view in self._views.values())
        self._height = block_rows or int(np.clip(BLOCK_BYTES // (8 * width), 256, 8192))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the views."""
        return tuple(self._views)

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return int(next(iter(self._views.values())).shape[0])

    @property
    def n_features(self) -> tuple[int, ...]:
        """Number of columns of each view."""
        return tuple(int(view.shape[1]) for view in self._views.values())

    def total(self, look: Look) -> Any:
        """Return the sum over all blocks of what `look` makes of each: an array or a tuple."""
        total = None
        for start, block in self._read():
            total = add(total, look(block, start))
        return total

    def map(self, look: Look) -> Array:
        """Return what `look` makes of all blocks, one row a sample."""
        result: np.ndarray | None = None
        for start, block in self._read():
            part = look(block, start)
            if result is None:
                result = np.empty((self.n_samples, *part.shape[1:]), part.dtype)
            result[start : start + len(part)] = part
        assert result is not None
        return result

    def take(self, samples: np.ndarray) -> dict[str, np.ndarray]:
        """Return the views of some samples, given by rising numbers, in memory."""
        return {name: as_floats(view[samples]) for name, view in self._views.items()}

    def _read(self) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
        """Yield the blocks in order, the next being read while one is looked at."""
        starts = range(0, self.n_samples, self._height)
        with ThreadPoolExecutor(1) as reader:
            coming = reader.submit(self._block, starts[0])
            for start, following in zip(starts, [*starts[1:], None], strict=True):
                block = coming.result()
                if following is not None:
                    coming = reader.submit(self._block, following)
                yield start, block

    def _block(self, start: int) -> dict[str, np.ndarray]:
        """Read one block."""
        rows = slice(start, start + self._height)
        return {name: as_floats(view[rows]) for name, view in self._views.items()}


def as_floats(rows: Any) -> np.ndarray:
    """Return rows as float32 or float64; what is neither becomes float64."""
    rows = np.asarray(rows)
    return rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)
