"""Run the unfinished part of a plan in parallel, storing each result at once."""

import json
import os
import platform
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import connection
from pathlib import Path
from typing import Any

import joblib

from mkclust.bench.execute import Job
from mkclust.bench.plan import DatasetEntry, Plan, PlanError
from mkclust.bench.pool import Worker
from mkclust.bench.rows import Journal, Row, canonical
from mkclust.datasets import CATALOG, load
from mkclust.files import write_atomically
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
        for job in jobs:
            stored = rows.objects.values()
            job.rows += [r for r in stored if (r["dataset"], r["method"]) == job.key]
        n_processes = n_processes or max(1, joblib.cpu_count() // plan.threads)
        _work(jobs, n_processes, rows, solves, watcher)
        failures = [row for row in rows.objects.values() if row["status"] != "ok"]
        n_rows = len(rows.objects)
        return Summary(rows.path, n_rows, n_rows - before, failures, missing)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Create a folder into which one run at a time may write."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        if os.name == "posix":  # other systems have no such locks
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ValueError(
                    f"{folder}: another run writes into this folder; wait for it, or "
                    "choose another folder"
                ) from None
        yield


def _find_datasets(plan: Plan) -> tuple[list[DatasetEntry], list[str]]:
    """Return the available data sets by name, and the names of the others."""
    present: dict[str, DatasetEntry] = {}
    missing: list[str] = []
    for entry in plan.datasets:
        name = entry.name if entry.path else CATALOG[entry.name].find()
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
                    job.facts, new, new_solves = worker.pipe.recv()
                except (EOFError, OSError):
                    del workers[pipe]
                    new, new_solves = worker.failures(), []
                    if new and job.facts["n_samples"] is not None:
                        queue.insert(0, job)  # its other tasks
                _check_same(rows.path.parent, job)
                solves.append(new_solves)
                rows.append([row | stamp for row in new])
                job.rows += new
            if watcher is not None:
                names = [" ".join(worker.job.key) for worker in workers.values()]
                n_left = len(queue) + len(names)
                watcher(len(jobs) - n_left, n_left, ", ".join(names))
    finally:
        for worker in workers.values():
            worker.kill()


def _check_same(folder: Path, job: Job) -> None:
    """Refuse rows of other data, or of another method under the same name."""
    now = {"fingerprint": job.facts["fingerprint"], "entry": job.method.source}
    default = {"parameters": canonical(job.settings()[0])}
    for row in job.rows:
        expected = now | default if row["default"] else now
        for name, value in expected.items():
            # Of unreadable data no fingerprint is known.
            if None not in (row.get(name), value) and row[name] != value:
                raise ValueError(
                    f"{folder}: its rows of {' '.join(job.key)} have another {name} "
                    f"({row[name]}); choose another folder, or rename the data set or "
                    "the method"
                )


def row_key(row: Row) -> tuple[Any, ...]:
    """Return the key of a row; rows with the same key are the same."""
    names = ("dataset", "method", "parameters", "resample", "repetition")
    return tuple(row[name] for name in names)


def _check_protocol(plan: Plan, folder: Path) -> None:
    """Refuse to add rows to those of another protocol in one folder."""
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
    file = folder / "protocol.json"
    if not file.exists():
        text = f"{json.dumps(protocol, indent=1)}\n"
        write_atomically({file: text.encode()})
    # Rows of earlier versions are all by rows of unit length.
    before = {"rounding": "unit"} | json.loads(file.read_text(encoding="utf-8"))
    for name, value in protocol.items():
        if before.get(name) != value:
            raise ValueError(
                f"{folder}: holds rows with {name} = {before.get(name)!r}, the plan "
                f"says {value!r}; choose another folder, or restore the plan"
            )


def machine() -> str:
    """Return the kind of machine, which times depend on."""
    info = Path("/proc/cpuinfo")
    text = info.read_text() if info.exists() else ""
    models = re.findall(r"^model name\s*: (.+)$", text, re.M)
    kind = f"{platform.system()} {platform.machine()}"
    return ", ".join([kind, *models[:1], f"{joblib.cpu_count()} cores"])
