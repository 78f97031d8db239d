"""The partition of AgreementKKM that follows the neighbors in the mix."""

import numpy as np
import pytest
import scipy.linalg
from sklearn.datasets import make_moons

from mkclust import AgreementKKM
from mkclust.methods.neighbor_step import count_mix_neighbors
from mkclust.metrics import adjusted_rand_index


def moons(n=200, seed=0):
    """Return two views of two half circles, and which of them each sample is on."""
    rng = np.random.default_rng(seed)
    X, y = make_moons(n, noise=0.05, random_state=seed)
    turned = X @ np.linalg.qr(rng.normal(size=(2, 2)))[0]
    return {"one": X, "other": turned + 0.02 * rng.normal(size=X.shape)}, y


def overlapping(n=120, k=4, seed=0):
    """Return two views of clusters that overlap, and the clusters."""
    rng, y = np.random.default_rng(seed), np.arange(n) % k
    views = [1.5 * rng.normal(size=(k, 6))[y] + rng.normal(size=(n, 6)) for _ in "12"]
    return {"one": views[0], "other": views[1]}, y


def written_out(K, n_clusters, size):
    """Return the partition by the formulas of the module, with dense matrices."""
    n = len(K)
    lengths = np.sqrt(np.diag(K))
    similar = K / lengths[:, None] / lengths
    np.fill_diagonal(similar, np.inf)
    members = np.zeros((n, n))
    for i in range(n):
        nearest = np.argsort(-similar[i], kind="stable")[: size + 1]
        members[nearest[similar[i, nearest] > 0], i] = 1
    factor = members / np.sqrt(members.sum(axis=1))[:, None]
    N = factor @ factor.T
    C = np.eye(n) - 1 / n
    U = scipy.linalg.eigh(C @ N @ C)[1][:, -n_clusters:]
    rows = K @ np.linalg.solve(K + np.mean(np.diag(K)) * np.eye(n), U)
    return scipy.linalg.polar(rows)[0]


def test_the_partition_is_that_of_the_formulas():
    views, _ = overlapping()
    model = AgreementKKM(4, random_state=0).fit(views)
    assert model.mix_neighbors_ == 10
    H, expected = model.embedding_, written_out(model.mixed_kernel(views), 4, 10)
    np.testing.assert_allclose(H.T @ H, np.eye(4), atol=1e-9)
    np.testing.assert_allclose(H @ H.T, expected @ expected.T, atol=5e-3)


def test_neighbors_find_clusters_that_are_not_round():
    views, y = moons()
    model = AgreementKKM(2, random_state=0).fit(views)
    plain = AgreementKKM(2, neighbors=None, random_state=0).fit(views)
    scores = [adjusted_rand_index(y, each.labels_) for each in (model, plain)]
    assert scores[0] > 0.9 > scores[1] + 0.2


@pytest.mark.parametrize(
    ("problem", "n_clusters"), [("few samples", 3), ("more groups", 2), ("low rank", 4)]
)
def test_if_neighbors_cannot_tell_clusters_the_mix_does(problem, n_clusters):
    rng = np.random.default_rng(0)
    if problem == "few samples":
        X = rng.normal(size=(20, 4))
    elif problem == "more groups":  # of forty samples each, far apart
        X = 100 * np.eye(5)[np.arange(200) % 5] + rng.normal(size=(200, 5))
    else:
        X = rng.normal(size=(60, 2))
    K = X @ X.T
    model, plain = (
        AgreementKKM(n_clusters, neighbors=neighbors, random_state=0).fit(K[None])
        for neighbors in ("auto", None)
    )
    assert model.mix_neighbors_ is None
    np.testing.assert_array_equal(model.labels_, plain.labels_)


def test_the_number_of_neighbors_follows_the_size_of_clusters():
    assert count_mix_neighbors("auto", 1000, 5) == 10
    assert count_mix_neighbors("auto", 130, 10) == 6
    assert count_mix_neighbors("auto", 510, 102) == 3
    assert count_mix_neighbors(7, 100, 2) == 7
