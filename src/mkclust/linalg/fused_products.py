"""Products of kernels in single precision with thin matrices on tensor cores: written in Triton.

Factors are split into a high and a low part of half precision, 22 bits together, which tensor cores
multiply sixteen times as fast as float32; what is left out is the product of two low parts. A
Gaussian kernel need not be stored: a tile of it is computed, multiplied and forgotten where it was
computed.
"""

import math
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from mkclust.types import Array

# Rows and columns of a tile, and columns of one that is stored. Sums over so many columns are added
# up on their own: a sum of millions of float32 would lose digits.
ROWS, COLUMNS, STORED_COLUMNS, SUMMED_COLUMNS = 128, 64, 64, 4096
# Columns of a stored tile whose rows are looked at for their largest entries.
CAREFUL_COLUMNS = 32
# Rows of a product whose parts are added up at a time.
ADDED_ROWS = 64
# Warps that compute a stored tile, and how many tiles are loaded ahead.
STORED_WARPS, STORED_STAGES = 4, 3
# Fewest and most features, and columns of the thin matrix, that a tile is computed with.
FEWEST, MOST_FEATURES, MOST_COLUMNS = 16, 128, 64
# Up to so many features, a tile is computed by four warps.
FEW_FEATURES = 32
# Stored matrices of fewer samples are multiplied by torch's own product.
FEWEST_SAMPLES = 2**13
# Programs that keep a device busy.
PROGRAMS = 2048
# What is split is brought about this size, so that low parts are normal numbers of half precision.
SIZE = 2.0**14


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
    resolution,
    careful: tl.constexpr,
    n_features: tl.constexpr,
    width: tl.constexpr,
    rows: tl.constexpr,
    columns: tl.constexpr,
    summed: tl.constexpr,
):
    """Write some rows of a product, summed up over some of the columns of the kernel."""
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    feature, thin = tl.arange(0, n_features), tl.arange(0, width)
    here = row[:, None] * n_features + feature[None, :]
    left_high, left_low = tl.load(points_high + here), tl.load(points_low + here)
    left_half = tl.load(halves + row) * factor
    total = tl.zeros((rows, width), dtype=tl.float32)
    first = tl.program_id(1) * columns_each
    for start in range(first, first + columns_each, summed):
        subtotal = tl.zeros((rows, width), dtype=tl.float32)
        for begin in range(start, start + summed, columns):
            column = begin + tl.arange(0, columns)
            there = column[None, :] * n_features + feature[:, None]
            right_high, right_low = tl.load(points_high + there), tl.load(points_low + there)
            exponents = tl.dot(left_low, right_high)
            exponents = tl.dot(left_high, right_low, exponents)
            exponents = tl.dot(left_high, right_high, exponents)
            sums = left_half[:, None] + (tl.load(halves + column) * factor)[None, :]
            exponents = exponents * product_factor - sums
            if careful:
                exponents = tl.where(exponents < -resolution * sums, exponents, 0.0)
            else:
                exponents = tl.minimum(exponents, 0.0)
            entries = tl.exp2(exponents + 14.0)
            high = entries.to(tl.float16)
            low = (entries - high.to(tl.float32)).to(tl.float16)
            there = column[:, None] * width + thin[None, :]
            right_high, right_low = tl.load(thin_high + there), tl.load(thin_low + there)
            part = tl.dot(low, right_high)
            part = tl.dot(high, right_low, part)
            # Tensor cores round towards zero: what they add up is short.
            subtotal += tl.dot(high, right_high, part)
        total += subtotal
    place = (tl.program_id(1) * n_out + row).to(tl.int64)
    tl.store(out + place[:, None] * width + thin[None, :], total)


@triton.jit
def _split_scaled(
    high_out,
    low_out,
    scales,
    sizes,
    X,
    matrix,
    n,
    b,
    by_row,
    by_column,
    width: tl.constexpr,
    rows: tl.constexpr,
):
    """Write some rows of a thin matrix as parts of half precision, and what they are scaled by.

    Rows are multiplied by powers of two near the roots of the diagonal that they meet, and each
    column of a block by another one that brings it to one size.
    """
    row, thin = tl.program_id(0) * rows + tl.arange(0, rows), tl.arange(0, width)
    diagonal = tl.load(matrix + row.to(tl.int64) * (n + 1), mask=row < n, other=1.0)
    biased = diagonal.to(tl.int32, bitcast=True) >> 23
    is_positive = biased > 0  # the sign is the first bit; a number that is not normal counts as 0
    root = tl.where(is_positive, (biased - 126) >> 1, 0)
    here = row.to(tl.int64)[:, None] * by_row + thin.to(tl.int64)[None, :] * by_column
    entries = tl.load(X + here, mask=(row < n)[:, None] & (thin < b)[None, :], other=0.0)
    entries = entries.to(tl.float64) * _power_of_two(root)[:, None]
    largest = tl.max(tl.abs(entries), axis=0).to(tl.int64, bitcast=True)
    # What is smaller than single precision can say is as good as zero.
    exponent = tl.minimum(tl.maximum(((largest >> 52) - 1022).to(tl.int32), -110), 120)
    entries = (entries * _power_of_two(14 - exponent)[None, :]).to(tl.float32)
    high = entries.to(tl.float16)
    there = row[:, None] * width + thin[None, :]
    tl.store(high_out + there, high)
    tl.store(low_out + there, (entries - high.to(tl.float32)).to(tl.float16))
    tl.store(sizes + tl.program_id(0) * width + thin, _power_of_two(exponent - 14).to(tl.float32))
    # The sign tells where the diagonal says nothing about the size of entries.
    tl.store(scales + row, tl.where(is_positive, _power_of_two(-root).to(tl.float32), -1.0))


@triton.jit
def _power_of_two(exponent):
    """Return a power of two in double precision."""
    return ((exponent.to(tl.int64) + 1023) << 52).to(tl.float64, bitcast=True)


@triton.jit
def _multiply_stored(
    out,
    matrix,
    scales,
    sizes,
    thin_high,
    thin_low,
    n,
    n_out,
    columns_each,
    width: tl.constexpr,
    rows: tl.constexpr,
    columns: tl.constexpr,
    careful_columns: tl.constexpr,
):
    """Write some rows of the product of a stored matrix, summed up over some of its columns.

    Entries of a positive semidefinite matrix are no larger than the roots of the diagonal, and are
    scaled by these. Where one turns out to be so large that half precision cannot hold it, what is
    summed up is no number, and all is done once more with scales found in the rows themselves.
    """
    row, thin = tl.program_id(0) * rows + tl.arange(0, rows), tl.arange(0, width)
    here = row.to(tl.int64)[:, None] * n
    row_scale = tl.load(scales + row, mask=row < n, other=1.0)
    of_rows = tl.where(row_scale > 0, row_scale * 8192.0, float("inf"))
    total = tl.zeros((rows, width), dtype=tl.float32)
    first = tl.program_id(1) * columns_each
    for begin in range(first, first + columns_each, columns):
        column = begin + tl.arange(0, columns)
        inside = (row < n)[:, None] & (column < n)[None, :]
        entries = tl.load(matrix + here + column[None, :], mask=inside, other=0.0)
        scale = tl.load(scales + column)
        entries *= tl.where(scale > 0, scale, float("inf"))[None, :]
        entries *= of_rows[:, None]
        high = entries.to(tl.float16)
        low = (entries - high.to(tl.float32)).to(tl.float16)
        there = column[:, None] * width + thin[None, :]
        right_high, right_low = tl.load(thin_high + there), tl.load(thin_low + there)
        part = tl.dot(low, right_high)
        part = tl.dot(high, right_low, part)
        # Tensor cores round towards zero: what they add up is short.
        part = tl.dot(high, right_high, part)
        total += part * tl.load(sizes + (begin // columns) * width + thin)[None, :]
    is_number = (tl.abs(total) < float("inf")).to(tl.int32)
    if tl.min(tl.min(is_number, axis=1), axis=0) == 0:
        total = tl.zeros((rows, width), dtype=tl.float32)
        for begin in range(first, first + columns_each, careful_columns):
            column = begin + tl.arange(0, careful_columns)
            inside = (row < n)[:, None] & (column < n)[None, :]
            entries = tl.load(matrix + here + column[None, :], mask=inside, other=0.0)
            entries *= tl.abs(tl.load(scales + column))[None, :]
            # Each row is brought to the same size by a power of two, whatever its entries are.
            largest = tl.max(tl.abs(entries), axis=1)
            exponent = tl.maximum(largest.to(tl.int32, bitcast=True) >> 23, 16)
            entries *= ((267 - exponent) << 23).to(tl.float32, bitcast=True)[:, None]
            high = entries.to(tl.float16)
            low = (entries - high.to(tl.float32)).to(tl.float16)
            there = column[:, None] * width + thin[None, :]
            right_high, right_low = tl.load(thin_high + there), tl.load(thin_low + there)
            part = tl.dot(low, right_high)
            part = tl.dot(high, right_low, part)
            part = tl.dot(high, right_high, part)
            part *= ((exponent - 13) << 23).to(tl.float32, bitcast=True)[:, None]
            total += part * tl.load(sizes + (begin // columns) * width + thin)[None, :]
        total *= tl.abs(row_scale)[:, None] * 8192.0
    place = (tl.program_id(1) * n_out + row).to(tl.int64)
    tl.store(out + place[:, None] * width + thin[None, :], total)


@triton.jit
def _add_parts(
    product, parts, scales, n, b, n_out, n_parts, width: tl.constexpr, rows: tl.constexpr
):
    """Write some rows of a product: the sum of its parts, in double precision, not scaled."""
    row, thin = tl.program_id(0) * rows + tl.arange(0, rows), tl.arange(0, width)
    total = tl.zeros((rows, width), dtype=tl.float64)
    for part in range(0, n_parts):
        place = (part * n_out + row).to(tl.int64)
        total += tl.load(parts + place[:, None] * width + thin[None, :]).to(tl.float64)
    total /= (tl.abs(tl.load(scales + row)) * 8192.0).to(tl.float64)[:, None]
    inside = (row < n)[:, None] & (thin < b)[None, :]
    here = row.to(tl.int64)[:, None] * b + thin[None, :]
    tl.store(product + here, total, mask=inside)


@dataclass(frozen=True)
class SplitPoints:
    """Rows of a view, split into parts of half precision, and padded with zeros.

    Attributes
    ----------
    high, low : tensor of shape (rows, features)
        The rows times `unit`.
    halves : tensor of shape (rows,)
        Half their squared norms.
    unit : float
        A power of two.
    n_samples, n_features : int
        How many rows, and how many features, are not padding.
    """

    high: Array
    low: Array
    halves: Array
    unit: float
    n_samples: int
    n_features: int


def split_points(columns: Array) -> SplitPoints | None:
    """Split the columns of a matrix, (d, n); None where there are too many features."""
    d, n = columns.shape
    if d > MOST_FEATURES or not n:
        return None
    largest = float(columns.abs().max())
    if not 0 < largest < math.inf:
        return None
    unit = SIZE / 2.0 ** math.ceil(math.log2(largest))
    shape = triton.cdiv(n, SUMMED_COLUMNS) * SUMMED_COLUMNS, _padded(d)
    high, low = _split(columns.T.to(torch.float64) * unit, shape)
    # Of what is multiplied, so that rows that are equal are at no distance.
    wide = high.to(torch.float64)
    halves = (wide * wide / 2 + wide * low).sum(dim=1) / unit**2
    return SplitPoints(high, low, halves.to(torch.float32), unit, n, d)


def gaussian_products(
    points: SplitPoints, steepness: float, X: Array, resolution: float = 0.0
) -> Array:
    """Multiply the kernel ``exp(-steepness |x - y|^2 / 2)`` with a thin matrix, (n, b), in float64.

    With a resolution, rows nearer to each other than this share of their squared norms are equal.
    """
    products = torch.empty(X.shape, dtype=torch.float64, device=X.device)
    for start in range(0, X.shape[1], MOST_COLUMNS):
        some = slice(start, start + MOST_COLUMNS)
        products[:, some] = _narrow_products(points, steepness, X[:, some], resolution)
    return products


def stored_products(matrix: Array, X: Array) -> Array | None:
    """Multiply a matrix of float32 with a thin matrix, (n, b), in the precision of that.

    None where it is not laid out row by row, or too small or the other too wide for that to pay.
    """
    n, b = X.shape
    if n < FEWEST_SAMPLES or b > MOST_COLUMNS or not matrix.is_contiguous():
        return None
    n_parts, n_blocks, width = triton.cdiv(n, SUMMED_COLUMNS), triton.cdiv(n, ROWS), _padded(b)
    padded, here = n_parts * SUMMED_COLUMNS, {"device": X.device}
    high, low = torch.empty((2, padded, width), dtype=torch.float16, **here)
    n_tiles = padded // STORED_COLUMNS
    numbers = torch.empty(padded + n_tiles * width, dtype=torch.float32, **here)
    scales, sizes = numbers[:padded], numbers[padded:]
    parts = torch.empty((n_parts, n_blocks * ROWS, width), dtype=torch.float32, **here)
    product = torch.empty((n, b), dtype=X.dtype, **here)
    with torch.cuda.device(X.device):
        _split_scaled[(n_tiles,)](
            high,
            low,
            scales,
            sizes,
            X,
            matrix,
            n,
            b,
            *X.stride(),
            width=width,
            rows=STORED_COLUMNS,
        )
        _multiply_stored[(n_blocks, n_parts)](
            parts,
            matrix,
            scales,
            sizes,
            high,
            low,
            n,
            n_blocks * ROWS,
            SUMMED_COLUMNS,
            width=width,
            rows=ROWS,
            columns=STORED_COLUMNS,
            careful_columns=CAREFUL_COLUMNS,
            num_warps=STORED_WARPS,
            num_stages=STORED_STAGES,
        )
        _add_parts[(triton.cdiv(n, ADDED_ROWS),)](
            product,
            parts,
            scales,
            n,
            b,
            n_blocks * ROWS,
            n_parts,
            width=width,
            rows=ADDED_ROWS,
        )
    return product


def _narrow_products(points: SplitPoints, steepness: float, X: Array, resolution: float) -> Array:
    """Multiply a kernel with as many columns as a tile takes."""
    n, padded = points.n_samples, points.high.shape[0]
    sizes = torch.frexp(X.abs().amax(dim=0)).exponent
    high, low = _split(torch.ldexp(X, 14 - sizes), (padded, _padded(X.shape[1])))
    n_blocks, n_sums = triton.cdiv(n, ROWS), padded // SUMMED_COLUMNS
    n_parts = min(n_sums, triton.cdiv(PROGRAMS, n_blocks))
    while n_sums % n_parts:
        n_parts -= 1
    out = torch.empty(
        (n_parts, n_blocks * ROWS, high.shape[1]), dtype=torch.float32, device=X.device
    )
    factor = steepness * math.log2(math.e)
    with torch.cuda.device(X.device):
        _multiply[(n_blocks, n_parts)](
            out,
            points.high,
            points.low,
            points.halves,
            high,
            low,
            n_blocks * ROWS,
            padded // n_parts,
            factor,
            factor / points.unit**2,
            resolution,
            careful=resolution > 0,
            n_features=points.high.shape[1],
            width=high.shape[1],
            rows=ROWS,
            columns=COLUMNS,
            summed=SUMMED_COLUMNS,
            num_warps=4 if points.high.shape[1] <= FEW_FEATURES else 8,
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
    """Return the number of features or columns that a tile is computed with, a power of two."""
    return max(FEWEST, triton.next_power_of_2(size))


def try_out() -> None:
    """Multiply something small, so that what does not work here is known before it is needed."""
    points = split_points(torch.ones((1, 2), device="cuda"))
    assert points is not None
    product = gaussian_products(points, 1.0, torch.ones((2, 1), device="cuda", dtype=torch.float64))
    assert bool((product == 2.0).all())
