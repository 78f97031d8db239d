"""What stands for samples that are missing from views is learned, and the objective is
monotone."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from helpers.arrays import LIBRARIES, as_library
from helpers.problems import FAMILIES, random_weights, top_eigenvalue_sum, wishart
from mkclust import MKKM, SimpleMKKM
from mkclust.data.samples import Samples
from mkclust.engine.simplex import best_response
from mkclust.fit.embedding import TRUST, LearnedRows, grams_of
from mkclust.linalg import inner_products, to_host
from mkclust.methods.learned_fill import AlignedFills, regressed_fills
from mkclust.stack import as_stack
from mkclust.stack.observed import observed_samples, with_maps

pytestmark = pytest.mark.slow

# Ties, rank deficiency, near-ties and noise; a single kernel, and as many clusters as
# can be.
PROBLEMS = [(family, seed) for family in FAMILIES for seed in range(4)]


def random_mask(rng, n, m, rate):
    """Return which kernels have which samples, every sample being in one at least."""
    observed = rng.random((n, m)) >= rate
    observed[np.arange(n), rng.integers(m, size=n)] = True
    return observed


def incomplete_stack(kernels, observed, center=False, library="numpy"):
    """Return kernels without the samples that they lack."""
    pairs = zip(kernels, observed.T, strict=True)
    blocks = [as_library(library, K[np.ix_(has, has)]) for K, has in pairs]
    names = tuple(f"kernel {p}" for p in range(len(blocks)))
    samples = Samples("kernels", names, tuple(blocks), missing=~observed)
    options = {"center": center, "normalize": False, "validate": False, "fill": "zero"}
    return as_stack(samples, views=range(len(blocks)), **options)


def random_problem(family, seed):
    """Return an incomplete stack of a family, and a number of clusters."""
    rng = np.random.default_rng(seed)
    n, m, k = 12, int(rng.integers(2, 5)), int(rng.integers(1, 5))
    if seed == 0:
        k = n - 1
    kernels = family(rng, n, m, k)
    observed = random_mask(rng, n, m, rng.uniform(0.1, 0.6))
    if seed == 1:
        # One kernel: there is nothing to learn of a sample that it lacks.
        kernels, observed = kernels[:1], np.arange(n)[:, None] > 2
    return incomplete_stack(kernels, observed), k


def features(kernel):
    """Return features of a small kernel, (n, n)."""
    values, vectors = np.linalg.eigh(kernel)
    return vectors * np.sqrt(np.maximum(values, 0))


def dense_kernels(stack):
    return np.stack([to_host(kernel.dense()) for kernel in stack.kernels])


def filled_by(rule, stack, H):
    """Return kernels as a rule fills them."""
    return replace(stack, kernels=with_maps(stack.kernels, rule(stack, H)))


def alignments(stack, H):
    return inner_products(stack.apply(H), H)


@pytest.mark.parametrize(("family", "seed"), PROBLEMS)
def test_simplemkkm_fills_kernels_without_a_false_certificate(family, seed):
    stack, k = random_problem(family, seed)
    solution = SimpleMKKM(k, missing_views="learn").solve(stack)
    assert np.all(np.diff(solution.fill_history) >= 0)
    assert solution.objective == solution.fill_history[-1]
    filled = dense_kernels(solution.stack)
    for K, observed, before in zip(
        filled, observed_samples(stack.kernels).T, dense_kernels(stack), strict=True
    ):
        kept = np.ix_(observed, observed)
        np.testing.assert_allclose(
            K[kept], before[kept], atol=1e-12 * np.abs(before).max()
        )
        assert np.linalg.eigvalsh(K)[0] >= -1e-10 * np.trace(K)
    # The certificate of the last fills, by dense eigenvalues.
    rng, slack = np.random.default_rng(seed), 1e-9 * solution.objective
    value = top_eigenvalue_sum(filled, solution.weights, k)
    assert solution.objective == pytest.approx(value, rel=1e-6)
    others = [
        top_eigenvalue_sum(filled, random_weights(rng, len(filled)), k)
        for _ in range(20)
    ]
    assert solution.lower_bound <= min([value, *others]) + slack


@pytest.mark.parametrize(("family", "seed"), PROBLEMS)
def test_mkkm_leaves_less_unexplained_with_every_fill(family, seed):
    stack, k = random_problem(family, seed)
    solution = MKKM(k, missing_views="learn").solve(stack)
    assert np.all(np.diff(solution.fill_history) <= 0)
    rest = np.tensordot(solution.coefficients, dense_kernels(solution.stack), 1)
    H = solution.partition
    unexplained = np.trace(rest) - np.vdot(H, rest @ H)
    assert solution.objective == pytest.approx(unexplained, abs=1e-9 * np.trace(rest))


@pytest.mark.parametrize("seed", range(10))
def test_a_fill_raises_the_alignment_of_every_kernel_and_so_the_minimum(seed):
    rng = np.random.default_rng(seed)
    n, m, k = 15, 3, 3
    stack = incomplete_stack(wishart(rng, n, m, k), random_mask(rng, n, m, 0.4))
    model, rule = SimpleMKKM(k, missing_views="learn", tol=1e-9), AlignedFills()
    solution = model._minimize(stack)
    for _ in range(3):
        filled = filled_by(rule, stack, solution.partition)
        before = alignments(stack, solution.partition)
        after = alignments(filled, solution.partition)
        assert np.all(after >= before * (1 - 1e-12))
        # Whatever the weights, the partition before makes this much of the kernels now.
        bound = best_response(after)[1]
        stack, old, solution = filled, solution, model._minimize(filled)
        assert solution.objective >= bound * (1 - 1e-8)
        if old.relaxation.eigengap > 1e-3:
            assert best_response(before)[1] == pytest.approx(old.objective, rel=1e-6)
            assert solution.objective >= old.objective * (1 - 1e-8)


def test_a_fill_has_features_along_what_the_partition_says_of_a_sample():
    rng = np.random.default_rng(0)
    n, k = 14, 3
    observed = random_mask(rng, n, 2, 0.4)
    stack = incomplete_stack(wishart(rng, n, 2, k), observed)
    H = np.linalg.qr(rng.normal(size=(n, k)))[0]
    rule = AlignedFills()
    first = filled_by(rule, stack, H)
    H = np.linalg.qr(rng.normal(size=(n, k)))[0]
    second = filled_by(rule, first, H)
    for p, length in rule.lengths.items():
        seen = observed[:, p]
        Phi = features(to_host(first.kernels[p].dense()))
        M = Phi.T @ H
        directions = H[~seen] @ M.T
        Phi[~seen] = length * directions / np.linalg.norm(directions, axis=1)[:, None]
        np.testing.assert_allclose(Phi @ Phi.T, second.kernels[p].dense(), atol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_regression_leaves_the_least_that_any_fill_leaves_unexplained(seed):
    rng = np.random.default_rng(seed)
    n, k, missing = 8, 2, np.array([1, 4, 6])
    X = rng.normal(size=(n, 3))
    H = np.linalg.qr(rng.normal(size=(n, k)))[0]
    observed = ~np.isin(np.arange(n), missing)
    stack = incomplete_stack((X @ X.T)[None], observed[:, None])
    filled = dense_kernels(filled_by(regressed_fills, stack, H))[0]

    def unexplained(free):
        Phi = X.copy()
        Phi[missing] = free.reshape(len(missing), 3)
        return np.sum(Phi**2) - np.sum((Phi.T @ H) ** 2)

    best = minimize(unexplained, np.zeros(3 * len(missing)), method="BFGS", tol=1e-12)
    assert np.trace(filled) - np.vdot(H, filled @ H) == pytest.approx(
        best.fun, rel=1e-8
    )
    Phi = X.copy()
    Phi[missing] = best.x.reshape(len(missing), 3)
    np.testing.assert_allclose(filled, Phi @ Phi.T, atol=1e-4 * np.abs(filled).max())


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_learned_row_adds_what_it_predicts_of_kernels_that_lack_the_sample(library):
    rng = np.random.default_rng(4)
    kernels, k = wishart(rng, 12, 3, 2), 2
    stack = as_stack(kernels, center=False, normalize=False)
    solution = SimpleMKKM(k).solve(stack)
    values = solution.relaxation.eigenvalues[:k]
    grams = grams_of(solution.partition, stack.apply(solution.partition))
    learned = LearnedRows(solution.coefficients[:, None, None] * grams / values)
    seen = random_mask(rng, 7, 3, 0.5)
    seen[0] = True
    b = rng.normal(size=(7, k))
    rows = to_host(learned.complete(as_library(library, b), seen))
    np.testing.assert_array_equal(rows[0], b[0])
    for row, start, has in zip(rows, b, seen, strict=True):
        predicted = (row @ learned.predictions[p] for p in np.flatnonzero(~has))
        np.testing.assert_allclose(row, start + TRUST * sum(predicted), atol=1e-10)
