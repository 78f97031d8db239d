"""The engine: expand a basis, solve small, look at the kernels again.

Eigenvectors of a combination of kernels, and combinations that are themselves being sought, are
found in a subspace of a few dozen to a few hundred dimensions. All this asks of the kernels is
products with thin matrices.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from mkclust.engine.basis import Basis, alignments
from mkclust.engine.cutting import CuttingSurfaces, Evaluation
from mkclust.engine.proof import (
    DOUBLE,
    HIGHEST_PROBABILITY,
    PASSING_PROBABILITY,
    Certificate,
    certify,
    find_missed_eigenvectors,
    prove,
)
from mkclust.engine.relaxation import (
    KRYLOV_BLOCKS,
    MANY_KRYLOV_BLOCKS,
    Progress,
    Relaxation,
    block_width,
    improve,
    rayleigh_ritz,
    relax,
    relax_whole,
)
from mkclust.linalg import (
    captured,
    free_bytes,
    noise,
    orthonormalize,
    pick,
    side_by_side,
    to_host,
    top_eigenpairs,
)
from mkclust.linalg.memory import fits
from mkclust.linalg.operators import (
    Anchor,
    AnchoredOperator,
    CountingOperator,
    LazyOperator,
    Operator,
    ScaledOperator,
)
from mkclust.types import Array, Float

# A share of the accuracy asked for goes to the weights, another one to the eigenvectors.
SHARE = 0.3
# How accurately (relative to the value) the uniform mix is solved: enough for its clusters.
BASELINE_TOLERANCE = 1e-3
# The same where it is an anchor and becomes part of the problem, which vectors do to first order,
# while eigenvalues tell of their error to second.
ANCHOR_TOLERANCE = 1e-12
# The same for the first, provisional weights, and for the partition of their combination.
FIRST_TOLERANCE, FIRST_VECTORS_TOLERANCE = 1e-2, 1e-4
# Between two looks at all kernels the error falls to this share, in so many products at most: they
# take a single matrix, and save a look at all; but vectors need be no better than the weights are.
# Where that leads nowhere, as with eigenvalues that nearly tie, there may be more.
INNER_SHARE, INNER_PRODUCTS, MOST_INNER_PRODUCTS = 1e-3, 6, 30
# Weights that differ from uniform ones by no more than this share need no combination of their own.
NEAR_UNIFORM = 0.3
# Coefficients that have grown by less than this share make nearly the same combination.
LITTLE_MOVED = 1e-3
# Samples, for each cluster, that the first weights are learned from, and how many at least.
COARSE_SAMPLES, FEWEST_COARSE_SAMPLES = 5, 100
# A proof is tried unasked where its n / 6 columns of multiplications are at most this share of
# those of the solve, and those of the search that it replaces.
PROOF_SHARE, SEARCH_COLUMNS = 0.3, 128
# How often vectors are improved further where they are too poor for a proof or a search to tell.
MAX_REFINEMENTS = 2
# Up to so many samples, problems whose eigenvalues lie too close together for a subspace are solved
# by dense eigendecompositions.
MOST_SAMPLES_WHOLE = 2000
# How long kernels that are read anew for each product are searched for missed eigenvectors.
STREAMED_SEARCH_STEPS = 16


@dataclass(frozen=True)
class Search:
    """What a search for weights found.

    Attributes
    ----------
    weights : ndarray of shape (n_kernels,)
        The weights; the combination's coefficients are their squares.
    relaxation : Relaxation
        The partition of that combination.
    baseline : Relaxation
        The partition of the uniform combination.
    history : ndarray of shape (n_iter, 2)
        Best objective and certified lower bound after each iteration.
    converged : bool
        Whether the certified relative gap is below the tolerance.
    n_passes : int
        How often every kernel was read.
    certificate : Certificate
        How it is known that no eigenvector was missed.
    anchor : Anchor or None
        What was added to the combination; the relaxation is that of the sum.
    """

    weights: Float
    relaxation: Relaxation
    baseline: Relaxation
    history: Float
    converged: bool
    n_passes: int
    certificate: Certificate
    anchor: Anchor | None = None


def search(
    stack: Any,
    n_clusters: int,
    surfaces: CuttingSurfaces,
    *,
    tol: float,
    max_iter: int,
    anchor: float = 0.0,
    baseline: Relaxation | None = None,
    prove: bool | Literal["auto"] = "auto",
) -> Search:
    r"""Find the weights and the eigenvectors of their combination together.

    .. math:: \min_{\gamma \in \Delta} \max_{H^\top H = I_k}
              \sum_p \gamma_p^2 \mathrm{Tr}(H^\top K_p H) + c\, \mathrm{Tr}(H^\top H_0 H_0^\top H)

    A basis V is kept together with the products of every kernel with it. In each iteration the
    problem restricted to V is solved to about the accuracy that V deserves; then V is expanded by
    the leading eigenvectors of the combination just found, computed with products of that one
    matrix alone, or by their residuals where the kernels are not in memory and a combination is no
    matrix either. Alignments measured in V belong to vectors of full length, so the surfaces they
    make stay valid however V changes: the lower bound is exact. The upper bound is the eigenvalue
    sum found plus what may be missing from it, which is proved or searched for
    (`mkclust.engine.proof`) before it is believed.

    Parameters
    ----------
    stack : KernelStack
        The kernels.
    n_clusters : int
        Number of clusters, k.
    surfaces : CuttingSurfaces
        The problem over the weights.
    tol : float
        Relative gap at which to stop.
    max_iter : int
        Number of iterations at which to give up.
    anchor : float, default=0.0
        How strongly the partition is drawn to that of the uniform combination, :math:`H_0`:
        c is so many times the mean of its k largest eigenvalues.
    baseline : Relaxation, default=None
        The partition of the uniform combination, where it is known.
    prove : bool or "auto", default="auto"
        Whether to prove by a factorization that no eigenvector was missed, "auto" where that takes
        a fraction of the solve, or where a search does not tell.

    Returns
    -------
    Search
    """
    n = stack.n_samples
    if block_width(n, n_clusters) >= n:
        return _search_whole(stack, n_clusters, surfaces, tol, max_iter, anchor, baseline)
    kind = _CombinedSearch if stack.combining_pays else _StreamedSearch
    iteration = kind(stack, n_clusters, surfaces, tol, max_iter, prove)
    result = iteration.run(anchor, baseline)
    left = max_iter - len(result.history)
    if result.converged or left <= 0 or not iteration.could_be_whole():
        return result
    whole = _search_whole(stack, n_clusters, surfaces, tol, left, anchor, result.baseline)
    history = np.concatenate([result.history, whole.history])
    return replace(whole, history=history, n_passes=result.n_passes + whole.n_passes)


class _SubspaceSearch(ABC):
    """A search in progress: the basis, the combination at hand, and the best there is so far.

    What differs between kernels in memory and kernels that are read anew for each product is how
    the basis starts, what it is expanded by, and how long is searched for missed eigenvectors.
    """

    def __init__(
        self,
        stack: Any,
        n_clusters: int,
        surfaces: CuttingSurfaces,
        tol: float,
        max_iter: int,
        prove: bool | Literal["auto"],
    ):
        self.stack, self.n_clusters, self.surfaces = stack, n_clusters, surfaces
        self.tol, self.max_iter, self.prove = tol, max_iter, prove
        self.basis = Basis(stack, block_width(stack.n_samples, n_clusters))
        self.combined = np.full(stack.n_kernels, 1 / stack.n_kernels)
        self.operator: Operator = stack.combine(self.combined**2)
        self.n_passes = self.n_searches = self.n_refinements = 0
        self.anchor: Anchor | None = None
        self.baseline: Relaxation
        self.progress, self.history = Progress(), list[tuple[float, float]]()
        self.error, self.gap = FIRST_TOLERANCE, np.inf

    def run(self, anchor: float, baseline: Relaxation | None) -> Search:
        """Search until the gap is closed and confirmed, or no progress is made."""
        vectors = self.start(anchor, baseline)
        while True:
            if vectors is not None:
                # The first are eigenvectors; later ones were made orthonormal to the basis.
                self.basis.expand(vectors, self.weights, orthonormal=True)
                self.n_passes += 1
            self.solve_small()
            certificate, vectors = None, None
            if self.gap <= self.tol:
                certificate, vectors = self.confirm()
            last = len(self.history) >= self.max_iter or self.progress.stalled
            if certificate is not None or last:
                break
            if vectors is None:
                vectors = self.next_vectors()
            if not vectors.shape[1]:
                # All residuals are rounding: only what was missed can lead further.
                missed = self.search_missed()
                if missed is None:
                    break
                vectors = orthonormalize(missed, self.basis.vectors)
        converged = certificate is not None and certificate.kind != "open"
        certificate = certificate or Certificate("open", self.current.error)
        relaxation = replace(self.current, error=certificate.error)
        bound = self.surfaces.lower_bound
        self.history[-1] = (bound + relaxation.gap_above(bound) * relaxation.value, bound)
        return Search(
            self.weights,
            relaxation,
            self.baseline,
            np.array(self.history),
            converged,
            self.n_passes,
            certificate,
            self.anchor,
        )

    @property
    def target(self) -> Operator:
        """The combination at hand, anchor included."""
        return _with_anchor(self.operator, self.anchor)

    @property
    def room(self) -> float:
        """By how much the eigenvalue sum may be too small if the gap is to stay within tol."""
        value = self.current.value
        return self.tol * value - max(value - self.surfaces.lower_bound, 0.0)

    def solve_small(self) -> None:
        """Solve the problem restricted to the basis."""
        self.weights, self.current = _solve_small(
            self.basis, self.surfaces, self.n_clusters, self.tol, self.error
        )
        bound, value = self.surfaces.lower_bound, self.current.value
        self.error, self.gap = self.current.error / value, self.current.gap_above(bound)
        self.history.append((bound + self.gap * value, bound))
        self.progress.note(self.gap)

    @abstractmethod
    def start(self, anchor: float, baseline: Relaxation | None) -> Array | None:
        """Find first weights, and vectors to begin with if the basis does not hold them."""

    @abstractmethod
    def next_vectors(self) -> Array:
        """Return vectors to expand the basis by, orthonormal to it."""

    @abstractmethod
    def confirm(self) -> tuple[Certificate | None, Array | None]:
        """Return a certificate of the eigenvalue sum, or vectors that it misses, or neither."""

    @abstractmethod
    def search_missed(self) -> Array | None:
        """Search for missed eigenvectors of the combination of the current weights."""

    def could_be_whole(self) -> bool:
        """Return whether dense eigendecompositions are an alternative."""
        return False


class _CombinedSearch(_SubspaceSearch):
    """The search where a combination of kernels is a matrix, cheap to multiply with."""

    # Multiplications so far, in products of one column with a dense matrix.
    n_columns = 0.0

    def start(self, anchor: float, baseline: Relaxation | None) -> Array | None:
        """Begin with the partitions of uniform and of first weights."""
        k = self.n_clusters
        self.n_passes = 1
        if baseline is None:
            baseline = relax(
                self.operator, k, tol=ANCHOR_TOLERANCE if anchor else BASELINE_TOLERANCE
            )
        self.baseline, self.anchor = baseline, _anchor(baseline, anchor)
        self.basis.draw_to(self.anchor)
        self.weights = self.surfaces.weights = _coarse_weights(self.stack, k, self.anchor)
        far = bool(np.max(np.abs(self.weights / self.combined - 1)) > NEAR_UNIFORM)
        if far:
            self.combine()
        if not far and self.anchor is None:
            return baseline.vectors
        start = rayleigh_ritz(self.target, baseline.vectors, k)
        first = improve(self.target, start, FIRST_VECTORS_TOLERANCE)
        # Two partitions tell the kernels apart better than one.
        return orthonormalize(side_by_side(first.vectors, baseline.vectors))

    def combine(self) -> None:
        """Combine the kernels by the current weights, unless they are."""
        if np.any(self.weights != self.combined):
            self.combined = self.weights
            self.operator = self.stack.combine(self.weights**2, out=self.operator)
            self.n_passes += 1

    def next_vectors(self) -> Array:
        """Return better eigenvectors of the combination, by products of that one matrix."""
        self.combine()
        slow = self.progress.waited > 0
        goal = INNER_SHARE * self.error * (0.1 if self.gap <= self.tol else 1.0)
        counting = CountingOperator(self.target)
        better = improve(
            counting,
            self.current,
            float(np.clip(goal, 0.1 * self.tol * 0.1**self.n_refinements, FIRST_TOLERANCE)),
            max_products=MOST_INNER_PRODUCTS if slow else INNER_PRODUCTS,
            n_blocks=MANY_KRYLOV_BLOCKS if slow else KRYLOV_BLOCKS,
        )
        self.count(counting)
        return orthonormalize(better.vectors, self.basis.vectors)

    def count(self, counting: CountingOperator) -> None:
        """Take note of products with the combination."""
        self.n_columns += counting.n_columns * self.operator.n_entries / self.stack.n_samples**2

    def confirm(self) -> tuple[Certificate | None, Array | None]:
        """Prove where that is cheap; else search, and prove where the search does not tell."""
        proof: Literal["first", "last", "never"] = "last" if self.prove else "never"
        if self.proof_is_cheap():
            proof = "first"
        elif self.prove == "auto" and not self.fits():
            proof = "never"
        self.n_searches += 1
        certificate, missed = certify(
            self.current,
            self.room,
            operator=LazyOperator(self.enlarged),
            entries=self.entries,
            proof=proof,
            seed=self.n_searches,
            rounding=self.stack.precision,
        )
        if missed is not None and missed.vectors is not None:
            return None, orthonormalize(missed.vectors, self.basis.vectors)
        if certificate is None and missed is not None:
            if self.n_refinements < MAX_REFINEMENTS:
                self.n_refinements += 1
            elif missed.probability <= HIGHEST_PROBABILITY:
                certificate = Certificate("searched", self.room, missed.probability)
            else:
                certificate = Certificate("open", self.current.error)
        return certificate, None

    def enlarged(self) -> Operator:
        """Return the combination at hand, or a multiple, that is above that of the weights.

        Enlarged a little it is above that of weights that have moved a little since, kernels being
        positive semidefinite: where no eigenvector of the one was missed, none of the other was.
        """
        excess = _excess(self.weights, self.combined)
        if excess > LITTLE_MOVED:
            self.combine()
            excess = 0.0
        return ScaledOperator(self.target, 1 + excess) if excess else self.target

    def search_missed(self) -> Array | None:
        """Search for missed eigenvectors by products with the combination at hand."""
        self.n_searches += 1
        return find_missed_eigenvectors(
            self.enlarged(),
            self.current,
            max(self.room, self.current.error),
            seed=self.n_searches,
            rounding=self.stack.precision,
        ).vectors

    def entries(self) -> Array:
        """Write the combination of the weights out, anchor included."""
        self.combine()
        mixed = entries_of_combination(self.stack, self.weights**2, self.operator)
        return mixed if self.anchor is None else self.anchor.added_to(mixed)

    def proof_is_cheap(self) -> bool:
        """Return whether a proof takes a fraction of the solve, or was asked for."""
        if self.prove != "auto":
            return self.prove
        columns = self.n_columns + self.stack.n_kernels * self.basis.n_columns
        n = self.stack.n_samples
        return n / 6 <= PROOF_SHARE * columns + SEARCH_COLUMNS and self.fits()

    def fits(self) -> bool:
        """Return whether there is room for the matrices that a factorization takes."""
        return fits(2 * 8 * self.stack.n_samples**2, available=free_bytes(self.stack.like))

    def could_be_whole(self) -> bool:
        """Return whether the samples are few enough for dense eigendecompositions."""
        return self.stack.n_samples <= MOST_SAMPLES_WHOLE and self.fits()


class _StreamedSearch(_SubspaceSearch):
    """The search where products with a combination cost as much as those with all kernels.

    The latter tell more: the basis is expanded by residuals, and the combination is seldom asked.
    """

    def start(self, anchor: float, baseline: Relaxation | None) -> Array | None:
        """Fill the basis until it holds the partition of uniform weights."""
        tol = ANCHOR_TOLERANCE if anchor else BASELINE_TOLERANCE
        self.baseline = _start(self.basis, self.combined, self.n_clusters, tol, baseline)
        self.n_passes = self.basis.n_passes
        self.anchor = _anchor(self.baseline, anchor)
        self.basis.draw_to(self.anchor)
        self.weights = self.surfaces.weights = _coarse_weights(
            self.stack, self.n_clusters, self.anchor
        )
        return None

    def next_vectors(self) -> Array:
        """Return where the eigenvectors found in the basis still miss."""
        return self.basis.residuals(self.current)

    def confirm(self) -> tuple[Certificate | None, Array | None]:
        """Search for missed eigenvectors, and prove only where that was asked for."""
        missed = self.search_missed()
        if missed is not None:
            return None, orthonormalize(missed, self.basis.vectors)
        if self.prove is True:
            self.n_passes += 1
            error = prove(self.target.dense(), self.current, self.room)
            if error is not None:
                return Certificate("proved", error), None
        return Certificate("searched", self.room), None

    def search_missed(self) -> Array | None:
        """Search for missed eigenvectors; every step reads all kernels."""
        self.combined = self.weights
        self.operator = self.stack.combine(self.weights**2, out=self.operator)
        self.n_searches += 1
        missed = find_missed_eigenvectors(
            self.target,
            self.current,
            max(self.room, self.current.error),
            seed=self.n_searches,
            probability=PASSING_PROBABILITY,
            max_steps=STREAMED_SEARCH_STEPS,
            rounding=self.stack.precision,
        )
        self.n_passes += missed.n_products
        return missed.vectors


def entries_of_combination(stack: Any, coefficients: Float, operator: Operator) -> Array:
    """Write a combination out in double precision, even of kernels in single precision."""
    if stack.precision <= DOUBLE:
        return operator.dense()
    mixed = float(coefficients[0]) * stack.kernel(0).dense()
    for index, c in enumerate(coefficients[1:], start=1):
        mixed += float(c) * stack.kernel(index).dense()
    return mixed


def _excess(weights: Float, combined: Float) -> float:
    """Return by which share combined coefficients must grow to reach those of the weights."""
    ratios = np.divide(weights, combined, out=np.full(len(weights), np.inf), where=combined > 0)
    return float(np.max(np.where(weights > 0, ratios, 0)) ** 2 - 1)


def _start(
    basis: Basis, weights: Float, n_clusters: int, tol: float, baseline: Relaxation | None
) -> Relaxation:
    """Fill an empty basis until it holds the partition of some weights, and return that."""
    if baseline is not None:
        basis.expand(baseline.vectors, weights)
        return baseline
    basis.expand(noise((basis.n_samples, basis.width), 0, basis.like), weights)
    progress = Progress()
    while True:
        relaxation = basis.lift(weights, basis.evaluate(weights, n_clusters), n_clusters)
        progress.note(relaxation.error)
        if relaxation.error <= tol * relaxation.value or progress.stalled:
            return relaxation
        new = basis.residuals(relaxation)
        if not new.shape[1]:
            return relaxation  # an invariant subspace: the residuals are rounding
        basis.expand(new, weights)


def _anchor(baseline: Relaxation, anchor: float) -> Anchor | None:
    """Return the anchor that a baseline makes, None where nothing is to be added."""
    k = baseline.n_clusters
    strength = float(anchor * baseline.value / k)
    return Anchor(baseline.vectors[:, :k], strength) if anchor else None


def _with_anchor(operator: Operator, anchor: Anchor | None) -> Operator:
    """Return a combination with the anchor added, where there is one."""
    return operator if anchor is None else AnchoredOperator(operator, anchor)


def _solve_small(
    basis: Basis, surfaces: CuttingSurfaces, n_clusters: int, tol: float, error: float
) -> tuple[Float, Relaxation]:
    """Solve the problem restricted to the basis, to about the accuracy that the basis deserves."""
    while True:
        small_tol = SHARE * max(tol, error)
        weights, best, _ = surfaces.minimize(
            lambda gamma: basis.evaluate(gamma, n_clusters), small_tol
        )
        current = basis.lift(weights, best, n_clusters)
        error = current.error / current.value
        if small_tol <= max(SHARE * tol, error):
            surfaces.weights = weights
            return weights, current


def _search_whole(
    stack: Any,
    n_clusters: int,
    surfaces: CuttingSurfaces,
    tol: float,
    max_iter: int,
    anchor: float,
    baseline: Relaxation | None,
) -> Search:
    """Search where the basis would be the whole space: every eigenproblem at full size."""
    uniform = np.full(stack.n_kernels, 1 / stack.n_kernels)
    if baseline is None:
        baseline = relax_whole(stack.combine(uniform**2).dense(), n_clusters)
    anchored = _anchor(baseline, anchor)

    def evaluate(gamma: Float) -> Evaluation:
        """Solve the eigenproblem of some weights at full size."""
        operator = stack.combine(gamma**2)
        M = entries_of_combination(stack, gamma**2, operator)
        if anchored is not None:
            M = anchored.added_to(M)
        relaxation = relax_whole(M, n_clusters)
        H = relaxation.vectors[:, :n_clusters]
        offset = 0.0 if anchored is None else anchored.offset(H)
        return Evaluation(relaxation.value, _exact_alignments(stack, H), relaxation, offset)

    weights, best, history = surfaces.minimize(evaluate, tol, max_iter)
    # A dense eigensolver is exact but for rounding.
    rounding = np.sqrt(stack.n_samples) * np.finfo(np.float64).eps
    relaxation = replace(best.state, error=float(rounding * best.value))
    converged = best.value - surfaces.lower_bound <= tol * best.value
    return Search(
        weights,
        relaxation,
        baseline,
        np.array(history),
        converged,
        2 * len(history) + 1,
        Certificate("proved", relaxation.error),
        anchored,
    )


def _exact_alignments(stack: Any, H: Array) -> Float:
    """Return ``Tr(H^T K_p H)`` in double precision, even of kernels in single precision."""
    if stack.precision <= DOUBLE:
        return captured(stack.apply(H), H)
    products = (stack.kernel(index).dense() @ H for index in range(stack.n_kernels))
    return np.array([captured(product[None, :, :], H)[0] for product in products])


def _coarse_weights(stack: Any, n_clusters: int, anchor: Anchor | None) -> Float:
    """Return the weights that a sample of the samples asks for, as a place to start from."""
    m, n = stack.n_kernels, stack.n_samples
    size = max(FEWEST_COARSE_SAMPLES, COARSE_SAMPLES * n_clusters)
    if m == 1 or 4 * size > n:
        return np.full(m, 1 / m)
    samples = np.sort(np.random.default_rng(0).choice(n, size, replace=False))
    G = to_host(stack.entries(samples))
    if anchor is not None:
        # Eigenvalues of a part of a kernel are about as much smaller as it has fewer samples.
        H = orthonormalize(to_host(pick(anchor.vectors, samples)))
        anchor = Anchor(H, anchor.strength * size / n)

    def evaluate(gamma: Float) -> Evaluation:
        """Solve the eigenproblem of some weights on the sample."""
        combined = np.tensordot(gamma**2, G, 1)
        if anchor is not None:
            combined += anchor.strength * (anchor.vectors @ anchor.vectors.T)
        values, S = top_eigenpairs(combined, n_clusters, stack.like)
        offset = 0.0 if anchor is None else anchor.offset(S)
        return Evaluation(float(values.sum()), alignments(S, G, n_clusters), None, offset)

    return CuttingSurfaces(m).minimize(evaluate, FIRST_TOLERANCE)[0]
