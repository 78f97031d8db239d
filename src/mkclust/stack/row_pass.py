"""One pass over kernels that are read or computed: their sums and diagonals, checked on the way."""

from collections.abc import Sequence

import numpy as np

from mkclust.linalg import astype, empty, namespace, rounding_of, to_device, to_host, zeros
from mkclust.stack.sources import Source
from mkclust.types import Array


class RowPass:
    """What a pass over the rows of m kernels checks, and learns on the way.

    Whether a kernel is symmetric is judged by its products and those of its transpose with one
    random vector: rows alone do not show an entry beside its mirror image.

    Attributes
    ----------
    sums, diagonals : array of shape (m, n)
        The row sums, of the symmetric part if symmetry is asked for, and the self-similarities.
    largest : ndarray of shape (m,)
        The largest entries in absolute value; zero if symmetry is not asked for.
    """

    def __init__(self, source: Source, labels: Sequence[str], symmetry: bool):
        m, n, like = source.n_kernels, source.n_samples, source.like
        self.labels, self.symmetry = labels, symmetry
        self.sums, self.diagonals = empty((m, n), like), empty((m, n), like)
        self._differences, self._column_sums = zeros((m, n), like), zeros((m, n), like)
        self._largest = zeros((m,), like)
        # No weight of the probe is small, so that no entry escapes it.
        rng = np.random.default_rng(0)
        probe = rng.uniform(0.5, 1.5, n) * rng.choice([-1.0, 1.0], n)
        self._probes = to_device(np.stack([probe, np.ones(n)]), like)
        if symmetry or not self._learn_by_products(source):
            for rows, blocks in source.blocks():
                self._take_in(rows, blocks)
        self.largest = to_host(self._largest)
        self._refuse_asymmetry(np.sqrt(rounding_of(source)))
        if symmetry:
            self.sums = (self.sums + self._column_sums) / 2
        known = source.diagonal()
        if known is not None:
            self.diagonals = to_device(known, like, "float64")

    def _learn_by_products(self, source: Source) -> bool:
        """Learn the row sums by products that take no rows, if there are such for all kernels.

        Sums that are not finite are left to the rows, which tell why.
        """
        if source.diagonal() is None:
            return False
        ones = zeros((source.n_samples, 1), source.like) + 1.0
        for p in range(source.n_kernels):
            product = source.product(p, ones)
            if product is None:
                return False
            self.sums[p, :] = product[:, 0]
        xp = namespace(self.sums)
        return bool(xp.all(xp.isfinite(self.sums)))

    def _take_in(self, rows: slice, blocks: Sequence[Array]) -> None:
        """Check some rows of every kernel, and learn from them."""
        xp = namespace(self.sums)
        for p, block in enumerate(blocks):
            shape, expected = tuple(block.shape), (rows.stop - rows.start, self.sums.shape[1])
            if shape != expected:
                raise ValueError(
                    f"{self.labels[p]}: rows {rows.start} to {rows.stop} came in the shape "
                    f"{shape}, expected {expected}: the source of the rows is at fault"
                )
            with np.errstate(invalid="ignore", over="ignore"):
                self.sums[p, rows] = xp.sum(block, axis=1, dtype=xp.float64)
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
        # In float64, in which sums over many samples stay far more exact than the entries.
        block = astype(block, "float64")
        most = xp.maximum(xp.max(block), -xp.min(block))
        self._largest[p] = xp.maximum(self._largest[p], most)
        self._differences[p, rows] += block @ self._probes[0, :]
        products = self._probes[:, rows] @ block
        self._differences[p, :] -= products[0, :]
        self._column_sums[p, :] += products[1, :]

    def _refuse_asymmetry(self, tolerance: float) -> None:
        """Raise if a kernel and its transpose differ by more than rounding."""
        xp = namespace(self._differences)
        for p, label in enumerate(self.labels):
            worst = int(xp.argmax(xp.abs(self._differences[p, :])))
            difference = abs(float(self._differences[p, worst]))
            if difference > tolerance * self.largest[p]:
                raise ValueError(
                    f"{label} is not symmetric: its product with a random vector and that of its "
                    f"transpose differ by up to {difference:.3g}, most at sample {worst} "
                    f"(largest entry {self.largest[p]:.3g}); if that is meant, pass (K + K.T) / 2"
                )


def _check_finite(block: Array, sums: Array, label: str, start: int) -> None:
    """Raise if row sums are not finite, and say which row and why."""
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
