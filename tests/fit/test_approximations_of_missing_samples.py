"""A view that is set aside changes nothing, in fits with features of incomplete views
too."""

import numpy as np
import pytest

from mkclust import AnchoredMKKM
from mkclust.kernels import Nystroem

N, K = 150, 3


def incomplete_views(seed):
    """Return three views of three clusters and one of noise; each lacks a third of the
    samples."""
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=N)
    views = {
        name: 1.2 * rng.normal(size=(K, 6))[y] + rng.normal(size=(N, 6))
        for name in "abc"
    }
    views["noise"] = rng.normal(size=(N, 6))

    lacks = rng.random((N, 4)) < 0.35
    lacks[np.arange(N), rng.integers(3, size=N)] = False
    for rows, missing in zip(views.values(), lacks.T, strict=True):
        rows[missing] = np.nan
    return views


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("missing_views", ["rescale", "zero"])
@pytest.mark.parametrize("seed", range(3))
def test_a_view_that_is_set_aside_changes_no_weights_labels_or_predictions(
    seed, missing_views
):
    views = incomplete_views(seed)
    agreeing = {name: rows for name, rows in views.items() if name != "noise"}
    options = {
        "approximation": Nystroem(40),
        "missing_views": missing_views,
        "random_state": 0,
    }

    model = AnchoredMKKM(K, **options).fit(views)
    alone = AnchoredMKKM(K, **options).fit(agreeing)
    assert model.set_aside_ == ("noise",)
    np.testing.assert_allclose(model.weights_[:3], alone.weights_, atol=1e-6)
    assert model.objective_ == pytest.approx(alone.objective_, rel=1e-9)
    np.testing.assert_array_equal(model.labels_, alone.labels_)

    # Whether new samples bring the view does not matter either.
    np.testing.assert_array_equal(model.predict(views), model.labels_)
    np.testing.assert_array_equal(model.predict(agreeing), model.labels_)
