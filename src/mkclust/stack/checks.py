"""Checks of kernels: messages say what was found, where, and what to do."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from mkclust.data.check import as_floats, check_masks, check_type
from mkclust.data.tables import as_table
from mkclust.engine.eigen import extreme_eigenvalues
from mkclust.linalg import (
    FactoredMatrix,
    copy_array,
    eigh,
    eigvalsh,
    free_bytes,
    has_cholesky,
    is_foreign,
    namespace,
    precision_of,
    rounding_of,
    row_ranges,
    set_diagonal,
    to_device,
    to_host,
    zeros,
)
from mkclust.linalg.arrays import is_sparse_tensor
from mkclust.linalg.memory import require_memory
from mkclust.linalg.sparse_rows import as_csr
from mkclust.linalg.threads import FEW_SAMPLES, in_threads
from mkclust.stack.kernel import Array as HeldKernel
from mkclust.stack.kernel import Kernel, Shifted, mirrored_tiles
from mkclust.stack.standardized import Standardization, Standardized
from mkclust.text import join_words
from mkclust.types import Array, Float

# A difference between mirrored entries that is ignored, as a share of the largest
# entry.
EXACT = 1e-13
# Relative roundings by which entries that were computed, such as inner products, may be
# off.
ENTRY_ROUNDINGS = 10
# Samples among which entries are examined.
EXAMINED = 128
# The largest self-distance by rounding, as a share of the other distances.
SELF_DISTANCE = 1e-2
# A matrix with this share of zeros is a graph; only duplicates are at distance zero.
MOST_ZEROS = 0.5
# Skewness of eigenvalues (their cubes over their squares to the power 1.5) beyond
# chance, in units of n^-1.5: for a matrix of independent noise its standard deviation
# is sqrt(6).
CHANCE = 8.0


def describe(index: int, name: str) -> str:
    """Return how a message calls a kernel: by its number, and by its name if it has one."""
    return name if name == f"kernel {index}" else f"kernel {index} ({name!r})"


def as_numbers(matrix: Array, who: str) -> Array:
    """Return a matrix of floats, or raise; float32 and float64 are not copied."""
    if is_sparse_tensor(matrix):
        raise ValueError(
            f"{who} is a sparse tensor, and kernels are multiplied as dense ones "
            "there: pass its .to_dense(), or a SciPy sparse matrix of the host"
        )
    if isinstance(matrix, FactoredMatrix):
        return matrix
    if scipy.sparse.issparse(matrix):
        check_type(matrix.dtype, who)
        return as_csr(matrix)
    if not is_foreign(matrix):
        check_masks(matrix, who)
        matrix = np.asarray(as_table(matrix, who).values)
        try:
            matrix = matrix.astype(np.float64) if matrix.dtype == object else matrix
        except (TypeError, ValueError):
            raise ValueError(
                f"{who} holds objects that are not numbers: pass a matrix of floats"
            ) from None
    return as_floats(matrix, who)


def check_shapes(
    kernels: Sequence[Any], labels: Sequence[str], observed: Sequence[np.ndarray | None]
) -> None:
    """Raise if kernels are not square matrices over the samples that they have, or have none."""
    size = 0
    for kernel, who, has in zip(kernels, labels, observed, strict=True):
        n = getattr(kernel, "n_samples", None)  # of `Kernel` objects and sources
        shape = tuple(kernel.shape) if n is None else (n, n)
        if len(shape) != 2:
            raise ValueError(
                f"{who} has the shape {shape}: a kernel has two dimensions"
            )
        if shape[0] != shape[1]:
            raise ValueError(
                f"{who} is not square, its shape is {shape}: pass similarities of all "
                "samples to all samples, or pass samples x features tables as views"
            )
        if not shape[0]:
            raise ValueError(f"{who} is empty, it has no samples: pass at least two")
        size = size or shape[0] if has is None else len(has)
        if shape[0] != size:
            raise ValueError(
                f"kernels of different sizes: {labels[0]} has {size} samples, {who} "
                f"has {shape[0]}; all kernels must be over the same samples"
            )


def row_sums(matrix: Array, who: str) -> Array:
    """Return the row sums in float64, having made sure that every entry is finite."""
    if is_foreign(matrix):
        xp = namespace(matrix)
        parts = [xp.sum(part, axis=1, dtype=xp.float64) for part in _row_blocks(matrix)]
        sums = xp.concat(parts) if parts else zeros((0,), matrix)
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            if type(matrix) is np.ndarray and matrix.dtype == np.float64:
                sums = matrix @ np.ones(matrix.shape[1])  # on all threads
            else:
                sums = np.asarray(matrix.sum(axis=1, dtype=np.float64)).reshape(-1)
    if not bool(namespace(sums).all(namespace(sums).isfinite(sums))):
        raise entries_error(_row_blocks(matrix), who)
    return sums


def entries_error(blocks: Iterable[Array], who: str, where: str = "") -> ValueError:
    """Return why sums of entries are not finite."""
    n_bad = sum(int((~np.isfinite(to_host(block))).sum()) for block in blocks)
    if not n_bad:
        return ValueError(f"{who} has entries so large that sums overflow: rescale it")
    return ValueError(
        f"{who} contains NaN or infinity: {n_bad} entries are NaN or infinite{where}; "
        "drop those samples or repair the kernel"
    )


def symmetrized(matrix: Array, who: str) -> Array:
    """Return a kernel that is symmetric as it is, or ``(K + K^T) / 2``; raise if it is far off.

    Asymmetry weakens the bound of a certificate: only `EXACT` is ignored.
    """
    if isinstance(matrix, FactoredMatrix):
        return matrix
    is_sparse, xp = scipy.sparse.issparse(matrix), namespace(matrix)
    difference = abs(matrix - matrix.T).max() if is_sparse else _asymmetry(matrix)
    if not difference:
        return matrix
    largest = max(
        float(xp.max(xp.abs(part))) for part in _row_blocks(matrix) if part.shape[0]
    )
    if difference > np.sqrt(rounding_of(matrix)) * largest:
        raise ValueError(
            f"{who} is not symmetric: entries mirrored at the diagonal differ by up to "
            f"{difference:.3g} (largest entry {largest:.3g}); if that is meant, pass "
            "(K + K.T) / 2"
        )
    if not difference > EXACT * largest:
        return matrix
    require_memory(
        0
        if is_sparse
        else matrix.shape[0] ** 2 * np.dtype(precision_of(matrix)).itemsize,
        f"{who} is not quite symmetric, and a symmetric copy of it",
        "pass (K + K.T) / 2, which is not copied",
        available=free_bytes(matrix),
    )
    total = matrix + matrix.T
    total /= 2
    return total


def _asymmetry(matrix: Array) -> float:
    """Return the largest difference between mirrored entries; NaN if one is not finite."""
    xp = namespace(matrix)

    def compare(places: tuple[slice, slice]) -> float:
        rows, columns = places
        tile, mirrored = matrix[rows, columns], matrix[columns, rows].T
        if xp.all(tile == mirrored):
            return 0.0
        with np.errstate(invalid="ignore"):
            return float(xp.max(xp.abs(tile - mirrored)))

    return float(
        np.max(in_threads(compare, mirrored_tiles(matrix), matrix), initial=0.0)
    )


def learn_centering(
    kernel: Kernel, row_means: Array, who: str, center: bool
) -> Standardization:
    """Learn how to center one kernel, having made sure that something is left of it."""
    diagonal = kernel.diagonal()
    standardization = Standardization(diagonal, row_means if center else None)
    xp, rounding = namespace(diagonal), 1e3 * kernel.precision
    typical = float(xp.mean(xp.abs(diagonal)))
    # An indefinite kernel may have a zero diagonal and other nonzero entries.
    sizes = (
        standardization.centered_diagonal()
        if center
        else xp.abs(diagonal) + xp.abs(row_means)
    )
    smallest = np.finfo(
        np.float32 if kernel.precision > 1e-10 else np.float64
    ).smallest_normal
    # Entries much smaller than the diagonal must also keep their digits.
    if 0 < typical < float(smallest) / kernel.precision:
        raise ValueError(
            f"{who} has entries so small that digits are lost, self-similarities of "
            f"{typical:.3g} on average: multiply it with a constant"
        )
    if float(xp.mean(xp.abs(sizes))) <= rounding * typical:
        raise ValueError(
            f"{who} is {nothing_left(typical if center else 0)} leave it out"
        )
    return standardization


def learn_scale(
    lengths: Array, kernel: Kernel, who: str, numbers: np.ndarray | None
) -> Array:
    """Return the scale that makes a diagonal one, or name the samples, perhaps by numbers."""
    xp = namespace(lengths)
    rounding = 10 * kernel.precision * float(xp.mean(xp.abs(kernel.diagonal())))
    is_empty = lengths <= max(1e-10 * float(xp.mean(lengths)), rounding)
    if bool(xp.any(is_empty)):
        found = np.flatnonzero(to_host(is_empty, None))
        samples = join_words(found if numbers is None else numbers[found])
        have = f"sample {samples} has" if len(found) == 1 else f"samples {samples} have"
        raise ValueError(
            f"{who}: {have} zero self-similarity (after centering: at the very mean of "
            "all samples) and cannot be scaled to a unit diagonal; drop those samples, "
            "leave the kernel out, or pass normalize=False"
        )
    return 1 / xp.sqrt(lengths)


def check_diagonal(kernel: Standardized, largest: float, who: str) -> None:
    """Raise if the diagonal of a centered kernel shows that it is indefinite."""
    lengths, centered = kernel.diagonal(), kernel.standardization.row_means is not None
    rounding, xp = np.sqrt(kernel.precision) * largest, namespace(lengths)
    least, most = float(xp.min(lengths)), float(xp.max(lengths))
    # No entry of a positive semidefinite matrix exceeds its diagonal.
    if least < -rounding or (not centered and largest > most + rounding):
        raise ValueError(
            f"{who} is indefinite: its "
            f"self-similarities{' after centering' * centered} are {least:.3g} to "
            f"{most:.3g}, its largest entry is {largest:.3g}; pass a positive "
            "semidefinite kernel"
        )


def nothing_left(size: float) -> str:
    """Return why a kernel with entries of about some size says nothing."""
    if not size:
        return "zero;"
    return (
        f"constant up to rounding: its entries are about {size:.3g}, and nothing is "
        "left of it after centering. If it is computed from columns with a large "
        "offset, such as values of 1e8 that differ by 1, subtract the offset from the "
        "columns; else"
    )


def _row_blocks(matrix: Array) -> Iterator[Array]:
    for rows in row_ranges(matrix.shape[0], matrix.shape[1], matrix, fewest=64):
        block = matrix[rows, :]
        yield block.data if scipy.sparse.issparse(block) else block


def refuse_distances(kernel: Kernel, who: str) -> None:
    """Raise if a kernel holds distances, plain or squared, rather than similarities.

    Distances are positive with a zero diagonal; so may be similarities. But the leading
    eigenvalues of centered similarities are positive, those of centered distances
    negative.
    """
    n, diagonal = kernel.n_samples, kernel.diagonal()
    if n < 3:
        return
    samples = np.sort(
        np.random.default_rng(0).choice(n, min(n, EXAMINED), replace=False)
    )
    xp = namespace(diagonal)
    largest_self = float(xp.max(xp.abs(diagonal)))
    # Most kernels have a diagonal, which two rows are enough to see.
    if largest_self > 2 * SELF_DISTANCE * float(
        np.abs(to_host(kernel.rows(samples[:2]))).max()
    ):
        return
    D = to_host(kernel.rows(samples))[:, samples]
    apart = D[~np.eye(len(D), dtype=bool)]
    rounding = SELF_DISTANCE * float(np.median(apart))
    is_hollow = largest_self <= rounding and apart.min() >= -rounding
    if (
        rounding > 0
        and is_hollow
        and np.mean(apart <= 0) < MOST_ZEROS
        and _leads_downward(D)
    ):
        raise ValueError(
            f"{who} looks like distances, not similarities: its diagonal is zero, and "
            "its other entries are positive and larger for samples that are further "
            "apart; pass a kernel, such as np.exp(-D**2 / (2 * np.median(D)**2)) for "
            "distances D, or have it computed: kernels='from_distances' for all "
            "matrices, kernels={NAME: 'from_distances'} for one"
        )


def _leads_downward(D: Float) -> bool:
    """Return whether the leading eigenvalues are negative, the mean and the diagonal aside."""
    values = eigvalsh(D - D.mean(axis=0) - D.mean(axis=1)[:, None] + D.mean())
    # Centering has one eigenvalue of zero; a change of the diagonal moves the others
    # alike.
    values = np.delete(values, np.argmin(np.abs(values)))
    values = values - values.mean()
    skewness = np.sum(values**3) / max(np.sum(values**2), np.finfo(float).tiny) ** 1.5
    return bool(skewness < -CHANCE * len(D) ** -1.5)


def make_positive(kernel: Standardized, label: str, psd: str) -> Standardized:
    """Return a centered kernel if it looks positive semidefinite, else refuse or repair it."""
    diagonal, rounding = kernel.diagonal(), float(np.sqrt(kernel.precision))
    of_entries = rounding_of_eigenvalues(kernel)

    # A factorization takes less time than eigenvalues.
    if kernel.n_samples <= FEW_SAMPLES:
        M, most = kernel.dense(), float(namespace(diagonal).max(diagonal))
        set_diagonal(M, diagonal + max(rounding * most, of_entries) / 2)
        if has_cholesky(M):
            return kernel

    lowest, largest, _ = extreme_eigenvalues(kernel)
    smallest = min(lowest, float(namespace(diagonal).min(diagonal)))
    if smallest >= -max(rounding * largest, of_entries):
        return kernel
    if psd == "error":
        raise ValueError(
            f"{label} is indefinite: it has an eigenvalue of {smallest:.3g} or lower "
            f"(the largest is about {largest:.3g}); pass psd='clip' to drop its "
            "negative part, or psd='shift' to add a multiple of the identity"
        )
    return _shift(kernel) if psd == "shift" else _clip(kernel, label)


def rounding_of_eigenvalues(kernel: Standardized) -> float:
    """Return how far the rounding of the entries, before centering, may move an eigenvalue."""
    diagonal = kernel.standardization.diagonal
    xp = namespace(diagonal)
    largest_entry = float(xp.max(xp.abs(diagonal)))
    return ENTRY_ROUNDINGS * kernel.precision * kernel.n_samples * largest_entry


def _shift(kernel: Standardized) -> Standardized:
    smallest, _, error = extreme_eigenvalues(kernel, converged=True)
    # A little more than the eigenvalue, which is itself known to its tolerance only.
    shift = (error - smallest) * (1 + 1e-6)
    given, n = kernel.standardization, kernel.n_samples
    means = None if given.row_means is None else given.row_means + shift / n
    standardization = Standardization(given.diagonal + shift, means, shift=shift)
    return Standardized(Shifted(kernel.kernel, shift), standardization)


def _clip(kernel: Standardized, label: str) -> Standardized:
    n = kernel.n_samples
    require_memory(
        5 * 8 * n**2,
        f"{label} is indefinite, and dropping the negative part of a kernel of {n} "
        "samples",
        "pass psd='shift', which takes no copy, or use fewer samples",
        available=free_bytes(kernel.like),
    )
    values, vectors = eigh(kernel.dense())
    clipped = (vectors * to_device(np.maximum(values, 0), vectors)) @ vectors.T
    clipped = (clipped + clipped.T) / 2
    negative = values < -n * np.finfo(np.float64).eps * np.abs(values).max()
    dropped = copy_array(vectors[:, : int(negative.sum())])  # eigenvalues rise
    repaired = HeldKernel(clipped)
    added = repaired.diagonal() - kernel.diagonal()
    given = replace(kernel.standardization, added=added, dropped=dropped)
    return Standardized(repaired, Standardization(repaired.diagonal()), given)
