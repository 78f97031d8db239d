"""Run a plan: what is not there yet, in parallel, each result on the disk before the next."""

import hashlib
import heapq
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any, NoReturn, Protocol

from mkclust.bench.entries import MethodEntry
from mkclust.bench.execute import (
    Row,
    Task,
    TaskResult,
    repeats_solve,
    repetition_rows,
)
from mkclust.bench.journal import Journal, Lock, check_room, machine, n_cores, versions
from mkclust.bench.plan import DatasetEntry, Plan, PlanError, find_datasets
from mkclust.bench.row_checks import check_row, check_solve
from mkclust.bench.rows import canonical, choose, is_default
from mkclust.bench.workers import Failure, Finished, Pool
from mkclust.datasets import DatasetError, load
from mkclust.files import write_atomically

# What is known of a data set that cannot be read.
NO_FACTS: Row = {
    "fingerprint": None,
    "paper": "",
    "caveat": "",
    "n_samples": None,
    "n_kernels": None,
    "n_clusters": None,
}


class Watcher(Protocol):
    """Whoever wants to know how a run goes on."""

    def update(self, done: int, left: int, seconds_left: float, what: str) -> None:
        """Hear how many tasks are done and left, for how long, and what is going on."""


@dataclass(frozen=True)
class Summary:
    """How a run ended.

    Attributes
    ----------
    rows : Path
        The file of all rows.
    n_rows : int
        How many it has.
    n_new : int
        How many are of this run.
    failures : list of dict
        The rows whose status is not "ok".
    missing : list of str
        Data sets that are not there and were left out.
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
        Where ``rows.jsonl`` (a row for each repetition) and ``solves.jsonl`` (weights and history
        of each solve) are, or will be.
    n_processes : int or None, default=None
        How many processes; by default as many as leave each its ``plan.threads`` cores.
    retry : bool, default=False
        Do again what has failed before.
    watcher : Watcher or None, default=None
        Told about every second.

    Returns
    -------
    Summary

    Raises
    ------
    ValueError
        If the folder holds rows of another protocol, or is in use.
    OSError
        If the folder cannot be written or is full: before the first solve.
    """
    folder = Path(folder)
    present, missing = find_datasets(plan)
    if missing and plan.missing == "error":
        raise PlanError(_explain_missing(missing))
    check_room(folder)
    with Lock(folder):
        _check_protocol(plan, folder)
        run = _PlanRun(plan, folder, present)
        if retry:
            run.rows.drop(lambda row: row["status"] != "ok")
        before = len(run.rows.objects)
        if n_processes is None:
            n_processes = max(1, n_cores() // plan.threads)
        with Pool(plan, n_processes) as pool:
            run.work(pool, watcher)
        rows = run.rows.objects
        failures = [row for row in rows if row["status"] != "ok"]
        return Summary(run.rows.path, len(rows), len(rows) - before, failures, missing)


@dataclass
class _Pair:
    """A method on a data set: what is known, what is going on."""

    dataset: DatasetEntry
    method: MethodEntry
    order: int
    settings: list[dict[str, Any]] = field(default_factory=list)
    repetitions: int = 0
    n_running: int = 0
    rows: list[Row] = field(default_factory=list)


class _PlanRun:
    """The state of a run: rows on the disk, tasks that wait, tasks that are going on."""

    def __init__(self, plan: Plan, folder: Path, datasets: list[DatasetEntry]):
        self.plan, self.folder, self.datasets = plan, folder, datasets
        self.rows = Journal(folder / "rows.jsonl", row_key, check_row)
        self.solves = Journal(folder / "solves.jsonl", row_key, check_solve)
        self.partitions = folder / "partitions"
        self.partitions.mkdir(exist_ok=True)
        for partial_file in self.partitions.glob("*.tmp"):
            partial_file.unlink()
        self.facts: dict[str, Row] = {}
        self.pairs: dict[tuple[str, str], _Pair] = {}
        self.queue: list[tuple[int, int, Task | DatasetEntry]] = []
        self.numbers = itertools.count()
        self.seconds: dict[tuple[str, str], list[float]] = {}
        self.stamp = {"versions": versions(), "machine": machine()}

    def work(self, pool: Pool, watcher: Watcher | None) -> None:
        """Do all that is to be done."""
        for order, dataset in enumerate(self.datasets):
            for method in self.plan.methods:
                pair = _Pair(dataset, method, order)
                self.pairs[dataset.name, method.name] = pair
        for row in self.rows.objects:
            if (row["dataset"], row["method"]) in self.pairs:
                self.pairs[row["dataset"], row["method"]].rows.append(row)
        for order, dataset in enumerate(self.datasets):
            self._put(order, dataset)
        while self.queue or pool.busy:
            while self.queue and pool.n_free:
                pool.begin(heapq.heappop(self.queue)[-1])
            for finished in pool.wait(1.0):
                self._record(finished)
            if watcher is not None:
                watcher.update(*self._progress(pool))
        for partition in self.partitions.iterdir():
            partition.unlink()
        self.partitions.rmdir()

    def _record(self, finished: Finished) -> None:
        """Write down the result of a job, and line up what follows from it."""
        job, result = finished.job, finished.result
        if isinstance(job, DatasetEntry):
            self._line_up(job, result)
            return
        pair = self.pairs[job.dataset.name, job.method.name]
        pair.n_running -= 1
        self.seconds.setdefault((job.dataset.name, job.method.name), []).append(finished.seconds)
        if isinstance(result, TaskResult):
            self.solves.append(result.solves)
            self._write(pair, result.rows)
        else:
            assert isinstance(result, Failure)
            self._fail(pair, job, result)
        self._continue(pair)

    def _line_up(self, dataset: DatasetEntry, result: Any) -> None:
        """Note the facts of a data set, and line up its tasks."""
        failure = result if isinstance(result, Failure) else None
        facts = self.facts[dataset.name] = NO_FACTS if failure else result
        for method in self.plan.methods:
            pair = self.pairs[dataset.name, method.name]
            pair.settings = method.settings(dataset.max_settings, facts["n_kernels"] or 1)
            pair.repetitions = self._repetitions(method)
            problem = failure
            if method.max_samples and (facts["n_samples"] or 0) > method.max_samples:
                limit = f"{facts['n_samples']} samples, more than the plan's {method.max_samples}"
                problem = Failure("skipped", limit)
            self._check_same(pair)
            # What made a start impossible is found out anew: it may have been mended.
            if any(map(_never_began, pair.rows)):
                self._drop_failed_starts(pair)
            if problem:
                self._fail(pair, self._task(pair, pair.settings[0], [0]), problem)
            else:
                self._continue(pair)

    def _drop_failed_starts(self, pair: _Pair) -> None:
        """Remove the rows that say why a method could not begin on its data."""
        names = pair.dataset.name, pair.method.name
        self.rows.drop(lambda row: (row["dataset"], row["method"]) == names and _never_began(row))
        pair.rows = [row for row in pair.rows if not _never_began(row)]

    def _fail(self, pair: _Pair, task: Task, failure: Failure) -> None:
        """Write one row that says why a task has no scores."""
        fields = {"status": failure.status, "message": failure.message}
        facts = self.facts[pair.dataset.name]
        self._write(pair, repetition_rows(task, self.plan, facts, fields)[:1])

    def _check_same(self, pair: _Pair) -> None:
        """Refuse rows of other data, or of another method under the same name."""
        facts, default = self.facts[pair.dataset.name], canonical(pair.settings[0])
        now = {"fingerprint": facts["fingerprint"], "entry": pair.method.source}
        words = {"fingerprint": "other data", "entry": "another method"}
        for row in pair.rows:
            for name, value in now.items():
                if None not in (row.get(name), value) and row[name] != value:
                    self._refuse(pair, f"{words[name]} ({row[name]}, now {value})")
            if is_default(row) and row["parameters"] != default:
                self._refuse(pair, f"other parameters ({row['parameters']}, now {default})")

    def _refuse(self, pair: _Pair, difference: str) -> NoReturn:
        """Refuse a folder whose rows are of something else."""
        raise ValueError(
            f"{self.folder}: its rows of {pair.dataset.name} {pair.method.name} are of "
            f"{difference}; give another folder or another name"
        )

    def _repetitions(self, method: MethodEntry) -> int:
        """Return how often a method is repeated."""
        if method.kind == "estimator" and self.plan.resample == 1:
            # Without a seed every repetition would be the same.
            model = method.estimator()(**method.parameters)
            return self.plan.repetitions if "random_state" in model.get_params() else 1
        return self.plan.repetitions

    def _continue(self, pair: _Pair) -> None:
        """Line up what a method on a data set still needs, if nothing of it is going on."""
        if pair.n_running:
            return
        alone = len(pair.settings) == 1
        first = pair.repetitions if alone else min(self.plan.grid_repetitions, pair.repetitions)
        tasks = list(self._missing(pair, pair.settings, first))
        if not tasks and not alone:
            chosen = [json.loads(text) for text in choose(pair.rows).settings()]
            tasks = list(self._missing(pair, chosen, pair.repetitions))
        for task in tasks:
            pair.n_running += 1
            self._put(pair.order, task)
        if not tasks:
            for setting in pair.settings:
                self._partition(pair, setting).unlink(missing_ok=True)

    def _missing(self, pair: _Pair, settings: list[dict[str, Any]], up_to: int) -> Iterator[Task]:
        """Yield the tasks for repetitions that are not on the disk."""
        # Repetitions of one solve fail together; of several, each for itself, unless the first
        # fails or a limit is met.
        together = not repeats_solve(pair.method, self.plan)
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
            # The first goes ahead: where it fails, the others need not be tried.
            for repetition in missing[:1] if missing[0] == 0 else missing:
                yield self._task(pair, setting, [repetition])

    def _task(self, pair: _Pair, setting: dict[str, Any], repetitions: list[int]) -> Task:
        """Return a task of a pair."""
        is_stored = pair.method.partitions and self.plan.resample == 1 and len(pair.settings) > 1
        return Task(
            pair.dataset,
            pair.method,
            setting,
            default=not pair.method.oracle and setting == pair.settings[0],
            repetitions=tuple(repetitions),
            partition=str(self._partition(pair, setting)) if is_stored else "",
        )

    def _partition(self, pair: _Pair, setting: dict[str, Any]) -> Path:
        """Return where the partition of a setting is kept until its last repetition."""
        data = self.facts[pair.dataset.name]["fingerprint"]
        name = partition_name(pair.dataset.name, data, pair.method.name, setting)
        return self.partitions / name

    def _put(self, order: int, job: Task | DatasetEntry) -> None:
        """Let a job wait its turn: by data set, so that its kernels are read but once."""
        heapq.heappush(self.queue, (order, next(self.numbers), job))

    def _write(self, pair: _Pair, rows: list[Row]) -> None:
        """Put rows on the disk."""
        rows = [row | self.stamp for row in rows]
        self.rows.append(rows)
        pair.rows += rows

    def _progress(self, pool: Pool) -> tuple[int, int, float, str]:
        """Return what a watcher is told."""
        done = [seconds for group in self.seconds.values() for seconds in group]
        usual = median(done) if done else 0.0
        waiting = [(job, 0.0) for *_, job in self.queue]
        seconds_left, n_left = 0.0, 0
        for job, elapsed in [*waiting, *pool.running]:
            if isinstance(job, Task):
                times = self.seconds.get((job.dataset.name, job.method.name))
                expected = fmean(times) if times else usual
                seconds_left += max(expected - elapsed, 0.0)
                n_left += 1
        names = [
            f"{job.dataset.name} {job.method.name}" if isinstance(job, Task) else job.name
            for job, _ in pool.running
        ]
        return len(done), n_left, seconds_left / pool.n_processes, ", ".join(dict.fromkeys(names))


def _never_began(row: Row) -> bool:
    """Return whether a row says that a method does not apply, or that data cannot be read."""
    return row["status"] == "skipped" or (row["status"] == "failed" and row["n_samples"] is None)


def partition_name(dataset: str, data: str, method: str, setting: dict[str, Any]) -> str:
    """Return the name of the file for the partition of a setting on certain data."""
    text = json.dumps([dataset, data, method, canonical(setting)])
    return f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.npz"


def row_key(row: Row) -> tuple[Any, ...]:
    """Return what makes a row the same as another."""
    names = ("dataset", "method", "parameters", "resample", "repetition")
    return tuple(row[name] for name in names)


def _explain_missing(names: list[str]) -> str:
    """Return which data sets are not there, and where the first of them comes from."""
    try:
        load(names[0])
    except DatasetError as error:
        return f'not there: {", ".join(names)} (or write missing = "skip"). {error}'
    raise AssertionError(f"{names[0]} is there")


def _check_protocol(plan: Plan, folder: Path) -> None:
    """Refuse a folder whose rows could not be compared with those of this plan."""
    file = folder / "protocol.json"
    if not file.exists():
        write_atomically({file: f"{json.dumps(plan.protocol, indent=1)}\n".encode()})
        return
    try:
        before = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        before = None
    if not isinstance(before, dict):
        raise ValueError(f"{file}: is not a protocol; remove it, or give another folder")
    for name, value in plan.protocol.items():
        if before.get(name) != value:
            raise ValueError(
                f"{folder}: holds rows with {name} = {before.get(name)!r}, the plan says "
                f"{value!r}; give another folder, or restore the plan"
            )
