"""Recognize variables that are computed from one or two columns.

A variable is recognized if it is a function of the columns up to single exceptions, and
if chance would hardly make it one. What only depends on a column, however closely, is
not: sex is no function of height.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import betaln, gammaln
from scipy.stats import entropy, rankdata
from sklearn.metrics.cluster import contingency_matrix

from mkclust.types import Float

# Evidence against a function by chance, in bits, beyond that for the choice of columns.
CERTAIN_BITS = 10
# Samples that are compared first, to exclude most columns; also the most levels of
# cuts.
FEW_SAMPLES = 64
# Values lie on a line of the column if they differ from it by this share of their
# interquartile range, and are those of the column if this share of them does.
ON_LINE, LEAST_SHARE = 0.01, 0.7
# Of fewer samples, lines and sums are not recognized.
FEWEST_SAMPLES = 5
# Variance of a variable, and of its ranks, that the sum of two columns explains.
SAME = 0.998
# Numbers of columns and of samples up to which sums of two columns are looked for.
MOST_COLUMNS, MOST_SAMPLES = 1000, 256


# The entries of some samples, of some columns or of all.
Columns = Callable[..., Float]


def is_cut(values: Float, take: Columns) -> bool:
    """Return whether a variable of few levels divides a column into intervals.

    Samples with NaN in a column do not count.

    >>> age = np.random.default_rng(0).normal(60, 15, size=(100, 2)).round()
    >>> take = columns_of(age)
    >>> is_cut(age[:, 1] // 10, take), is_cut(np.arange(100) % 2, take)
    (True, False)
    """
    codes, counts = _levels(values)
    n_levels = len(counts)
    if not 2 <= n_levels <= FEW_SAMPLES or log2_orders(counts) < CERTAIN_BITS:
        return False

    # Twice as many as intervals may have, so that other columns have more of these.
    few = _some_of_each(codes, max(FEW_SAMPLES // n_levels, 4))
    entries = take(few)
    least = CERTAIN_BITS + np.log2(entries.shape[1])
    order = np.argsort(entries, axis=0, kind="stable")  # levels rise among ties
    is_known = np.isfinite(np.take_along_axis(entries, order, axis=0))  # NaN come last
    changes = np.diff(codes[few][order], axis=0) != 0
    n_pieces = 1 + np.count_nonzero(changes & is_known[1:], axis=0)
    costs = _cost_of_pieces(n_pieces, n_levels, len(values))
    may_be = (n_pieces < 2 * n_levels) & (log2_orders(counts) - costs >= least)
    columns = take(np.arange(len(values)), np.flatnonzero(may_be)).T
    return any(_bits_of_cut(values, column) >= least for column in columns)


def is_merge(values: Float, groups: np.ndarray, n_rivals: int = 1) -> bool:
    """Return whether a variable has one level for each category of one of `n_rivals`.

    >>> stage = np.random.default_rng(0).integers(4, size=80)
    >>> is_merge(stage // 2, stage), is_merge(np.arange(80) % 2, stage)
    (True, False)
    """
    codes, counts = _levels(values)
    places, sizes = _levels(groups)
    if not 2 <= len(counts) <= len(sizes):
        return False

    table = contingency_matrix(places, codes)
    cost = log2_orders(table).sum() + len(table) * np.log2(len(counts))
    least = CERTAIN_BITS + np.log2(n_rivals)
    is_certain = log2_orders(counts) - cost >= least
    return bool(is_certain and _leaves_little(table, counts))


def is_filled_copy(values: Float, take: Columns) -> bool:
    """Return whether most values are those of one of the columns, in any unit.

    The others may be filled empty cells, of either. The most frequent value of the
    variable is left out for that reason.

    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> values = np.where(np.arange(100) % 5, 3 * x[:, 1] + 2, x[:, 0])
    >>> is_filled_copy(values, columns_of(x)), is_filled_copy(values**2, columns_of(x))
    (True, False)
    """
    codes, counts = _levels(values)
    kept = np.arange(len(values))
    most_frequent = 1
    if counts.max() > 1:
        kept = np.flatnonzero(codes != counts.argmax())
        most_frequent = np.sort(counts)[-2:].min()

    n = len(kept)
    # Values that more of the others have are levels, which are often on a line.
    largest_tie = 0.1
    if n < FEWEST_SAMPLES or most_frequent > largest_tie * n:
        return False

    few = kept[np.linspace(0, n - 1, min(n, FEW_SAMPLES)).astype(int)]
    entries = take(few)
    likely = np.flatnonzero(_share_on_line(values[few], entries) >= LEAST_SHARE / 2)
    shares = _share_on_line(values[kept], take(kept, likely))
    n_on_line = np.round(shares * n)
    # Two samples tell the line; others are on it by chance with this probability.
    by_chance = max(2 * ON_LINE, most_frequent / n)
    choices = -(betaln(n_on_line + 1, n - n_on_line + 1) + np.log(n + 1)) / np.log(2)
    bits = -(n_on_line - 2) * np.log2(by_chance) - choices
    is_certain = bits >= CERTAIN_BITS + np.log2(entries.shape[1])
    return bool(np.any((shares >= LEAST_SHARE) & is_certain))


def is_sum(values: Float, take_one: Columns, take_other: Columns) -> bool:
    """Return whether a variable is a weighted sum of a column each of two views.

    They may be one view.

    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> take = columns_of(x)
    >>> is_sum(2 * x[:, 0] - x[:, 2], take, take), is_sum(x.sum(axis=1), take, take)
    (True, False)
    """
    n = len(values)
    _, counts = _levels(values)
    if n < FEWEST_SAMPLES or log2_orders(counts) < CERTAIN_BITS:
        return False

    few = np.linspace(0, n - 1, min(n, MOST_SAMPLES)).astype(int)
    v, a, b = (standard(each) for each in (values[few], take_one(few), take_other(few)))
    of_a = a.T @ v
    of_b = b.T @ v
    of_both = a.T @ b
    rest = 1 - of_both**2
    squares = of_a[:, None] ** 2 + of_b**2
    explained = squares - 2 * np.outer(of_a, of_b) * of_both
    # Of two columns that are the same, one does as well.
    explained = np.where(
        rest > 1 - SAME,
        explained / np.maximum(rest, 1 - SAME),
        0,
    )
    i, j = np.unravel_index(explained.argmax(), explained.shape)
    least = CERTAIN_BITS + np.log2(explained.size)
    # Three samples tell the weights, and so all other values.
    bits = log2_orders(counts) - 3 * np.log2(len(counts))
    if explained[i, j] < SAME or bits < least:
        return False

    everyone = np.arange(n)
    one = take_one(everyone, np.array([i]))
    other = take_other(everyone, np.array([j]))
    given = np.hstack([np.ones((n, 1)), one, other])
    fitted = given @ np.linalg.lstsq(given, values, rcond=None)[0]
    left = max(1 - float(standard(fitted) @ standard(values)) ** 2, 1e-12)
    bits = -(n - 3) / 2 * np.log2(left)
    # Samples far from all others must not decide alone.
    by_ranks = (standard(_ranks(fitted)) @ standard(_ranks(values))) ** 2
    return bool(bits >= least and left <= 1 - SAME and by_ranks >= SAME)


def columns_of(array: Float) -> Columns:
    """Return the columns of an array."""
    return lambda rows, columns=slice(None): array[rows][:, columns]


def standard(values: Float) -> Float:
    """Return columns that are centered, of length one; zeros of constant ones."""
    centered = values - values.mean(axis=0)
    lengths = np.sqrt((centered**2).sum(axis=0))
    return centered / np.where(lengths > 0, lengths, 1.0)


def log2_orders(counts: np.ndarray) -> Float:
    """Return how many orders there are of values with these counts, in bits, by row."""
    counts = np.asarray(counts, dtype=float)
    of_equal = gammaln(counts + 1).sum(axis=-1)
    of_all = gammaln(counts.sum(axis=-1) + 1)
    return (of_all - of_equal) / np.log(2)


def _levels(values: Float) -> tuple[np.ndarray, np.ndarray]:
    """Return the level of every sample, by number, and the sizes of the levels."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    return codes, counts


def _some_of_each(codes: np.ndarray, most: int) -> np.ndarray:
    """Return some samples of every level, evenly spread, sorted by level."""
    order = np.argsort(codes, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
    places = [np.linspace(0, len(part) - 1, min(len(part), most)) for part in parts]
    pairs = zip(parts, places, strict=True)
    return np.concatenate([part[place.astype(int)] for part, place in pairs])


def _bits_of_cut(values: Float, column: Float) -> float:
    """Return the evidence that a variable divides a column; -inf if it does not."""
    known = np.isfinite(column)
    codes, counts = _levels(values[known])
    steps, groups = np.unique(column[known], return_inverse=True)
    n_levels = len(counts)
    if n_levels < 2:
        return -np.inf

    table = contingency_matrix(groups, codes)
    borders = np.flatnonzero(np.diff(table.argmax(axis=1)))
    # All levels but one may have two intervals, as those of normal and abnormal values.
    is_simple = 0 < len(borders) < 2 * n_levels - 1
    if not is_simple or not _leaves_little(table, counts):
        return -np.inf
    if np.mean(_are_valleys(np.diff(steps), borders)) >= 0.5:
        return -np.inf

    cost = _cost_of_pieces(
        len(borders) + 1,
        n_levels,
        len(codes),
    )
    return float(log2_orders(counts) - log2_orders(table).sum() - cost)


def _cost_of_pieces(n_pieces: Any, n_levels: int, n_samples: int) -> Any:
    """Return the bits that tell the levels of pieces, and how long further ones are.

    The numbers of samples of the levels tell how long the others are.
    """
    of_levels = np.log2(n_levels) + (n_pieces - 1) * np.log2(n_levels - 1)
    return of_levels + np.maximum(n_pieces - n_levels, 0) * np.log2(n_samples)


def _are_valleys(steps: Float, borders: np.ndarray) -> np.ndarray:
    """Return which borders are amid wider steps than there are on both sides."""
    # A border in a valley of the column, in which values are twice as far apart as on
    # both sides, separates groups of samples, as classes do; thresholds are anywhere.
    # The valley has this share of all steps on either side, or this number of them.
    share_of_valley = 0.05
    fewest_of_valley = 4
    reach = max(fewest_of_valley, int(share_of_valley * len(steps)))
    width = 2 * reach + 1
    limits = np.concatenate([[-1], borders, [len(steps)]])
    found = np.zeros(len(borders), bool)
    for place, border in enumerate(borders):
        start = max(border - reach, 0)
        stop = border + reach + 1
        before = steps[max(start - width, limits[place] + 1) : start]
        after = steps[stop : min(stop + width, limits[place + 2])]
        if len(before) and len(after):
            around = max(before.mean(), after.mean())
            found[place] = steps[start:stop].mean() > 2 * around
    return found


def _leaves_little(table: np.ndarray, counts: np.ndarray) -> bool:
    """Return whether hardly any entropy of the levels is left within groups."""
    left = entropy(table, axis=1) @ table.sum(axis=1) / counts.sum()
    # Largest share of a variable's entropy that is left if the column is known.
    return bool(left <= 0.02 * entropy(counts))


def _share_on_line(values: Float, entries: Float) -> Float:
    """Return which share of the values lie on one line of each column."""
    width = ON_LINE * np.subtract(*np.quantile(values, [0.75, 0.25]))
    half = len(values) // 2
    order = np.argsort(entries, axis=0, kind="stable")
    x = np.take_along_axis(entries, order, axis=0)
    y = values[order]
    # Distant pairs of samples tell the slope; most of them do if few cells are filled.
    runs = x[half:] - x[:-half]
    rises = y[half:] - y[:-half]
    slopes = np.median(rises / np.where(runs > 0, runs, np.inf), axis=0)
    rest = y - slopes * x
    offsets = np.abs(rest - np.median(rest, axis=0))
    return np.asarray((offsets <= width).mean(axis=0))


def _ranks(values: Float) -> Float:
    """Return ranks that do not depend on the rounding of sums."""
    scale = np.abs(values - np.median(values)).mean()
    return rankdata(np.round(values / (scale or 1.0), 9))
