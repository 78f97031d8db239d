"""Run a plan: what is not done yet, in parallel, each result on the disk before the next."""

import json
import os
import platform
from bisect import insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib
import numpy
import scipy
import sklearn

from mkclust.bench.execute import Task, repeats_solve, repetition_rows
from mkclust.bench.journal import Journal, Lock, check_folder
from mkclust.bench.plan import DatasetEntry, MethodEntry, Plan, PlanError, find_datasets
from mkclust.bench.pool import Failure, Job, Pool, dataset_of
from mkclust.bench.rows import Row, best_settings, canonical
from mkclust.datasets import DatasetError, load
from mkclust.files import write_atomically
from mkclust.version import __version__

# The facts of a data set that cannot be read.
NO_FACTS: Row = {
    **dict.fromkeys(("fingerprint", "n_samples", "n_kernels", "n_clusters")),
    **dict.fromkeys(("paper", "caveat"), ""),
}

# Called about every second with the numbers of tasks done and left, and what is running.
Watcher = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Summary:
    """How a run ended.

    Attributes
    ----------
    rows : Path
        The file of all rows.
    n_rows : int
        Number of rows in it.
    n_new : int
        Number of rows of this run.
    failures : list of dict
        The rows whose status is not "ok".
    missing : list of str
        Data sets that are not available and were left out.
    """

    rows: Path
    n_rows: int
    n_new: int
    failures: list[Row]
    missing: list[str]


def run_plan(
    plan: Plan,
    folder: str | Path,
    *,
    n_processes: int | None = None,
    retry: bool = False,
    watcher: Watcher | None = None,
) -> Summary:
    """Run what a plan asks for and the folder does not hold yet.

    Parameters
    ----------
    plan : Plan
        The plan.
    folder : str or path-like
        Folder for ``rows.jsonl`` (a row for each repetition) and ``solves.jsonl`` (weights and
        objective of each solve).
    n_processes : int or None, default=None
        Number of processes; by default as many as leave each its ``plan.threads`` cores.
    retry : bool, default=False
        Run again what has failed before.
    watcher : callable or None, default=None
        Called about every second with the numbers of tasks done and left, and what is running.

    Returns
    -------
    Summary

    Raises
    ------
    ValueError
        If the folder holds rows of another protocol, or is in use.
    OSError
        If the folder cannot be written or the disk is full: before the first solve.
    """
    folder = Path(folder)
    present, missing = find_datasets(plan)
    if missing and plan.missing == "error":
        try:
            load(missing[0])
        except DatasetError as error:
            words = f'{", ".join(missing)} (or write missing = "skip")'
            raise PlanError(f"not available: {words}. {error}") from None
    if os.name != "posix" and (plan.time_limit or plan.memory_limit):
        raise PlanError("time_limit, memory_limit: this system has no such limits; remove them")
    check_folder(folder)
    with Lock(folder):
        _check_protocol(plan, folder)
        run = _Run(plan, folder, present, retry)
        before = len(run.rows.objects)
        with Pool(plan, n_processes or max(1, joblib.cpu_count() // plan.threads)) as pool:
            run.work(pool, watcher)
        rows = list(run.rows.objects.values())
        failures = [row for row in rows if row["status"] != "ok"]
        return Summary(run.rows.path, len(rows), len(rows) - before, failures, missing)


@dataclass
class _Pair:
    """A method on a data set, and how many of its tasks are unfinished."""

    dataset: DatasetEntry
    method: MethodEntry
    facts: Row = field(default_factory=lambda: NO_FACTS)
    settings: list[dict[str, Any]] = field(default_factory=list)
    n_unfinished: int = 0
    rows: list[Row] = field(default_factory=list)


class _Run:
    """The state of a run: rows on the disk, waiting jobs, running jobs."""

    def __init__(self, plan: Plan, folder: Path, datasets: list[DatasetEntry], retry: bool):
        self.plan, self.folder, self.n_done = plan, folder, 0
        self.rows = Journal(folder / "rows.jsonl", row_key)
        if retry:
            self.rows.drop(lambda row: row["status"] != "ok")
        self.solves = Journal(folder / "solves.jsonl", row_key)
        self.stamp = {"versions": versions(), "machine": machine()}
        self.order = {dataset.name: number for number, dataset in enumerate(datasets)}
        self.queue: list[Job] = list(datasets)
        self.pairs = {
            (dataset.name, method.name): _Pair(dataset, method)
            for dataset in datasets
            for method in plan.methods
        }
        for row in self.rows.objects.values():
            if pair := self.pairs.get((row["dataset"], row["method"])):
                pair.rows.append(row)

    def work(self, pool: Pool, watcher: Watcher | None) -> None:
        """Do all that is to be done."""
        while self.queue or pool.running:
            while self.queue and len(pool.running) < pool.n_processes:
                pool.begin(self.queue.pop(0))
            for job, result in pool.wait(1.0):
                self._record(job, result)
            if watcher is not None:
                tasks = [job for job in pool.running if isinstance(job, Task)]
                waiting = sum(isinstance(job, Task) for job in self.queue)
                names = dict.fromkeys(f"{t.dataset.name} {t.method.name}" for t in tasks)
                watcher(self.n_done, waiting + len(tasks), ", ".join(names))

    def _record(self, job: Job, result: Any) -> None:
        """Write the result of a job, and put what follows from it into the queue."""
        if isinstance(job, DatasetEntry):
            self._begin_dataset(job, result)
            return
        pair = self.pairs[job.dataset.name, job.method.name]
        pair.n_unfinished -= 1
        self.n_done += 1
        if isinstance(result, Failure):
            self._fail(pair, job, result)
        else:
            self.solves.append(result.solves)
            self._write(pair, result.rows)
        self._continue(pair)

    def _begin_dataset(self, dataset: DatasetEntry, result: Any) -> None:
        """Keep the facts of a data set, and queue its first tasks."""
        failure = result if isinstance(result, Failure) else None
        for method in self.plan.methods:
            pair = self.pairs[dataset.name, method.name]
            pair.facts = NO_FACTS if failure else result
            n_samples = pair.facts["n_samples"] or 0
            pair.settings = method.settings(dataset.max_settings, pair.facts["n_kernels"] or 1)
            problem = failure
            if method.max_samples and n_samples > method.max_samples:
                limit = f"{n_samples} samples, more than the plan's {method.max_samples}"
                problem = Failure("skipped", limit)
            self._check_same(pair)
            # Methods that could not start are tried again: the cause may be fixed.
            if any(map(_did_not_start, pair.rows)):
                pair.rows = [row for row in pair.rows if not _did_not_start(row)]
                name = dataset.name, method.name
                self.rows.drop(lambda r: (r["dataset"], r["method"]) == name and _did_not_start(r))  # noqa: B023
            if problem:
                self._fail(pair, self._task(pair, pair.settings[0], [0]), problem)
            else:
                self._continue(pair)

    def _check_same(self, pair: _Pair) -> None:
        """Refuse rows of other data, or of another method under the same name."""
        now = {"fingerprint": pair.facts["fingerprint"], "entry": pair.method.source}
        default = canonical(pair.settings[0])
        for row in pair.rows:
            changed = [n for n, v in now.items() if None not in (row.get(n), v) and row[n] != v]
            if row.get("default") and row["parameters"] != default:
                changed.append("parameters")
            if changed:
                raise ValueError(
                    f"{self.folder}: its rows of {pair.dataset.name} {pair.method.name} have "
                    f"another {changed[0]} ({row[changed[0]]}); choose another folder, or rename "
                    "the data set or the method"
                )

    def _continue(self, pair: _Pair) -> None:
        """Queue what a method on a data set still needs, if none of its tasks is unfinished."""
        if pair.n_unfinished:
            return
        repetitions = self._repetitions(pair.method)
        has_grid = len(pair.settings) > 1
        first = min(self.plan.grid_repetitions, repetitions) if has_grid else repetitions
        tasks = list(self._missing(pair, pair.settings, first))
        if not tasks and has_grid:
            best = dict.fromkeys(best_settings(pair.rows).values())
            tasks = list(self._missing(pair, [json.loads(text) for text in best], repetitions))
        pair.n_unfinished = len(tasks)
        for task in tasks:  # by data set, so that kernels are read once
            insort(self.queue, task, key=lambda job: self.order[dataset_of(job).name])

    def _repetitions(self, method: MethodEntry) -> int:
        """Return how often a method is repeated: once if it is always the same."""
        if method.input and self.plan.resample == 1:
            model = method.estimator()(**method.parameters)
            return self.plan.repetitions if "random_state" in model.get_params() else 1
        return self.plan.repetitions

    def _missing(self, pair: _Pair, settings: list[dict[str, Any]], up_to: int) -> Iterator[Task]:
        """Yield the tasks for repetitions that are not on the disk."""
        together = not repeats_solve(pair.method, self.plan)
        # Repetitions of one solve fail together; of several, the first failure or a limit decides.
        abandoned = {
            row["parameters"]
            for row in pair.rows
            if row["status"] != "ok"
            and (together or row["repetition"] == 0 or row["status"] != "failed")
        }
        done = {(row["parameters"], row["repetition"]) for row in pair.rows}
        for setting in settings:
            name = canonical(setting)
            missing = [r for r in range(up_to) if (name, r) not in done]
            if name in abandoned or not missing:
                continue
            if together:
                yield self._task(pair, setting, missing)
                continue
            # If the first one fails, the others need not be tried.
            for repetition in missing[:1] if missing[0] == 0 else missing:
                yield self._task(pair, setting, [repetition])

    def _task(self, pair: _Pair, setting: dict[str, Any], repetitions: list[int]) -> Task:
        default = not pair.method.oracle and setting == pair.settings[0]
        return Task(pair.dataset, pair.method, setting, default, tuple(repetitions))

    def _fail(self, pair: _Pair, task: Task, failure: Failure) -> None:
        """Write one row that says why a task has no scores."""
        values = {"status": failure.status, "message": failure.message}
        self._write(pair, repetition_rows(task, self.plan, pair.facts, values)[:1])

    def _write(self, pair: _Pair, rows: list[Row]) -> None:
        rows = [row | self.stamp for row in rows]
        self.rows.append(rows)
        pair.rows += rows


def _did_not_start(row: Row) -> bool:
    """Return whether a row says that a method does not apply, or that data cannot be read."""
    return row["status"] == "skipped" or (row["status"] == "failed" and row["n_samples"] is None)


def row_key(row: Row) -> tuple[Any, ...]:
    """Return what makes a row the same as another."""
    names = ("dataset", "method", "parameters", "resample", "repetition")
    return tuple(row[name] for name in names)


def _check_protocol(plan: Plan, folder: Path) -> None:
    """Refuse a folder whose rows could not be compared with those of this plan."""
    file = folder / "protocol.json"
    if not file.exists():
        write_atomically({file: f"{json.dumps(plan.protocol, indent=1)}\n".encode()})
        return
    try:
        before = dict(json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        raise ValueError(
            f"{file}: is not a protocol; remove it, or choose another folder"
        ) from None
    for name, value in plan.protocol.items():
        if before.get(name) != value:
            raise ValueError(
                f"{folder}: holds rows with {name} = {before.get(name)!r}, the plan says "
                f"{value!r}; choose another folder, or restore the plan"
            )


def versions() -> str:
    """Return the versions that a result may depend on."""
    modules = [f"{module.__name__} {module.__version__}" for module in (numpy, scipy, sklearn)]
    return ", ".join([f"mkclust {__version__}", *modules, f"python {platform.python_version()}"])


def machine() -> str:
    """Return the kind of machine, which times depend on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    names = [
        f"{platform.system()} {platform.machine()}",
        *models[:1],
        f"{joblib.cpu_count()} cores",
    ]
    return ", ".join(names)
