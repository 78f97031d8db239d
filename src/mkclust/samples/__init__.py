"""Input: every accepted form of views and kernels, understood and checked."""

from mkclust.samples.cluster import connect
from mkclust.samples.devices import to_device
from mkclust.samples.mapped import as_dask
from mkclust.samples.opening import as_blocks

__all__ = ["as_blocks", "as_dask", "connect", "to_device"]
