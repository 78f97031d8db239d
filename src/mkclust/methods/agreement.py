"""Which views agree beyond chance, which share nothing with any other, and which are copies."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mkclust.engine.agreement import (
    are_localized,
    chances,
    debiased_alignments,
    leading_shares,
    permutation_scores,
    row_kurtoses,
    simulated_chance,
)
from mkclust.engine.row_order import alike_if_shifted, neighbor_chances, neighboring_rows
from mkclust.exceptions import NoAgreementWarning, OrderWarning, warn
from mkclust.linalg import to_host
from mkclust.stack import Stack
from mkclust.stack.compare import Comparison, compare, draw
from mkclust.text import join_words, text_table
from mkclust.types import Float

# Two views share something beyond chance if its p-value is below this: one in ten thousand among
# the ten pairs of five views. It does not depend on the number of views, or one that shares nothing
# could exclude another.
BEYOND_CHANCE = 1e-5
# Two kernels with a larger alignment are one kernel, given twice.
COPY_ALIGNMENT = 0.99
# Samples that kernels need in common to be called copies, if they do not have all in common: with
# fewer, chance makes two kernels of few directions as much alike.
FEWEST_FOR_COPIES = 24
# A view that agrees with the others by less than this share of what the median one does has a
# weight that is less in proportion. Chosen on the data sets of benchmarks/agreement.py.
MUCH_LESS_SHARE = 0.6
# Samples by which the leading direction of a kernel is judged.
JUDGED_SAMPLES = 192
# Samples by which p-values are simulated, for kernels whose weight is on few of them.
SIMULATED_SAMPLES = 512


@dataclass(frozen=True, eq=False)
class Agreement:
    """What the views of the same samples share, without labels.

    A view *shares* if some other view is more like it than chance makes them, and is **set aside**
    if none is. Copies of a view, and kernels made of the same view, prove nothing about each other:
    together they are one independent view.

    Attributes
    ----------
    names : tuple of str
        Names of the kernels, one or several per view.
    views : tuple of int
        The number of the view that each kernel is of.
    independent_views : ndarray of int of shape (m,)
        The number of the independent view that each kernel is part of.
    n_samples : int
        How many samples were compared, n: all, or of more than 2048 some that stand for all. If
        samples are missing from views, the largest of `pair_samples`.
    alignments : ndarray of shape (m, m)
        Debiased centered kernel alignments: 1 for copies, about 0 for views that share nothing.
    norms : ndarray of shape (m,)
        Debiased norms of the kernels: small for noise.
    scores : ndarray of shape (m, m)
        The alignments in standard deviations of what chance makes of them: exact over all
        permutations of the samples of one view.
    pair_chances : ndarray of shape (m, m)
        How likely chance makes two of them so much alike; one within an independent view.
    lowest_chances : ndarray of shape (m, m)
        The same if the two were copies: the least that this number of samples can show.
    pair_samples : ndarray of int of shape (m, m)
        On how many samples every two kernels were compared: those that both have. With fewer than
        four nothing is known: their alignment is zero, and their chances are one.
    by_order : ndarray of bool of shape (m, m)
        Which kernels are alike beyond chance, but may be so by the order of the rows alone:
        neighboring rows are alike in both, and if the rows of one are shifted by a few, the two are
        as much alike. Chances assume that rows can be exchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import agreement
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=90)
    >>> views = {name: rng.normal(size=(3, 5))[y] * 3 + rng.normal(size=(90, 5)) for name in "ab"}
    >>> agreed = agreement(views | {"noise": rng.normal(size=(90, 5))})
    >>> agreed.set_aside
    ('noise',)
    """

    names: tuple[str, ...]
    views: tuple[int, ...]
    independent_views: np.ndarray
    n_samples: int
    alignments: Float
    norms: Float
    scores: Float
    pair_chances: Float
    lowest_chances: Float
    pair_samples: np.ndarray
    by_order: np.ndarray

    @property
    def n_independent_views(self) -> int:
        """How many independent views there are."""
        return len(np.unique(self.independent_views))

    @property
    def _are_other_views(self) -> np.ndarray:
        return np.asarray(self.independent_views[:, None] != self.independent_views)

    @property
    def chances(self) -> Float:
        """How likely chance makes any two so much alike: corrected for the number of pairs."""
        n_pairs = int(np.sum(self._are_other_views)) // 2
        return np.minimum(self.pair_chances * max(n_pairs, 1), 1)

    @property
    def shares(self) -> np.ndarray:
        """Whether each kernel shares something with another independent view, (m,) of bool."""
        return np.asarray((self.pair_chances < BEYOND_CHANCE).any(axis=1))

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Kernels that share with each other, directly or through others; the largest group first.

        Groups are sorted by their number of independent views, then by how much these agree.
        """
        kernels = np.flatnonzero(self.shares)
        links = (self.pair_chances < BEYOND_CHANCE) | ~self._are_other_views
        number = _components(links[np.ix_(kernels, kernels)])
        groups = [kernels[number == each].tolist() for each in np.unique(number)]

        def rank(group: list[int]) -> tuple[int, float]:
            n_views = len(np.unique(self.independent_views[group]))
            # To the digits of single precision, so that rounding does not order equal groups.
            return n_views, round(float(self._agreement_sums(group).mean()), 6)

        # The sort is stable: of groups that are equal in both, the first view's comes first.
        return tuple(map(tuple, sorted(groups, key=rank, reverse=True)))

    @property
    def is_incomplete(self) -> bool:
        """Whether kernels were compared on different samples, some being missing from views."""
        return bool((self.pair_samples != self.n_samples).any())

    @property
    def any_share(self) -> bool:
        """Whether two independent views at least agree beyond chance."""
        return bool(self.groups)

    @property
    def is_testable(self) -> bool:
        """Whether there are views to compare, and enough samples to tell them from chance."""
        return bool((self.lowest_chances < BEYOND_CHANCE).any())

    @cached_property
    def chosen(self) -> list[int]:
        """The kernels that are included: those of the first group, all if there is none."""
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
        several = [group for group in members if len({self.views[p] for p in group}) > 1]
        return tuple(tuple(self.names[p] for p in group) for group in several)

    def weights(self) -> Float:
        """Return the weight of each kernel, zero if it is set aside, (m,).

        All independent views that are included have the same weight, except one that agrees with
        the others much less than the median one does, whose weight is less in proportion. The
        kernels of an independent view divide its weight. If nothing agrees all kernels have the
        same weight.
        """
        weights, m = np.zeros(len(self.names)), len(self.names)
        if not self.any_share:
            return np.full(m, 1 / m)
        sums = self._agreement_sums(self.chosen)
        numbers = self.independent_views[self.chosen]
        _, first, place = np.unique(numbers, return_index=True, return_inverse=True)
        sizes = np.bincount(place)
        relative = sums / np.median(sums[first])
        weights[self.chosen] = np.where(relative < MUCH_LESS_SHARE, relative, 1.0) / sizes[place]
        return weights / weights.sum()

    def coefficients(self) -> Float:
        """Return what mixes the kernels to the compromise: weights over norms, (m,).

        Divided by its norm, no kernel dominates the others by a few large directions.
        """
        weights = self.weights()
        if not self.any_share:
            return weights
        coefficients = np.divide(weights, self.norms, out=np.zeros_like(weights), where=weights > 0)
        return coefficients / coefficients.sum()

    def _agreement_sums(self, group: Sequence[int]) -> Float:
        """Return how much each kernel of a group agrees with its other independent views, (g,)."""
        part = np.ix_(group, group)
        others = self._are_other_views[part]
        sizes = (~others).sum(axis=1)
        known = others & _can_be_copies(self.pair_samples)[part]
        known = np.where(known.any(axis=1, keepdims=True), known, others)
        agreeing = np.where(known, np.maximum(self.alignments[part], 0), 0)
        # A pair with few samples in common counts as the others of the kernel do on average.
        n_others, n_known = ((which / sizes).sum(axis=1) for which in (others, known))
        return (agreeing / sizes).sum(axis=1) * (n_others / n_known)

    def verdict(self, *, sets_aside: bool = True) -> str:
        """Return in a sentence or two which views agree, and which were set aside.

        A method that mixes all views does not set any aside.
        """
        m = len(self.names)
        all_of_them = "Both" if m == 2 else f"All {m}"
        if len(set(self.views)) == 1:
            return "One view alone: there is nothing to compare it with."
        if self.n_independent_views == 1:
            return f"{all_of_them} views are copies of one another: there is nothing to compare."
        if not self.is_testable:
            n_common = int(self.pair_samples[self._are_other_views].max())
            return (
                f"{n_common} samples in common are too few to tell what {m} views share from "
                "chance: all views count equally."
            )
        groups = [self._list_names(group) for group in self.groups]
        if not groups:
            sentence = (
                f"No two of the {m} views share anything beyond chance "
                f"({join_words(self.names)}): nothing can tell which view is right, and "
                "the clusters may match none of them."
            )
        elif len(groups) > 1:
            which = "The first is used, the others are set aside." if sets_aside else "All count."
            sentence = (
                f"The views fall into {len(groups)} groups that share nothing with each other: "
                f"{'; '.join(groups)}. {which}"
            )
        elif len(self.chosen) == m:
            sentence = f"{all_of_them} views agree beyond chance."
        else:
            sentence = f"{len(self.chosen)} of {m} views agree beyond chance: {groups[0]}."
        if groups and not self.shares.all():
            lead = "Set aside, sharing" if sets_aside else "Mixed in, though sharing"
            unlike = self._list_names(np.flatnonzero(~self.shares))
            sentence += f" {lead} nothing with any other view: {unlike}."
        return " ".join([sentence, *self._unknown_pairs(), *self.order_sentences()])

    def order_sentences(self) -> list[str]:
        """Return which views may agree by the order of the rows alone; nothing if none do."""
        ordered = np.flatnonzero(self.by_order.any(axis=1))
        if not len(ordered):
            return []
        return [
            f"Neighboring rows are alike in {self._list_names(ordered)}, and these are as much "
            "alike if the rows of one view are shifted by a few. If the rows are in an order, such "
            "as time, the agreement may come from that order alone: its p-values assume rows that "
            "can be exchanged. Keep rows that are far apart, or remove what changes with the order."
        ]

    def _list_names(self, kernels: Sequence[int] | np.ndarray) -> str:
        return join_words([self.names[p] for p in kernels])

    def _unknown_pairs(self) -> list[str]:
        """Return which views have too few samples in common; nothing if none do."""
        unknown = self._are_other_views & (self.lowest_chances >= BEYOND_CHANCE)
        # About a kernel that is zero off its diagonal no number of samples tells more.
        unknown &= np.outer(self.norms, self.norms) > 0
        pairs = [
            f"{self.names[p]} and {self.names[q]} ({self.pair_samples[p, q]})"
            for p, q in np.argwhere(np.triu(unknown))
        ]
        if not pairs or not self.is_incomplete:
            return []
        return [f"Too few samples in common to tell what they share: {join_words(pairs, most=4)}."]

    def closest(self, p: int) -> int:
        """Return the kernel of another independent view that is most like a kernel."""
        return int(np.argmax(np.where(self._are_other_views[p], self.scores[p], -np.inf)))

    def summary(self) -> str:
        """Return the verdict, and for every view its closest partner and what chance would do."""
        lines = [self.verdict()]
        lines += [f"Close copies, counted as one view: {join_words(one)}." for one in self.copies]
        if self.n_independent_views == 1:
            return "\n".join(lines)
        rows = [["view", "closest to", "alignment", "deviations", "chance", "weight"]]
        rows[0] += ["samples in common"] * self.is_incomplete
        weights, chances = self.weights(), self.chances
        for p, name in enumerate(self.names):
            q = self.closest(p)
            # Smaller p-values are not told apart: they rest on the far tail of a distribution.
            chance = f"{chances[p, q]:.1g}" if chances[p, q] >= 1e-16 else "<1e-16"
            numbers = f"{self.alignments[p, q]:.3f}", f"{self.scores[p, q]:.1f}", chance
            rows.append([name, self.names[q], *numbers, f"{weights[p]:.2f}"])
            rows[-1] += [str(self.pair_samples[p, q])] * self.is_incomplete
        return "\n".join([*lines, text_table(rows)])

    def plot(self, ax: Any = None) -> Any:
        """Draw the alignments, in a figure of its own or given axes; return the display."""
        from mkclust.plots import AgreementDisplay

        return AgreementDisplay(
            kernel_names=self.names, alignments=self.alignments, weights=self.weights()
        ).plot(ax)


def measure_agreement(stack: Stack) -> Agreement:
    """Return what the kernels of a stack share, in one pass over them."""
    m = stack.n_kernels
    norms, n_common = np.zeros(m), np.zeros((m, m), int)
    alignments, scores, likely, lowest, by_order = np.zeros((5, m, m))
    compared = [(each, *debiased_alignments(each.products)) for each in compare(stack)]
    for each, found, lengths in compared:
        if each.first == each.second:  # on all the samples that these kernels have
            norms[list(each.first)] = lengths
        _insert(n_common, each, np.full_like(found, each.n_samples))
        _insert(alignments, each, found)
        _insert(scores, each, permutation_scores(found, each.n_samples))
    views = _independent_views(alignments, stack.views, n_common)
    for each, found, lengths in compared:
        kernels = list(each.kernels)
        # A kernel of which nothing is left, off its diagonal, shares nothing.
        tested = views[kernels, None] != views[kernels]
        tested &= np.outer(lengths, lengths) > 0
        chance, chance_of_copies = _chances(each, found, tested)
        _insert(likely, each, chance)
        _insert(lowest, each, chance_of_copies)
        _insert(by_order, each, _may_be_by_order(each, chance))
    return Agreement(
        names=stack.names,
        views=tuple(map(int, stack.views)),
        independent_views=views,
        n_samples=int(n_common.max()),
        alignments=alignments,
        norms=norms,
        scores=scores,
        pair_chances=likely,
        lowest_chances=lowest,
        pair_samples=n_common,
        by_order=by_order > 0,
    )


def warn_of_agreement(agreement: Agreement) -> None:
    """Warn if no views agree, or if those that do may agree by the order of the rows alone."""
    if agreement.is_testable and not agreement.any_share:
        warn(agreement.verdict(), NoAgreementWarning)
    for sentence in agreement.order_sentences():
        warn(sentence, OrderWarning)


def _chances(comparison: Comparison, alignments: Float, tested: np.ndarray) -> tuple[Float, Float]:
    """Return the p-values of alignments, and of copies, (c, c); one if a pair is not tested."""
    if not tested.any():
        return np.ones_like(alignments), np.ones_like(alignments)
    n = comparison.n_samples
    entries = comparison.entries(draw(n, JUDGED_SAMPLES))
    shares = leading_shares(entries)
    likely, lowest = (
        np.where(tested, chances(permutation_scores(C, n), shares), 1)
        for C in (alignments, np.ones_like(alignments))
    )
    doubtful = (likely < BEYOND_CHANCE) & are_localized(row_kurtoses(entries), n)
    if doubtful.any():
        kernels = to_host(comparison.entries(draw(n, SIMULATED_SAMPLES)))
        for p, q in np.argwhere(np.triu(doubtful)):
            simulated = simulated_chance(kernels[p], kernels[q])
            likely[p, q] = likely[q, p] = max(likely[p, q], simulated)
    return likely, lowest


def _may_be_by_order(comparison: Comparison, likely: Float) -> np.ndarray:
    """Return which kernels may agree by the order of the rows alone, (c, c) of bool."""
    linked = likely < BEYOND_CHANCE
    if not linked.any():
        return linked
    windows = neighboring_rows(comparison.n_samples)
    entries = to_host(comparison.entries(windows.reshape(-1)))
    ordered = neighbor_chances(entries) < BEYOND_CHANCE
    linked &= np.outer(ordered, ordered)
    return linked & alike_if_shifted(entries, len(windows)) if linked.any() else linked


def _insert(whole: np.ndarray, comparison: Comparison, values: np.ndarray) -> None:
    """Write what a comparison says of its kernels into a matrix of all kernels, (m, m)."""
    first, second = comparison.first, comparison.second
    n_first = len(first) if first != second else 0
    across = values[: len(first), n_first:]
    whole[np.ix_(first, second)], whole[np.ix_(second, first)] = across, across.T


def _can_be_copies(pair_samples: np.ndarray) -> np.ndarray:
    """Return which pairs have all samples in common, or enough to be called copies, (m, m)."""
    own = np.diag(pair_samples)
    return np.asarray(pair_samples >= np.minimum(np.maximum(own[:, None], own), FEWEST_FOR_COPIES))


def _independent_views(alignments: Float, views: Any, pair_samples: np.ndarray) -> np.ndarray:
    """Return the number of the independent view that each kernel is part of, (m,)."""
    # Views are copies if every kernel of the one has a copy among the kernels of the other.
    numbers = np.unique(views, return_inverse=True)[1]
    of_view = numbers == np.arange(numbers.max() + 1)[:, None]
    alike = (alignments > COPY_ALIGNMENT) & _can_be_copies(pair_samples)
    has_copy = np.array([alike[:, members].any(axis=1) for members in of_view])  # (view, kernel)
    within = np.array([has_copy[:, members].all(axis=1) for members in of_view])
    return _components(within & within.T)[numbers]


def _components(links: np.ndarray) -> np.ndarray:
    """Return the number of the connected component of each, given which are linked, (m, m)."""
    # SciPy would search a dense graph for masked entries, which takes longer than all else.
    return connected_components(csr_array(links), directed=False)[1]
