"""Extreme eigenvalues of several matrices of the host, by Lanczos steps of all at once."""

import numpy as np

from mkclust.linalg.arrays import noise
from mkclust.types import Float


def ritz_values(matrices: Float, steps: int) -> tuple[Float, Float]:
    """Return what some Lanczos steps from a random vector tell of the eigenvalues of matrices.

    Parameters
    ----------
    matrices : ndarray of shape (m, s, s)
        Symmetric.
    steps : int
        How many steps, b; no more than s are taken.

    Returns
    -------
    values : ndarray of shape (m, b)
        Ritz values, rising: the smallest is no smaller than the smallest eigenvalue, and the
        largest no larger than the largest. Past an invariant subspace they are zero.
    residuals : ndarray of shape (m, b)
        Within which there is an eigenvalue.
    """
    m, s, _ = matrices.shape
    steps, first = min(steps, s), noise((s, 1), 0, matrices)[:, 0]
    basis, T = np.zeros((m, steps + 1, s)), np.zeros((m, steps, steps))
    basis[:, 0] = first / np.linalg.norm(first)
    unit, size, length = np.ones(m), np.zeros(m), np.zeros(m)
    for step in range(steps):
        image = (matrices @ basis[:, step, :, None])[..., 0]
        if step == 0:  # so that no square over- or underflows
            largest = np.abs(image).max(axis=1)
            unit = np.where(largest > 0, largest, 1.0)
        image /= unit[:, None]
        T[:, step, step] = np.sum(basis[:, step] * image, axis=1)
        size = np.maximum(size, np.abs(T[:, step, step]))
        past = basis[:, : step + 1]
        for _ in range(2):  # full reorthogonalization keeps the few steps honest
            image -= (past.transpose(0, 2, 1) @ (past @ image[..., None]))[..., 0]
        length = np.linalg.norm(image, axis=1)
        goes_on = length > 1e-12 * size
        length = np.where(goes_on, length, 0.0)
        basis[:, step + 1] = image / np.where(goes_on, length, np.inf)[:, None]
        if step + 1 < steps:
            T[:, step, step + 1] = T[:, step + 1, step] = length
    values, vectors = np.linalg.eigh(T)
    residuals = length[:, None] * np.abs(vectors[:, -1, :])
    return unit[:, None] * values, unit[:, None] * residuals
