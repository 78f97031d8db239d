"""Sparse views by features; their exact kernels are tested in
tests/kernels/test_rules.py."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

from mkclust import SimpleMKKM
from mkclust.kernels import Linear, Nystroem

N, K = 90, 3
MAPS = {
    "landmarks": Nystroem(25),
    "linear": Linear(),
    "scikit-learn": RBFSampler(gamma=0.01, n_components=60),
    "pipeline": make_pipeline(TruncatedSVD(6), Nystroem(25)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MAPS)
def test_sparse_views_are_clustered_as_dense_ones_and_so_are_new_samples(name):
    rng, y = np.random.default_rng(0), np.arange(N) % K
    topics = 0.02 + 0.5 * (rng.random((K, 120)) < 0.1)
    words = (rng.random((N, 120)) < topics[y]) * rng.poisson(2.0, (N, 120))
    signs = (rng.normal(size=(K, 50))[y] + rng.normal(size=(N, 50))) * (
        rng.random((N, 50)) < 0.3
    )
    numbers = 2 * np.eye(K, 6)[y] + rng.normal(size=(N, 6))
    dense = {"words": words * 1.0, "signs": signs, "numbers": numbers}
    views = dense | {
        "words": scipy.sparse.csc_matrix(words),
        "signs": scipy.sparse.coo_array(signs),
    }
    model, expected = (
        SimpleMKKM(K, approximation=MAPS[name], random_state=0).fit(X)
        for X in (views, dense)
    )
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_allclose(model.weights_, expected.weights_, atol=1e-8)
    assert adjusted_rand_score(y, model.labels_) > 0.8
    for X in (dense, views):
        np.testing.assert_array_equal(model.predict(X), expected.labels_)


def test_wide_sparse_views_are_fitted_by_features_without_being_written_out():
    rng = np.random.default_rng(0)
    y = rng.integers(K, size=2_000)
    columns = np.where(rng.random((2_000, 20)) < 0.6, 300 * y[:, None], 1_000)
    columns = columns + rng.integers(300, size=columns.shape)
    columns = np.where(
        rng.random(columns.shape) < 0.3,
        rng.integers(200_000, size=columns.shape),
        columns,
    )
    places = (np.arange(2_000).repeat(20), columns.ravel())
    view = scipy.sparse.coo_array((np.ones(40_000), places), (2_000, 200_000)).tocsr()
    tracemalloc.start()
    try:
        model = SimpleMKKM(K, approximation=Nystroem(200), random_state=0).fit(
            {"words": view, "dense": np.eye(K)[y] + 0.5 * rng.normal(size=(2_000, K))}
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.15 * 8 * view.shape[0] * view.shape[1]
    assert adjusted_rand_score(y, model.labels_) > 0.9
