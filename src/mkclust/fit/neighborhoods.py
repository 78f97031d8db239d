"""Clusters by the graph of neighborhoods, and new samples by those that they join."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import scipy.sparse

from mkclust.fit.embedding import (
    Extension,
    Similarities,
    matrix_at,
    numbers_of,
    observed_part,
)
from mkclust.fit.mixture import leading_shares
from mkclust.graph import (
    Cut,
    Lists,
    Memberships,
    cut,
    find_lists,
    list_sizes,
    scaled_factor,
)
from mkclust.linalg import (
    arrays_to_host,
    namespace,
    pair_ranges,
    select,
    to_device,
    to_host,
)
from mkclust.linalg.threads import in_threads
from mkclust.stack import Observed, Stack
from mkclust.stack.compare import among_compared, compared_samples
from mkclust.types import Array, Float


class KernelBlock(NamedTuple):
    """Similarities by one kernel, of those samples and anchors that it has."""

    entries: Array
    rows: np.ndarray | None = None  # which of the samples these are; None for all
    anchors: np.ndarray | None = None  # which of the anchors; None for all


@dataclass(frozen=True)
class MixAndViews:
    """By which kernels samples are compared: all mixed ones, and those of each view.

    Two samples are as similar as the sum, with the coefficients of the mix, over the
    kernels that have both, divided by the root of the share of these: so that
    similarities spread alike however few kernels they are from. Without any, samples
    are infinitely dissimilar.
    """

    coefficients: Float  # of all kernels, zero for those that are set aside
    views: tuple[int, ...]  # the number of the view of every kernel

    @property
    def included(self) -> list[int]:
        """The numbers of the kernels that are mixed."""
        return np.flatnonzero(self.coefficients).tolist()

    @property
    def groups(self) -> list[list[int]]:
        """The kernels to compare by: all, and by view if there are several views."""
        of_view: dict[int, list[int]] = {}
        for p in self.included:
            of_view.setdefault(self.views[p], []).append(p)
        views = list(of_view.values())
        return [self.included] * (len(views) > 1) + views

    def compare(
        self,
        blocks: Mapping[int, KernelBlock],
        shape: tuple[int, int],
        like: Array,
    ) -> list[Array]:
        """Return similarities of samples to anchors, by the mix and by each view."""
        return [self._mix(group, blocks, shape, like) for group in self.groups]

    def _mix(
        self,
        kernels: Sequence[int],
        blocks: Mapping[int, KernelBlock],
        shape: tuple[int, int],
        like: Array,
    ) -> Array:
        """Return the similarities of samples to anchors by the sum of some kernels."""
        found = {p: blocks[p] for p in kernels if p in blocks}
        weights = {p: float(self.coefficients[p]) for p in kernels}
        total = sum(weights.values())
        parts = [part for block in found.values() for part in block[1:]]
        is_complete = all(part is None for part in parts)

        if len(found) == len(kernels) and is_complete:
            if len(kernels) == 1:
                return found[kernels[0]].entries
            terms = (weights[p] / total * block.entries for p, block in found.items())
            mixed = next(terms)
            for term in terms:
                mixed += term
            return mixed

        sums = np.zeros(shape)
        shares = np.zeros(shape)
        for p, block in found.items():
            rows = numbers_of(block.rows, shape[0])
            places = np.ix_(rows, numbers_of(block.anchors, shape[1]))
            share = weights[p] / total
            sums[places] += share * to_host(block.entries)
            shares[places] += share
        similarities = np.full(shape, -np.inf)
        np.divide(sums, np.sqrt(shares), out=similarities, where=shares > 0)
        return to_device(similarities, like)


# What is found of some samples.
Result = TypeVar("Result")


@dataclass(frozen=True)
class Neighborhoods:
    """The lists of anchors, and how samples are embedded by those that they are in."""

    compared: MixAndViews  # by which kernels
    lists: list[Lists] = field(repr=False)  # by kernel
    sizes: tuple[int, ...]
    scales: list[list[float]]  # of memberships, by kernel and size
    list_points: Float = field(repr=False)  # P, a row for every list in use
    basis: Float = field(repr=False)  # makes the rows of the fit orthonormal, (k, k)
    n_anchors: int

    def __getstate__(self) -> dict[str, Any]:
        return {name: arrays_to_host(value) for name, value in vars(self).items()}

    def memberships(self, similarities: Sequence[Array]) -> list[list[Array]]:
        """Return by kernel and size in which lists samples are."""
        pairs = zip(self.lists, similarities, strict=True)
        return [lists.memberships(each) for lists, each in pairs]

    def embed(self, memberships: Memberships) -> Float:
        """Return the rows of samples, (n, k), given the lists that they are in."""
        return scaled_factor(memberships, self.scales) @ self.list_points


def find_clusters(
    stack: Stack,
    coefficients: Float,
    n_clusters: int,
    neighbors: int | Literal["auto"],
    *,
    n_init: int,
    random_state: Any,
) -> tuple[Neighborhoods, Cut, Float]:
    """Return clusters by the neighborhoods of all samples, in a mix and in its views.

    Kernels of coefficient zero play no part. Also returned are what the clusters follow
    and the embedding, orthonormal.
    """
    sizes = list_sizes(neighbors, stack.n_samples, n_clusters)
    compared, lists, memberships = find_memberships(stack, coefficients, sizes)
    options: Any = {"n_init": n_init, "random_state": random_state}
    found = cut(memberships, n_clusters, **options)
    embedding, basis = orthonormalized(found.rows)
    learned = Neighborhoods(
        compared=compared,
        lists=lists,
        sizes=sizes,
        scales=found.scales,
        list_points=found.list_points,
        basis=basis,
        n_anchors=stack.n_samples,
    )
    return learned, found, embedding


def find_memberships(
    stack: Stack, coefficients: Float, sizes: Sequence[int]
) -> tuple[MixAndViews, list[Lists], list[list[Array]]]:
    """Return how all samples of a stack are compared, and their lists.

    Lists are given by kernel, and who is in which of them by kernel and size.
    """
    n = stack.n_samples
    like = stack.kernels[0].like
    compared = MixAndViews(np.asarray(coefficients, np.float64), stack.views)

    def compare(samples: np.ndarray | slice) -> list[Array]:
        """Return similarities of some samples to all, by the mix and by each view."""
        blocks = kernel_blocks(stack, compared.included, samples)
        height = len(np.arange(n)[samples])
        return compared.compare(blocks, (height, n), like)

    parts = pair_ranges(n, n, like)
    ties = ties_of(stack, compared)
    return compared, *find_lists(compare, n, parts, sizes, ties, like)


def kernel_blocks(
    stack: Stack, kernels: Sequence[int], samples: np.ndarray | slice
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
        diagonal = observed_part(stack.kernels[p]).diagonal()
        sizes[p] = float(np.mean(np.abs(to_host(diagonal))))
    is_single = max(stack.kernels[p].precision for p in compared.included) > 1e-10
    tie = 1e-5 if is_single else 1e-9

    ties = []
    for group in compared.groups:
        weights = [compared.coefficients[p] for p in group]
        size = float(np.average([sizes[p] for p in group], weights=weights))
        ties.append(tie * size)
    return ties


def orthonormalized(rows: Float) -> tuple[Float, Float]:
    """Return the nearest matrix of orthonormal columns, and what makes it, (k, k)."""
    left, lengths, turn = np.linalg.svd(rows, full_matrices=False)
    # Directions of less than this share of the largest are rounding.
    is_real = lengths > 1e-12 * lengths[0]
    inverse = is_real / np.where(is_real, lengths, 1.0)
    return left @ turn, (turn.T * inverse) @ turn


def sampled_alignments(stack: Stack, embedding: Float) -> Float:
    """Return what share of each kernel's top-k eigenvalue sum an embedding captures.

    Of many samples, some stand for all.
    """
    samples = compared_samples(stack.n_samples)
    is_incomplete = any(isinstance(each, Observed) for each in stack.kernels)
    some = stack.among(samples) if is_incomplete else among_compared(stack)
    H = np.linalg.qr(embedding[samples])[0]
    H = to_device(np.ascontiguousarray(H), some.kernels[0].like)
    return leading_shares(some, H, some.apply(H))


@dataclass(frozen=True)
class NeighborhoodExtension(Extension):
    """The embedding of new samples by the lists of anchors that they join."""

    neighborhoods: Any = None

    @classmethod
    def of(cls, stack: Stack, neighborhoods: Neighborhoods) -> "NeighborhoodExtension":
        """Return what embeds new samples, given how those of the fit are compared."""
        is_used = neighborhoods.compared.coefficients != 0
        own = {"active": is_used, "neighborhoods": neighborhoods}
        return cls(**{**vars(Extension.by(stack)), **own})

    def embed(self, similarities: Sequence[Similarities], n_new: int) -> Array:
        """Embed new samples, (n_new, k), on the host."""
        return self.neighborhoods.embed(self.memberships(similarities, n_new))

    def memberships(
        self, similarities: Sequence[Similarities], n_new: int
    ) -> list[list[Array]]:
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
        self.extension = extension
        self.compared = compared
        self.n_new = n_new
        self.n_anchors = n_anchors
        included = set(compared.included)
        self.parts = [part for part in similarities if included & set(part.kernels)]
        self.like: Array = np.zeros(0)
        if self.parts:
            first = self.parts[0]
            used = [place for place, p in enumerate(first.kernels) if p in included]
            self.like = matrix_at(first.rows_at(slice(0, 0)), used[0])

    def map(self, function: Callable[[list[Array]], Result]) -> list[Result]:
        """Return a function of the similarities of all samples, some at a time."""
        blocks = pair_ranges(self.n_new, self.n_anchors, self.like)
        return in_threads(lambda some: function(self.at(some)), blocks, self.like)

    def at(self, some: slice) -> list[Array]:
        """Return the similarities of some samples, by the mix and by each view."""
        blocks: dict[int, KernelBlock] = {}
        for part in self.parts:
            blocks |= self._blocks(part, some)
        shape = some.stop - some.start, self.n_anchors
        return self.compared.compare(blocks, shape, self.like)

    def _blocks(self, part: Similarities, some: slice) -> dict[int, KernelBlock]:
        """Return standardized similarities of those samples that the kernels have."""
        low, high = np.searchsorted(part.rows, [some.start, some.stop])
        if low == high:
            return {}
        own = slice(int(low), int(high))
        is_whole = high - low == some.stop - some.start
        rows = None if is_whole else part.rows[own] - some.start
        first = own.start if part.is_training else None

        matrices = part.rows_at(own)
        blocks = {}
        for place, p in enumerate(part.kernels):
            if p not in self.compared.included:
                continue
            cross = matrix_at(matrices, place)
            lengths = self.extension.lengths(part, place, cross, own)
            how = self.extension.standardizations[p]
            entries = how.rows(cross, lengths, first=first)
            anchors = getattr(self.extension.maps[p], "samples", None)
            blocks[p] = KernelBlock(entries, rows, anchors)
        return blocks


def stacked(parts: Sequence[list[list[Array]]]) -> list[list[Array]]:
    """Return the memberships of several parts of the samples as those of all."""
    return [
        [scipy.sparse.vstack(blocks, "csr") for blocks in zip(*of_kernel, strict=True)]
        for of_kernel in zip(*parts, strict=True)
    ]


def mixed_among(
    stack: Stack, compared: MixAndViews, samples: np.ndarray | None
) -> Array:
    """Return the similarities among samples by which neighborhoods are found."""
    n = stack.n_samples
    chosen = numbers_of(samples, n)
    blocks = kernel_blocks(stack, compared.included, chosen)
    like = stack.kernels[0].like
    mixed = compared.compare(blocks, (len(chosen), n), like)[0]
    total = select(mixed * float(compared.coefficients.sum()), chosen, axis=1)
    # Samples that no kernel has both of are as similar as on average.
    return namespace(total).where(total > -np.inf, total, 0.0)
