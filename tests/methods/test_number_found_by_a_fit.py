"""``n_clusters="auto"``: a fit takes the number that is suggested."""

import numpy as np
import pytest
from sklearn.base import clone

from helpers.views import blob_views
from mkclust import (
    AgreementKKM,
    SimpleMKKM,
    describe,
    load_model,
    sample_scores,
    save_model,
    stability,
    suggest_n_clusters,
)


@pytest.fixture(scope="module")
def views():
    found, _ = blob_views(np.random.default_rng(0), n=120, k=4)
    return {f"v{number}": view for number, view in enumerate(found)}


@pytest.fixture(scope="module")
def model(views):
    return AgreementKKM("auto", random_state=0).fit(views)


def test_it_is_the_number_that_is_suggested(views, model):
    suggestion = suggest_n_clusters(views)
    assert model.n_clusters_ == suggestion.n_clusters == model.suggestion_.n_clusters
    np.testing.assert_allclose(model.suggestion_.scores, suggestion.scores, atol=1e-6)
    assert model.n_clusters == "auto"


def test_a_resolution_takes_the_number_of_highest_modularity(views, model):
    found = model.suggestion_
    finest = found.at_resolution(100.0)
    assert found.at_resolution() == 4 < finest
    modularity = found.within - 100 * found.by_chance
    assert finest == found.k_values[modularity.argmax()]

    finer = clone(model).set_params(resolution=100.0).fit(views)
    assert finer.n_clusters_ == finest
    assert finer.suggestion_.candidates == found.candidates
    assert len(stability(finer, views, n_resamples=2).clusters) == finest
    with pytest.raises(ValueError, match="resolution=0"):
        found.at_resolution(0)


def test_the_fit_is_that_of_the_number(views, model):
    expected = AgreementKKM(model.n_clusters_, random_state=0).fit(views)
    assert (model.labels_ == expected.labels_).all()
    assert expected.n_clusters_ == expected.n_clusters
    assert not hasattr(expected, "suggestion_")
    assert (model.predict(views) == expected.predict(views)).all()


def test_what_explains_a_fit_knows_the_number(views, model, tmp_path):
    assert len(describe(model, views).names) == model.n_clusters_
    assert len(sample_scores(model).silhouette) == 120
    found = stability(model, views, n_resamples=2)
    assert len(found.clusters) == model.n_clusters_

    loaded = load_model(save_model(model, tmp_path / "model.skops"))
    assert loaded.n_clusters_ == model.n_clusters_
    assert loaded.suggestion_.candidates == model.suggestion_.candidates


@pytest.mark.slow
def test_many_samples_are_represented_by_some():
    rng = np.random.default_rng(1)
    many = blob_views(rng, n=5200, k=3)[0]
    found = AgreementKKM("auto", anchors=500, learn_from=1000, random_state=0)
    found.fit([view[:, :5] for view in many])
    assert len(found.suggestion_.samples) == 5000
    assert len(found.labels_) == 5200


def test_a_fit_again_forgets_the_suggestion(views, model):
    again = clone(model).fit(views).set_params(n_clusters=3).fit(views)
    assert again.n_clusters_ == 3
    assert not hasattr(again, "suggestion_")


def test_other_methods_and_few_samples_are_refused(views):
    with pytest.raises(ValueError, match="suggest_n_clusters"):
        SimpleMKKM("auto").fit(views)
    few = {name: view[:12] for name, view in views.items()}
    with pytest.raises(ValueError, match="12 samples"):
        AgreementKKM("auto").fit(few)
