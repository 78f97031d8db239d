"""LF-MVC as its two released codes solve it."""

import numpy as np

from mkclust.linalg import polar_factor
from mkclust.methods.lf_mvc import SMALLEST_WEIGHT, Fusion, fuse
from mkclust.stack import Stack
from mkclust.types import Float


def solve_lf_mvc_released(
    stack: Stack,
    n_clusters: int,
    *,
    reg: float,
    accumulate: bool = False,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> Fusion:
    """Fuse partitions that are not turned to each other; the signs of eigenvectors matter.

    With ``accumulate``, as in the first of the two codes, by `fuse_accumulated`.
    """
    m = stack.n_kernels
    H = [_leading(stack.kernels[p].dense(), n_clusters) for p in range(m)]
    H_0 = _leading(stack.mix(np.full(m, 1 / m)).dense(), n_clusters)
    if accumulate:
        return fuse_accumulated(H, H_0, reg=reg, tol=tol, max_iter=max_iter)
    return fuse(H, H_0, reg=reg, align=False, tol=tol, max_iter=max_iter)


def fuse_accumulated(
    H: list[Float], H_0: Float, *, reg: float, tol: float = 1e-6, max_iter: int = 100
) -> Fusion:
    """Fuse partitions whose turned sum is never reset, so that the objective may fall."""
    m, k = len(H), H_0.shape[1]
    W, A, b = np.stack([np.eye(k)] * m), np.zeros((m, k, k)), np.full(m, 1 / m)
    history: list[float] = []
    converged = False
    while True:
        A = A + b[:, None, None] * W
        total = np.einsum("pik,pkl->il", H, A) + reg * H_0
        F = polar_factor(total)
        M, near = np.einsum("pik,il->pkl", H, F), reg * float(np.sum(F * H_0))
        if converged or len(history) == max_iter:
            history.append(float(b @ np.sum(M * W, axis=(1, 2))) + near)
            return Fusion(F, b, W, A, total, np.array(history), converged)
        for p in np.flatnonzero(b > SMALLEST_WEIGHT):
            W[p] = polar_factor(M[p])
        c = np.sum(M * W, axis=(1, 2))
        b = c / np.linalg.norm(c)
        history.append(float(np.linalg.norm(c)) + near)
        converged = len(history) > 2 and abs(history[-1] - history[-2]) < tol * abs(history[-2])


def _leading(K: Float, k: int) -> Float:
    """Return the leading eigenvectors, the entry of largest magnitude of each positive."""
    H = np.linalg.eigh(K)[1][:, ::-1][:, :k]
    largest = np.take_along_axis(H, np.abs(H).argmax(axis=0)[None], axis=0)
    return H * np.where(largest < 0, -1.0, 1.0)
