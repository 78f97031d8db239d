"""The rule of every view, asked for by name or recognized by its numbers, and what follows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

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
    Preprocessed,
    RowsAsTheyAre,
    SquareRootsOfShares,
    UnitRows,
    is_one_hot,
)
from mkclust.kernels.profile import (
    SYMMETRIC,
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
from mkclust.linalg.factored import is_sparse as is_given_sparse
from mkclust.text import did_you_mean
from mkclust.types import Array

# The neighbors of a sample in kernels that contain neighborhoods.
NEIGHBORS = 20
# Kernels that also compare samples that are far from each other contain a third of neighborhoods.
NEARBY: dict[str, Any] = {"neighbors": NEIGHBORS, "neighborhood_share": 1 / 3}
# Views whose entries belong to pairs of samples.
OF_PAIRS: dict[str, Any] = {"of_pairs": True, "is_nonnegative": True}
# A column with more distinct values than this holds numbers, not categories,
MOST_LEVELS = 20
# if they are more than this share of the rows.
LEVELS_SHARE = 0.5


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


def _named(
    name: str,
    formula: Formula | None = None,
    preparation: type[Preparation] = RowsAsTheyAre,
    **properties: Any,
) -> Rule:
    """Return the rule of a kernel that is asked for by its name, never recognized."""
    properties |= {"preparation": preparation, "formula": formula, "by_name": True}
    return Rule(name, "asked for", lambda profile: False, **properties)


COSINE = LINEAR["cosine"]
# The first rule that fits a view is its own.
RULES: dict[str, Rule] = {
    rule.kind: rule
    for rule in (
        Rule(
            "categories",
            "groups of columns with one mark in every row",
            are_categories,
            formula=COSINE,  # the share of equal categories
        ),
        Rule(
            "distances",
            "a symmetric matrix with a zero diagonal, most of the others positive",
            are_distances,
            neighbors=NEIGHBORS,
            **OF_PAIRS,
        ),
        Rule(
            "graph",
            "a symmetric matrix, nonnegative and mostly zero",
            is_graph,
            LinkedToItself,
            COSINE,
            **OF_PAIRS,
        ),
        Rule(
            "sparse",
            "nonnegative, with less than 10 % of its entries not zero",
            is_sparse,
            LogTfIdf,
            COSINE,
            NEIGHBORS,
            is_nonnegative=True,
        ),
        Rule("binary", "two values only", is_binary),
        Rule(
            "histogram",
            "nonnegative, and all rows add up to about the same",
            are_histograms,
            SquareRootsOfShares,
            is_nonnegative=True,
            **NEARBY,
        ),
        Rule(
            "directions",
            "all rows of one length, with entries of both signs",
            are_directions,
            formula=COSINE,
            **NEARBY,
        ),
        Rule("dense", "none of the other kinds", lambda profile: True, LimitColumnScale, **NEARBY),
        _named("gaussian"),
        _named("self-tuning", SelfTuning()),
        _named("linear", LINEAR["linear"]),
        _named("cosine", COSINE, mapped=UnitRows),
        _named("polynomial", Polynomial(1.0, 2)),
        _named("laplacian", Laplacian()),
        _named("chi2", ChiSquared(), is_nonnegative=True),
        _named("hellinger", COSINE, SquareRootsOfShares, is_nonnegative=True),
        _named("jaccard", Jaccard(), is_nonnegative=True),
        _named("overlap", COSINE, OneHot),
        _named("from_distances", OfDistances(), **OF_PAIRS),
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


def kind_of(profile: ViewProfile) -> Rule:
    """Return the first rule that fits the profile of a view."""
    return next(rule for rule in RULES.values() if rule.fits(profile))


@dataclass(frozen=True)
class ChosenRule:
    """The rule of one view, with what is done to its rows before."""

    rule: Rule
    preprocessed: Preprocessed | None = None  # a transformer that was fitted on the training rows

    def learn(self, view: Array, *, mapped: bool = False) -> Preparation:
        """Learn what is done to rows from the training rows, before kernels or features of them."""
        preparation = (mapped and self.rule.mapped) or self.rule.preparation
        if self.preprocessed is None:
            return preparation.learn(view)
        then = preparation.learn(self.preprocessed.transform(view))
        return replace(self.preprocessed, then=then)


def check_rules(rules: Any, who: str = "rules") -> None:
    """Refuse what are no rules, whatever the views."""
    if rules is None or (isinstance(rules, str) and rules == "kind"):
        return
    if isinstance(rules, Mapping):
        for view, asked in rules.items():
            _check_wish(asked, f"{who} asks for", f"the view {view!r}")
    elif is_view(rules) or is_rule(rules):
        _check_wish(rules, f"{who} asks for", "all views")
    else:
        raise ValueError(
            f"{who}={rules!r}: pass None, 'kind', a dict from names of views to kinds or kernels, "
            f"or one of these for all views ({', '.join(map(repr, [*RULES, *ALIASES]))})"
        )


def _check_wish(asked: Any, asks_for: str, whom: str) -> None:
    """Refuse what is no rule for one view, and what is no transformer of its rows."""
    transformer = None
    if is_view(asked):
        transformer, asked = asked.preprocess, "dense" if asked.kernel == "auto" else asked.kernel
    if not is_rule(asked):
        names = ", ".join(map(repr, [*RULES, *ALIASES]))
        raise ValueError(f"{asks_for} {asked!r} for {whom}; choose among {names}.")
    is_class = isinstance(transformer, type)
    if transformer is not None and (is_class or not hasattr(transformer, "transform")):
        raise ValueError(
            f"{asks_for} preprocess={transformer!r} for {whom}, which has no fit and transform; "
            "pass an instance of a transformer, such as StandardScaler()."
        )
    if transformer is not None and rule_of(asked).of_pairs:
        raise ValueError(
            f"{asks_for} {asked!r} and preprocess={transformer!r} for {whom}, but columns are then "
            "samples and no features; leave preprocess out."
        )


def choose_rules(
    rules: Any, views: Mapping[str, Array], *, of_rows: bool = False
) -> dict[str, ChosenRule]:
    """Return the rule of every training view; for `of_rows`, of rows whose columns are no samples.

    Rules are those of a `KernelBank`.
    """
    asked_for = asked_of_views(rules, views)
    if unknown := [view for view in asked_for if view not in views]:
        names, near = ", ".join(map(repr, views)), did_you_mean(unknown[0], views)
        raise ValueError(
            f"There is a rule for the view {unknown[0]!r}{near}, and the views are {names}: name "
            "one of these, or leave it out."
        )
    return {
        name: _choose(name, asked_for.get(name), view, None if of_rows else view.shape[0])
        for name, view in views.items()
    }


def asked_of_views(rules: Any, views: Mapping[str, Array]) -> Mapping[str, Any]:
    """Return what is asked for by the names of views."""
    if isinstance(rules, Mapping):
        return rules
    return {} if rules == "kind" else dict.fromkeys(views, "gaussian" if rules is None else rules)


def _choose(name: str, asked: Any, view: Array, n_samples: int | None) -> ChosenRule:
    """Return the rule of one view, asked for or recognized."""
    preprocessed = None
    if is_view(asked):
        transformer, asked = asked.preprocess, asked.kernel
        if transformer is not None:
            preprocessed = Preprocessed.fitted(transformer, name, view)
            view = preprocessed.transform(view)
    if asked is None or asked == "auto":
        # What a transformer made of rows are features, as many as they may be.
        rule = kind_of(ViewProfile(view, n_samples if preprocessed is None else None))
    else:
        rule = rule_of(asked)
        _check_asked(name, rule, ViewProfile(view, n_samples))
    return ChosenRule(rule, preprocessed)


def rules_of(asked: Any) -> Any:
    """Return the rules of a bank that ``kernels`` of an estimator asks for by names."""
    if isinstance(asked, str) and asked == "gaussian":
        return None
    return asked if isinstance(asked, Mapping) or is_view(asked) or is_rule(asked) else "kind"


def learn_preparations(rules: Any, views: Mapping[str, Array]) -> dict[str, Preparation]:
    """Learn what is done to the rows of views before they are mapped, from some of their rows."""
    chosen = choose_rules(rules, views, of_rows=True)
    learned = {name: each.learn(views[name], mapped=True) for name, each in chosen.items()}
    return {name: each for name, each in learned.items() if each.changes_rows}


def _check_asked(name: str, rule: Rule, profile: ViewProfile) -> None:
    """Refuse a rule that was asked for and makes no sense of a view."""
    problem, advice = _problem(rule, profile)
    if problem:
        what = "have the kernel" if rule.by_name else "be of the kind"
        advice = advice or f"choose another {'kernel' if rule.by_name else 'kind'}"
        raise ValueError(f"View {name!r} is to {what} {rule.kind!r}, which {problem}; {advice}.")


def _problem(rule: Rule, profile: ViewProfile) -> tuple[str, str]:
    """Return why a rule makes no sense of a view, if it makes none, and what to do about it."""
    n_columns, given_sparse = profile.view.shape[1], is_given_sparse(profile.view)
    if profile.n_samples is None and (rule.of_pairs or not rule.has_features):
        takes = "takes all samples at once" if rule.of_pairs else "is computed of pairs of samples"
        return (
            f"{takes}, and an approximation makes features of rows",
            "choose another kernel, or approximation=None",
        )
    if rule.of_pairs and n_columns != profile.n_samples:
        found = f"found {n_columns} columns, {profile.n_samples} samples"
        return f"has one column per sample: {found}", ""
    if rule.kind == "from_distances":
        return _problem_of_distances(profile)
    if rule.is_nonnegative and not profile.is_nonnegative:
        return f"{'takes' if rule.by_name else 'has'} no negative entries: found some", ""
    if rule.preparation is OneHot and given_sparse and not is_one_hot(profile.raw_rows):
        return (
            "has a column of zeros and ones for each category of a sparse view: found others",
            "pass its .toarray() if columns are categories",
        )
    if rule.preparation is OneHot and not given_sparse:
        most = max(MOST_LEVELS, LEVELS_SHARE * len(profile.rows))
        for column, values in enumerate(profile.raw_rows.T):
            if (levels := len(np.unique(values))) > most:
                found = f"found {levels} in column {column}, of {len(profile.rows)} rows"
                return (
                    f"has few values per column: {found}",
                    "choose a kernel of numbers, such as 'gaussian', or bin the column",
                )
    return "", ""


def _problem_of_distances(profile: ViewProfile) -> tuple[str, str]:
    """Return why entries are no distances but for rounding, if they are none, and what to do."""
    if is_given_sparse(profile.view):
        return (
            "takes all distances: found a sparse matrix, where some may be left out",
            "pass its .toarray() if zeros are distances, or choose the kind 'graph' for links",
        )
    if profile.rows.min() < -SYMMETRIC:
        return "takes no negative entries: found some", ""
    if not profile.is_symmetric:
        return (
            "is symmetric: found entries that differ from their mirror images",
            "bring its columns into the order of its rows (D[D.index] of a data frame), or pass "
            "(D + D.T) / 2 if the two directions are meant to differ",
        )
    if np.abs(profile.diagonal).max() > SYMMETRIC:
        return (
            "has a zero diagonal: found other entries there",
            "pass similarities with kernels='precomputed'",
        )
    return "", ""
