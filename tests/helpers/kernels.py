"""Kernels in the forms that users give them."""

import numpy as np

from helpers.views import blob_views
from mkclust import KernelBank
from mkclust.linalg import to_host

N, M = 70, 3

# Settings of a bank that makes one kernel for each view.
ONE_GAUSSIAN = {"widths": (1.0,), "polynomials": (), "linear": None}


def gaussian_kernels(rng, **settings):
    """Return one Gaussian kernel for each view of blobs, and the clusters."""
    views, y = blob_views(rng, **settings)
    return KernelBank(**ONE_GAUSSIAN).fit_transform(views), y


def integer_kernels(n=N, m=M, n_features=30, seed=0):
    """Return Gram matrices of sparse integer features: exact in every number type."""
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 4, size=(m, n, n_features)) * (
        rng.random((m, n, n_features)) < 0.08
    )
    X[:, np.arange(n), np.arange(n) % n_features] += 1  # no sample is zero
    return (X @ X.transpose(0, 2, 1)).astype(np.float64)


def standardized(kernels, center=True, normalize=True):
    """Center and scale by the textbook: dense matrices, one at a time."""
    result = []
    for K in np.asarray(kernels, dtype=np.float64):
        if center:
            C = np.eye(len(K)) - 1 / len(K)
            K = C @ K @ C
        if normalize:
            lengths = np.sqrt(np.diag(K))
            K = K / np.outer(lengths, lengths)
        result.append(K)
    return np.stack(result)


def written_out(stack):
    """Return the kernels over all samples that the small matrices of features stand
    for."""
    (Q,) = stack.features.lift(np.eye(stack.n_samples))
    return np.array([to_host(Q) @ K.dense() @ to_host(Q).T for K in stack.kernels])


def on_disk(K, folder, kind="load"):
    path = folder / f"kernel{len(list(folder.iterdir()))}"
    if kind == "load":
        np.save(f"{path}.npy", K)
        return np.load(f"{path}.npy", mmap_mode="r")
    K.tofile(path)
    return np.memmap(path, dtype=K.dtype, mode="r", shape=K.shape)


class Rows:
    """Kernels that somebody else computes, by their rows alone."""

    def __init__(self, kernels):
        self.kernels, self.n_kernels, self.n_samples = kernels, *kernels.shape[:2]
        self.dtype = kernels.dtype

    def rows(self, start, stop):
        return self.kernels[:, start:stop]
