"""What pairs of kernels share off their diagonals, on the samples that both have."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from mkclust.engine.agreement import FEWEST_SAMPLES, OffDiagonalProducts
from mkclust.linalg import is_foreign, namespace, ranges, select, set_diagonal, to_host, zeros
from mkclust.stack.kernel import Kernel
from mkclust.stack.observed import Observed
from mkclust.stack.stack import Stack
from mkclust.types import Array, Float

# Up to so many samples all are compared.
ALL_COMPARED = 2048
# Of more, so many stand for all: by these, two kernels that share one percent of what they have are
# told from chance, and the cost grows no further.
SOME_COMPARED = 1024
# Rows of all kernels that are written out at a time on a host, so that they stay in the cache.
COMPARED_ROWS = 32
# The same on a device.
COMPARED_ROWS_ON_DEVICE = 4096
# If two kernels of features have fewer of the drawn samples in common, so many more of those that
# they have in common are looked at.
FEW_COMMON = 256


def draw(n: int, count: int, seed: int = 0) -> np.ndarray:
    """Return some of n numbers, rising: all of them if they are no more than asked for."""
    if n <= count:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, count, replace=False))


def compared_samples(n_samples: int) -> np.ndarray:
    """Return the numbers of the samples among which kernels are compared, rising."""
    return draw(n_samples, n_samples if n_samples <= ALL_COMPARED else SOME_COMPARED)


@dataclass(frozen=True)
class Comparison:
    """Kernels that are compared with each other, on samples that all of them have.

    Attributes
    ----------
    first, second : tuple of int
        The numbers of the kernels; each of the first is compared with each of the second. Both are
        the same if kernels are compared among themselves.
    products : OffDiagonalProducts
        Of these samples, the first kernels before the second, or once if both are the same.
    entries : callable
        Takes the indices of s of these samples, and writes the kernels out among them, (c, s, s).
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    products: OffDiagonalProducts
    entries: Callable[[np.ndarray], Array]

    @property
    def kernels(self) -> tuple[int, ...]:
        """The numbers of the kernels, in the order of the products."""
        return self.first if self.first == self.second else self.first + self.second

    @property
    def n_samples(self) -> int:
        """On how many samples they are compared."""
        return self.products.n_samples


class OffDiagonalSums:
    """Sums over the entries above the diagonals, which stand for those below by symmetry.

    Parameters
    ----------
    n_kernels, n_samples : int
        Number of kernels, m, and of samples, n.
    like : array
        An array of the library and the device of the kernels.
    """

    def __init__(self, n_kernels: int, n_samples: int, like: Array):
        self.n_samples = n_samples
        self._products = zeros((n_kernels, n_kernels), like)
        self._row_sums = zeros((n_kernels, n_samples), like)

    def add(self, start: int, parts: Sequence[Array]) -> None:
        """Take in rows of every kernel from `start` on, and their columns from `start` on.

        Parameters
        ----------
        start : int
            The first row, and the first column.
        parts : sequence of m arrays of shape (b, n_samples - start)
            Centered and scaled, in float64; their diagonals are overwritten.
        """
        xp, (height, width) = namespace(parts[0]), parts[0].shape
        stop = start + height
        for p, part in enumerate(parts):
            square = part[:, :height]
            set_diagonal(square, zeros((height,), part))
            self._row_sums[p, start:stop] += xp.sum(part, axis=1)
            self._row_sums[p, stop:] += xp.sum(part[:, height:], axis=0)
        whole = xp.stack([xp.reshape(part, (height * width,)) for part in parts])
        squares = xp.stack([xp.reshape(part[:, :height], (height**2,)) for part in parts])
        # Both halves of the square on the diagonal are among the entries already.
        self._products += 2 * (whole @ whole.T) - squares @ squares.T

    def result(self) -> OffDiagonalProducts:
        """Return the sums, on the host."""
        sums, products = to_host(self._row_sums), to_host(self._products)
        return OffDiagonalProducts(
            self.n_samples, (products + products.T) / 2, sums @ sums.T, sums.sum(axis=1)
        )


@dataclass(frozen=True)
class _Members:
    """Some kernels, each with the places of the compared samples among its own."""

    kernels: Sequence[Kernel]
    places: Sequence[np.ndarray]

    @property
    def n_samples(self) -> int:
        """On how many samples they are compared."""
        return len(self.places[0])

    def blocks(self, rows: Any, columns: Any) -> list[Array]:
        """Return entries of every kernel among some of the compared samples."""
        blocks = []
        for kernel, place in zip(self.kernels, self.places, strict=True):
            if isinstance(rows, slice) and len(place) == kernel.n_samples:  # all samples
                blocks.append(kernel.block(rows, columns))
            else:
                blocks.append(select(kernel.rows(place[rows]), place[columns], axis=1))
        return blocks

    def entries(self, indices: np.ndarray) -> Array:
        """Write the kernels out among some of the compared samples, (c, s, s)."""
        parts = self.blocks(indices, indices)
        return namespace(*parts).stack(parts)

    def products(self) -> OffDiagonalProducts:
        """Return what every two of the kernels share, in one pass over their rows."""
        n, m = self.n_samples, len(self.kernels)
        if n < FEWEST_SAMPLES:  # nothing can be said about them, so nothing is read
            return OffDiagonalProducts(n, np.zeros((m, m)), np.zeros((m, m)), np.zeros(m))
        like = self.kernels[0].like
        height = COMPARED_ROWS_ON_DEVICE if is_foreign(like) else COMPARED_ROWS
        sums = OffDiagonalSums(m, n, like)
        for rows in ranges(n, height):
            sums.add(rows.start, self.blocks(rows, slice(rows.start, n)))
        return sums.result()


def compare(stack: Stack) -> list[Comparison]:
    """Return what every two kernels share off their diagonals, on the samples both have.

    Kernels with the same samples are compared together; if kernels lack samples, each is compared
    as it is before these are filled in.
    """
    if stack.features is not None:
        return stack.features.compare(stack)
    groups: dict[bytes, tuple[np.ndarray, list[int]]] = {}
    inner = []
    for p, kernel in enumerate(stack.kernels):
        samples = np.arange(stack.n_samples)
        if isinstance(kernel, Observed):
            samples, kernel = kernel.map.samples, kernel.kernel
        inner.append(kernel)
        groups.setdefault(samples.tobytes(), (samples, []))[1].append(p)
    comparisons = []
    for samples, numbers in groups.values():
        place = compared_samples(len(samples))
        members = _Members([inner[p] for p in numbers], [place] * len(numbers))
        kernels = tuple(numbers)
        comparisons.append(Comparison(kernels, kernels, members.products(), members.entries))
    for (first, a), (second, b) in combinations(groups.values(), 2):
        _, *common = np.intersect1d(first, second, assume_unique=True, return_indices=True)
        # Every kernel is read for each of the others: fewer samples stand for all than if all
        # kernels are read once, or many kernels would take longer than a complete fit.
        some = draw(len(common[0]), SOME_COMPARED)
        places = [common[0][some]] * len(a) + [common[1][some]] * len(b)
        members = _Members([inner[p] for p in a + b], places)
        comparisons.append(Comparison(tuple(a), tuple(b), members.products(), members.entries))
    return comparisons


def compare_features(
    observed: np.ndarray, features_of: Callable[[np.ndarray], Sequence[Float]]
) -> list[Comparison]:
    """Return what every two kernels of features share, on samples that both have.

    The features of some samples are asked for, once: of all that are to be compared, or of 2048
    that stand for all and of some more if two kernels have few of these in common.

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
