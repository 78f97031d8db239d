"""What is done to the rows of a view before its kernels are computed, learned once in a fit.

A preparation holds little more than a number a column, in NumPy's float64. It works where the rows
live and in their precision, leaves them as they are, and forgets the unit of a view: to multiply a
view by a constant changes none of its kernels. Zeros stay zeros, so that sparse rows stay sparse.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from mkclust.linalg import (
    astype,
    copy_array,
    empty,
    is_foreign,
    is_sparse,
    namespace,
    precision_of,
    ranges,
    select,
    set_diagonal,
    to_device,
    to_host,
)
from mkclust.linalg.sparse_rows import (
    as_csr,
    column_moments,
    dense_rows,
    entrywise,
    over_rows,
    positive_counts,
    stored_entries,
    sums_of_rows,
    times_columns,
    with_diagonal,
    zero_rows,
)
from mkclust.samples.distances import safe_norms
from mkclust.text import count
from mkclust.types import Array, Float

# What is looked at of long views: so many rows, of wide ones fewer.
LOOK_ROWS, LOOK_ENTRIES = 1_000, 2**23
# Entries of a view that are brought to float64 at a time.
BLOCK_ENTRIES = 2**22
# A column is loud if it varies more than so many times as much as the middle one.
LOUD = 2.0
# What varies by less than this share of its largest entry is constant, but for rounding.
CONSTANT = 1e-12


class Preparation:
    """What becomes of the rows of a view: a child says what is done to some of them.

    ``SUMMARY`` says it in words that follow the name of a view.
    """

    SUMMARY = "rows as they are"
    # Whether rows are scaled to unit length, so that rows of zeros, which cannot be, say nothing.
    ignores_zeros: bool = False

    @classmethod
    def learn(cls, view: Array) -> "Preparation":
        """Learn from the training rows of a view."""
        return cls()

    def zero_rows(self, rows: Array) -> np.ndarray:
        """Return which rows are zero once they are prepared, on the host."""
        return zero_rows(rows)

    @property
    def changes_rows(self) -> bool:
        """Whether anything is done to rows."""
        return True

    def apply(self, rows: Array) -> Array:
        """Return rows prepared, where they live; the rows themselves where nothing is done."""
        if not self.changes_rows:
            return rows
        if is_sparse(rows):
            return self._prepare(rows)
        prepared = empty(rows.shape, rows, precision_of(rows))
        for part in _parts(rows):
            prepared[part, :] = self._prepare(rows[part, :])
        return prepared

    def _prepare(self, rows: Array) -> Array:
        """Return some rows prepared."""
        raise NotImplementedError(f"{type(self).__name__} must define _prepare")

    def apply_to_training(self, view: Array) -> Array:
        """Return the same of the training rows, all of them."""
        return self.apply(view)

    def __str__(self) -> str:
        """Return what is done, in words."""
        return self.SUMMARY


class RowsAsTheyAre(Preparation):
    """Leave rows alone."""

    @property
    def changes_rows(self) -> bool:
        """Nothing is done."""
        return False


@dataclass(frozen=True)
class LogTfIdf(Preparation):
    """Weigh counts by their logarithm and by the rarity of their column, and rows to unit length.

    An entry x becomes log(1 + x / u) (ln((1 + n) / (1 + f)) + 1), with u the middle one of the
    positive entries and f the number of the n training rows in which its column is not zero.

    Attributes
    ----------
    unit : float
        u.
    rarity : ndarray of shape (n_features,)
        The factor of every column.
    """

    SUMMARY = "logarithms of entries, rare columns count more, rows of unit length"
    ignores_zeros = True

    unit: float
    rarity: Float = field(repr=False)

    @classmethod
    def learn(cls, view: Array) -> "LogTfIdf":
        """Learn how often each column is not zero, and the middle one of the positive entries."""
        looked_at = rows_looked_at(view)
        positive = looked_at[looked_at > 0]
        rarity = np.log((1 + view.shape[0]) / (1 + _positive_counts(view))) + 1
        return cls(float(np.median(positive)) if positive.size else 1.0, rarity)

    def _prepare(self, rows: Array) -> Array:
        """Return weighted rows of unit length; rows of zeros stay zero."""
        xp = namespace(rows)
        logarithms = entrywise(lambda x: xp.log1p(_nonnegative(x) / self.unit), rows)
        weighted = times_columns(logarithms, self.rarity)
        return over_rows(weighted, safe_norms(weighted))


class SquareRootsOfShares(Preparation):
    """Take square roots of the shares of a row's sum: the distances are Hellinger's."""

    SUMMARY = "square roots of the shares of each row"
    ignores_zeros = True

    def _prepare(self, rows: Array) -> Array:
        """Return square roots of shares; rows of zeros stay zero."""
        xp, rows = namespace(rows), entrywise(_nonnegative, rows)
        sums = sums_of_rows(rows) if is_sparse(rows) else xp.sum(rows, axis=1, dtype=xp.float64)
        return entrywise(xp.sqrt, over_rows(rows, xp.where(sums > 0, sums, 1.0)))


@dataclass(frozen=True)
class CalmColumns(Preparation):
    """Bring columns that vary more than twice as much as the middle one down to that.

    No column is ever amplified: what hardly varies is often noise.

    Attributes
    ----------
    factors : ndarray of shape (n_features,)
        What every column is multiplied with, at most one.
    """

    factors: Float = field(repr=False)

    @classmethod
    def learn(cls, view: Array) -> "CalmColumns":
        """Learn the standard deviation of every column."""
        deviations = _column_deviations(view)
        varying = deviations[deviations > 0]
        if not varying.size or not np.all(np.isfinite(deviations)):
            return cls(np.ones(view.shape[1]))
        most = LOUD * float(np.median(varying))
        loud = deviations > most
        return cls(np.where(loud, most / np.where(loud, deviations, 1.0), 1.0))

    @property
    def changes_rows(self) -> bool:
        """Whether any column is loud."""
        return bool(np.any(self.factors < 1))

    def _prepare(self, rows: Array) -> Array:
        """Return rows with no loud column."""
        return times_columns(rows, self.factors)

    def __str__(self) -> str:
        """Return how many columns are brought down."""
        loud = int(np.sum(self.factors < 1))
        if not loud:
            return self.SUMMARY
        columns = "column that varies" if loud == 1 else "columns that vary"
        return f"{loud} {columns} much more than the others brought down"


class LinkedToItself(Preparation):
    """Link every training sample of a graph to itself, by its largest link."""

    SUMMARY = "every sample linked to itself by its largest link"

    @property
    def changes_rows(self) -> bool:
        """New samples are no columns, and keep their links."""
        return False

    def apply_to_training(self, view: Array) -> Array:
        """Return the links with a new diagonal; a sample without any link has that to itself."""
        if is_sparse(view):
            largest = view.max(axis=1).toarray()
            return with_diagonal(view, np.where(largest > 0, largest, 1.0))
        xp, links = namespace(view), copy_array(view)
        largest = xp.max(links, axis=1)
        set_diagonal(links, xp.where(largest > 0, largest, xp.ones_like(largest)))
        return links


class UnitRows(Preparation):
    """Scale rows to unit length: their inner products are cosines."""

    SUMMARY = "rows of unit length"
    ignores_zeros = True

    def _prepare(self, rows: Array) -> Array:
        """Return rows of unit length; rows of zeros stay zero."""
        return over_rows(rows, safe_norms(rows))


@dataclass(frozen=True)
class Marks(Preparation):
    """Mark which category a row has in every column: the cosine is the share of equal ones.

    Attributes
    ----------
    levels : tuple of ndarray or None
        The distinct values of every column; None for rows that are marks already. A new row with
        another value has no mark for that column.
    """

    levels: tuple[Float, ...] | None = field(repr=False)

    @classmethod
    def learn(cls, view: Array) -> "Marks":
        """Learn the distinct values of every column."""
        if are_marks(rows_looked_at(view)):
            return cls(None)
        return cls(tuple(np.unique(to_host(view[:, j])) for j in range(view.shape[1])))

    @property
    def changes_rows(self) -> bool:
        """Marks are left alone."""
        return self.levels is not None

    def apply(self, rows: Array) -> Array:
        """Return one column for every value of every column, where rows live."""
        if self.levels is None:
            return rows
        xp, precision = namespace(rows), precision_of(rows)
        columns = [
            astype(rows[:, j : j + 1] == to_device(levels, rows, precision)[None, :], precision)
            for j, levels in enumerate(self.levels)
        ]
        return xp.concat(columns, axis=1)

    def zero_rows(self, rows: Array) -> np.ndarray:
        """Return which rows have no mark."""
        return zero_rows(self.apply(rows))

    def __str__(self) -> str:
        """Return how many categories there are."""
        if self.levels is None:
            return self.SUMMARY
        n_levels = sum(map(len, self.levels))
        categories = "1 category" if n_levels == 1 else f"{n_levels:,} categories"
        return f"marks of the {categories} in {count(len(self.levels), 'column')}"


@dataclass(frozen=True)
class Preprocessed(Preparation):
    """Rows by a fitted transformer of scikit-learn's, and then as their kind asks for.

    Attributes
    ----------
    transformer : transformer
        Fitted on the training rows; it works on the host.
    then : Preparation
        What is done to the rows that it returns.
    """

    transformer: Any
    then: Preparation = field(default_factory=RowsAsTheyAre)

    @classmethod
    def fitted(cls, transformer: Any, name: str, view: Array) -> "Preprocessed":
        """Fit a clone of a transformer on the training rows of a view."""
        try:
            preprocessed = cls(clone(transformer).fit(_on_host(view)))
            rows = preprocessed.transform(view[:1, :])
        except (ValueError, TypeError) as error:
            raise ValueError(f"View {name!r}, preprocess={transformer!r}: {error}") from error
        if len(rows.shape) != 2 or rows.shape[0] != 1 or not rows.shape[1]:
            raise ValueError(
                f"View {name!r}, preprocess={transformer!r}: one row becomes an array of shape "
                f"{tuple(rows.shape)}; pass a transformer that returns a row of features for each."
            )
        return preprocessed

    def transform(self, rows: Array) -> Array:
        """Return rows by the transformer alone, where and in what precision they were."""
        transformed, precision = self.transformer.transform(_on_host(rows)), precision_of(rows)
        stays_sparse = is_sparse(transformed) and not is_foreign(rows)
        made = as_csr(transformed) if stays_sparse else dense_rows(transformed)
        if not np.isfinite(stored_entries(made)).all():
            raise ValueError(
                f"{self.transformer!r} makes rows with NaN or infinite entries of these; pass "
                "another transformer, or other rows."
            )
        return made.astype(precision) if stays_sparse else to_device(made, rows, precision)

    def apply(self, rows: Array) -> Array:
        """Return rows prepared, where they live."""
        return self.then.apply(self.transform(rows))

    @property
    def ignores_zeros(self) -> bool:  # type: ignore[override]
        """Whether what is done then scales rows to unit length."""
        return self.then.ignores_zeros

    def zero_rows(self, rows: Array) -> np.ndarray:
        """Return which rows are zero once they are prepared, on the host."""
        return self.then.zero_rows(self.transform(rows))

    def apply_to_training(self, view: Array) -> Array:
        """Return the same of the training rows, all of them."""
        return self.then.apply_to_training(self.transform(view))

    def __str__(self) -> str:
        """Return what is done first, and what then."""
        text = " ".join(repr(self.transformer).split())
        return f"rows by {text}" + (f", {self.then}" if self.then.changes_rows else "")


def are_marks(rows: Float) -> bool:
    """Return whether columns fall into groups of two or more with one mark in every row."""
    mark = rows.max()
    if not mark > 0 or not np.all((rows == 0) | (rows == mark)):
        return False
    # A group may end where all rows have as many marks so far as there are groups.
    marks = np.cumsum(rows > 0, axis=1)
    ends = np.flatnonzero((marks == marks[0]).all(axis=0))
    end = -1
    for group in range(1, int(marks[0, -1]) + 1):
        choices = ends[(marks[0, ends] == group) & (ends >= end + 2)]
        if not len(choices):
            return False
        end = int(choices[0])
    return bool(ends.size and ends[-1] == rows.shape[1] - 1 and marks[0, -1] > 0)


def rows_looked_at(view: Array, numbers: np.ndarray | None = None) -> Float:
    """Return the rows of a view that are looked at to learn about it, on the host in float64."""
    numbers = numbers_looked_at(*view.shape) if numbers is None else numbers
    rows = view if len(numbers) == view.shape[0] else select(view, numbers)
    return to_host(dense_rows(rows))


def numbers_looked_at(n_rows: int, n_columns: int) -> np.ndarray:
    """Return the numbers of these rows, rising: at most 1,000, drawn with a fixed seed."""
    count = max(1, min(LOOK_ROWS, LOOK_ENTRIES // max(1, n_columns)))
    if n_rows <= count:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, count, replace=False))


def _blocks(view: Array) -> Iterator[Array]:
    """Yield the rows of a view in float64 where they live, some at a time."""
    for part in _parts(view):
        yield astype(view[part, :], "float64")


def _parts(view: Array) -> Iterator[slice]:
    """Cut the rows of a view into parts that do not take much memory."""
    return ranges(view.shape[0], max(1, BLOCK_ENTRIES // max(1, view.shape[1])))


def _positive_counts(view: Array) -> Float:
    """Return in how many rows each column is positive."""
    if is_sparse(view):
        return positive_counts(view)
    xp = namespace(view)
    counts = (xp.sum(xp.astype(block > 0, xp.float64), axis=0) for block in _blocks(view))
    return to_host(sum(counts))


def _column_deviations(view: Array) -> Float:
    """Return the standard deviation of every column, zero where it is constant but for rounding."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares, largest = column_moments(view) if is_sparse(view) else _column_moments(view)
        deviations = np.sqrt(squares / view.shape[0])
    return np.where(deviations > CONSTANT * largest, deviations, 0.0)


def _column_moments(view: Array) -> tuple[Float, Float]:
    """Return the sum of squares of every column about its mean, and its largest entry."""
    xp, n = namespace(view), view.shape[0]
    means = sum(xp.sum(block, axis=0) for block in _blocks(view)) / n
    squares = sum(xp.sum((block - means) ** 2, axis=0) for block in _blocks(view))
    largest = [to_host(xp.max(xp.abs(block), axis=0)) for block in _blocks(view)]
    return to_host(squares), np.max(largest, axis=0)


def _nonnegative(rows: Array) -> Array:
    """Return rows with zeros for negative entries, which new rows may hold."""
    xp = namespace(rows)
    return xp.where(rows < 0, xp.zeros_like(rows), rows)  # what is no number stays none


def _on_host(rows: Array) -> Any:
    """Return rows as transformers take them, in their precision."""
    return to_host(rows, None) if is_foreign(rows) else rows
