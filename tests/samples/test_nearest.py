"""Nearest rows against all distances written out."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from libraries import FOREIGN, as_library
from mkclust.samples.nearest import tied_nearest_of_new, tied_nearest_rows
from mkclust.samples.row_search import RowSearch

pytestmark = pytest.mark.slow


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


def tables():
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
    }


TABLES = tables()


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("r", [1, 30, 299])
def test_nearest_rows_are_the_first_of_all_distances(name, r):
    rows = np.unique(TABLES[name], axis=0)
    r = min(len(rows) - 1, r)
    assert_nearest(RowSearch(rows, rows, False, 0).nearest(None, r), rows, r)


@pytest.mark.parametrize("library", FOREIGN)
@pytest.mark.parametrize("name", ["plain", "single precision", "far from the origin", "copies"])
def test_rows_of_other_libraries_have_the_same_neighbors(library, name):
    rows = TABLES[name]
    expected, foreign = tied_nearest_rows(rows, 9), as_library(library, rows)
    assert_array_equal(tied_nearest_rows(foreign, 9).lists.toarray(), expected.lists.toarray())
    expected = tied_nearest_of_new(rows[:25], rows[25:], 9).lists.toarray()
    for new, known in [(foreign, foreign), (foreign, rows), (rows, foreign)]:
        result = tied_nearest_of_new(new[:25, :], known[25:, :], 9)
        assert_array_equal(result.lists.toarray(), expected)


def test_explicit_zeros_and_unsorted_entries_do_not_tell_sparse_rows_apart():
    data, columns = np.array([2.0, 1.0, 1.0, 2.0, 0.0, 5.0]), np.array([1, 0, 0, 1, 2, 0])
    rows = scipy.sparse.csr_matrix((data, columns, [0, 2, 5, 6]), shape=(3, 3))
    result = tied_nearest_rows(rows, 1)
    assert_array_equal(result.lists.toarray(), [[1, 1, 0], [1, 1, 0], [1, 1, 1]])
    assert rows.nnz == 6  # the caller's matrix is as it was


@pytest.mark.parametrize("n_neighbors", [0, -1, 5, 2.0, True, "3"])
def test_a_number_of_neighbors_that_cannot_be_is_refused(n_neighbors):
    with pytest.raises(ValueError, match="n_neighbors="):
        tied_nearest_rows(np.arange(10.0).reshape(5, 2), n_neighbors)


def curved_table(n):
    """Return rows near a surface of few dimensions in many columns, as data are."""
    rng = np.random.default_rng(0)
    hidden = 2 * rng.normal(size=(10, 4))[rng.integers(10, size=n)] + rng.normal(size=(n, 4))
    return np.tanh(hidden @ rng.normal(size=(4, 30)) / 3) + 0.05 * rng.normal(size=(n, 30))


def recall(result, expected):
    pairs = zip(result.indices, expected.indices, strict=True)
    return np.mean([len(np.intersect1d(*pair)) / len(pair[1]) for pair in pairs])


@pytest.mark.parametrize("scale", [1.0, 1e-60, 1e60])
def test_an_index_misses_few_neighbors_and_its_distances_are_exact(scale):
    pytest.importorskip("faiss")
    rows = curved_table(4000) * scale
    result, exact = (RowSearch(rows, rows, by, 0).nearest(None, 15) for by in (True, False))
    assert recall(result, exact) >= 0.95
    squared = np.sum((rows[:, None] - rows[result.indices]) ** 2, axis=2)
    assert_allclose(result.squared_distances, squared, rtol=1e-12)


@pytest.mark.parametrize("has_ties", [False, True])
def test_data_that_no_index_serves_are_searched_exactly(has_ties):
    pytest.importorskip("faiss")
    rows = np.random.default_rng(0).normal(size=(3000, 60))
    rows = np.sign(rows) if has_ties else rows
    result, exact = (RowSearch(rows, rows, by, 0).nearest(None, 10) for by in (True, False))
    assert_array_equal(result.indices, exact.indices)


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
