"""Mixes in one pass over all kernels, and solves by them: on CUDA devices only."""

import numpy as np
import pytest

from helpers.arrays import ON_CUDA, as_library
from mkclust import KernelBank
from mkclust.linalg import to_host
from mkclust.linalg.arrays import FEWEST_FUSED
from mkclust.methods import solve_simple_mkkm
from mkclust.stack import as_stack
from mkclust.stack.kernel import Mix
from mkclust.stack.standardized import fused_mixes

pytestmark = [pytest.mark.slow, *ON_CUDA]
N = FEWEST_FUSED + 3
BANK = KernelBank(widths=(1.0,), polynomials=(), linear=None)


def views(precision):
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=N)
    strengths = (1.0, 2.0, 0.0)  # the last one is noise
    drawn = [
        s * rng.normal(size=(5, 6))[y] + rng.normal(size=(N, 6)) for s in strengths
    ]
    return [view.astype(precision) for view in drawn]


@pytest.fixture(params=["float32", "float64"])
def stack(request):
    stack = as_stack(BANK.fit_transform(as_library("cuda", views(request.param))))
    if fused_mixes(stack.kernels) is None:
        pytest.skip("Triton does not work here")
    return stack


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_mix_in_one_pass_is_that_of_its_rows(stack, precision):
    c = np.array([0.5, 0.0, 2.0])
    entries = stack.mix(c, precision).matrix
    expected = Mix(c, stack.kernels).dense()
    rounding = 1e-6 if precision == "float32" else 1e-14
    assert float((entries - expected).abs().max()) < rounding * float(
        expected.abs().max()
    )
    assert float((entries - entries.T).abs().max()) < rounding * float(
        expected.abs().max()
    )


def test_a_mix_of_kernels_as_they_are_is_their_sum():
    kernels = BANK.fit_transform(as_library("cuda", views("float64")))
    stack = as_stack(kernels, center=False, normalize=False)
    entries = stack.mix(np.array([1.0, 2.0, 3.0])).matrix
    expected = kernels[0] + 2 * kernels[1] + 3 * kernels[2]
    assert float((entries - expected).abs().max()) < 1e-13


def test_a_solve_without_a_copy_agrees_with_the_host(stack):
    solution = solve_simple_mkkm(stack, 5)
    assert stack.held() is None
    on_host = as_stack(
        np.stack([to_host(kernel.kernel.matrix, None) for kernel in stack.kernels])
    )
    expected = solve_simple_mkkm(on_host, 5)
    assert solution.converged
    assert abs(solution.objective - expected.objective) <= 3e-6 * expected.objective
    np.testing.assert_allclose(solution.weights, expected.weights, atol=1e-3)
