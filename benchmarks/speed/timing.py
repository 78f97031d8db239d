"""How speed is measured: in turns, after pauses, with the spread, and on which machine."""

import os
import platform
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from threadpoolctl import threadpool_info

import mkclust

Work = Callable[[], Any]


def take_turns(
    works: dict[str, Callable[[], Work]],
    repetitions: int,
    pause: float,
    summarize: Callable[[str, Any], Any] = lambda name, result: None,
) -> tuple[dict[str, list[float]], dict[str, list[Any]]]:
    """Return seconds and summaries of every work, each done once in every repetition.

    A work is prepared anew each time, untimed, so that nothing is left from the last time, and
    begins after a pause, in which the threads of the work before fall asleep. Each repetition
    begins with another work, so that none is always behind the same one. Results are not kept,
    for they may be large: ``summarize(name, result)`` is.
    """
    seconds: dict[str, list[float]] = {name: [] for name in works}
    summaries: dict[str, list[Any]] = {name: [] for name in works}
    names = list(works)
    for repetition in range(repetitions):
        first = repetition % len(names)
        for name in names[first:] + names[:first]:
            work = works[name]()
            time.sleep(pause)
            started = time.perf_counter()
            result = work()
            seconds[name].append(time.perf_counter() - started)
            summaries[name].append(summarize(name, result))
            del work, result  # before the next one needs the memory
    return seconds, summaries


def peak_memory(work: Work) -> int:
    """Return the most memory that a work has allocated at a time, in bytes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def spread(values: Sequence[float]) -> dict[str, Any]:
    """Return the median of some values, their quartiles, the smallest and the largest."""
    low, first, median, third, high = map(rounded, np.quantile(values, (0, 0.25, 0.5, 0.75, 1)))
    return {"median": median, "quartiles": [first, third], "range": [low, high]}


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Return the power of the size that values grow with, by least squares of logarithms."""
    return rounded(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def rounded(value: float) -> float:
    """Return a number with the four digits that a measurement may have."""
    return float(f"{value:.4g}")


def architecture() -> str:
    """Return the name of this kind of processor."""
    name = platform.machine().lower()
    return {"amd64": "x86_64"}.get(name, name)


def machine() -> dict[str, Any]:
    """Describe this machine: what timings depend on, and nothing that names it."""
    affinity = getattr(os, "sched_getaffinity", None)
    return {
        "architecture": architecture(),
        "system": platform.system(),
        "cores": len(affinity(0)) if affinity else os.cpu_count(),
        "threads": sorted(map(_pool, threadpool_info()), key=lambda pool: pool["of"]),
    }


def _pool(library: dict[str, Any]) -> dict[str, Any]:
    """Return what is to be known of a library with threads of its own, less its path."""
    fields = ("user_api", "internal_api", "version", "architecture", "num_threads")
    named = {field: library[field] for field in fields if library.get(field) is not None}
    return {"of": Path(library["filepath"]).parent.name.removesuffix(".libs"), **named}


def versions() -> dict[str, str]:
    """Return the versions of everything that was measured."""
    modules = {"mkclust": mkclust, "numpy": np, "scipy": scipy, "scikit-learn": sklearn}
    return {"python": platform.python_version()} | {n: m.__version__ for n, m in modules.items()}
