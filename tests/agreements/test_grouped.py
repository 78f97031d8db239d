"""Alignments of samples in groups: exact moments under the permutations that respect
them."""

from itertools import permutations, product

import numpy as np
import pytest

from mkclust.agreements.grouped import (
    compare_within_groups,
    draw_equally,
    draw_members,
    orders_within_groups,
)


def random_kernels(rng, groups, n_kernels=2):
    """Return kernels of random features that differ between groups."""
    features = rng.normal(size=(n_kernels, len(groups), 3))
    features += 3 * rng.normal(size=(n_kernels, groups.max() + 1, 3))[:, groups]
    return features @ features.transpose(0, 2, 1)


def all_orders(groups):
    """Return every order of the samples that shuffles them within their groups."""
    members = [np.flatnonzero(groups == g) for g in np.unique(groups)]
    for parts in product(*(permutations(each) for each in members)):
        order = np.empty(len(groups), int)
        for places, part in zip(members, parts, strict=True):
            order[places] = part
        yield order


@pytest.mark.parametrize("sizes", [(3, 4), (2, 2, 3), (1, 5), (4, 1, 2)])
def test_over_all_permutations_within_groups_mean_and_variance_are_as_stated(sizes):
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    K, L = random_kernels(rng, groups)
    found = compare_within_groups(np.array([K, L]), groups)
    drawn = [
        compare_within_groups(np.array([K, L[np.ix_(order, order)]]), groups).products[
            0, 1
        ]
        for order in all_orders(groups)
    ]
    assert np.mean(drawn) == pytest.approx(0, abs=1e-9 * np.std(drawn))
    assert found.deviations[0, 1] == pytest.approx(np.std(drawn))
    assert found.scores[0, 1] == pytest.approx(found.products[0, 1] / np.std(drawn))
    assert np.all(np.abs(found.scores) <= found.largest_scores * (1 + 1e-9))


def test_differences_between_groups_do_not_matter_within_them():
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(4), 6)
    X = rng.normal(size=(2, 24, 3))
    moved = X + 10 * rng.normal(size=(2, 4, 3))[:, groups]
    first, second = (
        compare_within_groups(each @ each.transpose(0, 2, 1), groups).scores
        for each in (X, moved)
    )
    np.testing.assert_allclose(first, second, rtol=1e-6)


def test_orders_within_groups_keep_every_sample_in_its_group():
    groups = np.repeat([0, 1, 2], [2, 5, 1])
    orders = orders_within_groups(groups, 50, np.random.default_rng(0))
    assert np.all(groups[orders] == groups)
    assert np.all(np.sort(orders, axis=1) == np.arange(8))
    assert len(np.unique(orders, axis=0)) > 40


def test_equally_many_members_of_every_group_are_drawn():
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat([7, 3, 5], [4, 9, 6]))
    rows = draw_equally(groups, 1000, rng)
    assert rows.shape == (3, 4)
    assert groups[rows].tolist() == [[3] * 4, [5] * 4, [7] * 4]
    assert len(np.unique(rows)) == 12
    assert draw_equally(groups, 6, rng).shape == (3, 2)
    many = draw_equally(np.arange(100), 40, rng)
    assert many.shape == (40, 1)
    assert len(np.unique(many)) == 40


@pytest.mark.parametrize(("n_groups", "size"), [(200, 5), (4, 300), (600, 1)])
def test_whole_groups_or_large_parts_of_them_are_drawn(n_groups, size):
    groups = np.tile(np.arange(n_groups), size)
    drawn = draw_members(groups, 512, np.random.default_rng(0))
    assert 500 <= len(drawn) <= 512
    assert np.all(np.diff(drawn) > 0)
    assert set(np.unique(groups[drawn], return_counts=True)[1]) == {min(size, 512 // 4)}
