"""Tell variables that a model was clustered on: by their values, whatever their names are.

A variable is taken for one that was clustered on if it explains the ranks of columns of a view, up
to rounding: by its own ranks if hardly two samples have the same value, and else by its levels,
which these columns have to tell apart.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln
from scipy.stats import rankdata

from mkclust.explain.fitted import fitted_samples, kernel_source
from mkclust.kernels.kinds import RULES
from mkclust.linalg import select, to_host
from mkclust.linalg.sparse_rows import dense_rows
from mkclust.methods import MultipleKernelClusterer
from mkclust.text import join_words
from mkclust.types import Array, Float

# Share of the variance of a column's ranks that a variable explains if they are the same but for
# rounding. Most columns are excluded by few samples.
SAME, FEW_SAMPLES, SAME_OF_FEW = 0.998, 32, 0.98
# Some column of a view agrees with a variable by chance in fewer of two to this many variables, or
# else their names have to agree, too.
CERTAIN_BITS = 10
REASON = "it was clustered on, so that any test would find a difference"
REASON_OF_NAME = "a column of its name was clustered on, and its values were not kept"


@dataclass(frozen=True, eq=False)
class ClusteredView:
    """A view that was clustered on."""

    sources: tuple[str, ...]  # columns of the user's table that its columns come from, if named
    samples: np.ndarray  # which samples its rows are
    rows: Array | None  # its values, or their ranks within the columns; None if they were not kept

    def reason(self, name: str, values: Float) -> str:
        """Return why a variable is not tested if it is one of this view, else nothing."""
        columns = np.flatnonzero([source == name for source in self.sources])
        if self.rows is None:
            return REASON_OF_NAME if len(columns) else ""
        known = np.flatnonzero(np.isfinite(values[self.samples]))
        compared = values[self.samples[known]]
        _, codes, counts = np.unique(compared, return_inverse=True, return_counts=True)
        bits = (gammaln(len(known) + 1) - gammaln(counts + 1).sum()) / np.log(2)
        if bits >= CERTAIN_BITS + np.log2(self.rows.shape[1]):
            columns = np.arange(self.rows.shape[1])
        return REASON if len(known) and self._is_explained(known, codes, columns) else ""

    def _is_explained(self, known: np.ndarray, codes: np.ndarray, columns: np.ndarray) -> bool:
        """Return whether some columns are those of a variable, on the samples that it has."""
        order, one_each = np.argsort(codes, kind="stable"), np.unique(codes, return_index=True)[1]
        by_levels = 2 * len(one_each) <= len(codes)
        few = order[np.linspace(0, len(order) - 1, FEW_SAMPLES).astype(int)]
        few = np.union1d(few, one_each) if by_levels else np.unique(few)
        entries = _on_host(select(select(self.rows, known[few]), columns, axis=1))
        columns = columns[_explained(entries, codes[few], by_levels) >= SAME_OF_FEW]
        if not len(columns):
            return False
        entries = _on_host(select(select(self.rows, columns, axis=1), known))
        entries = entries[:, _explained(entries, codes, by_levels) >= SAME]
        told = np.unique(entries[one_each], axis=0) if by_levels else one_each
        return entries.shape[1] > 0 and len(told) == len(one_each)


def clustered_views(labels: Any) -> tuple[list[ClusteredView], str]:
    """Return the views that clusters were made of, and what cannot be known, in a sentence."""
    if not isinstance(labels, MultipleKernelClusterer):
        return [], (
            "Labels alone do not tell which variables were clustered on: pass the fitted model, or "
            "leave these variables out."
        )
    source: Any = labels._source
    if kernel_source(labels) == "given":
        return [], (
            "The model was fitted on kernels, so that it cannot be known which variables these "
            "were computed from: leave them out."
        )
    if kernel_source(labels) == "bank":
        bank, columns = labels.bank_, labels.bank_.columns_
        rows = {
            view: (fitted_samples(labels, view), array)
            for view, array in bank.views_.items()
            if not RULES[bank.rules_[view]].of_pairs
        }
    else:
        columns, rows = source.given.columns, source.rows
        if labels._covered is not None:
            rows = {view: (labels._covered[some], part) for view, (some, part) in rows.items()}
    # Columns of the user's table, such as ``smoker`` for the mark ``smoker=yes``.
    of_marks: dict[str, Any] = {}
    for encoding in source.given.encodings.values():
        of_marks |= encoding.sources()
    views = [
        ClusteredView(
            tuple(str(of_marks.get(column, column)) for column in columns.get(view, ())),
            *rows.get(view, (np.arange(0), None)),
        )
        for view in source.given.names
    ]
    unknown = [repr(view) for view in source.given.names if view not in rows]
    note = (
        f"The model has kept no columns of {join_words(unknown)}, so that it cannot be known "
        "whether variables under other names were clustered on."
    )
    return views, note if unknown else ""


def _on_host(rows: Any) -> Float:
    return np.asarray(to_host(dense_rows(rows)), dtype=float)


def _explained(entries: Float, codes: np.ndarray, by_levels: bool) -> Float:
    """Return the share of the variance of each column's ranks that levels, or ranks, explain."""
    ranks, given = _standard_ranks(entries), _standard_ranks(codes[:, None])
    if codes.max() == 0:  # a constant has no variance, and explains constants
        return np.where(ranks.any(axis=0), 0.0, 1.0)
    if by_levels:
        given = csr_array((1 / np.sqrt(np.bincount(codes))[codes], (np.arange(len(codes)), codes)))
    return np.square(given.T @ ranks).sum(axis=0)


def _standard_ranks(entries: Float) -> Float:
    """Return ranks within columns, centered, of length one; zeros if all are equal."""
    ranks = rankdata(entries, axis=0) - (len(entries) + 1) / 2
    lengths = np.sqrt((ranks**2).sum(axis=0))
    return ranks / np.where(lengths > 0, lengths, 1.0)
