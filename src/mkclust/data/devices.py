"""Kernels or views of the host, copied to a device."""

from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from mkclust.data.check import as_numbers, is_dask
from mkclust.data.samples import read_views
from mkclust.data.tables import TABLE, as_table, by_name
from mkclust.linalg import astype, is_foreign, library_and_device
from mkclust.linalg import to_device as to_same_device
from mkclust.linalg.arrays import (
    detached,
    is_on_accelerator,
    is_sparse_tensor,
    on_torch_device,
)
from mkclust.types import Array


def to_device(
    X: Any, device: Any = None, *, like: Any = None, dtype: Any = None
) -> Any:
    """Copy kernels or views to a device, in the form in which they are passed.

    Parameters
    ----------
    X : array of shape (m, n, n) or (n, d), or list or dict of matrices or views
        What ``fit`` takes, dense: arrays, memory maps, HDF5 datasets, or data frames of
        numbers.
    device : str or torch.device, default=None
        Where torch puts it, such as "cuda", "cuda:1" or "cpu".
    like : array of any library, default=None
        An array that says where instead: in its library, on its device.
        With a NumPy array things come back to the host.
    dtype : {"float32", "float64"}, default=None
        The number type to convert to on the way; None keeps that of each array.

    Returns
    -------
    array, list, tuple or dict
        A list for a list, a dict for a dict, an array for an array. What is there
        already, in that type, is not copied.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.data.devices import to_device
    >>> views = {"shape": np.ones((4, 2)), "color": np.ones((4, 3))}
    >>> copies = to_device(views, like=np.empty(0), dtype="float32")
    >>> {name: str(view.dtype) for name, view in copies.items()}
    {'shape': 'float32', 'color': 'float32'}
    """
    if (device is None) == (like is None):
        raise ValueError(
            "pass one of the two: device, such as 'cuda', or like, an array there"
        )
    if like is None:
        like = on_torch_device(device)
    elif not hasattr(like, "dtype"):
        raise TypeError(
            f"like={like!r} is not an array: pass one, or a device by device={like!r}"
        )
    name = getattr(dtype, "__name__", str(dtype)).split(".")[-1]
    if name not in ("None", "float32", "float64"):
        raise ValueError(
            f"dtype={dtype!r}: pass 'float32', 'float64', or None to keep the type"
        )
    given = by_name(X)
    named = given
    if any(isinstance(each, pd.DataFrame) for each in given.values()):
        named = read_views(X).by_name

    parts = {
        key: _copy(part, like, name, title=f"{key!r}") for key, part in named.items()
    }
    if len(parts) > len(given):  # categories are a view of their own
        return parts
    if given.get(TABLE) is X:
        return parts[TABLE]
    if isinstance(X, list | tuple):
        return type(X)(parts.values())
    keys = getattr(X, "mod", X)
    return dict(zip(keys, parts.values(), strict=True))


def _copy(part: Any, like: Any, dtype: str, title: str) -> Array:
    """Return a view or kernel in the precision and on the device of an array."""
    if issparse(part) or is_sparse_tensor(part) or is_dask(part):
        raise TypeError(
            f"{title} is sparse, or a dask array: pass a dense array, or leave it here"
        )
    is_host = not is_foreign(part)
    if is_host:
        part = as_numbers(np.asarray(as_table(part, title).values), title)
        part = part.astype(part.dtype.newbyteorder("="), copy=False)
    part = detached(part)
    if len(part.shape) < 2:
        raise ValueError(
            f"{title} has the shape {tuple(part.shape)}: pass kernels or views"
        )
    if dtype != "None":
        part = astype(part, dtype)
    if library_and_device(part) == library_and_device(like):
        return part
    if is_host and not (is_on_accelerator(like) and part.flags.writeable):
        part = part.copy()  # some libraries would share the memory
    return to_same_device(part, like)
