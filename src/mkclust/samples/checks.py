"""What is wrong with views, said before any of their samples is read."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mkclust.linalg import is_foreign, place
from mkclust.linalg.arrays import is_sparse_tensor
from mkclust.samples.blocks import as_floats, check_type
from mkclust.samples.forms import depth


def is_dask(array: Any) -> bool:
    """Whether something is a dask array, found out without importing dask."""
    return type(array).__module__.startswith("dask.array")


def check_dask(views: Mapping[str, Any]) -> None:
    """Refuse dask views beside others, and those whose samples cannot be counted or read as rows.

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
        if elsewhere := [name for name in others if is_foreign(views[name])]:
            raise TypeError(
                f"The views {lazy} are dask arrays, but {elsewhere[0]!r} is an array of "
                f"{place(views[elsewhere[0]])}: turn the dask arrays into such arrays, by way of "
                "compute(), or the others into dask arrays of NumPy's"
            )
        raise TypeError(
            f"The views {lazy} are dask arrays, but {others} are not: turn these into dask arrays "
            "with dask.array.from_array, or the others into NumPy arrays with compute()"
        )
    for name, view in views.items():
        if not is_dask(view):
            continue
        if np.isnan([size for sizes in view.chunks for size in sizes]).any():
            raise ValueError(
                f"View {name!r} has chunks of unknown size, of which no sample can be counted: "
                "call compute_chunk_sizes() on it first"
            )
        if isinstance(view._meta, np.ma.MaskedArray):
            raise TypeError(
                f"View {name!r} has chunks that are masked arrays: fill them in with "
                "dask.array.ma.filled"
            )
        if not isinstance(view._meta, np.ndarray):
            kind = type(view._meta)
            raise TypeError(
                f"View {name!r} has chunks of the type {kind.__module__}.{kind.__name__}: turn "
                "them into dense NumPy arrays with map_blocks, such as by lambda chunk: "
                "chunk.toarray()"
            )


def sliceable(name: str, view: Any) -> Any:
    """Return a view that has a shape and can be sliced by rows, or say why it is none."""
    if issparse(view):
        raise TypeError(
            f"View {name!r} is a sparse matrix: pass a dense one, such as its toarray()"
        )
    if hasattr(view, "iloc") or not hasattr(view, "shape"):
        view = np.asarray(view)
    if isinstance(view, np.ndarray) and view.dtype == object:
        try:
            return view.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"View {name!r} holds objects that are not numbers ({error}); convert or drop "
                "those columns."
            ) from None
    return view


def check_tables(views: Mapping[str, Any]) -> None:
    """Refuse views that are no tables of numbers, or not of the same samples.

    Parameters
    ----------
    views : mapping of str to array-like
        Views that have a shape.
    """
    for name, view in views.items():
        if depth(view) != 2:
            raise ValueError(
                f"View {name!r} has {depth(view)} dimensions, but a view has 2, samples by "
                "features; turn a single feature into a column with reshape(-1, 1)."
            )
        if view.shape[0] == 0:
            raise ValueError(f"View {name!r} has no rows; pass at least one sample.")
        if view.shape[1] == 0:
            raise ValueError(f"View {name!r} has no columns; leave it out.")
        if is_sparse_tensor(view):
            raise TypeError(f"View {name!r} is a sparse tensor: pass its .to_dense() instead.")
        if is_foreign(view):
            as_floats(name, view[:0, :])  # refuses what is no number
        elif hasattr(view, "dtype"):
            check_type(name, view.dtype)
    lengths = {name: int(view.shape[0]) for name, view in views.items()}
    if len(set(lengths.values())) > 1:
        listing = ", ".join(f"{name!r} {length}" for name, length in lengths.items())
        raise ValueError(
            f"The views have different numbers of samples: {listing}; every view must describe the "
            "same samples, in the same order."
        )
