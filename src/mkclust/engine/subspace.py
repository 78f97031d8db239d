"""A search in a subspace: expand a basis, solve small, look at the kernels again."""

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np

from mkclust.engine.basis import Basis
from mkclust.engine.cutting import Evaluation
from mkclust.engine.problem import FIRST_TOLERANCE, Problem, Search
from mkclust.engine.proof import Certificate
from mkclust.engine.relaxation import Progress, Relaxation, block_width
from mkclust.linalg import orthonormalize
from mkclust.linalg.operators import AnchoredOperator, Operator
from mkclust.types import Array, Float

# A share of the accuracy asked for goes to the weights, another one to the eigenvectors.
SHARE = 0.3


class SubspaceSearch(ABC):
    """A search in progress: the basis, a combination of the kernels, and the best there is so far.

    What differs between kernels in memory and kernels that are read anew for each product is how
    the basis starts, what it is expanded by, and how long is searched for missed eigenvectors.

    Attributes
    ----------
    weights : ndarray of shape (n_kernels,)
        The best weights so far.
    relaxation : Relaxation
        The partition of their combination, as seen from the basis, and `evaluation`, what it is
        read from.
    operator : Operator
        A combination of the kernels, and `combined_weights`, those that it was made by.
    error, gap : float
        Relative error of the eigenvalue sum, and how far it may lie above the lower bound.
    """

    weights: Float
    relaxation: Relaxation
    evaluation: Evaluation
    combined_weights: Float

    def __init__(self, problem: Problem):
        stack = problem.stack
        self.problem, self.stack, self.surfaces = problem, stack, problem.surfaces
        self.anchor = problem.anchor
        self.basis = Basis(stack, problem.n_clusters, self.anchor, self.width())
        self.operator: Operator | None = None
        self.n_passes = self.n_searches = 0
        self.progress, self.history = Progress(), list[tuple[float, float]]()
        self.error, self.gap = FIRST_TOLERANCE, np.inf

    def width(self) -> int:
        """Return how many vectors to iterate together."""
        return block_width(self.stack.n_samples, self.problem.n_clusters)

    def run(self, baseline: Relaxation | None) -> Search:
        """Search until the gap is closed and confirmed, or no progress is made."""
        vectors = self.start(baseline)
        while True:
            if vectors is not None:
                # The first are eigenvectors; later ones were made orthonormal to the basis.
                self.basis.expand(vectors, self.weights, orthonormal=True)
                self.n_passes += 1
            self.solve_small()
            certificate, vectors = None, None
            if self.gap <= self.problem.tol:
                certificate, vectors = self.confirm()
            is_last = len(self.history) >= self.problem.max_iter or self.progress.stalled
            if certificate is not None or is_last:
                return self.result(certificate)
            if vectors is None:
                vectors = self.next_vectors()
            if not vectors.shape[1]:
                # All residuals are rounding: only what was missed can lead further.
                missed = self.search_missed()
                if missed is None:
                    return self.result(None)
                vectors = orthonormalize(missed, self.basis.vectors)

    def result(self, certificate: Certificate | None) -> Search:
        """Return what was found, with the error that a certificate leaves open."""
        converged = certificate is not None and certificate.kind != "open"
        certificate = certificate or Certificate("open", self.relaxation.error)
        relaxation = replace(self.relaxation, error=certificate.error)
        bound = self.surfaces.lower_bound
        self.history[-1] = (bound + relaxation.gap_above(bound) * relaxation.value, bound)
        return Search(
            self.weights,
            relaxation,
            np.array(self.history),
            converged,
            self.n_passes,
            certificate,
            self.evaluation.alignments,
            self.basis.kernel_products(self.evaluation),
        )

    @property
    def anchored_operator(self) -> Operator:
        """The combination, with the anchor added where there is one."""
        assert self.operator is not None
        return (
            self.operator if self.anchor is None else AnchoredOperator(self.operator, self.anchor)
        )

    @property
    def error_allowed(self) -> float:
        """By how much the eigenvalue sum may be too small if the gap is to stay within tol."""
        value = self.relaxation.value
        return self.problem.tol * value - max(value - self.surfaces.lower_bound, 0.0)

    def solve_small(self) -> None:
        """Solve the problem restricted to the basis, to about the accuracy the basis deserves."""
        tol, surfaces = self.problem.tol, self.surfaces
        small_tol = SHARE * max(tol, self.error)
        while True:
            self.weights, best, _ = surfaces.minimize(self.basis.problem.evaluate, small_tol)
            self.evaluation, self.relaxation = best, self.basis.relaxation(self.weights, best)
            self.error = self.relaxation.error / self.relaxation.value
            # Good enough as it is, it is not sought for elsewhere, where the basis may know less.
            enough = max(2 * SHARE * tol, SHARE * self.error)
            is_enough = best.value - surfaces.lower_bound <= enough * best.value
            if is_enough or small_tol <= max(SHARE * tol, self.error):
                break
            small_tol = SHARE * max(tol, self.error)
        self.step_back()
        surfaces.weights, bound = self.weights, surfaces.lower_bound
        self.gap = self.relaxation.gap_above(bound)
        self.history.append((bound + self.gap * self.relaxation.value, bound))
        self.progress.note(self.gap)

    @abstractmethod
    def step_back(self) -> None:
        """Stay nearer to weights that the basis knows more of, where the error is large."""

    @abstractmethod
    def start(self, baseline: Relaxation | None) -> Array | None:
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
