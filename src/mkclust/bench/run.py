"""Run the unfinished part of a plan in parallel, storing each result at once."""

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

from mkclust.bench.execute import Job
from mkclust.bench.journal import Journal, locked
from mkclust.bench.plan import DatasetEntry, Plan, PlanError
from mkclust.bench.pool import Worker
from mkclust.bench.rows import Row, canonical
from mkclust.datasets import CATALOG, load
from mkclust.files import errors_of, write_atomically
from mkclust.version import versions


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
    watcher: Callable[[int, int, str], None] | None = None,
) -> Summary:
    """Run the part of a plan that the folder does not hold yet.

    Parameters
    ----------
    plan : Plan
        The plan.
    folder : str or path-like
        Folder for ``rows.jsonl`` (repetitions) and ``solves.jsonl`` (weights and
        objectives).
    n_processes : int or None, default=None
        Number of processes; by default as many as leave each its ``plan.threads``
        cores.
    retry : bool, default=False
        Run failed tasks again.
    watcher : callable or None, default=None
        Called about every second with the numbers of jobs done and left, and those
        running.

    Raises
    ------
    ValueError
        If a data set is not available, or the folder holds rows of another protocol or
        is in use.
    """
    folder = Path(folder)
    present, missing = _find_datasets(plan)
    if os.name != "posix" and (plan.time_limit or plan.memory_limit):
        raise PlanError(
            "time_limit, memory_limit: this system has no such limits; remove them"
        )
    with locked(folder):
        _check_protocol(plan, folder)
        rows = Journal(folder / "rows.jsonl", row_key)
        solves = Journal(folder / "solves.jsonl", row_key)
        # Whether a method applies may change with the plan.
        rows.drop(
            lambda row: row["status"] == "skipped" or (retry and row["status"] != "ok")
        )
        before = len(rows.objects)
        jobs = [
            Job(plan, dataset, method) for dataset in present for method in plan.methods
        ]
        by_key = {job.key: job for job in jobs}
        for row in rows.objects.values():
            job = by_key.get((row["dataset"], row["method"]))
            if job:
                job.rows.append(row)
        n_processes = n_processes or max(1, joblib.cpu_count() // plan.threads)
        _work(jobs, n_processes, rows, solves, watcher)
        failures = [row for row in rows.objects.values() if row["status"] != "ok"]
        n_rows = len(rows.objects)
        return Summary(rows.path, n_rows, n_rows - before, failures, missing)


def _find_datasets(plan: Plan) -> tuple[list[DatasetEntry], list[str]]:
    """Return the available data sets by name, and the names of the others."""
    present: dict[str, DatasetEntry] = {}
    missing: list[str] = []
    for entry in plan.datasets:
        name: str | None = entry.name
        if not entry.path:
            name = CATALOG[entry.name].find()

        if name is not None:
            present.setdefault(name, replace(entry, name=name))
        elif plan.missing == "skip":
            missing.append(entry.name)
        else:
            load(entry.name)  # raises, and says where the data come from
    return list(present.values()), missing


def _work(
    jobs: list[Job], n_processes: int, rows: Journal, solves: Journal, watcher: Any
) -> None:
    """Run jobs in processes, and write their rows as they come."""
    used = ", ".join(f"{name} {version}" for name, version in versions().items())
    stamp = {"versions": used, "machine": machine()}
    queue = jobs.copy()
    workers = dict[Any, Worker]()
    try:
        while queue or workers:
            while queue and len(workers) < n_processes:
                worker = Worker(queue.pop(0))
                workers[worker.pipe] = worker
            for pipe in connection.wait(list(workers), 1.0):
                worker = workers[pipe]
                job = worker.job
                try:
                    message = worker.pipe.recv()
                except (EOFError, OSError):
                    del workers[pipe]
                    message = worker.failures(), []
                    if message[0] and job.facts["n_samples"] is not None:
                        queue.insert(0, job)  # its other tasks
                if isinstance(message, dict):
                    job.facts = message
                    _check_same(rows.path.parent, job)
                else:
                    new, new_solves = message
                    solves.append(new_solves)
                    rows.append([row | stamp for row in new])
                    job.rows += new
            if watcher is not None:
                running = workers.values()
                names = [" ".join(worker.job.key) for worker in running]
                n_left = len(queue) + len(names)
                n_done = len(jobs) - n_left
                watcher(n_done, n_left, ", ".join(names))
    finally:
        for worker in workers.values():
            worker.kill()


def _check_same(folder: Path, job: Job) -> None:
    """Refuse rows of other data, or of another method under the same name."""
    now = {"fingerprint": job.facts["fingerprint"], "entry": job.method.source}
    default = canonical(job.settings()[0])
    for row in job.rows:
        if row["default"]:
            now["parameters"] = default
        else:
            now.pop("parameters", None)
        for name, value in now.items():
            recorded = row.get(name)
            if recorded is None or value is None or recorded == value:
                continue
            raise ValueError(
                f"{folder}: its rows of {' '.join(job.key)} have another {name} "
                f"({recorded}); choose another folder, or rename the data set or the "
                "method"
            )


def row_key(row: Row) -> tuple[Any, ...]:
    """Return the key of a row; rows with the same key are the same."""
    return tuple(
        row[n] for n in ("dataset", "method", "parameters", "resample", "repetition")
    )


def _check_protocol(plan: Plan, folder: Path) -> None:
    """Refuse to add rows to those of another protocol in one folder."""
    file = folder / "protocol.json"

    # The settings of a plan that comparable rows share.
    compared = (
        "seed",
        "n_init",
        "init",
        "rounding",
        "resample",
        "grid_repetitions",
        "threads",
    )
    protocol = {name: getattr(plan, name) for name in compared}
    if not file.exists():
        text = f"{json.dumps(protocol, indent=1)}\n"
        write_atomically({file: text.encode()})
    with errors_of(file):
        before = json.loads(file.read_text(encoding="utf-8"))
    # Rows of earlier versions are all by rows of unit length.
    before = {"rounding": "unit"} | before
    for name, value in protocol.items():
        if before.get(name) != value:
            raise ValueError(
                f"{folder}: holds rows with {name} = {before.get(name)!r}, the plan "
                f"says {value!r}; choose another folder, or restore the plan"
            )


def machine() -> str:
    """Return the kind of machine, which times depend on."""
    info = Path("/proc/cpuinfo")
    models = re.findall(
        r"^model name\s*: (.+)$", info.read_text() if info.exists() else "", re.M
    )
    kind = f"{platform.system()} {platform.machine()}"
    n_cores = f"{joblib.cpu_count()} cores"
    return ", ".join([kind, *models[:1], n_cores])
