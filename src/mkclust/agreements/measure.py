"""The test of every two kernels of a stack for agreement."""

from typing import NamedTuple

import numpy as np

from mkclust.agreements.adjusted import Rotated, rotate
from mkclust.agreements.alignments import (
    FEWEST_SAMPLES,
    ORDERS,
    are_localized,
    debiased_alignments,
    effective_directions,
    leading_shares,
    p_values,
    permutation_scores,
    row_kurtoses,
    simulated_p_value,
)
from mkclust.agreements.copies import independent_views
from mkclust.agreements.grouped import (
    compare_within_groups,
    draw_equally,
    draw_members,
    orders_within_groups,
)
from mkclust.agreements.limits import p_value_limit
from mkclust.agreements.result import Agreement
from mkclust.agreements.row_order import (
    Rows,
    may_be_by_order,
    neighboring_rows,
    spread_rows,
)
from mkclust.linalg import to_host
from mkclust.stack import Stack
from mkclust.stack.compare import Comparison, compare, draw
from mkclust.types import Float

# Samples for the leading direction of a kernel.
JUDGED_SAMPLES = 128
# Samples for simulated p-values.
SIMULATED_SAMPLES = 512


def measure_agreement(stack: Stack) -> Agreement:
    """Return how the kernels of a stack agree, in one pass over them."""
    m = stack.n_kernels
    norms = np.zeros(m)
    directions = np.zeros(m)
    n_common = np.zeros((m, m), int)
    alignments = np.zeros((m, m))
    scores = np.zeros((m, m))
    likely = np.zeros((m, m))
    lowest = np.zeros((m, m))
    by_order = np.zeros((m, m), bool)
    compared = []
    for each in compare(stack):
        found, lengths = debiased_alignments(each.products)
        compared.append((each, found, lengths))
    for each, found, lengths in compared:
        if each.first == each.second:  # on all the samples that these kernels have
            norms[list(each.first)] = lengths
            directions[list(each.first)] = effective_directions(each.products, lengths)
        _insert(n_common, each, np.full_like(found, each.n_samples))
        _insert(alignments, each, found)
        _insert(scores, each, permutation_scores(found, each.n_samples))
    views = independent_views(alignments, stack.views, n_common)
    are_groups_compared = False
    for each, found, lengths in compared:
        kernels = list(each.kernels)
        # A kernel that is zero off its diagonal agrees with none.
        tested = views[kernels, None] != views[kernels]
        tested &= np.outer(lengths, lengths) > 0
        if stack.groups is None:
            of_pairs, of_copies = _p_values(each, found, tested)
        else:
            of_groups = _p_values_of_groups(each, stack.groups[each.samples], tested)
            of_pairs, of_copies, enough = of_groups
            are_groups_compared |= enough
        if stack.covariates is not None:
            rotated = rotate(each, stack.covariates[each.samples])
            of_rest, least = _p_values(rotated, rotated.alignments(), tested)
            if stack.groups is None:
                of_pairs = of_rest
            else:
                of_pairs = np.maximum(of_pairs, of_rest)
            of_copies = np.maximum(of_copies, least)
        _insert(likely, each, of_pairs)
        _insert(lowest, each, of_copies)
        _insert(by_order, each, _may_be_by_order(each, of_pairs))
    n_sample_groups = None
    if stack.groups is not None:
        n_sample_groups = len(np.unique(stack.groups))
    return Agreement(
        names=stack.names,
        views=tuple(map(int, stack.views)),
        independent_views=views,
        n_samples=int(n_common.max()),
        alignments=alignments,
        norms=norms,
        directions=directions,
        scores=scores,
        p_values=likely,
        lowest_p_values=lowest,
        pair_samples=n_common,
        by_order=by_order,
        n_sample_groups=n_sample_groups,
        are_groups_compared=are_groups_compared,
    )


def _p_values(
    comparison: Comparison | Rotated,
    alignments: Float,
    tested: np.ndarray,
) -> tuple[Float, Float]:
    """Return the p-values of alignments and of copies, (c, c); one if not tested."""
    if not tested.any():
        return np.ones_like(alignments), np.ones_like(alignments)
    n = comparison.n_samples
    entries = comparison.entries(draw(n, JUDGED_SAMPLES))
    shares = leading_shares(entries)
    of_pairs = permutation_scores(alignments, n)
    of_copies = permutation_scores(np.ones_like(alignments), n)
    likely = np.where(tested, p_values(of_pairs, shares), 1)
    lowest = np.where(tested, p_values(of_copies, shares), 1)

    doubtful = are_localized(row_kurtoses(entries), n)
    doubtful &= likely < p_value_limit(n)
    if doubtful.any():
        drawn = draw(n, SIMULATED_SAMPLES)
        kernels = to_host(comparison.entries(drawn))
        for p, q in np.argwhere(np.triu(doubtful)):
            simulated = simulated_p_value(kernels[p], kernels[q])
            larger = max(likely[p, q], simulated)
            likely[p, q] = larger
            likely[q, p] = larger
    return likely, lowest


class GroupedPValues(NamedTuple):
    """P-values that respect groups of samples, (c, c)."""

    of_pairs: Float
    of_copies: Float
    are_groups_compared: bool  # whether there are enough of them


def _p_values_of_groups(
    comparison: Comparison,
    groups: np.ndarray,
    tested: np.ndarray,
) -> GroupedPValues:
    """Return twice the smaller p-value of shuffling within groups and whole groups."""
    if not tested.any():
        ones = np.ones(tested.shape)
        return GroupedPValues(ones, ones, False)
    rng = np.random.default_rng(0)
    # Samples of which the means of groups are compared.
    grouped_samples = 1024
    means = comparison.of_means(draw_equally(groups, grouped_samples, rng))
    between, lowest_between = _p_values(
        means, debiased_alignments(means.products)[0], tested
    )
    within, lowest_within = _p_values_within(comparison, groups, tested)
    limit = p_value_limit(comparison.n_samples)
    return GroupedPValues(
        np.minimum(2 * np.minimum(between, within), 1),
        np.minimum(2 * np.minimum(lowest_between, lowest_within), 1),
        bool((2 * lowest_between < limit).any()),
    )


def _p_values_within(
    comparison: Comparison,
    groups: np.ndarray,
    tested: np.ndarray,
) -> tuple[Float, Float]:
    """Return p-values of what kernels share within groups, and of copies, (c, c)."""
    rng = np.random.default_rng(0)
    drawn = draw_members(groups, SIMULATED_SAMPLES, rng)
    n = len(drawn)
    if n < FEWEST_SAMPLES:
        ones = np.ones(tested.shape)
        return ones, ones
    entries = to_host(comparison.entries(drawn))
    found = compare_within_groups(entries, groups[drawn])
    judged = draw(n, JUDGED_SAMPLES)
    among_judged = found.entries[:, judged[:, None], judged]
    shares = leading_shares(among_judged)
    varies = tested & (found.deviations > 0)
    likely = np.where(varies, p_values(found.scores, shares), 1)
    lowest = np.where(varies, p_values(found.largest_scores, shares), 1)

    doubtful = are_localized(row_kurtoses(found.entries), n)
    doubtful &= likely < p_value_limit(comparison.n_samples)
    for p, q in np.argwhere(np.triu(doubtful)):
        orders = np.stack(
            [orders_within_groups(found.groups, ORDERS, rng) for _ in range(2)]
        )
        first = found.entries[p]
        second = found.entries[q]
        simulated = simulated_p_value(first, second, orders)
        larger = max(likely[p, q], simulated)
        likely[p, q] = larger
        likely[q, p] = larger
    return likely, lowest


def _may_be_by_order(comparison: Comparison, likely: Float) -> np.ndarray:
    """Return which kernels that agree may do so by the order of rows, (c, c)."""
    linked = likely < p_value_limit(comparison.n_samples)
    if not linked.any():
        return linked
    n = comparison.n_samples
    spread = spread_rows(n)
    in_windows = None
    at_large = Rows(comparison.means(spread))
    if spread.shape[1] > 1:
        windows = neighboring_rows(n)
        rows = windows.reshape(-1)
        entries = to_host(comparison.entries(rows))
        in_windows = Rows(entries, len(windows))
    return linked & may_be_by_order(at_large, in_windows)


def _insert(
    whole: np.ndarray,
    comparison: Comparison,
    values: np.ndarray,
) -> None:
    """Write the values of a comparison into a matrix of all kernels, (m, m)."""
    first = comparison.first
    second = comparison.second
    n_first = 0
    if first != second:
        n_first = len(first)
    across = values[: len(first), n_first:]
    whole[np.ix_(first, second)] = across
    whole[np.ix_(second, first)] = across.T
