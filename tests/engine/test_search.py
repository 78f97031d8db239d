"""The engine: eigenvectors of one matrix, and weights and eigenvectors together."""

import numpy as np
import pytest
import scipy.sparse.linalg
from mkclust.engine.missed import MAX_STEPS, relax_from
from mkclust.engine.relaxation import relax
from mkclust.linalg.operators import WrappedOperator

from conftest import gaussian_kernels
from mkclust.engine.cutting import CuttingSurfaces
from mkclust.engine.search import search
from mkclust.stack import as_stack
from problems import FAMILIES, commuting


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
@pytest.mark.parametrize(("n", "k"), [(150, 4), (400, 1), (400, 6), (300, 200), (260, 259)])
def test_relaxing_finds_the_leading_eigenvalues(family, n, k):
    kernel = family(np.random.default_rng(k), n, 1, k)[0]
    stack = as_stack([kernel], center=False, normalize=False, validate=False)
    found = relax(stack.kernel(0), k, tol=1e-10)
    exact = np.linalg.eigvalsh(kernel)[::-1]
    assert found.value == pytest.approx(exact[:k].sum(), rel=1e-8)
    H = found.vectors[:, :k]
    np.testing.assert_allclose(H.T @ H, np.eye(k), atol=1e-9)
    np.testing.assert_allclose(found.products, kernel @ found.vectors, atol=1e-8 * exact[0])


def test_relaxing_agrees_with_arpack():
    kernels, _ = gaussian_kernels(np.random.default_rng(0), n=500, k=5)
    operator = as_stack(kernels).combine(np.array([0.5, 0.3, 0.2]))
    found = relax(operator, 5, tol=1e-12)
    values = scipy.sparse.linalg.eigsh(operator.dense(), 6, return_eigenvectors=False)[::-1]
    np.testing.assert_allclose(found.eigenvalues[:6], np.sort(values)[::-1], rtol=1e-4)
    np.testing.assert_allclose(found.eigenvalues[:5], np.sort(values)[::-1][:5], rtol=1e-8)


def test_a_good_start_needs_no_iterations():
    kernels, _ = gaussian_kernels(np.random.default_rng(1), n=400, k=4)

    class Counted(WrappedOperator):
        n_products = 0

        def __matmul__(self, X):
            self.n_products += 1
            return self.operator @ X

    operator = Counted(as_stack(kernels).combine(np.full(3, 1 / 9)))
    found = relax(operator, 4, tol=1e-6)
    operator.n_products = 0
    again = relax_from(operator, 4, tol=1e-6, start=found.vectors)
    # One product for the start, and what the look for missed eigenvectors takes.
    assert operator.n_products <= 2 + MAX_STEPS
    assert again.value == pytest.approx(found.value, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_looking_for_missed_eigenvectors_ends_and_leaves_an_orthonormal_basis(dtype):
    # Two features only: all that can be found beyond them is rounding.
    X = np.random.default_rng(0).normal(size=(230, 2))
    kernels = np.stack([X @ X.T, (X * [1, 2]) @ X.T]).astype(dtype)
    stack = as_stack(kernels, center=False)
    start = relax(stack.combine(np.array([0.5, 0.5])), 5, tol=1e-12).vectors
    operator = stack.combine(np.array([0.1, 0.9]))
    found = relax_from(operator, 5, tol=1e-12, start=start)
    vectors = found.vectors
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(vectors.shape[1]), atol=1e-10)
    largest = np.linalg.eigvalsh(operator.dense())[-5:].sum()
    assert found.value == pytest.approx(largest, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("n", [180, 500])
def test_the_search_matches_cutting_surfaces_on_the_whole_space(n):
    kernels, _ = gaussian_kernels(np.random.default_rng(2), n=n, k=4, strengths=(2, 1, 0.5, 0, 0))
    stack = as_stack(kernels)
    entries = stack.entries()
    found = search(stack, 4, CuttingSurfaces(5), tol=1e-9, max_iter=100)
    assert found.converged
    oracle = CuttingSurfaces(5)

    def evaluate(gamma):
        from mkclust.engine.cutting import Evaluation

        H = np.linalg.eigh(np.tensordot(gamma**2, entries, 1))[1][:, -4:]
        alignments = np.array([np.trace(H.T @ K @ H) for K in entries])
        return Evaluation(float(gamma**2 @ alignments), alignments)

    weights, best, _ = oracle.minimize(evaluate, 1e-10)
    assert found.relaxation.value == pytest.approx(best.value, rel=1e-8)
    np.testing.assert_allclose(found.weights, weights, atol=1e-4)


def test_a_thick_restart_loses_nothing():
    """Slow convergence with many kernels fills the basis several times over."""
    kernels = commuting(np.random.default_rng(3), 1500, 12, 4)
    stack = as_stack(kernels, center=False, normalize=False, validate=False)
    found = search(stack, 4, CuttingSurfaces(12), tol=1e-6, max_iter=200)
    assert found.converged
    exact = sum(np.sort(np.einsum("p,pii->i", found.weights**2, kernels))[-4:])
    assert (exact - found.history[-1, 1]) / exact <= 2e-6


def test_surfaces_of_coarser_problems_stay_below_the_finer_one():
    """A part of the samples gives a smaller J, so its surfaces are valid lower bounds."""
    surfaces = CuttingSurfaces(2)
    surfaces.add(np.array([1.0, 2.0]))
    first = surfaces.lower_bound
    surfaces.add(np.array([2.0, 1.0]))
    assert surfaces.lower_bound > first
    np.testing.assert_allclose(surfaces.weights, 0.5, atol=1e-6)
