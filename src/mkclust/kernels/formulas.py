"""The formulas of kernels, each written once: for the host and for devices, stored or on the fly.

A formula turns prepared rows of a view into points, compares the points of two sets of samples, and
computes the entries of the kernel from that. Formulas of one measure share points and comparisons.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import additive_chi2_kernel

from mkclust.data.distances import (
    clip_rounding,
    safe_norms,
    some_rows,
    squared_distances,
    squared_norms,
)
from mkclust.linalg import (
    arrays_to_host,
    astype,
    namespace,
    ranges,
    select,
    to_device,
    to_host,
)
from mkclust.linalg.sparse_rows import dense_rows, over_rows, row_products, rows_from
from mkclust.parameters import Choice, Count, Number, check_parameter
from mkclust.types import Array, Float

# Distances that are not Euclidean cost more: their median is computed from at most so many rows.
MEDIAN_ROWS = 2_000
# The local scale of a sample is its distance to this neighbor (Zelnik-Manor and Perona, 2004).
SCALE_NEIGHBOR = 7
# Entries of distances, or of rows in float64, that are computed at a time.
BLOCK_ENTRIES = 2**22

# Arrays with one entry or row per sample.
Points = tuple[Array, ...]


@dataclass(frozen=True)
class Units:
    """What the rows of a view are measured from, and in."""

    origin: Any = field(repr=False)  # close to all rows: it saves digits of distances
    median: float  # median distance between two training rows
    scale: float  # mean squared norm of a training row
    precision: str = "float64"  # in which distances and products are computed

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: for the host, wherever arrays are."""
        return vars(self) | {"origin": arrays_to_host(self.origin), "precision": "float64"}


class Formula:
    """A kernel as a function of pairs of samples; its text is its name."""

    name: ClassVar[str]
    # What it compares: formulas of one measure have the same `points` and `compare`.
    measure: ClassVar[str] = "rows"
    # How the most similar samples are found: by "distance", "cosine" or "entries".
    neighbors_by: ClassVar[str] = "entries"
    # Whether rows of zeros say nothing: they have no direction, or no entry in common with others.
    ignores_zeros: ClassVar[bool] = False
    # Whether the kernel is positive semidefinite for all rows.
    is_definite: ClassVar[bool] = True
    # Whether features of prepared rows can approximate the kernel.
    has_features: ClassVar[bool] = False
    # The median dissimilarity that the formula learned; None if it learns none.
    median: Any = None

    def __str__(self) -> str:
        return self.name

    def learn(self, name: str, rows: Array, origin: Array) -> "Formula":
        """Return the formula with what it learns from the prepared training rows of a view."""
        return self

    def points(self, rows: Array, units: Units | None, training: Points | None = None) -> Points:
        """Return prepared rows as points; for other rows than those, with the training points."""
        return (rows,)

    def compare(self, x: Points, y: Points) -> Array:
        """Return what the kernel is a function of, for all pairs of samples."""
        return row_products(x[0], y[0])

    def entries(self, compared: Array) -> Array:
        """Return the kernel, given what `compare` returns."""
        return compared

    def self_similarity(self, rows: Array, units: Units) -> Array:
        """Return the kernel between prepared rows and themselves, in float64."""
        return namespace(rows).ones_like(squared_norms(rows))


def select_points(points: Points, samples: Any) -> Points:
    """Return the points of some samples."""
    return tuple(select(each, samples) for each in points)


def _squared_distances(x: Points, y: Points) -> Array:
    """Return the squared distances between rows, given with their squared norms."""
    norms = x[1][:, None] + y[1]
    squared = row_products(x[0], y[0])
    squared *= -2
    squared += norms
    return clip_rounding(squared, norms)


@dataclass(frozen=True)
class Gaussian(Formula):
    """The kernel exp(-|x - y|^2 / (2 (w s)^2)) of a width w and the median distance s."""

    measure = neighbors_by = "distance"
    has_features = True
    width: float

    def __str__(self) -> str:
        return f"gaussian x{self.width:g}"

    def points(self, rows: Array, units: Any, training: Any = None) -> Points:
        """Return rows from the origin in units of the median distance, and their norms."""
        moved = astype(rows_from(units.origin, rows) / units.median, units.precision)
        return moved, astype(squared_norms(moved), units.precision)

    def compare(self, x: Points, y: Points) -> Array:
        """Return squared distances."""
        return _squared_distances(x, y)

    def entries(self, compared: Array) -> Array:
        """Return the kernel."""
        return namespace(compared).exp(compared * (-0.5 / self.width**2))


class InnerProduct(Formula):
    """The kernel x y / c with the mean squared norm c."""

    name, measure, neighbors_by = "linear", "product", "cosine"
    has_features = True

    def points(self, rows: Array, units: Any, training: Any = None) -> Points:
        """Return rows in units of the root mean squared norm."""
        return (astype(astype(rows, "float64") / units.scale**0.5, units.precision),)

    def self_similarity(self, rows: Array, units: Units) -> Array:
        """Return the kernel of squared norms."""
        return self.entries(squared_norms(rows) / units.scale)


@dataclass(frozen=True)
class Polynomial(InnerProduct):
    """The kernel (a + x y / c)^b with an offset a and a degree b."""

    neighbors_by = "entries"
    has_features = False
    offset: float
    degree: int

    def __str__(self) -> str:
        return f"polynomial {f'{self.offset:g}+' if self.offset else ''}xy ^{self.degree}"

    def entries(self, compared: Array) -> Array:
        """Multiply repeatedly, which is faster than a power."""
        power = base = compared + self.offset
        for _ in range(self.degree - 1):
            power = power * base
        return power


class Cosine(Formula):
    """The cosine of the angle between x and y, zero if one of them is zero."""

    name = measure = neighbors_by = "cosine"
    ignores_zeros = has_features = True

    def points(self, rows: Array, units: Any, training: Any = None) -> Points:
        """Return rows of unit length."""
        return (astype(over_rows(astype(rows, "float64"), safe_norms(rows)), units.precision),)

    def self_similarity(self, rows: Array, units: Units) -> Array:
        """Return one, and zero for rows of zeros."""
        return astype(squared_norms(rows) > 0, "float64")


class _OfRows(Formula):
    """A kernel of a function of two sets of dense rows, which is computed on the host."""

    def compare(self, x: Points, y: Points) -> Array:
        """Apply the function to all rows x and some rows y at a time."""
        A, B = to_host(dense_rows(x[0])), y[0]
        parts = ranges(B.shape[0], max(1, BLOCK_ENTRIES // max(1, B.shape[1])))
        blocks = (to_host(dense_rows(select(B, part))) for part in parts)
        compared = np.concatenate([self._compare_rows(A, block) for block in blocks], axis=1)
        return to_device(compared, B)

    def _compare_rows(self, A: Float, B: Float) -> Float:
        raise NotImplementedError(f"{type(self).__name__} must define _compare_rows")


@dataclass(frozen=True)
class _Exponential(_OfRows):
    """The kernel exp(-d / s) of a dissimilarity d with the median s."""

    median: float = 1.0

    def learn(self, name: str, rows: Array, origin: Array) -> "Formula":
        """Learn the median dissimilarity of two rows, or the mean of the positive if it is zero."""
        samples = some_rows(np.arange(rows.shape[0]), MEDIAN_ROWS)
        some = select_points(self.points(rows, None), samples)
        pairs = to_host(self.compare(some, some))[np.triu_indices(len(samples), 1)]
        if not pairs.any():
            raise ValueError(
                f"All {len(samples)} samples examined in view {name!r} have distance zero "
                "from each other, so the view says nothing about the clusters; leave it out."
            )
        return replace(self, median=float(np.median(pairs)) or float(pairs[pairs > 0].mean()))

    def entries(self, compared: Array) -> Array:
        """Return the kernel."""
        return namespace(compared).exp(-compared / self.median)


class Laplacian(_Exponential):
    """The kernel exp(-|x - y| / s) of sums of absolute differences."""

    name = "laplacian"

    def _compare_rows(self, A: Float, B: Float) -> Float:
        return cdist(A, B, "cityblock")


class ChiSquared(_Exponential):
    """The kernel exp(-d / s) of d, the sum of (x - y)^2 / (x + y) over nonnegative columns."""

    name = "chi2"

    def _compare_rows(self, A: Float, B: Float) -> Float:
        return -additive_chi2_kernel(nonnegative(A), nonnegative(B))


class Jaccard(_OfRows):
    """The sum of the smaller entries of two nonnegative rows divided by that of the larger ones.

    For rows of zeros and ones that is the share of common ones among all. Two rows of zeros have
    the similarity one.
    """

    name = "jaccard"
    ignores_zeros = True

    def _compare_rows(self, A: Float, B: Float) -> Float:
        A, B = nonnegative(A), nonnegative(B)
        sums, differences = A.sum(axis=1)[:, None] + B.sum(axis=1), cdist(A, B, "cityblock")
        smaller, larger = nonnegative(sums - differences), sums + differences
        return np.where(larger > 0, smaller / np.where(larger > 0, larger, 1.0), 1.0)


class OfDistances(_Exponential):
    """The kernel exp(-d^2 / (2 s^2)) of distances that a view consists of, with the median s."""

    name = "gaussian of these distances"
    is_definite = False

    def points(self, rows: Array, units: Any, training: Any = None) -> Points:
        """Return the distances, and the columns of the samples."""
        return rows, np.arange(rows.shape[0])

    def compare(self, x: Points, y: Points) -> Array:
        """Return the distances."""
        return astype(dense_rows(select(x[0], y[1], axis=1)), "float64")

    def entries(self, compared: Array) -> Array:
        """Return the kernel."""
        return namespace(compared).exp(-((compared / self.median) ** 2) / 2)


class Closeness(OfDistances):
    """The similarity 1 / (1 + d / s), which is positive for all distances d: to find neighbors."""

    name = "closeness"

    def entries(self, compared: Array) -> Array:
        """Return the similarities."""
        return 1 / (1 + compared / self.median)


@dataclass(frozen=True)
class SelfTuning(Formula):
    """The kernel exp(-|x - y|^2 / (s_x s_y)), s being the distance to the 7th nearest sample."""

    name = "self-tuning"
    is_definite = False
    # The local scales s of the training samples; None before they are learned.
    scales: Any = field(default=None, repr=False, compare=False)

    def learn(self, name: str, rows: Array, origin: Array) -> "SelfTuning":
        """Learn the local scale of every training sample, which is not its own neighbor."""
        moved = rows_from(origin, rows)
        scales = _local_scales(moved, moved)
        if not np.isfinite(scales).all():
            raise ValueError(
                f"All rows in view {name!r} are identical, so it says nothing about the clusters; "
                "leave it out."
            )
        return replace(self, scales=scales)

    def points(self, rows: Array, units: Any, training: Any = None) -> Points:
        """Return rows from the origin, with their norms and local scales, in float64."""
        moved, scales = rows_from(units.origin, rows), self.scales
        if training is not None:
            scales = _local_scales(moved, training[0], known=scales)
        norms = squared_norms(moved)
        return moved, norms, to_device(scales, norms, "float64")

    def compare(self, x: Points, y: Points) -> Array:
        """Return exponents; divide by one scale at a time, for their product may be too small."""
        return _squared_distances(x, y) / x[2][:, None] / y[2]

    def entries(self, compared: Array) -> Array:
        """Return the kernel."""
        return namespace(compared).exp(-compared)


# What the parameter ``linear`` of a bank may be.
LINEAR: dict[str, Formula] = {str(formula): formula for formula in (InnerProduct(), Cosine())}


def read_formulas(widths: Any, polynomials: Any, linear: Any) -> tuple[Formula, ...]:
    """Return the kernels of a view that parameters ask for, or say which cannot be used and why."""
    for name, value in (("widths", widths), ("polynomials", polynomials)):
        if not hasattr(value, "__len__"):
            expected = "pass a sequence, with one entry for each kernel of a view"
            raise ValueError(f"{name}={value!r}: {expected}")
    for width in widths:
        check_parameter("widths: the width", width, Number(0, open_low=True))
    for pair in polynomials:
        if not hasattr(pair, "__len__") or len(pair) != 2:
            raise ValueError(f"polynomials: found {pair!r}; pass pairs of an offset and a degree")
        # With a negative offset the kernel may not be positive semidefinite.
        check_parameter("polynomials: the offset", pair[0], Number(0))
        check_parameter("polynomials: the degree", pair[1], Count())
    check_parameter("linear", linear, Choice((*LINEAR, None)))
    formulas: list[Formula] = [Gaussian(float(width)) for width in widths]
    formulas += [Polynomial(float(offset), int(degree)) for offset, degree in polynomials]
    formulas += [LINEAR[linear]] if linear else []
    if not formulas:
        problem = "widths and polynomials are empty and linear is None"
        raise ValueError(f"{problem}, which leaves no kernel; ask for at least one.")
    return tuple(formulas)


def nonnegative(rows: Array) -> Array:
    """Return rows with zeros for negative entries, which new rows may have; NaN stays NaN."""
    xp = namespace(rows)
    return xp.where(rows < 0, xp.zeros_like(rows), rows)


def _local_scales(rows: Array, training: Array, known: Any = None) -> Float:
    """Return the distance of each row to its 7th nearest training sample, on the host.

    If that is zero, the nearest sample that is not identical replaces it. Without known scales the
    rows are the training rows; new rows that are identical to one of these have its known scale.
    """
    n, scales = training.shape[0], []
    rank = max(1, min(SCALE_NEIGHBOR, n - 1)) - (known is not None)
    for part in ranges(rows.shape[0], max(1, BLOCK_ENTRIES // n)):
        squared = to_host(squared_distances(select(rows, part), training))
        at_rank = np.partition(squared, rank, axis=1)[:, rank]
        positive = np.where(squared > 0, squared, np.inf).min(axis=1)
        found = np.sqrt(np.where(at_rank > 0, at_rank, positive))
        if known is not None:
            found = np.where(squared.min(axis=1) <= 0, known[squared.argmin(axis=1)], found)
        scales.append(found)
    return np.concatenate(scales)
