import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from helpers.problems import golden_kernels, leading, random_kernels, raw, unexplained
from mkclust import MKKMMM
from mkclust.methods import solve_mkkm_mm, solve_mkkm_mm_saddle


@pytest.mark.data
@pytest.mark.parametrize("kind", ["cn", "ct"])
def test_the_golden_saddle_points_are_reproduced(golden, kind):
    name = f"mm_{kind}_saddle"
    solution = solve_mkkm_mm_saddle(raw(golden_kernels(golden, kind)), 4, tol=1e-9)
    assert solution.objective == pytest.approx(float(golden[f"{name}_value"]), rel=1e-8)
    assert solution.gap <= 1e-9
    np.testing.assert_allclose(solution.weights, golden[f"{name}_theta"], atol=1e-3)


@pytest.mark.data
def test_a_cycle_is_noticed_and_the_better_half_returned_whatever_the_cap(golden):
    stack = raw(golden["K"])
    for max_iter in (50, 51):
        solution = solve_mkkm_mm(stack, 4, max_iter=max_iter)
        assert solution.cycle == 2
        assert not solution.converged
        assert solution.objective == solution.history[1:].min()
        assert solution.objective == pytest.approx(
            np.linalg.norm(unexplained(golden["K"], solution.partition))
        )
    with pytest.warns(ConvergenceWarning, match="cycle of 2"):
        MKKMMM(4, max_iter=10, random_state=0).fit(golden["K_raw"])


@pytest.mark.slow
@pytest.mark.parametrize("n", [40, 260])
@pytest.mark.parametrize("seed", range(3))
def test_the_saddle_lies_between_every_weight_and_every_partition(n, seed):
    kernels = random_kernels(n, 4, seed)
    solution = solve_mkkm_mm_saddle(raw(kernels), 3)
    assert solve_mkkm_mm(raw(kernels), 3).objective >= solution.objective * (1 - 1e-8)
    assert solution.converged
    assert solution.gap <= 1e-8
    assert np.all(np.diff(solution.history) >= 0)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        theta = rng.random(4)
        theta /= np.linalg.norm(theta)
        K = np.tensordot(theta, kernels, 1)
        assert np.trace(K) - np.linalg.eigvalsh(K)[-3:].sum() <= solution.objective * (
            1 + 1e-7
        )
        H = leading(K, 3)
        assert np.linalg.norm(unexplained(kernels, H)) >= solution.objective * (
            1 - 1e-7
        )


def test_kernels_that_are_explained_entirely_keep_uniform_weights():
    X = np.random.default_rng(0).normal(size=(30, 3))
    stack = raw(np.stack([X @ X.T, (X * [1, 2, 3]) @ X.T]))
    for solution in (solve_mkkm_mm(stack, 3), solve_mkkm_mm_saddle(stack, 3)):
        np.testing.assert_allclose(solution.weights, np.sqrt(0.5))
        assert solution.objective == 0
        assert solution.n_iter <= 2
        assert solution.converged
