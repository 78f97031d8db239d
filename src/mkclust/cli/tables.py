"""How tables are read and joined, as the options of a command say it, and what is wrong there."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mkclust import datasets
from mkclust.cli.failures import CommandError
from mkclust.datasets.tables import SAMPLES_IN, TableLayout, is_text
from mkclust.samples.ids import is_frame, is_kernel
from mkclust.samples.options import JOINS, TableOptions

IMPUTATIONS = ("median",)
# A column of text holds categories where it has at most so many values, each twice on average.
MOST_LEVELS, FEWEST_REPEATS = 20, 2
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
        _check("--join", self.join, JOINS)
        if self.impute is not None:
            _check("--impute", self.impute, IMPUTATIONS)
        ids = _by_input("--id", self.ids, inputs)
        sides = _by_input("--samples-in", self.samples_in, inputs)
        drops = _by_input("--drop", self.drop, inputs)
        for side in {side for each in sides for side in each}:
            if side not in SAMPLES_IN and "=" in side:
                names = ", ".join(inputs)
                raise CommandError(
                    f"--samples-in {side}: names no input; write FILE=columns (inputs: {names})"
                )
            _check("--samples-in", side, SAMPLES_IN)
        return [
            TableLayout(id_[-1] if id_ else None, side[-1] if side else "rows", tuple(drop))
            for id_, side, drop in zip(ids, sides, drops, strict=True)
        ]


def _check(option: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a value that is not among the choices."""
    if value not in choices:
        close = difflib.get_close_matches(value, choices, n=1)
        advice = f"did you mean {option} {close[0]}?" if close else "choose another"
        raise CommandError(f"{option} {value}: unknown; {advice} (one of: {', '.join(choices)})")


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
    turned = _transposed(views)
    found = turned or _apart(views, request)
    found += [] if turned else [*_square(views, kernels), *_text_columns(views, inputs)]
    if request.impute is None and not turned:
        found += _missing_cells(views)
    return found


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


def _apart(views: Sequence[tuple[str, str, Any]], request: TableRequest) -> list[str]:
    """Name tables whose ids are not those of the first table with ids."""
    with_ids = [(text, row_ids(view)) for text, _, view in views if row_ids(view) is not None]
    for text, ids in with_ids:
        if not ids.is_unique:
            return [
                f"{text}: has {int(ids.duplicated().sum())} ids more than once, such as "
                f"{ids[ids.duplicated()][0]!r}; keep one row an id, or name another column: "
                f"--id {_file(text)}=COLUMN"
            ]
    if len(with_ids) < 2:
        return []
    (first, reference), *others = with_ids
    for text, ids in others:
        common = int(ids.isin(reference).sum())
        if common == 0:
            return [
                f"{first} and {text} have no ids in common (such as {reference[0]!r} and "
                f"{ids[0]!r}); name the column that holds the same ids in both: "
                f"--id {_file(text)}=COLUMN"
            ]
    partly = [
        (text, int(ids.isin(reference).sum()), len(ids))
        for text, ids in others
        if len(ids) != len(reference) or not ids.isin(reference).all()
    ]
    without = [text for text, _, view in views if row_ids(view) is None]
    moved = [text for text, ids in others if not ids.equals(reference)]
    if without and moved:
        return [
            f"{without[0]}: has no ids, and {first} and {moved[0]} have theirs in different "
            "orders: it cannot be known which order its rows have; store it with ids, as .csv "
            "with a first column of ids, or a sparse matrix as .h5ad"
        ]
    if request.join == "inner":
        kept = common_ids([ids for _, ids in with_ids])
        return [] if len(kept) else ["no id is in all of the files; leave one of them out"]
    if not partly:
        return []
    kept = common_ids([ids for _, ids in with_ids])
    text, common, size = partly[0]
    return [
        f"{first} and {text} have {common} ids in common, and {len(reference) - common} are only "
        f"in the first, {size - common} only in the second; add --join inner to keep the "
        f"{len(kept)} samples that are in all files"
    ]


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


def _text_columns(views: Sequence[tuple[str, str, Any]], inputs: Sequence[str]) -> list[str]:
    """Name columns of text or dates, which no kernel takes."""
    found = []
    for text, _, view in views:
        if not is_frame(view):
            continue
        kinds = [getattr(kind, "kind", "O") for kind in view.dtypes]
        prose = {}
        for name, kind in zip(view.columns, kinds, strict=True):
            if kind in "mM":
                prose[str(name)] = "dates"
            elif kind == "O" and is_text(view[name]) and (why := _why_text(view[name])):
                prose[str(name)] = why
        if prose:
            words = ", ".join(f"{name} ({why})" for name, why in list(prose.items())[:MAX_NAMED])
            drops = " ".join(f"--drop {_quoted(name)}" for name in prose)
            found.append(f"{text}: holds columns that are no numbers: {words}; add {drops}")
    return found


def is_category(column: Any) -> bool:
    """Return whether a column of text has so few different values that these are categories."""
    if str(column.dtype) == "category":
        return True
    values = column.dropna()
    n_levels = values.nunique()
    return n_levels <= MOST_LEVELS and FEWEST_REPEATS * n_levels <= len(values)


def _why_text(column: Any) -> str:
    """Return what a column of text holds that are no categories; empty where they are."""
    if is_category(column):
        return ""
    values = column.dropna()
    numbers = values.astype(str).map(_is_number)
    if numbers.mean() > 0.5:
        odd = values[~numbers]
        return f"numbers, but for {len(odd)} cells such as {str(odd.iloc[0])[:20]!r}"
    return f"text, such as {str(values.iloc[0])[:20]!r}"


def _is_number(text: str) -> bool:
    """Return whether a text spells a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _quoted(name: str) -> str:
    """Return a name as it is typed."""
    return name if name.replace("_", "").replace("-", "").isalnum() else repr(name)


def _missing_cells(views: Sequence[tuple[str, str, Any]]) -> list[str]:
    """Name the columns with missing cells of all tables, in one line."""
    words = []
    for text, _, view in views:
        if not is_frame(view):
            continue
        counts = view.isna().to_numpy().sum(axis=0)
        if not counts.any():
            continue
        columns = [f"{view.columns[i]} ({counts[i]})" for i in np.argsort(-counts)[:MAX_NAMED]]
        columns = columns[: int((counts > 0).sum())]
        more = int((counts > 0).sum()) - len(columns)
        words.append(
            f"{text} {counts.sum()} of {view.size} cells: {', '.join(columns)}"
            + (f" and {more} more columns" if more else "")
        )
    if not words:
        return []
    return [f"missing cells: {'; '.join(words)}; add --impute median to fill them in"]


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
