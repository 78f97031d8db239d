"""Shared neighborhoods of precomputed kernels, and what a fit says about neighborhoods."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mkclust.exceptions import NeighborhoodsWarning, warn
from mkclust.kernels.neighbors import (
    Neighborhoods,
    NeighborSearch,
    block_ranges,
    by_kernel_rows,
    count_components,
    count_neighbors,
    lengths_of,
)
from mkclust.linalg import astype, select, to_host
from mkclust.methods.out_of_sample import is_training, observed_part, own_similarity
from mkclust.stack import Array as HeldKernel
from mkclust.stack import Standardization, as_stack
from mkclust.stack.checks import describe, refuse_distances, symmetrized
from mkclust.stack.kernel import row_blocks
from mkclust.text import join_words
from mkclust.types import Array, Float


@dataclass(frozen=True)
class KernelNeighborhoods:
    """The neighborhoods of a precomputed kernel, and how new samples join them."""

    name: str
    found: Neighborhoods = field(repr=False)
    diagonal: Float = field(repr=False)
    normalize: bool  # whether similarities are compared that are scaled to a unit diagonal

    def cross(self, matrix: Array, self_similarity: Float | None) -> Any:
        """Return the similarities of new samples by neighborhoods, given those as they come."""
        known = Standardization(self.diagonal)
        is_known = is_training(known, matrix)
        row_lengths = lengths = None
        if self.normalize:
            if self_similarity is None:
                self_similarity = to_host(own_similarity(self.name, known, matrix, is_known))
            row_lengths, lengths = lengths_of(self_similarity), lengths_of(self.diagonal)
        n_new, n = matrix.shape
        blocks = (
            by_kernel_rows(
                select(matrix, part), None if row_lengths is None else row_lengths[part], lengths
            )
            for part in block_ranges(n_new, n, matrix)
        )
        return self.found.cross(blocks, np.arange(n_new) if is_known else np.full(n_new, -1))


def find_neighborhoods(model: Any, samples: Any) -> tuple[KernelNeighborhoods, ...]:
    """Find the neighborhoods of precomputed kernels, each among the samples that it has."""
    stack = as_stack(samples, center=False, normalize=False, validate=False)
    names, kernels = stack.names, [observed_part(kernel).kernel for kernel in stack.kernels]
    for index, (name, kernel) in enumerate(zip(names, kernels, strict=True)):
        # That kernels are indefinite does no harm.
        if isinstance(kernel, HeldKernel):
            symmetrized(kernel.matrix, describe(index, name))  # refuses what is not symmetric
        refuse_distances(kernel, describe(index, name))
    diagonals = [to_host(kernel.diagonal()) for kernel in kernels]
    sizes = [count_neighbors(model.kernel_neighbors, len(diagonal)) for diagonal in diagonals]
    searches = [NeighborSearch(size) for size in sizes]
    lengths = [lengths_of(diagonal) if model.normalize else None for diagonal in diagonals]
    same_size = len(set(map(len, diagonals))) == 1
    every = range(len(kernels))
    for group in [every] if same_size else [[p] for p in every]:
        for rows in row_blocks([kernels[p] for p in group]):
            for p in group:  # the rows of all kernels of a source are read together
                is_single = kernels[p].precision > np.finfo(np.float64).eps
                block = astype(kernels[p].rows(rows), "float32" if is_single else "float64")
                own = lengths[p]
                some = None if own is None else own[rows]
                searches[p].add(*by_kernel_rows(block, some, own))
    return tuple(
        KernelNeighborhoods(name, each.result(), diagonal, bool(model.normalize))
        for name, each, diagonal in zip(names, searches, diagonals, strict=True)
    )


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
    # The samples that each kernel has, those without a neighbor, and who has one somewhere.
    parts, alone, is_connected = [], {}, np.zeros(n, bool)
    for p, name, each in found:
        if each.members.nnz == each.n_samples**2:
            raise ValueError(
                f"in {name} every sample is in the neighborhood of every other, which says "
                "nothing about clusters: pass fewer neighbors, or leave the kernel out"
            )
        samples = np.arange(n) if observed is None else np.flatnonzero(observed[:, p])
        alone[name] = samples[each.isolated()]
        is_connected[np.setdiff1d(samples, alone[name])] = True
        parts.append((each, samples))
    are_all, nowhere = len(found) == len(by_name), np.flatnonzero(~is_connected)
    if are_all and len(nowhere):
        raise ValueError(
            f"{_listed(nowhere, ids)} no neighbor in any kernel (only similarities "
            "above zero count), so no cluster can be found for such samples; drop them, "
            "or add a kernel or view in which they are similar to others"
        )
    for name, isolated in alone.items():
        if len(isolated):
            warn(
                f"in {name}, {_listed(isolated, ids)} no neighbor (only similarities above "
                "zero count): only the other kernels decide their clusters",
                NeighborhoodsWarning,
            )
    if not are_all:
        return {}
    n_components = count_components(parts, n)
    if n_components > n_clusters:
        warn(
            f"the neighborhoods of all kernels together form {n_components} groups that "
            f"are not connected, and n_clusters={n_clusters}: the clusters join "
            "unconnected groups arbitrarily; raise neighbors, or ask for as many clusters "
            "as there are groups",
            NeighborhoodsWarning,
        )
    return {"n_components_": n_components}


def _listed(samples: np.ndarray, ids: np.ndarray | None) -> str:
    """Return 'sample 3 has' or '12 samples (1, 2, ...) have', by their ids if there are any."""
    samples = samples if ids is None else ids[samples]
    if len(samples) == 1:
        return f"sample {samples[0]} has"
    return f"{len(samples)} samples ({join_words(samples)}) have"
