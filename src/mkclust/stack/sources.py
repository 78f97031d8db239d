"""Where the rows of kernels come from that are not in memory: files, formulas, other programs."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import get_ident
from typing import Any

import numpy as np

from mkclust.data.row_source import RowSource
from mkclust.linalg import (
    astype,
    empty,
    free_bytes,
    is_foreign,
    is_on_accelerator,
    is_sparse,
    namespace,
    precision_of,
    ranges,
    rounding_of,
    select,
    to_device,
    to_host,
    zeros,
)
from mkclust.stack.checks import as_numbers, entries_error
from mkclust.types import Array, Float

# Bytes of the rows that are read at a time, of all kernels; the next are read
# meanwhile.
BLOCK_BYTES = 64 * 2**20
# With fewer rows at a time, products would wait for the thin matrix.
FEWEST_ROWS = 32
# At most this share of all rows is read at a time, so that small problems stay small.
LARGEST_SHARE = 1 / 32
# The latest rows are kept for at most this many threads.
MOST_THREADS = 16
# On a device, rows of every kernel take at most this share of the free memory at a
# time.
SHARE_ON_DEVICE = 0.004


class Source:
    """Kernels over the same samples, of which some rows are read or computed at a time.

    A subclass defines ``n_kernels``, ``n_samples``, ``dtype`` and ``rows``, and
    overrides the rest if it has a cheaper way.
    """

    n_kernels: int  # m
    n_samples: int  # n
    dtype: Any  # number type of the rows, as their library names it
    like: Any = None  # an array beside the rows; None for NumPy

    def rows(self, start: int, stop: int) -> Sequence[Array]:
        """Return the rows from start to stop of every kernel, m blocks (stop - start, n)."""
        raise NotImplementedError(f"{type(self).__name__} must define rows")

    def diagonal(self) -> Array | None:
        """Return the self-similarities, (m, n); None if they are only known from the rows."""
        return None

    def sums(self) -> Array | None:
        """Return the sums of all rows, (m, n), if they are known without reading these."""
        return None

    def entries(
        self, index: int, rows: np.ndarray, columns: np.ndarray
    ) -> Array | None:
        """Return some entries of a kernel, rising numbers given, if that takes no whole rows."""
        return None

    def product(self, index: int, X: Array) -> Array | None:
        """Return a kernel times a thin matrix, (n, b), if that takes no rows; else None."""
        return None

    def only(self, indices: Sequence[int]) -> "Source":
        """Return a source of some of the kernels."""
        return GivenRows(self, indices)

    @property
    def height(self) -> int:
        """How many rows to read at a time."""
        n, itemsize = max(1, self.n_samples), np.dtype(precision_of(self)).itemsize
        free = free_bytes(self.like)
        if free is not None:
            return min(max(1, int(SHARE_ON_DEVICE * free / (n * itemsize))), n)
        rows = min(
            BLOCK_BYTES // (self.n_kernels * n * itemsize), int(LARGEST_SHARE * n)
        )
        return min(max(FEWEST_ROWS, rows), n)

    def blocks(self) -> Iterator[tuple[slice, list[Array]]]:
        """Yield the rows of every kernel, block after block; a thread reads the next meanwhile."""
        parts = list(ranges(self.n_samples, self.height))
        if is_foreign(self.like):  # a device computes asynchronously anyway
            yield from ((part, self._read(part)) for part in parts)
            return
        with ThreadPoolExecutor(1, "mkclust-reader") as reader:
            pending = reader.submit(self._read, parts[0])
            for part, following in zip(parts, [*parts[1:], None], strict=True):
                blocks = pending.result()
                if following is not None:
                    pending = reader.submit(self._read, following)
                yield part, blocks
                del blocks  # not to be held beside the next two

    def products(self, wanted: Sequence[tuple[int, Array]]) -> list[Array]:
        """Return products of some kernels with a thin matrix each, in one pass over their rows."""
        results: list[Any] = [self.product(index, X) for index, X in wanted]
        rest = [place for place, result in enumerate(results) if result is None]
        if not rest:
            return results
        indices, thin = map(list, zip(*(wanted[place] for place in rest), strict=True))
        for place, X in zip(rest, thin, strict=True):
            results[place] = empty(tuple(X.shape), X, precision_of(X))
        on_accelerator = is_on_accelerator(self.like)
        if on_accelerator:
            thin = [astype(X, precision_of(self)) for X in thin]
        is_whole = indices == list(range(self.n_kernels))
        for part, blocks in (self if is_whole else self.only(indices)).blocks():
            for place, X, block in zip(rest, thin, blocks, strict=True):
                block = block if on_accelerator else astype(block, precision_of(X))
                results[place][part, :] = astype(
                    block @ X, precision_of(results[place])
                )
        return results

    def rows_of(self, index: int, samples: Any) -> Array:
        """Return the rows of one kernel for a slice or an array of numbers, (s, n), in float64.

        Those of all kernels are kept, by thread: a loop over kernels within one over
        blocks reads each once.
        """
        is_slice = isinstance(samples, slice)
        samples = samples if is_slice else to_host(samples, np.int64)
        key = (samples.start, samples.stop) if is_slice else samples.tobytes()
        latest = vars(self).setdefault("_latest", {})
        known, rows = latest.get(get_ident(), (None, []))
        if known != key:
            rows = self._read(samples) if is_slice else self._some(samples)
            if len(latest) > MOST_THREADS:  # most of these have ended
                latest.clear()
            latest[get_ident()] = key, rows
        return astype(rows[index], "float64")

    def _read(self, part: slice) -> list[Array]:
        return _listed(self.rows(*part.indices(self.n_samples)[:2]))

    def _some(self, samples: np.ndarray) -> list[Array]:
        """Return the rows of some samples for every kernel, those that follow another together."""
        rising, order = np.unique(samples, return_inverse=True)
        runs = np.split(rising, np.flatnonzero(np.diff(rising) > 1) + 1)
        parts = [
            self._read(slice(int(run[0]), int(run[-1]) + 1)) for run in runs if len(run)
        ]
        every = zip(*(parts or [self._read(slice(0, 0))]), strict=True)
        return [
            select(namespace(*blocks).concat(list(blocks)), order) for blocks in every
        ]


class GivenRows(Source):
    """Kernels, all or some, of anything with the members of `RowSource`."""

    def __init__(self, source: RowSource, kernels: Sequence[int] | None = None):
        self.source, self.dtype, self.n_samples = source, source.dtype, source.n_samples
        self.kernels = range(source.n_kernels) if kernels is None else tuple(kernels)
        self.n_kernels, first = len(self.kernels), _listed(source.rows(0, 0))[0]
        self.like = first if is_foreign(first) else None

    def rows(self, start: int, stop: int) -> list[Array]:
        blocks = _listed(self.source.rows(start, stop))
        return [blocks[p] for p in self.kernels]


class MatrixRows(Source):
    """The rows of a matrix of shape (n, n) that supports slicing: a memory map, HDF5, an array."""

    n_kernels = 1

    def __init__(self, matrix: Any):
        self.matrix, self.n_samples = matrix, matrix.shape[0]
        self.like = matrix if is_foreign(matrix) else None
        self.dtype = self.rows(0, 0)[0].dtype

    def rows(self, start: int, stop: int) -> list[Array]:
        part = (
            (slice(start, stop), ...) if is_foreign(self.matrix) else slice(start, stop)
        )
        rows = self.matrix[part]
        rows = rows.toarray() if is_sparse(rows) else rows
        return [
            as_numbers(np.array(rows) if isinstance(rows, np.memmap) else rows, "X")
        ]


def examine_rows(
    source: Source, labels: Sequence[str], validate: bool
) -> tuple[Array, Array, Float]:
    """Return row sums and self-similarities of m kernels, (m, n), and their largest entries, (m,).

    If kernels are validated, row sums are those of the symmetric part, for which a
    certificate holds; if not, the largest entries are zero.
    """
    m, n, like = source.n_kernels, source.n_samples, source.like
    xp, known, largest = namespace(like), source.diagonal(), np.zeros(m)
    diagonals = (
        zeros((m, n), like) if known is None else to_device(known, like, "float64")
    )
    if known is not None and not validate:
        sums = source.sums()
        if sums is not None:
            return to_device(sums, like, "float64"), diagonals, largest
        ones = zeros((n, 1), like) + 1.0
        products = [source.product(p, ones) for p in range(m)]  # if these take no rows
        if all(
            each is not None and bool(xp.all(xp.isfinite(each))) for each in products
        ):
            return xp.concat(products, axis=1).T, diagonals, largest
    sums, column_sums, differences = (zeros((m, n), like) for _ in range(3))
    # No entry of this vector is small, so that no entry of a kernel escapes it.
    rng = np.random.default_rng(0)
    probe = to_device(rng.uniform(0.5, 1.5, n) * rng.choice([-1.0, 1.0], n), like)
    for rows, blocks in source.blocks():
        for p, block in enumerate(blocks):
            shape, expected = tuple(block.shape), (rows.stop - rows.start, n)
            if shape != expected:
                raise ValueError(
                    f"{labels[p]}: rows {rows.start} to {rows.stop} came in the shape "
                    f"{shape}, expected {expected}: the source of the rows is at fault"
                )
            with np.errstate(invalid="ignore", over="ignore"):
                sums[p, rows] = xp.sum(block, axis=1, dtype=xp.float64)
            if known is None:
                diagonal = xp.linalg.diagonal(block, offset=rows.start)
                diagonals[p, rows] = astype(diagonal, "float64")
        # For all kernels at once, since this waits for a device.
        if not xp.all(xp.isfinite(sums[:, rows])):
            bad = int(
                np.flatnonzero(~np.isfinite(to_host(sums[:, rows])).all(axis=1))[0]
            )
            where = f", in rows {rows.start} to {rows.stop}"
            raise entries_error([blocks[bad]], labels[bad], where)
        for p, block in enumerate(blocks if validate else ()):
            # In float64, in which sums over many samples stay far more exact than the
            # entries.
            block = astype(block, "float64")
            largest[p] = max(largest[p], float(xp.max(xp.abs(block))))
            differences[p, rows] += block @ probe
            differences[p, :] -= probe[rows] @ block
            column_sums[p, :] += xp.sum(block, axis=0)
    for p, label in enumerate(labels):
        difference = float(xp.max(xp.abs(differences[p, :])))
        if difference > np.sqrt(rounding_of(source)) * largest[p]:
            raise ValueError(
                f"{label} is not symmetric: its product with a random vector and that "
                f"of its transpose differ by up to {difference:.3g} (largest entry "
                f"{largest[p]:.3g}); if that is meant, pass (K + K.T) / 2"
            )
    return (sums + column_sums) / 2 if validate else sums, diagonals, largest


def _listed(rows: Any) -> list[Array]:
    return (
        [rows[p, ...] for p in range(rows.shape[0])] if is_foreign(rows) else list(rows)
    )
