"""The formulas of kernels, each written once: for the host and for devices, stored or on the fly.

A formula names the coordinates in which it compares rows, such as rows from a common origin in
units of their median distance, and computes entries from `Pairs` of samples in these coordinates.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import additive_chi2_kernel

from mkclust.kernels.points import Pairs, Points, Units
from mkclust.linalg import (
    astype,
    is_foreign,
    namespace,
    ranges,
    select,
    to_device,
    to_host,
)
from mkclust.linalg.sparse_rows import dense_rows, over_rows, row_products, rows_from
from mkclust.samples.distances import (
    safe_norms,
    some_rows,
    squared_distances,
    squared_norms,
)
from mkclust.types import Array, Float

# NumPy computes exponentials that are subnormal numbers up to fifty times more slowly than others:
# exponents are not smaller than these.
SMALLEST_EXPONENTS = {
    precision: 0.98 * float(np.log(np.finfo(precision).tiny))
    for precision in ("float32", "float64")
}
# Distances that are not Euclidean cost more: their median is computed from at most so many rows.
MEDIAN_ROWS = 2_000
# The local scale of a sample is its distance to this neighbor (Zelnik-Manor and Perona, 2004).
SCALE_NEIGHBOR = 7
# Entries of distances that are computed at a time to find that neighbor.
BLOCK_ENTRIES = 2**22
# Entries of differences, pairs times features, that a device holds at a time.
BROADCAST_ENTRIES = 2**25


class Formula:
    """A kernel as a function of pairs of samples; its text is its name."""

    # Whether rows of zeros say nothing: they have no direction, or no entry in common with others.
    ignores_zeros: ClassVar[bool] = False
    # Whether the kernel is positive semidefinite for all rows.
    is_definite: ClassVar[bool] = True
    # Whether features of prepared rows can approximate the kernel.
    has_features: ClassVar[bool] = False
    # How the most similar samples are found: by "distance", "cosine" or "entries".
    neighbors_by: ClassVar[str] = "entries"

    @property
    def median(self) -> float | None:
        """The median dissimilarity that the formula learned; None if it learns none."""
        return None

    def learn(self, name: str, rows: Array, origin: Array) -> "Formula":
        """Return the formula with what it learns from the prepared training rows of a view."""
        return self

    def coordinates(self, rows: Array, units: Units, precision: str) -> dict[str, Array]:
        """Return prepared rows in the coordinates that the formula compares."""
        return {"rows": rows}

    def coordinates_of_new(
        self, rows: Array, units: Units, precision: str, training: Points
    ) -> dict[str, Array]:
        """Return the same for rows that are not the training rows."""
        return self.coordinates(rows, units, precision)

    def entries(self, pairs: Pairs) -> Array:
        """Compute the kernel."""
        raise NotImplementedError(f"{type(self).__name__} must define entries")

    def self_similarity(self, rows: Array, units: Units) -> Array:
        """Return the kernel between prepared rows and themselves, in float64."""
        return namespace(rows).ones_like(squared_norms(rows))


@dataclass(frozen=True)
class Gaussian(Formula):
    """The kernel exp(-|x - y|^2 / (2 (w s)^2)) of a width w and the median distance s."""

    neighbors_by = "distance"
    has_features = True

    width: float

    def __str__(self) -> str:
        return f"gaussian x{self.width:g}"

    def coordinates(self, rows: Array, units: Units, precision: str) -> dict[str, Array]:
        """Return rows from the origin in units of the median distance."""
        moved = astype(rows_from(units.origin, rows) / units.median, precision)
        return {"centered": moved, "norms": astype(squared_norms(moved), precision)}

    def entries(self, pairs: Pairs) -> Array:
        """Compute the kernel, in its own precision."""
        xp, smallest = namespace(pairs.squared_distances), SMALLEST_EXPONENTS[pairs.precision]
        exponents = astype(pairs.squared_distances * (-0.5 / self.width**2), pairs.precision)
        return xp.exp(at_least(exponents, smallest))


class InnerProduct(Formula):
    """The kernel x y / c with the mean squared norm c."""

    neighbors_by = "cosine"
    has_features = True

    def __str__(self) -> str:
        return "linear"

    def coordinates(self, rows: Array, units: Units, precision: str) -> dict[str, Array]:
        """Return rows in units of about the root mean squared norm."""
        return {"scaled": astype(astype(rows, "float64") / units.length, precision)}

    def entries(self, pairs: Pairs) -> Array:
        """Return the inner products themselves."""
        return pairs.products

    def self_similarity(self, rows: Array, units: Units) -> Array:
        """Return the squared norms."""
        return squared_norms(rows) / units.scale


@dataclass(frozen=True)
class Polynomial(InnerProduct):
    """The kernel (a + x y / c)^b with an offset a and a degree b."""

    neighbors_by = "entries"
    has_features = False

    offset: float
    degree: int

    def __str__(self) -> str:
        return f"polynomial {f'{self.offset:g}+' if self.offset else ''}xy ^{self.degree}"

    def entries(self, pairs: Pairs) -> Array:
        """Compute the kernel."""
        return self._power(pairs.products + self.offset)

    def self_similarity(self, rows: Array, units: Units) -> Array:
        """Return the powers of squared norms."""
        return self._power(super().self_similarity(rows, units) + self.offset)

    def _power(self, base: Array) -> Array:
        """Multiply repeatedly, which is faster than a power."""
        power = base
        for _ in range(self.degree - 1):
            power = power * base
        return power


class Cosine(Formula):
    """The cosine of the angle between x and y, zero if one of them is zero."""

    ignores_zeros = True
    neighbors_by = "cosine"
    has_features = True

    def __str__(self) -> str:
        return "cosine"

    def coordinates(self, rows: Array, units: Units, precision: str) -> dict[str, Array]:
        """Return rows of unit length."""
        return {"unit": astype(over_rows(astype(rows, "float64"), safe_norms(rows)), precision)}

    def entries(self, pairs: Pairs) -> Array:
        """Compute the kernel."""
        return row_products(pairs.x["unit"], pairs.y["unit"])

    def self_similarity(self, rows: Array, units: Units) -> Array:
        """Return one, and zero for rows of zeros."""
        return astype(squared_norms(rows) > 0, "float64")


@dataclass(frozen=True)
class _Exponential(Formula):
    """The kernel exp(-d / s) of a dissimilarity d with the median s."""

    width: float = 1.0

    @property
    def median(self) -> float:
        """The median dissimilarity s."""
        return self.width

    def learn(self, name: str, rows: Array, origin: Array) -> "Formula":
        """Learn the median dissimilarity of two rows."""
        some = to_host(dense_rows(some_rows(rows, MEDIAN_ROWS)))
        return replace(self, width=_median(name, self.dissimilarities(some, some)))

    def dissimilarities(self, A: Array, B: Array) -> Array:
        """Return d between rows in float64."""
        raise NotImplementedError(f"{type(self).__name__} must define dissimilarities")

    def entries(self, pairs: Pairs) -> Array:
        """Compute the kernel."""
        d = pairs.compare(self.dissimilarities)
        return namespace(d).exp(-d / self.width)


class Laplacian(_Exponential):
    """The kernel exp(-|x - y| / s) of sums of absolute differences."""

    def __str__(self) -> str:
        return "laplacian"

    def dissimilarities(self, A: Array, B: Array) -> Array:
        """Return the sums of absolute differences."""
        return _absolute_differences(A, B)


class ChiSquared(_Exponential):
    """The kernel exp(-d / s) of d, the sum of (x - y)^2 / (x + y) over nonnegative columns."""

    def __str__(self) -> str:
        return "chi2"

    def dissimilarities(self, A: Array, B: Array) -> Array:
        """Return d; negative entries, which new rows may have, count as zero."""
        xp, A, B = namespace(A), _nonnegative(A), _nonnegative(B)
        if not is_foreign(A):
            return -additive_chi2_kernel(A, B)
        return _sum_over_features(A, B, lambda a, b: (a - b) ** 2 / xp.where(a + b > 0, a + b, 1.0))


class Jaccard(Formula):
    """The sum of the smaller entries of two nonnegative rows divided by that of the larger ones.

    For rows of zeros and ones that is the share of common ones among all. Two rows of zeros have
    the similarity one.
    """

    ignores_zeros = True

    def __str__(self) -> str:
        return "jaccard"

    def entries(self, pairs: Pairs) -> Array:
        """Compute the kernel from sums and absolute differences."""
        return pairs.compare(self._similarities)

    @staticmethod
    def _similarities(A: Array, B: Array) -> Array:
        """Return the kernel between dense rows."""
        xp, A, B = namespace(A), _nonnegative(A), _nonnegative(B)
        difference, sums = (
            _absolute_differences(A, B),
            xp.sum(A, axis=1)[:, None] + xp.sum(B, axis=1),
        )
        larger, smaller = sums + difference, _nonnegative(sums - difference)
        return xp.where(larger > 0, smaller / xp.where(larger > 0, larger, 1.0), 1.0)


@dataclass(frozen=True)
class OfDistances(Formula):
    """The kernel exp(-d^2 / (2 s^2)) of distances that a view consists of, with the median s."""

    is_definite = False

    width: float = 1.0

    def __str__(self) -> str:
        return "gaussian of these distances"

    @property
    def median(self) -> float:
        """The median distance s."""
        return self.width

    def learn(self, name: str, rows: Array, origin: Array) -> "OfDistances":
        """Learn the median distance."""
        samples = some_rows(np.arange(rows.shape[0]), MEDIAN_ROWS)
        return replace(
            self, width=_median(name, to_host(select(select(rows, samples), samples, axis=1)))
        )

    def coordinates(self, rows: Array, units: Units, precision: str) -> dict[str, Array]:
        """Return the distances themselves."""
        return {"distances": rows}

    def entries(self, pairs: Pairs) -> Array:
        """Compute the kernel."""
        d = astype(pairs.x["distances"][:, pairs.columns], "float64") / self.width
        return namespace(d).exp(-(d * d) / 2)


@dataclass(frozen=True)
class SelfTuning(Formula):
    """The kernel exp(-|x - y|^2 / (s_x s_y)), s being the distance to the 7th nearest sample."""

    is_definite = False

    # The local scales s of the training samples; None before they are learned.
    scales: Any = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return "self-tuning"

    def learn(self, name: str, rows: Array, origin: Array) -> "SelfTuning":
        """Learn the local scale of every training sample, which is not its own neighbor."""
        moved = rows_from(origin, rows)
        scales = _local_scales(moved, moved, is_own=True)
        if not np.isfinite(scales).all():
            raise ValueError(
                f"All rows in view {name!r} are identical, so it says nothing about the clusters; "
                "leave it out."
            )
        return replace(self, scales=scales)

    def coordinates(self, rows: Array, units: Units, precision: str) -> dict[str, Array]:
        """Return training rows from the origin, with their local scales, in float64."""
        return self._points(rows_from(units.origin, rows), self.scales)

    def coordinates_of_new(
        self, rows: Array, units: Units, precision: str, training: Points
    ) -> dict[str, Array]:
        """Return the same for new rows; those identical to a training sample have its scale."""
        moved = rows_from(units.origin, rows)
        scales = _local_scales(moved, training["centered"], is_own=False, known=self.scales)
        return self._points(moved, scales)

    def _points(self, moved: Array, scales: Float) -> dict[str, Array]:
        """Return rows with their norms and local scales."""
        norms = squared_norms(moved)
        scales = to_device(scales, norms, "float64")
        return {"centered": moved, "norms": norms, "local scales": scales}

    def entries(self, pairs: Pairs) -> Array:
        """Compute the kernel; divide by one scale at a time, for their product may be too small."""
        exponents = pairs.squared_distances / pairs.x["local scales"][:, None]
        exponents = exponents / pairs.y["local scales"]
        return namespace(exponents).exp(-exponents)


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
    """Return whether a value is a real number, neither boolean nor NaN."""
    return isinstance(value, Real) and not isinstance(value, bool) and bool(value == value)


def _nonnegative(rows: Array) -> Array:
    """Return rows with zeros for negative entries."""
    return at_least(rows, 0.0)


def at_least(numbers: Array, bound: float) -> Array:
    """Return numbers with a bound in place of those below it."""
    if not is_foreign(numbers):
        return np.maximum(numbers, numbers.dtype.type(bound))
    return namespace(numbers).where(numbers < bound, bound, numbers)


def _median(name: str, distances: Float) -> float:
    """Return the median distance between two samples, or the mean of the positive ones if zero."""
    pairs = distances[np.triu_indices(len(distances), 1)]
    if (median := float(np.median(pairs))) > 0:
        return median
    positive = pairs[pairs > 0]
    if not positive.size:
        raise ValueError(
            f"All {len(distances)} samples looked at in view {name!r} have distance zero "
            "from each other, so the view says nothing about the clusters; leave it out."
        )
    return float(positive.mean())


def _absolute_differences(A: Array, B: Array) -> Array:
    """Return the sums of absolute differences between rows."""
    if not is_foreign(A):
        return cdist(A, B, "cityblock")
    return _sum_over_features(A, B, lambda a, b: namespace(a).abs(a - b))


def _sum_over_features(A: Array, B: Array, terms: Callable[[Array, Array], Array]) -> Array:
    """Return sums over features of a function of two entries, some features at a time."""
    width = max(1, BROADCAST_ENTRIES // max(1, A.shape[0] * B.shape[0]))
    total: Any = 0.0
    for part in ranges(A.shape[1], width):
        total = total + namespace(A).sum(terms(A[:, None, part], B[None, :, part]), axis=2)
    return total


def _local_scales(rows: Array, training: Array, *, is_own: bool, known: Any = None) -> Float:
    """Return the distance of each row to its 7th nearest training sample, on the host.

    If that is zero, the nearest sample that is not identical replaces it. New rows that are
    identical to a training sample have its known scale.
    """
    n = training.shape[0]
    rank, scales = max(1, min(SCALE_NEIGHBOR, n - 1)), []
    for part in ranges(rows.shape[0], max(1, BLOCK_ENTRIES // n)):
        squared = to_host(squared_distances(select(rows, part), training))
        at_rank = np.partition(squared, rank - (not is_own), axis=1)[:, rank - (not is_own)]
        positive = np.where(squared > 0, squared, np.inf).min(axis=1)
        found = np.sqrt(np.where(at_rank > 0, at_rank, positive))
        if known is not None:
            found = np.where(squared.min(axis=1) <= 0, known[squared.argmin(axis=1)], found)
        scales.append(found)
    return np.concatenate(scales)
