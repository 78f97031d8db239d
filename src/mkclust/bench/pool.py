"""A process per job, within limits of time and memory; the parent survives all of them."""

import multiprocessing
import os
import signal
import threading
import warnings
from dataclasses import dataclass
from typing import Any

from mkclust.bench.data import Prepared
from mkclust.bench.execute import NO_FACTS, Job, Task, describe_error, execute, failure_row
from mkclust.bench.plan import Plan, import_loaders
from mkclust.bench.rows import Row


@dataclass
class Worker:
    """A process that does a job, and the pipe from it."""

    job: Job
    process: Any
    pipe: Any
    task: Task | None = None  # that it has begun
    facts: Row | None = None  # of its data set

    @classmethod
    def start(cls, plan: Plan, job: Job) -> "Worker":
        """Start a process that does a job and reports through a pipe."""
        # Not forked: libraries with threads of their own do not survive that.
        context = multiprocessing.get_context("spawn")
        pipe, other_end = context.Pipe(duplex=False)
        process = context.Process(target=work, args=(other_end, plan, job), daemon=True)
        process.start()
        other_end.close()
        return cls(job, process, pipe)

    def kill(self) -> None:
        """End the process."""
        self.pipe.close()
        self.process.kill()
        self.process.join()

    def failures(self, plan: Plan) -> list[Row]:
        """Return the row that says why the process has ended; none if its job is done."""
        self.process.join(5)
        self.kill()
        code = self.process.exitcode
        if code == 0 and self.task is None:
            return []
        if code in (-signal.SIGTERM, -signal.SIGHUP):
            raise KeyboardInterrupt  # such a signal is meant for the whole run
        if code == 1 and self.facts is None:
            raise ChildProcessError(
                "a process ended before its first task; in a script, run plans under "
                "if __name__ == '__main__'"
            )
        status, message = "failed", f"the process ended by itself (exit code {code})"
        if code == -signal.SIGALRM:
            status, message = "time", f"the solve took more than the limit of {plan.time_limit:g} s"
        elif code == -signal.SIGKILL:
            status, message = "memory", "the process was killed, probably out of memory"
        return [failure_row(self.job, self.task, plan, self.facts or NO_FACTS, status, message)]


def work(pipe: Any, plan: Plan, job: Job) -> None:
    """Do a job: send the facts of its data, then every task and its result."""
    from threadpoolctl import threadpool_limits

    # An interrupt from the keyboard reaches all processes; the parent alone decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
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
            pipe.send(([failure_row(job, None, plan, NO_FACTS, *describe_error(error))], []))
            return
        pipe.send(prepared.facts)
        for message in execute(job, plan, prepared):
            pipe.send(message)


def _end_with_parent() -> None:
    """End this process soon after its parent, however that ended."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
