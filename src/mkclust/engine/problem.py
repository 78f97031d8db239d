"""The problem that a search solves, and what it answers."""

from dataclasses import dataclass
from typing import Any, Literal

from mkclust.engine.cutting import CuttingSurfaces
from mkclust.engine.proof import Certificate
from mkclust.engine.relaxation import Relaxation
from mkclust.linalg.operators import Anchor
from mkclust.types import Array, Float

# How accurately (relative to the value) the uniform mix is solved: enough for its clusters.
BASELINE_TOLERANCE = 1e-3
# The same for the first, provisional weights.
FIRST_TOLERANCE = 1e-2


@dataclass(frozen=True)
class Problem:
    """What is searched for, as the arguments of :func:`mkclust.engine.search.search` say it."""

    stack: Any
    n_clusters: int
    surfaces: CuttingSurfaces
    tol: float
    max_iter: int
    anchor: Anchor | None
    prove: bool | Literal["auto"]
    key: int


@dataclass(frozen=True)
class Search:
    """What a search for weights found.

    Attributes
    ----------
    weights : ndarray of shape (n_kernels,)
        The weights; the combination's coefficients are their squares.
    relaxation : Relaxation
        The partition of that combination, with the anchor added where there is one.
    history : ndarray of shape (n_iter, 2)
        Best objective and certified lower bound after each iteration.
    converged : bool
        Whether the certified relative gap is below the tolerance.
    n_passes : int
        How often every kernel was read.
    certificate : Certificate
        How it is known that no eigenvector was missed.
    alignments : ndarray of shape (n_kernels,)
        ``Tr(H^T K_p H)`` of every kernel and the partition H.
    kernel_products : array of shape (n_kernels, n_samples, n_clusters) or None
        ``K_p H`` of every kernel, where they were computed on the way.
    """

    weights: Float
    relaxation: Relaxation
    history: Float
    converged: bool
    n_passes: int
    certificate: Certificate
    alignments: Float
    kernel_products: Array | None = None
