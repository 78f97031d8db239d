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
    return _limits.n_threads()


class _Limits:
    """Limits of the linear algebra's threads, from when the first asks until the last is done.

    They are those of the whole process: whoever took one back first, or saved the limit of another
    as the user's, would leave the others with a wrong one.

    Attributes
    ----------
    n_single, n_numpy : int
        How many ask for one thread for everything, and for threads of NumPy alone.
    """

    def __init__(self) -> None:
        self.n_single = self.n_numpy = 0
        self._lock = threading.Lock()
        self._users: list[int] | None = None

    def n_threads(self) -> int:
        """Return how many threads there may be beside those of the linear algebra."""
        if self.n_single:
            return 1
        with self._lock:
            users = self._users or [pool.num_threads for pool in _thread_pools().lib_controllers]
            return min(users, default=1)

    def change(self, single: int = 0, numpy: int = 0) -> None:
        """Take in that some more, or fewer, ask for limits."""
        with self._lock:
            pools = _thread_pools().lib_controllers
            if self._users is None:
                self._users = [pool.num_threads for pool in pools]
            self.n_single, self.n_numpy = self.n_single + single, self.n_numpy + numpy
            for pool, users in zip(pools, self._users, strict=True):
                is_limited = self.n_single or (self.n_numpy and pool not in _pools_of_numpy())
                n_wanted = 1 if is_limited else users
                if pool.num_threads != n_wanted:
                    pool.set_num_threads(n_wanted)
            if not (self.n_single or self.n_numpy):
                self._users = None


_limits = _Limits()


@cache
def _pools_of_numpy() -> tuple[Any, ...]:
    """Return the threads of the library that NumPy multiplies with, all where nothing tells it."""
    pools = _thread_pools().lib_controllers
    found = tuple(pool for pool in pools if "numpy" in pool.filepath.split("site-packages")[-1])
    return found or tuple(pools)


@contextmanager
def single_threaded_products() -> Iterator[None]:
    """Have the linear algebra compute every product on one thread: several run at a time."""
    _limits.change(single=1)
    try:
        yield
    finally:
        _limits.change(single=-1)


@contextmanager
def threads_of_numpy() -> Iterator[None]:
    """Have NumPy alone take several threads.

    Where SciPy brings linear algebra of its own, with threads of its own, these would go on asking
    for work when the next product is one of NumPy's, some of them for seconds.
    """
    _limits.change(numpy=1)
    try:
        yield
    finally:
        _limits.change(numpy=-1)


@contextmanager
def threads_of_scipy() -> Iterator[None]:
    """Let SciPy take several threads for something large inside of `threads_of_numpy`."""
    n_numpy = _limits.n_numpy
    _limits.change(numpy=-n_numpy)
    try:
        yield
    finally:
        _limits.change(numpy=n_numpy)


def threads_for(n_samples: int) -> AbstractContextManager[None]:
    """Have the linear algebra take one thread where the samples are too few for several."""
    return single_threaded_products() if n_samples <= FEW_SAMPLES else nullcontext()
