"""Loops on all threads of the host."""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import numpy as np

from mkclust.linalg.arrays import ranges
from mkclust.linalg.threads import are_ours, n_threads

# Entries that a thread is given at a time: enough that starting it does not count.
ENTRIES_AT_A_TIME = 2**20
# Entries from which on there are several threads, and where the linear algebra has threads, too:
# they go on asking for work after each product, in which others only stand in their way.
FEWEST_ENTRIES, FEWEST_BESIDE_OTHERS = 2**20, 2**25
# Multiplications from which on a product is cut into parts, and columns that stay together.
FEWEST_MULTIPLICATIONS, COLUMNS_TOGETHER = 2**21, 64

T = TypeVar("T")
_inside = threading.local()


@cache
def _pool(n_workers: int, process: int) -> ThreadPoolExecutor:
    """Return workers that wait for work; a process that was forked has none of its parent's."""
    return ThreadPoolExecutor(n_workers, "mkclust")


def for_each(items: Sequence[T], handle: Callable[[T], None], *, together: bool = True) -> None:
    """Handle items on as many threads as the user lets there be, this one among them.

    NumPy lets go of the interpreter lock inside its loops. Each item is handled alike on whichever
    thread, so the result does not depend on their number. Loops inside of loops stay on one thread,
    and so do those whose items are not to be handled together.
    """
    n_workers = min(n_threads(), len(items)) - 1 if together else 0
    if n_workers < 1 or getattr(_inside, "a_loop", False):
        for item in items:
            handle(item)
        return
    left, lock = list(reversed(items)), threading.Lock()

    def work() -> None:
        """Handle one item after another, until none is left."""
        _inside.a_loop = True
        try:
            while True:
                with lock:
                    if not left:
                        return
                    item = left.pop()
                handle(item)
        except BaseException:
            left.clear()
            raise
        finally:
            _inside.a_loop = False

    others = [_pool(n_workers, os.getpid()).submit(work) for _ in range(n_workers)]
    try:
        work()
    finally:
        for other in others:
            other.result()


def for_each_range(
    n: int, width: int, handle: Callable[[slice], None], *, height: int | None = None
) -> None:
    """Handle n rows of so many entries in ranges, on as many threads as the user lets there be.

    What is computed of one row must not depend on the others.
    """
    parts = list(ranges(n, height or max(1, ENTRIES_AT_A_TIME // max(1, width))))
    fewest = FEWEST_ENTRIES if are_ours() else FEWEST_BESIDE_OTHERS
    for_each(parts, handle, together=n * width >= fewest)


def thin_product(thin: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return the product of a matrix of few rows with a large one, (b, n) with (n, n)."""
    (b, n), count = thin.shape, matrix.shape[1]
    if not are_ours() or b * n * count < FEWEST_MULTIPLICATIONS:
        return thin @ matrix
    product = np.empty((b, count), np.result_type(thin, matrix))
    height = -(-count // n_threads())
    height = -(-height // COLUMNS_TOGETHER) * COLUMNS_TOGETHER

    def multiply(columns: slice) -> None:
        """Multiply with some columns."""
        np.matmul(thin, matrix[:, columns], out=product[:, columns])

    for_each(list(ranges(count, height)), multiply)
    return product


def in_single_precision(matrix: np.ndarray) -> np.ndarray:
    """Return a copy of a matrix in float32."""
    copy = np.empty(matrix.shape, np.float32)

    def convert(rows: slice) -> None:
        """Convert some rows."""
        copy[rows] = matrix[rows]

    for_each_range(matrix.shape[0], matrix.shape[1], convert)
    return copy


def sparse_product(weights: Any, matrix: np.ndarray) -> np.ndarray:
    """Return the product of a sparse matrix of few rows with a dense one, which is read once."""
    product = np.empty((weights.shape[0], matrix.shape[1]), np.result_type(weights, matrix))

    def multiply(rows: slice) -> None:
        """Multiply some rows of the sparse matrix."""
        product[rows] = weights[rows] @ matrix

    per_row = max(1, weights.nnz // max(1, weights.shape[0])) * matrix.shape[1]
    for_each_range(weights.shape[0], per_row, multiply)
    return product
