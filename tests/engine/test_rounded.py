"""Single precision inside of a solve, double precision at its end: against dense eigenvalues."""

import numpy as np
import pytest
from mkclust.engine.first_weights import first_weights
from mkclust.engine.relaxation import KrylovSpace, rayleigh_ritz
from mkclust.linalg.operators import MatrixOperator

from mkclust.methods import solve_simple_mkkm
from mkclust.stack import as_stack
from problems import blob_kernels

pytestmark = pytest.mark.slow

N, K = 640, 6


def dense_value(entries, weights, k):
    """Return the sum of the k largest eigenvalues of a combination."""
    return np.linalg.eigvalsh(np.tensordot(weights**2, entries, 1))[-k:].sum()


@pytest.mark.parametrize("seed", range(3))
def test_weights_are_those_of_a_solve_in_double_precision(seed):
    stack = as_stack(blob_kernels(seed), validate=False)
    assert stack.combine(np.full(4, 0.25), rounded=True).is_rounded
    rounded = solve_simple_mkkm(stack, K, tol=1e-11)
    double = solve_simple_mkkm(stack, K, tol=0.9e-11)
    assert rounded.converged
    assert double.converged
    np.testing.assert_allclose(rounded.weights, double.weights, atol=1e-6)


@pytest.mark.parametrize("n_noise", [0, 1, 3])
@pytest.mark.parametrize("k", [2, 6, 15])
def test_the_certificate_is_true_of_dense_eigenvalues(k, n_noise):
    stack = as_stack(blob_kernels(k, n_noise), validate=False)
    solution, entries = solve_simple_mkkm(stack, k), stack.entries()
    value = dense_value(entries, solution.weights, k)
    assert solution.objective <= value * (1 + 1e-12)
    assert value <= solution.objective + solution.relaxation.error
    # No weights, however they were found, are better than the bound says.
    better = solve_simple_mkkm(stack, k, tol=1e-11).weights
    lowest = dense_value(entries, better, k)
    assert solution.lower_bound <= lowest * (1 + 1e-12)
    assert value - lowest <= solution.gap * value
    assert solution.gap <= 1e-6


def test_a_search_hands_over_the_products_of_every_kernel():
    stack = as_stack(blob_kernels(0), validate=False)
    solution = solve_simple_mkkm(stack, K)
    H = solution.partition
    exact = stack.apply(H)
    np.testing.assert_allclose(solution.kernel_products, exact, atol=1e-11 * np.abs(exact).max())
    expected = [np.vdot(H, exact[p]) for p in range(stack.n_kernels)]
    np.testing.assert_allclose(solution.shared_sums, expected, rtol=1e-10)


def test_eigenvalues_of_a_rounded_combination_are_as_near_as_it_says():
    stack, c = as_stack(blob_kernels(1), validate=False), np.array([0.1, 0.4, 0.2, 0.3])
    exact, rounded = stack.combine(c), stack.combine(c, rounded=True)
    assert rounded.is_rounded
    assert not exact.is_rounded
    change = np.linalg.eigvalsh(np.asarray(rounded.dense(), float) - exact.dense())
    assert 0 < np.abs(change).max() <= rounded.rounding_error()
    assert rounded.rounding_error() < 1e-5 * np.linalg.norm(exact.dense(), 2)
    assert exact.rounding_error() == 0


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_ritz_vectors_of_a_krylov_space_know_their_products(dtype):
    A = as_stack(blob_kernels(3), validate=False).entries()[0]
    tolerance = 1e-10 if dtype == "float64" else 1e-3
    operator = MatrixOperator(A.astype(dtype))
    start = np.linalg.qr(np.random.default_rng(0).normal(size=(N, 14)))[0].astype(dtype)
    space = KrylovSpace(operator, rayleigh_ritz(operator, start, K), 4)
    while space.has_room and space.expand():
        pass
    found = space.relaxation()
    V, size = found.vectors.astype(float), np.linalg.norm(A, 2)
    np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=tolerance)
    np.testing.assert_allclose(found.products, A @ V, atol=tolerance * size)
    np.testing.assert_allclose(
        found.residuals, A @ V - V * found.eigenvalues, atol=tolerance * size
    )
    exact = np.linalg.eigvalsh(A)[::-1][:K].sum()
    assert exact - found.value <= 2 * found.error + tolerance * exact


def test_first_weights_are_nearer_than_uniform_ones_where_views_are_noise():
    kernels = blob_kernels(4, n_noise=2, m=6, n=1200)
    stack = as_stack(kernels, validate=False)
    entries, uniform = stack.entries(), np.full(6, 1 / 6)
    weights = first_weights(stack, K, None)
    assert weights.sum() == pytest.approx(1)
    best = solve_simple_mkkm(stack, K).objective
    excess = dense_value(entries, weights, K) - best
    assert excess < 0.2 * (dense_value(entries, uniform, K) - best)
