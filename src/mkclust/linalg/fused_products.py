"""Products of Gaussian kernels that store no entries: written in Triton.

A tile of the kernel is computed, multiplied and forgotten on the spot. Factors are
split into a high and a low part of half precision, 22 bits together, which tensor cores
multiply sixteen times as fast as float32; the product of two low parts is left out.
"""

import math
from typing import NamedTuple

import torch
import triton
import triton.language as tl

from mkclust.types import Array

# Rows of a tile.
ROWS = 128
# Columns that are summed on their own: a sum of millions of float32 loses digits.
SUMMED_COLUMNS = 4096
# Columns of the thin matrix that a tile is multiplied with, at most.
MOST_COLUMNS = 64
# Features of a point that are kept on the chip.
MOST_FEATURES = 128


@triton.jit
def _multiply(
    out,
    points_high,
    points_low,
    halves,
    thin_high,
    thin_low,
    n_out,
    columns_each,
    factor,
    product_factor,
    n_features: tl.constexpr,
    width: tl.constexpr,
    rows: tl.constexpr,
    columns: tl.constexpr,
    summed: tl.constexpr,
):
    """Write some rows of a product, summed up over some columns of the kernel."""
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    feature = tl.arange(0, n_features)
    thin = tl.arange(0, width)
    here = row[:, None] * n_features + feature[None, :]
    left_high = tl.load(points_high + here)
    left_low = tl.load(points_low + here)
    left_half = tl.load(halves + row) * factor
    total = tl.zeros((rows, width), dtype=tl.float32)
    first = tl.program_id(1) * columns_each
    for start in range(first, first + columns_each, summed):
        subtotal = tl.zeros((rows, width), dtype=tl.float32)
        for begin in range(start, start + summed, columns):
            column = begin + tl.arange(0, columns)
            there = column[None, :] * n_features + feature[:, None]
            right_high = tl.load(points_high + there)
            right_low = tl.load(points_low + there)
            exponents = tl.dot(left_low, right_high)
            exponents = tl.dot(left_high, right_low, exponents)
            exponents = tl.dot(left_high, right_high, exponents)
            sums = left_half[:, None] + (tl.load(halves + column) * factor)[None, :]
            exponents = exponents * product_factor - sums
            entries = tl.exp2(tl.minimum(exponents, 0.0) + 14.0)
            high = entries.to(tl.float16)
            low = (entries - high.to(tl.float32)).to(tl.float16)
            there = column[:, None] * width + thin[None, :]
            right_high = tl.load(thin_high + there)
            right_low = tl.load(thin_low + there)
            part = tl.dot(low, right_high)
            part = tl.dot(high, right_low, part)
            # Tensor cores round towards zero, so that long sums would be too small.
            subtotal += tl.dot(high, right_high, part)
        total += subtotal
    place = (tl.program_id(1) * n_out + row).to(tl.int64)
    tl.store(out + place[:, None] * width + thin[None, :], total)


class SplitPoints(NamedTuple):
    """Rows of a view times a power of two, in parts of half precision, zero-padded."""

    high: Array
    low: Array
    halves: Array  # half the squared norms
    unit: float
    n_samples: int  # without padding


def split_points(rows: Array) -> SplitPoints | None:
    """Split rows, (n, d); None if there are too many features, or all are zero."""
    n, d = rows.shape
    largest = float(rows.abs().max()) if n else 0.0
    if d > MOST_FEATURES or not 0 < largest < math.inf:
        return None
    # Numbers of about this size have low parts that are normal.
    unit = 2.0**14 / 2.0 ** math.ceil(math.log2(largest))
    shape = triton.cdiv(n, SUMMED_COLUMNS) * SUMMED_COLUMNS, _padded(d)
    high, low = _split(rows.to(torch.float64) * unit, shape)
    # Norms of the rounded factors, so that the distance of equal rows is zero.
    wide = high.to(torch.float64)
    halves = (wide * wide / 2 + wide * low).sum(dim=1) / unit**2
    return SplitPoints(high, low, halves.to(torch.float32), unit, n)


def gaussian_products(
    points: SplitPoints, inverse_squared_width: float, X: Array
) -> Array:
    """Multiply the kernel ``exp(-|x - y|^2 / (2 w^2))`` with a thin matrix, (n, b)."""
    products = torch.empty(X.shape, dtype=torch.float64, device=X.device)
    for start in range(0, X.shape[1], MOST_COLUMNS):
        some = slice(start, start + MOST_COLUMNS)
        products[:, some] = _narrow_products(points, inverse_squared_width, X[:, some])
    return products


def _narrow_products(
    points: SplitPoints, inverse_squared_width: float, X: Array
) -> Array:
    """Return the product with a matrix of at most `MOST_COLUMNS` columns."""
    n = points.n_samples
    padded, n_features = points.high.shape
    sizes = torch.frexp(X.abs().amax(dim=0)).exponent
    high, low = _split(torch.ldexp(X, 14 - sizes), (padded, _padded(X.shape[1])))
    width = high.shape[1]
    n_blocks = triton.cdiv(n, ROWS)
    n_sums = padded // SUMMED_COLUMNS
    # About 2048 programs keep a device busy.
    n_parts = min(n_sums, triton.cdiv(2048, n_blocks))
    while n_sums % n_parts:
        n_parts -= 1
    shape = n_parts, n_blocks * ROWS, width
    out = torch.empty(shape, dtype=torch.float32, device=X.device)
    factor = inverse_squared_width * math.log2(math.e)
    arrays = (out, points.high, points.low, points.halves, high, low)
    numbers = (n_blocks * ROWS, padded // n_parts, factor, factor / points.unit**2)
    with torch.cuda.device(X.device):
        _multiply[(n_blocks, n_parts)](
            *arrays,
            *numbers,
            n_features=n_features,
            width=width,
            rows=ROWS,
            columns=64,
            summed=SUMMED_COLUMNS,
            num_warps=4 if n_features <= 32 else 8,
            num_stages=3,
        )
    total = out[:, :n, : X.shape[1]].sum(dim=0, dtype=torch.float64)
    return torch.ldexp(total, sizes - 28)


def _split(X: Array, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Return a matrix as a high and a low part of half precision, padded with zeros."""
    high = torch.zeros(shape, dtype=torch.float16, device=X.device)
    low = torch.zeros_like(high)
    inside = slice(0, X.shape[0]), slice(0, X.shape[1])
    high[inside] = X.to(torch.float16)
    low[inside] = (X - high[inside]).to(torch.float16)
    return high, low


def _padded(size: int) -> int:
    """Return the features or columns that a tile is computed with, a power of two."""
    return max(16, triton.next_power_of_2(size))


def try_out() -> None:
    """Multiply a small kernel, so that it is known early if Triton does not work."""
    points = split_points(torch.ones((2, 1), device="cuda"))
    assert points is not None
    product = gaussian_products(
        points, 1.0, torch.ones((2, 1), device="cuda", dtype=torch.float64)
    )
    assert bool((product == 2.0).all())
