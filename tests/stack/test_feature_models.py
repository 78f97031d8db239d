"""Models fitted on features: the answer of the kernels that these stand for."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.views import blob_views
from mkclust import METHODS, SimpleMKKM
from mkclust.kernels import Linear, Nystroem
from mkclust.metrics import adjusted_rand_index

WITH_FEATURES = [
    name for name, method in METHODS.items() if "approximation" in method().get_params()
]


def make_views(n=150):
    views, _ = blob_views(np.random.default_rng(0), n=n, k=3, strengths=(1.5, 1.0, 0.5))
    return dict(zip("abc", views, strict=True))


def fitted(X, approximation, seed=0, **fit_options):
    return SimpleMKKM(3, approximation=approximation, random_state=seed).fit(
        X, **fit_options
    )


@pytest.mark.parametrize("name", WITH_FEATURES)
def test_features_of_full_rank_give_the_answer_of_the_kernels(name):
    views, settings = make_views(), {"kernels": "gaussian", "random_state": 0}
    if name == "agreement-kkm":
        settings["neighbors"] = None  # with features it has none
    dense = METHODS[name](3, **settings).fit(views)
    model = METHODS[name](3, **settings, approximation=Nystroem(150)).fit(views)
    np.testing.assert_allclose(model.objective_, dense.objective_, rtol=2e-6)
    # The weights of SimpleMKKM are known to the root of its tolerance.
    np.testing.assert_allclose(model.weights_, dense.weights_, atol=1e-3)
    np.testing.assert_allclose(model.alignments_, dense.alignments_, atol=2e-3)
    np.testing.assert_array_equal(model.labels_, dense.labels_)
    np.testing.assert_allclose(
        model.embedding_.T @ model.embedding_, np.eye(3), atol=1e-10
    )
    turned = dict(reversed(views.items()))
    np.testing.assert_array_equal(model.predict(turned), model.labels_)
    np.testing.assert_allclose(model.approximation_error_, 0, atol=1e-10)


def test_landmarks_follow_the_seed_of_the_model_unless_they_have_their_own():
    views, pipeline = make_views(), make_pipeline(StandardScaler(), Nystroem(10))
    for map_, depends in (
        (Nystroem(10), True),
        (pipeline, True),
        (Nystroem(10, random_state=3), False),
    ):
        first, same, other = (fitted(views, map_, seed).weights_ for seed in (0, 0, 1))
        np.testing.assert_allclose(first, same, atol=1e-12)
        assert np.allclose(first, other, atol=1e-9) != depends


def test_what_has_no_features_is_refused():
    views = make_views()
    kernels = np.stack([view @ view.T for view in views.values()])
    for wrong in ("nystroem", 200, Nystroem):
        with pytest.raises(ValueError, match="approximation"):
            fitted(views, wrong)
    with pytest.raises(ValueError, match="kernels='precomputed'"):
        SimpleMKKM(3, kernels="precomputed", approximation=Nystroem(20)).fit(kernels)
    with pytest.raises(ValueError, match="n_clusters=20.*6 directions"):
        SimpleMKKM(20, approximation=Nystroem(2)).fit(views)
    with pytest.raises(
        ValueError, match="View 'a': n_components=151 landmarks of 150 rows"
    ):
        fitted(views, Nystroem(151))


def test_as_many_directions_as_centered_clusters_span_are_enough():
    y = np.arange(90) % 3
    # Of as many directions as centered clusters span.
    model = fitted([np.eye(3)[y]] * 2, Linear())
    assert adjusted_rand_index(y, model.labels_) == 1
    # Or what was lifted beside it would live as long.
    assert model.embedding_.base is None
