"""The kind of a view, told from its numbers, and what follows from it for its kernels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mkclust.kernels.formulas import LINEAR, Formula
from mkclust.kernels.preparations import (
    CalmColumns,
    LinkedToItself,
    LogTfIdf,
    Preparation,
    RowsAsTheyAre,
    SquareRootsOfShares,
    numbers_looked_at,
    rows_looked_at,
)
from mkclust.linalg import select, to_host
from mkclust.linalg.sparse_rows import dense_rows
from mkclust.types import Array, Float

# A view is sparse where fewer of its entries than this share are not zero.
SPARSE_SHARE = 0.1
# Rows are histograms where their sums differ by less than this share of their mean, and directions
# where their lengths do.
EQUAL_SUMS, EQUAL_LENGTHS = 0.01, 1e-3
# Sums of columns that have nothing to do with each other vary by the root of the sum of their
# variances; those of histograms by less than this share of it.
RELATED = 0.5
# What two entries of a symmetric matrix may differ by, in shares of the largest.
SYMMETRIC = 1e-6
# The neighbors of a sample where similarities by themselves say little.
NEIGHBORS = 20
# What is near and what is far both tell clusters: this share of a kernel are shared neighborhoods.
NEAR = 1 / 3


@dataclass(frozen=True)
class Look:
    """What is looked at to tell the kind of a view.

    Attributes
    ----------
    view : array of shape (n_samples, n_features)
        The view.
    n_samples : int or None
        How many samples there are; None where columns cannot be samples.
    """

    view: Array = field(repr=False)
    n_samples: int | None

    @cached_property
    def numbers(self) -> np.ndarray:
        """The numbers of the rows that are looked at."""
        return numbers_looked_at(*self.view.shape)

    @cached_property
    def raw_rows(self) -> Float:
        """These rows, on the host in float64."""
        return rows_looked_at(self.view, self.numbers)

    @cached_property
    def unit(self) -> float:
        """Their largest entry, signs aside: kinds do not depend on the unit of a view."""
        return float(np.abs(self.raw_rows).max(initial=0)) or 1.0

    @cached_property
    def rows(self) -> Float:
        """The same in units of their largest entry."""
        return self.raw_rows / self.unit

    @cached_property
    def is_nonnegative(self) -> bool:
        """Whether no entry is negative."""
        return bool(self.rows.min() >= 0)

    @cached_property
    def share_of_zeros(self) -> float:
        """The share of the entries that are zero."""
        return float(np.mean(self.rows == 0))

    @cached_property
    def is_of_pairs(self) -> bool:
        """Whether entries are of pairs of samples: square, symmetric and nonnegative."""
        n, d = self.view.shape
        if not n == d == self.n_samples or not self.is_nonnegative:
            return False
        columns = to_host(dense_rows(select(self.view, self.numbers, axis=1))).T
        difference = np.abs(self.rows - columns / self.unit)
        return bool(difference.max() <= SYMMETRIC)

    @cached_property
    def diagonal(self) -> Float:
        """The entries of samples with themselves, of what is of pairs."""
        return self.rows[np.arange(len(self.numbers)), self.numbers]


def _are_categories(look: Look) -> bool:
    """Return whether columns fall into groups of two or more with one mark in every row."""
    rows = look.rows
    mark = rows.max()
    if not mark > 0 or not np.all((rows == 0) | (rows == mark)):
        return False
    # A group may end where all rows have as many marks so far as there are groups.
    marks = np.cumsum(rows > 0, axis=1)
    ends = np.flatnonzero((marks == marks[0]).all(axis=0))
    end = -1
    for group in range(1, int(marks[0, -1]) + 1):
        choices = ends[(marks[0, ends] == group) & (ends >= end + 2)]
        if not len(choices):
            return False
        end = int(choices[0])
    return bool(ends.size and ends[-1] == rows.shape[1] - 1 and marks[0, -1] > 0)


def _are_distances(look: Look) -> bool:
    """Return whether entries are distances between samples."""
    n = look.view.shape[0]
    return (
        look.is_of_pairs
        and not look.diagonal.any()
        and (look.share_of_zeros - 1 / n) < 0.5 * (1 - 1 / n)
    )


def _is_graph(look: Look) -> bool:
    """Return whether entries are links between samples, most of which are not linked."""
    return look.is_of_pairs and look.share_of_zeros > 0.5 and bool(look.rows.any())


def _is_sparse(look: Look) -> bool:
    """Return whether few entries are not zero, these positive, and most rows have some."""
    return (
        look.is_nonnegative
        and look.share_of_zeros > 1 - SPARSE_SHARE
        and bool(np.mean(look.rows.any(axis=1)) > 0.5)
    )


def _is_binary(look: Look) -> bool:
    """Return whether there are two values only."""
    rows = look.rows
    return bool(np.all((rows == rows.min()) | (rows == rows.max())))


def _are_histograms(look: Look) -> bool:
    """Return whether rows add up to about the same, and not for their columns hardly vary."""
    if not look.is_nonnegative:
        return False
    sums, of_unrelated = look.rows.sum(axis=1), np.sqrt(look.rows.var(axis=0).sum())
    return _are_about_equal(sums, EQUAL_SUMS) and bool(sums.std() <= RELATED * of_unrelated)


def _are_directions(look: Look) -> bool:
    """Return whether rows have the same length, and entries both signs."""
    if look.is_nonnegative or look.rows.max() <= 0 or look.rows.shape[1] < 2:
        return False
    return _are_about_equal(np.linalg.norm(look.rows, axis=1), EQUAL_LENGTHS)


def _are_about_equal(numbers: Float, share: float) -> bool:
    """Return whether numbers differ by no more than a share of their mean."""
    return bool(numbers.mean() > 0 and numbers.std() <= share * numbers.mean())


@dataclass(frozen=True)
class Rule:
    """What is made of views of one kind.

    Attributes
    ----------
    kind : str
        The kind, and the name of the rule.
    why : str
        How views of this kind are told, in words that follow the name of a view.
    fits : callable
        Whether what is looked at is of this kind, if it is of none that comes before.
    preparation : type
        What is done to its rows.
    formula : Formula or None
        Its one kernel; None for the kernels that the bank makes of every view.
    neighbors : int or None
        With how many neighbors samples share neighborhoods, which are then its kernel; None where
        the similarities themselves are.
    neighborhood_share : float
        The share of shared neighborhoods in its kernel; the rest is the formula.
    of_pairs : bool
        Whether columns are the training samples, so that the rule takes all samples at once.
    is_nonnegative : bool
        Whether the rule makes no sense of negative entries.
    """

    kind: str
    why: str
    fits: Callable[[Look], bool]
    preparation: type[Preparation] = RowsAsTheyAre
    formula: Formula | None = None
    neighbors: int | None = None
    neighborhood_share: float = 1.0
    of_pairs: bool = False
    is_nonnegative: bool = False


# The first rule that fits a view is its own.
RULES: dict[str, Rule] = {
    rule.kind: rule
    for rule in (
        Rule(
            "categories",
            "groups of columns with one mark in every row",
            _are_categories,
            formula=LINEAR["cosine"],  # the share of equal categories
        ),
        Rule(
            "distances",
            "a symmetric matrix with a zero diagonal, most of the others positive",
            _are_distances,
            neighbors=NEIGHBORS,
            of_pairs=True,
            is_nonnegative=True,
        ),
        Rule(
            "graph",
            "a symmetric matrix, nonnegative and mostly zero",
            _is_graph,
            LinkedToItself,
            LINEAR["cosine"],
            of_pairs=True,
            is_nonnegative=True,
        ),
        Rule(
            "sparse",
            "nonnegative, with less than 10 % of its entries not zero",
            _is_sparse,
            LogTfIdf,
            LINEAR["cosine"],
            neighbors=NEIGHBORS,
            is_nonnegative=True,
        ),
        Rule("binary", "two values only", _is_binary),
        Rule(
            "histogram",
            "nonnegative, and all rows add up to about the same",
            _are_histograms,
            SquareRootsOfShares,
            neighbors=NEIGHBORS,
            neighborhood_share=NEAR,
            is_nonnegative=True,
        ),
        Rule(
            "directions",
            "all rows of one length, with entries of both signs",
            _are_directions,
            formula=LINEAR["cosine"],
            neighbors=NEIGHBORS,
            neighborhood_share=NEAR,
        ),
        Rule(
            "dense",
            "none of the other kinds",
            lambda look: True,
            CalmColumns,
            neighbors=NEIGHBORS,
            neighborhood_share=NEAR,
        ),
        # Never told, only asked for.
        Rule("gaussian", "asked for", lambda look: False),
    )
}


def tell_kind(view: Array, n_samples: int | None) -> str:
    """Tell the kind of a view from at most 1,000 of its rows.

    Parameters
    ----------
    view : array of shape (n_rows, n_features)
        Its training rows, or some of them; finite.
    n_samples : int or None
        How many samples there are, for views with one column a sample; None where these are to be
        taken as features like others.

    Returns
    -------
    str
        A name in ``RULES``.
    """
    return _tell(Look(view, n_samples))


def check_rules(rules: Any, who: str = "rules") -> None:
    """Refuse what are no rules, whatever the views."""
    if rules is None or (isinstance(rules, str) and rules == "kind"):
        return
    choices = ", ".join(map(repr, RULES))
    if not isinstance(rules, Mapping):
        raise ValueError(
            f"{who} must be None, 'kind' or a dict from names of views to kinds ({choices}); "
            f"found {rules!r}."
        )
    for view, rule in rules.items():
        if not (isinstance(rule, str) and rule in RULES):
            raise ValueError(
                f"{who} asks for {rule!r} for the view {view!r}; choose among {choices}."
            )


def choose_rules(
    rules: Any, views: Mapping[str, Array], n_samples: int, *, of_rows: bool = False
) -> dict[str, str]:
    """Return the name of the rule of every view.

    Parameters
    ----------
    rules : None, "kind" or mapping of str to str
        None for rows as they are; "kind" to tell the kind of every view; or the rules of some
        views by name, the others by their kinds.
    views : mapping of str to array of shape (n_rows, n_features)
        The training views, or some of their rows.
    n_samples : int
        How many samples there are.
    of_rows : bool, default=False
        Whether rows are looked at for themselves, and columns are no samples.
    """
    if rules is None:
        return dict.fromkeys(views, "gaussian")
    asked_for = rules if isinstance(rules, Mapping) else {}
    if unknown := [view for view in asked_for if view not in views]:
        names = ", ".join(map(repr, views))
        raise ValueError(
            f"There is a rule for the view {unknown[0]!r}, and the views are {names}: name one of "
            "these, or leave it out."
        )
    chosen = {}
    for name, view in views.items():
        look = Look(view, None if of_rows else n_samples)
        chosen[name] = asked_for.get(name) or _tell(look)
        if name in asked_for:
            _check_asked(name, RULES[asked_for[name]], look)
    return chosen


def _tell(look: Look) -> str:
    """Return the kind of a view by what is looked at."""
    return next(kind for kind, rule in RULES.items() if rule.fits(look))


def learn_preparations(rules: Any, views: Mapping[str, Array]) -> dict[str, Preparation]:
    """Learn what is to be done to the rows of views, where anything is, from some of their rows.

    Parameters
    ----------
    rules : None, "kind" or mapping of str to str
        As `choose_rules` takes them; kinds of which columns are samples are left out.
    views : mapping of str to array of shape (n_rows, n_features)
        Some rows of each view.
    """
    chosen = choose_rules(rules, views, 0, of_rows=True)
    learned = {name: RULES[kind].preparation.learn(views[name]) for name, kind in chosen.items()}
    return {name: each for name, each in learned.items() if each.changes_rows}


def formulas_of(rule: Rule, of_bank: tuple[Formula, ...]) -> tuple[Formula, ...]:
    """Return the kernels of a view by its rule: one, or those that a bank makes of every view."""
    return of_bank if rule.formula is None else (rule.formula,)


def _check_asked(name: str, rule: Rule, look: Look) -> None:
    """Refuse a rule that was asked for and makes no sense of a view."""
    problem, advice = "", "choose another kind"
    n_columns = look.view.shape[1]
    if rule.of_pairs and look.n_samples is None:
        problem = "takes all samples at once, and an approximation makes features of rows"
        advice += ", or approximation=None"
    elif rule.of_pairs and n_columns != look.n_samples:
        problem = f"has one column a sample: found {n_columns} columns, {look.n_samples} samples"
    elif rule.is_nonnegative and not look.is_nonnegative:
        problem = "has no negative entries: found some"
    if problem:
        raise ValueError(
            f"View {name!r} is to be of the kind {rule.kind!r}, which {problem}; {advice}."
        )
