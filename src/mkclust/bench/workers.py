"""Processes that do tasks within limits of time and memory; a parent that outlives them all."""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mkclust.bench.execute import Task, TaskResult, describe_data, execute, silence_warnings
from mkclust.bench.plan import DatasetEntry, Plan, import_loaders
from mkclust.bench.prepare import NotApplicableError, Prepared

# How often a process looks whether its parent is still there, in seconds.
HEARTBEAT = 0.5


@dataclass(frozen=True)
class Failure:
    """Why a task has no result: the status of its row, and words."""

    status: str
    message: str


@dataclass
class _Worker:
    """A process, its line to the parent, and what it is doing."""

    process: Any
    line: Any
    job: Any = None
    ready: bool = False
    started: float = 0.0
    solving_since: float | None = None


@dataclass(frozen=True)
class Finished:
    """A job that has ended: a task with its outcome, or a data set with its facts."""

    job: Task | DatasetEntry
    result: TaskResult | dict[str, Any] | Failure
    seconds: float


@dataclass
class Pool:
    """Several processes, each with a job at a time.

    Parameters
    ----------
    plan : Plan
        The protocol, with its limits.
    n_processes : int
        How many.
    """

    plan: Plan
    n_processes: int
    _workers: list[_Worker] = field(default_factory=list)

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            self._end(worker)

    @property
    def n_free(self) -> int:
        """How many more jobs can begin at once."""
        return self.n_processes - sum(worker.job is not None for worker in self._workers)

    @property
    def running(self) -> list[tuple[Task | DatasetEntry, float]]:
        """The jobs that are going on, and for how many seconds."""
        now = time.monotonic()
        return [(w.job, now - w.started) for w in self._workers if w.job is not None]

    @property
    def busy(self) -> bool:
        """Whether any job is going on."""
        return any(worker.job is not None for worker in self._workers)

    def begin(self, job: Task | DatasetEntry) -> None:
        """Give a job to a free process, one that has the data set in memory if there is one."""
        free = [worker for worker in self._workers if worker.job is None]
        if not free:
            free = [self._start()]
        name = _dataset(job).name
        worker = next((w for w in free if w.process.name == name), free[0])
        worker.process.name = name
        worker.job, worker.started, worker.solving_since = job, time.monotonic(), None
        # A process that died between two jobs is noticed when its end of the line is read.
        with contextlib.suppress(OSError):
            worker.line.send(job)

    def wait(self, seconds: float) -> list[Finished]:
        """Wait for jobs to end, and return those that have."""
        deadline = time.monotonic() + seconds
        finished: list[Finished] = []
        while not finished and (remaining := deadline - time.monotonic()) > 0:
            lines = {worker.line: worker for worker in self._workers if worker.job is not None}
            limits = [self._seconds_left(worker) for worker in lines.values()]
            ready = multiprocessing.connection.wait(
                list(lines), max(0.0, min([remaining, *limits]))
            )
            for line in ready:
                finished += self._hear(lines[line])
            for worker in lines.values():
                if worker.job is not None and self._seconds_left(worker) <= 0:
                    limit = f"the solve took more than the limit of {self.plan.time_limit:g} s"
                    finished.append(self._lose(worker, Failure("time", limit)))
        return finished

    def _seconds_left(self, worker: _Worker) -> float:
        """Return how long a solve may still take."""
        if worker.solving_since is None or self.plan.time_limit is None:
            return float("inf")
        return worker.solving_since + self.plan.time_limit - time.monotonic()

    def _hear(self, worker: _Worker) -> Iterator[Finished]:
        """Take a message of a process, or notice its death."""
        try:
            kind, content = worker.line.recv()
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
            yield self._lose(worker, _death(code))
            return
        if kind == "ready":
            worker.ready = True
        elif kind == "clock":
            worker.solving_since = time.monotonic() if content else None
        else:
            yield Finished(worker.job, content, time.monotonic() - worker.started)
            worker.job = worker.solving_since = None

    def _lose(self, worker: _Worker, failure: Failure) -> Finished:
        """Give up a process with its job."""
        finished = Finished(worker.job, failure, time.monotonic() - worker.started)
        self._workers.remove(worker)
        self._end(worker)
        return finished

    def _start(self) -> _Worker:
        """Start a process that waits for jobs."""
        # Not a copy of this process: libraries with threads of their own do not survive that.
        context = multiprocessing.get_context("spawn")
        line, other_end = context.Pipe()
        process = context.Process(target=work, args=(other_end, self.plan), daemon=True)
        process.start()
        other_end.close()
        worker = _Worker(process, line)
        self._workers.append(worker)
        return worker

    def _end(self, worker: _Worker) -> None:
        """End a process at once."""
        worker.line.close()
        worker.process.kill()
        worker.process.join()


def work(line: Any, plan: Plan) -> None:
    """Do what comes over the line, until it is closed."""
    from threadpoolctl import threadpool_limits

    # An interrupt from the keyboard reaches all processes; the parent alone decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow, args=(os.getppid(),), daemon=True).start()
    _limit_memory(plan.memory_limit)
    silence_warnings()
    prepared: tuple[str, Prepared] | None = None
    line.send(("ready", None))
    with threadpool_limits(plan.threads):
        while True:
            try:
                job = line.recv()
            except (EOFError, OSError):
                return
            entry = _dataset(job)
            try:
                if prepared is None or prepared[0] != entry.name:
                    prepared = None  # the old kernels go before the new ones come
                    if plan.loaders:
                        import_loaders(plan.folder / plan.loaders)
                    prepared = entry.name, Prepared.read(entry, plan.folder)
                if isinstance(job, DatasetEntry):
                    result: Any = describe_data(prepared[1])
                else:
                    result = execute(
                        job, plan, prepared[1], lambda solving: line.send(("clock", solving))
                    )
            except NotApplicableError as error:
                result = Failure("skipped", str(error))
            except MemoryError as error:
                result = Failure("memory", " ".join(str(error).split()) or "not enough memory")
            except Exception as error:  # whatever a method raises becomes a row
                words = " ".join(str(error).split())
                result = Failure("failed", f"{type(error).__name__}: {words}")
            line.send(("done", result))


def _dataset(job: Task | DatasetEntry) -> DatasetEntry:
    """Return the data set of a job."""
    return job if isinstance(job, DatasetEntry) else job.dataset


def _follow(parent: int) -> None:
    """End this process soon after its parent, however that ended."""
    while os.getppid() == parent:
        time.sleep(HEARTBEAT)
    os._exit(1)


def _limit_memory(gigabytes: float | None) -> None:
    """Let allocations beyond the limit fail, where the system can."""
    if gigabytes is None:
        return
    try:
        import resource
    except ImportError:  # no such limits on this system
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (int(gigabytes * 1e9), hard))


def _death(exitcode: int | None) -> Failure:
    """Return in words how a process has ended."""
    if exitcode == -signal.SIGKILL:
        return Failure("memory", "the process was killed, most likely because memory ran out")
    return Failure("failed", f"the process ended by itself (exit code {exitcode})")
