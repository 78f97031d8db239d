"""Test variables that were not clustered on against the clusters."""

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.stats import false_discovery_control, rankdata

from mkclust.explain.aligned_tables import AlignedTable, read_tables
from mkclust.explain.annotation import Annotation, VariableTest
from mkclust.explain.clustered_on import ClusteredOn
from mkclust.explain.fitted import check_fitted, fitted_index
from mkclust.index import index_of, make_index
from mkclust.methods import MultipleKernelClusterer
from mkclust.methods.uncovered import UNCOVERED
from mkclust.text import join_words
from mkclust.types import Float

# Clusters with fewer known values cannot be told from others by a test.
FEWEST_VALUES = 2
# Statistics of permutations that differ by less, relatively, are the same but for rounding.
ROUNDING = 1e-9
# Columns that are times and events by their names: "time" and "event", "os_time" and "os_event".
TIME = re.compile(r"(.*?)[ _.\-]*time")
EVENT = re.compile(r"(.*?)[ _.\-]*(?:event|status)")


def annotate(
    labels: Any,
    table: Any,
    *,
    ids: Any = None,
    time: str | Sequence[str] | None = None,
    event: str | Sequence[str] | None = None,
    n_permutations: int = 999,
    random_state: int = 0,
) -> Annotation:
    """Test whether clusters differ in variables that were not clustered on.

    Categories are tested by chi-square, numbers by Kruskal and Wallis, survival by the log-rank
    test. A p-value is the share of permutations of the clusters, the observed one among them, whose
    statistic is at least as large; they are corrected for the number of variables by Benjamini and
    Hochberg. Missing values are left out variable by variable.

    Parameters
    ----------
    labels : MultipleKernelClusterer, array-like of int or pandas.Series of shape (n_samples,)
        A fitted model, or its clusters; samples with the label -1 are left out. Of a model,
        variables that it was clustered on are not tested: those with the ranks or the categories
        of its columns, whatever their names.
    table : data frame, mapping of columns, array, AnnData, or mapping or list of these
        The variables. Data frames, Series and AnnData are matched with the samples by their index,
        in any order of rows, and may lack some; all else is matched by position.
    ids : array-like of shape (n_samples,), default=None
        Ids of the samples; None takes those of the model, or the index of a Series.
    time, event : str or sequence of str, default=None
        Columns of times and of events, 0 for censored and 1 for an event. None takes those whose
        names are pairs such as ``time`` and ``event``, or ``os_time`` and ``os_event``.
    n_permutations : int, default=999
        Permutations of the clusters.
    random_state : int, default=0
        Seed of the permutations; those of one variable do not depend on the others.

    Returns
    -------
    Annotation
        Print it, or take its ``tests``.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import annotate
    >>> labels = np.repeat([0, 1], 20)
    >>> age = np.random.default_rng(0).normal(size=40) + labels
    >>> annotation = annotate(labels, {"age": age, "sex": ["f", "m"] * 20})
    >>> [(test.variable, test.test, test.p_adjusted < 0.05) for test in annotation.tests]
    [('age', 'Kruskal-Wallis', True), ('sex', 'chi-square', False)]
    """
    if not isinstance(n_permutations, int | np.integer) or n_permutations < 1:
        raise ValueError(f"n_permutations={n_permutations!r}: pass a whole number, at least 1")
    clusters, index = _read_labels(labels, ids)
    tables = read_tables(table, index)
    clustered_on = ClusteredOn.of(labels)
    variables = list(_variables(tables, len(clusters), time, event))
    tests = []
    for variable in variables:
        reason = clustered_on.reason(variable.columns, variable.parts)
        rng = np.random.default_rng([random_state, zlib.crc32(variable.name.encode())])
        tests.append(_test(variable, clusters, n_permutations, rng, reason))
    notes = tuple(
        f"Not tested of {each.name!r}: "
        f"{join_words(f'{column!r} {reason}' for column, reason in each.skipped.items())}."
        for each in tables
        if each.skipped
    )
    notes += (clustered_on.note,) if clustered_on.note else ()
    return Annotation(_adjusted(tests), int(n_permutations), notes)


@dataclass(frozen=True, eq=False)
class _Variable:
    """A variable: its name and columns, its kind of test, and its values, NaN where missing.

    Categories are the numbers of their levels; survival has the times for values, and events.
    """

    name: str
    columns: tuple[str, ...]
    test: str
    values: Float
    events: Float | None = None

    @property
    def parts(self) -> tuple[Float, ...]:
        """The values of its columns."""
        return (self.values,) if self.events is None else (self.values, self.events)


def _read_labels(labels: Any, ids: Any) -> tuple[np.ndarray, Any]:
    """Return clusters as numbers from zero, and the index of the samples or their number."""
    index = index_of(labels)
    if isinstance(labels, MultipleKernelClusterer):
        check_fitted(labels)
        index, labels = fitted_index(labels), labels.labels_
    values = np.asarray(labels)
    if n_missing := int(np.sum(values != values)):
        verb = "is" if n_missing == 1 else "are"
        raise ValueError(
            f"{n_missing} of {len(values)} labels {verb} missing: drop these samples, and pass ids "
            "where the table has some"
        )
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"labels have the shape {values.shape}: pass one cluster a sample")
    if ids is not None:
        index = make_index(list(ids), None, 0)
    elif index is None:
        index = len(values)
    if not isinstance(index, int) and len(index) != len(values):
        raise ValueError(f"there are {len(index)} ids for {len(values)} labels: pass one a sample")
    numbers = np.unique(values, return_inverse=True)[1]
    return np.where(values == UNCOVERED, -1, numbers), index


def _variables(
    tables: Sequence[AlignedTable], n_samples: int, time: Any, event: Any
) -> Iterator[_Variable]:
    """Yield the variables of all tables, survival first; names have their table's where needed."""
    single: dict[str, _Variable] = {}
    for table in tables:
        for name, test, values in _columns(table):
            everyone = np.full(n_samples, np.nan)
            everyone[table.samples] = values
            title = name if len(tables) == 1 or name not in single else f"{table.name}: {name}"
            single[title] = _Variable(title, (name,), test, everyone)
    for pair in _survival_pairs(single, time, event):
        times, events = (single.pop(name) for name in pair)
        columns = times.columns + events.columns
        yield _Variable(", ".join(pair), columns, "log-rank", times.values, events.values)
    yield from single.values()


def _columns(table: AlignedTable) -> Iterator[tuple[str, str, Float]]:
    """Yield the columns of a table with the tests that suit them."""
    for place, name in enumerate(table.columns):
        column = table.numbers[:, [place]]
        column = column.toarray() if issparse(column) else np.asarray(column, dtype=float)
        values = np.where(np.isfinite(column[:, 0]), column[:, 0], np.nan)
        two = len(np.unique(values[~np.isnan(values)])) == 2
        yield name, "chi-square" if two else "Kruskal-Wallis", values
    for category in table.categories:
        codes = category.codes.astype(float)
        yield category.name, "chi-square", np.where(codes < 0, np.nan, codes)


def _survival_pairs(variables: dict[str, _Variable], time: Any, event: Any) -> list[tuple]:
    """Return the columns of times and of events: those named, or else those that go by names."""
    if time is not None or event is not None:
        times, events = ([name] if isinstance(name, str) else name for name in (time, event))
        if times is None or events is None or len(times) != len(events):
            raise ValueError(
                f"time={time!r} and event={event!r}: pass as many columns of times as of events"
            )
        pairs = list(zip(times, events, strict=True))
        for name in (name for pair in pairs for name in pair):
            if name not in variables:
                raise ValueError(f"there is no column {name!r} among {join_words(variables)}")
        for _, name in pairs:
            if not _are_events(variables[name].values):
                raise ValueError(f"event {name!r}: pass 0 for censored and 1 for an event")
        return pairs
    stems: dict[str, str] = {}
    for name, variable in variables.items():
        if (match := EVENT.fullmatch(name.lower())) and _are_events(variable.values):
            stems.setdefault(match[1], name)
    matches = [(name, TIME.fullmatch(name.lower())) for name in variables]
    return [(name, stems[match[1]]) for name, match in matches if match and match[1] in stems]


def _are_events(values: Float) -> bool:
    """Return whether values are zeros and ones."""
    return bool(np.all((values == 0) | (values == 1) | np.isnan(values)))


def _test(
    variable: _Variable,
    clusters: np.ndarray,
    n_permutations: int,
    rng: np.random.Generator,
    reason: str,
) -> VariableTest:
    """Test one variable, or say why it cannot be tested."""
    known = np.isfinite(variable.values) & (clusters >= 0)
    events = variable.events
    if events is not None:
        known &= np.isfinite(events)
        events = events[known]
    values, groups = variable.values[known], np.unique(clusters[known], return_inverse=True)[1]
    reason = reason or _why_not(values, events, groups)
    statistic = p_value = np.nan
    if not reason:
        of_groups = _statistic(variable.test, values, events)
        statistic = of_groups(groups)
        if np.isfinite(statistic):
            least = statistic - ROUNDING * abs(statistic)
            larger = sum(
                not of_groups(rng.permutation(groups)) < least for _ in range(n_permutations)
            )
            p_value = (1 + larger) / (1 + n_permutations)
        else:
            reason = "the clusters have no common times at which they could differ"
    n_known, n_missing = int(known.sum()), int((~known).sum())
    return VariableTest(
        variable.name, variable.test, float(statistic), float(p_value), np.nan, n_known, n_missing,
        reason,
    )  # fmt: skip


def _why_not(values: Float, events: Float | None, groups: np.ndarray) -> str:
    """Return why a variable cannot be tested, nothing where it can."""
    if len(values) == 0:
        return "it has no values"
    if events is not None and not events.any():
        return "there are no events"
    if len(np.unique(values)) == 1:
        return "it is constant"
    if np.sum(np.bincount(groups) >= FEWEST_VALUES) < 2:
        return f"fewer than two clusters have {FEWEST_VALUES} values"
    return ""


def _statistic(test: str, values: Float, events: Float | None) -> Callable[[np.ndarray], float]:
    """Return the statistic as a function of the clusters."""
    if events is not None:
        return _log_rank(values, events)
    return _chi_square(values) if test == "chi-square" else _kruskal_wallis(values)


def _chi_square(values: Float) -> Callable[[np.ndarray], float]:
    """Return the chi-square statistic of categories, without a correction for continuity."""
    codes = np.unique(values, return_inverse=True)[1]
    sizes, n = np.bincount(codes), len(codes)

    def statistic(groups: np.ndarray) -> float:
        """Compare counts with those that independence lets expect."""
        group_sizes = np.bincount(groups)
        shape = len(group_sizes), len(sizes)
        counts = np.bincount(groups * shape[1] + codes, minlength=shape[0] * shape[1])
        expected = np.outer(group_sizes, sizes) / n
        return float(((counts.reshape(shape) - expected) ** 2 / expected).sum())

    return statistic


def _kruskal_wallis(values: Float) -> Callable[[np.ndarray], float]:
    """Return the statistic of Kruskal and Wallis, corrected for ties."""
    ranks = rankdata(values) - (len(values) + 1) / 2
    variance = (ranks**2).sum() / (len(values) - 1)

    def statistic(groups: np.ndarray) -> float:
        """Return how much the mean ranks of the clusters differ."""
        sums = np.bincount(groups, weights=ranks)
        return float((sums**2 / np.bincount(groups)).sum() / variance)

    return statistic


def _log_rank(times: Float, events: Float) -> Callable[[np.ndarray], float]:
    """Return the log-rank statistic of survival times."""
    try:
        from statsmodels.duration.survfunc import survdiff
    except ImportError as error:
        raise ImportError(
            'the log-rank test needs statsmodels: pip install "mkclust[survival]"'
        ) from error

    def statistic(groups: np.ndarray) -> float:
        """Return NaN where clusters are never at risk together."""
        try:
            with np.errstate(all="ignore"):
                return float(survdiff(times, events.astype(int), groups)[0])
        except np.linalg.LinAlgError:
            return np.nan

    return statistic


def _adjusted(tests: Sequence[VariableTest]) -> tuple[VariableTest, ...]:
    """Return tests with p-values corrected for the number of those that were made."""
    made = [place for place, test in enumerate(tests) if not test.reason]
    adjusted = dict(enumerate(tests))
    if made:
        values = false_discovery_control([tests[place].p_value for place in made])
        for place, value in zip(made, values.tolist(), strict=True):
            adjusted[place] = replace(tests[place], p_adjusted=value)
    return tuple(adjusted.values())
