"""Kernels of views, computed from these by rows whenever they are needed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse

from mkclust.kernels.formulas import (
    Exponential,
    Formula,
    Measure,
    Points,
    select_points,
)
from mkclust.kernels.neighbors import BLOCK_ROWS, Neighborhoods, dissimilarities_from
from mkclust.linalg import (
    FactoredMatrix,
    astype,
    empty,
    in_threads,
    is_foreign,
    namespace,
    pair_ranges,
    precision_of,
    row_ranges,
    select,
    set_diagonal,
    to_device,
    triton_module,
)
from mkclust.stack import Source
from mkclust.types import Array


@dataclass(frozen=True, eq=False)
class JoinedNeighborhoods:
    """The neighborhoods that new samples join, found from rows of a kernel."""

    neighborhoods: Neighborhoods
    # Which training samples they are, -1 for others.
    samples: np.ndarray = field(repr=False)
    # Norms of new and training samples in feature space; None for distances.
    lengths: tuple[Array, Array] | None = field(repr=False)

    def rows(self, part: slice, compared: Array, entries: Array) -> Any:
        """Return some rows of the shared neighborhoods, given those of the kernel."""
        if self.lengths is not None:
            new, known = self.lengths
            compared = dissimilarities_from(entries / new[part][:, None] / known)
        return self.neighborhoods.cross(compared, self.samples[part])


@dataclass(frozen=True, eq=False)
class ComputedKernel:
    """One kernel of a source, computed from points or consisting of neighborhoods."""

    formula: Formula
    measure: Measure = field(repr=False)
    # The points of the samples and of the training samples; None if no entries are
    # needed.
    x: Points | None = field(repr=False)
    y: Points | None = field(repr=False)
    # Its neighborhoods: a sparse product, how new samples join them, or None.
    shared: Any = field(repr=False)
    share: float  # their share in the kernel
    # None if the samples are not the training samples.
    diagonal: Any = field(repr=False)
    # Of rows, without neighborhoods, if known.
    sums: Any = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class ComputedKernels(Source):
    """The kernels of some samples against training samples, computed by blocks of rows.

    Every block is computed anew where the views live. The kernels of a view share its
    distances and inner products. Rows of training samples are symmetric up to rounding,
    with an exact diagonal.
    """

    kernels: tuple[ComputedKernel, ...]
    n_samples: int
    n_training: int
    number_type: str  # of the kernels, such as "float64"
    like: Any = field(repr=False)  # an array that says where rows live
    _split: dict[int, Any] = field(default_factory=dict, repr=False)  # see `product`

    # The number type of the rows, the number of kernels, m, and the shape of all.
    dtype = property(lambda self: getattr(namespace(self.like), self.number_type))
    n_kernels = property(lambda self: len(self.kernels))
    shape = property(lambda self: (self.n_kernels, self.n_samples, self.n_training))

    def diagonal(self) -> Array:
        """Return the self-similarities of training samples, (m, n)."""
        diagonals = [kernel.diagonal for kernel in self.kernels]
        return namespace(*diagonals).stack(diagonals)

    def sums(self) -> Array | None:
        """Return row sums, (m, n), if all kernels know theirs."""
        if any(kernel.sums is None or kernel.shared is None for kernel in self.kernels):
            return None
        sums = [
            (1 - kernel.share) * kernel.sums + kernel.share * kernel.shared.sum(axis=1)
            for kernel in self.kernels
        ]
        return np.stack(sums)

    def entries(
        self,
        index: int,
        rows: np.ndarray,
        columns: np.ndarray,
    ) -> Array | None:
        """Return some entries of a kernel, computed on the host."""
        if is_foreign(self.like):
            return None
        (_, tile), *_ = self.only([index])._tiles(rows, columns)
        return tile

    def of_neighborhoods(self, index: int) -> Any:
        """Return a kernel that consists of neighborhoods, a sparse product."""
        kernel = self.kernels[index]
        n = self.n_training
        if not isinstance(kernel.shared, JoinedNeighborhoods):
            return kernel.shared

        def find(part: slice) -> Any:
            """Return the factors of some rows."""
            return self._parts(kernel, part, slice(0, n), {})[1]

        parts = pair_ranges(self.n_samples, n, self.like)
        found = in_threads(find, parts, self.like) or [find(slice(0, 0))]
        left = scipy.sparse.vstack([each.left for each in found], "csr")
        return FactoredMatrix(left, found[0].right)

    def only(self, indices: Sequence[int]) -> "ComputedKernels":
        """Return the source of some of the kernels."""
        chosen = (self.kernels[p] for p in indices)
        return replace(self, kernels=tuple(chosen))

    def product(self, index: int, X: Array) -> Array | None:
        """Multiply one of the kernels, which is not stored, with a thin matrix, (n, b).

        None if the product takes its rows: for samples on the host, in double
        precision, kernels that are not Gaussian, and kernels mixed with neighborhoods.
        """
        module = triton_module("fused_products", X)
        kernel = self.kernels[index]
        formula = kernel.formula
        if module is None or not isinstance(formula, Exponential):
            return None
        if formula.measure != "distance" or kernel.shared is not None:
            return None
        if kernel.y is None or kernel.x is not kernel.y:
            return None
        rows = kernel.y[0]
        if precision_of(rows) != "float32":
            return None
        if id(rows) not in self._split:
            self._split[id(rows)] = module.split_points(rows)
        split = self._split[id(rows)]
        if split is None:
            return None
        return module.gaussian_products(split, 2 * formula.rate, X)

    def rows(self, start: int, stop: int) -> Array:
        """Return consecutive rows of all kernels, (m, stop - start, n)."""
        return self._rows_of(np.arange(start, min(stop, self.n_samples)))

    def _some(self, samples: np.ndarray) -> list[Array]:
        return list(self._rows_of(samples))

    def _rows_of(self, samples: np.ndarray) -> Array:
        """Return the rows of some samples, (m, n_rows, n_training)."""
        n_rows = len(samples)
        n = self.n_training
        out = empty((self.n_kernels, n_rows, n), self.like, self.number_type)

        def write(part: slice) -> None:
            for p, tile in self._tiles(_as_slice(samples[part]), slice(0, n)):
                out[p, part, :] = tile

        in_threads(write, pair_ranges(n_rows, n, self.like), self.like)
        return out

    def all_rows(self) -> Array:
        """Return the kernels, (m, n_new, n), symmetric for training samples."""
        n = self.n_samples
        if any(kernel.diagonal is None for kernel in self.kernels):  # of new samples
            return self.rows(0, n)
        out = empty(self.shape, self.like, self.number_type)
        for rows in row_ranges(n, n, self.like, BLOCK_ROWS):
            for p, tile in self._tiles(rows, slice(rows.start, n)):
                xp = namespace(tile)
                height = rows.stop - rows.start
                square = tile[:, :height]
                tile[:, :height] = xp.triu(square) + xp.triu(square, k=1).T
                out[p, rows, rows.start :] = tile
                out[p, rows.start :, rows] = tile.T
        return out

    def _tiles(
        self,
        rows: slice | np.ndarray,
        columns: slice | np.ndarray,
    ) -> Iterator[tuple[int, Array]]:
        """Yield some entries of every kernel, with its index.

        Columns that are a slice begin before the rows do; others are rising numbers.
        """
        made: dict[int, Any] = {}  # what several kernels share
        for p, kernel in enumerate(self.kernels):
            entries, shared = self._parts(kernel, rows, columns, made)
            tile = None if kernel.share == 1 else astype(entries, self.number_type)
            if shared is not None:
                tile = self._with_shared(tile, shared, kernel.share)
            if kernel.diagonal is not None:
                _set_own(tile, rows, columns, kernel.diagonal)
            yield p, tile

    def _parts(
        self,
        kernel: ComputedKernel,
        rows: Any,
        columns: Any,
        made: dict[int, Any],
    ) -> tuple[Any, Any]:
        """Return entries by the formula and shared neighborhoods, if it has them."""
        compared = entries = None
        if kernel.x is not None and kernel.y is not None:
            if id(kernel.x) not in made:
                x = select_points(kernel.x, rows)
                y = select_points(kernel.y, columns)
                made[id(kernel.x)] = kernel.measure.compare(x, y)
            compared = made[id(kernel.x)]
            entries = kernel.formula.entries(compared)

        shared = kernel.shared
        if shared is not None and id(shared) not in made:
            if isinstance(shared, JoinedNeighborhoods):
                made[id(shared)] = shared.rows(rows, compared, entries)
            elif isinstance(columns, slice) and columns == slice(0, self.n_training):
                made[id(shared)] = shared[rows]
            else:
                made[id(shared)] = shared[rows, columns]
        return entries, None if shared is None else made[id(shared)]

    def _with_shared(self, tile: Any, shared: Any, share: float) -> Array:
        """Return entries with a share of those of neighborhoods, or these alone."""
        if tile is not None and not is_foreign(tile):
            mixed = (1 - share) * tile
            shared.add_to(mixed, share)
            return mixed
        added = to_device(shared.toarray(), self.like, self.number_type)
        if tile is None:
            return added
        return (1 - share) * tile + share * added


def _as_slice(numbers: np.ndarray) -> slice | np.ndarray:
    """Return rising numbers without a gap as a slice."""
    if np.all(np.diff(numbers) == 1):
        return slice(int(numbers[0]), int(numbers[0]) + len(numbers))
    return numbers


def _set_own(
    tile: Array,
    rows: slice | np.ndarray,
    columns: slice | np.ndarray,
    diagonal: Array,
) -> None:
    """Write self-similarities to the entries of samples with themselves."""
    if isinstance(rows, slice) and isinstance(columns, slice):
        start = rows.start - columns.start
        square = tile[:, start : rows.stop - columns.start]
        set_diagonal(square, diagonal[rows])
        return
    everyone = np.arange(diagonal.shape[0])
    numbers = everyone[rows]
    same = to_device(numbers[:, None] == everyone[columns], tile)
    own = select(diagonal, numbers)[:, None]
    tile[...] = namespace(tile).where(same, own, tile)
