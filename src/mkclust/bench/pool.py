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
from dataclasses import dataclass
from typing import Any

from mkclust.bench.data import NotApplicableError, Prepared
from mkclust.bench.execute import Task, TaskResult, execute
from mkclust.bench.plan import DatasetEntry, Plan, import_loaders

# How often a process checks whether its parent is alive, in seconds.
HEARTBEAT = 0.5

# What a process is asked to do: a task, or to read a data set and return its facts.
Job = Task | DatasetEntry


@dataclass(frozen=True)
class Failure:
    """Why a job has no result: the status of its row, and a message."""

    status: str
    message: str


# A finished job, with the rows of a task, the facts of a data set, or a failure.
Finished = tuple[Job, TaskResult | dict[str, Any] | Failure]


@dataclass
class _Worker:
    """A process, the pipe to it, its present job, and the data set that it has in memory."""

    process: Any
    pipe: Any
    job: Any = None
    dataset: str = ""
    ready: bool = False


class Pool:
    """Several processes with one job each at a time."""

    def __init__(self, plan: Plan, n_processes: int):
        self.plan, self.n_processes = plan, n_processes
        self._workers: list[_Worker] = []

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            _end(worker)

    @property
    def running(self) -> list[Job]:
        """The present jobs."""
        return [worker.job for worker in self._workers if worker.job is not None]

    def begin(self, job: Job) -> None:
        """Give a job to a free process, preferably one that has the data set in memory."""
        free = [worker for worker in self._workers if worker.job is None] or [self._start()]
        name = dataset_of(job).name
        worker = next((worker for worker in free if worker.dataset == name), free[0])
        worker.job, worker.dataset = job, name
        # A process that died between two jobs is noticed when its pipe is read.
        with contextlib.suppress(OSError):
            worker.pipe.send(job)

    def wait(self, seconds: float) -> list[Finished]:
        """Wait for a message of a process, and return the jobs that have finished."""
        busy = {worker.pipe: worker for worker in self._workers if worker.job is not None}
        ready = multiprocessing.connection.wait(list(busy), seconds)
        return [finished for pipe in ready for finished in self._receive(busy[pipe])]

    def _receive(self, worker: _Worker) -> Iterator[Finished]:
        """Receive a message of a process, or notice its death."""
        try:
            message = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join(5)
            self._workers.remove(worker)
            _end(worker)
            yield worker.job, self._explain(worker)
            return
        if not worker.ready:
            worker.ready = True
            return
        job, worker.job = worker.job, None
        yield job, message

    def _explain(self, worker: _Worker) -> Failure:
        """Return why a process has ended."""
        code = worker.process.exitcode
        if code in (-signal.SIGTERM, -signal.SIGHUP):
            raise KeyboardInterrupt from None  # whoever ends processes means the run
        if not worker.ready:
            raise ChildProcessError(
                f"a process ended before its first task (exit code {code}); in a script, run "
                "plans under if __name__ == '__main__'"
            ) from None
        if code == -signal.SIGALRM:
            limit = f"the solve took more than the limit of {self.plan.time_limit:g} s"
            return Failure("time", limit)
        if code == -signal.SIGKILL:
            return Failure("memory", "the process was killed, probably out of memory")
        return Failure("failed", f"the process ended by itself (exit code {code})")

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
    if plan.memory_limit is not None:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (int(plan.memory_limit * 1e9), hard))
    warnings.simplefilter("ignore")  # a row says whether a solve converged
    prepared: Prepared | None = None
    name = None
    pipe.send("ready")
    with threadpool_limits(plan.threads), contextlib.suppress(EOFError, OSError):
        while True:
            job = pipe.recv()
            entry = dataset_of(job)
            try:
                if prepared is None or name != entry.name:
                    prepared = None  # free the old kernels first
                    if plan.loaders:
                        import_loaders((plan.folder / plan.loaders).resolve())
                    name, prepared = entry.name, Prepared.read(entry, plan.folder)
                is_task = isinstance(job, Task)
                result: Any = execute(job, plan, prepared) if is_task else prepared.facts
            except NotApplicableError as error:
                result = Failure("skipped", str(error))
            except MemoryError as error:
                result = Failure("memory", " ".join(str(error).split()) or "not enough memory")
            except Exception as error:  # whatever a method raises becomes a row
                words = " ".join(str(error).split())
                result = Failure("failed", f"{type(error).__name__}: {words}")
            pipe.send(result)


def dataset_of(job: Job) -> DatasetEntry:
    """Return the data set of a job."""
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
