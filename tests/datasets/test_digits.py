"""The tables of the demo."""

import numpy as np

from mkclust.datasets import load
from mkclust.datasets.digits import digit_tables


def test_the_tables_of_the_demo_are_of_the_same_samples_in_different_orders():
    tables, digits = digit_tables()
    assert len({tuple(table.index) for table in tables.values()}) == len(tables) == 4
    images = load("digits").views["pixels"].reshape(-1, 8, 8)
    np.testing.assert_array_equal(digits, load("digits").y)
    for table in tables.values():
        assert sorted(table.index) == sorted(digits.index)
        assert table.columns.is_unique
    for axis, name in ((1, "columns"), (2, "rows")):
        np.testing.assert_allclose(tables[name].loc[digits.index], images.sum(axis=axis))
