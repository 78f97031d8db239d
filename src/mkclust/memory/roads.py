"""How much memory each road to the clusters takes, in formulas, before any of it is taken.

The formulas count what is held at the same time at the worst moment of a fit. They were compared
with the peak of the resident memory of fits in processes of their own, from 2,000 to 20,000
samples with kernels and from 20,000 to 1,000,000 with features.
"""

from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from mkclust.memory.system import available_bytes, in_units

# What is read or drawn at a time; the tests keep these at what the rooms that do it say.
MEDIAN_ROWS, FEATURE_MEDIAN_ROWS, MEDIAN_BLOCK = 5_000, 1_000, 256
STREAM_BYTES, STREAM_ROWS, STREAM_SHARE, STREAM_LEAST = 64 * 2**20, 32, 1 / 32, 4 * 2**20
LOCAL_BYTES, LOCAL_LEAST, LOCAL_MOST = 4 << 20, 256, 8192
KEPT_BYTES, KEPT_ROWS = 128 << 20, 2048
FIT_SAMPLES, SAMPLES_A_LANDMARK, COMPARED_SAMPLES = 20_000, 10, 10_000
KMEANS_ROWS, KMEANS_SAMPLE = 100_000, 50_000
PARTIAL_SUMS = 4
# Work space of the linear algebra, blocks of small products, what was freed and not given back.
OVERHEAD = 20 * 10**6

# Every pass of exact kernels takes their square: of more samples than this, hours in all.
MOST_ON_THE_FLY = 50_000

# From exact to approximate: what happens to the kernels, and what to write.
ROADS = {
    "dense": ("kernels held", "kernels='auto'"),
    "on-the-fly": ("kernels computed when asked for", "kernels='on-the-fly'"),
    "streamed": ("kernels read from files", "np.load('kernels.npy', mmap_mode='r') as the input"),
    "features": ("approximation, one process", "approximation=Nystroem(...)"),
    "dask client": ("approximation on a cluster", "approximation=Nystroem(...) and dask arrays"),
    "dask worker": ("... and each of its workers", ""),
}


@dataclass(frozen=True)
class MemoryEstimate:
    """What each road needs beside the data; ``print`` shows it as a table.

    Attributes
    ----------
    n_samples, n_kernels, n_clusters : int
        What it was made for.
    n_bytes : dict of str to int
        Bytes by road, from exact to approximate: "dense", "on-the-fly", "streamed", "features",
        "dask client" and "dask worker".
    available : int or None
        Bytes that this machine had when it was made; None where that is not known.
    """

    n_samples: int
    n_kernels: int
    n_clusters: int
    n_bytes: dict[str, int] = field(repr=False)
    available: int | None

    def road(self, available: int | None = None) -> str | None:
        """Return the first road that fits, from exact to approximate.

        Beyond 50,000 samples, kernels on the fly or in files would take hours: features do not.

        Parameters
        ----------
        available : int or None, default=None
            Bytes there are; None takes those of this machine. Where nobody knows, all roads fit.

        Returns
        -------
        str or None
            A name of ``n_bytes``; None where not even the client of a cluster fits.
        """
        there = self.available if available is None else available
        slow = ("on-the-fly", "streamed") if self.n_samples > MOST_ON_THE_FLY else ()
        steps = [name for name in self.n_bytes if name not in ("dask worker", *slow)]
        return next((n for n in steps if there is None or self.n_bytes[n] <= there), None)

    def __str__(self) -> str:
        """Return a table of the roads, and the one to take."""
        lines = [
            f"{self.n_kernels} kernels of {self.n_samples:,} samples, {self.n_clusters} clusters: "
            "memory beside the data"
        ]
        for name, n_bytes in self.n_bytes.items():
            lines.append(f"  {name:<12} {ROADS[name][0]:<32} {in_units(n_bytes):>12}")
        road = self.road()
        take = "none of these fits" if road is None else f"take {road}: {ROADS[road][1]}"
        if self.available is None:
            return "\n".join([*lines, "How much there is, nobody knows here."])
        return "\n".join([*lines, f"There are {in_units(self.available)}; {take}."])


def estimate_memory(
    n_samples: int,
    n_kernels: int,
    *,
    n_clusters: int = 8,
    n_features: int = 100,
    n_components: int = 100,
    n_views: int | None = None,
    dtype: Any = "float64",
    chunk_rows: int = 100_000,
    n_workers: int = 4,
) -> MemoryEstimate:
    """Estimate how much memory each road to the clusters takes, beside the data themselves.

    The figures are those of methods that need products with the kernels only, such as SimpleMKKM.
    They are meant as upper ones: measured peaks were between two thirds of them and all of them
    where they exceed the size of a few blocks.

    Parameters
    ----------
    n_samples : int
        Number of samples, n.
    n_kernels : int
        Number of kernels, m.
    n_clusters : int, default=8
        Number of clusters, k.
    n_features : int, default=100
        Number of columns over all views.
    n_components : int, default=100
        Number of features that stand for one view's kernel.
    n_views : int or None, default=None
        Number of views, each of which features make one kernel of; None: as many as kernels.
    dtype : {"float64", "float32"}, default="float64"
        Number type of the views or kernels.
    chunk_rows : int, default=100_000
        With dask: samples in one chunk.
    n_workers : int, default=4
        With dask: workers of one thread each, which share the results for all samples.

    Returns
    -------
    MemoryEstimate

    Examples
    --------
    >>> from mkclust.memory import estimate_memory
    >>> estimate = estimate_memory(50_000, 12, n_views=1)
    >>> print(estimate)
    12 kernels of 50,000 samples, 8 clusters: memory beside the data
      dense        kernels held                        242.8 GiB
      ...
    >>> estimate.road(available=16 * 2**30)
    'on-the-fly'
    """
    views = n_kernels if n_views is None else n_views
    counts = {
        "n_samples": n_samples,
        "n_kernels": n_kernels,
        "n_clusters": n_clusters,
        "n_features": n_features,
        "n_components": n_components,
        "n_views": views,
        "chunk_rows": chunk_rows,
        "n_workers": n_workers,
    }
    for name, value in counts.items():
        whole = isinstance(value, Real) and not isinstance(value, bool) and value == value // 1
        if not whole or value < 1:
            raise ValueError(f"{name}={value!r}: pass a whole number of at least 1")
    if dtype not in ("float32", "float64", np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r}: kernels are computed in float32 or float64, pass one")
    n, m, k, d, n_components, views, chunk_rows, n_workers = map(int, counts.values())
    item, columns = np.dtype(dtype).itemsize, views * n_components
    own = item * n * d  # a model's own copy of the views
    median = _median_bytes(min(n, MEDIAN_ROWS))
    few = _median_bytes(n if n <= MEDIAN_ROWS else FEATURE_MEDIAN_ROWS)
    # Row means, scales, diagonals and row sums of every kernel, and vectors over the samples.
    streamed = _basis_bytes(n, m, k) + 2 * _rows_bytes(n, m, item) + 8 * n * (5 * m + 8 * k)
    # The partition, what k-means sees of it and of the baseline; the first is copied.
    lifted = n * (4 * k * item + 16)
    learned_from = min(n, max(FIT_SAMPLES, SAMPLES_A_LANDMARK * n_components))
    drawn, compared = item * d * learned_from, item * d * min(n, COMPARED_SAMPLES)
    # A view from its origin while its median is sought; then the small matrices.
    learning = max(drawn + 8 * learned_from * -(-d // views) + few, drawn + compared)
    small = drawn + compared + compressed_bytes(columns, views)
    height = min(n, int(np.clip(LOCAL_BYTES // (8 * d), LOCAL_LEAST, LOCAL_MOST)))
    # Few features are kept from the first pass on, and then looked at in lower blocks.
    kept = n * columns * item if n * columns * item <= KEPT_BYTES else 0
    made = kept + height * columns * 3 * item // 2
    # Features while they are centered and scaled, all of them side by side, and three sums.
    lower = min(height, KEPT_ROWS) if kept else height
    summed = kept + 24 * columns**2 + lower * (2 * d * item + columns * (5 * item // 2 + 8))
    blocks = drawn + max(made, summed)
    solving = compared + (views + 2) * 8 * columns**2 + _basis_bytes(columns, views, k)
    rows, sampled = (4 * item * k * count for count in (min(n, KMEANS_ROWS), KMEANS_SAMPLE))
    clustered = rows if n <= KMEANS_ROWS else sampled
    client = max(learning, small, solving + clustered)
    chunk = min(chunk_rows, n) * d * item
    chunk += min(chunk_rows, n, LOCAL_MOST) * columns * (3 * item // 2 + 8)
    worker = chunk + (PARTIAL_SUMS + 1) * 8 * columns**2 + lifted // n_workers
    n_bytes = {
        "dense": own + max(median, kernel_bytes(n, m, item) + _basis_bytes(n, m, k)),
        "on-the-fly": own + max(median + 16 * n * d, streamed + 8 * n * (d + 2 * views)),
        "streamed": streamed,
        "features": max(learning, small + kept, blocks, solving + kept + lifted + clustered),
        "dask client": client,
        "dask worker": worker,
    }
    n_bytes = {road: OVERHEAD + size for road, size in n_bytes.items()}
    return MemoryEstimate(n, m, k, n_bytes, available_bytes())


def kernel_bytes(n_samples: int, n_kernels: int, itemsize: int = 8) -> int:
    """Return what kernels take that are held, and one mix of them where there are several."""
    return (n_kernels + (n_kernels > 1)) * n_samples**2 * itemsize


def compressed_bytes(n_columns: int, n_views: int) -> int:
    """Return what the compression of features takes: matrices of products of their columns.

    One for every view, before and after it is made symmetric, and three on the way to these.
    """
    return (2 * n_views + 3) * 8 * n_columns**2


def _median_bytes(n: int) -> int:
    """Return what the median distance takes: all pairs of n rows, and blocks of distances."""
    return 4 * n**2 + 26 * n * MEDIAN_BLOCK


def _basis_bytes(n: int, m: int, k: int) -> int:
    """Return what the search for weights takes: a basis, and every kernel's products with it."""
    width = k + max(8, k // 4)
    capacity = max(3 * width, min(6 * width, n // 24))
    return 8 * n * ((m + 1) * capacity + (2 * m + 6) * width)


def _rows_bytes(n: int, m: int, itemsize: int) -> int:
    """Return what the rows of all kernels take that are read at a time."""
    one = m * n * itemsize
    most = max(STREAM_BYTES, STREAM_ROWS * one)
    return min(most, max(int(STREAM_SHARE * n * n * itemsize), STREAM_LEAST), n * one)
