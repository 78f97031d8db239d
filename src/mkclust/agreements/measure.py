"""The test of every two kernels for agreement, and the mix of those that agree."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mkclust.agreements.alignments import (
    FEWEST_SAMPLES,
    ORDERS,
    are_localized,
    debiased_alignments,
    effective_directions,
    leading_shares,
    p_value_limit,
    p_values,
    permutation_scores,
    row_kurtoses,
    simulated_p_value,
    u_centered,
)
from mkclust.agreements.grouped import (
    compare_within_groups,
    draw_equally,
    draw_members,
    orders_within_groups,
)
from mkclust.agreements.result import Agreement, independent_views
from mkclust.agreements.row_order import (
    Rows,
    may_be_by_order,
    neighboring_rows,
    spread_rows,
)
from mkclust.linalg import to_host
from mkclust.stack import Stack
from mkclust.stack.compare import Comparison, compare, draw
from mkclust.stack.features import with_active_views
from mkclust.stack.observed import with_active
from mkclust.types import Array, Float

# Samples for the leading direction of a kernel.
JUDGED_SAMPLES = 128
# Samples for simulated p-values.
SIMULATED_SAMPLES = 512
# Residuals of samples of a larger leverage have less than half the variance of others.
MOST_LEVERAGE = 0.5


def measure_agreement(stack: Stack) -> Agreement:
    """Return how the kernels of a stack agree, in one pass over them."""
    m = stack.n_kernels
    norms, directions = np.zeros((2, m))
    n_common = np.zeros((m, m), int)
    alignments, scores, likely, lowest = np.zeros((4, m, m))
    by_order = np.zeros((m, m), bool)
    comparisons = compare(stack)
    debiased = [debiased_alignments(each.products) for each in comparisons]
    for each, (found, lengths) in zip(comparisons, debiased, strict=True):
        if each.first == each.second:  # on all the samples that these kernels have
            norms[list(each.first)] = lengths
            directions[list(each.first)] = effective_directions(each.products, lengths)
        _insert(n_common, each, np.full_like(found, each.n_samples))
        _insert(alignments, each, found)
        _insert(scores, each, permutation_scores(found, each.n_samples))
    views = independent_views(alignments, stack.views, n_common)
    are_groups_compared = False
    for each, (found, lengths) in zip(comparisons, debiased, strict=True):
        kernels = list(each.kernels)
        # A kernel that is zero off its diagonal agrees with none.
        tested = views[kernels, None] != views[kernels]
        tested &= np.outer(lengths, lengths) > 0
        of_pairs = of_copies = np.zeros(tested.shape)
        if stack.groups is not None:
            of_pairs, of_copies, enough = _p_values_of_groups(
                each, stack.groups[each.samples], tested
            )
            are_groups_compared |= enough
        elif stack.covariates is None:
            of_pairs, of_copies = _p_values(
                each.n_samples,
                each.entries,
                found,
                tested,
            )
        if stack.covariates is not None:
            of_rest, least = _p_values_of_residuals(
                each, stack.covariates[each.samples], tested
            )
            of_pairs = np.maximum(of_pairs, of_rest)
            of_copies = np.maximum(of_copies, least)
        _insert(likely, each, of_pairs)
        _insert(lowest, each, of_copies)
        _insert(by_order, each, _may_be_by_order(each, of_pairs))
    groups = stack.groups
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
        n_sample_groups=None if groups is None else len(np.unique(groups)),
        are_groups_compared=are_groups_compared,
    )


def _p_values(
    n: int,
    entries_among: Callable[[np.ndarray], Array],
    alignments: Float,
    tested: np.ndarray,
) -> tuple[Float, Float]:
    """Return the p-values of alignments and of copies, (c, c); one if not tested."""
    ones = np.ones_like(alignments)
    if not tested.any():
        return ones, ones
    entries = entries_among(draw(n, JUDGED_SAMPLES))
    shares = leading_shares(entries)
    likely = np.where(tested, p_values(permutation_scores(alignments, n), shares), 1)
    lowest = np.where(tested, p_values(permutation_scores(ones, n), shares), 1)

    doubtful = are_localized(row_kurtoses(entries), n)
    doubtful &= likely < p_value_limit(n)
    if doubtful.any():
        kernels = to_host(entries_among(draw(n, SIMULATED_SAMPLES)))
        for p, q in np.argwhere(np.triu(doubtful)):
            _raise_pair(
                likely,
                p,
                q,
                simulated_p_value(kernels[p], kernels[q]),
            )
    return likely, lowest


def _raise_pair(
    p_values: Float,
    p: int,
    q: int,
    least: float,
) -> None:
    """Raise the p-value of a pair to a simulated one, in place."""
    larger = max(p_values[p, q], least)
    p_values[p, q] = larger
    p_values[q, p] = larger


def _p_values_of_residuals(
    comparison: Comparison,
    covariates: Float,
    tested: np.ndarray,
    most_samples: int = 1024,
) -> tuple[Float, Float]:
    """Return p-values for views that were adjusted for the same covariates, (c, c).

    Residuals of least squares lie in a space of fewer dimensions than there are
    samples, the same one for all views, so permuted residuals of independent views are
    less alike than the given ones. Kernels are therefore projected on that space, and
    written in an orthonormal basis of it: in such coordinates residuals are
    uncorrelated and have equal variances again, and can be permuted (M.-H. Huh, M.
    Jhun. Random permutation testing in multiple linear regression. Communications in
    Statistics - Theory and Methods 30, 2001). That is exact for linear kernels. Others
    see that residuals are small where covariates are extreme, in all views: what is
    linear in the leverages is removed, too, and samples of high leverage are left out.
    """
    drawn = draw(comparison.n_samples, most_samples)
    own = covariates[drawn]
    leverages = np.square(_bases(own)[0]).sum(axis=1)
    few = leverages <= max(MOST_LEVERAGE, 1.5 * leverages.mean())
    basis = _bases(np.column_stack([own, leverages])[few])[1]
    kernels = to_host(comparison.entries(drawn[few])).astype(float)
    rotated = basis.T @ kernels @ basis

    centered = np.stack([u_centered(K.copy()) for K in rotated])
    flat = centered.reshape(len(centered), -1)
    products = flat @ flat.T
    norms = np.sqrt(np.diag(products))
    norms = np.where(norms > 0, norms, 1)
    return _p_values(
        rotated.shape[1],
        lambda some: rotated[:, some[:, None], some],
        products / norms / norms[:, None],
        tested,
    )


def _bases(covariates: Float) -> tuple[Float, Float]:
    """Return orthonormal bases of what covariates explain, and of all else."""
    centered = covariates - covariates.mean(axis=0)
    design = np.column_stack([np.ones(len(covariates)), centered])
    # Columns of one unit, so that rank is not a matter of units.
    lengths = np.linalg.norm(design, axis=0)
    design = design[:, lengths > 0] / lengths[lengths > 0]

    left, sizes, _ = np.linalg.svd(design, full_matrices=True)
    # Smaller directions, as a share of the largest, are rounding.
    rank = int((sizes > 1e-10 * sizes[0]).sum())
    return left[:, :rank], left[:, rank:]


def _p_values_of_groups(
    comparison: Comparison,
    groups: np.ndarray,
    tested: np.ndarray,
) -> tuple[Float, Float, bool]:
    """Return twice the smaller p-value of shuffling within groups and whole groups.

    The p-values are those of pairs and of copies, (c, c). The last value says whether
    there are enough groups to compare them.
    """
    if not tested.any():
        ones = np.ones(tested.shape)
        return ones, ones, False
    rng = np.random.default_rng(0)
    # Samples of which the means of groups are compared.
    grouped_samples = 1024
    means = comparison.of_means(draw_equally(groups, grouped_samples, rng))
    alignments = debiased_alignments(means.products)[0]
    between, lowest_between = _p_values(
        means.n_samples,
        means.entries,
        alignments,
        tested,
    )
    within, lowest_within = _p_values_within(comparison, groups, tested)
    limit = p_value_limit(comparison.n_samples)
    return (
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
    found = compare_within_groups(to_host(comparison.entries(drawn)), groups[drawn])
    judged = draw(n, JUDGED_SAMPLES)
    shares = leading_shares(found.entries[:, judged[:, None], judged])
    varies = tested & (found.deviations > 0)
    likely = np.where(varies, p_values(found.scores, shares), 1)
    lowest = np.where(varies, p_values(found.largest_scores, shares), 1)

    doubtful = are_localized(row_kurtoses(found.entries), n)
    doubtful &= likely < p_value_limit(comparison.n_samples)
    for p, q in np.argwhere(np.triu(doubtful)):
        orders = np.stack(
            [orders_within_groups(found.groups, ORDERS, rng) for _ in range(2)]
        )
        least = simulated_p_value(found.entries[p], found.entries[q], orders)
        _raise_pair(
            likely,
            p,
            q,
            least,
        )
    return likely, lowest


def _may_be_by_order(
    comparison: Comparison,
    likely: Float,
) -> np.ndarray:
    """Return which kernels that agree may do so by the order of rows, (c, c)."""
    linked = likely < p_value_limit(comparison.n_samples)
    if not linked.any():
        return linked
    n = comparison.n_samples
    spread = spread_rows(n)
    in_windows = None
    if spread.shape[1] > 1:
        windows = neighboring_rows(n)
        entries = comparison.entries(windows.reshape(-1))
        in_windows = Rows(to_host(entries), len(windows))
    return linked & may_be_by_order(Rows(comparison.means(spread)), in_windows)


def _insert(
    whole: np.ndarray,
    comparison: Comparison,
    values: np.ndarray,
) -> None:
    """Write the values of a comparison into a matrix of all kernels, (m, m)."""
    first = comparison.first
    second = comparison.second
    n_first = 0 if first == second else len(first)
    across = values[: len(first), n_first:]
    whole[np.ix_(first, second)] = across
    whole[np.ix_(second, first)] = across.T


@dataclass(frozen=True)
class Compromise:
    """The kernels that are included, and how they are mixed."""

    agreement: Agreement  # of all kernels
    stack: Stack  # the included ones
    active: Stack  # all, rescaled for the included ones
    indices: list[int]  # which they are
    weights: Float
    coefficients: Float  # what mixes them

    def scatter(self, values: Float) -> Float:
        """Return values of the included kernels, with zeros for the others, (m,)."""
        scattered = np.zeros(len(self.agreement.names))
        scattered[self.indices] = values
        return scattered

    @property
    def set_aside(self) -> tuple[str, ...]:
        """Names of the kernels that are not included."""
        names = enumerate(self.agreement.names)
        return tuple(name for p, name in names if p not in self.indices)


def find_compromise(stack: Stack) -> Compromise:
    """Return the compromise of the kernels that agree, independent of the others."""
    agreement = measure_agreement(stack)
    indices = agreement.chosen
    if len(indices) == stack.n_kernels:
        weights = agreement.weights()
        coefficients = agreement.coefficients()
        return Compromise(agreement, stack, stack, indices, weights, coefficients)

    # Found once more among these alone.
    active = activate(stack, indices)
    compromise = find_compromise(active.subset(indices))
    included = [indices[p] for p in compromise.indices]
    if len(included) < len(indices):
        active = activate(stack, included)

    return replace(
        compromise,
        agreement=agreement,
        stack=active.subset(included),
        active=active,
        indices=included,
    )


def activate(stack: Stack, indices: list[int]) -> Stack:
    """Return kernels rescaled to compensate for included ones that lack samples."""
    if stack.features is not None:
        return with_active_views(stack, indices)
    return replace(stack, kernels=with_active(stack.kernels, indices))
