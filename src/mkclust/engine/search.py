"""Weights and leading eigenvectors together, to a certified gap.

One search is run up to three times, each from the weights and vectors of the one before: among a
quarter of the samples, on all samples in single precision, and on the kernels as they are. All this
asks of the kernels is products with thin matrices, and a mix of them if they are in memory.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from mkclust.engine.basis import Basis, Problem, relative
from mkclust.engine.certificate import Certificate, certify, rounding_of_entries
from mkclust.engine.cutting import CuttingSurfaces, Evaluation
from mkclust.engine.eigen import EPS, Relaxation, block_width, improve, relax, relax_whole
from mkclust.linalg import (
    astype,
    free_bytes,
    inner_products,
    namespace,
    orthonormalize,
    random_normal,
    side_by_side,
    to_device,
    to_host,
    zeros,
)
from mkclust.linalg.memory import fits
from mkclust.linalg.threads import FEW_SAMPLES, one_thread_if_small
from mkclust.types import Array, Float

# Between two passes the error of eigenvectors is reduced to this share, by products with one mix:
# about so much of it comes back as the weights move.
INNER_SHARE = 1e-2
# Most products with one mix between two passes over all kernels.
INNER_PRODUCTS = 12
# Vectors that the first pass takes in beyond those that are iterated: they cost BLAS little.
MORE_VECTORS = 32
# First weights are learned from a quarter of the samples, but from no more than this.
MOST_SAMPLED = 2048
# With fewer samples than this they are uniform.
FEWEST_SAMPLED = 150
# Most samples that they are learned from if rows are read or computed for it.
MOST_STREAMED = 256
# Samples per cluster that they are learned from at least.
SAMPLED_PER_CLUSTER = 5
# Relative accuracy of first weights and vectors.
FIRST_TOLERANCE = 1e-4
# Most passes over a sample.
SAMPLE_PASSES = 4
# The search in single precision is left out if one pass over the sample came within so many times
# the tolerance: then one pass over all kernels is likely to be enough, too.
ONE_PASS = 10
# The share of the tolerance that is asked of a search in single precision.
SINGLE_SHARE = 0.4
# The least tolerance that is.
LEAST_SINGLE_TOLERANCE = 1e-6
# The share of the eigenvectors' error that the weights inherit.
INHERITED = 0.1
# The tolerance below which provisional eigenvectors have to be in double precision, too.
LEAST_TOLERANCE_FROM_SINGLE = 1e-11
# A certificate is asked for once the residuals suggest an error below this share of the one
# allowed, so that a search is short.
ENOUGH = 0.3
# How often eigenvectors too poor for a certificate are improved.
REFINEMENTS = 2
# Passes without progress after which a search gives up.
PATIENCE = 5
# Up to so many samples a problem that no subspace solves is solved in the whole space.
MOST_WHOLE = 2000
# Most eigenproblems at full size for a sample.
MOST_EVALUATIONS = 200
# By so many roundings of the kernels' entries, at most, alignments are rounded up.
ALIGNMENT_ROUNDINGS = 2


@dataclass(frozen=True)
class Search:
    """What a search for weights found."""

    weights: Float  # the mix's coefficients are their squares
    relaxation: Relaxation  # the partition of that mix, kernels of fixed coefficient included
    # Best objective and certified lower bound after each iteration, (n_iter, 2).
    history: Float
    converged: bool  # whether the certified relative gap is below the tolerance
    n_passes: int  # how often every kernel was read
    certificate: Certificate  # how it is known that no eigenvector was missed
    alignments: Float  # Tr(H^T K_p H) of every kernel with a weight and the partition H


def search(
    stack: Any,
    n_clusters: int,
    *,
    tol: float,
    max_iter: int,
    n_fixed: int = 0,
    start: Array | None = None,
    prove: bool | Literal["auto"] = "auto",
    key: int = 0,
) -> Search:
    r"""Find the weights and the eigenvectors of their mix together.

    .. math:: \min_{\gamma \in \Delta} \max_{H^\top H = I_k}
              \mathrm{Tr}(H^\top (\sum_p \gamma_p^2 K_p + K_{\mathrm{fixed}}) H)

    A basis V is kept together with the products of every kernel with it. In each iteration the
    problem restricted to V is solved to about the accuracy that V deserves; then V is expanded by
    the leading eigenvectors of the mix just found, computed by products with that one matrix, or by
    their residuals if the kernels are not in memory. Alignments measured in V belong to vectors
    over all samples, so the surfaces that they make stay valid however V changes: the lower bound
    is exact. The upper bound is the eigenvalue sum found plus what may be missing from it, which is
    proved or searched for (`mkclust.engine.certificate`) before it is believed.

    The tolerance is the relative gap at which to stop. So many kernels at the end of the stack are
    fixed: they have a coefficient of one. Orthonormal vectors to start from may be the partition of
    similar kernels. ``prove="auto"`` proves if that is faster than a search, or if a search is
    inconclusive; ``key`` is that of `mkclust.engine.certificate.search_key`.
    """
    n, n_weights = stack.n_samples, stack.n_kernels - n_fixed
    problem = Problem(n_clusters, n_weights, n_fixed, tol, max_iter, prove, key)
    uniform = np.full(n_weights, 1 / n_weights)
    with one_thread_if_small(n):
        if n <= FEW_SAMPLES:
            stack = stack.held() or stack
        if block_width(n, n_clusters) >= n:
            return _search_whole_space(stack, problem, uniform)
        found = _search_in_steps(stack, problem, uniform, start)
    n_left = max_iter - len(found.history)
    is_large = n > MOST_WHOLE or not fits(16 * n**2, available=free_bytes(found.relaxation.vectors))
    if found.converged or n_left <= 0 or is_large or not stack.in_memory:
        return found
    whole = _search_whole_space(stack, replace(problem, max_iter=n_left), found.weights)
    history = np.concatenate([found.history, whole.history])
    return replace(whole, history=history, n_passes=found.n_passes + whole.n_passes)


def _search_in_steps(stack: Any, problem: Problem, weights: Float, start: Array | None) -> Search:
    """Search among a sample, on all samples in single precision, and on the kernels as they are."""
    n, m, tol, like = stack.n_samples, stack.n_kernels, problem.tol, stack.kernels[0].like
    in_memory, is_large = stack.in_memory, n > FEW_SAMPLES and m > 1
    single = is_large and tol >= LEAST_TOLERANCE_FROM_SINGLE and stack.is_safe_in_single
    dtype = "float32" if single else "float64"
    copy = stack.held() if single else None
    sampled = _first_weights(copy or stack, problem, weights, dtype)
    if single and copy is None and not sampled.is_near:
        copy = stack.held(True)
    mixes, weights = Mixes(problem, copy or stack, dtype), sampled.weights
    mixes.n_passes += copy is not None
    mix = mixes(weights)
    if start is None and sampled.vectors is not None:
        # Multiplied with the mix, the sample's eigenvectors are extended to all samples.
        start = orthonormalize(mix @ astype(sampled.vectors, dtype))
        mixes.n_passes += not in_memory
    if not in_memory:  # each product is a pass, so the vectors are improved in the basis
        drawn = random_normal((n, block_width(n, problem.n_clusters)), like, 0)
        start = orthonormalize(drawn if start is None else side_by_side(start, drawn))
        return _search_subspace(stack, problem, mixes, weights, start[:, : drawn.shape[1]])
    if sampled.is_near:
        X = relax(mix, problem.n_clusters, tol=INNER_SHARE * tol, start=start, dtype=dtype).vectors
        return _search_subspace(stack, problem, mixes, weights, X)
    X = _first_vectors(mix, problem, FIRST_TOLERANCE, start, dtype)
    if copy is not None:
        rough = replace(problem, tol=SINGLE_SHARE * max(tol, LEAST_SINGLE_TOLERANCE))
        found = _search_subspace(copy, rough, mixes, weights, X, dtype)
        weights = found.weights
        X = _better_vectors(mixes(weights), found.relaxation, INNER_SHARE * tol, dtype)
    return _search_subspace(stack, problem, mixes, weights, X)


class Sampled(NamedTuple):
    """Weights that a sample asks for, its partition, and whether one pass may be enough."""

    weights: Float
    vectors: Array | None
    is_near: bool


def _first_weights(stack: Any, problem: Problem, uniform: Float, dtype: str) -> Sampled:
    """Return the weights that a sample of the samples asks for, if there are enough of them."""
    n, k, in_memory = stack.n_samples, problem.n_clusters, stack.in_memory
    size = min(n // 4, MOST_SAMPLED if in_memory else max(MOST_STREAMED, SAMPLED_PER_CLUSTER * k))
    if problem.n_weights == 1 or size < max(FEWEST_SAMPLED, SAMPLED_PER_CLUSTER * k):
        return Sampled(uniform, None, False)
    samples, half = np.random.default_rng(0).choice(n, size, replace=False), size // 2
    samples = np.concatenate([np.sort(samples[:half]), np.sort(samples[half:])])
    sample = stack.among(samples, dtype)
    fewer = _search_sample(sample.among(np.arange(half), dtype), problem, uniform, dtype).weights
    found = _search_sample(sample, problem, fewer, dtype)
    weights, relaxation = found.weights, found.relaxation
    sampled = zeros((n, relaxation.vectors.shape[1]), relaxation.vectors)
    sampled[to_device(samples, sampled), :] = astype(relaxation.vectors, "float64")
    is_near = (
        len(found.history) == 1 and relaxation.error <= ONE_PASS * problem.tol * relaxation.value
    )
    if np.all(weights > 0) and np.all(fewer > 0):
        # Few samples make noise look like structure, by about the inverse root of their number.
        trend = (size**-0.5 - n**-0.5) / (half**-0.5 - size**-0.5)
        weights = weights * (weights / fewer) ** trend
        weights /= weights.sum()
    return Sampled(weights, sampled, is_near)


def _search_sample(sample: Any, problem: Problem, weights: Float, dtype: str) -> Search:
    """Return the weights that a sample asks for, from others on."""
    problem = replace(problem, tol=FIRST_TOLERANCE, max_iter=SAMPLE_PASSES)
    if block_width(sample.n_samples, problem.n_clusters) >= sample.n_samples:
        return _search_whole_space(sample, replace(problem, max_iter=MOST_EVALUATIONS), weights)
    mixes = Mixes(problem, sample, dtype)
    X = _first_vectors(mixes(weights), problem, 10 * FIRST_TOLERANCE, None, dtype)
    return _search_subspace(sample, problem, mixes, weights, X, dtype)


def _first_vectors(
    mix: Any, problem: Problem, tol: float, start: Array | None, dtype: str
) -> Array:
    """Return leading eigenvectors of a mix, more than are iterated.

    A pass takes little longer for it, and the basis knows more of mixes that are not this one.
    """
    width = block_width(mix.n_samples, problem.n_clusters)
    count = width + min(width, MORE_VECTORS)
    return relax(mix, problem.n_clusters, tol=tol, start=start, dtype=dtype, count=count).vectors


def _better_vectors(mix: Any, relaxation: Relaxation, tol: float, dtype: str) -> Array:
    """Return better eigenvectors of a mix, by products with that one matrix."""
    start = replace(
        relaxation,
        vectors=astype(relaxation.vectors, dtype),
        residuals=astype(relaxation.residuals, dtype),
    )
    return improve(mix, start, tol, max_products=INNER_PRODUCTS).vectors


class Mixes:
    """Mixes of kernels, one after another, in a number type; counts passes over all kernels."""

    def __init__(self, problem: Problem, stack: Any, dtype: str):
        self._problem, self._stack, self.dtype, self.n_passes = problem, stack, dtype, 0
        self.in_memory = stack.in_memory
        self._weights, self._mix = np.zeros(0), None

    def __call__(self, weights: Float) -> Any:
        """Return the mix of some weights; the latest one is kept."""
        if not np.array_equal(weights, self._weights):
            self._mix = None  # so that there is memory for the next
            self._mix = self._stack.mix(self._problem.coefficients(weights), self.dtype)
            self._weights = weights
            self.n_passes += self.in_memory
        return self._mix

    def rounding_error(self) -> float:
        """Return how far eigenvalues of the latest mix are from those in double precision at most.

        Each entry is rounded once per kernel and a few times more, and as the kernels are positive
        semidefinite, the norms of the terms sum to sqrt(m) times that of the mix at most.
        """
        matrix = getattr(self._mix, "matrix", None)
        if self.dtype == "float64" or matrix is None:
            return 0.0
        m, squares = self._stack.n_kernels, namespace(matrix).linalg.vecdot(matrix, matrix)
        length = float(np.sqrt(to_host(squares).sum()))
        return (m + 4) * np.sqrt(m) / 2 * float(np.finfo(np.float32).eps) * length


def _surfaces(stack: Any, problem: Problem, weights: Float, is_bound: bool) -> CuttingSurfaces:
    """Return no surfaces yet, and where to begin; if their bound counts, rounding is taken off."""
    rounding = ALIGNMENT_ROUNDINGS * rounding_of_entries(stack) if is_bound else 0.0
    surfaces = CuttingSurfaces(problem.n_weights, rounding)
    surfaces.weights = weights
    return surfaces


def _search_subspace(
    stack: Any,
    problem: Problem,
    mixes: Mixes,
    weights: Float,
    X: Array,
    rough: str | None = None,
) -> Search:
    """Search from some weights and vectors on.

    Mixes may be rounded. A rough search, in a number type, ends without a certificate.
    """
    tol, surfaces = problem.tol, _surfaces(stack, problem, weights, is_bound=rough is None)
    basis = Basis(stack, problem, rough or "float64")
    certificate, history = None, list[tuple[float, float]]()
    error, best_gap, n_waited, n_refinements = 1e-2, np.inf, 0, 0
    while True:
        mixes.n_passes += (is_larger := basis.expand(X, surfaces.weights))
        previous, (relaxation, best) = error, basis.minimize(surfaces, error)
        weights, value, bound = surfaces.weights, relaxation.value, surfaces.lower_bound
        above, error = max(value - bound, 0.0), relative(relaxation.error, relaxation)
        gap = relaxation.gap_above(bound)
        history.append((bound + gap * value, bound))
        n_waited = 0 if gap < 0.9 * best_gap else n_waited + 1
        best_gap = min(gap, best_gap)
        is_last = not is_larger or len(history) >= problem.max_iter or n_waited >= PATIENCE
        if rough is not None:
            is_enough = relative(above, relaxation) + INHERITED * error <= tol
            is_stuck = len(history) > 2 and error > previous / 2  # by rounding
            if is_enough or is_stuck or is_last:
                break
        X, allowed = None, tol * value - above
        if rough is None and allowed > 0 and (relaxation.error <= ENOUGH * allowed or is_last):
            mix = mixes(weights) if mixes.in_memory else None
            verdict = certify(
                stack,
                problem.coefficients(weights),
                relaxation,
                allowed,
                prove=problem.prove,
                key=problem.key,
                seed=len(history),
                mix=mix,
                mix_error=mixes.rounding_error(),
                may_refine=n_refinements < REFINEMENTS and not is_last,
            )
            mixes.n_passes += verdict.n_passes
            certificate, X = verdict.certificate, verdict.missed
            if certificate is not None and (certificate.is_sure or n_refinements >= REFINEMENTS):
                break
            n_refinements += X is None
        if n_refinements > REFINEMENTS or (is_last and (X is None or n_waited >= PATIENCE)):
            break
        if X is None and mixes.in_memory:
            goal = INNER_SHARE * max(error, tol * 0.1**n_refinements)
            X = _better_vectors(mixes(weights), relaxation, goal, mixes.dtype)
        elif X is None:
            X = relaxation.residuals
    converged = certificate is not None
    certificate = certificate or Certificate("open", relaxation.error)
    relaxation = replace(relaxation, error=certificate.error)
    history[-1] = (bound + relaxation.gap_above(bound) * value, bound)
    found = np.array(history), converged, mixes.n_passes, certificate, best.alignments
    return Search(weights, relaxation, *found)


def _search_whole_space(stack: Any, problem: Problem, weights: Float) -> Search:
    """Search if the basis would be the whole space: every eigenproblem at full size."""
    k = problem.n_clusters

    def evaluate(gamma: Float) -> Evaluation:
        """Solve the eigenproblem of some weights at full size."""
        relaxation = relax_whole(stack.mix(problem.coefficients(gamma)).dense(), k)
        H = relaxation.vectors[:, :k]
        return problem.evaluation(relaxation.value, inner_products(stack.apply(H), H), relaxation)

    surfaces = _surfaces(stack, problem, weights, is_bound=True)
    gamma, best, history = surfaces.minimize(evaluate, problem.tol, problem.max_iter)
    # A dense eigensolver is exact but for rounding.
    certificate = Certificate("proved", float(np.sqrt(stack.n_samples) * EPS * best.value))
    relaxation = replace(best.state, error=certificate.error)
    converged = best.value - surfaces.lower_bound <= problem.tol * best.value
    found = np.array(history), converged, 2 * len(history), certificate, best.alignments
    return Search(gamma, relaxation, *found)
