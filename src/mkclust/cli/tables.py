"""How tables are read and joined, as the options of a command say it, and what is wrong there."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mkclust import datasets
from mkclust.cli.failures import CommandError
from mkclust.cli.method import check_choice
from mkclust.datasets.tables import SAMPLES_IN, TableLayout
from mkclust.samples.frames import is_frame, is_numeric, read_column
from mkclust.samples.ids import is_kernel
from mkclust.samples.options import IMPUTATIONS, JOINS, TableOptions

MAX_NAMED = 3


@dataclass(frozen=True)
class TableRequest:
    """The options of a command about tables, as they were given.

    Attributes
    ----------
    ids, samples_in, drop : tuple of str
        Values for all files, or FILE=VALUE for one.
    join : {"exact", "inner"}
        Whether all files must hold the same samples, or those in all of them are kept.
    impute : {"median"} or None
        How missing cells are filled.
    """

    ids: tuple[str, ...] = ()
    samples_in: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    join: str = "exact"
    impute: str | None = None

    @classmethod
    def of(cls, ids: Any, samples_in: Any, drop: Any, join: str, impute: str | None) -> Any:
        """Return the options as a command has them, None where one was not given."""
        return cls(tuple(ids or ()), tuple(samples_in or ()), tuple(drop or ()), join, impute)

    @property
    def options(self) -> TableOptions:
        """What the samples are read with."""
        return TableOptions(join=self.join, impute=self.impute)

    def layouts(self, inputs: Sequence[str]) -> list[TableLayout]:
        """Return how each input is to be read, refusing options that are about none of them."""
        check_choice("--join", self.join, JOINS)
        if self.impute is not None:
            check_choice("--impute", self.impute, [name for name in IMPUTATIONS if name])
        ids = _by_input("--id", self.ids, inputs)
        sides = _by_input("--samples-in", self.samples_in, inputs)
        drops = _by_input("--drop", self.drop, inputs)
        for side in {side for each in sides for side in each}:
            if side not in SAMPLES_IN and "=" in side:
                names = ", ".join(inputs)
                raise CommandError(
                    f"--samples-in {side}: names no input; write FILE=columns (inputs: {names})"
                )
            check_choice("--samples-in", side, SAMPLES_IN)
        return [
            TableLayout(id_[-1] if id_ else None, side[-1] if side else "rows", tuple(drop))
            for id_, side, drop in zip(ids, sides, drops, strict=True)
        ]


def _by_input(option: str, values: Sequence[str], inputs: Sequence[str]) -> list[list[str]]:
    """Return the values for each input: those for all of them, then those for this one."""
    common: list[str] = []
    own: list[list[str]] = [[] for _ in inputs]
    for value in values:
        places = [i for i, text in enumerate(inputs) if value.startswith(_titles(text))]
        if not places:
            common.append(value)
        for place in places:
            title = next(title for title in _titles(inputs[place]) if value.startswith(title))
            own[place].append(value.removeprefix(title))
    if option == "--id" and len(common) > 1:
        raise CommandError(
            f"--id {common[0]} and --id {common[1]}: one column holds the ids of all files; write "
            f"--id FILE={common[1]} for one file"
        )
    return [[*common, *each] for each in own]


def _titles(text: str) -> tuple[str, ...]:
    """Return how an option may begin that is about one input."""
    path = text.rpartition("::")[0] or text
    return tuple(f"{title}=" for title in dict.fromkeys((text, path, Path(path).name)))


def row_ids(view: Any) -> Any:
    """Return the ids of a view as an index of pandas, None where it has none."""
    if hasattr(view, "obs_names"):
        return view.obs_names
    if is_frame(view) and type(view.index).__name__ != "RangeIndex":
        return view.index
    return None


def check_drops(
    request: TableRequest, inputs: Sequence[str], data_sets: Sequence[datasets.Dataset]
) -> None:
    """Refuse columns to drop that no input has."""
    dropped = {name for data in data_sets for name in data.dropped}
    for name in request.drop:
        column = name
        for text in inputs:
            for title in _titles(text):
                column = column.removeprefix(title)
        if column in dropped:
            continue
        known = sorted({str(c) for data in data_sets for _, c in _columns(data)})
        close = difflib.get_close_matches(column, known, n=1)
        advice = f"did you mean --drop {close[0]}?" if close else "check its name"
        raise CommandError(f"--drop {column}: no input has such a column; {advice}")


def _columns(data: datasets.Dataset) -> list[tuple[str, Any]]:
    """Return the names of views and of their columns, of those that have some."""
    views = data.views or {}
    return [(name, c) for name, view in views.items() for c in getattr(view, "columns", ())]


def problems(
    inputs: Sequence[str],
    data_sets: Sequence[datasets.Dataset],
    request: TableRequest,
    kernels: Any = "auto",
) -> list[str]:
    """Return what keeps tables from being clustered, each with the next thing to type.

    Parameters
    ----------
    inputs : sequence of str
        What was asked for.
    data_sets : sequence of Dataset
        What was read.
    request : TableRequest
        The options about tables.
    kernels : str or dict
        The kernels that were asked for.

    Returns
    -------
    list of str
        One line each; empty where nothing is wrong.
    """
    if any(data.precomputed for data in data_sets):
        return []
    views = [
        (text, name, view)
        for text, data in zip(inputs, data_sets, strict=True)
        for name, view in (data.views or {}).items()
    ]
    return _transposed(views) or [*_square(views, kernels), *_text_columns(views)]


def _transposed(views: Sequence[tuple[str, str, Any]]) -> list[str]:
    """Name tables whose header holds the ids of the rows of another one."""
    found = []
    for text, _, view in views:
        if not is_frame(view) or is_kernel(view):
            continue
        for other, _, reference in views:
            ids = row_ids(reference)
            if other == text or ids is None or not is_frame(reference):
                continue
            own = row_ids(view)
            matching = int(view.columns.isin(ids).sum())
            if matching > len(ids) / 2 and (own is None or not own.isin(ids).any()):
                # The one whose samples are in columns is that with fewer features in common.
                mirrored = int(reference.columns.isin(() if own is None else own).sum())
                if mirrored and len(view) > len(reference):
                    continue
                found.append(
                    f"{text}: its header holds {matching} of the {len(ids)} ids of the rows of "
                    f"{other}, so that its samples are in columns; add "
                    f"--samples-in {_file(text)}=columns"
                )
                break
    if found or len(views) < 2 or any(row_ids(view) is not None for *_, view in views):
        return found
    heights = [view.shape[0] for *_, view in views]
    n = max(set(heights), key=heights.count)
    for text, _, view in views:
        if view.shape[0] != n and view.shape[1] == n and is_frame(view):
            found.append(
                f"{text}: has {view.shape[0]} rows and {n} columns, and other files {n} rows, so "
                f"that its samples are in columns; add --samples-in {_file(text)}=columns"
            )
    return found


def _file(text: str) -> str:
    """Return the name of the file of an input, as options take it."""
    return Path(text.rpartition("::")[0] or text).name


def common_ids(indices: Sequence[Any]) -> Any:
    """Return the ids that all indices hold, in the order of the first."""
    common = indices[0]
    for ids in indices[1:]:
        common = common[common.isin(ids)]
    return common


def _square(views: Sequence[tuple[str, str, Any]], kernels: Any) -> list[str]:
    """Name tables that hold distances or similarities of samples, unless it was said."""
    if kernels not in ("auto", "gaussian"):
        return []
    found = []
    for text, name, view in views:
        if not is_frame(view) or not is_kernel(view):
            continue
        values = view.loc[:, view.index].to_numpy()
        if values.dtype.kind not in "iuf" or not np.allclose(values, values.T, equal_nan=True):
            continue
        n, diagonal = len(values), np.diag(values)
        if not diagonal.any() and values.min() >= 0:
            option = "--kernels from_distances"
            if len(views) > 1:
                option = (
                    f"--kernels {name!r}=from_distances"
                    if " " in name
                    else (f"--kernels {name}=from_distances")
                )
            found.append(
                f"{text}: holds the distances of {n} samples (symmetric, with a zero diagonal), no "
                f"table of features; add {option}"
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


def _text_columns(views: Sequence[tuple[str, str, Any]]) -> list[str]:
    """Name columns of text or dates, which no kernel takes."""
    found = []
    for text, _, view in views:
        if not is_frame(view):
            continue
        if prose := unusable_columns(view):
            words = ", ".join(f"{name} ({why})" for name, why in list(prose.items())[:MAX_NAMED])
            drops = " ".join(f"--drop {_quoted(name)}" for name in prose)
            found.append(f"{text}: holds columns that are no numbers: {words}; add {drops}")
    return found


def unusable_columns(view: Any) -> dict[str, str]:
    """Return the columns of a frame that no kernel takes, with what they hold."""
    if is_numeric(view):
        return {}
    columns = (read_column(view, place) for place in range(view.shape[1]))
    return {str(column.name): column.content for column in columns if column.content}


def _quoted(name: str) -> str:
    """Return a name as it is typed."""
    return name if name.replace("_", "").replace("-", "").isalnum() else repr(name)


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
    lines, sizes = [], []
    for text, data in zip(inputs, data_sets, strict=True):
        for name, view in (data.views or {}).items():
            ids = row_ids(view)
            sizes += [] if ids is None else [len(ids)]
            how = "paired by row" if ids is None else f"ids such as {str(ids[0])!r}"
            lines.append(
                f"{name} ({text}): {view.shape[0]} samples x {view.shape[1]} columns, {how}"
            )
    if not sizes:
        return []
    if max(sizes) == kept:
        return [*lines, f"Joined by id: all {kept} samples."]
    return [*lines, f"Joined by id: {kept} samples are in all files, of up to {max(sizes)}."]


def columns_in_order(parts: Mapping[str, Any], request: TableRequest) -> dict[str, Any]:
    """Return views where those of pairs of samples have columns in the order of the samples.

    Parameters
    ----------
    parts : mapping of str to view
        All views.
    request : TableRequest
        Whether samples are left out.
    """
    indices = [ids for view in parts.values() if (ids := row_ids(view)) is not None]
    if not indices:
        return dict(parts)
    order = common_ids(indices) if request.join == "inner" else indices[0]
    return {
        name: view.loc[:, order]
        if is_frame(view) and is_kernel(view) and order.isin(view.columns).all()
        else view
        for name, view in parts.items()
    }
