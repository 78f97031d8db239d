"""What goes in: views or kernels of all inputs, and fingerprints of their files."""

import hashlib
import os
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mkclust import datasets
from mkclust.cli.errors import CommandError
from mkclust.cli.groups import take_groups
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
from mkclust.text import count, join_words


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
        ids = getattr(model, "sample_ids_", None)
        labeled = [each for each in self.inputs if each.data.y is not None]
        if not labeled:
            return None
        own = None
        if ids is not None:
            own = list_views(labeled[:1])[0].ids

        y = np.asarray(labeled[0].data.y)
        if own is None:
            rows = np.arange(len(y))
        else:
            rows = match_rows(own, pd.Index(ids), labeled[0].text)

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
    turned: list[str] = []
    if True not in kinds:
        inputs, turned = _turn(request, inputs)

    views = list_views(inputs)
    if True not in kinds:
        _refuse_transposed(views)
        # Other kernels are chosen on purpose.
        if request.asked_kernels in (AUTO, "gaussian"):
            for view in views:
                refuse_square(view, is_alone=len(views) == 1)
        _warn_of_pairs(views)
    indices = [view.ids for view in views if view.ids is not None]
    n = inputs[0].data.n_samples
    ids = kept_ids(views, request.join)
    if ids is not None:
        n = len(ids)

    by_name = {view.name: view.array for view in views}
    lines = turned + _join_lines(views, indices, n)
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
    try:
        whole = with_ids(whole, index, f"the table of --adjust-for {text}")[0]
    except ValueError:
        return frame  # refused by the fit
    if has_ids(whole.index) and set(frame.columns) <= set(whole.columns):
        return whole[list(frame.columns)]
    return frame


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
    """Return inputs without the column of groups, and the groups."""
    data_sets, groups = take_groups(
        {each.text: each.data for each in inputs}, column, others
    )
    taken = []
    for each, data in zip(inputs, data_sets, strict=True):
        layout = each.record["layout"]
        dropped = {"drop": (*layout["drop"], column)}
        record = each.record | {"layout": layout | dropped}
        taken.append(Input(each.text, data, record))
    return taken, groups


def read_files(
    request: Request, fitted: Sequence[Mapping[str, Any]] = ()
) -> list[Input]:
    """Read each input, as those of a fit if there are any."""
    known = {file_name(each["input"]): each for each in fitted}
    # Files of other names are taken in the order of those of the fit that are not
    # given.
    given = {file_name(text) for text in request.inputs}
    unused = [each for name, each in known.items() if name not in given]
    others = iter(unused)
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
    record = _fingerprint(selected)
    # Workers of a cluster read the files themselves.
    on_disk = None
    if request.address is not None:
        on_disk = True

    precomputed = request.asked_kernels == "precomputed"
    data = load_with(selected, how, kernels=precomputed, on_disk=on_disk)
    for view in data.arrays:
        _refuse_control_characters(text, row_ids(view))
    # New samples have the labels where those of the fit have them, whatever their
    # values.
    how = replace(how, labels=data.label_name)
    record |= {"description": data.description, "layout": asdict(how)}
    return Input(selected, data, record)


def _turn(request: Request, inputs: Sequence[Input]) -> tuple[list[Input], list[str]]:
    """Return inputs with their samples in rows, and which of them were turned."""
    views = list_views(inputs)
    certain = {
        view.file: turned.other
        for turned in turned_tables(tables_of(views))
        for view in views
        if view.name == turned.name
        if turned.is_certain
    }
    found = list(inputs)
    lines = []
    for place, each in enumerate(inputs):
        other = certain.get(each.text)
        is_asked = bool(_values_for(each.text, "samples_in", request))
        if other is None or is_asked or len(each.data.kernel_names) > 1:
            continue

        found[place] = read_file(each.text, request, None, samples_in="columns")
        lines.append(
            f"{file_name(each.text)}: its columns are the samples, as its header has "
            f"ids of {other}."
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
        if not n_characters.isdigit() or n_characters == "0":
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
    if has_ids(index):
        return index
    return None


def _refuse_control_characters(text: str, ids: Any) -> None:
    """Refuse ids that would steer the terminal on which a table of them is shown."""
    if ids is None:
        return

    # Characters that steer a terminal.
    control = re.compile(r"[\x00-\x1f\x7f-\x9f]")
    names = [name for name in ids if control.search(str(name))]
    if names:
        examples = join_words(map(repr, map(str, names)), most=3)
        raise CommandError(
            f"{text}: {count(len(names), 'id')} with control characters, {examples}: "
            "replace these characters in the file, or save it as UTF-8 if they are "
            "letters"
        )


def _refuse_transposed(views: Sequence[View]) -> None:
    """Refuse tables whose headers hold the ids of another table's rows."""
    names = [each.name for each in turned_tables(tables_of(views))]
    turned = [view for view in views if view.name in names]
    if turned:
        file = file_name(turned[0].file)
        raise InputError(
            f"{file}: its columns are the samples of the other inputs; pass "
            f"--samples-in {file}=columns"
        )


def refuse_square(view: View, *, is_alone: bool) -> None:
    """Refuse a kernel that was not declared as such."""
    if not looks_like_kernel(view.array):
        return

    whose = ""
    if not is_alone:
        whose = f"{view.name}="
    raise InputError(
        f"{view.file}: {view.name} is square and symmetric; pass --kernels "
        f"{whose}from_distances if it holds distances, or --kernels "
        f"{whose}precomputed if it is a kernel"
    )


def _warn_of_pairs(views: Sequence[View]) -> None:
    """Warn of tables that are paired by row, since some have no ids."""
    for view in views:
        unread = [*getattr(view.array, "unread_ids", ())]
        others = any(other.ids is not None for other in views)
        # A frame without ids next to one with ids is refused by the fit.
        has_no_index = index_of(view.array) is None
        if len(views) > 1 and has_no_index and (others or unread):
            warnings.warn(
                f"{view.file} has no ids: its rows are taken to be in the order of the "
                "other inputs; pass --id "
                f"{file_name(view.file)}={(*unread, 'COLUMN')[0]} if it has some",
                stacklevel=2,
            )


def kept_ids(views: Sequence[View], join: str | None) -> Any:
    """Return the ids of the samples that a join of views keeps, None without ids."""
    indices = [view.ids for view in views if view.ids is not None]
    if not indices:
        return None
    return _joined(indices, join)


def _joined(indices: Sequence[Any], join: str | None) -> Any:
    """Return the ids of the samples that a join keeps."""
    ids = indices[0]
    for index in indices[1:]:
        if join == "outer":
            ids = ids.union(index, sort=False)
        else:
            ids = ids[ids.isin(index)]
    return ids


def _join_lines(views: Sequence[View], indices: Sequence[Any], kept: int) -> list[str]:
    """Return what each view holds, and what their join keeps, in lines."""
    if not indices:
        return []

    lines = []
    for view in views:
        shape = view.array.shape
        size = f"{shape[0]} samples x {shape[1]} columns"
        how = "paired by row"
        if view.ids is not None:
            how = f"ids such as {str(view.ids[0])!r}"

        lines.append(f"{view.name} ({view.file}): {size}, {how}")
    if len(indices) < 2:
        return lines
    joins = ("inner", "outer")
    in_all, everybody = (len(_joined(indices, join)) for join in joins)
    if in_all == everybody:
        return [*lines, f"Joined by id: all {kept} samples."]
    return [
        *lines,
        f"Joined by id: {kept} of {everybody} samples; {in_all} are in all tables.",
    ]


def _fingerprint(text: str) -> dict[str, Any]:
    """Return the record of an input: its path, and the digest of its content."""
    path = input_path(text)
    if path is None or not path.is_file():
        return {"input": text, "bytes": None, "sha256": None}
    with errors_of(path), path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"input": text, "bytes": file.tell(), "sha256": digest}


def input_path(text: str) -> Path | None:
    """Return the file that an input reads, or None for the name of a data set."""
    if text in datasets.CATALOG:
        return None
    name = text
    if not os.path.exists(text):
        name = text.rpartition("::")[0] or text

    return Path(name).expanduser()


def file_name(text: str) -> str:
    """Return the name of the file of an input, as options take it."""
    return Path(text.rpartition("::")[0] or text).name
