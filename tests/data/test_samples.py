"""Input is understood once, and what has been understood goes wherever the input itself may."""

import numpy as np
import pandas as pd
import pytest

from mkclust import AverageKKM, KernelBank, SimpleMKKM
from mkclust.data import read_samples
from mkclust.data.samples import read_kernels
from mkclust.kernels import Nystroem
from mkclust.stack import as_stack

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


def test_samples_of_one_kind_are_refused_where_another_belongs(views):
    samples = read_samples(views)
    with pytest.raises(ValueError, match="kernels='precomputed'"):
        as_stack(samples)
    kernels = read_samples(np.stack([view @ view.T for view in views.values()]))
    with pytest.raises(ValueError, match="X holds kernels"):
        KernelBank().fit(kernels)


def test_samples_know_their_ids_columns_and_widths(views):
    ids = [f"s{i}" for i in range(N)]
    frames = {
        "a": pd.DataFrame(views["a"], index=ids, columns=list("wxyz")),
        "b": pd.DataFrame(views["b"], index=ids).iloc[::-1],
    }
    samples = read_samples(frames)
    assert samples.ids.tolist() == ids
    assert samples.columns == {"a": list("wxyz")}
    assert samples.n_features == (4, 3)
    assert samples.missing is None
    assert np.array_equal(samples.views["b"], views["b"])
    assert samples.only(["b"]).names == ("b",)
    assert samples.only(["a", "b"]) is samples
    assert read_samples(views).ids is None
    assert not samples.is_lazy


def test_samples_are_brought_to_the_order_of_a_fit_by_their_ids(views):
    ids = np.array([f"s{i}" for i in range(N)])
    frames = {name: pd.DataFrame(view, index=ids) for name, view in views.items()}
    turned = read_samples({name: frame.iloc[::-1] for name, frame in frames.items()})
    model = AverageKKM(3, random_state=0).fit(frames)
    assert turned.ids.tolist() == ids[::-1].tolist()
    np.testing.assert_allclose(
        model.mixed_kernel(turned), model.mixed_kernel(frames), rtol=1e-12, atol=1e-12
    )
    assert read_samples(turned, ids=ids).ids.tolist() == ids.tolist()
