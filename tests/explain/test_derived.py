"""Functions of columns are recognized, and variables that share nothing with them are
not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkclust.explain.clustered_on import ClusteredView, why_clustered
from mkclust.explain.derived import columns_of, is_cut, is_filled_copy, is_merge, is_sum

COLUMNS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy": lambda rng, shape: rng.standard_cauchy(size=shape),
    "years": lambda rng, shape: rng.normal(60, 12, size=shape).round(),
    "counts": lambda rng, shape: rng.poisson(1.0, size=shape),
    "zeros": lambda rng, shape: (
        rng.lognormal(size=shape) * (rng.uniform(size=shape) < 0.3)
    ),
    "marks": lambda rng, shape: rng.uniform(size=shape) < 0.1,
    "levels": lambda rng, shape: rng.integers(5, size=shape),
}
VARIABLES = COLUMNS | {
    "halves": lambda rng, n: rng.integers(2, size=n),
    "rare": lambda rng, n: rng.permutation(n) < 4,
    "centers": lambda rng, n: rng.integers(30, size=n),
}


def count_recognized(rng, n, n_columns, n_tables):
    """Return how many of independent variables are taken for functions of columns."""
    found = 0
    for make_table in COLUMNS.values():
        for _ in range(n_tables):
            table = make_table(rng, (n, n_columns)).astype(float)
            view = ClusteredView((), np.arange(n), table)
            values = [make(rng, n).astype(float) for make in VARIABLES.values()]
            found += sum(bool(why_clustered([view], ["v"], [each])) for each in values)
    return found


@pytest.mark.parametrize(("n", "n_columns"), [(12, 20), (40, 60), (300, 8)])
def test_independent_variables_of_all_kinds_are_not_recognized(n, n_columns):
    assert count_recognized(np.random.default_rng(n), n, n_columns, 1) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "n_columns"), [(12, 20), (20, 100), (30, 3), (60, 50), (300, 8)]
)
def test_of_many_independent_variables_hardly_any_is_recognized(n, n_columns):
    assert count_recognized(np.random.default_rng(n), n, n_columns, 15) <= 2


@given(st.integers(0, 10_000), st.integers(40, 200), st.integers(2, 5))
@settings(max_examples=25, deadline=None)
def test_quantile_classes_are_cuts_in_whatever_order_they_are_numbered(
    seed, n, n_levels
):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n, 6))
    # Without gaps: borders in gaps are those of groups, not of cuts.
    table[:, 3] = rng.permutation(n) + rng.uniform(0, 0.2, size=n)
    ranks = table[:, 3].argsort().argsort()
    classes = rng.permutation(n_levels)[ranks * n_levels // n].astype(float)
    assert is_cut(classes, columns_of(table))
    assert not is_cut(rng.permutation(classes), columns_of(table))


def test_cuts_leave_samples_without_a_value_out():
    rng = np.random.default_rng(0)
    column = rng.normal(size=(100, 1))
    classes = (column[:, 0] > 0.3).astype(float)
    is_empty = rng.uniform(size=100) < 0.3
    classes[is_empty] = rng.integers(2, size=is_empty.sum())
    assert not is_cut(classes, columns_of(column))
    column[is_empty] = np.nan
    assert is_cut(classes, columns_of(column))


def test_merged_categories_are_recognized_and_others_are_not():
    rng = np.random.default_rng(0)
    stages = rng.integers(6, size=120)
    assert is_merge(np.array([0, 2, 1, 1, 0, 2])[stages], stages)
    assert not is_merge(rng.integers(3, size=120).astype(float), stages)
    assert not is_merge(np.where(rng.uniform(size=120) < 0.2, 1.0, stages // 2), stages)


def test_copies_are_recognized_in_any_unit_up_to_a_quarter_of_filled_cells():
    rng = np.random.default_rng(0)
    table = rng.normal(60, 12, size=(200, 5)).round()
    values = 5 / 9 * (table[:, 2] - 32)
    values[:50] = rng.permutation(values)[:50]
    assert is_filled_copy(values, columns_of(table))
    assert is_filled_copy(
        np.where(np.arange(200) % 2, values.min() - 1, values), columns_of(table)
    )
    assert not is_filled_copy(table[:, 2] + rng.normal(size=200), columns_of(table))


def test_sums_are_not_recognized_by_single_samples_far_from_the_others():
    rng = np.random.default_rng(0)
    table, values = rng.normal(size=(50, 4)), rng.normal(size=50)
    table[0, 0] = table[1, 1] = values[0] = 1e6
    values[1] = -1e6
    assert not is_sum(values, columns_of(table), columns_of(table))
    assert is_sum(table[:, 0] + 3 * table[:, 1], columns_of(table), columns_of(table))
