r"""The embedding of samples that lack views, predicted from the views that they have.

A sample that is in some views only shows a part of what the partition is made of. What that part
tells of the whole, samples that are in these views and in more can teach: for the kernels S that a
sample is in, kernel ridge regression on them,

.. math:: h(x) = \sum_{i \in T} \bar k_S(x, x_i)\, \alpha_i, \qquad
          \alpha = (\bar K_S + \lambda I)^{-1} H_T,

where T are samples that all kernels of S and others have, :math:`\bar K_S` is the mean of the
kernels of S among these, and :math:`H_T` are their rows of the embedding, all of one length.
"""

from dataclasses import replace

import numpy as np
import scipy.linalg

from mkclust.linalg import to_host
from mkclust.stack import Stack
from mkclust.stack.compare import draw
from mkclust.stack.discretize import normalize_rows
from mkclust.stack.kernel import dense_of
from mkclust.stack.observed import maps_of, observed_samples, with_maps
from mkclust.types import Array, Float

# What is added to the diagonal of kernels of unit diagonal: of 0.1, 1 and 10 the best on BBCSport
# and MSRC-v5 with 10 to 50 % missing, four seeds of benchmarks/missing_views.py.
RIDGE = 1.0
# Samples that a regression learns from: so many for each cluster at least, and so many at most.
FEWEST_A_CLUSTER, MOST_SAMPLES = 5, 2000
# Of more patterns of kernels than this, those of the fewest samples are not learned.
MOST_PATTERNS = 16


def learn_seen_regressions(
    stack: Stack, H: Array, active: np.ndarray
) -> list[tuple[np.ndarray, Float]]:
    """Learn to embed samples by the kernels that they are in, for every pattern of these.

    H is the embedding, and active are the kernels that are mixed. Returned are patterns, (m,) of
    bool, each with what every training sample contributes by its similarity, (n_samples, k), zero
    for those not learned from. Patterns that too few samples can teach are left out.
    """
    observed = observed_samples(stack.kernels)
    if observed is None:
        return []
    observed, rows = observed & active, to_host(H)
    n_seen = observed.sum(axis=1)
    incomplete = (n_seen > 0) & (n_seen < active.sum())
    patterns, counts = np.unique(observed[incomplete], axis=0, return_counts=True)
    frequent = np.argsort(-counts, kind="stable")[:MOST_PATTERNS]
    lengths = np.linalg.norm(rows, axis=1)
    targets = normalize_rows(rows) * np.median(lengths[lengths > 0])
    fewest = FEWEST_A_CLUSTER * rows.shape[1]
    # Teachers are in all kernels of a pattern: what stands for missing samples does not matter.
    plain = [each and replace(each, scale=None, fill=None) for each in maps_of(stack.kernels)]
    stack, regressions = replace(stack, kernels=with_maps(stack.kernels, plain)), []
    for seen in patterns[frequent]:
        has_more = observed[:, seen].all(axis=1) & (n_seen > seen.sum())
        teachers = np.flatnonzero(has_more)
        if len(teachers) >= fewest:
            teachers = teachers[draw(len(teachers), MOST_SAMPLES)]
            coefficients = _learn(stack.subset(np.flatnonzero(seen).tolist()), teachers, targets)
            regressions.append((seen, coefficients))
    return regressions


def _learn(stack: Stack, teachers: np.ndarray, targets: Float) -> Float:
    """Learn from some samples what kernels tell of the embedding, (n_samples, k)."""
    uniform = np.full(stack.n_kernels, 1 / stack.n_kernels)
    similarities = to_host(dense_of(stack.among(teachers).mix(uniform)))
    similarities[np.diag_indices(len(teachers))] += RIDGE * np.trace(similarities) / len(teachers)
    coefficients = np.zeros_like(targets)
    coefficients[teachers] = scipy.linalg.solve(similarities, targets[teachers], assume_a="pos")
    return coefficients
