r"""The embedding of samples that lack views, predicted from the views that they have.

A sample that is in some views only shows a part of what the partition is made of. What that part
tells of the whole, samples that are in these views and in more can teach: for the kernels S that a
sample is in, kernel ridge regression on them,

.. math:: h(x) = \sum_{i \in T} \bar k_S(x, x_i)\, \alpha_i, \qquad
          \alpha = (\bar K_S + \lambda I)^{-1} H_T,

where T are samples that all kernels of S and others have, :math:`\bar K_S` is the mean of the
kernels of S among these, and :math:`H_T` are their rows of the embedding, all of one length.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from mkclust.linalg import arrays_to_host, select, to_device, to_host
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


@dataclass(frozen=True)
class SeenRegression:
    """What some kernels tell of the embedding of samples that are in no others."""

    # The kernels, (n_kernels,) of bool.
    seen: np.ndarray
    # Those that are mixed at all: whether others have a sample does not matter.
    active: np.ndarray
    # What each training sample contributes by its similarity, (n_samples, k), zero for those not
    # learned from; None if projections hold it.
    coefficients: Array | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what is stored of it: arrays of the host."""
        return {name: arrays_to_host(value) for name, value in vars(self).items()}

    def pattern(self) -> "SeenRegression":
        """Return the same without the coefficients."""
        return SeenRegression(self.seen, self.active)

    def is_pattern_of(self, seen: np.ndarray) -> np.ndarray:
        """Return which samples are in these kernels and in no others, (n_new,) of bool."""
        return np.asarray(((seen & self.active) == self.seen).all(axis=1))

    def projection(self, index: int) -> Array:
        """Return what the similarities by one kernel are multiplied with, (n_samples, k)."""
        assert self.coefficients is not None
        return self.coefficients * float(self.seen[index] / self.seen.sum())


def learn_seen_regressions(stack: Stack, H: Array, active: np.ndarray) -> list[SeenRegression]:
    """Learn to embed samples by the kernels that they are in, for every pattern of these.

    H is the embedding, and active are the kernels that are mixed. Patterns that too few samples
    can teach are left out.
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
            beside = to_device(coefficients, stack.kernels[0].like)
            regressions.append(SeenRegression(seen, active, beside))
    return regressions


def _learn(stack: Stack, teachers: np.ndarray, targets: Float) -> Float:
    """Learn from some samples what kernels tell of the embedding, (n_samples, k)."""
    uniform = np.full(stack.n_kernels, 1 / stack.n_kernels)
    similarities = to_host(dense_of(stack.among(teachers).mix(uniform)))
    similarities[np.diag_indices(len(teachers))] += RIDGE * np.trace(similarities) / len(teachers)
    coefficients = np.zeros_like(targets)
    coefficients[teachers] = scipy.linalg.solve(similarities, targets[teachers], assume_a="pos")
    return coefficients


def choose_regressions(
    wide: Array, rows: Array, seen: np.ndarray, regressions: Sequence[SeenRegression]
) -> Array:
    """Return rows of the embedding, of samples whose pattern was learned those predicted.

    What each regression makes of every sample is side by side in wide, (n_new, k *
    n_regressions); seen says which kernels have which samples.
    """
    k = rows.shape[1]
    for number, regression in enumerate(regressions):
        is_pattern = to_device(regression.is_pattern_of(seen).astype(np.float64), rows)
        predicted = select(wide, slice(number * k, (number + 1) * k), axis=1)
        rows = rows + is_pattern[:, None] * (predicted - rows)
    return rows
