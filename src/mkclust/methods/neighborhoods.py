"""Shared neighborhoods of precomputed kernels, and what a fit says about neighborhoods."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from mkclust.kernels.neighbors import (
    Neighborhoods,
    NeighborhoodsWarning,
    SimilarityLists,
    count_components,
    count_neighbors,
    join_by_similarity,
    lengths_of,
)
from mkclust.linalg import FactoredMatrix, astype, is_sparse, noise, to_device, to_host
from mkclust.methods.out_of_sample import SAME_SAMPLE, find_training_samples
from mkclust.samples.samples import Samples
from mkclust.stack import KernelStack, as_stack
from mkclust.stack.checks import check_symmetry, describe
from mkclust.stack.dissimilarity import refuse_distances
from mkclust.text import list_first
from mkclust.types import Array, Float


@dataclass(frozen=True)
class KernelNeighborhoods:
    """The neighborhoods of precomputed kernels, and how new samples join them."""

    size: int  # number of neighbors
    by_name: dict[str, Neighborhoods] = field(repr=False)  # those of every kernel
    diagonals: Float = field(repr=False)  # self-similarities, (n_kernels, n_samples)
    normalize: bool  # whether similarities are scaled to a unit diagonal before comparing
    # Random products of the similarities, (n_samples, 3), by which training samples are recognized.
    prints: Float = field(repr=False)

    @classmethod
    def of(cls, model: Any, samples: Samples) -> "KernelNeighborhoods":
        """Find the neighborhoods of kernels in one pass over their rows."""
        stack = _opened(samples)
        size = count_neighbors(model.kernel_neighbors, stack.n_samples)
        if model.validate:
            _check(stack)
        diagonals = np.stack([to_host(each.diagonal) for each in stack.standardizations])
        lengths = lengths_of(diagonals) if model.normalize else [None] * len(diagonals)
        builders = [SimilarityLists(size, each) for each in lengths]
        prints = np.zeros((stack.n_samples, 3))

        def take(rows: slice, blocks: Sequence[Array]) -> None:
            """Read some rows of every kernel."""
            _write_products(prints, diagonals, rows, blocks)
            for builder, block in zip(builders, blocks, strict=True):
                builder.add(block)

        stack.for_each_block(take)
        every = [builder.result() for builder in builders]
        by_name = dict(zip(stack.names, every, strict=True))
        return cls(size, by_name, diagonals, bool(model.normalize), prints)

    def of_kernel(self, index: int) -> "KernelNeighborhoods":
        """Return those of one kernel, by which training samples are not known again."""
        name = list(self.by_name)[index]
        return replace(
            self,
            by_name={name: self.by_name[name]},
            diagonals=self.diagonals[index : index + 1],
            prints=np.zeros((0, 3)),
        )

    def kernels(self) -> list[FactoredMatrix]:
        """Return the kernels of the training samples."""
        return [each.kernel() for each in self.by_name.values()]

    def check_same(self, kernels: Any) -> None:
        """Refuse other kernels than these neighborhoods are of."""
        stack, prints = _opened(kernels), np.zeros_like(self.prints)
        stack.for_each_block(partial(_write_products, prints, self.diagonals))
        if np.abs(prints - self.prints).max() > SAME_SAMPLE * np.abs(self.prints).max():
            raise ValueError(
                "X holds other kernels than the model was fitted on: pass the same kernels, their "
                "samples in the same order"
            )

    def cross(
        self, matrices: Sequence[Array], self_similarity: Float | None
    ) -> list[FactoredMatrix]:
        """Return the similarities of new samples to the training samples, (n_new, n_samples) each.

        They come as similarities as given, and those to themselves, (m, n_new), if not known.
        """
        samples, crossed = np.full(matrices[0].shape[0], -1), []
        if len(self.prints):
            samples = find_training_samples(_products(matrices, self.diagonals), self.prints)
        for p, (name, neighborhoods) in enumerate(self.by_name.items()):
            row_lengths = lengths = None
            if self.normalize:
                own = None if self_similarity is None else self_similarity[p]
                own = self._self_similarity(p, name, samples) if own is None else own
                row_lengths, lengths = lengths_of(own), lengths_of(self.diagonals[p])
            joined, own_lists = join_by_similarity(
                neighborhoods, self.size, [matrices[p]], row_lengths, lengths
            )
            crossed.append(neighborhoods.cross(joined, own_lists, samples))
        return crossed

    def _self_similarity(self, index: int, name: str, samples: np.ndarray) -> Float:
        """Return the self-similarities of samples where they follow from what is known."""
        diagonal = self.diagonals[index]
        known, first = diagonal[np.maximum(samples, 0)], diagonal[0]
        if np.all(samples >= 0) or np.all(np.abs(diagonal - first) <= SAME_SAMPLE * abs(first)):
            return known
        raise ValueError(
            f"{name}: comparing new samples by similarities that are scaled to a unit diagonal "
            "needs their similarity to themselves, and it is not constant for this kernel; pass "
            f"self_similarity, an array of shape ({len(self.by_name)}, {len(samples)}) of k(x, x), "
            "or fit with normalize=False"
        )


@dataclass(frozen=True)
class SeparateNeighborhoods:
    """The neighborhoods of kernels that lack samples: of each among the samples that it has."""

    of_kernels: Sequence[KernelNeighborhoods]

    @classmethod
    def of(cls, model: Any, samples: Samples) -> "SeparateNeighborhoods":
        """Find the neighborhoods of kernels, one after another."""
        named = zip(samples.names, samples.parts, strict=True)
        single = (Samples("kernels", (name,), (K,), names_given=True) for name, K in named)
        return cls([KernelNeighborhoods.of(model, each) for each in single])

    @property
    def size(self) -> int:
        """Number of neighbors, the largest where it is a share of the samples."""
        return max(each.size for each in self.of_kernels)

    @property
    def by_name(self) -> dict[str, Neighborhoods]:
        """Those of every kernel."""
        return {name: each for one in self.of_kernels for name, each in one.by_name.items()}

    def of_kernel(self, index: int) -> KernelNeighborhoods:
        """Return those of one kernel."""
        return self.of_kernels[index]

    def kernels(self) -> list[FactoredMatrix]:
        """Return the kernels of the training samples."""
        return [kernel for one in self.of_kernels for kernel in one.kernels()]

    def check_same(self, samples: Samples) -> None:
        """Refuse other kernels than these neighborhoods are of."""
        for one, K in zip(self.of_kernels, samples.parts, strict=True):
            one.check_same([K])


def _opened(kernels: Any) -> KernelStack:
    """Return kernels as they are given, neither centered nor scaled."""
    return as_stack(kernels, center=False, normalize=False, validate=False)


def _write_products(prints: Float, diagonals: Float, rows: slice, blocks: Sequence[Array]) -> None:
    """Write the random products of some rows of every kernel."""
    prints[rows] = _products(blocks, diagonals)


def _products(blocks: Sequence[Array], diagonals: Float) -> Float:
    """Return the products of samples' similarities, all kernels together, with random numbers."""
    total: Any = 0.0
    for p, (block, diagonal) in enumerate(zip(blocks, diagonals, strict=True)):
        block = block if is_sparse(block) else astype(block, "float64")
        probe = to_device(noise((len(diagonal), 3), p, diagonal), block)
        total = total + to_host(block @ probe) / (np.abs(diagonal).mean() or 1.0)
    return total


def _check(stack: KernelStack) -> None:
    """Refuse asymmetric kernels and distances; that kernels are indefinite does no harm."""
    for index, (name, matrix) in enumerate(zip(stack.names, stack.raw_kernels, strict=True)):
        label = describe(index, name)
        if stack.storage != "streamed":
            check_symmetry(matrix, label)
        refuse_distances(matrix, stack.standardizations[index].diagonal, label)


def check_neighborhoods(
    by_name: Mapping[str, Neighborhoods | None],
    ids: np.ndarray | None,
    n_clusters: int,
    observed: np.ndarray | None = None,
) -> dict[str, Any]:
    """Say what is wrong with neighborhoods, and return the number of groups if these are all.

    Parameters
    ----------
    by_name : dict of str to Neighborhoods or None
        Those that a kernel consists of; None for a kernel that compares all samples.
    ids : ndarray of shape (n_samples,) or None
        Ids of the samples.
    n_clusters : int
        Number of clusters.
    observed : ndarray of bool of shape (n_samples, n_kernels), default=None
        Which kernels have which samples; None if all have all.
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
            warnings.warn(
                f"in {name}, {_listed(isolated, ids)} no neighbor (only similarities above "
                "zero count): only the other kernels decide their clusters",
                NeighborhoodsWarning,
                3,
            )
    if not are_all:
        return {}
    n_components = count_components(
        [(each, np.flatnonzero(seen[name])) for name, each in every.items()], everyone
    )
    if n_components > n_clusters:
        warnings.warn(
            f"the neighborhoods of all kernels together form {n_components} groups that "
            f"are not connected, and n_clusters={n_clusters}: the clusters join "
            "unconnected groups arbitrarily; raise neighbors, or ask for as many clusters "
            "as there are groups",
            NeighborhoodsWarning,
            3,
        )
    return {"n_components_": n_components}


def _listed(which: np.ndarray, ids: np.ndarray | None) -> str:
    """Return 'sample 3 has' or '12 samples (1, 2, ...) have', by their ids where there are any."""
    samples = np.flatnonzero(which) if ids is None else ids[which]
    if len(samples) == 1:
        return f"sample {samples[0]} has"
    return f"{len(samples)} samples ({list_first(samples)}) have"
