"""The first weights of a search, from a small sample of the samples."""

from typing import Any

import numpy as np

from mkclust.engine.basis import alignments
from mkclust.engine.cutting import CuttingSurfaces, Evaluation
from mkclust.engine.problem import FIRST_TOLERANCE
from mkclust.linalg import orthonormalize, select, to_host, top_eigenpairs
from mkclust.linalg.operators import Anchor
from mkclust.types import Float

# Samples for each cluster that they are learned from, and how many at least.
SAMPLES_A_CLUSTER, FEWEST_SAMPLES = 5, 100


def first_weights(stack: Any, n_clusters: int, anchor: Anchor | None) -> Float:
    """Return the weights that a sample of the samples asks for, as a place to start from."""
    m, n = stack.n_kernels, stack.n_samples
    size = max(FEWEST_SAMPLES, SAMPLES_A_CLUSTER * n_clusters)
    if m == 1 or 4 * size > n:
        return np.full(m, 1 / m)
    samples = np.sort(np.random.default_rng(0).choice(n, size, replace=False))
    G = to_host(stack.entries(samples))
    if anchor is not None:
        # Eigenvalues of a part of a kernel are about as much smaller as it has fewer samples.
        H = orthonormalize(to_host(select(anchor.vectors, samples)))
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
