"""The rule of every view, asked for by name or told from its numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mkclust.kernels.kinds import ALIASES, RULES, Rule, is_rule, kind_of_profile, rule_of
from mkclust.kernels.preparations import OneHot, Preparation, Preprocessed, is_one_hot
from mkclust.kernels.profile import SYMMETRIC, ViewProfile
from mkclust.kernels.view import is_view
from mkclust.linalg import is_sparse
from mkclust.text import did_you_mean
from mkclust.types import Array

# A column with more distinct values than this, and than this share of the rows, holds numbers.
MOST_LEVELS, LEVELS_SHARE = 20, 0.5


@dataclass(frozen=True)
class ChosenRule:
    """The rule of one view, with what is done to its rows before."""

    rule: Rule  # the rule
    preprocessed: Preprocessed | None = None  # A transformer that was fitted on the training rows

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
            f"{who} must be None, 'kind' or a dict from names of views to kinds or kernels, or one "
            f"of these for all views ({_names_of_rules()}); found {rules!r}."
        )


def _names_of_rules() -> str:
    """Return the names of all kinds and kernels."""
    return ", ".join(map(repr, [*RULES, *ALIASES]))


def _check_wish(asked: Any, asks_for: str, whom: str) -> None:
    """Refuse what is no rule for one view, and what is no transformer of its rows."""
    transformer = None
    if is_view(asked):
        transformer, asked = asked.preprocess, "dense" if asked.kernel == "auto" else asked.kernel
    if not is_rule(asked):
        raise ValueError(f"{asks_for} {asked!r} for {whom}; choose among {_names_of_rules()}.")
    if transformer is None:
        return
    if isinstance(transformer, type) or not (
        hasattr(transformer, "fit") and hasattr(transformer, "transform")
    ):
        raise ValueError(
            f"{asks_for} preprocess={transformer!r} for {whom}, which has no fit and transform; "
            "pass an instance of a transformer, such as StandardScaler()."
        )
    if rule_of(asked).of_pairs:
        raise ValueError(
            f"{asks_for} {asked!r} and preprocess={transformer!r} for {whom}, but columns are then "
            "samples and no features; leave preprocess out."
        )


def choose_rules(
    rules: Any, views: Mapping[str, Array], *, of_rows: bool = False
) -> dict[str, ChosenRule]:
    """Return the rule of every view.

    Parameters
    ----------
    rules : None, "kind", str, view or mapping of str to str or view
        None for rows as they are; "kind" to tell the kind of every view; the rule of all views;
        or the rules of some views by name, the others by their kinds.
    views : mapping of str to array of shape (n_rows, n_features)
        The training views, or some of their rows.
    of_rows : bool, default=False
        Whether rows are looked at for themselves, and columns are no samples.
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
    """Return the rule of one view, asked for or told."""
    preprocessed = None
    if is_view(asked):
        transformer, asked = asked.preprocess, asked.kernel
        if transformer is not None:
            preprocessed = Preprocessed.fitted(transformer, name, view)
            view = preprocessed.transform(view)
    profile = ViewProfile(view, n_samples)
    if asked is None or asked == "auto":
        # What a transformer made of rows are features, as many as they may be.
        rule = RULES[
            kind_of_profile(profile if preprocessed is None else replace(profile, n_samples=None))
        ]
    else:
        rule = rule_of(asked)
        _check_asked(name, rule, profile)
    return ChosenRule(rule, preprocessed)


def rules_of(asked: Any) -> Any:
    """Return the rules of a bank that ``kernels`` of an estimator asks for by names."""
    if isinstance(asked, str) and asked == "gaussian":
        return None
    return asked if isinstance(asked, Mapping) or is_view(asked) or is_rule(asked) else "kind"


def learn_preparations(rules: Any, views: Mapping[str, Array]) -> dict[str, Preparation]:
    """Learn what is to be done to the rows of views, where anything is, from some of their rows.

    Parameters
    ----------
    rules : None, "kind", str, view or mapping of str to str or view
        As `choose_rules` takes them; kinds of which columns are samples are left out.
    views : mapping of str to array of shape (n_rows, n_features)
        Some rows of each view.
    """
    chosen = choose_rules(rules, views, of_rows=True)
    learned = {name: each.learn(views[name], mapped=True) for name, each in chosen.items()}
    return {name: each for name, each in learned.items() if each.changes_rows}


def _check_asked(name: str, rule: Rule, profile: ViewProfile) -> None:
    """Refuse a rule that was asked for and makes no sense of a view."""
    problem, advice = "", "choose another kernel" if rule.by_name else "choose another kind"
    n_columns = profile.view.shape[1]
    if profile.n_samples is None and (rule.of_pairs or not rule.has_features):
        takes = "takes all samples at once" if rule.of_pairs else "is computed of pairs of samples"
        problem = f"{takes}, and an approximation makes features of rows"
        advice += ", or approximation=None"
    elif rule.of_pairs and n_columns != profile.n_samples:
        problem = f"has one column a sample: found {n_columns} columns, {profile.n_samples} samples"
    elif rule.kind == "from_distances" and is_sparse(profile.view):
        problem = "takes all distances: found a sparse matrix, where some may be left out"
        advice = "pass its .toarray() if zeros are distances, or choose the kind 'graph' for links"
    elif rule.kind == "from_distances":
        problem, advice = _problem_of_distances(profile)
    elif rule.is_nonnegative and not profile.is_nonnegative:
        problem = f"{'takes' if rule.by_name else 'has'} no negative entries: found some"
    elif (
        rule.preparation is OneHot and is_sparse(profile.view) and not is_one_hot(profile.raw_rows)
    ):
        problem = "has a column of zeros and ones for each category of a sparse view: found others"
        advice = "pass its .toarray() if columns are categories"
    elif rule.preparation is OneHot and (column := _column_of_numbers(profile)) is not None:
        levels = len(np.unique(profile.raw_rows[:, column]))
        found = f"found {levels} in column {column}, of {len(profile.rows)} rows"
        problem = f"has few values a column: {found}"
        advice = "choose a kernel of numbers, such as 'gaussian', or bring the column into bins"
    if problem:
        what = "have the kernel" if rule.by_name else "be of the kind"
        raise ValueError(f"View {name!r} is to {what} {rule.kind!r}, which {problem}; {advice}.")


def _problem_of_distances(profile: ViewProfile) -> tuple[str, str]:
    """Return why entries are no distances but for rounding, if they are none, and what to do."""
    if profile.rows.min() < -SYMMETRIC:
        return "takes no negative entries: found some", "choose another kernel"
    if not profile.is_symmetric:
        return (
            "is symmetric: found entries that differ from their mirror images",
            "bring its columns into the order of its rows (D[D.index] of a data frame), or pass "
            "(D + D.T) / 2 where the two directions are meant to differ",
        )
    if np.abs(profile.diagonal).max() > SYMMETRIC:
        return (
            "has a zero diagonal: found other entries there",
            "pass similarities with kernels='precomputed'",
        )
    return "", ""


def _column_of_numbers(profile: ViewProfile) -> int | None:
    """Return the first column with too many values to be categories; None where there is none."""
    most = max(MOST_LEVELS, LEVELS_SHARE * len(profile.rows))
    levels = (len(np.unique(column)) for column in profile.raw_rows.T)
    return next((j for j, count in enumerate(levels) if count > most), None)
