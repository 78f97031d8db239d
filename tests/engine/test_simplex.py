"""Weight-sized mathematics."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mkclust.engine.simplex import (
    best_mixture,
    best_response,
    longest_step,
    minimize_quadratic,
    reduced_direction,
)

positive = st.floats(1e-6, 1e6)


@given(arrays(float, st.integers(1, 12), elements=positive))
def test_the_best_response_satisfies_the_optimality_conditions(alignments):
    gamma, bound = best_response(alignments)
    assert gamma.sum() == pytest.approx(1)
    np.testing.assert_allclose(gamma * alignments, bound, rtol=1e-9)
    assert (gamma**2 @ alignments) == pytest.approx(bound)


def test_kernels_with_no_alignment_share_all_the_weight():
    gamma, bound = best_response(np.array([0.0, 3.0, 0.0]))
    np.testing.assert_array_equal(gamma, [0.5, 0, 0.5])
    assert bound == 0


@given(
    arrays(float, 6, elements=st.floats(0, 1)),
    arrays(float, 6, elements=st.floats(-5, 5)),
)
def test_a_reduced_direction_stays_on_the_simplex_and_descends(raw, gradient):
    gamma = (raw + np.eye(6)[0]) / (raw + np.eye(6)[0]).sum()
    direction = reduced_direction(gamma, gradient)
    assert direction.sum() == pytest.approx(0, abs=1e-12)
    assert np.all(direction[gamma == 0] >= 0)
    assert direction @ gradient <= 1e-12
    step = longest_step(gamma, direction)
    assert np.min(gamma + step * direction) >= -1e-9


def quadratic(seed):
    """Return a random convex quadratic: often singular, units of kernels far apart."""
    rng = np.random.default_rng(seed)
    m = rng.integers(1, 40)
    B = rng.normal(size=(rng.integers(1, m + 1), m)) * 10 ** rng.uniform(-3, 3, size=m)
    if seed % 2:
        B = np.abs(B)
    Q = B.T @ B
    if seed % 3 == 0:
        Q += np.diag(rng.random(m)) * Q.max() * 1e-3
    c = -Q @ rng.dirichlet(np.ones(m)) if seed % 5 == 0 else None
    return Q, c


@pytest.mark.parametrize("seed", range(200))
def test_a_quadratic_is_minimized_on_the_simplex_also_where_it_is_singular(seed):
    Q, c = quadratic(seed)
    gamma = minimize_quadratic(Q, c)
    assert np.all(gamma >= 0)
    assert gamma.sum() == pytest.approx(1)
    gradient = Q @ gamma + (0 if c is None else c)
    assert gradient @ gamma - gradient.min() <= 1e-11 * np.abs(Q).max()


def test_what_is_not_convex_is_found_out_rather_than_returned():
    with pytest.raises(ArithmeticError, match="not convex"):
        minimize_quadratic(np.array([[4.0, -3, -3], [-3, -2, -1], [-3, -1, -2]]))


def test_variables_of_very_different_units_are_minimized_too():
    found = minimize_quadratic(np.diag([1.0, 1e-14, 1e-16]))
    np.testing.assert_allclose(
        found, [1e-16 * 100 / 101, 1 / 101, 100 / 101], rtol=1e-6
    )


@pytest.mark.parametrize("seed", range(30))
def test_no_mixture_with_offsets_has_a_better_bound_than_the_best(seed):
    rng = np.random.default_rng(seed)
    J, m = int(rng.integers(2, 10)), int(rng.integers(1, 8))
    A, b = (
        rng.random((J, m)) + 1e-3,
        seed % 3 * rng.random(J) * 10 ** rng.uniform(-3, 1),
    )
    start = np.full(J, 1 / J)
    q = best_mixture(A, start, b)
    assert np.all(q >= 0)
    assert q.sum() == pytest.approx(1)
    gamma, bound = best_response(q @ A)
    assert bound + q @ b >= (best_response(start @ A)[1] + start @ b) * (1 - 1e-12)
    # The largest entry of the gradient bounds what all mixtures reach.
    assert np.max(A @ gamma**2 + b) <= (bound + q @ b) * (1 + 1e-7)
