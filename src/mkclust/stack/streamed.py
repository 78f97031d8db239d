"""Kernels that are not in memory: read or computed some rows at a time, pass after pass."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mkclust.memory import require_memory
from mkclust.stack.base import Operator, Standard
from mkclust.stack.dense import StandardizedKernel
from mkclust.stack.rows import RowSource, only, row_ranges, sweep
from mkclust.types import Array, Float


@dataclass(frozen=True)
class RowMatrix:
    """One kernel as it came, for all that is asked of a symmetric matrix.

    Attributes
    ----------
    source : RowSource
        Of this kernel alone.
    self_similarities : ndarray of shape (n,)
        Its diagonal.
    row_sums : ndarray of shape (n,) or None
        Where they are known.
    """

    source: RowSource = field(repr=False)
    self_similarities: Float = field(repr=False)
    row_sums: Float | None = field(default=None, repr=False)
    ndim: ClassVar[int] = 2
    __array_ufunc__ = None  # so that an array leaves its product with this to this

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.source.n_samples, self.source.n_samples

    @property
    def dtype(self) -> np.dtype:
        """Number type of the entries."""
        return self.source.dtype

    def __getitem__(self, rows: Array | slice) -> Array:
        wanted = np.arange(self.shape[0])[rows]
        size = wanted.size * self.shape[0] * self.dtype.itemsize
        require_memory(size, f"reading {wanted.size} rows of a kernel", "ask for fewer at a time")
        found = np.empty((wanted.size, self.shape[0]), self.dtype)

        def take(rows: slice, blocks: Sequence[Array]) -> None:
            here = np.flatnonzero((wanted >= rows.start) & (wanted < rows.stop))
            found[here] = blocks[0][wanted[here] - rows.start]

        sweep(self.source, take, row_ranges(self.source, wanted))
        return found

    def __matmul__(self, X: Array) -> Float:
        """Multiply with a vector or a thin matrix, in one pass."""
        X = np.asarray(X, dtype=self.dtype)
        found = np.empty(X.shape)

        def take(rows: slice, blocks: Sequence[Array]) -> None:
            found[rows] = blocks[0] @ X

        sweep(self.source, take)
        return found

    def __rmatmul__(self, thin: Array) -> Float:
        """Multiply from the left, which is the same by symmetry."""
        return (self @ np.ascontiguousarray(np.asarray(thin).T)).T

    def diagonal(self) -> Float:
        """Return the self-similarities, (n,)."""
        return self.self_similarities

    def sum(self, axis: int = 1, dtype: Any = np.float64) -> Float:
        """Return the row sums, which are the column sums."""
        known = self.row_sums
        return (self @ np.ones(self.shape[0]) if known is None else known).astype(dtype)


def _standardized(part: Array, standard: Standard, rows: Any, columns: Any) -> Float:
    """Return entries of some rows and columns, centered and scaled."""
    part = np.array(part, dtype=np.float64)
    if standard.row_means is not None:
        part -= standard.row_means[rows][:, None]
        part -= standard.row_means[columns] - standard.mean
    if standard.scale is not None:
        part *= standard.scale[rows][:, None]
        part *= standard.scale[columns]
    return part


def _thin(V: Array, standard: Standard) -> Float:
    """Return what a kernel as it came is multiplied with in place of V."""
    Y = V if standard.scale is None else V * standard.scale[:, None]
    return Y if standard.row_means is None else Y - Y.mean(axis=0)


@dataclass(frozen=True)
class StreamedCombination:
    """``sum_p c_p K_p``, never written down: every product is a pass over these kernels."""

    source: RowSource
    standards: Sequence[Standard] = field(repr=False)
    coefficients: Float

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.source.n_samples, self.source.n_samples

    def __matmul__(self, X: Array) -> Float:
        """Multiply with a thin matrix, (n, b) to (n, b)."""
        thin = [_thin(X, standard) for standard in self.standards]
        ones = np.ones(self.shape[0])
        scales = [ones if s.scale is None else s.scale for s in self.standards]
        outer = self.coefficients[:, None] * np.array(scales).reshape(-1, self.shape[0])
        found, sums = np.zeros(X.shape), np.zeros((len(thin), X.shape[1]))

        def take(rows: slice, blocks: Sequence[Array]) -> None:
            for p, (block, Y) in enumerate(zip(blocks, thin, strict=True)):
                part = (block @ Y.astype(block.dtype, copy=False)).astype(np.float64, copy=False)
                sums[p] += part.sum(axis=0)
                found[rows] += outer[p, rows, None] * part

        sweep(self.source, take)
        # What centering takes away is known at the end only: the means over all rows.
        centered = [standard.row_means is not None for standard in self.standards]
        return found - outer[centered].T @ (sums[centered] / self.shape[0])

    def dense(self) -> Float:
        """Write the entries out, (n, n)."""
        n = self.shape[0]
        require_memory(
            8 * n**2, f"writing out a combination of kernels of {n} samples", "use fewer samples"
        )
        found = np.zeros((n, n))

        def take(rows: slice, blocks: Sequence[Array]) -> None:
            for c, block, standard in zip(self.coefficients, blocks, self.standards, strict=True):
                found[rows] += c * _standardized(block, standard, rows, slice(None))

        sweep(self.source, take)
        return found


@dataclass(frozen=True)
class StreamedStack:
    """Several kernels of which a few rows are in memory at a time, and never more.

    Products take one pass over the kernels, whether of all of them or of their combination.

    Attributes
    ----------
    source : RowSource
        Where the rows come from.
    names : tuple of str
        Names of the kernels.
    standards : sequence of Standard
        How the kernels, and those of new samples, are centered and scaled.
    """

    source: RowSource
    names: tuple[str, ...]
    standards: Sequence[Standard] = field(repr=False)
    # A combination is no matrix: its products cost as much as those of all kernels.
    combining_pays: ClassVar[bool] = False
    compressed: ClassVar[bool] = False
    repaired: ClassVar[bool] = False

    @property
    def given(self) -> Sequence[RowMatrix]:
        """The kernels as they came, read when asked for."""
        return [
            RowMatrix(only(self.source, [p]), standard.diagonal)
            for p, standard in enumerate(self.standards)
        ]

    @property
    def kernels(self) -> Sequence[StandardizedKernel]:
        """The kernels, each of which takes a pass of its own for every product."""
        pairs = zip(self.given, self.standards, strict=True)
        return [StandardizedKernel(matrix, standard) for matrix, standard in pairs]

    @property
    def precision(self) -> float:
        """Relative rounding of the entries."""
        return float(np.finfo(self.source.dtype).eps)

    @property
    def n_kernels(self) -> int:
        """Number of kernels, m."""
        return self.source.n_kernels

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return self.source.n_samples

    def lift(self, *vectors: Array) -> tuple[Array, ...]:
        """Return vectors over all samples, from vectors as long as ``n_samples``: themselves."""
        return vectors

    def lift_some(self, vectors: Array) -> Array:
        """Return the same for samples that stand for all: here all do."""
        return vectors

    def sweep(self, take: Callable[[slice, Sequence[Array]], None]) -> None:
        """Hand over the kernels as they came, some rows of all at a time, each read once."""
        sweep(self.source, take)

    def kernel(self, index: int) -> StandardizedKernel:
        """Return one kernel, as something that supports ``@``."""
        return self.kernels[index]

    def apply(self, V: Array) -> Array:
        """Multiply every kernel with V, (n, b) to (m, n, b), in one pass over the data."""
        thin = [_thin(V, standard) for standard in self.standards]
        products = np.empty((self.n_kernels, V.shape[1], self.n_samples))

        def take(rows: slice, blocks: Sequence[Array]) -> None:
            for found, block, Y in zip(products, blocks, thin, strict=True):
                found[:, rows] = (block @ Y.astype(block.dtype, copy=False)).T

        sweep(self.source, take)
        for found, standard in zip(products, self.standards, strict=True):
            if standard.row_means is not None:
                found -= found.mean(axis=1)[:, None]
            if standard.scale is not None:
                found *= standard.scale
        return products.transpose(0, 2, 1)

    def combine(self, coefficients: Float, out: Operator | None = None) -> Operator:
        """Return ``sum_p c_p K_p``; it takes no memory, so none of an earlier one is used."""
        used = np.flatnonzero(coefficients).tolist() or [0]  # of nothing at all, still the size
        standards = [self.standards[p] for p in used]
        return StreamedCombination(only(self.source, used), standards, coefficients[used])

    def traces(self) -> Float:
        """Return the m traces."""
        return np.array([kernel.diagonal().sum() for kernel in self.kernels])

    def gram(self) -> Float:
        """Return ``Tr(K_p K_q)``, (m, m)."""
        total = np.zeros((self.n_kernels, self.n_kernels))

        def take(rows: slice, blocks: Sequence[Array]) -> None:
            pairs = zip(blocks, self.standards, strict=True)
            parts = [_standardized(block, s, rows, slice(None)).reshape(-1) for block, s in pairs]
            total[...] += np.array([[np.vdot(left, right) for right in parts] for left in parts])

        sweep(self.source, take)
        return total

    def entries(self, samples: Array | None = None) -> Float:
        """Write the kernels out, (m, n, n), or their part that belongs to some samples."""
        wanted = np.arange(self.n_samples)[slice(None) if samples is None else samples]
        m, count = self.n_kernels, len(wanted)
        require_memory(
            m * count**2 * 8,
            f"writing out {m} kernels of {count} samples",
            "use fewer samples, or a method that needs products only, such as SimpleMKKM",
        )
        found = np.empty((m, count, count))

        def take(rows: slice, blocks: Sequence[Array]) -> None:
            here = np.flatnonzero((wanted >= rows.start) & (wanted < rows.stop))
            for p, (block, standard) in enumerate(zip(blocks, self.standards, strict=True)):
                part = block[wanted[here] - rows.start][:, wanted]
                found[p, here] = _standardized(part, standard, wanted[here], wanted)

        sweep(self.source, take, row_ranges(self.source, wanted))
        return found


def first_look(
    source: RowSource, who: Sequence[str], *, symmetry: bool
) -> tuple[Sequence[RowMatrix], Float]:
    """Learn row sums and diagonals in one pass, having made sure that every entry is finite.

    Whether a kernel is symmetric is judged by its products and those of its transpose with one
    random vector: rows alone do not show an entry beside its mirror image.

    Returns
    -------
    kernels : sequence of m RowMatrix
        With what was learned.
    largest : ndarray of shape (m,)
        The largest entries in absolute value; zero where symmetry is not asked for.
    """
    m, n = source.n_kernels, source.n_samples
    sums, diagonals, largest = np.empty((m, n)), np.empty((m, n)), np.zeros(m)
    # No weight of the probe is small, so that no entry escapes it.
    rng = np.random.default_rng(0)
    probe = rng.uniform(0.5, 1.5, n) * rng.choice([-1.0, 1.0], n)
    apart = np.zeros((m, n))

    def take(rows: slice, blocks: Sequence[Array]) -> None:
        for p, block in enumerate(blocks):
            if block.shape != (rows.stop - rows.start, n):
                raise ValueError(
                    f"{who[p]}: rows {rows.start} to {rows.stop} came in the shape {block.shape}, "
                    f"expected {(rows.stop - rows.start, n)}: the source of the rows is at fault"
                )
            sums[p, rows] = _finite_row_sums(block, who[p], rows.start)
            diagonals[p, rows] = block.diagonal(rows.start)
            if symmetry:
                # In float64, where sums over many samples stay far more exact than the entries.
                block = block.astype(np.float64, copy=False)
                largest[p] = max(largest[p], block.max(), -block.min())
                apart[p, rows] += block @ probe
                apart[p] -= probe[rows] @ block

    sweep(source, take)
    for p in range(m):
        worst = int(np.abs(apart[p]).argmax())
        if abs(apart[p, worst]) > np.sqrt(np.finfo(source.dtype).eps) * largest[p]:
            raise ValueError(
                f"{who[p]} is not symmetric: its product with a random vector and that of its "
                f"transpose differ by up to {abs(apart[p, worst]):.3g}, most at sample {worst} "
                f"(largest entry {largest[p]:.3g}); if that is meant, pass (K + K.T) / 2"
            )
    if hasattr(source, "diagonal"):
        diagonals = np.asarray(source.diagonal(), dtype=np.float64)
    return [RowMatrix(only(source, [p]), diagonals[p], sums[p]) for p in range(m)], largest


def _finite_row_sums(block: Array, who: str, start: int) -> Float:
    """Return the row sums in float64, or say which row is not finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        sums = block.sum(axis=1, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(sums))
    if not len(bad):
        return sums
    row = block[bad[0]]
    n_nan, n_inf = int(np.isnan(row).sum()), int(np.isinf(row).sum())
    if n_nan + n_inf == 0:
        raise ValueError(f"{who} has entries so large that sums overflow: rescale it")
    raise ValueError(
        f"{who} contains NaN or infinity: in row {start + bad[0]}, the first such, {n_nan} entries "
        f"are NaN and {n_inf} infinite; drop those samples or repair the kernel"
    )
