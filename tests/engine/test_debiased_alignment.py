"""Agreement of kernels: unbiased, with exact moments under permutations, and honest chances."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chi2, hypergeom, norm

from mkclust.engine.agreement import (
    OffDiagonalProducts,
    chances,
    debiased_alignments,
    leading_shares,
    permutation_scores,
    simulated_chance,
)


def products_of(kernels):
    """Sum up by the definitions what pairs of kernels share off their diagonals."""
    hollow = np.array([K - np.diag(np.diag(K)) for K in kernels])
    sums = hollow.sum(axis=2)
    return OffDiagonalProducts(
        hollow.shape[1], np.einsum("pij,qij->pq", hollow, hollow), sums @ sums.T, sums.sum(axis=1)
    )


def u_centered(K):
    """Return the U-centered matrix by its definition, entry by entry."""
    n, U = len(K), np.zeros_like(K)
    hollow = K - np.diag(np.diag(K))
    for i in range(n):
        for j in range(n):
            if i != j:
                U[i, j] = hollow[i, j] - (hollow[i].sum() + hollow[:, j].sum()) / (n - 2)
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


def test_adding_to_a_diagonal_changes_nothing():
    rng = np.random.default_rng(2)
    kernels = random_kernels(rng, 30, (3, 5))
    plain, norms = debiased_alignments(products_of(kernels))
    added = kernels + np.array([np.diag(rng.uniform(0, 100, size=30)) for _ in kernels])
    shifted, same_norms = debiased_alignments(products_of(added))
    assert np.allclose(plain, shifted)
    assert np.allclose(norms, same_norms)


def test_alignments_of_independent_kernels_have_no_bias():
    rng = np.random.default_rng(3)
    values = []
    for _ in range(300):
        kernels = [gaussian_kernel(rng.normal(size=(20, 50))) for _ in range(2)]
        values.append(debiased_alignments(products_of(kernels))[0][0, 1])
    assert abs(np.mean(values)) < 4 * np.std(values) / np.sqrt(300)


def test_a_multiple_of_the_identity_has_no_norm_and_shares_nothing():
    kernels = np.array([3 * np.eye(12), random_kernels(np.random.default_rng(4), 12, (2,))[0]])
    alignments, norms = debiased_alignments(products_of(kernels))
    assert norms[0] == 0
    assert np.array_equal(alignments[0], [0, 0])
    assert alignments[1, 1] == 1


def test_of_two_kernels_of_one_direction_each_chances_are_those_of_a_squared_normal():
    scores = np.array([[0.0, 3.0], [3.0, 0.0]])
    assert chances(scores, np.ones(2))[0, 1] == pytest.approx(chi2.sf(1 + 3 * np.sqrt(2), 1))


def test_of_kernels_of_many_directions_chances_are_those_of_a_normal():
    scores = np.full((2, 2), 3.0)
    assert chances(scores, np.full(2, 1e-2))[0, 1] == pytest.approx(norm.sf(3), rel=0.02)


def test_a_single_direction_has_the_whole_share_and_noise_a_small_one():
    rng = np.random.default_rng(5)
    one = np.sign(rng.normal(size=(200, 1)))
    shares = leading_shares(np.array([one @ one.T, gaussian_kernel(rng.normal(size=(200, 200)))]))
    assert shares[0] > 0.98
    assert shares[1] < 0.3


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["two levels", "three levels", "normal", "low rank"])
def test_chances_of_permuted_kernels_are_not_too_small(kind):
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
        chance = chances(permutation_scores(alignments, n), leading_shares(kernels))[0, 1]
        for level in hits:
            hits[level] += chance < level
    for level, count in hits.items():
        expected = 1500 * level
        assert count <= expected + 4 * np.sqrt(expected) + 1, (level, count)


@pytest.mark.parametrize("n_common", [2, 3])
def test_simulated_chances_of_marks_are_those_of_drawing_without_replacement(n_common):
    first, second = np.zeros((2, 20))
    first[:3], second[3 - n_common : 6 - n_common] = 1, 1
    found = simulated_chance(np.outer(first, first), np.outer(second, second))
    assert found == pytest.approx(hypergeom(20, 3, 3).sf(n_common - 1), rel=0.5)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_of_three_samples_or_fewer_nothing_is_said(n):
    products = products_of(np.ones((2, n, n)))
    alignments, norms = debiased_alignments(products)
    assert not alignments.any()
    assert not norms.any()
    assert not permutation_scores(alignments, n).any()
