import numpy as np
import pytest

from conftest import gaussian_kernels
from mkclust.linalg import polar_factor
from mkclust.methods.lf_mvc import fuse, solve_lf_mvc
from mkclust.stack import as_stack
from problems import leading, projector, wishart
from released.late_fusion import fuse_accumulated, solve_lf_mvc_released

RAW = {"center": False, "normalize": False}
NEVER = 1e-300  # a tolerance that is not met before rounding stops all change
GOLDEN = [(version, setting) for version in ("v1", "v2") for setting in (1, 2, 3)]


def golden_setting(golden, version, setting):
    """Return the stack, the arguments and the prefix of the names of one stored run."""
    arguments = {
        "reg": float(golden["lf_lambda"][setting - 1]),
        "accumulate": version == "v1",
    }
    return as_stack(golden["K"], **RAW), arguments, f"lf_{version}_{setting}_"


@pytest.mark.data
@pytest.mark.parametrize(("version", "setting"), GOLDEN)
def test_weights_and_objectives_of_the_authors_code_are_reproduced(golden, version, setting):
    stack, arguments, prefix = golden_setting(golden, version, setting)
    solution = solve_lf_mvc_released(stack, int(golden["k"]), max_iter=101, **arguments)
    expected = golden[prefix + "obj"]
    assert len(solution.history) == len(expected) + 1
    assert solution.converged == (version == "v2")
    np.testing.assert_allclose(solution.history[:-1], expected, rtol=1e-8)
    np.testing.assert_allclose(solution.weights, golden[prefix + "gamma"], atol=1e-6)


@pytest.mark.data
@pytest.mark.parametrize(("version", "setting"), GOLDEN)
def test_the_partition_of_the_authors_code_is_that_of_one_iteration_less(golden, version, setting):
    """Theirs belongs to the rotations and weights before their last update."""
    stack, arguments, prefix = golden_setting(golden, version, setting)
    max_iter = len(golden[prefix + "obj"]) - 1
    solution = solve_lf_mvc_released(
        stack, int(golden["k"]), max_iter=max_iter, tol=NEVER, **arguments
    )
    assert len(solution.history) == max_iter + 1
    expected = projector(golden[prefix + "Hstar"])
    np.testing.assert_allclose(projector(solution.partition), expected, atol=1e-6)


@pytest.mark.data
@pytest.mark.parametrize(("version", "setting"), GOLDEN)
def test_the_rotations_of_the_authors_code_are_reproduced(golden, version, setting):
    _, arguments, prefix = golden_setting(golden, version, setting)
    options = {"reg": arguments["reg"], "max_iter": 101}
    if version == "v1":
        found = fuse_accumulated(list(golden["lf_HP"]), golden["lf_H0"], **options)
    else:
        found = fuse(list(golden["lf_HP"]), golden["lf_H0"], align=False, **options)
    np.testing.assert_allclose(found.rotations, golden[prefix + "WP"], atol=1e-6)


@pytest.mark.data
@pytest.mark.parametrize("reg", [0.125, 0.25, 1.0, 2.0, 8.0, 2.0**15])
def test_aligned_starts_end_no_lower_than_signs_on_the_golden_problem(golden, reg):
    stack, k = as_stack(golden["K"], **RAW), int(golden["k"])
    aligned, signs = (
        solve(stack, k, reg=reg, tol=1e-10, max_iter=500)
        for solve in (solve_lf_mvc, solve_lf_mvc_released)
    )
    assert aligned.converged
    assert signs.converged
    assert aligned.objective >= signs.history[-1] * (1 - 1e-9)
    if reg <= 1:
        assert aligned.objective > signs.history[-1] * 1.002


def test_accumulated_sums_may_lower_the_objective():
    kernels, _ = gaussian_kernels(np.random.default_rng(0), n=80, strengths=(2, 1, 0))
    stack = as_stack(kernels)
    reset, accumulated = (
        solve_lf_mvc_released(stack, 4, reg=4, tol=NEVER, max_iter=30, accumulate=accumulate)
        for accumulate in (False, True)
    )
    assert np.diff(accumulated.history).min() < -1e-4
    assert accumulated.history[-1] < reset.history[-1]
    F = accumulated.partition
    np.testing.assert_allclose(F.T @ F, np.eye(4), atol=1e-12)


def test_the_last_objective_is_that_of_what_is_returned_by_accumulated_sums_too():
    kernels = wishart(np.random.default_rng(1), 40, 4, 3)
    H, H_0 = [leading(K, 3) for K in kernels], leading(kernels.mean(axis=0), 3)
    found = fuse_accumulated(H, H_0, reg=0.7, max_iter=7)
    turned = zip(found.weights, H, found.rotations, strict=True)
    fused = sum(b_p * H_p @ W_p for b_p, H_p, W_p in turned) + 0.7 * H_0
    assert np.trace(found.partition.T @ fused) == pytest.approx(found.history[-1], rel=1e-12)
    total = sum(H_p @ A for H_p, A in zip(H, found.shares, strict=True)) + 0.7 * H_0
    np.testing.assert_allclose(total, found.total, atol=1e-12)
    np.testing.assert_allclose(polar_factor(total), found.partition, atol=1e-10)
