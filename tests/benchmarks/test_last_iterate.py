import numpy as np
import pytest

from helpers.problems import golden_kernels, projector, raw
from released.last_iterate import LastIterateMKKMMM, solve_kamm_a_last


@pytest.mark.data
def test_the_golden_iterates_of_kamm_a_are_reproduced(golden):
    solution = solve_kamm_a_last(raw(golden["K"]), 4, max_iter=60)
    np.testing.assert_allclose(
        solution.history[:60], golden["kamma_J_60iters"], rtol=1e-10
    )
    np.testing.assert_allclose(
        solution.weights, golden["kamma_gamma_after60"], atol=1e-9
    )


@pytest.mark.data
@pytest.mark.parametrize("max_iter", [10, 200])
@pytest.mark.parametrize("kind", ["cn", "ct"])
def test_the_golden_iterates_of_mkkm_mm_are_reproduced(golden, kind, max_iter):
    stack, name = raw(golden_kernels(golden, kind)), f"mm_{kind}_max{max_iter}"
    solution = LastIterateMKKMMM(4, max_iter=max_iter).solve(stack)
    assert solution.n_iter == golden[f"{name}_iters"]
    np.testing.assert_allclose(solution.weights, golden[f"{name}_theta"], atol=1e-9)
    np.testing.assert_allclose(
        projector(solution.partition), projector(golden[f"{name}_H"]), atol=1e-8
    )
