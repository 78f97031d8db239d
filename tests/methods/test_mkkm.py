"""MKKM, its regularized form, and the average kernel."""

import numpy as np
import pytest

from helpers.problems import leading, projector, random_kernels, raw, unexplained
from mkclust.methods import solve_average_kkm, solve_mkkm, solve_mkkm_mir


@pytest.mark.data
def test_the_golden_path_is_reproduced(golden):
    stack = raw(golden["K"])
    solution = solve_mkkm(stack, 4)
    expected = golden["mkkm_obj"]
    assert solution.n_iter == len(expected)
    np.testing.assert_allclose(solution.history[:-1], expected, rtol=1e-10)
    np.testing.assert_allclose(solution.weights, golden["mkkm_gamma"], atol=1e-10)
    # The reference returns the partition of the weights before their last update.
    before = solve_mkkm(stack, 4, tol=0, max_iter=len(expected) - 1)
    np.testing.assert_allclose(
        projector(before.partition), projector(golden["mkkm_H"]), atol=1e-9
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [30, 260, 400])
def test_kernels_of_rank_k_take_and_share_all_the_weight(n, dtype):
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.normal(size=(n, 3)))[0]
    low = [(X * spectrum) @ X.T * n for spectrum in ([1, 1, 1], [3, 2, 1])]
    kernels = np.stack([random_kernels(n, 1)[0], *low]).astype(dtype)
    solution = solve_mkkm(raw((kernels + kernels.transpose(0, 2, 1)) / 2), 3)
    np.testing.assert_allclose(solution.weights, [0, 0.5, 0.5], atol=1e-6)
    assert solution.converged
    assert solution.objective == pytest.approx(0, abs=1e-9 * n)
    np.testing.assert_allclose(projector(solution.partition), projector(X), atol=1e-4)


@pytest.mark.parametrize("reg", [None, 0, 2.0**-15, 0.5, 2.0**10])
@pytest.mark.parametrize("n", [40, 260])
def test_partition_and_weights_are_best_for_each_other_at_the_end(n, reg):
    kernels, options = random_kernels(n, 4), {"tol": 1e-13, "max_iter": 500}
    if reg is None:
        solution, reg = solve_mkkm(raw(kernels), 3, **options), 0
    else:
        solution = solve_mkkm_mir(raw(kernels), 3, reg=reg, **options)
    assert np.all(np.diff(solution.history) <= 1e-9 * solution.history[0])
    mix = np.tensordot(solution.weights**2, kernels, 1)
    np.testing.assert_allclose(
        projector(solution.partition), projector(leading(mix, 3)), atol=1e-5
    )
    a = unexplained(kernels, solution.partition)
    hessian = reg * np.einsum("pij,qij->pq", kernels, kernels) + 2 * np.diag(a)
    gradient = hessian @ solution.weights
    # No weight can be moved to a kernel with a smaller slope.
    assert gradient @ solution.weights - gradient.min() <= 1e-5 * gradient.max()
    assert solution.objective == pytest.approx(
        gradient @ solution.weights / 2, rel=1e-8
    )


@pytest.mark.data
def test_the_golden_average_is_reproduced(golden):
    solution = solve_average_kkm(raw(golden["K"]), 4)
    assert solution.objective == pytest.approx(float(golden["avg_obj"]), rel=1e-12)
    np.testing.assert_allclose(
        solution.relaxation.eigenvalues[:5], golden["avg_eigs"], rtol=1e-10
    )
    np.testing.assert_allclose(
        projector(solution.partition), projector(golden["avg_H"]), atol=1e-9
    )
