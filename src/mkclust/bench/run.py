"""Run the unfinished part of a plan in parallel; each result is stored before the next task."""

import json
import os
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing import connection
from pathlib import Path
from typing import Any

import joblib
import numpy
import scipy
import sklearn

from mkclust.bench.execute import Job, Task
from mkclust.bench.journal import Journal, check_folder, locked
from mkclust.bench.plan import Plan, PlanError, find_datasets
from mkclust.bench.pool import Worker
from mkclust.bench.rows import Row, canonical
from mkclust.datasets import DatasetError, load
from mkclust.files import write_atomically
from mkclust.version import __version__

# Called about every second with how many jobs are done and left, and the names of those running.
Watcher = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Summary:
    """How a run ended."""

    rows: Path  # the file of all rows
    n_rows: int  # the number of rows in it
    n_new: int  # the number of rows of this run
    failures: list[Row]  # the rows whose status is not "ok"
    missing: list[str]  # data sets that are not available and were left out


def run_plan(
    plan: Plan,
    folder: str | Path,
    *,
    n_processes: int | None = None,
    retry: bool = False,
    watcher: Watcher | None = None,
) -> Summary:
    """Run the part of a plan that the folder does not hold yet.

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
        Run failed tasks again.
    watcher : callable or None, default=None
        Called about every second with how many pairs of a data set and a method are done and
        are left, and which are running.

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
    with locked(folder):
        _check_protocol(plan, folder)
        rows = Journal(folder / "rows.jsonl", row_key)
        solves = Journal(folder / "solves.jsonl", row_key)
        jobs = [Job(dataset, method) for dataset in present for method in plan.methods]
        keys = {job.key for job in jobs}

        def is_tried_again(row: Row) -> bool:
            # A method that does not apply or has no data is: the cause may be fixed.
            did_not_start = row["status"] == "skipped" or row["n_samples"] is None
            is_planned = (row["dataset"], row["method"]) in keys
            return row["status"] != "ok" and (retry or (did_not_start and is_planned))

        rows.drop(is_tried_again)
        before = len(rows.objects)
        n_processes = n_processes or max(1, joblib.cpu_count() // plan.threads)
        _work(plan, n_processes, jobs, rows, solves, watcher)
        failures = [row for row in rows.objects.values() if row["status"] != "ok"]
        n_rows = len(rows.objects)
        return Summary(rows.path, n_rows, n_rows - before, failures, missing)


def _work(
    plan: Plan,
    n_processes: int,
    jobs: list[Job],
    rows: Journal,
    solves: Journal,
    watcher: Watcher | None,
) -> None:
    """Do all jobs, several at a time, and write their results as they come."""
    stamp = {"versions": versions(), "machine": machine()}
    done: dict[tuple[str, str], list[Row]] = {job.key: [] for job in jobs}
    for row in rows.objects.values():
        done.get((row["dataset"], row["method"]), []).append(row)
    queue, workers = jobs.copy(), dict[Any, Worker]()

    def take(message: Any, worker: Worker) -> None:
        own = done[worker.job.key]
        if isinstance(message, Task):
            worker.task = message
        elif isinstance(message, dict):
            worker.facts = message
            _check_same(rows.path.parent, worker.job, message, own)
        else:
            new, new_solves = message
            worker.task = None
            solves.append(new_solves)
            rows.append([row | stamp for row in new])
            own += new

    try:
        while queue or workers:
            while queue and len(workers) < n_processes:
                job = queue.pop(0)
                worker = Worker.start(plan, replace(job, rows=tuple(done[job.key])))
                workers[worker.pipe] = worker
            for pipe in connection.wait(list(workers), 1.0):
                worker = workers[pipe]
                try:
                    message = worker.pipe.recv()
                except (EOFError, OSError):
                    del workers[pipe]
                    message = worker.failures(plan), []
                    if worker.task is not None:
                        queue.insert(0, worker.job)  # its other tasks
                take(message, worker)
            if watcher is not None:
                names = [" ".join(worker.job.key) for worker in workers.values()]
                n_left = len(queue) + len(names)
                watcher(len(jobs) - n_left, n_left, ", ".join(names))
    finally:
        for worker in workers.values():
            worker.kill()


def _check_same(folder: Path, job: Job, facts: Row, rows: list[Row]) -> None:
    """Refuse rows of other data, or of another method under the same name."""
    now = {"fingerprint": facts["fingerprint"], "entry": job.method.source}
    default = canonical(job.settings(facts)[0])
    for row in rows:
        changed = [n for n, v in now.items() if None not in (row.get(n), v) and row[n] != v]
        if row.get("default") and row["parameters"] != default:
            changed.append("parameters")
        if changed:
            raise ValueError(
                f"{folder}: its rows of {' '.join(job.key)} have another {changed[0]} "
                f"({row[changed[0]]}); choose another folder, or rename the data set or the method"
            )


def row_key(row: Row) -> tuple[Any, ...]:
    """Return the key of a row; rows with the same key are the same."""
    names = ("dataset", "method", "parameters", "resample", "repetition")
    return tuple(row[name] for name in names)


def _check_protocol(plan: Plan, folder: Path) -> None:
    """Refuse a folder whose rows cannot be compared with those of this plan."""
    file = folder / "protocol.json"
    if not file.exists():
        write_atomically({file: f"{json.dumps(plan.protocol, indent=1)}\n".encode()})
    before = json.loads(file.read_text(encoding="utf-8"))
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
    info = Path("/proc/cpuinfo")
    models = re.findall(r"^model name\s*: (.+)$", info.read_text() if info.exists() else "", re.M)
    kind = f"{platform.system()} {platform.machine()}"
    return ", ".join([kind, *models[:1], f"{joblib.cpu_count()} cores"])
