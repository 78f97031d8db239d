"""How speed is measured: in turns, after pauses, and with the spread."""

import platform
import time
import tracemalloc

import numpy as np
from threadpoolctl import threadpool_info


def take_turns(works, repetitions, pause, summarize=lambda name, result: None):
    """Return seconds and summaries of every work, each done once in every repetition.

    ``works[name]()`` prepares a work anew each time, untimed, so that nothing is left
    from the last time. The work begins after a pause, in which the threads of the one
    before fall asleep. Each repetition begins with another work, so that none is always
    behind the same one. Results are not kept, for they may be large: ``summarize(name,
    result)`` is.
    """
    seconds, summaries = ({name: [] for name in works} for _ in range(2))
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


def peak_memory(work):
    """Return the most memory that a work has allocated at a time, in bytes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def spread(values):
    """Return the median of some values, their quartiles, the smallest and the
    largest."""
    low, first, median, third, high = map(
        rounded, np.quantile(values, (0, 0.25, 0.5, 0.75, 1))
    )
    return {"median": median, "quartiles": [first, third], "range": [low, high]}


def rounded(value):
    """Return a number with the four digits that a measurement may have."""
    return float(f"{value:.4g}")


def architecture():
    """Return the kind of processor."""
    return platform.machine().lower().replace("amd64", "x86_64")


def threads():
    """Describe the libraries that use threads, which timings depend on."""
    fields = ("user_api", "internal_api", "version", "num_threads")
    return [{field: pool[field] for field in fields} for pool in threadpool_info()]
