"""Distances passed as similarities are refused; graphs are not."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from sklearn.neighbors import kneighbors_graph

from helpers.views import blob_views
from mkclust.stack import as_stack

N = 60
(POINTS,), _ = blob_views(np.random.default_rng(0), n=N, k=3, strengths=(2,))
COUNTS = np.random.default_rng(1).poisson(np.exp(POINTS / 2))
METRICS = [
    "euclidean",
    "sqeuclidean",
    "cityblock",
    "chebyshev",
    "cosine",
    "correlation",
]
METRICS_OF_COUNTS = ["jaccard", "hamming", "braycurtis", "canberra"]


def distances(metric="euclidean", X=POINTS):
    """Return distances of all points to all."""
    return squareform(pdist(X, metric))


@pytest.mark.parametrize("metric", [*METRICS, *METRICS_OF_COUNTS])
@pytest.mark.parametrize("center", [True, False])
def test_distances_of_many_kinds_are_recognized(metric, center):
    X = POINTS if metric in METRICS else COUNTS > 1 if metric == "jaccard" else COUNTS
    with pytest.raises(ValueError, match="kernel 0 looks like distances"):
        as_stack([distances(metric, X)], psd="shift", center=center)
    unchecked = {"validate": False, "normalize": False}
    assert as_stack([distances(metric, X)], **unchecked).n_kernels == 1


@pytest.mark.parametrize("n_neighbors", [1, 5, 45])
@pytest.mark.parametrize("join", [np.maximum, np.add])
def test_graphs_are_similarities(n_neighbors, join):
    A = kneighbors_graph(POINTS, n_neighbors).toarray()
    assert as_stack([join(A, A.T)], psd="shift", normalize=False).n_kernels == 1


@pytest.mark.parametrize("width", [0.1, 1, 10])
def test_similarities_without_a_diagonal_are_similarities(width):
    D = distances() / np.median(distances())
    for K in (np.exp(-((D / width) ** 2) / 2), 1 / (1 + D * width)):
        assert (
            as_stack(
                [K - np.diag(K.diagonal())], psd="shift", normalize=False
            ).n_kernels
            == 1
        )


@pytest.mark.parametrize("seed", range(5))
def test_noise_without_a_diagonal_is_not_called_distances(seed):
    rng = np.random.default_rng(seed)
    noise = [
        rng.uniform(0.5, 1, size=(N, N)),
        (rng.uniform(size=(N, N)) < 0.7).astype(float),
    ]
    stack = as_stack([A + A.T - 2 * np.diag(A.diagonal()) for A in noise], psd="shift")
    assert stack.n_kernels == 2
