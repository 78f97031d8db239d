"""Simulated sets like AR10P: conditions take the places of neighbors of one class."""

import numpy as np
import pytest

import small_classes


@pytest.mark.parametrize(
    ("class_spread", "condition_spread", "low", "high"),
    [(0.5, 0.0, 0.99, 1.0), (0.0, 0.0, 0.0, 0.2), (0.3, 0.6, 0.0, 0.5)],
)
def test_the_nearest_samples_are_of_one_class_unless_conditions_are_stronger(
    class_spread, condition_spread, low, high
):
    views, classes, conditions = small_classes.simulate(
        13, class_spread, condition_spread, seed=0
    )
    assert len(np.unique(classes)) == 10
    # Every condition crosses every class once.
    assert len(set(zip(classes, conditions, strict=True))) == 130
    X = np.hstack(list(views.values()))
    shares = small_classes.same_class(np.corrcoef(X), classes)
    assert low <= shares["same class among 10 nearest"] <= high
