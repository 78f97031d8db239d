"""The number of clusters: the best one, candidates, clusters and stability."""

import numpy as np
import pytest
import scipy.sparse

from helpers.kernels import ONE_GAUSSIAN
from helpers.views import blob_views
from mkclust import LKAM, AgreementKKM, KernelBank
from mkclust.explain.number_of_clusters import options_of, suggest_n_clusters
from mkclust.methods.number_of_clusters import scores_of
from mkclust.metrics import adjusted_rand_index

FEW = [2, 3, 4, 5, 6]


def blobs(seed=0, n=120, k=4, strengths=(1.5, 1.5)):
    return blob_views(np.random.default_rng(seed), n=n, k=k, strengths=strengths)


def noise(seed=0, n=120, columns=(6, 6)):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, d)) for d in columns]


@pytest.mark.parametrize("k", [3, 5])
def test_planted_clusters_are_counted(k):
    views, y = blobs(seed=k, n=150, k=k)
    found = suggest_n_clusters(views)
    assert found.n_clusters == found.candidates[0] == k
    assert len(set(found.candidates)) == 3
    assert adjusted_rand_index(y, found.labels_by_k[k]) > 0.95
    assert found.table.loc[k, "stability"] > 0.95
    assert found.table["stability"].notna().sum() == 3
    assert (found.tests, found.evidence, found.samples) == (None, None, None)


@pytest.mark.parametrize("sizes", [(200, 20), (150, 60, 25), (300, 100, 50, 30)])
def test_clusters_of_very_unequal_sizes_are_counted(sizes):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(len(sizes)), sizes)
    views = [9 * np.eye(len(sizes), 5)[y] + rng.normal(size=(len(y), 5)) for _ in "ab"]
    found = suggest_n_clusters(views)
    assert found.n_clusters == len(sizes)
    assert adjusted_rand_index(y, found.labels_by_k[len(sizes)]) > 0.95


def test_the_clusters_for_a_number_are_those_of_a_fit():
    views, _ = blobs(n=150, k=4)
    found = suggest_n_clusters(views)
    for k in (2, 4):
        labels = AgreementKKM(k, random_state=0).fit(views).labels_
        assert adjusted_rand_index(labels, found.labels_by_k[k]) > 0.95


def test_a_sample_of_which_nothing_is_known_has_no_cluster():
    rng, y = np.random.default_rng(0), np.arange(120) % 3
    rates = rng.gamma(0.3, 5, size=(2, 3, 30))
    views = [scipy.sparse.csr_array(rng.poisson(each[y])) for each in rates]
    for view in views:
        view.data[view.indptr[7] : view.indptr[8]] = 0
    found = suggest_n_clusters(views, FEW, kernels="cosine")
    assert (found.labels[:, 7] == -1).all()
    assert (np.delete(found.labels, 7, axis=1) >= 0).all()


def test_a_noise_view_beside_clusters_changes_nothing():
    views = dict(zip("ab", blobs(n=150)[0], strict=True))
    expected = suggest_n_clusters(views, FEW)
    found = suggest_n_clusters(views | {"noise": noise(4, 150)[0]}, FEW)
    assert found.n_clusters == 4
    np.testing.assert_allclose(found.eigengaps, expected.eigengaps, atol=1e-6)
    np.testing.assert_array_equal(found.labels, expected.labels)


def test_each_criterion_counts_from_its_worst_number_to_its_best():
    scores = scores_of(np.array([0.1, 0.5, 0.3]), np.array([-0.1, 0.1, 0.3]))
    np.testing.assert_allclose(scores, [0, 1.5, 1.5])
    np.testing.assert_allclose(scores_of(np.full(2, 0.3), np.array([np.nan, 0])), 0)


def test_kernels_say_the_same_as_the_views_they_are_of():
    views, _ = blobs(n=100, k=3)
    kernels = KernelBank(**ONE_GAUSSIAN).fit_transform(views)
    by_views = suggest_n_clusters(views, FEW, kernels="gaussian")
    by_kernels = suggest_n_clusters(kernels, FEW)
    np.testing.assert_allclose(by_views.eigengaps, by_kernels.eigengaps, atol=1e-6)
    np.testing.assert_allclose(by_views.tightness, by_kernels.tightness, atol=1e-6)
    assert by_kernels.n_clusters == 3


def test_settings_of_the_graph_are_those_of_a_fit():
    views, _ = blobs(n=100, k=3)
    settings = {"neighbors": 8, "resolution": 20.0}
    model = AgreementKKM("auto", **settings, random_state=0).fit(views)
    found = suggest_n_clusters(views, **options_of(model))
    assert found.n_clusters == model.n_clusters_ > 3
    np.testing.assert_allclose(found.eigengaps, model.suggestion_.eigengaps, atol=1e-6)
    by_default = suggest_n_clusters(views)
    assert not np.allclose(found.eigengaps, by_default.eigengaps)
    # What is called neighbors in another method is another thing.
    assert "neighbors" not in options_of(LKAM(neighbors=0.1))


def test_of_many_samples_some_are_used():
    views, y = blobs(n=600, k=3)
    found = suggest_n_clusters(views, [2, 3, 4], max_samples=200)
    assert (found.n_samples, found.labels.shape) == (600, (3, 200))
    assert found.n_clusters == 3
    assert adjusted_rand_index(y[found.samples], found.labels_by_k[3]) == 1
    assert "Computed on 200 of 600 samples" in found.summary()


def test_the_range_is_said_and_whether_the_answer_is_at_its_end():
    views, _ = blobs(k=5)
    words = suggest_n_clusters(views, [2, 3, 4, 5]).verdict()
    assert "Tried: 4 numbers from 2 to 5." in words
    assert "5 is the largest of them" in words
    assert "smallest of them" in suggest_n_clusters(views, [5, 6, 7]).verdict()
    assert "of them" not in suggest_n_clusters(views).verdict()


@pytest.mark.parametrize(
    "settings",
    [
        *({"k_values": each} for each in ([], [1, 2], [2, 40], [2.5], [True], 5)),
        {"level": 0},
        {"max_samples": 5},
        {"n_clusters": 3},
    ],
    ids=str,
)
def test_senseless_settings_are_refused(settings):
    with pytest.raises((ValueError, TypeError), match=next(iter(settings))):
        suggest_n_clusters(noise(n=40), **settings)
