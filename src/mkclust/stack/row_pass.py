"""One pass over kernels that are read or computed: their sums and diagonals, checked on the way."""

from collections.abc import Sequence

import numpy as np

from mkclust.linalg import astype, namespace, rounding_of, to_device, to_host, zeros
from mkclust.stack.checks import entries_error
from mkclust.stack.sources import Source
from mkclust.types import Array, Float


def examine_rows(
    source: Source, labels: Sequence[str], symmetry: bool
) -> tuple[Array, Array, Float]:
    """Return row sums and self-similarities of m kernels, (m, n), and their largest entries, (m,).

    Row sums are those of the symmetric part, and the largest entries are found, if symmetry is
    asked for. It is judged by products of a kernel and of its transpose with one random vector:
    rows alone do not show an entry beside its mirror image.
    """
    m, n, like = source.n_kernels, source.n_samples, source.like
    known = source.diagonal()
    diagonals = zeros((m, n), like) if known is None else to_device(known, like, "float64")
    if not symmetry and known is not None:
        sums = _sums_by_products(source)
        if sums is not None:
            return sums, diagonals, np.zeros(m)
    sums, differences, column_sums = (zeros((m, n), like) for _ in range(3))
    xp, largest = namespace(sums), zeros((m,), like)
    # No weight of the probe is small, so that no entry escapes it.
    rng = np.random.default_rng(0)
    probe = rng.uniform(0.5, 1.5, n) * rng.choice([-1.0, 1.0], n)
    probes = to_device(np.stack([probe, np.ones(n)]), like)
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
        # Of all kernels at once, for a device is waited for here.
        if not xp.all(xp.isfinite(sums[:, rows])):
            bad = int(np.flatnonzero(~np.isfinite(to_host(sums[:, rows])).all(axis=1))[0])
            where = f", in rows {rows.start} to {rows.stop}"
            raise entries_error([blocks[bad]], labels[bad], where)
        for p, block in enumerate(blocks if symmetry else ()):
            # In float64, in which sums over many samples stay far more exact than the entries.
            block = astype(block, "float64")
            most = xp.maximum(xp.max(block), -xp.min(block))
            largest[p] = xp.maximum(largest[p], most)
            differences[p, rows] += block @ probes[0, :]
            products = probes[:, rows] @ block
            differences[p, :] -= products[0, :]
            column_sums[p, :] += products[1, :]
    for p, (label, entry) in enumerate(zip(labels, to_host(largest), strict=True)):
        worst = int(xp.argmax(xp.abs(differences[p, :])))
        difference = abs(float(differences[p, worst]))
        if difference > np.sqrt(rounding_of(source)) * entry:
            raise ValueError(
                f"{label} is not symmetric: its product with a random vector and that of its "
                f"transpose differ by up to {difference:.3g}, most at sample {worst} "
                f"(largest entry {entry:.3g}); if that is meant, pass (K + K.T) / 2"
            )
    return (sums + column_sums) / 2 if symmetry else sums, diagonals, to_host(largest)


def _sums_by_products(source: Source) -> Array | None:
    """Return row sums by products that take no rows, or None if there are no such for all kernels.

    Sums that are not finite are left to the rows, which tell why.
    """
    ones = zeros((source.n_samples, 1), source.like) + 1.0
    xp, products = namespace(ones), []
    for p in range(source.n_kernels):
        product = source.product(p, ones)
        if product is None:
            return None
        products.append(product[:, 0])
    sums = xp.stack(products)
    return sums if bool(xp.all(xp.isfinite(sums))) else None
