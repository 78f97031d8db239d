import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

from libraries import LIBRARIES, as_library
from mkclust.linalg import to_host
from mkclust.stack import lloyd
from mkclust.stack.discretize import discretize, nearest_center, normalize_rows
from mkclust.stack.lloyd import k_means

pytestmark = pytest.mark.slow


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
    np.testing.assert_allclose(first[1], second[1], rtol=1e-12, atol=1e-12)
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


# --- Lloyd where the rows live ----------------------------------------------------------------


def inertia(rows, centers):
    return np.sum(np.min(cdist(rows, centers), axis=1) ** 2)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-4)])
def test_clear_clusters_are_found_wherever_the_rows_are(library, init, dtype, tolerance):
    rows, labels = make_blobs(300, 4, centers=3, cluster_std=0.3, random_state=2)
    rows = rows.astype(dtype)
    centers = k_means(as_library(library, rows), 3, init=init, random_state=0)
    assert isinstance(centers, np.ndarray)
    assert centers.dtype == dtype
    found = cdist(rows, centers).argmin(axis=1)
    assert adjusted_rand_score(labels, found) == 1
    means = [rows[found == j].mean(axis=0, dtype=np.float64) for j in range(3)]
    np.testing.assert_allclose(centers, means, atol=tolerance)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("k", [5, 10, 20])
@pytest.mark.parametrize("spread", [0.5, 3.0, 8.0])
def test_starts_together_are_as_good_as_those_of_scikit_learn(library, k, spread):
    rows, _ = make_blobs(1000, 8, centers=10, cluster_std=spread, random_state=0)
    best = KMeans(k, n_init=10, random_state=0).fit(rows).inertia_
    centers = k_means(as_library(library, rows), k, random_state=0)
    assert inertia(rows, centers) <= 1.01 * best


@pytest.mark.parametrize("library", LIBRARIES)
def test_far_from_zero_clusters_are_the_same(library):
    rows, _ = make_blobs(300, 4, centers=5, random_state=1)
    centers = k_means(as_library(library, rows), 5, random_state=0)
    far = k_means(as_library(library, rows + 1e6), 5, random_state=0)
    np.testing.assert_allclose(far - 1e6, centers, atol=1e-6)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_the_seed_of_lloyd_decides(library, init):
    rows = as_library(library, noisy_rows(n=200))

    def centers(state):
        return k_means(rows, 9, n_init=1, init=init, random_state=state)

    np.testing.assert_allclose(centers(3), centers(3), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        centers(3), centers(np.random.RandomState(3)), rtol=1e-12, atol=1e-12
    )
    assert not np.array_equal(centers(3), centers(4))
    state = np.random.RandomState(3)
    assert not np.array_equal(centers(state), centers(state))
    assert np.isfinite(centers(None)).all()


@pytest.mark.parametrize("library", LIBRARIES)
def test_more_starts_of_lloyd_hold_the_fewer(library):
    rows = normalize(noisy_rows(n=200))
    there = as_library(library, rows)
    found = [inertia(rows, k_means(there, 9, n_init=s, random_state=0)) for s in (1, 2, 4, 8, 16)]
    assert np.all(np.diff(found) <= 1e-9)
    assert found[-1] < found[0]


@pytest.mark.parametrize("library", LIBRARIES)
def test_how_many_starts_are_taken_at_once_does_not_matter(library, monkeypatch):
    rows = as_library(library, normalize(noisy_rows(n=200)))
    expected = k_means(rows, 9, n_init=7, random_state=0)
    seen, start = [], lloyd._start

    def noted(rows, k, init, rng, starts):
        seen.append(starts)
        return start(rows, k, init, rng, starts)

    monkeypatch.setattr(lloyd, "_start", noted)
    for at_once, cut in ((3, [3, 3, 1]), (0, [1] * 7)):
        seen.clear()
        n_bytes = at_once * 8 * 200 * 9
        found = k_means(rows, 9, n_init=7, random_state=0, distance_bytes=n_bytes)
        assert seen == cut
        order, other = np.lexsort(expected.T), np.lexsort(found.T)
        np.testing.assert_allclose(found[other], expected[order], atol=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_empty_cluster_moves_to_the_farthest_row_as_in_scikit_learn(library):
    rows = np.array([[0.0], [1.0], [2.0], [9.0], [14.0], [40.0]])
    # Two of the centers are nearest to none of the rows.
    start = np.array([[1.0], [-500.0], [11.0], [900.0]])
    there, starts = as_library(library, rows), as_library(library, start[None])
    labels = as_library(library, cdist(rows, start).argmin(axis=1)[:, None])
    moved = to_host(lloyd._means(there, labels, starts, 0.0))[0]
    once = KMeans(4, init=start, n_init=1, max_iter=1, tol=0).fit(rows)
    np.testing.assert_allclose(np.sort(moved[:, 0]), [1, 9, 14, 40], atol=1e-12)
    np.testing.assert_allclose(np.sort(moved, 0), np.sort(once.cluster_centers_, 0), atol=1e-12)
    settled = to_host(lloyd._settle(there, starts, 0.0, 0.0))[0]
    np.testing.assert_allclose(np.sort(settled, 0), np.sort(moved, 0), atol=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_cluster_that_gives_its_last_row_away_stays(library):
    rows, start = np.array([[0.0], [2.0], [50.0]]), np.array([[1.0], [40.0], [-9.0]])
    there, starts = as_library(library, rows), as_library(library, start[None])
    labels = as_library(library, cdist(rows, start).argmin(axis=1)[:, None])
    moved = to_host(lloyd._means(there, labels, starts, 0.0))[0]
    np.testing.assert_allclose(moved, [[1.0], [50.0], [50.0]], atol=1e-12)
    settled = to_host(lloyd._settle(there, starts, 0.0, 0.0))[0]
    np.testing.assert_allclose(np.sort(settled[:, 0]), [0, 2, 50], atol=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e4 / 3])
@pytest.mark.parametrize("distinct", [1, 3])
def test_fewer_distinct_rows_than_clusters_end_at_those_rows(library, init, dtype, value, distinct):
    rows = np.repeat(np.random.default_rng(0).normal(size=(distinct, 3)) * (distinct > 1), 40, 0)
    rows = (rows + value).astype(dtype)
    with pytest.warns(ConvergenceWarning, match=rf"clusters \({distinct}\) found smaller .* \(5\)"):
        centers = k_means(as_library(library, rows), 5, init=init, n_init=3, random_state=0)
    assert np.isfinite(centers).all()
    np.testing.assert_allclose(
        cdist(rows, centers).min(axis=1), 0, atol=100 * np.finfo(dtype).eps * max(value, 1)
    )


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.parametrize("columns", [1, 4])
def test_one_cluster_is_the_mean_and_as_many_as_rows_are_the_rows(library, init, columns):
    rows = np.random.default_rng(0).normal(size=(30, columns))
    there = as_library(library, rows)
    (mean,) = k_means(there, 1, init=init, random_state=0)
    np.testing.assert_allclose(mean, rows.mean(axis=0), atol=1e-12)
    all_of_them = k_means(there, 30, init=init, random_state=0)
    order, other = np.lexsort(all_of_them.T), np.lexsort(rows.T)
    np.testing.assert_allclose(all_of_them[order], rows[other], atol=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_of_one_column_are_cut_where_the_gaps_are(library):
    rows = np.concatenate([center + np.linspace(0, 1, 20) for center in (0, 50, 90)])[:, None]
    centers = k_means(as_library(library, rows), 3, random_state=0)
    np.testing.assert_allclose(np.sort(centers[:, 0]), [0.5, 50.5, 90.5], atol=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
def test_lloyd_refuses_what_scikit_learn_refuses(library):
    rows = np.random.default_rng(0).normal(size=(6, 2))
    for bad in (rows, rows[:0]):
        with pytest.raises(ValueError, match=f"n_samples={len(bad)} should be >= n_clusters=7"):
            k_means(as_library(library, bad), 7)
    with pytest.raises(ValueError, match="init='best' is not known: pass 'k-means"):
        k_means(as_library(library, rows), 2, init="best")
    for value in (np.nan, np.inf):
        rows[3, 1] = value
        with pytest.raises(ValueError, match="the rows to cluster have entries that are NaN"):
            k_means(as_library(library, rows), 2)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rounding_does_not_keep_empty_clusters_moving(library, dtype, monkeypatch):
    looks, distances = [], lloyd._distances
    monkeypatch.setattr(lloyd, "_distances", lambda *given: looks.append(1) or distances(*given))
    # Which means round so that one cluster after another would lose its rows is a matter of luck.
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rows = (rng.normal(size=(3, 3))[rng.integers(3, size=1000)] / 3).astype(dtype)
        looks.clear()
        k_means(as_library(library, rows), 6, n_init=3, init="random", random_state=seed)
        assert len(looks) < 20


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.parametrize("seed", range(3))
def test_a_seed_begins_where_it_begins_in_scikit_learn(library, init, seed):
    # One start, clusters that run into each other: another start would end elsewhere.
    rows = np.random.default_rng(seed).normal(size=(300, 4))
    centers = k_means(as_library(library, rows), 9, n_init=1, init=init, random_state=seed)
    expected = KMeans(9, n_init=1, init=init, random_state=seed).fit(rows)
    found = nearest_center(rows, centers)
    assert np.mean(found == expected.labels_) > 0.98
    assert np.mean(found == KMeans(9, n_init=1, random_state=99).fit(rows).labels_) < 0.5


# Starts in single precision, and one that begins with labels --------------------------------------


def many_rows(n=3000, k=12, seed=0):
    """Return rows of unit length in clusters that overlap, and their clusters."""
    X, y = make_blobs(n, n_features=k, centers=k, cluster_std=4.0, random_state=seed)
    return normalize_rows(X), y


@pytest.mark.parametrize("seed", range(3))
def test_centers_of_many_rows_are_settled_in_double_precision(seed):
    rows, _ = many_rows(seed=seed)
    assert rows.shape[0] * 12 >= lloyd.MANY_DISTANCES
    centers = k_means(rows, 12, n_init=3, random_state=seed)
    assert centers.dtype == np.float64
    labels = cdist(rows, centers).argmin(axis=1)
    means = np.array([rows[labels == cluster].mean(axis=0) for cluster in range(12)])
    # Where k-means stops, centers move by less than its tolerance; in single precision alone they
    # would be off by rounding at least.
    assert np.sum((means - centers) ** 2) <= lloyd.TOLERANCE * rows.var(axis=0).mean()
    inertia = np.sum(cdist(rows, centers).min(axis=1) ** 2)
    by_scikit_learn = KMeans(12, n_init=3, random_state=seed).fit(rows).inertia_
    assert inertia <= 1.01 * by_scikit_learn


def test_one_start_may_begin_with_labels():
    rows, y = many_rows()
    settled = KMeans(12, init=np.array([rows[y == c].mean(axis=0) for c in range(12)]), n_init=1)
    expected = settled.fit(rows).labels_
    labels, _ = discretize(rows, 12, n_init=1, start=y, random_state=0)
    alone, _ = discretize(rows, 12, n_init=1, random_state=0)

    def inertia(labels):
        return sum(
            np.sum((rows[labels == c] - rows[labels == c].mean(axis=0)) ** 2) for c in set(y)
        )

    assert inertia(labels) <= 1.0001 * min(inertia(expected), inertia(alone))


def test_labels_that_leave_a_cluster_empty_begin_no_start():
    rows, y = many_rows(n=400)
    labels, _ = discretize(rows, 12, n_init=3, start=np.minimum(y, 5), random_state=0)
    assert len(np.unique(labels)) == 12
