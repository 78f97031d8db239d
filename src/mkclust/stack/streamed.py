"""Kernels that are not in memory: read or computed some rows at a time, pass after pass."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mkclust.engine.agreement import OffDiagonalProducts
from mkclust.linalg import (
    empty,
    free_bytes,
    is_foreign,
    namespace,
    precision_of,
    ranges,
    rounding_of,
    select,
    to_device,
    to_host,
    zeros,
)
from mkclust.linalg.memory import require_memory
from mkclust.linalg.operators import ExactOperator
from mkclust.samples.row_source import RowSource
from mkclust.stack.base import Operator, StackPart, Standardization, Storage, UncompressedStack
from mkclust.stack.checks import write_symmetric_part
from mkclust.stack.dense import GRAM_ROWS_ON_DEVICE, OFF_DIAGONAL_ROWS
from mkclust.stack.off_diagonal import Comparison, OffDiagonalSums, compared_samples
from mkclust.stack.row_matrix import RowMatrix
from mkclust.stack.rows import for_each_block, for_each_product, for_rows_of, like_of, only
from mkclust.stack.standardized import StandardizedKernel
from mkclust.types import Array, Float


@dataclass(frozen=True)
class StreamedCombination(ExactOperator):
    """``sum_p c_p K_p``, never written down: every product is a pass over these kernels."""

    source: RowSource
    standardizations: Sequence[Standardization] = field(repr=False)
    coefficients: Float

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.source.n_samples, self.source.n_samples

    @property
    def like(self) -> Array:
        """An array that says where the vectors live that this can be multiplied with."""
        return like_of(self.source)

    def __matmul__(self, X: Array) -> Array:
        """Multiply with a thin matrix, (n, b) to (n, b)."""
        xp, n = namespace(X), self.shape[0]
        columns = [s.transform_columns(X) for s in self.standardizations]
        scales = xp.stack([s.scale_or_ones for s in self.standardizations])
        outer = to_device(self.coefficients[:, None], X) * scales
        product, sums = zeros(tuple(X.shape), X), zeros((len(columns), X.shape[1]), X)

        def add(p: int, rows: slice, part: Array) -> None:
            """Add what some rows of a kernel contribute."""
            sums[p, :] += xp.sum(part, axis=0)
            product[rows, :] += outer[p, rows][:, None] * part

        for_each_product(self.source, columns, add)
        # What centering takes away is known at the end only: the means over all rows.
        centered = np.flatnonzero([s.row_means is not None for s in self.standardizations])
        return product - select(outer, centered).T @ (select(sums, centered) / n)

    def dense(self) -> Array:
        """Write the entries out, (n, n)."""
        n = self.shape[0]
        require_memory(
            8 * n**2,
            f"writing out a combination of kernels of {n} samples",
            "use fewer samples",
            available=free_bytes(self.like),
        )
        matrix, coefficients = zeros((n, n), self.like), self.coefficients.tolist()

        def add(rows: slice, blocks: Sequence[Array]) -> None:
            """Add some rows of every kernel."""
            for c, block, s in zip(coefficients, blocks, self.standardizations, strict=True):
                matrix[rows, :] += c * s.entries(block, rows, slice(None))

        for_each_block(self.source, add)
        return write_symmetric_part(matrix, matrix)


@dataclass(frozen=True)
class StreamedStack(UncompressedStack):
    """Several kernels of which a few rows are in memory at a time, and never more.

    Products take one pass over the kernels, whether of all of them or of their combination.

    Attributes
    ----------
    source : RowSource
        Where the rows come from.
    names : tuple of str
        Names of the kernels.
    standardizations : sequence of Standardization
        How the kernels, and those of new samples, are centered and scaled.
    view_numbers : tuple of int or None
        The number of the view that each kernel is of; None where each is of its own.
    """

    source: RowSource
    names: tuple[str, ...]
    standardizations: Sequence[Standardization] = field(repr=False)
    view_numbers: tuple[int, ...] | None = None
    # A combination is no matrix: its products cost as much as those of all kernels.
    combining_pays: ClassVar[bool] = False
    repaired: ClassVar[bool] = False
    storage: ClassVar[Storage] = "streamed"

    def __post_init__(self) -> None:
        """Bring what was learned elsewhere to where the rows live."""
        standardizations = tuple(s.to_same_device(self.like) for s in self.standardizations)
        object.__setattr__(self, "standardizations", standardizations)

    @property
    def like(self) -> Array:
        """An array that says where vectors over the samples live: beside it, in float64."""
        return like_of(self.source)

    @property
    def parts(self) -> Sequence[StackPart]:
        """The kernels by the samples that they have: all together, for none lacks a sample."""
        return [StackPart.whole(self)]

    @property
    def counted(self) -> np.ndarray:
        """Which kernels count as those that could have a sample, (m,) of bool: all."""
        return np.ones(self.n_kernels, bool)

    @property
    def raw_kernels(self) -> Sequence[RowMatrix]:
        """The kernels as they came, read when asked for."""
        return [
            RowMatrix(only(self.source, [p]), standardization.diagonal)
            for p, standardization in enumerate(self.standardizations)
        ]

    @property
    def kernels(self) -> Sequence[StandardizedKernel]:
        """The kernels, each of which takes a pass of its own for every product."""
        pairs = zip(self.raw_kernels, self.standardizations, strict=True)
        return [StandardizedKernel(matrix, standardization) for matrix, standardization in pairs]

    @property
    def precision(self) -> float:
        """Relative rounding of the entries."""
        return rounding_of(self.source)

    @property
    def itemsize(self) -> int:
        """Bytes of an entry of the kernels as they came."""
        return np.dtype(precision_of(self.source)).itemsize

    @property
    def views(self) -> Sequence[int]:
        """The number of the view that each kernel is of, (m,)."""
        return range(self.n_kernels) if self.view_numbers is None else self.view_numbers

    @property
    def n_kernels(self) -> int:
        """Number of kernels, m."""
        return self.source.n_kernels

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return self.source.n_samples

    def subset(self, indices: Sequence[int]) -> "StreamedStack":
        """Return some of the kernels, each computed with alone, whatever stands beside it."""
        return StreamedStack(
            self.raw_subset(indices),
            tuple(self.names[p] for p in indices),
            [self.standardizations[p] for p in indices],
            tuple(self.views[p] for p in indices),
        )

    def raw_subset(self, indices: Sequence[int]) -> RowSource:
        """Return some of the kernels as they came, as something that ``as_stack`` takes."""
        return only(self.source, list(indices))

    def for_each_block(self, handle: Callable[[slice, Sequence[Array]], None]) -> None:
        """Hand over the kernels as they came, some rows of all at a time, each read once."""
        for_each_block(self.source, handle)

    def kernel(self, index: int) -> StandardizedKernel:
        """Return one kernel, as something that supports ``@``."""
        return self.kernels[index]

    def apply(self, V: Array) -> Array:
        """Multiply every kernel with V, (n, b) to (m, n, b), in one pass over the data."""
        xp = namespace(V)
        columns = [s.transform_columns(V) for s in self.standardizations]
        products = empty((self.n_kernels, V.shape[1], self.n_samples), V)

        def write(p: int, rows: slice, part: Array) -> None:
            """Write some rows of a product."""
            products[p, :, rows] = part.T

        for_each_product(self.source, columns, write)
        for p, standardization in enumerate(self.standardizations):
            if standardization.row_means is not None:
                products[p, :, :] -= xp.mean(products[p, :, :], axis=1)[:, None]
            if standardization.scale is not None:
                products[p, :, :] *= standardization.scale
        return xp.permute_dims(products, (0, 2, 1))

    def sum_of_products(self, thin: Sequence[Array]) -> Array | None:
        """Return ``sum_p K_p X_p``, (n, b), of a thin matrix for each kernel.

        None where the products of one of them take its rows.
        """
        total: Any = 0.0
        for p, (standardization, X) in enumerate(zip(self.standardizations, thin, strict=True)):
            columns = standardization.transform_columns(to_device(X, self.like))
            Y = self.source.product(p, columns) if hasattr(self.source, "product") else None
            if Y is None:
                return None
            if standardization.row_means is not None:
                Y = Y - namespace(Y).mean(Y, axis=0)
            total = total + Y * standardization.scale_or_ones[:, None]
        return total

    def combine(
        self, coefficients: Float, out: Operator | None = None, *, rounded: bool = False
    ) -> Operator:
        """Return ``sum_p c_p K_p``; it takes no memory, so none of an earlier one is used."""
        indices = np.flatnonzero(coefficients).tolist() or [0]  # of nothing at all, still the size
        standardizations = [self.standardizations[p] for p in indices]
        source = only(self.source, indices)
        return StreamedCombination(source, standardizations, coefficients[indices])

    def traces(self) -> Float:
        """Return the m traces."""
        diagonals = [kernel.diagonal() for kernel in self.kernels]
        return np.array([float(namespace(each).sum(each)) for each in diagonals])

    def gram(self) -> Float:
        """Return ``Tr(K_p K_q)``, (m, m)."""
        total = np.zeros((self.n_kernels, self.n_kernels))

        def add(rows: slice, blocks: Sequence[Array]) -> None:
            """Add what some rows of every pair of kernels contribute."""
            xp, pairs = namespace(blocks[0]), zip(blocks, self.standardizations, strict=True)
            wide = [s.entries(block, rows, slice(None)) for block, s in pairs]
            parts = [xp.reshape(part, (-1,)) for part in wide]
            if is_foreign(parts[0]):  # one number at a time would wait for the device each time
                flat = xp.stack(parts)
                total[...] += to_host(flat @ flat.T)
                return
            total[...] += np.array([[np.vdot(left, right) for right in parts] for left in parts])

        for_each_block(self.source, add)
        return total

    def comparisons(self) -> Sequence[Comparison]:
        """Return what every two kernels share off their diagonals: all have the same samples."""
        everyone = tuple(range(self.n_kernels))
        return [Comparison(everyone, everyone, self.off_diagonal_products(), self.compared_entries)]

    def off_diagonal_products(self) -> OffDiagonalProducts:
        """Return what pairs of kernels share off their diagonals, in one pass over the data."""
        samples = compared_samples(self.n_samples)
        sums = OffDiagonalSums(self.n_kernels, len(samples), self.like)
        height = GRAM_ROWS_ON_DEVICE if is_foreign(self.like) else OFF_DIAGONAL_ROWS

        def add(place: slice, blocks: Iterable[Array]) -> None:
            """Take in some rows of every kernel from their diagonals on, a few at a time."""
            pairs = list(zip(blocks, self.standardizations, strict=True))
            for some in ranges(place.stop - place.start, height):
                start, stop = place.start + some.start, place.start + some.stop
                rows, columns = samples[start:stop], samples[start:]
                parts = [s.entries(B[some, some.start :], rows, columns) for B, s in pairs]
                sums.add(start, parts)

        source = self.source
        if len(samples) < self.n_samples and hasattr(source, "among"):
            source = source.among(samples)
        if source.n_samples == len(samples):
            for_each_block(
                source, lambda rows, blocks: add(rows, (B[:, rows.start :] for B in blocks))
            )
        else:
            for_rows_of(
                source,
                samples,
                lambda place, _, blocks: add(
                    place, (select(B, samples[place.start :], axis=1) for B in blocks)
                ),
            )
        return sums.result()

    def compared_entries(self, indices: np.ndarray) -> Array:
        """Write the kernels out among some of the samples that are compared, (m, s, s)."""
        return self.entries(compared_samples(self.n_samples)[indices])

    def entries(self, samples: Array | None = None) -> Array:
        """Write the kernels out, (m, n, n), or their part that belongs to some samples."""
        if samples is not None and is_foreign(samples):
            samples = to_host(samples, None)
        numbers = np.arange(self.n_samples)[slice(None) if samples is None else samples]
        m, count = self.n_kernels, len(numbers)
        require_memory(
            m * count**2 * 8,
            f"writing out {m} kernels of {count} samples",
            "use fewer samples, or a method that needs products only, such as SimpleMKKM",
            available=free_bytes(self.like),
        )
        kernels = empty((m, count, count), self.like)
        if samples is None:
            self._write_all(self.source, numbers, kernels)
        elif hasattr(self.source, "among"):
            self._write_all(self.source.among(numbers), numbers, kernels)
        else:
            self._write_some(numbers, kernels)
        return kernels

    def _write_all(self, source: RowSource, numbers: np.ndarray, kernels: Array) -> None:
        """Write the entries of a source that knows no other samples than these."""

        def write(rows: slice, blocks: Sequence[Array]) -> None:
            """Write some rows of every kernel."""
            pairs = zip(blocks, self.standardizations, strict=True)
            for p, (block, standardization) in enumerate(pairs):
                kernels[p, rows, :] = standardization.entries(block, numbers[rows], numbers)

        for_each_block(source, write)

    def _write_some(self, numbers: np.ndarray, kernels: Array) -> None:
        """Write the entries of some samples, of a source that knows the rows of all."""

        def write(place: slice, rows: np.ndarray, blocks: Iterator[Array]) -> None:
            """Write some rows of every kernel, in rising order."""
            pairs = zip(blocks, self.standardizations, strict=True)
            for p, (block, standardization) in enumerate(pairs):
                part = select(block, numbers, axis=1)
                kernels[p, place, :] = standardization.entries(part, rows, numbers)

        order = for_rows_of(self.source, numbers, write)
        for p in range(0 if order is None else self.n_kernels):
            kernels[p, :, :] = select(kernels[p, :, :], order)

    def mixed_entries(self, coefficients: Float, samples: np.ndarray | None = None) -> Float:
        """Write ``sum_p c_p K_p`` out, (n, n), or the part of some samples; on the host."""
        if samples is None:
            return to_host(self.combine(coefficients).dense())
        return np.tensordot(coefficients, to_host(self.entries(samples)), 1)  # one pass for all
