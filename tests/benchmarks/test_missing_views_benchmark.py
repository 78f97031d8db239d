"""The experiment with missing views: what it takes out."""

import pytest

from missing_views import observed_mask

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
