"""The similarities by which a model clusters, computed again after the fit."""

import warnings

import numpy as np
import pytest

from helpers.kernels import standardized
from helpers.views import blob_views
from mkclust import LMKKM, METHODS, ONKC, AverageKKM, KernelBank
from mkclust.fit.base import SUM
from mkclust.kernels import Nystroem
from mkclust.stack import as_stack

pytestmark = pytest.mark.slow

N, K = 60, 3
SOME = [41, 3, 17, 3, 59]
# Methods that say so.
MIXING = [name for name, method in METHODS.items() if method.SIMILARITIES == SUM]


@pytest.fixture(scope="module")
def views():
    found, _ = blob_views(np.random.default_rng(0), n=N, k=K)
    return dict(zip(("shape", "color", "text"), found, strict=True))


@pytest.fixture(scope="module")
def kernels(views):
    bank = KernelBank(widths=(1.0,), polynomials=((1, 2),), linear="linear")
    return bank.fit_transform(views)[:, :N]


def fitted(method, X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method(K, random_state=0, **options).fit(X)


@pytest.mark.parametrize("name", MIXING)
@pytest.mark.parametrize("options", [{}, {"center": False}, {"normalize": False}])
def test_it_is_the_sum_of_the_standardized_kernels_by_the_coefficients(
    name, options, kernels
):
    model = fitted(METHODS[name], kernels, **options)
    assert hasattr(model, "coefficients_"), "SIMILARITIES has to say what it holds"
    found, parts = model.mixed_kernel(kernels), standardized(kernels, **options)
    np.testing.assert_allclose(
        found, np.tensordot(model.coefficients_, parts, 1), atol=1e-10
    )
    np.testing.assert_array_equal(found, found.T)


def test_lmkkm_mixes_by_the_weights_of_both_samples(kernels):
    model = fitted(LMKKM, kernels)
    theta = model.sample_weights_.T
    expected = (theta[:, :, None] * theta[:, None] * standardized(kernels)).sum(axis=0)
    np.testing.assert_allclose(model.mixed_kernel(kernels), expected, atol=1e-10)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("form", ["views", "kernels"])
def test_some_samples_are_a_part_of_all_in_any_order(name, form, views, kernels):
    X = views if form == "views" else kernels
    model = fitted(METHODS[name], X)
    whole = model.mixed_kernel(X)
    assert whole.shape == (N, N)
    assert whole.dtype == np.float64
    np.testing.assert_allclose(
        model.mixed_kernel(X, SOME), whole[np.ix_(SOME, SOME)], atol=1e-10
    )
    assert model.mixed_kernel(X, []).shape == (0, 0)


@pytest.mark.parametrize("method", [AverageKKM, ONKC])
def test_repaired_kernels_are_repaired_again(method, kernels):
    indefinite = kernels - 0.3 * np.eye(N) * np.trace(kernels[0]) / N
    model = fitted(method, indefinite, psd="shift")
    found = model.mixed_kernel(indefinite)
    assert np.linalg.eigvalsh(found).min() > -1e-8
    if method is AverageKKM:
        repaired = as_stack(indefinite, psd="shift").among().entries.mean(axis=0)
        np.testing.assert_allclose(found, repaired, atol=1e-8)
    some = model.mixed_kernel(indefinite, SOME)
    np.testing.assert_allclose(some, found[np.ix_(SOME, SOME)], atol=1e-8)


@pytest.mark.parametrize(
    "samples", [[0, N], [-1], [0.5], np.ones(N, dtype=bool), [[0, 1]], 3]
)
def test_samples_that_are_not_there_are_refused(samples, views):
    with pytest.raises(ValueError, match=f"samples .* from 0 to {N - 1}"):
        fitted(AverageKKM, views).mixed_kernel(views, samples)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("simplemkkm", "views"),
        ("lmkkm", "kernels"),
        ("lf-mvc", "features"),
        ("lkam", "views"),
    ],
)
def test_other_samples_are_refused(name, form, views, kernels):
    options = {"approximation": Nystroem(20)} if form == "features" else {}
    X = dict(enumerate(kernels)) if form == "kernels" else views
    options |= {"kernels": "precomputed"} if form == "kernels" else {}
    model = fitted(METHODS[name], X, **options)
    fewer = {
        n: each[1:, 1:] if form == "kernels" else each[1:] for n, each in X.items()
    }
    with pytest.raises(
        ValueError, match="X has 59 samples, the model was fitted on 60"
    ):
        model.mixed_kernel(fewer)
    with pytest.raises(ValueError, match="the model was fitted on"):
        model.mixed_kernel(dict(list(X.items())[:1]))
    turned = {
        n: each[::-1, ::-1] if form == "kernels" else each[::-1]
        for n, each in X.items()
    }
    if form != "features":
        with pytest.raises(
            ValueError, match="other samples than the model was fitted on"
        ):
            model.mixed_kernel(turned)
    again = model.mixed_kernel(dict(reversed(X.items())))
    np.testing.assert_allclose(again, model.mixed_kernel(X), atol=1e-10)
