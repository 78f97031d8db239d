"""The kernels of a view on a device: large tiles, by the formulas of the array API standard."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from mkclust.linalg import astype, empty, namespace, precision_of, ranges, rounding_of, to_host
from mkclust.samples.distances import BLOCK_ENTRIES, RESOLUTION, safe_norms, squared_norms
from mkclust.types import Array

# What one tile of one kernel takes; about four are at work at a time.
TILE_BYTES = 2**28
# The error in Gaussian kernels of float32 that is not worth a second look.
UNNOTICED = 1e-5


def tile_rows(n_columns: int, precision: str) -> int:
    """Return how many rows of so many columns are computed at a time."""
    return max(1, TILE_BYTES // (max(1, n_columns) * np.dtype(precision).itemsize))


def extended(view: Array, origin: Array, unit: float, precision: str) -> Array:
    """Return rows z, from an origin in some unit, as columns followed by 1 and |z|^2 / 2."""
    n, d = view.shape
    columns = empty((d + 2, n), view, precision)
    for rows in ranges(n, max(1, BLOCK_ENTRIES // d)):
        moved = astype((astype(view[rows, :], "float64") - origin) / unit, precision)
        columns[:-2, rows] = moved.T
        columns[-2, rows] = 1.0
        columns[-1, rows] = astype(squared_norms(moved) / 2, precision)
    return columns


def far_rows(samples: Array, factors: Iterable[float]) -> np.ndarray:
    """Return which extended rows are so long that their distances need care, (n,) on the host.

    Between rows that are nearly identical, an exponent is what is left of a difference between
    numbers as large as half their squared norms, and so is its rounding.
    """
    d, n = samples.shape[0] - 2, samples.shape[1]
    if precision_of(samples) == "float64":
        return np.ones(n, dtype=bool)  # exactly one is expected of identical rows
    rounding = max(factors) * rounding_of(samples) * np.sqrt(d)
    return rounding * to_host(samples[-1, :]) > UNNOTICED


def in_units(view: Array, scale: float, precision: str) -> Array:
    """Return the rows of a view whose inner products are divided by a scale."""
    return astype(view, precision) / float(np.sqrt(scale))


def tiles(view: Any, rows: slice, columns: slice) -> Iterator[tuple[int, Array]]:
    """Compute some rows and columns of the kernels of one view.

    Parameters
    ----------
    view : ViewKernels
        What they are computed from.
    rows, columns : slice
        Which of the samples, and of the training samples.

    Yields
    ------
    place : int
        The place of a kernel among all.
    tile : array of shape (rows, columns)
        Its entries.
    """
    if view.gaussians:
        yield from _gaussians(view, rows, columns)
    if view.polynomials or view.linear:
        yield from _others(view, rows, columns)


def _gaussians(view: Any, rows: slice, columns: slice) -> Iterator[tuple[int, Array]]:
    """Compute the Gaussian kernels."""
    left, right = view.moved[0][:, rows], view.moved[1][:, columns]
    xp, z = namespace(right), left[:-2, :]
    # -|z - y|^2 / 2 = z y - |z|^2 / 2 - |y|^2 / 2
    ends = -xp.flip(left[-2:, :], axis=0)
    exponents = xp.concat([z, ends]).T @ right
    if view.far[rows].any():
        # Where shorter norms would make the distance negative it is rounding, as on the diagonal:
        # the rows are identical. To see that costs as much as all the rest.
        shorter = 1 - max(RESOLUTION, rounding_of(right) * max(16, left.shape[0] / 4))
        apart = xp.concat([z, shorter * ends]).T @ right < 0
        exponents = xp.where(apart, exponents, 0.0)
    for place, factor in view.gaussians:
        yield place, xp.exp(exponents if factor == 1 else exponents * float(factor))


def _others(view: Any, rows: slice, columns: slice) -> Iterator[tuple[int, Array]]:
    """Compute the polynomial and linear kernels."""
    left, right = view.plain[0][rows, :], view.plain[1][columns, :]
    inner = left @ right.T
    for place, offset, degree in view.polynomials:
        yield place, integer_power(inner + float(offset), degree)
    for place, kind in view.linear:
        if kind == "linear":
            yield place, inner
        else:
            lengths = (astype(safe_norms(part), precision_of(right)) for part in (left, right))
            yield place, inner / next(lengths)[:, None] / next(lengths)


def integer_power(base: Array, degree: int) -> Array:
    """Return an integer power, by repeated products."""
    product = base
    for _ in range(degree - 1):
        product = product * base
    return product


def write_symmetric(out: Array, place: int, rows: slice, tile: Array) -> None:
    """Write a tile that begins at the diagonal, and its mirror image, into one of the kernels."""
    xp, height = namespace(out), rows.stop - rows.start
    square, rest = tile[:, :height], tile[:, height:]
    out[place, rows, rows] = xp.triu(square) + xp.triu(square, k=1).T
    out[place, rows, rows.stop :] = rest
    out[place, rows.stop :, rows] = rest.T
