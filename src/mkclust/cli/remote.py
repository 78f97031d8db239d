"""Views that the workers of a cluster read by themselves, and results that come back."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from mkclust import blocks
from mkclust.blocks.distributed import cut_evenly
from mkclust.cli.failures import CommandError
from mkclust.cli.inputs import input_path
from mkclust.cli.progress import Progress
from mkclust.datasets.on_disk import TableOnDisk
from mkclust.datasets.parquet import ParquetView

# Formats of which workers can read some rows.
SUFFIXES = (".npy", ".h5", ".hdf5", ".parquet")
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


def check_readable(inputs: Sequence[str]) -> None:
    """Refuse inputs of which workers could not read some rows, before any is read."""
    for text in inputs:
        path = input_path(text)
        if path is None or path.suffix.lower() not in SUFFIXES:
            raise CommandError(
                f"{text}: with --cluster workers read the samples some rows at a time, from files "
                f"of {', '.join(SUFFIXES)}; store it in one of these"
            )


@contextmanager
def connected(address: str | None, progress: Progress) -> Iterator[None]:
    """Run what is inside on a cluster, or here where there is no address."""
    if address is None:
        yield
        return
    progress.phase(f"connecting to {address}")
    with blocks.connect(address):
        yield


def as_dask(views: Mapping[str, Any]) -> dict[str, Any]:
    """Return views as dask arrays, all cut alike, whose chunks are read where they are needed."""
    import dask.array as da

    heights = _heights(list(views.values()))
    arrays = {}
    for name, view in views.items():
        source = MappedView(view) if isinstance(view, np.memmap) else view
        # A name that no other run shares: what workers keep of a file may have changed there.
        arrays[name] = da.from_array(source, (heights, (view.shape[1],)), name=False)
    return arrays


def fit_on_workers(model: Any, views: Mapping[str, Any]) -> None:
    """Fit a model where the workers are; its labels come here, its embedding stays there."""
    try:
        model.fit(as_dask(views))
    except FileNotFoundError as error:
        raise CommandError(
            f"a worker cannot open a file that was read here ({error}); workers need the inputs "
            "under the same paths, such as on a shared disk"
        ) from error
    for name, value in list(vars(model).items()):
        if blocks.is_dask(value) and name != "embedding_":
            setattr(model, name, np.asarray(value))


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
