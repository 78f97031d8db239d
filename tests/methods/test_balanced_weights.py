"""Learned weights where views have different numbers of samples."""

import numpy as np
import pytest

from mkclust import METHODS, SimpleMKKM
from mkclust.datasets import load
from mkclust.metrics import adjusted_rand_index

pytestmark = pytest.mark.filterwarnings("ignore")
BALANCED = [name for name, method in METHODS.items() if method.BALANCES_KERNELS]


def digits(n=300, missing=0.0, seed=0):
    """Return views of digits, of which the first lacks some samples, and the classes."""
    data = load("digits")
    observed = np.ones((n, 4), dtype=bool)
    observed[:, 0] = np.random.default_rng(seed).random(n) >= missing
    return {name: view[:n] for name, view in data.views.items()}, observed, data.y[:n]


@pytest.mark.parametrize("name", BALANCED)
def test_a_view_with_few_samples_has_no_large_weight_for_that(name):
    views, observed, _ = digits(missing=0.8)
    complete = METHODS[name](10, random_state=0).fit(views)
    model = METHODS[name](10, random_state=0).fit(views, observed=observed)
    as_it_is = METHODS[name](10, impute="zero", random_state=0).fit(views, observed=observed)
    shares = [each.coefficients_[0] / each.coefficients_.sum() for each in (complete, model)]
    assert shares[1] < 3 * shares[0] + 0.05
    assert model.weights_[0] < complete.weights_[0] < as_it_is.weights_[0]
    assert np.array_equal(model.predict(views, observed=observed), model.labels_)


def test_coefficients_are_squares_of_weights_times_those_of_the_ratio_of_samples():
    views, observed, _ = digits(missing=0.6)
    model = SimpleMKKM(10, random_state=0).fit(views, observed=observed)
    ratio = 300 / observed[:, 0].sum()
    np.testing.assert_allclose(model.coefficients_, model.weights_**2 * [ratio**2, 1, 1, 1])
    # The certified problem is that of the kernels multiplied by these ratios.
    with_nan = {k: np.where(observed[:, [p]], X, np.nan) for p, (k, X) in enumerate(views.items())}
    values = np.linalg.eigvalsh(model.mixed_kernel(with_nan))
    assert values[-10:].sum() == pytest.approx(model.objective_, rel=1e-6)
    assert model.lower_bounds_[-1] <= model.objective_
    assert model.converged_
    assert model.duality_gap_ < 2e-6


def test_views_of_equally_many_samples_are_left_as_they_are():
    views, observed, _ = digits()
    observed[:100, 0] = observed[100:200, 1] = observed[150:250, 2] = observed[200:, 3] = False
    model = SimpleMKKM(10, random_state=0).fit(views, observed=observed)
    assert np.array_equal(model.coefficients_, model.weights_**2)


@pytest.mark.parametrize("name", ["simplemkkm", "mkkm"])
def test_a_view_that_few_samples_have_costs_the_clusters_little(name):
    views, observed, y = digits(n=400, missing=0.95)
    scores = [
        adjusted_rand_index(y, METHODS[name](10, impute=impute, random_state=0)
                            .fit(views, observed=observed).labels_)
        for impute in ("rescale", "zero")
    ]  # fmt: skip
    assert scores[0] > scores[1] + 0.05
