import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.views import blob_views
from mkclust import METHODS, AverageKKM, SimpleMKKM
from mkclust.explain.stability import stability
from mkclust.kernels import Linear, Nystroem
from mkclust.metrics import adjusted_rand_index, clustering_accuracy

pytestmark = [
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.WeightsWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:the learned kernel has rank"),
]


@pytest.fixture
def views():
    return blob_views(np.random.default_rng(0), n=90, k=3, strengths=(2.0, 2.0))[0]


@pytest.fixture
def overlapping():
    """Return one cloud: wherever it is cut, the cut depends on the samples."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=(80, 6)), rng.normal(size=(80, 4))]


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_clear_clusters_stay_the_same_with_every_method(name, views):
    model = METHODS[name](3, random_state=0).fit(views)
    found = stability(model, views, n_resamples=3)
    assert found.clusters.shape == (3,)
    assert found.mean > 0.8


def test_a_cloud_without_clusters_is_cut_elsewhere_each_time(overlapping):
    model = AverageKKM(4, random_state=0).fit(overlapping)
    found = stability(model, overlapping, n_resamples=5)
    assert found.mean < 0.6
    assert "Low" in str(found)


def test_one_resample_is_one_refit_compared_with_the_model(overlapping):
    model = AverageKKM(3, random_state=0).fit(overlapping)
    found = stability(model, overlapping, n_resamples=1, fraction=0.7, random_state=4)
    part = np.flatnonzero(~np.isnan(found.samples))
    assert len(part) == found.size == 56
    refitted = clone(model).fit([view[part] for view in overlapping])
    known = model.labels_[part]
    assert found.agreements[0] == pytest.approx(
        adjusted_rand_index(known, refitted.labels_)
    )
    # The pairing of clusters that keeps most samples is the one behind the accuracy.
    assert found.samples[part].mean() == pytest.approx(
        clustering_accuracy(known, refitted.labels_)
    )
    for c in range(3):
        assert found.clusters[c] == pytest.approx(
            found.samples[part][known == c].mean()
        )


def test_an_approximated_model_is_resampled_with_as_many_landmarks_as_there_are(views):
    model = SimpleMKKM(3, approximation=Nystroem(n_components=85), random_state=0).fit(
        views
    )
    found = stability(model, views, n_resamples=2)
    assert found.size == 72
    assert found.mean > 0.9


@pytest.mark.parametrize(
    "settings",
    [{"n_resamples": 0}, {"fraction": 1.0}, {"max_samples": 2}, {"random_state": "x"}],
)
def test_senseless_settings_are_refused(views, settings):
    model = AverageKKM(3, random_state=0).fit(views)
    with pytest.raises(ValueError, match=next(iter(settings))):
        stability(model, views, **settings)


@pytest.fixture(scope="module")
def clear():
    views = blob_views(np.random.default_rng(0), n=200, k=5, strengths=(2, 2))[0]
    return dict(zip("ab", views, strict=True))


def landmarks(approximation, X, n_clusters=5, **settings):
    model = AverageKKM(n_clusters, approximation=approximation, random_state=0).fit(X)
    return stability(model, X, vary="landmarks", **settings)


@pytest.mark.slow
def test_clear_clusters_need_few_landmarks_but_not_too_few(clear):
    many, few = (landmarks(Nystroem(count), clear) for count in (60, 3))
    assert many.agreements.shape == (5,)
    assert many.mean > 0.97
    assert few.mean < 0.9


@pytest.mark.slow
def test_whatever_draws_features_draws_others_in_every_refit(clear):
    sampler = RBFSampler(gamma=0.05, n_components=8, random_state=3)
    approximation = make_pipeline(StandardScaler(), sampler)
    first, again, other = (
        landmarks(approximation, clear, n_resamples=3, random_state=seed)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.agreements, again.agreements)
    assert len({*first.agreements, *other.agreements}) > 3


@pytest.mark.slow
def test_dask_arrays_are_compared_like_others(clear):
    da = pytest.importorskip("dask.array")
    lazy = {name: da.from_array(view, chunks=(60, -1)) for name, view in clear.items()}
    local, found = (landmarks(Nystroem(4), X, n_resamples=2) for X in (clear, lazy))
    np.testing.assert_allclose(found.agreements, local.agreements, atol=1e-12)


@pytest.mark.parametrize("approximation", [None, Linear()])
def test_a_model_that_draws_nothing_has_no_other_landmarks(approximation, clear):
    with pytest.raises(ValueError, match="landmarks"):
        landmarks(approximation, clear)
