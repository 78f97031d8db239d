"""The checks of kernels known by their rows, all in one pass over these."""

from collections.abc import Sequence

import numpy as np

from mkclust.linalg import (
    astype,
    empty,
    is_foreign,
    namespace,
    precision_of,
    rounding_of,
    to_device,
    to_host,
    zeros,
)
from mkclust.samples.row_source import RowSource
from mkclust.stack.row_matrix import RowMatrix
from mkclust.stack.rows import for_each_block, like_of, only
from mkclust.types import Array, Float

# Entries of a row of float32 that are summed up in float32 on a device.
SUMMED_COLUMNS = 4096


def check_rows(
    source: RowSource,
    labels: Sequence[str],
    *,
    symmetry: bool,
    summed_columns: int = SUMMED_COLUMNS,
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
    checks, like = _RowChecks(source, labels, symmetry, summed_columns), like_of(source)
    if symmetry or not checks.learn_by_products(source):
        for_each_block(source, checks.handle_block)
    largest = to_host(checks.largest)
    checks.refuse_asymmetry(largest)
    diagonals = checks.diagonals
    if hasattr(source, "diagonal"):
        diagonals = to_device(source.diagonal(), like, "float64")
    # Those of the symmetric part.
    sums = (checks.sums + checks.column_sums) / 2 if symmetry else checks.sums
    pairs = [(diagonals[p, :], sums[p, :]) for p in range(source.n_kernels)]
    return [RowMatrix(only(source, [p]), *pair) for p, pair in enumerate(pairs)], largest


class _RowChecks:
    """What a pass over the rows of m kernels checks, and learns on the way.

    Attributes
    ----------
    sums, diagonals : array of shape (m, n)
        The row sums, and the self-similarities.
    column_sums : array of shape (m, n)
        The column sums, zero where symmetry is not asked for.
    largest : array of shape (m,)
        The largest entries in absolute value; zero where symmetry is not asked for.
    differences : array of shape (m, n)
        Products with a random vector, less those of the transposes.
    """

    def __init__(
        self, source: RowSource, labels: Sequence[str], symmetry: bool, summed_columns: int
    ):
        m, n, like = source.n_kernels, source.n_samples, like_of(source)
        self.labels, self.symmetry, self.rounding = labels, symmetry, rounding_of(source)
        self.summed_columns, self.largest = summed_columns, zeros((m,), like)
        self.sums, self.diagonals = empty((m, n), like), empty((m, n), like)
        self.differences, self.column_sums = zeros((m, n), like), zeros((m, n), like)
        # No weight of the probe is small, so that no entry escapes it.
        rng = np.random.default_rng(0)
        probe = rng.uniform(0.5, 1.5, n) * rng.choice([-1.0, 1.0], n)
        self.probes = to_device(np.stack([probe, np.ones(n)]), like)

    def learn_by_products(self, source: RowSource) -> bool:
        """Learn the row sums by products that take no rows, where there are such for all kernels.

        Sums that are not finite are left to the rows, which tell why.
        """
        if not (hasattr(source, "product") and hasattr(source, "diagonal")):
            return False
        ones = zeros((source.n_samples, 1), like_of(source)) + 1.0
        for p in range(source.n_kernels):
            product = source.product(p, ones)
            if product is None:
                return False
            self.sums[p, :] = product[:, 0]
        xp = namespace(self.sums)
        return bool(xp.all(xp.isfinite(self.sums)))

    def handle_block(self, rows: slice, blocks: Sequence[Array]) -> None:
        """Check some rows of every kernel, and learn from them."""
        xp = namespace(self.sums)
        for p, block in enumerate(blocks):
            shape, expected = tuple(block.shape), (rows.stop - rows.start, self.sums.shape[1])
            if shape != expected:
                raise ValueError(
                    f"{self.labels[p]}: rows {rows.start} to {rows.stop} came in the shape "
                    f"{shape}, expected {expected}: the source of the rows is at fault"
                )
            self.sums[p, rows] = _row_sums(block, self.summed_columns)
            diagonal = xp.linalg.diagonal(block, offset=rows.start)
            self.diagonals[p, rows] = astype(diagonal, "float64")
        # Of all kernels at once, for a device is waited for here.
        if not xp.all(xp.isfinite(self.sums[:, rows])):
            for p, block in enumerate(blocks):
                _check_finite(block, self.sums[p, rows], self.labels[p], rows.start)
        for p, block in enumerate(blocks if self.symmetry else ()):
            self._compare_with_transpose(p, rows, block)

    def _compare_with_transpose(self, p: int, rows: slice, block: Array) -> None:
        """Add what some rows of one kernel contribute to the products with the random vector."""
        xp = namespace(self.sums)
        # In float64, where sums over many samples stay far more exact than the entries.
        block = astype(block, "float64")
        most = xp.maximum(xp.max(block), -xp.min(block))
        self.largest[p] = xp.maximum(self.largest[p], most)
        self.differences[p, rows] += block @ self.probes[0, :]
        products = self.probes[:, rows] @ block
        self.differences[p, :] -= products[0, :]
        self.column_sums[p, :] += products[1, :]

    def refuse_asymmetry(self, largest: Float) -> None:
        """Raise where a kernel and its transpose differ by more than rounding."""
        xp = namespace(self.differences)
        for p, label in enumerate(self.labels):
            worst = int(xp.argmax(xp.abs(self.differences[p, :])))
            difference = abs(float(self.differences[p, worst]))
            if difference > np.sqrt(self.rounding) * largest[p]:
                raise ValueError(
                    f"{label} is not symmetric: its product with a random vector and that of its "
                    f"transpose differ by up to {difference:.3g}, most at sample {worst} "
                    f"(largest entry {largest[p]:.3g}); if that is meant, pass (K + K.T) / 2"
                )


def _row_sums(block: Array, summed_columns: int) -> Array:
    """Return the row sums in float64."""
    xp = namespace(block)
    if not is_foreign(block) or precision_of(block) == "float64":
        with np.errstate(invalid="ignore", over="ignore"):
            return xp.sum(block, axis=1, dtype=xp.float64)
    # To sum up in another type, libraries of devices convert the whole block first: so they sum up
    # short parts of every row as they are, where little is lost, and only these in float64.
    height, n = block.shape
    rest = n % summed_columns
    parts = xp.reshape(block[:, : n - rest], (height, n // summed_columns, summed_columns))
    sums = xp.sum(xp.sum(parts, axis=2), axis=1, dtype=xp.float64)
    return sums + astype(xp.sum(block[:, n - rest :], axis=1), "float64")


def _check_finite(block: Array, sums: Array, label: str, start: int) -> None:
    """Raise where row sums are not finite, and say which row and why."""
    bad = np.flatnonzero(~np.isfinite(to_host(sums)))
    if not bad.size:
        return
    row = to_host(block[int(bad[0]), :])
    n_nan, n_inf = int(np.isnan(row).sum()), int(np.isinf(row).sum())
    if n_nan + n_inf == 0:
        raise ValueError(f"{label} has entries so large that sums overflow: rescale it")
    raise ValueError(
        f"{label} contains NaN or infinity: in row {start + bad[0]}, the first such, {n_nan} "
        f"entries are NaN and {n_inf} infinite; drop those samples or repair the kernel"
    )
