import numpy as np
import pytest

from mkclust.methods import solve_mkkm, solve_mkkm_mir
from mkclust.stack import as_stack
from problems import leading, projector, random_kernels, unexplained


def raw(kernels):
    return as_stack(kernels, center=False, normalize=False)


@pytest.mark.parametrize("reg", [0, 2.0**-15, 0.5, 2.0**10])
@pytest.mark.parametrize("n", [40, 260])
def test_partition_and_weights_are_best_for_each_other_at_the_end(n, reg):
    kernels = random_kernels(n, 4)
    solution = solve_mkkm_mir(raw(kernels), 3, reg=reg, tol=1e-13, max_iter=500)
    assert np.all(np.diff(solution.history) <= 1e-9 * solution.history[0])
    mix = np.tensordot(solution.weights**2, kernels, 1)
    np.testing.assert_allclose(projector(solution.partition), projector(leading(mix, 3)), atol=1e-5)
    a = unexplained(kernels, solution.partition)
    hessian = reg * np.einsum("pij,qij->pq", kernels, kernels) + 2 * np.diag(a)
    gradient = hessian @ solution.weights
    # No weight can be moved to a kernel with a smaller slope.
    assert gradient @ solution.weights - gradient.min() <= 1e-5 * gradient.max()
    assert solution.objective == pytest.approx(gradient @ solution.weights / 2, rel=1e-8)


def test_without_regularization_it_is_mkkm():
    stack = raw(random_kernels(50, 4))
    found = solve_mkkm_mir(stack, 3, reg=0, tol=1e-13, max_iter=500)
    plain = solve_mkkm(stack, 3, tol=1e-13, max_iter=500)
    np.testing.assert_allclose(found.weights, plain.weights, atol=1e-5)
    assert found.objective == pytest.approx(plain.objective, rel=1e-9)


def test_a_large_regularization_gives_the_least_overlapping_mix():
    kernels = random_kernels(50, 4)
    solution = solve_mkkm_mir(raw(kernels), 3, reg=1e8)
    M = np.einsum("pij,qij->pq", kernels, kernels)
    slope = M @ solution.weights
    assert slope @ solution.weights - slope.min() <= 1e-6 * slope.max()
