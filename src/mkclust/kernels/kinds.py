"""The rule of every view: its kernel and preparation, by name or by its numbers."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mkclust.kernels.counts import (
    CountComponents,
    LogRatios,
    are_few_counts,
    are_many_counts,
)
from mkclust.kernels.formulas import (
    COSINE,
    DISTANCES,
    LINEAR,
    SIMILARITIES,
    Exponential,
    Formula,
    polynomial,
)
from mkclust.kernels.preparations import (
    KeepColumnScale,
    LimitColumnScale,
    LinkedToItself,
    Logarithm,
    LogTfIdf,
    OneHot,
    Preparation,
    Preprocessed,
    Robust,
    ScaleColumns,
    SquareRootsOfShares,
    Standard,
    UnitRows,
    is_one_hot,
)
from mkclust.kernels.profile import SYMMETRIC, ViewProfile, are_components
from mkclust.linalg import is_foreign
from mkclust.text import did_you_mean
from mkclust.types import Array

# Kernels that also compare samples that are far from each other contain a third of
# neighborhoods.
NEARBY = 1 / 3
# Views whose entries belong to pairs of samples.
OF_PAIRS: dict[str, Any] = {"of_pairs": True, "is_nonnegative": True}
# Views of counts.
OF_COUNTS: dict[str, Any] = {
    "of_counts": True,
    "is_nonnegative": True,
    "neighborhood_share": NEARBY,
}


@dataclass(frozen=True)
class view:  # noqa: N801 - written like a function, as a value of `kernels`
    """What to make of one view: rows by a transformer, then a kernel by its name.

    Parameters
    ----------
    preprocess : transformer or None, default=None
        Anything with ``fit`` and ``transform``, such as ``StandardScaler()`` or a
        pipeline. A clone of it is fitted on the training rows, and also transforms new
        rows.
    kernel : str, default="auto"
        The name of a kernel or the kind of a view, as `KernelBank` lists them; "auto"
        recognizes the kind of the transformed rows by their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from mkclust import AverageKKM, view
    >>> rng = np.random.default_rng(0)
    >>> lab = rng.normal(size=(30, 4)) * [1, 10, 100, 1000]
    >>> views = {"lab": lab, "text": rng.random((30, 9))}
    >>> wishes = {"lab": view(StandardScaler(), "linear"), "text": "cosine"}
    >>> model = AverageKKM(2, kernels=wishes, random_state=0).fit(views)
    >>> print(model.bank_.explain())
    lab: linear (asked for); rows by StandardScaler(); linear
    text: cosine (asked for); rows of unit length; cosine
    """

    preprocess: Any = None
    kernel: str = "auto"


@dataclass(frozen=True)
class ViewRule:
    """The kernels of views of one kind, or of a kernel requested by name."""

    kind: str  # the kind, or the name of the kernel
    # Its one kernel; None for the kernels that the bank makes of every view.
    formula: Formula | None = None
    preparation: type[Preparation] = Preparation  # how its rows are prepared
    # Whether a profile is of this kind (checked in order); None for names.
    fits: Callable[[ViewProfile], bool] | None = None
    # How views of this kind are recognized, in words that follow the name of a view.
    why: str = ""
    neighborhood_share: float = 0.0  # of its kernel; the rest is the formula
    of_pairs: bool = False  # whether columns are the training samples
    is_nonnegative: bool = False  # whether negative entries are refused
    # Whether its kernels are positive semidefinite for all rows.
    is_definite: bool = True
    # Whether it is recognized only if columns are scaled by the rule of a view.
    of_counts: bool = False

    # Whether it is asked for by name, and recognized in no view.
    by_name = property(lambda self: self.fits is None)
    # Whether rows can be prepared so that features stand for its kernel.
    has_features = property(
        lambda self: not self.of_pairs and self.formula in (None, LINEAR, COSINE)
    )

    @property
    def takes_any_numbers(self) -> bool:
        """Whether rows may hold any numbers."""
        return not (self.is_nonnegative or self.of_pairs or self.preparation is OneHot)

    @property
    def has_units(self) -> bool:
        """Whether columns are numbers with units, so that they can be scaled."""
        is_plain = self.preparation is Preparation and self.takes_any_numbers
        return issubclass(self.preparation, ScaleColumns) or (self.by_name and is_plain)


# Rules are tried in order; the first that fits is used.
RULES: dict[str, ViewRule] = {
    rule.kind: rule
    for rule in (
        ViewRule(
            "categories",
            COSINE,  # the share of equal categories
            fits=lambda profile: is_one_hot(profile.rows),
            why="groups of columns with one mark in every row",
        ),
        ViewRule(
            "distances",
            DISTANCES,
            fits=ViewProfile.are_distances,
            why="a symmetric matrix with a zero diagonal, most of the others positive",
            neighborhood_share=1.0,
            is_definite=False,
            **OF_PAIRS,
        ),
        ViewRule(
            "graph",
            COSINE,
            LinkedToItself,
            fits=ViewProfile.is_graph,
            why="a symmetric matrix, nonnegative and mostly zero",
            **OF_PAIRS,
        ),
        ViewRule(
            "counts",
            preparation=CountComponents,
            fits=lambda profile: are_many_counts(profile.raw_rows),
            why="whole numbers in many columns, distributed as counts",
            **OF_COUNTS,
        ),
        ViewRule(
            "log-ratios",
            preparation=LogRatios,
            fits=lambda profile: are_few_counts(profile.raw_rows),
            why="whole numbers in few columns, distributed as counts",
            **OF_COUNTS,
        ),
        ViewRule(
            "sparse",
            COSINE,
            LogTfIdf,
            fits=ViewProfile.is_sparse,
            why="nonnegative, with less than 10 % of its entries not zero",
            neighborhood_share=1.0,
            is_nonnegative=True,
        ),
        ViewRule("binary", fits=ViewProfile.is_binary, why="two values only"),
        ViewRule(
            "histogram",
            preparation=SquareRootsOfShares,
            fits=ViewProfile.are_histograms,
            why="nonnegative, and all rows add up to about the same",
            is_nonnegative=True,
            neighborhood_share=NEARBY,
        ),
        ViewRule(
            "directions",
            COSINE,
            fits=ViewProfile.are_directions,
            why="all rows of one length, with entries of both signs",
            neighborhood_share=NEARBY,
        ),
        ViewRule(
            "components",
            preparation=KeepColumnScale,
            fits=lambda profile: are_components(profile.view),
            why="uncorrelated columns whose spreads fall, "
            "as those of principal components",
            neighborhood_share=NEARBY,
        ),
        ViewRule(
            "table",
            preparation=ScaleColumns,
            fits=ViewProfile.has_units,
            why="few columns, or columns whose spreads differ by orders of magnitude",
            neighborhood_share=NEARBY,
        ),
        ViewRule(
            "dense",
            preparation=LimitColumnScale,
            fits=lambda profile: True,
            why="none of the other kinds",
            neighborhood_share=NEARBY,
        ),
        ViewRule("gaussian"),
        ViewRule(
            "self-tuning",
            Exponential("self-tuning", "local distance"),
            is_definite=False,
        ),
        ViewRule("linear", LINEAR),
        ViewRule("cosine", COSINE, UnitRows),
        ViewRule("polynomial", polynomial(1.0, 2)),
        ViewRule("laplacian", Exponential("laplacian", "city block")),
        ViewRule("chi2", Exponential("chi2", "chi squared"), is_nonnegative=True),
        ViewRule("hellinger", COSINE, SquareRootsOfShares, is_nonnegative=True),
        ViewRule("jaccard", Formula("jaccard", "jaccard"), is_nonnegative=True),
        ViewRule("overlap", COSINE, OneHot),
        ViewRule("from_distances", DISTANCES, is_definite=False, **OF_PAIRS),
        ViewRule("precomputed", SIMILARITIES, of_pairs=True, is_definite=False),
    )
}
RULES["categorical"] = RULES["overlap"]  # another name
# How columns may be scaled instead of by the rule of a view; "auto" leaves it to the
# rule.
SCALES: dict[str, type[Preparation]] = {
    "standard": Standard,
    "robust": Robust,
    "log": Logarithm,
    "none": Preparation,
}


def kind_of(profile: ViewProfile, scale: str = "auto") -> ViewRule:
    """Return the first rule that fits the profile of a view.

    Whole numbers whose scale is asked for are not taken for counts.
    """
    for rule in RULES.values():
        is_left_out = rule.of_counts and scale != "auto"
        if rule.fits and not is_left_out and rule.fits(profile):
            return rule
    raise AssertionError("the last rule fits every view")


def requests_of(rules: Any, names: Collection[str]) -> dict[str, view]:
    """Return the request for each view by the rules of a `KernelBank`."""
    if rules is None:
        rules = "gaussian"
    elif isinstance(rules, str) and rules == "kind":
        rules = "auto"
    if not isinstance(rules, Mapping):
        rules = dict.fromkeys(names, rules)
    _check_names("rule", rules, names)
    requests = {}
    for name in names:
        request = rules.get(name, "auto")
        if not isinstance(request, view):
            request = view(kernel=request)
        requests[name] = request
        transformer = request.preprocess
        kernel = request.kernel
        if not isinstance(kernel, str) or kernel not in ("auto", *RULES):
            kernels = ", ".join(map(repr, ["auto", *RULES]))
            raise ValueError(
                f"View {name!r}, kernel {kernel!r}: choose among {kernels}."
            )
        if transformer is None:
            continue
        if isinstance(transformer, type) or not hasattr(transformer, "transform"):
            raise ValueError(
                f"View {name!r}, preprocess={transformer!r}: pass an instance of a "
                "transformer with fit and transform, such as StandardScaler()."
            )
        if kernel != "auto" and RULES[kernel].of_pairs:
            raise ValueError(
                f"View {name!r}, preprocess={transformer!r}: columns of the kernel "
                f"{kernel!r} are samples, not features; leave preprocess out."
            )
    return requests


def _check_names(what: str, asked: Iterable[str], names: Collection[str]) -> None:
    """Refuse names of views that there are not."""
    for name in asked:
        if name not in names:
            raise ValueError(
                f"There is a {what} for the view {name!r}{did_you_mean(name, names)}, "
                f"and the views are {', '.join(map(repr, names))}: name one of these, "
                "or leave it out."
            )


def check_scale(scale: Any) -> None:
    """Refuse what ``scale`` cannot be for any views."""
    for each in scale.values() if isinstance(scale, Mapping) else [scale]:
        if not isinstance(each, str) or each not in ("auto", *SCALES):
            names = ", ".join(map(repr, ["auto", *SCALES]))
            raise ValueError(
                f"scale={scale!r}: choose among {names}, for all views or by name."
            )


def choose_rules(
    rules: Any,
    scale: Any,
    views: Mapping[str, Array],
    *,
    of_rows: bool = False,
) -> dict[str, tuple[ViewRule, Preparation]]:
    """Return the rule and preparation of every view, perhaps only of its rows."""
    scales = scale
    if not isinstance(scale, Mapping):
        scales = dict.fromkeys(views, scale)
    _check_names("scale", scales, views)
    chosen = {}
    for name, request in requests_of(rules, views).items():
        rows = views[name]
        n_samples = None if of_rows else rows.shape[0]
        chosen[name] = _choose(name, request, scales.get(name, "auto"), rows, n_samples)
    return chosen


def _choose(
    name: str,
    request: view,
    scale: str,
    rows: Array,
    n_samples: int | None,
) -> tuple[ViewRule, Preparation]:
    """Return the rule and preparation of one view."""
    preprocessed = None
    if request.preprocess is not None:
        preprocessed = Preprocessed.fitted(request.preprocess, name, rows)
        rows = preprocessed.transform(rows)
    if request.kernel == "auto":
        # The output of a transformer is features, even if their number is that of the
        # samples.
        if preprocessed is not None:
            n_samples = None
        rule = kind_of(ViewProfile(rows, n_samples), scale)
        if preprocessed is not None and rule.kind == "table":
            rule = RULES["dense"]  # columns are scaled as the transformer leaves them
    else:
        rule = RULES[request.kernel]
        problem, advice = _problem(rule, ViewProfile(rows, n_samples))
        if problem:
            raise ValueError(
                f"View {name!r} cannot have the kernel {rule.kind!r}, which {problem}; "
                f"{advice}."
            )
    kind_of_preparation = rule.preparation
    if scale in SCALES and rule.has_units:
        kind_of_preparation = SCALES[scale]
    if kind_of_preparation is Logarithm and ViewProfile(rows, n_samples).lowest < 0:
        raise ValueError(
            f"View {name!r} cannot have scale='log', which takes no negative entries: "
            "it may hold logarithms already; leave it out, or choose another scale."
        )
    preparation = kind_of_preparation.learn(rows)
    if preprocessed is not None:
        preparation = replace(preprocessed, then=preparation)
    return rule, preparation


def learn_preparations(
    rules: Any,
    scale: Any,
    views: Mapping[str, Array],
) -> dict[str, Preparation]:
    """Learn from some rows of views how they are prepared before they are mapped."""
    chosen = choose_rules(rules, scale, views, of_rows=True)
    return {name: each for name, (_, each) in chosen.items() if each.changes_rows}


def with_components(rules: Any, views: Mapping[str, Any]) -> Any:
    """Return rules that name the views of components, which only all rows show.

    Only arrays are looked at, in memory, mapped or on a device.
    """
    asked = requests_of(rules, views)
    found = {}
    for name, rows in views.items():
        is_array = isinstance(rows, np.ndarray) or is_foreign(rows)
        if is_array and asked[name] == view() and are_components(rows):
            found[name] = view(kernel="components")
    if found:
        return asked | found
    return rules


def _problem(rule: ViewRule, profile: ViewProfile) -> tuple[str, str]:
    """Return why a rule does not suit a view, "" if it does, and what to do."""
    n_columns = profile.view.shape[1]
    given_sparse = issparse(profile.view)
    another = "choose another kernel"
    if profile.n_samples is None and not rule.has_features:
        return (
            "compares samples, not rows of features",
            f"{another}, or approximation=None",
        )
    if rule.of_pairs and n_columns != profile.n_samples:
        found = f"found {n_columns} columns, {profile.n_samples} samples"
        return f"has one column per sample: {found}", another
    if rule.kind == "from_distances" and given_sparse:
        return (
            "takes all distances: found a sparse matrix, in which some may be missing",
            "pass its .toarray() if zeros are distances, or choose the kind 'graph' "
            "for links",
        )
    least = -SYMMETRIC if rule.of_pairs else 0  # distances may be rounded
    if rule.is_nonnegative and profile.rows.min() < least:
        return "takes no negative entries: found some", another
    if rule.of_pairs and rule.by_name and not profile.is_symmetric:
        return (
            "is symmetric: found entries that differ from their mirror images",
            "bring its columns into the order of its rows (D[D.index] of a data "
            "frame), or pass (D + D.T) / 2 if the two directions are meant to differ",
        )
    if rule.kind == "from_distances" and np.abs(profile.diagonal).max() > SYMMETRIC:
        found = "has a zero diagonal: found other entries there"
        return found, "pass similarities with kernels='precomputed'"
    if rule.preparation is OneHot and given_sparse and not is_one_hot(profile.raw_rows):
        return (
            "has a column of zeros and ones for each category of a sparse view: found "
            "others",
            "pass its .toarray() if columns are categories",
        )
    if rule.preparation is OneHot and not given_sparse:
        # Columns with more values hold numbers, not categories.
        most = max(20, len(profile.rows) / 2)
        for column, values in enumerate(profile.raw_rows.T):
            levels = len(np.unique(values))
            if levels > most:
                return (
                    f"has few values per column: found {levels} in column {column}, of "
                    f"{len(profile.rows)} rows",
                    "choose a kernel of numbers, such as 'gaussian', or bin the column",
                )
    return "", ""
