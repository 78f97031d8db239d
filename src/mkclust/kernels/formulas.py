"""The formulas of kernels, each written once: for the host and for devices, held or on the fly."""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from mkclust.linalg import astype, namespace
from mkclust.types import Array

# Exponentials about the smallest normal number, and below, take NumPy up to fifty times as long as
# others: smaller exponents than these are replaced.
SMALLEST_EXPONENTS = {
    precision: 0.98 * float(np.log(np.finfo(precision).tiny))
    for precision in ("float32", "float64")
}


@dataclass(frozen=True)
class Tile:
    """What kernels are computed from, for some samples x and some training samples y.

    Attributes
    ----------
    exponents : array of shape (n_rows, n_columns) or None
        -|x - y|^2 / (2 s^2), with s the median distance. None where no kernel needs them.
    inner : array of shape (n_rows, n_columns) or None
        Inner products x y / c, with c the mean squared norm. None where no kernel needs them.
    lengths : pair of arrays that spread over rows and columns, or None
        What to divide inner products by for cosines.
    precision : str
        Number type of the kernels.
    smallest_exponent : float
        No exponent is smaller; zero where small ones take no longer than others.
    """

    exponents: Any
    inner: Any
    lengths: Any
    precision: str
    smallest_exponent: float = 0.0


class Formula(Protocol):
    """A kernel as a function of tiles.

    Attributes
    ----------
    steepness : float
        How much an entry changes with an exponent, at most; zero of kernels of inner products.
    """

    @property
    def name(self) -> str:
        """What the kernel is called."""

    @property
    def steepness(self) -> float:
        """How much an entry changes with an exponent, at most."""

    def entries(self, tile: Tile) -> Array:
        """Compute the kernel."""


@dataclass(frozen=True)
class Gaussian:
    """The kernel exp(-|x - y|^2 / (2 (w s)^2)) of a width w."""

    width: float

    @property
    def name(self) -> str:
        """The width, in median distances."""
        return f"gaussian x{self.width:g}"

    @property
    def steepness(self) -> float:
        """What exponents are multiplied with."""
        return self.width**-2

    def entries(self, tile: Tile) -> Array:
        """Compute the kernel, in its own precision."""
        xp, exponents, factor = namespace(tile.exponents), tile.exponents, self.steepness
        if factor != 1:
            exponents = exponents * factor
        smallest = SMALLEST_EXPONENTS[tile.precision]
        if factor * tile.smallest_exponent < smallest:
            exponents = xp.maximum(exponents, smallest)
        return xp.exp(astype(exponents, tile.precision))


@dataclass(frozen=True)
class Polynomial:
    """The kernel (a + x y / c)^b of an offset a and a degree b."""

    offset: float
    degree: int
    steepness: ClassVar[float] = 0.0

    @property
    def name(self) -> str:
        """The offset and the degree."""
        return f"polynomial {f'{self.offset:g}+' if self.offset else ''}xy ^{self.degree}"

    def entries(self, tile: Tile) -> Array:
        """Compute the kernel, by repeated products: faster than powers."""
        base = tile.inner + self.offset
        if self.degree == 1:
            return base
        product = base * base
        for _ in range(self.degree - 2):
            product *= base
        return product


@dataclass(frozen=True)
class InnerProduct:
    """The kernel x y / c."""

    name: ClassVar[str] = "linear"
    steepness: ClassVar[float] = 0.0

    def entries(self, tile: Tile) -> Array:
        """Return the inner products themselves."""
        return tile.inner


@dataclass(frozen=True)
class Cosine:
    """The cosine of the angle between x and y, zero where one of them is zero."""

    name: ClassVar[str] = "cosine"
    steepness: ClassVar[float] = 0.0

    def entries(self, tile: Tile) -> Array:
        """Compute the kernel; one length after the other, for their product may be too small."""
        cosines = tile.inner / tile.lengths[0]
        cosines /= tile.lengths[1]
        return cosines


# What the parameter ``linear`` of a bank may be.
LINEAR: dict[str, Formula] = {kernel.name: kernel for kernel in (InnerProduct(), Cosine())}
