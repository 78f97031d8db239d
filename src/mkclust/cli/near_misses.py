"""Files that are nearly what a command takes: transposed, of pairs of samples, with text in them.

What is wrong with tables that are meant as such, the library says itself (`failures.in_options`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mkclust import datasets
from mkclust.cli.joining import Views, all_views, file_name, ids_aside, row_ids
from mkclust.data.join import columns_are_ids
from mkclust.data.tables import is_frame, is_numeric, read_column
from mkclust.datasets.layout import ID_NAMES, normalize_name

MAX_NAMED = 3
# What columns are called that hold what clusters are compared with.
ANSWERS = frozenset(
    ("label", "labels", "class", "classes", "target", "targets", "cluster", "clusters", "truth")
)


def problems(
    inputs: Sequence[str],
    data_sets: Sequence[datasets.Dataset],
    kernels: Any = "auto",
) -> list[str]:
    """Return what files were taken for and are not, each with the next thing to type.

    Parameters
    ----------
    inputs : sequence of str
        What was asked for.
    data_sets : sequence of Dataset
        What was read.
    kernels : str or dict
        The kernels that were asked for.

    Returns
    -------
    list of str
        One line each; empty where nothing is wrong.
    """
    if any(data.precomputed for data in data_sets):
        return []
    views = all_views(inputs, data_sets)
    if transposed := _turned_by_ids(views) or _turned_by_size(views):
        return transposed
    # Whoever names another kernel knows what the table is.
    square = _square(views) if kernels in ("auto", "gaussian") else []
    return [*_ids_on_disk(views), *square, *_text_columns(views)]


def _ids_on_disk(views: Views) -> list[str]:
    """Name tables on disk whose ids are not read, beside ids of others."""
    others = [text for text, _, view in views if row_ids(view) is not None]
    return [
        f"{text}: stays on disk, where its ids ({ids[0]}) are not read, and {others[0]} has ids; "
        f"add --id {file_name(text)}={_quoted(ids[0])} to load it with its ids"
        for text, _, view in views
        if others and (ids := ids_aside(view))
    ]


def _turned_by_ids(views: Views) -> list[str]:
    """Name tables whose header holds the ids of the rows of another one."""
    found = []
    for text, _, view in views:
        if not is_frame(view) or columns_are_ids(view):
            continue
        for other, _, reference in views:
            ids = row_ids(reference)
            if other == text or ids is None or not is_frame(reference):
                continue
            matching = int(view.columns.isin(ids).sum())
            if matching > len(ids) / 2 and not _is_reference(view, reference):
                found.append(
                    f"{text}: its header holds {matching} of the {len(ids)} ids of the rows of "
                    f"{other}, so that its samples are in columns; add "
                    f"--samples-in {file_name(text)}=columns"
                )
                break
    return found


def _is_reference(view: Any, reference: Any) -> bool:
    """Return whether a table whose header holds ids of another is not the one that is turned."""
    own = row_ids(view)
    if own is None:
        return False
    # Where each holds the ids of the other, samples are taken for fewer than features.
    mirrored = bool(reference.columns.isin(own).any()) and len(view) > len(reference)
    return mirrored or bool(own.isin(row_ids(reference)).any())


def _turned_by_size(views: Views) -> list[str]:
    """Name tables without ids that have as many columns as the others have rows."""
    if len(views) < 2 or any(row_ids(view) is not None for *_, view in views):
        return []
    heights = [view.shape[0] for *_, view in views]
    n = max(set(heights), key=heights.count)
    return [
        f"{text}: has {view.shape[0]} rows and {n} columns, and other files {n} rows, so "
        f"that its samples are in columns; add --samples-in {file_name(text)}=columns"
        for text, _, view in views
        if view.shape[0] != n and view.shape[1] == n and is_frame(view)
    ]


def _square(views: Views) -> list[str]:
    """Name tables that hold distances or similarities of samples."""
    found = []
    for text, name, view in views:
        if not is_frame(view) or not columns_are_ids(view):
            continue
        values = view.loc[:, view.index].to_numpy()
        if values.dtype.kind not in "iuf" or not np.allclose(values, values.T, equal_nan=True):
            continue
        n = len(values)
        # Samples may be missing from it.
        if not np.nan_to_num(np.diag(values)).any() and not (values < 0).any():
            whose = f"{_quoted(name)}=" if len(views) > 1 else ""
            found.append(
                f"{text}: holds the distances of {n} samples (symmetric, with a zero diagonal), no "
                f"table of features; add --kernels {whose}from_distances"
            )
        elif len(views) == 1:
            found.append(
                f"{text}: holds the similarities of {n} samples (square, symmetric, its header "
                "are its ids), no table of features; add --kernels precomputed"
            )
        else:
            found.append(
                f"{text}: holds a kernel, the similarities of {n} samples, and other files hold "
                "tables; cluster the kernels alone: "
                f"mkclust cluster {text} --kernels precomputed -k N"
            )
    return found


def _text_columns(views: Views) -> list[str]:
    """Name columns of text or dates, which no kernel takes; those that may be ids, as such."""
    found = []
    for text, _, view in views:
        if not is_frame(view) or is_numeric(view):
            continue
        prose = unusable_columns(view)
        if not prose:
            continue
        words = ", ".join(f"{name} ({why})" for name, why in list(prose.items())[:MAX_NAMED])
        others = [
            ids for *_, each in views if each is not view and (ids := row_ids(each)) is not None
        ]
        ids = _likely_ids(view, prose, others)
        options = [] if ids is None else [f"--id {file_name(text)}={_quoted(ids)}"]
        options += [f"--drop {_quoted(name)}" for name in prose if name != ids]
        start = "" if ids is None else f"{ids} differs in every row, as ids do; "
        found.append(
            f"{text}: holds columns that are no numbers: {words}; {start}add {' '.join(options)}"
        )
    return found


def _likely_ids(view: Any, prose: Mapping[str, str], others: Sequence[Any]) -> str | None:
    """Return the column of text that most likely holds the ids, None where none does.

    First come columns that hold the ids of another file, then those called like ids. Beside ids
    that a table has, only columns of the first sort count.
    """
    different = [
        name
        for name in prose
        if view[name].map(type).eq(str).all() and view[name].is_unique and len(view) > 1
    ]
    own = row_ids(view)
    shared = [n for n in different if any(view[n].str.strip().isin(ids).any() for ids in others)]
    if shared and (own is None or not any(own.isin(ids).any() for ids in others)):
        return shared[0]
    if own is not None:
        return None
    named = [name for name in different if normalize_name(name) in ID_NAMES]
    return next(iter([*named, *different]), None)


def unusable_columns(view: Any) -> dict[str, str]:
    """Return the columns of a frame that no kernel takes, with what they hold."""
    if is_numeric(view):
        return {}
    columns = (read_column(view, place) for place in range(view.shape[1]))
    return {str(column.name): column.content for column in columns if column.content}


def _quoted(name: str) -> str:
    """Return a name as it is typed."""
    return name if name.replace("_", "").replace("-", "").isalnum() else repr(name)


def suspicions(inputs: Sequence[str], data_sets: Sequence[datasets.Dataset]) -> list[str]:
    """Return which columns are taken as features and are called like something else.

    Parameters
    ----------
    inputs : sequence of str
        What was asked for.
    data_sets : sequence of Dataset
        What was read.

    Returns
    -------
    list of str
        One line each.
    """
    found = []
    for text, _, view in all_views(inputs, data_sets):
        for column in view.columns if is_frame(view) else ():
            name = _quoted(str(column))
            if normalize_name(column) in ANSWERS:
                found.append(
                    f"{text}: the column {column} is called like an answer and is clustered on as "
                    f"any other; add --drop {name} to leave it out"
                )
            elif normalize_name(column) in ID_NAMES and row_ids(view) is None:
                found.append(
                    f"{text}: the column {column} is called like ids and is clustered on as any "
                    f"other; add --id {file_name(text)}={name}"
                )
    return found
