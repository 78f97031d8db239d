"""Loops over blocks of rows on all threads of the host."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from mkclust.linalg.arrays import ranges
from mkclust.linalg.threads import n_threads

# Entries that a thread is given at a time: enough that starting it does not count.
ENTRIES_AT_A_TIME = 2**20


def for_each_range(n: int, width: int, handle: Callable[[slice], None]) -> None:
    """Handle n rows of so many entries in ranges, on as many threads as the user lets there be.

    NumPy lets go of the interpreter lock inside its loops. What is computed of one row must not
    depend on the others, so that the result does not depend on the number of threads.
    """
    parts = list(ranges(n, max(1, ENTRIES_AT_A_TIME // max(1, width))))
    if len(parts) == 1 or n_threads() == 1:
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
