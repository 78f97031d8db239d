"""Kernels of pairs of rows that no product of matrices gives, tile by tile.

Each learns what it needs from the training rows, a width or one number a sample, and holds it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import additive_chi2_kernel

from mkclust.kernels.formulas import Formula, Tile
from mkclust.linalg import (
    astype,
    is_foreign,
    is_sparse,
    namespace,
    ranges,
    select,
    to_device,
    to_host,
)
from mkclust.linalg.sparse_rows import rows_from
from mkclust.samples.distances import middle, squared_distances
from mkclust.types import Array, Float

# The median of other than Euclidean distances is that of at most so many rows: they cost more.
MEDIAN_ROWS = 2_000
# Which neighbor is as far as a sample's own scale (Zelnik-Manor and Perona, 2004).
SCALE_NEIGHBOR = 7
# Entries of distances that are held at a time in search of that neighbor.
SEARCH_ENTRIES = 2**22
# Entries of differences, pairs times features, that a device holds at a time.
BROADCAST_ENTRIES = 2**25


@dataclass(frozen=True)
class PairPoints:
    """Rows as kernels of pairs take them.

    Attributes
    ----------
    rows : array of shape (n_samples, n_features)
        The rows.
    scales : array of shape (n_samples,) or None
        The scale of every sample, for kernels that have one.
    of_pairs : bool
        Whether columns are the training samples.
    """

    rows: Any = field(repr=False)
    scales: Any = field(default=None, repr=False)
    of_pairs: bool = False

    @property
    def like(self) -> Array:
        """An array that says where the rows live."""
        return self.rows

    @property
    def n_features(self) -> int:
        """Number of entries of a row; kernels of pairs take some at a time."""
        return 1

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are sparse."""
        return is_sparse(self.rows)

    def among(self, samples: np.ndarray) -> "PairPoints":
        """Return some of the rows, of pairs against the same samples only."""
        rows = select(self.rows, samples)
        if self.of_pairs:
            rows = select(rows, samples, axis=1)
        scales = None if self.scales is None else select(self.scales, samples)
        return replace(self, rows=rows, scales=scales)

    def on_host(self) -> "PairPoints":
        """Return the same rows as NumPy, in float64."""
        scales = None if self.scales is None else to_host(self.scales)
        return replace(self, rows=to_host(self.rows), scales=scales)

    def part(self, rows: slice) -> "PairPoints":
        """Return some rows in float64, where they live."""
        scales = None if self.scales is None else self.scales[rows]
        return replace(self, rows=_block(self.rows, rows), scales=scales)


class PairFormula(Formula):
    """A kernel of pairs of rows: one between every sample and itself, new or not."""

    # Whether it is positive semidefinite whatever the rows.
    is_definite = True

    @property
    def median(self) -> float | None:
        """The median distance that the kernel is as wide as; None of kernels without."""
        return None

    def learn(self, name: str, rows: Array) -> "PairFormula":
        """Return the kernel with what it learns from the training rows of a view."""
        return self

    def points(self, rows: Array, training_rows: Array | None) -> PairPoints:
        """Return rows as the kernel takes them; no training rows where they are these."""
        return PairPoints(rows)

    def similarities(self, x: PairPoints, y: PairPoints) -> Array:
        """Compute the kernel between some samples x and some training samples y, in float64."""
        raise NotImplementedError(f"{type(self).__name__} must define similarities")

    def of_themselves(self, tile: Tile) -> Array:
        """Return the kernel between samples and themselves."""
        return namespace(tile.inner).ones_like(tile.inner)


@dataclass(frozen=True)
class _Exponential(PairFormula):
    """The kernel exp(-d / s) of a dissimilarity d with the median s."""

    width: float = 1.0

    @property
    def median(self) -> float:
        """The median dissimilarity s."""
        return self.width

    def learn(self, name: str, rows: Array) -> "PairFormula":
        """Learn the median dissimilarity of two rows."""
        some = _looked_at(rows)
        return replace(self, width=_median(name, self.dissimilarities(some, some)))

    def dissimilarities(self, A: Array, B: Array) -> Array:
        """Return d between rows in float64."""
        raise NotImplementedError(f"{type(self).__name__} must define dissimilarities")

    def similarities(self, x: PairPoints, y: PairPoints) -> Array:
        """Compute the kernel."""
        d = self.dissimilarities(x.rows, y.rows)
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
        """Return d; negative entries, which new rows may hold, count as zero."""
        A, B = _nonnegative(A), _nonnegative(B)
        if not is_foreign(A):
            return -additive_chi2_kernel(A, B)
        xp = namespace(A)

        def terms(a: Array, b: Array) -> Array:
            sums = a + b
            return (a - b) ** 2 / xp.where(sums > 0, sums, 1.0)

        return _sum_over_features(A, B, terms)


class Jaccard(PairFormula):
    """The sum of the smaller entries of two nonnegative rows by that of the larger ones.

    Of rows of zeros and ones that is the share of common marks among all. Two rows of zeros are
    as similar as can be.
    """

    ignores_zeros = True

    def __str__(self) -> str:
        return "jaccard"

    def similarities(self, x: PairPoints, y: PairPoints) -> Array:
        """Compute the kernel: what is smaller, and what is larger, follow from the difference."""
        A, B = _nonnegative(x.rows), _nonnegative(y.rows)
        xp, apart = namespace(A), _absolute_differences(A, B)
        sums = xp.sum(A, axis=1)[:, None] + xp.sum(B, axis=1)
        larger = sums + apart
        smaller = sums - apart
        smaller = xp.where(smaller < 0, 0.0, smaller)  # rounding
        return xp.where(larger > 0, smaller / xp.where(larger > 0, larger, 1.0), 1.0)


@dataclass(frozen=True)
class OfDistances(PairFormula):
    """The kernel exp(-d^2 / (2 s^2)) of distances that a view consists of, with the median s."""

    is_definite = False

    width: float = 1.0

    def __str__(self) -> str:
        return "gaussian of these distances"

    @property
    def median(self) -> float:
        """The median distance s."""
        return self.width

    def learn(self, name: str, rows: Array) -> "OfDistances":
        """Learn the median distance."""
        numbers = _numbers(rows.shape[0])
        return replace(
            self, width=_median(name, to_host(PairPoints(rows, None, True).among(numbers).rows))
        )

    def points(self, rows: Array, training_rows: Array | None) -> PairPoints:
        """Return the distances themselves."""
        return PairPoints(rows, of_pairs=True)

    def similarities(self, x: PairPoints, y: PairPoints) -> Array:
        """Compute the kernel of distances from x to y."""
        d = x.rows / self.width
        return namespace(d).exp(-(d * d) / 2)


@dataclass(frozen=True)
class SelfTuning(PairFormula):
    """The kernel exp(-|x - y|^2 / (s_x s_y)), s being the distance to the 7th nearest sample.

    Attributes
    ----------
    origin : ndarray of shape (n_features,) or None
        What rows are measured from, which spares digits; None before it is learned.
    scales : ndarray of shape (n_samples,) or None
        The scales of the training samples; None before they are learned.
    """

    is_definite = False

    origin: Any = field(default=None, repr=False, compare=False)
    scales: Any = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return "self-tuning"

    def learn(self, name: str, rows: Array) -> "SelfTuning":
        """Learn the scale of every training sample, itself not counted among its neighbors."""
        origin = to_host(middle(rows))
        moved = _from(origin, rows)
        scales = _local_scales(moved, moved, own=True)
        if not np.isfinite(scales).all():
            raise ValueError(
                f"All rows in view {name!r} are identical, so it says nothing about the clusters; "
                "leave it out."
            )
        return replace(self, origin=origin, scales=scales)

    def points(self, rows: Array, training_rows: Array | None) -> PairPoints:
        """Return rows from the origin, with their scales."""
        moved, scales = _from(self.origin, rows), self.scales
        if training_rows is not None:
            training = _from(self.origin, training_rows)
            scales = _local_scales(moved, training, own=False, known=self.scales)
        return PairPoints(moved, to_device(scales, moved, "float64"))

    def similarities(self, x: PairPoints, y: PairPoints) -> Array:
        """Compute the kernel; one scale after the other, for their product may be too small."""
        exponents = squared_distances(x.rows, y.rows) / x.scales[:, None]
        exponents = exponents / y.scales
        return namespace(exponents).exp(-exponents)


@dataclass(frozen=True)
class PairKernels:
    """Kernels of pairs of one view, as `ViewKernels` are those of products.

    Attributes
    ----------
    formulas : sequence of (place, formula)
        The kernels; those of one view share their points.
    samples, training : PairPoints
        What is compared with what.
    precision : str
        Number type of the kernels.
    """

    formulas: Sequence[tuple[int, Any]]
    samples: PairPoints
    training: PairPoints
    precision: str

    def only(self, indices: Sequence[int]) -> "PairKernels":
        """Return some of the kernels, at the places that the indices give them."""
        by_place = dict(self.formulas)
        places = [place for place, index in enumerate(indices) if index in by_place]
        return replace(self, formulas=[(place, by_place[indices[place]]) for place in places])

    def among(self, samples: np.ndarray) -> "PairKernels":
        """Return the kernels of some training samples, against these only."""
        points = self.training.among(samples)
        return replace(self, samples=points, training=points)

    def on_host(self) -> "PairKernels":
        """Return the same kernels of samples on a device, computed by NumPy."""
        training = self.training.on_host()
        same = self.samples is self.training
        return replace(
            self, samples=training if same else self.samples.on_host(), training=training
        )

    def product(self, place: int, X: Array) -> Array | None:
        """Return None: products take entries that are stored."""
        return None

    def tiles(self, rows: slice, blocks: Iterable[slice]) -> Iterator[tuple[int, slice, Array]]:
        """Compute some rows of the kernels, as `ViewKernels.tiles` does."""
        x = self.samples.part(rows)
        for columns in blocks:
            left, right = x, x
            if x.of_pairs:
                left = replace(x, rows=x.rows[:, columns])
            else:
                right = self.training.part(columns)
            for place, formula in self.formulas:
                yield place, columns, astype(formula.similarities(left, right), self.precision)


def pair_kernels(
    formulas: Sequence[tuple[int, Any]], rows: Array | None, training_rows: Array, precision: str
) -> PairKernels:
    """Return the kernels of pairs of a view, prepared; rows are None where they are the training's.

    Their one formula says how rows are taken.
    """
    formula = formulas[0][1]
    training = formula.points(training_rows, None)
    samples = training if rows is None else formula.points(rows, training_rows)
    return PairKernels(formulas, samples, training, precision)


def _block(rows: Array, part: slice) -> Array:
    """Return some rows in float64 where they live, dense."""
    block = rows[part, :]
    return astype(block.toarray() if is_sparse(block) else block, "float64")


def _from(origin: Float, rows: Array) -> Array:
    """Return rows measured from an origin, in float64; sparse ones from zero, which theirs is."""
    return rows_from(to_device(origin, rows, "float64"), rows)


def _nonnegative(rows: Array) -> Array:
    """Return rows with zeros for negative entries."""
    return namespace(rows).where(rows < 0, 0.0, rows)


def _numbers(n_rows: int) -> np.ndarray:
    """Return the numbers of the rows that the median is that of, rising."""
    if n_rows <= MEDIAN_ROWS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, MEDIAN_ROWS, replace=False))


def _looked_at(rows: Array) -> Float:
    """Return the rows that the median is that of, on the host."""
    some = select(rows, _numbers(rows.shape[0]))
    return to_host(some.toarray() if is_sparse(some) else some)


def _median(name: str, distances: Float) -> float:
    """Return the median of distances between two samples, or a stand-in where it is zero."""
    pairs = distances[np.triu_indices(len(distances), 1)]
    median = float(np.median(pairs))
    if median > 0:
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


def _local_scales(rows: Array, training: Array, *, own: bool, known: Any = None) -> Float:
    """Return the distance of each row to its 7th nearest training sample, on the host.

    Where that is zero the nearest sample that is not identical stands in. Of new rows, those that
    are identical to a training sample have its scale.
    """
    n = training.shape[0]
    rank, scales = max(1, min(SCALE_NEIGHBOR, n - 1)), []
    for part in ranges(rows.shape[0], max(1, SEARCH_ENTRIES // n)):
        squared = squared_distances(rows[part, :], training)
        at_rank = _smallest(squared, rank if own else rank - 1)
        if (at_rank <= 0).any():
            positive = np.where(to_host(squared) > 0, to_host(squared), np.inf).min(axis=1)
            at_rank = np.where(at_rank > 0, at_rank, positive)
        found = np.sqrt(at_rank)
        if known is not None:
            xp = namespace(squared)
            twins = to_host(xp.argmin(squared, axis=1), None)
            is_known = to_host(xp.min(squared, axis=1)) <= 0
            found = np.where(is_known, np.asarray(known)[twins], found)
        scales.append(found)
    return np.concatenate(scales)


def _smallest(numbers: Array, rank: int) -> Float:
    """Return the number of a rank, from zero, in every row, on the host."""
    if is_foreign(numbers):
        return to_host(namespace(numbers).sort(numbers, axis=1)[:, rank])
    return np.partition(numbers, rank, axis=1)[:, rank]
