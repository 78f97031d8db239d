"""New samples are covered if the nearest samples of the fit are as near as these to
each other."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from mkclust import (
    METHODS,
    AgreementKKM,
    AverageKKM,
    SimpleMKKM,
    load_model,
    save_model,
)
from mkclust.datasets import load
from mkclust.exceptions import UncoveredSamplesWarning
from mkclust.fit.coverage import DOUBTFUL, NEAREST
from mkclust.fit.inductive import InductiveClusterer
from mkclust.kernels import Nystroem

INDUCTIVE = [
    name for name, method in METHODS.items() if issubclass(method, InductiveClusterer)
]


@pytest.fixture(scope="module")
def digits():
    """Return digits of a fit, new ones, and noise of the same values."""
    rng = np.random.default_rng(0)
    numbers, every = rng.permutation(1797), load("digits").views
    old, new = (
        {name: every[name][rows] for name in ("pixels", "fourier", "projections")}
        for rows in (numbers[:250], numbers[250:450])
    )
    return old, new, {name: rng.permuted(view) for name, view in new.items()}


def assert_even(coverage):
    """Check shares against those of numbers that are spread evenly from 0 to 1."""
    for share in (0.25, 0.5, 0.75):
        assert abs((coverage <= share).mean() - share) < 0.15
    assert (coverage < DOUBTFUL).mean() < 0.06


@pytest.mark.parametrize("name", INDUCTIVE)
def test_new_samples_of_the_same_kind_are_covered_evenly_and_noise_is_not(name, digits):
    old, new, noise = digits
    model = METHODS[name](10, random_state=0, n_init=1).fit(old)
    assert_even(model.coverage(new))
    assert (model.coverage(noise) < DOUBTFUL).mean() > 0.9
    inverted = {n: view.max() - view for n, view in new.items()}
    assert (model.coverage(inverted) < DOUBTFUL).mean() > 0.9


@pytest.mark.parametrize(
    ("model", "lacking"),
    [
        (AgreementKKM(10, random_state=0, anchors=150, learn_from=200), 0),
        (AgreementKKM(10, random_state=0), 0.3),
        (AverageKKM(10, random_state=0), 0.3),
        (SimpleMKKM(10, random_state=0, approximation=Nystroem(60)), 0),
        (SimpleMKKM(10, random_state=0, approximation=Nystroem(60)), 0.1),
    ],
    ids=["anchors", "missing", "filled", "features", "missing features"],
)
def test_samples_of_anchors_of_features_and_without_some_views_are_compared(
    model, lacking, digits, tmp_path
):
    pytest.importorskip("skops")
    old, new, noise = digits
    rng = np.random.default_rng(1)
    observed = [rng.uniform(size=(n, 3)) >= lacking for n in (250, 200)]
    for each in observed:
        each[~each.any(axis=1), 0] = True
    model.fit(old, observed=observed[0])
    coverage = model.coverage(new, observed=observed[1])
    assert_even(coverage)
    assert (model.coverage(noise) < DOUBTFUL).mean() > 0.8
    loaded = load_model(save_model(model, tmp_path / "model.skops"))
    np.testing.assert_allclose(
        loaded.coverage(new, observed=observed[1]), coverage, atol=1e-12
    )
    some = {name: view[:7] for name, view in new.items()}
    np.testing.assert_allclose(
        model.coverage(some, observed=observed[1][:7]), coverage[:7]
    )


@pytest.mark.parametrize("normalize", [True, False])
def test_the_coverage_is_that_of_cosines_in_the_mixed_kernel(normalize):
    """With few samples all of them are references, and kernels are mixed here by
    hand."""
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=(2, 40, 3)), rng.normal(size=(2, 15, 3)) * 1.2
    K = np.array([X @ X.T + 1 for X in old])
    cross = np.array([Y @ X.T + 1 for X, Y in zip(old, new, strict=True)])
    own = np.array([np.square(Y).sum(axis=1) + 1 for Y in new])
    model = AverageKKM(
        2, kernels="precomputed", center=False, normalize=normalize, random_state=0
    )
    coverage = model.fit(K).coverage(cross, own)

    lengths = np.sqrt(np.array([each.diagonal() for each in K]))
    weights = model.coefficients_ * (1 if normalize else (lengths**2).mean(axis=1))
    cosines = K / lengths[:, :, None] / lengths[:, None]
    among = np.tensordot(weights / weights.sum(), cosines, axes=1)
    np.fill_diagonal(among, -np.inf)
    to_new = cross / np.sqrt(own)[:, :, None] / lengths[:, None]
    to_new = np.tensordot(weights / weights.sum(), to_new, axes=1)
    references, nearest = (
        np.sort(each, axis=1)[:, -NEAREST] for each in (among, to_new)
    )
    expected = (references <= nearest[:, None] + 1e-12).mean(axis=1)
    np.testing.assert_allclose(coverage, expected, atol=1e-12)


def test_kernels_are_compared_as_the_views_that_they_are_of(digits):
    old, new, noise = digits
    widths = {name: 1 / (2 * view.shape[1] * view.var()) for name, view in old.items()}

    def kernels(rows):
        return [rbf_kernel(rows[n], old[n], gamma=width) for n, width in widths.items()]

    model = SimpleMKKM(10, kernels="precomputed", random_state=0).fit(kernels(old))
    assert_even(model.coverage(kernels(new)))
    assert (model.coverage(kernels(noise)) == 0).all()


def test_without_self_similarities_lengths_cannot_be_compared():
    X = np.random.default_rng(0).normal(size=(1, 30, 4))
    model = AverageKKM(2, kernels="precomputed", normalize=False).fit(
        X @ X.transpose(0, 2, 1)
    )
    cross = X[:, :5] @ X.transpose(0, 2, 1)
    model.predict(cross)
    with pytest.raises(ValueError, match="self_similarity"):
        model.coverage(cross)


def test_samples_of_views_that_are_set_aside_only_are_not_covered(digits):
    rng = np.random.default_rng(0)
    old, new = (
        each | {"noise": rng.normal(size=(n, 5))}
        for each, n in zip(digits, (250, 200), strict=False)
    )
    model = AgreementKKM(10, random_state=0).fit(old)
    assert model.set_aside_ == ("noise",)
    observed = np.ones((200, 4), bool)
    observed[3, :3] = False
    with pytest.warns(UncoveredSamplesWarning):
        assert model.predict(new, observed=observed)[3] == -1
    coverage = model.coverage(new, observed=observed)
    assert coverage[3] == 0
    np.testing.assert_allclose(
        np.delete(coverage, 3), np.delete(model.coverage(new), 3)
    )


def test_frames_are_covered_in_the_order_of_their_labels(digits):
    old, new, _ = digits
    model = AverageKKM(10, random_state=0).fit(old)
    ids = [f"new {i}" for i in range(200)]
    frames = {name: pd.DataFrame(view, index=ids) for name, view in new.items()}
    frames["fourier"] = frames["fourier"][::-1]
    np.testing.assert_allclose(model.coverage(frames), model.coverage(new))


def test_models_that_keep_no_samples_say_so(digits):
    da = pytest.importorskip("dask.array")
    old, new, _ = digits
    lazy = {name: da.from_array(view, chunks=(100, -1)) for name, view in old.items()}
    model = SimpleMKKM(10, random_state=0, approximation=Nystroem(40)).fit(lazy)
    with pytest.raises(ValueError, match="AgreementKKM"):
        model.coverage(new)
