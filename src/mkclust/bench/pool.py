"""A process per job, within limits of time and memory, which the parent survives."""

import multiprocessing
import os
import signal
import threading
import warnings
from typing import Any

from threadpoolctl import threadpool_limits

from mkclust.bench.data import Prepared
from mkclust.bench.execute import Job, execute
from mkclust.bench.plan import import_loaders
from mkclust.bench.rows import Row


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
            limit = f"{self.job.plan.time_limit:g} s"
            return self.job.failures(
                "time", f"the solve took more than the limit of {limit}"
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
