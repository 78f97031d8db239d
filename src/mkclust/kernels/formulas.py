"""The formulas of kernels, each written once: for the host and for devices, held or on the fly."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

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
    exponents, inner : arrays of shape (n_rows, n_columns), or None where no kernel needs them
        -|x - y|^2 / 2, in some unit; x y / c with c the mean squared norm.
    lengths : pair of arrays that spread over rows and columns, or None
        What to divide inner products by for cosines.
    median : float
        The median distance s, in that unit.
    precision : str
        Number type of the kernels.
    smallest_exponent : float
        No exponent is smaller; zero where small ones take no longer than others.
    """

    exponents: Any
    inner: Any
    lengths: Any
    median: float
    precision: str
    smallest_exponent: float = 0.0


class Formula:
    """A kernel as a function of tiles; its text is its name."""

    # Whether rows of zeros say nothing: they have no direction, or no entry to have in common.
    ignores_zeros: ClassVar[bool] = False

    @property
    def steepness(self) -> float:
        """How much entries change with distances, at most; zero of kernels of inner products."""
        return 0.0

    def entries(self, tile: Tile) -> Array:
        """Compute the kernel."""
        raise NotImplementedError(f"{type(self).__name__} must define entries")

    def of_themselves(self, tile: Tile) -> Array:
        """Compute the kernel between samples and themselves, of a tile with one entry a sample."""
        return self.entries(tile)


@dataclass(frozen=True)
class Gaussian(Formula):
    """The kernel exp(-|x - y|^2 / (2 (w s)^2)) of a width w."""

    width: float

    def __str__(self) -> str:
        return f"gaussian x{self.width:g}"

    @property
    def steepness(self) -> float:
        """What exponents in median distances are multiplied with."""
        return self.width**-2

    def entries(self, tile: Tile) -> Array:
        """Compute the kernel, in its own precision."""
        factor = 1 / (self.width * tile.median) ** 2
        xp, exponents = namespace(tile.exponents), tile.exponents * factor
        smallest = SMALLEST_EXPONENTS[tile.precision]
        if factor * tile.smallest_exponent < smallest:
            exponents = xp.maximum(exponents, smallest)
        return xp.exp(astype(exponents, tile.precision))


@dataclass(frozen=True)
class Polynomial(Formula):
    """The kernel (a + x y / c)^b of an offset a and a degree b."""

    offset: float
    degree: int

    def __str__(self) -> str:
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


class InnerProduct(Formula):
    """The kernel x y / c."""

    def __str__(self) -> str:
        return "linear"

    def entries(self, tile: Tile) -> Array:
        """Return the inner products themselves."""
        return tile.inner


class Cosine(Formula):
    """The cosine of the angle between x and y, zero where one of them is zero."""

    ignores_zeros = True

    def __str__(self) -> str:
        return "cosine"

    def entries(self, tile: Tile) -> Array:
        """Compute the kernel; one length after the other, for their product may be too small."""
        cosines = tile.inner / tile.lengths[0]
        cosines /= tile.lengths[1]
        return cosines


# What the parameter ``linear`` of a bank may be.
LINEAR: dict[str, Formula] = {str(formula): formula for formula in (InnerProduct(), Cosine())}


def read_formulas(widths: Any, polynomials: Any, linear: Any) -> tuple[Formula, ...]:
    """Return the kernels of a view that parameters ask for, or say which cannot be used and why."""
    for name, value in (("widths", widths), ("polynomials", polynomials)):
        if not hasattr(value, "__len__"):
            expected = "a sequence, with one entry for each kernel of a view"
            raise ValueError(f"{name} must be {expected}; found {value!r}.")
    formulas: list[Formula] = [*map(_gaussian, widths), *map(_polynomial, polynomials)]
    if not (linear is None or (isinstance(linear, str) and linear in LINEAR)):
        choices = ", ".join(map(repr, LINEAR))
        raise ValueError(f"linear must be {choices} or None; found {linear!r}.")
    if linear is not None:
        formulas.append(LINEAR[linear])
    if not formulas:
        problem = "widths and polynomials are empty and linear is None"
        raise ValueError(f"{problem}, which leaves no kernel; ask for at least one.")
    return tuple(formulas)


def _gaussian(width: Any) -> Gaussian:
    """Return the Gaussian kernel of a width."""
    if not (_is_number(width) and 0 < width < np.inf):
        expected = "positive numbers, in units of the median distance"
        raise ValueError(f"widths must be {expected}; found {width!r}.")
    return Gaussian(float(width))


def _polynomial(pair: Any) -> Polynomial:
    """Return the polynomial kernel of an offset and a degree."""
    if not hasattr(pair, "__len__") or len(pair) != 2:
        expected = "pairs of an offset and a degree"
        raise ValueError(f"polynomials must be {expected}; found {pair!r}.")
    offset, degree = pair
    if not (_is_number(offset) and 0 <= offset < np.inf):
        raise ValueError(
            f"polynomials has the offset {offset!r} in {pair!r}; it must be a number of "
            "zero or more, or the kernel may not be positive semi-definite."
        )
    if not (isinstance(degree, Integral) and _is_number(degree) and int(degree) > 0):
        problem = f"the degree {degree!r} in {pair!r}"
        raise ValueError(f"polynomials has {problem}; it must be a positive integer.")
    return Polynomial(float(offset), int(degree))


def _is_number(value: Any) -> bool:
    """Tell real numbers from everything else, booleans and NaN included."""
    return isinstance(value, Real) and not isinstance(value, bool) and bool(value == value)
