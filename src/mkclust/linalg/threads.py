"""Threads of the host's linear algebra."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from mkclust.linalg.arrays import is_on_accelerator

# Threads of the host for the small matrices of a problem that lives on an accelerator.
FEW_THREADS = 4


def n_threads() -> int:
    """Return how many threads the user lets the linear algebra have."""
    limits = [pool["num_threads"] for pool in _thread_pools().info()]
    return min(limits, default=1)


@contextmanager
def few_threads(like: Any) -> Iterator[None]:
    """Let the linear algebra have few threads where an array lives on an accelerator.

    What is left to the host then is small, and many threads wait for each other more than they do.
    """
    if is_on_accelerator(like):
        with _thread_pools().limit(limits=min(FEW_THREADS, n_threads())):
            yield
    else:
        yield


@cache
def _thread_pools() -> Any:
    """Return the handles of the linear algebra's threads; finding them takes milliseconds."""
    from threadpoolctl import ThreadpoolController  # comes with scikit-learn

    return ThreadpoolController().select(user_api="blas")
