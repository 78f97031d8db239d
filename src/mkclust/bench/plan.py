"""A plan is data: which data sets, which methods, which settings, how many repetitions."""

import importlib.util
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mkclust.bench.entries import MethodEntry
from mkclust.datasets import CATALOG


class PlanError(ValueError):
    """Say what is wrong with a plan, in which line and at which key."""


@dataclass(frozen=True)
class DatasetEntry:
    """A data set of a plan.

    Attributes
    ----------
    name : str
        A name that :func:`mkclust.datasets.load` knows, or the name to give the data in `path`.
    path : str
        A file to read instead, relative to the plan.
    precomputed : bool
        Whether square arrays in that file are kernels.
    n_clusters : int or None
        Number of clusters; by default that of the classes.
    max_settings : int or None
        Most grid points of a method on this set.
    """

    name: str
    path: str = ""
    precomputed: bool = False
    n_clusters: int | None = None
    max_settings: int | None = None


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
        Repetitions of the settings that stand for a method: its default, the best of its grid by
        each score, the most stable one.
    grid_repetitions : int
        Repetitions by which grid points are compared.
    seed : int
        Seed of the first repetition; the next have the following numbers.
    n_init : int
        Starts of k-means in a repetition; the best counts.
    init : str
        How k-means starts: "random" (from random samples) or "k-means++".
    resample : float
        1: solve once on all samples and discretize repeatedly. Less than that: every repetition
        is a refit on that share of the samples, the same for all methods.
    time_limit : float or None
        Most seconds of a solve.
    memory_limit : float or None
        Most GB of a process.
    threads : int
        Threads of a process. The rows do not depend on the number of processes; the last digits
        of a solve may depend on this.
    missing : str
        What to do about data sets that are not there: "error" or "skip".
    loaders : str
        A Python file, relative to the plan, that adds data sets to ``mkclust.datasets.CATALOG``.
    folder : Path
        The folder of the plan, which its paths are relative to.
    """

    datasets: tuple[DatasetEntry, ...]
    methods: tuple[MethodEntry, ...]
    repetitions: int = 50
    grid_repetitions: int = 5
    seed: int = 0
    n_init: int = 10
    init: str = "random"
    resample: float = 1.0
    time_limit: float | None = None
    memory_limit: float | None = None
    threads: int = 1
    missing: str = "error"
    loaders: str = ""
    folder: Path = field(default=Path(), compare=False)

    @property
    def protocol(self) -> dict[str, Any]:
        """What must be the same for rows to be comparable."""
        names = ("seed", "n_init", "init", "resample", "grid_repetitions", "threads")
        return {name: getattr(self, name) for name in names}


def find_datasets(plan: Plan) -> tuple[list[DatasetEntry], list[str]]:
    """Return the data sets of a plan that are there, by their names there, and names of the others.

    Where only a substitute is there, it has the substitute's name.
    """
    present: list[DatasetEntry] = []
    missing: list[str] = []
    for entry in plan.datasets:
        if entry.path:
            present.append(entry)
            continue
        name = CATALOG[entry.name].find()
        if name is None:
            missing.append(entry.name)
        elif name not in [other.name for other in present]:  # a substitute may be named as well
            present.append(replace(entry, name=name))
    return present, missing


def import_loaders(path: Path) -> None:
    """Run a Python file that adds data sets to the catalog, once per process."""
    name = f"mkclust loaders {path.resolve()}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(sys.modules[name])
        except BaseException:
            del sys.modules[name]
            raise
