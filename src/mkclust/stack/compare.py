"""Products of pairs of kernels off their diagonals, on the samples that both have."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from mkclust.linalg import (
    namespace,
    pair_ranges,
    products_of_rows,
    row_ranges,
    to_host,
    zeros,
)
from mkclust.stack.kernel import DenseKernel, Kernel
from mkclust.stack.observed import Observed
from mkclust.stack.stack import Stack
from mkclust.types import Array, Float

# Up to this many samples all are compared.
ALL_COMPARED = 2048
# If there are more, this many are drawn: enough to tell two kernels that share one
# percent of their variation from chance.
SOME_COMPARED = 1024
# With three samples nothing is left of U-centered kernels.
FEWEST_SAMPLES = 4


@dataclass(frozen=True)
class OffDiagonalProducts:
    """Inner products of pairs of kernels without their diagonals."""

    n_samples: int
    products: Float  # Tr(K_p K_q) of the kernels with zero diagonals, (m, m)
    row_products: Float  # inner products of their row sums, 1^T K_p K_q 1, (m, m)
    totals: Float  # sums of their entries, (m,)
    traces: Float  # of the kernels as they are, (m,)

    def unbiased(self) -> Float:
        """Return the inner products u_pq of the U-centered kernels, (m, m)."""
        n = self.n_samples
        if n < FEWEST_SAMPLES:
            return np.zeros_like(self.products)
        totals = np.outer(self.totals, self.totals) / ((n - 1) * (n - 2))
        u = self.products + totals - 2 / (n - 2) * self.row_products

        # A kernel whose squared U-centered norm is below this share of its entries' is
        # a multiple of the identity, up to rounding.
        lost = np.diag(u) <= 1e-12 * np.diag(self.products)
        u[lost, :] = u[:, lost] = 0.0
        return u / (n * (n - 3))


def draw(n: int, count: int, seed: int = 0) -> np.ndarray:
    """Return some of n numbers, rising: all of them if n is at most ``count``."""
    if n <= count:
        return np.arange(n)
    rng = np.random.default_rng(seed)
    return np.sort(rng.choice(n, count, replace=False))


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
    return vars(stack)["_compared"]


# Pairs of a kernel and the positions of the compared samples among its own.
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
        if self.first == self.second:
            return self.first
        return self.first + self.second

    # On how many samples they are compared.
    n_samples = property(lambda self: self.products.n_samples)

    def entries(self, indices: np.ndarray) -> Array:
        """Write the kernels out among some of these samples, (c, s, s)."""
        parts = _entries(self.members, indices, indices)
        return namespace(*parts).stack(parts)

    def means(self, parts: np.ndarray) -> Float:
        """Return means of kernels over samples, by indices (g, t): (c, g, g)."""
        g, t = parts.shape
        everyone = parts.reshape(-1)
        means = []
        width = g * t * t
        for some in row_ranges(g, width, self.members[0][0].like):
            found = _entries(self.members, parts[some].reshape(-1), everyone)
            xp = namespace(*found)
            shape = (len(found), -1, t, g, t)
            blocks = xp.reshape(xp.stack(found), shape)
            means.append(to_host(xp.mean(blocks, axis=(2, 4))))
        return np.concatenate(means, axis=1)

    def of_means(self, parts: np.ndarray) -> "Comparison":
        """Return the comparison of means over samples, by their indices, (g, t)."""
        places = np.arange(len(parts))
        members = [(DenseKernel(K), places) for K in self.means(parts)]
        products = _products(members)
        return replace(self, products=products, members=members, samples=places)


def compare(stack: Stack) -> list[Comparison]:
    """Return products of every two kernels off their diagonals, on common samples.

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
            samples = kernel.map.samples
            kernel = kernel.kernel
        inner.append(kernel)
        groups.setdefault(samples.tobytes(), (samples, []))[1].append(p)

    comparisons = []
    given = groups.values()
    for (first, a), (second, b) in combinations_with_replacement(given, 2):
        shared, in_first, in_second = np.intersect1d(
            first, second, assume_unique=True, return_indices=True
        )
        some = compared_samples(len(shared))
        members = [(inner[p], in_first[some]) for p in a]
        if a is not b:
            # Every kernel is read for each of the others, so fewer samples do.
            some = draw(len(shared), SOME_COMPARED)
            members = [(inner[p], in_first[some]) for p in a]
            members += [(inner[p], in_second[some]) for p in b]
        comparisons.append(
            Comparison(
                tuple(a),
                tuple(b),
                _products(members),
                members,
                numbers[shared[some]],
            )
        )
    return comparisons


def _entries(members: Members, rows: Any, columns: Any) -> list[Array]:
    """Return entries of every kernel among some of the compared samples."""
    entries = []
    for kernel, place in members:
        if isinstance(rows, slice) and len(place) == kernel.n_samples:
            entries.append(kernel.entries(rows, columns))
        else:
            entries.append(kernel.entries(place[rows], place[columns]))
    return entries


def _products(members: Members) -> OffDiagonalProducts:
    """Return the products of every two kernels, in one pass over their entries."""
    first, places = members[0]
    like = first.like
    xp = namespace(like)
    n = len(places)
    m = len(members)
    products = np.zeros((m, m))
    row_sums = zeros((m, n), like)
    for rows in pair_ranges(n, n * m, like):
        entries = xp.stack(_entries(members, rows, slice(0, n)))
        row_sums[:, rows] = xp.sum(entries, axis=2)
        products += products_of_rows(xp.reshape(entries, (m, -1)))
    diagonals = np.stack(
        [to_host(kernel.diagonal())[place] for kernel, place in members]
    )
    sums = to_host(row_sums) - diagonals
    return OffDiagonalProducts(
        n,
        products - products_of_rows(diagonals),
        products_of_rows(sums),
        sums.sum(axis=1),
        diagonals.sum(axis=1),
    )
