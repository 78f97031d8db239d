"""Recognize variables that a model was clustered on, or that are computed from these.

A variable that was clustered on explains columns of a view up to rounding, whatever its
name is. Variables of many different values are recognized by their ranks or values, and
others by their levels, all of which the columns have to distinguish. Functions of
columns are recognized by `mkclust.explain.derived`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.stats import rankdata

from mkclust.data.encode import TableEncoder
from mkclust.explain.derived import (
    MOST_COLUMNS,
    SAME,
    Columns,
    is_cut,
    is_filled_copy,
    is_merge,
    is_sum,
    log2_orders,
    standard,
)
from mkclust.explain.fitted import features_of, kernel_source, samples_of_views
from mkclust.fit import MultipleKernelClusterer
from mkclust.fit.same_input import only_covered
from mkclust.kernels.kinds import RULES
from mkclust.linalg import select, to_host
from mkclust.linalg.sparse_rows import dense_rows
from mkclust.text import join_words
from mkclust.types import Array, Float

REASON_OF_FUNCTION = (
    "functions of columns that were used to make the clusters (pass labels_ to test "
    "them even so)"
)
NOT_ALL = (
    "Variables that were computed from the clustered ones (cuts, sums, scores) cannot "
    "all be recognized: leave them out."
)
# The columns of a category, and which of these is the level that stands for empty
# cells.
Category = tuple[np.ndarray, int | None]


@dataclass(frozen=True, eq=False)
class ClusteredView:
    """A view that was clustered on."""

    # Columns of the user's table that its columns come from, if named.
    sources: tuple[str, ...]
    samples: np.ndarray  # which samples its rows are
    # Its values, or their ranks within the columns; None if they were not kept.
    rows: Array | None
    # What stands for empty cells in every column, if anything does.
    fills: Float | None = None
    categories: Sequence[Category] = ()

    @property
    def n_columns(self) -> int:
        """Number of columns that were kept."""
        return 0 if self.rows is None else int(self.rows.shape[1])

    def entries(
        self,
        rows: np.ndarray,
        columns: np.ndarray | None = None,
        *,
        unfilled: bool = False,
    ) -> Float:
        """Return some rows of all columns or of some; NaN where fills are, if asked."""
        every: Any = self.rows
        fills = self.fills
        if columns is not None:
            every = select(every, columns, axis=1)
            fills = fills if fills is None else fills[columns]
        entries = np.asarray(to_host(dense_rows(select(every, rows))), dtype=float)
        if not unfilled or fills is None:
            return entries
        # Values that differ by less, relatively, are the same in single precision.
        return np.where(
            np.isclose(entries, fills, rtol=1e-6),
            np.nan,
            entries,
        )

    def columns_among(self, samples: np.ndarray, **options: Any) -> Columns:
        """Return the columns of some rows of the view."""
        return lambda rows, *columns: self.entries(samples[rows], *columns, **options)

    def known(self, values: Float) -> np.ndarray:
        """Return which rows of the view are of samples with a value."""
        return np.flatnonzero(np.isfinite(values[self.samples]))

    def has_copy(self, values: Float) -> bool:
        """Return whether a variable is one of the columns, or of the categories."""
        known = self.known(values)
        values = values[self.samples[known]]
        _, firsts, codes, counts = np.unique(
            values, return_index=True, return_inverse=True, return_counts=True
        )
        n_levels = len(firsts)
        if not self.n_columns or n_levels < 2:
            return False

        # Samples have the same values so often that only these count.
        are_few = 2 * n_levels <= len(codes)
        # Few samples exclude most columns, by a lower limit than `SAME`.
        by_level = np.argsort(codes, kind="stable")
        few = np.unique(by_level[np.linspace(0, len(codes) - 1, 32).astype(int)])
        if are_few:
            few = np.union1d(few, firsts)
        entries = self.entries(known[few])
        likely = _explained(entries, codes[few], are_few) >= 0.98
        n_rivals = entries.shape[1]
        if are_few:  # which agree by chance with columns of few levels only
            steps = np.diff(np.sort(entries, axis=0), axis=0)
            n_rivals = max(np.sum(np.count_nonzero(steps, axis=0) < n_levels), 1)

        entries = self.entries(known, np.flatnonzero(likely))
        is_same = _explained(entries, codes, are_few) >= SAME
        # Bits of evidence against agreement by chance.
        least_bits = 5 + np.log2(n_rivals)
        if not are_few:
            is_certain = is_same & (log2_orders(counts) >= least_bits)
            return bool((is_certain | _same_values(entries, values, least_bits)).any())

        # Some columns together have to tell all levels from each other.
        certain = [
            column[firsts]
            for column in entries.T[is_same]
            if _bits_of_levels(column, codes) >= least_bits
        ]
        return len(set(zip(*certain, strict=True))) == n_levels

    def has_function(self, values: Float) -> bool:
        """Return whether a variable is a function of one column or category."""
        known = self.known(values)
        if not self.n_columns or len(known) < 2:
            return False

        values = values[self.samples[known]]
        return (
            is_filled_copy(values, self.columns_among(known))
            or is_cut(values, self.columns_among(known, unfilled=True))
            or any(self._has_merge(values, known, each) for each in self.categories)
        )

    def _has_merge(self, values: Float, known: np.ndarray, category: Category) -> bool:
        """Return whether a variable merges levels of a category."""
        columns, fill = category
        marks = self.entries(known, columns) != 0
        is_level = marks.any(axis=1)
        if fill is not None:
            is_level &= ~marks[:, fill]
        levels = marks[is_level].argmax(axis=1)
        return is_merge(values[is_level], levels, len(self.categories))


def why_clustered(
    views: Sequence[ClusteredView], names: Sequence[str], values: Sequence[Float]
) -> str:
    """Return why a variable comes from clustered columns; empty if it does not.

    A variable may consist of several columns, as survival does.
    """
    if any(view.has_copy(each) for view in views for each in values):
        return "used to make the clusters"
    if any(not set(names).isdisjoint(view.sources) for view in views):
        return (
            "columns of these names were used to make the clusters (rename those that "
            "hold something else)"
        )
    narrow = [view for view in views if 0 < view.n_columns <= MOST_COLUMNS]
    if any(view.has_function(each) for view in views for each in values) or any(
        _is_sum_of(each, *pair)
        for each in values
        for pair in combinations_with_replacement(narrow, 2)
    ):
        return REASON_OF_FUNCTION
    return ""


def _is_sum_of(values: Float, one: ClusteredView, other: ClusteredView) -> bool:
    """Return whether a variable is a sum of a column each of two views, or of one."""
    common = np.intersect1d(one.samples[one.known(values)], other.samples)
    columns = [
        view.columns_among(np.flatnonzero(np.isin(view.samples, common)))
        for view in (one, other)
    ]
    return len(common) > 0 and is_sum(values[common], *columns)


def clustered_views(labels: Any) -> tuple[list[ClusteredView], str]:
    """Return the views that clusters were made of, and what cannot be known."""
    if not isinstance(labels, MultipleKernelClusterer):
        return [], (
            "Labels alone do not tell which variables were clustered on: pass the "
            "fitted model, or leave these variables out."
        )
    if kernel_source(labels) == "given":
        return [], (
            "The model was fitted on kernels, so that it cannot be known which "
            "variables these were computed from: leave them out."
        )
    columns, rows = _columns_and_rows(labels)
    given = labels._source.given
    of_marks: dict[str, Any] = {}
    fills: dict[str, Float | None] = {}
    categories: dict[str, list[Category]] = {}
    for table, encoder in given.encodings.items():
        # Columns of the user's table, such as ``smoker`` for the mark ``smoker=yes``.
        of_marks |= encoder.sources()
        parts = encoder.parts(table)
        fills[parts[0]] = encoder.medians
        categories[parts[-1]] = _categories(encoder)
    unused = _unused_views(labels)
    used = [name for name in given.names if name not in unused]
    views = []
    for name in used:
        samples, array = rows.get(name, (np.arange(0), None))
        views.append(
            ClusteredView(
                sources=tuple(
                    str(of_marks.get(column, column))
                    for column in columns.get(name, ())
                ),
                samples=samples,
                rows=array,
                fills=fills.get(name),
                categories=categories.get(name, ()),
            )
        )
    unknown = [repr(name) for name in used if name not in rows]
    if unknown:
        return views, (
            f"The model has kept no columns of {join_words(unknown)}, so that it "
            "cannot be known whether variables under other names were clustered on."
        )
    return views, NOT_ALL


def _unused_views(model: MultipleKernelClusterer) -> set[str]:
    """Return the views of which all kernels were set aside: no cluster is of them."""
    aside = set(getattr(model, "set_aside_", ()))
    if kernel_source(model) != "bank":
        return aside
    views = model.bank_.learned_views_
    return {view.name for view in views if aside.issuperset(view.kernel_names)}


def _columns_and_rows(
    model: MultipleKernelClusterer,
) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Return the columns of each view, and its samples with their rows, if kept."""
    everyone = np.arange(len(model.labels_))
    if model._covered is not None:
        everyone = model._covered

    if kernel_source(model) == "bank":
        bank = model.bank_
        observed = samples_of_views(only_covered(model))
        return bank.columns_, {
            view: (everyone[observed.get(view, slice(None))], array)
            for view, array in bank.views_.items()
            if not RULES[bank.rules_[view]].of_pairs
        }
    source = features_of(model)
    rows = source.rows.items()
    columns = source.given.columns
    return columns, {view: (everyone[some], part) for view, (some, part) in rows}


def _categories(encoder: TableEncoder) -> list[Category]:
    """Return the columns of each category in the view of the categories of a table."""
    found = []
    start = 0
    for place, levels in encoder.levels.items():
        columns = np.arange(start, start + len(levels))
        filled = None
        if place in encoder.fill_levels:
            filled = levels.index(encoder.fill_levels[place])
        found.append((columns, filled))
        start += len(levels)
    return found


def _same_values(entries: Float, values: Float, least_bits: float) -> np.ndarray:
    """Return which columns have the values of a variable, up to shift and scale.

    For few samples, the values say more than their ranks.
    """
    shares = np.square(standard(entries).T @ standard(values))
    bits = (1 - len(values) / 2) * np.log2(np.maximum(1 - shares, 1e-12))
    return (shares >= SAME) & (bits >= least_bits)


def _bits_of_levels(column: Float, codes: np.ndarray) -> float:
    """Return the evidence that a column has one value per level, in bits."""
    values, counts = np.unique(column, return_counts=True)
    # The value that each level has, the first of them if single samples have others.
    value_of = column[np.unique(codes, return_index=True)[1]]
    n_levels = (value_of == values[:, None]).sum(axis=1)
    return float(log2_orders(counts) - log2_orders(n_levels))


def _explained(entries: Float, codes: np.ndarray, by_levels: bool) -> Float:
    """Return the share of each column's ranks that levels or ranks explain."""
    given: Any = standard(rankdata(codes))
    if by_levels:
        weights = 1 / np.sqrt(np.bincount(codes))[codes]
        given = csr_array((weights, (np.arange(len(codes)), codes)))
    explained = given.T @ standard(rankdata(entries, axis=0))
    return np.square(np.atleast_2d(explained)).sum(axis=0)
