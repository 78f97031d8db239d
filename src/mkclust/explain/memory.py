"""How much memory each way to the clusters takes, before any of it is taken."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from mkclust.data.block_threads import n_block_threads
from mkclust.data.blocks import MOST_ROWS
from mkclust.data.dask import FAN_IN
from mkclust.linalg.memory import available_bytes, in_units
from mkclust.methods import METHODS
from mkclust.methods.memory_checks import fit_bytes
from mkclust.stack.feature_maps import FIT_SAMPLES
from mkclust.stack.features import KEPT_SHARE, product_bytes

# Every pass of exact kernels takes their square: of more samples than this, hours in all.
MOST_ON_THE_FLY = 50_000
# From exact to approximate: what to write.
STRATEGIES = {
    "dense": "kernels='auto'",
    "on-the-fly": "kernels='on-the-fly'",
    "streamed": "np.load('kernels.npy', mmap_mode='r') as the input",
    "features": "approximation=Nystroem(...)",
    "dask client": "approximation=Nystroem(...) and dask arrays",
    "dask worker": "... and each of the workers",
}


@dataclass(frozen=True)
class MemoryEstimate:
    """What a fit needs beside the data; ``print`` shows it as a table.

    Attributes
    ----------
    n_samples, n_kernels, n_clusters : int
        What it was made for.
    n_bytes : dict of str to int
        Bytes by strategy, from exact to approximate: "dense", "on-the-fly", "streamed", and for
        methods that take features "features", "dask client" and "dask worker".
    available : int or None
        Bytes that this machine had when it was made; None if that is not known.
    """

    n_samples: int
    n_kernels: int
    n_clusters: int
    n_bytes: dict[str, int]
    available: int | None

    def strategy(self, available: int | None = None) -> str | None:
        """Return the first strategy that fits into some bytes, those of this machine by default.

        None if there is none; if nothing is known of the memory, all fit. Beyond 50,000 samples,
        kernels on the fly or in files would take hours, and are left out.
        """
        limit = self.available if available is None else available
        left_out = ("on-the-fly", "streamed") if self.n_samples > MOST_ON_THE_FLY else ()
        for name, size in self.n_bytes.items():
            if name not in ("dask worker", *left_out) and (limit is None or size <= limit):
                return name
        return None

    def __str__(self) -> str:
        """Return a table of the strategies, and the one to use."""
        lines = [
            f"{self.n_kernels} kernels of {self.n_samples:,} samples, {self.n_clusters} clusters: "
            "memory beside the data",
            *(f"  {s:<11} {in_units(n):>12}  {STRATEGIES[s]}" for s, n in self.n_bytes.items()),
        ]
        if self.available is None:
            return "\n".join([*lines, "The available memory is unknown."])
        name = self.strategy()
        use = "none of these fits" if name is None else f"use {name}: {STRATEGIES[name]}"
        return "\n".join([*lines, f"Available: {in_units(self.available)}; {use}."])


def estimate_memory(
    n_samples: int,
    n_kernels: int,
    *,
    n_clusters: int = 8,
    n_features: int = 100,
    n_components: int = 100,
    n_views: int | None = None,
    dtype: Any = "float64",
    method: str = "simplemkkm",
    chunk_rows: int = 100_000,
    n_workers: int = 4,
) -> MemoryEstimate:
    """Estimate how much memory a fit takes, beside the data themselves, within a factor of two.

    A fit with exact kernels is refused by the same figures if they exceed what is available.

    Parameters
    ----------
    n_samples : int
        Number of samples, n.
    n_kernels : int
        Number of kernels, m.
    n_clusters : int, default=8
        Number of clusters, k.
    n_features : int, default=100
        Number of columns over all views. Of a sparse one, the entries of a row that are not zero,
        and half as many again for their places.
    n_components : int, default=100
        Number of features that stand for one view's kernel.
    n_views : int or None, default=None
        Number of views, each of which features make one kernel of; None: as many as kernels.
    dtype : {"float64", "float32"}, default="float64"
        Number type of the views or kernels.
    method : str, default="simplemkkm"
        A name in `mkclust.METHODS`.
    chunk_rows : int, default=100_000
        With dask: samples in one chunk.
    n_workers : int, default=4
        With dask: workers of one thread each.

    Returns
    -------
    MemoryEstimate

    Examples
    --------
    >>> from mkclust.explain.memory import estimate_memory
    >>> estimate = estimate_memory(50_000, 12, n_views=1)
    >>> print(estimate)
    12 kernels of 50,000 samples, 8 clusters: memory beside the data
      dense          242.7 GiB  kernels='auto'
      ...
    >>> estimate.strategy(available=16 * 2**30)
    'on-the-fly'
    """
    n_views = n_kernels if n_views is None else n_views
    sizes = {"n_samples": n_samples, "n_kernels": n_kernels, "n_clusters": n_clusters}
    sizes |= {"n_features": n_features, "n_components": n_components, "n_views": n_views}
    sizes |= {"chunk_rows": chunk_rows, "n_workers": n_workers}
    for name, value in sizes.items():
        is_whole = isinstance(value, Real) and not isinstance(value, bool) and value == value // 1
        if not is_whole or value < 1:
            raise ValueError(f"{name}={value!r}: pass a whole number of at least 1")
    if dtype not in ("float32", "float64", np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r}: kernels are computed in float32 or float64, pass one")
    if method not in METHODS:
        raise ValueError(f"method={method!r}: choose one of {', '.join(METHODS)}")
    n, m, k, d, components, views, chunk_rows, n_workers = map(int, sizes.values())
    size, chunk_rows, available = np.dtype(dtype).itemsize, min(chunk_rows, n), available_bytes()
    n_bytes = {
        storage: fit_bytes(METHODS[method], storage, n, m, k, itemsize=size, n_features=columns)
        for storage, columns in (("dense", d), ("on-the-fly", d), ("streamed", 0))
    }
    if not METHODS[method].NEEDS_ENTRIES:
        columns, rows = views * components, min(n, n_block_threads() * MOST_ROWS)
        # Products of features and samples to learn from; partitions; features on their way.
        learned = product_bytes(columns, views) + 2 * size * d * min(n, FIT_SAMPLES)
        partition, made, kept = 4 * k * size + 16, 3 * size * columns // 2, n * columns * size
        kept = kept if kept <= KEPT_SHARE * (available or 0) else 0
        worker = chunk_rows * d * size + min(chunk_rows, MOST_ROWS) * (made + 8 * columns)
        worker += (FAN_IN + 1) * 8 * columns**2
        n_bytes["features"] = learned + n * partition + rows * made + kept
        n_bytes["dask client"] = learned + n * partition
        n_bytes["dask worker"] = worker
    return MemoryEstimate(n, m, k, n_bytes, available)
