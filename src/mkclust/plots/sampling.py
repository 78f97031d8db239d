"""Some samples that stand for all, where all would be too many to draw."""

from __future__ import annotations

from typing import Any

import numpy as np

from mkclust.linalg import select


def with_cluster(embedding: Any, labels: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return the rows and labels of the samples that have a cluster, and not the label -1."""
    if np.min(labels, initial=0) >= 0:
        return embedding, labels
    known = np.flatnonzero(labels >= 0)
    return select(embedding, known), labels[known]


def sample_clusters(labels: np.ndarray, count: int, random_state: Any = 0) -> np.ndarray:
    """Return the numbers of some samples, rising: each cluster in proportion, and one at least.

    Where there are more clusters than samples asked for, not every cluster has one.
    """
    clusters, inverse, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    if len(labels) <= count:
        return np.arange(len(labels))
    rng = np.random.default_rng(random_state)
    order = rng.permutation(len(labels))
    if count < len(clusters):
        return np.sort(order[:count])
    exact = sizes * (count / len(labels))
    quotas = np.maximum(exact.astype(int), 1)
    while quotas.sum() != count:
        # One more where most is missing; or one less where clusters of one sample took too many.
        missing = exact - quotas
        if quotas.sum() < count:
            quotas[np.argmax(missing)] += 1
        else:
            quotas[np.argmin(np.where(quotas > 1, missing, np.inf))] -= 1
    by_cluster = order[np.argsort(inverse[order], kind="stable")]
    rank = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.sort(by_cluster[rank < np.repeat(quotas, sizes)])
