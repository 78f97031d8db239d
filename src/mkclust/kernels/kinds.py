"""The kind of a view, decided by its numbers, and what follows from it for its kernels."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mkclust.kernels.formulas import (
    LINEAR,
    ChiSquared,
    Formula,
    Jaccard,
    Laplacian,
    OfDistances,
    Polynomial,
    SelfTuning,
)
from mkclust.kernels.preparations import (
    LimitColumnScale,
    LinkedToItself,
    LogTfIdf,
    OneHot,
    Preparation,
    RowsAsTheyAre,
    SquareRootsOfShares,
    UnitRows,
)
from mkclust.kernels.profile import (
    ViewProfile,
    are_categories,
    are_directions,
    are_distances,
    are_histograms,
    is_binary,
    is_graph,
    is_sparse,
)
from mkclust.kernels.view import is_view
from mkclust.types import Array

# The neighbors of a sample in kernels that contain neighborhoods.
NEIGHBORS = 20
# The share of neighborhoods in a kernel that also compares samples that are far from each other.
NEAR = 1 / 3


@dataclass(frozen=True)
class Rule:
    """What is made of views of one kind."""

    kind: str  # the kind, and the name of the rule
    why: str  # how views of this kind are recognized, in words that follow the name of a view
    # Whether a profile is of this kind, if it is of none that comes before.
    fits: Callable[[ViewProfile], bool]
    preparation: type[Preparation] = RowsAsTheyAre  # what is done to its rows
    # Its one kernel; None for the kernels that the bank makes of every view.
    formula: Formula | None = None
    neighbors: int | None = None  # number of neighbors, if its kernel contains neighborhoods
    # The share of shared neighborhoods in its kernel; the rest is the formula.
    neighborhood_share: float = 1.0
    # Whether columns are the training samples, so that the rule takes all samples at once.
    of_pairs: bool = False
    is_nonnegative: bool = False  # whether the rule makes no sense of negative entries
    by_name: bool = False  # whether it is the name of a kernel: never recognized, only asked for
    # What is done to rows before features are made of them, if that is more than before kernels
    # are computed.
    mapped: type[Preparation] | None = None

    @property
    def is_definite(self) -> bool:
        """Whether its kernels are positive semidefinite for all rows."""
        return self.formula is None or self.formula.is_definite

    @property
    def takes_any_numbers(self) -> bool:
        """Whether the rule makes sense of rows with any numbers."""
        return not self.is_nonnegative and self.preparation is not OneHot

    @property
    def has_features(self) -> bool:
        """Whether rows can be prepared so that features stand for its kernel."""
        return self.formula is None or self.formula.has_features


def _never(profile: ViewProfile) -> bool:
    """Return that no view is recognized as being of this kind."""
    return False


def _named(
    name: str,
    formula: Formula | None = None,
    preparation: type[Preparation] = RowsAsTheyAre,
    **properties: Any,
) -> Rule:
    """Return the rule of a kernel that is asked for by its name."""
    return Rule(name, "asked for", _never, preparation, formula, by_name=True, **properties)


# The first rule that fits a view is its own.
RULES: dict[str, Rule] = {
    rule.kind: rule
    for rule in (
        Rule(
            "categories",
            "groups of columns with one mark in every row",
            are_categories,
            formula=LINEAR["cosine"],  # the share of equal categories
        ),
        Rule(
            "distances",
            "a symmetric matrix with a zero diagonal, most of the others positive",
            are_distances,
            neighbors=NEIGHBORS,
            of_pairs=True,
            is_nonnegative=True,
        ),
        Rule(
            "graph",
            "a symmetric matrix, nonnegative and mostly zero",
            is_graph,
            LinkedToItself,
            LINEAR["cosine"],
            of_pairs=True,
            is_nonnegative=True,
        ),
        Rule(
            "sparse",
            "nonnegative, with less than 10 % of its entries not zero",
            is_sparse,
            LogTfIdf,
            LINEAR["cosine"],
            neighbors=NEIGHBORS,
            is_nonnegative=True,
        ),
        Rule("binary", "two values only", is_binary),
        Rule(
            "histogram",
            "nonnegative, and all rows add up to about the same",
            are_histograms,
            SquareRootsOfShares,
            neighbors=NEIGHBORS,
            neighborhood_share=NEAR,
            is_nonnegative=True,
        ),
        Rule(
            "directions",
            "all rows of one length, with entries of both signs",
            are_directions,
            formula=LINEAR["cosine"],
            neighbors=NEIGHBORS,
            neighborhood_share=NEAR,
        ),
        Rule(
            "dense",
            "none of the other kinds",
            lambda profile: True,
            LimitColumnScale,
            neighbors=NEIGHBORS,
            neighborhood_share=NEAR,
        ),
        _named("gaussian"),
        _named("self-tuning", SelfTuning()),
        _named("linear", LINEAR["linear"]),
        _named("cosine", LINEAR["cosine"], mapped=UnitRows),
        _named("polynomial", Polynomial(1.0, 2)),
        _named("laplacian", Laplacian()),
        _named("chi2", ChiSquared(), is_nonnegative=True),
        _named("hellinger", LINEAR["cosine"], SquareRootsOfShares, is_nonnegative=True),
        _named("jaccard", Jaccard(), is_nonnegative=True),
        _named("overlap", LINEAR["cosine"], OneHot),
        _named("from_distances", OfDistances(), of_pairs=True, is_nonnegative=True),
    )
}
# Other names of rules.
ALIASES = {"categorical": "overlap"}


def rule_of(asked: Any) -> Rule:
    """Return the rule that a name or a `view` asks for; for "auto" that of views of no kind."""
    name = asked.kernel if is_view(asked) else asked
    return RULES["dense" if name == "auto" else ALIASES.get(name, name)]


def is_rule(asked: Any) -> bool:
    """Return whether something is the name of a kind or a kernel."""
    return isinstance(asked, str) and (asked in RULES or asked in ALIASES)


def tell_kind(view: Array, n_samples: int | None) -> str:
    """Return the kind of a view by at most 1,000 of its rows.

    Parameters
    ----------
    view : array of shape (n_rows, n_features)
        Its training rows, or some of them; finite.
    n_samples : int or None
        How many samples there are, for views with one column per sample; None if columns are
        features.

    Returns
    -------
    str
        A name in ``RULES``.
    """
    return kind_of_profile(ViewProfile(view, n_samples))


def kind_of_profile(profile: ViewProfile) -> str:
    """Return the first kind that fits the profile of a view."""
    return next(kind for kind, rule in RULES.items() if rule.fits(profile))


def formulas_of(rule: Rule, of_bank: tuple[Formula, ...]) -> tuple[Formula, ...]:
    """Return the kernels of a view by its rule: one, or those that a bank makes of every view."""
    return of_bank if rule.formula is None else (rule.formula,)
