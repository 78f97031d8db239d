"""Kernels that are not in memory: read or computed some rows at a time, pass after pass."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mkclust.linalg import (
    astype,
    empty,
    free_bytes,
    is_foreign,
    namespace,
    pick,
    precision_of,
    rounding_of,
    to_device,
    to_host,
    zeros,
)
from mkclust.linalg.memory import require_memory
from mkclust.samples.row_source import RowSource
from mkclust.stack.base import Operator, Standardization, Storage
from mkclust.stack.dense import StandardizedKernel
from mkclust.stack.mapped import Features
from mkclust.stack.rows import like_of, only, row_ranges, sweep
from mkclust.types import Array, Float

# Entries of a row of float32 that are summed up in float32 on a device.
SUMMED_COLUMNS = 4096


@dataclass(frozen=True)
class RowMatrix:
    """One kernel as it came, for all that is asked of a symmetric matrix.

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
        wanted = np.arange(self.shape[0])[rows]
        rising, back = _in_order(wanted)
        precision = precision_of(self.source)
        require_memory(
            wanted.size * self.shape[0] * np.dtype(precision).itemsize,
            f"reading {wanted.size} rows of a kernel",
            "ask for fewer at a time",
            available=free_bytes(self.like),
        )
        entries = empty((wanted.size, self.shape[0]), self.like, precision)

        def take(rows: slice, blocks: Sequence[Array]) -> None:
            """Keep those rows of a block that are wanted."""
            here = slice(*np.searchsorted(rising, [rows.start, rows.stop]).tolist())
            entries[here, :] = pick(blocks[0], rising[here] - rows.start)

        sweep(self.source, take, row_ranges(self.source, rising))
        return entries if back is None else pick(entries, back)

    def __matmul__(self, X: Array) -> Array:
        """Multiply with a vector or a thin matrix, in one pass."""
        X = astype(X, precision_of(self.source))
        product = empty(tuple(X.shape), X)

        def take(rows: slice, blocks: Sequence[Array]) -> None:
            """Multiply some rows."""
            product[rows, ...] = astype(blocks[0] @ X, "float64")

        sweep(self.source, take)
        return product

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


def _in_order(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return samples in rising order, and what brings them back to theirs, None for nothing."""
    if np.all(samples[1:] >= samples[:-1]):
        return samples, None
    order = np.argsort(samples, kind="stable")
    return samples[order], np.argsort(order)


def _products(blocks: Sequence[Array], columns: list[Array]) -> Iterator[tuple[int, Array]]:
    """Multiply some rows of every kernel with its thin matrix, in the rows' own precision."""
    for p, (block, Y) in enumerate(zip(blocks, columns, strict=True)):
        columns[p] = astype(Y, precision_of(block))  # once, for all blocks to come
        yield p, astype(block @ columns[p], "float64")


@dataclass(frozen=True)
class StreamedCombination:
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

    @property
    def n_entries(self) -> int:
        """Number of entries that a product reads: those of all kernels."""
        return len(self.standardizations) * self.source.n_samples**2

    def __matmul__(self, X: Array) -> Array:
        """Multiply with a thin matrix, (n, b) to (n, b)."""
        xp, n = namespace(X), self.shape[0]
        columns = [
            standardization.transform_columns(X) for standardization in self.standardizations
        ]
        ones = zeros((n,), X) + 1.0
        scales = xp.stack([ones if s.scale is None else s.scale for s in self.standardizations])
        outer = to_device(self.coefficients[:, None], X) * scales
        product, sums = zeros(tuple(X.shape), X), zeros((len(columns), X.shape[1]), X)

        def take(rows: slice, blocks: Sequence[Array]) -> None:
            """Add what some rows of every kernel contribute."""
            for p, part in _products(blocks, columns):
                sums[p, :] += xp.sum(part, axis=0)
                product[rows, :] += outer[p, rows][:, None] * part

        sweep(self.source, take)
        # What centering takes away is known at the end only: the means over all rows.
        centered = np.flatnonzero([s.row_means is not None for s in self.standardizations])
        return product - pick(outer, centered).T @ (pick(sums, centered) / n)

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

        def take(rows: slice, blocks: Sequence[Array]) -> None:
            """Add some rows of every kernel."""
            for c, block, standardization in zip(
                coefficients, blocks, self.standardizations, strict=True
            ):
                matrix[rows, :] += c * standardization.entries(block, rows, slice(None))

        sweep(self.source, take)
        return matrix


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
    standardizations : sequence of Standardization
        How the kernels, and those of new samples, are centered and scaled.
    """

    source: RowSource
    names: tuple[str, ...]
    standardizations: Sequence[Standardization] = field(repr=False)
    # A combination is no matrix: its products cost as much as those of all kernels.
    combining_pays: ClassVar[bool] = False
    compressed: ClassVar[bool] = False
    repaired: ClassVar[bool] = False
    approximation_error: ClassVar[None] = None
    storage: ClassVar[Storage] = "streamed"

    def __post_init__(self) -> None:
        """Bring what was learned elsewhere to where the rows live."""
        moved = tuple(
            standardization.to_same_device(self.like) for standardization in self.standardizations
        )
        object.__setattr__(self, "standardizations", moved)

    @property
    def like(self) -> Array:
        """An array that says where vectors over the samples live: beside it, in float64."""
        return like_of(self.source)

    @property
    def given(self) -> Sequence[RowMatrix]:
        """The kernels as they came, read when asked for."""
        return [
            RowMatrix(only(self.source, [p]), standardization.diagonal)
            for p, standardization in enumerate(self.standardizations)
        ]

    @property
    def kernels(self) -> Sequence[StandardizedKernel]:
        """The kernels, each of which takes a pass of its own for every product."""
        pairs = zip(self.given, self.standardizations, strict=True)
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

    def embedding_map(self, rows: Float) -> tuple[Features, Float] | None:
        """Return what takes the features of samples to rows: there are no features."""
        return None

    def given_subset(self, indices: Sequence[int]) -> RowSource:
        """Return some of the kernels as they came, as something that ``as_stack`` takes."""
        return only(self.source, list(indices))

    def sweep(self, take: Callable[[slice, Sequence[Array]], None]) -> None:
        """Hand over the kernels as they came, some rows of all at a time, each read once."""
        sweep(self.source, take)

    def kernel(self, index: int) -> StandardizedKernel:
        """Return one kernel, as something that supports ``@``."""
        return self.kernels[index]

    def apply(self, V: Array) -> Array:
        """Multiply every kernel with V, (n, b) to (m, n, b), in one pass over the data."""
        xp = namespace(V)
        columns = [
            standardization.transform_columns(V) for standardization in self.standardizations
        ]
        products = empty((self.n_kernels, V.shape[1], self.n_samples), V)

        def take(rows: slice, blocks: Sequence[Array]) -> None:
            """Multiply some rows of every kernel."""
            for p, part in _products(blocks, columns):
                products[p, :, rows] = part.T

        sweep(self.source, take)
        for p, standardization in enumerate(self.standardizations):
            if standardization.row_means is not None:
                products[p, :, :] -= xp.mean(products[p, :, :], axis=1)[:, None]
            if standardization.scale is not None:
                products[p, :, :] *= standardization.scale
        return xp.permute_dims(products, (0, 2, 1))

    def combine(self, coefficients: Float, out: Operator | None = None) -> Operator:
        """Return ``sum_p c_p K_p``; it takes no memory, so none of an earlier one is used."""
        used = np.flatnonzero(coefficients).tolist() or [0]  # of nothing at all, still the size
        standardizations = [self.standardizations[p] for p in used]
        return StreamedCombination(only(self.source, used), standardizations, coefficients[used])

    def traces(self) -> Float:
        """Return the m traces."""
        diagonals = [kernel.diagonal() for kernel in self.kernels]
        return np.array([float(namespace(each).sum(each)) for each in diagonals])

    def gram(self) -> Float:
        """Return ``Tr(K_p K_q)``, (m, m)."""
        total = np.zeros((self.n_kernels, self.n_kernels))

        def take(rows: slice, blocks: Sequence[Array]) -> None:
            """Add what some rows of every pair of kernels contribute."""
            xp, pairs = namespace(blocks[0]), zip(blocks, self.standardizations, strict=True)
            wide = [s.entries(block, rows, slice(None)) for block, s in pairs]
            parts = [xp.reshape(part, (-1,)) for part in wide]
            if is_foreign(parts[0]):  # one number at a time would wait for the device each time
                flat = xp.stack(parts)
                total[...] += to_host(flat @ flat.T)
                return
            total[...] += np.array([[np.vdot(left, right) for right in parts] for left in parts])

        sweep(self.source, take)
        return total

    def entries(self, samples: Array | None = None) -> Array:
        """Write the kernels out, (m, n, n), or their part that belongs to some samples."""
        if samples is not None and is_foreign(samples):
            samples = to_host(samples, None)
        wanted = np.arange(self.n_samples)[slice(None) if samples is None else samples]
        m, count = self.n_kernels, len(wanted)
        require_memory(
            m * count**2 * 8,
            f"writing out {m} kernels of {count} samples",
            "use fewer samples, or a method that needs products only, such as SimpleMKKM",
            available=free_bytes(self.like),
        )
        kernels = empty((m, count, count), self.like)
        rising, back = _in_order(wanted)

        def place(rows: slice, blocks: Sequence[Array]) -> None:
            """Write some rows of all that are wanted."""
            for p, (block, standardization) in enumerate(
                zip(blocks, self.standardizations, strict=True)
            ):
                kernels[p, rows, :] = standardization.entries(block, wanted[rows], wanted)

        def take(rows: slice, blocks: Sequence[Array]) -> None:
            """Write those rows and columns of a block that are wanted."""
            here = slice(*np.searchsorted(rising, [rows.start, rows.stop]).tolist())
            for p, (block, standardization) in enumerate(
                zip(blocks, self.standardizations, strict=True)
            ):
                part = pick(pick(block, rising[here] - rows.start), wanted, axis=1)
                kernels[p, here, :] = standardization.entries(part, rising[here], wanted)

        source: Any = self.source
        if samples is None or hasattr(source, "among"):
            sweep(source if samples is None else source.among(wanted), place)
            return kernels
        sweep(source, take, row_ranges(source, rising))
        for p in range(m if back is not None else 0):
            kernels[p, :, :] = pick(kernels[p, :, :], back)
        return kernels

    def mixed_entries(self, coefficients: Float, samples: np.ndarray | None = None) -> Float:
        """Write ``sum_p c_p K_p`` out, (n, n), or the part of some samples; on the host."""
        if samples is None:
            return to_host(self.combine(coefficients).dense())
        return np.tensordot(coefficients, to_host(self.entries(samples)), 1)  # one pass for all


def check_rows(
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
    checks, like = _RowChecks(source, who, symmetry), like_of(source)
    sweep(source, checks.handle_block)
    largest = to_host(checks.largest)
    checks.refuse_asymmetry(largest)
    diagonals = checks.diagonals
    if hasattr(source, "diagonal"):
        diagonals = to_device(source.diagonal(), like, "float64")
    pairs = [(diagonals[p, :], checks.sums[p, :]) for p in range(source.n_kernels)]
    return [RowMatrix(only(source, [p]), *pair) for p, pair in enumerate(pairs)], largest


class _RowChecks:
    """What a pass over the rows of m kernels checks, and learns on the way.

    Attributes
    ----------
    sums, diagonals : array of shape (m, n)
        The row sums and the self-similarities.
    largest : array of shape (m,)
        The largest entries in absolute value; zero where symmetry is not asked for.
    differences : array of shape (m, n)
        Products with a random vector, less those of the transposes.
    """

    def __init__(self, source: RowSource, who: Sequence[str], symmetry: bool):
        m, n, like = source.n_kernels, source.n_samples, like_of(source)
        self.who, self.symmetry, self.rounding = who, symmetry, rounding_of(source)
        self.largest = zeros((m,), like)
        self.sums, self.diagonals = empty((m, n), like), empty((m, n), like)
        self.differences = zeros((m, n), like)
        # No weight of the probe is small, so that no entry escapes it.
        rng = np.random.default_rng(0)
        self.probe = to_device(rng.uniform(0.5, 1.5, n) * rng.choice([-1.0, 1.0], n), like)

    def handle_block(self, rows: slice, blocks: Sequence[Array]) -> None:
        """Check some rows of every kernel, and learn from them."""
        xp = namespace(self.sums)
        for p, block in enumerate(blocks):
            shape, expected = tuple(block.shape), (rows.stop - rows.start, self.sums.shape[1])
            if shape != expected:
                raise ValueError(
                    f"{self.who[p]}: rows {rows.start} to {rows.stop} came in the shape {shape}, "
                    f"expected {expected}: the source of the rows is at fault"
                )
            self.sums[p, rows] = _row_sums(block)
            diagonal = xp.linalg.diagonal(block, offset=rows.start)
            self.diagonals[p, rows] = astype(diagonal, "float64")
        # Of all kernels at once, for a device is waited for here.
        if not xp.all(xp.isfinite(self.sums[:, rows])):
            for p, block in enumerate(blocks):
                _check_finite(block, self.sums[p, rows], self.who[p], rows.start)
        for p, block in enumerate(blocks if self.symmetry else ()):
            self._compare_with_transpose(p, rows, block)

    def _compare_with_transpose(self, p: int, rows: slice, block: Array) -> None:
        """Add what some rows of one kernel contribute to the products with the random vector."""
        xp = namespace(self.sums)
        # In float64, where sums over many samples stay far more exact than the entries.
        block = astype(block, "float64")
        most = xp.maximum(xp.max(block), -xp.min(block))
        self.largest[p] = xp.maximum(self.largest[p], most)
        self.differences[p, rows] += block @ self.probe
        self.differences[p, :] -= self.probe[rows] @ block

    def refuse_asymmetry(self, largest: Float) -> None:
        """Raise where a kernel and its transpose differ by more than rounding."""
        xp = namespace(self.differences)
        for p, who in enumerate(self.who):
            worst = int(xp.argmax(xp.abs(self.differences[p, :])))
            difference = abs(float(self.differences[p, worst]))
            if difference > np.sqrt(self.rounding) * largest[p]:
                raise ValueError(
                    f"{who} is not symmetric: its product with a random vector and that of its "
                    f"transpose differ by up to {difference:.3g}, most at sample {worst} "
                    f"(largest entry {largest[p]:.3g}); if that is meant, pass (K + K.T) / 2"
                )


def _row_sums(block: Array) -> Array:
    """Return the row sums in float64."""
    xp = namespace(block)
    if not is_foreign(block) or precision_of(block) == "float64":
        with np.errstate(invalid="ignore", over="ignore"):
            return xp.sum(block, axis=1, dtype=xp.float64)
    # To sum up in another type, libraries of devices convert the whole block first: so they sum up
    # short parts of every row as they are, where little is lost, and only these in float64.
    height, n = block.shape
    rest = n % SUMMED_COLUMNS
    parts = xp.reshape(block[:, : n - rest], (height, n // SUMMED_COLUMNS, SUMMED_COLUMNS))
    sums = xp.sum(xp.sum(parts, axis=2), axis=1, dtype=xp.float64)
    return sums + astype(xp.sum(block[:, n - rest :], axis=1), "float64")


def _check_finite(block: Array, sums: Array, who: str, start: int) -> None:
    """Raise where row sums are not finite, and say which row and why."""
    bad = np.flatnonzero(~np.isfinite(to_host(sums)))
    if not bad.size:
        return
    row = to_host(block[int(bad[0]), :])
    n_nan, n_inf = int(np.isnan(row).sum()), int(np.isinf(row).sum())
    if n_nan + n_inf == 0:
        raise ValueError(f"{who} has entries so large that sums overflow: rescale it")
    raise ValueError(
        f"{who} contains NaN or infinity: in row {start + bad[0]}, the first such, {n_nan} entries "
        f"are NaN and {n_inf} infinite; drop those samples or repair the kernel"
    )
