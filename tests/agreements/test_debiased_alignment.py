"""Agreement of kernels: unbiased, with exact moments under permutations, and valid
p-values."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chi2, hypergeom, norm

from mkclust.agreements.alignments import (
    OffDiagonalProducts,
    debiased_alignments,
    effective_directions,
    leading_shares,
    p_values,
    permutation_scores,
    simulated_p_value,
)
from mkclust.agreements.alignments import u_centered as centered_in_place


def products_of(kernels):
    """Sum up by the definitions what pairs of kernels share off their diagonals."""
    hollow = np.array([K - np.diag(np.diag(K)) for K in kernels])
    sums = hollow.sum(axis=2)
    products, traces = (
        np.einsum("pij,qij->pq", hollow, hollow),
        [np.trace(K) for K in kernels],
    )
    totals = sums.sum(axis=1)
    return OffDiagonalProducts(
        len(sums[0]), products, sums @ sums.T, totals, np.array(traces)
    )


def u_centered(K):
    """Return the U-centered matrix by its definition, entry by entry."""
    n, U = len(K), np.zeros_like(K)
    hollow = K - np.diag(np.diag(K))
    for i in range(n):
        for j in range(n):
            if i != j:
                U[i, j] = hollow[i, j] - (hollow[i].sum() + hollow[:, j].sum()) / (
                    n - 2
                )
                U[i, j] += hollow.sum() / ((n - 1) * (n - 2))
    return U


def random_kernels(rng, n, ranks):
    """Return kernels of random features, one of each rank."""
    features = [rng.normal(size=(n, rank)) for rank in ranks]
    return np.array([F @ F.T for F in features])


def gaussian_kernel(X):
    """Return a Gaussian kernel of median width."""
    squares = np.square(X[:, None] - X).sum(axis=2)
    return np.exp(-squares / np.median(squares))


def test_the_sums_are_the_inner_products_of_u_centered_kernels():
    kernels = random_kernels(np.random.default_rng(0), 9, (1, 3, 20))
    U = np.array([u_centered(K) for K in kernels])
    expected = np.einsum("pij,qij->pq", U, U) / (9 * 6)
    assert np.allclose(products_of(kernels).unbiased(), expected)


def test_kernels_are_u_centered_by_the_definition():
    for K in random_kernels(np.random.default_rng(0), 9, (1, 3, 20)):
        U = centered_in_place(K.copy())
        np.testing.assert_allclose(U, u_centered(K), atol=1e-12)
        np.testing.assert_allclose(U.sum(axis=0), 0, atol=1e-12)


def test_over_all_permutations_the_mean_is_zero_and_the_variance_the_stated_one():
    kernels = random_kernels(np.random.default_rng(1), 6, (2, 4))
    u = products_of(kernels).unbiased()
    orders = map(list, permutations(range(6)))
    shuffled = [
        products_of([kernels[0], kernels[1][np.ix_(order, order)]]).unbiased()[0, 1]
        for order in orders
    ]
    assert np.mean(shuffled) == pytest.approx(0, abs=1e-12)
    assert np.var(shuffled) == pytest.approx(2 * u[0, 0] * u[1, 1] / (6 * 3))
    alignments, _ = debiased_alignments(products_of(kernels))
    z = permutation_scores(alignments, 6)[0, 1]
    assert z == pytest.approx(u[0, 1] / np.std(shuffled))


def test_p_values_are_of_a_squared_normal_for_one_direction_and_a_normal_for_many():
    scores = np.full((2, 2), 3.0)
    assert p_values(scores, np.ones(2))[0, 1] == pytest.approx(
        chi2.sf(1 + 3 * np.sqrt(2), 1)
    )
    assert p_values(scores, np.full(2, 1e-2))[0, 1] == pytest.approx(
        norm.sf(3), rel=0.02
    )


def test_equal_levels_have_one_direction_less_than_levels_and_noise_has_many():
    rng, n = np.random.default_rng(5), 300
    kernels = [
        np.equal.outer(column, column) * 7.0 for column in np.arange(n) % [[2], [5]]
    ]
    products = products_of(
        [*kernels, gaussian_kernel(rng.normal(size=(n, 50))), np.eye(n)]
    )
    found = effective_directions(products, debiased_alignments(products)[1])
    assert found[:2] == pytest.approx([1, 4], rel=0.03)
    assert found[2] > 100
    assert found[3] == np.inf


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["two levels", "three levels", "normal", "low rank"])
def test_p_values_of_permuted_kernels_are_not_too_small(kind):
    """At every level, chance alone gets there no more often than is said."""
    rng = np.random.default_rng(6)
    n, hits = 60, {0.05: 0, 0.01: 0, 0.002: 0}

    def draw():
        if kind.endswith("levels"):
            levels = 2 if kind == "two levels" else 3
            column = rng.integers(levels, size=n)
            return np.exp(-1.0 * (column[:, None] != column))
        if kind == "normal":
            return gaussian_kernel(rng.normal(size=(n, 5)))
        return random_kernels(rng, n, (2,))[0]

    for _ in range(1500):
        kernels = np.array([draw(), draw()])
        alignments, _ = debiased_alignments(products_of(kernels))
        found = p_values(permutation_scores(alignments, n), leading_shares(kernels))[
            0, 1
        ]
        for level in hits:
            hits[level] += found < level
    for level, count in hits.items():
        expected = 1500 * level
        assert count <= expected + 4 * np.sqrt(expected) + 1, (level, count)


@pytest.mark.parametrize("n_common", [2, 3])
def test_simulated_p_values_of_marks_are_those_of_drawing_without_replacement(n_common):
    first, second = np.zeros((2, 20))
    first[:3], second[3 - n_common : 6 - n_common] = 1, 1
    found = simulated_p_value(np.outer(first, first), np.outer(second, second))
    assert found == pytest.approx(hypergeom(20, 3, 3).sf(n_common - 1), rel=0.5)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_of_three_samples_or_fewer_nothing_is_said(n):
    products = products_of(np.ones((2, n, n)))
    alignments, norms = debiased_alignments(products)
    assert not alignments.any()
    assert not norms.any()
    assert not permutation_scores(alignments, n).any()
