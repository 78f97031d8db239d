"""The kernel interface: products, rows and diagonal; transformations wrap kernels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from mkclust.linalg import (
    ENTRIES_PER_THREAD,
    astype,
    empty,
    in_threads,
    is_foreign,
    is_on_accelerator,
    is_sparse,
    namespace,
    precision_of,
    ranges,
    rounding_of,
    row_ranges,
    select,
    to_host,
)
from mkclust.types import Array, Float

# How entries are held; of several kernels together, as the first of these that one of
# them is.
STORAGES = ("streamed", "dense", "sparse")

# Fewest rows that are read or computed at a time.
FEWEST_ROWS = 16


class Kernel:
    """A symmetric matrix over n samples, written out or not.

    Those of a stack are positive semidefinite; that of a `Solution` need not be.
    A subclass defines ``rows`` and ``diagonal``; products follow from the rows unless
    it has a cheaper way.
    """

    like: Any  # an array of length n; vectors over the samples live on its device
    storage: Any  # "dense", "sparse", or "streamed": read or computed in every pass
    matrix: Any = None  # the entries, if they are written out
    n_samples: Any = property(lambda self: self.like.shape[0])  # n
    # Relative rounding of entries.
    precision: Any = property(lambda self: rounding_of(self.like))
    shape: Any = property(lambda self: (self.n_samples, self.n_samples))

    def rows(self, index: Any) -> Array:
        """Return the rows of a slice or of an array of numbers, (s, n), in float64."""
        raise NotImplementedError(f"{type(self).__name__} must define rows")

    def entries(self, rows: Any, columns: Any) -> Array:
        """Return some entries, by slices or rising numbers, (s, t), in float64."""
        return select(self.rows(rows), columns, axis=1)

    def diagonal(self) -> Array:
        """Return the diagonal, (n,), in float64."""
        raise NotImplementedError(f"{type(self).__name__} must define diagonal")

    def __matmul__(self, V: Array) -> Array:
        """Multiply with a thin matrix, (n, b) to (n, b), in the number type of that."""
        X = astype(V, "float64")
        blocks = row_blocks([self])
        parts = [self.rows(part) @ X for part in blocks]
        return astype(namespace(V).concat(parts), precision_of(V))

    def dense(self, precision: str = "float64") -> Array:
        """Return all entries as a new array, (n, n)."""
        return written([self], precision)[0, :, :]


def written(kernels: Sequence[Kernel], precision: str) -> Array:
    """Return all entries of kernels as a new array, (m, n, n), on all threads.

    Rows that are read or computed anew are made one after the other.
    """
    m = len(kernels)
    n = kernels[0].n_samples
    like = kernels[0].like
    entries = empty((m, n, n), like, precision)
    fewest = max(FEWEST_ROWS, ENTRIES_PER_THREAD // max(n, 1))
    parts = list(row_ranges(n, n, like, fewest))
    blocks = [(p, rows) for p in range(m) for rows in parts]

    def write(block: tuple[int, slice]) -> None:
        """Write some rows of a kernel."""
        p, rows = block
        entries[p, rows, :] = astype(kernels[p].rows(rows), precision)

    numbered = enumerate(kernels)
    streamed = [p for p, kernel in numbered if kernel.storage == "streamed"]
    if streamed:
        list(map(write, blocks))
    else:
        in_threads(write, blocks, like)
    # The rows of a source may be less symmetric than a certificate needs.
    for p in streamed:
        out = entries[p, :, :]
        for rows, columns in mirrored_tiles(out):
            tile = (out[rows, columns] + out[columns, rows].T) / 2
            out[rows, columns] = tile
            out[columns, rows] = tile.T
    return entries


def mirrored_tiles(matrix: Array) -> Iterator[tuple[slice, slice]]:
    """Return rows and columns of tiles that cover a matrix with their mirror images."""
    # More on a device, on which starting a step takes long.
    height = 4096 if is_foreign(matrix) else 512
    tiles = ranges(matrix.shape[0], height)
    return combinations_with_replacement(tiles, 2)


def row_blocks(kernels: Sequence[Kernel], n_rows: int | None = None) -> Iterator[slice]:
    """Cut rows of kernels, by default all, into slices that are computed at a time."""
    n = kernels[0].n_samples
    if n_rows is None:
        n_rows = n
    return row_ranges(n_rows, n, kernels[0].like, FEWEST_ROWS)


@dataclass(frozen=True)
class DenseKernel(Kernel):
    """A kernel held as a matrix: dense, of any library, or sparse, of SciPy."""

    matrix: Any = field()
    like = property(lambda self: self.matrix)
    storage = property(lambda self: "sparse" if is_sparse(self.matrix) else "dense")

    def rows(self, index: Any) -> Array:
        rows = select(self.matrix, index)
        if is_sparse(rows):
            rows = rows.toarray()
        return astype(rows, "float64")

    def diagonal(self) -> Array:
        """Return a copy of the diagonal, (n,), in float64."""
        matrix = self.matrix
        if is_foreign(matrix):
            own = namespace(matrix).linalg.diagonal(matrix)
            return astype(own, "float64") + 0.0
        return np.array(matrix.diagonal(), dtype=np.float64)

    def __matmul__(self, V: Array) -> Array:
        if is_sparse(self.matrix):
            return astype(self.matrix @ V, precision_of(V))
        own = precision_of(self.matrix)
        if own == "float32" and not is_on_accelerator(self.matrix):
            if precision_of(V) == "float64":
                # Some rows at a time, without a copy in float64.
                return super().__matmul__(V)
            return self.matrix @ V
        # On an accelerator, in the matrix's own type. By symmetry; this order is faster
        # but for single precision on the host.
        return astype((astype(V, own).T @ self.matrix).T, precision_of(V))


@dataclass(frozen=True)
class Factored(Kernel):
    """F F^T: features of a view, or an anchor."""

    F: Any
    storage: Any = "sparse"
    like = property(lambda self: self.F)

    def rows(self, index: Any) -> Array:
        """Return rows of ``F F^T``, (s, n), in float64."""
        return astype(select(self.F, index) @ self.F.T, "float64")

    def diagonal(self) -> Array:
        """Return the squared lengths of the rows of F, (n,), in float64."""
        return astype(namespace(self.F).sum(self.F * self.F, axis=1), "float64")

    def __matmul__(self, V: Array) -> Array:
        inner = self.F.T @ astype(V, precision_of(self.F))
        return astype(self.F @ inner, precision_of(V))


class Wrapped(Kernel):
    """A kernel between two thin maps: ``after(kernel @ before(V), V)``."""

    kernel: Kernel
    n_samples = property(lambda self: self.kernel.n_samples)
    like = property(lambda self: self.kernel.like)
    storage = property(lambda self: self.kernel.storage)
    precision = property(lambda self: self.kernel.precision)

    def before(self, V: Array) -> Array:
        """Return what the inner kernel is multiplied with."""
        return V

    def after(self, Y: Array, V: Array) -> Array:
        """Return the product, from that of the inner kernel."""
        raise NotImplementedError(f"{type(self).__name__} must define after")

    def __matmul__(self, V: Array) -> Array:
        return multiply([self], [V])[0]


@dataclass(frozen=True)
class Mix(Kernel):
    """``sum_p c_p K_p``, not written out: a product takes those of all its kernels."""

    coefficients: Float
    kernels: Sequence[Kernel]
    n_samples = property(lambda self: self.kernels[0].n_samples)
    like = property(lambda self: self.kernels[0].like)
    storage = property(
        lambda self: min((k.storage for k in self.kernels), key=STORAGES.index)
    )
    precision = property(lambda self: max(kernel.precision for kernel in self.kernels))

    def _terms(self) -> list[tuple[float, Kernel]]:
        """Return kernels of nonzero coefficients with these, at least one."""
        pairs = zip(map(float, self.coefficients), self.kernels, strict=True)
        return [(c, kernel) for c, kernel in pairs if c] or [(0.0, self.kernels[0])]

    def rows(self, index: Any) -> Array:
        """Return the sum of rows, (s, n), in float64."""
        (c, kernel), *others = self._terms()
        total = c * kernel.rows(index)
        for c, kernel in others:
            total += c * kernel.rows(index)
        return total

    def diagonal(self) -> Array:
        return sum(c * kernel.diagonal() for c, kernel in self._terms())

    def __matmul__(self, V: Array) -> Array:
        terms = self._terms()
        columns = [V] * len(terms)
        products = multiply([kernel for _, kernel in terms], columns)
        return sum(c * KV for (c, _), KV in zip(terms, products, strict=True))


def multiply(kernels: Sequence[Kernel], columns: Sequence[Array]) -> list[Array]:
    """Multiply each kernel with a thin matrix of its own, m of (n, b).

    Kernels that are computed by one source take one pass over it together.
    """
    within: list[Any] = list(kernels)
    thin = list(columns)
    wrappers: list[tuple[int, Wrapped, Array]] = []  # of kernels by their numbers
    sources: dict[int, list[int]] = {}  # the numbers of the kernels of each source
    results: list[Any] = [None] * len(within)
    for p, kernel in enumerate(kernels):
        while isinstance(kernel, Wrapped):
            wrappers.append((p, kernel, thin[p]))
            thin[p] = kernel.before(thin[p])
            kernel = kernel.kernel
        within[p] = kernel
        if isinstance(kernel, Computed):
            sources.setdefault(id(kernel.source), []).append(p)
        else:
            results[p] = kernel @ thin[p]

    for numbers in sources.values():
        source = within[numbers[0]].source
        products = source.products([(within[p].index, thin[p]) for p in numbers])
        for p, product in zip(numbers, products, strict=True):
            results[p] = product

    for p, wrapper, V in reversed(wrappers):
        results[p] = wrapper.after(results[p], V)
    return results


@dataclass(frozen=True)
class Computed(Kernel):
    """One of the kernels of a source of rows: read, or computed."""

    source: Any
    index: int
    self_similarities: Array
    storage: Any = "streamed"
    like = property(lambda self: self.self_similarities)
    precision = property(lambda self: rounding_of(self.source))

    def rows(self, index: Any) -> Array:
        return self.source.rows_of(self.index, index)

    def entries(self, rows: Any, columns: Any) -> Array:
        """Return some entries, without whole rows if the source can."""
        if isinstance(rows, slice) or isinstance(columns, slice):
            return super().entries(rows, columns)
        found = self.source.entries(
            self.index, to_host(rows, np.int64), to_host(columns, np.int64)
        )
        if found is None:
            return super().entries(rows, columns)
        return astype(found, "float64")

    def diagonal(self) -> Array:
        return self.self_similarities

    def __matmul__(self, V: Array) -> Array:
        return multiply([self], [V])[0]
