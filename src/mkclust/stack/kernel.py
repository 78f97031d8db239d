"""The kernel interface: products, rows and diagonal; transformations wrap kernels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from mkclust.linalg import (
    astype,
    device,
    empty,
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
from mkclust.linalg.threads import ENTRIES_PER_THREAD, in_threads
from mkclust.types import Array as AnyArray
from mkclust.types import Float

# How entries are held; of several kernels together, as the first of these that one of
# them is.
STORAGES = ("streamed", "dense", "sparse")

# Fewest rows that are read or computed at a time.
FEWEST_ROWS = 16
# Rows and columns of the tiles that are compared with their mirror images; on a device,
# on which starting a step takes long, more.
TILE, TILE_ON_DEVICE = 512, 4096


class Kernel:
    """A symmetric positive semidefinite matrix over n samples, which need not be written out.

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

    def rows(self, index: Any) -> AnyArray:
        """Return the rows of a slice or of an array of numbers, (s, n), in float64."""
        raise NotImplementedError(f"{type(self).__name__} must define rows")

    def entries(self, rows: Any, columns: Any) -> AnyArray:
        """Return some entries, by slices or rising numbers, (s, t), in float64."""
        return select(self.rows(rows), columns, axis=1)

    def diagonal(self) -> AnyArray:
        """Return the diagonal, (n,), in float64."""
        raise NotImplementedError(f"{type(self).__name__} must define diagonal")

    def __matmul__(self, V: AnyArray) -> AnyArray:
        """Multiply with a thin matrix, (n, b) to (n, b), in the number type of that."""
        xp, X = namespace(V), astype(V, "float64")
        parts = [self.rows(part) @ X for part in row_blocks([self])]
        return astype(xp.concat(parts), precision_of(V))

    def dense(self, precision: str = "float64") -> AnyArray:
        """Return all entries as a new array, (n, n)."""
        return written([self], precision)[0, :, :]


def written(kernels: Sequence[Kernel], precision: str) -> AnyArray:
    """Return all entries of kernels as a new array, (m, n, n); on the host this takes all threads.

    Rows that are read or computed anew are made one after the other.
    """
    m, n, like = len(kernels), kernels[0].n_samples, kernels[0].like
    entries = empty((m, n, n), like, precision)
    parts = list(
        row_ranges(n, n, like, max(FEWEST_ROWS, ENTRIES_PER_THREAD // max(n, 1)))
    )
    blocks = [(p, rows) for p in range(m) for rows in parts]

    def write(block: tuple[int, slice]) -> None:
        p, rows = block
        entries[p, rows, :] = astype(kernels[p].rows(rows), precision)

    streamed = [p for p, kernel in enumerate(kernels) if kernel.storage == "streamed"]
    if streamed:
        list(map(write, blocks))
    else:
        in_threads(write, blocks, like)
    # The rows of a source may be less symmetric than a certificate needs.
    for p in streamed:
        out = entries[p, :, :]
        for rows, columns in mirrored_tiles(out):
            tile = (out[rows, columns] + out[columns, rows].T) / 2
            out[rows, columns], out[columns, rows] = tile, tile.T
    return entries


def mirrored_tiles(matrix: AnyArray) -> Iterator[tuple[slice, slice]]:
    """Return the rows and columns of tiles that, with their mirror images, cover a matrix."""
    tiles = ranges(matrix.shape[0], TILE_ON_DEVICE if is_foreign(matrix) else TILE)
    return combinations_with_replacement(tiles, 2)


def row_blocks(kernels: Sequence[Kernel], n_rows: int | None = None) -> Iterator[slice]:
    """Cut rows of kernels, by default all, into slices that are computed at a time."""
    n = kernels[0].n_samples
    return row_ranges(n if n_rows is None else n_rows, n, kernels[0].like, FEWEST_ROWS)


@dataclass(frozen=True)
class Array(Kernel):
    """A kernel held as a matrix: dense, of any library, or sparse, of SciPy."""

    matrix: Any = field()
    like = property(lambda self: self.matrix)
    storage = property(lambda self: "sparse" if is_sparse(self.matrix) else "dense")

    def rows(self, index: Any) -> AnyArray:
        return _dense(select(self.matrix, index))

    def diagonal(self) -> AnyArray:
        matrix = self.matrix
        if is_foreign(matrix):
            return astype(namespace(matrix).linalg.diagonal(matrix), "float64") + 0.0
        return np.array(matrix.diagonal(), dtype=np.float64)

    def __matmul__(self, V: AnyArray) -> AnyArray:
        if is_sparse(self.matrix):
            return astype(self.matrix @ V, precision_of(V))
        if precision_of(V) > precision_of(self.matrix) and not is_on_accelerator(
            self.matrix
        ):
            # Some rows at a time, without a copy in float64.
            return super().__matmul__(V)
        # On an accelerator, in the matrix's own type.
        X = astype(V, precision_of(self.matrix))
        # By symmetry K X = (X^T K)^T; that order is slower on the host, in single
        # precision alone.
        is_slower = precision_of(X) == "float32" and not is_on_accelerator(X)
        Y = self.matrix @ X if is_slower else (X.T @ self.matrix).T
        return astype(Y, precision_of(V))


@dataclass(frozen=True)
class Factored(Kernel):
    """F F^T: features of a view, an anchor, or memberships of neighborhoods (a sparse F)."""

    F: Any
    storage: Any = "sparse"
    like = property(lambda self: self.F)

    def rows(self, index: Any) -> AnyArray:
        return _dense(select(self.F, index) @ self.F.T)

    def diagonal(self) -> AnyArray:
        if is_sparse(self.F):
            return np.asarray(
                self.F.multiply(self.F).sum(axis=1), dtype=np.float64
            ).reshape(-1)
        return astype(namespace(self.F).sum(self.F * self.F, axis=1), "float64")

    def __matmul__(self, V: AnyArray) -> AnyArray:
        X = V if is_sparse(self.F) else astype(V, precision_of(self.F))
        return astype(self.F @ (self.F.T @ X), precision_of(V))


def _dense(rows: Any) -> AnyArray:
    return astype(rows.toarray() if is_sparse(rows) else rows, "float64")


class Wrapped(Kernel):
    """A kernel between two thin maps: ``after(kernel @ before(V), V)``."""

    kernel: Kernel
    n_samples = property(lambda self: self.kernel.n_samples)
    like = property(lambda self: self.kernel.like)
    storage = property(lambda self: self.kernel.storage)
    precision = property(lambda self: self.kernel.precision)

    def before(self, V: AnyArray) -> AnyArray:
        return V

    def after(self, Y: AnyArray, V: AnyArray) -> AnyArray:
        raise NotImplementedError(f"{type(self).__name__} must define after")

    def __matmul__(self, V: AnyArray) -> AnyArray:
        return multiply([self], [V])[0]


@dataclass(frozen=True)
class Shifted(Wrapped):
    """K + c I: a repaired kernel."""

    kernel: Kernel
    shift: float

    def after(self, Y: AnyArray, V: AnyArray) -> AnyArray:
        return Y + self.shift * V

    def rows(self, index: Any) -> AnyArray:
        part = self.kernel.rows(index)
        xp = namespace(part)
        everyone = xp.arange(self.n_samples, device=device(part))
        same = select(everyone, index)[:, None] == everyone[None, :]
        return part + self.shift * xp.astype(same, xp.float64)

    def diagonal(self) -> AnyArray:
        return self.kernel.diagonal() + self.shift


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
        pairs = zip(map(float, self.coefficients), self.kernels, strict=True)
        return [(c, kernel) for c, kernel in pairs if c] or [(0.0, self.kernels[0])]

    def rows(self, index: Any) -> AnyArray:
        (c, kernel), *others = self._terms()
        total = c * kernel.rows(index)
        for c, kernel in others:
            total += c * kernel.rows(index)
        return total

    def diagonal(self) -> AnyArray:
        return sum(c * kernel.diagonal() for c, kernel in self._terms())

    def __matmul__(self, V: AnyArray) -> AnyArray:
        coefficients, kernels = zip(*self._terms(), strict=True)
        products = multiply(kernels, [V] * len(kernels))
        return sum(
            c * product for c, product in zip(coefficients, products, strict=True)
        )


def multiply(kernels: Sequence[Kernel], columns: Sequence[AnyArray]) -> list[AnyArray]:
    """Multiply each kernel with a thin matrix of its own, m of (n, b).

    Kernels that are computed by one source take one pass over it together.
    """
    results: list[Any] = [None] * len(kernels)
    wrappers: list[list[tuple[Wrapped, AnyArray]]] = [[] for _ in kernels]
    sources: dict[int, list[tuple[int, Computed, AnyArray]]] = {}
    for p, (kernel, V) in enumerate(zip(kernels, columns, strict=True)):
        while isinstance(kernel, Wrapped):
            wrappers[p].append((kernel, V))
            V, kernel = kernel.before(V), kernel.kernel
        if isinstance(kernel, Computed):
            sources.setdefault(id(kernel.source), []).append((p, kernel, V))
        else:
            results[p] = kernel @ V
    for wanted in sources.values():
        source = wanted[0][1].source
        products = source.products([(kernel.index, V) for _, kernel, V in wanted])
        for (p, _, _), product in zip(wanted, products, strict=True):
            results[p] = product
    for p, wrapped in enumerate(wrappers):
        for wrapper, V in reversed(wrapped):
            results[p] = wrapper.after(results[p], V)
    return results


@dataclass(frozen=True)
class Computed(Kernel):
    """One of the kernels of a source of rows (`mkclust.stack.sources`): read, or computed."""

    source: Any
    index: int
    self_similarities: AnyArray
    storage: Any = "streamed"
    like = property(lambda self: self.self_similarities)
    precision = property(lambda self: rounding_of(self.source))

    def rows(self, index: Any) -> AnyArray:
        return self.source.rows_of(self.index, index)

    def entries(self, rows: Any, columns: Any) -> AnyArray:
        if isinstance(rows, slice) or isinstance(columns, slice):
            return super().entries(rows, columns)
        numbers = to_host(rows, np.int64), to_host(columns, np.int64)
        found = self.source.entries(self.index, *numbers)
        return (
            super().entries(rows, columns)
            if found is None
            else astype(found, "float64")
        )

    def diagonal(self) -> AnyArray:
        return self.self_similarities

    def __matmul__(self, V: AnyArray) -> AnyArray:
        return multiply([self], [V])[0]
