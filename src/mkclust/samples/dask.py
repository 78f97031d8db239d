"""Views as dask arrays: in this process's threads, or on a cluster.

Samples stay where dask has them. What comes to the client is as small as the features: sums over
all samples, and the rows of a few of them.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mkclust.datasets.parquet import ParquetTable
from mkclust.linalg.sparse_rows import spread_rows
from mkclust.metrics import adjusted_rand_of_table
from mkclust.samples.blocks import MOST_ROWS, BlockFunction, SeenRows, add, without_missing
from mkclust.samples.checks import as_floats, is_dask
from mkclust.samples.cluster import active_client, compute, persist
from mkclust.types import Array

__all__ = [
    "DaskBlocks",
    "MappedView",
    "agreement",
    "as_dask",
    "contingency",
    "cut_evenly",
    "is_dask",
    "persist",
    "reduce_blocks",
]

# Partial sums that one task adds up: few, for each may be as large as all features squared.
FAN_IN = 4
# What a worker reads at a time, over all views.
CHUNK_BYTES = 32 << 20
FEWEST_ROWS = 1024
# Row groups of parquet files are read whole, up to so many times that.
MOST_CHUNKS = 4

# What is done to a block: a block of each array, and the number of its first row.
ChunkFunction = Callable[[Sequence[np.ndarray], int], Any]


class DaskBlocks:
    """Views as dask arrays, looked at by whatever scheduler is active.

    A pass is one task a chunk of rows, and runs where the chunk is; chunks are those of the view
    that is cut most finely, and the other views are cut alike. Within a task the rows are looked
    at in blocks, so that features need not fit into memory for a whole chunk.

    Parameters
    ----------
    views : mapping of str to dask array
        Each of shape (n_samples, n_features), checked by :func:`mkclust.samples.samples.as_blocks`.
    keep : bool, default=True
        Whether :meth:`map` computes at once and keeps its result where the blocks are: in the
        memory of the workers, or of this process where there are none. False leaves it lazy.
    most_rows : int, default=MOST_ROWS
        Samples that a task looks at together, at most.
    """

    def __init__(self, views: Mapping[str, Any], keep: bool = True, *, most_rows: int = MOST_ROWS):
        self._heights = _common_heights(list(views.values()))
        layout = {0: self._heights, 1: -1}
        self._views: dict[str, Any] | None = {n: v.rechunk(layout) for n, v in views.items()}
        self._keep, self._most_rows = keep, most_rows
        self._example: dict[str, np.ndarray] | None = None
        self._names = tuple(views)
        self._widths = tuple(int(view.shape[1]) for view in views.values())
        # All passes run there: were it lost between two of them, dask would go on in this process.
        self._client = active_client()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the samples out: what is sent to workers may mention its blocks, not bring them."""
        return vars(self) | {"_views": None, "_example": None, "_client": None}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the views."""
        return self._names

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return sum(self._heights)

    @property
    def n_features(self) -> tuple[int, ...]:
        """Number of columns of each view."""
        return self._widths

    def total(self, look: BlockFunction) -> Any:
        """Return the sum over all blocks of what `look` makes of each, in float64.

        Partial sums are added up in a tree, so that nobody ever holds more than a few of them.
        """
        named = self._by_name(look)

        def summand(rows: Sequence[np.ndarray], start: int) -> Any:
            return _as_sum(named(rows, start))

        return reduce_blocks(
            self._arrays(), summand, add, client=self._client, most_rows=self._most_rows
        )

    def map(self, look: BlockFunction) -> Array:
        """Return what `look` makes of all blocks, one row a sample, as a dask array.

        `look` is tried on the first sample here, to know the width and the type of the result.
        """
        arrays = self._arrays()
        if self._example is None:
            self.take(np.arange(1))
        assert self._example is not None
        row = np.asarray(look(self._example, 0))
        if row.ndim == 1:
            layout: dict[str, Any] = {"chunks": (self._heights,), "drop_axis": 1}
        else:
            layout = {"chunks": (self._heights, (row.shape[1],))}
        meta = np.empty((0,) * row.ndim, row.dtype)
        named, join = self._by_name(look), _concatenate_rows
        result = _map_chunks(arrays, named, join, self._most_rows, meta=meta, **layout)
        return persist(result, client=self._client) if self._keep else result

    def take(self, samples: np.ndarray) -> dict[str, np.ndarray]:
        """Return the views of some samples, given by rising numbers; only these travel."""
        blocks = compute(*(view[samples] for view in self._arrays()), client=self._client)
        views = _named_floats(self._names, blocks)
        if len(samples) and samples[0] == 0:
            self._example = {name: rows[:1] for name, rows in views.items()}
        return views

    def take_seen(self, samples: np.ndarray) -> dict[str, SeenRows]:
        """Return the rows that each view has of some samples, given by rising numbers."""
        views = self.take(samples)
        return {name: without_missing(rows, samples) for name, rows in views.items()}

    def _arrays(self) -> list[Any]:
        """Return the views, all cut alike."""
        if self._views is None:
            raise RuntimeError(
                "these blocks were pickled, which leaves their samples out: make them anew from "
                "the views, with as_blocks"
            )
        return list(self._views.values())

    def _by_name(self, look: BlockFunction) -> ChunkFunction:
        """Return a look that takes the views of a block in their order."""
        names = self._names

        def named(rows: Sequence[np.ndarray], start: int) -> Any:
            return look(_named_floats(names, rows), start)

        return named


def spread_lazily(view: Any, samples: np.ndarray, n_samples: int) -> Any:
    """Return a dask array of rows of NaN where a view that holds only some samples lacks one.

    Parameters
    ----------
    view : dask array of shape (n_observed, n_features)
        The rows that there are.
    samples : ndarray of int of shape (n_observed,)
        The numbers of their samples, rising.
    n_samples : int
        Number of all samples, n.

    Returns
    -------
    dask array of shape (n_samples, n_features)
        Each of its chunks is made of one of the view.
    """
    import dask.array as da

    dtype = as_floats(np.empty(0, view.dtype), "A view").dtype
    if not len(samples):
        return da.full((n_samples, view.shape[1]), np.nan, dtype=dtype)
    view = view.rechunk({0: tuple(height for height in view.chunks[0] if height)})
    ends = np.cumsum(view.chunks[0])
    # A chunk ends before the first sample of the next; the last takes what remains.
    bounds = np.array([0, *samples[ends[:-1]], n_samples])
    numbers = np.split(samples, ends[:-1])
    places = [each - start for each, start in zip(numbers, bounds[:-1], strict=True)]
    heights = tuple(np.diff(bounds).tolist())
    return view.map_blocks(
        _spread_chunk, places, heights, chunks=(heights, view.chunks[1]), dtype=dtype
    )


def _spread_chunk(
    chunk: np.ndarray, places: Sequence[np.ndarray], heights: Sequence[int], block_info: Any = None
) -> np.ndarray:
    """Return a chunk with rows of NaN between those that it has."""
    number = block_info[0]["chunk-location"][0]
    return spread_rows(as_floats(chunk, "A view"), places[number], heights[number], np.nan)


def _named_floats(names: Sequence[str], blocks: Sequence[Any]) -> dict[str, np.ndarray]:
    """Return rows of each view as floats, by the names of the views."""
    pairs = zip(names, blocks, strict=True)
    return {name: as_floats(rows, f"View {name!r}") for name, rows in pairs}


def reduce_blocks(
    arrays: Sequence[Any],
    look: ChunkFunction,
    combine: Callable[[Any, Any], Any],
    *,
    client: Any = None,
    most_rows: int = MOST_ROWS,
) -> Any:
    """Look at every block, and combine what was made of them in a tree.

    Parameters
    ----------
    arrays : sequence of dask array
        All 2-D and of the same chunks of rows, with one chunk of columns.
    look : callable
        Takes a block of each array and the number of its first row.
    combine : callable
        Makes one of two results, in any order of the blocks.
    client : distributed.Client or None, default=None
        The cluster that looks; None takes what is active.
    most_rows : int, default=MOST_ROWS
        Rows that a task looks at together, at most.

    Returns
    -------
    object
        What is left in the end, in this process.
    """
    import dask.array as da

    n_chunks = arrays[0].numblocks[0]
    join = functools.partial(functools.reduce, combine)
    meta, chunks = np.empty((0, 0), object), ((1,) * n_chunks, (1,))
    merge = functools.partial(_merge, combine=combine)
    tree = da.reduction(
        _map_chunks(arrays, look, join, most_rows, meta=meta, chunks=chunks),
        chunk=_identity,
        combine=merge,
        aggregate=merge,
        axis=0,
        split_every=FAN_IN,
        concatenate=False,
        dtype=object,
        meta=np.empty(0, object),
    )
    # The last block as an object: as an array, dask would take a tuple for a list of blocks.
    return compute(tree.to_delayed().item(), client=client)[0]


def contingency(first: Any, second: Any, n_clusters: int) -> np.ndarray:
    """Count samples by their clusters in two clusterings, (n_clusters, n_clusters).

    Parameters
    ----------
    first, second : dask array of int, of shape (n_samples,)
        Clusters below `n_clusters`, -1 for samples to be left out; of the same chunks.
    n_clusters : int
        Number of clusters, k.
    """

    def count(labels: Sequence[np.ndarray], _: int) -> np.ndarray:
        return _count_pairs(labels[0][:, 0], labels[1][:, 0], n_clusters)

    return reduce_blocks([first[:, None], second[:, None]], count, add)


def _count_pairs(first: np.ndarray, second: np.ndarray, n_clusters: int) -> np.ndarray:
    """Count the samples that have a cluster in both of two clusterings, (k, k)."""
    pairs = (first * n_clusters + second)[(first >= 0) & (second >= 0)]
    return np.bincount(pairs, minlength=n_clusters**2).reshape(n_clusters, n_clusters)


def _common_heights(views: Sequence[Any]) -> tuple[int, ...]:
    """Return how many rows the chunks of all views are to have."""
    import dask
    from dask.utils import parse_bytes

    finest = min(views, key=lambda view: max(view.chunks[0]))
    # Filters leave chunks without rows, which no feature map takes.
    heights = [height for height in finest.chunks[0] if height]
    if any(view.numblocks[1] > 1 for view in views):
        # Columns are put together, which must not gather more than a chunk should hold.
        widest = max(view.shape[1] for view in views)
        most = max(1, parse_bytes(dask.config.get("array.chunk-size")) // (8 * widest))
        heights = [part for height in heights for part in cut_evenly(height, most)]
    return tuple(heights)


def cut_evenly(height: int, most: int) -> list[int]:
    """Cut a number of rows into parts of at most so many, as even as can be."""
    n_parts = -(-height // most)
    return [height // n_parts + (part < height % n_parts) for part in range(n_parts)]


def _map_chunks(
    arrays: Sequence[Any],
    look: ChunkFunction,
    join: Callable[[Iterator[Any]], Any],
    most_rows: int,
    **layout: Any,
) -> Any:
    """Return what `look` makes of every chunk, as a dask array that is not yet computed."""
    import dask
    import dask.array as da

    numbers = da.arange(arrays[0].shape[0], chunks=(arrays[0].chunks[0],))[:, None]
    # One object that all tasks refer to, so that landmarks are sent once and not with every task.
    # It is part of the graph, unlike scattered data, and so outlives the workers that hold it.
    shared = dask.delayed((look, join, most_rows), pure=False)
    return da.map_blocks(
        _look_at_chunk, *arrays, numbers, shared=shared, dtype=layout["meta"].dtype, **layout
    )


def _look_at_chunk(*chunks: np.ndarray, shared: tuple[ChunkFunction, Callable, int]) -> Any:
    """Look at one chunk, some rows at a time."""
    (look, join, most_rows), (*arrays, numbers) = shared, chunks
    if wrong := [array.shape[0] for array in arrays if array.shape[0] != len(numbers)]:
        raise ValueError(
            f"A chunk that should hold the samples {numbers[0, 0]} to {numbers[-1, 0]} has "
            f"{wrong[0]} rows: what made the dask array was told a wrong shape; correct it, or "
            "call compute_chunk_sizes()"
        )
    starts = range(0, len(numbers), most_rows)
    # One after another, for a sum may be large and a chunk have many blocks.
    return join(look([a[s : s + most_rows] for a in arrays], int(numbers[s, 0])) for s in starts)


def _concatenate_rows(parts: Iterator[np.ndarray]) -> np.ndarray:
    """Return the rows of several blocks as one array."""
    return np.concatenate(list(parts))


def _as_sum(part: Any) -> Any:
    """Return what was made of one block as something to be summed: float64."""
    if isinstance(part, tuple):
        return tuple(np.asarray(p, np.float64) for p in part)
    return np.asarray(part, np.float64)


def _identity(part: Any, axis: Any, keepdims: bool) -> Any:
    """Return a part as it is."""
    return part


def _merge(parts: Any, axis: Any, keepdims: bool, combine: Callable[[Any, Any], Any]) -> Any:
    """Combine the parts of some chunks; a list is what dask makes of them."""
    return functools.reduce(combine, parts) if isinstance(parts, list) else parts


def agreement(first: Array, second: Array, n_clusters: int) -> float:
    """Return the adjusted Rand index of two clusterings; of dask arrays only counts travel.

    Parameters
    ----------
    first, second : ndarray or dask array of int, of shape (n_samples,)
        Clusters below `n_clusters`, both as arrays of one kind; -1 for samples to be left out.
    n_clusters : int
        Number of clusters, k.

    Returns
    -------
    float
        NaN if no sample is left.
    """
    if is_dask(first):
        table = contingency(first, second.rechunk(first.chunks), n_clusters)
    else:
        table = _count_pairs(first, second, n_clusters)
    return adjusted_rand_of_table(table) if table.any() else np.nan


class MappedView:
    """A table in a ``.npy`` file, mapped anew wherever it is read.

    Parameters
    ----------
    mapped : numpy.memmap
        The table as it was mapped here, rows or columns first.
    """

    def __init__(self, mapped: np.memmap):
        single = mapped.dtype.kind == "f" and mapped.dtype.itemsize <= 4
        self.path, self.shape, self.ndim = str(mapped.filename), mapped.shape, 2
        self.dtype = np.dtype(np.float32 if single else np.float64)
        self._layout: dict[str, Any] = {
            "dtype": mapped.dtype,
            "offset": mapped.offset,
            "shape": mapped.shape,
            "order": "C" if mapped.flags.c_contiguous else "F",
        }

    def __getitem__(self, key: Any) -> np.ndarray:
        """Return some rows of the table, mapped here."""
        mapped = np.memmap(self.path, mode="r", **self._layout)
        return np.array(mapped[key], dtype=self.dtype)


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
    >>> from mkclust.samples import as_dask
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
    groups = [view.row_groups for view in views if isinstance(view, ParquetTable)]
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
