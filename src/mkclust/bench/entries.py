"""The methods of a plan: the library's own, or any scikit-learn clusterer."""

import difflib
import importlib
import inspect
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from mkclust.bench.rows import canonical
from mkclust.methods import METHODS, MultipleKernelClusterer

Kind = Literal["kernel-method", "single-kernel", "estimator", "concatenated-kmeans"]

# Reference points that every comparison should have.
REFERENCES: dict[str, Kind] = {
    "best-single-kernel": "single-kernel",
    "concatenated-kmeans": "concatenated-kmeans",
}

# Parameters that are the protocol's, the same for all methods; methods on kernels have more.
RESERVED = frozenset({"random_state"})
RESERVED_ON_KERNELS = RESERVED.union(
    ("n_clusters", "kernels", "center", "normalize", "psd", "n_init")
)


@dataclass(frozen=True)
class MethodEntry:
    """A method of a plan.

    Attributes
    ----------
    name : str
        Its name in the rows.
    kind : str
        "kernel-method" (of ``mkclust.METHODS``, or a class derived as these are),
        "single-kernel" (k-means on every kernel alone, the best chosen by the true classes),
        "concatenated-kmeans" or "estimator" (any other scikit-learn clusterer).
    method : str
        A key of ``METHODS``, a reference point, or "package.module:Class".
    parameters : dict
        Parameters of all its settings.
    grid : dict of str to list
        Parameters to vary; every combination is a setting beside the default one.
    input : str
        What another clusterer is fitted on: "concatenated" (standardized features side by side),
        "views", "kernels" or "average-kernel".
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
    max_samples: int | None = None
    max_settings: int | None = None

    @property
    def source(self) -> str:
        """What the entry runs, in a few words; parameters apart."""
        return f"{self.method} on {self.input}" if self.kind == "estimator" else self.method

    @property
    def oracle(self) -> bool:
        """Whether the entry exists only by a choice that the true classes make."""
        return self.kind == "single-kernel"

    @property
    def partitions(self) -> bool:
        """Whether a solve gives a relaxed partition, to be discretized again and again."""
        return self.kind in ("kernel-method", "single-kernel")

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
        grid = shorten_grid(self.grid, min(limits, default=None))
        defaults = _defaults(self.estimator()) if self.kind == "kernel-method" else {}
        points = itertools.product(*grid.values())
        settings = [{}, *(dict(zip(grid, values, strict=True)) for values in points)]
        unique: list[dict[str, Any]] = []
        for point in settings:
            # What equals the defaults of the class is not written down, so that a grid point that
            # is the default is known for it.
            setting = {
                name: value
                for name, value in (self.parameters | point).items()
                if name not in defaults or defaults[name] != value
            }
            if setting not in unique:
                unique.append(setting)
        return unique


def shorten_grid(grid: Mapping[str, list], most: int | None) -> dict[str, list]:
    """Return a grid of at most so many points that spans the whole of it.

    The longest axis is shortened first, and evenly: its ends stay.

    Examples
    --------
    >>> from mkclust.bench.entries import shorten_grid
    >>> shorten_grid({"reg": [1, 2, 4, 8, 16], "neighbors": [0.1, 0.2]}, 6)
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
    value = getattr(imported, name, None)
    if value is None:
        known = [key for key, each in vars(imported).items() if inspect.isclass(each)]
        near = difflib.get_close_matches(name, known, n=1)
        advice = f"did you mean {module}:{near[0]}?" if near else "check the name"
        raise ValueError(f"method: {module} has no class {name!r}; {advice}")
    needed = ("fit_predict", "get_params", "set_params")
    if not inspect.isclass(value) or not all(hasattr(value, method) for method in needed):
        raise ValueError(
            f"method: {text} is not a scikit-learn clusterer (no {' or '.join(needed)})"
        )
    return value


def find_entry(table: dict[str, Any]) -> MethodEntry:
    """Return the entry that a plan describes; a class that it names is left to `import_entry`.

    A ValueError begins with the key of the plan that is wrong.
    """
    method = table["method"]
    if ":" in method:
        check_class_name(method)
        name = method.rpartition(":")[2].lower()
        others = {key: value for key, value in table.items() if key != "grid"}
        return MethodEntry(**{"name": name, "kind": "estimator"} | others)
    if method not in {**METHODS, **REFERENCES}:
        raise ValueError(f"method: {method!r}: unknown method; {_advise(method)}")
    table = {"name": method} | table
    if method not in REFERENCES:
        if "input" in table:
            raise ValueError(
                f"input: {table['name']} takes kernels, and has no such key; remove it"
            )
        return _checked_entry("kernel-method", table)
    if extra := sorted(table.keys() & {"grid", "parameters", "input", "max_settings"}):
        raise ValueError(f"{extra[0]}: {table['name']} has no such key; remove it")
    return MethodEntry(kind=REFERENCES[method], **table)


def _advise(method: str) -> str:
    """Return which method may have been meant, or all there are."""
    known = [*METHODS, *REFERENCES]
    near = difflib.get_close_matches(method.lower(), known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"choose among {', '.join(known)}"


def import_entry(table: Mapping[str, Any], name: str) -> MethodEntry:
    """Return the entry of a class that a plan names, having imported it; see `find_entry`.

    A class derived from ``MultipleKernelClusterer`` is solved on the kernels of the data, unless
    the plan gives it another input.
    """
    on_kernels = issubclass(import_class(table["method"]), MultipleKernelClusterer)
    kind: Kind = "kernel-method" if on_kernels and "input" not in table else "estimator"
    return _checked_entry(kind, {**table, "name": name})


def _checked_entry(kind: Kind, table: dict[str, Any]) -> MethodEntry:
    """Return the entry of a class, its settings checked."""
    if table.get("grid") == "authors":
        method = table["method"]
        grid = getattr(METHODS.get(method) or import_class(method), "GRID", None)
        if grid is None:
            raise ValueError('grid: "authors" is known for the methods of mkclust only; give lists')
        table = table | {"grid": dict(grid)}
    entry = MethodEntry(kind=kind, **table)
    _check_names(entry, _parameters(entry))
    if kind == "kernel-method":
        _check_values(entry)
    return entry


def _parameters(entry: MethodEntry) -> dict[str, Any]:
    """Return all parameters of an entry's class, refusing values that it refuses itself."""
    try:
        parameters = entry.estimator()(**entry.parameters).get_params()
        canonical({**entry.parameters, **entry.grid})  # must be text to be told from another
    except (ImportError, ValueError) as error:
        raise ValueError(f"parameters: {error}") from None
    except TypeError as error:
        parameters = _defaults(entry.estimator())
        if set(entry.parameters) <= set(parameters):
            raise ValueError(f"parameters: {error}") from None
    except Exception as error:  # other people's code
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"parameters: {entry.method} cannot be made ({reason})") from None
    return parameters


def _check_names(entry: MethodEntry, parameters: Mapping[str, Any]) -> None:
    """Refuse parameters that a class does not have, or that are the protocol's."""
    reserved = RESERVED_ON_KERNELS if entry.kind == "kernel-method" else RESERVED
    for key, names in (("parameters", entry.parameters), ("grid", entry.grid)):
        for name in names:
            if name not in parameters:
                near = difflib.get_close_matches(name, parameters, n=1)
                advice = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(parameters)}"
                raise ValueError(f"{key}: {entry.name} has no parameter {name!r}; {advice}")
            if name in reserved:
                raise ValueError(f"{key}: {name} is set by the benchmark; remove it")


def _check_values(entry: MethodEntry) -> None:
    """Refuse values that a method refuses before any data are there."""
    points = [{name: value} for name, values in entry.grid.items() for value in values]
    for key, setting in (("parameters", entry.parameters), *(("grid", point) for point in points)):
        try:
            entry.estimator()(**setting).check_parameters()
        except (ValueError, TypeError) as error:
            raise ValueError(f"{key}: {error}") from None


def _defaults(estimator: type) -> dict[str, Any]:
    """Return the parameters of a class, with their defaults."""
    parameters = inspect.signature(estimator).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters}
