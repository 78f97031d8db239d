"""Indefinite kernels, repaired: clusters and new samples go by what was repaired."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph

from conftest import blob_views
from libraries import LIBRARIES, as_library
from mkclust import METHODS, AverageKKM, SimpleMKKM
from mkclust.linalg import to_host

pytestmark = pytest.mark.slow

INDUCTIVE = [name for name, method in METHODS.items() if hasattr(method, "predict")]
STANDARDS = [(True, True), (True, False), (False, True), (False, False)]
over_repairs = pytest.mark.parametrize("psd", ["clip", "shift"])


def neighbor_graphs(X, n_neighbors=10):
    """Return nearest-neighbor graphs of two halves of the features, with a zero diagonal."""
    half = X.shape[1] // 2
    graphs = [kneighbors_graph(part, n_neighbors).toarray() for part in (X[:, :half], X[:, half:])]
    return np.stack([np.maximum(A, A.T) for A in graphs])


@pytest.fixture(scope="module")
def wine():
    """Return two graphs of the wine data, and its classes."""
    X, y = load_wine(return_X_y=True)
    return neighbor_graphs((X - X.mean(axis=0)) / X.std(axis=0)), y


def one_of_several(n=60, seed=0):
    """Return an indefinite kernel between two sound ones, with self-similarities that differ."""
    (A, B, C), _ = blob_views(np.random.default_rng(seed), n=n, k=3, strengths=(2, 2, 1))
    return np.stack([A @ A.T, B @ B.T - 0.4 * C @ C.T, C @ C.T])


@pytest.mark.parametrize("name", METHODS)
@over_repairs
def test_clusters_of_repaired_graphs_are_those_of_their_partition(name, psd, wine):
    graphs, y = wine
    # A shift leaves little beside the diagonal, which counts of neighborhoods would weigh.
    options = {"mask": "cosine"} if name == "localized-simplemkkm" else {}
    model = METHODS[name](3, psd=psd, random_state=0, **options).fit(graphs)
    assert set(model.labels_) == {0, 1, 2}
    assert adjusted_rand_score(model.labels_, y) > 0.4
    if name in INDUCTIVE:
        np.testing.assert_allclose(model.transform(graphs), model.embedding_, atol=1e-6)
        np.testing.assert_array_equal(model.predict(graphs), model.labels_)


@pytest.mark.parametrize("library", LIBRARIES)
@over_repairs
def test_training_samples_lie_there_in_every_library(psd, library):
    K = one_of_several()
    there = as_library(library, K)
    model = AverageKKM(3, psd=psd, random_state=0).fit(there)
    expected = AverageKKM(3, psd=psd, random_state=0).fit(K)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(model.predict(there), model.labels_)
    np.testing.assert_allclose(
        to_host(model.transform(there)), to_host(model.embedding_), atol=1e-6
    )
    # On the host, and from a file.
    stored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(stored.predict(K), model.labels_)


@pytest.mark.parametrize("center", [True, False])
def test_dropped_directions_do_not_count_for_new_samples(center):
    rng = np.random.default_rng(0)
    K = one_of_several()[1]
    new = rng.normal(size=(9, 60))
    model = AverageKKM(3, psd="clip", center=center, normalize=False, random_state=0).fit(K[None])
    J = np.eye(60) - center / 60
    values, V = np.linalg.eigh(J @ K @ J)
    positive = V[:, values > -1e-9]
    H, top = V[:, :-4:-1], values[:-4:-1]
    expected = ((new - center * K.mean(axis=0)) @ J) @ positive @ positive.T @ H / top
    found = model.transform(new[None])
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-10)


def test_a_shift_is_part_of_a_new_samples_self_similarity():
    K, new = one_of_several()[1], np.random.default_rng(0).normal(size=(9, 60))
    own = np.full((1, 9), 50.0)
    model = AverageKKM(3, psd="shift", center=False, random_state=0).fit(K[None])
    shift = -np.linalg.eigvalsh(K)[0] * (1 + 1e-6)
    scale = 1 / np.sqrt(K.diagonal() + shift)
    values, V = np.linalg.eigh(scale[:, None] * (K + shift * np.eye(60)) * scale)
    expected = (new * scale) @ V[:, :-4:-1] / values[:-4:-1] / np.sqrt(50 + shift)
    found = model.transform(new[None], own)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-8)


@over_repairs
def test_self_similarities_may_be_negative_where_the_kernel_was_repaired(psd):
    K = one_of_several() - 12 * np.eye(60)
    own = np.stack([k.diagonal() for k in K])
    assert own.min() < 0
    model = SimpleMKKM(3, psd=psd, random_state=0).fit(K)
    np.testing.assert_array_equal(model.predict(K[:, ::2], own[:, ::2]), model.labels_[::2])
    sound = SimpleMKKM(3, random_state=0).fit(one_of_several()[::2])
    with pytest.raises(ValueError, match="negative"):
        sound.predict(K[::2, ::2], own[::2, ::2])
