"""One task of a benchmark: solve once, discretize repeatedly, score."""

import contextlib
import json
import math
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from mkclust.bench.entries import MethodEntry
from mkclust.bench.plan import DatasetEntry, Plan
from mkclust.bench.prepare import Prepared
from mkclust.bench.rows import canonical
from mkclust.files import write_atomically
from mkclust.linalg import to_host
from mkclust.methods import AverageKKM
from mkclust.metrics import scores
from mkclust.stack.discretize import discretize, nearest_center, normalize_rows

# Stability: how many k-means clusterings, each learned on this share of the samples, are compared.
STABILITY_DRAWS, STABILITY_SHARE = 5, 0.8

Row = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """What a process does at a time: one setting on one data set, some repetitions of it.

    Attributes
    ----------
    dataset : DatasetEntry
        Data set.
    method : MethodEntry
        Method.
    parameters : dict
        Setting.
    default : bool
        Whether that is the default setting of the method.
    repetitions : tuple of int
        Repetitions to do.
    partition : str
        Where the relaxed partition is kept for further repetitions, or empty.
    """

    dataset: DatasetEntry
    method: MethodEntry
    parameters: dict[str, Any]
    default: bool
    repetitions: tuple[int, ...]
    partition: str = ""

    @property
    def heading(self) -> Row:
        """What all rows of the task begin with, whether or not the data can be read."""
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
    """What a task gives: its rows, and what is to be known of its solves."""

    rows: list[Row]
    solves: list[Row]


@dataclass(frozen=True)
class Solve:
    """A relaxed partition, and what is to be known of its solve."""

    rows: np.ndarray
    stability: float | None
    record: dict[str, Any]


def execute(
    task: Task, plan: Plan, prepared: Prepared, clock: Callable[[bool], None]
) -> TaskResult:
    """Do a task.

    The clock is told True when a solve begins, and False when it has ended. What a method raises is
    raised.
    """
    return (_discretize if task.method.partitions else _refit)(task, plan, prepared, clock)


def describe_data(prepared: Prepared) -> Row:
    """Return what a row says of its data set."""
    data = prepared.data
    return {
        "fingerprint": prepared.fingerprint,
        "paper": data.paper,
        "caveat": data.caveat,
        "n_samples": data.n_samples,
        "n_kernels": len(prepared.names),
        "n_clusters": prepared.n_clusters,
    }


def repeats_solve(method: MethodEntry, plan: Plan) -> bool:
    """Return whether every repetition is a solve of its own."""
    return plan.resample < 1 or not method.partitions


def repetition_rows(task: Task, plan: Plan, data: Row, what: Row) -> list[Row]:
    """Return a row for each repetition, all saying the same."""
    return [
        {
            **task.heading,
            **data,
            "resample": plan.resample,
            "repetition": repetition,
            "n_repetitions": 1,
            "grid_repetitions": plan.grid_repetitions,
            "seed": plan.seed + repetition,
            "acc": None,
            "nmi": None,
            "purity": None,
            "ari": None,
            "stability": None,
            "solve_seconds": None,
            "n_iter": None,
            "converged": None,
            "gap": None,
            "n_init": plan.n_init,
            "threads": plan.threads,
            "status": "ok",
            "message": "",
            **what,
        }
        for repetition in task.repetitions
    ]


def subsample(n_samples: int, plan: Plan, repetition: int) -> np.ndarray:
    """Return the samples of a repetition, the same for every method."""
    rng = np.random.default_rng([plan.seed, repetition])
    size = max(2, round(plan.resample * n_samples))
    return np.sort(rng.choice(n_samples, size, replace=False))


def _discretize(
    task: Task, plan: Plan, prepared: Prepared, clock: Callable[[bool], None]
) -> TaskResult:
    """Solve and discretize: once and repeatedly, or both on a part of the samples each time."""
    rows: list[Row] = []
    solves: list[Row] = []
    solve = None
    for row in repetition_rows(task, plan, describe_data(prepared), {}):
        part = prepared
        if plan.resample < 1:
            part = prepared.part(subsample(prepared.data.n_samples, plan, row["repetition"]))
            # The weights of one refit stand for all.
            solve = _solve(task, plan, part, clock, explain=row["repetition"] == 0)
        elif solve is None:
            solve = load_partition(task.partition) or _solve(task, plan, part, clock)
            save_partition(task.partition, solve)
        assert solve is not None
        labels, _ = discretize(
            solve.rows,
            part.n_clusters,
            n_init=plan.n_init,
            init=plan.init,
            random_state=row["seed"],
        )
        of_solve = ("solve_seconds", "n_iter", "converged", "gap")
        rows.append(
            row
            | {name: solve.record[name] for name in of_solve}
            | {"stability": solve.stability}
            | scores(part.y, labels)
        )
        if not solves and solve.record["alignments"] is not None:
            repetition = row["repetition"] if plan.resample < 1 else None
            data = {name: row[name] for name in ("paper", "caveat", "resample")}
            solves.append(task.heading | data | {"repetition": repetition} | solve.record)
    return TaskResult(rows, solves)


def _solve(
    task: Task,
    plan: Plan,
    prepared: Prepared,
    clock: Callable[[bool], None],
    explain: bool = True,
) -> Solve:
    """Solve a setting, on the clock with its checks. Alignments take an eigenproblem a kernel."""
    if task.method.kind == "kernel-method":
        model = task.method.estimator()(
            prepared.n_clusters, kernels="precomputed", **task.parameters
        )
        stack = prepared.stack
    else:
        model = AverageKKM(prepared.n_clusters, kernels="precomputed")
        stack = prepared.single(task.parameters["kernel"]).stack
    clock(True)
    solution = model.solve(stack)
    clock(False)
    H = to_host(solution.partition)
    alignments = _numbers(prepared.alignments(H)) if explain else None
    weights = solution.weights
    if task.method.kind != "kernel-method":
        weights = np.eye(len(prepared.names))[task.parameters["kernel"]]
    record = {
        "solve_seconds": round(solution.seconds, 6),
        "n_iter": solution.n_iter,
        "converged": bool(solution.converged),
        "gap": _number(solution.gap),
        "kernel_names": list(prepared.names),
        "weights": _numbers(weights),
        "alignments": alignments,
        "history": _numbers(solution.history),
        "lower_bounds": _numbers(solution.lower_bounds),
    }
    stability = _stability(H, prepared.n_clusters, plan) if plan.resample == 1 else None
    return Solve(H, stability, record)


def load_partition(path: str) -> Solve | None:
    """Return the partition that an earlier task has left, if there is one."""
    if not path or not os.path.exists(path):
        return None
    with np.load(path, allow_pickle=False) as stored:
        record = json.loads(str(stored["record"]))
        return Solve(stored["rows"], float(stored["stability"]), record)


def save_partition(path: str, solve: Solve) -> None:
    """Leave a partition for tasks to come, completely or not at all."""
    if not path or os.path.exists(path):
        return
    stored: dict[str, Any] = {
        "rows": solve.rows,
        "stability": solve.stability,
        "record": json.dumps(solve.record),
    }
    # Without it the next task solves again; a full disk is told where rows are written.
    with contextlib.suppress(OSError):
        write_atomically({Path(path): lambda draft: np.savez(draft, **stored)})


def _stability(H: np.ndarray, n_clusters: int, plan: Plan) -> float:
    """Return how alike clusterings are whose centers were learned on different samples."""
    rows = normalize_rows(H)
    size = max(n_clusters, round(STABILITY_SHARE * len(rows)))
    labels = []
    for draw in range(STABILITY_DRAWS):
        rng = np.random.default_rng([plan.seed, draw, len(rows)])
        part = rows[rng.choice(len(rows), size, replace=False)]
        means = KMeans(
            n_clusters, n_init=plan.n_init, init=plan.init, random_state=plan.seed + draw
        )
        labels.append(nearest_center(rows, means.fit(part).cluster_centers_))
    pairs = combinations(labels, 2)
    return float(np.mean([adjusted_rand_score(one, other) for one, other in pairs]))


def _refit(task: Task, plan: Plan, prepared: Prepared, clock: Callable[[bool], None]) -> TaskResult:
    """Fit another clusterer anew for every repetition."""
    rows = []
    for row in repetition_rows(task, plan, describe_data(prepared), {}):
        part = prepared
        if plan.resample < 1:
            part = prepared.part(subsample(prepared.data.n_samples, plan, row["repetition"]))
        X, model = part.input(task.method.input), _clusterer(task, plan, part, row["seed"])
        clock(True)
        start = time.perf_counter()
        labels = model.fit_predict(X) if hasattr(model, "fit_predict") else model.fit(X).labels_
        seconds = time.perf_counter() - start
        clock(False)
        n_iter = getattr(model, "n_iter_", None)
        rows.append(
            row
            | {"solve_seconds": round(seconds, 6)}
            | {"n_iter": int(n_iter) if isinstance(n_iter, int | np.integer) else None}
            | scores(part.y, np.asarray(labels))
        )
    return TaskResult(rows, [])


def _clusterer(task: Task, plan: Plan, prepared: Prepared, seed: int) -> Any:
    """Return another clusterer, with the number of clusters and the seed where it takes them."""
    if task.method.kind == "concatenated-kmeans":
        model: Any = KMeans(n_init=plan.n_init, init=plan.init)
    else:
        model = task.method.estimator()(**task.parameters)
    names, parameters = model.get_params(), {}
    count = next((name for name in ("n_clusters", "n_components") if name in names), None)
    if count is not None and count not in task.parameters:
        parameters[count] = prepared.n_clusters
    if "random_state" in names:
        parameters["random_state"] = seed
    model.set_params(**parameters)
    return model


def _number(value: float) -> float | None:
    """Return a number that JSON can hold."""
    return float(value) if math.isfinite(value) else None


def _numbers(values: Any) -> list[float | None] | None:
    """Return numbers that JSON can hold, with as many digits as anybody reads."""
    if values is None:
        return None
    return [None if not math.isfinite(v) else float(f"{v:.9g}") for v in np.ravel(values)]


def silence_warnings() -> None:
    """Keep warnings to the rows: a row says whether a solve converged."""
    warnings.simplefilter("ignore")
