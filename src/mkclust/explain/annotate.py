"""Test variables that were not clustered on against the clusters."""

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from scipy.stats import false_discovery_control, rankdata

from mkclust.explain.clustered_on import ClusteredOn
from mkclust.explain.fitted import check_fitted, fitted_index
from mkclust.explain.tables import AlignedTable, read_tables
from mkclust.index import index_of, make_index
from mkclust.methods import MultipleKernelClusterer
from mkclust.methods.uncovered import UNCOVERED
from mkclust.parameters import Count, check_parameter
from mkclust.text import join_words, printable, text_table
from mkclust.types import Float

# Clusters with fewer known values cannot be told from others by a test.
FEWEST_VALUES = 2
# Statistics of permutations that differ by less, relatively, are the same but for rounding.
ROUNDING = 1e-9
# Columns that are times and events by their names: "time" and "event", "os_time" and "os_event".
TIME = re.compile(r"(.*?)[ _.\-]*time")
EVENT = re.compile(r"(.*?)[ _.\-]*(?:event|status)")


@dataclass(frozen=True, eq=False)
class Annotation:
    """Variables tested against the clusters, as `mkclust.annotate` does; ``print`` it.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per variable: survival, then numbers and categories in the order of the table. The
        columns are ``variable`` (its name; for survival, those of times and events), ``test``
        ("chi-square" for categories, "Kruskal-Wallis" for numbers, "log-rank" for survival),
        ``statistic``, ``p_value`` (by permutations of the clusters), ``p_adjusted`` (for the number
        of variables, by Benjamini and Hochberg), ``n_samples`` and ``n_missing`` (samples whose
        values are known, and are not), and ``reason``: why it was not tested, or empty.
    n_permutations : int
        Permutations of the clusters; no p-value is smaller than one over one more than these.
    notes : tuple of str
        What was left out, and why; and what cannot be known of what was clustered on.
    """

    table: pd.DataFrame
    n_permutations: int
    notes: tuple[str, ...] = ()

    @property
    def tests(self) -> list[Any]:
        """The rows of the table as named tuples."""
        return list(self.table.itertuples(index=False, name="VariableTest"))

    def to_dict(self) -> dict[str, Any]:
        """Return the tests as JSON takes them, what is not known as None.

        Returns
        -------
        dict
        """
        known = self.table.astype(object).where(self.table.notna(), None)
        return {
            "tests": known.to_dict("records"),
            "n_permutations": self.n_permutations,
            "notes": list(self.notes),
        }

    def summary(self) -> str:
        """Return the tests as a text table.

        Returns
        -------
        str
        """
        rows = [["variable", "test", "samples", "missing", "statistic", "p", "adjusted"]]
        untested = []
        for each in self.tests:
            if each.reason:
                untested.append(printable(f"{each.variable} is not tested: {each.reason}."))
                continue
            numbers = [f"{each.n_samples:,}", f"{each.n_missing:,}", f"{each.statistic:.4g}"]
            numbers += [f"{each.p_value:.2g}", f"{each.p_adjusted:.2g}"]
            rows.append([printable(each.variable), each.test, *numbers])
        end = (
            f"p-values are from {self.n_permutations:,} permutations of the clusters; adjusted for "
            "the number of variables by Benjamini and Hochberg."
        )
        table = [text_table(rows), end] if len(rows) > 1 else []
        return "\n".join([*table, *untested, *map(printable, self.notes)])

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()


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
        A fitted model, or its clusters; samples with the label -1 are left out. With a model,
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
        Print it, or take its ``table``.

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
    check_parameter("n_permutations", n_permutations, Count())
    clusters, index = _read_labels(labels, ids)
    tables, clustered_on = read_tables(table, index), ClusteredOn.of(labels)
    rows = []
    for name, columns, test, values in _variables(tables, len(clusters), time, event):
        reason = clustered_on.reason(columns, values)
        rng = np.random.default_rng([random_state, zlib.crc32(name.encode())])
        known = np.isfinite(values).all(axis=0) & (clusters >= 0)
        values = [each[known] for each in values]
        statistic, p_value, reason = _test(
            test, values, clusters[known], reason, rng, int(n_permutations)
        )
        counts = int(known.sum()), int((~known).sum())
        rows.append((name, test, statistic, p_value, np.nan, *counts, reason))
    names = ["variable", "test", "statistic", "p_value", "p_adjusted", "n_samples", "n_missing"]
    frame = pd.DataFrame(rows, columns=[*names, "reason"])
    made = frame["reason"] == ""
    if made.any():
        frame.loc[made, "p_adjusted"] = false_discovery_control(frame.loc[made, "p_value"])
    notes = [
        f"Not tested in {each.name!r}: "
        f"{join_words(f'{column!r} {reason}' for column, reason in each.skipped.items())}."
        for each in tables
        if each.skipped
    ]
    return Annotation(frame, int(n_permutations), (*notes, *filter(None, [clustered_on.note])))


def _read_labels(labels: Any, ids: Any) -> tuple[np.ndarray, Any]:
    """Return clusters as numbers from zero, and the index of the samples or their number."""
    index = index_of(labels)
    if isinstance(labels, MultipleKernelClusterer):
        check_fitted(labels)
        index, labels = fitted_index(labels), labels.labels_
    values = np.asarray(labels)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"labels have the shape {values.shape}: pass one cluster per sample")
    if n_missing := int(pd.isna(values).sum()):
        raise ValueError(f"labels: {n_missing} of {len(values)} are missing: drop these samples")
    if ids is not None:
        index = make_index(list(ids), None, 0)
    elif index is None:
        index = len(values)
    if not isinstance(index, int) and len(index) != len(values):
        raise ValueError(f"there are {len(index)} ids for {len(values)} labels: pass as many")
    numbers = np.unique(values, return_inverse=True)[1]
    return np.where(values == UNCOVERED, -1, numbers), index


def _variables(
    tables: Sequence[AlignedTable], n_samples: int, time: Any, event: Any
) -> Iterator[tuple[str, tuple[str, ...], str, list[Float]]]:
    """Yield the name, columns, test and values of every variable, survival first.

    Missing values are NaN, categories the numbers of their levels; survival has times and events.
    Names that two tables have are preceded by the name of their table.
    """
    single: dict[str, tuple[tuple[str, ...], str, list[Float]]] = {}
    for table in tables:
        for name, test, column in _columns(table):
            values = np.full(n_samples, np.nan)
            values[table.samples] = column
            title = f"{table.name}: {name}" if name in single and len(tables) > 1 else name
            single[title] = (name,), test, [values]
    for pair in _survival_pairs(
        {name: values[0] for name, (*_, values) in single.items()}, time, event
    ):
        times, events = (single.pop(name) for name in pair)
        yield ", ".join(pair), times[0] + events[0], "log-rank", times[2] + events[2]
    for name, variable in single.items():
        yield name, *variable


def _columns(table: AlignedTable) -> Iterator[tuple[str, str, Float]]:
    """Yield the columns of a table with the tests that suit them."""
    for place, name in enumerate(table.columns):
        column = table.numbers[:, [place]]
        column = column.toarray() if issparse(column) else np.asarray(column, dtype=float)
        values = np.where(np.isfinite(column[:, 0]), column[:, 0], np.nan)
        is_binary = len(np.unique(values[~np.isnan(values)])) == 2
        yield name, "chi-square" if is_binary else "Kruskal-Wallis", values
    for name, category in table.categories:
        yield name, "chi-square", np.where(category.codes < 0, np.nan, category.codes)


def _survival_pairs(variables: dict[str, Float], time: Any, event: Any) -> list[tuple[str, str]]:
    """Return the columns of times and of events: those asked for, or else those named alike."""
    if time is not None or event is not None:
        times, events = ([name] if isinstance(name, str) else name for name in (time, event))
        if times is None or events is None or len(times) != len(events):
            raise ValueError(f"time={time!r}, event={event!r}: pass as many times as events")
        for name in (*times, *events):
            if name not in variables:
                raise ValueError(f"there is no column {name!r} among {join_words(variables)}")
        for name in events:
            if not _are_events(variables[name]):
                raise ValueError(f"event {name!r}: pass 0 for censored and 1 for an event")
        return list(zip(times, events, strict=True))
    stems: dict[str, str] = {}
    for name, values in variables.items():
        if (match := EVENT.fullmatch(name.lower())) and _are_events(values):
            stems.setdefault(match[1], name)
    matches = [(name, TIME.fullmatch(name.lower())) for name in variables]
    return [(name, stems[match[1]]) for name, match in matches if match and match[1] in stems]


def _are_events(values: Float) -> bool:
    return bool(np.all((values == 0) | (values == 1) | np.isnan(values)))


def _test(
    test: str,
    values: Sequence[Float],
    clusters: np.ndarray,
    reason: str,
    rng: np.random.Generator,
    n_permutations: int,
) -> tuple[float, float, str]:
    """Return the statistic, the p-value, and why a variable cannot be tested, or nothing."""
    groups = np.unique(clusters, return_inverse=True)[1]
    reason = reason or _why_not(values, groups)
    if reason:
        return np.nan, np.nan, reason
    statistic_of = STATISTICS[test](*values)
    statistic = statistic_of(groups)
    if not np.isfinite(statistic):
        return np.nan, np.nan, "the clusters have no common times at which they could differ"
    least = statistic - ROUNDING * abs(statistic)
    drawn = [statistic_of(rng.permutation(groups)) for _ in range(n_permutations)]
    p_value = (1 + sum(not each < least for each in drawn)) / (1 + n_permutations)
    return statistic, p_value, ""


def _why_not(values: Sequence[Float], groups: np.ndarray) -> str:
    """Return why a variable cannot be tested, nothing if it can."""
    if len(groups) == 0:
        return "it has no values"
    if len(values) == 2 and not values[1].any():
        return "there are no events"
    if len(np.unique(values[0])) == 1:
        return "it is constant"
    if np.sum(np.bincount(groups) >= FEWEST_VALUES) < 2:
        return f"fewer than two clusters have {FEWEST_VALUES} values"
    return ""


def _chi_square(values: Float) -> Callable[[np.ndarray], float]:
    """Return the chi-square statistic of categories, without a correction for continuity."""
    codes = np.unique(values, return_inverse=True)[1]
    sizes = np.bincount(codes)

    def statistic(groups: np.ndarray) -> float:
        group_sizes = np.bincount(groups)
        shape = len(group_sizes), len(sizes)
        counts = np.bincount(groups * shape[1] + codes, minlength=shape[0] * shape[1])
        expected = np.outer(group_sizes, sizes) / len(codes)
        return float(((counts.reshape(shape) - expected) ** 2 / expected).sum())

    return statistic


def _kruskal_wallis(values: Float) -> Callable[[np.ndarray], float]:
    """Return the statistic of Kruskal and Wallis, corrected for ties."""
    ranks = rankdata(values) - (len(values) + 1) / 2
    variance = (ranks**2).sum() / (len(values) - 1)

    def statistic(groups: np.ndarray) -> float:
        sums = np.bincount(groups, weights=ranks)
        return float((sums**2 / np.bincount(groups)).sum() / variance)

    return statistic


def _log_rank(times: Float, events: Float) -> Callable[[np.ndarray], float]:
    """Return the log-rank statistic, NaN if clusters are never at risk together."""
    try:
        from statsmodels.duration.survfunc import survdiff
    except ImportError as error:
        raise ImportError(
            'the log-rank test needs statsmodels: pip install "mkclust[survival]"'
        ) from error

    def statistic(groups: np.ndarray) -> float:
        try:
            with np.errstate(all="ignore"):
                return float(survdiff(times, events.astype(int), groups)[0])
        except np.linalg.LinAlgError:
            return np.nan

    return statistic


STATISTICS: dict[str, Callable[..., Callable[[np.ndarray], float]]] = {
    "chi-square": _chi_square,
    "Kruskal-Wallis": _kruskal_wallis,
    "log-rank": _log_rank,
}
