"""Shared neighborhoods against their formula written out, for views and for kernels."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics.pairwise import cosine_similarity, rbf_kernel

from mkclust import AverageKKM, KernelBank
from mkclust.exceptions import NeighborhoodsWarning
from mkclust.kernels.neighbors import count_neighbors
from mkclust.linalg import FactoredMatrix

GAUSSIAN = {"widths": (1.0,), "polynomials": (), "linear": None}
COSINE = {"widths": (), "polynomials": (), "linear": "cosine"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.WeightsWarning"),
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.NoAgreementWarning"),
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.NeighborhoodsWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def blobs(n=60, k=3, seed=0):
    """Return two views of clusters that overlap a little."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return [3 * np.eye(k, d)[y] + rng.normal(size=(n, d)) for d in (4, 6)]


def memberships(S, r):
    """Return which samples (rows) are in whose neighborhoods (columns), one after another."""
    n = len(S)
    members = np.eye(n, dtype=bool)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        for j in nearest(S[i, others], r):
            members[others[j], i] = True
    return members


def nearest(row, r):
    """Return the r most similar that are similar at all, and those as similar as the last."""
    least = sorted(row)[-r]
    return [j for j, each in enumerate(row) if each >= least * (1 - 1e-12) and each > 0]


def shared(members):
    """Return the kernel of memberships by its formula."""
    members = members.astype(float)
    counts = members.sum(axis=1)
    return members @ members.T / np.sqrt(np.outer(counts, counts))


def shared_with_new(S, cross, r):
    """Return the similarities of new samples by the formula, entry by entry."""
    members, n = memberships(S, r), len(S)
    counts, rows = members.sum(axis=1), []
    for row in cross:
        joined = np.zeros(n, bool)
        for i in range(n):
            neighbors = [S[i, j] for j in range(n) if members[j, i] and j != i]
            least = min(neighbors) if len(neighbors) >= r else 0
            joined[i] = row[i] >= least and row[i] > 0
        own = np.zeros(n, bool)
        own[nearest(row, r)] = True
        both = np.array([np.sum(joined & members[y]) + own[y] for y in range(n)])
        rows.append(both / np.sqrt((joined.sum() + 1) * counts))
    return np.array(rows)


def unit_diagonal(K):
    return K / np.sqrt(np.outer(K.diagonal(), K.diagonal()))


# The kernel -------------------------------------------------------------------------------------


@pytest.mark.parametrize("r", [2, 5, 38])
def test_neighborhoods_of_gaussian_kernels_are_those_of_their_formula(r):
    X = np.random.default_rng(0).normal(size=(40, 3))
    bank = KernelBank(widths=(0.5, 2.0), polynomials=(), linear=None, neighbors=r)
    K = bank.fit_transform([X])
    expected = shared(memberships(rbf_kernel(X, gamma=0.1), r))
    for kernel in K:
        np.testing.assert_allclose(kernel.toarray(), expected, atol=1e-14)
    assert bank.neighborhoods_[1].size == r
    assert K[0] is K[1]


def test_neighborhoods_by_angles_leave_out_zeros_and_what_points_elsewhere():
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[5] = X[11] = 0
    X[7] = 3 * X[8]
    S = cosine_similarity(X)
    for r in (3, 30):
        for linear in ("cosine", "linear"):
            bank = KernelBank(**COSINE | {"linear": linear}, neighbors=r)
            K = bank.fit_transform([X])[0].toarray()
            np.testing.assert_allclose(K, shared(memberships(S, r)), atol=1e-14)
        assert K[5].sum() == K[5, 5] == 1


def test_neighborhoods_of_other_kernels_are_found_by_their_rows():
    X = np.random.default_rng(0).normal(size=(300, 3))
    bank = KernelBank(widths=(), polynomials=((1, 2),), linear=None)
    K = bank.fit_transform([X])[0]
    found = KernelBank(**bank.get_params() | {"neighbors": 4}).fit_transform([X])[0]
    expected = shared(memberships(unit_diagonal(K), 4))
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-14)


def tied_views(kind, rng):
    """Return a view of 90 samples, many of them equal or equally far from others."""
    rows = {
        "grid": lambda: rng.integers(4, size=(90, 2)) * 0.1 + 7,
        "copies": lambda: rng.normal(size=(6, 3))[rng.integers(6, size=90)],
        "half": lambda: rng.normal(size=(90, 3)) * (np.arange(90) % 2)[:, None],
        "loud": lambda: rng.integers(3, size=(90, 3)) * [0.1, 0.3, 90.0],
        "directions": lambda: np.eye(4)[rng.integers(4, size=90)] * rng.choice([-1.0, 1], (90, 1)),
        "words": lambda: rng.poisson(0.08, size=(30, 80))[rng.integers(30, size=90)].astype(float),
        "shares": lambda: rng.multinomial(4, np.ones(5) / 5, size=90) / 4,
        "distances": lambda: np.abs(np.subtract.outer(*[rng.integers(9, size=90) * 0.1] * 2)),
    }
    return rows[kind]()


def entries(kernel):
    return kernel.toarray() if isinstance(kernel, FactoredMatrix) else kernel


TIED = ["grid", "copies", "half", "loud", "directions", "words", "shares", "distances"]


@pytest.mark.parametrize("kind", TIED)
@pytest.mark.parametrize("seed", range(3))
def test_equal_samples_have_equal_neighborhoods_and_labels_in_any_order(kind, seed):
    rng = np.random.default_rng(seed)
    X, order = tied_views(kind, rng), rng.permutation(90)
    moved = X[np.ix_(order, order)] if kind == "distances" else X[order]
    banks = [KernelBank(**GAUSSIAN, rules="kind").fit([rows]) for rows in (X, moved)]
    before, after = (bank.neighborhoods_[0].members.toarray() for bank in banks)
    np.testing.assert_array_equal(after, before[np.ix_(order, order)])
    _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
    assert len(first) < 90
    np.testing.assert_array_equal(before, before[first[group]])
    np.testing.assert_array_equal(before, before[:, first[group]])
    model = AverageKKM(3, kernels=KernelBank(**GAUSSIAN, rules="kind"), random_state=0)
    labels = model.fit([X]).labels_
    np.testing.assert_array_equal(labels, labels[first[group]])
    new = X[:7] if kind == "distances" else X[:7] + 0.1 * rng.random((7, X.shape[1]))
    of_new = new[:, order] if kind == "distances" else new
    before, after = (
        entries(bank.transform([rows])[0]) for bank, rows in zip(banks, (new, of_new), strict=True)
    )
    np.testing.assert_allclose(after, before[:, order], atol=1e-9)


# New samples ------------------------------------------------------------------------------------


@pytest.mark.parametrize("r", [2, 7])
def test_new_samples_join_neighborhoods_by_the_formula(r):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(30, 3)), rng.normal(size=(8, 3))
    X[4] = new[2] = 0
    for options, similarity in (
        (GAUSSIAN, lambda A, B: rbf_kernel(A, B, gamma=0.1)),
        (COSINE, cosine_similarity),
    ):
        bank = KernelBank(**options, neighbors=r).fit([X, X])
        expected = shared_with_new(similarity(X, X), similarity(new, X), r)
        known = np.array([2]) if options is GAUSSIAN else np.array([], int)
        rest = np.setdiff1d(np.arange(8), [2])
        found = bank.transform([new, new])
        assert [each.shape for each in found] == [(8, 30)] * 2
        np.testing.assert_allclose(found[0].toarray()[rest], expected[rest], atol=1e-14)
        if len(known):  # the very sample that the bank knows
            K = bank.transform([X, X])[0].toarray()
            np.testing.assert_allclose(found[0].toarray()[2], K[4], atol=1e-14)
        np.testing.assert_array_equal(bank.self_similarity([new, new]), np.ones((2, 8)))


# What is asked for, and what is refused ---------------------------------------------------------


def test_neighbors_are_a_number_a_share_or_left_to_the_library():
    assert count_neighbors(7, 50) == 7
    assert count_neighbors(0.1, 50) == 5
    assert count_neighbors(0.001, 50) == 2
    assert [count_neighbors("auto", n) for n in (3, 30, 60, 1000)] == [2, 10, 20, 20]


@pytest.mark.parametrize("neighbors", [1, True, 1.0, 2.5, "many", np.nan, [5]])
def test_other_numbers_of_neighbors_are_refused(neighbors):
    with pytest.raises(ValueError, match="neighbors=.*'auto'"):
        KernelBank(neighbors=neighbors).fit(blobs())


def test_more_neighbors_than_other_samples_are_refused():
    with pytest.raises(ValueError, match="neighbors=60 .* 59 others"):
        AverageKKM(3, kernels=bank_of(60)).fit(blobs())
    with pytest.raises(ValueError, match="which says nothing about clusters: pass fewer neighbors"):
        AverageKKM(3, kernels=bank_of(59)).fit(blobs())


def bank_of(neighbors, options=GAUSSIAN):
    """Return a bank of shared neighborhoods."""
    return KernelBank(**options, neighbors=neighbors)


def test_samples_without_neighbors_are_named_and_refused_if_they_have_none_in_any_kernel():
    rng, ids = np.random.default_rng(0), [f"s{i}" for i in range(30)]
    views = {name: rng.uniform(size=(30, 5)) for name in "ab"}
    views["a"][:, 3:] = 0
    views["a"][[3, 8]] = np.eye(5)[3:]  # at right angles to all others
    frames = {name: pd.DataFrame(view, ids) for name, view in views.items()}
    model = AverageKKM(2, kernels=bank_of(4, COSINE), random_state=0)
    for X, message in ((views, r"in a, 2 samples \(3 and 8\)"), (frames, r"in a, .*\(s3 and s8\)")):
        with pytest.warns(NeighborhoodsWarning, match=message):
            assert model.fit(X).labels_.shape == (30,)
    with pytest.raises(ValueError, match=r"2 samples \(3 and 8\) have no neighbor in any kernel"):
        model.fit({"a": views["a"]})


def test_more_unconnected_groups_than_clusters_are_told():
    X = 100 * np.repeat(np.arange(5.0), 10)[:, None] + np.random.default_rng(0).normal(size=(50, 2))
    with pytest.warns(NeighborhoodsWarning, match="form 5 groups.*n_clusters=3"):
        model = AverageKKM(3, kernels=bank_of(4), random_state=0).fit([X, X])
    assert model.n_components_ == 5
    with warnings.catch_warnings():
        warnings.simplefilter("error", NeighborhoodsWarning)
        model = AverageKKM(5, kernels=bank_of(9), random_state=0)
        assert model.fit([X, X]).n_components_ == 5
