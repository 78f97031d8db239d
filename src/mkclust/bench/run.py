"""Run a plan: what is not done yet, in parallel, each result on the disk before the next."""

import json
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import joblib
import numpy
import scipy
import sklearn

from mkclust.bench.execute import NO_FACTS, Job, Result, failure_row
from mkclust.bench.journal import Journal, check_folder, locked
from mkclust.bench.plan import Plan, PlanError, find_datasets
from mkclust.bench.pool import Failure, Pool
from mkclust.bench.rows import Row, canonical
from mkclust.datasets import DatasetError, load
from mkclust.files import write_atomically
from mkclust.version import __version__

# Called about every second with how many methods on data sets are done and left, and the running.
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
            # Methods that could not start are: the cause may be fixed.
            tried = retry or ((row["dataset"], row["method"]) in keys and _did_not_start(row))
            return row["status"] != "ok" and tried

        rows.drop(is_tried_again)
        before = len(rows.objects)
        with Pool(plan, n_processes or max(1, joblib.cpu_count() // plan.threads)) as pool:
            _work(plan, pool, jobs, rows, solves, watcher)
        found = list(rows.objects.values())
        failures = [row for row in found if row["status"] != "ok"]
        return Summary(rows.path, len(found), len(found) - before, failures, missing)


def _work(
    plan: Plan, pool: Pool, jobs: list[Job], rows: Journal, solves: Journal, watcher: Watcher | None
) -> None:
    """Do all jobs, and write their results as they come."""
    stamp = {"versions": versions(), "machine": machine()}
    done: dict[tuple[str, str], list[Row]] = {job.key: [] for job in jobs}
    for row in rows.objects.values():
        done.get((row["dataset"], row["method"]), []).append(row)
    facts: dict[tuple[str, str], Row] = {}
    queue, n_jobs = jobs.copy(), len(jobs)

    def write(job: Job, new: list[Row]) -> None:
        rows.append([row | stamp for row in new])
        done[job.key] += new

    while queue or pool.running:
        while queue and len(pool.running) < pool.n_processes:
            job = queue.pop(0)
            pool.begin(replace(job, rows=tuple(done[job.key])))
        for job, message in pool.wait(1.0):
            if isinstance(message, Failure):
                of_data = facts.get(job.key, NO_FACTS)
                status, words, task = message
                write(job, [failure_row(job, task, plan, of_data, status, words)])
                if task is not None:
                    queue.insert(0, job)  # its other tasks
            elif isinstance(message, Result):
                solves.append(message.solves)
                write(job, message.rows)
            elif message is not None:
                facts[job.key] = message
                _check_same(rows.path.parent, job, message, done[job.key])
        if watcher is not None:
            names = [" ".join(job.key) for job in pool.running]
            n_left = len(queue) + len(names)
            watcher(n_jobs - n_left, n_left, ", ".join(names))


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


def _did_not_start(row: Row) -> bool:
    """Return whether a row says that a method does not apply, or that data cannot be read."""
    return row["status"] == "skipped" or row["n_samples"] is None


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
