"""What goes in: the views or kernels of all inputs, joined, with fingerprints of their files."""

import hashlib
import os
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mkclust import datasets
from mkclust.cli.failures import CommandError
from mkclust.cli.joining import contributions, paired_by_row, row_ids
from mkclust.cli.near_misses import problems, suspicions
from mkclust.cli.printing import count
from mkclust.cli.table_request import TableRequest, check_drops
from mkclust.data.join import looks_like_kernel
from mkclust.data.missing import lacking_words
from mkclust.data.samples import Samples, read_kernels, read_views
from mkclust.data.tables import is_frame
from mkclust.datasets.arrays import is_hdf5
from mkclust.datasets.parquet import ParquetTable
from mkclust.datasets.read import load_with
from mkclust.index import match_rows
from mkclust.linalg.memory import available_bytes

# Files that together take more than this share of the memory there is are not loaded.
LARGEST_SHARE_LOADED = 0.25
# Of a table on disk so many rows and columns tell whether it looks like a kernel.
CORNER = 1000
DEFAULT_TABLES = TableRequest()
# Formats of which the workers of a cluster can read some rows.
SUFFIXES_READ_IN_PARTS = (".npy", ".h5", ".hdf5", ".parquet")


@dataclass(frozen=True)
class Data:
    """The views or the kernels of all inputs, joined in order, with their names."""

    name: str
    samples: Samples
    names: tuple[str, ...]
    y: Any
    files: list[dict[str, Any]]
    notes: list[str]
    bank: dict[str, Any] | None = None
    contributions: tuple[str, ...] = ()

    def describe(self) -> str:
        """Return how many there are of what."""
        return count(len(self.names), self.samples.kind.removesuffix("s"))


def read_inputs(
    inputs: Sequence[str],
    *,
    precomputed: bool,
    on_disk: bool | None = None,
    tables: TableRequest = DEFAULT_TABLES,
    kernels: Any = "auto",
    free_bytes: Callable[[], int | None] = available_bytes,
) -> Data:
    """Read all inputs and join what they hold, refusing what does not belong together."""
    files, data_sets = read_all(
        inputs,
        precomputed=precomputed,
        on_disk=on_disk,
        tables=tables,
        free_bytes=free_bytes,
    )
    for problem in problems(inputs, data_sets, kernels):
        raise CommandError(problem)
    _check_same_kind(inputs, data_sets)
    by_row = [f"{sentence}; {advice}" for sentence, advice in paired_by_row(inputs, data_sets)]
    for line in [*by_row, *suspicions(inputs, data_sets)]:
        warnings.warn(line, stacklevel=2)
    samples, names = joined_views(data_sets, tables)
    if samples.kind != "kernels" and not any(map(_is_on_disk, samples.parts)):
        # Missing cells are refused before anything is computed; a copy holds no arrays longer.
        replace(samples).views  # noqa: B018
    if nearly := kernels_taken_for_views(inputs, samples, kernels):
        raise CommandError(nearly)
    return Data(
        name=data_sets[0].name,
        samples=samples,
        names=names,
        y=_common_labels(data_sets, samples.index),
        files=files,
        notes=_notes(inputs, data_sets),
        bank=data_sets[0].bank if len(data_sets) == 1 else None,
        contributions=(
            *contributions(inputs, data_sets, samples.n_samples),
            *_missing_line(samples, names),
        ),
    )


def kernels_taken_for_views(inputs: Sequence[str], samples: Samples, kernels: Any) -> str | None:
    """Return what to pass where every view looks like a kernel and nothing was said of kernels."""
    if (
        kernels not in ("auto", "gaussian")
        or samples.kind != "views"
        or not all(map(_looks_like_kernel, samples.parts))
    ):
        return None
    return (
        f"{', '.join(inputs)}: every matrix in it is square and symmetric, as kernels are; "
        f"pass {_pairs_option(samples.parts)}"
    )


def read_all(
    inputs: Sequence[str],
    *,
    precomputed: bool = False,
    on_disk: bool | None = None,
    tables: TableRequest = DEFAULT_TABLES,
    free_bytes: Callable[[], int | None] = available_bytes,
) -> tuple[list[dict[str, Any]], list[datasets.Dataset]]:
    """Read all inputs, each by itself; return what is recorded of their files, and the data."""
    layouts = tables.layouts(inputs)
    files = [_fingerprint(text) for text in inputs]
    free, size = free_bytes(), sum(entry["bytes"] or 0 for entry in files)
    if free is not None and size > LARGEST_SHARE_LOADED * free:
        on_disk = True
    data_sets = [
        datasets.load(text, kernels=precomputed, on_disk=on_disk)
        if layout.is_default
        else load_with(text, layout, kernels=precomputed, on_disk=on_disk)
        for text, layout in zip(inputs, layouts, strict=True)
    ]
    check_drops(tables, inputs, data_sets)
    for entry, data, layout in zip(files, data_sets, layouts, strict=True):
        entry["description"] = data.description
        if not layout.is_default:
            entry["layout"] = asdict(layout)
    return files, data_sets


def _pairs_option(parts: Sequence[Any]) -> str:
    """Return the option for square matrices: zeros on the diagonal are those of distances."""
    corners = [np.asarray(part[:CORNER, :CORNER]) for part in parts if not is_frame(part)]
    corners += [part.to_numpy() for part in parts if is_frame(part)]
    distances = all(not np.diag(each).any() and each.min() >= 0 for each in corners)
    return "--kernels from_distances" if distances else "--kernels precomputed"


def _check_same_kind(inputs: Sequence[str], data_sets: Sequence[datasets.Dataset]) -> None:
    """Refuse inputs of different samples, views beside kernels, and stacks that cannot join."""
    first = data_sets[0]
    ids = [_ids_of(data) for data in data_sets]
    for text, data, own in zip(inputs, data_sets, ids, strict=True):
        if data.n_samples != first.n_samples and (own is None or ids[0] is None):
            raise CommandError(
                f"{text} has {data.n_samples} samples but {inputs[0]} has {first.n_samples}; "
                "all inputs must describe the same samples, in the same order"
            )
        if data.precomputed != first.precomputed:
            pair = (text, inputs[0]) if data.precomputed else (inputs[0], text)
            raise CommandError(
                f"{pair[0]} holds kernels but {pair[1]} holds views; pass --kernels precomputed "
                "if its matrices are kernels, or cluster the two apart"
            )
    stacks = [data.name for data in data_sets if is_hdf5(data.X)]
    if stacks and len(data_sets) > 1:
        raise CommandError(
            f"{', '.join(stacks)}: a stack of kernels too large to load cannot be joined with "
            "others; store each of its kernels as a data set of its own, or cluster it alone"
        )


def _ids_of(data: datasets.Dataset) -> Any:
    """Return the ids of the samples of a data set, None where it has none."""
    if is_hdf5(data.X):
        return None
    return row_ids(next(iter(data.X.values() if isinstance(data.X, dict) else data.X)))


def _labels_in_order(data: datasets.Dataset, index: Any) -> tuple[Any, np.ndarray]:
    """Return the labels of a data set in the order of the samples, and who has one."""
    own, y = None if index is None else _ids_of(data), np.asarray(data.y)
    if own is None:
        return y, np.ones(len(y), dtype=bool)
    rows = match_rows(own, index, data.name, "the samples")
    return y[rows], rows >= 0


def _common_labels(data_sets: Sequence[datasets.Dataset], index: Any) -> Any:
    """Return the labels of the first input that has some, or None.

    Samples that it lacks have those of the next input; where nobody has some, there are none.
    """
    labelled = [data for data in data_sets if data.y is not None]
    if not labelled:
        return None
    y, known = _labels_in_order(labelled[0], index)
    for data in labelled[1:]:
        other, has = _labels_in_order(data, index)
        if not np.array_equal(other[has & known], y[has & known]):
            message = f"the inputs hold different labels; scores are those of {labelled[0].name}"
            warnings.warn(message, stacklevel=2)
        y, known = np.where(known, y, other), known | has
    if not known.all():
        warnings.warn(
            f"no scores: {np.sum(~known):,} of {len(y):,} samples are missing from the inputs that "
            "hold labels",
            stacklevel=2,
        )
        return None
    return y


def _missing_line(samples: Samples, names: Sequence[str]) -> list[str]:
    """Say how many samples each input lacks, where one lacks any."""
    if samples.missing is None:
        return []
    places = [samples.names.index(name) for name in names]
    return [f"Missing samples: {lacking_words(samples.missing[:, places], names)}."]


def _notes(inputs: Sequence[str], data_sets: Sequence[datasets.Dataset]) -> list[str]:
    """Return what has to be said of the inputs; of data sets with a name only the caveats."""
    return [
        data.description
        for text, data in zip(inputs, data_sets, strict=True)
        if data.description and (data.caveat or text not in datasets.CATALOG)
    ]


def _is_on_disk(view: Any) -> bool:
    """Return whether the rows of a view are read when they are needed."""
    return isinstance(view, ParquetTable | np.memmap) or is_hdf5(view)


def _looks_like_kernel(view: Any) -> bool:
    """Return whether a view is a symmetric matrix; of one on disk a corner tells."""
    if not _is_on_disk(view):
        return looks_like_kernel(view)
    return view.shape[0] == view.shape[1] and looks_like_kernel(view[:CORNER, :CORNER])


def joined_views(
    data_sets: Sequence[datasets.Dataset], tables: TableRequest
) -> tuple[Samples, tuple[str, ...]]:
    """Return all views or kernels, and their names: the file's name before those that clash."""
    first, names = data_sets[0], unique_names(data_sets)
    if is_hdf5(first.X):  # a stack that stays on disk, which is alone and has no names of its own
        return read_kernels(first.X), names
    arrays = [
        array for data in data_sets for array in (data.X if data.precomputed else data.X.values())
    ]
    parts = dict(zip(names, arrays, strict=True))
    if first.precomputed:
        return read_kernels(parts, options=tables.options), names
    return read_views(parts, options=tables.options), names


def unique_names(data_sets: Sequence[datasets.Dataset]) -> tuple[str, ...]:
    """Return the names of all views or kernels, each once."""
    pairs = [(data.name, name) for data in data_sets for name in data.kernel_names]
    counts = Counter(name for _, name in pairs)
    names: list[str] = []
    for file, name in pairs:
        base = name if counts[name] == 1 else f"{file}/{name}"
        unique, number = base, 1
        while unique in names:
            number += 1
            unique = f"{base} ({number})"
        names.append(unique)
    return tuple(names)


def _fingerprint(text: str) -> dict[str, Any]:
    """Return an input's name, and size and hash of its file where it is one."""
    entry: dict[str, Any] = {"input": text, "bytes": None, "sha256": None}
    path = input_path(text)
    if path is not None and path.is_file():
        try:
            with path.open("rb") as file:
                entry["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
                entry["bytes"] = file.tell()
        except OSError as error:
            # Named here, for an error of reading does not name its file.
            reason = error.strerror or error
            raise CommandError(f"{path}: cannot be read ({reason}); check the file") from error
    return entry


def input_path(text: str) -> Path | None:
    """Return the file that an input reads, or None for a data set's name."""
    if text in datasets.CATALOG:
        return None
    name = text if os.path.exists(text) else text.rpartition("::")[0] or text
    return Path(name).expanduser()


def check_readable_in_parts(inputs: Sequence[str]) -> None:
    """Refuse inputs of which workers could not read some rows, before any is read."""
    for text in inputs:
        path = input_path(text)
        if path is None or path.suffix.lower() not in SUFFIXES_READ_IN_PARTS:
            raise CommandError(
                f"{text}: with --cluster workers read the samples some rows at a time, from files "
                f"of {', '.join(SUFFIXES_READ_IN_PARTS)}; store it in one of these"
            )
