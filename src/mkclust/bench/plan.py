"""A plan is data: data sets, methods, settings and the number of repetitions."""

import importlib
import inspect
import math
import runpy
import sys
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NoReturn, get_type_hints

import numpy as np
from sklearn.model_selection import ParameterGrid

from mkclust.bench.rows import canonical
from mkclust.datasets import CATALOG
from mkclust.datasets.read import find_entry
from mkclust.files import errors_of
from mkclust.fit import MultipleKernelClusterer
from mkclust.fit.rounding import ROUNDINGS
from mkclust.methods import METHODS
from mkclust.parameters import Choice, Count, Flag, Number, Rule
from mkclust.text import did_you_mean

# The reference that uses the true classes: k-means on the best of all single kernels.
BEST_SINGLE_KERNEL = "best-single-kernel"
# The input of a clusterer that is not a method on kernels.
INPUTS = ("concatenated", "views", "kernels", "average-kernel")
# Parameters that the benchmark sets for methods on kernels; it sets the first for all
# clusterers.
RESERVED = (
    "random_state",
    "n_clusters",
    "kernels",
    "center",
    "normalize",
    "psd",
    "n_init",
    "rounding",
)


class PlanError(ValueError):
    """A plan has a mistake; the message names the file and the key."""


def _is_grid(value: Any) -> bool:
    """Return whether a table gives lists of values, or names a grid."""
    if not isinstance(value, dict):
        return value == "authors"
    return all(isinstance(each, list) and each for each in value.values())


def _is_text(value: Any) -> bool:
    """Return whether a value is a text that is not empty."""
    return isinstance(value, str) and value != ""


def _is_list(value: Any) -> bool:
    """Return whether a value is a list that is not empty."""
    return isinstance(value, list) and value != []


def _is_table(value: Any) -> bool:
    """Return whether a value is a table of TOML."""
    return isinstance(value, dict)


def _is_seed(value: Any) -> bool:
    """Return whether a value is an integer that generators take."""
    is_integer = type(value) is int
    return is_integer and 0 <= value < 2**31


# The values of keys for which no rule of parameters fits.
_TEXT = Rule(_is_text, "pass a text")
_LIST = Rule(_is_list, "list names or tables")
_POSITIVE = Number(0, open_low=True)


@dataclass(frozen=True)
class DatasetEntry:
    """A data set of a plan, by a name that :func:`mkclust.datasets.load` knows."""

    name: Annotated[str, _TEXT]  # by default that of the file
    path: Annotated[str, _TEXT] = ""  # of the file, relative to the plan
    # Square arrays in the file are kernels.
    precomputed: Annotated[bool, Flag()] = False
    # The variable of the file that holds the classes; by default y, Y, gnd or labels.
    labels: Annotated[str | None, _TEXT] = None
    # By default the number of classes.
    n_clusters: Annotated[int | None, Count()] = None
    max_settings: Annotated[int | None, Count()] = None  # of the grid of every method


@dataclass(frozen=True)
class MethodEntry:
    """A method of a plan, with a grid of settings in addition to its default."""

    name: Annotated[str, _TEXT]  # in the rows; by default that of the method
    # A key of METHODS, a reference, or "package.module:Class".
    method: Annotated[str, _TEXT]
    # Of all settings.
    parameters: Annotated[
        dict[str, Any], Rule(_is_table, "pass a table, such as {reg = 0.5}")
    ] = field(default_factory=dict)
    # All points are run.
    grid: Annotated[
        dict[str, list],
        Rule(
            _is_grid, 'pass a table of lists, such as {reg = [0.5, 1.0]}, or "authors"'
        ),
    ] = field(default_factory=dict)
    # Empty: solved on the kernels of the data.
    input: Annotated[str, Choice(INPUTS)] = ""
    max_samples: Annotated[int | None, Count()] = None  # larger data sets are skipped
    # A larger grid is thinned evenly.
    max_settings: Annotated[int | None, Count()] = None

    @property
    def source(self) -> str:
        """What the entry runs, without parameters."""
        if self.input:
            return f"{self.method} on {self.input}"
        return self.method

    @property
    def oracle(self) -> bool:
        """Whether the true classes choose the result."""
        return self.method == BEST_SINGLE_KERNEL

    def estimator(self) -> type:
        """Return the class behind the entry."""
        name = "avg-kkm"
        if not self.oracle:
            name = self.method

        return METHODS.get(name) or import_class(name)

    def settings(
        self, max_settings: int | None, n_kernels: int
    ) -> list[dict[str, Any]]:
        """Return the default setting, then the grid, as the parameters to set."""
        if self.oracle:
            return [{"kernel": index} for index in range(n_kernels)]
        limits = [each for each in (max_settings, self.max_settings) if each]
        fields: Mapping[str, Any] = {}
        if not self.input:
            fields = inspect.signature(self.estimator()).parameters

        grid = ParameterGrid(shorten_grid(self.grid, min(limits, default=None)))
        unique: dict[str, dict[str, Any]] = {}
        for point in ({}, *grid):
            setting = self.parameters | point
            for name, value in list(setting.items()):
                if name in fields and fields[name].default == value:
                    del setting[name]
            unique.setdefault(canonical(setting), setting)
        return list(unique.values())


@dataclass(frozen=True)
class Plan:
    """What a benchmark runs: data sets x methods x settings x repetitions."""

    datasets: Annotated[tuple[DatasetEntry, ...], _LIST]
    methods: Annotated[tuple[MethodEntry, ...], _LIST]
    # Of the default setting and the best ones.
    repetitions: Annotated[int, Count()] = 50
    grid_repetitions: Annotated[int, Count()] = 5  # by which grid points are compared
    # Of the first repetition; the next ones count on.
    seed: Annotated[int, Rule(_is_seed, "pass an integer below 2**31")] = 0
    # Starts of k-means in a repetition; the best one counts.
    n_init: Annotated[int, Count()] = 10
    # How k-means starts.
    init: Annotated[str, Choice(("random", "k-means++"))] = "random"
    # Which rows k-means clusters, as the parameter of methods; "unit" is the papers'
    # way.
    rounding: Annotated[str, Choice(ROUNDINGS)] = "unit"
    # < 1: refits on this share.
    resample: Annotated[float, Number(0, 1, open_low=True)] = 1.0
    time_limit: Annotated[float | None, _POSITIVE] = None  # seconds of a solve
    memory_limit: Annotated[float | None, _POSITIVE] = None  # GB of a process
    threads: Annotated[int, Count()] = 1  # of a process
    # If a data set is not available.
    missing: Annotated[str, Choice(("error", "skip"))] = "error"
    loaders: Annotated[str, _TEXT] = ""  # a Python file that adds data sets to CATALOG
    # Of the plan; paths are relative to it.
    folder: Path = field(default=Path(), compare=False)


@cache
def import_loaders(path: Path) -> None:
    """Run a Python file that adds data sets to the catalog, once per process."""
    runpy.run_path(str(path), run_name=f"mkclust loaders {path}")


def import_class(text: str) -> type:
    """Import the clusterer "package.module:Class", which runs the module's code.

    The module is installed, or in the current folder.
    """
    module, _, name = text.partition(":")
    parts = (*module.split("."), name)
    if not all(part.isidentifier() for part in parts):
        raise ValueError(f"{text!r}: write package.module:Class")
    here = str(Path.cwd())
    if here not in sys.path:
        # Last, so that a file here never replaces a module of a library. The processes
        # of a benchmark take over this path.
        sys.path.append(here)
    try:
        imported = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise ValueError(
            f"{text!r} cannot be imported ({type(error).__name__}: {error}); install "
            f"it, or run the command in the folder where it is; this one is {here}"
        ) from None
    found = getattr(imported, name, None)
    if found is None:
        known = [key for key, value in vars(imported).items() if inspect.isclass(value)]
        file = getattr(imported, "__file__", None) or "a part of Python"
        raise ValueError(
            f"{module} ({file}) has no class {name!r}; {_nearest(name, known)}"
        )
    if not inspect.isclass(found) or not hasattr(found, "fit_predict"):
        raise ValueError(
            f"{text} is not a scikit-learn clusterer: it has no fit_predict"
        )
    return found


def shorten_grid(grid: Mapping[str, list], most: int | None) -> dict[str, list]:
    """Return a grid of at most `most` points; the longest axes are thinned first."""
    counts = {name: len(values) for name, values in grid.items()}
    while most is not None and math.prod(counts.values()) > most:
        counts[max(counts, key=counts.__getitem__)] -= 1
    shorter = {}
    for name, values in grid.items():
        places = np.linspace(0, len(values) - 1, counts[name])
        if counts[name] == 1:
            places = np.array([len(values) // 2])
        chosen = np.rint(places)
        shorter[name] = [values[int(place)] for place in chosen]
    return shorter


def read_plan(path: str | Path) -> Plan:
    """Read a plan from a TOML file, check all of it, and import its classes.

    Parameters
    ----------
    path : str or path-like
        The plan. ``datasets`` and ``methods`` are lists; an entry is a name or a table.

    Raises
    ------
    PlanError
        With the key of a mistake, and the nearest known name instead of an unknown one.
    """
    path = Path(path)
    try:
        with errors_of(path):
            text = path.read_text(encoding="utf-8-sig")
        return _plan(tomllib.loads(text), path.parent)
    except (PlanError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PlanError(f"{path}: {error}") from None


def _plan(content: dict[str, Any], folder: Path) -> Plan:
    """Return the plan that a file contains, all of it checked."""
    content = {"datasets": None, "methods": None} | content
    _check(content, Plan)
    kinds = {"datasets": ("name", DatasetEntry), "methods": ("method", MethodEntry)}
    for key, (short, kind) in kinds.items():
        content[key] = [
            {short: item} if isinstance(item, str) else item for item in content[key]
        ]
        for table in content[key]:
            if not isinstance(table, dict):
                _refuse(key, f"has the entry {table!r}; write a name or a table")
            _check(table, kind)
    if "loaders" in content:
        file = (folder / content["loaders"]).resolve()
        try:
            import_loaders(file)
        except Exception as error:
            _refuse(
                "loaders", f"{file}: cannot be run ({type(error).__name__}: {error})"
            )
    content["datasets"] = tuple(
        _dataset(table, folder) for table in content["datasets"]
    )
    names = {"datasets": [entry.name for entry in content["datasets"]]}
    names["methods"] = [_method_name(table) for table in content["methods"]]
    for key, found in names.items():
        twice = [name for name in found if found.count(name) > 1]
        if twice:
            _refuse(key, f"has {twice[0]!r} twice; give one of them another name")
    # Classes are imported last, when everything else has been checked.
    pairs = map(_method, content["methods"], names["methods"])
    content["methods"] = tuple(pairs)
    return Plan(**content, folder=folder)


def _check(table: Mapping[str, Any], kind: type) -> None:
    """Refuse keys of a table that a class does not have, and wrong values."""
    hints = get_type_hints(kind, include_extras=True).items()
    rules = {
        name: hint.__metadata__[0]
        for name, hint in hints
        if hasattr(hint, "__metadata__")
    }
    for key, value in table.items():
        if key not in rules:
            _refuse(key, f"unknown key; {_nearest(key, rules)}")
        if not rules[key].holds(value):
            _refuse(key, f"is {value!r}; {rules[key].advice}")


def _dataset(table: dict[str, Any], folder: Path) -> DatasetEntry:
    """Return a data set of a plan, found in the catalog or the plan's folder."""
    if "path" in table:
        # A part of a file is FILE::NAME.
        file = folder / table["path"].partition("::")[0]
        if not file.is_file():
            _refuse("path", f"{table['path']}: no such file")
        return DatasetEntry(**{"name": file.stem} | table)
    name = table.get("name", "")
    entry = find_entry(name)
    if entry is None:
        known = _nearest(name, CATALOG)
        advice = f'{known}; of a file write {{ path = "{name}" }}'
        _refuse("datasets", f"{name!r}: unknown data set; {advice}")
    return DatasetEntry(**table | {"name": entry.name})


def _method_name(table: dict[str, Any]) -> str:
    """Return the name of a method of a plan in its rows."""
    method = table.get("method", "")
    known = (*METHODS, BEST_SINGLE_KERNEL)
    if ":" not in method and method not in known:
        _refuse("methods", f"{method!r}: unknown method; {_nearest(method, known)}")
    return table.get("name", method.rpartition(":")[2].lower())


def _method(table: dict[str, Any], name: str) -> MethodEntry:
    """Return a method of a plan, with its class imported and its grid checked."""
    entry = MethodEntry(**table | {"name": name})
    if entry.oracle:
        for key in table.keys() & {"parameters", "grid", "input", "max_settings"}:
            _refuse(key, f"{entry.method} has no such key; remove it")
        return entry
    try:
        estimator = entry.estimator()
    except ValueError as error:
        _refuse("methods", str(error))
    if not entry.input and not issubclass(estimator, MultipleKernelClusterer):
        entry = replace(entry, input=INPUTS[0])
    if table.get("grid") == "authors":
        if not hasattr(estimator, "GRID"):
            _refuse("grid", f'"authors": {estimator.__name__} has no GRID; write lists')
        entry = replace(entry, grid=dict(estimator.GRID))
    reserved: tuple[str, ...] = RESERVED
    if entry.input:
        reserved = RESERVED[:1]

    for name in (entry.parameters.keys() | entry.grid) & set(reserved):
        _refuse("methods", f"{entry.name}: {name} is set by the benchmark; remove it")
    try:
        for setting in entry.settings(None, 1):
            _check_names(entry, setting, estimator)
            model = estimator(**setting)
            if not entry.input:
                model.check_parameters()
    except (ValueError, TypeError) as error:
        _refuse("methods", f"{entry.name}: {error}")
    return entry


def _check_names(
    entry: MethodEntry, setting: Mapping[str, Any], estimator: type
) -> None:
    """Refuse parameters that a clusterer does not have."""
    fields = inspect.signature(estimator).parameters
    if any(each.kind is each.VAR_KEYWORD for each in fields.values()):
        return
    known = [name for name in fields if entry.input or name not in RESERVED]
    for name in setting:
        if name not in fields:
            _refuse(
                "methods",
                f"{entry.name}: {name!r}: unknown parameter; {_nearest(name, known)}",
            )


def _nearest(name: str, known: Collection[str]) -> str:
    if not known:
        return "it has none"
    near = did_you_mean(name, known).strip(" ()")
    return near or f"choose among {', '.join(known)}"


def _refuse(key: str, message: str) -> NoReturn:
    raise PlanError(f"{key}: {message}")
