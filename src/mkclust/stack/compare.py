"""Products of pairs of kernels off their diagonals, on the samples that both have."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from mkclust.engine.agreement import OffDiagonalProducts
from mkclust.linalg import (
    namespace,
    pair_ranges,
    products_of_rows,
    row_ranges,
    to_device,
    to_host,
    zeros,
)
from mkclust.stack.kernel import Array as Held
from mkclust.stack.kernel import Kernel
from mkclust.stack.observed import Observed
from mkclust.stack.stack import Stack
from mkclust.stack.standardized import Standardized
from mkclust.types import Array, Float

# Up to this many samples all are compared.
ALL_COMPARED = 2048
# If there are more, this many are drawn: enough to tell two kernels that share one
# percent of their variation from chance.
SOME_COMPARED = 1024
# Samples that are compared first, for each that must differ.
COMPARED_EACH = 4


def draw(n: int, count: int, seed: int = 0) -> np.ndarray:
    """Return some of n numbers, rising: all of them if n is at most ``count``."""
    if n <= count:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, count, replace=False))


def compared_samples(n: int) -> np.ndarray:
    """Return the numbers of the samples among which kernels are compared, rising."""
    return draw(n, n if n <= ALL_COMPARED else SOME_COMPARED)


def among_compared(stack: Stack) -> Stack:
    """Return kernels of all samples among those compared, written out and kept."""
    samples = compared_samples(stack.n_samples)
    if len(samples) == stack.n_samples:
        return stack.held() or stack  # as most fits write them out in any case
    if "_compared" not in vars(stack):
        vars(stack)["_compared"] = stack.among(samples)
    compared: Stack = vars(stack)["_compared"]
    return compared


# Kernels, each with the places of the compared samples among its own.
Members = Sequence[tuple[Kernel, np.ndarray]]


@dataclass(frozen=True)
class Comparison:
    """Kernels that are compared with each other, on samples that all of them have.

    Each of the first is compared with each of the second, both given by their numbers;
    they are the same if kernels are compared among themselves.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    products: OffDiagonalProducts  # of the kernels, in the order of `kernels`
    members: Members  # the same kernels
    samples: np.ndarray  # the numbers of the compared samples among all

    @property
    def kernels(self) -> tuple[int, ...]:
        """The numbers of the kernels, in the order of the products."""
        return self.first if self.first == self.second else self.first + self.second

    @property
    def n_samples(self) -> int:
        """On how many samples they are compared."""
        return self.products.n_samples

    def entries(self, indices: np.ndarray) -> Array:
        """Write the kernels out among some of these samples, (c, s, s)."""
        parts = _entries(self.members, indices, indices)
        return namespace(*parts).stack(parts)

    def means(self, parts: np.ndarray) -> Float:
        """Return the means of kernels over equally many samples, by indices (g, t), (c, g, g)."""
        g, t = parts.shape
        everyone, means = parts.reshape(-1), []
        for some in row_ranges(g, g * t * t, self.members[0][0].like):
            found = _entries(self.members, parts[some].reshape(-1), everyone)
            xp = namespace(*found)
            blocks = xp.reshape(xp.stack(found), (len(found), -1, t, g, t))
            means.append(to_host(xp.mean(blocks, axis=(2, 4))))
        return np.concatenate(means, axis=1)

    def of_means(self, parts: np.ndarray) -> "Comparison":
        """Return the comparison of the means of equally many samples, by their indices, (g, t)."""
        g = len(parts)
        members = [(Held(K), np.arange(g)) for K in self.means(parts)]
        return replace(
            self, products=_products(members), members=members, samples=np.arange(g)
        )


def compare(stack: Stack) -> list[Comparison]:
    """Return the products of every two kernels off their diagonals, on the samples both have.

    Kernels with the same samples are compared together, as they are before samples are
    filled in. Kernels of features are compared on some of their samples.
    """
    kernels: Sequence[Kernel] = stack.kernels
    numbers = np.arange(stack.n_samples)
    if stack.features is not None:
        kernels, numbers = stack.features.compared_kernels()
    elif not any(isinstance(kernel, Observed) for kernel in kernels):
        numbers = compared_samples(stack.n_samples)
        kernels = among_compared(stack).kernels
    groups: dict[bytes, tuple[np.ndarray, list[int]]] = {}
    inner: list[Kernel] = []
    for p, kernel in enumerate(kernels):
        samples = np.arange(kernel.n_samples)
        if isinstance(kernel, Observed):
            samples, kernel = kernel.map.samples, kernel.kernel
        inner.append(kernel)
        groups.setdefault(samples.tobytes(), (samples, []))[1].append(p)
    comparisons = []
    for (first, a), (second, b) in combinations_with_replacement(groups.values(), 2):
        shared, *common = np.intersect1d(
            first, second, assume_unique=True, return_indices=True
        )
        n = len(shared)
        # With several groups every kernel is read for each of the others, so fewer
        # samples do.
        some = compared_samples(n) if a is b else draw(n, SOME_COMPARED)
        members = [(inner[p], common[0][some]) for p in a]
        members += [(inner[p], common[1][some]) for p in b if a is not b]
        products, samples = _products(members), numbers[shared[some]]
        comparisons.append(Comparison(tuple(a), tuple(b), products, members, samples))
    return comparisons


def _entries(members: Members, rows: Any, columns: Any) -> list[Array]:
    """Return entries of every kernel among some of the compared samples."""
    entries = []
    for kernel, place in members:
        is_all = isinstance(rows, slice) and len(place) == kernel.n_samples
        some, others = (rows, columns) if is_all else (place[rows], place[columns])
        entries.append(kernel.entries(some, others))
    return entries


def _products(members: Members) -> OffDiagonalProducts:
    """Return the products of every two kernels, in one pass over their entries."""
    n, m, like = len(members[0][1]), len(members), members[0][0].like
    xp, products, row_sums = namespace(like), np.zeros((m, m)), zeros((m, n), like)
    for rows in pair_ranges(n, n * m, like):
        entries = xp.stack(_entries(members, rows, slice(0, n)))
        row_sums[:, rows] = xp.sum(entries, axis=2)
        products += products_of_rows(xp.reshape(entries, (m, -1)))
    diagonals = np.stack(
        [to_host(kernel.diagonal())[place] for kernel, place in members]
    )
    sums, products = (
        to_host(row_sums) - diagonals,
        products - products_of_rows(diagonals),
    )
    traces, totals = diagonals.sum(axis=1), sums.sum(axis=1)
    return OffDiagonalProducts(n, products, products_of_rows(sums), totals, traces)


def count_distinct(stack: Stack, enough: int) -> int:
    """Return how many samples differ, up to rounding; of some of them if these are enough."""
    if COMPARED_EACH * enough < stack.n_samples:
        found = _count(
            stack.among(draw(stack.n_samples, COMPARED_EACH * enough)), stack
        )
        if found >= enough:
            return found
    return _count(stack, stack)


def _count(stack: Stack, whole: Stack) -> int:
    """Count distinct products of a random mix with random vectors; `whole` gives their rounding.

    Identical samples have identical products. Those with one vector can agree by
    chance.
    """
    rng = np.random.default_rng(0)
    probe, mix = (
        rng.standard_normal((stack.n_samples, 2)),
        rng.standard_normal(stack.n_kernels),
    )
    largest = np.array([_largest_entry(kernel) or 1.0 for kernel in whole.kernels])
    images = stack.apply(to_device(probe, stack.kernels[0].like, "float64"))
    weights = to_device(mix / largest, images)
    products = to_host(namespace(images).tensordot(weights, images, axes=1))
    precision = max(kernel.precision for kernel in whole.kernels)
    rounding = 2 * precision * np.abs(probe).sum(axis=0) * np.abs(mix).sum()
    apart = np.abs(np.diff(products[np.argsort(products[:, 0])], axis=0))
    return 1 + int(np.any(apart > rounding, axis=1).sum())


def _largest_entry(kernel: Kernel) -> float:
    """Return a bound on the entries of a kernel before it was centered: they round by a share."""
    if isinstance(kernel, Observed):
        scale = (
            1.0
            if kernel.map.scale is None
            else float(np.max(to_host(kernel.map.scale)))
        )
        return scale**2 * _largest_entry(kernel.kernel)
    sizes = kernel.diagonal()
    if isinstance(kernel, Standardized):
        sizes, scale_of_samples = kernel.kernel.diagonal(), kernel.standardization.scale
        sizes = sizes if scale_of_samples is None else sizes * scale_of_samples**2
    return float(namespace(sizes).max(namespace(sizes).abs(sizes)))
