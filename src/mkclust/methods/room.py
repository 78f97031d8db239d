"""Is there room for a fit? Asked at the door, before anything is computed."""

from typing import Any

import numpy as np

from mkclust.kernels import KernelBank, Linear
from mkclust.linalg import free_bytes, is_foreign
from mkclust.linalg.memory import require_memory
from mkclust.linalg.memory_terms import exact_terms, total
from mkclust.linalg.sparse_rows import row_width
from mkclust.samples.blocks import Blocks
from mkclust.samples.dask import DaskBlocks
from mkclust.samples.samples import read_views
from mkclust.stack import KernelStack
from mkclust.stack.low_rank import require_products
from mkclust.stack.mapped import n_components

OTHER_METHOD = "use fewer samples, or a method that needs products only, such as SimpleMKKM"


def require_room_for_views(
    model: Any, bank: KernelBank, views: Any, *, available: int | None = None
) -> None:
    """Refuse views whose kernels do not fit into memory, or what a fit takes beside them.

    Parameters
    ----------
    model : MultipleKernelClusterer
        What is to be fitted.
    bank : KernelBank
        What is to make the kernels.
    views : mapping, list, tuple, array or data frame
        Views; they need not be sound.
    available : int, default=None
        Bytes available; None asks the device of the views, or the host.
    """
    samples = read_views(views)
    (m, n, dtype), parts = bank.announce(samples), samples.parts
    k, of_products = model.n_clusters, not model.NEEDS_ENTRIES
    storage = "on-the-fly" if bank.on_the_fly and of_products else "dense"
    needed = exact_terms(
        storage if bank.neighbors is None else "sparse",
        n,
        m,
        min(k, n),
        itemsize=dtype.itemsize,
        method=model.FOOTPRINT,
        n_features=sum(map(_width, parts)),
        n_views=len(parts),
        on_device=is_foreign(parts[0]),
    )
    purpose = f"holding {m} kernels of {n} samples and finding {k} clusters"
    advice = (
        "pass kernels='on-the-fly' (of your own bank, on_the_fly=True) to compute the same "
        "kernels when they are asked for, or approximation=Nystroem(n_components=200) to "
        "do with features of the views"
    )
    if not of_products:
        purpose = (
            f"{type(model).__name__} needs the entries of the kernels, and writing out {m} kernels "
            f"of {n} samples and finding {k} clusters"
        )
        advice = OTHER_METHOD
    elif bank.on_the_fly:
        purpose = f"finding {k} clusters by {m} kernels of {n} samples, computed on the fly,"
        advice = (
            "ask for fewer clusters, use fewer samples, or pass "
            "approximation=Nystroem(n_components=200) to do with features of the views"
        )
    available = free_bytes(parts[0]) if available is None else available
    require_memory(total(needed), purpose, advice, available=available)


def require_room_beside_kernels(
    model: Any, stack: KernelStack, *, available: int | None = None
) -> None:
    """Refuse kernels that leave too little room for a fit.

    Parameters
    ----------
    model : MultipleKernelClusterer
        What is to be fitted.
    stack : KernelStack
        The kernels.
    available : int, default=None
        Bytes available; None asks the device of the kernels, or the host.
    """
    n, m, k = stack.n_samples, stack.n_kernels, model.n_clusters
    storage = "precomputed" if stack.storage == "dense" else stack.storage
    needed = exact_terms(
        storage,
        n,
        m,
        min(k, n),
        itemsize=stack.itemsize,
        method=model.FOOTPRINT,
        on_device=is_foreign(stack.like),
    )
    require_memory(
        total(needed),
        f"finding {k} clusters by {m} kernels of {n} samples, beside the kernels themselves,",
        "ask for fewer clusters, use fewer samples, or pass the views with "
        "approximation=Nystroem(n_components=200)"
        if not model.NEEDS_ENTRIES
        else OTHER_METHOD,
        available=free_bytes(stack.like) if available is None else available,
    )


def require_room_for_features(model: Any, blocks: Blocks) -> None:
    """Refuse features and embeddings that do not fit into memory, before any pass.

    Parameters
    ----------
    model : MultipleKernelClusterer
        What is to be fitted, with an approximation.
    blocks : Blocks
        The views.
    """
    m, n, k = len(blocks.names), blocks.n_samples, model.n_clusters
    if isinstance(model.approximation, Linear):
        columns, advice = sum(blocks.n_features), "pass approximation=Nystroem()"
    else:
        # Of a pipeline, what its last step makes; of other maps, known once they are fitted.
        columns = m * next(reversed(n_components(model.approximation)), 0)
        advice = "pass a smaller n_components"
    require_products(columns, m, advice)
    if not isinstance(blocks, DaskBlocks):
        row = next(iter(blocks.take(np.arange(min(1, n))).values()))
        # The partition and the rows of k-means, twice for a baseline, in single precision.
        require_memory(
            16 * n * k,
            f"holding the embedding of {n} samples in {k} clusters",
            "pass dask arrays, whose results stay on the workers, or fit on some samples and "
            "predict the others",
            available=free_bytes(row),
        )


def _width(view: Any) -> int:
    """Return how many numbers a row of what may be a view takes, zero where it cannot be told."""
    shape: Any = getattr(view, "shape", ())
    return row_width(view) if len(shape) == 2 else 0
