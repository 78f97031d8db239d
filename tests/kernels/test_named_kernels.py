import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array, csr_matrix, issparse
from scipy.spatial.distance import cdist, pdist
from sklearn.metrics.pairwise import (
    chi2_kernel,
    cosine_similarity,
    laplacian_kernel,
    polynomial_kernel,
    rbf_kernel,
)

from libraries import LIBRARIES, as_library
from mkclust import (
    AverageKKM,
)
from mkclust.kernels import KernelBank, Nystroem
from mkclust.kernels.kinds import RULES
from mkclust.linalg import to_host

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.NoAgreementWarning"),
]
ONE = {"widths": (1.0,), "polynomials": (), "linear": None}
N = 40


def numbers(seed=0, n=N):
    """Return a view without negative entries, of counts that are not whole."""
    rng = np.random.default_rng(seed)
    return rng.gamma(2.0, size=(n, 6)) * (rng.random((n, 6)) < 0.8)


def codes(seed=0, n=N):
    return np.random.default_rng(seed).integers(4, size=(n, 3)).astype(float)


def distances(seed=0, n=N):
    X = numbers(seed, n)
    return cdist(X, X)


def example(name, seed=0):
    return {"overlap": codes, "from_distances": distances}.get(name, numbers)(seed)


def self_tuning(X):
    D = cdist(X, X)
    scales = np.sort(D, axis=1)[:, 7]
    return np.exp(-(D**2) / np.outer(scales, scales))


def shares(X):
    return X / np.where(X.any(axis=1), X.sum(axis=1), 1)[:, None]


def smaller_by_larger(X):
    smaller = np.minimum(X[:, None], X).sum(axis=2)
    larger = np.maximum(X[:, None], X).sum(axis=2)
    return np.where(larger > 0, smaller / np.where(larger > 0, larger, 1), 1)


# The same kernels computed independently.
EXPECTED = {
    "gaussian": lambda X: rbf_kernel(X, gamma=0.5 / np.median(pdist(X)) ** 2),
    "self-tuning": self_tuning,
    "linear": lambda X: X @ X.T / np.mean(np.sum(X**2, axis=1)),
    "cosine": cosine_similarity,
    "polynomial": lambda X: polynomial_kernel(
        X, degree=2, gamma=1 / np.mean(np.sum(X**2, axis=1)), coef0=1
    ),
    "laplacian": lambda X: laplacian_kernel(X, gamma=1 / np.median(pdist(X, "cityblock"))),
    "chi2": lambda X: chi2_kernel(
        X, gamma=1 / np.median(-np.log(chi2_kernel(X, gamma=1))[np.triu_indices(len(X), 1)])
    ),
    "hellinger": lambda X: np.sqrt(shares(X)) @ np.sqrt(shares(X)).T,
    "jaccard": smaller_by_larger,
    "overlap": lambda X: np.mean(X[:, None] == X, axis=2),
    "from_distances": lambda D: np.exp(
        -(D**2) / (2 * np.median(D[np.triu_indices(len(D), 1)]) ** 2)
    ),
}
NAMES = list(EXPECTED)
DEFINITE = [name for name in NAMES if RULES[name].is_definite]


def bank_of(name, **parameters):
    return KernelBank(**ONE, rules={"a": name}, **parameters)


def kernel(name, view, **parameters):
    return to_host(bank_of(name, **parameters).fit_transform({"a": view})[0])


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_by_name_is_what_its_name_says(name):
    view = example(name)
    np.testing.assert_allclose(kernel(name, view), EXPECTED[name](view), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("library", LIBRARIES)
def test_kernels_by_name_are_the_same_in_every_library(name, library):
    view = example(name)
    bank = bank_of(name)
    there = bank.fit_transform({"a": as_library(library, view)})
    np.testing.assert_allclose(to_host(there[0, ...]), kernel(name, view), rtol=1e-9, atol=1e-11)
    new = bank.transform({"a": as_library(library, view[5:9])})
    np.testing.assert_allclose(to_host(new[0, ...]), kernel(name, view)[5:9], atol=1e-11)
    single = bank_of(name).fit_transform({"a": as_library(library, view.astype(np.float32))})
    np.testing.assert_allclose(to_host(single[0, ...]), kernel(name, view), atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_kernels_by_name_are_the_same_on_the_fly(name):
    view = example(name)
    held, rows = kernel(name, view), bank_of(name, on_the_fly=True).fit_transform({"a": view})
    np.testing.assert_allclose(rows.all_rows()[0], held, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(rows.rows(3, 8)[0], held[3:8], rtol=1e-12, atol=1e-14)
    stored = pickle.loads(pickle.dumps(rows))
    np.testing.assert_allclose(stored.rows(0, 4), rows.rows(0, 4), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", DEFINITE)
@given(seed=st.integers(0, 2**16))
def test_kernels_that_claim_to_be_are_positive_semidefinite(name, seed):
    values = np.linalg.eigvalsh(kernel(name, example(name, seed)))
    assert values[0] > -1e-10 * values[-1]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("overlap",)])
@pytest.mark.parametrize("factor", [1e-6, 3.7, 1e9])
def test_neither_unit_nor_order_changes_a_kernel_by_name(name, factor):
    view, order = example(name), np.random.default_rng(1).permutation(N)
    moved = factor * (view[np.ix_(order, order)] if RULES[name].of_pairs else view[order])
    expected = kernel(name, view)[np.ix_(order, order)]
    np.testing.assert_allclose(kernel(name, moved), expected, atol=1e-9)


def test_categorical_is_another_word_for_overlap():
    np.testing.assert_allclose(
        kernel("categorical", codes()), kernel("overlap", codes()), rtol=1e-12, atol=1e-12
    )
    bank = bank_of("categorical").fit({"a": codes()})
    assert bank.rules_ == {"a": "overlap"}
    assert "marks of the 12 categories in 3 columns" in bank.explain()
    alone = bank_of("categorical").fit({"a": codes()[:, :1]})
    assert re.search(r"marks of the 4 categories in 1 column\b", alone.explain())


def test_a_new_category_equals_no_known_one():
    bank = bank_of("overlap").fit({"a": codes()})
    new = codes()[:1].copy()
    new[0, 1] = 9
    matches = (new == codes()).sum(axis=1)
    np.testing.assert_allclose(bank.transform({"a": new})[0, 0], matches / np.sqrt(6), atol=1e-12)
    assert bank.self_similarity({"a": new})[0, 0] == pytest.approx(1)


def test_rows_of_zeros_are_like_each_other_and_like_nothing_else_by_jaccard():
    view = np.vstack([np.zeros((2, 6)), numbers()])
    K = kernel("jaccard", view)
    assert K[0, 1] == 1
    assert not K[0, 2:][view[2:].any(axis=1)].any()


def test_new_rows_may_have_negative_entries_that_count_as_none():
    view = numbers()
    new = view[:3].copy()
    new[:, 0] = 0
    for name in ("chi2", "jaccard", "hellinger"):
        bank = bank_of(name).fit({"a": view})
        lower = new - np.array([1.0, 0, 0, 0, 0, 0])
        np.testing.assert_allclose(
            bank.transform({"a": lower}), bank.transform({"a": new}), rtol=1e-12, atol=1e-12
        )


def test_identical_rows_have_a_scale_of_their_own():
    view = np.vstack([np.tile(numbers(1)[:1], (9, 1)), numbers(2)])
    K = kernel("self-tuning", view)
    assert np.isfinite(K).all()
    np.testing.assert_array_equal(K[:9, :9], 1)
    few = kernel("self-tuning", numbers(1)[:3])
    assert few.shape == (3, 3)
    assert np.isfinite(few).all()


@pytest.mark.parametrize(
    ("name", "view", "message"),
    [
        ("chi2", -numbers(), "View 'a' is to have the kernel 'chi2', which takes no negative"),
        ("jaccard", -numbers(), "'jaccard', which takes no negative entries: found some"),
        ("hellinger", -numbers(), "'hellinger', which takes no negative entries: found some"),
        ("overlap", numbers(), "few values per column: found .* in column 0, of 40 rows"),
        ("from_distances", -distances(), "takes no negative entries: found some"),
        ("from_distances", numbers(), "one column per sample: found 6 columns, 40 samples"),
        ("from_distances", distances() + np.eye(N), "zero diagonal: .*kernels='precomputed'"),
        ("from_distances", np.triu(distances()), "symmetric: found .*D\\[D.index\\]"),
        ("from_distances", np.zeros((N, N)), "zero, or too small to square"),
        ("self-tuning", np.ones((N, 3)), "All rows in view 'a' are identical"),
        ("laplacian", np.ones((N, 3)), "have distance zero from each other"),
    ],
)
def test_kernels_by_name_that_make_no_sense_of_a_view_are_refused(name, view, message):
    with pytest.raises(ValueError, match=message):
        bank_of(name).fit({"a": view})


# Distances -------------------------------------------------------------------------------------


def test_distances_may_be_rounded():
    X = np.random.default_rng(0).normal(size=(N, 9))
    D = 1 - np.corrcoef(X)
    D[3, 3] = -2e-16
    assert (np.diag(D) != 0).any()
    K = kernel("from_distances", D)
    np.testing.assert_allclose(K, EXPECTED["from_distances"](D), atol=1e-12)
    np.testing.assert_array_equal(np.diag(K), 1)


# Sparse views ----------------------------------------------------------------------------------


def marks():
    return np.hstack([np.eye(4)[column] for column in codes().astype(int).T])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "from_distances"])
@pytest.mark.parametrize("container", [csr_array, csc_array, csr_matrix])
def test_kernels_by_name_of_a_sparse_view_are_those_of_its_entries(name, container):
    view = marks() if name == "overlap" else numbers()
    bank, held = bank_of(name), kernel(name, view)
    np.testing.assert_allclose(bank.fit_transform({"a": container(view)})[0], held, atol=1e-12)
    assert issparse(bank.views_["a"])
    for new in (container(view[3:8]), view[3:8]):
        np.testing.assert_allclose(bank.transform({"a": new})[0], held[3:8], atol=1e-12)
    rows = bank_of(name, on_the_fly=True).fit_transform({"a": container(view)})
    np.testing.assert_allclose(rows.rows(3, 8)[0], held[3:8], atol=1e-12)


@pytest.mark.parametrize("name", ["laplacian", "chi2", "jaccard", "self-tuning", "polynomial"])
def test_no_features_stand_for_kernels_of_pairs(name):
    model = AverageKKM(3, kernels={"a": name}, approximation=Nystroem(10))
    with pytest.raises(ValueError, match="is computed of pairs .* or approximation=None"):
        model.fit({"a": example(name)})
