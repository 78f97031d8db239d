"""Extreme eigenvalues of several matrices of the host, by Lanczos steps of all at once."""

from collections.abc import Callable, Sequence

import numpy as np

from mkclust.linalg.algebra import symmetric_product
from mkclust.linalg.arrays import noise
from mkclust.linalg.eigen import eigh
from mkclust.types import Float

# The share of a vector's squared length that a projection must leave, or it is done once more: it
# leaves rounding that is larger by the inverse of the root.
LITTLE_TAKEN = 1e-6


def products_with(matrices: Sequence[np.ndarray]) -> Callable[[Float], Float]:
    """Return what multiplies symmetric matrices of the host with a vector each, (m, s) to (m, s).

    Of those in float64, one triangle is read only.
    """
    are_halved = [each.dtype == np.float64 and each.flags.c_contiguous for each in matrices]

    def multiply(vectors: Float) -> Float:
        """Multiply each matrix with its vector."""
        images = np.empty(vectors.shape)
        parts = zip(images, vectors, matrices, are_halved, strict=True)
        for image, vector, matrix, is_halved in parts:
            image[:] = symmetric_product(matrix, vector) if is_halved else matrix @ vector
        return images

    return multiply


def ritz_values(
    multiply: Callable[[Float], Float],
    shape: tuple[int, int],
    steps: int,
    *,
    few_steps: int = 0,
    enough: float = 0.0,
) -> tuple[Float, Float]:
    """Return what some Lanczos steps from a random vector tell of the eigenvalues of matrices.

    Parameters
    ----------
    multiply : callable
        Multiplies each of m symmetric matrices with a vector of its own, (m, s) to (m, s).
    shape : tuple of int
        How many matrices there are, m, and of which size, s.
    steps : int
        How many steps, b; no more than s are taken.
    few_steps : int, default=0
        So many are taken where they are enough.
    enough : float, default=0.0
        The residual, as a share of it, at which the eigenvalue of the largest size is known.

    Returns
    -------
    values : ndarray of shape (m, b)
        Ritz values, rising: the smallest is no smaller than the smallest eigenvalue, and the
        largest no larger than the largest. Past an invariant subspace they are zero.
    residuals : ndarray of shape (m, b)
        Within which there is an eigenvalue.
    """
    m, s = shape
    steps, first = min(steps, s), noise((s, 1), 0, None)[:, 0]
    basis, T = np.zeros((m, steps + 1, s)), np.zeros((m, steps, steps))
    basis[:, 0] = first / np.linalg.norm(first)
    unit, size, length = np.ones(m), np.zeros(m), np.zeros(m)
    for step in range(steps):
        image = multiply(basis[:, step])
        if step == 0:  # so that no square over- or underflows
            largest = np.abs(image).max(axis=1)
            unit = np.where(largest > 0, largest, 1.0)
        image /= unit[:, None]
        past = basis[:, : step + 1]
        before = np.einsum("ms,ms->m", image, image)
        for repetition in range(2):  # full reorthogonalization keeps the few steps honest
            shares = past @ image[..., None]
            image -= (past.transpose(0, 2, 1) @ shares)[..., 0]
            if repetition == 0:
                T[:, step, step] = shares[:, step, 0]
            after = np.einsum("ms,ms->m", image, image)
            if np.all(after >= LITTLE_TAKEN * before):
                break
        size = np.maximum(size, np.abs(T[:, step, step]))
        length = np.sqrt(after)
        goes_on = length > 1e-12 * size
        length = np.where(goes_on, length, 0.0)
        basis[:, step + 1] = image / np.where(goes_on, length, np.inf)[:, None]
        if step + 1 in (few_steps, steps):
            values, vectors = eigh(T[:, : step + 1, : step + 1])
            residuals = length[:, None] * np.abs(vectors[:, -1, :])
            if np.all(_of_largest(residuals, values) <= enough * np.abs(values).max(axis=1)):
                break
        if step + 1 < steps:
            T[:, step, step + 1] = T[:, step + 1, step] = length
    return unit[:, None] * values, unit[:, None] * residuals


def _of_largest(residuals: Float, values: Float) -> Float:
    """Return the residual of the value of the largest size of each matrix, (m,)."""
    return residuals[np.arange(len(values)), np.argmax(np.abs(values), axis=1)]
