"""Whether a kernel has negative eigenvalues, and how it is repaired where it has."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse.linalg

from mkclust.linalg import (
    copy_array,
    eigh,
    eigvalsh,
    free_bytes,
    namespace,
    noise,
    rounding_of,
    to_device,
    to_host,
)
from mkclust.linalg.lanczos import products_with, ritz_values
from mkclust.linalg.memory import require_memory
from mkclust.linalg.threads import threads_for, threads_for_decomposition, threads_of_scipy
from mkclust.stack.base import Operator, Standardization
from mkclust.stack.standardized import StandardizedKernel
from mkclust.types import Float

# Lanczos steps spent on each kernel in search of negative eigenvalues.
LANCZOS_STEPS = 10
# Up to so many samples, arrays of the host are searched together.
MOST_TOGETHER = 640
# Restarts in search of the smallest eigenvalue, and the relative error that is good enough where
# these do not find it.
ARPACK_RESTARTS, LOOSE_TOLERANCE = 300, 1e-3


def make_positive(
    kernel: StandardizedKernel, label: str, psd: str, seen: tuple[float, float]
) -> StandardizedKernel:
    """Return the kernel if it looks positive semidefinite, else refuse or repair it.

    What its extreme eigenvalues were seen to be, `extremes_seen` tells.
    """
    smallest, largest = seen
    diagonal = kernel.diagonal()
    smallest = min(smallest, float(namespace(diagonal).min(diagonal)))
    if smallest >= -np.sqrt(rounding_of(kernel.matrix)) * largest:
        return kernel
    if psd == "error":
        raise ValueError(
            f"{label} is indefinite: it has an eigenvalue of {smallest:.3g} or lower (the largest "
            f"is about {largest:.3g}); pass psd='clip' to drop its negative part, or psd='shift' "
            "to add a multiple of the identity"
        )
    if psd == "shift":
        # A little more than the eigenvalue, which is itself known to its tolerance only.
        return replace(kernel, shift=-smallest_eigenvalue(kernel) * (1 + 1e-6))
    return _clip(kernel, label)


def _clip(kernel: StandardizedKernel, label: str) -> StandardizedKernel:
    """Return the kernel without its negative part."""
    n = kernel.matrix.shape[0]
    require_memory(
        5 * 8 * n**2,
        f"{label} is indefinite, and dropping the negative part of a kernel of {n} samples",
        "pass psd='shift', which takes no copy, or use fewer samples",
        available=free_bytes(kernel.like),
    )
    whole = kernel.dense()
    xp = namespace(whole)
    with threads_for_decomposition():
        values, vectors = eigh(whole)
    clipped = (vectors * to_device(np.maximum(values, 0), vectors)) @ vectors.T
    clipped = (clipped + clipped.T) / 2
    negative = values < -n * np.finfo(np.float64).eps * np.abs(values).max()
    dropped = copy_array(vectors[:, : int(negative.sum())])  # eigenvalues rise
    return StandardizedKernel(
        clipped, Standardization(xp.linalg.diagonal(clipped) + 0.0), dropped=dropped
    )


def extremes_seen(kernels: Sequence[StandardizedKernel]) -> list[tuple[float, float]]:
    """Return the extreme eigenvalues that a few Lanczos steps find of each kernel.

    Of few samples, steps of several kernels are taken together, for they take longer to begin than
    to do.
    """
    n = kernels[0].shape[0]
    if n > MOST_TOGETHER or not all(kernel.is_array for kernel in kernels):
        with threads_of_scipy():  # which knows products that read half of a kernel
            return [extreme_eigenvalues_seen(kernel) for kernel in kernels]
    products = products_with([kernel.matrix for kernel in kernels])
    is_centered = np.array([[each.standardization.row_means is not None] for each in kernels])

    def multiply(vectors: Float) -> Float:
        """Multiply each kernel, centered on the fly, with its vector."""
        images = products(vectors - is_centered * vectors.mean(axis=1, keepdims=True))
        return images - is_centered * images.mean(axis=1, keepdims=True)

    with threads_for(n):
        values, _ = ritz_values(multiply, (len(kernels), n), LANCZOS_STEPS)
    return list(zip(values[:, 0].tolist(), np.abs(values).max(axis=1).tolist(), strict=True))


def extreme_eigenvalues_seen(kernel: Operator) -> tuple[float, float]:
    """Return the extreme eigenvalues that a few Lanczos steps find.

    The true smallest eigenvalue can only be lower, so a negative one proves a kernel indefinite;
    finding none is evidence, not proof.
    """
    n = kernel.shape[0]
    v = noise((n, 1), 0, kernel.like)
    xp = namespace(v)
    basis, unit = v / xp.linalg.vector_norm(v), 0.0
    alphas: list[float] = []
    betas: list[float] = []
    for _ in range(min(LANCZOS_STEPS, n)):
        last = basis[:, -1:]
        image = kernel @ last
        unit = unit or float(xp.max(xp.abs(image))) or 1.0  # so that no square over- or underflows
        image = image / unit
        alphas.append(float(xp.sum(last * image)))
        for _ in range(2):  # full reorthogonalization keeps the few steps honest
            image = image - basis @ (basis.T @ image)
        length = float(xp.linalg.vector_norm(image))
        if length <= 1e-12 * max(map(abs, alphas)):
            break
        betas.append(length)
        basis = xp.concat([basis, image / length], axis=1)
    T = np.diag(alphas)
    steps = np.arange(len(alphas) - 1)
    T[steps, steps + 1] = T[steps + 1, steps] = betas[: len(steps)]
    values = eigvalsh(T)
    return float(unit * values[0]), float(unit * np.abs(values).max())


def smallest_eigenvalue(kernel: Operator) -> float:
    """Return the smallest eigenvalue, converged; where it will not, one a little below it.

    Where many eigenvalues are close to the smallest one, no single eigenvector can be told from
    the others. A vector of all of them then bounds the eigenvalue as well, by its residual.
    """
    n, like = kernel.shape[0], kernel.like
    if n <= 200:
        return float(eigvalsh(kernel.dense())[0])

    def product(v: Float) -> Float:
        """Multiply the kernel with a vector on the host."""
        return to_host(kernel @ to_device(v.reshape(-1, 1), like)).reshape(-1)

    operator = scipy.sparse.linalg.LinearOperator((n, n), matvec=product, dtype=np.float64)
    search: dict[str, Any] = {"which": "SA", "v0": np.random.default_rng(0).standard_normal(n)}
    find = scipy.sparse.linalg.eigsh
    try:
        return float(
            find(operator, 1, maxiter=ARPACK_RESTARTS, return_eigenvectors=False, **search)[0]
        )
    except scipy.sparse.linalg.ArpackNoConvergence:
        (value,), vector = find(operator, 1, tol=LOOSE_TOLERANCE, **search)
        residual = product(vector) - value * vector[:, 0]
        return float(value - np.linalg.norm(residual))
