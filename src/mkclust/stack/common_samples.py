"""What kernels of different samples share: compared pair by pair on the samples that both have."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations

import numpy as np

from mkclust.engine.agreement import FEWEST_SAMPLES, OffDiagonalProducts
from mkclust.linalg import is_foreign, namespace, ranges
from mkclust.stack.base import KernelStack
from mkclust.stack.dense import GRAM_ROWS_ON_DEVICE, OFF_DIAGONAL_ROWS
from mkclust.stack.mapped import draw
from mkclust.stack.off_diagonal import (
    ALL_COMPARED,
    SOME_COMPARED,
    Comparison,
    OffDiagonalSums,
    compared_samples,
)
from mkclust.types import Array, Float

# Of features some samples stand for all. Where two kernels have fewer of these in common, so many
# more of those that they have in common are looked at.
FEW_COMMON = 256
Block = Callable[[slice, slice], list[Array]]


def compare_parts(
    stacks: Sequence[KernelStack],
    samples: Sequence[np.ndarray],
    kernels: Sequence[Sequence[int]],
) -> list[Comparison]:
    """Return what every two kernels share off their diagonals, on the samples both have.

    Parameters
    ----------
    stacks : sequence of KernelStack
        Complete stacks, one for each set of kernels with the same samples.
    samples : sequence of ndarray of int
        The numbers of the samples of each stack, rising.
    kernels : sequence of sequences of int
        The numbers that the kernels of each stack have among those of all stacks.

    Returns
    -------
    list of Comparison
        One a stack, and one for every two stacks.
    """
    numbers = [tuple(map(int, each)) for each in kernels]
    comparisons = [
        Comparison(kernels, kernels, whole.products, whole.entries)
        for stack, kernels in zip(stacks, numbers, strict=True)
        for whole in stack.comparisons()
    ]
    for a, b in combinations(range(len(stacks)), 2):
        _, *places = np.intersect1d(samples[a], samples[b], assume_unique=True, return_indices=True)
        pair = _Pair((stacks[a], stacks[b]), places)
        comparisons.append(
            Comparison(numbers[a], numbers[b], pair.off_diagonal_products(), pair.entries)
        )
    return comparisons


class _Pair:
    """Two stacks, and where the samples that both have stand in each of them."""

    def __init__(self, stacks: Sequence[KernelStack], places: Sequence[np.ndarray]):
        self.stacks = stacks
        # Every kernel is read for each of the others: fewer samples stand for all than if all
        # kernels are read once, or many kernels would take longer than a complete fit.
        some = draw(len(places[0]), SOME_COMPARED)
        self.places = [place[some] for place in places]
        self.n_kernels = sum(stack.n_kernels for stack in stacks)

    def off_diagonal_products(self) -> OffDiagonalProducts:
        """Return what the kernels share, on the samples that both stacks have."""
        n, m = len(self.places[0]), self.n_kernels
        if n < FEWEST_SAMPLES:  # nothing can be told of them, so nothing is read
            return OffDiagonalProducts(n, np.zeros((m, m)), np.zeros((m, m)), np.zeros(m))
        like = self.stacks[0].like
        height = GRAM_ROWS_ON_DEVICE if is_foreign(like) else OFF_DIAGONAL_ROWS
        sums = OffDiagonalSums(m, n, like)
        blocks = [
            _blocks(stack, place) for stack, place in zip(self.stacks, self.places, strict=True)
        ]
        for rows in ranges(n, height):
            columns = slice(rows.start, n)
            sums.add(rows.start, [part for block in blocks for part in block(rows, columns)])
        return sums.result()

    def entries(self, indices: np.ndarray) -> Array:
        """Write the kernels out among some of the samples that are compared."""
        parts = [
            stack.entries(place[indices])
            for stack, place in zip(self.stacks, self.places, strict=True)
        ]
        return namespace(*parts).concat(parts)


def compare_features(
    observed: np.ndarray, features_of: Callable[[np.ndarray], Sequence[Float]]
) -> list[Comparison]:
    """Return what every two kernels of features share, on samples that both have.

    The features of some samples are asked for, once: of all that are to be compared, or of 2048
    that stand for all and of some more where two kernels have few of these in common.

    Parameters
    ----------
    observed : ndarray of bool of shape (n_samples, m)
        Which samples each kernel has.
    features_of : callable
        Takes the numbers of samples, rising, and returns their features, m of (s, n_columns), on
        the host. Of samples that a kernel lacks they are not looked at.

    Returns
    -------
    list of Comparison
        One a kernel, and one for every two kernels.
    """
    m = observed.shape[1]
    pairs = [(p, p) for p in range(m)] + list(combinations(range(m), 2))
    drawn = _drawn_samples(observed, pairs)
    features = features_of(drawn)
    comparisons = []
    for p, q in pairs:
        common = np.flatnonzero(observed[drawn, p] & observed[drawn, q])
        common = common[compared_samples(len(common))]
        rows = [features[each][common] for each in ((p,) if p == q else (p, q))]
        sums = OffDiagonalSums(len(rows), len(common), rows[0])
        if len(common):
            sums.add(0, [F @ F.T for F in rows])
        comparisons.append(Comparison((p,), (q,), sums.result(), partial(_products, rows)))
    return comparisons


def _drawn_samples(observed: np.ndarray, pairs: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return the samples by which kernels of features are compared, rising."""
    drawn = draw(len(observed), ALL_COMPARED)
    further = [drawn]
    for p, q in pairs:
        if np.sum(observed[drawn, p] & observed[drawn, q]) < FEW_COMMON:
            common = np.flatnonzero(observed[:, p] & observed[:, q])
            further.append(common[draw(len(common), FEW_COMMON)])
    return np.unique(np.concatenate(further))


def _products(rows: Sequence[Float], indices: np.ndarray) -> Float:
    """Write kernels of features out among some of their samples, (c, s, s)."""
    return np.stack([F[indices] @ F[indices].T for F in rows])


def _blocks(stack: KernelStack, samples: np.ndarray) -> Block:
    """Return what gives some rows and columns of every kernel among some samples."""
    kernels = range(stack.n_kernels)
    if stack.storage == "streamed":  # read once, for few samples stand for many
        entries = stack.entries(samples)
        return lambda rows, columns: [entries[p, rows, columns] for p in kernels]
    return lambda rows, columns: [
        stack.kernel(p).block(samples[rows], samples[columns]) for p in kernels
    ]
