"""The search in a subspace where a combination is no matrix: its products read all kernels."""

import numpy as np

from mkclust.engine.first_weights import first_weights
from mkclust.engine.missed import PASSING_PROBABILITY, find_missed_eigenvectors
from mkclust.engine.problem import BASELINE_TOLERANCE
from mkclust.engine.proof import Certificate, prove
from mkclust.engine.relaxation import Progress, Relaxation
from mkclust.engine.subspace import SubspaceSearch
from mkclust.linalg import noise, orthonormalize
from mkclust.types import Array, Float

# How long kernels that are read anew for each product are searched for missed eigenvectors, and
# from how many random vectors: more of them take little longer, but a step takes a pass.
SEARCH_STEPS, SEARCH_PROBES = 6, 32


class StreamedSearch(SubspaceSearch):
    """The basis is expanded by residuals, and the combination is seldom asked.

    Products with all kernels cost as much as those with a combination, and tell more.
    """

    def start(self, baseline: Relaxation | None) -> Array | None:
        """Fill the basis until it holds the partition of uniform weights."""
        if baseline is None:
            self.relax_uniform()
        else:
            self.basis.expand(baseline.vectors, self.uniform)
        self.n_passes = self.basis.n_passes
        self.weights = self.surfaces.weights = first_weights(
            self.stack, self.problem.n_clusters, self.anchor
        )
        return None

    @property
    def uniform(self) -> Float:
        """The same weight for every kernel."""
        return np.full(self.stack.n_kernels, 1 / self.stack.n_kernels)

    def relax_uniform(self) -> None:
        """Fill an empty basis until it holds the partition of uniform weights."""
        basis, uniform, progress = self.basis, self.uniform, Progress()
        vectors = noise((self.stack.n_samples, basis.width), 0, self.stack.like)
        while True:
            basis.expand(vectors, uniform)
            relaxation = basis.relaxation(uniform, basis.problem.evaluate(uniform))
            progress.note(relaxation.error)
            if relaxation.error <= BASELINE_TOLERANCE * relaxation.value or progress.stalled:
                return
            vectors = basis.residuals(relaxation)
            if not vectors.shape[1]:
                return  # an invariant subspace: the residuals are rounding

    def step_back(self) -> None:
        """Stay at the weights found: what the basis knows, it knows of all of them alike."""

    def next_vectors(self) -> Array:
        """Return where the eigenvectors found in the basis still miss."""
        return self.basis.residuals(self.relaxation)

    def confirm(self) -> tuple[Certificate | None, Array | None]:
        """Search for missed eigenvectors, and prove only where that was asked for."""
        missed = self.search_missed()
        if missed is not None:
            return None, orthonormalize(missed, self.basis.vectors)
        if self.problem.prove is True:
            self.n_passes += 1
            error = prove(self.anchored_operator.dense(), self.relaxation, self.error_allowed)
            if error is not None:
                return Certificate("proved", error), None
        return Certificate("searched", self.error_allowed), None

    def search_missed(self) -> Array | None:
        """Search for missed eigenvectors; every step reads all kernels."""
        self.combined_weights = self.weights
        self.operator = self.stack.combine(self.weights**2, out=self.operator)
        self.n_searches += 1
        missed = find_missed_eigenvectors(
            self.anchored_operator,
            self.relaxation,
            max(self.error_allowed, self.relaxation.error),
            seed=self.n_searches,
            key=self.problem.key,
            probability=PASSING_PROBABILITY,
            max_steps=SEARCH_STEPS,
            n_probes=SEARCH_PROBES,
            rounding=self.stack.precision,
        )
        self.n_passes += missed.n_products
        return missed.vectors
