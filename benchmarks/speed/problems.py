"""The kernels that speed is measured on: real data sets, and blobs of any size."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mkclust import KernelBank
from mkclust.bench.data import make_kernels
from paper.datasets import load
from records import ONE_GAUSSIAN, blobs


class Problem(NamedTuple):
    """Kernels that are made when they are asked for, and the number of clusters to
    find."""

    title: str
    n_clusters: int
    make: Callable[[], np.ndarray]


def real_data(name, title, n, m, k):
    """Return the kernels of a data set of the catalog; if it is absent, making
    raises."""
    title = f"{title}, n = {n}, m = {m}, k = {k}"
    return Problem(
        title, k, lambda: np.ascontiguousarray(make_kernels(load(name))[0], float)
    )


def blob_problem(n, m, k, n_noise):
    """Return Gaussian kernels of k blobs, the last views pure noise."""
    noise = f" ({n_noise} noise)" if n_noise else ""
    title = f"blobs, n = {n}, m = {m}{noise}, k = {k}"
    return Problem(title, k, lambda: blob_kernels(n, m, k, n_noise))


def blob_kernels(n, m, k, n_noise):
    views, _ = blobs(
        n, k, range(20, 20 + 5 * m, 5), (1,) * (m - n_noise) + (0,) * n_noise
    )
    kernels = np.empty((m, n, n))
    for kernel, view in zip(kernels, views.values(), strict=True):
        kernel[:] = KernelBank(**ONE_GAUSSIAN).fit_transform(view)[0]
    return kernels


def standardized_copy(kernels):
    """Return kernels that are centered and scaled to a unit diagonal, with no further
    copy."""
    kernels = kernels.copy()
    for K in kernels:
        means = K.mean(0)
        K -= means
        K -= (means - means.mean())[:, None]
        scale = 1 / np.sqrt(np.diag(K))
        K *= scale
        K *= scale[:, None]
    return kernels


def table_problems(shrink=1):
    """Return the rows of the table by name; the samples of blobs are divided by
    `shrink`."""
    return {
        "digit": real_data("digit", "UCI Digit", 2000, 3, 10),
        "flo17": real_data("flo17-substitute", "Flower17 (substitute)", 1360, 7, 17),
        "jaffe": real_data("jaffe", "JAFFE", 213, 12, 10),
        "b4000": blob_problem(4000 // shrink, 8, 20, 2),
        "b8189": blob_problem(8189 // shrink, 4, 102, 1),
    }


def growing_problems(shrink=1):
    """Return problems by what grows, n, m or k, and by its size, over a factor of
    eight."""
    return {
        "n": {
            n // shrink: blob_problem(n // shrink, 4, 10, 1)
            for n in (1000, 2000, 4000, 8000)
        },
        "m": {m: blob_problem(2000 // shrink, m, 10, m // 4) for m in (2, 4, 8, 16)},
        "k": {k: blob_problem(4000 // shrink, 4, k, 1) for k in (5, 10, 20, 40)},
    }
