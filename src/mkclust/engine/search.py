"""Weights and leading eigenvectors together, to a certified gap.

The same search is run twice, on the kernels in single precision, and from its weights
and vectors on the kernels as they are.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from mkclust.engine.certificate import (
    PROBABILITY,
    Certificate,
    Verdict,
    certify,
    rounding_of_entries,
)
from mkclust.engine.cutting import CuttingSurfaces, Evaluation
from mkclust.engine.eigen import (
    Relaxation,
    block_width,
    improve,
    relax,
    relax_whole,
    ritz_vectors,
)
from mkclust.linalg import (
    astype,
    free_bytes,
    inner_products,
    is_on_accelerator,
    namespace,
    orthonormalize,
    random_normal,
    row_lengths,
    side_by_side,
    to_device,
    to_host,
    top_eigenpairs,
    zeros,
)
from mkclust.linalg.memory import fits
from mkclust.linalg.threads import FEW_SAMPLES, one_thread, one_thread_if_small
from mkclust.types import Array, Float

# Between two passes the error of eigenvectors is reduced to this share, by products
# with one mix: about as much of it comes back as the weights move.
INNER_SHARE = 1e-2
# Most products with one mix between two passes over all kernels.
INNER_PRODUCTS = 12
# Relative accuracy of the vectors that a search begins with.
FIRST_TOLERANCE = 1e-3
# The share of the tolerance that is asked of a search in single precision.
SINGLE_SHARE = 0.4
# The smallest tolerance that such a search reaches.
LEAST_SINGLE_TOLERANCE = 1e-6
# A smaller error that does not fall in such a search is that of rounding.
ROUNDED = 1e-4
# The share of the eigenvectors' error that the weights inherit.
INHERITED = 0.05
# The tolerance below which provisional eigenvectors also need double precision.
LEAST_TOLERANCE_FROM_SINGLE = 1e-11
# A certificate is asked for once the residuals suggest an error below this share of the
# one allowed, so that a search is short.
ENOUGH = 0.3
# How often eigenvectors too poor for a certificate are improved.
REFINEMENTS = 2
# Passes without progress after which a search gives up.
PATIENCE = 5
# Most samples of a problem that is solved in the whole space if no subspace solves it.
MOST_WHOLE = 2000
# Alignments are rounded up by at most this many roundings of the kernels' entries.
ALIGNMENT_ROUNDINGS = 2
# The share of the tolerance that the weights may use; the rest is for the eigenvectors.
WEIGHTS_SHARE = 0.3
# The share that they may use if the eigenvectors are found already, so that a
# certificate follows.
FOR_CERTIFICATE = 0.9
# A basis holds at most, and a restart keeps, this many times the vectors that are
# iterated.
MOST_BLOCKS, KEPT_BLOCKS = 6, 2


@dataclass(frozen=True)
class Problem:
    """The arguments of `search`."""

    n_clusters: int
    n_weights: int
    n_fixed: int
    width: int
    tol: float
    max_iter: int
    prove: bool | Literal["auto"] = False
    key: int = 0

    def coefficients(self, weights: Float) -> Float:
        """Return the coefficients of a mix: squared weights, and ones for fixed kernels."""
        return np.concatenate([weights**2, np.ones(self.n_fixed)])

    def evaluation(self, value: float, alignments: Float, state: Any) -> Evaluation:
        """Return an evaluation; the alignments of fixed kernels are its offset."""
        m = self.n_weights
        return Evaluation(value, alignments[:m], state, float(alignments[m:].sum()))


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
    n, n_weights = stack.n_samples, stack.n_kernels - n_fixed
    is_there = stack.in_memory and is_on_accelerator(stack.kernels[0].like)
    width = block_width(n, n_clusters, wide=is_there)
    problem = Problem(n_clusters, n_weights, n_fixed, width, tol, max_iter, prove, key)
    uniform = np.full(n_weights, 1 / n_weights)
    # Beside an accelerator, the host decomposes small matrices, for which threads only
    # wait.
    with one_thread() if is_there else one_thread_if_small(n):
        if n <= FEW_SAMPLES:
            stack = stack.held() or stack
        if width >= n:
            return _search_whole_space(stack, problem, uniform)
        found = _search_in_steps(stack, problem, uniform, start)
    n_left = max_iter - len(found.history)
    is_large = n > MOST_WHOLE or not fits(
        16 * n**2, available=free_bytes(found.relaxation.vectors)
    )
    if found.converged or n_left <= 0 or is_large:
        return found
    whole = _search_whole_space(stack, replace(problem, max_iter=n_left), found.weights)
    history = np.concatenate([found.history, whole.history])
    return replace(whole, history=history, n_passes=found.n_passes + whole.n_passes)


def _search_in_steps(
    stack: Any, problem: Problem, weights: Float, start: Array | None
) -> Search:
    """Search in single precision first, if that can be done, then on the kernels as they are."""
    k, width, tol = problem.n_clusters, problem.width, problem.tol
    # Each product is a pass, so the vectors are improved in the basis.
    if not stack.in_memory:
        drawn = random_normal((stack.n_samples, width), stack.kernels[0].like, 0)
        start = orthonormalize(drawn if start is None else side_by_side(start, drawn))
        return _search_subspace(stack, problem, weights, start[:, :width])
    pays = stack.n_samples > FEW_SAMPLES and stack.n_kernels > 1
    single = pays and tol >= LEAST_TOLERANCE_FROM_SINGLE and stack.is_safe_in_single
    copy, dtype = (stack.held(True), "float32") if single else (None, "float64")
    mixes = Mixes(problem, copy or stack, dtype)
    options: Any = {
        "tol": FIRST_TOLERANCE,
        "width": width,
        "start": start,
        "dtype": dtype,
    }
    X = relax(mixes(weights), k, **options).vectors
    n_passes = 0
    if copy is not None:
        rough = replace(problem, tol=SINGLE_SHARE * max(tol, LEAST_SINGLE_TOLERANCE))
        found = _search_subspace(copy, rough, weights, X, mixes, certified=False)
        weights, n_passes = found.weights, found.n_passes + 1  # the copy
        X = mixes.improved(mixes(weights), found.relaxation, INNER_SHARE * tol)
    found = _search_subspace(stack, problem, weights, X, mixes)
    return replace(found, n_passes=found.n_passes + n_passes + mixes.n_written)


@dataclass
class Mixes:
    """Mixes of kernels in a number type, perhaps rounded; the latest one is kept."""

    problem: Problem
    stack: Any
    dtype: str
    n_written: int = 0
    latest: tuple[Float, Any] | None = None

    def __call__(self, weights: Float) -> Any:
        """Return the mix of some weights."""
        if self.latest is None or not np.array_equal(weights, self.latest[0]):
            self.latest = None  # so that there is memory for the next
            mix = self.stack.mix(self.problem.coefficients(weights), self.dtype)
            self.latest, self.n_written = (weights, mix), self.n_written + 1
        return self.latest[1]

    def improved(self, mix: Any, relaxation: Relaxation, tol: float) -> Array:
        """Return better eigenvectors of a mix, by products with that one matrix."""
        V, R = (
            astype(each, self.dtype)
            for each in (relaxation.vectors, relaxation.residuals)
        )
        start = replace(relaxation, vectors=V, residuals=R)
        return improve(mix, start, tol, max_products=INNER_PRODUCTS).vectors

    def rounding_error(self, mix: Any) -> float:
        """Return how far eigenvalues of a mix are from those in double precision at most.

        Each entry is rounded as it is written, and m + 1 times as it is mixed. As the
        kernels are positive semidefinite, the norms of the terms sum to sqrt(m) times
        that of the mix at most.
        """
        matrix = getattr(mix, "matrix", None)
        if self.dtype == "float64" or matrix is None:
            return 0.0
        m, length = self.stack.n_kernels, float(np.linalg.norm(row_lengths(matrix)))
        return (m + 4) * np.sqrt(m) / 2 * float(np.finfo(np.float32).eps) * length


def _search_subspace(
    stack: Any,
    problem: Problem,
    weights: Float,
    X: Array,
    mixes: Mixes | None = None,
    *,
    certified: bool = True,
) -> Search:
    """Search from some weights and vectors on; mixes are None if kernels are not in memory."""
    tol, rounding = problem.tol, ALIGNMENT_ROUNDINGS * rounding_of_entries(stack)
    basis = Basis(
        stack, problem, "float64" if certified or mixes is None else mixes.dtype
    )
    surfaces = CuttingSurfaces(weights, rounding if certified else 0.0)
    certificate, weaker, history = None, None, list[tuple[float, float]]()
    error, best_gap, n_waited, n_refinements, n_passes = 1e-2, np.inf, 0, 0, 0

    def known(allowed: float) -> Verdict:
        """Return how it is known that the vectors of this iteration are the leading ones."""
        options: Any = {
            "prove": problem.prove,
            "key": problem.key,
            "seed": len(history),
        }
        options |= {
            "mix": mix,
            "mix_error": mixes.rounding_error(mix) if mixes else 0.0,
        }
        return certify(
            stack, problem.coefficients(weights), relaxation, allowed, **options
        )

    while True:
        mix = None  # so that there is memory for the next
        n_passes += (is_larger := basis.expand(X, surfaces.weights))
        previous = error
        relaxation = basis.minimize(surfaces, error)
        weights, value, bound = surfaces.weights, relaxation.value, surfaces.lower_bound
        above, error = max(value - bound, 0.0), relative(relaxation.error, relaxation)
        gap = relaxation.gap_above(bound)
        history.append((bound + gap * value, bound))
        n_waited = 0 if gap < 0.9 * best_gap else n_waited + 1
        best_gap = min(gap, best_gap)
        is_last = (
            not is_larger or len(history) >= problem.max_iter or n_waited >= PATIENCE
        )
        if not certified:
            is_enough = relative(above, relaxation) + INHERITED * error <= tol
            is_stuck = ROUNDED > error > previous / 2
            if is_enough or is_stuck or is_last:
                break
        if mixes is not None:
            mix = mixes(weights)
        certificate, weaker, missed, allowed = None, None, None, tol * value - above
        if (
            certified
            and allowed > 0
            and (relaxation.error <= ENOUGH * allowed or is_last)
        ):
            verdict = known(allowed)
            n_passes += verdict.n_passes
            certificate, weaker, missed = (
                verdict.certificate,
                verdict.weaker,
                verdict.missed,
            )
            # Better vectors make a search surer, but for passes over streamed kernels.
            is_sure = n_refinements >= REFINEMENTS or mixes is None
            if certificate is not None and (
                certificate.probability <= PROBABILITY or is_sure
            ):
                break
            n_refinements += missed is None
        if n_refinements > REFINEMENTS or (
            is_last and (missed is None or n_waited >= PATIENCE)
        ):
            break
        X = relaxation.residuals if missed is None else missed
        if missed is None and mixes is not None:
            X = mixes.improved(
                mix, relaxation, INNER_SHARE * max(error, tol * 0.1**n_refinements)
            )
    converged = certificate is not None
    if certified and certificate is None and weaker is None and n_waited >= PATIENCE:
        # As far as the vectors go; what is claimed is larger than what was asked for.
        verdict = known(tol * value + relaxation.error)
        weaker, n_passes = (
            verdict.certificate or verdict.weaker,
            n_passes + verdict.n_passes,
        )
    certificate = certificate or weaker or Certificate("open", relaxation.error)
    relaxation = replace(relaxation, error=certificate.error)
    history[-1] = (bound + relaxation.gap_above(bound) * value, bound)
    bounds, products = np.array(history), basis.products if certified else None
    return Search(
        weights, relaxation, bounds, converged, n_passes, certificate, products
    )


def _search_whole_space(stack: Any, problem: Problem, weights: Float) -> Search:
    """Search if the basis would be the whole space: every eigenproblem at full size."""
    k = problem.n_clusters

    def evaluate(gamma: Float) -> Evaluation:
        relaxation = relax_whole(stack.mix(problem.coefficients(gamma)).dense(), k)
        H = relaxation.vectors[:, :k]
        return problem.evaluation(
            relaxation.value, inner_products(stack.apply(H), H), relaxation
        )

    surfaces = CuttingSurfaces(
        weights, ALIGNMENT_ROUNDINGS * rounding_of_entries(stack)
    )
    gamma, best, history = surfaces.minimize(evaluate, problem.tol, problem.max_iter)
    # A dense eigensolver is exact but for rounding.
    rounding = np.sqrt(stack.n_samples) * np.finfo(np.float64).eps
    certificate = Certificate("proved", float(rounding * best.value))
    relaxation = replace(best.state, error=certificate.error)
    converged = best.value - surfaces.lower_bound <= problem.tol * best.value
    return Search(
        gamma, relaxation, np.array(history), converged, 2 * len(history), certificate
    )


class Basis:
    """An orthonormal basis V, the products K_p V of all kernels, and all ``V^T K_p V``.

    Sample-sized arrays are kept as rows; the small matrices are on the host.
    """

    def __init__(self, stack: Any, problem: Problem, dtype: str):
        n = stack.n_samples
        self.stack, self.problem, self.dtype = stack, problem, dtype
        self.width = problem.width
        self._rows: Any = zeros((0, n), stack.kernels[0].like, dtype)
        self._images: Any = zeros((stack.n_kernels, 0, n), stack.kernels[0].like, dtype)
        self._G = np.empty((stack.n_kernels, 0, 0))

    def expand(self, X: Array, weights: Float) -> bool:
        """Take in more vectors, by one pass over all kernels; return whether there were any."""
        if len(self._G[0]) + X.shape[1] > MOST_BLOCKS * self.width:
            self._restart(weights)
        old, X = self._rows.shape[0], astype(X, self.dtype)
        new = orthonormalize(X, self._rows.T if old else None)
        if not new.shape[1]:
            return False
        xp, size, G = namespace(new), old + new.shape[1], self._G
        self._rows = xp.concat([self._rows, new.T])
        images = xp.permute_dims(self.stack.apply(new), (0, 2, 1))
        self._images = xp.concat([self._images, images], axis=1)
        blocks = to_host(xp.matmul(images, self._rows.T))
        self._G = np.empty((len(G), size, size))
        self._G[:, :old, :old], self._G[:, old:, :] = G, blocks
        self._G[:, :old, old:] = blocks[:, :, :old].transpose(0, 2, 1)
        return True

    def _restart(self, weights: Float) -> None:
        S = self._eigenpairs(weights)[1][:, : KEPT_BLOCKS * self.width]
        turn = to_device(np.ascontiguousarray(S.T), self._rows, self.dtype)
        self._G, self._rows = S.T @ self._G @ S, turn @ self._rows
        self._images = namespace(turn).matmul(turn, self._images)

    def _eigenpairs(self, weights: Float) -> tuple[Float, Float]:
        m, size, _ = self._G.shape
        mixed = (self.problem.coefficients(weights) @ self._G.reshape(m, -1)).reshape(
            size, size
        )
        return top_eigenpairs((mixed + mixed.T) / 2, size, self._rows)

    def evaluate(self, weights: Float) -> Evaluation:
        """Return the value and the alignments at some weights; the state are the eigenpairs."""
        values, S = self._eigenpairs(weights)
        H = S[:, : self.problem.n_clusters]
        alignments = self._G.reshape(len(self._G), -1) @ (H @ H.T).ravel()
        value = float(values[: self.problem.n_clusters].sum())
        return self.problem.evaluation(value, alignments, (values, S))

    def relaxation(self, weights: Float, evaluation: Evaluation) -> Relaxation:
        """Return the eigenvectors found in the basis as vectors over the samples."""
        values, S = (part[..., : self.width] for part in evaluation.state)
        turn = self._turn = to_device(np.ascontiguousarray(S.T), self._rows, self.dtype)
        c = to_device(self.problem.coefficients(weights), self._rows, self.dtype)
        xp, (m, b, n) = namespace(turn), self._images.shape
        mixed = xp.reshape(c @ xp.reshape(self._images, (m, b * n)), (b, n))
        vectors, products = (turn @ self._rows).T, (turn @ mixed).T
        return ritz_vectors(self.problem.n_clusters, vectors, products, values)

    @property
    def products(self) -> Array:
        """The products of all kernels with the latest eigenvectors, (m, n, b)."""
        xp = namespace(self._turn)
        return xp.permute_dims(xp.matmul(self._turn, self._images), (0, 2, 1))

    def minimize(self, surfaces: CuttingSurfaces, error: float) -> Relaxation:
        """Solve the problem restricted to the basis to about its error, at first the given one."""
        tol, known = self.problem.tol, None
        while True:
            small_tol = WEIGHTS_SHARE * max(tol, error)
            weights, best, _ = surfaces.minimize(self.evaluate, small_tol, known=known)
            known, relaxation = (weights, best), self.relaxation(weights, best)
            error = relative(relaxation.error, relaxation)
            above = best.value - surfaces.lower_bound
            # If a certificate can follow, do not go to other weights, for which the
            # basis is worse.
            enough = FOR_CERTIFICATE * (tol - error / ENOUGH - surfaces.rounding)
            is_enough = above <= max(enough, WEIGHTS_SHARE * error) * best.value
            if is_enough or WEIGHTS_SHARE * max(tol, error) >= small_tol:
                surfaces.weights = weights
                return relaxation


def relative(error: float, relaxation: Relaxation) -> float:
    """Return an error as a share of an eigenvalue sum, which may vanish in a poor basis."""
    return error / max(relaxation.value, np.finfo(np.float64).tiny)
