"""What a fit says about shared neighborhoods."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mkclust.exceptions import NeighborhoodsWarning, warn
from mkclust.kernels.neighbors import Neighborhoods, count_components
from mkclust.text import join_words


def check_neighborhoods(
    by_name: Mapping[str, Neighborhoods | None],
    ids: np.ndarray | None,
    n_clusters: int,
    observed: np.ndarray | None = None,
) -> dict[str, Any]:
    """Refuse or warn of neighborhoods that connect too little; return what a model notes of them.

    They are None for a kernel that compares all samples; observed is (n, m) of bool, or None.
    """
    found = [(p, name, each) for p, (name, each) in enumerate(by_name.items()) if each is not None]
    if not found:
        return {}
    n = found[0][2].n_samples if observed is None else len(observed)
    parts, is_connected = [], np.zeros(n, bool)
    for p, name, each in found:
        if each.members.nnz == each.n_samples**2:
            raise ValueError(
                f"in {name} every sample is in the neighborhood of every other, which says "
                "nothing about clusters: pass fewer neighbors, or leave the kernel out"
            )
        samples = np.arange(n) if observed is None else np.flatnonzero(observed[:, p])
        parts.append((each, samples))
        is_connected[samples[~each.isolated()]] = True
    are_all, nowhere = len(found) == len(by_name), np.flatnonzero(~is_connected)
    if are_all and len(nowhere):
        raise ValueError(
            f"{_listed(nowhere, ids)} no neighbor in any kernel (only similarities above zero "
            "count): drop such samples, or add a kernel or view in which they are similar to others"
        )
    for (_, name, each), (_, samples) in zip(found, parts, strict=True):
        if len(isolated := samples[each.isolated()]):
            warn(
                f"in {name}, {_listed(isolated, ids)} no neighbor (only similarities above zero "
                "count): only the other kernels decide their clusters",
                NeighborhoodsWarning,
            )
    if not are_all:
        return {}
    n_components = count_components(parts, n)
    if n_components > n_clusters:
        warn(
            f"the neighborhoods of all kernels together form {n_components} groups that are not "
            f"connected, and n_clusters={n_clusters}: the clusters join such groups arbitrarily; "
            "raise neighbors, or ask for more clusters",
            NeighborhoodsWarning,
        )
    return {"n_components_": n_components}


def _listed(samples: np.ndarray, ids: np.ndarray | None) -> str:
    """Return 'sample 3 has' or '12 samples (1, 2, ...) have', by their ids if there are any."""
    words = "sample {} has" if len(samples) == 1 else f"{len(samples)} samples ({{}}) have"
    return words.format(join_words(samples if ids is None else ids[samples]))
