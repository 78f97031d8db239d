"""Views of samples that are looked at in blocks: in memory, in files, on a cluster."""

from typing import Any

from mkclust.linalg import check_one_place
from mkclust.samples.blocks import Blocks
from mkclust.samples.checks import check_dask, check_tables, is_dask, sliceable
from mkclust.samples.cluster import connect
from mkclust.samples.dask import DaskBlocks
from mkclust.samples.forms import named_views
from mkclust.samples.local import LocalBlocks
from mkclust.samples.mapped import as_dask

__all__ = ["Blocks", "DaskBlocks", "LocalBlocks", "as_blocks", "as_dask", "connect", "is_dask"]


def as_blocks(X: Any, *, block_rows: int | None = None, keep: bool = True) -> Blocks:
    """Return views in any accepted form as blocks of samples, without reading them.

    Views are read anew in every pass, of which a fit makes about three: dask arrays that fit into
    the memory of the workers are worth a ``persist()`` beforehand.

    Parameters
    ----------
    X : mapping, list, tuple or table
        Views of shape (n_samples, n_features): arrays, data frames, memory maps, HDF5 data sets,
        whatever has a shape and can be sliced by rows; or dask arrays, all of them; or arrays of
        another library such as torch or CuPy, all on one device, where their blocks stay.
    block_rows : int or None, default=None
        Samples of a block, where the views do not say; None chooses, on a device large ones. Dask
        arrays say by their chunks.
    keep : bool, default=True
        What becomes of a result for every sample where the views are dask arrays: True computes
        it now and keeps it where the blocks are, False leaves it lazy, to be computed each time
        that it is asked for. Of other views it is always an array in memory, beside them.

    Returns
    -------
    Blocks

    Raises
    ------
    ValueError, TypeError
        If the views differ in their number of samples, one is no table of real numbers, only
        some of them are dask arrays, or they live on different devices.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.samples.opening import as_blocks
    >>> blocks = as_blocks({"a": np.ones((5, 2)), "b": np.ones((5, 3))}, block_rows=2)
    >>> blocks.total(lambda block, start: block["a"].T @ block["b"]).tolist()
    [[5.0, 5.0, 5.0], [5.0, 5.0, 5.0]]
    """
    named = named_views(X)
    if not named:
        raise ValueError(f"There are no views in an empty {type(X).__name__}; pass at least one.")
    check_dask(named)
    named = {name: sliceable(name, view) for name, view in named.items()}
    check_one_place(list(named.values()), [f"View {name!r}" for name in named])
    check_tables(named)
    if is_dask(next(iter(named.values()))):
        return DaskBlocks(named, keep)
    return LocalBlocks(named, block_rows)
