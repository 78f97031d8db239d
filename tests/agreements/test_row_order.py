"""Whether kernels follow the order of their rows: trends, periods, and what is none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkclust.agreements.row_order import (
    Rows,
    alike_if_shifted,
    may_be_by_order,
    order_p_values,
    spread_rows,
)


def inner_products(X):
    """Return the inner products of the rows of one view, as one kernel."""
    return Rows((X @ X.T)[None])


def in_random_order(rng, n):
    """Return views of exchangeable rows."""
    places = 3 * rng.normal(size=(4, 5))[rng.integers(4, size=n)]
    return {
        "normal": rng.normal(size=(n, 3)),
        "one column": rng.normal(size=(n, 1)),
        "outliers": rng.standard_t(1, size=(n, 2)),
        "clusters": places + rng.normal(size=(n, 5)),
        "two levels": np.eye(2)[rng.permutation(n) % 2],
    }


@pytest.mark.parametrize("n_windows", [1, 2])
def test_exchangeable_rows_have_valid_p_values(n_windows):
    found = {}
    for seed in range(100):
        for name, X in in_random_order(np.random.default_rng(seed), 48).items():
            rows = Rows((X @ X.T)[None], n_windows)
            found.setdefault(name, []).append(order_p_values(rows)[0])
    for p_values in map(np.array, found.values()):
        for level in (0.2, 0.05, 0.01):
            expected = level * len(p_values)
            assert np.sum(p_values < level) <= expected + 3 * np.sqrt(expected)


@pytest.mark.slow
@pytest.mark.parametrize("n", [40, 120])
def test_exchangeable_rows_are_not_taken_for_ordered_in_two_thousand_views(n):
    p_values = []
    for seed in range(400):
        for X in in_random_order(np.random.default_rng(seed), n).values():
            p_values.append(order_p_values(inner_products(X))[0])
    p_values = np.array(p_values)
    assert p_values.min() > 1e-5
    for level in (0.01, 0.001):
        expected = level * len(p_values)
        assert np.sum(p_values < level) <= expected + 3 * np.sqrt(expected)


def test_trends_and_periods_are_followed():
    rng, t = np.random.default_rng(0), np.arange(200)
    periods = np.sin(t / 3), np.sin(2 * np.pi * t / 200)
    for signal in (4 * t / 200, np.exp(-t / 50), *periods):
        X = 3 * signal[:, None] * rng.normal(size=5) + rng.normal(size=(200, 5))
        assert order_p_values(inner_products(X))[0] < 1e-5
        shuffled = rng.permutation(X)
        assert order_p_values(inner_products(shuffled))[0] > 1e-3


@pytest.mark.parametrize("n_groups", [2, 3, 5, 10])
def test_groups_that_take_turns_are_no_order(n_groups):
    rng = np.random.default_rng(0)
    groups = np.arange(200) % n_groups
    X = 3 * rng.normal(size=(n_groups, 8))[groups] + rng.normal(size=(200, 8))
    assert order_p_values(inner_products(X))[0] == 1


def test_outliers_that_are_neighbors_in_two_views_are_no_order():
    rng = np.random.default_rng(0)
    for n_outliers in (1, 2, 3):
        views = [rng.normal(size=(100, 2)) for _ in range(2)]
        for X in views:
            X[40 : 40 + n_outliers] *= 1000
        assert not may_be_by_order(Rows(np.stack([X @ X.T for X in views]))).any()


def test_kernels_without_entries_follow_nothing():
    assert order_p_values(Rows(np.zeros((2, 30, 30)))).tolist() == [1, 1]


def test_a_trend_is_as_much_alike_if_shifted_and_groups_in_order_are_not():
    rng, t = np.random.default_rng(0), np.linspace(0, 1, 200)
    groups = np.repeat([0, 1, 2], [70, 60, 70])

    def two(places):
        views = [places @ rng.normal(size=(places.shape[1], 5)) for _ in range(2)]
        return Rows(np.stack([(X + rng.normal(size=X.shape)) @ X.T for X in views]))

    assert alike_if_shifted(two(6 * t[:, None]))[0, 1]
    assert not alike_if_shifted(two(6 * np.eye(3)[groups]))[0, 1]


@given(st.integers(8, 5000))
def test_rows_that_are_averaged_are_neighbors_and_spread_over_all(n):
    rows = spread_rows(n)
    assert len(rows) <= 256
    assert (np.diff(rows.reshape(-1)) > 0).all()
    assert (np.diff(rows, axis=1) == 1).all()
    assert rows.max() < n
    assert rows.max() >= n - 1 - n / len(rows)
    if n <= 256:
        np.testing.assert_array_equal(rows[:, 0], np.arange(n))
