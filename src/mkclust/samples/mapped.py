"""Views in files as dask arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mkclust.datasets.on_disk import TableOnDisk
from mkclust.datasets.parquet import ParquetView
from mkclust.samples.dask import cut_evenly

# What a worker reads at a time, over all views.
CHUNK_BYTES = 32 << 20
FEWEST_ROWS = 1024
# Row groups of parquet files are read whole, up to so many times that.
MOST_CHUNKS = 4


class MappedView(TableOnDisk):
    """A table in a ``.npy`` file, mapped anew wherever it is read.

    Parameters
    ----------
    mapped : numpy.memmap
        The table as it was mapped here, rows or columns first.
    """

    def __init__(self, mapped: np.memmap):
        single = mapped.dtype.kind == "f" and mapped.dtype.itemsize <= 4
        super().__init__(str(mapped.filename), mapped.shape, np.float32 if single else np.float64)
        self._layout: dict[str, Any] = {
            "dtype": mapped.dtype,
            "offset": mapped.offset,
            "shape": mapped.shape,
            "order": "C" if mapped.flags.c_contiguous else "F",
        }

    def _read(self, start: int, stop: int) -> np.ndarray:
        mapped = np.memmap(self.path, mode="r", **self._layout)
        return np.array(mapped[start:stop], dtype=self.dtype)


def as_dask(views: Mapping[str, Any]) -> dict[str, Any]:
    """Return views in files as dask arrays, whose chunks are read by whoever needs them.

    Nothing is read here, and no samples travel: workers open the files by themselves, which must
    be there under the same path.

    Parameters
    ----------
    views : mapping of str to array-like
        Views of the same samples, as ``mkclust.datasets.load`` leaves them on disk: of ``.npy`` and
        parquet files always, of HDF5 files with ``on_disk=True``.

    Returns
    -------
    dict of str to dask array
        All cut alike; parquet files between row groups, unless these are large.

    Examples
    --------
    >>> from mkclust.samples.mapped import as_dask
    >>> from mkclust.datasets import load
    >>> lazy = as_dask(load("rows.parquet").views)  # doctest: +SKIP
    """
    import dask.array as da

    heights = _heights(list(views.values()))
    arrays = {}
    for name, view in views.items():
        source = MappedView(view) if isinstance(view, np.memmap) else view
        # A name that no other run shares: what workers keep of a file may have changed there.
        arrays[name] = da.from_array(source, (heights, (view.shape[1],)), name=False)
    return arrays


def _heights(views: Sequence[Any]) -> tuple[int, ...]:
    """Return how many rows are read at a time: whole row groups, where files have them."""
    n, width = views[0].shape[0], sum(view.shape[1] for view in views)
    least = max(CHUNK_BYTES // (8 * width), FEWEST_ROWS)
    groups = [view.row_groups for view in views if isinstance(view, ParquetView)]
    # Of several files the one with the largest row groups, which are the dearest to cut. Yet a
    # worker must have room for what it reads.
    steps: Sequence[int] = min(groups, key=len) if groups else [least] * (n // least)
    steps = [part for step in steps for part in cut_evenly(step, MOST_CHUNKS * least)]
    heights, height = [], 0
    for step in steps:
        height += step
        if height >= least:
            heights.append(height)
            height = 0
    if sum(heights) < n:
        heights.append(n - sum(heights))
    return tuple(heights)
