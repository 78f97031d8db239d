"""Which views agree beyond chance, which share nothing with any other, and who is whose copy."""

from collections.abc import Iterable, Sequence
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
from mkclust.stack import KernelStack
from mkclust.stack.mapped import draw
from mkclust.stack.off_diagonal import Comparison
from mkclust.text import join_words
from mkclust.types import Float

# What two views share is beyond chance where chance alone makes two views as much alike this
# seldom: one in ten thousand among the ten pairs of five views. It is the same however many views
# there are, or one that shares nothing could take the voice of another.
BEYOND_CHANCE = 1e-5
# Two kernels that are this much alike are one kernel, given twice.
SAME = 0.99
# Of kernels that have other samples in common than all of their own, at least so many must be: on
# fewer, chance makes two of few directions that much alike.
COPIES_SEEN = 24
# A voice that agrees with the others less than by this share of what the middle one does, counts as
# much less. Chosen on the data sets of benchmarks/agreement.py.
MUCH_LESS = 0.6
# Chances below this are not told apart: they rest on the far tail of a distribution.
SMALLEST_CHANCE = 1e-16
# Samples by which the leading direction of a kernel is judged.
JUDGED_SAMPLES = 192
# Samples by which p-values are simulated, for kernels whose weight is on few of them.
SIMULATED_SAMPLES = 512


@dataclass(frozen=True, eq=False)
class Agreement:
    """What the views of the same samples share, without labels.

    A view *shares* where some other view is more like it than chance makes them, and is **set
    aside** where none is. Copies of a view, and kernels made of the same view, prove nothing about
    each other: they are one voice.

    Attributes
    ----------
    names : tuple of str
        Names of the kernels, one or several a view.
    views : tuple of int
        The number of the view that each kernel is of.
    n_samples : int
        How many samples were compared, n: all, or of more than 2048 some that stand for all. Where
        samples are missing from views, the largest of `pair_samples`.
    alignments : ndarray of shape (m, m)
        Debiased centered kernel alignments: 1 for copies, about 0 for views that share nothing.
    norms : ndarray of shape (m,)
        Debiased norms of the kernels: small for noise.
    scores : ndarray of shape (m, m)
        The same alignments in standard deviations of what chance makes of them: exact over all
        permutations of the samples of one view.
    pair_chances : ndarray of shape (m, m)
        How likely chance makes two of them so much alike; one for kernels of one voice.
    lowest_chances : ndarray of shape (m, m)
        The same if the two were copies: what so many samples can tell.
    pair_samples : ndarray of int of shape (m, m)
        On how many samples every two kernels were compared, and each by itself: where samples are
        missing from views, on those that both have. With fewer than four in common two kernels
        share nothing that could be told: their alignment is zero, and their chances are one.
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
    n_samples: int
    alignments: Float
    norms: Float
    scores: Float
    pair_chances: Float
    lowest_chances: Float
    pair_samples: Any = None
    by_order: Any = None

    def __post_init__(self) -> None:
        """Fill in that all kernels were compared on the same samples, unless it is said."""
        if self.by_order is None:
            object.__setattr__(self, "by_order", np.zeros(self.alignments.shape, bool))
        if self.pair_samples is None:
            everyone = np.full(self.alignments.shape, self.n_samples)
            object.__setattr__(self, "pair_samples", everyone)

    @cached_property
    def voices(self) -> np.ndarray:
        """The number of the voice that each kernel is part of, (m,)."""
        return _voices(self.alignments, self.views, self._are_many)

    @cached_property
    def _are_many(self) -> np.ndarray:
        """Which pairs have samples enough in common to be told copies, (m, m)."""
        return _are_many(self.pair_samples)

    @property
    def n_voices(self) -> int:
        """How many voices there are."""
        return len(np.unique(self.voices))

    @property
    def _links(self) -> np.ndarray:
        """Which kernels share something beyond chance, (m, m)."""
        return np.asarray(self.pair_chances < BEYOND_CHANCE)

    @property
    def chances(self) -> Float:
        """How likely chance makes any two so much alike: corrected for the number of pairs."""
        n_pairs = int(np.sum(self.voices[:, None] != self.voices)) // 2
        return np.minimum(self.pair_chances * max(n_pairs, 1), 1)

    @property
    def shares(self) -> np.ndarray:
        """Whether each kernel shares something with another voice, beyond chance, (m,) of bool."""
        return np.asarray(self._links.any(axis=1))

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Kernels that share with each other, be it by way of others; the largest group first.

        A group is as large as it has voices and, of as many, as much as they agree.
        """
        kernels = np.flatnonzero(self.shares)
        links = self._links | (self.voices[:, None] == self.voices)
        number = _components(links[np.ix_(kernels, kernels)])
        groups = [kernels[number == each] for each in np.unique(number)]

        def rank(group: np.ndarray) -> tuple[int, float]:
            """Return what groups are sorted by."""
            n_voices = len(np.unique(self.voices[group]))
            # To the digits of single precision: which of equal groups is first, is no accident.
            return n_voices, round(float(self._voice_sums(group.tolist()).mean()), 6)

        # The sort is stable: of groups that are equal in both, the first view's comes first.
        return tuple(tuple(map(int, group)) for group in sorted(groups, key=rank, reverse=True))

    @property
    def is_incomplete(self) -> bool:
        """Whether kernels were compared on different samples, some being missing from views."""
        return bool((self.pair_samples != self.n_samples).any())

    @property
    def any_share(self) -> bool:
        """Whether two voices at least agree beyond chance."""
        return bool(self.groups)

    @property
    def is_testable(self) -> bool:
        """Whether there are voices to compare, and enough samples to tell them from chance."""
        return bool((self.lowest_chances < BEYOND_CHANCE).any())

    @cached_property
    def chosen(self) -> list[int]:
        """The kernels that have a voice: those of the first group, all where there is none."""
        return list(self.groups[0]) if self.groups else list(range(len(self.names)))

    @property
    def set_aside(self) -> tuple[str, ...]:
        """Names of the kernels that have no voice, none where nothing agrees."""
        return tuple(name for p, name in enumerate(self.names) if p not in self.chosen)

    @property
    def copies(self) -> tuple[tuple[str, ...], ...]:
        """Names of the kernels of views that are close copies of one another."""
        voices = [np.flatnonzero(self.voices == each) for each in np.unique(self.voices)]
        several = [v for v in voices if len({self.views[p] for p in v}) > 1]
        return tuple(tuple(self.names[p] for p in voice) for voice in several)

    def weights(self) -> Float:
        """Return the share of voice of each kernel, zero where it has none, (m,).

        All voices that are heard count the same, but one that agrees with the others much less
        than the middle one does: that counts as much less. The kernels of a voice divide it. Where
        nothing agrees all kernels have the same.
        """
        weights, m = np.zeros(len(self.names)), len(self.names)
        if not self.any_share:
            return np.full(m, 1 / m)
        sums = self._voice_sums(self.chosen)
        voices, first, sizes = np.unique(
            self.voices[self.chosen], return_index=True, return_counts=True
        )
        relative = sums / np.median(sums[first])
        counts = np.where(relative < MUCH_LESS, relative, 1.0)
        weights[self.chosen] = counts / sizes[np.searchsorted(voices, self.voices[self.chosen])]
        return weights / weights.sum()

    def coefficients(self) -> Float:
        """Return what mixes the kernels to the compromise: shares of voice over the norms, (m,).

        Divided by its norm, no kernel outvotes the others by a few large directions.
        """
        weights = self.weights()
        if not self.any_share:
            return weights
        coefficients = np.divide(weights, self.norms, out=np.zeros_like(weights), where=weights > 0)
        return coefficients / coefficients.sum()

    def _voice_sums(self, group: Sequence[int]) -> Float:
        """Return how much each kernel of a group agrees with its other voices, (g,)."""
        voices = self.voices[list(group)]
        sizes = (voices[:, None] == voices).sum(axis=1)
        strangers, part = voices[:, None] != voices, np.ix_(group, group)
        known = strangers & self._are_many[part]
        known = np.where(known.any(axis=1, keepdims=True), known, strangers)
        agreeing = np.where(known, np.maximum(self.alignments[part], 0), 0)
        # A pair with few samples in common counts as the others of the kernel do on average.
        n_others, n_known = ((which / sizes).sum(axis=1) for which in (strangers, known))
        return (agreeing / sizes).sum(axis=1) * (n_others / n_known)

    def verdict(self, *, sets_aside: bool = True) -> str:
        """Return in a sentence or two which views agree, and which were set aside.

        Parameters
        ----------
        sets_aside : bool, default=True
            Whether views that share nothing with those that agree are set aside, as `AgreementKKM`
            does; a method that mixes all of them is not said to have done so.

        Returns
        -------
        str
        """
        m = len(self.names)
        everybody = "Both" if m == 2 else f"All {m}"
        if self.n_voices == 1:
            return (
                "One view alone: there is nothing to compare it with."
                if len(set(self.views)) == 1
                else f"{everybody} views are copies of one another: they count as one "
                "view, and there is nothing to compare."
            )
        if not self.is_testable:
            return (
                f"{self._most_common()} are too few to tell what {m} views share from "
                "chance: all views count equally."
            )
        if not self.any_share:
            return (
                f"No two of the {m} views share anything beyond chance "
                f"({join_words(self.names)}): nothing can tell which view is right, and "
                "the clusters may match none of them." + self._unknown_pairs()
            )
        heard = join_words([self.names[p] for p in self.chosen])
        if len(self.groups) > 1:
            others = "; ".join(
                join_words([self.names[p] for p in group]) for group in self.groups[1:]
            )
            sentence = (
                f"The views fall into {len(self.groups)} groups that share nothing with each "
                f"other: {heard}; {others}. "
                + ("The first is heard, the others are set aside." if sets_aside else "All count.")
            )
        elif len(self.chosen) == m:
            sentence = f"{everybody} views agree beyond chance."
        else:
            sentence = f"{len(self.chosen)} of {m} views agree beyond chance: {heard}."
        strangers = [
            name for name, shares in zip(self.names, self.shares, strict=True) if not shares
        ]
        if strangers:
            lead = "Set aside, sharing" if sets_aside else "Mixed in, though sharing"
            sentence += f" {lead} nothing with any other view: {join_words(strangers)}."
        return " ".join([sentence + self._unknown_pairs(), *self.order_sentences()])

    def order_sentences(self) -> list[str]:
        """Return which views may agree by the order of the rows alone; nothing if none do."""
        names = [self.names[p] for p in np.flatnonzero(self.by_order.any(axis=1))]
        if not names:
            return []
        return [
            f"Neighboring rows are alike in {join_words(names)}, and these are as much alike if "
            "the rows of one view are shifted by a few. If the rows are in an order, such as time, "
            "the agreement may come from that order alone: its p-values assume rows that can be "
            "exchanged. Keep rows that are far apart, or remove what changes with the order."
        ]

    def _most_common(self) -> str:
        """Return in words on how many samples two voices were compared at most."""
        if not self.is_incomplete:
            return f"{self.n_samples} samples"
        strangers = self.voices[:, None] != self.voices
        return f"{int(self.pair_samples[strangers].max())} samples in common, at most,"

    def _unknown_pairs(self) -> str:
        """Return a sentence on views that nothing can be said of, for want of common samples."""
        if not self.is_incomplete:
            return ""
        strangers = self.voices[:, None] != self.voices
        unknown = strangers & (self.lowest_chances >= BEYOND_CHANCE)
        # Of a kernel of which nothing is left no number of samples tells more.
        unknown &= np.outer(self.norms, self.norms) > 0
        pairs = [
            f"{self.names[p]} and {self.names[q]} ({self.pair_samples[p, q]})"
            for p, q in np.argwhere(np.triu(unknown))
        ]
        if not pairs:
            return ""
        return f" Too few samples in common to tell what they share: {join_words(pairs, most=4)}."

    def summary(self) -> str:
        """Return the verdict, and for every view its closest partner and what chance would do.

        Returns
        -------
        str
        """
        lines = [self.verdict()]
        lines += [
            f"Close copies, one voice together: {join_words(names)}." for names in self.copies
        ]
        if self.n_voices == 1:
            return "\n".join(lines)
        width = max(map(len, ("view", *self.names)))
        weights, chances = self.weights(), self.chances
        heading = f"{'view':{width}}  closest to        alignment  deviations  chance   voice"
        lines.append(heading + ("  samples in common" if self.is_incomplete else ""))
        for p, name in enumerate(self.names):
            others = self.voices != self.voices[p]
            q = int(np.argmax(np.where(others, self.scores[p], -np.inf)))
            lines.append(
                f"{name:{width}}  {self.names[q]:16.16}  {self.alignments[p, q]:9.3f}  "
                f"{self.scores[p, q]:10.1f}  {_likelihood(chances[p, q]):<7}  {weights[p]:5.2f}"
                + (f"  {self.pair_samples[p, q]:17}" if self.is_incomplete else "")
            )
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> Any:
        """Draw the alignments as a picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to; None makes a figure.

        Returns
        -------
        AgreementDisplay
        """
        from mkclust.plots import AgreementDisplay

        return AgreementDisplay(
            kernel_names=self.names, alignments=self.alignments, weights=self.weights()
        ).plot(ax)


def _likelihood(chance: float) -> str:
    """Return a chance to one digit; of very small ones only that they are."""
    return f"{chance:.1g}" if chance >= SMALLEST_CHANCE else f"<{SMALLEST_CHANCE:g}"


def measure_agreement(stack: KernelStack) -> Agreement:
    """Return what the kernels of a stack share, in one pass over them.

    Parameters
    ----------
    stack : KernelStack
        The kernels.

    Returns
    -------
    Agreement
    """
    m = stack.n_kernels
    compared = [(each, *debiased_alignments(each.products)) for each in stack.comparisons()]
    sizes = _assemble(m, [(each, np.full_like(C, each.n_samples)) for each, C, _ in compared])
    alignments = _assemble(m, [(each, C) for each, C, _ in compared])
    voices = _voices(alignments, stack.views, _are_many(sizes))
    strangers = voices[:, None] != voices
    norms = np.zeros(m)
    for each, _, lengths in compared:
        if each.first == each.second:  # on all the samples that these kernels have
            norms[list(each.first)] = lengths
    likelihoods = [(each, *_chances(each, C, d, strangers)) for each, C, d in compared]
    in_order = [(each, _may_be_by_order(each, likely)) for each, likely, _ in likelihoods]
    return Agreement(
        stack.names,
        tuple(map(int, stack.views)),
        int(sizes.max()),
        alignments,
        norms,
        _assemble(m, [(each, permutation_scores(C, each.n_samples)) for each, C, _ in compared]),
        _assemble(m, [(each, likely) for each, likely, _ in likelihoods]),
        _assemble(m, [(each, lowest) for each, _, lowest in likelihoods]),
        sizes.astype(int),
        _assemble(m, in_order).astype(bool),
    )


def warn_of_agreement(agreement: Agreement) -> None:
    """Warn if no views agree, or if those that do may agree by the order of the rows alone."""
    if agreement.is_testable and not agreement.any_share:
        warn(agreement.verdict(), NoAgreementWarning)
    for sentence in agreement.order_sentences():
        warn(sentence, OrderWarning)


def _chances(
    comparison: Comparison, alignments: Float, norms: Float, strangers: np.ndarray
) -> tuple[Float, Float]:
    """Return how likely chance makes kernels so much alike, and as copies are, two (c, c)."""
    # A kernel of which nothing is left, off its diagonal, shares nothing.
    told = strangers[np.ix_(comparison.kernels, comparison.kernels)] & (np.outer(norms, norms) > 0)
    if not told.any():
        return np.ones_like(alignments), np.ones_like(alignments)
    n = comparison.n_samples
    entries = comparison.entries(draw(n, JUDGED_SAMPLES))
    shares = leading_shares(entries)
    likely, lowest = (
        np.where(told, chances(permutation_scores(C, n), shares), 1)
        for C in (alignments, np.ones_like(alignments))
    )
    doubtful = (likely < BEYOND_CHANCE) & are_localized(row_kurtoses(entries), n)
    if doubtful.any():
        kernels = to_host(comparison.entries(draw(n, SIMULATED_SAMPLES)))
        for p, q in np.argwhere(np.triu(doubtful)):
            likely[p, q] = likely[q, p] = max(
                likely[p, q], simulated_chance(kernels[p], kernels[q])
            )
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


def _assemble(n_kernels: int, parts: Iterable[tuple[Comparison, Float]]) -> Float:
    """Return a matrix of all kernels, from what each comparison says of its own, (m, m)."""
    whole = np.zeros((n_kernels, n_kernels))
    for comparison, values in parts:
        first, second = comparison.first, comparison.second
        if first == second:
            whole[np.ix_(first, first)] = values
            continue
        across = values[: len(first), len(first) :]
        whole[np.ix_(first, second)], whole[np.ix_(second, first)] = across, across.T
    return whole


def _are_many(pair_samples: Float) -> np.ndarray:
    """Return which pairs have all samples in common, or enough to be called copies, (m, m)."""
    own = np.diag(pair_samples)
    return np.asarray(pair_samples >= np.minimum(np.maximum(own[:, None], own), COPIES_SEEN))


def _voices(alignments: Float, views: Any, are_many: np.ndarray | bool) -> np.ndarray:
    """Return the number of the voice that each kernel is part of, (m,).

    Views are copies where every kernel of the one has a copy among the kernels of the other;
    `are_many` tells which pairs have samples enough in common to be seen as such.
    """
    numbers = np.unique(views, return_inverse=True)[1]
    n_views = numbers.max() + 1
    of_view = numbers == np.arange(n_views)[:, None]
    alike = (alignments > SAME) & are_many
    has_copy = np.array([(alike[:, other].any(axis=1)) for other in of_view])  # (view, kernel)
    within = np.array([has_copy[:, members].all(axis=1) for members in of_view])
    copies = within & within.T
    return _components(copies)[numbers]


def _components(links: np.ndarray) -> np.ndarray:
    """Return the number of the component that each is part of, by which are linked, (m, m)."""
    if links.all():
        return np.zeros(len(links), int)
    if np.count_nonzero(links) == np.count_nonzero(links.diagonal()):
        return np.arange(len(links))
    # A dense graph would be searched for masked entries, which takes longer than all else.
    return connected_components(csr_array(links), directed=False)[1]
