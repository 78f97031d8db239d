"""Shared neighborhoods against their formula written out, for views and for kernels."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics.pairwise import cosine_similarity, rbf_kernel

from mkclust import AverageKKM, KernelBank
from mkclust.exceptions import NeighborhoodsWarning, UncoveredSamplesWarning
from mkclust.kernels.neighbors import count_neighbors
from mkclust.linalg import FactoredMatrix

GAUSSIAN = {"widths": (1.0,), "polynomials": (), "linear": None}
COSINE = {"widths": (), "polynomials": (), "linear": "cosine"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.NeighborhoodsWarning"),
]


def blobs(n=60, k=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return [3 * np.eye(k, d)[y] + rng.normal(size=(n, d)) for d in (4, 6)]


def memberships(S, r):
    """Return which samples (rows) are in whose neighborhoods (columns), one after
    another."""
    n = len(S)
    members = np.eye(n, dtype=bool)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        for j in nearest(S[i, others], r):
            members[others[j], i] = True
    return members


def nearest(row, r):
    """Return the r most similar that are similar at all, and those as similar as the
    last."""
    least = sorted(row)[-r]
    return [j for j, each in enumerate(row) if each >= least * (1 - 1e-12) and each > 0]


def shared(members):
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


BANKS = {
    "gaussian": {"widths": (0.5, 2.0), "polynomials": (), "linear": None},
    "cosine": COSINE,
    "linear": COSINE | {"linear": "linear"},
    "polynomial": {"widths": (), "polynomials": ((1, 2),), "linear": None},
}


@pytest.mark.parametrize("r", [2, 5, 38])
@pytest.mark.parametrize("kernel", BANKS)
def test_neighborhoods_are_those_of_their_formula(kernel, r):
    X = np.random.default_rng(0).normal(size=(300 if kernel == "polynomial" else 40, 3))
    if kernel in ("cosine", "linear"):
        X[5] = X[11] = 0  # points nowhere
        X[7] = 3 * X[8]
    K = KernelBank(**BANKS[kernel]).fit_transform([X])[0]
    lengths = np.sqrt(np.where(K.diagonal() > 0, K.diagonal(), np.inf))
    expected = shared(memberships(K / np.outer(lengths, lengths), r))
    bank = KernelBank(**BANKS[kernel], neighbors=r)
    for found in bank.fit_transform([X]):
        np.testing.assert_allclose(found.toarray(), expected, atol=1e-14)
    assert bank.neighborhoods_[0].size == r


def tied_views(kind, rng):
    """Return a view of 90 samples, many of them equal or equally far from others."""
    rows = {
        "grid": lambda: rng.integers(4, size=(90, 2)) * 0.1 + 7,
        "copies": lambda: rng.normal(size=(6, 3))[rng.integers(6, size=90)],
        "loud": lambda: rng.integers(3, size=(90, 3)) * [0.1, 0.3, 90.0],
        "directions": lambda: (
            np.eye(4)[rng.integers(4, size=90)] * rng.choice([-1.0, 1], (90, 1))
        ),
        "words": lambda: rng.poisson(0.08, size=(30, 80))[
            rng.integers(30, size=90)
        ].astype(float),
        "distances": lambda: np.abs(
            np.subtract.outer(*[rng.integers(9, size=90) * 0.1] * 2)
        ),
    }
    return rows[kind]()


def entries(kernel):
    return kernel.toarray() if isinstance(kernel, FactoredMatrix) else kernel


TIED = ["grid", "copies", "loud", "directions", "words", "distances"]


@pytest.mark.parametrize("kind", TIED)
@pytest.mark.parametrize("seed", range(3))
def test_equal_samples_have_equal_neighborhoods_in_any_order(kind, seed):
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
    new = X[:7] if kind == "distances" else X[:7] + 0.1 * rng.random((7, X.shape[1]))
    of_new = new[:, order] if kind == "distances" else new
    before, after = (
        entries(bank.transform([rows])[0])
        for bank, rows in zip(banks, (new, of_new), strict=True)
    )
    np.testing.assert_allclose(after, before[:, order], atol=1e-9)


@pytest.mark.parametrize("r", [2, 7])
def test_new_samples_join_neighborhoods_by_the_formula(r):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(30, 3)), rng.normal(size=(8, 3))
    X[4] = new[2] = 0
    rest = np.setdiff1d(np.arange(8), [2])
    for options, similarity in (
        (GAUSSIAN, lambda A, B: rbf_kernel(A, B, gamma=0.1)),
        (COSINE, cosine_similarity),
    ):
        bank = KernelBank(**options, neighbors=r).fit([X, X])
        expected = shared_with_new(similarity(X, X), similarity(new, X), r)
        found = bank.transform([new, new])[0].toarray()
        np.testing.assert_allclose(found[rest], expected[rest], atol=1e-14)
        # The very sample that the bank knows has its similarities.
        np.testing.assert_allclose(
            found[2], bank.transform([X, X])[0].toarray()[4], atol=1e-14
        )
        np.testing.assert_array_equal(bank.self_similarity([new, new]), np.ones((2, 8)))


def test_neighbors_are_a_number_a_share_or_left_to_the_library():
    assert count_neighbors(7, 50) == 7
    assert count_neighbors(0.1, 50) == 5
    assert count_neighbors(0.001, 50) == 2
    assert [count_neighbors("auto", n) for n in (3, 30, 60, 1000)] == [2, 10, 20, 20]


@pytest.mark.parametrize("neighbors", [1, True, 1.0, 2.5, "many", np.nan, [5]])
def test_other_numbers_of_neighbors_are_refused(neighbors):
    with pytest.raises(ValueError, match="neighbors=.*'auto'"):
        KernelBank(neighbors=neighbors).fit(blobs())


def test_neighborhoods_that_say_nothing_are_refused():
    for neighbors, message in (
        (60, "neighbors=60 .* 59 others"),
        (59, "fewer neighbors"),
    ):
        with pytest.raises(ValueError, match=message):
            AverageKKM(3, kernels=KernelBank(**GAUSSIAN, neighbors=neighbors)).fit(
                blobs()
            )


def test_samples_without_neighbors_in_any_kernel_are_named_and_left_out():
    rng, ids = np.random.default_rng(0), [f"s{i}" for i in range(30)]
    views = {name: rng.uniform(size=(30, 5)) for name in "ab"}
    views["a"][:, 3:] = 0
    views["a"][[3, 8]] = np.eye(5)[3:]  # at right angles to all others
    frames = {name: pd.DataFrame(view, ids) for name, view in views.items()}
    model = AverageKKM(2, kernels=KernelBank(**COSINE, neighbors=4), random_state=0)
    for X, message in (
        (views, r"in a, 2 samples \(3 and 8\)"),
        (frames, r"in a, .*\(s3 and s8\)"),
    ):
        with pytest.warns(NeighborhoodsWarning, match=message):
            assert model.fit(X).labels_.shape == (30,)
    with pytest.warns(
        UncoveredSamplesWarning, match=r"2 of 30 .* no neighbor.*: 3 and 8\."
    ):
        model.fit({"a": views["a"]})
    assert np.flatnonzero(model.labels_ == -1).tolist() == [3, 8]


def test_more_unconnected_groups_than_clusters_are_told():
    X = 100 * np.repeat(np.arange(5.0), 10)[:, None] + np.random.default_rng(0).normal(
        size=(50, 2)
    )
    with pytest.warns(NeighborhoodsWarning, match="form 5 groups.*n_clusters=3"):
        model = AverageKKM(
            3, kernels=KernelBank(**GAUSSIAN, neighbors=4), random_state=0
        ).fit([X, X])
    assert model.n_components_ == 5
    with warnings.catch_warnings():
        warnings.simplefilter("error", NeighborhoodsWarning)
        model = AverageKKM(
            5, kernels=KernelBank(**GAUSSIAN, neighbors=9), random_state=0
        )
        assert model.fit([X, X]).n_components_ == 5
