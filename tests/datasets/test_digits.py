"""The tables of the demo."""

import numpy as np

from mkclust.datasets import load
from mkclust.datasets.digits import digit_tables


def test_the_tables_of_the_demo_are_of_the_same_samples_in_different_orders():
    tables, digits = digit_tables()
    orders = {tuple(table.ids) for table in tables.values()}
    assert len(orders) == len(tables) == 4
    images, y = load("digits").views["pixels"].reshape(-1, 8, 8), load("digits").y
    for name, table in tables.items():
        assert sorted(table.ids) == sorted(digits)
        assert table.values.shape == (len(images), len(table.columns))
        assert len(set(table.columns)) == len(table.columns)
        numbers = [int(sample.removeprefix("image")) for sample in table.ids]
        assert [digits[sample] for sample in table.ids] == y[numbers].tolist()
        if name in ("rows", "columns"):
            axis = ("columns", "rows").index(name) + 1
            np.testing.assert_allclose(table.values, images[numbers].sum(axis=axis))
