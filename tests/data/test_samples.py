"""Input is understood once, and what has been understood goes wherever the input itself may."""

import numpy as np
import pytest

from mkclust import AverageKKM, KernelBank, SimpleMKKM
from mkclust.data import read_samples
from mkclust.data.samples import read_kernels
from mkclust.kernels import Nystroem

N = 40


@pytest.fixture
def views():
    rng = np.random.default_rng(0)
    places = 6 * np.eye(3, 4)[np.arange(N) % 3]
    return {"a": places + rng.normal(size=(N, 4)), "b": places[:, :3] + rng.normal(size=(N, 3))}


MODELS = {
    "exact": SimpleMKKM(3, random_state=0),
    "bank": AverageKKM(3, kernels=KernelBank(), random_state=0),
    "on the fly": AverageKKM(3, kernels="on-the-fly", random_state=0),
    "features": AverageKKM(3, approximation=Nystroem(10, random_state=0), random_state=0),
}


def test_samples_that_were_read_are_not_read_again(views):
    K = np.stack([view @ view.T for view in views.values()])
    for X, kind in ((views, "views"), (views["a"], "table"), (K, "kernels")):
        samples = read_samples(X)
        assert samples.kind == kind
        assert samples.n_samples == N
        assert read_samples(samples) is samples
    assert read_kernels(samples) is samples


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("several", [True, False])
def test_samples_give_the_answers_of_what_they_were_read_from(model, several, views):
    X = views if several else views["a"]
    samples = read_samples(X)
    expected = model.fit(X)
    weights, labels, rows = expected.weights_, expected.labels_, expected.transform(X)
    model.fit(samples)
    np.testing.assert_allclose(model.weights_, weights, rtol=1e-12, atol=1e-12)
    assert np.array_equal(model.labels_, labels)
    assert np.array_equal(model.predict(samples), labels)
    np.testing.assert_allclose(model.transform(samples), rows, rtol=1e-12, atol=1e-12)
