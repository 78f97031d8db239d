"""The column of ``--groups``: which samples belong together."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from mkclust.cli.errors import CommandError
from mkclust.datasets import Dataset
from mkclust.index import has_ids
from mkclust.text import count, did_you_mean, join_words


def take_groups(
    data_sets: Mapping[str, Dataset], column: str, others: Mapping[str, Any]
) -> tuple[list[Dataset], pd.Series]:
    """Return data sets without the column of groups, and the groups by id.

    If no data set has the column, it is taken from other tables, which stay as they
    are.
    """
    without = []
    found = list[pd.Series]()
    for text, data in data_sets.items():
        tables = {}
        if not data.precomputed:
            tables = dict(data.views or {})

        for name, table in tables.items():
            values = _column(table, column)
            if values is None:
                continue
            found.append(values)
            if isinstance(table, pd.DataFrame):
                tables[name] = _without(table, column, text)
        without.append(replace(data, views=tables) if tables else data)
    if not found:
        columns = [_column(table, column) for table in others.values()]
        found = [each for each in columns if each is not None]
    if not found:
        raise _no_column(column, [*data_sets.values()], others)
    return without, _merged(found, column)


def describe_groups(groups: pd.Series) -> str:
    """Return how many groups there are, and how large they are."""
    sizes = groups.value_counts()
    n_alone = int(groups.isna().sum())
    smallest = int(sizes.min())
    largest = int(sizes.max())
    if smallest == largest:
        size = f"{smallest}"
    else:
        size = f"{smallest} to {largest}"

    words = (
        f"Groups: {count(len(sizes), 'group')} in the column {groups.name}, {size} "
        "samples each"
    )
    alone = ""
    if n_alone:
        alone = f"; {count(n_alone, 'sample')} without a group"

    return f"{words}{alone}."


def _column(table: Any, name: str) -> pd.Series | None:
    """Return a column of a frame, or of ``obs`` of AnnData."""
    frame = getattr(table, "obs", table)
    is_frame = isinstance(frame, pd.DataFrame)
    is_there = is_frame and name in frame.columns
    if is_there:
        return frame[name]
    return None


def _without(table: pd.DataFrame, column: str, text: str) -> pd.DataFrame:
    """Return a table without the column of groups."""
    rest = table.drop(columns=column)
    if not len(rest.columns):
        raise CommandError(
            f"{text}: has no column but the groups, and nothing to cluster; put the "
            f"column {column} into another table, or give this file by --annotate"
        )
    return rest


def _merged(found: Sequence[pd.Series], column: str) -> pd.Series:
    """Return the groups of all tables that have them, by the ids of the first."""
    groups = found[0]
    for other in found[1:]:
        if not has_ids(groups.index) or not has_ids(other.index):
            continue
        common = groups.index.intersection(other.index)
        first = groups[common]
        second = other[common]
        differs = (first != second) & first.notna() & second.notna()
        if differs.any():
            sample = common[np.flatnonzero(differs)[0]]
            raise CommandError(
                f"--groups {column}: two tables give {sample} the groups "
                f"{first[sample]} and {second[sample]}; write the same in both"
            )
        groups = groups.combine_first(other)
    return groups


def _no_column(
    column: str, data_sets: Sequence[Dataset], others: Mapping[str, Any]
) -> CommandError:
    """Return the error that no table has the column of groups."""
    tables = [view for data in data_sets for view in (data.views or {}).values()]
    tables += [getattr(table, "obs", table) for table in others.values()]
    names = [str(name) for table in tables for name in getattr(table, "columns", ())]
    near = did_you_mean(column, names)
    has = ""
    if names and not near:
        has = f"; there are {join_words(names, 8)}"

    return CommandError(f"--groups {column}: no table has such a column{near}{has}")
