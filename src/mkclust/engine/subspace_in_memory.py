"""The search in a subspace where a combination of kernels is a matrix, cheap to multiply with."""

from typing import Literal

import numpy as np

from mkclust.engine.first_weights import first_weights
from mkclust.engine.problem import BASELINE_TOLERANCE, FIRST_TOLERANCE
from mkclust.engine.proof import (
    HIGHEST_PROBABILITY,
    Certificate,
    can_tell,
    certify,
    entries_of_combination,
    find_missed_eigenvectors,
)
from mkclust.engine.relaxation import (
    KRYLOV_BLOCKS,
    MANY_KRYLOV_BLOCKS,
    Relaxation,
    improve,
    rayleigh_ritz,
    relax,
)
from mkclust.engine.subspace import SubspaceSearch
from mkclust.linalg import free_bytes, is_on_accelerator, orthonormalize, side_by_side
from mkclust.linalg.memory import fits
from mkclust.linalg.operators import CountingOperator, LazyOperator, Operator, ScaledOperator
from mkclust.types import Array, Float

# How accurately the partition of the first weights' combination is solved.
FIRST_VECTORS_TOLERANCE = 1e-4
# Between two looks at all kernels the error falls to this share, in so many products at most: they
# take a single matrix, and save a look at all; but vectors need be no better than the weights are.
# Where that leads nowhere, as with eigenvalues that nearly tie, there may be more.
INNER_SHARE, INNER_PRODUCTS, MOST_INNER_PRODUCTS = 1e-3, 6, 30
# Weights that differ from uniform ones by no more than this share need no combination of their own.
NEAR_UNIFORM = 0.3
# Coefficients that have grown by less than this share make nearly the same combination.
SMALL_EXCESS = 1e-3
# A proof is tried unasked where its n / 6 columns of multiplications are at most this share of
# those of the solve, and those of the search that it replaces.
PROOF_SHARE, SEARCH_COLUMNS = 0.3, 128
# How often vectors are improved further where they are too poor for a proof or a search to tell.
MAX_REFINEMENTS = 2
# By which share their error is to fall then.
REFINEMENT = 0.01
# Up to so many samples, a proof on an accelerator takes less time than a search.
MOST_SAMPLES_PROVED_FIRST = 12_000
# Up to so many samples, problems whose eigenvalues lie too close together for a subspace are solved
# by dense eigendecompositions.
MOST_SAMPLES_WHOLE = 2000
# Sparse kernels of more samples are not written out for a proof: they are there to spare that.
MOST_SPARSE_PROVED = 3000


class InMemorySearch(SubspaceSearch):
    """The basis is expanded by the leading eigenvectors of one combination after another.

    Attributes
    ----------
    n_columns : float
        Multiplications so far, in products of one column with a dense matrix.
    n_refinements : int
        How often vectors were too poor for a proof or a search to tell.
    """

    n_columns, n_refinements = 0.0, 0

    def start(self, baseline: Relaxation | None) -> Array | None:
        """Begin with the partitions of uniform and of first weights."""
        k = self.problem.n_clusters
        self.n_passes = 1
        if baseline is None:
            baseline = relax(self.operator, k, tol=BASELINE_TOLERANCE)
        self.baseline = baseline
        self.weights = self.surfaces.weights = first_weights(self.stack, k, self.anchor)
        if np.max(np.abs(self.weights / self.combined_weights - 1)) > NEAR_UNIFORM:
            self.combine()
        elif self.anchor is None:
            return baseline.vectors
        start = rayleigh_ritz(self.anchored_operator, baseline.vectors, k)
        first = improve(self.anchored_operator, start, FIRST_VECTORS_TOLERANCE)
        # Two partitions tell the kernels apart better than one.
        return orthonormalize(side_by_side(first.vectors, baseline.vectors))

    def combine(self) -> None:
        """Combine the kernels by the current weights, unless they are."""
        if np.any(self.weights != self.combined_weights):
            self.combined_weights = self.weights
            self.operator = self.stack.combine(self.weights**2, out=self.operator)
            self.n_passes += 1

    def next_vectors(self) -> Array:
        """Return better eigenvectors of the combination, by products of that one matrix."""
        self.combine()
        slow, tol = self.progress.waited > 0, self.problem.tol
        goal = INNER_SHARE * self.error * (0.1 if self.gap <= tol else 1.0)
        counting = CountingOperator(self.anchored_operator)
        better = improve(
            counting,
            self.relaxation,
            float(np.clip(goal, 0.1 * tol * REFINEMENT**self.n_refinements, FIRST_TOLERANCE)),
            max_products=MOST_INNER_PRODUCTS if slow else INNER_PRODUCTS,
            n_blocks=MANY_KRYLOV_BLOCKS if slow else KRYLOV_BLOCKS,
        )
        self.n_columns += counting.n_columns * self.operator.n_entries / self.stack.n_samples**2
        return orthonormalize(better.vectors, self.basis.vectors)

    def confirm(self) -> tuple[Certificate | None, Array | None]:
        """Prove where that is cheap; else search, and prove where the search does not tell."""
        proof = self.when_to_prove()
        if proof != "first":
            telling = can_tell(self.relaxation, self.error_allowed, self.stack.precision)
            if telling == "later" and self.n_refinements < MAX_REFINEMENTS:
                self.n_refinements += 1
                vectors = self.next_vectors()
                if vectors.shape[1]:
                    return None, vectors
            if telling == "never" and proof == "last":
                proof = "first"
        self.n_searches += 1
        certificate, missed = certify(
            self.relaxation,
            self.error_allowed,
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
                certificate = Certificate("searched", self.error_allowed, missed.probability)
            else:
                certificate = Certificate("open", self.relaxation.error)
        return certificate, None

    def when_to_prove(self) -> Literal["first", "last", "never"]:
        """Return whether a proof comes before a search, after one that does not tell, or never."""
        if self.problem.prove != "auto":
            return "first" if self.problem.prove else "never"
        is_large = self.stack.n_samples > MOST_SPARSE_PROVED
        if not self.fits() or (is_large and self.stack.storage == "sparse"):
            return "never"
        n, m = self.stack.n_samples, self.stack.n_kernels
        if n <= MOST_SAMPLES_PROVED_FIRST and is_on_accelerator(self.stack.like):
            return "first"
        n_columns = self.n_columns + m * self.basis.n_columns
        return "first" if n / 6 <= PROOF_SHARE * n_columns + SEARCH_COLUMNS else "last"

    def enlarged(self) -> Operator:
        """Return the combination at hand, or a multiple, that is above that of the weights.

        Enlarged a little it is above that of weights that have moved a little since, kernels being
        positive semidefinite: where no eigenvector of the one was missed, none of the other was.
        """
        excess = _excess(self.weights, self.combined_weights)
        if excess > SMALL_EXCESS:
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
            rounding=self.stack.precision,
        ).vectors

    def entries(self) -> Array:
        """Write the combination of the weights out, anchor included."""
        self.combine()
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
