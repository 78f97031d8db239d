"""Views as dask arrays: in this process's threads, or on a cluster.

Samples stay where dask has them. What comes to the client is as small as the features: sums over
all samples, and the rows of a few of them.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mkclust.blocks.base import Look, add
from mkclust.blocks.local import as_floats
from mkclust.types import Array

# How often a failing task is tried again; a task whose worker died is counted by dask itself.
RETRIES = 3
# Partial sums that one task adds up: few, for each may be as large as all features squared.
FAN_IN = 4


def is_dask(array: Any) -> bool:
    """Whether something is a dask array, found out without importing dask."""
    return type(array).__module__.startswith("dask.array")


def check_dask_views(views: Mapping[str, Any]) -> None:
    """Refuse views of which only some are dask arrays, and views nobody knows the length of.

    Parameters
    ----------
    views : mapping of str to array-like
        The views, as they came.
    """
    for name, view in views.items():
        if type(view).__module__.startswith(("dask.dataframe", "dask_expr")):
            raise TypeError(
                f"View {name!r} is a dask data frame: pass the array that its "
                "to_dask_array(lengths=True) returns"
            )
    others = [name for name, view in views.items() if not is_dask(view)]
    if others and len(others) < len(views):
        lazy = [name for name in views if name not in others]
        raise TypeError(
            f"The views {lazy} are dask arrays, but {others} are not: turn these into dask arrays "
            "with dask.array.from_array, or the others into NumPy arrays with compute()"
        )
    for name, view in views.items():
        if is_dask(view) and np.isnan([size for sizes in view.chunks for size in sizes]).any():
            raise ValueError(
                f"View {name!r} has chunks of unknown size, of which no sample can be counted: "
                "call compute_chunk_sizes() on it first"
            )


class DaskBlocks:
    """Views as dask arrays, looked at by whatever scheduler is active.

    A block is a chunk of rows of the first view; the others are cut alike. A pass is one task a
    block, and runs where the block is.

    Parameters
    ----------
    views : mapping of str to dask array
        Each of shape (n_samples, n_features), checked by :func:`check_dask_views`.
    keep : bool, default=True
        Whether :meth:`map` computes at once and keeps its result where the blocks are: in the
        memory of the workers, or of this process where there are none. False leaves it lazy.
    """

    def __init__(self, views: Mapping[str, Any], keep: bool = True):
        first = next(iter(views.values()))
        # Filters leave chunks without rows, which no feature map takes.
        self._heights = tuple(height for height in first.chunks[0] if height)
        layout = {0: self._heights, 1: -1}
        self._views: dict[str, Any] | None = {n: v.rechunk(layout) for n, v in views.items()}
        self._keep = keep
        self._example: dict[str, np.ndarray] | None = None
        self._names = tuple(views)
        self._widths = tuple(int(view.shape[1]) for view in views.values())

    def __getstate__(self) -> dict[str, Any]:
        """Leave the samples out: what is sent to workers may mention its blocks, not bring them."""
        return vars(self) | {"_views": None, "_example": None}

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

    def total(self, look: Look) -> Any:
        """Return the sum over all blocks of what `look` makes of each, in float64.

        Partial sums are added up in a tree, so that nobody ever holds more than a few of them.
        """
        named = self._by_name(look)
        return reduce_blocks(self._arrays(), lambda rows, start: _as_sum(named(rows, start)), add)

    def map(self, look: Look) -> Array:
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
        result = _map_blocks(
            arrays, self._by_name(look), meta=np.empty((0,) * row.ndim, row.dtype), **layout
        )
        return persist(result) if self._keep else result

    def take(self, samples: np.ndarray) -> dict[str, np.ndarray]:
        """Return the views of some samples, given by rising numbers; only these travel."""
        import dask

        found = dask.compute(*(view[samples] for view in self._arrays()), **_options())
        taken = dict(zip(self._names, map(as_floats, found), strict=True))
        if len(samples) and samples[0] == 0:
            self._example = {name: rows[:1] for name, rows in taken.items()}
        return taken

    def _arrays(self) -> list[Any]:
        """Return the views, all cut alike."""
        if self._views is None:
            raise RuntimeError(
                "these blocks were pickled, which leaves their samples out: make them anew from "
                "the views, with as_blocks"
            )
        return list(self._views.values())

    def _by_name(self, look: Look) -> Callable[[Sequence[np.ndarray], int], Any]:
        """Return a look that takes the views of a block in their order."""
        names = self._names

        def named(rows: Sequence[np.ndarray], start: int) -> Any:
            return look(dict(zip(names, map(as_floats, rows), strict=True)), start)

        return named


def reduce_blocks(
    arrays: Sequence[Any],
    look: Callable[[Sequence[np.ndarray], int], Any],
    combine: Callable[[Any, Any], Any],
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

    Returns
    -------
    object
        What is left in the end, in this process.
    """
    import dask
    import dask.array as da

    n_blocks = arrays[0].numblocks[0]
    parts = _map_blocks(arrays, look, meta=np.empty((0, 0), object), chunks=((1,) * n_blocks, (1,)))
    merge = functools.partial(_merge, combine=combine)
    tree = da.reduction(
        parts,
        chunk=_leave,
        combine=merge,
        aggregate=merge,
        axis=0,
        split_every=FAN_IN,
        concatenate=False,
        dtype=object,
        meta=np.empty(0, object),
    )
    # The last block as an object: as an array, dask would take a tuple for a list of blocks.
    return dask.compute(tree.to_delayed().item(), **_options())[0]


def contingency(first: Any, second: Any, n_clusters: int) -> np.ndarray:
    """Count samples by their clusters in two clusterings, (n_clusters, n_clusters).

    Parameters
    ----------
    first, second : dask array of int, of shape (n_samples,)
        Clusters below `n_clusters`; of the same chunks.
    n_clusters : int
        Number of clusters, k.
    """

    def count(labels: Sequence[np.ndarray], _: int) -> np.ndarray:
        pairs = labels[0][:, 0] * n_clusters + labels[1][:, 0]
        return np.bincount(pairs, minlength=n_clusters**2).reshape(n_clusters, n_clusters)

    return reduce_blocks([first[:, None], second[:, None]], count, add)


def persist(array: Any) -> Any:
    """Compute a dask array now, and keep it where its blocks are computed."""
    import dask

    return dask.persist(array, **_options())[0]


def _map_blocks(arrays: Sequence[Any], look: Callable, **layout: Any) -> Any:
    """Return what `look` makes of every block, as a dask array that is not yet computed."""
    import dask
    import dask.array as da

    numbers = da.arange(arrays[0].shape[0], chunks=(arrays[0].chunks[0],))[:, None]
    # One object that all tasks refer to, so that landmarks are sent once and not with every task.
    # It is part of the graph, unlike scattered data, and so outlives the workers that hold it.
    shared = dask.delayed(look, pure=False)
    return da.map_blocks(
        _look_at, *arrays, numbers, look=shared, dtype=layout["meta"].dtype, **layout
    )


def _look_at(*blocks: np.ndarray, look: Callable) -> Any:
    """Look at one block, with the number of its first row."""
    *rows, numbers = blocks
    return look(rows, int(numbers[0, 0]))


def _as_sum(part: Any) -> Any:
    """Return what was made of one block as something to be summed: float64."""
    if isinstance(part, tuple):
        return tuple(np.asarray(p, np.float64) for p in part)
    return np.asarray(part, np.float64)


def _leave(part: Any, axis: Any, keepdims: bool) -> Any:
    """Leave a part as it is."""
    return part


def _merge(parts: Any, axis: Any, keepdims: bool, combine: Callable[[Any, Any], Any]) -> Any:
    """Combine the parts of some blocks; a list is what dask makes of them."""
    return functools.reduce(combine, parts) if isinstance(parts, list) else parts


def _options() -> dict[str, Any]:
    """Return what the active scheduler is told: a cluster, to try failing tasks again."""
    from dask.base import get_scheduler

    # A cluster's client is known by its own persist, as dask itself knows it.
    client = getattr(get_scheduler(), "__self__", None)
    return {"retries": RETRIES} if hasattr(client, "persist") else {}
