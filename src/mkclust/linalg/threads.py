"""How many threads there are to compute with."""

from functools import cache
from typing import Any


@cache
def _thread_pools() -> Any:
    """Return the handles of the linear algebra's threads; finding them takes milliseconds."""
    from threadpoolctl import ThreadpoolController  # comes with scikit-learn

    return ThreadpoolController().select(user_api="blas")


def n_threads() -> int:
    """Return how many threads the user lets the linear algebra have."""
    limits = [pool["num_threads"] for pool in _thread_pools().info()]
    return min(limits, default=1)
