"""Fewer clusters than were asked for: a warning with both numbers."""

import numpy as np
import pytest

from mkclust import METHODS, AgreementKKM
from mkclust.exceptions import FewerClustersWarning

# Neighborhoods in a kernel of rank one may form as many clusters as are asked for.
INDUCTIVE = [
    name
    for name, method in METHODS.items()
    if hasattr(method, "predict") and method is not AgreementKKM
]


@pytest.mark.parametrize("name", INDUCTIVE)
def test_fewer_clusters_than_asked_for_are_warned_about_once_with_both_numbers(name):
    x = np.random.default_rng(0).normal(size=40)
    model = METHODS[name](4, center=False, normalize=False, random_state=0)
    if "rounding" in model.get_params():  # on a line, components have four clusters
        model.set_params(rounding="unit")
    with pytest.warns(
        FewerClustersWarning, match=r"2 nonempty clusters .* n_clusters=4"
    ) as log:
        model.fit(np.stack([np.outer(x, x)] * 2))
    np.testing.assert_array_equal(
        model.labels_ == model.labels_[0], (x > 0) == (x[0] > 0)
    )
    assert [entry.filename for entry in log] == [__file__]
