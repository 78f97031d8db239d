"""What every fit does: read samples, make kernels, embed, save; the base classes."""

from mkclust.fit.base import MultipleKernelClusterer, RelaxedClusterer
from mkclust.fit.inductive import InductiveClusterer
from mkclust.fit.mixture import Mixture
from mkclust.fit.solution import Solution

__all__ = [
    "InductiveClusterer",
    "Mixture",
    "MultipleKernelClusterer",
    "RelaxedClusterer",
    "Solution",
]
