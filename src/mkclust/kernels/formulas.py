"""The formulas of kernels, each written once for the host and for devices.

A measure turns prepared rows of a view into points, and compares the points of two sets
of samples; a formula makes the entries of a kernel of the result. Kernels with the same
measure share these.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import additive_chi2_kernel

from mkclust.data.distances import (
    drawn_rows,
    mean_squared_norm,
    median_distance,
    middle,
    safe_norms,
    some_rows,
    squared_distances,
    squared_norms,
)
from mkclust.kernels.neighbors import BLOCK_ROWS
from mkclust.linalg import (
    EPS,
    astype,
    dense_rows,
    divide_rows,
    is_foreign,
    namespace,
    precision_of,
    row_products,
    row_ranges,
    select,
    subtract_origin,
    to_device,
    to_host,
)
from mkclust.parameters import Choice, Count, Number, Rule, check_parameter
from mkclust.types import Array, Float

# Arrays with one entry or row per sample.
Points = tuple[Array, ...]


def select_points(points: Points, samples: Any) -> Points:
    """Return the points of some samples."""
    return tuple(select(each, samples) for each in points)


class Measure:
    """A number for every pair of rows: a dissimilarity, unless it is a similarity."""

    is_similarity: ClassVar[bool] = False
    # Whether rows of zeros carry no information: no direction, or nothing in common.
    ignores_zeros: ClassVar[bool] = False
    # The median dissimilarity of two training rows, if that is the unit.
    median: Any = None

    @classmethod
    def learn(cls, name: str, rows: Array) -> Self:
        """Learn from the prepared training rows of a view."""
        return cls()

    def points(self, rows: Array, training: Points | None = None) -> Points:
        """Return prepared rows as points; for new rows, given the training points."""
        return (rows,)

    def compare(self, x: Points, y: Points) -> Array:
        """Return the measure for all pairs of points, a new array."""
        return row_products(x[0], y[0])

    def compare_with_itself(self, rows: Array) -> Array:
        """Return the measure between prepared rows and themselves, in float64."""
        xp = namespace(rows)
        norms = squared_norms(rows)
        if self.is_similarity:
            return xp.ones_like(norms)
        return xp.zeros_like(norms)


def _precision(rows: Array) -> str:
    """Return in which precision points are compared: on the host, in double."""
    if is_foreign(rows):
        return precision_of(rows)
    return "float64"


@dataclass(frozen=True)
class SquaredDistance(Measure):
    """Squared distances, in units of the median distance."""

    origin: Float = field(repr=False)  # close to all rows: it saves digits of distances
    median: float

    @classmethod
    def learn(cls, name: str, rows: Array) -> "SquaredDistance":
        """Learn the middle of the rows, and their median distance."""
        origin = middle(rows)
        if is_foreign(rows):
            # Only the rows that are drawn anyway are converted to float64.
            rows = drawn_rows(rows)
        median = median_distance(name, subtract_origin(origin, rows))
        return cls(to_host(origin), median)

    def points(self, rows: Array, training: Points | None = None) -> Points:
        """Return rows in units of the median distance, and their squared norms."""
        origin = to_device(self.origin, rows)
        moved = subtract_origin(origin, rows) / self.median
        precision = _precision(rows)
        moved = astype(moved, precision)
        return moved, astype(squared_norms(moved), precision)

    def compare(self, x: Points, y: Points) -> Array:
        """Return the squared distances of all pairs."""
        norms = x[1][:, None] + y[1]
        return squared_distances(x[0], y[0], norms)


@dataclass(frozen=True)
class InnerProduct(Measure):
    """Inner products, in units of the mean squared norm."""

    is_similarity = True
    scale: float

    @classmethod
    def learn(cls, name: str, rows: Array) -> "InnerProduct":
        """Learn the mean squared norm."""
        return cls(mean_squared_norm(name, rows))

    def points(self, rows: Array, training: Points | None = None) -> Points:
        """Return rows in units of their root mean squared norm."""
        scaled = astype(rows, "float64") / self.scale**0.5
        return (astype(scaled, _precision(rows)),)

    def compare_with_itself(self, rows: Array) -> Array:
        """Return the squared norms of rows, in their mean."""
        return squared_norms(rows) / self.scale


class Cosine(Measure):
    """The cosine of the angle between two rows, zero if one of them is zero."""

    is_similarity = ignores_zeros = True

    def points(self, rows: Array, training: Points | None = None) -> Points:
        """Return rows of unit length."""
        unit = divide_rows(astype(rows, "float64"), safe_norms(rows))
        return (astype(unit, _precision(rows)),)

    def compare_with_itself(self, rows: Array) -> Array:
        """Return one for rows with a direction, zero for others."""
        return astype(squared_norms(rows) > 0, "float64")


class _OnHost(Measure):
    """A measure of two sets of dense rows, which is computed on the host."""

    _compare_rows: Any  # a method of two arrays of rows

    def compare(self, x: Points, y: Points) -> Array:
        """Return the measure for all pairs, on the device of the points."""
        A = to_host(dense_rows(x[0]))
        B = y[0]
        parts = row_ranges(B.shape[0], B.shape[1], None, BLOCK_ROWS)
        blocks = (to_host(dense_rows(select(B, part))) for part in parts)
        compared = [self._compare_rows(A, block) for block in blocks]
        return to_device(np.concatenate(compared, axis=1), B)


class Jaccard(_OnHost):
    """The sum of the smaller entries of two rows over that of the larger."""

    is_similarity = ignores_zeros = True

    def _compare_rows(self, A: Float, B: Float) -> Float:
        """Return the shares of all pairs, by sums and differences."""
        A = nonnegative(A)
        B = nonnegative(B)
        sums = A.sum(axis=1)[:, None] + B.sum(axis=1)
        differences = cdist(A, B, "cityblock")
        smaller = nonnegative(sums - differences)
        larger = sums + differences
        return np.where(larger > 0, smaller / np.where(larger > 0, larger, 1.0), 1.0)


@dataclass(frozen=True)
class CityBlock(_OnHost):
    """Sums of absolute differences, in units of their median."""

    median: float = 1.0

    @classmethod
    def learn(cls, name: str, rows: Array) -> Self:
        """Learn the median of some rows: these distances take long."""
        unit = cls()
        samples = some_rows(np.arange(rows.shape[0]), 2_000)
        some = select_points(unit.points(rows), samples)
        upper = np.triu_indices(len(samples), 1)
        pairs = to_host(unit.compare(some, some))[upper]
        if not pairs.any():
            raise ValueError(
                f"All {len(samples)} samples examined in view {name!r} have distance "
                "zero from each other, so the view says nothing about the clusters; "
                "leave it out."
            )
        median = float(np.median(pairs)) or float(pairs[pairs > 0].mean())
        return replace(unit, median=median)

    def _compare_rows(self, A: Float, B: Float) -> Float:
        return cdist(A, B, "cityblock") / self.median


class ChiSquared(CityBlock):
    """The sum of (x - y)^2 / (x + y) over nonnegative columns, over its median."""

    def _compare_rows(self, A: Float, B: Float) -> Float:
        return -additive_chi2_kernel(nonnegative(A), nonnegative(B)) / self.median


class GivenMatrix(Measure):
    """A view that is already a square matrix: one column per training sample."""

    def points(self, rows: Array, training: Points | None = None) -> Points:
        """Return rows, and the columns that they would be."""
        return rows, np.arange(rows.shape[0])

    def compare(self, x: Points, y: Points) -> Array:
        """Return some columns of the matrix."""
        chosen = select(x[0], y[1], axis=1)
        return astype(dense_rows(chosen), "float64")


class GivenDistance(GivenMatrix, CityBlock):
    """Distances that a view consists of, in units of their median."""

    def compare(self, x: Points, y: Points) -> Array:
        """Return some columns of the matrix, over their median."""
        return super().compare(x, y) / self.median


@dataclass(frozen=True)
class GivenSimilarity(GivenMatrix):
    """Similarities that a view consists of: a precomputed kernel."""

    is_similarity = True
    # The training samples' similarities to themselves.
    diagonal: Float = field(repr=False)

    @classmethod
    def learn(cls, name: str, rows: Array) -> "GivenSimilarity":
        """Learn the diagonal."""
        return cls(_diagonal(rows))

    def compare_with_itself(self, rows: Array) -> Array:
        """Return the diagonal; for new samples NaN, unless it follows from the fit."""
        known = self.diagonal
        n = len(known)
        if tuple(rows.shape) != (n, n) or not np.array_equal(_diagonal(rows), known):
            # Equal but for rounding from the order of summation.
            is_shared = np.ptp(known) <= 64 * EPS * np.abs(known).max()
            known = np.full(rows.shape[0], known[0] if is_shared else np.nan)
        return to_device(known, dense_rows(rows[:1, :]), "float64")


def _diagonal(rows: Array) -> Float:
    """Return the diagonal of a matrix, on the host."""
    if is_foreign(rows):
        return to_host(namespace(rows).linalg.diagonal(rows))
    return np.asarray(rows.diagonal(), np.float64)


@dataclass(frozen=True)
class LocalDistance(SquaredDistance):
    """Squared distances divided by the local scales of both samples."""

    # The local scales of the training samples.
    scales: Float = field(repr=False, kw_only=True)

    @classmethod
    def learn(cls, name: str, rows: Array) -> "LocalDistance":
        """Learn the scales of the training samples, and what distances need."""
        known = SquaredDistance.learn(name, rows)
        moved = known.points(rows)[0]
        return cls(known.origin, known.median, scales=_local_scales(moved, moved))

    def points(self, rows: Array, training: Points | None = None) -> Points:
        """Return rows, their squared norms and local scales."""
        moved, norms = super().points(rows)
        scales = self.scales
        if training is not None:
            scales = _local_scales(moved, training[0], known=scales)
        return moved, norms, to_device(scales, norms, precision_of(norms))

    def compare(self, x: Points, y: Points) -> Array:
        """Return distances in units of both scales."""
        # One scale at a time, for their product may be too small.
        return super().compare(x, y) / x[2][:, None] / y[2]


# What formulas compare pairs of rows by.
MEASURES: dict[str, type[Measure]] = {
    "distance": SquaredDistance,
    "product": InnerProduct,
    "cosine": Cosine,
    "jaccard": Jaccard,
    "city block": CityBlock,
    "chi squared": ChiSquared,
    "given distance": GivenDistance,
    "given similarity": GivenSimilarity,
    "local distance": LocalDistance,
}


@dataclass(frozen=True)
class Formula:
    """The kernel (offset + s)^degree of a measure s; by default the measure itself."""

    name: str
    measure: str  # one of MEASURES
    offset: float = 0.0
    degree: int = 1

    def entries(self, compared: Array) -> Array:
        """Return the kernel, given the values of its measure."""
        base = compared + self.offset if self.offset else compared
        power = base
        for _ in range(self.degree - 1):  # repeated products are faster than a power
            power = power * base
        return power

    def of_itself(self, measure: Measure, rows: Array) -> Array:
        """Return the kernel between prepared rows and themselves, in float64."""
        return self.entries(measure.compare_with_itself(rows))

    def norms_in_feature_space(self, measure: Measure, rows: Array) -> Array:
        """Return the norms of rows, infinite for those similar to nothing."""
        own = self.of_itself(measure, rows)
        xp = namespace(own)
        return xp.sqrt(xp.where(own > 0, own, float("inf")))


@dataclass(frozen=True)
class Exponential(Formula):
    """The kernel exp(-rate d^degree) of a dissimilarity d."""

    rate: float = 1.0

    def entries(self, compared: Array) -> Array:
        """Return the kernel, given dissimilarities."""
        exponents = super().entries(compared) * -self.rate
        if is_foreign(exponents):
            return namespace(compared).exp(exponents)
        return np.exp(exponents, out=exponents)


def polynomial(offset: float, degree: int) -> Formula:
    """Return the polynomial kernel of an offset and a degree."""
    added = f"{offset:g}+" if offset else ""
    return Formula(f"polynomial {added}xy ^{degree}", "product", offset, degree)


# The inner product of rows, and that of rows of unit length.
LINEAR = Formula("linear", "product")
COSINE = Formula("cosine", "cosine")
# The Gaussian kernel of distances that are given instead of rows.
DISTANCES = Exponential(
    "gaussian of these distances", "given distance", degree=2, rate=0.5
)
# Similarities that are given, as they are.
SIMILARITIES = Formula("similarities as they are", "given similarity")


def _are_polynomials(value: Any) -> bool:
    """Return whether something is a sequence of pairs that make kernels."""
    # With a negative offset the kernel may not be positive semidefinite.
    pairs: Any = value if hasattr(value, "__len__") else [None]
    are_pairs = all(hasattr(pair, "__len__") and len(pair) == 2 for pair in pairs)
    return are_pairs and all(Number(0).holds(a) and Count().holds(b) for a, b in pairs)


def read_formulas(widths: Any, polynomials: Any, linear: Any) -> tuple[Formula, ...]:
    """Return the kernels of a view that parameters ask for, or say what is wrong."""
    is_width = Number(0, open_low=True).holds
    if not hasattr(widths, "__len__") or not all(map(is_width, widths)):
        raise ValueError(
            f"widths={widths!r}: pass a sequence of numbers greater than 0, one for "
            "each Gaussian kernel"
        )
    advice = (
        "pass pairs of an offset of at least 0 and a degree, an integer of at least 1"
    )
    check_parameter("polynomials", polynomials, Rule(_are_polynomials, advice))
    check_parameter("linear", linear, Choice(("linear", "cosine", None)))
    formulas: list[Formula] = []
    for width in map(float, widths):
        name = f"gaussian x{width:g}"
        rate = 0.5 / width**2
        formulas.append(Exponential(name, "distance", rate=rate))
    for offset, degree in polynomials:
        formulas.append(polynomial(float(offset), int(degree)))
    if linear is not None:
        formulas.append({"linear": LINEAR, "cosine": COSINE}[linear])
    if not formulas:
        raise ValueError(
            "widths and polynomials are empty and linear is None, which leaves no "
            "kernel; ask for at least one."
        )
    return tuple(formulas)


def nonnegative(rows: Array) -> Array:
    """Return rows with zeros for negative entries, which new rows may have."""
    xp = namespace(rows)
    return xp.where(rows < 0, xp.zeros_like(rows), rows)


def _local_scales(rows: Array, training: Array, known: Any = None) -> Float:
    """Return the local scales of rows, those of training rows known if they are new.

    It is the distance to the seventh neighbor (Zelnik-Manor and Perona, 2004).
    """
    n = training.shape[0]
    others = astype(training, "float64")
    rank = max(1, min(7, n - 1))
    if known is not None:
        rank -= 1  # new samples are not among their neighbors
    scales = []
    for part in row_ranges(rows.shape[0], n, training, BLOCK_ROWS):
        some = astype(select(rows, part), "float64")
        squared = to_host(squared_distances(some, others))
        at_rank = np.partition(squared, rank, axis=1)[:, rank]
        positive = np.where(squared > 0, squared, np.inf).min(axis=1)
        found = np.sqrt(np.where(at_rank > 0, at_rank, positive))
        if known is not None:
            is_known = squared.min(axis=1) <= 0
            found = np.where(is_known, known[squared.argmin(axis=1)], found)
        scales.append(found)
    return np.concatenate(scales)
