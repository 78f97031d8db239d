"""Test variables that were not clustered on against the clusters."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from scipy.stats import false_discovery_control, rankdata

from mkclust.data.groups import read_groups
from mkclust.data.no_features import is_own_column, looks_like_an_id
from mkclust.data.survival_columns import (
    is_unclear,
    named_survival,
    read_events,
    read_name,
    usual_survival,
)
from mkclust.explain.annotation import Annotation, p_of_permutations
from mkclust.explain.clustered_on import ClusteredView, clustered_views, why_clustered
from mkclust.explain.fitted import check_fitted, fitted_index
from mkclust.explain.permuted_clusters import PermutedClusters
from mkclust.explain.survival import (
    compare_survival,
    survival_test,
)
from mkclust.explain.tables import AlignedTable, read_tables
from mkclust.fit import MultipleKernelClusterer
from mkclust.fit.embedding import UNCOVERED
from mkclust.index import index_of
from mkclust.parameters import Count, check_parameter
from mkclust.plots import SurvivalDisplay
from mkclust.plots.style import names_of, title_of
from mkclust.text import (
    did_you_mean,
    join_words,
)
from mkclust.types import Float
from mkclust.unknown import means_unknown
from mkclust.watch import steps


@dataclass(frozen=True, eq=False)
class _Variable:
    """A variable: numbers, codes of levels, or times and events; NaN if missing."""

    columns: tuple[str, ...]
    test: str
    values: tuple[Float, ...]
    levels: tuple[str, ...] = ()
    reason: str = ""
    event: str = ""  # what was read as the event of survival

    @property
    def known(self) -> np.ndarray:
        """Which samples have values."""
        return np.asarray(np.isfinite(self.values).all(axis=0))


def annotate(
    labels: Any,
    table: Any,
    *,
    time: str | Sequence[str] | None = None,
    event: str | Sequence[str] | None = None,
    n_permutations: int = 999,
    random_state: int = 0,
    groups: Any = None,
    adjust: str | Sequence[str] = (),
) -> Annotation:
    """Test whether clusters differ in variables that were not clustered on.

    Categories are tested by chi-square, numbers by Kruskal and Wallis, survival by the
    log-rank test. A p-value is the share of permutations of the clusters, the observed
    one among them, whose statistic is at least as large; that of survival is by the
    chi-square distribution if at least five events are expected in every cluster (and
    no groups are given). They are corrected for the number of variables by Benjamini
    and Hochberg. Missing values are left out variable by variable.

    Survival is also compared for every two clusters, corrected by Holm, and by the
    hazard ratios of a Cox regression.

    Parameters
    ----------
    labels : MultipleKernelClusterer, or array-like or Series of shape (n_samples,)
        A fitted model, or its clusters; a Series has the ids of the samples as its
        index. Samples with the label -1 are left out. With a model, variables that it
        was clustered on are not tested: those with the names, the ranks or the
        categories of its columns. Nor are functions of these: decades, thresholds,
        merged categories, weighted sums of two columns, and columns whose empty cells
        were filled. Others cannot be recognized, which a note says.
    table : data frame, mapping of columns, array, AnnData, or mapping or list of these
        The variables; of AnnData and MuData, ``obs``. Data frames, Series and AnnData
        are matched by their index, in any order of rows, and may lack samples; all else
        by position.
    time, event : str or sequence of str, default=None
        Columns of times and of events: 0 or words such as "alive" for censored, 1 or
        "dead" for an event; under names such as "alive" or "disease_free", 1 means
        none. Names such as "survival" do not tell what 1 means, and are refused. Pairs
        with usual names are recognized: ``time`` and ``event``, ``OS.time`` and ``OS``,
        ``OS_MONTHS`` and ``OS_STATUS``, ``days_to_death`` and ``vital_status``, the
        same with PFS and DFS. A time with such a name is not tested as a number if it
        has no events.
    n_permutations : int, default=999
        Permutations of the clusters.
    random_state : int, default=0
        Seed of the permutations; those of one variable do not depend on the others.
    groups : str, Series, frame of one column, array-like of shape (n_samples,) or None
        A column of the table, or ids, of families, patients, batches or plates: samples
        of a group are not independent. Permutations then keep groups together: they
        exchange samples within groups, and whole groups of the same size.
    adjust : str or sequence of str, default=()
        Columns of the table, such as age and stage, that the hazard ratios of survival
        are adjusted for: numbers by unit, categories by level. The clusters stay as
        they are; ``fit(X, adjust=...)`` removes covariates before clusters are made.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import annotate
    >>> labels = np.repeat([0, 1], 20)
    >>> age = np.random.default_rng(0).normal(size=40) + labels
    >>> annotation = annotate(labels, {"age": age, "sex": ["f", "m"] * 20})
    >>> [(each.variable, each.p_adjusted < 0.05) for each in annotation.tests]
    [('age', True), ('sex', False)]
    """
    check_parameter("n_permutations", n_permutations, Count())
    clusters, names, index = _read_labels(labels)
    tables = read_tables(_observations(table), index)
    views, note = clustered_views(labels)
    variables = _variables(tables, len(clusters), time, event)
    grouping = _read_groups(groups, variables, index)
    permuted = PermutedClusters(clusters, grouping, n_permutations, random_state)

    adjusted = _adjusted(adjust, variables)

    rows = []
    by_cluster = []
    survival = {}
    comparisons = {}
    for name, variable in steps(list(variables.items())):
        found = _test(name, variable, views, permuted)
        rows.append(found)
        if found["reason"]:
            continue
        if variable.test == "log-rank":
            times, events = variable.values
            comparisons[name] = compare_survival(
                name, times, events, permuted, names, adjusted
            )
            p_value = p_of_permutations(found["p_value"], n_permutations, "= ")
            survival[name] = SurvivalDisplay(
                times=times,
                events=events,
                labels=clusters,
                time_name=variable.columns[0],
                names=names,
                note=f"log-rank p {p_value}",
            )
        compared = _middles(variable, clusters, survival.get(name))
        by_cluster += [(name, *each) for each in compared]

    frame = pd.DataFrame(rows)
    made = frame["reason"] == ""
    if made.any():
        p_adjusted = false_discovery_control(frame.loc[made, "p_value"])
        frame.loc[made, "p_adjusted"] = p_adjusted

    notes = _notes(tables, variables)
    for name, curves in survival.items():
        count = f"{curves.n_events:,} of {curves.n_samples:,}"
        notes.append(f"{name}: events: {count}, {variables[name].event}.")
    if grouping is not None:
        notes.append(_about_groups(permuted))
    if note:
        notes.append(note)
    return Annotation(
        table=frame,
        by_cluster=pd.DataFrame(by_cluster, columns=["variable", "value", *names]),
        n_permutations=int(n_permutations),
        survival=survival,
        notes=tuple(notes),
        comparisons=comparisons,
        values=_values(variables),
        clusters=clusters,
        names=tuple(names),
    )


def _adjusted(
    adjust: str | Sequence[str], variables: Mapping[str, _Variable]
) -> dict[str, dict[str, Float]]:
    """Return the columns of the variables that hazard ratios are adjusted for."""
    wanted = [adjust] if isinstance(adjust, str) else list(adjust)
    if wanted and not any(each.test == "log-rank" for each in variables.values()):
        raise ValueError(
            "adjust: hazard ratios need a column of times and one of events: name both "
            "by time and event"
        )
    found = {}
    for name in wanted:
        if name not in variables or variables[name].test == "log-rank":
            near = did_you_mean(name, variables)
            raise ValueError(f"adjust: there is no variable {name!r}{near}")
        found[name] = _columns_of(name, variables[name])
    return found


def _columns_of(name: str, variable: _Variable) -> dict[str, Float]:
    """Return a variable as columns of a regression: numbers, or marks of levels."""
    values = variable.values[0]
    levels = variable.levels
    if not levels:
        return {name: values}
    is_known = np.isfinite(values)
    present = np.unique(values[is_known]).astype(int)
    # They are compared with the first one that is known.
    first, *others = sorted(present, key=lambda place: means_unknown(levels[place]))
    return {
        _title_of_levels(name, levels[level], levels[first]): np.where(
            is_known, values == level, np.nan
        )
        for level in others
    }


def _title_of_levels(name: str, level: str, first: str) -> str:
    """Return what two levels are compared, with their variable if they do not name it.

    >>> _title_of_levels("stage", "Stage II", "Stage I")
    'Stage II vs Stage I'
    >>> _title_of_levels("sex", "m", "f")
    'sex m vs f'
    """
    if re.match(rf"{re.escape(name)}(?![a-z])", level, re.IGNORECASE):
        return f"{level} vs {first}"
    return f"{name} {level} vs {first}"


def _values(variables: Mapping[str, _Variable]) -> pd.DataFrame:
    """Return the variables as columns, but for survival and what says nothing."""
    found = {}
    for name, variable in variables.items():
        if variable.test == "log-rank" or (variable.reason and not variable.levels):
            continue
        found[name] = variable.values[0]
        if variable.levels:
            codes = np.nan_to_num(variable.values[0], nan=-1).astype(int)
            found[name] = pd.Categorical.from_codes(codes, list(variable.levels))
    return pd.DataFrame(found)


def _test(
    name: str,
    variable: _Variable,
    views: Sequence[ClusteredView],
    permuted: PermutedClusters,
) -> dict[str, Any]:
    """Return the test of a variable against the clusters, or why there is none."""
    clusters = permuted.clusters
    known = variable.known & (clusters >= 0)
    statistic = p_value = np.nan
    reason = variable.reason or _why_not(variable.values, known, clusters[known])
    reason = reason or why_clustered(views, variable.columns, variable.values)
    if not reason and variable.test == "log-rank":
        times, events = variable.values
        statistic, p_value = survival_test(name, times, events, known, permuted)
        if not np.isfinite(statistic):
            reason = "the clusters have no common times at which they could differ"
    elif not reason:
        statistic_of = _statistic(variable.test, variable.values[0][known])
        statistic = statistic_of(clusters[known])
        p_value = permuted.p_value(name, known, statistic_of)
    return {
        "variable": name,
        "test": variable.test,
        "statistic": statistic,
        "p_value": p_value,
        "p_adjusted": np.nan,
        "n_samples": int(known.sum()),
        "n_missing": int((~known).sum()),
        "reason": reason,
    }


def _notes(
    tables: Sequence[AlignedTable], variables: Mapping[str, _Variable]
) -> list[str]:
    """Return how tables were read, and what was left out of them."""
    notes = [
        f"The rows of {each.name!r} are matched by its column {each.id_column!r}."
        for each in tables
        if each.id_column
    ]
    unclear = []
    for name, each in variables.items():
        said = read_name(name)
        is_mark = not said.is_time and (said.is_event or said.is_bare)
        if is_mark and is_unclear(name, each.values[0], each.levels):
            unclear.append(name)
    if unclear:
        notes.append(
            "Not taken for events of survival, because 1 or yes may mean alive or free "
            f"of the event: {join_words(unclear)}; give the column of events a name "
            "such as died."
        )
    skipped = [each for each in tables if each.skipped]
    return notes + [f"Not tested in {each.name!r}: {each.reasons}." for each in skipped]


def _read_groups(
    groups: Any, variables: dict[str, _Variable], index: Any
) -> np.ndarray | None:
    """Return the group of every sample; its column is not a variable any more."""
    if groups is None:
        return None
    if not isinstance(groups, str):
        return read_groups(groups, index)
    if groups not in variables:
        raise ValueError(f"there is no column {groups!r} among {join_words(variables)}")

    column = variables[groups]
    variables[groups] = replace(column, reason="the groups of the permutations")
    return read_groups(column.values[0], len(column.values[0]))


def _about_groups(permuted: PermutedClusters) -> str:
    """Return how groups restrict the permutations, in a sentence."""
    n_groups = len(np.unique(permuted.groups))
    found = f"Permutations respect {n_groups:,} groups of samples"
    n_orders = permuted.count_orders()
    if n_orders == 1:
        return (
            f"{found}, and none changes the clusters: nothing can be tested with these "
            "groups."
        )
    # With fewer different orders, p-values are coarse.
    if n_orders < min(200, permuted.n_permutations):
        found += (
            f": only {n_orders} differ, so that no p-value can be below "
            f"{1 / n_orders:.2g}"
        )
    return f"{found}."


def _observations(table: Any) -> Any:
    """Return the variables of AnnData or MuData, or of several; all else as it is."""
    if hasattr(table, "obs_names") and hasattr(table, "obs"):
        return table.obs
    if isinstance(table, Mapping) and not issparse(table):
        return {name: _observations(each) for name, each in table.items()}
    return table


def _read_labels(labels: Any) -> tuple[np.ndarray, list[str], Any]:
    """Return clusters as numbers from zero, their names, and the index."""
    index = index_of(labels)
    given = None
    if isinstance(labels, MultipleKernelClusterer):
        check_fitted(labels)
        index = fitted_index(labels)
        given = names_of(labels)
        labels = labels.labels_
    values = np.asarray(labels)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(
            f"labels have the shape {values.shape}: pass one cluster per sample"
        )
    n_missing = int(pd.isna(values).sum())
    if n_missing:
        raise ValueError(
            f"labels: {n_missing} of {len(values)} are missing: drop these samples"
        )
    if index is None:
        index = len(values)
    is_covered = values != UNCOVERED
    clusters = np.full(len(values), -1)
    names, clusters[is_covered] = np.unique(values[is_covered], return_inverse=True)
    return clusters, [title_of(each, given, limit=60) for each in names.tolist()], index


def _variables(
    tables: Sequence[AlignedTable], n_samples: int, time: Any, event: Any
) -> dict[str, _Variable]:
    """Return the variables by name, survival first, with tables if names repeat."""
    single: dict[str, _Variable] = {}
    for table in tables:
        for name in [*table.columns, *dict(table.categories)]:
            column = table.column(name)
            test = "chi-square"
            levels: tuple[str, ...] = ()
            if isinstance(column.dtype, pd.CategoricalDtype):
                levels = tuple(column.cat.categories)
                column = column.cat.codes.replace(-1, np.nan)
            elif column.nunique() != 2:
                test = "Kruskal-Wallis"
            values = np.full(n_samples, np.nan)
            values[table.samples] = column.to_numpy(float, na_value=np.nan)
            values[np.isinf(values)] = np.nan

            reason = ""
            if is_own_column(name):
                reason = "written by mkclust itself"
            elif looks_like_an_id(name, table.column(name)):
                reason = (
                    "looks like an id (by its name, or whole numbers that all differ; "
                    "floats are tested)"
                )
            title = name
            if name in single and len(tables) > 1:
                title = f"{table.name}: {name}"
            single[title] = _Variable((name,), test, (values,), levels, reason)
    known = {name: (each.values[0], each.levels) for name, each in single.items()}
    pairs = named_survival(known, time, event)
    rest = {name: each for name, each in known.items() if name not in sum(pairs, ())}
    usual, lonely = usual_survival(rest)
    reason = (
        "looks like a censored time without its events: name both by time and event"
    )
    for name in lonely:
        single[name] = replace(single[name], reason=reason)
    found = {}
    for names in [*pairs, *usual]:
        times, marks = (single.pop(name) for name in names)
        events = read_events(
            marks.values[0],
            marks.levels,
            marks.columns[0],
        )
        assert events is not None
        found[", ".join(names)] = _Variable(
            times.columns + marks.columns,
            "log-rank",
            (times.values[0], events.marks),
            event=f"{marks.columns[0]} = {events.meaning}",
        )
    return found | single


def _middles(
    variable: _Variable, clusters: np.ndarray, survival: Any
) -> Iterator[tuple[Any, ...]]:
    """Yield the compared quantities, each with its value in every cluster."""
    every = range(clusters.max() + 1)
    if variable.test == "log-rank":
        medians = survival.medians
        yield "median time", *(medians.get(cluster, np.nan) for cluster in every)
        return

    known = variable.known & (clusters >= 0)
    values = pd.Series(variable.values[0][known]).groupby(clusters[known])
    if variable.test == "Kruskal-Wallis":
        yield "median", *values.median().reindex(every)
        return

    shares = values.value_counts(normalize=True).unstack(fill_value=0).reindex(every)
    if shares.shape[1] == 2:
        shares = shares.iloc[:, 1:]  # the other one is the rest
    for level in shares.columns:
        name = variable.levels[int(level)] if variable.levels else f"{level:g}"
        yield f"share of {name}", *shares[level]


def _why_not(values: Sequence[Float], known: np.ndarray, groups: np.ndarray) -> str:
    """Return why a variable cannot be tested; empty if it can."""
    first, *events = (each[known] for each in values)
    if not len(first):
        return "no values"
    if events and not events[0].any():
        return "no events"
    if events and events[0].all() and (values[1] == 0).any():
        return "no censored sample has a time: add the times of their last observation"
    if events and first.min() < 0:
        return "negative times"
    if len(np.unique(first)) == 1:
        return "constant"
    if np.sum(np.bincount(groups) >= 2) < 2:
        return "fewer than two clusters have 2 values"
    return ""


def _statistic(test: str, values: Float) -> Callable[[np.ndarray], float]:
    """Return a statistic of groups."""
    if test == "chi-square":  # without a correction for continuity
        marks = (values[:, None] == np.unique(values)) * 1.0
        scores = (marks - marks.mean(axis=0)) / np.sqrt(marks.mean(axis=0))
    else:
        ranks = rankdata(values)
        scores = (ranks - ranks.mean())[:, None] / ranks.std(ddof=1)

    def between_groups(groups: np.ndarray) -> float:
        members = groups == np.arange(groups.max() + 1)[:, None]
        sizes = np.maximum(members.sum(axis=1), 1)  # a cluster may have no known sample
        return float((np.square(members @ scores).sum(axis=1) / sizes).sum())

    return between_groups
