"""LMKKM: the goldens, dense computations, and cases in which the weights degenerate."""

import numpy as np
import pytest

from helpers.kernels import gaussian_kernels
from helpers.problems import FAMILIES, raw
from mkclust.methods.lmkkm import solve_lmkkm
from mkclust.stack import as_stack


@pytest.mark.data
def test_the_authors_iterations_are_reproduced(golden):
    stack, k = raw(golden["K"]), int(golden["k"])
    solution = solve_lmkkm(stack, k)
    assert (solution.n_iter, solution.converged) == (10, True)
    np.testing.assert_allclose(solution.history[:-1], -golden["lmkkm_obj"], rtol=1e-9)
    np.testing.assert_allclose(
        solution.history[:-1] / 2, golden["lmkkm_qp"][:, 0], rtol=1e-9
    )
    theta = solution.learned["sample_weights_"]
    np.testing.assert_allclose(theta, golden["lmkkm_Theta"], atol=5e-6)
    # Their partition is that of the weights one update earlier.
    H, expected = solve_lmkkm(stack, k, max_iter=9).partition, golden["lmkkm_H"]
    np.testing.assert_allclose(H @ H.T, expected @ expected.T, atol=1e-7)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
@pytest.mark.parametrize("seed", range(4))
def test_partition_weights_and_objective_belong_together(family, seed):
    rng = np.random.default_rng(seed)
    n, m, k = (
        int(rng.integers(12, 70)),
        int(rng.integers(1, 7)),
        int(rng.integers(1, 6)),
    )
    entries = family(rng, n, m, k)
    solution = solve_lmkkm(raw(entries), k)
    theta, H = solution.learned["sample_weights_"], solution.partition
    assert theta.min() >= 0
    np.testing.assert_allclose(theta.sum(axis=1), 1, atol=1e-14)
    np.testing.assert_allclose(solution.weights, theta.mean(axis=0), atol=1e-15)
    K = sum(np.outer(t, t) * K_p for t, K_p in zip(theta.T, entries, strict=True))
    values = np.linalg.eigvalsh(K)
    assert np.trace(H.T @ K @ H) == pytest.approx(values[-k:].sum(), rel=1e-9)
    rest = np.trace(K) - values[-k:].sum()
    assert solution.objective == pytest.approx(rest, rel=1e-8, abs=1e-9 * np.trace(K))
    assert np.all(np.diff(solution.history) <= 1e-9 * np.einsum("pii->", entries))


def test_the_weights_are_optimal_for_the_partition_before_them():
    kernels, _ = gaussian_kernels(
        np.random.default_rng(0), n=150, k=4, strengths=(2, 1, 0)
    )
    stack = as_stack(kernels)
    before, after = solve_lmkkm(stack, 4, max_iter=4), solve_lmkkm(stack, 4, max_iter=5)
    H = before.partition
    blocks = (np.eye(150) - H @ H.T) * stack.among().entries
    theta = after.learned["sample_weights_"]
    gradient = np.einsum("pij,jp->ip", blocks, theta)
    value = float(np.vdot(theta, gradient))
    assert value == pytest.approx(after.history[-2], rel=1e-9)
    # Within a row, the gradient is least and equal wherever there is weight.
    excess = gradient - gradient.min(axis=1, keepdims=True)
    assert float((theta * excess).sum()) <= 1e-7 * value


def test_kernels_of_low_rank_are_explained_entirely():
    views = [np.random.default_rng(0).normal(size=(60, rank)) for rank in (2, 3)]
    entries = np.stack([X @ X.T for X in views])
    solution = solve_lmkkm(raw(entries), 5, max_iter=5)
    assert solution.objective <= 1e-9 * np.trace(entries.sum(axis=0))
    assert solution.converged
