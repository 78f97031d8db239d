import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

from mkclust.discretize import discretize, nearest_center, normalize_rows


def noisy_rows(n=80, columns=4, seed=0):
    """Return rows in no clear clusters, of very different lengths."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, columns)) * np.exp(3 * rng.normal(size=(n, 1)))


def tied_rows():
    """Return rows of two clusters and a zero row, which may be as near to one as to the other.

    With the zero row among the five, both centers lie 5/6 away from zero.
    """
    cosine = 5 / 6
    sine = np.sqrt(1 - cosine**2)
    return np.array(
        [[cosine, sine, 0], [cosine, -sine, 0]] * 4 + [[0, 0, 1]] * 5 + [[0, 0, 0]], dtype=float
    )


def test_rows_are_scaled_to_unit_length_as_by_scikit_learn():
    rows = noisy_rows()
    np.testing.assert_allclose(normalize_rows(rows), normalize(rows), atol=1e-15)


def test_zero_rows_stay_zero():
    rows = noisy_rows()
    rows[[3, 7]] = 0
    scaled = normalize_rows(rows)
    assert not scaled[[3, 7]].any()
    np.testing.assert_allclose(np.linalg.norm(np.delete(scaled, [3, 7], axis=0), axis=1), 1)


@pytest.mark.parametrize("scale", [1e150, 1e-6])
def test_long_and_short_rows_are_scaled_alike(scale):
    rows = noisy_rows()
    np.testing.assert_allclose(normalize_rows(rows * scale), normalize_rows(rows), atol=1e-14)


def test_normalizing_changes_nothing_in_place():
    rows = noisy_rows()
    before = rows.copy()
    normalize_rows(rows)
    discretize(rows, 3, random_state=0)
    np.testing.assert_array_equal(rows, before)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 2, 5])
def test_clusters_are_those_of_scikit_learn(seed, k):
    rows = noisy_rows(seed=seed)
    labels, centers = discretize(rows, k, n_init=3, random_state=seed)
    means = KMeans(k, n_init=3, random_state=seed).fit(normalize(rows))
    assert adjusted_rand_score(means.labels_, labels) == 1
    order = np.lexsort(centers.T)
    np.testing.assert_allclose(
        centers[order], means.cluster_centers_[np.lexsort(means.cluster_centers_.T)], atol=1e-12
    )


@pytest.mark.parametrize("seed", range(5))
def test_clusters_are_numbered_by_falling_size_and_belong_to_the_nearest_center(seed):
    rows = noisy_rows(seed=seed)
    labels, centers = discretize(rows, 6, random_state=seed)
    sizes = np.bincount(labels, minlength=6)
    assert np.all(np.diff(sizes) <= 0)
    assert sizes[-1] > 0
    np.testing.assert_array_equal(cdist(normalize(rows), centers).argmin(axis=1), labels)
    np.testing.assert_array_equal(nearest_center(normalize_rows(rows), centers), labels)


def test_centers_are_the_means_of_their_clusters():
    rows = noisy_rows()
    labels, centers = discretize(rows, 4, random_state=0)
    means = [normalize(rows)[labels == j].mean(axis=0) for j in range(4)]
    np.testing.assert_allclose(centers, means, atol=1e-3)  # to k-means' own tolerance


def test_equal_sizes_are_numbered_by_their_first_sample():
    rows = np.repeat(np.eye(4), 5, axis=0)[np.random.default_rng(0).permutation(20)]
    for seed in range(6):
        labels, _ = discretize(rows, 4, random_state=seed)
        firsts = [np.flatnonzero(labels == j)[0] for j in range(4)]
        assert firsts == sorted(firsts)
        assert np.bincount(labels).tolist() == [5] * 4


def test_neither_the_lengths_of_the_rows_nor_a_rotation_matter():
    rng = np.random.default_rng(0)
    rows = np.repeat(np.eye(3), [7, 5, 3], axis=0) + 0.05 * rng.normal(size=(15, 3))
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    expected = np.repeat([0, 1, 2], [7, 5, 3])
    for same in (rows, rows @ Q, rows * np.exp(rng.normal(size=(15, 1))), -rows):
        np.testing.assert_array_equal(discretize(same, 3, random_state=0)[0], expected)


def test_the_seed_decides():
    rows = noisy_rows()
    first, second = (discretize(rows, 7, n_init=1, random_state=4) for _ in range(2))
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])
    state = [discretize(rows, 7, n_init=1, random_state=np.random.RandomState(4)) for _ in "ab"]
    np.testing.assert_array_equal(state[0][0], state[1][0])


def test_more_starts_are_never_worse():
    rows = noisy_rows(n=150)

    def spread(n_init):
        labels, centers = discretize(rows, 8, n_init=n_init, random_state=0)
        return np.sum((normalize(rows) - centers[labels]) ** 2)

    assert spread(20) <= spread(1) + 1e-3


def test_the_nearest_center_is_the_nearest():
    rng = np.random.default_rng(0)
    rows, centers = rng.normal(size=(200, 5)), rng.normal(size=(7, 5))
    np.testing.assert_array_equal(
        nearest_center(rows, centers), cdist(rows, centers).argmin(axis=1)
    )


def test_of_centers_that_tie_the_first_is_taken_whatever_the_rounding():
    centers = np.array([[0.5, 0.5], [0.5, -0.5], [-0.5, 0.5]])
    rows = np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1]], dtype=float)
    expected = [0, 0, 0, 2, 1]
    rng = np.random.default_rng(0)
    for _ in range(20):
        noise = 1e-13 * rng.normal(size=rows.shape)
        assert nearest_center(rows + noise, centers).tolist() == expected


@pytest.mark.parametrize("n_init", [1, 10])
def test_labels_are_the_nearest_centers_also_where_centers_tie(n_init):
    rows = tied_rows()
    for seed in range(20):
        labels, centers = discretize(rows, 2, n_init=n_init, random_state=seed)
        np.testing.assert_array_equal(nearest_center(normalize_rows(rows), centers), labels)
        assert np.all(np.diff(np.bincount(labels, minlength=2)) <= 0)


def test_rows_of_mere_rounding_have_no_direction():
    rows = np.repeat(np.eye(3)[:, :2] + 1e-18, [4, 3, 2], axis=0)
    assert not normalize_rows(rows)[7:].any()
    labels, _ = discretize(rows, 2, random_state=0)
    rows[7:] = 0
    np.testing.assert_array_equal(labels, discretize(rows, 2, random_state=0)[0])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fewer_directions_than_clusters_leave_the_last_clusters_empty():
    rows = np.array([[2.0], [-1.0], [3.0], [5.0]])
    labels, centers = discretize(rows, 3, random_state=0)
    assert labels.tolist() == [0, 1, 0, 0]
    assert centers.shape == (3, 1)
    np.testing.assert_array_equal(nearest_center(normalize_rows(rows), centers), labels)


def test_as_many_clusters_as_rows_are_single():
    labels, _ = discretize(np.eye(6) + 0.1, 6, random_state=0)
    np.testing.assert_array_equal(labels, np.arange(6))
