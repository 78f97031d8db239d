"""Weights and leading eigenvectors together, to a certified gap.

The same search is run twice, on the kernels in single precision, and from its weights
and vectors on the kernels as they are.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mkclust.engine.basis import (
    RESIDUAL_SHARE_TO_CERTIFY,
    Basis,
    Problem,
    relative,
)
from mkclust.engine.certificate import (
    PROBABILITY,
    Certificate,
    CertificateCheck,
    certify,
    rounding_of_entries,
)
from mkclust.engine.eigen import (
    Relaxation,
    block_width,
    improve,
    relax,
    relax_whole,
)
from mkclust.engine.protocol import KernelLike, StackLike
from mkclust.engine.simplex import CuttingSurfaces, Evaluation
from mkclust.linalg import (
    EPS,
    FEW_SAMPLES,
    astype,
    fits,
    free_bytes,
    hstack,
    inner_products,
    is_on_accelerator,
    one_thread,
    one_thread_if_small,
    orthonormalize,
    random_normal,
    row_lengths,
)
from mkclust.types import Array, Float

# Between two passes the error of eigenvectors is reduced to this share, by products
# with one mix: about as much of it comes back as the weights move.
INNER_SHARE = 1e-2
# Passes without progress after which a search gives up.
PATIENCE = 5


@dataclass(frozen=True)
class Search:
    """The result of a search for weights."""

    weights: Float  # the mix's coefficients are their squares
    # The partition of that mix, kernels of fixed coefficient included.
    relaxation: Relaxation
    # Best objective and certified lower bound after each iteration, (n_iter, 2).
    history: Float
    converged: bool  # whether the certified relative gap is below the tolerance
    n_passes: int  # how often every kernel was read
    certificate: Certificate  # how it is known that no eigenvector was missed
    # The products of all kernels with the vectors, (m, n, b), if they were computed.
    products: Array | None = None


def search(
    stack: StackLike,
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

    In each iteration the problem restricted to a basis V is solved to a tolerance
    matched to the error of V; then V is expanded by the leading eigenvectors of the mix
    just found, or by their residuals if the kernels are not in memory. Alignments
    measured in V belong to vectors over all samples, so their surfaces stay valid
    however V changes: the lower bound is exact. The upper bound is the eigenvalue sum
    found plus its error, which is proved or searched for (`mkclust.engine.certificate`,
    with ``prove`` and ``key``).

    ``tol`` is the relative gap at which to stop. The last ``n_fixed`` kernels of the
    stack have a coefficient of one. ``start`` may be the orthonormal partition of
    similar kernels.
    """
    n = stack.n_samples
    n_weights = stack.n_kernels - n_fixed
    on_accelerator = stack.in_memory and is_on_accelerator(stack.kernels[0].like)
    width = block_width(n, n_clusters, wide=on_accelerator)
    problem = Problem(n_clusters, n_weights, n_fixed, width, tol, max_iter, prove, key)
    uniform = np.full(n_weights, 1 / n_weights)

    # If kernels are on an accelerator, the host decomposes small matrices only, for
    # which threads wait.
    with one_thread() if on_accelerator else one_thread_if_small(n):
        if n <= FEW_SAMPLES:
            stack = stack.held() or stack
        if width >= n:
            return _search_whole_space(stack, problem, uniform)
        found = _search_in_steps(stack, problem, uniform, start)

    # A problem of moderate size that no subspace solves is solved in the whole space.
    n_left = max_iter - len(found.history)
    free = free_bytes(found.relaxation.vectors)
    is_small = n <= 2000 and fits(16 * n**2, available=free)
    if found.converged or n_left <= 0 or not is_small:
        return found
    whole = _search_whole_space(stack, replace(problem, max_iter=n_left), found.weights)
    history = np.concatenate([found.history, whole.history])
    return replace(whole, history=history, n_passes=found.n_passes + whole.n_passes)


def _search_in_steps(
    stack: StackLike,
    problem: Problem,
    weights: Float,
    start: Array | None,
) -> Search:
    """Search in single precision first, if possible, then on the given kernels."""
    width = problem.width
    if not stack.in_memory:
        # Each product is a pass, so the vectors are improved in the basis.
        shape = (stack.n_samples, width)
        vectors = random_normal(shape, stack.kernels[0].like, 0)
        if start is not None:
            vectors = hstack(start, vectors)
        vectors = orthonormalize(vectors)[:, :width]
        return _search_subspace(stack, problem, weights, vectors, None)

    # Below this tolerance, provisional eigenvectors also need double precision.
    in_single = (
        stack.n_samples > FEW_SAMPLES
        and stack.n_kernels > 1
        and problem.tol >= 1e-11
        and stack.is_safe_in_single
    )
    copy = None
    mixes = Mixes(problem, stack, "float64")
    if in_single:
        copy = stack.held(True)
        mixes = Mixes(problem, copy or stack, "float32")
    X = relax(
        mixes(weights),
        problem.n_clusters,
        tol=1e-3,  # rough: the search improves them
        width=width,
        start=start,
        dtype=mixes.dtype,
    ).vectors

    n_passes = 0
    if copy is not None:
        rough = _search_roughly(copy, problem, weights, X, mixes)
        weights = rough.weights
        n_passes = rough.n_passes + 1  # the copy
        X = mixes.improved(weights, rough.relaxation, INNER_SHARE * problem.tol)
    found = _search_subspace(stack, problem, weights, X, mixes)
    return replace(found, n_passes=found.n_passes + n_passes + mixes.n_written)


@dataclass
class Mixes:
    """Mixes of kernels in a number type, perhaps rounded; the latest one is kept."""

    problem: Problem
    stack: StackLike
    dtype: str
    n_written: int = 0
    latest: tuple[Float, KernelLike] | None = None

    def __call__(self, weights: Float) -> KernelLike:
        """Return the mix of some weights."""
        if self.latest is None or not np.array_equal(weights, self.latest[0]):
            self.latest = None  # so that there is memory for the next
            mix = self.stack.mix(self.problem.coefficients(weights), self.dtype)
            self.latest = (weights, mix)
            self.n_written += 1
        return self.latest[1]

    def improved(self, weights: Float, relaxation: Relaxation, tol: float) -> Array:
        """Return better eigenvectors of a mix, by products with that one matrix."""
        start = replace(
            relaxation,
            vectors=astype(relaxation.vectors, self.dtype),
            residuals=astype(relaxation.residuals, self.dtype),
        )
        # More products with one mix do not pay, as the weights will move.
        return improve(self(weights), start, tol, max_products=12).vectors

    def rounding_error(self, weights: Float) -> float:
        """Return how far eigenvalues of a mix are off at most by single precision.

        Each entry is rounded as it is written, and m + 1 times as it is mixed. As the
        kernels are positive semidefinite, the norms of the terms sum to sqrt(m) times
        that of the mix at most.
        """
        matrix = self(weights).matrix
        if self.dtype == "float64" or matrix is None:
            return 0.0
        m = self.stack.n_kernels
        length = float(np.linalg.norm(row_lengths(matrix)))
        half_rounding = float(np.finfo(np.float32).eps) / 2
        return (m + 4) * np.sqrt(m) * half_rounding * length


class SubspaceSearch:
    """A search in a basis that grows, and how far it has come."""

    relaxation: Relaxation  # the partition of the latest weights
    is_last = False  # whether further iterations are of no use, or not allowed

    def __init__(
        self,
        stack: StackLike,
        problem: Problem,
        surfaces: CuttingSurfaces,
        X: Array,
        dtype: str = "float64",
    ):
        self.problem = problem
        self.surfaces = surfaces
        self.basis = Basis(stack, problem, dtype)
        self.vectors = X  # what the basis takes in next
        self.history: list[tuple[float, float]] = []
        self.n_passes = 0
        self.error = 1e-2  # of the eigenvectors, relative; at first a guess
        self.previous_error = np.inf
        self._best_gap = np.inf
        self._n_waited = 0

    # The weights at which the partition was found.
    weights = property(lambda self: self.surfaces.weights)
    # Whether the gap has not fallen for a while.
    is_stuck = property(lambda self: self._n_waited >= PATIENCE)

    @property
    def above(self) -> float:
        """How far the value lies above the lower bound."""
        return max(self.relaxation.value - self.surfaces.lower_bound, 0.0)

    def advance(self) -> None:
        """Take the next vectors into the basis, and solve the problem in it."""
        is_larger = self.basis.expand(self.vectors, self.weights)
        if is_larger:
            self.n_passes += 1
        self.relaxation = self.basis.minimize(self.surfaces, self.error)
        self.previous_error = self.error
        self.error = relative(self.relaxation.error, self.relaxation)

        gap = self._record(self.relaxation)
        self._n_waited = 0 if gap < 0.9 * self._best_gap else self._n_waited + 1
        self._best_gap = min(gap, self._best_gap)
        is_at_end = len(self.history) >= self.problem.max_iter
        self.is_last = not is_larger or is_at_end or self.is_stuck

    def _record(self, relaxation: Relaxation) -> float:
        """Append the objective and its bound to the history; return their gap."""
        bound = self.surfaces.lower_bound
        gap = relaxation.gap_above(bound)
        value = bound + gap * relaxation.value
        self.history.append((value, bound))
        return gap

    def result(self, check: CertificateCheck, converged: bool) -> Search:
        """Return what was found, with what is certain of it."""
        certificate = check.certificate or check.weaker
        if certificate is None:
            certificate = Certificate("open", self.relaxation.error)
        relaxation = replace(self.relaxation, error=certificate.error)
        self.history.pop()
        self._record(relaxation)
        return Search(
            self.weights,
            relaxation,
            np.array(self.history),
            converged,
            self.n_passes,
            certificate,
            self.basis.products,
        )


def _search_roughly(
    stack: StackLike,
    problem: Problem,
    weights: Float,
    X: Array,
    mixes: Mixes,
) -> SubspaceSearch:
    """Search in the number type of the mixes, without a certificate."""
    # Single precision reaches no smaller tolerance.
    tol = 0.4 * max(problem.tol, 1e-6)
    problem = replace(problem, tol=tol)
    found = SubspaceSearch(stack, problem, CuttingSurfaces(weights), X, mixes.dtype)
    while True:
        found.advance()
        # The weights inherit about a twentieth of the eigenvectors' error.
        own = relative(found.above, found.relaxation)
        gap = own + 0.05 * found.error
        # A small error that does not fall is that of rounding.
        is_rounding = 1e-4 > found.error > found.previous_error / 2
        if gap <= tol or is_rounding or found.is_last:
            return found
        goal = INNER_SHARE * max(found.error, tol)
        found.vectors = mixes.improved(found.weights, found.relaxation, goal)


def _search_subspace(
    stack: StackLike,
    problem: Problem,
    weights: Float,
    X: Array,
    mixes: Mixes | None,
) -> Search:
    """Search to a certificate; mixes are None if kernels are not in memory."""
    tol = problem.tol
    surfaces = CuttingSurfaces(weights, 2 * rounding_of_entries(stack))
    found = SubspaceSearch(stack, problem, surfaces, X)

    def certified(allowed: float) -> CertificateCheck:
        """Return how it is known that these vectors are the leading ones."""
        mix = None
        mix_error = 0.0
        if mixes is not None:
            mix = mixes(found.weights)
            mix_error = mixes.rounding_error(found.weights)
        check = certify(
            stack,
            problem.coefficients(found.weights),
            found.relaxation,
            allowed,
            prove=problem.prove,
            key=problem.key,
            seed=len(found.history),
            mix=mix,
            mix_error=mix_error,
        )
        found.n_passes += check.n_passes
        return check

    n_refinements = 0
    # How often eigenvectors too poor for a certificate are improved.
    refinements = 2
    while True:
        found.advance()
        check = CertificateCheck()
        allowed = tol * found.relaxation.value - found.above
        is_close = found.relaxation.error <= RESIDUAL_SHARE_TO_CERTIFY * allowed
        if allowed > 0 and (is_close or found.is_last):
            check = certified(allowed)
            if check.certificate is not None:
                # Better vectors make a search surer, but for passes over streamed
                # kernels.
                is_final = mixes is None or n_refinements >= refinements
                if is_final or check.certificate.probability <= PROBABILITY:
                    break
            if check.missed is None:
                n_refinements += 1

        if n_refinements > refinements:
            break
        if found.is_last and (check.missed is None or found.is_stuck):
            break

        if check.missed is not None:
            found.vectors = check.missed
        else:
            asked = tol * 0.1**n_refinements
            goal = INNER_SHARE * max(found.error, asked)
            found.vectors = _improved(found, mixes, goal)

    converged = check.certificate is not None
    if not converged and check.weaker is None and found.is_stuck:
        # As far as the vectors go; what is claimed is larger than what was asked for.
        check = certified(tol * found.relaxation.value + found.relaxation.error)
    return found.result(check, converged)


def _improved(found: SubspaceSearch, mixes: Mixes | None, tol: float) -> Array:
    """Return better vectors than those found, or what improves them in the basis."""
    if mixes is None:
        return found.relaxation.residuals
    return mixes.improved(found.weights, found.relaxation, tol)


def _search_whole_space(stack: StackLike, problem: Problem, weights: Float) -> Search:
    """Search if the basis would be the whole space: every eigenproblem at full size."""
    k = problem.n_clusters

    def evaluate(gamma: Float) -> Evaluation:
        """Return value and alignments by all eigenvectors."""
        mix = stack.mix(problem.coefficients(gamma))
        relaxation = relax_whole(mix.dense(), k)
        H = relaxation.vectors[:, :k]
        alignments = inner_products(stack.apply(H), H)
        return problem.evaluation(relaxation.value, alignments, relaxation)

    surfaces = CuttingSurfaces(weights, 2 * rounding_of_entries(stack))
    gamma, best, history = surfaces.minimize(evaluate, problem.tol, problem.max_iter)

    # A dense eigensolver is exact but for rounding.
    rounding = np.sqrt(stack.n_samples) * EPS
    certificate = Certificate("proved", float(rounding * best.value))
    return Search(
        gamma,
        replace(best.state, error=certificate.error),
        np.array(history),
        best.value - surfaces.lower_bound <= problem.tol * best.value,
        2 * len(history),
        certificate,
    )
