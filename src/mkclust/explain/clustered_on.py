"""Tell variables that a model was clustered on: by their values, whatever their names are.

A test of numbers sees ranks only, and one of categories levels only. A variable is taken for one
that was clustered on if a column of a view has its ranks, up to rounding, or if the columns of a
view that depend on its level alone tell all of its levels apart, as marks of categories do.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln
from scipy.stats import rankdata

from mkclust.data.encode import TableEncoder
from mkclust.explain.fitted import fitted_samples, kernel_source
from mkclust.kernels.kinds import RULES
from mkclust.linalg import ranges, select, to_host
from mkclust.linalg.sparse_rows import dense_rows
from mkclust.methods import MultipleKernelClusterer
from mkclust.text import join_words
from mkclust.types import Array, Float

# Columns whose ranks on all samples correlate by this much are the same but for rounding. Most are
# told apart by few samples.
SAME_RANKS, FEW_SAMPLES, SAME_RANKS_OF_FEW = 0.999, 32, 0.99
# Some column of a view agrees with a variable by chance in fewer of two to this many variables, or
# else their names have to agree, too.
CERTAIN_BITS = 10
# Entries that are compared at a time.
ENTRIES_AT_ONCE = 1 << 22
REASON = "it was clustered on, so that any test would find a difference"
REASON_OF_NAME = "a column of its name was clustered on, and its values were not kept"


@dataclass(frozen=True, eq=False)
class _View:
    """A view that was clustered on."""

    sources: tuple[str, ...]  # columns of the user's table that its columns come from, if named
    samples: np.ndarray  # which samples its rows are
    rows: Array | None  # its values, or their ranks within the columns; None if they were not kept

    def reason(self, name: str, values: Float) -> str:
        """Return why a variable is not tested if it is one of this view, else nothing."""
        named = [place for place, source in enumerate(self.sources) if source == name]
        if self.rows is None:
            return REASON_OF_NAME if named else ""
        known = np.flatnonzero(np.isfinite(values[self.samples]))
        compared, n_columns = values[self.samples[known]], self.rows.shape[1]
        _, codes, counts = np.unique(compared, return_inverse=True, return_counts=True)
        is_whole = len(known) == np.isfinite(values).sum()
        if not len(known) or (is_whole and len(counts) == 1):
            return ""  # nothing to compare
        bits = (gammaln(len(known) + 1) - gammaln(counts + 1).sum()) / np.log(2)
        every, alike = np.arange(n_columns), np.array(named, dtype=int)
        of_ranks = every if bits >= CERTAIN_BITS + np.log2(n_columns) else alike
        of_levels = every if is_whole else of_ranks
        found = self._has_levels(known, codes, of_levels) or self._has_ranks(known, codes, of_ranks)
        return REASON if found else ""

    def _has_ranks(self, rows: np.ndarray, codes: np.ndarray, columns: np.ndarray) -> bool:
        """Return whether a column has the ranks of a variable, in this or in reverse order."""
        for some, least in (
            (_few(codes, FEW_SAMPLES // 2), SAME_RANKS_OF_FEW),
            (np.arange(len(rows)), SAME_RANKS),
        ):
            expected = _standard_ranks(codes[some, None].astype(float))
            kept = [
                part[np.abs(expected.T @ _standard_ranks(entries))[0] >= least]
                for part, entries in self._parts(rows[some], columns)
            ]
            columns = np.concatenate([columns[:0], *kept])
        return len(columns) > 0

    def _has_levels(self, rows: np.ndarray, codes: np.ndarray, columns: np.ndarray) -> bool:
        """Return whether columns that depend on the level alone tell all levels apart."""
        n_levels = codes.max() + 1
        if 2 * n_levels > len(rows):  # hardly two samples agree: what differs says nothing
            return False
        one_each = np.unique(codes, return_index=True)[1]
        for some in (np.union1d(_few(codes, FEW_SAMPLES), one_each), np.arange(len(rows))):
            first, kept, told = np.searchsorted(some, one_each), [], []
            for part, entries in self._parts(rows[some], columns):
                of_levels = entries[first]
                depends = (entries == of_levels[codes[some]]).all(axis=0)
                depends &= (of_levels != of_levels[0]).any(axis=0) | (n_levels == 1)
                kept.append(part[depends])
                told.append(of_levels[:, depends])
            columns = np.concatenate([columns[:0], *kept])
        return len(columns) > 0 and len(np.unique(np.hstack(told), axis=0)) == n_levels

    def _parts(self, rows: np.ndarray, columns: np.ndarray) -> Iterator[tuple[np.ndarray, Float]]:
        """Yield some columns at a time, with their entries in some rows, on the host."""
        for part in ranges(len(columns), max(1, ENTRIES_AT_ONCE // len(rows))):
            some = columns[part]
            if isinstance(self.rows, np.ndarray):
                entries = np.asarray(self.rows[np.ix_(rows, some)], dtype=float)
            else:
                entries = to_host(dense_rows(select(select(self.rows, rows), some, axis=1)))
            yield some, entries


@dataclass(frozen=True, eq=False)
class ClusteredOn:
    """What is known of the variables that clusters were made of."""

    views: tuple[_View, ...] = ()
    note: str = ""  # what cannot be known, in a sentence

    @classmethod
    def of(cls, labels: Any) -> "ClusteredOn":
        """Return what a fitted model tells of its views, or what labels alone do not tell."""
        if not isinstance(labels, MultipleKernelClusterer):
            return cls(
                note="Labels alone do not tell which variables were clustered on: pass the fitted "
                "model, or leave these variables out."
            )
        source: Any = labels._source
        if kernel_source(labels) == "given":
            return cls(
                note="The model was fitted on kernels, so that it cannot be known which variables "
                "these were computed from: leave them out."
            )
        if kernel_source(labels) == "bank":
            bank, columns = labels.bank_, labels.bank_.columns_
            of_pairs = {view for view, kind in bank.rules_.items() if RULES[kind].of_pairs}
            rows = {
                view: (fitted_samples(labels, view), array)
                for view, array in bank.views_.items()
                if view not in of_pairs
            }
        else:
            columns, rows = source.given.columns, source.rows
            if labels._covered is not None:
                rows = {view: (labels._covered[some], part) for view, (some, part) in rows.items()}
        unknown = [view for view in source.given.names if view not in rows]
        views = (
            _View(
                _sources(columns.get(view, ()), source.given.encodings),
                *rows.get(view, (np.arange(0), None)),
            )
            for view in source.given.names
        )
        note = (
            f"The model has kept no columns of {join_words(map(repr, unknown))}, so that it cannot "
            "be known whether variables under other names were clustered on."
        )
        return cls(tuple(views), note if unknown else "")

    def reason(self, names: Sequence[str], columns: Sequence[Float]) -> str:
        """Return why a variable of one or two columns is not to be tested, nothing if it is."""
        pairs = list(zip(names, columns, strict=True))
        reasons = (view.reason(*pair) for view in self.views for pair in pairs)
        return next(filter(None, reasons), "")


def _sources(columns: Sequence[str], encodings: Mapping[str, TableEncoder]) -> tuple[str, ...]:
    """Return the names of columns, ``smoker`` for the mark ``smoker=yes``."""
    of_marks: dict[str, Hashable] = {}
    for encoding in encodings.values():
        of_marks |= encoding.sources()
    return tuple(str(of_marks.get(column, column)) for column in columns)


def _few(codes: np.ndarray, count: int) -> np.ndarray:
    """Return rising numbers of few samples, spread over the order and over the values."""
    order, one_each = np.argsort(codes, kind="stable"), np.unique(codes, return_index=True)[1]
    spread = [each[np.linspace(0, len(each) - 1, count).astype(int)] for each in (order, one_each)]
    return np.unique(np.concatenate(spread))


def _standard_ranks(entries: Float) -> Float:
    """Return ranks within columns, centered, of length one; zeros if all are equal."""
    ranks = rankdata(entries, axis=0) - (len(entries) + 1) / 2
    lengths = np.sqrt((ranks**2).sum(axis=0))
    return ranks / np.where(lengths > 0, lengths, 1.0)
