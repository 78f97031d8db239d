"""How many threads there are to compute with, and who has them."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

# Up to so many samples one thread is at least as fast as several: NumPy, SciPy and scikit-learn
# have threads of their own, which go on asking for work when the next library's turn has come.
FEW_SAMPLES = 500


@cache
def _thread_pools() -> Any:
    """Return the handles of the linear algebra's threads; finding them takes milliseconds."""
    from threadpoolctl import ThreadpoolController  # comes with scikit-learn

    return ThreadpoolController().select(user_api="blas")


def n_threads() -> int:
    """Return how many threads the user lets the linear algebra have."""
    limits = [pool["num_threads"] for pool in _thread_pools().info()]
    return min(limits, default=1)


class _SingleThread:
    """Products on one thread each, from when the first asks for it until the last is done.

    The limit is one of the whole process: whoever took it back first, or saved the limit of
    another as the user's, would leave the others with a wrong one.
    """

    def __init__(self) -> None:
        self._lock, self._count, self._limit = threading.Lock(), 0, None

    def begin(self) -> None:
        """Ask for it."""
        with self._lock:
            if not self._count:
                self._limit = _thread_pools().limit(limits=1)
            self._count += 1

    def end(self) -> None:
        """Be done with it."""
        with self._lock:
            self._count -= 1
            if not self._count:
                assert self._limit is not None
                self._limit.restore_original_limits()


_single_thread = _SingleThread()


@contextmanager
def single_threaded_products() -> Iterator[None]:
    """Have the linear algebra compute every product on one thread: several run at a time."""
    _single_thread.begin()
    try:
        yield
    finally:
        _single_thread.end()


def threads_for(n_samples: int) -> AbstractContextManager[None]:
    """Have the linear algebra take one thread where the samples are too few for several."""
    return single_threaded_products() if n_samples <= FEW_SAMPLES else nullcontext()
