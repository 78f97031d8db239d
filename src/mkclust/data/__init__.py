"""Input: every accepted form of views and kernels, understood and checked."""

from mkclust.data.dask_arrays import as_dask
from mkclust.data.devices import to_device
from mkclust.data.options import TableOptions
from mkclust.data.samples import Samples, as_blocks, read_samples

__all__ = [
    "Samples",
    "TableOptions",
    "as_blocks",
    "as_dask",
    "read_samples",
    "to_device",
]
