"""One kernel known by its rows, for all that is asked of a symmetric matrix."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mkclust.linalg import (
    empty,
    free_bytes,
    is_foreign,
    precision_of,
    select,
    to_host,
    zeros,
)
from mkclust.linalg.memory import require_memory
from mkclust.samples.row_source import RowSource
from mkclust.stack.rows import for_each_product, for_rows_of, like_of
from mkclust.types import Array


@dataclass(frozen=True)
class RowMatrix:
    """One kernel as it came, read when asked for.

    Attributes
    ----------
    source : RowSource
        Of this kernel alone.
    self_similarities : array of shape (n,)
        Its diagonal.
    row_sums : array of shape (n,) or None
        Where they are known.
    """

    source: RowSource = field(repr=False)
    self_similarities: Array = field(repr=False)
    row_sums: Array | None = field(default=None, repr=False)
    ndim: ClassVar[int] = 2
    __array_ufunc__ = None  # so that an array leaves its product with this to this

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.source.n_samples, self.source.n_samples

    @property
    def like(self) -> Array:
        """An array that says where the vectors live that this can be multiplied with."""
        return like_of(self.source)

    @property
    def dtype(self) -> Any:
        """Number type of the entries."""
        return self.source.dtype

    def __getitem__(self, rows: Any) -> Array:
        n, precision = self.shape[0], precision_of(self.source)
        # Which rows is asked for from the host, or from where the vectors live.
        (rows,) = rows if isinstance(rows, tuple) else (rows,)
        samples = np.arange(n)[to_host(rows, None) if is_foreign(rows) else rows]
        require_memory(
            samples.size * n * np.dtype(precision).itemsize,
            f"reading {samples.size} rows of a kernel",
            "ask for fewer at a time",
            available=free_bytes(self.like),
        )
        entries = empty((samples.size, n), self.like, precision)

        def write(place: slice, _: np.ndarray, blocks: Iterator[Array]) -> None:
            """Write some of the rows."""
            entries[place, :] = next(blocks)

        order = for_rows_of(self.source, samples, write)
        return entries if order is None else select(entries, order)

    def __matmul__(self, X: Array) -> Array:
        """Multiply with a vector or a thin matrix, in one pass."""
        thin = X[:, None] if X.ndim == 1 else X
        product = empty(tuple(thin.shape), X)

        def write(_: int, rows: slice, part: Array) -> None:
            """Write some rows of the product."""
            product[rows, :] = part

        for_each_product(self.source, [thin], write)
        return product[:, 0] if X.ndim == 1 else product

    def __rmatmul__(self, X: Array) -> Array:
        """Multiply from the left, which is the same by symmetry."""
        return (self @ (X.T if is_foreign(X) else np.ascontiguousarray(X.T))).T

    def diagonal(self) -> Array:
        """Return the self-similarities, (n,)."""
        return self.self_similarities

    def sum(self, axis: int = 1, dtype: Any = np.float64) -> Array:
        """Return the row sums, which are the column sums, in float64."""
        sums = self.row_sums
        return self @ (zeros(self.shape[0], self.like) + 1.0) if sums is None else sums
