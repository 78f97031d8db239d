"""Whether clusters that follow the missingness are recognized, and others are not."""

import numpy as np
import pytest

from mkclust.fit.missingness import LEVEL, measure_missingness


def observed_at_random(rng, n_samples, n_views, rate):
    observed = rng.random((n_samples, n_views)) >= rate
    observed[~observed.any(axis=1), 0] = True
    return observed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "shares"), [(0.3, (0.5, 0.3, 0.2)), (0.04, (0.6, 0.38, 0.02))]
)
def test_false_alarms_are_as_seldom_as_the_level_says_with_rare_patterns(rate, shares):
    rng, alarms, n_rare, p_values = np.random.default_rng(0), 0, 0, []
    for _ in range(200):
        observed = observed_at_random(rng, 120, 5, rate)
        missingness = measure_missingness(
            rng.choice(3, 120, p=shares), observed, "abcde"
        )
        n_rare += np.sum(missingness.counts.sum(axis=1) == 1)
        alarms += missingness.follows
        p_values.append(min(missingness.p_value, *missingness.view_p_values))
    assert n_rare > 200  # patterns of one sample
    # Two are expected; seven or more happen once in two hundred times.
    assert alarms <= 6
    assert 1 <= np.sum(np.array(p_values) < 0.1) <= 35  # of 20 at most, on average


def test_patterns_are_recognized_that_no_single_view_shows():
    first, second = (
        (np.arange(400) % 2).astype(bool),
        (np.arange(400) // 2 % 2).astype(bool),
    )
    observed = np.column_stack([np.ones(400, bool), first, second])
    missingness = measure_missingness((first ^ second).astype(int), observed, "abc")
    assert missingness.follows
    assert missingness.followed_views == ()
    assert missingness.agreement == pytest.approx(1)
    assert "not those of any single view" in missingness.verdict()


def test_a_million_samples_make_no_alarm_of_a_small_difference():
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=1_000_000)
    observed = np.ones((1_000_000, 2), dtype=bool)
    observed[:, 1] = rng.random(len(labels)) >= np.where(labels == 0, 0.22, 0.2)
    missingness = measure_missingness(labels, observed, ["mrna", "mirna"])
    assert missingness.view_p_values[1] <= LEVEL
    assert not missingness.follows
    assert "too little to matter" in missingness.verdict()


def test_the_verdict_names_the_clusters_and_the_view():
    labels = np.repeat(np.arange(6), 50)
    observed = np.ones((300, 3), dtype=bool)
    observed[np.isin(labels, [2, 5]), 1] = False
    observed[::30, 0] = False
    missingness = measure_missingness(labels, observed, ["mrna", "mirna", "protein"])
    assert missingness.followed_views == ("mirna",)
    assert "100 % of cluster 2, 100 % of cluster 5" in missingness.verdict()


def test_neither_the_order_of_samples_nor_of_views_nor_of_clusters_changes_anything():
    rng = np.random.default_rng(0)
    labels, observed = rng.integers(3, size=90), observed_at_random(rng, 90, 4, 0.3)
    order, views = rng.permutation(90), [2, 0, 3, 1]
    one = measure_missingness(labels, observed, "abcd")
    other = measure_missingness(
        (labels[order] + 1) % 3, observed[order][:, views], "cadb"
    )
    assert one.agreement == pytest.approx(other.agreement, abs=1e-12)
    assert one.p_value == other.p_value
    np.testing.assert_allclose(
        one.view_p_values[views], other.view_p_values, rtol=1e-12, atol=1e-12
    )


def test_p_values_at_the_floor_of_the_permutations_are_shown_as_bounds():
    labels = np.repeat([0, 1, 2], 40)
    observed = np.ones((120, 2), dtype=bool)
    observed[85:, 1] = False
    missingness = measure_missingness(labels, observed, ["mrna", "mirna"])
    assert missingness.p_value == 0.001
    assert "p-value <= 0.001)" in missingness.verdict()
    scattered = np.ones((120, 2), dtype=bool)
    scattered[::7, 1] = False
    unrelated = measure_missingness(labels, scattered, ["mrna", "mirna"])
    assert unrelated.p_value > 0.05
    assert "<=" not in unrelated.verdict()
