import numpy as np
import pytest

from helpers.problems import random_kernels, row_normalized_gram
from mkclust import LKAM, MKKMMiR
from mkclust.stack import as_stack
from released.linear_mix import LinearMixLKAM, LinearMixMKKMMiR


def check_golden_path(golden, name, method, **options):
    """Compare a solve with a stored path: objectives, weights, and the partition before
    the last.

    The reference returns the partition of the weights before their last update.
    """
    stack, expected = (
        as_stack(golden["K"], center=False, normalize=False),
        golden[f"{name}_obj"],
    )
    solution = method(4, **options).solve(stack)
    assert solution.n_iter == len(expected)
    np.testing.assert_allclose(solution.history[:-1], expected, rtol=1e-10)
    np.testing.assert_allclose(solution.weights, golden[f"{name}_gamma"], atol=1e-8)
    before = (
        method(4, **options, tol=1e-300, max_iter=len(expected) - 1)
        .solve(stack)
        .partition
    )
    stored = golden[f"{name}_Hrownorm"]
    np.testing.assert_allclose(
        row_normalized_gram(before), stored @ stored.T, atol=1e-7
    )


@pytest.mark.data
@pytest.mark.parametrize("setting", [1, 2, 3])
@pytest.mark.parametrize(
    ("version", "method"), [("v1", LinearMixMKKMMiR), ("v2", MKKMMiR)]
)
def test_the_golden_paths_of_mkkm_mir_are_reproduced(golden, version, method, setting):
    reg = float(golden["mir_lambda"][setting - 1])
    check_golden_path(golden, f"mir_{version}_{setting}", method, reg=reg)


@pytest.mark.data
def test_the_released_mix_may_rise_and_that_of_the_paper_falls(golden):
    stack = as_stack(golden["K"], center=False, normalize=False)
    assert np.diff(LinearMixMKKMMiR(4, reg=1.0).solve(stack).history).max() > 1e-6
    assert np.diff(MKKMMiR(4, reg=1.0).solve(stack).history).max() <= 0


@pytest.mark.data
@pytest.mark.parametrize("setting", [1, 2, 3])
@pytest.mark.parametrize(
    ("version", "method"),
    [("q2", LKAM), ("q1", LinearMixLKAM), ("orig", LinearMixLKAM)],
)
def test_the_golden_paths_of_lkam_are_reproduced(golden, version, method, setting):
    tau, reg = map(float, golden["lkam_tau_lambda"][setting - 1])
    name = "lkamorig" if version == "orig" else f"lkam_{version}"
    check_golden_path(golden, f"{name}_{setting}", method, reg=reg, neighbors=tau)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", [LinearMixMKKMMiR, LinearMixLKAM])
def test_the_mixed_kernel_is_that_of_the_weights(estimator):
    model = estimator(3, random_state=0).fit(random_kernels(40, 3))
    np.testing.assert_array_equal(model.coefficients_, model.weights_)
