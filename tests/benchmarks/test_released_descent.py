import numpy as np
import pytest

from helpers.kernels import gaussian_kernels
from mkclust.methods import solve_simple_mkkm
from mkclust.stack import as_stack
from released.reduced_gradient import descend_as_released


@pytest.mark.data
@pytest.mark.parametrize(("eta", "name"), [(1e-3, "smkkm1"), (1e-1, "smkkm2")])
def test_the_released_routine_is_reproduced_step_by_step(golden, eta, name):
    stack = as_stack(golden["K"], center=False, normalize=False)
    solution = descend_as_released(stack, int(golden["k"]), eta=eta)
    np.testing.assert_allclose(solution.history, golden[f"{name}_obj"], atol=1e-9)
    np.testing.assert_allclose(solution.weights, golden[f"{name}_gamma"], atol=1e-9)
    n_eigenproblems = solution.n_passes - solution.n_iter  # without those for gradients
    assert n_eigenproblems == golden[f"{name}_neig"]
    H, expected = solution.partition, golden[f"{name}_H"]
    np.testing.assert_allclose(H @ H.T, expected @ expected.T, atol=1e-9)


def test_the_released_routine_comes_near_the_certified_minimum():
    kernels, _ = gaussian_kernels(np.random.default_rng(3), n=60, k=3)
    found, best = (
        descend_as_released(as_stack(kernels), 3),
        solve_simple_mkkm(as_stack(kernels), 3),
    )
    assert best.lower_bound <= found.history[-1] <= best.objective * (1 + 1e-3)
