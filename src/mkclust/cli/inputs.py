"""What goes in: the views or kernels of all inputs, joined, with fingerprints of their files."""

import hashlib
import os
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mkclust import datasets
from mkclust.cli.failures import CommandError
from mkclust.cli.printing import count
from mkclust.datasets.on_disk import TableOnDisk, is_hdf5
from mkclust.kernels import KernelBank
from mkclust.linalg.memory import available_bytes
from mkclust.samples.forms import looks_like_kernel
from mkclust.stack.rows import Slab

# Files that together take more than this share of the memory there is are not loaded.
LARGEST_SHARE_LOADED = 0.25
# Of a table on disk so many rows and columns tell whether it looks like a kernel.
CORNER = 1000
# Parameters that are not set by name but by options of their own.
OWN_OPTIONS = {
    "kernels": "--kernels",
    "n_clusters": "-k",
    "random_state": "--seed",
    "anchor": "--anchor",
    "approximation": "--approximation",
}


@dataclass(frozen=True)
class Data:
    """The views or the kernels of all inputs, joined in order.

    Kernels that are one data set on disk are `whole`: there they have no names of their own.
    """

    parts: dict[str, Any]
    precomputed: bool
    n_samples: int
    y: Any
    files: list[dict[str, Any]]
    notes: list[str]
    bank: dict[str, Any] | None = None
    whole: Any = None

    @property
    def X(self) -> Any:
        """What ``fit`` takes: one view alone is a table, from which a bank of kernels is made."""
        if self.whole is not None:
            return self.whole
        lone = len(self.parts) == 1 and not self.precomputed
        return next(iter(self.parts.values())) if lone else self.parts

    @property
    def kernels(self) -> Any:
        """What an estimator takes for ``kernels``: a known data set says how they are made."""
        if self.precomputed:
            return "precomputed"
        return "auto" if self.bank is None else KernelBank(**self.bank)

    @property
    def linked_files(self) -> list[Path]:
        """Files to which links in the inputs lead."""
        return [Path(linked["input"]) for entry in self.files for linked in entry["linked_files"]]

    def describe(self) -> str:
        """Return how many there are of what."""
        return count(len(self.parts), "kernel" if self.precomputed else "view")


def read_inputs(
    inputs: Sequence[str],
    square: bool,
    on_disk: bool | None = None,
    follow_links: bool = False,
) -> Data:
    """Read all inputs and join what they hold, refusing what does not belong together."""
    files = [_fingerprint(text) for text in inputs]
    there, size = available_bytes(), sum(entry["bytes"] or 0 for entry in files)
    if there is not None and size > LARGEST_SHARE_LOADED * there:
        on_disk = True
    options: dict[str, Any] = {"on_disk": on_disk, "follow_links": follow_links}
    found = [datasets.load(text, kernels=square, **options) for text in inputs]
    first = found[0]
    for text, data in zip(inputs, found, strict=True):
        if data.n_samples != first.n_samples:
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
    labeled = [(data.name, data.y) for data in found if data.y is not None]
    if any(not np.array_equal(y, labeled[0][1]) for _, y in labeled):
        warnings.warn(
            f"the inputs hold different labels; scores are those of {labeled[0][0]}",
            stacklevel=2,
        )
    whole = first.X if len(found) == 1 and is_hdf5(first.X) else None
    if whole is None and (stacks := [data.name for data in found if is_hdf5(data.X)]):
        raise CommandError(
            f"{', '.join(stacks)}: a stack of kernels too large to load cannot be joined with "
            "others; store each of its kernels as a data set of its own, or cluster it alone"
        )
    parts = _join(found)
    precomputed = first.precomputed
    if not precomputed and all(_looks_like_kernel(view) for view in parts.values()):
        raise CommandError(
            f"{', '.join(inputs)}: every matrix in it is square and symmetric, as kernels are; "
            "pass --kernels precomputed"
        )
    for entry, data in zip(files, found, strict=True):
        entry["description"] = data.description
        entry["linked_files"] = [_fingerprint(path) for path in data.linked_files]
    notes = [
        data.description
        for text, data in zip(inputs, found, strict=True)
        if data.description and (data.caveat or text not in datasets.AVAILABLE)
    ]
    y = labeled[0][1] if labeled else None
    bank = first.bank if len(found) == 1 else None
    return Data(parts, precomputed, first.n_samples, y, files, notes, bank, whole)


def _looks_like_kernel(view: Any) -> bool:
    """Return whether a view is a symmetric matrix; of one on disk a corner tells."""
    if not isinstance(view, TableOnDisk | np.memmap):
        return looks_like_kernel(view)
    return view.shape[0] == view.shape[1] and looks_like_kernel(view[:CORNER, :CORNER])


def _join(found: Sequence[datasets.Dataset]) -> dict[str, Any]:
    """Return all views or kernels by name, the file's name before those that clash."""
    counts = Counter(name for data in found for name in data.kernel_names)
    parts: dict[str, Any] = {}
    for data in found:
        arrays = data.X if data.precomputed else data.X.values()
        if is_hdf5(arrays):
            arrays = [Slab(arrays, index) for index in range(len(arrays))]
        for name, array in zip(data.kernel_names, arrays, strict=True):
            base = name if counts[name] == 1 else f"{data.name}/{name}"
            unique, number = base, 1
            while unique in parts:
                number += 1
                unique = f"{base} ({number})"
            parts[unique] = array
    return parts


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
    if text in datasets.AVAILABLE:
        return None
    name = text if os.path.exists(text) else text.rpartition("::")[0] or text
    return Path(name).expanduser()


def parse_settings(settings: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters by name, each value as the number or truth value it spells, or as text.

    What options of their own have set already is refused.
    """
    parameters: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = (part.strip() for part in setting.partition("="))
        if not name or not equals or not text:
            raise CommandError(f"--set {setting!r}: write NAME=VALUE, such as --set reg=0.5")
        if option := OWN_OPTIONS.get(name):
            raise CommandError(f"--set {setting!r}: {name} has its own option, {option}")
        if name in parameters or options.get(name) is not None:
            raise CommandError(f"--set {setting!r}: {name} is set twice")
        parameters[name] = parse_value(text)
    return parameters


def choose_anchor(model: Any, data: Data) -> None:
    """Let a method that has an anchor choose it, unless there is nothing to choose between."""
    parameters = model.get_params()
    # Of one view a bank makes several kernels, landmarks stand for one only.
    banked = not data.precomputed and parameters.get("approximation") is None
    several = len(data.parts) > 1 or banked
    if "anchor" in parameters and parameters.get("solver") == "subspace" and several:
        model.set_params(anchor="auto")


def parse_value(text: str) -> Any:
    """Return what a text spells: a whole number, a number, a truth value, or itself."""
    for spelled in (int, float):
        try:
            return spelled(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)
