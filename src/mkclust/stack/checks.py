"""The checks at the door: what is wrong with a kernel, where, and what can be done about it."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from mkclust.linalg import (
    FactoredMatrix,
    as_floats,
    astype,
    copy_array,
    is_foreign,
    namespace,
    precision_of,
    ranges,
    rounding_of,
    smallest_normal,
    to_device,
    to_host,
    zeros,
)
from mkclust.linalg.arrays import is_sparse_tensor
from mkclust.linalg.parallel import for_each, for_each_range
from mkclust.samples.forms import check_form
from mkclust.stack.base import Standardization
from mkclust.stack.mapped import nothing_left
from mkclust.types import Array

# Rows and columns of the tiles that are held against their mirror images, on a host and a device.
TILE, TILE_ON_DEVICE = 512, 4096
# Rows that a thread multiplies at once.
ROWS_AT_ONCE = 1024


def describe(index: int, name: str) -> str:
    """Return how a message calls a kernel: by its number, and by its name where it has one."""
    return name if name == f"kernel {index}" else f"kernel {index} ({name!r})"


def as_numbers(matrix: Array, who: str) -> Array:
    """Return a matrix of floats, or say why it is none; float32 and float64 are not copied."""
    if is_sparse_tensor(matrix):
        raise ValueError(
            f"{who} is a sparse tensor, and kernels are multiplied as dense ones there: pass its "
            ".to_dense(), or a SciPy sparse matrix of the host"
        )
    if isinstance(matrix, FactoredMatrix):
        return matrix
    if is_foreign(matrix):
        return as_floats(matrix, who)
    if scipy.sparse.issparse(matrix):
        matrix = matrix.tocsr()
        if not matrix.has_canonical_format:
            matrix = matrix.copy()  # sorting in place would change the caller's arrays
            matrix.sum_duplicates()
    else:
        check_form(matrix, who)
        matrix = np.asarray(matrix)
        if matrix.dtype == object:
            try:
                matrix = matrix.astype(np.float64)
            except (TypeError, ValueError):
                raise ValueError(
                    f"{who} holds objects that are not numbers: pass a matrix of floats"
                ) from None
    if matrix.dtype.kind not in "fiub":
        raise ValueError(
            f"{who} has the type {matrix.dtype}: a kernel is a matrix of real numbers; "
            "convert it to float64 or float32"
        )
    if matrix.dtype not in (np.float64, np.float32):
        matrix = matrix.astype(np.float32 if matrix.dtype == np.float16 else np.float64)
    return matrix


def check_square(matrix: Array, who: str) -> None:
    """Raise where a kernel is no square matrix, or one without samples."""
    if matrix.ndim != 2:
        raise ValueError(f"{who} has the shape {tuple(matrix.shape)}: a kernel has two dimensions")
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"{who} is not square, its shape is {tuple(matrix.shape)}: pass similarities of all "
            "samples to all samples, or pass samples x features tables as views"
        )
    if matrix.shape[0] == 0:
        raise ValueError(f"{who} is empty, it has no samples: pass at least two")


def row_sums(matrix: Array, who: str) -> Array:
    """Return the row sums in float64, having made sure that every entry is finite."""
    if is_foreign(matrix):
        xp = namespace(matrix)
        parts = [xp.sum(part, axis=1, dtype=xp.float64) for part in _row_blocks(matrix)]
        sums = xp.concat(parts) if parts else zeros((0,), matrix)
    elif isinstance(matrix, np.ndarray):
        sums = np.empty(matrix.shape[0])

        def sum_up(rows: slice) -> None:
            """Sum up some rows."""
            with np.errstate(invalid="ignore", over="ignore"):
                np.sum(matrix[rows], axis=1, dtype=np.float64, out=sums[rows])

        for_each_range(matrix.shape[0], matrix.shape[1], sum_up)
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            sums = matrix.sum(axis=1, dtype=np.float64)
        sums = sums if is_foreign(sums) else np.asarray(sums).reshape(-1)
    finite = bool(namespace(sums).all(namespace(sums).isfinite(sums)))
    if not finite:
        n_nan = sum(int(count(part, "isnan")) for part in _row_blocks(matrix))
        n_inf = sum(int(count(part, "isinf")) for part in _row_blocks(matrix))
        if n_nan + n_inf == 0:
            raise ValueError(f"{who} has entries so large that sums overflow: rescale it")
        raise ValueError(
            f"{who} contains NaN or infinity: {n_nan} entries are NaN and {n_inf} infinite; "
            "drop those samples or repair the kernel"
        )
    return sums


def check_symmetry(matrix: Array, who: str) -> None:
    """Raise where a kernel and its transpose differ by more than rounding."""
    if isinstance(matrix, FactoredMatrix) or _is_surely_symmetric(matrix):
        return
    if scipy.sparse.issparse(matrix):
        largest = abs(matrix).max()
        difference = abs(matrix - matrix.T).max()
    else:
        xp, largest, difference = namespace(matrix), 0.0, 0.0
        # Tile against mirrored tile, so that nothing of the kernel's size is allocated.
        n, side = matrix.shape[0], TILE_ON_DEVICE if is_foreign(matrix) else TILE
        tiles = list(ranges(n, side))
        for i, rows in enumerate(tiles):
            for columns in tiles[i:]:
                tile, mirrored = matrix[rows, columns], matrix[columns, rows].T
                largest = max(largest, float(xp.max(xp.abs(tile))))
                difference = max(difference, float(xp.max(xp.abs(tile - mirrored))))
    if difference > np.sqrt(rounding_of(matrix)) * largest:
        raise ValueError(
            f"{who} is not symmetric: entries mirrored at the diagonal differ by up to "
            f"{difference:.3g} (largest entry {largest:.3g}); if that is meant, pass (K + K.T) / 2"
        )


def _is_surely_symmetric(matrix: Any) -> bool:
    """Return whether two products of a matrix of the host tell that it is, far within rounding.

    No weight of the random vector is small, so that no entry escapes it; where the products with it
    from either side differ, or cannot tell, entries have to be compared.
    """
    if not isinstance(matrix, np.ndarray) or not matrix.flags.forc:
        return False
    probe = _symmetry_probe(matrix.shape[0], matrix.dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(np.subtract(*_products_both_ways(matrix, probe))).max()
    allowed = np.sqrt(rounding_of(matrix)) * np.abs(matrix.diagonal()).max()
    return bool(difference <= allowed / 4)


@lru_cache(maxsize=1)
def _symmetry_probe(n: int, dtype: np.dtype) -> np.ndarray:
    """Return a random vector, the same for all kernels, none of whose entries is small, (n,)."""
    rng = np.random.default_rng(0)
    return (rng.uniform(0.5, 1.5, n) * rng.choice([-1.0, 1.0], n)).astype(dtype)


def _products_both_ways(matrix: np.ndarray, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the products of a matrix and a vector from either side."""
    chunks = list(ranges(len(matrix), ROWS_AT_ONCE))
    right, left = np.empty_like(vector), np.empty((len(chunks), len(vector)), vector.dtype)

    def multiply(index: int) -> None:
        """Multiply some rows."""
        rows = chunks[index]
        right[rows], left[index] = matrix[rows] @ vector, vector[rows] @ matrix[rows]

    for_each(range(len(chunks)), multiply)
    return right, left.sum(axis=0)


def diagonal_of(matrix: Array) -> Array:
    """Return the diagonal of any kind of matrix in float64, (n,), in memory of its own.

    A part of the matrix would hold all of it, and change with it.
    """
    if is_foreign(matrix):
        return copy_array(astype(namespace(matrix).linalg.diagonal(matrix), "float64"))
    diagonal = matrix.diagonal()
    return copy_array(astype(diagonal if is_foreign(diagonal) else np.asarray(diagonal), "float64"))


def learn_centering(matrix: Array, who: str, center: bool) -> Standardization:
    """Learn how to center one kernel, having made sure that something is left of it."""
    row_means = row_sums(matrix, who) / matrix.shape[0]
    diagonal = diagonal_of(matrix)
    standardization = Standardization(diagonal, row_means if center else None)
    xp, rounding = namespace(diagonal), 1e3 * rounding_of(matrix)

    def mean_size(vector: Array) -> float:
        """Return the mean absolute value of a vector."""
        return float(xp.mean(xp.abs(vector)))

    typical = mean_size(diagonal)
    # What is small beside the diagonal has to have its digits, too.
    if 0 < typical < smallest_normal(matrix) / rounding_of(matrix):
        raise ValueError(
            f"{who} has entries so small that digits are lost, self-similarities of "
            f"{typical:.3g} on average: multiply it with a constant"
        )
    if mean_size(standardization.centered_diagonal()) <= rounding * typical:
        # An indefinite kernel may have a zero diagonal and something beside it.
        probe = np.random.default_rng(0).standard_normal((matrix.shape[0], 1))
        column = to_device(probe - probe.mean() if center else probe, diagonal)
        image = to_host(matrix @ astype(column, precision_of(matrix)))
        rest = np.abs(image - image.mean() if center else image).max()
        if rest <= rounding * np.abs(probe).sum() * typical:
            constant = center and bool(xp.any(diagonal != 0))
            raise ValueError(f"{who} is {nothing_left(typical if constant else 0)} leave it out")
    return standardization


def learn_scale(
    lengths: Array, matrix: Array, who: str, numbers: np.ndarray | None = None
) -> Array:
    """Return the scale that makes a diagonal one, or say which samples forbid it.

    Messages call samples by numbers where these are given, and by their places otherwise.
    """
    xp = namespace(lengths)
    rounding = 10 * rounding_of(matrix) * float(xp.mean(xp.abs(diagonal_of(matrix))))
    is_empty = lengths <= max(1e-10 * float(xp.mean(lengths)), rounding)
    if bool(xp.any(is_empty)):
        empty = np.flatnonzero(to_host(is_empty, None))
        empty = empty if numbers is None else numbers[empty]
        raise ValueError(
            f"{who}: {_listing(empty)} zero self-similarity (after centering: at the very mean of "
            "all samples) and cannot be scaled to a unit diagonal; drop those samples, leave the "
            "kernel out, or pass normalize=False"
        )
    return 1 / xp.sqrt(lengths)


def _row_blocks(matrix: Array) -> Iterator[Array]:
    """Yield the rows of a matrix in blocks of a few megabytes; on a device, of some hundred."""
    height = max(1, 2**24 // max(1, matrix.shape[1])) if is_foreign(matrix) else 256
    for rows in ranges(matrix.shape[0], height):
        block = matrix[rows, :]
        yield block.data if scipy.sparse.issparse(block) else block


def count(part: Array, what: str) -> int:
    """Return how many entries satisfy a function of their library, such as "isnan"."""
    xp = namespace(part)
    return int(xp.sum(xp.astype(getattr(xp, what)(part), xp.int64)))


def _listing(samples: Array) -> str:
    """Return 'sample 3 has' or 'samples 1, 2, 3, 4, 5 and 17 more have'."""
    if len(samples) == 1:
        return f"sample {samples[0]} has"
    first = ", ".join(map(str, samples[:5]))
    more = f" and {len(samples) - 5} more" if len(samples) > 5 else ""
    return f"samples {first}{more} have"
