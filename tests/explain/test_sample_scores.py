"""How well each sample fits into its cluster."""

import numpy as np
import pytest
from sklearn.metrics import silhouette_samples

from helpers.views import blob_views
from mkclust import METHODS, AverageKKM, sample_scores


@pytest.fixture(scope="module")
def views():
    return blob_views(np.random.default_rng(0), n=60, k=3)[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_silhouettes_are_scikit_learns_in_the_unit_rows_for_every_method(name, views):
    is_rounded = "rounding" in METHODS[name]().get_params()
    options = {"rounding": "unit"} if is_rounded else {}
    model = METHODS[name](3, random_state=0, **options).fit(views)
    scores = sample_scores(model)
    H = np.asarray(model.embedding_)
    rows = H / np.linalg.norm(H, axis=1, keepdims=True)
    np.testing.assert_allclose(
        scores.silhouette, silhouette_samples(rows, model.labels_)
    )
    centers = np.array([rows[model.labels_ == c].mean(axis=0) for c in range(3)])
    cosines = rows @ (centers / np.linalg.norm(centers, axis=1, keepdims=True)).T
    own = cosines[np.arange(60), model.labels_]
    cosines[np.arange(60), model.labels_] = -2
    np.testing.assert_allclose(scores.margin, own - cosines.max(axis=1), atol=1e-12)


def test_of_many_samples_silhouettes_go_by_centers_and_say_much_the_same(views):
    model = AverageKKM(3, random_state=0).fit(views)
    exact, fast = sample_scores(model), sample_scores(model, most_compared=59)
    assert np.abs(fast.silhouette).max() <= 1
    assert np.corrcoef(exact.silhouette, fast.silhouette)[0, 1] > 0.9
    np.testing.assert_allclose(exact.margin, fast.margin, rtol=1e-12, atol=1e-12)


def test_a_single_cluster_has_neither_and_a_sample_alone_has_the_silhouette_zero(views):
    single = sample_scores(AverageKKM(1).fit(views))
    assert np.isnan(single.silhouette).all()
    assert np.isnan(single.margin).all()
    model = AverageKKM(3, random_state=0).fit(views)
    # And 3 has no samples.
    model.labels_ = np.where(np.arange(60) == 7, 4, model.labels_)
    for scores in (sample_scores(model), sample_scores(model, most_compared=0)):
        assert scores.silhouette[7] == 0
        assert np.isfinite(scores.silhouette).all()
        assert np.isfinite(scores.margin).all()
