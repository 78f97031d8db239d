"""The graph of nearest neighbors as a kernel."""

import numpy as np
import pytest

from mkclust import AgreementKKM, AverageKKM, SimpleMKKM
from mkclust.kernels import KernelBank
from mkclust.metrics import adjusted_rand_index

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
CLASSES = np.repeat(np.arange(3), 30)
VIEWS = {
    name: 6 * np.eye(3)[CLASSES] + RNG.normal(size=(90, 3)) for name in ("first", "second", "third")
}


def graph_bank(neighbors=8):
    """Return a bank of graphs of one Gaussian kernel a view."""
    return KernelBank(
        widths=(1.0,), polynomials=(), linear=None, neighbors=neighbors, neighborhoods="graph"
    )


def dense_graph(X, r):
    """Return the kernel of the graph by its formula, and the links."""
    D = np.linalg.norm(X[:, None] - X, axis=-1)
    np.fill_diagonal(D, np.inf)
    nearest = np.argsort(D, axis=1, kind="stable")[:, :r]
    lists = np.zeros(D.shape)
    np.put_along_axis(lists, nearest, 1.0, axis=1)
    W = (lists + lists.T) / 2
    roots = 1 / np.sqrt(W.sum(axis=1))
    return (np.eye(len(X)) + roots[:, None] * W * roots) / 2, W


@pytest.mark.parametrize("r", [2, 8, 89])
def test_the_graph_is_normalized_and_shifted(r):
    kernels = graph_bank(r).fit_transform(VIEWS)
    for K, X in zip(kernels, VIEWS.values(), strict=True):
        expected, _ = dense_graph(X, r)
        np.testing.assert_allclose(K.toarray(), expected, atol=1e-12)
        assert np.linalg.eigvalsh(K.toarray())[0] > -1e-12


def test_it_has_at_most_two_links_for_every_neighbor():
    assert all(K.nnz <= 90 * (1 + 2 * 8) for K in graph_bank(8).fit_transform(VIEWS))


def test_a_new_sample_is_linked_as_it_would_be_to_training_samples():
    bank, X = graph_bank(8).fit(VIEWS), VIEWS["first"]
    new = {name: view[:4] + 0.01 for name, view in VIEWS.items()}
    D = np.linalg.norm(X[:, None] - X, axis=-1)
    np.fill_diagonal(D, np.inf)
    last = np.sort(D, axis=1)[:, 7]
    distances = np.linalg.norm(new["first"][:, None] - X, axis=-1)
    own = distances <= np.sort(distances, axis=1)[:, 7:8]
    links = (own + 1.0 * (distances <= last)) / 2
    degrees = dense_graph(X, 8)[1].sum(axis=1)
    expected = links / np.sqrt(links.sum(axis=1))[:, None] / np.sqrt(degrees) / 2
    np.testing.assert_allclose(bank.transform(new)[0].toarray(), expected, atol=1e-12)
    np.testing.assert_array_equal(bank.self_similarity(new), np.full((3, 4), 0.5))


@pytest.mark.parametrize("method", [AverageKKM, AgreementKKM, SimpleMKKM])
def test_methods_cluster_by_the_graph_and_predict(method):
    model = method(3, kernels=graph_bank(), random_state=0).fit(VIEWS)
    assert adjusted_rand_index(CLASSES, model.labels_) > 0.95
    assert adjusted_rand_index(model.labels_, model.predict(VIEWS)) == 1
    near = {name: view + 1e-6 for name, view in VIEWS.items()}
    assert adjusted_rand_index(model.labels_, model.predict(near)) > 0.95


def test_other_neighborhoods_are_refused():
    bank = KernelBank(neighbors=8, neighborhoods="mutual")
    with pytest.raises(ValueError, match="neighborhoods='mutual': choose one of 'shared', 'graph'"):
        bank.fit(VIEWS)
