"""The experiment with missing views: what it takes out, and how it fills."""

import numpy as np
import pytest
from sklearn.impute import KNNImputer

from missing_views import Problem, fill_nearest, observed_mask

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("n_views", [2, 3, 5])
def test_masks_keep_a_view_of_every_sample_and_grow_with_the_rate(n_views):
    before = observed_mask("any", 200, n_views, 0, seed=3)
    assert before.all()
    for rate in (10, 30, 50, 70):
        observed = observed_mask("any", 200, n_views, rate, seed=3)
        assert observed.any(axis=1).all()
        assert not (observed & ~before).any()
        assert (observed.mean(axis=0) >= 1 - rate / 100).all()
        before = observed
    assert (before != observed_mask("any", 200, n_views, 70, seed=4)).any()


@pytest.mark.parametrize("rate", [30, 70])
def test_nearest_neighbors_fill_views_as_scikit_learn_fills_their_columns(rate):
    rng = np.random.default_rng(0)
    observed = observed_mask("any", 60, 3, rate, seed=0)
    views = {}
    for view in range(3):
        X = rng.normal(size=(60, 2 + view))
        views[f"view {view}"] = np.where(observed[:, [view]], X, np.nan)
    filled = fill_nearest(Problem(views, observed, np.zeros(60), 0))
    expected = KNNImputer().fit_transform(np.hstack(list(views.values())))
    np.testing.assert_allclose(np.hstack(list(filled.values())), expected, atol=1e-12)
