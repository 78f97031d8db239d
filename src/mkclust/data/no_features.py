"""Columns that are not features: ids of samples, our own results, outcomes."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd

from mkclust.data.id_columns import has_name_of_ids, is_own_column, measures_time
from mkclust.data.survival_columns import (
    ENDPOINTS,
    read_events,
    read_name,
    usual_survival,
)
from mkclust.data.tables import Table, are_numbers, read_column
from mkclust.datasets.layout import is_name_of_ids
from mkclust.exceptions import OutcomeColumnsWarning, warn
from mkclust.text import join_words
from mkclust.types import Float


def only_features(
    tables: Mapping[str, Table],
    titles: Mapping[str, str],
    of_samples: Collection[str],
    *,
    are_chosen: bool,
) -> dict[str, Table]:
    """Return the tables of a fit without outcomes; refuse ids among their columns.

    Columns of some tables are samples, and so are no features; columns that the user
    has chosen by their names may be outcomes.
    """
    of_features = {
        name: table for name, table in tables.items() if name not in of_samples
    }
    refuse_ids(of_features, titles)

    if are_chosen:
        return dict(tables)
    return {**tables, **leave_out_outcomes(of_features, titles)}


def refuse_ids(tables: Mapping[str, Table], titles: Mapping[str, str]) -> None:
    """Refuse tables in which a column holds numbers of samples, or clusters."""
    for name, table in tables.items():
        if not table.is_frame:
            continue

        own = [column for column in table.values.columns if is_own_column(column)]
        if own:
            raise ValueError(
                f"{titles[name]} has the columns {join_words(map(repr, own))} of an "
                f"earlier clustering: drop them by frame.drop(columns={own!r})"
            )

        places = id_columns(table.values)
        if places:
            raise ValueError(_about_ids(titles[name], table.values, places[0]))


def _about_ids(title: str, frame: pd.DataFrame, place: int) -> str:
    """Return why a column looks like ids, and what to do about it."""
    column = frame.columns[place]
    examples = ", ".join(
        f"{value:.0f}" for value in frame.iloc[:3, place].to_numpy(float)
    )
    message = (
        f"{title} has the column {column!r}, which numbers the samples ({examples}, "
        "...) and would be clustered on: make it the index by "
        f"frame.set_index({column!r}), or drop it by frame.drop(columns=[{column!r}])"
    )
    if _is_named_as_ids(column):
        return message

    return (
        f"{message}. If it is measured, say so by its type: frame.astype({{{column!r}: "
        "float})"
    )


def id_columns(frame: pd.DataFrame) -> list[int]:
    """Return the places of the columns of a frame that number its samples.

    Those with a name of ids hold whole numbers that all differ; others also are, in any
    order, at equal distances and of an integer type. Columns that measure time by their
    name are none, nor are the columns of a table of ranks, which are all of this kind.
    """
    are_real = [getattr(dtype, "kind", "f") != "c" for dtype in frame.dtypes]
    numeric = np.flatnonzero(np.logical_and(are_numbers(frame), are_real))
    if len(frame) < 3 or not len(numeric):
        return []

    # Most columns have a value twice in the first rows, or a fraction.
    # The first rows decide for nearly all columns that they are no numbers of samples.
    n_first = 32
    head = frame.iloc[:n_first, numeric]
    first = head.to_numpy(float, copy=True, na_value=np.nan)
    first[~np.isfinite(first)] = 0.5
    steps = np.diff(np.sort(first, axis=0), axis=0)
    are_apart = (steps >= 1).all(axis=0)
    are_whole = (first % 1 == 0).all(axis=0)
    differ = are_apart & are_whole

    candidates = numeric[differ].tolist()
    named = [
        place
        for place in candidates
        if _is_named_as_ids(frame.columns[place]) and _all_differ(frame.iloc[:, place])
    ]
    counting = [p for p in candidates if _are_numbers_of_samples(frame.iloc[:, p])]
    if len(counting) == frame.shape[1] > 1:
        return named  # ranks

    timeless = [p for p in counting if not measures_time(frame.columns[p])]
    return [place for place in candidates if place in {*named, *timeless}]


def _is_named_as_ids(column: Any) -> bool:
    return has_name_of_ids(column) or is_name_of_ids(column)


def _all_differ(column: pd.Series) -> bool:
    values = column.to_numpy(float, na_value=np.nan)
    are_finite = np.isfinite(values).all()
    are_whole = are_finite and (values % 1 == 0).all()
    return bool(are_whole and column.is_unique)


def _are_numbers_of_samples(column: pd.Series) -> bool:
    """Return whether a column numbers the samples, also as floats."""
    # With fewer rows, numbers of samples are not distinguished from other whole numbers
    # by their values.
    fewest_rows = 10
    if len(column) < fewest_rows or getattr(column.dtype, "kind", "O") not in "iu":
        return False

    values = np.sort(column.to_numpy(float, na_value=np.nan))
    steps = np.diff(values)
    return bool(steps[0] > 0 and (steps == steps[0]).all())


def leave_out_outcomes(
    tables: Mapping[str, Table], titles: Mapping[str, str]
) -> dict[str, Table]:
    """Return tables without columns of survival, and warn of them."""
    kept = dict(tables)
    for name, table in tables.items():
        outcomes = []
        if table.is_frame:
            outcomes = outcome_columns(table.values)

        if not outcomes:
            continue

        listed = join_words(map(repr, outcomes))
        others = [
            place for place, c in enumerate(table.values.columns) if c not in outcomes
        ]
        if not others:
            raise ValueError(
                f"{titles[name]} has only columns of survival, {listed}, which are not "
                "clustered on: leave it out, and pass it to annotate; rename the "
                "columns to cluster on them"
            )

        kept[name] = table.take_columns(others)
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
        said = None
        if isinstance(name, str):
            said = read_name(name)

        if said is None or not (said.is_time or said.is_event or said.is_bare):
            continue

        columns[name] = values, levels = _values(frame, place)
        is_event = said.is_event and read_events(values, levels) is not None
        is_outcome = is_event or (said.is_time and not levels)
        if is_outcome and said.endpoint and said.endpoint in ENDPOINTS:
            single.append(name)

    pairs, _ = usual_survival(columns)
    of_pairs = (name for pair in pairs for name in pair)
    found = {*single, *of_pairs}
    return [name for name in frame.columns if isinstance(name, str) and name in found]


def _values(frame: pd.DataFrame, place: int) -> tuple[Float, tuple[str, ...]]:
    """Return numbers, or codes and the levels that they stand for."""
    column = read_column(frame, place)
    if column.kind == "number":
        return pd.to_numeric(frame.iloc[:, place]).to_numpy(float, na_value=np.nan), ()

    levels = [str(level) for level in column.levels]
    texts = [
        None if lacks else str(v)
        for v, lacks in zip(column.values, column.missing, strict=True)
    ]
    codes = pd.Categorical(texts, categories=levels).codes.astype(float)
    filled = np.where(codes < 0, np.nan, codes)
    return filled, tuple(levels)
