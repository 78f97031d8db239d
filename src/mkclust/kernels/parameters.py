"""What the parameters of a bank mean: the formulas of its kernels."""

from numbers import Integral, Real
from typing import Any

import numpy as np

from mkclust.kernels.formulas import LINEAR, Formula, Gaussian, Polynomial


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
