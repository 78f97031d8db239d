"""A plan is data: which data sets, which methods, which settings, how many repetitions."""

import importlib
import importlib.util
import inspect
import itertools
import math
import sys
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NoReturn, get_type_hints

import numpy as np

from mkclust.bench.rows import canonical
from mkclust.datasets import CATALOG
from mkclust.datasets.read import find_entry
from mkclust.methods import METHODS, MultipleKernelClusterer
from mkclust.parameters import Choice, Count, Flag, Number, Rule
from mkclust.text import did_you_mean

# Reference points for every comparison: k-means on every kernel alone, of which the true classes
# choose the best, and k-means on all standardized features side by side.
BEST_SINGLE_KERNEL, CONCATENATED = "best-single-kernel", "concatenated-kmeans"

# What a clusterer that is not a method on kernels can be fitted on.
INPUTS = ("concatenated", "views", "kernels", "average-kernel")

# Parameters that the benchmark sets; it sets the second group for methods on kernels only.
RESERVED = ("random_state",)
RESERVED_ON_KERNELS = ("n_clusters", "kernels", "center", "normalize", "psd", "n_init")

# The largest seed; k-means takes no more than twice this.
MAX_SEED = 2**31 - 1


class PlanError(ValueError):
    """A plan has a mistake; the message names the file and the key."""


def _is_grid(value: Any) -> bool:
    lists = isinstance(value, dict) and all(isinstance(v, list) and v for v in value.values())
    return value == "authors" or lists


# Values that the keys of a plan may have.
_TEXT = Rule(lambda value: isinstance(value, str) and value != "", "pass a text")
_LIST = Rule(
    lambda value: isinstance(value, list) and value != [], "pass a list of names or tables"
)
_TABLE = Rule(lambda value: isinstance(value, dict), "pass a table, such as {reg = 0.5}")
_GRID = Rule(_is_grid, 'pass a table of lists, such as {reg = [0.5, 1.0]}, or "authors"')
_SEED = Rule(lambda value: type(value) is int and 0 <= value <= MAX_SEED, "pass an integer")
_POSITIVE = Number(0, open_low=True)


@dataclass(frozen=True)
class DatasetEntry:
    """A data set of a plan.

    Attributes
    ----------
    name : str
        A name that :func:`mkclust.datasets.load` knows, or the name for the data in `path`.
    path : str
        A file to read instead, relative to the plan.
    precomputed : bool
        Whether square arrays in that file are kernels.
    n_clusters : int or None
        Number of clusters; by default that of the classes.
    max_settings : int or None
        Maximum number of grid points of a method on this data set.
    """

    name: Annotated[str, _TEXT]
    path: Annotated[str, _TEXT] = ""
    precomputed: Annotated[bool, Flag()] = False
    n_clusters: Annotated[int | None, Count()] = None
    max_settings: Annotated[int | None, Count()] = None


@dataclass(frozen=True)
class MethodEntry:
    """A method of a plan.

    Attributes
    ----------
    name : str
        Its name in the rows.
    method : str
        A key of ``METHODS``, "best-single-kernel", or "package.module:Class".
    parameters : dict
        Parameters of all its settings.
    grid : dict of str to list
        Parameters to vary; every combination is a setting beside the default one.
    input : str
        What a scikit-learn clusterer is fitted on: "concatenated" (standardized features side by
        side), "views", "kernels" or "average-kernel". Empty for methods that are solved on the
        kernels of the data.
    max_samples : int or None
        Larger data sets are skipped.
    max_settings : int or None
        Maximum number of grid points; a larger grid is thinned evenly.
    """

    name: Annotated[str, _TEXT]
    method: Annotated[str, _TEXT]
    parameters: Annotated[dict[str, Any], _TABLE] = field(default_factory=dict)
    grid: Annotated[dict[str, list], _GRID] = field(default_factory=dict)
    input: Annotated[str, Choice(INPUTS)] = ""
    max_samples: Annotated[int | None, Count()] = None
    max_settings: Annotated[int | None, Count()] = None

    @property
    def source(self) -> str:
        """What the entry runs, without parameters."""
        return f"{self.method} on {self.input}" if self.input else self.method

    @property
    def oracle(self) -> bool:
        """Whether the true classes choose the result."""
        return self.method == BEST_SINGLE_KERNEL

    def estimator(self) -> type:
        """Return the class behind the entry."""
        name = "avg-kkm" if self.oracle else self.method
        return METHODS.get(name) or import_class(name)

    def settings(self, max_settings: int | None, n_kernels: int) -> list[dict[str, Any]]:
        """Return the settings to run, without repetition: the default first, then the grid.

        A setting has the parameters that differ from the defaults of the class.
        """
        if self.oracle:
            return [{"kernel": index} for index in range(n_kernels)]
        limits = [limit for limit in (max_settings, self.max_settings) if limit is not None]
        grid = shorten_grid(self.grid, min(limits, default=None))
        defaults = {} if self.input else _defaults(self.estimator())
        points = ({}, *(dict(zip(grid, v, strict=True)) for v in itertools.product(*grid.values())))
        unique: dict[str, dict[str, Any]] = {}
        for point in points:
            values = (self.parameters | point).items()
            setting = {n: v for n, v in values if n not in defaults or defaults[n] != v}
            unique.setdefault(canonical(setting), setting)
        return list(unique.values())


@dataclass(frozen=True)
class Plan:
    """What a benchmark runs: data sets x methods x settings x repetitions.

    Attributes
    ----------
    datasets : tuple of DatasetEntry
        Data sets.
    methods : tuple of MethodEntry
        Methods with their settings.
    repetitions : int
        Repetitions of a method's default setting and of the best of its grid by each score.
    grid_repetitions : int
        Repetitions by which grid points are compared.
    seed : int
        Seed of the first repetition; the next ones have the following numbers.
    n_init : int
        Starts of k-means in a repetition; the best one counts.
    init : str
        How k-means starts: "random" (from random samples) or "k-means++".
    resample : float
        1: solve once on all samples and discretize repeatedly. Less than 1: every repetition is a
        refit on that share of the samples, the same for all methods.
    time_limit : float or None
        Maximum seconds of a solve.
    memory_limit : float or None
        Maximum GB of a process.
    threads : int
        Threads of a process.
    missing : str
        What to do about data sets that are not available: "error" or "skip".
    loaders : str
        A Python file, relative to the plan, that adds data sets to ``mkclust.datasets.CATALOG``.
    folder : Path
        The folder of the plan, which its paths are relative to.
    """

    datasets: Annotated[tuple[DatasetEntry, ...], _LIST]
    methods: Annotated[tuple[MethodEntry, ...], _LIST]
    repetitions: Annotated[int, Count()] = 50
    grid_repetitions: Annotated[int, Count()] = 5
    seed: Annotated[int, _SEED] = 0
    n_init: Annotated[int, Count()] = 10
    init: Annotated[str, Choice(("random", "k-means++"))] = "random"
    resample: Annotated[float, Number(0, 1, open_low=True)] = 1.0
    time_limit: Annotated[float | None, _POSITIVE] = None
    memory_limit: Annotated[float | None, _POSITIVE] = None
    threads: Annotated[int, Count()] = 1
    missing: Annotated[str, Choice(("error", "skip"))] = "error"
    loaders: Annotated[str, _TEXT] = ""
    folder: Path = field(default=Path(), compare=False)

    @property
    def protocol(self) -> dict[str, Any]:
        """What must be the same for rows to be comparable."""
        names = ("seed", "n_init", "init", "resample", "grid_repetitions", "threads")
        return {name: getattr(self, name) for name in names}


def find_datasets(plan: Plan) -> tuple[list[DatasetEntry], list[str]]:
    """Return the available data sets of a plan, under the names of what is read, and the others."""
    present: dict[str, DatasetEntry] = {}
    missing: list[str] = []
    for entry in plan.datasets:
        name = entry.name if entry.path else CATALOG[entry.name].find()
        if name is None:
            missing.append(entry.name)
        else:
            present.setdefault(name, replace(entry, name=name))
    return list(present.values()), missing


@cache
def import_loaders(path: Path) -> None:
    """Run a Python file that adds data sets to the catalog, once per process."""
    name = f"mkclust loaders {path}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError("no such Python file")
    # Classes that it defines look their module up by its name.
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])


def import_class(text: str) -> type:
    """Import the clusterer that "package.module:Class" names; this runs the module's code."""
    module, _, name = text.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), name)):
        raise ValueError(f"{text!r}: write package.module:Class")
    try:
        imported = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        advice = "; install it, or add its folder to PYTHONPATH"
        raise ValueError(
            f"{text!r} cannot be imported ({type(error).__name__}: {error})"
            + (advice if isinstance(error, ModuleNotFoundError) else "")
        ) from None
    value = getattr(imported, name, None)
    if value is None:
        known = [key for key, each in vars(imported).items() if inspect.isclass(each)]
        raise ValueError(f"{module} has no class {name!r}; {_nearest(name, known)}")
    if not inspect.isclass(value) or not hasattr(value, "fit_predict"):
        raise ValueError(f"{text} is not a scikit-learn clusterer: it has no fit_predict")
    return value


def shorten_grid(grid: Mapping[str, list], most: int | None) -> dict[str, list]:
    """Return a grid of at most `most` points: the longest axes are thinned evenly, ends stay.

    Examples
    --------
    >>> from mkclust.bench.plan import shorten_grid
    >>> shorten_grid({"reg": [1, 2, 4, 8, 16], "neighbors": [0.1, 0.2]}, 6)
    {'reg': [1, 4, 16], 'neighbors': [0.1, 0.2]}
    """
    counts = {name: len(values) for name, values in grid.items()}
    while most is not None and math.prod(counts.values()) > most:
        counts[max(counts, key=counts.__getitem__)] -= 1
    shorter = {}
    for name, values in grid.items():
        ends = (0, len(values) - 1) if counts[name] > 1 else (len(values) // 2,) * 2
        shorter[name] = [values[int(i)] for i in np.rint(np.linspace(*ends, counts[name]))]
    return shorter


def read_plan(path: str | Path) -> Plan:
    """Read a plan from a TOML file, and check all of it.

    Classes that it names are imported last, when everything else has been checked.

    Parameters
    ----------
    path : str or path-like
        The plan. ``datasets`` and ``methods`` are lists; an entry is a name or a table.

    Returns
    -------
    Plan

    Raises
    ------
    PlanError
        With the key of a mistake, and the nearest known name instead of an unknown one.
    """
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise PlanError(f"{path}: is not text ({error.reason}); a plan is a TOML file") from None
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{path}: {error}") from None
    try:
        return _plan(content, path.parent)
    except PlanError as error:
        raise PlanError(f"{path}: {error}") from None


def _plan(content: dict[str, Any], folder: Path) -> Plan:
    """Return the plan that a file describes."""
    content = {"datasets": None, "methods": None} | content
    _check(content, Plan)
    tables = _tables(content.pop("datasets"), "datasets", "name", DatasetEntry)
    methods = _tables(content.pop("methods"), "methods", "method", MethodEntry)
    if "loaders" in content:
        file = (folder / content["loaders"]).resolve()
        try:
            import_loaders(file)
        except Exception as error:
            _refuse("loaders", f"{file}: cannot be run ({type(error).__name__}: {error})")
    datasets = [_dataset(table, folder) for table in tables]
    named = [{"name": _method_name(table)} | table for table in methods]
    for key, names in (
        ("datasets", [entry.name for entry in datasets]),
        ("methods", [table["name"] for table in named]),
    ):
        if twice := [name for name in names if names.count(name) > 1]:
            _refuse(key, f"has {twice[0]!r} twice; give one of them another name")
    k_means = {k: content.get(k, getattr(Plan, k)) for k in ("n_init", "init")}
    entries = tuple(_method(table, k_means) for table in named)
    return Plan(tuple(datasets), entries, **content, folder=folder)


def _tables(items: list[Any], key: str, short: str, kind: type) -> list[dict[str, Any]]:
    """Return the entries of a list as tables; a text is the short form of one."""
    tables = [{short: item} if isinstance(item, str) else item for item in items]
    for table in tables:
        if not isinstance(table, dict):
            _refuse(key, f"has the entry {table!r}; write a name or a table")
        _check(table, kind)
    return tables


def _check(table: Mapping[str, Any], kind: type) -> None:
    """Refuse unknown keys, and values that their keys may not have."""
    hints = get_type_hints(kind, include_extras=True).items()
    rules = {name: hint.__metadata__[0] for name, hint in hints if hasattr(hint, "__metadata__")}
    for key, value in table.items():
        if key not in rules:
            _refuse(key, f"unknown key; {_nearest(key, rules)}")
        if not rules[key].holds(value):
            _refuse(key, f"is {value!r}; {rules[key].advice}")


def _dataset(table: dict[str, Any], folder: Path) -> DatasetEntry:
    if "path" in table:
        file = folder / table["path"]
        if not file.exists():  # a part of a file, perhaps: FILE::NAME
            file = folder / table["path"].rpartition("::")[0]
        if not file.is_file():
            _refuse("path", f"{table['path']}: no such file")
        return DatasetEntry(**{"name": file.stem} | table)
    if "name" not in table:
        _refuse("datasets", f"has an entry without name or path: {table}")
    entry = find_entry(table["name"])
    if entry is None:
        advice = _nearest(table["name"], CATALOG)
        _refuse("datasets", f"{table['name']!r}: unknown data set; {advice}")
    return DatasetEntry(**table | {"name": entry.name})


def _method_name(table: dict[str, Any]) -> str:
    """Return the name of a method in the rows, after a check that imports nothing."""
    method = table.get("method", "")
    known = (*METHODS, BEST_SINGLE_KERNEL, CONCATENATED)
    if ":" not in method and method not in known:
        _refuse("methods", f"{method!r}: unknown method; {_nearest(method, known)}")
    unused = {"input"} if method in METHODS else set()
    if method in known[-2:]:
        unused = {"parameters", "grid", "input", "max_settings"}
    for key in table.keys() & unused:
        _refuse(key, f"{method} has no such key; remove it")
    return method.rpartition(":")[2].lower() if ":" in method else method


def _method(table: dict[str, Any], k_means: dict[str, Any]) -> MethodEntry:
    """Return a method with its class imported and its parameters checked."""
    if table["method"] == CONCATENATED:
        table |= {"method": "sklearn.cluster:KMeans", "parameters": k_means}
    entry = MethodEntry(**table | {"grid": {}})
    if entry.oracle:
        return entry
    try:
        estimator = entry.estimator()
    except ValueError as error:
        _refuse("methods", str(error))
    if not entry.input and not issubclass(estimator, MultipleKernelClusterer):
        entry = replace(entry, input=INPUTS[0])
    grid = table.get("grid", {})
    if grid == "authors":
        grid = getattr(estimator, "GRID", None)
        if grid is None:
            _refuse("grid", f'"authors": {estimator.__name__} has no GRID; write lists')
    entry = replace(entry, grid=dict(grid))
    _check_parameters(entry, estimator)
    return entry


def _check_parameters(entry: MethodEntry, estimator: type) -> None:
    """Refuse parameters that a class does not have, or refuses before it sees data."""
    known = list(_defaults(estimator))
    reserved = RESERVED if entry.input else (*RESERVED, *RESERVED_ON_KERNELS)
    points = [{name: value} for name, values in entry.grid.items() for value in values]
    for key, setting in (("parameters", entry.parameters), *(("grid", point) for point in points)):
        for name in setting:
            if name not in known:
                advice = _nearest(name, known)
                _refuse(key, f"{entry.name} has no parameter {name!r}; {advice}")
            if name in reserved:
                _refuse(key, f"{name} is set by the benchmark; remove it")
        try:
            canonical(setting)
            model = estimator(**setting)
            if not entry.input:
                model.check_parameters()
        except (ValueError, TypeError) as error:
            _refuse(key, f"{entry.name}: {error}")


def _defaults(estimator: type) -> dict[str, Any]:
    """Return the parameters of a class, with their defaults."""
    parameters = inspect.signature(estimator).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters}


def _nearest(name: str, known: Collection[str]) -> str:
    """Return the advice that names what may have been meant."""
    return did_you_mean(name, known).strip(" ()") or f"choose among {', '.join(known)}"


def _refuse(key: str, message: str) -> NoReturn:
    raise PlanError(f"{key}: {message}")
