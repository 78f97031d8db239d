"""Columns that are not features: ids of samples, our own results, outcomes."""

import re
from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_integer_dtype

from mkclust.data.survival_columns import (
    ENDPOINTS,
    TIMES,
    read_events,
    read_name,
    usual_survival,
)
from mkclust.data.tables import Table, Tables, Titles, are_numbers, read_column
from mkclust.datasets.layout import is_name_of_ids
from mkclust.exceptions import OutcomeColumnsWarning, warn
from mkclust.text import join_words
from mkclust.types import Float

# Words in names of columns of whole numbers that may all differ because of what they
# measure.
MEASURED = TIMES | {
    "age",
    "date",
    "hour",
    "hours",
    "minute",
    "minutes",
    "second",
    "seconds",
}


def only_features(
    tables: Tables,
    titles: Titles,
    of_samples: Collection[str],
    *,
    are_chosen: bool,
) -> dict[str, Table]:
    """Return the tables of a fit without outcomes; refuse ids among their columns.

    Columns of some tables are samples, and so are no features; columns that the user
    has chosen by their names may be outcomes.
    """
    frames = {
        name: table
        for name, table in tables.items()
        if table.is_frame and name not in of_samples
    }
    for name, table in frames.items():
        own = [column for column in table.values.columns if is_own_column(column)]
        if own:
            raise ValueError(
                f"{titles[name]} has the columns {join_words(map(repr, own))} of an "
                f"earlier clustering: drop them by frame.drop(columns={own!r})"
            )

        for column in id_columns(table.values):
            found, advice = about_ids(column)
            raise ValueError(f"{titles[name]} {found}: {advice}")

    if are_chosen:
        return dict(tables)
    return {**tables, **leave_out_outcomes(frames, titles)}


def about_ids(column: Any) -> tuple[str, str]:
    """Return why a column looks like ids, and what to do about it."""
    return f"has the column {column!r}, which numbers the samples", (
        f"make it the index by frame.set_index({column!r}), or drop it by "
        f"frame.drop(columns=[{column!r}]); if it is measured, say so by a name "
        f"without id, and by its type: frame.astype({{{column!r}: float}})"
    )


def id_columns(frame: pd.DataFrame) -> list[Any]:
    """Return the columns of a frame that number its samples.

    Those with a name of ids hold whole numbers that all differ; others also are, in any
    order, at equal distances and of an integer type. Columns that measure time by their
    name are none, nor are the columns of a table of ranks, which are all of this kind.
    """
    if len(frame) < 3:
        return []
    # The first rows decide for nearly all columns that they are no numbers of samples:
    # most have a value twice there, or a fraction.
    n_first = 32
    numeric = np.flatnonzero(are_numbers(frame))
    head = frame.iloc[:n_first, numeric].to_numpy(float, na_value=np.nan)
    # With fewer rows, numbers of samples are not distinguished from other whole numbers
    # by their values.
    fewest_rows = 10
    named = []
    counting = []
    with np.errstate(invalid="ignore"):
        for place in numeric[_all_differ(head)].tolist():
            name = frame.columns[place]
            column = frame.iloc[:, [place]]
            values = column.to_numpy(float, na_value=np.nan)
            steps = np.diff(np.sort(values, axis=0), axis=0)
            is_integer = getattr(frame.dtypes.iloc[place], "kind", "O") in "iu"
            is_named = has_name_of_ids(name) or is_name_of_ids(name)
            if is_named and _all_differ(values).all():
                named.append(name)
            if is_integer and len(frame) >= fewest_rows and len(np.unique(steps)) == 1:
                counting.append(name)
    if len(counting) == frame.shape[1] > 1:
        return named  # ranks
    timeless = [name for name in counting if not measures_time(name)]
    return list(dict.fromkeys([*named, *timeless]))


def _all_differ(values: Float) -> np.ndarray:
    """Return which columns hold whole numbers that all differ."""
    steps = np.diff(np.sort(values, axis=0), axis=0)
    are_whole = (values % 1 == 0).all(axis=0)
    return are_whole & (steps >= 1).all(axis=0)


def leave_out_outcomes(tables: Tables, titles: Titles) -> dict[str, Table]:
    """Return frames without columns of survival, and warn of them."""
    kept = dict(tables)
    for name, table in tables.items():
        outcomes = outcome_columns(table.values)
        if not outcomes:
            continue

        listed = join_words(map(repr, outcomes))
        kept[name] = table.take_columns(
            np.flatnonzero(~table.values.columns.isin(outcomes)).tolist()
        )
        if not kept[name].columns:
            raise ValueError(
                f"{titles[name]} has only columns of survival, {listed}, which are not "
                "clustered on: leave it out, and pass it to annotate; rename the "
                "columns to cluster on them"
            )

        warn(
            f"{titles[name]} has the columns {listed} of survival, which are left out: "
            "pass them to annotate to compare the clusters by them; rename them to "
            "cluster on them",
            OutcomeColumnsWarning,
        )
    return kept


def has_only_survival(frame: pd.DataFrame) -> bool:
    """Return whether a table has columns of survival, and no others."""
    return 0 < frame.shape[1] == len(outcome_columns(frame))


def outcome_columns(frame: pd.DataFrame) -> list[Any]:
    """Return the columns that hold survival: pairs of time and event, and ``OS_*``."""
    columns: dict[str, tuple[Float, tuple[str, ...]]] = {}
    single = []
    for place, name in enumerate(frame.columns):
        if not isinstance(name, str):
            continue
        said = read_name(name)
        if not (said.is_time or said.is_event or said.is_bare):
            continue

        columns[name] = values, levels = _values(frame, place)
        is_event = said.is_event and read_events(values, levels) is not None
        is_outcome = is_event or (said.is_time and not levels)
        if is_outcome and said.endpoint and said.endpoint in ENDPOINTS:
            single.append(name)

    pairs, _ = usual_survival(columns)
    found = {*single, *(name for pair in pairs for name in pair)}
    return [name for name in frame.columns if name in found]


def _values(frame: pd.DataFrame, place: int) -> tuple[Float, tuple[str, ...]]:
    """Return numbers, or codes and the levels that they stand for."""
    column = read_column(frame, place)
    if column.kind == "number":
        return pd.to_numeric(frame.iloc[:, place]).to_numpy(float, na_value=np.nan), ()

    levels = [str(level) for level in column.levels]
    known = pd.Series(column.values).mask(column.missing)
    codes = pd.Categorical(known.map(str, na_action="ignore"), levels).codes
    return np.where(codes < 0, np.nan, codes), tuple(levels)


def looks_like_an_id(name: object, values: Any) -> bool:
    """Return whether a column numbers the samples, by its name or by its values.

    Values are those of one column, a Series or an array. Whole numbers stored as floats
    are taken for measurements, and two values or fewer for a mark: ``smoker_no`` of 0
    and 1.

    >>> looks_like_an_id("patient_id", ["a", "b", "c"])
    True
    >>> looks_like_an_id("id", [1, 1, 0])
    False
    >>> looks_like_an_id("x", [1003, 1001, 1002]), looks_like_an_id("age", [61, 54, 54])
    (True, False)
    """
    column = pd.Series(values)
    if column.nunique() <= 2:
        return False
    is_whole = is_integer_dtype(column.dtype) and not column.isna().any()
    counts = is_whole and column.is_unique and not measures_time(name)
    return counts or has_name_of_ids(name)


def has_name_of_ids(name: object) -> bool:
    """Return whether a name is ``id``, or ends in the word ``id`` or ``no``."""
    # Words end at other signs than letters and digits, and before capitals.
    parts = re.split(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])", str(name))
    words = [word for word in parts if word]
    return bool(words) and words[-1].lower() in {"id", "ids", "no"}


def measures_time(name: object) -> bool:
    """Return whether a name has a word for a time or an age: ``AgeAtVisit``.

    >>> measures_time("age"), measures_time("age2"), measures_time("hospital")
    (True, True, False)
    """
    words = re.split(r"[\W_\d]+|(?<=[a-z])(?=[A-Z])", str(name))

    return not MEASURED.isdisjoint(word.lower() for word in words)


def is_own_column(name: object) -> bool:
    """Return whether `mkclust.to_anndata` writes a column of this name.

    >>> is_own_column("mkclust"), is_own_column("rna:mkclust"), is_own_column("cluster")
    (True, True, False)
    """
    # What `mkclust.to_anndata` adds to the observations.
    own = {"mkclust", "mkclust_silhouette"}
    return str(name).rpartition(":")[-1] in own
