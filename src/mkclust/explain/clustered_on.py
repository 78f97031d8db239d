"""Recognize variables that a model was clustered on by their values, whatever their names are.

Such a variable explains columns of a view up to rounding: their ranks or values if hardly two
samples have the same value, and else their levels, which these columns have to tell apart.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln
from scipy.stats import rankdata

from mkclust.explain.fitted import kernel_source, observed_samples
from mkclust.kernels.kinds import RULES
from mkclust.linalg import select, to_host
from mkclust.linalg.sparse_rows import dense_rows
from mkclust.methods import MultipleKernelClusterer
from mkclust.methods.same_input import only_covered
from mkclust.text import join_words
from mkclust.types import Array, Float

# Share of a column's variance that the same variable explains; few samples exclude most columns.
SAME, FEW_SAMPLES, SAME_OF_FEW = 0.998, 32, 0.98
# Bits of evidence against agreement by chance from which names need not agree.
CERTAIN_BITS = 5
REASON = "used to make the clusters"
REASON_OF_NAME = "a column of this name was used to make the clusters, and its values were not kept"


@dataclass(frozen=True, eq=False)
class ClusteredView:
    """A view that was clustered on."""

    sources: tuple[str, ...]  # columns of the user's table that its columns come from, if named
    samples: np.ndarray  # which samples its rows are
    rows: Array | None  # its values, or their ranks within the columns; None if they were not kept

    def _entries(self, samples: np.ndarray, columns: np.ndarray | None = None) -> Float:
        rows: Any = self.rows if columns is None else select(self.rows, columns, axis=1)
        return np.asarray(to_host(dense_rows(select(rows, samples))), dtype=float)

    def reason(self, name: str, values: Float) -> str:
        """Return why a variable is not tested if it is one of this view, else nothing."""
        named = np.flatnonzero([source == name for source in self.sources])
        if self.rows is None:
            return REASON_OF_NAME if len(named) else ""
        known = np.flatnonzero(np.isfinite(values[self.samples]))
        values = values[self.samples[known]]
        _, firsts, codes, counts = np.unique(
            values, return_index=True, return_inverse=True, return_counts=True
        )
        if len(counts) < 2:  # on the samples that were kept
            entries = self._entries(known, named)
            return REASON if entries.size and not np.ptp(entries, axis=0).any() else ""
        by_levels = 2 * len(counts) <= len(codes)
        few = np.argsort(codes, kind="stable")
        few = few[np.linspace(0, len(few) - 1, FEW_SAMPLES).astype(int)]
        few = np.union1d(few, firsts) if by_levels else np.unique(few)
        entries = self._entries(known[few])
        columns = np.flatnonzero(_explained(entries, codes[few], by_levels) >= SAME_OF_FEW)
        n_rivals = entries.shape[1]
        if by_levels:  # only columns with as few levels could agree by chance
            n_levels = 1 + np.count_nonzero(np.diff(np.sort(entries, axis=0), axis=0), axis=0)
            n_rivals = max(np.count_nonzero(n_levels <= len(counts)), 1)
        entries = self._entries(known, columns)
        bits = (gammaln(len(known) + 1) - gammaln(counts + 1).sum()) / np.log(2)
        is_same = _explained(entries, codes, by_levels) >= SAME
        is_certain = is_same & (bits >= CERTAIN_BITS + np.log2(n_rivals))
        if not by_levels:  # the values say more than the ranks if samples are few
            shares = np.square(_standard(entries).T @ _standard(values))
            bits = (1 - len(known) / 2) * np.log2(np.maximum(1 - shares, 1e-12))
            is_certain |= (shares >= SAME) & (bits >= CERTAIN_BITS + np.log2(n_rivals))
        found = entries[:, is_certain | (is_same & np.isin(columns, named))]
        n_told = len(np.unique(found[firsts], axis=0)) if by_levels else len(firsts)
        return REASON if found.shape[1] and n_told == len(firsts) else ""


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
        covered, observed = labels._covered, observed_samples(only_covered(labels))
        everyone = np.arange(len(labels.labels_)) if covered is None else covered
        rows = {
            view: (everyone[observed.get(view, slice(None))], array)
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


def _explained(entries: Float, codes: np.ndarray, by_levels: bool) -> Float:
    """Return the share of the variance of each column's ranks that levels, or ranks, explain."""
    given: Any = _standard(rankdata(codes))
    if by_levels:
        given = csr_array((1 / np.sqrt(np.bincount(codes))[codes], (np.arange(len(codes)), codes)))
    return np.square(np.atleast_2d(given.T @ _standard(rankdata(entries, axis=0)))).sum(axis=0)


def _standard(values: Float) -> Float:
    """Return columns that are centered, of length one; zeros if all of its values are equal."""
    centered = values - values.mean(axis=0)
    lengths = np.sqrt((centered**2).sum(axis=0))
    return centered / np.where(lengths > 0, lengths, 1.0)
