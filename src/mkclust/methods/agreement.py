"""Which views agree, which agree clearly with no other one, and which are copies."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mkclust.engine.agreement import (
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
from mkclust.engine.grouped import (
    compare_within_groups,
    draw_equally,
    draw_members,
    orders_within_groups,
)
from mkclust.engine.row_order import (
    Rows,
    may_be_by_order,
    neighboring_rows,
    spread_rows,
)
from mkclust.linalg import to_host
from mkclust.stack import Stack
from mkclust.stack.compare import Comparison, compare, draw
from mkclust.text import join_words, printable, text_table
from mkclust.types import Float

# The p-value below which two views agree, times the square of the number of samples,
# ...
LIMIT_TIMES_SQUARE = 1.5
# ... if it is not lower or higher than these.
LOWEST_LIMIT, HIGHEST_LIMIT = 1e-5, 1e-3
# Two kernels with a larger alignment are copies.
COPY_ALIGNMENT = 0.99
# Copies have all samples in common, or at least this number: fewer can be alike by
# chance.
FEWEST_FOR_COPIES = 24
# A view that agrees with the others by less than this share of the median has less
# weight, in proportion. Chosen on the data sets of benchmarks/agreement.py.
MUCH_LESS_SHARE = 0.6
# Fewer effective directions mean less weight: a column of two levels has 1, tables
# mostly over 4.
FULL_WEIGHT_DIRECTIONS = 3.0
# Samples for the leading direction of a kernel, and for simulated p-values.
JUDGED_SAMPLES, SIMULATED_SAMPLES = 128, 512
# Samples of which the means of groups are compared.
GROUPED_SAMPLES = 1024


def p_value_limit(n_samples: Any) -> Any:
    """Return the p-value below which two views agree: `limit_rule` in numbers.

    Chosen by benchmarks/agreement_limit.py. It does not depend on the number of views:
    a view that agrees with none must not exclude another.
    """
    limits = LIMIT_TIMES_SQUARE / np.maximum(n_samples, 1.0) ** 2
    return np.clip(limits, LOWEST_LIMIT, HIGHEST_LIMIT)


def limit_rule() -> str:
    """Return in words the p-value below which two views agree.

    >>> limit_rule()  # doctest: +NORMALIZE_WHITESPACE
    '1.5 / n^2 for n samples, but at most 1e-3 (up to 38 samples) and at least 1e-5
    (from 388 on)'
    """
    last_high = math.floor(math.sqrt(LIMIT_TIMES_SQUARE / HIGHEST_LIMIT))
    first_low = math.ceil(math.sqrt(LIMIT_TIMES_SQUARE / LOWEST_LIMIT))
    highest, lowest = (
        f"{each:.0e}".replace("e-0", "e-") for each in (HIGHEST_LIMIT, LOWEST_LIMIT)
    )
    return (
        f"{LIMIT_TIMES_SQUARE} / n^2 for n samples, but at most {highest} (up to "
        f"{last_high} samples) and at least {lowest} (from {first_low} on)"
    )


# The smallest p-values by shuffled samples, and the smallest twice such ones.
LEAST_SHUFFLED = (1 / ORDERS**2, 2 / ORDERS**2)


def p_text(value: float, sign: str = "") -> str:
    """Return a p-value in one digit after a sign; as a bound if it is one.

    Those in the far tail are "<1e-16", and the smallest that shuffled samples give have
    "<=" as their sign.
    """
    if value < 1e-16:
        return "<1e-16"

    is_least = any(math.isclose(value, least) for least in LEAST_SHUFFLED)
    return f"{'<= ' if is_least else sign}{value:.1g}"


def limit_text(value: float) -> str:
    """Return the limit of a p-value in one digit."""
    return f"{value:.1g}"


class Evidence(NamedTuple):
    """Why a kernel is used or not: the kernel that it agrees with most, if with any."""

    partner: str
    p_value: float
    limit: float  # of the p-value, for the samples that both have


@dataclass(frozen=True, eq=False)
class Agreement:
    """Which views of the same samples agree, without labels.

    Two views agree if the p-value of their alignment is below `limits`. A view that
    agrees with no other one is **set aside**. Copies of a view, and kernels made from
    the same view, are one independent view. Weak agreement and clusters of few samples
    may stay undetected.

    Attributes
    ----------
    names : tuple of str
        Names of the kernels, one or several per view.
    views, independent_views : tuple of int, ndarray of int of shape (m,)
        The number of the view, and of the independent view, of each kernel. The numbers
        and the categories of one table are one view.
    n_samples : int
        Number of compared samples: all, or a random 1024 of more than 2048.
    alignments : ndarray of shape (m, m)
        Debiased centered kernel alignments: 1 for copies, about 0 for independent
        views.
    norms : ndarray of shape (m,)
        Debiased norms of the kernels: small for noise.
    directions : ndarray of shape (m,)
        Effective number of directions: 1 for a column of two levels, dozens for a rich
        table.
    scores : ndarray of shape (m, m)
        The alignments in standard deviations over all permutations of the samples of
        one view.
    p_values : ndarray of shape (m, m)
        How likely two independent kernels are at least this much alike; one within an
        independent view. Not corrected for the number of pairs.
    lowest_p_values : ndarray of shape (m, m)
        The smallest p-values that this number of samples allows: those of copies.
    pair_samples : ndarray of int of shape (m, m)
        Number of samples that two kernels have in common and are compared on.
    by_order : ndarray of bool of shape (m, m)
        Which kernels agree, but possibly by the order of the rows alone.
    n_sample_groups : int or None
        Number of groups of samples (families, patients, batches, plates) that the
        p-values respect.
    are_groups_compared : bool
        Whether there are enough groups to compare them as a whole; if not, samples are
        compared within them only.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import agreement
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=90)
    >>> def draw_view():
    ...     return rng.normal(size=(3, 5))[y] * 3 + rng.normal(size=(90, 5))
    >>> views = {"a": draw_view(), "b": draw_view(), "noise": rng.normal(size=(90, 5))}
    >>> agreement(views).set_aside
    ('noise',)
    """

    names: tuple[str, ...]
    views: tuple[int, ...]
    independent_views: np.ndarray
    n_samples: int
    alignments: Float
    norms: Float
    directions: Float
    scores: Float
    p_values: Float
    lowest_p_values: Float
    pair_samples: np.ndarray
    by_order: np.ndarray
    n_sample_groups: int | None = None
    are_groups_compared: bool = True

    @property
    def n_independent_views(self) -> int:
        """How many independent views there are."""
        return len(np.unique(self.independent_views))

    @property
    def _are_other_views(self) -> np.ndarray:
        return np.asarray(self.independent_views[:, None] != self.independent_views)

    @property
    def limits(self) -> Float:
        """The p-value below which each pair agrees, by its common samples, (m, m)."""
        return np.asarray(p_value_limit(self.pair_samples))

    def limits_in_words(self) -> str:
        """Return the limit of the p-values, or the smallest and the largest of them."""
        others = self._are_other_views
        limits = self.limits[others] if others.any() else self.limits
        words = dict.fromkeys(limit_text(each) for each in (limits.min(), limits.max()))
        return " to ".join(words)

    @property
    def shares(self) -> np.ndarray:
        """Whether each kernel agrees with another independent view, (m,) of bool."""
        return np.asarray((self.p_values < self.limits).any(axis=1))

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Kernels that agree, even through others: most independent views first."""
        kernels = np.flatnonzero(self.shares)
        links = (self.p_values < self.limits) | ~self._are_other_views
        number = _components(links[np.ix_(kernels, kernels)])
        groups = [kernels[number == each].tolist() for each in np.unique(number)]

        def rank(group: list[int]) -> tuple[int, float]:
            n_views = len(np.unique(self.independent_views[group]))
            # Rounded, so that rounding errors do not order equal groups.
            return n_views, round(float(self._agreement_sums(group).mean()), 6)

        return tuple(map(tuple, sorted(groups, key=rank, reverse=True)))

    @property
    def is_incomplete(self) -> bool:
        """Whether kernels were compared on different samples, as some are missing."""
        return bool((self.pair_samples != self.n_samples).any())

    @property
    def any_share(self) -> bool:
        """Whether at least two independent views agree."""
        return bool(self.groups)

    @property
    def is_testable(self) -> bool:
        """Whether two views have enough samples for a p-value below the limit."""
        return bool((self.lowest_p_values < self.limits).any())

    @cached_property
    def chosen(self) -> list[int]:
        """The included kernels: those of the first group, or all without a group."""
        return list(self.groups[0]) if self.groups else list(range(len(self.names)))

    @property
    def set_aside(self) -> tuple[str, ...]:
        """Names of the kernels that are not included, none if nothing agrees."""
        return tuple(name for p, name in enumerate(self.names) if p not in self.chosen)

    @property
    def copies(self) -> tuple[tuple[str, ...], ...]:
        """Names of the kernels of views that are close copies of one another."""
        numbers = self.independent_views
        members = [np.flatnonzero(numbers == each) for each in np.unique(numbers)]
        several = [
            group for group in members if len({self.views[p] for p in group}) > 1
        ]
        return tuple(tuple(self.names[p] for p in group) for group in several)

    def weights(self) -> Float:
        """Return the weight of each kernel, zero if it is set aside, (m,).

        The kernels of an independent view divide its weight, which is the same for all
        that are included, with two exceptions: a view that agrees with the others much
        less than the median one, and a kernel of few effective directions (a single
        column) have less, in proportion.
        """
        numbers = self.independent_views[self.chosen]
        _, first, place = np.unique(numbers, return_index=True, return_inverse=True)
        weights, values = np.zeros(len(self.names)), 1 / np.bincount(place)[place]
        if self.any_share:
            sums = self._agreement_sums(self.chosen)
            relative = sums / np.median(sums[first])
            values *= np.where(relative < MUCH_LESS_SHARE, relative, 1)
        if self.n_independent_views > 1:
            values *= np.minimum(
                self.directions[self.chosen] / FULL_WEIGHT_DIRECTIONS, 1
            )
        weights[self.chosen] = values
        return weights / weights.sum()

    def coefficients(self) -> Float:
        """Return the coefficients of the compromise, (m,).

        They are weights over norms. A single independent view, and kernels that are
        all without a norm, are averaged by the weights alone.
        """
        weights = self.weights()
        if self.n_independent_views == 1 or not self.norms.any():
            return weights
        norms = self.norms
        coefficients = np.divide(
            weights, norms, out=np.zeros_like(weights), where=norms > 0
        )
        return coefficients / coefficients.sum()

    def _agreement_sums(self, group: Sequence[int]) -> Float:
        """Return how much each kernel agrees with other views of its group, (g,)."""
        part = np.ix_(group, group)
        others = self._are_other_views[part]
        sizes = (~others).sum(axis=1)
        known = others & _can_be_copies(self.pair_samples)[part]
        known = np.where(known.any(axis=1, keepdims=True), known, others)
        agreeing = np.where(known, np.maximum(self.alignments[part], 0), 0)
        # A pair with few samples in common counts as the others of the kernel do on
        # average.
        n_others, n_known = ((which / sizes).sum(axis=1) for which in (others, known))
        return (agreeing / sizes).sum(axis=1) * (n_others / n_known)

    def verdict(self, *, sets_aside: bool = True) -> str:
        """Return in words which views agree and which were set aside, with p-values.

        Pass ``sets_aside=False`` for a method that uses all views.
        """
        if len(set(self.views)) == 1:
            return "One view alone: there is nothing to compare it with."
        found = [
            f"{join_words(one)} are copies and count as one view."
            for one in self.copies
        ]
        if self.n_independent_views == 1:
            found.append("There is no other view to compare with.")
        elif not self.is_testable:
            n_common = int(self.pair_samples[self._are_other_views].max())
            found.append(self._about_few(n_common))
        elif not self.groups:
            found.append(self._about_no_agreement())
        else:
            found += self._about_agreement(sets_aside)
        found += [
            *self._about_sample_groups(),
            *self._unknown_pairs(),
            *self.order_sentences(),
        ]
        return printable(" ".join(found))

    def _about_few(self, n_common: int) -> str:
        where = "in common"
        if self.n_sample_groups is not None:
            where = f"in {self.n_sample_groups} groups"
        return f"{n_common} samples {where} are too few to test: all views are used."

    def _about_sample_groups(self) -> list[str]:
        if self.n_sample_groups is None or not self.is_testable:
            return []
        if self.are_groups_compared:
            return [
                f"Tested within and between {self.n_sample_groups} groups of samples."
            ]
        return [
            f"Tested within {self.n_sample_groups} groups of samples only: these are "
            "too few to compare them as a whole."
        ]

    def _about_no_agreement(self) -> str:
        p = int(np.argmin((self.p_values / self.limits).min(axis=1)))
        q, n_views = self.closest(p), self.n_independent_views
        who = (
            "The two views do not" if n_views == 2 else f"No two of the {n_views} views"
        )
        return (
            f"{who} agree clearly (p {p_text(self.p_values[p, q], '= ')} for "
            f"{self.names[p]} and {self.names[q]}; the limit for "
            f"{self.pair_samples[p, q]} samples is {limit_text(self.limits[p, q])}). "
            "The test can miss weak agreement and clusters of few samples. All views "
            "are used, and the clusters may match none of them."
        )

    def _about_agreement(self, sets_aside: bool) -> list[str]:
        groups, n = self.groups, self.n_independent_views
        listed = [join_words(self._names_of(group)) for group in groups]
        n_chosen = len(np.unique(self.independent_views[list(groups[0])]))
        evidence = [self.evidence(p) for p in range(len(self.names))]
        kernels = np.flatnonzero(self.shares).tolist()
        largest = max(float(self.p_values[p, self.closest(p)]) for p in kernels)
        agree = f"views agree (p {p_text(largest, '<= ')})"
        how_many = f"{n_chosen} of {n}"
        if n_chosen == n:
            how_many = "Both" if n == 2 else f"All {n}"
        if len(groups) > 1:
            which = (
                "The first is used, the others are set aside"
                if sets_aside
                else "All are used"
            )
            found = [
                f"{len(groups)} groups of {agree}, but not clearly with each other: "
            ]
            found[0] += f"{'; '.join(listed)}. {which}."
        elif len(groups[0]) == len(self.names):
            found = [f"{how_many} {agree}."]
        else:
            found = [f"{how_many} {agree}: {listed[0]}."]
        if not self.shares.all():
            lone = np.flatnonzero(~self.shares).tolist()
            limits = [limit_text(evidence[p].limit) for p in lone]
            is_one = len(set(limits)) == 1
            others = [
                f"{self.names[p]} (p {p_text(evidence[p].p_value, '= ')}"
                f"{'' if is_one else f'; the limit is {limit}'})"
                for p, limit in zip(lone, limits, strict=True)
            ]
            end = f"; the limit is {limits[0]}." if is_one else "."
            found.append(
                f"{'Set aside' if sets_aside else 'Used'} without clear agreement: "
                f"{join_words(others)}{end}"
            )
        return found

    def order_sentences(self) -> list[str]:
        """Return which views may agree by the rows' order alone; nothing if none do."""
        ordered = np.flatnonzero(self.by_order.any(axis=1))
        if not len(ordered):
            return []
        return [
            f"Neighboring rows are alike in {join_words(self._names_of(ordered))}, and "
            "these agree as much if the rows of one view are shifted. A trend, a "
            "period or another order of the rows, such as time, can explain the "
            "agreement alone, because p-values assume exchangeable rows. Keep rows "
            "that are far apart, or remove what changes with the order."
        ]

    def _names_of(self, kernels: Iterable[int]) -> list[str]:
        """Return the names of kernels, one view standing for its copies."""
        views, numbers = np.array(self.views), self.independent_views
        first = [
            views[p] == views[numbers == numbers[p]].min() for p in range(len(views))
        ]
        return [self.names[p] for p in kernels if first[p]]

    def _unknown_pairs(self) -> list[str]:
        unknown = self._are_other_views & (self.lowest_p_values >= self.limits)
        # More samples would not help a kernel that is zero off its diagonal.
        unknown &= np.outer(self.norms, self.norms) > 0
        pairs = [
            f"{self.names[p]} and {self.names[q]} ({self.pair_samples[p, q]})"
            for p, q in np.argwhere(np.triu(unknown))
        ]
        if not pairs or not self.is_incomplete:
            return []
        return [
            "Too few samples in common to test for agreement: "
            f"{join_words(pairs, most=4)}."
        ]

    def evidence(self, p: int) -> Evidence:
        """Return why a kernel is used or not: its p-value with the closest other one.

        For a kernel that agrees with others than those that are used it is the closest
        of these.
        """
        is_elsewhere = self.shares[p] and p not in self.chosen
        q = self.closest(p, among=self.chosen if is_elsewhere else None)
        return Evidence(
            self.names[q], float(self.p_values[p, q]), float(self.limits[p, q])
        )

    def closest(self, p: int, among: Sequence[int] | None = None) -> int:
        """Return the closest kernel, by its p-value, in another independent view."""
        others = np.flatnonzero(self._are_other_views[p])
        if among is not None:
            others = np.intersect1d(others, among)
        p_values = np.maximum(self.p_values[p, others], 1e-16) / self.limits[p, others]
        return int(others[np.lexsort([-self.scores[p, others], p_values])[0]])

    def summary(self) -> str:
        """Return the verdict, and each view's closest partner, p-value and weight."""
        if self.n_independent_views == 1:
            return self.verdict()
        head = [
            "view",
            "closest to",
            "alignment",
            "deviations",
            "p-value",
            "directions",
            "weight",
        ]
        rows = [head + ["samples in common"] * self.is_incomplete]
        weights = self.weights()
        for p, name in enumerate(self.names):
            q = self.closest(p)
            numbers = f"{self.alignments[p, q]:.3f}", f"{self.scores[p, q]:.1f}"
            rows.append([name, self.names[q], *numbers, p_text(self.p_values[p, q])])
            rows[-1] += [f"{min(self.directions[p], 999):.3g}", f"{weights[p]:.2f}"]
            rows[-1] += [str(self.pair_samples[p, q])] * self.is_incomplete
        lines = [self.verdict(), text_table(rows)]
        poor = self.directions < FULL_WEIGHT_DIRECTIONS
        if self.any_share and poor[self.chosen].any() and not poor[self.chosen].all():
            names = join_words(self._names_of(p for p in self.chosen if poor[p]))
            lines.append(f"Less weight, because of few effective directions: {names}.")
        return "\n".join(lines)

    __repr__ = summary

    def plot(self, ax: Any = None) -> Any:
        """Draw the alignments in a new figure or given axes; return the display."""
        from mkclust.plots import AgreementDisplay

        return AgreementDisplay(
            kernel_names=self.names, alignments=self.alignments, weights=self.weights()
        ).plot(ax)


def measure_agreement(stack: Stack) -> Agreement:
    """Return how the kernels of a stack agree, in one pass over them."""
    m = stack.n_kernels
    norms, directions, n_common = np.zeros(m), np.zeros(m), np.zeros((m, m), int)
    alignments, scores, likely, lowest, by_order = np.zeros((5, m, m))
    compared = [(each, *debiased_alignments(each.products)) for each in compare(stack)]
    for each, found, lengths in compared:
        if each.first == each.second:  # on all the samples that these kernels have
            norms[list(each.first)] = lengths
            directions[list(each.first)] = effective_directions(each.products, lengths)
        _insert(n_common, each, np.full_like(found, each.n_samples))
        _insert(alignments, each, found)
        _insert(scores, each, permutation_scores(found, each.n_samples))
    views = _independent_views(alignments, stack.views, n_common)
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
        _insert(likely, each, of_pairs)
        _insert(lowest, each, of_copies)
        _insert(by_order, each, _may_be_by_order(each, of_pairs))
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
        by_order=by_order > 0,
        n_sample_groups=None if stack.groups is None else len(np.unique(stack.groups)),
        are_groups_compared=are_groups_compared,
    )


def _p_values(
    comparison: Comparison, alignments: Float, tested: np.ndarray
) -> tuple[Float, Float]:
    """Return the p-values of alignments and of copies, (c, c); one if not tested."""
    if not tested.any():
        return np.ones_like(alignments), np.ones_like(alignments)
    n = comparison.n_samples
    entries = comparison.entries(draw(n, JUDGED_SAMPLES))
    shares = leading_shares(entries)
    likely, lowest = (
        np.where(tested, p_values(permutation_scores(C, n), shares), 1)
        for C in (alignments, np.ones_like(alignments))
    )
    doubtful = (likely < p_value_limit(n)) & are_localized(row_kurtoses(entries), n)
    if doubtful.any():
        kernels = to_host(comparison.entries(draw(n, SIMULATED_SAMPLES)))
        for p, q in np.argwhere(np.triu(doubtful)):
            simulated = simulated_p_value(kernels[p], kernels[q])
            likely[p, q] = likely[q, p] = max(likely[p, q], simulated)
    return likely, lowest


class GroupedPValues(NamedTuple):
    """P-values that respect groups of samples, (c, c)."""

    of_pairs: Float
    of_copies: Float
    are_groups_compared: bool  # whether there are enough of them


def _p_values_of_groups(
    comparison: Comparison, groups: np.ndarray, tested: np.ndarray
) -> GroupedPValues:
    """Return twice the smaller p-value of shuffling within groups and whole groups."""
    if not tested.any():
        ones = np.ones(tested.shape)
        return GroupedPValues(ones, ones, False)
    rng = np.random.default_rng(0)
    means = comparison.of_means(draw_equally(groups, GROUPED_SAMPLES, rng))
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
    comparison: Comparison, groups: np.ndarray, tested: np.ndarray
) -> tuple[Float, Float]:
    """Return p-values of what kernels share within groups, and of copies, (c, c)."""
    rng = np.random.default_rng(0)
    drawn = draw_members(groups, SIMULATED_SAMPLES, rng)
    ones = np.ones(tested.shape)
    if len(drawn) < FEWEST_SAMPLES:
        return ones, ones
    found = compare_within_groups(to_host(comparison.entries(drawn)), groups[drawn])
    judged = draw(len(drawn), JUDGED_SAMPLES)
    shares = leading_shares(found.entries[:, judged[:, None], judged])
    varies = tested & (found.deviations > 0)
    likely, lowest = (
        np.where(varies, p_values(scores, shares), 1)
        for scores in (found.scores, found.largest_scores)
    )
    limit = p_value_limit(comparison.n_samples)
    doubtful = (likely < limit) & are_localized(row_kurtoses(found.entries), len(drawn))
    for p, q in np.argwhere(np.triu(doubtful)):
        orders = np.stack(
            [orders_within_groups(found.groups, ORDERS, rng) for _ in range(2)]
        )
        simulated = simulated_p_value(found.entries[p], found.entries[q], orders)
        likely[p, q] = likely[q, p] = max(likely[p, q], simulated)
    return likely, lowest


def _may_be_by_order(comparison: Comparison, likely: Float) -> np.ndarray:
    linked = likely < p_value_limit(comparison.n_samples)
    if not linked.any():
        return linked
    n = comparison.n_samples
    spread, in_windows = spread_rows(n), None
    at_large = Rows(comparison.means(spread))
    if spread.shape[1] > 1:
        windows = neighboring_rows(n)
        entries = to_host(comparison.entries(windows.reshape(-1)))
        in_windows = Rows(entries, len(windows))
    return linked & may_be_by_order(at_large, in_windows)


def _insert(whole: np.ndarray, comparison: Comparison, values: np.ndarray) -> None:
    """Write the values of a comparison into a matrix of all kernels, (m, m)."""
    first, second = comparison.first, comparison.second
    n_first = len(first) if first != second else 0
    across = values[: len(first), n_first:]
    whole[np.ix_(first, second)], whole[np.ix_(second, first)] = across, across.T


def _can_be_copies(pair_samples: np.ndarray) -> np.ndarray:
    """Return which pairs share all samples, or enough to be called copies, (m, m)."""
    own = np.diag(pair_samples)
    return np.asarray(
        pair_samples >= np.minimum(np.maximum(own[:, None], own), FEWEST_FOR_COPIES)
    )


def _independent_views(
    alignments: Float, views: Any, pair_samples: np.ndarray
) -> np.ndarray:
    # Views are copies if every kernel of the one has a copy among the kernels of the
    # other.
    numbers = np.unique(views, return_inverse=True)[1]
    of_view = numbers == np.arange(numbers.max() + 1)[:, None]
    alike = (alignments > COPY_ALIGNMENT) & _can_be_copies(pair_samples)
    # (view, kernel).
    has_copy = np.array([alike[:, members].any(axis=1) for members in of_view])
    within = np.array([has_copy[:, members].all(axis=1) for members in of_view])
    return _components(within & within.T)[numbers]


def _components(links: np.ndarray) -> np.ndarray:
    """Return the number of each one's connected component, given the links, (m, m)."""
    # Sparse, because SciPy is slow on dense graphs.
    return connected_components(csr_array(links), directed=False)[1]
