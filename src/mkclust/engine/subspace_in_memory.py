"""The search in a subspace where a combination of kernels is a matrix, cheap to multiply with."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from mkclust.engine.cutting import CuttingSurfaces
from mkclust.engine.first_weights import first_weights
from mkclust.engine.missed import (
    DOUBLE,
    HIGHEST_PROBABILITY,
    MAX_STEPS,
    default_probes,
    find_missed_eigenvectors,
    n_steps_expected,
)
from mkclust.engine.problem import FIRST_TOLERANCE, Problem
from mkclust.engine.proof import MOST_CLAIMED, Certificate, certify, entries_of_combination
from mkclust.engine.relaxation import (
    MANY_KRYLOV_BLOCKS,
    Relaxation,
    block_width_on_accelerator,
    improve,
    precision_of_products,
    rayleigh_ritz,
    relax,
)
from mkclust.engine.subspace import SHARE, SubspaceSearch
from mkclust.linalg import (
    astype,
    eigh,
    free_bytes,
    is_on_accelerator,
    orthonormalize,
    side_by_side,
    to_device,
    to_host,
)
from mkclust.linalg.memory import fits
from mkclust.linalg.operators import LazyOperator, Operator, ScaledOperator
from mkclust.linalg.threads import FEW_SAMPLES
from mkclust.types import Array, Float

# How accurately the partition of the first weights' combination is solved, and where these are
# uniform, for they will move far, or products are in single precision.
FIRST_VECTORS_TOLERANCE, ROUGH_VECTORS_TOLERANCE = 1e-5, 1e-3
# Between two looks at all kernels the error falls to this share of its square, or to so much of the
# tolerance, in so many products at most: they take a single matrix, and save a look at all. Where
# that leads nowhere, as with eigenvalues that nearly tie, there may be more.
INNER_SHARE, LEAST_ERROR, INNER_PRODUCTS, MOST_INNER_PRODUCTS = 0.1, 1e-3, 12, 30
# Blocks of vectors that they are kept in: eight times those of the basis, in half of its precision.
INNER_BLOCKS = 8
# Weights that move, squared, by less than this share of the tolerance need no other combination.
SMALL_MOVE = 0.1
# How often weights are foreseen between two looks at most.
FORESIGHTS = 3
# Of the error aimed at, what may be lost with directions that the basis is not expanded by, and how
# much those count that follow the partition in the spectrum.
SHARE_LOST, GUARD_SHARE = 0.3, 1e-3
# Single precision is enough for products where the error allowed is no smaller than this, and pays
# from so many samples on.
LEAST_ROUNDED_TOLERANCE, FEWEST_ROUNDED = 1e-11, 500
# Where the error is larger than this, weights are sought on the way to those that the basis asks
# for: at these shares of it.
LARGE_ERROR, STEPS_BACK = 1e-3, (0.5, 0.25, 0.125)
# Coefficients that have grown by less than this share make nearly the same combination; on an
# accelerator, where a sum takes longer than steps of a search.
SMALL_EXCESS, SMALL_EXCESS_ON_ACCELERATOR = 1e-3, 3e-3
# A proof comes first where its n / 6 columns of multiplications are no more than those of a search.
SEARCH_COLUMNS = 80
# The same on an accelerator: up to so many samples.
MOST_SAMPLES_PROVED_FIRST = 12_000
# A search that is expected to take more steps than a few may wait for better vectors, whose
# residuals are of this share; they take a look at all kernels, and so many products more.
FEW_STEPS, BETTER_SHARE, FEW_PRODUCTS = 12, 0.1, 6
# How often vectors are improved further where they are too poor for a proof or a search to tell.
MAX_REFINEMENTS = 2
# Up to so many samples, problems whose eigenvalues lie too close together for a subspace are solved
# by dense eigendecompositions.
MOST_SAMPLES_WHOLE = 2000
# Sparse kernels of more samples are not written out for a proof: they are there to spare that.
MOST_SPARSE_PROVED = 3000


class InMemorySearch(SubspaceSearch):
    """The basis is expanded by the leading eigenvectors of one combination after another.

    These are provisional, and so are the combinations: in single precision, where that is half of
    the work. What the basis knows of the kernels, and with it weights, eigenvalues and residuals,
    is in the precision of the kernels.

    Attributes
    ----------
    rounded : bool
        Whether combinations may be in single precision.
    n_refinements : int
        How often vectors were too poor for a proof or a search to tell.
    """

    n_refinements = 0

    def __init__(self, problem: Problem):
        super().__init__(problem)
        self.rounded = (
            problem.tol >= LEAST_ROUNDED_TOLERANCE and self.stack.n_samples >= FEWEST_ROUNDED
        )

    def width(self) -> int:
        """Return how many vectors to iterate together."""
        if not is_on_accelerator(self.stack.like):
            return super().width()
        return block_width_on_accelerator(self.stack.n_samples, self.problem.n_clusters)

    def start(self, baseline: Relaxation | None) -> Array | None:
        """Begin with the partition of first weights, and with one that is given."""
        k = self.problem.n_clusters
        self.weights = self.surfaces.weights = first_weights(self.stack, k, self.anchor)
        self.combine()
        start = None if baseline is None else baseline.vectors
        is_uniform = bool(np.all(self.weights == self.weights[0]))
        are_rough = is_uniform or self.stack.precision > DOUBLE
        tol = ROUGH_VECTORS_TOLERANCE if are_rough else FIRST_VECTORS_TOLERANCE
        first = relax(self.anchored_operator, k, tol=tol, start=start, width=self.basis.width)
        self.fall = first.fall
        vectors = astype(first.vectors, "float64")
        # Two partitions tell the kernels apart better than one.
        return orthonormalize(vectors if start is None else side_by_side(vectors, start))

    def step_back(self) -> None:
        """Stay nearer to the weights whose eigenvectors the basis holds, where it knows more.

        Of weights in between, those are best whose value is smallest, what may be missing counted.
        """
        is_inside = np.all(self.weights > 0) and np.all(self.combined_weights > 0)
        if self.error <= LARGE_ERROR or not is_inside:
            return
        start, end = np.log(self.combined_weights), np.log(self.weights)
        for share in STEPS_BACK:
            logarithms = start + share * (end - start)
            weights = np.exp(logarithms - logarithms.max())
            weights /= weights.sum()
            evaluation, best = self.basis.problem.evaluate(weights), self.relaxation
            relaxation = self.basis.relaxation(weights, evaluation)
            if relaxation.value + relaxation.error < best.value + best.error:
                self.weights, self.evaluation, self.relaxation = weights, evaluation, relaxation
        self.error = self.relaxation.error / self.relaxation.value

    def combine(self) -> None:
        """Combine the kernels by the current weights, unless they are."""
        is_new = self.operator is None or self.operator.is_rounded > self.rounded
        if is_new or np.any(self.weights != self.combined_weights):
            self.combined_weights = self.weights
            self.operator = self.stack.combine(
                self.weights**2, out=self.operator, rounded=self.rounded
            )
            self.n_passes += 1

    def next_vectors(self) -> Array:
        """Return better eigenvectors of the combination, by products of that one matrix."""
        is_slow, tol = self.progress.waited > 0, self.problem.tol
        self.rounded = self.rounded and not is_slow
        self.combine()
        vectors = self.better_vectors(self.relaxation, self.goal(self.error, 2), is_slow)
        looks_are_cheap = is_on_accelerator(self.stack.like) or self.stack.n_samples <= FEW_SAMPLES
        if is_slow or looks_are_cheap:
            return vectors
        before = self.error
        # Weights foreseen from these move by less after a look, and take a sum instead of one.
        for n_foreseen in range(FORESIGHTS):
            small_tol = self.goal(self.error, 3 if n_foreseen else 2)
            foreseen = self.foresee(vectors, max(SHARE * tol, small_tol))
            if foreseen is None:
                break
            error = foreseen.error / foreseen.value
            vectors = self.better_vectors(foreseen, self.goal(error, 2))
            if error > before:
                break  # these weights are not near any: it takes a look to come nearer
            before = error
        return vectors

    def goal(self, error: float, power: int) -> float:
        """Return how accurate vectors should be: about as they will be for the next weights.

        As the weights move by about the error, the error left is about its square, and after one
        more move its cube.
        """
        least = LEAST_ERROR * self.problem.tol * 0.1**self.n_refinements
        return float(np.clip(INNER_SHARE * error**power, least, FIRST_TOLERANCE))

    def better_vectors(self, start: Relaxation, goal: float, is_slow: bool = False) -> Array:
        """Return what better eigenvectors of the combination have outside the basis."""
        operator = self.anchored_operator
        better = improve(
            operator,
            replace(start.astype(precision_of_products(operator)), fall=self.fall),
            goal,
            max_products=MOST_INNER_PRODUCTS if is_slow else INNER_PRODUCTS,
            n_blocks=MANY_KRYLOV_BLOCKS if is_slow else INNER_BLOCKS,
        )
        self.fall = better.fall
        return self.directions_that_count(better, max(goal * better.value, better.error))

    def foresee(self, vectors: Array, tol: float) -> Relaxation | None:
        """Combine the kernels by weights foreseen for a larger basis; return their eigenvectors.

        None where there is nothing new to it, or the weights hardly move.
        """
        assert self.operator is not None
        if not vectors.shape[1]:
            return None
        problem = self.basis.foreseen_problem(vectors, self.operator @ vectors, self.weights)
        surfaces = CuttingSurfaces(self.stack.n_kernels)
        surfaces.weights = self.weights
        weights, best, _ = surfaces.minimize(problem.evaluate, tol)
        moves = np.abs(weights - self.weights).max() / self.weights.max()
        if moves**2 <= SMALL_MOVE * self.problem.tol:
            return None
        self.weights = self.surfaces.weights = weights
        self.combine()
        basis, turn = self.basis.vectors, to_device(best.state[1], vectors)
        leading = basis @ turn[: basis.shape[1], :] + vectors @ turn[basis.shape[1] :, :]
        operator = self.anchored_operator
        return rayleigh_ritz(
            operator, astype(leading, precision_of_products(operator)), self.problem.n_clusters
        )

    def directions_that_count(self, better: Relaxation, error: float) -> Array:
        """Return what better vectors have outside the basis, orthonormal, as far as it matters.

        An eigenvalue grows by about its multiple of the squared length of what its vector gains.
        """
        vectors, basis = astype(better.vectors, "float64"), self.basis.vectors
        k, gained = better.n_clusters, vectors - basis @ (basis.T @ vectors)
        lengths = np.sqrt(np.maximum(better.eigenvalues, 0))
        lengths[k:] *= np.sqrt(GUARD_SHARE)
        gains, turn = eigh(to_host(gained.T @ gained) * np.outer(lengths, lengths))
        counts = np.cumsum(gains) > SHARE_LOST * error
        if not counts.any():
            return orthonormalize(gained, basis)  # the error is all that is left to gain
        mixing = to_device(lengths[:, None] * turn[:, counts], vectors)
        return orthonormalize(gained @ mixing, basis)

    def confirm(self) -> tuple[Certificate | None, Array | None]:
        """Prove where that is cheap; else search, and prove where the search does not tell."""
        proof = self.when_to_prove()
        may_refine = self.n_refinements < MAX_REFINEMENTS
        if proof != "first" and may_refine and self.better_vectors_pay():
            self.n_refinements += 1
            return None, None
        self.n_searches += 1
        certificate, missed = certify(
            self.relaxation,
            self.error_allowed,
            operator=LazyOperator(self.enlarged),
            entries=self.entries,
            proof=proof,
            seed=self.n_searches,
            key=self.problem.key,
            rounding=self.stack.precision,
        )
        if missed is not None and missed.vectors is not None:
            return None, orthonormalize(missed.vectors, self.basis.vectors)
        if certificate is None and missed is not None:
            if may_refine:
                self.n_refinements += 1
            elif missed.probability <= HIGHEST_PROBABILITY:
                error = MOST_CLAIMED * self.error_allowed
                certificate = Certificate("searched", error, missed.probability)
            else:
                certificate = Certificate("open", self.relaxation.error)
        return certificate, None

    def better_vectors_pay(self) -> bool:
        """Return whether better vectors would save a search more than they take."""
        room, relaxation = self.error_allowed, self.relaxation
        n_steps = n_steps_expected(relaxation, room)
        if n_steps <= FEW_STEPS:
            return False
        residuals: Any = relaxation.residuals
        better = replace(relaxation, residuals=BETTER_SHARE * residuals)
        n_better = n_steps_expected(better, room)
        if n_steps > MAX_STEPS or is_on_accelerator(self.stack.like):
            return n_better <= n_steps / 2
        # In products of the combination with a block: a look at all kernels, a sum, and a few more.
        price = 2 * self.stack.n_kernels + FEW_PRODUCTS
        n_probes = default_probes(self.stack.like)
        return (n_steps - n_better) * n_probes > price * self.basis.width

    def when_to_prove(self) -> Literal["first", "last", "never"]:
        """Return whether a proof comes before a search, after one that does not tell, or never."""
        if self.problem.prove != "auto":
            return "first" if self.problem.prove else "never"
        is_large = self.stack.n_samples > MOST_SPARSE_PROVED
        if not self.fits() or (is_large and self.stack.storage == "sparse"):
            return "never"
        n = self.stack.n_samples
        if is_on_accelerator(self.stack.like):
            return "first" if n <= MOST_SAMPLES_PROVED_FIRST else "last"
        return "first" if n / 6 <= SEARCH_COLUMNS else "last"

    def enlarged(self) -> Operator:
        """Return the combination at hand, or a multiple, that is above that of the weights.

        Enlarged a little it is above that of weights that have moved a little since, kernels being
        positive semidefinite: where no eigenvector of the one was missed, none of the other was.
        """
        excess = _excess(self.weights, self.combined_weights)
        is_there = is_on_accelerator(self.stack.like)
        if excess > (SMALL_EXCESS_ON_ACCELERATOR if is_there else SMALL_EXCESS):
            self.combine()
            excess = 0.0
        operator = self.anchored_operator
        return ScaledOperator(operator, 1 + excess) if excess else operator

    def search_missed(self) -> Array | None:
        """Search for missed eigenvectors by products with the combination at hand."""
        self.n_searches += 1
        return find_missed_eigenvectors(
            self.enlarged(),
            self.relaxation,
            max(self.error_allowed, self.relaxation.error),
            seed=self.n_searches,
            key=self.problem.key,
            rounding=self.stack.precision,
        ).vectors

    def entries(self) -> Array:
        """Write the combination of the weights out, anchor included."""
        self.rounded = False
        self.combine()
        assert self.operator is not None
        mixed = entries_of_combination(self.stack, self.weights**2, self.operator)
        return mixed if self.anchor is None else self.anchor.added_to(mixed)

    def fits(self) -> bool:
        """Return whether there is room for the matrices that a factorization takes."""
        return fits(2 * 8 * self.stack.n_samples**2, available=free_bytes(self.stack.like))

    def could_be_whole(self) -> bool:
        """Return whether the samples are few enough for dense eigendecompositions."""
        return self.stack.n_samples <= MOST_SAMPLES_WHOLE and self.fits()


def _excess(weights: Float, combined: Float) -> float:
    """Return by which share combined coefficients must grow to reach those of the weights."""
    ratios = np.divide(weights, combined, out=np.full(len(weights), np.inf), where=combined > 0)
    return float(np.max(np.where(weights > 0, ratios, 0)) ** 2 - 1)
