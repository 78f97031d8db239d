"""How much memory each road to the clusters takes, in formulas, before any of it is taken.

The terms of exact kernels are in `mkclust.linalg.memory_terms`, those of features here. They count
what is held at the same time at the worst moment of a fit, and were compared with the peak of the
resident memory of fits in processes of their own (``benchmarks/memory.py``).
"""

from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from mkclust.linalg.memory import available_bytes, in_units
from mkclust.linalg.memory_terms import (
    FEATURE_MEDIAN_ROWS,
    JUDGED_SAMPLES,
    MEDIAN_ROWS,
    OF_ENTRIES,
    OVERHEAD,
    Fit,
    Terms,
    compressed_bytes,
    exact_terms,
    median_bytes,
    total,
)
from mkclust.methods import METHODS
from mkclust.samples.block_threads import n_block_threads
from mkclust.samples.blocks import BLOCK_BYTES, FEWEST_ROWS, MOST_ROWS
from mkclust.samples.dask import FAN_IN
from mkclust.stack.discretize import ALL_ROWS, SAMPLE_ROWS
from mkclust.stack.low_rank import COMPARED_SAMPLES, KEPT_BYTES, KEPT_ROWS
from mkclust.stack.mapped import FEWEST_ROWS as MAPPED_ROWS
from mkclust.stack.mapped import FIT_SAMPLES, SAMPLES_A_LANDMARK, WORK_BYTES

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
    "precomputed": ("kernels of yours, beside them", ""),
}
EXACT_ROADS = ("dense", "on-the-fly", "streamed")
# What is no road of its own to choose: a part of another, or what is there already.
NOT_CHOSEN = ("dask worker", "precomputed")


@dataclass(frozen=True)
class MemoryEstimate:
    """What each road needs beside the data; ``print`` shows it as a table.

    Attributes
    ----------
    n_samples, n_kernels, n_clusters : int
        What it was made for.
    terms : dict of str to dict of str to int
        What makes up the worst moment of each road: bytes by name. Roads, from exact to
        approximate: "dense", "on-the-fly", "streamed", "features", "dask client" and "dask worker",
        the last three for methods that take features; and "precomputed", what kernels in memory
        need beside them.
    available : int or None
        Bytes that this machine had when it was made; None where that is not known.
    """

    n_samples: int
    n_kernels: int
    n_clusters: int
    terms: dict[str, Terms] = field(repr=False)
    available: int | None

    @property
    def n_bytes(self) -> dict[str, int]:
        """Bytes by road: the sums of the terms."""
        return {road: total(terms) for road, terms in self.terms.items()}

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
        limit = self.available if available is None else available
        slow = ("on-the-fly", "streamed") if self.n_samples > MOST_ON_THE_FLY else ()
        steps = {name: n for name, n in self.n_bytes.items() if name not in (*NOT_CHOSEN, *slow)}
        return next((name for name, n in steps.items() if limit is None or n <= limit), None)

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
    method: str = "simplemkkm",
    chunk_rows: int = 100_000,
    n_workers: int = 4,
) -> MemoryEstimate:
    """Estimate how much memory each road to the clusters takes, beside the data themselves.

    The figures are meant as upper ones, and a fit is refused by the same ones where they exceed
    what is there. Apart from a constant of 20 MB they were at most about 1.5 times the peaks
    that were measured.

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
        With dask: workers of one thread each, which share the results for all samples.

    Returns
    -------
    MemoryEstimate

    Examples
    --------
    >>> from mkclust.explain.memory import estimate_memory
    >>> estimate = estimate_memory(50_000, 12, n_views=1)
    >>> print(estimate)
    12 kernels of 50,000 samples, 8 clusters: memory beside the data
      dense        kernels held                        243.0 GiB
      ...
    >>> estimate.road(available=16 * 2**30)
    'on-the-fly'

    Many clusters ask for eigendecompositions at full size, which is what takes most then:

    >>> max(terms := estimate_memory(5_000, 3, n_clusters=1_000).terms["dense"], key=terms.get)
    'eigendecomposition'
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
    footprint = METHODS[method].FOOTPRINT
    n, m, k, d, components, views, chunk_rows, n_workers = map(int, sizes.values())
    itemsize = np.dtype(dtype).itemsize
    options: dict[str, Any] = {"itemsize": itemsize, "method": footprint}
    options |= {"n_features": d, "n_views": views}
    terms = {road: exact_terms(road, n, m, k, **options) for road in EXACT_ROADS}
    if footprint not in OF_ENTRIES:
        features = _FeatureMemory(n, k, d, views, components, itemsize, footprint)
        terms["features"] = features.of_one_process()
        terms["dask client"] = features.of_client()
        terms["dask worker"] = features.of_worker(min(chunk_rows, n), n_workers)
    terms["precomputed"] = exact_terms("precomputed", n, m, k, **options)
    return MemoryEstimate(n, m, k, terms, available_bytes())


@dataclass(frozen=True)
class _FeatureMemory:
    """What features that stand for kernels take, by the sizes that decide."""

    n: int
    k: int
    d: int
    views: int
    components: int
    itemsize: int
    method: str

    def of_one_process(self) -> Terms:
        """Return what one process takes at its worst moment."""
        n, k, d, columns, itemsize = self.n, self.k, self.d, self.columns, self.itemsize
        rows_read = min(n, int(np.clip(BLOCK_BYTES // (8 * d), FEWEST_ROWS, MOST_ROWS)))
        size, threads = n * columns * itemsize, n_block_threads()
        # Where they are few enough, they are held from the first pass on.
        held = {"features kept": size if size <= KEPT_BYTES else 0}
        rows_made = max(MAPPED_ROWS, WORK_BYTES // (8 * columns))
        rows_summed = min(rows_read, KEPT_ROWS if size <= KEPT_BYTES else rows_made)
        moments = [
            self.learning(),
            {**self.compressing(), **held},
            {
                **self.drawn(),
                **held,
                "features being made": threads * rows_read * columns * 3 * itemsize // 2,
            },
            {
                **self.drawn(),
                **held,
                "sums of products": (16 + 8 * threads) * columns**2,
                # Centered and scaled, and all of them side by side.
                "features summed up": threads
                * rows_summed
                * (2 * d * itemsize + columns * (5 * itemsize // 2 + 8)),
            },
            # The partition, what k-means sees of it and of the baseline; the first is copied.
            {
                **self.solving(),
                **held,
                "partition over all samples": n * (4 * k * itemsize + 16),
                "scales of the features": 8 * n * self.views,
            },
        ]
        return max(moments, key=total) | {"overhead": OVERHEAD}

    def of_client(self) -> Terms:
        """Return what the client of a cluster takes at its worst moment."""
        moments = (self.learning(), self.compressing(), self.solving())
        return max(moments, key=total) | {"overhead": OVERHEAD}

    def of_worker(self, chunk_rows: int, n_workers: int) -> Terms:
        """Return what each worker of a cluster takes."""
        entries = min(chunk_rows, MOST_ROWS) * self.columns
        return {
            "chunk of the views": chunk_rows * self.d * self.itemsize,
            "features of some of its rows": entries * (3 * self.itemsize // 2 + 8),
            "sums of products": (FAN_IN + 1) * 8 * self.columns**2,
            "share of the partition": self.n * (4 * self.k * self.itemsize + 16) // n_workers,
            "overhead": OVERHEAD,
        }

    def learning(self) -> Terms:
        """Return what is held while feature maps are learned."""
        # A view from its origin while its median is sought.
        from_origin = 8 * self.n_learned_from * -(-self.d // self.views)
        median = median_bytes(self.n if self.n <= MEDIAN_ROWS else FEATURE_MEDIAN_ROWS)
        first = {"view moved to its origin": from_origin, "median distance": median}
        return self.drawn() | max(first, self.compared(), key=total)

    def compressing(self) -> Terms:
        """Return what is held while the products of features become small kernels."""
        products = compressed_bytes(self.columns, self.views)
        return {**self.drawn(), **self.compared(), "products of features": products}

    def solving(self) -> Terms:
        """Return what is held while the small problem is solved and clustered."""
        inside = Fit(self.columns, self.views, min(self.k, self.columns), method=self.method)
        rows_clustered = self.n if self.n <= ALL_ROWS else SAMPLE_ROWS
        return {
            **self.compared(),
            **max(inside.worst(), self.judged(), key=total),
            "from features to coordinates": 8 * self.columns**2,
            "k-means": 4 * self.itemsize * self.k * rows_clustered,
        }

    def judged(self) -> Terms:
        """Return what the kernels take by which it is told which of them agree."""
        n_judged = min(self.n, JUDGED_SAMPLES)
        # One after another, then side by side.
        return {"kernels among some samples": 2 * 8 * self.views * n_judged**2}

    def drawn(self) -> Terms:
        """Return what the samples take that feature maps learn from."""
        return {"samples drawn to learn from": self.itemsize * self.d * self.n_learned_from}

    def compared(self) -> Terms:
        """Return what the samples take by which features are compared with their kernels."""
        return {"samples compared": self.itemsize * self.d * min(self.n, COMPARED_SAMPLES)}

    @property
    def columns(self) -> int:
        """Number of features of all views."""
        return self.views * self.components

    @property
    def n_learned_from(self) -> int:
        """Number of samples that feature maps learn from."""
        return min(self.n, max(FIT_SAMPLES, SAMPLES_A_LANDMARK * self.components))
