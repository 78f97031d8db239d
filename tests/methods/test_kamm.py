import numpy as np
import pytest

from helpers.problems import random_kernels, raw, symmetrized, top_eigenvalue_sum
from mkclust.methods import solve_kamm_a, solve_kamm_r, solve_simple_mkkm


@pytest.mark.data
def test_the_golden_corner_is_reached(golden):
    solution = solve_kamm_r(raw(golden["K"]), 4)
    corner = int(golden["kammr_vertex_index0"])
    np.testing.assert_array_equal(solution.weights, np.eye(5)[corner])
    assert solution.objective == pytest.approx(golden["single_obj"][corner], rel=1e-10)


@pytest.mark.parametrize("n", [40, 260])
@pytest.mark.parametrize("seed", range(4))
def test_ascent_ends_in_a_corner_within_as_many_steps_as_there_are_kernels(n, seed):
    kernels = random_kernels(n, 5, seed)
    solution = solve_kamm_r(raw(kernels), 3)
    assert solution.converged
    assert sorted(solution.weights) == [0, 0, 0, 0, 1]
    assert solution.n_iter <= 4
    assert np.all(np.diff(solution.history) > 0)
    assert solution.objective == pytest.approx(
        top_eigenvalue_sum(kernels, solution.weights, 3), rel=1e-9
    )


def test_a_fixed_point_is_the_minimum_of_simple_mkkm():
    # Two kernels with one eigenspace in common: nothing that the weights do can turn
    # it.
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    spectra = np.r_[9, 8, 7, np.zeros(37)], np.r_[3, 2, 2, np.zeros(37)]
    kernels = symmetrized([(Q * values) @ Q.T for values in spectra])
    solution, best = solve_kamm_a(raw(kernels), 3), solve_simple_mkkm(raw(kernels), 3)
    assert solution.converged
    assert solution.objective == pytest.approx(best.objective, rel=1e-6)
    np.testing.assert_allclose(solution.weights, best.weights, atol=1e-4)
