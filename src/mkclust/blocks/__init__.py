"""Views of samples that are looked at in blocks: in memory, in files, on a cluster."""

from typing import Any

import numpy as np

from mkclust.blocks.base import Blocks
from mkclust.blocks.distributed import DaskBlocks, check_dask_views, is_dask
from mkclust.blocks.local import LocalBlocks
from mkclust.views import depth, named_views

__all__ = ["Blocks", "DaskBlocks", "LocalBlocks", "as_blocks", "is_dask"]


def as_blocks(X: Any, *, block_rows: int | None = None, keep: bool = True) -> Blocks:
    """Return views in any accepted form as blocks of samples, without reading them.

    Parameters
    ----------
    X : mapping, list, tuple or table
        Views of shape (n_samples, n_features): arrays, data frames, memory maps, HDF5 data sets,
        whatever has a shape and can be sliced by rows; or dask arrays, all of them.
    block_rows : int or None, default=None
        Samples of a block, where the views do not say; None chooses.
    keep : bool, default=True
        Whether results for every sample are computed at once and kept, where the views are dask
        arrays; False leaves them lazy.

    Returns
    -------
    Blocks

    Raises
    ------
    ValueError, TypeError
        If the views differ in their number of samples, one is no table, or only some of them are
        dask arrays.
    """
    named = named_views(X)
    check_dask_views(named)
    named = {name: _sliceable(view) for name, view in named.items()}
    if not named:
        raise ValueError(f"There are no views in an empty {type(X).__name__}; pass at least one.")
    for name, view in named.items():
        if depth(view) != 2:
            raise ValueError(
                f"View {name!r} has {depth(view)} dimensions, but a view has 2, samples by "
                "features; turn a single feature into a column with reshape(-1, 1)."
            )
        if 0 in view.shape:
            raise ValueError(f"View {name!r} is empty, of shape {view.shape}; leave it out.")
    lengths = {name: int(view.shape[0]) for name, view in named.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name!r} {length}" for name, length in lengths.items())
        raise ValueError(
            f"The views have different numbers of samples: {told}; every view must describe the "
            "same samples, in the same order."
        )
    if is_dask(next(iter(named.values()))):
        return DaskBlocks(named, keep)
    return LocalBlocks(named, block_rows)


def _sliceable(view: Any) -> Any:
    """Return a view that has a shape and can be sliced by rows."""
    if hasattr(view, "iloc") or not hasattr(view, "shape"):
        return np.asarray(view)
    return view
