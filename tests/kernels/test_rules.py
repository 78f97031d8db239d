"""What holds for every rule, of kinds of views and of kernels by name."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array, issparse
from scipy.spatial.distance import cdist, pdist
from sklearn.metrics.pairwise import (
    chi2_kernel,
    cosine_similarity,
    laplacian_kernel,
    polynomial_kernel,
    rbf_kernel,
)

from helpers.arrays import LIBRARIES, as_library
from helpers.kinds import example as example_of_kind
from mkclust import AverageKKM
from mkclust.kernels import KernelBank, Nystroem
from mkclust.kernels.kinds import RULES
from mkclust.linalg import to_host

pytestmark = [
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


def example(rule, seed=0):
    if not RULES[rule].by_name:
        return example_of_kind(rule, seed)
    return {"overlap": codes, "from_distances": distances}.get(rule, numbers)(seed)


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
    "laplacian": lambda X: laplacian_kernel(
        X, gamma=1 / np.median(pdist(X, "cityblock"))
    ),
    "chi2": lambda X: chi2_kernel(
        X,
        gamma=1
        / np.median(-np.log(chi2_kernel(X, gamma=1))[np.triu_indices(len(X), 1)]),
    ),
    "hellinger": lambda X: np.sqrt(shares(X)) @ np.sqrt(shares(X)).T,
    "jaccard": smaller_by_larger,
    "overlap": lambda X: np.mean(X[:, None] == X, axis=2),
    "from_distances": lambda D: np.exp(
        -(D**2) / (2 * np.median(D[np.triu_indices(len(D), 1)]) ** 2)
    ),
}
EVERY = [name for name in RULES if name not in ("categorical", "precomputed")]


def bank_of(rule, **parameters):
    return KernelBank(**ONE, rules={"a": rule}, **parameters)


def dense(kernels):
    """Return the one kernel of a bank, stored in any way, as an array on the host."""
    kernels = kernels.all_rows() if hasattr(kernels, "all_rows") else kernels
    first = kernels[0] if isinstance(kernels, list) else kernels[0, ...]
    return first.toarray() if hasattr(first, "toarray") else to_host(first)


def kernel(rule, view, **parameters):
    return dense(bank_of(rule, **parameters).fit_transform({"a": view}))


@pytest.mark.parametrize("name", [name for name in EVERY if RULES[name].by_name])
def test_a_kernel_by_name_is_what_its_name_says(name):
    view = example(name)
    np.testing.assert_allclose(
        kernel(name, view), EXPECTED[name](view), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("rule", EVERY)
@pytest.mark.parametrize("library", LIBRARIES)
def test_kernels_are_the_same_in_every_library(rule, library):
    view, bank = example(rule), bank_of(rule)
    # Several rows of zeros are alike.
    places = 5 + np.flatnonzero(view[5:25].any(axis=1))
    some, whole = as_library(library, view[places]), kernel(rule, view)
    there = dense(bank.fit_transform({"a": as_library(library, view)}))
    np.testing.assert_allclose(there, whole, rtol=1e-9, atol=1e-11)
    own = to_host(bank.self_similarity({"a": some})[0, ...])
    np.testing.assert_allclose(own, np.diagonal(whole)[places], atol=1e-11)
    restored = pickle.loads(pickle.dumps(bank))
    if rule != "graph":  # new rows of which have no column of their own
        np.testing.assert_allclose(
            dense(bank.transform({"a": some})), whole[places], atol=1e-11
        )
        on_host = dense(restored.transform({"a": view[places]}))
        np.testing.assert_allclose(on_host, whole[places], atol=1e-11)
    single = dense(
        bank_of(rule).fit_transform({"a": as_library(library, view.astype("float32"))})
    )
    np.testing.assert_allclose(single, whole, atol=2e-5)


@pytest.mark.parametrize("rule", [rule for rule in EVERY if rule != "from_distances"])
@pytest.mark.parametrize("parameters", [{}, {"on_the_fly": True}, {"neighbors": 5}])
def test_kernels_of_a_sparse_view_are_those_of_its_entries(rule, parameters):
    view = example(rule)
    if rule == "overlap":  # sparse categories are one-hot
        view = np.hstack([np.eye(4)[column] for column in view.astype(int).T])
    given_dense, given_sparse = (bank_of(rule, **parameters) for _ in range(2))
    held = dense(given_dense.fit_transform({"a": view}))
    found = dense(given_sparse.fit_transform({"a": csc_array(view)}))
    np.testing.assert_allclose(found, held, atol=1e-12)
    assert issparse(given_sparse.views_["a"])
    new = view[3:8] * (0.5 if rule in ("sparse", "graph") else 1)
    held = dense(given_dense.transform({"a": new}))
    for rows in (csr_array(new), new):
        np.testing.assert_allclose(
            dense(given_sparse.transform({"a": rows})), held, atol=1e-12
        )


@pytest.mark.slow
@given(st.sampled_from(EVERY), st.integers(0, 50), st.floats(1e-6, 1e6))
def test_neither_unit_nor_order_changes_a_kernel_and_it_is_as_definite_as_it_claims(
    rule, seed, factor
):
    view, rng = example(rule, seed), np.random.default_rng(seed)
    order = rng.permutation(len(view))
    if RULES[rule].of_counts:  # which have no unit
        factor = 1.0
    moved = view[np.ix_(order, order)] if RULES[rule].of_pairs else view[order]
    before, after = kernel(rule, view), kernel(rule, factor * moved)
    np.testing.assert_allclose(after, before[np.ix_(order, order)], atol=1e-9)
    values = np.linalg.eigvalsh(before)
    assert not RULES[rule].is_definite or values[0] > -1e-10 * values[-1]


def test_a_new_category_equals_no_known_one():
    bank, new = bank_of("overlap").fit({"a": codes()}), codes()[:1].copy()
    new[0, 1] = 9
    matches = (new == codes()).sum(axis=1)
    np.testing.assert_allclose(
        bank.transform({"a": new})[0, 0], matches / np.sqrt(6), atol=1e-12
    )
    assert bank.self_similarity({"a": new})[0, 0] == pytest.approx(1)


@pytest.mark.parametrize("name", ["chi2", "jaccard", "hellinger"])
def test_negative_entries_of_new_rows_count_as_zero(name):
    bank, new = bank_of(name).fit({"a": numbers()}), numbers()[:3]
    expected = bank.transform({"a": new * [0, 1, 1, 1, 1, 1]})
    found = bank.transform({"a": new * [0, 1, 1, 1, 1, 1] - np.eye(1, 6)})
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_identical_rows_have_a_scale_of_their_own():
    K = kernel("self-tuning", np.vstack([np.tile(numbers(1)[:1], (9, 1)), numbers(2)]))
    assert np.isfinite(K).all()
    np.testing.assert_array_equal(K[:9, :9], 1)
    assert np.isfinite(kernel("self-tuning", numbers(1)[:3])).all()


def test_distances_may_be_rounded():
    D = 1 - np.corrcoef(np.random.default_rng(0).normal(size=(N, 9)))
    D[3, 3] = -2e-16
    K = kernel("from_distances", D)
    np.testing.assert_allclose(K, EXPECTED["from_distances"](D), atol=1e-12)


@pytest.mark.parametrize(
    ("name", "view", "message"),
    [
        (
            "chi2",
            -numbers(),
            "View 'a' cannot have the kernel 'chi2', which takes no negative",
        ),
        (
            "overlap",
            numbers(),
            "few values per column: found .* in column 0, of 40 rows",
        ),
        ("overlap", csr_array(numbers()), "'overlap'.*sparse"),
        ("from_distances", csr_array(distances()), "'from_distances'.*sparse"),
        (
            "from_distances",
            numbers(),
            "one column per sample: found 6 columns, 40 samples",
        ),
        (
            "from_distances",
            distances() + np.eye(N),
            "zero diagonal: .*kernels='precomputed'",
        ),
        ("from_distances", np.triu(distances()), "symmetric: found .*D\\[D.index\\]"),
        ("from_distances", np.zeros((N, N)), "zero, or too small to square"),
        ("self-tuning", np.ones((N, 3)), "in view 'a' are identical"),
        ("laplacian", np.ones((N, 3)), "view 'a' have distance zero"),
    ],
)
def test_kernels_by_name_that_make_no_sense_of_a_view_are_refused(name, view, message):
    with pytest.raises(ValueError, match=message):
        bank_of(name).fit({"a": view})


def test_no_features_stand_for_kernels_of_pairs():
    model = AverageKKM(3, kernels={"a": "laplacian"}, approximation=Nystroem(10))
    with pytest.raises(ValueError, match="'a'.*approximation=None"):
        model.fit({"a": numbers()})
