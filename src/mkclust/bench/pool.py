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
from typing import Any, NamedTuple, cast

from mkclust.bench.data import Prepared
from mkclust.bench.execute import (
    NO_FACTS,
    Job,
    Result,
    Task,
    describe_error,
    execute,
    failure_row,
)
from mkclust.bench.plan import Plan, import_loaders
from mkclust.bench.rows import Row

# How often a process checks whether its parent is alive, in seconds.
HEARTBEAT = 0.5


class Failure(NamedTuple):
    """Why a process has ended, as the status and the message of a row; and its task, if any."""

    status: str
    message: str
    task: Task | None


# What a process says of its job: the facts of the data set, a result, a failure, or None at the
# end.
Message = Row | Result | Failure | None


@dataclass
class _Worker:
    """A process, the pipe to it, its present job and task, and the data set in its memory."""

    process: Any
    pipe: Any
    job: Job | None = None
    task: Task | None = None
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
        name = job.dataset.name
        worker = next((worker for worker in free if worker.dataset == name), free[0])
        worker.job, worker.task, worker.dataset = job, None, name
        # A process that died between two jobs is noticed when its pipe is read.
        with contextlib.suppress(OSError):
            worker.pipe.send(job)

    def wait(self, seconds: float) -> Iterator[tuple[Job, Message]]:
        """Wait for messages of the processes, and yield them with their jobs."""
        busy = {worker.pipe: worker for worker in self._workers if worker.job is not None}
        for pipe in multiprocessing.connection.wait(list(busy), seconds):
            worker = busy[cast(Any, pipe)]
            job = cast(Job, worker.job)
            try:
                message = worker.pipe.recv()
            except (EOFError, OSError):
                worker.process.join(5)
                self._workers.remove(worker)
                _end(worker)
                yield job, self._explain(worker)
                continue
            if not worker.ready:
                worker.ready = True
            elif isinstance(message, Task):
                worker.task = message
            else:
                worker.job = worker.job if message is not None else None
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
        status, message = "failed", f"the process ended by itself (exit code {code})"
        if code == -signal.SIGALRM:
            limit = f"the limit of {self.plan.time_limit:g} s"
            status, message = "time", f"the solve took more than {limit}"
        elif code == -signal.SIGKILL:
            status, message = "memory", "the process was killed, probably out of memory"
        return Failure(status, message, worker.task)

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
            job: Job = pipe.recv()
            try:
                if prepared is None or name != job.dataset.name:
                    prepared = None  # free the old kernels first
                    if plan.loaders:
                        import_loaders((plan.folder / plan.loaders).resolve())
                    prepared = Prepared.read(job.dataset, plan.folder)
                    name = job.dataset.name
            except Exception as error:
                row = failure_row(job, None, plan, NO_FACTS, *describe_error(error))
                pipe.send(Result([row], []))
            else:
                pipe.send(prepared.facts)
                for message in execute(job, plan, prepared):
                    pipe.send(message)
            pipe.send(None)


def _end(worker: _Worker) -> None:
    worker.pipe.close()
    worker.process.kill()
    worker.process.join()


def _follow(parent: int) -> None:
    """End this process soon after its parent, however that ended."""
    while os.getppid() == parent:
        time.sleep(HEARTBEAT)
    os._exit(1)
