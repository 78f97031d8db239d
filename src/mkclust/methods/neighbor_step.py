r"""A partition that follows the nearest neighbors of the samples in a mix of kernels.

Distant samples say little about clusters. Three steps use the near ones:

1. The shared neighborhoods of the mix K (`mkclust.kernels.neighbors`) are a kernel, N; its k
   leading eigenvectors U, centered, follow chains of neighbors.
2. Kernel ridge regression expresses them by kernel rows, so that new samples are embedded too:
   :math:`P = (K + \rho I)^{-1} U`, with :math:`\rho` the mean of the diagonal.
3. The partition is :math:`H = K P`, made orthonormal.
"""

from typing import Any, NamedTuple

import numpy as np

from mkclust.engine.eigen import Relaxation, relax
from mkclust.kernels.neighbors import (
    BLOCK_ROWS,
    by_similarity,
    count_components,
    count_neighbors,
    find_neighborhoods,
    lengths_of,
)
from mkclust.linalg import eigh, namespace, row_ranges, to_device, to_host
from mkclust.stack import Kernel, as_stack
from mkclust.types import Array

# Neighbors of a sample. On 18 data sets 10 were better than 8 and 12, and these than 5 and 20.
MOST_NEIGHBORS = 10
# Small clusters have fewer: this share of the samples that a cluster has on average, ...
SHARE_OF_CLUSTER = 0.5
# ... but at least this number.
FEWEST_NEIGHBORS = 3
# Fewer samples than this are too few for neighborhoods.
FEWEST_SAMPLES = 30
# Relative error of the eigenvalue sum of the neighborhoods.
NEIGHBOR_TOLERANCE = 1e-6
# The regression is solved up to this relative error, or for this number of products.
RIDGE_TOLERANCE, MOST_PRODUCTS = 1e-2, 50
# Directions of less than this share of the largest are rounding: the mix has too low a rank.
RANK_TOLERANCE = 1e-10


class Followed(NamedTuple):
    """A partition, and what takes similarities by the mix to it."""

    partition: Array  # orthonormal, (n_samples, k)
    projection: Array  # (n_samples, k)
    n_products: int  # with the mix


def count_mix_neighbors(neighbors: Any, n_samples: int, n_clusters: int) -> int:
    """Return how many neighbors every sample is to have."""
    if neighbors != "auto":
        return count_neighbors(neighbors, n_samples)
    share = int(SHARE_OF_CLUSTER * n_samples / n_clusters)
    return max(FEWEST_NEIGHBORS, min(MOST_NEIGHBORS, share))


def follow_neighbors(K: Kernel, relaxation: Relaxation, n_neighbors: int) -> Followed | None:
    """Return the partition that follows the neighbors in a mix, given the mix's eigenvectors.

    None if there are too few samples, more than k groups that nothing connects, or a rank below k.
    """
    n, k = K.n_samples, relaxation.n_clusters
    if n < FEWEST_SAMPLES or n_neighbors >= n - 1 or k == 1:
        return None
    lengths, parts = lengths_of(K.diagonal()), row_ranges(n, n, K.like, BLOCK_ROWS)
    on_host = to_host(lengths)
    if np.ptp(on_host) <= 1e-9 * on_host.max():
        blocks = (by_similarity(K.rows(part), float(on_host[0]) ** 2) for part in parts)
    else:
        blocks = (by_similarity(K.rows(part) / lengths[part][:, None] / lengths) for part in parts)
    found = find_neighborhoods(n_neighbors, blocks)
    if count_components([(found, np.arange(n))], n) > k:
        return None
    (neighborhoods,) = as_stack([found.kernel()], normalize=False, validate=False).kernels
    U = relax(neighborhoods, k, tol=NEIGHBOR_TOLERANCE).vectors[:, :k]
    P, n_products = _ridge(K, to_device(U, K.like), relaxation)
    rows = K @ P
    values, vectors = eigh(to_host(rows.T @ rows))
    if values[0] <= RANK_TOLERANCE * values[-1]:
        return None
    whitening = to_device((vectors / np.sqrt(values)) @ vectors.T, rows)
    return Followed(rows @ whitening, P @ whitening, n_products + 2)


def _ridge(K: Kernel, U: Array, relaxation: Relaxation) -> tuple[Array, int]:
    """Solve ``(K + rho I) P = U`` by conjugate gradients, from the leading eigenvectors on."""
    xp, n_products = namespace(U), 0
    rho = float(xp.mean(K.diagonal()))
    V = to_device(relaxation.vectors, U, "float64")
    shrinkage = to_device(1 / (np.maximum(relaxation.eigenvalues, 0) + rho), U)[:, None]
    P = V @ (shrinkage * (V.T @ U))
    residual = U - K @ P - rho * P
    direction, squares = residual, xp.sum(residual**2, axis=0)
    enough = RIDGE_TOLERANCE**2 * xp.sum(U**2, axis=0)
    while n_products < MOST_PRODUCTS and bool(xp.any(squares > enough)):
        product = K @ direction + rho * direction
        n_products += 1
        curvature = xp.sum(direction * product, axis=0)
        # A column that is solved exactly has no direction left.
        step = squares / xp.where(curvature > 0, curvature, 1.0)
        P, residual = P + step * direction, residual - step * product
        before, squares = squares, xp.sum(residual**2, axis=0)
        direction = residual + squares / xp.where(before > 0, before, 1.0) * direction
    return P, n_products
