"""The kernels of one view, tile by tile: small tiles on the host, large ones on a device."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from mkclust.kernels.formulas import Formula, Tile
from mkclust.linalg import (
    astype,
    empty,
    is_foreign,
    namespace,
    pick,
    precision_of,
    ranges,
    rounding_of,
    to_host,
)
from mkclust.samples.distances import RESOLUTION, safe_norms, squared_norms
from mkclust.types import Array

# Rows and entries of a tile on the host, at most: few enough to stay in a core's own cache.
TILE_ROWS, TILE_ENTRIES = 64, 2**15
# What one tile of one kernel takes on a device; about four are at work at a time.
TILE_BYTES = 2**28
# Entries of a view that are brought to float64 at a time.
BLOCK_ENTRIES = 2**20
# The error in Gaussian kernels of float32 that is not worth a second look.
UNNOTICED = 1e-5


def default_tile_limits(n_columns: int, like: Array, precision: str) -> tuple[int, int]:
    """Return the number of rows and of entries that a tile has at most."""
    if not is_foreign(like):
        return TILE_ROWS, TILE_ENTRIES
    n_entries = TILE_BYTES // np.dtype(precision).itemsize
    return max(1, n_entries // max(1, n_columns)), n_entries


@dataclass(frozen=True)
class Points:
    """The rows of one view as the formulas multiply them.

    Attributes
    ----------
    columns : array of shape (n_features + 2, n_samples) or None
        The rows z from an origin, in median distances, as columns followed by 1 and |z|^2 / 2: so
        one product of matrices gives the exponents. None where no kernel needs distances.
    is_far : ndarray of bool of shape (n_samples,) or None
        Which rows are so long that their distances need care.
    rows : array of shape (n_samples, n_features) or None
        The rows themselves. None where no kernel needs inner products.
    lengths : array of shape (n_samples,) or None
        What to divide their inner products by for cosines.
    """

    columns: Any = field(default=None, repr=False)
    is_far: Any = field(default=None, repr=False)
    rows: Any = field(default=None, repr=False)
    lengths: Any = field(default=None, repr=False)

    @property
    def like(self) -> Array:
        """An array that says where the rows live."""
        return self.rows if self.columns is None else self.columns

    def among(self, samples: np.ndarray) -> "Points":
        """Return some of the rows."""
        return Points(
            columns=None if self.columns is None else pick(self.columns, samples, axis=1),
            is_far=None if self.is_far is None else self.is_far[samples],
            rows=None if self.rows is None else pick(self.rows, samples),
            lengths=None if self.lengths is None else pick(self.lengths, samples),
        )

    def on_host(self) -> "Points":
        """Return the same rows as NumPy, in float64."""
        columns = self.columns
        if columns is not None:  # with exact norms
            columns = extended(to_host(columns[:-2, :]).T, 0.0, 1.0, "float64")
        is_far = None if self.is_far is None else np.ones_like(self.is_far)
        rows, lengths = (None if x is None else to_host(x) for x in (self.rows, self.lengths))
        return Points(columns, is_far, rows, lengths)


def points_of(
    view: Array,
    origin: Array,
    unit: float,
    root: float,
    formulas: Sequence[Formula],
    precision: str,
) -> Points:
    """Return the rows of a view as formulas multiply them, by NumPy in float64."""
    precision = precision if is_foreign(view) else "float64"
    columns = is_far = rows = lengths = None
    if (steepness := max(formula.steepness for formula in formulas)) > 0:
        columns = extended(view, origin, unit, precision)
        is_far = far_rows(columns, steepness)
    if not all(formula.steepness for formula in formulas):
        rows, lengths = astype(view, precision), astype(safe_norms(view) / root, precision)
    return Points(columns, is_far, rows, lengths)


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
    root : float
        The root of what inner products are divided by.
    precision : str
        Number type of the kernels.
    """

    formulas: Sequence[tuple[int, Formula]]
    samples: Points
    training: Points
    root: float
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

    def _left_factors(self, rows: slice) -> "_LeftFactors":
        """Return what training samples are multiplied with for some samples."""
        exponents = inner = lengths = None
        careful, points = False, self.samples
        if any(formula.steepness for _, formula in self.formulas):
            xp, columns = namespace(points.columns), points.columns[:, rows]
            # -|z - y|^2 / 2 = z y - |z|^2 / 2 - |y|^2 / 2
            exponents = xp.concat([columns[:-2, :], -xp.flip(columns[-2:, :], axis=0)]).T
            careful = bool(points.is_far[rows].any())
        if not all(formula.steepness for _, formula in self.formulas):
            # Twice the root, for the scale itself may be too small for single precision.
            inner = points.rows[rows, :] / self.root / self.root
            lengths = points.lengths[rows][:, None]
        return _LeftFactors(exponents, careful, inner, lengths)

    def _tile(self, left: "_LeftFactors", columns: slice) -> Tile:
        """Compute what all kernels of some training samples share."""
        exponents = inner = lengths = None
        smallest, points = 0.0, self.training
        if left.exponents is not None:
            exponents = _exponents(left.exponents, points.columns[:, columns], left.careful)
            if not is_foreign(exponents) and exponents.size:
                smallest = float(exponents.min())
        if left.inner is not None:
            inner = left.inner @ points.rows[columns, :].T
            lengths = left.lengths, points.lengths[columns]
        return Tile(exponents, inner, lengths, self.precision, smallest)


class _LeftFactors(NamedTuple):
    """What training samples are multiplied with: for exponents, for inner products, for cosines."""

    exponents: Any
    careful: bool
    inner: Any
    lengths: Any


def _exponents(left: Array, right: Array, careful: bool) -> Array:
    """Return exponents; carefully, those that are rounding are zero, for the rows are identical."""
    xp, exponents = namespace(right), left @ right
    if not careful:
        return exponents
    resolution = max(RESOLUTION, rounding_of(right) * max(16, right.shape[0] / 4))
    limits = resolution * left[:, -2], resolution * right[-1, :]
    # A tile of the host seldom has any; those of a device nearly all hold the diagonal.
    if not is_foreign(right) and exponents.max(initial=-np.inf) < (
        limits[0].min(initial=0) - limits[1].max(initial=0)
    ):
        return exponents
    return xp.where(exponents < limits[0][:, None] - limits[1], exponents, 0.0)


def write_symmetric(out: Array, place: int, rows: slice, columns: slice, tile: Array) -> None:
    """Write a tile on or above the diagonal, and its mirror image, into one of the kernels."""
    if columns.start == rows.start:
        xp, height = namespace(tile), rows.stop - rows.start
        square = tile[:, :height]
        tile[:, :height] = xp.triu(square) + xp.triu(square, k=1).T
    out[place, rows, columns] = tile
    out[place, columns, rows] = tile.T
