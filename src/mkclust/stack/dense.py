"""Kernels held as matrices: arrays of any library, memory maps and SciPy sparse matrices."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, ClassVar

import numpy as np

from mkclust.engine.agreement import OffDiagonalProducts
from mkclust.linalg import (
    astype,
    empty,
    free_bytes,
    is_foreign,
    is_sparse,
    namespace,
    precision_of,
    ranges,
    rounding_of,
    to_device,
    to_host,
    zeros,
)
from mkclust.linalg.memory import are_kept_in_halves, are_written_out, require_memory
from mkclust.linalg.parallel import (
    for_each,
    in_single_precision,
)
from mkclust.linalg.sums import RoundedHalves, weighted_sum
from mkclust.linalg.threads import are_ours
from mkclust.stack.base import Operator, StackPart, Standardization, Storage, UncompressedStack
from mkclust.stack.off_diagonal import (
    Comparison,
    OffDiagonalSums,
    compared_samples,
    off_diagonal_products,
)
from mkclust.stack.standardized import Combination, StandardizedKernel
from mkclust.types import Array, Float

# Rows of all kernels that are written out at a time, on a host and on a device.
GRAM_ROWS, GRAM_ROWS_ON_DEVICE = 64, 1024
# The same where only the entries above the diagonal are: as many as stay in a core's cache.
OFF_DIAGONAL_ROWS = 32


def _is_same_memory(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two arrays of the same type are the same entries in the same memory."""
    return (
        one.shape == other.shape
        and one.strides == other.strides
        and one.__array_interface__["data"] == other.__array_interface__["data"]
    )


@dataclass(frozen=True)
class DenseStack(UncompressedStack):
    """Several kernels held as matrices.

    Attributes
    ----------
    kernels : sequence of StandardizedKernel
        The kernels.
    names : tuple of str
        Their names.
    standardizations : sequence of Standardization
        How the kernels as given, and those of new samples, are centered and scaled.
    raw_kernels : sequence of matrices of shape (n, n)
        The kernels as they came, before any repair.
    view_numbers : tuple of int or None
        The number of the view that each kernel is of; None where each is of its own.
    writes_out : bool
        Whether kernels of few samples are written out, centered and scaled, once they are needed.
    """

    kernels: Sequence[StandardizedKernel]
    names: tuple[str, ...]
    standardizations: Sequence[Standardization] = field(repr=False)
    raw_kernels: Sequence[Any] = field(repr=False)
    view_numbers: tuple[int, ...] | None = None
    writes_out: bool = True
    combining_pays: ClassVar[bool] = True

    @property
    def parts(self) -> Sequence[StackPart]:
        """The kernels by the samples that they have: all together, for none lacks a sample."""
        return [StackPart.whole(self)]

    @property
    def counted(self) -> np.ndarray:
        """Which kernels count as those that could have a sample, (m,) of bool: all."""
        return np.ones(self.n_kernels, bool)

    @property
    def repaired(self) -> bool:
        """Whether an indefinite kernel was clipped or shifted."""
        pairs = zip(self.kernels, self.raw_kernels, strict=True)
        return any(kernel.shift or kernel.matrix is not matrix for kernel, matrix in pairs)

    @property
    def precision(self) -> float:
        """Relative rounding of the entries."""
        return max(map(rounding_of, self.raw_kernels))

    @property
    def like(self) -> Array:
        """An array that says where vectors over the samples live."""
        return self.kernels[0].like

    @property
    def views(self) -> Sequence[int]:
        """The number of the view that each kernel is of, (m,)."""
        return range(self.n_kernels) if self.view_numbers is None else self.view_numbers

    @property
    def n_kernels(self) -> int:
        """Number of kernels, m."""
        return len(self.kernels)

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return self.kernels[0].shape[0]

    @property
    def storage(self) -> Storage:
        """How the kernels as they came are held."""
        return "sparse" if all(map(is_sparse, self.raw_kernels)) else "dense"

    @property
    def itemsize(self) -> int:
        """Bytes of an entry of the kernels as they came."""
        return np.dtype(precision_of(self.raw_kernels[0])).itemsize

    def subset(self, indices: Sequence[int]) -> "DenseStack":
        """Return some of the kernels, each computed with alone, whatever stands beside it."""
        return replace(
            self,
            kernels=[self.kernels[p] for p in indices],
            names=tuple(self.names[p] for p in indices),
            standardizations=[self.standardizations[p] for p in indices],
            raw_kernels=[self.raw_kernels[p] for p in indices],
            view_numbers=tuple(self.views[p] for p in indices),
        )

    def raw_subset(self, indices: Sequence[int]) -> list[Any]:
        """Return some of the kernels as they came, as something that ``as_stack`` takes."""
        return [self.raw_kernels[index] for index in indices]

    def for_each_block(self, handle: Callable[[slice, Sequence[Array]], None]) -> None:
        """Hand over the kernels as they came: all rows at once, for they are in memory."""
        handle(slice(0, self.n_samples), self.raw_kernels)

    def kernel(self, index: int) -> StandardizedKernel:
        """Return one kernel, as something that supports ``@``."""
        return self.kernels[index]

    def rough_kernel(self, index: int) -> StandardizedKernel:
        """Return one kernel for products that need few digits: in float32 on a host."""
        if self._written is not None:
            entries = self._written[index]
            return StandardizedKernel(entries, Standardization(entries.diagonal()))
        kernel = self.kernels[index]
        if not (kernel.is_array and kernel.bears_single_precision):
            return kernel
        return replace(kernel, matrix=in_single_precision(kernel.matrix))

    @cached_property
    def _written(self) -> np.ndarray | None:
        """All kernels, centered and scaled, (m, n, n), where they are small; not to be changed."""
        m, n = self.n_kernels, self.n_samples
        if not self.writes_out or not are_written_out(m, n):
            return None
        matrices = [kernel.matrix for kernel in self.kernels]
        is_plain = all(type(each) is np.ndarray and each.dtype == np.float64 for each in matrices)
        if not is_plain or any(kernel.shift for kernel in self.kernels):
            return None
        standards = [kernel.standardization for kernel in self.kernels]
        if all(each.row_means is None and each.scale is None for each in standards):
            whole = matrices[0].base
            is_whole = isinstance(whole, np.ndarray) and whole.shape == (m, n, n)
            if is_whole and all(map(_is_same_memory, matrices, whole)):
                return whole if whole.flags.c_contiguous else None
        written = np.empty((m, n, n))
        for matrix, standardization, out in zip(matrices, standards, written, strict=True):
            standardization.write(matrix, out)
        return written

    def apply(self, V: Array) -> Array:
        """Multiply every kernel with V, (n, b) to (m, n, b), in one pass over the data."""
        if self._written is not None:
            return np.matmul(V.T, self._written).transpose(0, 2, 1)
        products = empty((self.n_kernels, V.shape[1], self.n_samples), V)
        for p, kernel in enumerate(self.kernels):
            products[p, :, :] = (kernel @ V).T
        return namespace(V).permute_dims(products, (0, 2, 1))

    def combine(
        self, coefficients: Float, out: Operator | None = None, *, rounded: bool = False
    ) -> Operator:
        """Return ``sum_p c_p K_p``, in the memory of an earlier combination where given."""
        if self.n_kernels == 1 and coefficients[0] == 1:
            return self.kernels[0]  # nothing to add up, so nothing to copy
        if self._written is not None:
            return self._combine_written(coefficients, out)
        rounded = rounded and self._bear_single_precision
        precision = "float32" if rounded else "float64"
        left, right, shift = [], [], None
        for c, kernel in zip(map(float, coefficients), self.kernels, strict=True):
            standardization = kernel.standardization
            if standardization.row_means is not None:
                scale = standardization.scale_or_ones
                right.append(scale)
                left.append(c * scale * (standardization.row_means - standardization.mean / 2))
            if kernel.shift:
                shift = c * kernel.diagonal_shift + (0.0 if shift is None else shift)
        earlier = out if isinstance(out, Combination) and out.is_rounded == rounded else None
        room = None if earlier is None else earlier.matrix
        if rounded and self._halves is not None:
            total = self._halves.sum(coefficients, room)
        else:
            rounding = "float32" if rounded else None
            total = weighted_sum(
                coefficients, *self._terms, out=room, precision=rounding, symmetric=True
            )
        return Combination(
            total,
            astype(self._columns(left), precision),
            astype(self._columns(right), precision),
            None if shift is None else astype(shift, precision),
        )

    @property
    def _terms(self) -> tuple[list[Any], list[Array | None]]:
        """The kernels as matrices, and what their rows and columns are multiplied with."""
        scales = [kernel.standardization.scale for kernel in self.kernels]
        return [kernel.matrix for kernel in self.kernels], scales

    @cached_property
    def _halves(self) -> RoundedHalves | None:
        """Half of each kernel in single precision, where that takes little.

        For kernels that bear it, and do not change while this stack lasts.
        """
        is_little = are_kept_in_halves(self.n_kernels, self.n_samples)
        if not is_little or not all(kernel.is_array for kernel in self.kernels):
            return None
        return RoundedHalves(*self._terms)

    def _combine_written(self, coefficients: Float, out: Operator | None) -> Combination:
        """Return ``sum_p c_p K_p`` of kernels that are written out."""
        assert self._written is not None
        m, n = self.n_kernels, self.n_samples
        matrix = out.matrix if isinstance(out, Combination) else np.empty((n, n))
        np.dot(coefficients, self._written.reshape(m, n * n), out=matrix.reshape(n * n))
        nothing = np.zeros((n, 0))
        return Combination(matrix, nothing, nothing, None)

    def _columns(self, vectors: Sequence[Array]) -> Array:
        """Return vectors over the samples as the columns of a matrix."""
        if not vectors:
            return zeros((self.n_samples, 0), self.like)
        return namespace(*vectors).stack(vectors, axis=0).T

    @cached_property
    def _bear_single_precision(self) -> bool:
        """Whether all kernels bear single precision."""
        return all(kernel.bears_single_precision for kernel in self.kernels)

    def traces(self) -> Float:
        """Return the m traces."""
        diagonals = [kernel.diagonal() for kernel in self.kernels]
        return np.array([float(namespace(d).sum(d)) for d in diagonals])

    def gram(self) -> Float:
        """Return ``Tr(K_p K_q)``, (m, m)."""
        m, xp = self.n_kernels, namespace(self.like)
        if self._written is not None:
            return np.tensordot(self._written, self._written, ((1, 2), (1, 2)))
        total = zeros((m, m), self.like)
        height = GRAM_ROWS_ON_DEVICE if is_foreign(self.like) else GRAM_ROWS
        for rows in ranges(self.n_samples, height):
            parts = [kernel.block(rows, slice(None)) for kernel in self.kernels]
            blocks = xp.stack([xp.reshape(part, (-1,)) for part in parts])
            total += blocks @ blocks.T
        return to_host(total)

    def comparisons(self) -> Sequence[Comparison]:
        """Return what every two kernels share off their diagonals: all have the same samples."""
        everyone = tuple(range(self.n_kernels))
        return [Comparison(everyone, everyone, self.off_diagonal_products(), self.compared_entries)]

    def off_diagonal_products(self) -> OffDiagonalProducts:
        """Return what pairs of kernels share off their diagonals, in one pass over the data."""
        if self._written is not None:
            return off_diagonal_products(self._written)
        samples = compared_samples(self.n_samples)
        n, is_everyone = len(samples), len(samples) == self.n_samples
        height = GRAM_ROWS_ON_DEVICE if is_foreign(self.like) else OFF_DIAGONAL_ROWS

        def sum_up(chunk: slice) -> OffDiagonalSums:
            """Sum up over some rows, a few of them at a time."""
            sums = OffDiagonalSums(self.n_kernels, n, self.like)
            for start in range(chunk.start, chunk.stop, height):
                part: Any = (slice(start, min(start + height, chunk.stop)), slice(start, n))
                rows, columns = part if is_everyone else (samples[each] for each in part)
                sums.add(start, self._blocks(rows, columns))
            return sums

        chunks = list(ranges(n, 8 * height))
        parts: list[Any] = [None] * len(chunks)

        def fill(index: int) -> None:
            """Sum up over the rows of one chunk."""
            parts[index] = sum_up(chunks[index])

        for_each(range(len(chunks)), fill, together=not is_foreign(self.like))
        # In order, so that the result does not depend on the number of threads.
        return reduce(OffDiagonalSums.merge, parts).result()

    def _blocks(self, rows: Any, columns: Any) -> Sequence[Array] | np.ndarray:
        """Return the entries of some rows and columns of all kernels, in one array if it can be."""
        if not all(kernel.is_array and not kernel.shift for kernel in self.kernels):
            return [kernel.block(rows, columns) for kernel in self.kernels]
        first = self.kernels[0].entries(rows, columns)
        blocks = np.empty((self.n_kernels, *first.shape))
        for p, kernel in enumerate(self.kernels):
            blocks[p] = kernel.entries(rows, columns) if p else first
            kernel.standardization.standardize(blocks[p], rows, columns)
        return blocks

    def compared_entries(self, indices: np.ndarray) -> Array:
        """Write the kernels out among some of the samples that are compared, (m, s, s)."""
        return self.entries(compared_samples(self.n_samples)[indices])

    def entries(self, samples: Array | None = None) -> Array:
        """Write the kernels out, (m, n, n), or their part that belongs to some samples."""
        count = self.n_samples if samples is None else len(samples)
        size = self.n_kernels * count**2 * 8
        require_memory(
            size,
            f"writing out {self.n_kernels} kernels of {count} samples",
            "use fewer samples, or a method that needs products only, such as SimpleMKKM",
            available=free_bytes(self.like),
        )
        if self._written is not None:
            if samples is None:
                return self._written.copy()
            places = np.ravel_multi_index(np.ix_(samples, samples), self._written.shape[1:])
            flat = self._written.reshape(self.n_kernels, -1).take(places.reshape(-1), axis=1)
            return flat.reshape(self.n_kernels, count, count)
        part = slice(None) if samples is None else to_device(np.asarray(samples), self.like)
        out = empty((self.n_kernels, count, count), self.like)

        def fill(p: int) -> None:
            """Write one kernel out."""
            out[p, :, :] = self.kernels[p].block(part, part)

        # Of many samples there is room for one part in between at a time.
        for_each(range(self.n_kernels), fill, together=are_ours() and not is_foreign(self.like))
        return out

    def mixed_entries(self, coefficients: Float, samples: np.ndarray | None = None) -> Float:
        """Write ``sum_p c_p K_p`` out, (n, n), or the part of some samples; on the host."""
        if samples is None:
            return to_host(self.combine(coefficients).dense())
        mixed = np.zeros((len(samples), len(samples)))
        for p in np.flatnonzero(coefficients).tolist():  # one at a time, to spare the memory
            mixed += coefficients[p] * to_host(self.kernel(p).block(samples, samples))
        return mixed
