"""Clusters by the graph of neighborhoods, and new samples by those that they join."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from mkclust.fit.embedding import Extension, Similarities
from mkclust.fit.mixture import leading_sums
from mkclust.graph import (
    Cut,
    KernelBlock,
    Lists,
    MixAndViews,
    cut,
    find_lists,
    list_sizes,
    scaled_factor,
    tie_of,
)
from mkclust.linalg import (
    arrays_to_host,
    inner_products,
    is_foreign,
    namespace,
    pair_ranges,
    to_device,
    to_host,
)
from mkclust.linalg.threads import in_threads
from mkclust.stack import Observed, Source, Stack
from mkclust.stack.compare import among_compared, compared_samples
from mkclust.types import Array, Float

# Directions of less than this share of the largest are rounding.
RANK_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Neighborhoods:
    """The lists of anchors, and how samples are embedded by those that they are in."""

    compared: MixAndViews  # by which kernels
    lists: list[Lists] = field(repr=False)  # by kernel
    sizes: tuple[int, ...]
    scales: list[list[float]]  # of memberships, by kernel and size
    anchors: Float = field(repr=False)  # P, a row for every list in use
    basis: Float = field(repr=False)  # makes the rows of the fit orthonormal, (k, k)
    n_anchors: int

    def __getstate__(self) -> dict[str, Any]:
        return {name: arrays_to_host(value) for name, value in vars(self).items()}

    def memberships(self, similarities: Sequence[Array]) -> list[list[Any]]:
        """Return by kernel and size in which lists samples are."""
        pairs = zip(self.lists, similarities, strict=True)
        return [lists.memberships(each) for lists, each in pairs]

    def no_memberships(self, n: int) -> list[list[Any]]:
        """Return the memberships of samples that are in no list."""
        nothing = scipy.sparse.csr_array((n, self.n_anchors), dtype=bool)
        return [[nothing] * len(self.sizes) for _ in self.lists]

    def embed(self, memberships: Sequence[Sequence[Any]]) -> Float:
        """Return the rows of samples, (n, k), given the lists that they are in."""
        return scaled_factor(memberships, self.scales) @ self.anchors


class Clusters(NamedTuple):
    """The clusters of a fit, and what they follow."""

    neighborhoods: Neighborhoods
    cut: Cut
    embedding: Float  # orthonormal


def find_clusters(
    stack: Stack,
    coefficients: Float,
    n_clusters: int,
    neighbors: Any,
    *,
    n_init: int,
    random_state: Any,
) -> Clusters:
    """Return clusters by the neighborhoods of all samples, in a mix and in its views.

    Kernels of coefficient zero play no part.
    """
    n = stack.n_samples
    sizes = list_sizes(neighbors, n, n_clusters)
    compared, lists, memberships = find_memberships(stack, coefficients, sizes)
    found = cut(memberships, n_clusters, n_init=n_init, random_state=random_state)
    embedding, basis = orthonormalized(found.rows)
    learned = Neighborhoods(
        compared, lists, sizes, found.scales, found.anchors, basis, n
    )
    return Clusters(learned, found, embedding)


def find_memberships(
    stack: Stack, coefficients: Float, sizes: Sequence[int]
) -> tuple[MixAndViews, list[Lists], list[list[Any]]]:
    """Return how samples are compared, their lists, and the lists' members by size."""
    n = stack.n_samples
    like = stack.kernels[0].like
    compared = MixAndViews(np.asarray(coefficients, np.float64), stack.views)

    def compare(samples: Any) -> list[Array]:
        """Return similarities of some samples to all, by the mix and by each view."""
        blocks = kernel_blocks(stack, compared.included, samples)
        height = len(range(n)[samples]) if isinstance(samples, slice) else len(samples)
        return compared.compare(blocks, (height, n), like)

    parts = pair_ranges(n, n, like)
    ties = ties_of(stack, compared)
    lists, memberships = find_lists(compare, n, parts, sizes, ties, like)
    return compared, lists, memberships


def kernel_blocks(
    stack: Stack, kernels: Sequence[int], samples: Any
) -> dict[int, KernelBlock]:
    """Return similarities of some samples, by slice or numbers, to all, by kernel."""
    blocks = {}
    for p in kernels:
        kernel = stack.kernels[p]
        if not isinstance(kernel, Observed):
            blocks[p] = KernelBlock(kernel.rows(samples))
            continue
        positions = kernel.map.positions[samples]
        seen = np.flatnonzero(positions < kernel.map.n_observed)
        entries = kernel.kernel.rows(positions[seen])
        blocks[p] = KernelBlock(entries, seen, kernel.map.samples)
    return blocks


def ties_of(stack: Stack, compared: MixAndViews) -> list[float]:
    """Return the differences that are only rounding, by the mix and by each view."""
    sizes = {}
    for p in compared.included:
        kernel = stack.kernels[p]
        inner = kernel.kernel if isinstance(kernel, Observed) else kernel
        sizes[p] = float(np.mean(np.abs(to_host(inner.diagonal()))))
    tie = tie_of(max(stack.kernels[p].precision for p in compared.included))
    c = compared.coefficients
    return [
        tie
        * float(np.average([sizes[p] for p in group], weights=[c[p] for p in group]))
        for group in compared.groups
    ]


def orthonormalized(rows: Float) -> tuple[Float, Float]:
    """Return the nearest matrix of orthonormal columns, and what makes it, (k, k)."""
    left, lengths, turn = np.linalg.svd(rows, full_matrices=False)
    is_real = lengths > RANK_TOLERANCE * lengths[0]
    inverse = is_real / np.where(is_real, lengths, 1.0)
    return left @ turn, (turn.T * inverse) @ turn


def sampled_alignments(stack: Stack, embedding: Float) -> Float:
    """Return what share of each kernel's top-k eigenvalue sum an embedding captures.

    Of many samples, some stand for all.
    """
    samples = compared_samples(stack.n_samples)
    are_complete = not any(isinstance(each, Observed) for each in stack.kernels)
    some: Stack = among_compared(stack) if are_complete else stack.among(samples)
    H = np.linalg.qr(embedding[samples])[0]
    H = to_device(np.ascontiguousarray(H), some.kernels[0].like)
    products = some.apply(H)
    largest = leading_sums(some, H.shape[1], H, products)
    sums = inner_products(products, H)
    shares = np.divide(sums, largest, out=np.zeros_like(largest), where=largest > 0)
    return np.clip(shares, 0, 1)


@dataclass(frozen=True)
class NeighborhoodExtension(Extension):
    """The embedding of new samples by the lists of anchors that they join."""

    neighborhoods: Any = None

    @classmethod
    def of(cls, stack: Stack, neighborhoods: Neighborhoods) -> "NeighborhoodExtension":
        """Return what embeds new samples, given how those of the fit are compared."""
        is_used = neighborhoods.compared.coefficients != 0
        plain = Extension.by(stack)
        own = {"active": is_used, "neighborhoods": neighborhoods}
        return cls(**{**vars(plain), **own})

    def embed(self, similarities: Sequence[Similarities], n_new: int) -> Array:
        """Embed new samples, (n_new, k), on the host."""
        return self.neighborhoods.embed(self.memberships(similarities, n_new))

    def memberships(
        self, similarities: Sequence[Similarities], n_new: int
    ) -> list[list[Any]]:
        """Return by kernel and size in which lists of anchors new samples are."""
        if not n_new:
            raise ValueError("X is empty, it has no samples: pass at least one")
        known = self.neighborhoods
        samples = NewSamples(self, known.compared, similarities, n_new, known.n_anchors)
        return stacked(samples.map(known.memberships))


class NewSamples:
    """The similarities of new samples to those of a fit, by the mix and by view."""

    def __init__(
        self,
        extension: Extension,
        compared: MixAndViews,
        similarities: Sequence[Similarities],
        n_new: int,
        n_anchors: int,
    ):
        self.compared, self.n_new, self.n_anchors = compared, n_new, n_anchors
        included = set(compared.included)
        used = [part for part in similarities if included & set(part.kernels)]
        self.parts = [NewRows(extension, part, included) for part in used]
        self.like = self.parts[0].like if self.parts else np.zeros(0)

    def map(self, function: Callable[[list[Array]], Any]) -> list[Any]:
        """Return a function of the similarities of all samples, some at a time."""
        blocks = pair_ranges(self.n_new, self.n_anchors, self.like)
        return in_threads(lambda some: function(self.at(some)), blocks, self.like)

    def at(self, some: slice) -> list[Array]:
        """Return the similarities of some samples, by the mix and by each view."""
        blocks: dict[int, KernelBlock] = {}
        for part in self.parts:
            blocks |= part.blocks(some)
        shape = some.stop - some.start, self.n_anchors
        return self.compared.compare(blocks, shape, self.like)


def stacked(parts: Sequence[list[list[Any]]]) -> list[list[Any]]:
    """Return the memberships of several parts of the samples as those of all."""
    return [
        [scipy.sparse.vstack(blocks, "csr") for blocks in zip(*of_kernel, strict=True)]
        for of_kernel in zip(*parts, strict=True)
    ]


class NewRows:
    """The similarities of new samples by a view's kernels, some rows at a time."""

    def __init__(self, extension: Extension, part: Similarities, used: set[int]):
        self.extension, self.part = extension, part
        self.numbers = np.asarray(part.rows)
        self.places = [place for place, p in enumerate(part.kernels) if p in used]
        self.is_source = isinstance(part.cross, Source)
        first = part.cross.rows(0, 0) if self.is_source else part.cross
        self.like = _at(first, self.places[0])

    def blocks(self, some: slice) -> dict[int, KernelBlock]:
        """Return standardized similarities of those samples that the kernels have."""
        low, high = np.searchsorted(self.numbers, [some.start, some.stop])
        if low == high:
            return {}
        own = slice(int(low), int(high))
        read = self.part.cross.rows(own.start, own.stop) if self.is_source else None
        is_all = high - low == some.stop - some.start
        rows = None if is_all else self.numbers[own] - some.start

        blocks = {}
        for place in self.places:
            p = self.part.kernels[place]
            if read is not None:
                cross = _at(read, place)
            else:
                whole = _at(self.part.cross, place)
                cross = whole[own, ...] if is_foreign(whole) else whole[own]
            entries = self._standardized(p, place, cross, own)
            observed = self.extension.maps[p]
            anchors = None if observed is None else observed.samples
            blocks[p] = KernelBlock(entries, rows, anchors)
        return blocks

    def _standardized(self, p: int, place: int, cross: Array, own: slice) -> Array:
        """Return some rows of similarities, centered and scaled."""
        given = self.part.self_similarity
        is_known = self.part.is_training
        some = None if given is None else given[place, own]
        lengths = self.extension.lengths(p, cross, some, is_known, own)
        how = self.extension.standardizations[p]
        return how.rows(cross, lengths, first=own.start if is_known else None)


def _at(matrices: Any, place: int) -> Array:
    return matrices[place, ...] if is_foreign(matrices) else matrices[place]


def mixed_among(
    stack: Stack, compared: MixAndViews, samples: np.ndarray | None
) -> Array:
    """Return the similarities among samples by which neighborhoods are found."""
    chosen: Any = slice(0, stack.n_samples) if samples is None else samples
    like, n = stack.kernels[0].like, stack.n_samples
    height = n if samples is None else len(samples)
    blocks = kernel_blocks(stack, compared.included, chosen)
    total = compared.compare(blocks, (height, n), like)[0] * float(
        compared.coefficients.sum()
    )
    if samples is not None:
        total = namespace(total).take(total, to_device(samples, total), axis=1)
    # Samples that no kernel has both of are as similar as on average.
    return namespace(total).where(total > -np.inf, total, 0.0)
