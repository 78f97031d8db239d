"""Fits of samples that are missing from views, however that is known, and their new
samples."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from helpers.views import one_hot
from mkclust import SimpleMKKM, agreement
from mkclust.data import read_samples
from mkclust.exceptions import MissingViewsWarning, UncoveredSamplesWarning
from mkclust.kernels import KernelBank, Nystroem
from mkclust.methods import METHODS

N, K = 90, 3
# Methods whose similarities need not be positive semidefinite: which compare every two
# samples by the views that both have.
INDEFINITE = {"agreement-kkm"}
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning")]


def views_of(n=N, seed=0):
    """Return three views of three clusters, and the clusters."""
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    views = {
        name: 3 * rng.normal(size=(K, d))[y] + rng.normal(size=(n, d))
        for name, d in (("a", 4), ("b", 6), ("c", 5))
    }
    return views, y


def pattern(n=N, rate=0.3, seed=1, n_views=3):
    """Return which views have which samples; every sample is in one at least."""
    rng = np.random.default_rng(seed)
    observed = rng.random((n, n_views)) >= rate
    nowhere = np.flatnonzero(~observed.any(axis=1))
    observed[nowhere, rng.integers(n_views, size=len(nowhere))] = True
    return observed


def with_nan(views, observed):
    """Return views with rows of NaN for samples that they lack."""
    return {
        name: np.where(seen[:, None], view, np.nan)
        for (name, view), seen in zip(views.items(), observed.T, strict=True)
    }


def kernels_with_nan(views, observed):
    """Return one kernel per view, NaN in the rows and columns of samples that it
    lacks."""
    bank = KernelBank(widths=(1.0,), polynomials=(), linear=None)
    kernels = np.array(bank.fit_transform(views))
    for kernel, seen in zip(kernels, observed.T, strict=True):
        kernel[~seen], kernel[:, ~seen] = np.nan, np.nan
    return kernels


@pytest.fixture(scope="module")
def data():
    return (*views_of(), pattern())


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("missing_views", ["zero", "rescale"])
def test_every_method_clusters_samples_that_are_missing_from_views(
    name, missing_views, data
):
    views, y, observed = data
    X = with_nan(views, observed)
    method = METHODS[name](K, missing_views=missing_views, random_state=0)
    if "rounding" in method.get_params():
        method.set_params(rounding="unit")
    model = method.fit(X)
    assert model.labels_.shape == (N,)
    np.testing.assert_array_equal(model.observed_, observed)
    assert adjusted_rand_score(y, model.labels_) > 0.3
    if name not in INDEFINITE:
        assert np.linalg.eigvalsh(model.mixed_kernel(X))[0] > -1e-10
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("kernels", ["auto", "on-the-fly"])
def test_rows_of_nan_masks_and_ids_give_the_same(kernels, data):
    views, _, observed = data
    ids = [f"s{i:02d}" for i in range(N)]
    frames = {
        name: pd.DataFrame(view, index=ids)[seen].sample(frac=1, random_state=0)
        for (name, view), seen in zip(views.items(), observed.T, strict=True)
    }
    settings_ = {"kernels": kernels, "random_state": 0}
    by_nan = SimpleMKKM(K, **settings_).fit(with_nan(views, observed))
    by_mask = SimpleMKKM(K, **settings_).fit(views, observed=observed)
    by_id = SimpleMKKM(K, join="outer", **settings_).fit(frames)
    np.testing.assert_array_equal(by_mask.labels_, by_nan.labels_)
    np.testing.assert_allclose(by_mask.weights_, by_nan.weights_, atol=1e-12)
    np.testing.assert_allclose(by_id.weights_, by_nan.weights_, atol=1e-6)
    labels = pd.Series(by_id.labels_, index=by_id.sample_ids_)[ids]
    assert adjusted_rand_score(labels, by_nan.labels_) == 1
    np.testing.assert_array_equal(by_id.predict(frames), labels[by_id.sample_ids_])


def test_kernels_with_rows_and_columns_of_nan_are_those_of_the_samples_left(data):
    views, _, observed = data
    kernels = kernels_with_nan(views, observed)
    model = SimpleMKKM(K, random_state=0, kernels="precomputed").fit(kernels)
    parts = [
        kernel[np.ix_(seen, seen)]
        for kernel, seen in zip(kernels, observed.T, strict=True)
    ]
    compact = SimpleMKKM(K, random_state=0, kernels="precomputed").fit(
        parts, observed=observed
    )
    np.testing.assert_array_equal(model.labels_, compact.labels_)
    np.testing.assert_array_equal(model.predict(kernels), model.labels_)
    some = kernels[:, 5:25]
    np.testing.assert_array_equal(model.predict(some), model.labels_[5:25])
    lean = [kernel[:, seen] for kernel, seen in zip(some, observed.T, strict=True)]
    np.testing.assert_array_equal(model.predict(lean), model.labels_[5:25])


def test_a_model_of_complete_samples_clusters_new_ones_that_lack_views():
    views, y = views_of(200)
    train = {name: view[:150] for name, view in views.items()}
    model = SimpleMKKM(K, random_state=0).fit(train)
    new, observed = {name: view[150:] for name, view in views.items()}, pattern(50, 0.5)
    labels = model.predict(with_nan(new, observed))
    np.testing.assert_array_equal(labels, model.predict(new, observed=observed))
    assert adjusted_rand_score(y[150:], labels) > 0.6
    rows = model.transform(with_nan(new, observed))
    complete = observed.all(axis=1)
    np.testing.assert_allclose(
        rows[complete], model.transform(new)[complete], atol=1e-12
    )
    one = {name: view[:1] for name, view in new.items()} | {
        "b": np.full((1, 6), np.nan)
    }
    assert model.predict(one).shape == (1,)


def test_a_model_is_asked_about_the_samples_that_it_was_fitted_on(data):
    views, _, observed = data
    model = SimpleMKKM(K, random_state=0).fit(with_nan(views, observed))
    other = observed.copy()
    other[0] = ~other[0] if not other[0].all() else [True, True, False]
    other[0, 0] |= not other[0].any()
    with pytest.raises(ValueError, match="lacks other samples"):
        model.mixed_kernel(read_samples(views, observed=other))


@pytest.mark.filterwarnings("default::UserWarning")
def test_another_method_is_advised_if_much_is_missing_that_cannot_be_learned(data):
    views, _, observed = data
    X = with_nan(views, observed)
    with pytest.warns(
        MissingViewsWarning, match="AgreementKKM.*missing_views='rescale'"
    ):
        METHODS["lmkkm"](K, random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MissingViewsWarning)
        METHODS["lmkkm"](K, missing_views="rescale", random_state=0).fit(X)


LEARNING = ["simplemkkm", "mkkm", "avg-kkm"]


@pytest.mark.parametrize("name", LEARNING)
def test_what_is_learned_of_missing_samples_finds_no_less_than_rescaling(name):
    views, y = views_of(200)
    X = with_nan(views, pattern(200, 0.5))
    zero, rescaled, model = (
        METHODS[name](K, missing_views=missing_views, random_state=0).fit(X)
        for missing_views in ("zero", "rescale", "learn")
    )
    for each in (zero, rescaled, model):
        np.testing.assert_array_equal(each.predict(X), each.labels_)
    least = max(adjusted_rand_score(y, rescaled.labels_), 0.9)
    assert adjusted_rand_score(y, model.labels_) >= least
    assert (np.diff(model.fill_history_) * (-1 if name == "mkkm" else 1) >= 0).all()
    assert model.fill_history_[0] == pytest.approx(zero.objective_, rel=1e-5)
    assert model.objective_ == model.fill_history_[-1]
    assert not hasattr(zero, "fill_history_")
    # What was learned agrees with every view; agreement is of what was observed.
    np.testing.assert_allclose(model.agreement_.shares, zero.agreement_.shares)
    assert np.linalg.eigvalsh(model.mixed_kernel(X))[0] > -1e-9


def test_methods_that_cannot_learn_what_is_missing_refuse(data):
    X = with_nan(data[0], data[2])
    learning = {name for name, method in METHODS.items() if method.LEARNS_MISSING}
    assert learning == set(LEARNING)
    for method, options in (
        ("lmkkm", {}),
        ("simplemkkm", {"approximation": Nystroem(10)}),
    ):
        with pytest.raises(ValueError, match="missing_views='learn'"):
            METHODS[method](K, missing_views="learn", **options).fit(X)


def test_a_mask_that_is_passed_for_labels_is_refused(data):
    views, _, observed = data
    with pytest.raises(ValueError, match="observed="):
        SimpleMKKM(K).fit(views, observed)


@pytest.mark.parametrize("name", ["agreement-kkm", "anchored-mkkm"])
@pytest.mark.parametrize("missing_views", ["zero", "rescale"])
def test_samples_that_only_a_view_set_aside_has_change_nothing(
    name, missing_views, data
):
    views, _, observed = data
    observed = observed.copy()
    observed[:5] = False
    noise = np.random.default_rng(0).normal(size=(N, 5))
    model, alone = (
        METHODS[name](K, missing_views=missing_views, random_state=0) for _ in range(2)
    )
    with pytest.warns(UncoveredSamplesWarning, match=f"5 of {N} samples") as caught:
        model.fit(with_nan(views, observed) | {"noise": noise})
    assert caught[0].filename == __file__
    assert model.set_aside_ == ("noise",)
    assert model.uncovered_samples_.tolist() == [0, 1, 2, 3, 4]
    alone.fit({name: view[5:] for name, view in with_nan(views, observed).items()})
    np.testing.assert_array_equal(model.labels_[5:], alone.labels_)
    np.testing.assert_allclose(model.weights_[:3], alone.weights_, rtol=1e-6)
    assert set(model.labels_[:5].tolist()) == {-1}
    assert not model.embedding_[:5].any()


@pytest.mark.parametrize("missing", [0.3, 0.7])
def test_p_values_of_agreement_are_right_if_samples_are_missing(missing):
    p_values = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        views = [
            rng.normal(size=(100, 8)),
            one_hot(rng, 100, 3),
            rng.normal(size=(100, 1)),
        ]
        views = {
            f"view {p}": X + 1e-3 * rng.normal(size=X.shape)
            for p, X in enumerate(views)
        }
        found = agreement(
            with_nan(views, pattern(100, missing, seed)), kernels="gaussian"
        )
        assert not found.any_share
        p_values.extend(found.p_values[np.triu_indices(3, 1)])
    # Of 120, one in ten below a tenth is expected, and 21 or more one time in two
    # hundred.
    assert np.sum(np.array(p_values) < 0.1) <= 21
    assert np.sum(np.array(p_values) < 0.01) <= 5
    assert min(p_values) > 1e-5
