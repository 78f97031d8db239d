"""A method on a data set: solve each setting once, discretize repeatedly, score."""

import json
import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkclust.bench.data import NotApplicableError, Prepared
from mkclust.bench.plan import DatasetEntry, MethodEntry, Plan
from mkclust.bench.rows import Row, best_settings, canonical
from mkclust.linalg import to_host
from mkclust.metrics import scores
from mkclust.stack.discretize import discretize

# The facts of a data set that cannot be read.
NO_FACTS: Row = {
    **dict.fromkeys(("fingerprint", "n_samples", "n_kernels", "n_clusters")),
    **dict.fromkeys(("paper", "caveat"), ""),
}


@dataclass(frozen=True)
class Job:
    """A method on a data set, with the rows of it that are done."""

    dataset: DatasetEntry
    method: MethodEntry
    rows: tuple[Row, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """The names of the data set and of the method."""
        return self.dataset.name, self.method.name

    def settings(self, facts: Row) -> list[dict[str, Any]]:
        """Return the settings to run, the default one first."""
        return self.method.settings(self.dataset.max_settings, facts["n_kernels"] or 1)


@dataclass(frozen=True)
class Task:
    """Some repetitions of one setting."""

    parameters: dict[str, Any]
    default: bool  # whether that is the default setting of the method
    repetitions: tuple[int, ...]


# The rows of a task, and the records of its solves.
Result = tuple[list[Row], list[Row]]


def execute(job: Job, plan: Plan, prepared: Prepared) -> Iterator[Task | Result]:
    """Yield every task that is to be done, and then its result; an error becomes a row."""
    facts, rows = prepared.facts, list(job.rows)
    limit = job.method.max_samples
    if limit and facts["n_samples"] > limit:
        why = f"{facts['n_samples']} samples, more than the plan's {limit}"
        yield [failure_row(job, None, plan, facts, "skipped", why)], []
        return
    settings = job.settings(facts)
    while (task := _next_task(job, plan, settings, rows)) is not None:
        yield task
        try:
            result = _do(job, task, plan, prepared)
        except Exception as error:
            result = [failure_row(job, task, plan, facts, *describe_error(error))], []
        yield result
        rows += result[0]


def describe_error(error: Exception) -> tuple[str, str]:
    """Return the status and the message of a row for an error."""
    status = "memory" if isinstance(error, MemoryError) else "failed"
    status = "skipped" if isinstance(error, NotApplicableError) else status
    return status, f"{type(error).__name__}: {error}"


def _next_task(
    job: Job, plan: Plan, settings: list[dict[str, Any]], rows: list[Row]
) -> Task | None:
    """Return the next task, None if all is done: first repetitions first, then the full number."""
    method, repetitions = job.method, plan.repetitions
    if method.input and plan.resample == 1:
        model = method.estimator()(**method.parameters)
        if "random_state" not in model.get_params():
            repetitions = 1  # it is always the same
    together = plan.resample == 1 and not method.input
    # Repetitions of one solve fail together; of several, the first failure or a limit decides.
    abandoned = {
        row["parameters"]
        for row in rows
        if row["status"] != "ok"
        and (together or row["repetition"] == 0 or row["status"] != "failed")
    }
    done = {(row["parameters"], row["repetition"]) for row in rows}
    has_grid = len(settings) > 1
    stages = [(settings, min(plan.grid_repetitions, repetitions) if has_grid else repetitions)]
    if has_grid:
        best = dict.fromkeys(best_settings(rows).values())
        stages.append(([json.loads(text) for text in best], repetitions))
    for of_stage, up_to in stages:
        for setting in of_stage:
            name = canonical(setting)
            missing = [r for r in range(up_to) if (name, r) not in done]
            if missing and name not in abandoned:
                default = not method.oracle and setting == settings[0]
                return Task(setting, default, tuple(missing if together else missing[:1]))
    return None


def _do(job: Job, task: Task, plan: Plan, prepared: Prepared) -> Result:
    """Do a task; errors of the method are raised."""
    rows: list[Row] = []
    solves: list[Row] = []
    H: np.ndarray | None = None
    record: Row = {}
    for repetition in task.repetitions:
        row = _row(job, task, plan, prepared.facts, repetition)
        part = prepared
        if plan.resample < 1:
            part = prepared.part(subsample(len(prepared.y), plan, repetition))
        if job.method.input:
            labels, record = _fit(job, task, plan, part, row["seed"])
        else:
            if H is None or plan.resample < 1:
                H, record = _solve(job, task, plan, part)
            options = {"n_init": plan.n_init, "init": plan.init, "random_state": row["seed"]}
            labels, _ = discretize(H, part.n_clusters, **options)
            # Of refits the first one is recorded.
            if not solves and (plan.resample == 1 or repetition == 0):
                names = ("dataset", "method", "entry", "oracle", "parameters", "default", "paper")
                solve = {name: row[name] for name in (*names, "caveat", "resample")}
                solve["repetition"] = repetition if plan.resample < 1 else None
                solve |= {"kernel_names": list(part.names)}
                solves.append(solve | record | {"alignments": _numbers(part.alignments(H))})
        rows.append(row | {n: record[n] for n in row.keys() & record} | scores(part.y, labels))
    return rows, solves


def _row(job: Job, task: Task, plan: Plan, facts: Row, repetition: int) -> Row:
    """Return the row of a repetition, without scores."""
    empty = ("acc", "nmi", "purity", "ari", "solve_seconds", "n_iter", "converged", "gap")
    return {
        "dataset": job.dataset.name,
        "method": job.method.name,
        "entry": job.method.source,
        "oracle": job.method.oracle,
        "parameters": canonical(task.parameters),
        "default": task.default,
        **facts,
        "resample": plan.resample,
        "repetition": repetition,
        "n_repetitions": 1,
        "grid_repetitions": plan.grid_repetitions,
        "seed": plan.seed + repetition,
        **dict.fromkeys(empty),
        "n_init": plan.n_init,
        "threads": plan.threads,
        "status": "ok",
        "message": "",
    }


def failure_row(
    job: Job, task: Task | None, plan: Plan, facts: Row, status: str, message: str
) -> Row:
    """Return the row that says why a task, or a method on a data set, has no scores."""
    if task is None:
        task = Task(job.settings(facts)[0], not job.method.oracle, (0,))
    row = _row(job, task, plan, facts, task.repetitions[0])
    return row | {"status": status, "message": " ".join(message.split())}


def subsample(n_samples: int, plan: Plan, repetition: int) -> np.ndarray:
    """Return the samples of a repetition, the same for every method."""
    rng = np.random.default_rng([plan.seed, repetition])
    size = max(2, round(plan.resample * n_samples))
    return np.sort(rng.choice(n_samples, size, replace=False))


@contextmanager
def _limited(seconds: float | None) -> Iterator[None]:
    """End this process if the block takes longer; the parent recognizes the signal."""
    if seconds is not None:
        signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        if seconds is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)


def _solve(job: Job, task: Task, plan: Plan, prepared: Prepared) -> tuple[np.ndarray, Row]:
    """Return the relaxed partition of a setting, and a record of its solve."""
    parameters, stack, weights = task.parameters, prepared.stack, None
    if job.method.oracle:
        index = task.parameters["kernel"]
        parameters, stack, weights = {}, stack.subset([index]), np.eye(stack.n_kernels)[index]
    model = job.method.estimator()(prepared.n_clusters, kernels="precomputed", **parameters)
    with _limited(plan.time_limit):
        solution = model.solve(stack)
    return to_host(solution.partition), {
        "solve_seconds": round(solution.seconds, 6),
        "n_iter": solution.n_iter,
        "converged": bool(solution.converged),
        "gap": float(solution.gap) if math.isfinite(solution.gap) else None,
        "weights": _numbers(solution.weights if weights is None else weights),
        "history": _numbers(solution.history),
        "lower_bounds": _numbers(solution.lower_bounds),
    }


def _fit(job: Job, task: Task, plan: Plan, prepared: Prepared, seed: int) -> tuple[np.ndarray, Row]:
    """Return the labels of a scikit-learn clusterer, and the seconds of its fit."""
    X = prepared.input(job.method.input)
    model = job.method.estimator()(**task.parameters)
    names = model.get_params()
    counts = [name for name in ("n_clusters", "n_components") if name in names]
    own = dict.fromkeys(counts[:1], prepared.n_clusters) | {"random_state": seed}
    model.set_params(**{n: v for n, v in own.items() if n in names and n not in task.parameters})
    start = time.perf_counter()
    with _limited(plan.time_limit):
        labels = np.asarray(model.fit_predict(X))
    return labels, {"solve_seconds": round(time.perf_counter() - start, 6)}


def _numbers(values: Any) -> list[float | None] | None:
    """Return numbers that JSON can hold, with nine digits."""
    if values is None:
        return None
    return [float(f"{v:.9g}") if math.isfinite(v) else None for v in np.ravel(values)]
