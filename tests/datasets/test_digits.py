"""The tables of the demo."""

import numpy as np
from sklearn.metrics import adjusted_rand_score

from mkclust import AgreementKKM
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


def test_the_demo_shows_data_on_which_views_together_tell_more_than_each_alone():
    tables, digits = digit_tables()
    ids = list(digits)[:600]
    views = {
        name: table.values[[table.ids.index(sample) for sample in ids]]
        for name, table in tables.items()
    }
    y = [digits[sample] for sample in ids]

    def score(some):
        labels = AgreementKKM(10, random_state=0).fit(some).labels_
        return adjusted_rand_score(y, labels)

    alone = [score({name: view}) for name, view in views.items()]
    assert score(views) > max(alone) + 0.1
