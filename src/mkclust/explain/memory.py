"""About how much memory a fit takes, before any of it is taken."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mkclust.fit.memory_checks import fit_bytes
from mkclust.linalg.memory import available_bytes, in_units
from mkclust.methods import METHODS
from mkclust.parameters import Count, check_parameter
from mkclust.stack.feature_maps import FIT_SAMPLES
from mkclust.stack.features import product_bytes

# From exact to approximate: what to write.
STRATEGIES = {
    "dense": "kernels='auto'",
    "on-the-fly": "kernels='on-the-fly'",
    "streamed": "np.load('kernels.npy', mmap_mode='r') as the input",
    "features": "approximation=Nystroem(...)",
}


@dataclass(frozen=True)
class MemoryEstimate:
    """The memory that a fit needs in addition to the data; ``print`` shows a table.

    Attributes
    ----------
    n_samples, n_kernels, n_clusters : int
        What it was made for.
    n_bytes : dict of str to int
        Bytes by strategy: "dense", "on-the-fly", "streamed", and if the method allows
        "features".
    available : int or None
        Bytes that this machine had when it was made; None if that is not known.
    """

    n_samples: int
    n_kernels: int
    n_clusters: int
    n_bytes: dict[str, int]
    available: int | None

    def strategy(self, available: int | None = None) -> str | None:
        """Return the first strategy that fits into the available bytes.

        None if there is none; if the memory is unknown, all fit. Beyond 50,000 samples,
        kernels on the fly or in files would take hours, and are left out.
        """
        if available is None:
            available = self.available
        for strategy, n_bytes in self.n_bytes.items():
            is_slow = strategy in ("on-the-fly", "streamed") and self.n_samples > 50_000
            if not is_slow and (available is None or n_bytes <= available):
                return strategy
        return None

    def __str__(self) -> str:
        """Return a table of the strategies, and the one to use."""
        lines = [
            f"{self.n_kernels} kernels of {self.n_samples:,} samples, "
            f"{self.n_clusters} clusters: memory in addition to the data"
        ]
        for strategy, n_bytes in self.n_bytes.items():
            what = STRATEGIES[strategy]
            lines.append(f"  {strategy:<11} {in_units(n_bytes):>12}  {what}")

        best = self.strategy()
        use = "none of these fits"
        if best is not None:
            use = f"use {best}: {STRATEGIES[best]}"
        if self.available is None:
            lines.append("The available memory is unknown.")
        else:
            lines.append(f"Available: {in_units(self.available)}; {use}.")
        return "\n".join(lines)


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
) -> MemoryEstimate:
    """Estimate how much memory a fit takes, within a factor of two.

    A fit with exact kernels is refused by the same figures.

    Parameters
    ----------
    n_samples, n_kernels : int
        Number of samples, n, and of kernels, m.
    n_clusters : int, default=8
        Number of clusters, k.
    n_features : int, default=100
        Number of columns over all views; of a sparse one, 1.5 times the nonzero entries
        of a row.
    n_components : int, default=100
        Number of features that stand for one view's kernel.
    n_views : int or None, default=None
        Number of views, for each of which features make one kernel; None: the number of
        kernels.
    dtype : {"float64", "float32"}, default="float64"
        Number type of the views or kernels.
    method : str, default="simplemkkm"
        A name in `mkclust.METHODS`.

    Examples
    --------
    >>> from mkclust.explain.memory import estimate_memory
    >>> estimate = estimate_memory(50_000, 12, n_views=1)
    >>> print(estimate)
    12 kernels of 50,000 samples, 8 clusters: memory in addition to the data
      dense          242.7 GiB  kernels='auto'
      ...
    >>> estimate.strategy(available=16 * 2**30)
    'on-the-fly'
    """
    views = n_kernels if n_views is None else n_views
    sizes = {"n_samples": n_samples, "n_kernels": n_kernels, "n_clusters": n_clusters}
    sizes |= {"n_features": n_features, "n_components": n_components, "n_views": views}
    for name, value in sizes.items():
        check_parameter(name, value, Count())
    if dtype not in ("float32", "float64", np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r}: pass 'float32' or 'float64'")
    if method not in METHODS:
        raise ValueError(f"method={method!r}: choose one of {', '.join(METHODS)}")
    kind = METHODS[method]
    size = np.dtype(dtype).itemsize
    columns_read = {"dense": n_features, "on-the-fly": n_features, "streamed": 0}
    n_bytes = {
        storage: fit_bytes(
            kind,
            storage,
            n_samples,
            n_kernels,
            n_clusters,
            itemsize=size,
            n_features=columns,
        )
        for storage, columns in columns_read.items()
    }
    if not kind.NEEDS_ENTRIES:
        columns = views * n_components
        learned_from = 2 * size * n_features * min(n_samples, FIT_SAMPLES)
        row_bytes = size * columns + 4 * n_clusters * size + 16
        products = product_bytes(columns, views)
        n_bytes["features"] = products + learned_from + n_samples * row_bytes
    available = available_bytes()
    return MemoryEstimate(n_samples, n_kernels, n_clusters, n_bytes, available)
