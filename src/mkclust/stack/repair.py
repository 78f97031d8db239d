"""Whether a kernel has negative eigenvalues, and how it is repaired if it has."""

from dataclasses import replace

import numpy as np

from mkclust.engine.eigen import extreme_eigenvalues
from mkclust.linalg import copy_array, eigh, free_bytes, namespace, to_device
from mkclust.linalg.memory import require_memory
from mkclust.stack.kernel import Array, Shifted
from mkclust.stack.standardized import Standardization, Standardized


def make_positive(kernel: Standardized, label: str, psd: str) -> Standardized:
    """Return a centered kernel if it looks positive semidefinite, else refuse or repair it.

    A negative Rayleigh quotient proves a kernel indefinite; finding none in a few steps is
    evidence, not proof.
    """
    seen = extreme_eigenvalues(kernel)
    diagonal = kernel.diagonal()
    smallest = min(seen.smallest, float(namespace(diagonal).min(diagonal)))
    largest = max(abs(seen.largest), abs(seen.smallest))
    if smallest >= -np.sqrt(kernel.precision) * largest:
        return kernel
    if psd == "error":
        raise ValueError(
            f"{label} is indefinite: it has an eigenvalue of {smallest:.3g} or lower (the largest "
            f"is about {largest:.3g}); pass psd='clip' to drop its negative part, or psd='shift' "
            "to add a multiple of the identity"
        )
    return _shift(kernel) if psd == "shift" else _clip(kernel, label)


def _shift(kernel: Standardized) -> Standardized:
    """Return the kernel with the multiple of the identity added that makes it semidefinite."""
    found = extreme_eigenvalues(kernel, converged=True)
    # A little more than the eigenvalue, which is itself known to its tolerance only.
    shift = (found.error - found.smallest) * (1 + 1e-6)
    given, n = kernel.standardization, kernel.n_samples
    means = None if given.row_means is None else given.row_means + shift / n
    standardization = Standardization(given.diagonal + shift, means, shift=shift)
    return Standardized(Shifted(kernel.kernel, shift), standardization)


def _clip(kernel: Standardized, label: str) -> Standardized:
    """Return the kernel without its negative part."""
    n = kernel.n_samples
    require_memory(
        5 * 8 * n**2,
        f"{label} is indefinite, and dropping the negative part of a kernel of {n} samples",
        "pass psd='shift', which takes no copy, or use fewer samples",
        available=free_bytes(kernel.like),
    )
    values, vectors = eigh(kernel.dense())
    clipped = (vectors * to_device(np.maximum(values, 0), vectors)) @ vectors.T
    clipped = (clipped + clipped.T) / 2
    negative = values < -n * np.finfo(np.float64).eps * np.abs(values).max()
    dropped = copy_array(vectors[:, : int(negative.sum())])  # eigenvalues rise
    diagonal = Array(clipped).diagonal()
    added = diagonal - kernel.diagonal()
    given = replace(kernel.standardization, added=added, dropped=dropped)
    return Standardized(Array(clipped), Standardization(diagonal), given)
