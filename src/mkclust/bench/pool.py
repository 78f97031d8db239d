"""Processes that do tasks within limits of time and memory; the parent survives all of them."""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mkclust.bench.data import NotApplicableError, Prepared
from mkclust.bench.execute import Task, TaskResult, execute
from mkclust.bench.plan import DatasetEntry, Plan, import_loaders

# How often a process checks whether its parent is alive, in seconds.
HEARTBEAT = 0.5


@dataclass(frozen=True)
class Failure:
    """Why a task has no result: the status of its row, and a message."""

    status: str
    message: str


@dataclass(frozen=True)
class Finished:
    """A finished job: a task with its rows, a data set with its facts, or a failure."""

    job: Task | DatasetEntry
    result: TaskResult | dict[str, Any] | Failure
    seconds: float


@dataclass
class _Worker:
    """A process, the pipe to it, and its present job."""

    process: Any
    pipe: Any
    job: Any = None
    ready: bool = False
    started: float = 0.0
    solving_since: float | None = None


@dataclass
class Pool:
    """Several processes with one job each at a time.

    Parameters
    ----------
    plan : Plan
        The plan, with its limits.
    n_processes : int
        Number of processes.
    """

    plan: Plan
    n_processes: int
    _workers: list[_Worker] = field(default_factory=list)

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            _end(worker)

    @property
    def running(self) -> list[Task | DatasetEntry]:
        """The present jobs."""
        return [worker.job for worker in self._workers if worker.job is not None]

    def begin(self, job: Task | DatasetEntry) -> None:
        """Give a job to a free process, preferably one that has the data set in memory."""
        free = [worker for worker in self._workers if worker.job is None] or [self._start()]
        name = _dataset(job).name
        worker = next((w for w in free if w.process.name == name), free[0])
        worker.process.name = name
        worker.job, worker.started, worker.solving_since = job, time.monotonic(), None
        # A process that died between two jobs is noticed when its pipe is read.
        with contextlib.suppress(OSError):
            worker.pipe.send(job)

    def wait(self, seconds: float) -> list[Finished]:
        """Wait for jobs to finish, and return those that have."""
        deadline = time.monotonic() + seconds
        finished: list[Finished] = []
        while not finished and (remaining := deadline - time.monotonic()) > 0:
            busy = {worker.pipe: worker for worker in self._workers if worker.job is not None}
            patience = min([remaining, *map(self._seconds_left, busy.values())])
            for pipe in multiprocessing.connection.wait(list(busy), max(0.0, patience)):
                finished += self._receive(busy[pipe])
            for worker in busy.values():
                if worker.job is not None and self._seconds_left(worker) <= 0:
                    limit = f"the solve took more than the limit of {self.plan.time_limit:g} s"
                    finished.append(self._lose(worker, Failure("time", limit)))
        return finished

    def _seconds_left(self, worker: _Worker) -> float:
        if worker.solving_since is None or self.plan.time_limit is None:
            return float("inf")
        return worker.solving_since + self.plan.time_limit - time.monotonic()

    def _receive(self, worker: _Worker) -> Iterator[Finished]:
        """Receive a message of a process, or notice its death."""
        try:
            kind, content = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join(5)
            code = worker.process.exitcode
            if code in (-signal.SIGTERM, -signal.SIGHUP):
                raise KeyboardInterrupt from None  # whoever ends processes means the run
            if not worker.ready:
                raise ChildProcessError(
                    f"a process ended before its first task (exit code {code}); in a script, run "
                    "plans under if __name__ == '__main__'"
                ) from None
            failure = Failure("failed", f"the process ended by itself (exit code {code})")
            if code == -signal.SIGKILL:
                failure = Failure("memory", "the process was killed, probably out of memory")
            yield self._lose(worker, failure)
            return
        if kind == "ready":
            worker.ready = True
        elif kind == "clock":
            worker.solving_since = time.monotonic() if content else None
        else:
            yield Finished(worker.job, content, time.monotonic() - worker.started)
            worker.job = worker.solving_since = None

    def _lose(self, worker: _Worker, failure: Failure) -> Finished:
        """Give up a process and its job."""
        self._workers.remove(worker)
        _end(worker)
        return Finished(worker.job, failure, time.monotonic() - worker.started)

    def _start(self) -> _Worker:
        # Not forked: libraries with threads of their own do not survive that.
        context = multiprocessing.get_context("spawn")
        pipe, other_end = context.Pipe()
        process = context.Process(target=work, args=(other_end, self.plan), daemon=True)
        process.start()
        other_end.close()
        self._workers.append(_Worker(process, pipe))
        return self._workers[-1]


def work(pipe: Any, plan: Plan) -> None:
    """Do the jobs that come through a pipe, until it is closed."""
    from threadpoolctl import threadpool_limits

    # An interrupt from the keyboard reaches all processes; the parent alone decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow, args=(os.getppid(),), daemon=True).start()
    _limit_memory(plan.memory_limit)
    warnings.simplefilter("ignore")  # a row says whether a solve converged
    prepared: Prepared | None = None
    name = None
    pipe.send(("ready", None))
    with threadpool_limits(plan.threads), contextlib.suppress(EOFError, OSError):
        while True:
            job = pipe.recv()
            entry = _dataset(job)
            try:
                if prepared is None or name != entry.name:
                    prepared = None  # free the old kernels first
                    if plan.loaders:
                        import_loaders(plan.folder / plan.loaders)
                    name, prepared = entry.name, Prepared.read(entry, plan.folder)
                if isinstance(job, DatasetEntry):
                    result: Any = prepared.facts
                else:
                    result = execute(job, plan, prepared, lambda on: pipe.send(("clock", on)))
            except NotApplicableError as error:
                result = Failure("skipped", str(error))
            except MemoryError as error:
                result = Failure("memory", " ".join(str(error).split()) or "not enough memory")
            except Exception as error:  # whatever a method raises becomes a row
                words = " ".join(str(error).split())
                result = Failure("failed", f"{type(error).__name__}: {words}")
            pipe.send(("done", result))


def _dataset(job: Task | DatasetEntry) -> DatasetEntry:
    return job if isinstance(job, DatasetEntry) else job.dataset


def _end(worker: _Worker) -> None:
    worker.pipe.close()
    worker.process.kill()
    worker.process.join()


def _follow(parent: int) -> None:
    """End this process soon after its parent, however that ended."""
    while os.getppid() == parent:
        time.sleep(HEARTBEAT)
    os._exit(1)


def _limit_memory(gigabytes: float | None) -> None:
    """Let allocations beyond the limit fail, if the system can."""
    if gigabytes is None:
        return
    try:
        import resource
    except ImportError:  # no such limits on this system
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (int(gigabytes * 1e9), hard))
