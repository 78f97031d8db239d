"""Memory that a fit takes, within a factor of two, and its refusal if there is less."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mkclust.data.distances import MEDIAN_ROWS
from mkclust.data.samples import Samples
from mkclust.kernels import KernelBank
from mkclust.linalg import free_bytes, is_foreign
from mkclust.linalg.memory import require_memory
from mkclust.linalg.sparse_rows import row_width
from mkclust.stack import Mix, Stack
from mkclust.stack.compare import SOME_COMPARED
from mkclust.stack.sources import BLOCK_BYTES, FEWEST_ROWS
from mkclust.types import Array

if TYPE_CHECKING:
    from mkclust.fit.base import MultipleKernelClusterer


def fit_bytes(
    method: MultipleKernelClusterer | type[MultipleKernelClusterer],
    storage: str,
    n_samples: int,
    n_kernels: int,
    n_clusters: int,
    *,
    itemsize: int = 8,
    n_features: int = 0,
    on_device: bool = False,
) -> int:
    """Return about the most bytes that a fit with exact kernels takes, input aside.

    Kernels are held by the fit ("dense") or its user ("precomputed", "sparse"), or
    computed ("on-the-fly") or read ("streamed") some rows at a time.
    """
    n = n_samples
    m = n_kernels
    k = n_clusters
    # Thin matrices, at most the eigenvectors of every kernel, and the views as they are
    # kept.
    needed = (
        8 * n * min((40 + 4 * m) * (k + 8), (m + 4) * n) + itemsize * n * n_features
    )
    needed += 16 * n * m * min(n, SOME_COMPARED) * on_device
    if storage == "on-the-fly":
        needed += 8 * n * n_features + 12 * min(n, MEDIAN_ROWS) ** 2
        storage = "streamed"
        if method.NEEDS_ENTRIES:
            storage = "dense"
    if storage == "dense":
        needed += m * n**2 * itemsize
    if method.NEEDS_ENTRIES:
        needed += (method.MATRICES + method.COPIES * m) * n**2 * 8
    elif storage == "streamed":
        needed += 2 * min(
            max(BLOCK_BYTES, FEWEST_ROWS * m * n * itemsize), n**2 * itemsize // 16
        )
    elif storage != "sparse" and m > 1:  # one kernel alone needs no sum
        needed += method.MATRICES * n**2 * itemsize
    return needed


def require_memory_for_views(
    model: MultipleKernelClusterer, bank: KernelBank, samples: Samples
) -> None:
    """Refuse views whose kernels, together with the fit, do not fit into memory."""
    m, n, dtype = bank.planned_shape(samples)
    parts = samples.parts
    storage = "on-the-fly" if bank.on_the_fly else "dense"
    if bank.neighbors is not None:
        storage = "sparse"
    columns = sum(
        row_width(part) for part in parts if len(getattr(part, "shape", ())) == 2
    )
    _require(
        model, storage, n, m, parts[0], itemsize=dtype.itemsize, n_features=columns
    )


def require_memory_beside_kernels(model: MultipleKernelClusterer, stack: Stack) -> None:
    """Refuse kernels that leave too little memory for a fit."""
    mix = Mix(np.ones(stack.n_kernels), stack.kernels)
    storage = mix.storage
    if storage == "dense":
        storage = "precomputed"
    itemsize = 8 if mix.precision < 1e-10 else 4
    _require(
        model, storage, stack.n_samples, stack.n_kernels, mix.like, itemsize=itemsize
    )


def _require(
    model: MultipleKernelClusterer,
    storage: str,
    n: int,
    m: int,
    like: Array,
    **sizes: int,
) -> None:
    """Refuse a fit that does not fit into the memory of an array's device, or host."""
    name = type(model).__name__
    k = model.n_clusters
    if isinstance(k, str):  # found by the fit, whose input is read again
        k = model.n_clusters_
    beside = ", in addition to the kernels,"
    if storage in ("dense", "on-the-fly"):
        beside = ""
    advice = (
        "pass views with approximation=Nystroem(n_components=200), features for "
        "kernels, or with kernels='on-the-fly' (KernelBank(on_the_fly=True)) to "
        "compute them when used, again and again; or use fewer samples or clusters"
    )
    if model.NEEDS_ENTRIES:
        advice = (
            f"{name} needs all entries of the kernels: pass views to SimpleMKKM with "
            "approximation=Nystroem(n_components=200), or use fewer samples"
        )
    require_memory(
        fit_bytes(model, storage, n, m, k, on_device=is_foreign(like), **sizes),
        f"finding {k} clusters by {m} kernels of {n} samples with {name}{beside}",
        advice,
        available=free_bytes(like),
    )
