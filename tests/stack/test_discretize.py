import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

from helpers.arrays import LIBRARIES, as_library
from mkclust.stack.discretize import assign, discretize, k_means, normalize_rows


def noisy_rows(n=80, columns=4, seed=0):
    """Return rows in no clear clusters, of very different lengths."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, columns)) * np.exp(3 * rng.normal(size=(n, 1)))


def clear_rows(n=300):
    """Return rows in three directions, 3 : 2 : 1, and their clusters by falling
    size."""
    y = np.where(np.arange(n) % 6 < 3, 0, np.where(np.arange(n) % 6 < 5, 1, 2))
    return np.eye(3)[y] + 0.1 * np.random.default_rng(0).normal(size=(n, 3)), y


@pytest.mark.parametrize("n", [900, 9000])
def test_clusters_close_together_are_told_apart_beside_a_distant_one(n):
    angle = np.array([np.pi / 2, 0.0, 5e-5])[np.arange(n) % 3]
    labels, _ = discretize(
        np.column_stack([np.cos(angle), np.sin(angle)]), 3, random_state=0
    )
    assert adjusted_rand_score(np.arange(n) % 3, labels) == 1


def test_rows_of_mere_rounding_have_no_direction():
    rows = np.repeat(np.eye(3)[:, :2] + 1e-18, [4, 3, 2], axis=0)
    assert not normalize_rows(rows)[7:].any()
    labels, _ = discretize(rows, 2, random_state=0)
    rows[7:] = 0
    np.testing.assert_array_equal(labels, discretize(rows, 2, random_state=0)[0])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 2, 6])
def test_clusters_are_those_of_scikit_learn_numbered_by_falling_size(seed, k):
    rows = noisy_rows(seed=seed)
    labels, centers = discretize(rows, k, n_init=3, random_state=seed)
    means = KMeans(k, n_init=3, random_state=seed).fit(normalize(rows))
    assert adjusted_rand_score(means.labels_, labels) == 1
    sizes = np.bincount(labels, minlength=k)
    assert np.all(np.diff(sizes) <= 0)
    assert sizes[-1] > 0
    np.testing.assert_array_equal(
        cdist(normalize(rows), centers).argmin(axis=1), labels
    )


def test_equal_sizes_are_numbered_by_their_first_sample():
    rows = np.repeat(np.eye(4), 5, axis=0)[np.random.default_rng(0).permutation(20)]
    for seed in range(4):
        labels, _ = discretize(rows, 4, random_state=seed)
        firsts = [np.flatnonzero(labels == j)[0] for j in range(4)]
        assert firsts == sorted(firsts)
        assert np.bincount(labels).tolist() == [5] * 4


def test_neither_the_lengths_of_the_rows_nor_a_rotation_matter():
    rows, y = clear_rows()
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    for same in (rows, rows @ Q, rows * np.exp(rng.normal(size=(len(rows), 1))), -rows):
        np.testing.assert_array_equal(discretize(same, 3, random_state=0)[0], y)


@pytest.mark.parametrize("library", LIBRARIES)
def test_of_centers_that_tie_the_first_is_taken_whatever_the_rounding(library):
    centers = np.array([[0.5, 0.5], [0.5, -0.5], [-0.5, 0.5]])
    rows = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], dtype=float)
    rng = np.random.default_rng(0)
    for _ in range(20):
        noisy = as_library(library, rows + 1e-13 * rng.normal(size=rows.shape))
        assert assign(noisy, centers).tolist() == [0, 0, 2, 1]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("all_rows", [1000, 100])
@pytest.mark.parametrize("init", ["k-means++", "random"])  # here, and by scikit-learn
def test_clusters_are_the_same_in_every_library(library, all_rows, init):
    rows, y = clear_rows()
    how = {"random_state": 0, "all_rows": all_rows, "init": init}
    labels, centers = discretize(as_library(library, rows), 3, **how)
    np.testing.assert_array_equal(labels, y)
    assert labels.dtype == np.intp
    assert isinstance(centers, np.ndarray)
    single = as_library(library, rows.astype(np.float32))
    np.testing.assert_array_equal(assign(single, centers), y)
    assert assign(as_library(library, rows[:0]), centers).shape == (0,)


def test_many_clusters_start_as_well_as_those_of_scikit_learn():
    rows, _ = make_blobs(2500, 12, centers=90, cluster_std=2.0, random_state=0)
    rows = normalize(rows)
    best = KMeans(90, n_init=10, random_state=0).fit(rows).inertia_
    labels, centers = discretize(rows, 90, random_state=0)
    assert np.sum(cdist(rows, centers).min(axis=1) ** 2) <= 1.01 * best
    np.testing.assert_array_equal(labels, discretize(rows, 90, random_state=0)[0])


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("spread", [0.5, 8.0])
def test_starts_together_are_as_good_as_those_of_scikit_learn(library, dtype, spread):
    rows, _ = make_blobs(1000, 8, centers=10, cluster_std=spread, random_state=0)
    best = KMeans(10, n_init=10, random_state=0).fit(rows).inertia_
    given = as_library(library, (rows + 1e3).astype(dtype))
    centers = k_means(given, 10, n_init=10, random_state=0)
    assert centers.dtype == dtype
    assert np.sum(cdist(rows + 1e3, centers).min(axis=1) ** 2) <= 1.01 * best


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [60, 6000])
@pytest.mark.parametrize("noise", [0, 1e-12])
def test_rows_of_three_directions_are_three_clusters_of_five_without_a_warning(
    n, noise
):
    y = np.arange(n) % 3
    rows = np.eye(3)[y] * (1 + y[:, None])
    rows += noise * np.random.default_rng(0).normal(size=rows.shape)
    labels, centers = discretize(rows, 5, random_state=0)
    assert centers.shape == (5, 3)
    if not noise:
        np.testing.assert_array_equal(labels, y)
    assert all(len(np.unique(y[labels == each])) == 1 for each in np.unique(labels))
