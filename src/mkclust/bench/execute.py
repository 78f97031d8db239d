"""A method on a data set: solve each setting once, discretize repeatedly, score."""

import json
import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from mkclust.bench.data import Prepared
from mkclust.bench.plan import DatasetEntry, MethodEntry, Plan
from mkclust.bench.rows import Row, best_settings, canonical
from mkclust.fit import RelaxedClusterer, Solution
from mkclust.fit.rounding import round_partition
from mkclust.linalg import inner_products, to_host
from mkclust.metrics import scores

# The columns of a row that a solve, and the comparison with the true classes, fill.
MEASURED = (
    "acc",
    "nmi",
    "purity",
    "ari",
    "solve_seconds",
    "n_iter",
    "converged",
    "gap",
)


class Task(NamedTuple):
    """Some repetitions of one setting."""

    parameters: dict[str, Any]
    default: bool  # whether that is the default setting of the method
    repetitions: tuple[int, ...]


# The facts about a data set that has not been read.
NO_FACTS: Row = {
    "fingerprint": None,
    "n_samples": None,
    "n_kernels": None,
    "n_clusters": None,
    "paper": "",
    "caveat": "",
}


@dataclass
class Job:
    """A method on a data set, with the finished rows, which decide what is next."""

    plan: Plan
    dataset: DatasetEntry
    method: MethodEntry
    rows: list[Row] = field(default_factory=list)
    facts: Row = field(default_factory=NO_FACTS.copy)  # about the data set

    @property
    def key(self) -> tuple[str, str]:
        """The names of the data set and of the method."""
        return self.dataset.name, self.method.name

    def settings(self) -> list[dict[str, Any]]:
        """Return the settings to run, the default one first."""
        return self.method.settings(
            self.dataset.max_settings, self.facts["n_kernels"] or 1
        )

    def next_task(self) -> Task | None:
        """Return the next task, None if all is done; failed settings stay failed."""
        method = self.method
        plan = self.plan
        settings = self.settings()
        repetitions = plan.repetitions
        if method.input and plan.resample == 1:
            model = method.estimator()(**method.parameters)
            if "random_state" not in model.get_params():
                repetitions = 1  # it is always the same
        done = {(row["parameters"], row["repetition"]) for row in self.rows}
        failed = {row["parameters"] for row in self.rows if row["status"] != "ok"}
        stages = [(settings, repetitions)]
        if len(settings) > 1:
            best = dict.fromkeys(best_settings(self.rows).values())
            stages = [
                (settings, min(plan.grid_repetitions, repetitions)),
                ([json.loads(name) for name in best], repetitions),
            ]
        for setting, up_to in ((each, n) for some, n in stages for each in some):
            name = canonical(setting)
            missing = [r for r in range(up_to) if (name, r) not in done]
            if missing and name not in failed:
                # One solve serves all repetitions; fits and refits are tasks of their
                # own.
                if plan.resample < 1 or method.input:
                    missing = missing[:1]
                default = not method.oracle and setting == settings[0]
                return Task(setting, default, tuple(missing))
        return None

    def row(self, task: Task, repetition: int) -> Row:
        """Return the row of a repetition, without scores."""
        return {
            "dataset": self.dataset.name,
            "method": self.method.name,
            "entry": self.method.source,
            "oracle": self.method.oracle,
            "parameters": canonical(task.parameters),
            "default": task.default,
            **self.facts,
            "resample": self.plan.resample,
            "repetition": repetition,
            "n_repetitions": 1,
            "grid_repetitions": self.plan.grid_repetitions,
            "seed": self.plan.seed + repetition,
            **dict.fromkeys(MEASURED),
            "n_init": self.plan.n_init,
            "threads": self.plan.threads,
            "status": "ok",
            "message": "",
        }

    def failures(self, status: str, message: str) -> list[Row]:
        """Return a row on why the next task has no scores; none if all is done."""
        task = self.next_task()
        if task is None:
            return []
        failure = {"status": status, "message": " ".join(message.split())}
        return [self.row(task, task.repetitions[0]) | failure]

    def failures_of(self, error: Exception) -> list[Row]:
        """Return the row for an error in the next task."""
        return self.failures(
            "memory" if isinstance(error, MemoryError) else "failed",
            f"{type(error).__name__}: {error}",
        )


# The rows of a task, and the records of its solves.
Result = tuple[list[Row], list[Row]]


def execute(job: Job, prepared: Prepared) -> Iterator[Result]:
    """Yield the result of every task that is to be done; an error becomes a row."""
    n_samples = len(prepared.y)
    limit = job.method.max_samples
    if limit and n_samples > limit:
        yield (
            job.failures(
                "skipped",
                f"{n_samples} samples, more than the plan's {limit}",
            ),
            [],
        )
        return

    for task in iter(job.next_task, None):
        try:
            result = _do(job, task, prepared)
        except Exception as error:
            result = job.failures_of(error), []
        job.rows += result[0]
        yield result


def _do(job: Job, task: Task, prepared: Prepared) -> Result:
    """Return the rows of one task, and those of its solves."""
    plan = job.plan
    rows = list[Row]()
    solves = list[Row]()
    solution: Solution | None = None
    record: Row = {}
    for repetition in task.repetitions:
        row = job.row(task, repetition)
        part = prepared
        if plan.resample < 1:
            part = prepared.part(subsample(len(prepared.y), plan, repetition))
        if job.method.input:
            labels, record = _fit(job, task, part, row["seed"])
        else:
            if solution is None or plan.resample < 1:
                solution, record = _solve(job, task, part)
            labels = _round(job, solution, row["seed"])
            # Only the first refit is recorded.
            if not solves and (plan.resample == 1 or repetition == 0):
                solves.append(_solve_record(row, record, solution, part))
        measured = {name: record[name] for name in MEASURED if name in record}
        rows.append(row | measured | scores(part.y, labels))
    return rows, solves


def _solve_record(row: Row, record: Row, solution: Solution, part: Prepared) -> Row:
    """Return what is stored of a solve: its setting, weights and alignments."""
    H = to_host(solution.partition)
    captured = inner_products(part.stack.apply(H), H) / part.leading_sums

    return {
        "dataset": row["dataset"],
        "method": row["method"],
        "entry": row["entry"],
        "oracle": row["oracle"],
        "parameters": row["parameters"],
        "default": row["default"],
        "paper": row["paper"],
        "caveat": row["caveat"],
        "resample": row["resample"],
        **record,
        "repetition": row["repetition"] if row["resample"] < 1 else None,
        "alignments": _numbers(np.clip(captured, 0, 1)),
        "kernel_names": list(part.names),
    }


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


def _round(job: Job, solution: Solution, seed: int) -> np.ndarray:
    """Return the labels of a repetition."""
    plan = job.plan
    stack: Any = solution.stack
    is_relaxed = issubclass(job.method.estimator(), RelaxedClusterer)
    return round_partition(
        stack,
        solution,
        solution.partition,
        n_init=plan.n_init,
        init=plan.init,
        random_state=seed,
        rounding=plan.rounding if is_relaxed else "unit",
    ).labels


def _solve(job: Job, task: Task, prepared: Prepared) -> tuple[Solution, Row]:
    """Solve one setting, and return the solution with its record."""
    parameters = task.parameters
    stack = prepared.stack
    if job.method.oracle:
        kernel = parameters["kernel"]
        parameters = {}
        stack = stack.subset([kernel])
    model = job.method.estimator()(
        prepared.n_clusters, kernels="precomputed", **parameters
    )
    with _limited(job.plan.time_limit):
        solution = model.solve(stack)

    weights = solution.weights
    if job.method.oracle:
        weights = np.eye(prepared.stack.n_kernels)[kernel]
    return replace(solution, stack=solution.stack or stack), {
        "solve_seconds": round(solution.seconds, 6),
        "n_iter": solution.n_iter,
        "converged": bool(solution.converged),
        "gap": float(solution.gap) if math.isfinite(solution.gap) else None,
        "weights": _numbers(weights),
        "history": _numbers(solution.history),
        "lower_bounds": _numbers(solution.lower_bounds),
    }


def _fit(job: Job, task: Task, prepared: Prepared, seed: int) -> tuple[np.ndarray, Row]:
    """Fit the clusterer of one setting, and return its labels and record."""
    X = prepared.input(job.method.input)
    model = job.method.estimator()(**task.parameters)
    names = model.get_params()
    counts = [name for name in ("n_clusters", "n_components") if name in names]
    own: Row = dict.fromkeys(counts[:1], prepared.n_clusters) | {"random_state": seed}
    if isinstance(model, RelaxedClusterer):
        own["rounding"] = job.plan.rounding
    free = names.keys() - task.parameters
    model.set_params(**{name: own[name] for name in own.keys() & free})
    start = time.perf_counter()
    with _limited(job.plan.time_limit):
        labels = np.asarray(model.fit_predict(X))
    seconds = time.perf_counter() - start
    return labels, {"solve_seconds": round(seconds, 6)}


def _numbers(values: Any) -> list[float | None] | None:
    if values is None:
        return None
    return [float(f"{v:.9g}") if math.isfinite(v) else None for v in np.ravel(values)]
