import numpy as np
import pytest

from mkclust.methods import solve_lkam, solve_mkkm_mir
from mkclust.stack import as_stack
from problems import random_kernels, row_normalized_gram
from released.linear_mix import (
    LinearMixLKAM,
    LinearMixMKKMMiR,
    solve_lkam_linear,
    solve_mkkm_mir_linear,
)


def raw(kernels):
    return as_stack(kernels, center=False, normalize=False)


@pytest.mark.data
@pytest.mark.parametrize("setting", [1, 2, 3])
@pytest.mark.parametrize(
    ("version", "solve"), [("v1", solve_mkkm_mir_linear), ("v2", solve_mkkm_mir)]
)
def test_the_golden_paths_of_mkkm_mir_are_reproduced(golden, version, solve, setting):
    name, reg = f"mir_{version}_{setting}", float(golden["mir_lambda"][setting - 1])
    stack, expected = raw(golden["K"]), golden[f"{name}_obj"]
    solution = solve(stack, 4, reg=reg)
    assert solution.n_iter == len(expected)
    np.testing.assert_allclose(solution.history[:-1], expected, rtol=1e-10)
    np.testing.assert_allclose(solution.weights, golden[f"{name}_gamma"], atol=1e-8)
    # The reference returns the partition of the weights before their last update.
    before = solve(stack, 4, reg=reg, tol=0, max_iter=len(expected) - 1)
    found, stored = before.partition, golden[f"{name}_Hrownorm"]
    np.testing.assert_allclose(row_normalized_gram(found), stored @ stored.T, atol=1e-7)


@pytest.mark.data
def test_the_released_mix_may_rise_and_that_of_the_paper_falls(golden):
    stack = raw(golden["K"])
    released = solve_mkkm_mir_linear(stack, 4, reg=1.0)
    assert np.diff(released.history).max() > 1e-6
    assert np.diff(solve_mkkm_mir(stack, 4, reg=1.0).history).max() <= 0


@pytest.mark.data
@pytest.mark.parametrize("setting", [1, 2, 3])
@pytest.mark.parametrize(
    ("version", "solve"),
    [("lkam_q2", solve_lkam), ("lkam_q1", solve_lkam_linear), ("lkamorig", solve_lkam_linear)],
)
def test_the_golden_paths_of_lkam_are_reproduced(golden, version, solve, setting):
    name, (tau, reg) = f"{version}_{setting}", golden["lkam_tau_lambda"][setting - 1]
    stack, expected = raw(golden["K"]), golden[f"{name}_obj"]
    options = {"reg": reg, "neighbors": tau}
    solution = solve(stack, 4, **options)
    assert solution.n_iter == len(expected)
    np.testing.assert_allclose(solution.history[:-1], expected, rtol=1e-10)
    np.testing.assert_allclose(solution.weights, golden[f"{name}_gamma"], atol=1e-8)
    # The reference returns the partition of the weights before their last update.
    before = solve(stack, 4, **options, tol=0, max_iter=len(expected) - 1)
    found, stored = before.partition, golden[f"{name}_Hrownorm"]
    np.testing.assert_allclose(row_normalized_gram(found), stored @ stored.T, atol=1e-7)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", [LinearMixMKKMMiR, LinearMixLKAM])
def test_the_mixed_kernel_is_that_of_the_weights(estimator):
    kernels = random_kernels(40, 3)
    model = estimator(3, random_state=0).fit(kernels)
    np.testing.assert_array_equal(model.coefficients_, model.weights_)
    (paper,) = (base(3, random_state=0).fit(kernels) for base in estimator.__bases__)
    assert np.abs(model.weights_ - paper.weights_).max() > 1e-6
