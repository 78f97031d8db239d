"""The engine: expand a basis, solve small, look at the kernels again.

Eigenvectors of a combination of kernels, and combinations that are themselves being sought, are
found in a subspace of a few dozen to a few hundred dimensions. All this asks of the kernels is
products with thin matrices.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mkclust.linalg import (
    captured,
    noise,
    orthonormalize,
    pick,
    side_by_side,
    to_host,
    top_eigenpairs,
)
from mkclust.relaxation import (
    Anchor,
    Anchored,
    Progress,
    Relaxation,
    block_width,
    improve,
    relax,
    relax_whole,
    ritz,
    strays,
)
from mkclust.subspace.basis import Basis, alignments
from mkclust.surfaces import CuttingSurfaces, Evaluation
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
    anchor : Anchor or None
        What was added to the combination; the relaxation is that of the sum.
    """

    weights: Float
    relaxation: Relaxation
    baseline: Relaxation
    history: Float
    converged: bool
    n_passes: int
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
) -> Search:
    r"""Find the weights and the eigenvectors of their combination together.

    .. math:: \min_{\gamma \in \Delta} \max_{H^\top H = I_k}
              \sum_p \gamma_p^2 \mathrm{Tr}(H^\top K_p H) + c\, \mathrm{Tr}(H^\top H_0 H_0^\top H)

    A basis V is kept together with the products of every kernel with it. In each iteration the
    problem restricted to V is solved to about the accuracy that V deserves; then V is expanded by
    the leading eigenvectors of the combination just found, computed with products of that one
    matrix alone, or by their residuals where the kernels are not in memory and a combination is no
    matrix either (``stack.combining_pays`` is False). Alignments measured in V belong to vectors of
    full length, so the surfaces they make stay valid however V changes: the lower bound is exact.
    The upper bound is the eigenvalue sum found plus what its residuals leave open, and before it is
    believed, random vectors look outside V for eigenvectors that were missed.

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

    Returns
    -------
    Search
    """
    width = block_width(stack.n_samples, n_clusters)
    if width >= stack.n_samples:
        return _search_whole(stack, n_clusters, surfaces, tol, max_iter, anchor, baseline)
    # Where a combination is no matrix, its products cost as much as those of all kernels, which
    # tell more: then the basis is expanded by residuals, and the combination is seldom asked.
    lazy = not getattr(stack, "combining_pays", True)
    basis, progress = Basis(stack, width), Progress()
    combined = np.full(stack.n_kernels, 1 / stack.n_kernels)
    operator = stack.combine(combined**2)
    baseline_tol = ANCHOR_TOLERANCE if anchor else BASELINE_TOLERANCE
    if lazy:
        baseline = _start(basis, combined, n_clusters, baseline_tol, baseline)
    elif baseline is None:
        baseline = relax(operator, n_clusters, tol=baseline_tol)
    n_passes = basis.n_passes if lazy else 1
    anchored = _anchor(baseline, anchor)
    basis.draw_to(anchored)
    weights = surfaces.weights = _coarse_weights(stack, n_clusters, anchored)
    vectors = None if lazy else baseline.vectors
    far = np.max(np.abs(weights / combined - 1)) > NEAR_UNIFORM
    if far:
        combined, operator = weights, stack.combine(weights**2, out=operator)
        n_passes += not lazy
    target = _with_anchor(operator, anchored)
    if not lazy and (far or anchored is not None):
        start = ritz(target, baseline.vectors, n_clusters)
        found = improve(target, start, FIRST_VECTORS_TOLERANCE)
        # Two partitions tell the kernels apart better than one.
        vectors = orthonormalize(side_by_side(found.vectors, baseline.vectors))
    history: list[tuple[float, float]] = []
    error, converged = FIRST_TOLERANCE, False
    while True:
        if vectors is not None:
            # The first are eigenvectors; later ones were made orthonormal to the basis.
            basis.expand(vectors, weights, orthonormal=True)
            n_passes += 1
        weights, current = _solve_small(basis, surfaces, n_clusters, tol, error)
        error, gap = current.error / current.value, current.gap_above(surfaces.lower_bound)
        history.append((surfaces.lower_bound + gap * current.value, surfaces.lower_bound))
        progress.note(gap)
        last = len(history) >= max_iter or progress.stalled
        if last and gap > tol:
            break
        if gap <= tol and not lazy:
            # The last combination, a little enlarged, is above that of the weights that have moved
            # a little since (kernels are positive semidefinite): where no eigenvector of the one
            # was missed, none of the other was.
            excess = _excess(weights, combined)
            if excess <= LITTLE_MOVED and strays(Scaled(target, 1 + excess), current, tol) is None:
                converged = True
                break
        if np.any(weights != combined):
            combined, operator = weights, stack.combine(weights**2, out=operator)
            target = _with_anchor(operator, anchored)
            n_passes += not lazy
        vectors = None
        if gap > tol and lazy:
            vectors = basis.residuals(current)
        elif gap > tol:
            inner_tol = float(np.clip(INNER_SHARE * error, 0.1 * tol, FIRST_TOLERANCE))
            most = MOST_INNER_PRODUCTS if progress.waited else INNER_PRODUCTS
            found = improve(target, current, inner_tol, max_products=most)
            vectors = orthonormalize(found.vectors, basis.vectors)
        if vectors is None or not vectors.shape[1]:
            watched = Watched(target)
            vectors = strays(watched, current, tol)
            n_passes += lazy * watched.n_products
            if vectors is not None:
                vectors = orthonormalize(vectors, basis.vectors)
            converged = bool(vectors is None and gap <= tol)
            if vectors is None or last:
                break
    return Search(weights, current, baseline, np.array(history), converged, n_passes, anchored)


def _excess(weights: Float, combined: Float) -> float:
    """Return by which share combined coefficients must grow to reach those of the weights."""
    ratios = np.divide(weights, combined, out=np.full(len(weights), np.inf), where=combined > 0)
    return float(np.max(np.where(weights > 0, ratios, 0)) ** 2 - 1)


class Scaled:
    """A matrix times a number."""

    def __init__(self, operator: Any, factor: float):
        self._operator, self._factor, self.shape = operator, factor, operator.shape
        self.like = getattr(operator, "like", operator)

    def __matmul__(self, X: Array) -> Array:
        return self._factor * (self._operator @ X)


class Watched:
    """A matrix whose products are counted."""

    def __init__(self, operator: Any):
        self._operator, self.shape, self.n_products = operator, operator.shape, 0
        self.like = getattr(operator, "like", operator)

    def __matmul__(self, X: Array) -> Array:
        self.n_products += 1
        return self._operator @ X


def _start(
    basis: Basis, weights: Float, n_clusters: int, tol: float, known: Relaxation | None
) -> Relaxation:
    """Fill an empty basis until it holds the partition of some weights, and return that."""
    if known is not None:
        basis.expand(known.vectors, weights)
        return known
    basis.expand(noise((basis.n_samples, basis.width), 0, basis.like), weights)
    progress = Progress()
    while True:
        found = basis.lift(weights, basis.evaluate(weights, n_clusters), n_clusters)
        progress.note(found.error)
        if found.error <= tol * found.value or progress.stalled:
            return found
        new = basis.residuals(found)
        if not new.shape[1]:
            return found  # an invariant subspace: the residuals are rounding
        basis.expand(new, weights)


def _anchor(baseline: Relaxation, anchor: float) -> Anchor | None:
    """Return the anchor that a baseline makes, None where nothing is to be added."""
    k = baseline.n_clusters
    strength = float(anchor * baseline.value / k)
    return Anchor(baseline.vectors[:, :k], strength) if anchor else None


def _with_anchor(operator: Any, anchor: Anchor | None) -> Any:
    """Return a combination with the anchor added, where there is one."""
    return operator if anchor is None else Anchored(operator, anchor)


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
    if baseline is None:
        uniform = np.full(stack.n_kernels, 1 / stack.n_kernels)
        baseline = relax_whole(stack.combine(uniform**2).dense(), n_clusters)
    anchored = _anchor(baseline, anchor)

    def evaluate(gamma: Float) -> Evaluation:
        target = _with_anchor(stack.combine(gamma**2), anchored)
        found = relax_whole(target.dense(), n_clusters)
        H = found.vectors[:, :n_clusters]
        shares = captured(stack.apply(H), H)
        offset = 0.0 if anchored is None else anchored.offset(H)
        return Evaluation(found.value, shares, found, offset)

    weights, best, history = surfaces.minimize(evaluate, tol, max_iter)
    converged = best.value - surfaces.lower_bound <= tol * best.value
    passes = 2 * len(history) + 1
    return Search(weights, best.state, baseline, np.array(history), converged, passes, anchored)


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
        combined = np.tensordot(gamma**2, G, 1)
        if anchor is not None:
            combined += anchor.strength * (anchor.vectors @ anchor.vectors.T)
        values, S = top_eigenpairs(combined, n_clusters, stack.like)
        offset = 0.0 if anchor is None else anchor.offset(S)
        return Evaluation(float(values.sum()), alignments(S, G, n_clusters), None, offset)

    return CuttingSurfaces(m).minimize(evaluate, FIRST_TOLERANCE)[0]
