"""What pairs of kernels share off their diagonals, summed up from blocks of their rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mkclust.engine.agreement import OffDiagonalProducts
from mkclust.linalg import namespace, ranges, set_diagonal, to_host, zeros
from mkclust.stack.mapped import draw
from mkclust.types import Array

# Up to so many samples all are compared. Of more, some stand for all: by so many, two kernels that
# share one percent of what they have are told from chance, and the cost grows no further.
ALL_COMPARED, SOME_COMPARED = 2048, 1024
# Up to so many kernels, their products are taken row by row.
FEW_KERNELS = 8
# Rows of kernels that are written out, of which the diagonal is left out at a time.
WRITTEN_ROWS = 64


@dataclass(frozen=True)
class Comparison:
    """Kernels that are compared with each other, on samples that all of them have.

    Attributes
    ----------
    first, second : tuple of int
        The numbers of the kernels; each of the first is compared with each of the second. Both are
        the same where kernels are compared among themselves.
    products : OffDiagonalProducts
        Of these samples, the first kernels before the second, or once where both are the same.
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

    def add(self, start: int, parts: Sequence[Array] | np.ndarray) -> None:
        """Take in rows of every kernel from `start` on, and their columns from `start` on.

        Parameters
        ----------
        start : int
            The first row, and the first column.
        parts : array of shape (m, b, n_samples - start), or sequence of m arrays
            Centered and scaled, in float64; their diagonals are overwritten.
        """
        xp, (height, width) = namespace(parts[0]), parts[0].shape
        stop = start + height
        for p, part in enumerate(parts):
            square = part[:, :height]
            set_diagonal(square, zeros((height,), part))
            self._row_sums[p, start:stop] += xp.sum(part, axis=1)
            self._row_sums[p, stop:] += xp.sum(part[:, height:], axis=0)
        if isinstance(parts, np.ndarray):
            whole = parts.reshape(len(parts), height * width)
        else:
            whole = xp.stack([xp.reshape(part, (height * width,)) for part in parts])
        squares = xp.stack([xp.reshape(part[:, :height], (height**2,)) for part in parts])
        # Both halves of the square on the diagonal are among the entries already.
        self._products += 2 * _gram(whole) - squares @ squares.T

    def merge(self, other: "OffDiagonalSums") -> "OffDiagonalSums":
        """Take in what was summed up over other rows of the same kernels."""
        self._products += other._products
        self._row_sums += other._row_sums
        return self

    def result(self) -> OffDiagonalProducts:
        """Return the sums, on the host."""
        sums, products = to_host(self._row_sums), to_host(self._products)
        return OffDiagonalProducts(
            self.n_samples, (products + products.T) / 2, sums @ sums.T, sums.sum(axis=1)
        )


def _gram(rows: Array) -> Array:
    """Return the inner products of rows, (m, m)."""
    if not isinstance(rows, np.ndarray) or len(rows) > FEW_KERNELS:
        return rows @ rows.T
    gram = np.empty((len(rows), len(rows)))
    for p, row in enumerate(rows):  # a product of so few rows is slower
        gram[p, p:] = gram[p:, p] = rows[p:] @ row
    return gram


def off_diagonal_products(entries: np.ndarray) -> OffDiagonalProducts:
    """Return what kernels share off their diagonals, written out on the host, (m, n, n)."""
    m, n, _ = entries.shape
    products, sums = np.zeros((m, m)), np.empty((m, n))
    for rows in ranges(n, WRITTEN_ROWS):
        apart = entries[:, rows].copy()
        apart[:, np.arange(rows.stop - rows.start), np.arange(rows.start, rows.stop)] = 0.0
        sums[:, rows] = apart.sum(axis=2)
        apart = apart.reshape(m, -1)
        products += apart @ apart.T
    return OffDiagonalProducts(n, products, sums @ sums.T, sums.sum(axis=1))


def compared_samples(n_samples: int) -> np.ndarray:
    """Return the numbers of the samples among which kernels are compared, rising."""
    return draw(n_samples, n_samples if n_samples <= ALL_COMPARED else SOME_COMPARED)
