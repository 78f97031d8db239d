"""Views of several kinds beside each other: kernels of which some are sparse and some
are not."""

import warnings

import numpy as np
import pytest

from mkclust import LFMVC, LKAM, AgreementKKM, AverageKKM, SimpleMKKM
from mkclust.metrics import adjusted_rand_index

pytestmark = pytest.mark.slow

N, SOME = 90, [3, 1, 7]


def mixed_views(n=N):
    """Return one view of each kind that has kernels of its own, and the clusters."""
    rng, y = np.random.default_rng(0), np.arange(n) % 3
    chosen = [
        np.where(rng.random(n) < 0.8, y, rng.integers(3, size=n)) for _ in range(4)
    ]
    rates = np.where(np.arange(60) // 20 == y[:, None], 0.16, 0.02)
    words = rng.poisson(rates).astype(float)
    words[np.arange(n), 20 * y] += 1  # no row without words
    links = np.triu(rng.random((n, n)) < np.where(y[:, None] == y, 0.25, 0.02), 1)
    links = (links | links.T).astype(float)
    points = rng.normal(size=(n, 3)) + 3 * np.eye(3)[y]
    views = {
        "pixels": rng.normal(size=(n, 4)) + 3 * np.eye(3, 4)[y],
        "words": words,
        "choices": np.hstack([np.eye(3)[each] for each in chosen]),
        "links": links,
        "travel": np.linalg.norm(points[:, None] - points, axis=2),
    }
    return views, y


@pytest.fixture(scope="module")
def views():
    return mixed_views()[0]


def fit(method, X, **settings):
    """Return a fitted model; whether its weights deserve a warning is not the question
    here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method(3, random_state=0, **settings).fit(X)


@pytest.mark.parametrize("method", [AverageKKM, AgreementKKM, SimpleMKKM, LKAM, LFMVC])
def test_kernels_held_and_on_the_fly_give_the_same_clusters(method, views):
    _, y = mixed_views()
    held, computed = (
        fit(method, views, kernels=kernels) for kernels in ("auto", "on-the-fly")
    )
    assert adjusted_rand_index(y, held.labels_) > 0.9
    np.testing.assert_array_equal(held.labels_, computed.labels_)
    np.testing.assert_allclose(held.weights_, computed.weights_, atol=1e-5)
    mixes = [model.mixed_kernel(views) for model in (held, computed)]
    np.testing.assert_allclose(*mixes, atol=1e-5)
    some = held.mixed_kernel(views, SOME)
    np.testing.assert_allclose(some, mixes[0][np.ix_(SOME, SOME)], atol=1e-12)
