"""One task of a benchmark: solve once, discretize repeatedly, score."""

import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkclust.bench.data import Prepared
from mkclust.bench.plan import DatasetEntry, MethodEntry, Plan
from mkclust.bench.rows import Row, canonical
from mkclust.linalg import to_host
from mkclust.metrics import scores
from mkclust.stack.discretize import discretize


@dataclass(frozen=True)
class Task:
    """What a process does at a time: one setting on one data set, some repetitions of it."""

    dataset: DatasetEntry
    method: MethodEntry
    parameters: dict[str, Any]
    default: bool  # whether that is the default setting of the method
    repetitions: tuple[int, ...]

    @property
    def heading(self) -> Row:
        """The beginning of all rows of the task, whether or not the data can be read."""
        return {
            "dataset": self.dataset.name,
            "method": self.method.name,
            "entry": self.method.source,
            "oracle": self.method.oracle,
            "parameters": canonical(self.parameters),
            "default": self.default,
        }


@dataclass(frozen=True)
class TaskResult:
    """The rows of a task, and the records of its solves."""

    rows: list[Row]
    solves: list[Row]


def execute(task: Task, plan: Plan, prepared: Prepared) -> TaskResult:
    """Do a task; what a method raises is raised."""
    rows: list[Row] = []
    solves: list[Row] = []
    partition: np.ndarray | None = None
    record: Row = {}
    for row in repetition_rows(task, plan, prepared.facts, {}):
        part = prepared
        if plan.resample < 1:
            part = prepared.part(subsample(len(prepared.y), plan, row["repetition"]))
        if task.method.input:
            labels, record = _fit(task, plan, part, row["seed"])
        else:
            if partition is None or plan.resample < 1:
                partition, record = _solve(task, plan, part)
            labels, _ = discretize(
                partition,
                part.n_clusters,
                n_init=plan.n_init,
                init=plan.init,
                random_state=row["seed"],
            )
            if not solves and (plan.resample == 1 or row["repetition"] == 0):
                solves.append(_solve_record(task, plan, part, row, partition, record))
        known = {name: record[name] for name in ("solve_seconds", "n_iter", "converged", "gap")}
        rows.append(row | known | scores(part.y, labels))
    return TaskResult(rows, solves)


def repeats_solve(method: MethodEntry, plan: Plan) -> bool:
    """Return whether every repetition is a solve of its own."""
    return plan.resample < 1 or bool(method.input)


def repetition_rows(task: Task, plan: Plan, facts: Row, values: Row) -> list[Row]:
    """Return a row for each repetition, with the same values."""
    empty = ("acc", "nmi", "purity", "ari", "solve_seconds", "n_iter", "converged", "gap")
    return [
        {
            **task.heading,
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
            **values,
        }
        for repetition in task.repetitions
    ]


def subsample(n_samples: int, plan: Plan, repetition: int) -> np.ndarray:
    """Return the samples of a repetition, the same for every method."""
    rng = np.random.default_rng([plan.seed, repetition])
    size = max(2, round(plan.resample * n_samples))
    return np.sort(rng.choice(n_samples, size, replace=False))


@contextmanager
def _limited(seconds: float | None) -> Iterator[None]:
    """End this process if what is inside takes longer; the parent tells by the signal."""
    if seconds is None:
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _solve(task: Task, plan: Plan, prepared: Prepared) -> tuple[np.ndarray, dict[str, Any]]:
    """Return the relaxed partition of a setting, and what is known of its solve."""
    parameters, stack, weights = task.parameters, prepared.stack, None
    if task.method.oracle:
        index = task.parameters["kernel"]
        parameters, stack, weights = {}, stack.subset([index]), np.eye(stack.n_kernels)[index]
    model = task.method.estimator()(prepared.n_clusters, kernels="precomputed", **parameters)
    with _limited(plan.time_limit):
        solution = model.solve(stack)
    record = {
        "solve_seconds": round(solution.seconds, 6),
        "n_iter": solution.n_iter,
        "converged": bool(solution.converged),
        "gap": float(solution.gap) if math.isfinite(solution.gap) else None,
        "weights": _numbers(solution.weights if weights is None else weights),
        "history": _numbers(solution.history),
        "lower_bounds": _numbers(solution.lower_bounds),
    }
    return to_host(solution.partition), record


def _solve_record(
    task: Task, plan: Plan, part: Prepared, row: Row, H: np.ndarray, record: Row
) -> Row:
    """Return what ``solves.jsonl`` keeps of a solve; of refits the first stands for all."""
    names = {name: row[name] for name in ("paper", "caveat", "resample")}
    return {
        **task.heading,
        **names,
        "repetition": row["repetition"] if plan.resample < 1 else None,
        "kernel_names": list(part.names),
        "alignments": _numbers(part.alignments(H)),
        **record,
    }


def _fit(
    task: Task, plan: Plan, prepared: Prepared, seed: int
) -> tuple[np.ndarray, dict[str, Any]]:
    """Return the labels of a scikit-learn clusterer, and what is known of its fit."""
    X = prepared.input(task.method.input)
    model = task.method.estimator()(**task.parameters)
    own = {"n_clusters": prepared.n_clusters, "n_components": prepared.n_clusters}
    own = {name: k for name, k in own.items() if name not in task.parameters}
    names = model.get_params()
    chosen = next(({name: own[name]} for name in own if name in names), {})
    model.set_params(**chosen, **({"random_state": seed} if "random_state" in names else {}))
    start = time.perf_counter()
    with _limited(plan.time_limit):
        labels = np.asarray(model.fit_predict(X))
    seconds = time.perf_counter() - start
    n_iter = getattr(model, "n_iter_", None)
    n_iter = int(n_iter) if isinstance(n_iter, int | np.integer) else None
    record = {"solve_seconds": round(seconds, 6), "n_iter": n_iter, "converged": None, "gap": None}
    return labels, record


def _numbers(values: Any) -> list[float | None] | None:
    """Return numbers that JSON can hold, with nine digits."""
    if values is None:
        return None
    return [float(f"{v:.9g}") if math.isfinite(v) else None for v in np.ravel(values)]
