"""Run the unfinished part of a plan, a process per job, storing each result at once.

The processes have limits of time and memory, which their parent survives.
"""

import json
import multiprocessing
import os
import platform
import re
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import connection
from pathlib import Path
from typing import Any

import joblib
from threadpoolctl import threadpool_limits

from mkclust.bench.data import Prepared
from mkclust.bench.execute import Job, execute
from mkclust.bench.plan import DatasetEntry, Plan, PlanError, import_loaders
from mkclust.bench.rows import Journal, Row, canonical
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
        for job in jobs:
            stored = rows.objects.values()
            job.rows += [r for r in stored if (r["dataset"], r["method"]) == job.key]
        n_processes = n_processes or max(1, joblib.cpu_count() // plan.threads)
        _work(jobs, n_processes, rows, solves, watcher)
        return Summary(
            rows=rows.path,
            n_rows=len(rows.objects),
            n_new=len(rows.objects) - before,
            failures=[r for r in rows.objects.values() if r["status"] != "ok"],
            missing=missing,
        )


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


class Worker:
    """A process that does a job and reports through a pipe."""

    def __init__(self, job: Job):
        # Not forked: libraries with threads of their own do not survive that.
        context: Any = multiprocessing.get_context("spawn")
        self.job = job
        self.pipe, other_end = context.Pipe(duplex=False)
        self.process = context.Process(target=work, args=(other_end, job), daemon=True)
        self.process.start()
        other_end.close()

    def kill(self) -> None:
        """End the process."""
        self.pipe.close()
        self.process.kill()
        self.process.join()

    def failures(self) -> list[Row]:
        """Return the row that says why the process ended; none if its job is done."""
        self.process.join(5)
        self.kill()
        code = self.process.exitcode
        if code == 0:
            return []
        ended_by = {-number: number.name for number in signal.Signals}.get(code)
        if ended_by in ("SIGTERM", "SIGHUP"):
            raise KeyboardInterrupt  # such a signal is meant for the whole run
        if code == 1 and self.job.facts["n_samples"] is None:
            raise ChildProcessError(
                "a process ended before its first task; in a script, run plans under "
                "if __name__ == '__main__'"
            )
        if ended_by == "SIGALRM":
            return self.job.failures(
                "time",
                f"the solve took more than the limit of {self.job.plan.time_limit:g} s",
            )
        if ended_by == "SIGKILL":
            return self.job.failures(
                "memory", "the process was killed, probably out of memory"
            )
        return self.job.failures(
            "failed", f"the process ended by itself (exit code {code})"
        )


def work(pipe: Any, job: Job) -> None:
    """Do a job: send the facts of its data, then the result of every task."""
    # An interrupt from the keyboard reaches all processes; the parent alone decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    plan = job.plan
    if plan.memory_limit is not None:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (int(plan.memory_limit * 1e9), hard))
    warnings.simplefilter("ignore")  # a row says whether a solve converged
    with threadpool_limits(plan.threads):
        try:
            if plan.loaders:
                import_loaders((plan.folder / plan.loaders).resolve())
            prepared = Prepared.read(job.dataset, plan.folder)
        except Exception as error:
            pipe.send((job.facts, job.failures_of(error), []))
            return
        job.facts = prepared.facts
        pipe.send((job.facts, [], []))
        for result in execute(job, prepared):
            pipe.send((job.facts, *result))


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended."""
    parent: Any = multiprocessing.parent_process()
    parent.join()
    os._exit(1)


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
    stamp = {
        "versions": ", ".join(f"{name} {used}" for name, used in versions().items()),
        "machine": machine(),
    }
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
        for name, value in (now | default if row["default"] else now).items():
            # Of unreadable data no fingerprint is known.
            if None not in (row.get(name), value) and row[name] != value:
                raise ValueError(
                    f"{folder}: its rows of {' '.join(job.key)} have another {name} "
                    f"({row[name]}); choose another folder, or rename the data set or "
                    "the method"
                )


def row_key(row: Row) -> tuple[Any, ...]:
    """Return the key of a row; rows with the same key are the same."""
    return (
        row["dataset"],
        row["method"],
        row["parameters"],
        row["resample"],
        row["repetition"],
    )


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
        write_atomically({file: f"{json.dumps(protocol, indent=1)}\n".encode()})
    # Rows of earlier versions are all by rows of unit length.
    with errors_of(file):
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
    return ", ".join(
        [
            f"{platform.system()} {platform.machine()}",
            *models[:1],
            f"{joblib.cpu_count()} cores",
        ]
    )
