"""The kind of a view, told from its numbers, and what follows from it for its kernels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mkclust.kernels.formulas import LINEAR, Formula, Polynomial
from mkclust.kernels.pairs import (
    ChiSquared,
    Jaccard,
    Laplacian,
    OfDistances,
    PairFormula,
    SelfTuning,
)
from mkclust.kernels.preparations import (
    CalmColumns,
    LinkedToItself,
    LogTfIdf,
    Marks,
    Preparation,
    Preprocessed,
    RowsAsTheyAre,
    SquareRootsOfShares,
    UnitRows,
    are_marks,
    numbers_looked_at,
    rows_looked_at,
)
from mkclust.kernels.view import is_view
from mkclust.linalg import is_sparse, select, to_host
from mkclust.linalg.sparse_rows import dense_rows
from mkclust.text import did_you_mean
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
    def is_symmetric(self) -> bool:
        """Whether entries are those at their mirror images, one row and one column a sample."""
        n, d = self.view.shape
        if not n == d == self.n_samples:
            return False
        columns = to_host(dense_rows(select(self.view, self.numbers, axis=1))).T
        difference = np.abs(self.rows - columns / self.unit)
        return bool(difference.max() <= SYMMETRIC)

    @cached_property
    def is_of_pairs(self) -> bool:
        """Whether entries are of pairs of samples: square, symmetric and nonnegative."""
        return self.is_nonnegative and self.is_symmetric

    @cached_property
    def diagonal(self) -> Float:
        """The entries of samples with themselves, of what is of pairs."""
        return self.rows[np.arange(len(self.numbers)), self.numbers]


def _are_categories(look: Look) -> bool:
    """Return whether columns fall into groups of two or more with one mark in every row."""
    return are_marks(look.rows)


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
    by_name : bool
        Whether it is the name of a kernel: never told, only asked for.
    mapped : type or None
        What is done to rows before features are made of them, where that is more than before
        kernels are computed.
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
    by_name: bool = False
    mapped: type[Preparation] | None = None

    @property
    def is_definite(self) -> bool:
        """Whether its kernels are positive semidefinite whatever the rows."""
        return not isinstance(self.formula, PairFormula) or self.formula.is_definite

    @property
    def takes_any_numbers(self) -> bool:
        """Whether the rule makes sense of rows with any numbers."""
        return not self.is_nonnegative and self.preparation is not Marks

    @property
    def has_features(self) -> bool:
        """Whether rows can be prepared so that features stand for its kernel."""
        return not isinstance(self.formula, PairFormula | Polynomial)


def _never(look: Look) -> bool:
    """Return that no view is told to be of this kind."""
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
        _named("gaussian"),
        _named("self-tuning", SelfTuning()),
        _named("linear", LINEAR["linear"]),
        _named("cosine", LINEAR["cosine"], mapped=UnitRows),
        _named("polynomial", Polynomial(1.0, 2)),
        _named("laplacian", Laplacian()),
        _named("chi2", ChiSquared(), is_nonnegative=True),
        _named("hellinger", LINEAR["cosine"], SquareRootsOfShares, is_nonnegative=True),
        _named("jaccard", Jaccard(), is_nonnegative=True),
        _named("overlap", LINEAR["cosine"], Marks),
        _named("from_distances", OfDistances(), of_pairs=True, is_nonnegative=True),
    )
}
# Other words for the same.
ALIASES = {"categorical": "overlap"}
# A column with more distinct values than this, and than this share of the rows, holds numbers.
MOST_LEVELS, LEVELS_SHARE = 20, 0.5


@dataclass(frozen=True)
class ChosenRule:
    """The rule of one view, with what is done to its rows before.

    Attributes
    ----------
    rule : Rule
        The rule.
    preprocessed : Preprocessed or None
        A transformer that was fitted on the training rows.
    """

    rule: Rule
    preprocessed: Preprocessed | None = None

    def learn(self, view: Array, *, mapped: bool = False) -> Preparation:
        """Learn what is done to rows from the training rows, before kernels or features of them."""
        preparation = (mapped and self.rule.mapped) or self.rule.preparation
        if self.preprocessed is None:
            return preparation.learn(view)
        then = preparation.learn(self.preprocessed.transform(view))
        return replace(self.preprocessed, then=then)


def rule_of(asked: Any) -> Rule:
    """Return the rule that a name or a `view` asks for; for "auto" that of views of no kind."""
    name = asked.kernel if is_view(asked) else asked
    return RULES["dense" if name == "auto" else ALIASES.get(name, name)]


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


def is_rule(asked: Any) -> bool:
    """Return whether something is the name of a kind or a kernel."""
    return isinstance(asked, str) and (asked in RULES or asked in ALIASES)


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
    rules: Any, views: Mapping[str, Array], n_samples: int, *, of_rows: bool = False
) -> dict[str, ChosenRule]:
    """Return the rule of every view.

    Parameters
    ----------
    rules : None, "kind", str, view or mapping of str to str or view
        None for rows as they are; "kind" to tell the kind of every view; the rule of all views;
        or the rules of some views by name, the others by their kinds.
    views : mapping of str to array of shape (n_rows, n_features)
        The training views, or some of their rows.
    n_samples : int
        How many samples there are.
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
    n_columns = None if of_rows else n_samples
    return {
        name: _choose(name, asked_for.get(name), view, n_columns) for name, view in views.items()
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
    look = Look(view, n_samples)
    if asked is None or asked == "auto":
        # What a transformer made of rows are features, as many as they may be.
        rule = RULES[_tell(look if preprocessed is None else replace(look, n_samples=None))]
    else:
        rule = rule_of(asked)
        _check_asked(name, rule, look)
    return ChosenRule(rule, preprocessed)


def _tell(look: Look) -> str:
    """Return the kind of a view by what is looked at."""
    return next(kind for kind, rule in RULES.items() if rule.fits(look))


def learn_preparations(rules: Any, views: Mapping[str, Array]) -> dict[str, Preparation]:
    """Learn what is to be done to the rows of views, where anything is, from some of their rows.

    Parameters
    ----------
    rules : None, "kind", str, view or mapping of str to str or view
        As `choose_rules` takes them; kinds of which columns are samples are left out.
    views : mapping of str to array of shape (n_rows, n_features)
        Some rows of each view.
    """
    chosen = choose_rules(rules, views, 0, of_rows=True)
    learned = {name: each.learn(views[name], mapped=True) for name, each in chosen.items()}
    return {name: each for name, each in learned.items() if each.changes_rows}


def formulas_of(rule: Rule, of_bank: tuple[Formula, ...]) -> tuple[Formula, ...]:
    """Return the kernels of a view by its rule: one, or those that a bank makes of every view."""
    return of_bank if rule.formula is None else (rule.formula,)


def _check_asked(name: str, rule: Rule, look: Look) -> None:
    """Refuse a rule that was asked for and makes no sense of a view."""
    problem, advice = "", "choose another kernel" if rule.by_name else "choose another kind"
    n_columns = look.view.shape[1]
    if look.n_samples is None and (rule.of_pairs or not rule.has_features):
        takes = "takes all samples at once" if rule.of_pairs else "is computed of pairs of samples"
        problem = f"{takes}, and an approximation makes features of rows"
        advice += ", or approximation=None"
    elif rule.of_pairs and n_columns != look.n_samples:
        problem = f"has one column a sample: found {n_columns} columns, {look.n_samples} samples"
    elif rule.kind == "from_distances" and is_sparse(look.view):
        problem = "takes all distances: found a sparse matrix, where some may be left out"
        advice = "pass its .toarray() if zeros are distances, or choose the kind 'graph' for links"
    elif rule.kind == "from_distances":
        problem, advice = _problem_of_distances(look)
    elif rule.is_nonnegative and not look.is_nonnegative:
        problem = f"{'takes' if rule.by_name else 'has'} no negative entries: found some"
    elif rule.preparation is Marks and is_sparse(look.view) and not are_marks(look.raw_rows):
        problem = "has a column of zeros and ones for each category of a sparse view: found others"
        advice = "pass its .toarray() if columns are categories"
    elif rule.preparation is Marks and (column := _column_of_numbers(look)) is not None:
        levels = len(np.unique(look.raw_rows[:, column]))
        problem = (
            f"has few values a column: found {levels} in column {column}, of {len(look.rows)} rows"
        )
        advice = "choose a kernel of numbers, such as 'gaussian', or bring the column into bins"
    if problem:
        what = "have the kernel" if rule.by_name else "be of the kind"
        raise ValueError(f"View {name!r} is to {what} {rule.kind!r}, which {problem}; {advice}.")


def _problem_of_distances(look: Look) -> tuple[str, str]:
    """Return why entries are no distances but for rounding, if they are none, and what to do."""
    if look.rows.min() < -SYMMETRIC:
        return "takes no negative entries: found some", "choose another kernel"
    if not look.is_symmetric:
        return (
            "is symmetric: found entries that differ from their mirror images",
            "bring its columns into the order of its rows (D[D.index] of a data frame), or pass "
            "(D + D.T) / 2 where the two directions are meant to differ",
        )
    if np.abs(look.diagonal).max() > SYMMETRIC:
        return (
            "has a zero diagonal: found other entries there",
            "pass similarities with kernels='precomputed'",
        )
    return "", ""


def _column_of_numbers(look: Look) -> int | None:
    """Return the first column with too many values to be categories; None where there is none."""
    most = max(MOST_LEVELS, LEVELS_SHARE * len(look.rows))
    levels = (len(np.unique(column)) for column in look.raw_rows.T)
    return next((j for j, count in enumerate(levels) if count > most), None)
