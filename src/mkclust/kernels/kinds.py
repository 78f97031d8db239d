"""The rule of every view: its kernel and preparation, by name or recognized by its numbers."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mkclust.kernels.components import are_components
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
    sampled_indices,
    sampled_rows,
)
from mkclust.linalg import is_foreign, select, to_host
from mkclust.linalg.sparse_rows import dense_rows
from mkclust.text import did_you_mean
from mkclust.types import Array, Float

# A view is sparse if fewer of its entries than this share are not zero.
SPARSE_SHARE = 0.1
# Rows are histograms if the standard deviation of their sums is at most this share of
# the mean.
EQUAL_SUMS = 0.01
# Rows are directions if that of their lengths is at most this share of the mean.
EQUAL_LENGTHS = 1e-3
# Row sums of histograms vary by at most this share of those of as many unrelated
# columns.
RELATED = 0.5
# Columns of a table with at most this number of columns have different units.
FEW_COLUMNS = 20
# So have those of a table with at most this number, if their spreads differ by this
# factor.
SOME_COLUMNS, FAR_APART = 100, 1_000.0
# Two entries of a symmetric matrix differ by at most this share of the largest.
SYMMETRIC = 1e-6
# Kernels that also compare samples that are far from each other contain a third of
# neighborhoods.
NEARBY = 1 / 3
# Views whose entries belong to pairs of samples.
OF_PAIRS: dict[str, Any] = {"of_pairs": True, "is_nonnegative": True}
# A column with more distinct values than this holds numbers, not categories,
MOST_LEVELS = 20
# if they are more than this share of the rows.
LEVELS_SHARE = 0.5


@dataclass(frozen=True)
class view:  # noqa: N801 - written like a function, as a value of the parameter ``kernels``
    """What to make of one view: rows by a scikit-learn transformer, then a kernel by its name.

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
    >>> views = {"lab": rng.normal(size=(30, 4)) * [1, 10, 100, 1000], "text": rng.random((30, 9))}
    >>> wishes = {"lab": view(StandardScaler(), "gaussian"), "text": "cosine"}
    >>> model = AverageKKM(2, kernels=wishes, random_state=0).fit(views)
    >>> print(model.bank_.explain())
    lab: gaussian (asked for); rows by StandardScaler(); gaussian x1, median distance 2.71
    text: cosine (asked for); rows of unit length; cosine
    """

    preprocess: Any = None
    kernel: str = "auto"


class ViewProfile:
    """Some rows of a view, and the properties that decide its kind, as `Rule.why` says them."""

    # None if columns are no samples.
    def __init__(self, view: Array, n_samples: int | None):
        self.view, self.n_samples = view, n_samples
        indices, self.raw_rows = sampled_indices(view), sampled_rows(view)
        # Kinds do not depend on the unit of a view.
        unit = float(np.abs(self.raw_rows).max(initial=0)) or 1.0
        self.rows: Float = self.raw_rows / unit
        self.is_nonnegative = bool(self.rows.min() >= 0)
        self.share_of_zeros = float(np.mean(self.rows == 0))
        self.is_symmetric = False
        if tuple(view.shape) == (n_samples, n_samples):
            columns = to_host(dense_rows(select(view, indices, axis=1))).T / unit
            self.is_symmetric = bool(np.abs(self.rows - columns).max() <= SYMMETRIC)
            self.diagonal: Float = self.rows[np.arange(len(indices)), indices]
        # Whether entries belong to pairs of samples.
        self.is_of_pairs = self.is_nonnegative and self.is_symmetric

    def are_distances(self) -> bool:
        n = self.view.shape[0]
        return (
            self.is_of_pairs
            and not self.diagonal.any()
            and (self.share_of_zeros - 1 / n) < 0.5 * (1 - 1 / n)
        )

    def is_graph(self) -> bool:
        return self.is_of_pairs and self.share_of_zeros > 0.5 and bool(self.rows.any())

    def is_sparse(self) -> bool:
        return (
            self.is_nonnegative
            and self.share_of_zeros > 1 - SPARSE_SHARE
            and bool(np.mean(self.rows.any(axis=1)) > 0.5)
        )

    def is_binary(self) -> bool:
        rows = self.rows
        return bool(np.all((rows == rows.min()) | (rows == rows.max())))

    def are_histograms(self) -> bool:
        if not self.is_nonnegative:
            return False
        sums, of_unrelated = self.rows.sum(axis=1), np.sqrt(self.rows.var(axis=0).sum())
        return _are_about_equal(sums, EQUAL_SUMS) and bool(
            sums.std() <= RELATED * of_unrelated
        )

    def are_directions(self) -> bool:
        if self.is_nonnegative or self.rows.max() <= 0 or self.rows.shape[1] < 2:
            return False
        return _are_about_equal(np.linalg.norm(self.rows, axis=1), EQUAL_LENGTHS)

    def has_units(self) -> bool:
        spreads, n_columns = self.rows.std(axis=0), self.rows.shape[1]
        varying = spreads[spreads > 0]
        are_far_apart = varying.size > 0 and varying.max() >= FAR_APART * varying.min()
        return n_columns <= FEW_COLUMNS or bool(
            n_columns <= SOME_COLUMNS and are_far_apart
        )


def _are_about_equal(numbers: Float, share: float) -> bool:
    return bool(numbers.mean() > 0 and numbers.std() <= share * numbers.mean())


@dataclass(frozen=True)
class Rule:
    """The kernels of views of one kind, or of views whose kernel is requested by name."""

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

    @property
    def by_name(self) -> bool:
        return self.fits is None

    @property
    def takes_any_numbers(self) -> bool:
        return not (self.is_nonnegative or self.of_pairs or self.preparation is OneHot)

    @property
    def has_features(self) -> bool:
        """Whether rows can be prepared so that features stand for its kernel."""
        return not self.of_pairs and self.formula in (None, LINEAR, COSINE)

    @property
    def has_units(self) -> bool:
        """Whether columns are numbers whose units matter, so that they can be scaled."""
        as_they_are = (
            self.by_name and self.preparation is Preparation and self.takes_any_numbers
        )
        return as_they_are or issubclass(self.preparation, ScaleColumns)


# Rules are tried in order; the first that fits is used.
RULES: dict[str, Rule] = {
    rule.kind: rule
    for rule in (
        Rule(
            "categories",
            COSINE,  # the share of equal categories
            fits=lambda profile: is_one_hot(profile.rows),
            why="groups of columns with one mark in every row",
        ),
        Rule(
            "distances",
            DISTANCES,
            fits=ViewProfile.are_distances,
            why="a symmetric matrix with a zero diagonal, most of the others positive",
            neighborhood_share=1.0,
            is_definite=False,
            **OF_PAIRS,
        ),
        Rule(
            "graph",
            COSINE,
            LinkedToItself,
            fits=ViewProfile.is_graph,
            why="a symmetric matrix, nonnegative and mostly zero",
            **OF_PAIRS,
        ),
        Rule(
            "sparse",
            COSINE,
            LogTfIdf,
            fits=ViewProfile.is_sparse,
            why="nonnegative, with less than 10 % of its entries not zero",
            neighborhood_share=1.0,
            is_nonnegative=True,
        ),
        Rule("binary", fits=ViewProfile.is_binary, why="two values only"),
        Rule(
            "histogram",
            preparation=SquareRootsOfShares,
            fits=ViewProfile.are_histograms,
            why="nonnegative, and all rows add up to about the same",
            is_nonnegative=True,
            neighborhood_share=NEARBY,
        ),
        Rule(
            "directions",
            COSINE,
            fits=ViewProfile.are_directions,
            why="all rows of one length, with entries of both signs",
            neighborhood_share=NEARBY,
        ),
        Rule(
            "components",
            preparation=KeepColumnScale,
            fits=lambda profile: are_components(profile.view),
            why="uncorrelated columns whose spreads fall, as those of principal components",
            neighborhood_share=NEARBY,
        ),
        Rule(
            "table",
            preparation=ScaleColumns,
            fits=ViewProfile.has_units,
            why="few columns, or columns whose spreads differ by orders of magnitude",
            neighborhood_share=NEARBY,
        ),
        Rule(
            "dense",
            preparation=LimitColumnScale,
            fits=lambda profile: True,
            why="none of the other kinds",
            neighborhood_share=NEARBY,
        ),
        Rule("gaussian"),
        Rule(
            "self-tuning",
            Exponential("self-tuning", "local distance"),
            is_definite=False,
        ),
        Rule("linear", LINEAR),
        Rule("cosine", COSINE, UnitRows),
        Rule("polynomial", polynomial(1.0, 2)),
        Rule("laplacian", Exponential("laplacian", "city block")),
        Rule("chi2", Exponential("chi2", "chi squared"), is_nonnegative=True),
        Rule("hellinger", COSINE, SquareRootsOfShares, is_nonnegative=True),
        Rule("jaccard", Formula("jaccard", "jaccard"), is_nonnegative=True),
        Rule("overlap", COSINE, OneHot),
        Rule("from_distances", DISTANCES, is_definite=False, **OF_PAIRS),
        Rule("precomputed", SIMILARITIES, of_pairs=True, is_definite=False),
    )
}
RULES["categorical"] = RULES["overlap"]  # another name
# How columns may be scaled instead of by the rule of a view; "auto" leaves it to the
# rule.
SCALES: dict[str, type[Preparation]] = {
    "standard": Standard,
    "robust": Robust,
    "none": Preparation,
}


def kind_of(profile: ViewProfile) -> Rule:
    """Return the first rule that fits the profile of a view."""
    return next(rule for rule in RULES.values() if rule.fits and rule.fits(profile))


def requests_of(rules: Any, names: Collection[str]) -> dict[str, view]:
    """Return the request for each view by the rules of a `KernelBank`; "auto" uses its kind."""
    if not isinstance(rules, Mapping):
        asked = "gaussian" if rules is None else "auto" if rules == "kind" else rules
        rules = dict.fromkeys(names, asked)
    _check_names("rule", rules, names)
    asked = {name: rules.get(name, "auto") for name in names}
    requests = {
        name: a if isinstance(a, view) else view(kernel=a) for name, a in asked.items()
    }
    for name, request in requests.items():
        transformer, kernel = request.preprocess, request.kernel
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
    rules: Any, scale: Any, views: Mapping[str, Array], *, of_rows: bool = False
) -> dict[str, tuple[Rule, Preparation]]:
    """Return the rule and preparation of every view; with `of_rows`, columns are no samples."""
    scales = scale if isinstance(scale, Mapping) else dict.fromkeys(views, scale)
    _check_names("scale", scales, views)
    chosen = {}
    for name, request in requests_of(rules, views).items():
        n_samples = None if of_rows else views[name].shape[0]
        chosen[name] = _choose(
            name, request, scales.get(name, "auto"), views[name], n_samples
        )
    return chosen


def _choose(
    name: str, request: view, scale: str, rows: Array, n_samples: int | None
) -> tuple[Rule, Preparation]:
    preprocessed = None
    if request.preprocess is not None:
        preprocessed = Preprocessed.fitted(request.preprocess, name, rows)
        rows = preprocessed.transform(rows)
    if request.kernel == "auto":
        # The output of a transformer is features, even if their number is that of the
        # samples.
        rule = kind_of(ViewProfile(rows, n_samples if preprocessed is None else None))
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
    is_scaled = scale in SCALES and rule.has_units
    preparation = (SCALES[scale] if is_scaled else rule.preparation).learn(rows)
    return rule, replace(
        preprocessed, then=preparation
    ) if preprocessed else preparation


def learn_preparations(
    rules: Any, scale: Any, views: Mapping[str, Array]
) -> dict[str, Preparation]:
    """Learn how rows of views are prepared before they are mapped, from some of the rows."""
    chosen = choose_rules(rules, scale, views, of_rows=True)
    return {name: each for name, (_, each) in chosen.items() if each.changes_rows}


def with_components(rules: Any, views: Mapping[str, Any]) -> Any:
    """Return rules that name the views of components, which show in all of their rows alone.

    Only arrays are looked at, in memory, mapped or on a device.
    """
    asked = requests_of(rules, views)
    found = [
        name
        for name, rows in views.items()
        if asked[name] == view()
        and (isinstance(rows, np.ndarray) or is_foreign(rows))
        and are_components(rows)
    ]
    return (
        asked | {name: view(kernel="components") for name in found} if found else rules
    )


def _problem(rule: Rule, profile: ViewProfile) -> tuple[str, str]:
    """Return why a rule does not suit a view, "" if it does, and what to do about it."""
    n_columns, given_sparse = profile.view.shape[1], issparse(profile.view)
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
    # Distances may be rounded.
    if rule.is_nonnegative and profile.rows.min() < (
        -SYMMETRIC if rule.of_pairs else 0
    ):
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
        found = "has a column of zeros and ones for each category of a sparse view: found others"
        return found, "pass its .toarray() if columns are categories"
    if rule.preparation is OneHot and not given_sparse:
        most = max(MOST_LEVELS, LEVELS_SHARE * len(profile.rows))
        for column, values in enumerate(profile.raw_rows.T):
            if (levels := len(np.unique(values))) > most:
                found = (
                    f"found {levels} in column {column}, of {len(profile.rows)} rows"
                )
                advice = (
                    "choose a kernel of numbers, such as 'gaussian', or bin the column"
                )
                return f"has few values per column: {found}", advice
    return "", ""
