"""Shared neighborhoods of precomputed kernels, and what a fit says about neighborhoods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mkclust.exceptions import NeighborhoodsWarning, warn
from mkclust.kernels.neighbors import (
    Neighborhoods,
    SimilarityLists,
    count_components,
    count_neighbors,
    join_by_similarity,
    lengths_of,
)
from mkclust.linalg import astype, namespace, to_host
from mkclust.methods.out_of_sample import SAME_DIAGONAL, is_training, observed_part
from mkclust.stack import Array as HeldKernel
from mkclust.stack import Kernel, Standardization, as_stack
from mkclust.stack.checks import describe, symmetrized
from mkclust.stack.dissimilarity import refuse_distances
from mkclust.stack.kernel import row_blocks
from mkclust.text import list_first
from mkclust.types import Array, Float


@dataclass(frozen=True)
class KernelNeighborhoods:
    """The neighborhoods of a precomputed kernel, and what tells how new samples join them.

    Attributes
    ----------
    name : str
        Name of the kernel.
    size : int
        Number of neighbors.
    found : Neighborhoods
        Those of the training samples.
    diagonal, row_sums : ndarray of shape (n_samples,)
        Self-similarities, and sums of the rows, by which the kernel is recognized.
    normalize : bool
        Whether similarities are compared that are scaled to a unit diagonal.
    """

    name: str
    size: int
    found: Neighborhoods = field(repr=False)
    diagonal: Float = field(repr=False)
    row_sums: Float = field(repr=False)
    normalize: bool

    def cross(self, matrix: Array, self_similarity: Float | None) -> Any:
        """Return the similarities of new samples to the training samples by neighborhoods.

        Parameters
        ----------
        matrix : array of shape (n_new, n_samples)
            Their similarities as they come.
        self_similarity : ndarray of shape (n_new,) or None
            Their similarities to themselves; None if they are known.

        Returns
        -------
        sparse or factored matrix of shape (n_new, n_samples)
        """
        n_new, diagonal = matrix.shape[0], self.diagonal
        is_known = is_training(Standardization(diagonal), matrix)
        samples = np.arange(n_new) if is_known else np.full(n_new, -1)
        row_lengths = lengths = None
        if self.normalize:
            is_constant = np.all(np.abs(diagonal - diagonal[0]) <= SAME_DIAGONAL * diagonal[0])
            if self_similarity is not None:
                own = self_similarity
            elif is_known or is_constant:
                own = diagonal if is_known else np.full(n_new, diagonal[0])
            else:
                raise ValueError(
                    f"{self.name}: comparing new samples by similarities that are scaled to a unit "
                    "diagonal needs their similarity to themselves, and it is not constant for "
                    "this kernel; pass self_similarity, an array of k(x, x) with a row for each "
                    "kernel and a column for each new sample, or fit with normalize=False"
                )
            row_lengths, lengths = lengths_of(own), lengths_of(diagonal)
        joined, own_lists = join_by_similarity(
            self.found, self.size, [matrix], row_lengths, lengths
        )
        return self.found.cross(joined, own_lists, samples)


def find_neighborhoods(model: Any, samples: Any) -> tuple[KernelNeighborhoods, ...]:
    """Find the neighborhoods of precomputed kernels, each among the samples that it has."""
    names, kernels = _opened(samples)
    for index, (name, kernel) in enumerate(zip(names, kernels, strict=True)):
        # That kernels are indefinite does no harm.
        if isinstance(kernel, HeldKernel):
            symmetrized(kernel.matrix, describe(index, name))  # refuses what is not symmetric
        refuse_distances(kernel, describe(index, name))
    diagonals = [to_host(kernel.diagonal()) for kernel in kernels]
    sizes = [count_neighbors(model.kernel_neighbors, len(diagonal)) for diagonal in diagonals]
    lists = [
        SimilarityLists(size, lengths_of(diagonal) if model.normalize else None)
        for size, diagonal in zip(sizes, diagonals, strict=True)
    ]
    sums = _row_sums(kernels, lists)
    return tuple(
        KernelNeighborhoods(name, size, each.result(), diagonal, total, bool(model.normalize))
        for name, size, each, diagonal, total in zip(
            names, sizes, lists, diagonals, sums, strict=True
        )
    )


def check_same_kernels(found: Sequence[KernelNeighborhoods], kernels: Any) -> None:
    """Refuse other kernels than neighborhoods were found in."""
    _, given = _opened(kernels)
    for each, kernel, total in zip(found, given, _row_sums(given), strict=True):
        differences = to_host(kernel.diagonal()) - each.diagonal, total - each.row_sums
        sizes = np.abs(each.diagonal).max(), np.abs(each.row_sums).max()
        for difference, size in zip(differences, sizes, strict=True):
            if np.abs(difference).max() > SAME_DIAGONAL * size:
                raise ValueError(
                    "X holds other kernels than the model was fitted on: pass the same kernels, "
                    "their samples in the same order"
                )


def _opened(samples: Any) -> tuple[Sequence[str], list[Kernel]]:
    """Return the names of kernels and the kernels as they came, over the samples they have."""
    stack = as_stack(samples, center=False, normalize=False, validate=False)
    return stack.names, [observed_part(kernel).kernel for kernel in stack.kernels]


def _row_sums(kernels: Sequence[Kernel], lists: Sequence[SimilarityLists] = ()) -> list[Float]:
    """Return the sums of the rows of every kernel; lists take in the rows that are read for it."""
    same_size = len({kernel.n_samples for kernel in kernels}) == 1
    groups = [list(range(len(kernels)))] if same_size else [[p] for p in range(len(kernels))]
    sums: list[Any] = [[] for _ in kernels]
    for group in groups:
        for rows in row_blocks([kernels[p] for p in group]):
            for p in group:  # the rows of all kernels of a source are read together
                block = kernels[p].rows(rows)
                sums[p].append(to_host(namespace(block).sum(block, axis=1)))
                if lists:
                    is_single = kernels[p].precision > np.finfo(np.float64).eps
                    lists[p].add(astype(block, "float32" if is_single else "float64"))
    return [np.concatenate(parts) for parts in sums]


def check_neighborhoods(
    by_name: Mapping[str, Neighborhoods | None],
    ids: np.ndarray | None,
    n_clusters: int,
    observed: np.ndarray | None = None,
) -> dict[str, Any]:
    """Say what is wrong with neighborhoods, and return what a model notes of them.

    Parameters
    ----------
    by_name : dict of str to Neighborhoods or None
        Those that a kernel consists of; None for a kernel that compares all samples.
    ids : ndarray of shape (n_samples,) or None
        Ids of the samples, where they have some.
    n_clusters : int
        How many clusters there are to be.
    observed : ndarray of bool of shape (n_samples, n_kernels), default=None
        Which kernels have which samples; None where all have all.

    Returns
    -------
    dict of str to int
        The number of groups that are not connected; nothing where other kernels connect them.
    """
    every = {name: each for name, each in by_name.items() if each is not None}
    if not every:
        return {}
    everyone = next(iter(every.values())).n_samples if observed is None else len(observed)
    seen = {
        name: np.ones(everyone, bool) if observed is None else observed[:, place]
        for place, name in enumerate(by_name)
    }
    for name, each in every.items():
        if each.members.nnz == each.n_samples**2:
            raise ValueError(
                f"in {name} every sample is in the neighborhood of every other, which says "
                "nothing about clusters: pass fewer neighbors, or leave the kernel out"
            )
    alone = {name: np.zeros(everyone, bool) for name in every}
    for name, each in every.items():
        alone[name][seen[name]] = each.isolated()
    are_all = len(every) == len(by_name)
    everywhere = np.all([alone[name] | ~seen[name] for name in every], axis=0)
    if are_all and everywhere.any():
        raise ValueError(
            f"{_listed(everywhere, ids)} no neighbor in any kernel (only similarities "
            "above zero count), so no cluster can be found for such samples; drop them, "
            "or add a kernel or view in which they are similar to others"
        )
    for name, isolated in alone.items():
        if isolated.any():
            warn(
                f"in {name}, {_listed(isolated, ids)} no neighbor (only similarities above "
                "zero count): only the other kernels decide their clusters",
                NeighborhoodsWarning,
            )
    if not are_all:
        return {}
    n_components = count_components(
        [(each, np.flatnonzero(seen[name])) for name, each in every.items()], everyone
    )
    if n_components > n_clusters:
        warn(
            f"the neighborhoods of all kernels together form {n_components} groups that "
            f"are not connected, and n_clusters={n_clusters}: the clusters join "
            "unconnected groups arbitrarily; raise neighbors, or ask for as many clusters "
            "as there are groups",
            NeighborhoodsWarning,
        )
    return {"n_components_": n_components}


def _listed(which: np.ndarray, ids: np.ndarray | None) -> str:
    """Return 'sample 3 has' or '12 samples (1, 2, ...) have', by their ids where there are any."""
    samples = np.flatnonzero(which) if ids is None else ids[which]
    if len(samples) == 1:
        return f"sample {samples[0]} has"
    return f"{len(samples)} samples ({list_first(samples)}) have"
