"""Where rows of kernels come from that are not in memory: files, formulas, programs."""

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
from mkclust.stack.checks import as_numbers, nonfinite_error
from mkclust.types import Array, Float

# Bytes of the rows that are read at a time, of all kernels; the next are read
# meanwhile.
BLOCK_BYTES = 64 * 2**20
# With fewer rows at a time, products would wait for the thin matrix.
FEWEST_ROWS = 32


class Source:
    """Kernels over the same samples, of which some rows are read or computed at a time.

    A subclass defines ``n_kernels``, ``n_samples``, ``dtype`` and ``rows``, and
    overrides the rest if it has a cheaper way.
    """

    n_kernels: Any  # m
    n_samples: int  # n
    dtype: Any  # number type of the rows, as their library names it
    like: Any = None  # an array beside the rows; None, or any other, for NumPy

    def rows(self, start: int, stop: int) -> Sequence[Array]:
        """Return rows from start to stop of every kernel, m of (stop - start, n)."""
        raise NotImplementedError(f"{type(self).__name__} must define rows")

    def diagonal(self) -> Array | None:
        """Return the self-similarities, (m, n); None if only the rows tell them."""
        return None

    def sums(self) -> Array | None:
        """Return the sums of all rows, (m, n), if known without reading these."""
        return None

    def entries(
        self,
        index: int,
        rows: np.ndarray,
        columns: np.ndarray,
    ) -> Array | None:
        """Return entries by rising numbers, if that takes no whole rows."""
        return None

    def product(self, index: int, X: Array) -> Array | None:
        """Return a kernel times a thin matrix, (n, b), if that takes no rows."""
        return None

    def only(self, indices: Sequence[int]) -> "Source":
        """Return a source of some of the kernels."""
        return SourceAdapter(self, indices)

    @property
    def height(self) -> int:
        """How many rows to read at a time."""
        n = max(1, self.n_samples)
        row_bytes = n * np.dtype(precision_of(self)).itemsize
        free = free_bytes(self.like)
        if free is not None:  # on a device, a small share of the free memory
            return min(max(1, int(0.004 * free / row_bytes)), n)
        # A small share of all rows, so that small problems stay small.
        rows = min(BLOCK_BYTES // (self.n_kernels * row_bytes), n // 32)
        return min(max(FEWEST_ROWS, rows), n)

    def blocks(self) -> Iterator[tuple[slice, list[Array]]]:
        """Yield rows of every kernel in blocks; a thread reads the next meanwhile."""
        parts = list(ranges(self.n_samples, self.height))
        if is_foreign(self.like):  # a device computes asynchronously anyway
            yield from ((part, self._read(part)) for part in parts)
            return
        with ThreadPoolExecutor(1, "mkclust-reader") as reader:
            pending = reader.submit(self._read, parts[0])
            later = [*parts[1:], None]
            for part, following in zip(parts, later, strict=True):
                blocks = pending.result()
                if following is not None:
                    pending = reader.submit(self._read, following)
                yield part, blocks
                del blocks  # not to be held together with the next two

    def products(self, wanted: Sequence[tuple[int, Array]]) -> list[Array]:
        """Return products of some kernels with a thin matrix each, in one pass."""
        results: list[Any] = [self.product(index, X) for index, X in wanted]
        rest = [place for place, result in enumerate(results) if result is None]
        if not rest:
            return results
        indices = [wanted[place][0] for place in rest]
        source = self
        if indices != list(range(self.n_kernels)):
            source = self.only(indices)

        factors = []
        for place in rest:
            X = wanted[place][1]
            results[place] = empty(tuple(X.shape), X, precision_of(X))
            # An accelerator computes in the number type of the rows.
            on_accelerator = is_on_accelerator(self.like)
            precision = precision_of(self if on_accelerator else X)
            factors.append((results[place], astype(X, precision), precision))
        for part, blocks in source.blocks():
            for (result, X, precision), block in zip(factors, blocks, strict=True):
                product = astype(block, precision) @ X
                result[part, :] = astype(product, precision_of(result))
        return results

    def rows_of(self, index: int, samples: Any) -> Array:
        """Return rows of one kernel, by a slice or numbers, (s, n), in float64.

        Those of all kernels are kept, by thread: a loop over kernels within one over
        blocks reads each once.
        """
        key: Any
        if isinstance(samples, slice):
            key = (samples.start, samples.stop)
        else:
            samples = to_host(samples, np.int64)
            key = samples.tobytes()
        latest = vars(self).setdefault("_latest", {})
        known, rows = latest.get(get_ident(), (None, []))
        if known != key:
            by_slice = isinstance(samples, slice)
            rows = self._read(samples) if by_slice else self._some(samples)
            if len(latest) > 16:  # most of these threads have ended
                latest.clear()
            latest[get_ident()] = (key, rows)
        return astype(rows[index], "float64")

    def _read(self, part: slice) -> list[Array]:
        """Return the rows of a slice for every kernel."""
        start, stop, _ = part.indices(self.n_samples)
        return _listed(self.rows(start, stop))

    def _some(self, samples: np.ndarray) -> list[Array]:
        """Return the rows of some samples for every kernel, read in runs."""
        rising, order = np.unique(samples, return_inverse=True)
        parts = [self._read(run) for run in _consecutive_runs(rising)]
        by_kernel = zip(*parts, strict=True)
        return [
            select(namespace(*blocks).concat(list(blocks)), order)
            for blocks in by_kernel
        ]


def _consecutive_runs(rising: np.ndarray) -> list[slice]:
    """Return rising numbers as slices, at least one."""
    if not len(rising):
        return [slice(0, 0)]
    breaks = np.flatnonzero(np.diff(rising) > 1) + 1
    runs = np.split(rising, breaks)
    return [slice(int(run[0]), int(run[-1]) + 1) for run in runs]


class SourceAdapter(Source):
    """Kernels, all or some, of anything with the members of `RowSource`."""

    def __init__(self, source: RowSource, kernels: Sequence[int] | None = None):
        self.source = source
        self.dtype = source.dtype
        self.n_samples = source.n_samples
        self.kernels = range(source.n_kernels) if kernels is None else tuple(kernels)
        self.n_kernels = len(self.kernels)
        self.like = _listed(source.rows(0, 0))[0]

    def rows(self, start: int, stop: int) -> list[Array]:
        """Return rows of the kernels that were chosen."""
        blocks = _listed(self.source.rows(start, stop))
        return [blocks[p] for p in self.kernels]


class MatrixRows(Source):
    """The rows of a matrix that supports slicing: a memory map, HDF5, an array."""

    n_kernels = 1

    def __init__(self, matrix: Any):
        self.matrix = matrix
        self.n_samples = matrix.shape[0]
        self.like = matrix
        self.dtype = self.rows(0, 0)[0].dtype

    def rows(self, start: int, stop: int) -> list[Array]:
        """Return rows of the one matrix, checked."""
        rows = select(self.matrix, slice(start, stop))
        if is_sparse(rows):
            rows = rows.toarray()
        if isinstance(rows, np.memmap):
            rows = np.array(rows)
        return [as_numbers(rows, "X")]


def examine_rows(
    source: Source,
    labels: Sequence[str],
    validate: bool,
) -> tuple[Array, Array, Float]:
    """Return row sums and self-similarities, (m, n), and largest entries, (m,).

    If kernels are validated, row sums are those of the symmetric part, for which a
    certificate holds; if not, the largest entries are zero.
    """
    known = source.diagonal()
    if known is not None and not validate:
        sums = _known_sums(source)
        if sums is not None:
            like = source.like
            diagonals = to_device(known, like, "float64")
            sums = to_device(sums, like, "float64")
            return sums, diagonals, np.zeros(source.n_kernels)
    m = source.n_kernels
    n = source.n_samples
    like = source.like
    xp = namespace(like)
    diagonals = zeros((m, n), like)
    if known is not None:
        diagonals = to_device(known, like, "float64")
    sums = zeros((m, n), like)
    column_sums = zeros((m, n), like)
    largest = np.zeros(m)
    # The product with a random vector, less that of the transpose. No entry of the
    # vector is small, so that no entry of a kernel escapes it.
    differences = zeros((m, n), like)
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], n)
    probe = to_device(rng.uniform(0.5, 1.5, n) * signs, like)
    for rows, blocks in source.blocks():
        for p, block in enumerate(blocks):
            shape = tuple(block.shape)
            if shape != (rows.stop - rows.start, n):
                raise ValueError(
                    f"{labels[p]}: rows {rows.start} to {rows.stop} of {n} columns "
                    f"came in the shape {shape}: the source of the rows is at fault"
                )
            with np.errstate(invalid="ignore", over="ignore"):
                sums[p, rows] = xp.sum(block, axis=1, dtype=xp.float64)
            if known is None:
                diagonal = xp.linalg.diagonal(block, offset=rows.start)
                diagonals[p, rows] = astype(diagonal, "float64")
        # For all kernels at once, since this waits for a device.
        if not xp.all(xp.isfinite(sums[:, rows])):
            are_finite = np.isfinite(to_host(sums[:, rows])).all(axis=1)
            bad = int(np.argmin(are_finite))
            where = f", in rows {rows.start} to {rows.stop}"
            raise nonfinite_error([blocks[bad]], labels[bad], where)
        for p, block in enumerate(blocks if validate else ()):
            # In float64, in which sums over many samples stay far more exact than the
            # entries.
            block = astype(block, "float64")
            largest[p] = max(largest[p], float(xp.max(xp.abs(block))))
            differences[p, rows] += block @ probe
            differences[p, :] -= probe[rows] @ block
            column_sums[p, :] += xp.sum(block, axis=0)
    if not validate:
        return sums, diagonals, largest
    most = np.sqrt(rounding_of(source)) * largest
    found = to_host(xp.max(xp.abs(differences), axis=1))
    if np.any(found > most):
        p = int(np.argmax(found > most))
        raise ValueError(
            f"{labels[p]} is not symmetric: its product with a random vector and that "
            f"of its transpose differ by up to {found[p]:.3g} (largest entry "
            f"{largest[p]:.3g}); if that is meant, pass (K + K.T) / 2"
        )
    return (sums + column_sums) / 2, diagonals, largest


def _known_sums(source: Source) -> Array | None:
    """Return the sums of all rows, (m, n), if they take no rows; None if they do."""
    sums = source.sums()
    if sums is not None:
        return sums
    xp = namespace(source.like)
    ones = zeros((source.n_samples, 1), source.like) + 1.0
    products = []
    for p in range(source.n_kernels):
        product = source.product(p, ones)
        if product is None or not bool(xp.all(xp.isfinite(product))):
            return None
        products.append(product)
    return xp.concat(products, axis=1).T


def _listed(rows: Any) -> list[Array]:
    """Return the rows of every kernel in a list."""
    if is_foreign(rows):
        return [rows[p, ...] for p in range(rows.shape[0])]
    return list(rows)
