"""Recognize variables that are computed from one or two columns.

A variable is recognized if it is a function of the columns up to single exceptions, and
if chance would hardly make it one. What only depends on a column, however closely, is
not: sex is no function of height.
"""

from typing import Any, Protocol

import numpy as np
from scipy.special import gammaln
from scipy.stats import rankdata

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


class Columns(Protocol):
    """Columns of which only some entries are in memory at a time."""

    def __call__(self, rows: np.ndarray, columns: np.ndarray | None = None) -> Float:
        """Return the entries of some samples, of some columns or of all."""


def is_cut(values: Float, take: Columns) -> bool:
    """Return whether a variable of few levels divides a column into intervals.

    Samples with NaN in a column do not count.

    >>> age = np.random.default_rng(0).normal(60, 15, size=(100, 2)).round()
    >>> take = columns_of(age)
    >>> is_cut(age[:, 1] // 10, take), is_cut(np.arange(100) % 2, take)
    (True, False)
    """
    codes, counts = _levels(values)
    everyone = np.arange(len(values))
    few = _some_of_each(codes, counts)
    n_levels = len(counts)
    if not 2 <= n_levels <= FEW_SAMPLES or log2_orders(counts) < CERTAIN_BITS:
        return False

    entries = take(few)
    least = CERTAIN_BITS + np.log2(entries.shape[1])
    order = np.argsort(entries, axis=0, kind="stable")  # levels rise among ties
    is_known = np.isfinite(np.take_along_axis(entries, order, axis=0))  # NaN come last
    sorted_codes = codes[few][order]
    changes = np.diff(sorted_codes, axis=0) != 0
    is_border = changes & is_known[1:]
    n_pieces = 1 + np.count_nonzero(is_border, axis=0)
    costs = _cost_of_pieces(n_pieces, len(counts), len(values))
    are_few = n_pieces < 2 * len(counts)
    may_be = are_few & (log2_orders(counts) - costs >= least)
    columns = take(everyone, np.flatnonzero(may_be)).T
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

    table = _contingency(places, codes)
    if not _leaves_little(table, counts):
        return False

    n_levels = len(counts)
    cost = log2_orders(table).sum() + len(table) * np.log2(n_levels)
    gained = log2_orders(counts) - cost
    return bool(gained >= CERTAIN_BITS + np.log2(n_rivals))


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

    places = np.linspace(0, n - 1, min(n, FEW_SAMPLES)).astype(int)
    few = kept[places]
    entries = take(few)
    on_line = _share_on_line(values[few], entries)
    likely = np.flatnonzero(on_line >= LEAST_SHARE / 2)
    shares = _share_on_line(values[kept], take(kept, likely))
    n_on_line = np.round(shares * n)
    # Two samples tell the line; others are on it by chance with this probability.
    by_chance = max(2 * ON_LINE, most_frequent / n)
    bits_of_sample = -np.log2(by_chance)
    bits = (n_on_line - 2) * bits_of_sample - log2_choose(n, n_on_line)
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

    count = min(n, MOST_SAMPLES)
    few = np.linspace(0, n - 1, count).astype(int)
    v, a, b = (standard(each) for each in (values[few], take_one(few), take_other(few)))
    of_a = a.T @ v
    of_b = b.T @ v
    of_both = a.T @ b
    rest = 1 - of_both**2
    is_pair = rest > 1 - SAME  # of two columns that are the same, one does as well
    squares = of_a[:, None] ** 2 + of_b**2
    explained = squares - 2 * np.outer(of_a, of_b) * of_both
    divisor = np.where(is_pair, rest, 1)
    explained = np.where(is_pair, explained / divisor, 0)
    i, j = np.unravel_index(explained.argmax(), explained.shape)
    least = CERTAIN_BITS + np.log2(explained.size)
    # Three samples tell the weights, and so all other values.
    of_weights = 3 * np.log2(len(counts))
    bits = log2_orders(counts) - of_weights
    if explained[i, j] < SAME or bits < least:
        return False

    everyone = np.arange(n)
    one = take_one(everyone, np.array([i]))
    other = take_other(everyone, np.array([j]))
    given = np.hstack([np.ones((n, 1)), one, other])
    solved = np.linalg.lstsq(given, values, rcond=None)
    fitted = given @ solved[0]
    left = 1 - _correlation(fitted, values) ** 2
    unexplained = max(left, 1e-12)
    bits = -(n - 3) / 2 * np.log2(unexplained)
    # Samples far from all others must not decide alone.
    by_ranks = _correlation(_ranks(fitted), _ranks(values)) ** 2
    return bool(bits >= least and left <= 1 - SAME and by_ranks >= SAME)


def columns_of(array: Float) -> Columns:
    """Return the columns of an array."""

    def take(rows: np.ndarray, columns: np.ndarray | None = None) -> Float:
        """Return the entries of some rows and columns."""
        if columns is None:
            return array[rows]
        return array[np.ix_(rows, columns)]

    return take


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


def log2_choose(n: Float | int, k: Float | int) -> Float:
    """Return the logarithm of the number of choices of k among n."""
    of_chosen = gammaln(k + 1.0)
    of_others = gammaln(n - k + 1.0)
    return (gammaln(n + 1.0) - of_chosen - of_others) / np.log(2)


def _levels(values: Float) -> tuple[np.ndarray, np.ndarray]:
    """Return the level of every sample, by number, and the sizes of the levels."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    return codes, counts


def _some_of_each(codes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return some samples of every level, sorted by level."""
    # Twice as many as intervals may have, so that other columns have more of these.
    most = max(FEW_SAMPLES // len(counts), 4)
    order = np.argsort(codes, kind="stable")
    starts = np.cumsum(counts) - counts
    parts = [
        order[start + np.linspace(0, n - 1, min(n, most)).astype(int)]
        for start, n in zip(starts, counts, strict=True)
    ]
    return np.concatenate(parts)


def _bits_of_cut(values: Float, column: Float) -> float:
    """Return the evidence that a variable divides a column; -inf if it does not."""
    known = np.isfinite(column)
    codes, counts = _levels(values[known])
    steps, groups = np.unique(column[known], return_inverse=True)
    n_levels = len(counts)
    if n_levels < 2:
        return -np.inf

    table = _contingency(groups, codes)
    borders = np.flatnonzero(np.diff(table.argmax(axis=1)))
    # All levels but one may have two intervals, as those of normal and abnormal values.
    most_borders = 2 * n_levels - 1
    is_simple = 0 < len(borders) < most_borders
    if not is_simple or not _leaves_little(table, counts):
        return -np.inf
    are_valleys = _are_valleys(np.diff(steps), borders)
    if np.mean(are_valleys) >= 0.5:
        return -np.inf

    n_pieces = len(borders) + 1
    cost = _cost_of_pieces(n_pieces, n_levels, len(codes))
    left = log2_orders(table).sum()
    return float(log2_orders(counts) - left - cost)


def _cost_of_pieces(n_pieces: Any, n_levels: int, n_samples: int) -> Any:
    """Return the bits that tell the levels of pieces, and how long further ones are.

    The numbers of samples of the levels tell how long the others are.
    """
    n_further = np.maximum(n_pieces - n_levels, 0)
    of_next = (n_pieces - 1) * np.log2(n_levels - 1)
    of_levels = np.log2(n_levels) + of_next
    return of_levels + n_further * np.log2(n_samples)


def _are_valleys(steps: Float, borders: np.ndarray) -> np.ndarray:
    """Return which borders are amid wider steps than there are on both sides."""
    # A border in a valley of the column, in which values are this many times as far
    # apart as on both sides, separates groups of samples, as classes do; thresholds are
    # anywhere. The valley has this share of all steps on either side, or this number of
    # them.
    times_as_wide = 2
    share_of_valley = 0.05
    fewest_of_valley = 4
    reach = max(fewest_of_valley, int(share_of_valley * len(steps)))
    width = 2 * reach + 1
    limits = np.concatenate([[-1], borders, [len(steps)]])
    found = np.zeros(len(borders), bool)
    for place, border in enumerate(borders):
        start = max(border - reach, 0)
        stop = border + reach + 1
        first_before = max(start - width, limits[place] + 1)
        before = steps[first_before:start]
        end_after = min(stop + width, limits[place + 2])
        after = steps[stop:end_after]
        if len(before) and len(after):
            around = max(before.mean(), after.mean())
            within = steps[start:stop].mean()
            found[place] = within > times_as_wide * around
    return found


def _contingency(groups: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return how many samples of each group have each level."""
    n_levels = codes.max() + 1
    n_cells = (groups.max() + 1) * n_levels
    return np.bincount(groups * n_levels + codes, minlength=n_cells).reshape(
        -1, n_levels
    )


def _leaves_little(table: np.ndarray, counts: np.ndarray) -> bool:
    """Return whether hardly any entropy of the levels is left within groups."""
    sizes = table.sum(axis=1)
    left = _entropies(table) @ sizes / counts.sum()
    # Largest share of a variable's entropy that is left if the column is known.
    left_entropy = 0.02
    return bool(left <= left_entropy * _entropies(counts))


def _entropies(counts: np.ndarray) -> Float:
    """Return the entropy of levels with these counts, by row."""
    totals = counts.sum(axis=-1, keepdims=True)
    shares = counts / totals
    positive = np.where(shares > 0, shares, 1)
    return -(shares * np.log2(positive)).sum(axis=-1)


def _share_on_line(values: Float, entries: Float) -> Float:
    """Return which share of the values lie on one line of each column."""
    quartiles = np.quantile(values, [0.75, 0.25])
    width = ON_LINE * np.subtract(*quartiles)
    half = len(values) // 2
    order = np.argsort(entries, axis=0, kind="stable")
    x = np.take_along_axis(entries, order, axis=0)
    y = values[order]
    # Distant pairs of samples tell the slope; most of them do if few cells are filled.
    runs = x[half:] - x[:-half]
    rises = y[half:] - y[:-half]
    divisors = np.where(runs > 0, runs, np.inf)
    slopes = np.median(rises / divisors, axis=0)
    rest = y - slopes * x
    offsets = np.abs(rest - np.median(rest, axis=0))
    return np.asarray((offsets <= width).mean(axis=0))


def _correlation(one: Float, other: Float) -> float:
    return float(standard(one) @ standard(other))


def _ranks(values: Float) -> Float:
    """Return ranks that do not depend on the rounding of sums."""
    offsets = np.abs(values - np.median(values))
    scale = offsets.mean()
    rounded = np.round(values / (scale or 1.0), 9)
    return rankdata(rounded)
