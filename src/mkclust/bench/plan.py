"""A plan is data: data sets, methods, settings and the number of repetitions."""

import importlib
import inspect
import math
import runpy
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_type_hints

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
from mkclust.plots.style import when
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


# The values of keys for which no rule of parameters fits.
_TEXT = Rule(lambda value: isinstance(value, str) and value != "", "pass a text")
_LIST = Rule(
    lambda value: isinstance(value, list) and value != [], "list names or tables"
)
_TABLE = Rule(
    lambda value: isinstance(value, dict), "pass a table, such as {reg = 0.5}"
)
_GRID = Rule(
    lambda value: (
        value == "authors"
        or (
            isinstance(value, dict)
            and all(isinstance(each, list) and each for each in value.values())
        )
    ),
    'pass a table of lists, such as {reg = [0.5, 1.0]}, or "authors"',
)
_SEED = Rule(
    lambda value: type(value) is int and 0 <= value < 2**31,
    "pass an integer below 2**31",
)
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
    parameters: Annotated[dict[str, Any], _TABLE] = field(default_factory=dict)
    # All points are run.
    grid: Annotated[dict[str, list], _GRID] = field(default_factory=dict)
    # Empty: solved on the kernels of the data.
    input: Annotated[str, Choice(INPUTS)] = ""
    max_samples: Annotated[int | None, Count()] = None  # larger data sets are skipped
    # A larger grid is thinned evenly.
    max_settings: Annotated[int | None, Count()] = None

    @property
    def source(self) -> str:
        """What the entry runs, without parameters."""
        return self.method + when(self.input, f" on {self.input}")

    @property
    def oracle(self) -> bool:
        """Whether the true classes choose the result."""
        return self.method == BEST_SINGLE_KERNEL

    def estimator(self) -> type:
        """Return the class behind the entry."""
        known = {BEST_SINGLE_KERNEL: METHODS["avg-kkm"], **METHODS}
        return known.get(self.method) or import_class(self.method)

    def settings(
        self, max_settings: int | None, n_kernels: int
    ) -> list[dict[str, Any]]:
        """Return the default setting, then the grid, as the parameters to set."""
        if self.oracle:
            return [{"kernel": index} for index in range(n_kernels)]
        limits = [each for each in (max_settings, self.max_settings) if each]
        defaults = {}
        if not self.input:
            fields = inspect.signature(self.estimator()).parameters
            defaults = {name: each.default for name, each in fields.items()}

        grid = ParameterGrid(shorten_grid(self.grid, min(limits, default=None)))
        unique: dict[str, dict[str, Any]] = {}
        for point in ({}, *grid):
            setting = {
                name: value
                for name, value in (self.parameters | point).items()
                if name not in defaults or defaults[name] != value
            }
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
    seed: Annotated[int, _SEED] = 0
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


def import_class(text: str) -> Any:
    """Import the clusterer "package.module:Class", which runs the module's code.

    The module is installed, or in the current folder.
    """
    module, _, name = text.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        # Last, so that a file here never replaces a module of a library. The processes
        # of a benchmark take over this path.
        sys.path.append(here)
    try:
        imported = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise ValueError(
            f"{text!r} cannot be imported ({type(error).__name__}: {error}); write "
            "package.module:Class, and install it, or run the command in the folder "
            f"where it is; this one is {here}"
        ) from None
    found = getattr(imported, name, None)
    if not hasattr(found, "fit_predict"):
        members = vars(imported).items()
        known = [key for key, value in members if hasattr(value, "fit_predict")]
        raise ValueError(
            f"{text!r} is not a scikit-learn clusterer: {module} has no class of this "
            f"name with fit_predict{did_you_mean(name, known)}"
        )
    return found


def shorten_grid(grid: Mapping[str, list], most: int | None) -> dict[str, list]:
    """Return a grid of at most `most` points; the longest axes are thinned first."""
    counts = {name: len(values) for name, values in grid.items()}
    while most is not None and math.prod(counts.values()) > most:
        counts[max(counts, key=counts.__getitem__)] -= 1
    shorter = {}
    for name, values in grid.items():
        places = np.rint(np.linspace(0, len(values) - 1, counts[name]))
        if counts[name] == 1:
            places = np.array([len(values) // 2])
        shorter[name] = [values[int(place)] for place in places]
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
    except ValueError as error:
        raise PlanError(f"{path}: {error}") from None


def _plan(content: dict[str, Any], folder: Path) -> Plan:
    """Return the plan that a file contains, all of it checked."""
    content = {"datasets": None, "methods": None} | content
    _check(content, Plan)
    for key, short, kind in (
        ("datasets", "name", DatasetEntry),
        ("methods", "method", MethodEntry),
    ):
        content[key] = [
            {short: item} if isinstance(item, str) else item for item in content[key]
        ]
        for table in content[key]:
            if not isinstance(table, dict):
                raise ValueError(f"{key}: {table!r}: write a name or a table")
            _check(table, kind)
    if "loaders" in content:
        import_loaders((folder / content["loaders"]).resolve())
    datasets = [_dataset(table, folder) for table in content["datasets"]]
    names = [_method_name(table) for table in content["methods"]]
    for key, each in (("datasets", [d.name for d in datasets]), ("methods", names)):
        twice = [name for name in each if each.count(name) > 1]
        if twice:
            raise ValueError(
                f"{key}: has {twice[0]!r} twice; give one of them another name"
            )
    # Classes are imported last, when everything else has been checked.
    methods = map(_method, content["methods"], names)
    return Plan(
        **content | {"datasets": tuple(datasets), "methods": tuple(methods)},
        folder=folder,
    )


def _check(table: Mapping[str, Any], kind: type) -> None:
    """Refuse keys of a table that a class does not have, and wrong values."""
    rules = {
        name: hint.__metadata__[0]
        for name, hint in get_type_hints(kind, include_extras=True).items()
        if hasattr(hint, "__metadata__")
    }
    for key, value in table.items():
        if key not in rules:
            raise ValueError(
                f"{key}: unknown key; check its name{did_you_mean(key, rules)}"
            )
        if not rules[key].holds(value):
            raise ValueError(f"{key}: is {value!r}; {rules[key].advice}")


def _dataset(table: dict[str, Any], folder: Path) -> DatasetEntry:
    """Return a data set of a plan, found in the catalog or the plan's folder."""
    if "path" in table:
        # A part of a file is FILE::NAME.
        file = folder / table["path"].partition("::")[0]
        if not file.is_file():
            raise ValueError(f"path: {table['path']}: no such file")
        return DatasetEntry(**{"name": file.stem} | table)
    name = table.get("name", "")
    entry = find_entry(name)
    if entry is None:
        raise ValueError(
            f"datasets: {name!r}: unknown data set; choose among {', '.join(CATALOG)}"
            f'{did_you_mean(name, CATALOG)}, or of a file write {{ path = "{name}" }}'
        )
    return DatasetEntry(**table | {"name": entry.name})


def _method_name(table: dict[str, Any]) -> str:
    """Return the name of a method of a plan in its rows."""
    method = table.get("method", "")
    known = (*METHODS, BEST_SINGLE_KERNEL)
    if ":" not in method and method not in known:
        raise ValueError(
            f"methods: {method!r}: unknown method; choose among {', '.join(known)}"
            f"{did_you_mean(method, known)}"
        )
    return table.get("name", method.rpartition(":")[2].lower())


def _method(table: dict[str, Any], name: str) -> MethodEntry:
    """Return a method of a plan, with its class imported and its grid checked."""
    entry = MethodEntry(**table | {"name": name})
    if entry.oracle:
        for key in table.keys() & {"parameters", "grid", "input", "max_settings"}:
            raise ValueError(f"{key}: {entry.method} has no such key; remove it")
        return entry
    try:
        estimator = entry.estimator()
    except ValueError as error:
        raise ValueError(f"methods: {error}") from None
    if not entry.input and not issubclass(estimator, MultipleKernelClusterer):
        entry = replace(entry, input=INPUTS[0])
    if table.get("grid") == "authors":
        if not hasattr(estimator, "GRID"):
            raise ValueError(f"grid: {entry.method} has no GRID; write lists")
        entry = replace(entry, grid=dict(estimator.GRID))
    try:
        _check_settings(entry, estimator)
    except (ValueError, TypeError) as error:
        raise ValueError(f"methods: {name}: {error}") from None
    return entry


def _check_settings(entry: MethodEntry, estimator: Any) -> None:
    """Refuse parameters that a clusterer does not have, and wrong values."""
    reserved = RESERVED[:1] if entry.input else RESERVED
    fields = inspect.signature(estimator).parameters
    known = [each for each in fields if each not in reserved]
    for key in entry.parameters.keys() | entry.grid:
        if key in reserved:
            raise ValueError(f"{key} is set by the benchmark; remove it")
        if key not in known:
            raise ValueError(
                f"{key!r}: unknown parameter; check its name{did_you_mean(key, known)}"
            )
    for setting in entry.settings(None, 1):
        model = estimator(**setting)
        if not entry.input:
            model.check_parameters()
