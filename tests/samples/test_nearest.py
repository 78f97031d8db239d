"""Nearest rows against all distances written out."""

import importlib.util

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from libraries import FOREIGN, as_library
from mkclust.samples.nearest import (
    nearest_of_new,
    nearest_rows,
    tied_nearest_of_new,
    tied_nearest_rows,
)

FAISS = importlib.util.find_spec("faiss") is not None
needs_faiss = pytest.mark.skipif(not FAISS, reason="faiss is not installed")


def all_distances(new_rows, rows):
    differences = new_rows[:, None, :].astype(float) - rows[None].astype(float)
    return np.einsum("ijk,ijk->ij", differences, differences)


def first_of(squared, r):
    order = np.argsort(squared, axis=1, kind="stable")[:, :r]
    return order, np.take_along_axis(squared, order, axis=1)


def assert_nearest(result, rows, r):
    squared = all_distances(rows, rows)
    np.fill_diagonal(squared, np.inf)
    order, distances = first_of(squared, r)
    assert_array_equal(result.indices, order)
    assert_allclose(result.squared_distances, distances, rtol=1e-12)
    assert result.indices.dtype == np.int64
    assert result.squared_distances.dtype == np.float64


def table(name):
    """Return rows that are hard to search in one way each."""
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(300, 12))
    return {
        "plain": plain,
        "single precision": plain.astype(np.float32),
        "columns in memory": np.asfortranarray(plain),
        "low dimension": plain[:, :3],
        "one column": plain[:, :1],
        "one column of few numbers": np.round(plain[:, :1]),
        "far from the origin": plain + 1e8,
        "far from the origin in single precision": (plain + 1e4).astype(np.float32),
        "two distant clusters": plain + 1e9 * (np.arange(300) % 2)[:, None],
        "an outlier": np.vstack([plain, np.full((1, 12), 1e12)]),
        "ties": rng.integers(0, 2, size=(300, 9)).astype(float),
        "ties without copies": np.stack(np.divmod(np.arange(400.0), 20), axis=1)[
            :, [0, 1, 1, 0, 1]
        ],
        "copies": np.repeat(plain[:30], 10, axis=0)[rng.permutation(300)],
        "one category": np.eye(4)[rng.integers(4, size=300)],
        "all alike": np.ones((300, 4)),
        "rows of zeros": plain * (rng.random(300) < 0.7)[:, None],
        "signed zeros": rng.choice([-0.0, 0.0, 1.0], size=(300, 3)),
        "tiny numbers": plain * 1e-150,
    }[name]


TABLES = [
    "plain",
    "single precision",
    "columns in memory",
    "low dimension",
    "one column",
    "one column of few numbers",
    "far from the origin",
    "far from the origin in single precision",
    "two distant clusters",
    "an outlier",
    "ties",
    "ties without copies",
    "copies",
    "one category",
    "all alike",
    "rows of zeros",
    "signed zeros",
    "tiny numbers",
]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("r", [1, 30, 299])
def test_nearest_rows_are_the_first_of_all_distances(name, r):
    rows = table(name)
    r = len(rows) - 1 if r == 299 else r
    assert_nearest(nearest_rows(rows, r, approximate=False), rows, r)


@pytest.mark.parametrize("name", TABLES)
def test_known_rows_nearest_to_new_ones_are_the_first_of_all_distances(name):
    rows = table(name)
    new_rows, known = rows[:40], rows[20:]
    for r in (1, 15, len(known)):
        result = nearest_of_new(new_rows, known, r)
        order, distances = first_of(all_distances(new_rows, known), r)
        assert_array_equal(result.indices, order)
        assert_allclose(result.squared_distances, distances, rtol=1e-12)


@pytest.mark.parametrize("library", FOREIGN)
@pytest.mark.parametrize("name", ["plain", "single precision", "far from the origin", "copies"])
def test_rows_of_other_libraries_have_the_same_neighbors(library, name):
    rows = table(name)
    expected = nearest_rows(rows, 9)
    result = nearest_rows(as_library(library, rows), 9)
    assert type(result.indices) is np.ndarray
    assert_array_equal(result.indices, expected.indices)
    assert_allclose(result.squared_distances, expected.squared_distances, rtol=1e-6)
    expected = nearest_of_new(rows[:25], rows[25:], 9)
    result = nearest_of_new(as_library(library, rows[:25]), as_library(library, rows[25:]), 9)
    assert_array_equal(result.indices, expected.indices)
    assert_allclose(result.squared_distances, expected.squared_distances, rtol=1e-6)


@pytest.mark.parametrize("library", FOREIGN)
def test_new_rows_may_come_from_another_library_than_the_known_ones(library):
    rows = table("plain")
    expected = nearest_of_new(rows[:25], rows[25:], 9)
    for new, known in [(library, "numpy"), ("numpy", library)]:
        result = nearest_of_new(as_library(new, rows[:25]), as_library(known, rows[25:]), 9)
        assert_array_equal(result.indices, expected.indices)


@pytest.mark.parametrize("form", [scipy.sparse.csr_matrix, scipy.sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_have_the_neighbors_of_the_same_rows_written_out(form, dtype):
    rng = np.random.default_rng(0)
    # Whole numbers, whose distances are exact in any order of sums: with many ties.
    dense = (rng.integers(1, 4, size=(200, 40)) * (rng.random((200, 40)) < 0.1)).astype(dtype)
    dense[::7] = 0
    sparse = form(dense)
    result, expected = nearest_rows(sparse, 20), nearest_rows(dense, 20)
    assert_nearest(result, dense, 20)
    assert_array_equal(result.indices, expected.indices)
    assert_array_equal(
        nearest_of_new(sparse[:30], sparse[30:], 20).indices,
        nearest_of_new(dense[:30], dense[30:], 20).indices,
    )


def test_explicit_zeros_and_unsorted_entries_do_not_tell_sparse_rows_apart():
    data, columns = np.array([2.0, 1.0, 1.0, 2.0, 0.0, 5.0]), np.array([1, 0, 0, 1, 2, 0])
    rows = scipy.sparse.csr_matrix((data, columns, [0, 2, 5, 6]), shape=(3, 3))
    result = nearest_rows(rows, 1)
    assert_array_equal(result.indices.ravel(), [1, 0, 0])
    assert_array_equal(result.squared_distances.ravel(), [0, 0, 20])
    assert rows.nnz == 6  # the caller's matrix is as it was


def test_neighbors_do_not_depend_on_the_number_of_threads():
    rows = np.random.default_rng(0).normal(size=(3000, 20))
    with threadpool_limits(1):
        one = nearest_rows(rows, 10)
    with threadpool_limits(2):
        two = nearest_rows(rows, 10)
    assert_array_equal(one.indices, two.indices)
    assert_allclose(one.squared_distances, two.squared_distances, rtol=1e-6)


@pytest.mark.parametrize("n_neighbors", [0, -1, 5, 2.0, True, "3"])
def test_a_number_of_neighbors_that_cannot_be_is_refused(n_neighbors):
    rows = np.arange(10.0).reshape(5, 2)
    with pytest.raises(ValueError, match=r"n_neighbors=.*each of 5 rows has 4 others.* 1 to 4"):
        nearest_rows(rows, n_neighbors)


def test_a_single_row_has_no_neighbors():
    with pytest.raises(ValueError, match="each of 1 rows has 0 others: pass more rows"):
        nearest_rows(np.ones((1, 2)), 1)
    assert nearest_of_new(np.zeros((1, 2)), np.ones((1, 2)), 1).squared_distances == 2
    with pytest.raises(ValueError, match="n_neighbors=2, and there are 1 known rows"):
        nearest_of_new(np.zeros((1, 2)), np.ones((1, 2)), 2)


def test_other_words_for_approximate_are_refused():
    with pytest.raises(ValueError, match="approximate='yes': choose one of 'auto', True, False"):
        nearest_rows(np.eye(5), 2, approximate="yes")


@pytest.mark.skipif(FAISS, reason="faiss is installed")
def test_without_faiss_an_index_is_refused_and_auto_is_exact():
    rows = table("plain")
    with pytest.raises(ImportError, match=r'pip install "mkclust\[neighbors\]"'):
        nearest_rows(rows, 5, approximate=True)
    assert_nearest(nearest_rows(rows, 5, largest_exact=10), rows, 5)


def test_there_is_no_index_of_sparse_rows():
    rows = scipy.sparse.csr_matrix(np.eye(20))
    with pytest.raises(ValueError, match="no index for sparse rows.*TruncatedSVD"):
        nearest_rows(rows, 5, approximate=True)
    nearest_rows(rows, 5, largest_exact=10)


def curved_table(n):
    """Return rows near a surface of few dimensions in many columns, as data are."""
    rng = np.random.default_rng(0)
    hidden = 2 * rng.normal(size=(10, 4))[rng.integers(10, size=n)] + rng.normal(size=(n, 4))
    return np.tanh(hidden @ rng.normal(size=(4, 30)) / 3) + 0.05 * rng.normal(size=(n, 30))


def recall(result, expected):
    pairs = zip(result.indices, expected.indices, strict=True)
    return np.mean([len(np.intersect1d(*pair)) / len(pair[1]) for pair in pairs])


@needs_faiss
@pytest.mark.parametrize("scale", [1.0, 1e-60, 1e60])
def test_an_index_misses_few_neighbors_and_its_distances_are_exact(scale):
    rows = curved_table(4000) * scale
    result = nearest_rows(rows, 15, approximate=True)
    exact = nearest_rows(rows, 15, approximate=False)
    assert recall(result, exact) >= 0.95
    assert not (result.indices == np.arange(4000)[:, None]).any()
    squared = np.sum((rows[:, None] - rows[result.indices]) ** 2, axis=2)
    assert_allclose(result.squared_distances, squared, rtol=1e-12)
    assert (np.diff(result.squared_distances) >= 0).all()
    new = nearest_of_new(rows[:500], rows[500:], 15, approximate=True)
    assert recall(new, nearest_of_new(rows[:500], rows[500:], 15, approximate=False)) >= 0.95


@needs_faiss
def test_an_index_is_the_same_for_a_seed_on_any_number_of_threads():
    rows = curved_table(3000)
    with threadpool_limits(1):
        one = nearest_rows(rows, 10, approximate=True, random_state=3)
    with threadpool_limits(2):
        two = nearest_rows(rows, 10, approximate=True, random_state=3)
    assert_array_equal(one.indices, two.indices)


@needs_faiss
@pytest.mark.parametrize("has_ties", [False, True])
def test_data_that_no_index_serves_are_searched_exactly(has_ties):
    rows = np.random.default_rng(0).normal(size=(3000, 60))
    rows = np.sign(rows) if has_ties else rows
    result = nearest_rows(rows, 10, approximate=True)
    assert_array_equal(result.indices, nearest_rows(rows, 10, approximate=False).indices)


@needs_faiss
@pytest.mark.parametrize("name", ["all alike", "one category", "copies", "ties", "plain"])
def test_an_index_of_few_rows_or_of_copies_is_as_good_as_none(name):
    rows = table(name)
    result = nearest_rows(rows, 40, approximate=True)
    exact = nearest_rows(rows, 40, approximate=False)
    assert np.mean(result.squared_distances <= exact.squared_distances * (1 + 1e-12)) >= 0.95


@needs_faiss
def test_auto_takes_an_index_for_many_rows_only():
    rows = curved_table(2500)
    exact, by_index = (nearest_rows(rows, 5, approximate=flag) for flag in (False, True))
    assert recall(by_index, exact) < 1  # so that they can be told apart
    assert_array_equal(nearest_rows(rows, 5, largest_exact=2500).indices, exact.indices)
    assert_array_equal(nearest_rows(rows, 5, largest_exact=2499).indices, by_index.indices)


def tied_table(rng):
    """Return rows of few different numbers, near the origin or not, and how many neighbors."""
    n, d = rng.integers(5, 120), rng.integers(1, 7)
    rows = rng.integers(rng.integers(2, 6), size=(n, d)) * 0.1 + rng.choice([0.0, 5.0])
    return rows, int(rng.integers(1, n - 1))


def reaching(squared, last):
    return squared <= last * (1 + 1e-10) + 1e-25


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_lists_with_ties_hold_all_rows_as_near_as_the_last(seed, form):
    rng = np.random.default_rng(seed)
    rows, r = tied_table(rng)
    squared = all_distances(rows, rows)
    last = np.sort(squared + np.diag(np.full(len(rows), np.inf)), axis=1)[:, r - 1 : r]
    found = tied_nearest_rows(form(rows), r)
    assert_array_equal(
        found.lists.toarray(), reaching(squared, last) | np.eye(len(rows), dtype=bool)
    )
    assert_allclose(found.last, last[:, 0], rtol=1e-9, atol=1e-25)
    new = rng.integers(5, size=(8, rows.shape[1])) * 0.1
    squared = all_distances(new, rows)
    last = np.sort(squared, axis=1)[:, r - 1 : r]
    found = tied_nearest_of_new(form(new), form(rows), r)
    assert_array_equal(found.lists.toarray(), reaching(squared, last))


@pytest.mark.parametrize("longest", [3, 10, 30, 100])
@pytest.mark.parametrize("seed", range(4))
def test_equal_rows_are_in_the_same_lists_however_short_these_have_to_be(longest, seed):
    rng = np.random.default_rng(seed)
    copies = rng.normal(size=(40, 2))[np.minimum(rng.integers(80, size=200), 39)]
    for rows in (copies, rng.integers(2, size=(200, 6)).astype(float)):
        lists = tied_nearest_rows(rows, 2, longest=longest).lists.toarray()
        _, first, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        assert_array_equal(lists, lists[:, first[group]])
        assert lists.any(axis=0).all()
        sizes = np.bincount(group)
        # One list of each group at least, with all of it.
        assert lists.sum() <= np.maximum(sizes * longest, sizes).sum()


def test_lists_with_ties_end_at_the_farthest():
    rows = np.arange(10.0)[:, None]
    found = tied_nearest_rows(rows, 4, farthest=1.0)
    assert_array_equal(found.lists.toarray(), np.abs(rows - rows.T) <= 1)
