"""Input: every accepted form of views and kernels, understood and checked."""

from mkclust.samples.dask import as_dask
from mkclust.samples.devices import to_device
from mkclust.samples.options import TableOptions
from mkclust.samples.samples import Samples, as_blocks, read_samples

__all__ = [
    "Samples",
    "TableOptions",
    "as_blocks",
    "as_dask",
    "read_samples",
    "to_device",
]
