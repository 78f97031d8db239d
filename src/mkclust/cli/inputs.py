"""What goes in: the views or kernels of all inputs, with fingerprints of their files."""

import hashlib
import os
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mkclust import datasets
from mkclust.cli.errors import CommandError
from mkclust.cli.options import Request
from mkclust.cli.progress import Progress
from mkclust.data.join import looks_like_kernel
from mkclust.datasets.layout import TableLayout
from mkclust.datasets.read import check_dropped, load_with
from mkclust.index import has_ids, index_of, match_rows
from mkclust.text import count, join_words


class View(NamedTuple):
    """A view or kernel, with its input, its name, and the ids of its rows or None."""

    file: str
    name: str
    array: Any
    ids: Any


@dataclass(frozen=True)
class Data:
    """The views or kernels of all inputs by name, and what is said and recorded of them."""

    views: Mapping[str, Any]
    precomputed: bool
    n_samples: int
    data_sets: Sequence[datasets.Dataset]
    files: list[dict[str, Any]]
    lines: list[str]

    @property
    def X(self) -> Any:
        """What an estimator takes: views or kernels by name; one view is a table."""
        is_table = len(self.views) == 1 and not self.precomputed
        return next(iter(self.views.values())) if is_table else self.views

    def labels_for(self, model: Any) -> np.ndarray | None:
        """Return the labels of the inputs in the order of a fitted model's samples."""
        ids = getattr(model, "sample_ids_", None)
        return common_labels(self.data_sets, None if ids is None else pd.Index(ids))

    def describe(self) -> str:
        """Return how many samples, views or kernels there are."""
        what = count(len(self.views), "kernel" if self.precomputed else "view")
        return f"{count(self.n_samples, 'sample')}, {what}"


def read_inputs(request: Request, progress: Progress) -> Data:
    """Read all inputs, and refuse those that would be taken for something else than they are."""
    progress.phase("reading")
    kernels = request.asked_kernels
    inputs, files, data_sets = read_files(request)
    kinds = {data.precomputed: text for text, data in zip(inputs, data_sets, strict=True)}
    if len(kinds) == 2:
        raise CommandError(
            f"{kinds[True]} holds kernels but {kinds[False]} holds views; pass --kernels "
            "precomputed if all matrices are kernels, or cluster the two apart"
        )
    views = list_views(inputs, data_sets)
    if True not in kinds:
        _refuse_transposed(views)
        if kernels in ("auto", "gaussian"):  # whoever names a kernel knows what the matrix is
            _refuse_square(views)
        _warn_of_pairs(views)
    indices = [view.ids for view in views if view.ids is not None]
    n = len(_joined(indices, request.join)) if indices else data_sets[0].n_samples
    by_name, lines = {view.name: view.array for view in views}, _join_lines(views, indices, n)
    return Data(by_name, True in kinds, n, data_sets, files, lines)


def read_files(
    request: Request, fitted: Sequence[Mapping[str, Any]] = ()
) -> tuple[list[str], list[dict[str, Any]], list[datasets.Dataset]]:
    """Read each input, as those of a fit if there are any; return what is read and recorded."""
    inputs, layouts, known = [], [], {file_name(each["input"]): each for each in fitted}
    # Files of other names are taken in the order of those of the fit that are not given.
    given = {file_name(text) for text in request.inputs}
    others = iter([each for name, each in known.items() if name not in given])
    for text in request.inputs:
        before: Any = known.get(file_name(text)) or next(others, {"input": "", "layout": {}})
        _, colons, names = before["input"].rpartition("::")
        inputs.append(f"{text}::{names}" if colons and "::" not in text else text)
        layouts.append(layout_of(text, request, before["layout"]))
    files = [_fingerprint(text) for text in inputs]
    precomputed = request.asked_kernels == "precomputed"
    data_sets = [
        load_with(text, layout, kernels=precomputed)
        for text, layout in zip(inputs, layouts, strict=True)
    ]
    asked = {name for text in request.inputs for name in layout_of(text, request, {}).drop}
    check_dropped(asked, data_sets)
    for entry, data, layout in zip(files, data_sets, layouts, strict=True):
        entry |= {"description": data.description, "layout": asdict(layout)}
    return inputs, files, data_sets


def layout_of(text: str, request: Request, before: Mapping[str, Any]) -> TableLayout:
    """Return how the table of a file is to be read: FILE=VALUE is for one file."""
    prefixes = {each: (f"{each}=", f"{file_name(each)}=") for each in (*request.inputs, text)}

    def values(given: Sequence[str]) -> list[str]:
        common = [v for v in given if not any(v.startswith(p) for p in prefixes.values())]
        for value in common:
            name, equals, _ = value.partition("=")
            if equals and "." in name and not os.path.exists(name):
                files = join_words(map(file_name, request.inputs))
                raise CommandError(f"{value}: no input is called {name!r}; inputs: {files}")
        own = [v for v in given if v.startswith(prefixes[text])]
        return [*common, *(v.removeprefix(prefixes[text][not v.startswith(text)]) for v in own)]

    ids, sides = values(request.id), values(request.samples_in)
    trim = values(request.trim_ids)
    if wrong := [n for n in trim if not n.isdigit() or n == "0"]:
        raise CommandError(f"--trim-ids {wrong[0]}: give a number of characters, at least 1")
    given: dict[str, Any] = {
        "id": ids[-1:],
        "samples_in": sides[-1:],
        "drop": [tuple(values(request.drop))],
        "missing": [tuple(values(request.missing))],
        "trim_ids": [int(n) for n in trim[-1:]],
    }
    found = {name: each[0] for name, each in given.items() if each and each[0]}
    return TableLayout(**{**before, **found})


def list_views(inputs: Sequence[str], data_sets: Sequence[datasets.Dataset]) -> list[View]:
    """Return all views or kernels; names that clash follow those of their files."""
    counts = Counter(name for data in data_sets for name in data.kernel_names)
    views: dict[str, View] = {}
    for text, data in zip(inputs, data_sets, strict=True):
        arrays = data.X if data.precomputed else data.X.values()
        for name, array in zip(data.kernel_names, arrays, strict=True):
            unique = f"{data.name}/{name}" if counts[name] > 1 else name
            while unique in views:
                unique = f"{unique} ({len(views) + 1})"
            views[unique] = View(text, unique, array, row_ids(array))
    return list(views.values())


def row_ids(view: Any) -> Any:
    """Return the ids of a view as an index of pandas, None if it has none."""
    index = index_of(view)
    return index if has_ids(index) else None


def common_labels(data_sets: Sequence[datasets.Dataset], index: Any) -> np.ndarray | None:
    """Return the labels of the first input that has some, None unless all samples have one."""
    labeled = [data for data in data_sets if data.y is not None]
    if not labeled:
        return None
    data, y = labeled[0], np.asarray(labeled[0].y)
    own = None if index is None else list_views([data.name], [data])[0].ids
    rows = np.arange(len(y)) if own is None else match_rows(own, index, data.name)
    if (rows < 0).any():
        n = np.sum(rows < 0)
        warnings.warn(f"no scores: {n} of {len(rows)} samples have no label", stacklevel=2)
        return None
    return y[rows]


def _refuse_transposed(views: Sequence[View]) -> None:
    """Refuse a table whose columns are the samples of the other inputs."""
    found = []
    for view in views:
        others = [other for other in views if other is not view]
        ids = [other.ids for other in others if other.ids is not None]
        header, (n, width) = pd.Index(getattr(view.array, "columns", ())), view.array.shape
        if ids:
            shares = view.ids is not None and any(view.ids.isin(each).any() for each in ids)
            turned = not shares and any(header.isin(each).sum() > len(each) / 2 for each in ids)
        else:
            turned = view.ids is None and {other.array.shape[0] for other in others} == {width}
        if turned and n != width:
            found.append((n, view.file))
    if found:  # if two look like the transpose of each other, it is the one with fewer rows
        file = min(found)[1]
        raise CommandError(
            f"{file}: its columns are the samples of the other inputs; pass --samples-in "
            f"{file_name(file)}=columns"
        )


def _refuse_square(views: Sequence[View]) -> None:
    """Refuse kernels and distances that would be taken for tables."""
    for view in views:
        if looks_like_kernel(view.array):
            whose = "" if len(views) == 1 else f"{view.name}="
            raise CommandError(
                f"{view.file}: {view.name} is square and symmetric; pass --kernels "
                f"{whose}from_distances if it holds distances, or --kernels {whose}precomputed if "
                "it is a kernel"
            )


def _warn_of_pairs(views: Sequence[View]) -> None:
    """Warn of inputs that are paired by row, although ids are there."""
    for view in views:
        unread = [*getattr(view.array, "unread_ids", ())]
        others = any(other.ids is not None for other in views)
        if len(views) > 1 and view.ids is None and (others or unread):
            warnings.warn(
                f"{view.file} has no ids: its rows are taken to be in the order of the other "
                f"inputs; pass --id {file_name(view.file)}={(*unread, 'COLUMN')[0]} if it has some",
                stacklevel=2,
            )


def _joined(indices: Sequence[Any], join: str | None) -> Any:
    """Return the ids that a join keeps."""
    ids = indices[0]
    for index in indices[1:]:
        ids = ids.union(index, sort=False) if join == "outer" else ids[ids.isin(index)]
    return ids


def _join_lines(views: Sequence[View], indices: Sequence[Any], kept: int) -> list[str]:
    """Return what each table contributes, and how many samples are kept, a line each."""
    lines = []
    for view in views if indices else []:
        size = f"{view.array.shape[0]} samples x {view.array.shape[1]} columns"
        how = "paired by row" if view.ids is None else f"ids such as {str(view.ids[0])!r}"
        lines.append(f"{view.name} ({view.file}): {size}, {how}")
    if len(indices) < 2:
        return lines
    in_all, everybody = (len(_joined(indices, join)) for join in ("inner", "outer"))
    if in_all == everybody:
        return [*lines, f"Joined by id: all {kept} samples."]
    return [*lines, f"Joined by id: {kept} of {everybody} samples; {in_all} are in all tables."]


def _fingerprint(text: str) -> dict[str, Any]:
    """Return an input's name, and the size and hash of its file."""
    entry: dict[str, Any] = {"input": text, "bytes": None, "sha256": None}
    path = input_path(text)
    if path is not None and path.is_file():
        with path.open("rb") as file:
            entry["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
            entry["bytes"] = file.tell()
    return entry


def input_path(text: str) -> Path | None:
    """Return the file that an input reads, or None for the name of a data set."""
    if text in datasets.CATALOG:
        return None
    name = text if os.path.exists(text) else text.rpartition("::")[0] or text
    return Path(name).expanduser()


def file_name(text: str) -> str:
    """Return the name of the file of an input, as options take it."""
    return Path(text.rpartition("::")[0] or text).name
