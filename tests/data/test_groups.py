"""Groups of samples: how they are read, and orders that respect them."""

import numpy as np
import pandas as pd
import pytest

from mkclust.data.groups import permutation_of_groups, read_groups


def test_a_series_of_groups_is_read_by_the_ids_of_the_samples():
    groups = pd.Series(["x", "y", "x"], index=["c", "a", "b"])
    assert read_groups(groups, pd.Index(["a", "b", "c"])).tolist() == [0, 1, 1]
    frame = groups.to_frame("family")
    assert read_groups(frame, pd.Index(["a", "b", "c"])).tolist() == [0, 1, 1]
    with pytest.raises(ValueError, match="groups lacks 1 of .* 'd'"):
        read_groups(groups, pd.Index(["a", "b", "c", "d"]))


@pytest.mark.parametrize(
    "names", [[3, 3, 7], ["3", "3", "7"], [0.5, 0.5, 1], [True, True, False]]
)
def test_groups_may_be_named_by_numbers_text_or_truth_values(names):
    assert read_groups(names, 3).tolist() == [0, 0, 1]
    assert read_groups(np.array(names), 3).tolist() == [0, 0, 1]


def test_a_sample_without_a_group_is_a_group_of_its_own():
    assert read_groups(["a", np.nan, "a", None], 4).tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([0, 1], "groups has 2 rows"),
        (["a"] * 4, "groups has one group"),
        (np.ones((4, 2)), "groups has 2 columns"),
    ],
)
def test_groups_that_say_nothing_of_four_samples_are_refused(groups, message):
    with pytest.raises(ValueError, match=message):
        read_groups(groups, 4)


def test_every_order_that_respects_the_groups_is_as_likely_and_no_other_occurs():
    groups = np.array([0, 1, 0, 1, 2])
    rng = np.random.default_rng(0)
    orders = [tuple(permutation_of_groups(groups, rng).tolist()) for _ in range(1600)]
    found, counts = np.unique(orders, axis=0, return_counts=True)
    # Two orders within each of two pairs, and the pairs may change places.
    assert len(found) == 8
    assert np.all(np.abs(counts - 200) < 5 * np.sqrt(200))
    for order in found:
        pairs = groups[:, None] == groups
        np.testing.assert_array_equal(pairs[np.ix_(order, order)], pairs)
