"""Loops over blocks of rows on all threads of the host."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from mkclust.linalg.arrays import ranges
from mkclust.linalg.threads import n_threads

# Entries that a thread is given at a time: enough that starting it does not count.
ENTRIES_AT_A_TIME = 2**20
# Entries from which on there are several threads: those of the linear algebra go on asking for work
# for some hundredths of a second after each product, in which others only stand in their way.
FEWEST_ENTRIES = 2**25


def for_each_range(
    n: int, width: int, handle: Callable[[slice], None], *, height: int | None = None
) -> None:
    """Handle n rows of so many entries in ranges, on as many threads as the user lets there be.

    NumPy lets go of the interpreter lock inside its loops. What is computed of one row must not
    depend on the others, so that the result does not depend on the number of threads.
    """
    parts = list(ranges(n, height or max(1, ENTRIES_AT_A_TIME // max(1, width))))
    if n * width < FEWEST_ENTRIES or n_threads() == 1:
        for part in parts:
            handle(part)
        return
    with ThreadPoolExecutor(n_threads()) as pool:
        list(pool.map(handle, parts))


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
