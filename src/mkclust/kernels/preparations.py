"""Preparations of the rows of a view before its kernels are computed.

A preparation is learned once in a fit. It holds little more than a number per column,
in NumPy's float64. It works where the rows live and in their precision, and does not
change them in place. To multiply a view by a constant changes none of its kernels.
Zeros stay zeros, so that sparse rows stay sparse.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import diags_array, issparse
from scipy.stats import skew
from sklearn.base import clone
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.sparsefuncs import count_nonzero, mean_variance_axis, min_max_axis

from mkclust.data.distances import safe_norms, some_rows
from mkclust.kernels.formulas import nonnegative
from mkclust.linalg import (
    arrays_to_host,
    as_csr,
    astype,
    copy_array,
    dense_rows,
    divide_rows,
    entrywise,
    is_foreign,
    namespace,
    precision_of,
    scale_columns,
    select,
    set_diagonal,
    stored_entries,
    to_device,
    to_host,
    zero_rows,
)
from mkclust.types import Array, Float


class Preparation:
    """The preparation of the rows of a view; the base class leaves them unchanged."""

    text: str = "rows as they are"  # the preparation in words
    # Whether rows are scaled to unit length: then rows of zeros carry no information.
    ignores_zeros: bool = False

    @classmethod
    def learn(cls, view: Array) -> "Preparation":
        """Learn from the training rows of a view."""
        return cls()

    def apply(self, rows: Array) -> Array:
        """Return prepared rows, where they live, or the rows as they are."""
        return rows

    def apply_to_training(self, view: Array) -> Array:
        """Return the same for the training rows, all of them."""
        return self.apply(view)

    def zero_rows(self, rows: Array) -> np.ndarray:
        """Return which rows are zero after preparation, on the host."""
        return zero_rows(self.apply(rows))

    @property
    def changes_rows(self) -> bool:
        """Whether it does anything to rows."""
        return type(self).apply is not Preparation.apply

    def __str__(self) -> str:
        return self.text


class UnitRows(Preparation):
    """Scale rows to unit length: their inner products are cosines."""

    text = "rows of unit length"
    ignores_zeros = True

    def apply(self, rows: Array) -> Array:
        """Return rows of unit length."""
        return divide_rows(rows, safe_norms(rows))


@dataclass(frozen=True)
class LogTfIdf(Preparation):
    """Weigh counts by their logarithm and by the rarity of their column, in unit rows.

    An entry x becomes log(1 + x / u) (ln((1 + n) / (1 + f)) + 1), with u the median of
    the positive entries and f the number of the n training rows in which its column is
    not zero.
    """

    text = "logarithms of entries, rare columns count more, rows of unit length"
    ignores_zeros = True
    unit: float  # u
    rarity: Float = field(repr=False)  # the factor of every column

    @classmethod
    def learn(cls, view: Array) -> "LogTfIdf":
        """Learn the unit of entries, and the rarity of columns."""
        sampled = sampled_rows(view)
        positive = sampled[sampled > 0]
        if issparse(view):
            counts = count_nonzero(view.maximum(0), axis=0)
        else:
            counts = to_host(namespace(view).sum(astype(view > 0, "float64"), axis=0))
        rarity = np.log((1 + view.shape[0]) / (1 + counts)) + 1
        unit = float(np.median(positive)) if positive.size else 1.0
        return cls(unit, rarity)

    def apply(self, rows: Array) -> Array:
        """Return weighted rows of unit length."""
        xp = namespace(rows)
        logarithms = entrywise(lambda x: xp.log1p(nonnegative(x) / self.unit), rows)
        weighted = scale_columns(logarithms, self.rarity)
        return divide_rows(weighted, safe_norms(weighted))


class SquareRootsOfShares(Preparation):
    """Take square roots of the shares of a row's sum: the distances are Hellinger's."""

    text = "square roots of the shares of each row"
    ignores_zeros = True

    def apply(self, rows: Array) -> Array:
        """Return the roots of the shares of rows."""
        xp = namespace(rows)
        rows = entrywise(nonnegative, rows)
        sums = row_totals(rows)
        return entrywise(xp.sqrt, divide_rows(rows, xp.where(sums > 0, sums, 1.0)))


def row_totals(rows: Array) -> Array:
    """Return the sums of rows, in float64."""
    if issparse(rows):
        return np.asarray(rows.sum(axis=1, dtype=np.float64)).reshape(-1)
    xp = namespace(rows)
    return xp.sum(rows, axis=1, dtype=xp.float64)


def column_deviations(view: Array, limits: Float | None = None) -> Float:
    """Return the deviations of columns, clipped at limits (2, d); zero if constant."""
    with np.errstate(over="ignore", invalid="ignore"):
        if issparse(view):
            deviations = np.sqrt(mean_variance_axis(view.astype(np.float64), axis=0)[1])
            largest = np.max(np.abs(min_max_axis(view, axis=0)), axis=0)
        else:
            xp = namespace(view)
            rows = astype(view, "float64")
            if limits is not None:
                low, high = (to_device(each, rows)[None, :] for each in limits)
                rows = xp.clip(rows, low, high)
            deviations = to_host(xp.std(rows, axis=0))
            largest = to_host(xp.max(xp.abs(view), axis=0))
    # Smaller ones are rounding of the entries.
    return np.where(deviations > 1e-12 * largest, deviations, 0.0)


@dataclass(frozen=True)
class ScaleColumns(Preparation):
    """Divide every column by its standard deviation, with extreme entries clipped."""

    factors: Float = field(repr=False)  # what every column is multiplied with
    text = "columns divided by their spread"

    @staticmethod
    def spreads(view: Array) -> Float:
        """Return the deviation of every column between the first and last percent."""
        limits = np.quantile(sampled_rows(view), (0.01, 0.99), axis=0)
        return column_deviations(dense_rows(view), limits)

    @classmethod
    def learn(cls, view: Array) -> Preparation:
        """Learn the factor of every column, one for constant columns."""
        spreads = cls.spreads(view)
        spreads = np.where(spreads > 0, spreads, column_deviations(view))
        is_usable = (spreads > 0) & np.isfinite(spreads)
        return cls(1 / np.where(is_usable, spreads, 1.0))

    def apply(self, rows: Array) -> Array:
        """Return rows with scaled columns."""
        return scale_columns(rows, self.factors)


class Standard(ScaleColumns):
    """Divide every column by its standard deviation."""

    text = "columns divided by their standard deviation"
    spreads = staticmethod(column_deviations)


class Robust(ScaleColumns):
    """Divide every column by the distance between its quartiles."""

    text = "columns divided by the distance between their quartiles"

    @staticmethod
    def spreads(view: Array) -> Float:
        """Return distances between quartiles, in those of a normal distribution."""
        low, high = np.quantile(sampled_rows(view), (0.25, 0.75), axis=0)
        return (high - low) / 1.349


class Logarithm(ScaleColumns):
    """Take log2(x + 1), then divide every column by its standard deviation."""

    text = "log2(x + 1), columns divided by their standard deviation"

    @classmethod
    def learn(cls, view: Array) -> Preparation:
        """Learn the deviations of logarithms."""
        return super().learn(_logarithms(view))

    spreads = staticmethod(column_deviations)

    def apply(self, rows: Array) -> Array:
        """Return scaled logarithms."""
        return super().apply(_logarithms(rows))


def _logarithms(rows: Array) -> Array:
    """Return log2(x + 1), which keeps zeros; negative entries become zeros."""
    xp = namespace(rows)
    return entrywise(lambda x: xp.log2(nonnegative(x) + 1), rows)


def are_strongly_skewed(view: Array) -> bool:
    """Return whether most columns have long tails of large values, unlike logarithms.

    Entries are not negative, and the median skewness of the columns is large, but at
    most half as large after log2(x + 1).
    """
    before, after = skewness(sampled_rows(view))
    # The skewness of exponential numbers, which a normal distribution and most
    # measurements of a laboratory are far from, is 2; that of expression across
    # patients is 2 to 10.
    strong_skewness = 1.5
    return before >= strong_skewness and abs(after) <= before / 2


def skewness(rows: Float) -> tuple[float, float]:
    """Return the median skewness of columns before and after log2(x + 1), or zeros."""
    varying = rows[:, np.ptp(rows, axis=0) > 0]
    # Fewer rows than ten do not show how a column is distributed.
    if len(rows) < 10 or not varying.size or rows.min() < 0:
        return 0.0, 0.0
    before = np.median(skew(varying, axis=0))
    after = np.median(skew(np.log2(varying + 1), axis=0))
    return float(before), float(after)


class LimitColumnScale(ScaleColumns):
    """Scale columns down that vary more than twice as much as the median column."""

    text = "columns that vary much more than the others scaled down"

    @classmethod
    def learn(cls, view: Array) -> Preparation:
        """Learn which columns vary too much, and by how much."""
        deviations = column_deviations(view)
        if not deviations.any() or not np.all(np.isfinite(deviations)):
            return Preparation()
        most = 2 * float(np.median(deviations[deviations > 0]))
        if np.all(deviations <= most):
            return Preparation()
        return cls(most / np.maximum(deviations, most))


class KeepColumnScale(ScaleColumns):
    """Leave columns as they are: the spread of each says how much it matters."""

    @classmethod
    def learn(cls, view: Array) -> Preparation:
        """Return the preparation that does nothing."""
        return Preparation()


class LinkedToItself(Preparation):
    """Link every training sample of a graph to itself, by its largest link."""

    text = "every sample linked to itself by its largest link"

    def apply_to_training(self, view: Array) -> Array:
        """Return links with a diagonal."""
        if issparse(view):
            rows = view.max(axis=1)
            largest = rows.toarray().reshape(-1)
            change = np.where(largest > 0, largest, 1.0) - view.diagonal()
            return as_csr(view + diags_array(change, dtype=view.dtype))
        xp = namespace(view)
        links = copy_array(view)
        largest = xp.max(links, axis=1)
        set_diagonal(links, xp.where(largest > 0, largest, xp.ones_like(largest)))
        return links


@dataclass(frozen=True)
class Preprocessed(Preparation):
    """Transform rows by a fitted transformer, then prepare them by their kind."""

    transformer: Any  # fitted on the training rows; it works on the host
    then: Preparation  # applied to the rows that it returns

    @classmethod
    def fitted(cls, transformer: Any, name: str, view: Array) -> "Preprocessed":
        """Fit a copy of a transformer to the training rows, or say why it fails."""
        try:
            fitted = clone(transformer).fit(arrays_to_host(view))
            preprocessed = cls(fitted, Preparation())
            first = preprocessed.transform(view[:1, :])
            shape = tuple(first.shape)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"View {name!r}, preprocess={transformer!r}: {error}"
            ) from error
        if len(shape) != 2 or shape[0] != 1 or not shape[1]:
            raise ValueError(
                f"View {name!r}, preprocess={transformer!r}: one row becomes an array "
                f"of shape {shape}; pass a transformer that returns a row of features "
                "for each."
            )
        return preprocessed

    def transform(self, rows: Array) -> Array:
        """Return rows by the transformer alone, in their form and number type."""
        made = self.transformer.transform(arrays_to_host(rows))
        if issparse(made):
            made = dense_rows(made) if is_foreign(rows) else as_csr(made)
        if not np.isfinite(stored_entries(made)).all():
            raise ValueError(
                f"{self.transformer!r} makes rows with NaN or infinite entries of "
                "these; pass another transformer, or other rows."
            )
        return to_device(made, rows, precision_of(rows))

    def apply(self, rows: Array) -> Array:
        """Return transformed, then prepared rows."""
        return self.then.apply(self.transform(rows))

    @property
    def ignores_zeros(self) -> bool:  # type: ignore[override]
        """Whether rows of zeros carry no information."""
        return self.then.ignores_zeros

    def __str__(self) -> str:
        then = f", {self.then}" if self.then.changes_rows else ""
        return f"rows by {' '.join(repr(self.transformer).split())}{then}"


class OneHot(Preparation):
    """Encode categories of columns: the cosine of rows is the share of equal ones."""

    @classmethod
    def learn(cls, view: Array) -> Preparation:
        """Learn the categories of columns, unless they are encoded already."""
        if is_one_hot(sampled_rows(view)):
            return Preparation()
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        return Preprocessed(encoder.fit(to_host(view)), Preparation())


def is_one_hot(rows: Float) -> bool:
    """Return whether columns form groups of two or more with a single one per row."""
    one = rows.max()
    if not one > 0 or not np.all((rows == 0) | (rows == one)):
        return False
    # A group may end at a column up to which all rows have as many ones as there are
    # groups.
    ones = np.cumsum(rows > 0, axis=1)
    ends = np.flatnonzero((ones == ones[0]).all(axis=0))
    end = -1
    for group in range(1, int(ones[0, -1]) + 1):
        choices = ends[(ones[0, ends] == group) & (ends >= end + 2)]
        if not len(choices):
            return False
        end = choices[0]
    return bool(ends.size and ends[-1] == rows.shape[1] - 1)


def sampled_indices(view: Array) -> np.ndarray:
    """Return indices of at most 1,000 rows of a view to learn from, always the same."""
    fitting = 2**23 // max(1, view.shape[1])
    return some_rows(np.arange(view.shape[0]), max(1, min(1_000, fitting)))


def sampled_rows(view: Array) -> Float:
    """Return these rows, on the host in float64."""
    indices = sampled_indices(view)
    if len(indices) < view.shape[0]:
        view = select(view, indices)
    return to_host(dense_rows(view))
