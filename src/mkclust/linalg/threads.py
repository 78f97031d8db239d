"""How many threads the linear algebra computes with."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from threading import local
from typing import Any

from mkclust.linalg.arrays import is_foreign

# Up to this many samples one thread is at least as fast as several: products take
# microseconds.
FEW_SAMPLES = 500
# Entries that a thread computes at a time: with fewer, threads wait for each other.
ENTRIES_PER_THREAD = 2**18
# Whether this thread is one of several that share some work.
_this_thread = local()


@cache
def _controller() -> Any:
    """Return the handle of the linear algebra's threads, found in milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def n_threads() -> int:
    """Return how many threads the user lets the linear algebra have."""
    pools = _controller().select(user_api="blas").lib_controllers
    return min((pool.num_threads for pool in pools), default=1)


def in_threads(
    work: Callable[[Any], Any], parts: Iterable[Any], like: Any
) -> list[Any]:
    """Return the results of work on all parts, on the host by all threads.

    Work within such work is done by the thread that it is in.
    """
    parts = list(parts)
    count = 1
    is_shared = hasattr(_this_thread, "is_one_of_several")
    if not is_shared and not is_foreign(like) and len(parts) > 1:
        count = min(n_threads(), len(parts))
    if count <= 1:
        return list(map(work, parts))
    with one_thread(), ThreadPoolExecutor(count, initializer=_join_others) as pool:
        return list(pool.map(work, parts))


def _join_others() -> None:
    _this_thread.is_one_of_several = True


def one_thread() -> AbstractContextManager[Any]:
    """Have the linear algebra of this process compute on one thread."""
    return _controller().limit(limits=1)


def one_thread_if_small(
    n_samples: int, few: int = FEW_SAMPLES
) -> AbstractContextManager[Any]:
    """Have the linear algebra compute on one thread if there are few samples."""
    if n_samples <= few:
        return one_thread()
    return nullcontext()
