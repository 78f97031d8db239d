"""How many threads there are to compute with, and who has them.

NumPy, SciPy and scikit-learn each bring threads of their own, which go on asking for work, some for
seconds, when the next library's turn has come: with more of them than processors, all wait. So
only one of them computes on several threads at a time, by the number of samples: nobody where they
are few, this library where products are small enough to be cut into parts by it, and NumPy where
they are large.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any, Literal

# Up to so many samples one thread is at least as fast as several; up to so many more, products are
# cut into parts.
FEW_SAMPLES, MODERATELY_MANY_SAMPLES = 500, 5000

Holder = Literal["nobody", "us", "NumPy", "SciPy"]


@cache
def _thread_pools() -> list[Any]:
    """Return the handles of the linear algebra's threads; finding them takes milliseconds."""
    from threadpoolctl import ThreadpoolController  # comes with scikit-learn

    return ThreadpoolController().select(user_api="blas").lib_controllers


@cache
def _pools_of_numpy() -> tuple[Any, ...]:
    """Return the threads of the library that NumPy multiplies with, all where nothing tells it."""
    found = [pool for pool in _thread_pools() if "numpy" in pool.filepath.split("-packages")[-1]]
    return tuple(found or _thread_pools())


class _Limits:
    """Limits of the linear algebra's threads, from when the first asks until the last is done.

    They are those of the whole process: whoever took one back first, or saved the limit of another
    as the user's, would leave the others with a wrong one.

    Attributes
    ----------
    asked : dict of str to int
        How many ask that several threads are had by nobody, by us, by NumPy or by SciPy; of these,
        the first that anyone asks for holds.
    """

    def __init__(self) -> None:
        self.asked: dict[Holder, int] = {"nobody": 0, "us": 0, "NumPy": 0, "SciPy": 0}
        self._lock = threading.Lock()
        self._users: list[int] | None = None

    @property
    def holder(self) -> Holder | None:
        """Who has several threads, None where everyone has."""
        return next((holder for holder, count in self.asked.items() if count > 0), None)

    def n_threads(self) -> int:
        """Return how many threads the user lets the linear algebra have."""
        with self._lock:
            users = self._users or [pool.num_threads for pool in _thread_pools()]
            return 1 if self.holder == "nobody" else min(users, default=1)

    def ask(self, holder: Holder, count: int) -> None:
        """Take in that so many more, or fewer, ask for a limit."""
        with self._lock:
            if self._users is None:
                self._users = [pool.num_threads for pool in _thread_pools()]
            self.asked[holder] += count
            for pool, users in zip(_thread_pools(), self._users, strict=True):
                n_wanted = users if self._is_free(pool) else 1
                if pool.num_threads != n_wanted:
                    pool.set_num_threads(n_wanted)
            if not any(self.asked.values()):
                self._users = None

    def _is_free(self, pool: Any) -> bool:
        """Return whether a library may have the threads that the user lets it have."""
        holder, of_numpy = self.holder, _pools_of_numpy()
        if holder is None or (holder == "NumPy" and pool in of_numpy):
            return True
        return holder == "SciPy" and (pool not in of_numpy or len(of_numpy) == len(_thread_pools()))


_limits = _Limits()


def n_threads() -> int:
    """Return how many threads the user lets the linear algebra have."""
    return _limits.n_threads()


def are_ours() -> bool:
    """Return whether several threads are ours to compute with, and the linear algebra has one."""
    return _limits.holder == "us"


@contextmanager
def _threads_of(holder: Holder) -> Iterator[None]:
    """Have one of several take more than one thread."""
    _limits.ask(holder, 1)
    try:
        yield
    finally:
        _limits.ask(holder, -1)


def single_threaded_products() -> AbstractContextManager[None]:
    """Have the linear algebra compute every product on one thread: several run at a time."""
    return _threads_of("nobody")


def threads_for(n_samples: int) -> AbstractContextManager[None]:
    """Have one library at a time take several threads for kernels of so many samples."""
    if n_samples <= FEW_SAMPLES:
        return _threads_of("nobody")
    return _threads_of("us" if n_samples <= MODERATELY_MANY_SAMPLES else "NumPy")


def threads_of_scipy() -> AbstractContextManager[None]:
    """Have SciPy alone take several threads, for what NumPy has no function."""
    return _threads_of("SciPy")


@contextmanager
def threads_for_decomposition() -> Iterator[None]:
    """Let the linear algebra have all threads for a large matrix, inside of `threads_for`."""
    asked = {holder: _limits.asked[holder] for holder in ("us", "NumPy")}
    for holder, count in asked.items():
        _limits.ask(holder, -count)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for holder, count in asked.items():
            _limits.ask(holder, count)  # type: ignore[arg-type]
