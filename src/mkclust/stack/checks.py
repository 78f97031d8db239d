"""The checks at the door: what is wrong with a kernel, where, and what can be done about it."""

from collections.abc import Iterator

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from mkclust.stack.base import Operator, Standard
from mkclust.types import Array, Float

# Lanczos steps spent on each kernel in search of negative eigenvalues.
LANCZOS_STEPS = 10


def describe(index: int, name: str) -> str:
    """Return how a message calls a kernel: by its number, and by its name where it has one."""
    return name if name == f"kernel {index}" else f"kernel {index} ({name!r})"


def as_numbers(matrix: Array, who: str) -> Array:
    """Return a matrix of floats, or say why it is none; float32 and float64 are not copied."""
    if scipy.sparse.issparse(matrix):
        matrix = matrix.tocsr()
        if not matrix.has_canonical_format:
            matrix = matrix.copy()  # sorting in place would change the caller's arrays
            matrix.sum_duplicates()
    else:
        if np.ma.is_masked(matrix):
            raise ValueError(f"{who} has masked entries: drop those samples or fill them in")
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
        raise ValueError(f"{who} has the shape {matrix.shape}: a kernel has two dimensions")
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"{who} is not square, its shape is {matrix.shape}: pass similarities of all samples "
            "to all samples, or pass samples x features tables as views"
        )
    if matrix.shape[0] == 0:
        raise ValueError(f"{who} is empty, it has no samples: pass at least two")


def row_sums(matrix: Array, who: str) -> Float:
    """Return the row sums in float64, having made sure that every entry is finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        sums = np.asarray(matrix.sum(axis=1, dtype=np.float64)).reshape(-1)
    if not np.all(np.isfinite(sums)):
        n_nan = sum(int(np.isnan(part).sum()) for part in _row_blocks(matrix))
        n_inf = sum(int(np.isinf(part).sum()) for part in _row_blocks(matrix))
        if n_nan + n_inf == 0:
            raise ValueError(f"{who} has entries so large that sums overflow: rescale it")
        raise ValueError(
            f"{who} contains NaN or infinity: {n_nan} entries are NaN and {n_inf} infinite; "
            "drop those samples or repair the kernel"
        )
    return sums


def check_symmetry(matrix: Array, who: str) -> None:
    """Raise where a kernel and its transpose differ by more than rounding."""
    if scipy.sparse.issparse(matrix):
        largest = abs(matrix).max()
        apart = abs(matrix - matrix.T).max()
    else:
        largest, apart = 0.0, 0.0
        # Tile against mirrored tile, so that nothing of the kernel's size is allocated.
        tiles = [slice(i, i + 512) for i in range(0, len(matrix), 512)]
        for i, rows in enumerate(tiles):
            for columns in tiles[i:]:
                tile, mirrored = matrix[rows, columns], matrix[columns, rows].T
                largest = max(largest, float(np.abs(tile).max()))
                apart = max(apart, float(np.abs(tile - mirrored).max()))
    if apart > np.sqrt(np.finfo(matrix.dtype).eps) * largest:
        raise ValueError(
            f"{who} is not symmetric: entries mirrored at the diagonal differ by up to {apart:.3g} "
            f"(largest entry {largest:.3g}); if that is meant, pass (K + K.T) / 2"
        )


def learn_centering(matrix: Array, who: str, center: bool) -> Standard:
    """Learn how to center one kernel, having made sure that something is left of it."""
    row_means = row_sums(matrix, who) / matrix.shape[0]
    diagonal = np.asarray(matrix.diagonal(), dtype=np.float64)
    standard = Standard(diagonal, row_means if center else None)
    rounding = 1e3 * np.finfo(matrix.dtype).eps
    if np.abs(standard.centered_diagonal()).mean() <= rounding * np.abs(diagonal).mean():
        # An indefinite kernel may have a zero diagonal and something beside it.
        probe = np.random.default_rng(0).standard_normal(matrix.shape[0])
        image = matrix @ (probe - probe.mean() if center else probe)
        rest = np.abs(image - image.mean() if center else image).max()
        if rest <= rounding * np.abs(probe).sum() * np.abs(diagonal).mean():
            constant = center and diagonal.any()
            state = "constant: nothing is left of it after centering" if constant else "zero"
            raise ValueError(f"{who} is {state}; leave it out")
    return standard


def learn_scale(lengths: Float, matrix: Array, who: str) -> Float:
    """Return the scale that makes a diagonal one, or say which samples forbid it."""
    rounding = 10 * np.finfo(matrix.dtype).eps * np.abs(matrix.diagonal()).mean()
    empty = np.flatnonzero(lengths <= max(1e-10 * lengths.mean(), rounding))
    if len(empty):
        raise ValueError(
            f"{who}: {_listing(empty)} zero self-similarity (after centering: at the very mean of "
            "all samples) and cannot be scaled to a unit diagonal; drop those samples, leave the "
            "kernel out, or pass normalize=False"
        )
    return 1 / np.sqrt(lengths)


def smallest_eigenvalue_seen(kernel: Operator, seed: int = 0) -> tuple[float, float]:
    """Return the extreme eigenvalues that a few Lanczos steps find.

    The true smallest eigenvalue can only be lower, so a negative one proves a kernel indefinite;
    finding none is evidence, not proof.
    """
    n = kernel.shape[0]
    v = np.random.default_rng(seed).standard_normal((n, 1))
    basis, alphas, betas, unit = [v / np.linalg.norm(v)], [], [], 0.0
    for _ in range(min(LANCZOS_STEPS, n)):
        image = np.asarray(kernel @ basis[-1])
        unit = unit or float(np.abs(image).max()) or 1.0  # so that no square over- or underflows
        image = image / unit
        alphas.append(float((basis[-1] * image).sum()))
        B = np.hstack(basis)
        for _ in range(2):  # full reorthogonalization keeps the few steps honest
            image = image - B @ (B.T @ image)
        length = float(np.linalg.norm(image))
        if length <= 1e-12 * max(map(abs, alphas)):
            break
        betas.append(length)
        basis.append(image / length)
    T = np.diag(alphas)
    steps = np.arange(len(alphas) - 1)
    T[steps, steps + 1] = T[steps + 1, steps] = betas[: len(steps)]
    values = np.linalg.eigvalsh(T)
    return float(unit * values[0]), float(unit * np.abs(values).max())


def smallest_eigenvalue(kernel: Operator) -> float:
    """Return the smallest eigenvalue, converged."""
    n = kernel.shape[0]
    if n <= 200:
        return float(np.linalg.eigvalsh(kernel.dense())[0])
    operator = scipy.sparse.linalg.LinearOperator(
        (n, n), matvec=lambda v: np.asarray(kernel @ v.reshape(-1, 1)).reshape(-1), dtype=np.float64
    )
    start = np.random.default_rng(0).standard_normal(n)
    return float(
        scipy.sparse.linalg.eigsh(operator, 1, which="SA", v0=start, return_eigenvectors=False)[0]
    )


def _row_blocks(matrix: Array) -> Iterator[Array]:
    """Yield the rows of a matrix in blocks of a few megabytes."""
    for start in range(0, matrix.shape[0], 256):
        block = matrix[start : start + 256]
        yield block.data if scipy.sparse.issparse(block) else block


def _listing(samples: Array) -> str:
    """Return 'sample 3 has' or 'samples 1, 2, 3, 4, 5 and 17 more have'."""
    if len(samples) == 1:
        return f"sample {samples[0]} has"
    first = ", ".join(map(str, samples[:5]))
    more = f" and {len(samples) - 5} more" if len(samples) > 5 else ""
    return f"samples {first}{more} have"
