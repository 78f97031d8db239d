"""Kernels that lack samples, written out by hand: no certificate is false, all stacks agree."""

import numpy as np
import pytest
from scipy.optimize import minimize

from mkclust.data.samples import Samples
from mkclust.methods.simple_mkkm import solve_simple_mkkm
from mkclust.stack import as_stack

KINDS = (
    "plain",
    "twice the same samples",
    "twice the same kernel",
    "low rank",
    "float32",
    "four samples only",
    "two groups without a common kernel",
    "one pattern",
)
N_PROBLEMS = 56


def random_problem(seed):
    """Return kernels over the samples that each has, which these are, and a number of clusters."""
    rng, kind = np.random.default_rng(seed), KINDS[seed % len(KINDS)]
    n, m = int(rng.integers(20, 56)), int(rng.integers(1, 6))
    views = [rng.normal(size=(n, int(rng.integers(1, 8)))) for _ in range(m)]
    if kind == "twice the same samples":
        views = [np.vstack([X[: n // 2]] * 2) for X in views]
        n = len(views[0])
    if kind == "twice the same kernel":
        views[-1] = views[0]
    kernels = [X @ X.T if kind == "low rank" else _gaussian(X) for X in views]
    observed = rng.random((n, m)) >= rng.choice([0.1, 0.3, 0.5, 0.7])
    if kind == "four samples only":
        observed[:, 0] = np.isin(np.arange(n), rng.choice(n, 4, replace=False))
    if kind == "two groups without a common kernel":
        observed[:] = (np.arange(n) < n // 2)[:, None] == (np.arange(m) <= (m - 1) // 2)
    if kind == "one pattern":
        observed[:] = observed[:, :1]
    everywhere = observed.sum(axis=0) < 4
    observed[:4, everywhere] = True
    kept = observed.any(axis=1)
    observed = observed[kept]
    kernels = [K[np.ix_(kept, kept)] for K in kernels]
    parts = [K[np.ix_(seen, seen)] for K, seen in zip(kernels, observed.T, strict=True)]
    if kind == "float32":
        parts = [K.astype(np.float32) for K in parts]
    highest = len(observed) if seed % 3 == 0 else 8
    return parts, observed, int(rng.integers(1, min(highest, len(observed))))


def _gaussian(X):
    squares = np.square(X[:, None] - X).sum(axis=2)
    return np.exp(-squares / np.median(squares[squares > 0]))


def as_samples(parts, observed, make=np.asarray):
    """Return kernels that lack samples in the form that is understood everywhere."""
    names = tuple(f"kernel {p}" for p in range(len(parts)))
    missing = None if observed.all() else ~observed
    return Samples("kernels", names, tuple(map(make, parts)), missing=missing)


def written_out(parts, observed, fill):
    """Return the kernels over all samples, by the definitions."""
    n, m = observed.shape
    scale = np.sqrt(m / observed.sum(axis=1)) if fill == "rescale" else np.ones(n)
    kernels = np.zeros((m, n, n))
    for K, seen, whole in zip(parts, observed.T, kernels, strict=True):
        K = K.astype(np.float64)
        K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        lengths = np.sqrt(np.diag(K))
        whole[np.ix_(seen, seen)] = K / lengths / lengths[:, None]
    return kernels * scale * scale[:, None]


def objective_and_slope(weights, kernels, k):
    """Return the sum of the k largest eigenvalues of a mix, and its slope in the weights."""
    values, vectors = np.linalg.eigh(np.tensordot(weights**2, kernels, 1))
    H = vectors[:, -k:]
    alignments = np.einsum("pij,ij->p", kernels, H @ H.T)
    return values[-k:].sum(), 2 * weights * alignments


def best_known(kernels, k, start):
    """Return the smallest objective that a search by dense eigendecompositions finds."""
    m = len(kernels)
    rng = np.random.default_rng(0)
    starts = [start, np.full(m, 1 / m), *rng.dirichlet(np.ones(m), size=2)]
    simplex = {"type": "eq", "fun": lambda g: g.sum() - 1, "jac": lambda _: np.ones(m)}
    best = np.inf
    for first in starts[: 1 if m == 1 else None]:
        search = minimize(
            objective_and_slope,
            first,
            (kernels, k),
            jac=True,
            bounds=[(0, 1)] * m,
            constraints=simplex,
            method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 60},
        )
        weights = np.maximum(search.x, 0) / np.maximum(search.x, 0).sum()
        for each in (first, weights):
            best = min(best, objective_and_slope(each, kernels, k)[0])
    return best


@pytest.mark.parametrize("kind", KINDS)
def test_no_certificate_of_kernels_that_lack_samples_is_false(kind):
    for seed in range(KINDS.index(kind), N_PROBLEMS, len(KINDS)):
        parts, observed, k = random_problem(seed)
        fill = "rescale" if seed // len(KINDS) % 2 else "zero"
        stack = as_stack(as_samples(parts, observed), fill=fill)
        kernels = written_out(parts, observed, fill)
        rounding = 1e-5 if kind == "float32" else 1e-10
        np.testing.assert_allclose(stack.among().entries, kernels, atol=10 * rounding)
        solution = solve_simple_mkkm(stack, k)
        value, _ = objective_and_slope(solution.weights, kernels, k)
        assert solution.objective == pytest.approx(value, rel=rounding), seed
        best = best_known(kernels, k, solution.weights)
        assert solution.lower_bound <= best * (1 + rounding), seed
        assert solution.objective - best <= (solution.gap + rounding) * solution.objective, seed
        assert solution.converged, seed
        assert solution.gap < 1e-5, seed
