"""The quadratic program over matrices with rows on the simplex."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkclust.engine.row_simplex import minimize_over_rows


def random_blocks(seed, n, m, rank=None, scale=False):
    """Return m positive semidefinite matrices, of some rank, with some spread of
    sizes."""
    rng = np.random.default_rng(seed)
    rank = n if rank is None else rank
    X = rng.normal(size=(m, n, rank)) / np.sqrt(rank)
    if scale:
        X *= 10.0 ** rng.uniform(-2, 2, size=(m, n, 1))
    return X @ X.transpose(0, 2, 1)


def bound(Q):
    """Return the least multiple of each block's diagonal that bounds it."""
    diagonals = np.einsum("pii->pi", Q)
    root = np.sqrt(np.where(diagonals > 0, diagonals, 1))
    largest = np.linalg.eigvalsh(Q / root[:, None] / root[:, :, None])[:, -1:]
    return (largest * diagonals).T


def products(Q, X):
    """Return the columns Q_p x_p."""
    return np.einsum("pij,jp->ip", Q, X)


def value(Q, X):
    return 0.5 * float(np.vdot(X, products(Q, X)))


def solve(Q, start=None):
    """Minimize from uniform weights, or others."""
    m, n, _ = Q.shape
    start = np.full((n, m), 1 / m) if start is None else start
    return minimize_over_rows(lambda X: products(Q, X), bound(Q), start)


@given(
    st.integers(0, 10**6),
    st.integers(2, 12),
    st.integers(1, 9),
    st.sampled_from([None, 1, 2, 3]),
    st.booleans(),
)
def test_the_minimizer_satisfies_the_optimality_conditions(seed, n, m, rank, scale):
    Q = random_blocks(seed, n, m, rank, scale)
    found = solve(Q)
    X = found.point
    assert X.min() >= 0
    np.testing.assert_allclose(X.sum(axis=1), 1, atol=1e-15 * m)
    assert found.value == pytest.approx(
        value(Q, X), rel=1e-9, abs=1e-12 * np.abs(Q).max()
    )
    gradient = products(Q, X)
    # If the minimum is positive, a row's weights lie on its least gradients only.
    gap = float((X * (gradient - gradient.min(axis=1, keepdims=True))).sum())
    assert min(gap, found.value) == pytest.approx(
        found.gap, rel=1e-6, abs=1e-12 * np.abs(Q).max()
    )
    if found.converged:
        size = 0.5 * float(np.vdot(X, bound(Q) * X))
        assert found.gap <= 1e-10 * found.value + 1.01e-10 * size
    rng = np.random.default_rng(seed)
    for _ in range(5):  # weak duality
        other = rng.dirichlet(np.ones(m), size=n)
        assert value(Q, other) >= (found.value - found.gap) * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_no_start_is_made_worse(seed):
    Q = random_blocks(seed, 15, 6, rank=3)
    start = np.random.default_rng(seed).dirichlet(np.full(6, 0.2), size=15)
    found = solve(Q, start)
    assert found.converged
    assert solve(Q, found.point).value <= found.value <= value(Q, start)


def test_blocks_that_are_not_positive_semidefinite_are_refused():
    with pytest.raises(ArithmeticError, match="indefinite; pass psd='shift'"):
        solve(np.stack([np.eye(6), np.eye(6) - np.ones((6, 6))]))
