"""A random subset of the samples, if all are too many to draw."""

import numpy as np


def cluster_sizes(labels: np.ndarray) -> dict[int, int]:
    """Return the number of samples of each cluster; the label -1 stands for none."""
    clusters, sizes = np.unique(labels[labels >= 0], return_counts=True)
    return dict(zip(clusters.tolist(), sizes.tolist(), strict=True))


def sample_clusters(labels: np.ndarray, count: int) -> np.ndarray:
    """Return some rising indices of labeled samples, in proportion to clusters."""
    known = np.flatnonzero(labels >= 0)
    if len(known) <= count:
        return known
    order = np.random.default_rng(0).permutation(known)
    order = order[np.argsort(labels[order], kind="stable")]
    sizes = np.array(list(cluster_sizes(labels).values()))
    quotas = np.maximum(sizes * count // len(known), 1)
    starts = np.cumsum(sizes) - sizes
    rank = np.arange(len(known)) - np.repeat(starts, sizes)
    return np.sort(order[rank < np.repeat(quotas, sizes)])
