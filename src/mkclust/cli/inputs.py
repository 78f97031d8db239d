"""What goes in: views or kernels of all inputs, and fingerprints of their files."""

import hashlib
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mkclust import datasets
from mkclust.cli.errors import CommandError
from mkclust.cli.options import AUTO, Request
from mkclust.cli.progress import Progress
from mkclust.data.join import looks_like_kernel
from mkclust.data.orientation import turned_tables
from mkclust.data.tables import Table, as_table
from mkclust.datasets.layout import TableLayout
from mkclust.datasets.read import check_dropped, load_with
from mkclust.exceptions import InputError
from mkclust.explain.id_of_rows import with_ids
from mkclust.files import errors_of
from mkclust.fit import MultipleKernelClusterer
from mkclust.index import has_ids, index_of, match_rows
from mkclust.text import count, did_you_mean, join_words


class Input(NamedTuple):
    """What was read from an input, and what is recorded of it."""

    text: str
    data: datasets.Dataset
    record: dict[str, Any]


class View(NamedTuple):
    """A view or kernel, with its input, its name, and the ids of its rows or None."""

    file: str
    name: str
    array: Any
    ids: Any


@dataclass(frozen=True)
class Data:
    """The views or kernels of all inputs by name, and what is said of them."""

    views: Mapping[str, Any]
    precomputed: bool
    n_samples: int
    inputs: Sequence[Input]
    lines: list[str]
    groups: pd.Series | None = None  # of the samples, by their ids
    # The covariates that views are adjusted for.
    covariates: pd.DataFrame | None = None
    ids: Any = None  # of the samples that are kept, if inputs have some

    @property
    def X(self) -> Any:
        """What an estimator takes: views or kernels by name; one view is a table."""
        if len(self.views) == 1 and not self.precomputed:
            return next(iter(self.views.values()))
        return self.views

    def labels_for(self, model: MultipleKernelClusterer) -> np.ndarray | None:
        """Return the labels of the first input with some, in the order of a model."""
        labeled = [each for each in self.inputs if each.data.y is not None]
        if not labeled:
            return None
        ids = list_views(labeled[:1])[0].ids
        y = np.asarray(labeled[0].data.y)
        rows = np.arange(len(y))
        if ids is not None and hasattr(model, "sample_ids_"):
            rows = match_rows(ids, pd.Index(model.sample_ids_), labeled[0].text)
        n = int(np.sum(rows < 0))
        if n:
            warnings.warn(
                f"no scores: {n} of {len(rows)} samples have no label", stacklevel=2
            )
            return None
        return y[rows]

    def describe(self) -> str:
        """Return how many samples, views or kernels there are."""
        what = count(len(self.views), "kernel" if self.precomputed else "view")
        return f"{count(self.n_samples, 'sample')}, {what}"


def read_inputs(
    request: Request, progress: Progress, others: Mapping[str, Any] | None = None
) -> Data:
    """Read all inputs, and refuse those that could be mistaken for something else.

    Groups of samples may also be in other tables, which are not clustered.
    """
    if request.address is not None:
        from distributed import Client

        for text in request.inputs:
            if not file_name(text).lower().endswith((".npy", ".parquet")):
                raise CommandError(
                    f"{text}: --cluster reads .npy and .parquet; convert it"
                )
        progress.phase(f"connecting to {request.address}")
        progress.connections.enter_context(Client(request.address))
    progress.phase("reading")
    inputs = read_files(request)
    groups = None
    if request.groups is not None:
        inputs, groups = _take_groups(inputs, request.groups, others or {})
    kinds = {each.data.precomputed: each.text for each in inputs}
    if len(kinds) == 2:
        raise CommandError(
            f"{kinds[True]} holds kernels but {kinds[False]} holds views; pass "
            "--kernels precomputed if all matrices are kernels, or cluster the two "
            "apart"
        )
    lines: list[str] = []
    if True not in kinds:
        inputs, lines = _turn(request, inputs)
        views = list_views(inputs)
        for found in undeclared_kernels(request, views):
            raise InputError(found)
        _warn_of_pairs(views)

    views = list_views(inputs)
    n = inputs[0].data.n_samples
    ids = kept_ids(views, request.join)
    if ids is not None:
        n = len(ids)
        lines += _join_lines(views, n)

    by_name = {view.name: view.array for view in views}
    covariates = read_covariates(request, ids)
    return Data(by_name, True in kinds, n, inputs, lines, groups, covariates, ids)


def read_covariates(request: Request, index: Any) -> pd.DataFrame | None:
    """Return the table of ``--adjust-for``, None without one, by ids of the samples.

    The column of ids need not be among those that are selected.
    """
    text = request.adjust_for
    if text is None:
        return None
    frame = covariates_of(text, request)
    if index is None or has_ids(frame.index):
        return frame
    whole = covariates_of(text.rpartition("::")[0] or text, request)
    with suppress(ValueError):  # refused by the fit
        whole = with_ids(whole, index, f"the table of --adjust-for {text}")[0]
    return whole[frame.columns.intersection(whole.columns)]


def covariates_of(text: str, request: Request) -> pd.DataFrame:
    """Return a table of covariates as it is in its file."""
    layout = replace(layout_of(text, request, {}), samples_in="rows", labels="")
    data = load_with(text, layout)
    frames = list((data.views or {}).values())
    if len(frames) != 1 or not isinstance(frames[0], pd.DataFrame):
        raise CommandError(f"--adjust-for {text}: give one table of covariates")
    return frames[0]


def _take_groups(
    inputs: Sequence[Input], column: str, others: Mapping[str, Any]
) -> tuple[list[Input], pd.Series]:
    """Return inputs without the column of groups, and the groups by id.

    If no input has the column, it is taken from other tables, which stay as they are.
    """
    tables = [view.array for view in list_views(inputs)]
    found = _columns(tables, column) or _columns(others.values(), column)
    if not found:
        names = column_names([*tables, *others.values()])
        raise CommandError(
            f"--groups {column}: no table has such a column"
            f"{did_you_mean(column, names)}; there are {join_words(names, 8)}"
        )
    taken = []
    for each in inputs:
        layout = each.record["layout"]
        dropped = {"drop": (*layout["drop"], column)}
        record = each.record | {"layout": layout | dropped}
        taken.append(without_column(each, column)._replace(record=record))
    return taken, _merged(found)


def column_names(tables: Iterable[Any]) -> list[str]:
    """Return the names of the columns of tables, also of ``obs`` of AnnData."""
    frames = [getattr(table, "obs", table) for table in tables]
    return [str(name) for frame in frames for name in getattr(frame, "columns", ())]


def _columns(tables: Iterable[Any], name: str) -> list[pd.Series]:
    """Return the columns of a name, also of ``obs`` of AnnData."""
    frames = [getattr(table, "obs", table) for table in tables]
    return [
        frame[name]
        for frame in frames
        if isinstance(frame, pd.DataFrame) and name in frame.columns
    ]


def without_column(given: Input, column: str) -> Input:
    """Return an input without a column of its tables."""
    views = dict(given.data.views or {})
    for name, table in views.items():
        if isinstance(table, pd.DataFrame) and column in table.columns:
            views[name] = table.drop(columns=column)
            if table.shape[1] == 1:
                raise CommandError(
                    f"{given.text}: has no column but the groups, and nothing to "
                    f"cluster; put the column {column} into another table, or give "
                    "this file by --annotate"
                )
    return given._replace(data=replace(given.data, views=views or None))


def _merged(found: Sequence[pd.Series]) -> pd.Series:
    """Return the groups of all tables that have them, by the ids of the first."""
    groups = found[0]
    for other in found[1:]:
        if not has_ids(groups.index) or not has_ids(other.index):
            continue
        first, second = groups.align(other, join="inner")
        differ = first.index[(first != second) & first.notna() & second.notna()]
        if len(differ):
            sample = differ[0]
            raise CommandError(
                f"--groups {groups.name}: two tables give {sample} the groups "
                f"{first[sample]} and {second[sample]}; write the same in both"
            )
        groups = groups.combine_first(other)
    return groups


def describe_groups(groups: pd.Series) -> str:
    """Return how many groups there are, and how large they are."""
    sizes = groups.value_counts()
    size = " to ".join(dict.fromkeys([str(sizes.min()), str(sizes.max())]))
    n_alone = int(groups.isna().sum())
    alone = f"; {count(n_alone, 'sample')} without a group" if n_alone else ""
    return (
        f"Groups: {count(len(sizes), 'group')} in the column {groups.name}, {size} "
        f"samples each{alone}."
    )


def read_files(
    request: Request, fitted: Sequence[Mapping[str, Any]] = ()
) -> list[Input]:
    """Read each input, as those of a fit if there are any."""
    known = {file_name(each["input"]): each for each in fitted}
    # Files of other names are taken in the order of those of the fit that are not
    # given.
    given = {file_name(text) for text in request.inputs}
    others = iter([each for name, each in known.items() if name not in given])
    inputs = []
    for text in request.inputs:
        before: Any = known.get(file_name(text)) or next(others, None)
        inputs.append(read_file(text, request, before))

    asked = {
        name for text in request.inputs for name in layout_of(text, request, {}).drop
    }
    check_dropped(asked, [each.data for each in inputs])
    return inputs


def read_file(
    text: str, request: Request, before: Mapping[str, Any] | None = None, **layout: Any
) -> Input:
    """Read an input as one of a fit, if there was a fit, or with some layout."""
    if before is None:
        before = {"input": "", "layout": {}}
    _, colons, names = before["input"].rpartition("::")
    selected = text
    if colons and "::" not in text:
        selected = f"{text}::{names}"

    how = replace(layout_of(text, request, before["layout"]), **layout)
    record: dict[str, Any] = {"input": selected, "bytes": None, "sha256": None}
    path = input_path(selected)
    if path.is_file():
        with errors_of(path), path.open("rb") as file:
            record["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
            record["bytes"] = file.tell()

    data = load_with(
        selected,
        how,
        kernels=request.asked_kernels == "precomputed",
        # Workers of a cluster read the files themselves.
        on_disk=request.address is not None or None,
    )
    _refuse_control_characters(text, data)
    # New samples have the labels where those of the fit have them, whatever their
    # values.
    how = replace(how, labels=data.label_name)
    record |= {"description": data.description, "layout": asdict(how)}
    return Input(selected, data, record)


def certain_turns(views: Sequence[View]) -> dict[str, str]:
    """Return views whose columns can only be the samples of another one, with it."""
    return {
        turned.name: turned.other
        for turned in turned_tables(tables_of(views))
        if turned.is_certain
    }


def _turn(request: Request, inputs: Sequence[Input]) -> tuple[list[Input], list[str]]:
    """Return inputs with their samples in rows, and which of them were turned."""
    views = list_views(inputs)
    turns = certain_turns(views)
    others = {view.file: turns[view.name] for view in views if view.name in turns}
    found = list(inputs)
    lines = []
    for place, each in enumerate(inputs):
        is_asked = bool(_values_for(each.text, "samples_in", request))
        if each.text not in others or is_asked or len(each.data.kernel_names) > 1:
            continue

        found[place] = read_file(each.text, request, None, samples_in="columns")
        lines.append(
            f"{file_name(each.text)}: its columns are the samples, as its header has "
            f"ids of {others[each.text]}."
        )
    return found, lines


def tables_of(views: Sequence[View]) -> dict[str, Table]:
    """Return views as tables, by their names."""
    return {view.name: as_table(view.array, view.name) for view in views}


def layout_of(text: str, request: Request, before: Mapping[str, Any]) -> TableLayout:
    """Return how the table of a file is to be read: FILE=VALUE is for one file."""
    found = dict[str, Any](before)
    for option in ("id", "samples_in", "trim_ids", "drop", "missing"):
        values = _values_for(text, option, request)
        if values and option in ("drop", "missing"):
            found[option] = tuple(values)
        elif values:
            found[option] = values[-1]

    n_characters = found.get("trim_ids")
    if isinstance(n_characters, str):
        if not n_characters.isdigit() or not int(n_characters):
            raise CommandError(
                f"--trim-ids {n_characters}: give a number of at least 1"
            )
        found["trim_ids"] = int(n_characters)
    return TableLayout(**found)


def _values_for(text: str, option: str, request: Request) -> list[str]:
    """Return the values of an option for all inputs, and then those for this one."""
    own_names = {text, file_name(text)}
    known = own_names.union(request.files, map(file_name, request.files))
    for_all = []
    own = []
    for each in getattr(request, option):
        name, equals, value = each.partition("=")
        if equals and name in known:
            if name in own_names:
                own.append(value)
        elif equals and "." in name and not os.path.exists(name):
            files = join_words(map(file_name, request.inputs))
            raise CommandError(f"{each}: no input is called {name!r}; inputs: {files}")
        else:
            for_all.append(each)
    return for_all + own


def list_views(inputs: Sequence[Input]) -> list[View]:
    """Return all views or kernels; names that clash follow those of their files."""
    counts = Counter(name for each in inputs for name in each.data.kernel_names)
    views: dict[str, View] = {}
    for text, data, _ in inputs:
        for name, array in zip(data.kernel_names, data.arrays, strict=True):
            unique = name
            if counts[name] > 1:
                unique = f"{data.name}/{name}"

            while unique in views:
                unique = f"{unique} ({len(views) + 1})"
            views[unique] = View(text, unique, array, row_ids(array))
    return list(views.values())


def row_ids(view: Any) -> Any:
    """Return the ids of a view as an index of pandas, None if it has none."""
    index = index_of(view)
    return index if has_ids(index) else None


def _refuse_control_characters(text: str, data: datasets.Dataset) -> None:
    """Refuse ids that would steer the terminal on which a table of them is shown."""
    indices = [row_ids(view) for view in data.arrays]
    ids = [str(name) for index in indices if index is not None for name in index]
    names = [name for name in ids if re.search(r"[\x00-\x1f\x7f-\x9f]", name)]
    if names:
        raise CommandError(
            f"{text}: {count(len(names), 'id')} with control characters, "
            f"{join_words(map(repr, names), most=3)}: replace these characters in the "
            "file, or save it as UTF-8 if they are letters"
        )


def undeclared_kernels(request: Request, views: Sequence[View]) -> list[str]:
    """Return what is wrong with kernels and distances that are not declared as such."""
    if request.asked_kernels not in (AUTO, "gaussian"):
        return []  # other kernels are chosen on purpose
    found = []
    for view in views:
        whose = ""
        if len(views) > 1:
            whose = f"{view.name}="
        if looks_like_kernel(view.array):
            found.append(
                f"{view.file}: {view.name} is square and symmetric; pass --kernels "
                f"{whose}from_distances if it holds distances, or --kernels "
                f"{whose}precomputed if it is a kernel"
            )
    return found


def _warn_of_pairs(views: Sequence[View]) -> None:
    """Warn of tables that are paired by row, since some have no ids."""
    some_have_ids = any(view.ids is not None for view in views)
    for view in views:
        unread = [*getattr(view.array, "unread_ids", ())]
        # A frame without ids next to one with ids is refused by the fit.
        has_no_index = index_of(view.array) is None
        if len(views) > 1 and has_no_index and (some_have_ids or unread):
            warnings.warn(
                f"{view.file} has no ids: its rows are taken to be in the order of the "
                "other inputs; pass --id "
                f"{file_name(view.file)}={(*unread, 'COLUMN')[0]} if it has some",
                stacklevel=2,
            )


def kept_ids(views: Sequence[View], join: str | None) -> Any:
    """Return the ids of the samples that a join of views keeps, None without ids."""
    ids = None
    for view in views:
        if view.ids is None:
            continue
        if ids is None:
            ids = view.ids
        elif join == "outer":
            ids = ids.union(view.ids, sort=False)
        else:
            ids = ids[ids.isin(view.ids)]
    return ids


def _join_lines(views: Sequence[View], kept: int) -> list[str]:
    """Return what each view holds, and what their join keeps, in lines."""
    lines = []
    for view in views:
        shape = view.array.shape
        how = "paired by row"
        if view.ids is not None:
            how = f"ids such as {str(view.ids[0])!r}"

        lines.append(
            f"{view.name} ({view.file}): {shape[0]} samples x {shape[1]} columns, {how}"
        )
    if sum(view.ids is not None for view in views) < 2:
        return lines
    in_all = len(kept_ids(views, "inner"))
    everybody = len(kept_ids(views, "outer"))
    if in_all == everybody:
        return [*lines, f"Joined by id: all {kept} samples."]
    return [
        *lines,
        f"Joined by id: {kept} of {everybody} samples; {in_all} are in all tables.",
    ]


def input_path(text: str) -> Path:
    """Return the path of the file that an input reads, or the name of a data set."""
    name = text.rpartition("::")[0]
    if not name or os.path.exists(text):
        name = text
    return Path(name).expanduser()


def file_name(text: str) -> str:
    """Return the name of the file of an input, as options take it."""
    return input_path(text).name
