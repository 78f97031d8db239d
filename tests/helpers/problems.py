"""Kernels with awkward optima, and quantities computed by dense matrices."""

import numpy as np

from helpers.kernels import ONE_GAUSSIAN
from mkclust import KernelBank
from mkclust.stack import as_stack


def raw(kernels):
    return as_stack(kernels, center=False, normalize=False)


def commuting(rng, n, m, k):
    """Diagonal kernels: they commute, so eigenvalues cross and tie exactly."""
    return np.stack([np.diag(rng.random(n) ** 3 + 1e-3) for _ in range(m)])


def block_ideal(rng, n, m, k):
    """Ideal kernels of k + 1 equal clusters: eigenvalues k and k + 1 tie at all
    weights."""
    H = np.eye(k + 1)[np.arange(n) % (k + 1)]
    H = H / np.linalg.norm(H, axis=0)
    return np.stack([(1 + rng.random()) * H @ H.T for _ in range(m)])


def fast_decaying(rng, n, m, k):
    """Random eigenvectors, eigenvalues halving: near-ties at the optimum."""
    Q = np.linalg.qr(rng.normal(size=(m, n, n)))[0]
    return symmetrized((Q * 0.5 ** np.arange(n)) @ Q.transpose(0, 2, 1))


def wishart(rng, n, m, k):
    """Pure noise with a slowly falling spectrum."""
    X = rng.normal(size=(m, n, n // 2 + 1))
    return symmetrized(X @ X.transpose(0, 2, 1))


def low_rank(rng, n, m, k):
    """Kernels of rank one to three, often below k."""
    views = [rng.normal(size=(n, 1 + p % 3)) for p in range(m)]
    return symmetrized([X @ X.T for X in views])


FAMILIES = (commuting, block_ideal, fast_decaying, wishart, low_rank)


def symmetrized(kernels):
    K = np.stack(kernels)
    return (K + K.transpose(0, 2, 1)) / 2


def top_eigenvalue_sum(kernels, weights, k):
    """Return J at some weights by a dense eigensolver."""
    values = np.linalg.eigvalsh(np.tensordot(weights**2, kernels, 1))
    return values[-k:].sum()


def random_weights(rng, m):
    return rng.dirichlet(np.ones(m))


def random_kernels(n, m, seed=0, k=3):
    """Return kernels with some shared structure: decaying spectra around k loose
    clusters."""
    rng = np.random.default_rng(seed)
    places = np.arange(n) % k
    kernels = []
    for p in range(m):
        X = (p + 1) * rng.normal(size=(k, 6))[places] + rng.normal(size=(n, 6))
        squares = (X**2).sum(axis=1)
        distances = squares[:, None] + squares - 2 * X @ X.T
        kernels.append(np.exp(-distances / distances.mean()))
    return symmetrized(kernels)


def projector(H):
    """Return the projector on the columns of an orthonormal H: what a partition is."""
    return H @ H.T


def row_normalized_gram(H):
    rows = H / np.linalg.norm(H, axis=1, keepdims=True)
    return rows @ rows.T


def unexplained(kernels, H):
    """Return Tr(K_p (I - H H^T)) for every kernel, written out."""
    rest = np.eye(len(H)) - projector(H)
    return np.array([np.trace(K @ rest) for K in kernels])


def leading(K, k):
    return np.linalg.eigh(K)[1][:, -k:]


def golden_kernels(golden, kind):
    """Return the golden kernels as they are, or centered and of unit trace."""
    if kind == "cn":
        return golden["K"]
    K = golden["K_raw"]
    K = K - K.mean(axis=1, keepdims=True) - K.mean(axis=2, keepdims=True)
    K = K + golden["K_raw"].mean(axis=(1, 2), keepdims=True)
    return K / np.trace(K, axis1=1, axis2=2)[:, None, None]


def blob_kernels(seed, n_noise=1, m=4, n=640, k=6):
    rng = np.random.default_rng(seed)
    y, kernels = rng.integers(k, size=n), []
    for p in range(m):
        centers = 1.5 * rng.normal(size=(k, 8 + p)) * (p < m - n_noise)
        view = centers[y] + rng.normal(size=(n, 8 + p))
        kernels.append(KernelBank(**ONE_GAUSSIAN).fit_transform(view)[0])
    return np.array(kernels)
