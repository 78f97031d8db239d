"""The paper's error on new samples, computed by the benchmark, is that of explicit
features."""

import numpy as np
import pytest

from mkclust import SimpleMKKM
from paper import generalization

N, NEW = 50, 13


@pytest.mark.filterwarnings("ignore::mkclust.exceptions.WeightsWarning")
@pytest.mark.parametrize("k", [1, 4])
def test_errors_are_those_of_centroids_in_feature_space(k):
    rng = np.random.default_rng(0)
    features = [rng.normal(size=(N + NEW, d)) for d in (60, 70)]
    kernels, seen = np.stack([X @ X.T for X in features]), np.arange(N)
    model = SimpleMKKM(k, random_state=0).fit(kernels[:, :N, :N])
    maps = []
    for X, c in zip(features, model.coefficients_, strict=True):
        phi = X - X[:N].mean(axis=0)
        maps.append(np.sqrt(c) * phi / np.linalg.norm(phi, axis=1, keepdims=True))
    phi = np.hstack(maps)
    centroids = [phi[:N][model.labels_ == v].mean(axis=0) for v in range(k)]
    expected = 1 - np.max([phi @ centroid for centroid in centroids], axis=0)
    found = generalization.alignment_errors(kernels, model, seen, np.arange(N + NEW))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    # The trace with the clusters' indicators bounds the empirical error from above.
    sums = np.array([phi[:N][model.labels_ == v].sum(axis=0) for v in range(k)])
    trace = sum((sums**2).sum(axis=1) / np.bincount(model.labels_, minlength=k))
    assert found[:N].mean() <= 1 - trace / N + 1e-10
