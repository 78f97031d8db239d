"""The first weights of a search, from a small sample of the samples."""

from dataclasses import replace
from typing import Any

import numpy as np

from mkclust.engine.cutting import CuttingSurfaces
from mkclust.engine.problem import FIRST_TOLERANCE
from mkclust.engine.small_problem import SmallProblem
from mkclust.linalg import orthonormalize, select, to_host
from mkclust.linalg.operators import Anchor
from mkclust.types import Array, Float

# Samples that they are learned from: at least so many, of many samples more; ten for each cluster
# as long as that makes no more than 200, which take little time, and five at least.
FEWEST_SAMPLES, MORE_SAMPLES, MANY_SAMPLES = 150, 200, 3000
SAMPLES_A_CLUSTER, FEWEST_A_CLUSTER = 10, 5


def first_weights(stack: Any, n_clusters: int, anchor: Anchor | None) -> Float:
    """Return the weights that a sample of the samples asks for, as a place to start from.

    Few samples make noise look like structure, the more the fewer they are: by about the inverse
    root of their number. What its two halves ask for tells how much of that is in the sample's
    weights, and how much of the difference is chance.
    """
    m, n = stack.n_kernels, stack.n_samples
    least = MORE_SAMPLES if n >= MANY_SAMPLES else FEWEST_SAMPLES
    wanted = min(SAMPLES_A_CLUSTER * n_clusters, MORE_SAMPLES)
    size = max(least, wanted, FEWEST_A_CLUSTER * n_clusters)
    if m == 1 or 4 * size > n:
        return np.full(m, 1 / m)
    samples = np.random.default_rng(0).choice(n, size, replace=False)
    entries = to_host(stack.entries(samples))
    H = None if anchor is None else to_host(select(anchor.vectors, samples))

    def logarithms(some: slice) -> Float:
        """Return the logarithms of the weights that some of the samples ask for."""
        drawn_to = None
        if anchor is not None and H is not None:
            # Eigenvalues of a part of a kernel are about as much smaller as it has fewer samples.
            strength = anchor.strength * len(H[some]) / n
            drawn_to = Anchor(orthonormalize(H[some]), strength)
        part = np.ascontiguousarray(entries[:, some, some])
        return np.log(_weights_of(part, n_clusters, stack.like, drawn_to))

    whole = logarithms(slice(None))
    halves = logarithms(slice(0, None, 2)), logarithms(slice(1, None, 2))
    trend, chance = whole - (halves[0] + halves[1]) / 2, (halves[0] - halves[1]) / 2
    if not trend @ trend > chance @ chance:
        return _normalized(whole)
    believed = 1 - (chance @ chance) / (trend @ trend)
    further = (1 - np.sqrt(size / n)) / (np.sqrt(2) - 1)
    return _normalized(whole + believed * further * trend)


def _normalized(logarithms: Float) -> Float:
    """Return weights that sum to one."""
    weights = np.exp(logarithms - logarithms.max())
    return weights / weights.sum()


def _weights_of(G: Float, n_clusters: int, like: Array, anchor: Anchor | None) -> Float:
    """Return the weights of small kernels, (m, s, s)."""
    problem = SmallProblem(G, n_clusters, n_clusters, like)
    if anchor is not None:
        problem = replace(problem, strength=anchor.strength, overlap=anchor.vectors.T)
    return CuttingSurfaces(len(G)).minimize(problem.evaluate, FIRST_TOLERANCE)[0]
