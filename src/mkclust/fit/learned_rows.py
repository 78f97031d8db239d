r"""Rows of the embedding of samples that some kernels lack, if these were learned.

`LearnedRows` adds what the kernels that have a sample predict of the others. If enough
samples T are in its kernels S and in others, the row is that of kernel ridge regression
on S,

.. math:: h(x) = \sum_{i \in T} \bar k_S(x, x_i)\, \alpha_i, \qquad
          \alpha = (\bar K_S + \lambda I)^{-1} H_T,

where :math:`\bar K_S` is the mean of the kernels of S among T, and :math:`H_T` are the
rows of T in the embedding, all of one length.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from mkclust.linalg import astype, precision_of, to_device, to_host
from mkclust.stack import Stack
from mkclust.stack.compare import draw
from mkclust.stack.discretize import normalize_rows
from mkclust.stack.observed import maps_of, with_maps
from mkclust.types import Array, Float

# Damping of predictions for missing kernels: the observed ones are amplified at most
# ten times.
TRUST = 0.9
# Ridge penalty, for kernels of unit diagonal: the best of 0.1, 1 and 10 on BBCSport and
# MSRC-v5 with 10 to 50 % missing, four seeds of benchmarks/missing_views.py.
RIDGE = 1.0


def grams_of(H: Array, products: Array) -> Float:
    """Return every ``H^T K_p H``, (m, k, k), given the products K_p H, (m, n, k)."""
    products = astype(products, precision_of(H))
    grams = np.stack(
        [to_host(H.T @ products[p, ...]) for p in range(products.shape[0])]
    )
    return (grams + grams.transpose(0, 2, 1)) / 2


@dataclass(frozen=True)
class LearnedRows:
    r"""The embedding of samples that some kernels lack, from what the others say.

    With a partition :math:`H = \sum_p K_p P_p`, a kernel :math:`K_p = \Phi_p^\top
    \Phi_p` contributes :math:`\varphi_p(x)^\top \Phi_p P_p` to the embedding of x. If
    it lacks x, it contributes a share :math:`\tau` of that for the features
    :math:`\Phi_p H h(x)` that the embedding predicts. With b(x) the sum of what the
    others contribute,

    .. math:: h(x) = b(x)
              \Big(I - \tau \sum_{p\ \mathrm{lacks}\ x} H^\top K_p P_p\Big)^{-1}.

    A sample in exactly the kernels of a regression is embedded by that instead.
    """

    # H^T K_p P_p for every kernel, (n_kernels, k, k).
    predictions: Float
    # The patterns of kernels, (m,) of bool, for which there are regressions.
    patterns: Sequence[np.ndarray] = ()
    # The kernels that are mixed at all: whether others have a sample does not matter.
    active: np.ndarray | None = None

    def complete(self, rows: Array, seen: np.ndarray) -> Array:
        """Return the embedding, (n, k), of sums with k more columns per regression."""
        k = self.predictions.shape[1]
        given = to_host(rows)
        completed = given[:, :k].copy()
        found, of_row = np.unique(seen, axis=0, return_inverse=True)
        for number, pattern in enumerate(found):
            is_pattern = of_row.ravel() == number
            lacking = self.predictions[~pattern].sum(axis=0)
            completed[is_pattern] @= np.linalg.inv(np.eye(k) - TRUST * lacking)
        for number, pattern in enumerate(self.patterns, start=1):
            is_pattern = ((seen & self.active) == pattern).all(axis=1)
            completed[is_pattern] = given[is_pattern, number * k : (number + 1) * k]
        return to_device(completed, rows)


def learn_regressions(
    stack: Stack,
    H: Array,
    observed: np.ndarray,
    *,
    fewest_per_cluster: int = 5,
    most_samples: int = 2000,
    most_patterns: int = 16,
) -> list[tuple[np.ndarray, Float]]:
    """Learn to embed samples by the kernels that have them, for every such pattern.

    H is the embedding, and observed is for the kernels that are mixed. Returned are
    patterns, (m,) of bool, each with what every training sample contributes by its
    similarity, (n_samples, k). A regression learns from at least a number of samples
    per cluster, and from at most a number in all; of many patterns, those of the fewest
    samples are not learned.
    """
    rows = to_host(H)
    n_seen = observed.sum(axis=1)
    incomplete = (n_seen > 0) & (n_seen < n_seen.max())
    patterns, counts = np.unique(observed[incomplete], axis=0, return_counts=True)
    frequent = np.argsort(-counts, kind="stable")[:most_patterns]
    lengths = np.linalg.norm(rows, axis=1)
    targets = normalize_rows(rows) * np.median(lengths[lengths > 0])
    # Samples in all kernels of a pattern are learned from: how missing ones are filled
    # is not used.
    plain = [
        each and replace(each, scale=None, fill=None) for each in maps_of(stack.kernels)
    ]
    stack = replace(stack, kernels=with_maps(stack.kernels, plain))

    regressions = []
    for seen in patterns[frequent]:
        samples = np.flatnonzero(observed[:, seen].all(axis=1) & (n_seen > seen.sum()))
        if len(samples) < fewest_per_cluster * rows.shape[1]:
            continue
        samples = samples[draw(len(samples), most_samples)]
        used = stack.subset(np.flatnonzero(seen).tolist()).among(samples)
        K = to_host(used.mix(np.full(used.n_kernels, 1 / used.n_kernels)).dense())
        K += RIDGE * np.trace(K) / len(K) * np.eye(len(K))
        coefficients = np.zeros_like(targets)
        coefficients[samples] = scipy.linalg.solve(K, targets[samples], assume_a="pos")
        regressions.append((seen, coefficients))
    return regressions
