"""Tables of the same samples, joined by id: what each contributes, and what is kept."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from mkclust import datasets
from mkclust.data.tables import is_frame
from mkclust.index import has_ids, index_of


def row_ids(view: Any) -> Any:
    """Return the ids of a view as an index of pandas, None if it has none."""
    index = index_of(view)
    return index if has_ids(index) else None


# Every view, after the input and under the name that it has.
Views: TypeAlias = list[tuple[str, str, Any]]


def all_views(inputs: Sequence[str], data_sets: Sequence[datasets.Dataset]) -> Views:
    """Return the views of all data sets, in order; kernels are none."""
    return [
        (text, name, view)
        for text, data in zip(inputs, data_sets, strict=True)
        for name, view in (data.views or {}).items()
    ]


def common_ids(indices: Sequence[Any]) -> Any:
    """Return the ids that all indices hold, in the order of the first."""
    common = indices[0]
    for ids in indices[1:]:
        common = common[common.isin(ids)]
    return common


def contributions(
    inputs: Sequence[str], data_sets: Sequence[datasets.Dataset], kept: int
) -> list[str]:
    """Return what each table contributes and what the join keeps, a line each.

    Parameters
    ----------
    inputs : sequence of str
        What was asked for.
    data_sets : sequence of Dataset
        What was read.
    kept : int
        How many samples there are in the end.
    """
    lines, indices = [], []
    for text, name, view in all_views(inputs, data_sets):
        ids = row_ids(view)
        indices += [] if ids is None else [ids]
        how = "paired by row" if ids is None else f"ids such as {str(ids[0])!r}"
        lines.append(f"{name} ({text}): {view.shape[0]} samples x {view.shape[1]} columns, {how}")
    if not indices:
        return []
    if by_row := paired_by_row(inputs, data_sets):
        return [*lines, *(f"{sentence}." for sentence, _ in by_row)]
    if len(lines) == 1:
        return [*lines, f"1 file, {kept} samples."]
    largest, common = max(map(len, indices)), len(common_ids(indices))
    if common == kept == largest:
        return [*lines, f"Joined by id: all {kept} samples."]
    if common < kept:
        return [*lines, f"Joined by id: {kept} samples, {common} of which are in all files."]
    return [*lines, f"Joined by id: {kept} samples are in all files, of up to {largest}."]


def paired_by_row(
    inputs: Sequence[str], data_sets: Sequence[datasets.Dataset]
) -> list[tuple[str, str]]:
    """Return which files have no ids beside others that do, each with what to do about it.

    Parameters
    ----------
    inputs : sequence of str
        What was asked for.
    data_sets : sequence of Dataset
        What was read.
    """
    pairs = [(text, view) for text, _, view in all_views(inputs, data_sets)]
    with_ids = [text for text, view in pairs if row_ids(view) is not None]
    found = {}
    for text, view in pairs:
        if row_ids(view) is not None or (not with_ids and not (len(pairs) > 1 and ids_aside(view))):
            continue
        if with_ids:
            start = f"{text} has no ids: its rows are taken to be in the order of {with_ids[0]}"
        else:
            start = (
                f"{text} stays on disk, where its ids ({ids_aside(view)[0]}) are not read: its "
                "rows are taken to be in the order of the other files"
            )
        store = "store it with ids, as .csv with a first column of ids, if they are not"
        name = f"name its column of ids by --id {file_name(text)}=COLUMN, if there is one"
        if ids := ids_aside(view):
            name = f"add --id {file_name(text)}={ids[0]} to load it with its ids"
        found[text] = (start, name if ids or is_frame(view) else store)
    return list(found.values())


def ids_aside(view: Any) -> list[str]:
    """Return the columns of a table on disk that may hold ids, and are not read."""
    return list(getattr(view, "unread_ids", ()))


def file_name(text: str) -> str:
    """Return the name of the file of an input, as options take it."""
    return Path(text.rpartition("::")[0] or text).name
