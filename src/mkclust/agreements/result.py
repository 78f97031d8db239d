"""Which views agree, which agree clearly with no other one, and which are copies."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mkclust.agreements.alignments import divided, p_text, p_value_limit
from mkclust.text import join_words, printable, text_table
from mkclust.types import Float

# Fewer effective directions mean less weight: a column of two levels has 1, tables
# mostly over 4.
FULL_WEIGHT_DIRECTIONS = 3.0
# Two kernels with a larger alignment are copies.
COPY_ALIGNMENT = 0.99


def can_be_copies(pair_samples: np.ndarray) -> np.ndarray:
    """Return which pairs share all samples, or enough to be called copies, (m, m)."""
    own = np.diag(pair_samples)
    # Fewer samples in common can be alike by chance.
    fewest_for_copies = 24
    needed = np.minimum(np.maximum(own[:, None], own), fewest_for_copies)
    return np.asarray(pair_samples >= needed)


def independent_views(
    alignments: Float,
    views: Any,
    pair_samples: np.ndarray,
) -> np.ndarray:
    """Return the number of the independent view of each kernel, (m,).

    Views are copies, and one independent view, if every kernel of the one has a copy
    among the kernels of the other.
    """
    numbers = np.unique(views, return_inverse=True)[1]
    of_view = numbers == np.arange(numbers.max() + 1)[:, None]
    alike = (alignments > COPY_ALIGNMENT) & can_be_copies(pair_samples)
    # (view, kernel).
    has_copy = np.array([alike[:, members].any(axis=1) for members in of_view])
    within = np.array([has_copy[:, members].all(axis=1) for members in of_view])
    return components(within & within.T)[numbers]


def components(links: np.ndarray) -> np.ndarray:
    """Return the number of each one's connected component, given the links, (m, m)."""
    # Sparse, because SciPy is slow on dense graphs.
    return connected_components(csr_array(links), directed=False)[1]


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
        """Which kernels are of different independent views, (m, m)."""
        numbers = self.independent_views
        return np.asarray(numbers[:, None] != numbers)

    @property
    def limits(self) -> Float:
        """The p-value below which each pair agrees, by its common samples, (m, m)."""
        return np.asarray(p_value_limit(self.pair_samples))

    def limits_in_words(self) -> str:
        """Return the limit of the p-values, or the smallest and the largest of them."""
        others = self._are_other_views
        limits = self.limits[others] if others.any() else self.limits
        ends = [f"{limit:.1g}" for limit in (limits.min(), limits.max())]
        return " to ".join(dict.fromkeys(ends))

    @property
    def shares(self) -> np.ndarray:
        """Whether each kernel agrees with another independent view, (m,) of bool."""
        return np.asarray((self.p_values < self.limits).any(axis=1))

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Kernels that agree, even through others: most independent views first."""
        kernels = np.flatnonzero(self.shares)
        links = (self.p_values < self.limits) | ~self._are_other_views
        number = components(links[np.ix_(kernels, kernels)])
        groups = [tuple(kernels[number == g].tolist()) for g in np.unique(number)]

        def rank(group: tuple[int, ...]) -> tuple[int, float]:
            """Return how many independent views a group has, and how they agree."""
            agreement = self._agreement_sums(group).mean()
            # Rounded, so that rounding errors do not order equal groups.
            return self._count_views(group), round(float(agreement), 6)

        return tuple(sorted(groups, key=rank, reverse=True))

    def _count_views(self, kernels: Sequence[int]) -> int:
        """Return how many independent views some kernels are of."""
        return len(np.unique(self.independent_views[list(kernels)]))

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
        return list(self.groups[0] if self.groups else range(len(self.names)))

    @property
    def set_aside(self) -> tuple[str, ...]:
        """Names of the kernels that are not included, none if nothing agrees."""
        names = enumerate(self.names)
        return tuple(name for p, name in names if p not in self.chosen)

    @property
    def copies(self) -> tuple[tuple[str, ...], ...]:
        """Names of the kernels of views that are close copies of one another."""
        numbers = self.independent_views
        groups = [np.flatnonzero(numbers == each) for each in np.unique(numbers)]
        return tuple(
            tuple(self.names[p] for p in group)
            for group in groups
            if len({self.views[p] for p in group}) > 1
        )

    def weights(self) -> Float:
        """Return the weight of each kernel, zero if it is set aside, (m,).

        The kernels of an independent view divide its weight, which is the same for all
        that are included, with two exceptions: a view that agrees with the others much
        less than the median one, and a kernel of few effective directions (a single
        column) have less, in proportion.
        """
        numbers = self.independent_views[self.chosen]
        _, first, place = np.unique(numbers, return_index=True, return_inverse=True)
        values = 1 / np.bincount(place)[place]
        # A view that agrees with the others by less than this share of the median has
        # less weight, in proportion. Chosen on the data sets of
        # benchmarks/agreement.py.
        much_less_share = 0.6
        if self.any_share:
            sums = self._agreement_sums(self.chosen)
            relative = sums / np.median(sums[first])
            values *= np.where(relative < much_less_share, relative, 1)
        if self.n_independent_views > 1:
            directions = self.directions[self.chosen]
            values *= np.minimum(directions / FULL_WEIGHT_DIRECTIONS, 1)
        weights = np.zeros(len(self.names))
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
        coefficients = divided(weights, self.norms)
        return coefficients / coefficients.sum()

    def _agreement_sums(self, group: Sequence[int]) -> Float:
        """Return how much each kernel agrees with other views of its group, (g,)."""
        part = np.ix_(group, group)
        others = self._are_other_views[part]
        sizes = (~others).sum(axis=1)
        known = others & can_be_copies(self.pair_samples)[part]
        known = np.where(known.any(axis=1, keepdims=True), known, others)
        agreeing = np.where(known, np.maximum(self.alignments[part], 0), 0)
        # A pair with few samples in common counts as the others of the kernel do on
        # average.
        n_others = np.sum(others / sizes, axis=1)
        n_known = np.sum(known / sizes, axis=1)
        return np.sum(agreeing / sizes, axis=1) * (n_others / n_known)

    def verdict(self, *, sets_aside: bool = True) -> str:
        """Return in words which views agree and which were set aside, with p-values.

        Pass ``sets_aside=False`` for a method that uses all views.
        """
        if len(set(self.views)) == 1:
            return "One view alone: there is nothing to compare it with."
        found = [
            f"{join_words(names)} are copies and count as one view."
            for names in self.copies
        ]
        if self.n_independent_views == 1:
            found.append("There is no other view to compare with.")
        elif not self.is_testable:
            n_common = int(self.pair_samples[self._are_other_views].max())
            where = "in common"
            if self.n_sample_groups is not None:
                where = f"in {self.n_sample_groups} groups"
            found.append(
                f"{n_common} samples {where} are too few to test: all views are used."
            )
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

    def _about_sample_groups(self) -> list[str]:
        """Say how groups of samples were taken into account, if there are some."""
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
        """Say that no two views agree clearly, and which are closest to it."""
        p = int(np.argmin((self.p_values / self.limits).min(axis=1)))
        q = self.closest(p)
        who = f"No two of the {self.n_independent_views} views"
        if self.n_independent_views == 2:
            who = "The two views do not"
        return (
            f"{who} agree clearly (p {p_text(self.p_values[p, q], '= ')} for "
            f"{self.names[p]} and {self.names[q]}; the limit for "
            f"{self.pair_samples[p, q]} samples is {self.limits[p, q]:.1g}). "
            "The test can miss weak agreement and clusters of few samples. All views "
            "are used, and the clusters may match none of them."
        )

    def _about_agreement(self, sets_aside: bool) -> list[str]:
        """Say which views agree, and which agree with no other one."""
        groups = self.groups
        n = self.n_independent_views
        n_chosen = self._count_views(groups[0])
        kernels = np.flatnonzero(self.shares).tolist()
        p_values = [self.p_values[p, self.closest(p)] for p in kernels]
        largest = float(max(p_values))
        agree = f"views agree (p {p_text(largest, '<= ')})"
        how_many = f"{n_chosen} of {n}"
        if n_chosen == n:
            how_many = f"All {n}"
        if n_chosen == n == 2:
            how_many = "Both"

        listed = [join_words(self._names_of(group)) for group in groups]
        if len(groups) > 1:
            which = "All are used"
            if sets_aside:
                which = "The first is used, the others are set aside"
            sentence = (
                f"{len(groups)} groups of {agree}, but not clearly with each other: "
                f"{'; '.join(listed)}. {which}."
            )
        elif len(groups[0]) == len(self.names):
            sentence = f"{how_many} {agree}."
        else:
            sentence = f"{how_many} {agree}: {listed[0]}."
        if self.shares.all():
            return [sentence]

        what = "Set aside" if sets_aside else "Used"
        return [sentence, f"{what} without clear agreement: {self._lone_kernels()}."]

    def _lone_kernels(self) -> str:
        """Return the kernels that agree with no other one, with p-values and limits."""
        found = {p: self.evidence(p) for p in np.flatnonzero(~self.shares).tolist()}
        limits = {p: f"; the limit is {each.limit:.1g}" for p, each in found.items()}
        shared = ""
        if len(set(limits.values())) == 1:  # said once
            shared = next(iter(limits.values()))
            limits = dict.fromkeys(found, "")
        others = [
            f"{self.names[p]} (p {p_text(each.p_value, '= ')}{limits[p]})"
            for p, each in found.items()
        ]
        return join_words(others) + shared

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
        views = np.array(self.views)
        numbers = self.independent_views
        return [
            self.names[p]
            for p in kernels
            if views[p] == views[numbers == numbers[p]].min()
        ]

    def _unknown_pairs(self) -> list[str]:
        """Say which kernels have too few samples in common to be tested."""
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
        q = self.closest(p, self.chosen if is_elsewhere else None)
        return Evidence(
            partner=self.names[q],
            p_value=float(self.p_values[p, q]),
            limit=float(self.limits[p, q]),
        )

    def closest(
        self,
        p: int,
        among: Sequence[int] | None = None,
    ) -> int:
        """Return the closest kernel, by its p-value, in another independent view."""
        others = np.flatnonzero(self._are_other_views[p])
        if among is not None:
            others = np.intersect1d(others, among)
        p_values = np.maximum(self.p_values[p, others], 1e-16)
        relative = p_values / self.limits[p, others]
        order = np.lexsort([-self.scores[p, others], relative])
        return int(others[order[0]])

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
            row = [
                name,
                self.names[q],
                f"{self.alignments[p, q]:.3f}",
                f"{self.scores[p, q]:.1f}",
                p_text(self.p_values[p, q]),
                f"{min(self.directions[p], 999):.3g}",
                f"{weights[p]:.2f}",
            ]
            rows.append(row + [str(self.pair_samples[p, q])] * self.is_incomplete)
        lines = [self.verdict(), text_table(rows)]
        poor = [p for p in self.chosen if self.directions[p] < FULL_WEIGHT_DIRECTIONS]
        if self.any_share and 0 < len(poor) < len(self.chosen):
            names = join_words(self._names_of(poor))
            lines.append(f"Less weight, because of few effective directions: {names}.")
        return "\n".join(lines)

    __repr__ = summary

    def plot(self, ax: Any = None) -> Any:
        """Draw the alignments in a new figure or given axes; return the display."""
        from mkclust.plots import AgreementDisplay

        return AgreementDisplay(
            kernel_names=self.names, alignments=self.alignments, weights=self.weights()
        ).plot(ax)
