"""Checks of kernels: messages say what was found, where, and what to do."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from mkclust.data.check import as_floats, check_masks, check_type
from mkclust.data.distances import some_rows
from mkclust.data.tables import as_table
from mkclust.engine.eigen import extreme_eigenvalues
from mkclust.linalg import (
    FEW_SAMPLES,
    FactoredMatrix,
    as_csr,
    eigvalsh,
    free_bytes,
    has_cholesky,
    in_threads,
    is_foreign,
    is_sparse_tensor,
    namespace,
    precision_of,
    require_memory,
    rounding_of,
    row_ranges,
    set_diagonal,
    to_host,
    zeros,
)
from mkclust.stack.kernel import Kernel, mirrored_tiles
from mkclust.stack.standardized import Standardization, Standardized
from mkclust.text import join_words
from mkclust.types import Array, Float


def describe(index: int, name: str) -> str:
    """Return what messages call a kernel: its number, and its name if it has one."""
    if name == f"kernel {index}":
        return name
    return f"kernel {index} ({name!r})"


def as_numbers(matrix: Array, label: str) -> Array:
    """Return a matrix of floats, or raise; float32 and float64 are not copied."""
    if is_sparse_tensor(matrix):
        raise ValueError(
            f"{label} is a sparse tensor, and kernels are multiplied as dense ones "
            "there: pass its .to_dense(), or a SciPy sparse matrix of the host"
        )
    if isinstance(matrix, FactoredMatrix):
        return matrix
    if scipy.sparse.issparse(matrix):
        check_type(matrix.dtype, label)
        return as_csr(matrix)
    if not is_foreign(matrix):
        check_masks(matrix, label)
        matrix = np.asarray(as_table(matrix, label).values)
        try:
            if matrix.dtype == object:
                matrix = matrix.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"{label} holds objects that are not numbers: pass a matrix of floats"
            ) from None
    return as_floats(matrix, label)


def check_shapes(
    kernels: Sequence[Any],
    labels: Sequence[str],
    observed: Sequence[np.ndarray | None],
) -> None:
    """Raise if kernels are not square matrices over the samples that they have."""
    size = 0
    for kernel, label, has in zip(kernels, labels, observed, strict=True):
        n = getattr(kernel, "n_samples", None)  # of `Kernel` objects and sources
        shape = (n, n)
        if n is None:
            shape = tuple(kernel.shape)
        if len(shape) != 2:
            raise ValueError(
                f"{label} has the shape {shape}: a kernel has two dimensions"
            )
        if shape[0] != shape[1]:
            raise ValueError(
                f"{label} is not square, its shape is {shape}: pass similarities of "
                "all samples to all samples, or pass samples x features tables as views"
            )
        if not shape[0]:
            raise ValueError(f"{label} is empty, it has no samples: pass at least two")
        if has is not None:
            size = len(has)
        elif not size:
            size = shape[0]
        if shape[0] != size:
            raise ValueError(
                f"kernels of different sizes: {labels[0]} has {size} samples, {label} "
                f"has {shape[0]}; all kernels must be over the same samples"
            )


def row_sums(matrix: Array, label: str) -> Array:
    """Return the row sums in float64, having made sure that every entry is finite."""
    if is_foreign(matrix):
        xp = namespace(matrix)
        blocks = _row_blocks(matrix)
        parts = [xp.sum(part, axis=1, dtype=xp.float64) for part in blocks]
        sums = xp.concat([zeros((0,), matrix), *parts])
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            if type(matrix) is np.ndarray and matrix.dtype == np.float64:
                sums = matrix @ np.ones(matrix.shape[1])  # on all threads
            else:
                found = matrix.sum(axis=1, dtype=np.float64)
                sums = np.asarray(found).reshape(-1)
    xp_of_sums = namespace(sums)
    if not bool(xp_of_sums.all(xp_of_sums.isfinite(sums))):
        raise nonfinite_error(_row_blocks(matrix), label)
    return sums


def nonfinite_error(blocks: Iterable[Array], label: str, where: str = "") -> ValueError:
    """Return the error for entries that are not finite, or whose sums are not."""
    n_bad = 0
    n_rows = 0
    for block in blocks:
        bad = np.argwhere(~np.isfinite(to_host(block)))
        # The entries of a sparse matrix have no places here.
        if len(bad) and block.ndim == 2 and not n_bad and not where:
            row, column = bad[0]
            where = f", the first in row {n_rows + row}, column {column}"
        n_bad += len(bad)
        n_rows += block.shape[0]
    if not n_bad:
        return ValueError(
            f"{label} has entries so large that sums overflow: rescale it"
        )
    return ValueError(
        f"{label} contains NaN or infinity: {n_bad} entries are NaN or "
        f"infinite{where}; drop those samples or repair the kernel"
    )


def symmetrized(matrix: Array, label: str) -> Array:
    """Return a kernel if it is symmetric, else ``(K + K^T) / 2``; raise if far off.

    Asymmetry weakens the bound of a certificate: only a share of 1e-13 is ignored.
    """
    if isinstance(matrix, FactoredMatrix):
        return matrix
    xp = namespace(matrix)
    if scipy.sparse.issparse(matrix):
        difference = abs(matrix - matrix.T).max()
    else:
        difference = _asymmetry(matrix)
    if not difference:
        return matrix
    largest = max(
        float(xp.max(xp.abs(part))) for part in _row_blocks(matrix) if part.shape[0]
    )
    if difference > np.sqrt(rounding_of(matrix)) * largest:
        raise ValueError(
            f"{label} is not symmetric: entries mirrored at the diagonal differ by up "
            f"to {difference:.3g} (largest entry {largest:.3g}); if that is meant, "
            "pass (K + K.T) / 2"
        )
    if not difference > 1e-13 * largest:
        return matrix
    if not scipy.sparse.issparse(matrix):
        require_memory(
            matrix.shape[0] ** 2 * np.dtype(precision_of(matrix)).itemsize,
            f"{label} is not quite symmetric, and a symmetric copy of it",
            "pass (K + K.T) / 2, which is not copied",
            available=free_bytes(matrix),
        )
    total = matrix + matrix.T
    total /= 2
    return total


def _asymmetry(matrix: Array) -> float:
    """Return the largest difference of mirrored entries, NaN if one is not finite."""
    xp = namespace(matrix)

    def compare(places: tuple[slice, slice]) -> float:
        """Return the largest difference of a tile and its mirror image."""
        rows, columns = places
        tile = matrix[rows, columns]
        mirrored = matrix[columns, rows].T
        if xp.all(tile == mirrored):
            return 0.0
        with np.errstate(invalid="ignore"):
            return float(xp.max(xp.abs(tile - mirrored)))

    differences = in_threads(compare, mirrored_tiles(matrix), matrix)
    return float(np.max(differences, initial=0.0))


def learn_centering(
    kernel: Kernel,
    row_means: Array,
    label: str,
    center: bool,
) -> Standardization:
    """Learn how to center one kernel, having made sure that something is left of it."""
    diagonal = kernel.diagonal()
    standardization = Standardization(diagonal, row_means if center else None)
    xp = namespace(diagonal)
    typical = float(xp.mean(xp.abs(diagonal)))

    # Entries much smaller than the diagonal must also keep their digits.
    number_type = "float64"
    if kernel.precision > 1e-10:
        number_type = "float32"
    smallest = float(np.finfo(number_type).smallest_normal)
    if 0 < typical < smallest / kernel.precision:
        raise ValueError(
            f"{label} has entries so small that digits are lost, self-similarities of "
            f"{typical:.3g} on average: multiply it with a constant"
        )

    sizes = standardization.centered_diagonal()
    if not center:
        # An indefinite kernel may have a zero diagonal and other nonzero entries.
        sizes = xp.abs(diagonal) + xp.abs(row_means)
    average = float(xp.mean(xp.abs(sizes)))
    if average <= 1e3 * kernel.precision * typical:
        raise ValueError(f"{label} is {nothing_left(typical if center else 0.0)}")
    return standardization


def learn_scale(
    kernel: Standardized,
    label: str,
    numbers: np.ndarray | None,
) -> Standardized:
    """Return a kernel scaled to a unit diagonal, or raise and name the samples."""
    lengths = kernel.diagonal()
    standardization = kernel.standardization
    xp = namespace(lengths)
    average = float(xp.mean(xp.abs(standardization.diagonal)))
    rounding = 10 * kernel.precision * average
    short = 1e-10 * float(xp.mean(lengths))
    is_empty = lengths <= max(short, rounding)
    if bool(xp.any(is_empty)):
        found = np.flatnonzero(to_host(is_empty, None))
        if numbers is not None:
            found = numbers[found]
        raise ValueError(
            f"{label}: samples {join_words(found)} have zero self-similarity (after "
            "centering: at the very mean of all samples) and cannot be scaled to a "
            "unit diagonal; drop those samples, leave the kernel out, or pass "
            "normalize=False"
        )
    scaled = replace(standardization, scale=1 / xp.sqrt(lengths))
    return Standardized(kernel.kernel, scaled)


def check_diagonal(kernel: Standardized, largest: float, label: str) -> None:
    """Raise if the diagonal of a centered kernel shows that it is indefinite."""
    lengths = kernel.diagonal()
    xp = namespace(lengths)
    centered = kernel.standardization.row_means is not None
    rounding = np.sqrt(kernel.precision) * largest
    least = float(xp.min(lengths))
    most = float(xp.max(lengths))
    # No entry of a positive semidefinite matrix exceeds its diagonal.
    if least < -rounding or (not centered and largest > most + rounding):
        raise ValueError(
            f"{label} is indefinite: its self-similarities (if it is centered, "
            f"afterwards) are {least:.3g} to {most:.3g}, its largest entry is "
            f"{largest:.3g}; pass a positive semidefinite kernel"
        )


def nothing_left(size: float) -> str:
    """Say that a kernel with entries of some size says nothing, and what to do."""
    if not size:
        return "zero; leave it out"
    return (
        f"constant up to rounding: its entries are about {size:.3g}, and nothing is "
        "left of it after centering. If it is computed from columns with a large "
        "offset, such as values of 1e8 that differ by 1, subtract the offset from the "
        "columns; else leave it out"
    )


def _row_blocks(matrix: Array) -> Iterator[Array]:
    """Yield the entries of some rows at a time, those that are stored if sparse."""
    for rows in row_ranges(matrix.shape[0], matrix.shape[1], matrix, fewest=64):
        block = matrix[rows, :]
        if scipy.sparse.issparse(block):
            block = block.data
        yield block


def refuse_distances(kernel: Kernel, label: str) -> None:
    """Raise if a kernel holds distances, plain or squared, rather than similarities.

    Distances are positive with a zero diagonal; so may be similarities. But the leading
    eigenvalues of centered similarities are positive, those of centered distances
    negative.
    """
    n = kernel.n_samples
    if n < 3:
        return
    diagonal = kernel.diagonal()
    xp = namespace(diagonal)
    largest_self = float(xp.max(xp.abs(diagonal)))
    samples = some_rows(np.arange(n), 128)
    D = to_host(kernel.entries(samples, samples))
    apart = D[~np.eye(len(D), dtype=bool)]
    # The largest self-distance by rounding, as a share of the other distances.
    rounding = 1e-2 * float(np.median(apart))
    is_hollow = largest_self <= rounding and apart.min() >= -rounding
    # With more zeros it is a graph: only duplicates are at distance zero.
    has_few_zeros = rounding > 0 and np.mean(apart <= 0) < 0.5
    if is_hollow and has_few_zeros and _leading_eigenvalues_are_negative(D):
        raise ValueError(
            f"{label} looks like distances, not similarities: its diagonal is zero, "
            "and its other entries are positive and larger for samples that are "
            "further apart; pass a kernel, such as np.exp(-D**2 / (2 * "
            "np.median(D)**2)) for distances D, or have it computed: "
            "kernels='from_distances' for all matrices, kernels={NAME: "
            "'from_distances'} for one"
        )


def _leading_eigenvalues_are_negative(D: Float) -> bool:
    """Return whether leading eigenvalues are negative, but for mean and diagonal."""
    centered = D - D.mean(axis=0)
    values = eigvalsh(centered - centered.mean(axis=1)[:, None])
    # Centering has one eigenvalue of zero; a change of the diagonal moves the others
    # alike.
    values = np.delete(values, np.argmin(np.abs(values)))
    values = values - values.mean()
    # For a matrix of independent noise, the standard deviation of this skewness is
    # sqrt(6) n^-1.5.
    size = max(np.sum(values**2), np.finfo(float).tiny)
    skewness = np.sum(values**3) / size**1.5
    return bool(skewness < -8 * len(D) ** -1.5)


def make_positive(kernel: Standardized, label: str, psd: str) -> Standardized:
    """Return a centered kernel, repaired or refused if it looks indefinite."""
    diagonal = kernel.diagonal()
    given = kernel.standardization
    xp = namespace(diagonal)
    rounding = float(np.sqrt(kernel.precision))
    largest_entry = float(xp.max(xp.abs(given.diagonal)))
    # Ten roundings of every entry may move an eigenvalue that far.
    of_entries = 10 * kernel.precision * kernel.n_samples * largest_entry

    # A factorization takes less time than eigenvalues.
    if kernel.n_samples <= FEW_SAMPLES:
        M = kernel.dense()
        most = float(xp.max(diagonal))
        shift = max(rounding * most, of_entries) / 2
        set_diagonal(M, diagonal + shift)
        if has_cholesky(M):
            return kernel

    lowest, largest, _ = extreme_eigenvalues(kernel)
    smallest = min(lowest, float(xp.min(diagonal)))
    if smallest >= -max(rounding * largest, of_entries):
        return kernel
    if psd == "error":
        raise ValueError(
            f"{label} is indefinite: it has an eigenvalue of {smallest:.3g} or lower "
            f"(the largest is about {largest:.3g}); pass psd='shift' to add the "
            "multiple of the identity that repairs it, or the kernel without its "
            "negative eigenvalues: values, V = np.linalg.eigh(K), then "
            "(V * np.maximum(values, 0)) @ V.T"
        )
    smallest, _, error = extreme_eigenvalues(kernel, converged=True)
    # A little more than the eigenvalue, which is itself known to its tolerance only.
    shift = (error - smallest) * (1 + 1e-6)
    means = given.row_means
    if means is not None:
        means = means + shift / kernel.n_samples
    repaired = Standardization(given.diagonal + shift, means, shift=shift)
    return Standardized(kernel.kernel, repaired)
