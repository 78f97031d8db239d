"""Clusters that hang on the draw of landmarks are told from those that do not."""

import pickle
from dataclasses import FrozenInstanceError
from typing import ClassVar

import numpy as np
import pytest
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from conftest import blob_views
from mkclust import LMKKM, AverageKKM, SimpleMKKM
from mkclust.explain import LandmarkStability, landmark_stability
from mkclust.kernels import Linear, Nystroem, RandomFourier

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.WeightsWarning"),
]


@pytest.fixture(scope="module")
def views():
    """Three views of clusters that overlap, so that a draw may change them."""
    drawn, _ = blob_views(np.random.default_rng(0), n=200, k=3, strengths=(0.7, 0.6, 0.5))
    return dict(zip("abc", drawn, strict=True))


class RecordedKKM(AverageKKM):
    """Average kernel k-means of which every fit is remembered."""

    fits: ClassVar[list] = []

    def fit(self, X, y=None):
        self.fits.append(self)
        return super().fit(X, y)


@pytest.fixture
def fits():
    """Return the list of the models that are fitted from now on, if they are recorded."""
    RecordedKKM.fits.clear()
    return RecordedKKM.fits


def model_of(approximation, method=AverageKKM, **settings):
    """Return a model that is not fitted, of three clusters where nothing else is said."""
    settings = {"n_clusters": 3, "random_state": 0} | settings
    return method(approximation=approximation, **settings)


def test_clear_clusters_need_few_landmarks_but_not_too_few():
    clear, _ = blob_views(np.random.default_rng(0), n=200, k=5, strengths=(2, 2))
    many, few = (
        landmark_stability(model_of(Nystroem(count), n_clusters=5), clear) for count in (60, 3)
    )
    assert many.lowest > 0.97
    assert few.mean < 0.9
    assert few.approximation_errors.min() > many.approximation_errors.max()
    assert "High: the clusters hardly depend" in str(many)
    assert "raise n_components" in few.summary()


def test_noise_is_unstable_however_many_landmarks():
    noise = blob_views(np.random.default_rng(0), n=200, strengths=(0, 0))[0]
    found = landmark_stability(model_of(Nystroem(100)), noise, n_draws=3)
    assert found.mean < 0.8
    assert "it is the clusters that are not clear" in str(found)


def test_with_all_samples_as_landmarks_nothing_is_drawn(views):
    found = landmark_stability(model_of(Nystroem(200)), views, n_draws=2)
    assert found.mean == found.lowest == 1
    np.testing.assert_allclose(found.approximation_errors, 0, atol=1e-9)


def test_agreements_are_those_of_the_fits(views, fits):
    found = landmark_stability(model_of(Nystroem(4), RecordedKKM), views, n_draws=4)
    labels = [model.labels_ for model in fits]
    expected = [[adjusted_rand_score(one, other) for one in labels] for other in labels]
    np.testing.assert_allclose(found.agreements, expected, atol=1e-12)
    errors = [model.approximation_error_ for model in fits]
    np.testing.assert_allclose(found.approximation_errors, errors, rtol=1e-12, atol=1e-12)
    pairs = [expected[i][j] for i in range(4) for j in range(i)]
    assert found.mean == pytest.approx(np.mean(pairs))
    assert found.lowest == pytest.approx(min(pairs))
    assert len(set(pairs)) > 3


@pytest.mark.parametrize("seed", [None, 7])
def test_every_view_and_every_draw_has_landmarks_of_its_own(views, fits, seed):
    model = model_of(Nystroem(10, random_state=seed), RecordedKKM)
    landmark_stability(model, views, n_draws=3)
    drawn = [
        tuple(np.flatnonzero((view[:, None] == map_.landmarks_).all(2).any(1)))
        for fit in fits
        for view, map_ in zip(views.values(), fit._source.features.maps, strict=True)
    ]
    assert all(len(numbers) == 10 for numbers in drawn)
    assert len(set(drawn)) == 9


def test_only_the_draw_changes_and_not_the_start_of_k_means(views, fits):
    for seed in (5, None, np.random.RandomState(3)):
        model = model_of(Nystroem(10), RecordedKKM, random_state=seed)
        landmark_stability(model, views, n_draws=2)
    assert [model.random_state for model in fits] == [5, 5, 0, 0, 0, 0]


def test_the_same_seed_gives_the_same_draws_and_more_of_them_begin_alike(views):
    model = model_of(Nystroem(3))
    first, again, longer = (landmark_stability(model, views, n_draws=n) for n in (3, 3, 4))
    np.testing.assert_array_equal(first.agreements, again.agreements)
    np.testing.assert_array_equal(first.agreements, longer.agreements[:3, :3])
    other = landmark_stability(model, views, n_draws=3, random_state=1)
    assert np.abs(first.agreements - other.agreements).max() > 0


def test_the_model_is_left_alone_fitted_or_not(views):
    model = model_of(Nystroem(10, random_state=3))
    fresh = landmark_stability(model, views, n_draws=2)
    assert not hasattr(model, "labels_")
    model.fit(views)
    before = pickle.dumps(model)
    fitted = landmark_stability(model, views, n_draws=2)
    assert pickle.dumps(model) == before
    np.testing.assert_array_equal(fresh.agreements, fitted.agreements)


@pytest.mark.parametrize(
    "approximation",
    [
        Nystroem(15, landmarks="kmeans"),
        RandomFourier(30),
        RBFSampler(gamma=0.02, n_components=30),
        make_pipeline(StandardScaler(), RBFSampler(gamma=0.05, n_components=30)),
    ],
    ids=lambda map_: type(map_).__name__,
)
def test_whatever_draws_features_can_be_asked(views, approximation):
    found = landmark_stability(model_of(approximation, SimpleMKKM), views, n_draws=3)
    assert found.agreements.shape == (3, 3)
    np.testing.assert_array_equal(np.diag(found.agreements), 1)
    np.testing.assert_array_equal(found.agreements, found.agreements.T)
    assert np.ptp(found.agreements) > 0
    assert type(approximation).__name__ in str(found)


def test_errors_are_told_where_features_approximate_from_below(views):
    told = "The features miss"
    nystroem, waves = (
        str(landmark_stability(model_of(map_), views, n_draws=3))
        for map_ in (Nystroem(10), RandomFourier(10))
    )
    assert told in nystroem
    assert "the most of all" in nystroem
    assert told not in waves


def test_one_table_can_be_asked(views):
    found = landmark_stability(model_of(Nystroem(40)), views["a"], n_draws=2)
    assert found.approximation_errors.shape == (2, 1)
    assert "the most of all" not in str(found)


def test_dask_arrays_are_compared_like_others(views):
    da = pytest.importorskip("dask.array")
    lazy = {name: da.from_array(view, chunks=(60, 4)) for name, view in views.items()}
    model = model_of(Nystroem(4))
    local, found = (landmark_stability(model, X, n_draws=3) for X in (views, lazy))
    np.testing.assert_allclose(found.agreements, local.agreements, atol=1e-12)
    np.testing.assert_allclose(found.approximation_errors, local.approximation_errors)
    assert local.lowest < 1


@pytest.mark.parametrize(
    ("mean", "word"), [(1.0, "High"), (0.95, "High"), (0.9, "Middling"), (0.5, "Low")]
)
def test_the_reading_says_how_high_the_agreement_is(mean, word):
    agreements = np.array([[1, mean], [mean, 1]])
    found = LandmarkStability("MKKM", "Nystroem()", ("a",), agreements, np.full((2, 1), np.nan))
    lines = str(found).splitlines()
    assert lines[0] == "MKKM, Nystroem(), 2 draws"
    assert f"agree to {mean:.2f} on average" in lines[2]
    assert lines[3].startswith(f"{word}: ")
    assert ("raise n_components" in lines[3]) == (word != "High")


def test_a_reading_can_be_stored_but_not_changed(views):
    found = landmark_stability(model_of(Nystroem(10)), views, n_draws=2)
    stored = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(stored.agreements, found.agreements)
    assert str(stored) == str(found)
    with pytest.raises(FrozenInstanceError):
        found.names = ()


def test_what_draws_nothing_is_refused(views):
    with pytest.raises(ValueError, match=r"AverageKKM has approximation=None.*Nystroem\(200\)"):
        landmark_stability(model_of(None), views)
    for fixed in (Linear(), StandardScaler()):
        with pytest.raises(ValueError, match=r"draws nothing, it has no random_state"):
            landmark_stability(model_of(fixed), views)
    with pytest.raises(TypeError, match="model is a Nystroem: pass an estimator"):
        landmark_stability(Nystroem(10), views)
    with pytest.raises(ValueError, match="LMKKM has approximation=None"):
        landmark_stability(LMKKM(3), views)


@pytest.mark.parametrize("n_draws", [1, 0, -3, 2.5, True, "5"])
def test_fewer_than_two_draws_are_refused_before_any_fit(views, fits, n_draws):
    with pytest.raises(ValueError, match="pass a whole number of at least 2"):
        landmark_stability(model_of(Nystroem(10), RecordedKKM), views, n_draws=n_draws)
    assert fits == []


def test_what_fit_refuses_is_refused_in_its_words(views):
    with pytest.raises(ValueError, match=r"View 'a': n_components=300 landmarks of 200 rows"):
        landmark_stability(model_of(Nystroem(300)), views)
