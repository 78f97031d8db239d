"""The methods of a plan: the library's own, any scikit-learn clusterer, labels made elsewhere."""

import csv
import difflib
import glob
import importlib
import inspect
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mkclust.bench.rows import canonical
from mkclust.methods import METHODS, MultipleKernelClusterer

Kind = Literal["own", "single-kernel", "estimator", "concatenated-kmeans", "labels"]

# Reference points that every comparison should have.
REFERENCES: dict[str, Kind] = {
    "best-single-kernel": "single-kernel",
    "concatenated-kmeans": "concatenated-kmeans",
}


# Parameters that are the protocol's, the same for all methods.
OTHER_RESERVED = frozenset({"random_state"})
OWN_RESERVED = OTHER_RESERVED.union(
    ("n_clusters", "kernels", "center", "normalize", "psd", "validate", "n_init")
)


@dataclass(frozen=True)
class MethodEntry:
    """A method of a plan.

    Attributes
    ----------
    name : str
        Its name in the rows.
    kind : str
        "own" (of ``mkclust.METHODS``, or a class derived as these are), "single-kernel" (k-means
        on every kernel alone, the best chosen by the true classes), "concatenated-kmeans",
        "estimator" (any other scikit-learn clusterer) or "labels" (results made elsewhere).
    method : str
        A key of ``METHODS``, a reference point, or "package.module:Class".
    parameters : dict
        Parameters of all its settings.
    grid : dict of str to list
        Parameters to vary; every combination is a setting beside the default one.
    input : str
        What another clusterer is fitted on: "concatenated" (standardized features side by side),
        "views", "kernels" or "average-kernel".
    labels : str
        Pattern of the files that hold results made elsewhere.
    max_samples : int or None
        Larger data sets are skipped.
    max_settings : int or None
        Most grid points; beyond that a part of the grid that spans all of it.
    """

    name: str
    kind: Kind
    method: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, list] = field(default_factory=dict)
    input: str = "concatenated"
    labels: str = ""
    max_samples: int | None = None
    max_settings: int | None = None

    @property
    def source(self) -> str:
        """What the entry runs, in a few words; parameters apart."""
        if self.kind == "labels":
            return f"labels {self.labels}"
        return f"{self.method} on {self.input}" if self.kind == "estimator" else self.method

    @property
    def oracle(self) -> bool:
        """Whether the entry exists only by a choice that the true classes make."""
        return self.kind == "single-kernel"

    @property
    def partitions(self) -> bool:
        """Whether a solve gives a relaxed partition, to be discretized again and again."""
        return self.kind in ("own", "single-kernel")

    def estimator(self) -> type:
        """Return the class behind the entry."""
        return METHODS.get(self.method) or import_class(self.method)

    def settings(self, max_settings: int | None, n_kernels: int) -> list[dict[str, Any]]:
        """Return the settings to run: first the default, then the grid, each once.

        Parameters
        ----------
        max_settings : int or None
            Most grid points; None takes the entry's own limit.
        n_kernels : int
            Number of kernels: as many settings where each is tried alone.

        Returns
        -------
        list of dict
            The parameters of each setting that differ from the defaults of the class.
        """
        if self.kind == "single-kernel":
            return [{"kernel": index} for index in range(n_kernels)]
        limits = [limit for limit in (max_settings, self.max_settings) if limit is not None]
        grid = thin(self.grid, min(limits, default=None))
        standard = _defaults(self.estimator()) if self.kind == "own" else {}
        points = itertools.product(*grid.values())
        settings = [{}, *(dict(zip(grid, values, strict=True)) for values in points)]
        unique: list[dict[str, Any]] = []
        for point in settings:
            # What equals the defaults of the class is not written down, so that a grid point that
            # is the default is known for it.
            told = {
                name: value
                for name, value in (self.parameters | point).items()
                if name not in standard or standard[name] != value
            }
            if told not in unique:
                unique.append(told)
        return unique


def thin(grid: Mapping[str, list], most: int | None) -> dict[str, list]:
    """Return a grid of at most so many points that spans the whole of it.

    The longest axis is shortened first, and evenly: its ends stay.

    Examples
    --------
    >>> from mkclust.bench.entries import thin
    >>> thin({"reg": [1, 2, 4, 8, 16], "neighbors": [0.1, 0.2]}, 6)
    {'reg': [1, 4, 16], 'neighbors': [0.1, 0.2]}
    """
    counts = {name: len(values) for name, values in grid.items()}
    while most is not None and np.prod(list(counts.values())) > most:
        counts[max(counts, key=counts.__getitem__)] -= 1
    return {
        name: [values[i] for i in _evenly(len(values), counts[name])]
        for name, values in grid.items()
    }


def _evenly(length: int, count: int) -> list[int]:
    """Return so many of the numbers below `length`, evenly spaced; a lone one from the middle."""
    if count == 1:
        return [length // 2]
    return [int(i) for i in np.rint(np.linspace(0, length - 1, count))]


def check_class_name(text: str) -> None:
    """Refuse what cannot name a class, importing nothing."""
    module, _, name = text.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), name)):
        raise ValueError(f"method: {text!r}: write package.module:Class")


def import_class(text: str) -> type:
    """Return the class that "package.module:Class" names, or say why there is none.

    The module is imported, which runs its code.
    """
    check_class_name(text)
    module, _, name = text.partition(":")
    try:
        imported = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # importing runs other people's code
        reason = f"{type(error).__name__}: {error}"
        advice = "; install it, or name its folder in PYTHONPATH"
        raise ValueError(
            f"method: {text!r} cannot be imported ({reason})"
            + (advice if isinstance(error, ModuleNotFoundError) else "")
        ) from None
    found = getattr(imported, name, None)
    if found is None:
        known = [n for n, value in vars(imported).items() if inspect.isclass(value)]
        near = difflib.get_close_matches(name, known, n=1)
        advice = f"did you mean {module}:{near[0]}?" if near else "check the name"
        raise ValueError(f"method: {module} has no class {name!r}; {advice}")
    needed = ("fit_predict", "get_params", "set_params")
    if not inspect.isclass(found) or not all(hasattr(found, method) for method in needed):
        raise ValueError(f"method: {text} is no scikit-learn clusterer (no {' or '.join(needed)})")
    return found


def find_entry(table: Mapping[str, Any], folder: Path) -> MethodEntry:
    """Return the entry that a plan describes; a class that it names is left to `import_entry`.

    Parameters
    ----------
    table : mapping
        What the plan says, its keys and kinds of values checked.
    folder : Path
        The folder of the plan.

    Returns
    -------
    MethodEntry

    Raises
    ------
    ValueError
        Beginning with the key that is wrong.
    """
    given = dict(table)
    if "labels" in given:
        if "name" not in given:
            raise ValueError('labels: needs a name for the rows, such as name = "matlab-mkkm"')
        if extra := sorted(given.keys() - {"labels", "name"}):
            raise ValueError(f"{extra[0]}: labels made elsewhere have no such key; remove it")
        if not label_files(given["labels"], folder):
            raise ValueError(f"labels: no file matches {folder / given['labels']}")
        return MethodEntry(kind="labels", **given)
    method = given["method"]
    name = given.setdefault("name", method.rpartition(":")[2].lower() if ":" in method else method)
    if ":" not in method and method not in {**METHODS, **REFERENCES}:
        known = [*METHODS, *REFERENCES]
        near = difflib.get_close_matches(method.lower(), known, n=1)
        advice = f"did you mean {near[0]!r}?" if near else f"choose among {', '.join(known)}"
        raise ValueError(f"method: {method!r}: unknown method; {advice}")
    if ":" in method:
        check_class_name(method)
        given.pop("grid", None)
        return MethodEntry(kind="estimator", **given)
    kind: Kind = REFERENCES.get(method, "own")
    if kind in REFERENCES.values():
        if extra := sorted(given.keys() & {"grid", "parameters", "input", "max_settings"}):
            raise ValueError(f"{extra[0]}: {name} has no such key; remove it")
        return MethodEntry(kind=kind, **given)
    if "input" in given:
        raise ValueError(f"input: {name} takes kernels, and has no such key; remove it")
    return _checked("own", given)


def import_entry(table: Mapping[str, Any], name: str) -> MethodEntry:
    """Return the entry of a class that a plan names, having imported it.

    Parameters
    ----------
    table : mapping
        What the plan says, found sound by `find_entry`.
    name : str
        Name of the entry.

    Returns
    -------
    MethodEntry
        Of the kind "own" for a class derived from ``MultipleKernelClusterer``, which is solved on
        the kernels of the data, unless the plan gives it another input.

    Raises
    ------
    ValueError
        Beginning with the key that is wrong.
    """
    own = issubclass(import_class(table["method"]), MultipleKernelClusterer)
    kind: Kind = "own" if own and "input" not in table else "estimator"
    return _checked(kind, {**table, "name": name})


def _checked(kind: Kind, given: dict[str, Any]) -> MethodEntry:
    """Return the entry of a class, its settings checked."""
    if given.get("grid") == "authors":
        method = given["method"]
        authors = getattr(METHODS.get(method) or import_class(method), "GRID", None)
        if authors is None:
            raise ValueError('grid: "authors" is known for the methods of mkclust only; give lists')
        given = given | {"grid": dict(authors)}
    entry = MethodEntry(kind=kind, **given)
    _check_settings(entry)
    return entry


def _check_settings(entry: MethodEntry) -> None:
    """Refuse parameters that the class does not have, or that it refuses itself."""
    try:
        known = entry.estimator()(**entry.parameters).get_params()
        canonical({**entry.parameters, **entry.grid})  # must be text to be told from another
    except (ImportError, ValueError) as error:
        raise ValueError(f"parameters: {error}") from None
    except TypeError as error:
        known = _defaults(entry.estimator())
        if set(entry.parameters) <= set(known):
            raise ValueError(f"parameters: {error}") from None
    except Exception as error:  # other people's code
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"parameters: {entry.method} cannot be made ({reason})") from None
    for key, names in (("parameters", entry.parameters), ("grid", entry.grid)):
        for name in names:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                advice = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}"
                raise ValueError(f"{key}: {entry.name} has no parameter {name!r}; {advice}")
            if name in (OWN_RESERVED if entry.kind == "own" else OTHER_RESERVED):
                raise ValueError(f"{key}: {name} is set by the benchmark; remove it")
    if entry.kind == "own":
        settings = [entry.parameters]
        settings += [{name: value} for name, values in entry.grid.items() for value in values]
        for setting in settings:
            try:
                entry.estimator()(**setting).check_parameters()
            except (ValueError, TypeError) as error:
                key = "grid" if setting is not entry.parameters else "parameters"
                raise ValueError(f"{key}: {error}") from None


def _defaults(estimator: type) -> dict[str, Any]:
    """Return the parameters of a class, with their defaults."""
    parameters = inspect.signature(estimator).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters}


def label_files(pattern: str, folder: Path) -> list[Path]:
    """Return the files that a pattern names, relative to a folder or absolute, in order."""
    return sorted(folder / name for name in glob.glob(pattern, root_dir=folder, recursive=True))


def read_labels(pattern: str, dataset: str, folder: Path) -> list[list[str]]:
    """Return the labelings made elsewhere for a data set, one a repetition.

    Files are named after the data set: ``digit.csv`` with a column for each repetition, or
    ``digit.1.csv``, ``digit.2.csv``, ... A first line without numbers above numbers is a heading.

    Parameters
    ----------
    pattern : str
        Pattern of the files.
    dataset : str
        Name of the data set.
    folder : Path
        What the pattern is relative to.

    Returns
    -------
    list of list of str

    Raises
    ------
    ValueError
        If a file is no table of labels, one column a repetition.
    """
    named = re.compile(rf"{re.escape(dataset)}(\.(\d+))?\.\w+$", re.IGNORECASE)
    found = {path: named.match(path.name) for path in label_files(pattern, folder)}
    numbered = [(int(match[2] or 0), path) for path, match in found.items() if match]
    columns: list[list[str]] = []
    for _, path in sorted(numbered):
        columns += _label_columns(path)
    return columns


def _label_columns(path: Path) -> list[list[str]]:
    """Return the columns of a file of labels, refusing what can hardly be labels."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [[cell.strip() for cell in line] for line in csv.reader(file) if line]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name}: is no table of labels ({error})") from None
    numeric = [all(map(_is_number, line)) for line in lines]
    if len(lines) > 1 and all(numeric[1:]) and not any(map(_is_number, lines[0])):
        lines = lines[1:]
    if len({len(line) for line in lines}) > 1:
        raise ValueError(f"{path.name}: lines differ in length; write one column a repetition")
    columns = [[_plain_label(cell) for cell in column] for column in zip(*lines, strict=True)]
    for number, column in enumerate(columns, start=1):
        where = f"{path.name}, column {number}"
        if "" in column:
            line = column.index("") + 1
            raise ValueError(f"{where}: no label in line {line}; write one for every sample")
        if len(column) > 2 and len(set(column)) == len(column):
            raise ValueError(f"{where}: no label occurs twice; leave out numbers of samples")
    return columns


def _plain_label(text: str) -> str:
    """Return a label in one spelling: 1, 1.0 and 1e0 are the same cluster."""
    return repr(float(text)) if _is_number(text) else text


def _is_number(text: str) -> bool:
    """Return whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
