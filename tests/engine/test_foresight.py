"""Weights foreseen before the kernels are looked at: against what a look tells."""

from dataclasses import replace

import numpy as np
import pytest
from mkclust.engine.basis import Basis
from mkclust.engine.first_weights import first_weights
from mkclust.engine.relaxation import block_width, block_width_on_accelerator, relax
from mkclust.engine.subspace_in_memory import InMemorySearch
from mkclust.linalg.operators import Anchor

from mkclust.engine import subspace_in_memory
from mkclust.engine.cutting import CuttingSurfaces
from mkclust.engine.search import search
from mkclust.linalg import orthonormalize
from mkclust.methods import solve_simple_mkkm
from mkclust.stack import as_stack
from problems import blob_kernels

pytestmark = pytest.mark.slow

K = 6


@pytest.mark.parametrize("is_anchored", [False, True])
def test_a_foreseen_problem_is_the_one_to_come_but_for_what_is_shared_out(is_anchored):
    stack = as_stack(blob_kernels(0), validate=False)
    rng, weights = np.random.default_rng(0), np.array([0.4, 0.3, 0.2, 0.1])
    n = stack.n_samples
    anchor = Anchor(orthonormalize(rng.normal(size=(n, 5))), 3.0) if is_anchored else None
    V = orthonormalize(rng.normal(size=(n, 12)))
    E = orthonormalize(rng.normal(size=(n, 7)), V)
    basis = Basis(stack, K, anchor)
    basis.expand(V, weights)
    foreseen = basis.foreseen_problem(E, stack.combine(weights**2) @ E, weights)
    basis.expand(E, weights, orthonormal=True)
    seen = basis.problem
    np.testing.assert_allclose(foreseen.G[:, :12], seen.G[:, :12], atol=1e-10)
    # What is shared out of the further vectors adds up at those weights, and with it the value.
    np.testing.assert_allclose(foreseen.combined(weights), seen.combined(weights), atol=1e-10 * n)
    assert foreseen.evaluate(weights).value == pytest.approx(seen.evaluate(weights).value)


@pytest.mark.parametrize("seed", range(3))
def test_a_solve_finds_the_same_weights_with_foresight_and_without(seed, monkeypatch):
    stack = as_stack(blob_kernels(seed), validate=False)
    found = solve_simple_mkkm(stack, K, tol=1e-9)
    monkeypatch.setattr(InMemorySearch, "foresee", lambda self, vectors, tol: None)
    expected = solve_simple_mkkm(stack, K, tol=1e-9)
    assert found.converged
    assert expected.converged
    assert found.objective == pytest.approx(expected.objective, rel=2e-9)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-5)


def test_foresight_spares_looks(monkeypatch):
    stack = as_stack(blob_kernels(1, n=1200), validate=False)
    uniform = np.full(4, 0.25)
    monkeypatch.setattr(subspace_in_memory, "first_weights", lambda *_: uniform)
    n_iter = solve_simple_mkkm(stack, K).n_iter
    monkeypatch.setattr(InMemorySearch, "foresee", lambda self, vectors, tol: None)
    assert n_iter < solve_simple_mkkm(stack, K).n_iter


@pytest.mark.parametrize("seed", range(3))
def test_first_weights_are_within_a_sixth_of_the_weights(seed):
    stack = as_stack(blob_kernels(seed, n=1600), validate=False)
    expected = solve_simple_mkkm(stack, K, tol=1e-8).weights
    np.testing.assert_allclose(first_weights(stack, K, None), expected, rtol=1 / 6)


def test_a_wider_block_finds_the_same_weights(monkeypatch):
    stack = as_stack(blob_kernels(0, n=800), validate=False)
    expected = solve_simple_mkkm(stack, K, tol=1e-9)
    wide = block_width_on_accelerator(stack.n_samples, K)
    assert wide > block_width(stack.n_samples, K)
    monkeypatch.setattr(InMemorySearch, "width", lambda self: wide)
    found = solve_simple_mkkm(stack, K, tol=1e-9)
    assert found.converged
    assert found.relaxation.vectors.shape[1] == wide
    assert found.objective == pytest.approx(expected.objective, rel=2e-9)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-5)


@pytest.mark.parametrize("n", [201, 320, 321, 5000])
def test_a_block_on_an_accelerator_is_the_whole_space_only_where_others_are(n):
    wide, width = block_width_on_accelerator(n, K), block_width(n, K)
    assert width <= wide
    assert wide == width or 5 * wide < n


@pytest.fixture
def accelerator(monkeypatch):
    """Have NumPy play an accelerator whose samples are few."""
    monkeypatch.setattr("mkclust.engine.first_weights.is_on_accelerator", lambda array: True)
    monkeypatch.setattr("mkclust.engine.first_weights.SAMPLES_THERE", 800)


def test_first_weights_of_moderately_many_samples_on_an_accelerator_are_uniform(accelerator):
    stack = as_stack(blob_kernels(0, n=1600), validate=False)
    np.testing.assert_array_equal(first_weights(stack, K, None), 0.25)


@pytest.mark.parametrize("is_anchored", [False, True])
def test_first_weights_of_many_samples_on_an_accelerator_are_nearer_than_uniform_ones(
    is_anchored, accelerator, monkeypatch
):
    monkeypatch.setattr("mkclust.engine.first_weights.FEWEST_SAMPLED_THERE", 1600)
    stack = as_stack(blob_kernels(0, n=1600), validate=False)
    surfaces, anchor = CuttingSurfaces(stack.n_kernels), None
    if is_anchored:
        uniform = relax(stack.combine(np.full(4, 0.25) ** 2), K, tol=1e-6)
        anchor = Anchor(uniform.vectors[:, :K], 5.0)
    expected = search(stack, K, surfaces, tol=1e-6, max_iter=50, anchor=anchor).weights
    weights = first_weights(stack, K, anchor)
    assert weights.sum() == pytest.approx(1)
    assert np.abs(weights - expected).max() < np.abs(0.25 - expected).max() / 2


def test_weights_that_would_fit_worse_are_not_foreseen_again_before_a_look(monkeypatch):
    foresee, next_vectors, counts = InMemorySearch.foresee, InMemorySearch.next_vectors, []

    def worse(self, vectors, tol):
        found = foresee(self, vectors, tol)
        if found is None:
            return None
        counts[-1] += 1
        return replace(found, error=2 * self.error * found.value)

    def counted(self):
        counts.append(0)
        return next_vectors(self)

    monkeypatch.setattr(InMemorySearch, "foresee", worse)
    monkeypatch.setattr(InMemorySearch, "next_vectors", counted)
    stack = as_stack(blob_kernels(0, n=800), validate=False)
    found = solve_simple_mkkm(stack, K, tol=1e-9)
    assert found.converged
    assert max(counts) == 1
