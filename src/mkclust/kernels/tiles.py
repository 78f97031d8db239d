"""The kernels of one view, tile by tile: small tiles on the host, large ones on a device."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mkclust.kernels.formulas import Formula, Gaussian, Tile
from mkclust.linalg import (
    astype,
    empty,
    is_foreign,
    is_sparse,
    namespace,
    precision_of,
    ranges,
    rounding_of,
    select,
    to_host,
)
from mkclust.linalg.in_triton import written_in_triton
from mkclust.linalg.sparse_rows import longest_row, row_products
from mkclust.samples.distances import RESOLUTION, squared_norms
from mkclust.types import Array

# Rows and entries of a tile on the host, at most: few enough to stay in a core's own cache.
TILE_ROWS, TILE_ENTRIES = 64, 2**15
# The same of long rows, whose products take longer than all that is done to their results.
LONG_ROW, LONG_TILE_ROWS, LONG_TILE_ENTRIES = 1024, 256, 2**18
# The same of sparse rows, of which each product has to be worth looking at all columns of a view.
SPARSE_TILE_ROWS, SPARSE_TILE_ENTRIES = 256, 2**20
# What one tile of one kernel takes on a device; about four are at work at a time.
TILE_BYTES = 2**28
# Entries of a view that are brought to float64 at a time.
BLOCK_ENTRIES = 2**20
# From this number of samples on, it is worth the time that it takes to compile a product for them.
FEWEST_FUSED = 2**14
# The error in Gaussian kernels of float32 that is not worth a second look.
UNNOTICED = 1e-5


def default_tile_limits(
    n_columns: int,
    like: Array,
    precision: str,
    of_sparse_rows: bool = False,
    n_features: int = 1,
) -> tuple[int, int]:
    """Return the number of rows and of entries that a tile has at most."""
    if of_sparse_rows:
        return SPARSE_TILE_ROWS, SPARSE_TILE_ENTRIES
    if not is_foreign(like):
        is_long = n_features >= LONG_ROW
        return (LONG_TILE_ROWS, LONG_TILE_ENTRIES) if is_long else (TILE_ROWS, TILE_ENTRIES)
    n_entries = TILE_BYTES // np.dtype(precision).itemsize
    return max(1, n_entries // max(1, n_columns)), n_entries


@dataclass(frozen=True)
class Points:
    """The rows of one view as the formulas multiply them.

    Attributes
    ----------
    columns : array of shape (n_features + 2, n_samples) or None
        The rows z from an origin, in some unit, as columns followed by 1 and |z|^2 / 2: so
        one product of matrices gives the exponents. None where no kernel needs distances, and
        where rows are sparse.
    is_far : ndarray of bool of shape (n_samples,) or None
        Which rows are so long that their distances need care.
    rows : array or CSR array of shape (n_samples, n_features), or None
        The rows themselves. None where no kernel needs inner products, unless they are sparse.
    lengths : array of shape (n_samples,) or None
        What to divide their inner products by for cosines.
    halves : array of shape (n_samples,) or None
        |z|^2 / 2 of sparse rows z, whose origin is zero: with it, inner products give exponents.
    """

    columns: Any = field(default=None, repr=False)
    is_far: Any = field(default=None, repr=False)
    rows: Any = field(default=None, repr=False)
    lengths: Any = field(default=None, repr=False)
    halves: Any = field(default=None, repr=False)

    @property
    def like(self) -> Array:
        """An array that says where the rows live."""
        if self.is_sparse:
            return self.lengths
        return self.rows if self.columns is None else self.columns

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are sparse."""
        return self.rows is not None and is_sparse(self.rows)

    @property
    def n_features(self) -> int:
        """Number of entries of a row."""
        return int(self.columns.shape[0] - 2 if self.rows is None else self.rows.shape[1])

    @cached_property
    def split(self) -> Any:
        """The rows as products take them that store no entries; None where there are none such."""
        columns = self.columns
        if columns is None or columns.shape[1] < FEWEST_FUSED or precision_of(columns) != "float32":
            return None
        fused = written_in_triton("fused_products", columns)
        return None if fused is None else fused.split_points(columns[:-2, :])

    @classmethod
    def of_sparse(cls, rows: Any, lengths: Array, unit: float) -> "Points":
        """Return sparse rows, with what gives distances in some unit."""
        rows = rows.astype(np.float64)
        halves = squared_norms(rows) / unit / unit / 2
        return cls(rows=rows, lengths=lengths, halves=halves)

    def among(self, samples: np.ndarray) -> "Points":
        """Return some of the rows."""
        arrays = (
            (self.columns, 1),
            *((x, 0) for x in (self.is_far, self.rows, self.lengths, self.halves)),
        )
        return Points(*(None if x is None else select(x, samples, axis=axis) for x, axis in arrays))

    def on_host(self) -> "Points":
        """Return the same rows as NumPy, in float64."""
        columns, is_far = self.columns, self.is_far
        if columns is not None:  # with exact norms
            columns = extended(to_host(columns[:-2, :]).T, 0.0, 1.0, "float64")
            is_far = far_rows(columns, 1.0)
        rows, lengths = (None if x is None else to_host(x) for x in (self.rows, self.lengths))
        return Points(columns, is_far, rows, lengths)


def power_of_two(number: float) -> float:
    """Return the power of two next to a number: to divide by it costs no digit."""
    return 2.0 ** round(np.log2(number))


def extended(view: Array, origin: Any, unit: float, precision: str) -> Array:
    """Return rows z, from an origin in some unit, as columns followed by 1 and |z|^2 / 2."""
    n, d = view.shape
    columns = empty((d + 2, n), view, precision)
    for rows in ranges(n, max(1, BLOCK_ENTRIES // d)):
        z = astype((astype(view[rows, :], "float64") - origin) / unit, precision)
        columns[:-2, rows] = z.T
        columns[-2, rows] = 1.0
        columns[-1, rows] = astype(squared_norms(z) / 2, precision)
    return columns


def far_rows(columns: Array, steepness: float) -> np.ndarray:
    """Return which extended rows are so long that their distances need care, (n,) on the host.

    Between rows that are nearly identical, an exponent is what is left of a difference between
    numbers as large as half their squared norms, and so is its rounding.
    """
    d, n = columns.shape[0] - 2, columns.shape[1]
    if precision_of(columns) == "float64":
        return np.ones(n, dtype=bool)  # exactly one is expected of identical rows
    rounding = steepness * rounding_of(columns) * np.sqrt(d)
    return rounding * to_host(columns[-1, :]) > UNNOTICED


@dataclass(frozen=True)
class ViewKernels:
    """The kernels of one view: what they are computed from, and their places among all kernels.

    Attributes
    ----------
    formulas : sequence of (place, formula)
        The kernels.
    samples, training : Points
        What is compared with what.
    median, scale : float
        The median distance, and what inner products are divided by, in units of the points.
    unit : float
        What rows are divided by before they are multiplied.
    precision : str
        Number type of the kernels.
    """

    formulas: Sequence[tuple[int, Formula]]
    samples: Points
    training: Points
    median: float
    scale: float
    unit: float
    precision: str

    def only(self, indices: Sequence[int]) -> "ViewKernels":
        """Return some of the kernels, at the places that the indices give them."""
        by_place = dict(self.formulas)
        places = [place for place, index in enumerate(indices) if index in by_place]
        return replace(self, formulas=[(place, by_place[indices[place]]) for place in places])

    def among(self, samples: np.ndarray) -> "ViewKernels":
        """Return the kernels of some training samples, against these only."""
        points = self.training.among(samples)
        return replace(self, samples=points, training=points)

    def on_host(self) -> "ViewKernels":
        """Return the same kernels of samples on a device, computed by NumPy."""
        training = self.training.on_host()
        same = self.samples is self.training
        return replace(
            self, samples=training if same else self.samples.on_host(), training=training
        )

    def tiles(self, rows: slice, blocks: Iterable[slice]) -> Iterator[tuple[int, slice, Array]]:
        """Compute some rows of the kernels.

        Parameters
        ----------
        rows : slice
            Which of the samples.
        blocks : iterable of slice
            Which of the training samples, those of one tile at a time.

        Yields
        ------
        place : int
            The place of a kernel among all.
        columns : slice
            The training samples.
        tile : array of shape (rows, columns)
            Its entries.
        """
        left = self._left_factors(rows)
        for columns in blocks:
            tile = self._tile(left, columns)
            for place, formula in self.formulas:
                yield place, columns, formula.entries(tile)

    def product(self, place: int, X: Array) -> Array | None:
        """Multiply a kernel of all training samples with a thin matrix, (n, b), in float64.

        Its entries are not stored; None where they have to be.
        """
        formula, points = dict(self.formulas)[place], self.training
        if not isinstance(formula, Gaussian) or self.samples is not points or points.split is None:
            return None
        resolution = exponent_resolution(points.columns) if points.is_far.any() else 0.0
        steepness = formula.steepness / self.median**2
        fused = written_in_triton("fused_products", points.columns)
        return fused.gaussian_products(points.split, steepness, X, resolution)

    def _left_factors(self, rows: slice) -> Points:
        """Return what training samples are multiplied with, and divided by, for some samples."""
        columns = is_far = products = lengths = None
        points, steepness = self.samples, [formula.steepness for _, formula in self.formulas]
        if points.is_sparse:
            products = points.rows[rows] / self.unit / self.unit
            halves = points.halves[rows] if any(steepness) else None
            return Points(rows=products, lengths=points.lengths[rows][:, None], halves=halves)
        if any(steepness):
            xp, z = namespace(points.columns), points.columns[:, rows]
            # -|z - y|^2 / 2 = z y - |z|^2 / 2 - |y|^2 / 2
            columns = xp.concat([z[:-2, :], -xp.flip(z[-2:, :], axis=0)]).T
            is_far = points.is_far[rows]
        if not all(steepness):
            products = points.rows[rows, :] / self.unit / self.unit
            lengths = points.lengths[rows][:, None]
        return Points(columns, is_far, products, lengths)

    def _tile(self, left: Points, columns: slice) -> Tile:
        """Compute what all kernels of some training samples share."""
        exponents = inner = lengths = None
        smallest, right = 0.0, self.training
        if left.rows is not None:
            inner = row_products(left.rows, right.rows[columns, :])
            lengths = left.lengths, right.lengths[columns]
        if left.halves is not None:
            n_terms = longest_row(right.rows)
            exponents = _sparse_exponents(inner, left.halves, right.halves[columns], n_terms)
        elif left.columns is not None:
            exponents = _exponents(left.columns, right.columns[:, columns], left.is_far.any())
        if exponents is not None and not is_foreign(exponents):
            smallest = float(exponents.min(initial=0))
        if inner is not None:
            inner /= self.scale
        return Tile(exponents, inner, lengths, self.median, self.precision, smallest)


def exponent_resolution(columns: Array) -> float:
    """Return the share of half the squared norms up to which exponents are rounding."""
    return max(RESOLUTION, rounding_of(columns) * max(16, columns.shape[0] / 4))


def _exponents(left: Array, right: Array, careful: bool) -> Array:
    """Return exponents; carefully, those that are rounding are zero, for the rows are identical."""
    xp = namespace(right)
    if is_foreign(right):
        exponents = left @ right  # a pass over all entries takes as long as the product
    else:
        exponents = left[:, :-2] @ right[:-2]
        exponents += left[:, -2:-1] - right[-1]  # norms last, which loses fewer digits
    if not careful:
        return exponents
    resolution = exponent_resolution(right)
    limits = resolution * left[:, -2], resolution * right[-1, :]
    # A tile of the host seldom has any; those of a device nearly all hold the diagonal.
    if not is_foreign(right) and exponents.max(initial=-np.inf) < (
        limits[0].min(initial=0) - limits[1].max(initial=0)
    ):
        return exponents
    return xp.where(exponents < limits[0][:, None] - limits[1], exponents, 0.0)


def _sparse_exponents(inner: Array, left: Array, right: Array, n_terms: int) -> Array:
    """Return exponents by inner products and half squared norms; those that are rounding are 0."""
    exponents = inner - left[:, None]
    exponents -= right
    resolution = max(RESOLUTION, np.finfo(np.float64).eps * max(16, n_terms / 4))
    is_rounding = exponents >= -resolution * left[:, None] - resolution * right
    exponents[is_rounding] = 0.0
    return exponents


def write_symmetric(out: Array, place: int, rows: slice, columns: slice, tile: Array) -> None:
    """Write a tile on or above the diagonal, and its mirror image, into one of the kernels."""
    if columns.start == rows.start:
        xp, height = namespace(tile), rows.stop - rows.start
        square = tile[:, :height]
        tile[:, :height] = xp.triu(square) + xp.triu(square, k=1).T
    out[place, rows, columns] = tile
    out[place, columns, rows] = tile.T
