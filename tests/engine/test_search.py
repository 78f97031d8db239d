"""The search for weights, against dense eigensolvers and a second search."""

import numpy as np
import pytest

from helpers.kernels import gaussian_kernels
from helpers.problems import blob_kernels, commuting, top_eigenvalue_sum
from mkclust.engine.search import search
from mkclust.engine.simplex import CuttingSurfaces, Evaluation
from mkclust.stack import DenseKernel, Factored, Kernel, Stack, as_stack

RAW = {"center": False, "normalize": False, "validate": False}


def true_gap(stack, found, k):
    """Return how far the objective, by a dense eigensolver, lies above the certified
    bound."""
    J = top_eigenvalue_sum(stack.among().entries, found.weights, k)
    return (J - found.history[-1, 1]) / J


def claimed_gap(found):
    """Return how far it is claimed to lie above that at most."""
    return found.relaxation.gap_above(found.history[-1, 1])


@pytest.mark.parametrize("n", [180, pytest.param(620, marks=pytest.mark.slow)])
@pytest.mark.parametrize("streamed", [False, True])
def test_the_search_matches_cutting_surfaces_on_the_whole_space(n, streamed):
    kernels, _ = gaussian_kernels(
        np.random.default_rng(2), n=n, k=4, strengths=(2, 1, 0.5, 0, 0)
    )
    stack = as_stack(kernels, streamed=streamed)
    entries = stack.among().entries
    found = search(stack, 4, tol=1e-9, max_iter=100)
    assert found.converged
    oracle = CuttingSurfaces(np.full(5, 0.2))

    def evaluate(gamma):
        H = np.linalg.eigh(np.tensordot(gamma**2, entries, 1))[1][:, -4:]
        alignments = np.array([np.trace(H.T @ K @ H) for K in entries])
        return Evaluation(float(gamma**2 @ alignments), alignments)

    weights, best, _ = oracle.minimize(evaluate, 1e-10)
    assert found.relaxation.value == pytest.approx(best.value, rel=1e-8)
    np.testing.assert_allclose(found.weights, weights, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("n_noise", [0, 3])
@pytest.mark.parametrize("k", [2, 6, 15])
def test_certificates_of_a_search_through_single_precision_are_true(k, n_noise):
    stack = as_stack(blob_kernels(k, n_noise), validate=False)
    entries = stack.among().entries
    found = search(stack, k, tol=1e-6, max_iter=200)
    value = top_eigenvalue_sum(entries, found.weights, k)
    assert found.relaxation.value <= value * (1 + 1e-12)
    assert value <= found.relaxation.value + found.relaxation.error
    # No weights, however they were found, are better than the bound says.
    better = search(stack, k, tol=0.9e-11, max_iter=200)
    assert better.converged
    lowest = top_eigenvalue_sum(entries, better.weights, k)
    assert found.history[-1, 1] <= lowest * (1 + 1e-12)
    assert value - lowest <= claimed_gap(found) * value


@pytest.mark.parametrize("size", [1e-30, 1e30, 1e100])
def test_kernels_that_single_precision_cannot_hold_are_solved(size):
    kernels = blob_kernels(0, n=520, m=3, k=4)
    kernels[1] *= size
    stack = as_stack(kernels, normalize=False, validate=False)
    found = search(stack, 4, tol=1e-6, max_iter=200)
    assert found.converged
    assert np.all(found.weights > 0)
    assert -1e-10 <= true_gap(stack, found, 4) <= claimed_gap(found) + 1e-10


@pytest.mark.parametrize("n", [150, 320])
def test_a_kernel_of_fixed_coefficient_is_part_of_every_mix(n):
    kernels, _ = gaussian_kernels(np.random.default_rng(3), n=n, k=3)
    plain = as_stack(kernels)
    H = np.linalg.qr(np.random.default_rng(0).normal(size=(n, 3)))[0]
    stack = Stack(
        (*plain.kernels, Factored(5.0 * H)), (*plain.names, "H"), (*plain.views, -1)
    )
    found = search(stack, 3, tol=1e-7, max_iter=200, n_fixed=1)
    assert found.converged
    assert len(found.weights) == 3
    entries = stack.among().entries
    mixed = np.tensordot(np.append(found.weights**2, 1.0), entries, 1)
    J = np.linalg.eigvalsh(mixed)[-3:].sum()
    assert -1e-10 <= (J - found.history[-1, 1]) / J <= claimed_gap(found) + 1e-10
    for seed in range(20):
        weights = np.random.default_rng(seed).dirichlet(np.ones(3))
        other = np.tensordot(np.append(weights**2, 1.0), entries, 1)
        assert np.linalg.eigvalsh(other)[-3:].sum() >= found.history[-1, 1]


def test_streamed_kernels_are_read_as_often_as_is_said():
    kernels, _ = gaussian_kernels(np.random.default_rng(0), n=900, k=4)
    n_rows = np.zeros(3)

    class Read(DenseKernel):
        storage = "streamed"
        __matmul__ = Kernel.__matmul__

        def rows(self, index):
            n_rows[which[id(self)]] += index.stop - index.start
            return super().rows(index)

    read = tuple(Read(K) for K in kernels)
    which = {id(kernel): p for p, kernel in enumerate(read)}
    for prove in (False, True):
        n_rows[:] = 0
        found = search(
            Stack(read, tuple("abc"), (0, 1, 2)), 4, tol=1e-6, max_iter=50, prove=prove
        )
        assert found.certificate.kind == ("proved" if prove else "searched")
        np.testing.assert_array_equal(n_rows / 900, found.n_passes)


def test_a_thick_restart_loses_nothing():
    """Slow convergence with many kernels fills the basis several times over."""
    kernels = commuting(np.random.default_rng(3), 1500, 12, 4)
    found = search(as_stack(kernels, **RAW), 4, tol=1e-6, max_iter=200)
    assert found.converged
    exact = sum(np.sort(np.einsum("p,pii->i", found.weights**2, kernels))[-4:])
    assert (exact - found.history[-1, 1]) / exact <= 2e-6
